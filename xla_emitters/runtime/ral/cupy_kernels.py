"""The kernels of a program with unknown sizes on the current CUDA device.

    kernels = CupyKernels(cupy, forms, load, exceeds)
    kernels.launch("main_kLoop_add_0", (5, 1, 1), (256, 1, 1), 0, [x, y, 1200])

All kernels of one index width are one PTX module, which is loaded at the first launch of one of them; the sizes of a launch determine
its width. Numbers are passed in the types of the kernel's parameters; an index has the width of its module.
Source: CuPy's documentation, RawModule; CUDA C++ Programming Guide, "Dynamic shared memory".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from xla_emitters.program.arrays import Extents
from xla_emitters.runtime.cupy_platform import load_module
from xla_emitters.runtime.ral.kernels import Kernels

Exceeds: TypeAlias = Callable[[str, Extents, Extents, Sequence[Any]], bool]
"""(kernel, blocks, threads, arguments) -> whether its indices may need 64 bits."""

UNASKED_SHARED_BYTES = 48 << 10
"""Dynamic shared memory in bytes that a launch gets without setting a function attribute."""
NUMBERS: Mapping[str, Any] = {
    "i1": np.bool_,
    **{f"i{bits}": getattr(np, f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": getattr(np, f"float{bits}") for bits in (16, 32, 64)},
}
"""Type of a parameter -> the NumPy type in which CuPy passes it."""
INDEX = "index"


@dataclass(frozen=True)
class KernelForm:
    """What a launch needs to know of a kernel.

    parameters  types: "index", a key of NUMBERS; any other is a buffer
    """

    parameters: tuple[str, ...]

    def values(self, arguments: Sequence[Any], *, is_wide: bool) -> tuple[Any, ...]:
        """Arguments as CuPy passes them."""
        index = np.int64 if is_wide else np.int32
        return tuple(
            index(value) if kind == INDEX else NUMBERS[kind](value) if kind in NUMBERS else value
            for kind, value in zip(self.parameters, arguments, strict=True)
        )


class CupyKernels(Kernels):
    """The kernels on the current device; see the file's head.

    forms         kernel name -> its form
    ptx           (whether indices have 64 bits) -> the text of the module
    architecture  what it was compiled for
    exceeds       decides whether a launch needs 64-bit indices
    """

    def __init__(
        self,
        cupy: Any,
        forms: Mapping[str, KernelForm],
        ptx: Callable[[bool], str],
        architecture: str,
        exceeds: Exceeds,
    ) -> None:
        self._cupy = cupy
        self._forms = forms
        self._ptx = ptx
        self._architecture = architecture
        self._exceeds = exceeds
        self.launches = 0

    def launch(self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any]) -> None:
        """raises ToolError if the driver rejects the PTX"""
        is_wide = self._exceeds(name, grid, block, arguments)
        device = self._cupy.cuda.Device().id
        function = load_module(self._ptx(is_wide), tuple(self._forms), self._architecture, device)[name]
        if shared_bytes > UNASKED_SHARED_BYTES:
            function.max_dynamic_shared_size_bytes = shared_bytes
        function(grid, block, self._forms[name].values(arguments, is_wide=is_wide), shared_mem=shared_bytes)
        self.launches += 1
