"""Copies a block's rows as one run of elements into or out of shared memory, in full-width accesses for any row length.

    rows of 33 f32, 8 a block: elements 264 g to 264 (g + 1)       rows of 1001 f32, one a block: elements 1001 g to 1001 (g + 1)

      |row 0     |row 1     |  ...  |row 7     |                     . . . . .|row g                        |. . . .
      |4 |4 |4 |4 |4 | ...                 |4 |4 |                   ^start   |1 1 1 4 |4 |4 | ...      |4 |1 1
                                                                     (a multiple of 8)

A thread that reads its row from memory reads single elements if vectors do not divide the row, and a warp's request may begin anywhere in a
sector of 32 bytes: a fifth of the fetched bytes is fetched twice. Consecutive rows are one run, which has two ends only.
Positions are counted from `start`, the multiple of a sector at or before the first row, in memory and in shared memory alike, so that
both accesses are aligned. Elements before the first whole sector, and behind the last whole access, are copied one by one.

All threads of a block copy; the caller inserts barriers before and behind. The run's source need not be contiguous itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from xla_emitters.buffers.index_code import IndexCode, Number
from xla_emitters.dialects.lmhlo import tensor_of
from xla_emitters.dtypes import dtype_of
from xla_emitters.loops.kernel_code import KernelCode
from xla_emitters.loops.row_rounds import RowPlace, RowThreads
from xla_emitters.loops.strided_loop import strided_loop

SECTOR_BYTES = 32
ACCESS_BYTES = 16
LEAST_BYTES = 2
"""Narrower elements count as this wide: an access has at most eight elements."""

Copy = Callable[[KernelCode, Sequence[SSAValue], SSAValue], None]
"""(code, (row, column), position in shared memory): copies one element."""


@dataclass(frozen=True)
class Run:
    """The elements of an array in the rows of a block.

    unit     elements of a sector
    width    elements of an access
    start    number of the element from which positions are counted
    padding  position of the first element
    end      position behind the last one
    """

    unit: int
    width: int
    start: SSAValue
    padding: Number
    end: SSAValue

    @staticmethod
    def of(code: KernelCode, buffer: SSAValue, threads: RowThreads, place: RowPlace, shape: Sequence[Number]) -> Run:
        """The run of an array with the matrix's size."""
        index, (rows, columns) = code.index, shape
        unit, width = unit_of(buffer), width_of(buffer)
        # Nonnegative by construction: else the kernel would need 64-bit indices (`IndexBounds`).
        left = index.value(index.subtract(rows, place.first))
        here = code.insert(arith.MinUIOp(left, index.value(threads.rows_per_block))).result
        first = index.value(index.multiply(place.first, columns))
        count = index.multiply(here, columns)
        if threads.rows_per_block % unit == 0:
            return Run(unit, width, first, 0, index.value(count))
        start = index.value(index.multiple(first, unit))
        padding = index.remainder(first, unit)
        return Run(unit, width, start, padding, index.value(index.add(padding, count)))

    def position(self, code: KernelCode, element: Number) -> SSAValue:
        """The position in shared memory of an element of the rows, counted from the first one."""
        return code.index.value(code.index.add(element, self.padding))

    def copy(
        self, code: KernelCode, threads: RowThreads, thread: SSAValue, shape: Sequence[Number], copy: Copy
    ) -> None:
        """Copies each element once."""
        index, head = code.index, 0 if self.padding == 0 else self.unit

        def one(inner: KernelCode, position: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            number = inner.index.value(inner.index.add(self.start, position))
            copy(inner, inner.index.delinearize(number, shape), position)
            return ()

        def where(conditions: Sequence[SSAValue], position: SSAValue) -> None:
            code.branch(index.every(conditions), (), lambda inner: one(inner, position, ()))

        if head:
            is_inside = [index.compare("uge", thread, self.padding), index.compare("ult", thread, self.end)]
            where([*is_inside, index.compare("ult", thread, head)], thread)
        whole = index.multiple(self.end, self.width)
        first = index.value(index.add(index.multiply(thread, self.width), head))
        strided_loop(code, first, whole, self.width * threads.per_block, (), one, self.width)
        if self.width > 1:
            behind = index.value(index.add(index.maximum(whole, head), thread))
            where([index.compare("ult", behind, self.end)], behind)


def unit_of(buffer: SSAValue) -> int:
    """Number of elements in a sector."""
    return SECTOR_BYTES // _bytes(buffer)


def room_of(host: IndexCode, buffer: SSAValue, threads: RowThreads, columns: Number) -> Number:
    """Elements that a run needs in shared memory, with those before it in its first sector, rounded up to whole sectors."""
    unit, elements = unit_of(buffer), host.multiply(columns, threads.rows_per_block)
    if threads.rows_per_block % unit == 0:
        return elements
    return host.multiply(host.divide(host.add(elements, 2 * unit - 1), unit), unit)


def width_of(buffer: SSAValue) -> int:
    """Number of elements in an access."""
    return max(1, ACCESS_BYTES // _bytes(buffer))


def _bytes(buffer: SSAValue) -> int:
    return max(LEAST_BYTES, dtype_of(tensor_of(buffer.type).element_type).bytes)
