"""Kernels of a program on the CPU executor: IR of any stage from `kernels` on.

    kernels = SimtKernels({"main_kLoop_add_0": module})
    kernels.launch("main_kLoop_add_0", (5, 1, 1), (256, 1, 1), 0, [x, y, 1200])

A kernel is compiled to Python before its first launch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.errors import InternalError, Unsupported
from xla_emitters.program import Launch
from xla_emitters.runtime.ral.context import STAGE, Kernels
from xla_emitters.runtime.simt.memory import Watcher
from xla_emitters.runtime.simt.sized_kernels import SizedKernel


class SimtKernels(Kernels):
    """Kernels by name.

    modules   a module for each
    watchers  told of each access to memory
    """

    def __init__(self, modules: Mapping[str, ModuleOp], watchers: Sequence[Watcher] = ()) -> None:
        self._modules = modules
        self._watchers = watchers
        self._ready = dict[str, SizedKernel]()

    def launch(
        self,
        name: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        arguments: Sequence[Any],
    ) -> None:
        if (kernel := self._ready.get(name)) is None:
            if name not in self._modules:
                raise InternalError(f"no kernel '{name}' in the program", stage=STAGE)
            kernel = self._ready[name] = SizedKernel.of(self._modules[name])
        if shared_bytes:
            raise Unsupported(f"a launch of '{name}' that adds shared memory", stage=STAGE)
        kernel(Launch(grid, block), arguments, self._watchers)
