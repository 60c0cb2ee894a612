"""Kernels of a hot fusion on a CUDA device: functions of their own PTX module, loaded before a call can launch them.

    memory = CupyMemory(cupy)                                        in the thread that calls the program: its device is the current one
    kernels = CupyHotKernels(memory, ptx, {"main_kLoop_add_0": "main_kLoop_add_0"}, "sm_90")       in any thread
    kernels.launch("main_kLoop_add_0", (5, 1, 1), (256, 1, 1), 0, [x, y])

CuPy's current device is per thread, so the background thread selects the program's device to load a module, and a call on another
device uses the kernels for all sizes.
Source: CuPy's documentation, RawModule, Device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xla_emitters.library.arguments import pattern_type
from xla_emitters.program.arrays import Extents
from xla_emitters.runtime.cupy_platform import load_module
from xla_emitters.runtime.ral.cupy_kernels import UNASKED_SHARED_BYTES
from xla_emitters.runtime.ral.kernels import Kernels


class CupyMemory:
    """Arrays of the device that is current when it is made."""

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        self.device: int = cupy.cuda.Device().id

    def is_current(self) -> bool:
        return self.cupy.cuda.Device().id == self.device

    def address(self, array: Any) -> int:
        return array.data.ptr

    def element_type(self, name: str) -> np.dtype[Any]:
        return pattern_type(name)

    def empty(self, shape: tuple[int, ...], element: np.dtype[Any]) -> Any:
        return self.cupy.empty(shape, element)


class CupyHotKernels(Kernels):
    """Loaded kernels of one hot fusion; see the file's head.

    ptx           the text of the module
    entries       kernel name in launches -> name in the module
    architecture  what it was compiled for
    raises        ToolError if the driver rejects the PTX
    """

    def __init__(self, memory: CupyMemory, ptx: str, entries: Mapping[str, str], architecture: str) -> None:
        with memory.cupy.cuda.Device(memory.device):
            # Not through the cache of modules: a module that is dropped must be unloaded.
            loaded = load_module.__wrapped__(ptx, tuple(entries.values()), architecture, memory.device)
        self._functions = {name: loaded[entry] for name, entry in entries.items()}

    def launch(self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any]) -> None:
        function = self._functions[name]
        if shared_bytes > UNASKED_SHARED_BYTES:
            function.max_dynamic_shared_size_bytes = shared_bytes
        function(grid, block, tuple(arguments), shared_mem=shared_bytes)
