"""Kernels of a program on the CPU executor: IR of any stage from `kernels` on.

    kernels = SimtKernels(lambda name, is_wide: module)
    kernels.launch("main_kLoop_add_0", (5, 1, 1), (256, 1, 1), 0, [x, y, 1200])

A kernel is compiled to Python before its first launch. If modules have an index width, the launch's sizes decide which one runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.program import Extents, LaunchDimensions
from xla_emitters.runtime.numpy_platform import Kernels
from xla_emitters.runtime.simt.memory import Watcher
from xla_emitters.runtime.simt.sized_kernels import SizedKernel


class SimtKernels(Kernels):
    """Kernels by name.

    module_of   (name, whether indices have 64 bits) -> the kernel's module
    needs_wide  (name, launch, arguments) -> whether 32 bits are too few; None: the modules have no index width
    watchers    receive each access to memory
    """

    def __init__(
        self,
        module_of: Callable[[str, bool], ModuleOp],
        needs_wide: Callable[[str, LaunchDimensions, Sequence[Any]], bool] | None = None,
        watchers: Sequence[Watcher] = (),
    ) -> None:
        self._module_of = module_of
        self._needs_wide = needs_wide
        self._watchers = watchers
        self._ready = dict[tuple[str, bool], SizedKernel]()

    def watched_by(self, *watchers: Watcher) -> SimtKernels:
        """The same kernels, with more watchers of their memory accesses."""
        return SimtKernels(self._module_of, self._needs_wide, (*self._watchers, *watchers))

    def launch(self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any]) -> None:
        launch = LaunchDimensions(grid, block)
        key = name, self._needs_wide is not None and self._needs_wide(name, launch, arguments)
        if (kernel := self._ready.get(key)) is None:
            kernel = self._ready[key] = SizedKernel.of(self._module_of(*key))
        kernel(launch, arguments, shared_bytes, self._watchers)
