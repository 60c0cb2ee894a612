"""Kernels of a program as machine code of this CPU: a launch calls a function for ranges of its blocks.

    kernels = HostKernels(parameters, address_of)
    kernels.launch("main_kLoop_add_0", (1200, 1, 1), (1, 1, 1), 0, [x, y, 1200])        k(x, y, 1200, 0, 1200, scratch)

A function takes pointers and numbers, then the first block and the end of the range, then memory for one block. For large arrays, threads
share the blocks; a function that runs does not hold Python's lock.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from time import perf_counter_ns
from typing import Any, NamedTuple, cast

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.program.arrays import Extents
from xla_emitters.runtime.ral.kernels import Accesses, ConvolutionWork, Kernels, ProductWork

SHARED_WORK = 1 << 21
"""Total bytes of a launch's arrays from which on threads share its blocks: below, waking a thread takes longer."""
PIECES = 4
"""Ranges of a launch's blocks per thread."""
ALIGNMENT = 16
"""Alignment in bytes of each array that a kernel takes."""
SCRATCH_ALIGNMENT = 64
"""Alignment in bytes of a block's memory."""
C_TYPES: Mapping[str, type[Any]] = {
    "ptr": ctypes.c_void_p,
    "i1": ctypes.c_uint8,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}
"""LLVM's name of a parameter's type -> how it is passed."""


STEP = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
"""A step: a function of its words."""


class ProductCode(NamedTuple):
    """The step of products of an element type.

    address   of its code
    lanes     columns that it computes at once
    wide      columns that it computes at once of a single row
    """

    address: int
    lanes: int
    wide: int

    def across(self, work: ProductWork) -> int:
        """Columns of an item of this work."""
        return self.wide if work.arrays[0].shape[-2] == 1 else self.lanes


class ConvolutionCode(NamedTuple):
    """The step of convolutions of an element type.

    address_of     returns the address of its code for convolutions by rows (True), or all others; compiled at the first request
    lanes          output positions that it computes at once
    scratch_bytes  features computed at once -> bytes of memory per thread
    """

    address_of: Callable[[bool], int]
    lanes: int
    scratch_bytes: Callable[[int], int]


class HostKernels(Kernels):
    """Kernels by name.

    parameters  per kernel, LLVM's names of the parameter types, without the last three
    accesses    per kernel, the indices of the arguments that it reads, and of those that it writes
    address_of  returns the address of a kernel's code
    product_of  returns the step that multiplies matrices of an element type; None: no such step
    convolution_of  returns the step that computes convolutions; None: no such step
    step_of     returns the address of the step of a kernel, which takes its arguments from memory; None: no steps
    """

    def __init__(
        self,
        parameters: Mapping[str, Sequence[str]],
        accesses: Mapping[str, Accesses],
        address_of: Callable[[str], int],
        product_of: Callable[[str], ProductCode] | None = None,
        convolution_of: Callable[[str], ConvolutionCode] | None = None,
        step_of: Callable[[str], int] | None = None,
    ) -> None:
        self.parameters = parameters
        self.accesses = accesses
        self.address_of = address_of
        self.step_of = step_of
        self._product_of = product_of
        self._products = dict[str, ProductCode]()
        self._convolution_of = convolution_of
        self._convolutions = dict[str, ConvolutionCode]()
        self._ready = dict[str, Callable[..., None]]()

    def launch(self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any]) -> int:
        function = self._ready.get(name) or self._make(name)
        kept, values, total = list[Array](), list[Any](), 0
        for value in arguments:
            if isinstance(value, np.ndarray):
                array = cast(Array, value)
                address = array.__array_interface__["data"][0]
                if address % ALIGNMENT:
                    array = _aligned(array)
                    kept.append(array)
                    address = array.ctypes.data
                values.append(address)
                total += array.nbytes
            else:
                values.append(value)
        count = grid[0]
        parts = parts_of(count, total)
        start = perf_counter_ns()
        share(lambda first, last: _run(function, values, first, last, shared_bytes), count, parts)
        return perf_counter_ns() - start

    def product(self, element: str) -> ProductCode | None:
        """The step that multiplies matrices of an element type, compiled at the first request."""
        if element not in self._products and self._product_of is not None:
            self._products[element] = self._product_of(element)
        return self._products.get(element)

    def multiply(self, element: str, work: ProductWork) -> bool:
        if (code := self.product(element)) is None:
            return False
        step, addresses = STEP(code.address), [array.ctypes.data for array in work.arrays]
        across = code.across(work)

        def multiply(first: int, last: int) -> None:
            given = (*addresses, *work.words(first, last, across))
            words = (ctypes.c_int64 * len(given))(*given)
            step(ctypes.addressof(words))

        share(multiply, work.items(across), _thread_count() if work.is_shared else 1)
        return True

    def convolution(self, element: str) -> ConvolutionCode | None:
        """The step that computes convolutions of an element type, compiled at the first request."""
        if element not in self._convolutions and self._convolution_of is not None:
            self._convolutions[element] = self._convolution_of(element)
        return self._convolutions.get(element)

    def convolve(self, element: str, work: ConvolutionWork) -> bool:
        if (code := self.convolution(element)) is None:
            return False
        step, addresses = STEP(code.address_of(work.rows > 0)), [array.ctypes.data for array in work.arrays]
        memory_bytes = code.scratch_bytes(work.features)

        def convolve(first: int, last: int) -> None:
            memory = np.empty(memory_bytes + SCRATCH_ALIGNMENT, np.uint8)
            begin = memory.ctypes.data
            given = (*addresses, begin + -begin % SCRATCH_ALIGNMENT, *work.words(first, last))
            words = (ctypes.c_int64 * len(given))(*given)
            step(ctypes.addressof(words))

        share(convolve, work.items(code.lanes), _thread_count() if work.is_shared else 1)
        return True

    def _make(self, name: str) -> Callable[..., None]:
        types = [C_TYPES[ir_type] for ir_type in self.parameters[name]]
        added = (ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
        made = self._ready[name] = ctypes.CFUNCTYPE(None, *types, *added)(self.address_of(name))
        return made


def parts_of(blocks: int, total_bytes: int) -> int:
    """How many threads share a launch's blocks, given the total bytes of its arrays."""
    return min(blocks, _thread_count(), total_bytes // SHARED_WORK + 1)


def share(work: Callable[[int, int], None], count: int, parts: int) -> None:
    """Calls `work` on ranges that cover 0 to `count`, in this thread and others."""
    if min(parts, count) < 2:
        return work(0, count)
    pieces = min(count, parts * PIECES)
    ends = [count * piece // pieces for piece in range(pieces + 1)]
    left = list(pairwise(ends))

    def some() -> None:
        # Each running thread takes the next range, so that none waits for a thread that has not started.
        while left:
            try:
                first, last = left.pop()
            except IndexError:
                return
            work(first, last)

    others = [_pool().submit(some) for _ in range(parts - 1)]
    some()
    for other in others:
        if not other.cancel():
            other.result()
    return None


def _run(function: Callable[..., None], values: Sequence[Any], first: int, last: int, scratch_bytes: int) -> None:
    if not scratch_bytes:
        return function(*values, first, last, None)
    memory = np.empty(scratch_bytes + SCRATCH_ALIGNMENT, np.uint8)
    address = memory.ctypes.data
    return function(*values, first, last, address + -address % SCRATCH_ALIGNMENT)


def _aligned(array: Array) -> Array:
    """A copy with the alignment that kernels expect. Only arguments, which kernels do not write, are copied: other buffers are aligned."""
    return array.copy()


def _thread_count() -> int:
    return os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, _thread_count() - 1), "xla-emitters")
