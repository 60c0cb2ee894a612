"""Which thread of a program's kernels computes something else than before a pass.

    found = first_difference(run, before, after)        run(kernels) runs the program with these kernels
    found.kernel, found.block, found.thread             None where every launch gives what it gave before

Each launch runs twice on the same memory: as the kernel is before the pass, then as it is behind it. The first launch after which an
argument is not what it was ends the run, so its inputs are right. Behind a pass that may change bits an argument must differ by more than
such a pass allows: a right kernel may differ in bits, and the wrong one come later. The launch runs again to see which thread writes the
first element that differs, and what that thread computes before and behind the pass. A difference in what only the host does is none of a
thread. Nor is a launch that the kernel from before the pass cannot take: it raises DataError or ExecutionError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dtypes import Array
from xla_emitters.errors import DataError, ExecutionError
from xla_emitters.explore.bisect.blame import Computed
from xla_emitters.explore.check.watched_kernels import differing_much, largest_magnitude
from xla_emitters.program import Extents, LaunchDimensions
from xla_emitters.runtime.arrays import differing
from xla_emitters.runtime.numpy_platform import Kernels
from xla_emitters.runtime.simt.execute import PACKED_BITS
from xla_emitters.runtime.simt.follow import LaneValues, LastWriter
from xla_emitters.runtime.simt.memory import Watcher
from xla_emitters.runtime.simt.sanitizer import Sanitizer
from xla_emitters.runtime.simt.sized_kernels import SizedKernel

ModuleOf = Callable[[str], ModuleOp]
"""Name of a kernel -> its module."""
_Both = tuple[ModuleOp, ModuleOp]
"""Before and behind the pass."""


@dataclass(frozen=True)
class LaunchDifference:
    """The first launch that differs.

    before, after    the kernel
    argument         that does; None where the launch fails
    index            the first element of it that does
    lane             (block, thread) of its writer, linear; None where no thread writes it
    computed_before  what that thread computes, and behind the pass `computed_after`
    """

    kernel: str
    launch: LaunchDimensions
    before: ModuleOp
    after: ModuleOp
    argument: int | None = None
    index: tuple[int, ...] = ()
    lane: tuple[int, int] | None = None
    computed_before: Computed = ()
    computed_after: Computed = ()


def first_difference(
    run: Callable[[Kernels], Any],
    before: ModuleOf,
    after: ModuleOf,
    *,
    sanitize: bool,
    may_change_bits: bool = False,
    failure: Exception | None = None,
) -> LaunchDifference | None:
    """Runs the program with both versions of every kernel.

    sanitize  a launch with a race, or a read of what nothing wrote, differs too
    failure   what the program raises behind the pass: then the host or a kernel raises it here too
    raises    any other exception: it is a fault of this search
    """
    expected = (DataError, ExecutionError) if failure is None else (DataError, ExecutionError, type(failure))
    kernels = _BothKernels(before, after, sanitize, may_change_bits, expected)
    try:
        run(kernels)
    except _Stop:
        return kernels.found
    except expected:
        return None
    return None


class _Stop(Exception):
    """Ends the run: the rest of it is of no interest."""


@dataclass
class _BothKernels(Kernels):
    """Launches a kernel before and behind the pass.

    expected  what a kernel raises that fails
    ready     both modules of a kernel, and the code of both
    """

    before: ModuleOf
    after: ModuleOf
    sanitize: bool
    may_change_bits: bool
    expected: tuple[type[Exception], ...]
    found: LaunchDifference | None = None
    ready: dict[str, tuple[_Both, list[SizedKernel]]] = field(
        default_factory=dict[str, "tuple[_Both, list[SizedKernel]]"]
    )

    def launch(self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any]) -> None:
        if name not in self.ready:
            both = self.before(name), self.after(name)
            self.ready[name] = both, list(map(SizedKernel.of, both))
        (both, (before, after)), launch = self.ready[name], LaunchDimensions(grid, block)
        arrays = {number: cast(Array, value) for number, value in enumerate(arguments) if isinstance(value, np.ndarray)}
        given = _copies(arrays)
        before(launch, arguments, shared_bytes)
        wanted = _copies(arrays)
        _put(arrays, given)
        try:
            after(launch, arguments, shared_bytes, [Sanitizer()] if self.sanitize else [])
        except self.expected as error:
            self.found = LaunchDifference(name, launch, *both)
            raise _Stop from error
        scale = max(map(largest_magnitude, (*given.values(), *wanted.values())), default=0.0)
        for number, array in arrays.items():
            was = wanted[number]
            different = np.argwhere(
                differing_much(array, was, scale) if self.may_change_bits else differing(array, was)
            )
            if len(different):
                place = tuple(map(int, different[0]))
                again = _Launch(launch, shared_bytes, arguments, arrays, given)
                self.found = again.difference(name, both, number, place)
                raise _Stop


@dataclass(frozen=True)
class _Launch:
    """A launch that can be run again.

    given  what its arrays held before it
    """

    launch: LaunchDimensions
    shared_bytes: int
    arguments: Sequence[Any]
    arrays: dict[int, Array]
    given: dict[int, Array]

    def difference(self, kernel: str, both: _Both, argument: int, index: tuple[int, ...]) -> LaunchDifference:
        lane = next(filter(None, (self._writer(module, argument, index) for module in reversed(both))), None)
        if lane is None:
            return LaunchDifference(kernel, self.launch, *both, argument, index)
        computed = [self._computed(module, lane) for module in both]
        return LaunchDifference(kernel, self.launch, *both, argument, index, lane, *computed)

    def _writer(self, module: ModuleOp, argument: int, index: tuple[int, ...]) -> tuple[int, int] | None:
        """(block, thread) of the thread that writes an element last."""
        array, kernel = self.arrays[argument], SizedKernel.of(module)
        same = frozenset(n for n, other in self.arrays.items() if other.ctypes.data == array.ctypes.data)
        is_packed = isinstance(kernel.types[argument], llvm.LLVMPointerType)
        bits = PACKED_BITS.get(array.dtype) if is_packed else None
        each = bits / 8 if bits else array.dtype.itemsize
        writer = LastWriter(same, int(np.ravel_multi_index(index, array.shape)) if index else 0, each)
        self._run(kernel, [writer])
        return writer.found

    def _computed(self, module: ModuleOp, lane: tuple[int, int]) -> Computed:
        values = LaneValues(*lane)
        self._run(SizedKernel.of(module, [values]), [values], [lane[0]])
        return values.computed

    def _run(self, kernel: SizedKernel, watchers: Sequence[Watcher], blocks: Sequence[int] | None = None) -> None:
        _put(self.arrays, self.given)
        kernel(self.launch, self.arguments, self.shared_bytes, watchers, blocks)


def _copies(arrays: dict[int, Array]) -> dict[int, Array]:
    return {number: array.copy() for number, array in arrays.items()}


def _put(arrays: dict[int, Array], values: dict[int, Array]) -> None:
    for number, array in arrays.items():
        if array.flags.writeable:
            array[...] = values[number]
