"""The threads that reduce a row, and the rounds in which they combine their partial results.

    RowThreads(256)       a block per row        thread t takes columns t, t + 256, ...
    RowThreads(128, 512)  four warps per row     4 rows per block
    RowThreads(32)        a warp per row         8 rows per block; lane l takes columns l, l + 32, ...
    RowThreads(8)         eight lanes per row    32 rows per block
    ALONE                 one thread per block   for a CPU: no exchange

    round 1    %a = gpu.shuffle down %p, 16, 32;  %b = combine(%p, %a);  8, 4, 2, 1         lane 0 has the warp's result
    shared     lane 0: memref.store %b, %shared[%warp];  gpu.barrier;  memref.load %shared[%lane mod 8]
    round 2    4, 2, 1                                                                      lane 0 has the row's

A warp per row needs round 1 alone, eight lanes its last three steps. Round 2 combines the warps of a row. Rounds always combine in one
order, so equal inputs give equal bits.
All lanes of a warp take part: a lane without elements, or beyond the last row, has the partial result of no elements. With `everyone`
every warp does round 2 and lane 0 sends the result to all of its lanes: it is uniform in the block, because all warps compute it from the
same words of shared memory. Source: seed document, "LhloLegalizeToLoop"; docs/reference/4 3.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StringAttr, i32
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.hlo.convert import constant
from xla_emitters.dialects.locations import locate
from xla_emitters.dialects.mlir import arith, gpu, memref, scf
from xla_emitters.dialects.mlir.gpu import AddressSpaceAttr
from xla_emitters.dialects.shuffles import shuffled
from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.combine import Reducer, parts_of
from xla_emitters.dynamic.loops.kernel_code import Body, KernelCode

WARP = 32
THREADS = 256
"""Threads of a block; 8 warps."""
SHARED = AddressSpaceAttr(StringAttr("workgroup"))
"""The memory space of shared memory."""
Partials = list[list[SSAValue]]
"""For each reduction, the values of a partial result."""


@dataclass(frozen=True)
class RowThreads:
    """`per_row` threads of a block of `per_block` reduce a row: some warps, one, or a part of one; both are powers of two."""

    per_row: int
    per_block: int = THREADS

    @property
    def rows_per_block(self) -> int:
        return self.per_block // self.per_row

    @property
    def warps_per_row(self) -> int:
        """Warps that share a row; 0 if a row has a part of a warp."""
        return self.per_row // WARP

    @property
    def is_apart(self) -> bool:
        """Whether threads without a row may skip the work: whole warps, between which nothing is exchanged."""
        return self.per_row == WARP

    def place(self, code: KernelCode, group: SSAValue, thread: SSAValue, rows: Number) -> RowPlace:
        """The position of a thread when its block processes a group of `rows_per_block` rows of the matrix."""
        if self.rows_per_block == 1:
            return RowPlace(group, 0, thread, thread, group)
        slot, lane = code.index.delinearize(thread, (self.rows_per_block, self.per_row))
        first = code.index.multiply(group, self.rows_per_block)
        row = code.index.value(code.index.add(first, slot))
        if isinstance(rows, int) and rows % self.rows_per_block == 0:
            return RowPlace(row, slot, lane, thread, first)
        is_row = code.index.compare("ult", row, rows)
        if self.is_apart:
            return RowPlace(row, slot, lane, thread, first, is_row)
        # Threads beyond the last row take part in the exchange, but read and write no element.
        last = code.index.value(code.index.subtract(rows, 1))
        return RowPlace(code.insert(arith.MinUIOp(row, last)).result, slot, lane, thread, first, is_row)


ALONE = RowThreads(1, 1)
"""A block is one thread and takes one row: for a CPU."""


@dataclass(frozen=True)
class RowPlace:
    """The position of a thread.

    row      number of its row in the matrix
    slot     number of its row among the block's
    lane     its number among the threads of its row
    thread   its number in the block
    first    the block's first row
    is_row   i1: whether the row exists; None if it certainly does
    """

    row: SSAValue
    slot: Number
    lane: SSAValue
    thread: SSAValue
    first: Number
    is_row: SSAValue | None = None

    def is_first(self, code: KernelCode) -> SSAValue:
        """i1: whether it is the first thread of an existing row."""
        is_first = code.index.compare("eq", self.lane, 0)
        return is_first if self.is_row is None else code.insert(arith.AndIOp(is_first, self.is_row)).result

    def where_row(self, code: KernelCode, starts: Sequence[SSAValue], body: Body) -> Sequence[SSAValue]:
        """The values of `body`; `starts` in a thread without a row."""
        if self.is_row is None:
            return body(code)
        return code.branch(self.is_row, [value.type for value in starts], body, lambda _: starts)


def shared_array(code: KernelCode, size: Number, element: Attribute) -> SSAValue:
    """An array in shared memory, one per block, allocated at the start of the parallel loop.

    size   known, or a host value: the launch then passes the number of bytes
    """
    known, sizes = (size, []) if isinstance(size, int) else (DYNAMIC_INDEX, [size])
    made = memref.AllocOp(sizes, [], MemRefType(element, [known], memory_space=SHARED))
    locate(made, code.location)
    Rewriter.insert_op(made, InsertPoint.at_start(_body_of_launch(code)))
    return made.memref


class SharedArrays:
    """An array in shared memory for each value of partial results, which have these types."""

    def __init__(self, code: KernelCode, size: Number, types: Iterable[Attribute]) -> None:
        self.arrays = [shared_array(code, size, each) for each in types]

    def load(self, code: KernelCode, place: SSAValue) -> list[SSAValue]:
        return [code.load(array, [place]) for array in self.arrays]

    def store(self, code: KernelCode, values: Sequence[SSAValue], place: SSAValue) -> None:
        for value, array in zip(values, self.arrays, strict=True):
            code.store(value, array, [place])


def private_array(code: KernelCode, size: int, element: Attribute) -> SSAValue:
    """A private array of each thread, allocated at the start of the parallel loop. With constant indices, LLVM keeps it in registers."""
    made = memref.AllocaOp.get(element, shape=[size])
    locate(made, code.location)
    Rewriter.insert_op(made, InsertPoint.at_start(_body_of_launch(code)))
    return made.memref


def _body_of_launch(code: KernelCode) -> Block:
    block = code.builder.insertion_point.block
    while not isinstance(holder := block.parent_op(), scf.ParallelOp):
        assert holder is not None
        assert holder.parent is not None
        block = holder.parent
    return block


def combine_row(
    code: KernelCode,
    threads: RowThreads,
    thread: SSAValue,
    reducers: Sequence[Reducer],
    partials: Sequence[Sequence[SSAValue]],
    *,
    everyone: bool,
) -> Partials:
    """The row's result of each reduction: in its first thread, or in all of its threads.

    thread     its number in the block
    """
    if threads.per_row == 1:
        return [list(own) for own in partials]
    lanes = min(WARP, threads.per_row)
    totals = [over_lanes(code, reducer, own, lanes) for reducer, own in zip(reducers, partials, strict=True)]
    if threads.warps_per_row > 1:
        totals = _over_warps(code, threads, thread, reducers, totals)
    if everyone:
        first: Number = 0
        if lanes < WARP:
            # Only among the lanes of the same row.
            lane = code.index.remainder(thread, WARP)
            first = code.index.multiply(code.index.quotient(lane, lanes), lanes)
        source = (
            code.insert(arith.IndexCastOp(code.index.value(first), i32)).result if first else constant(code, 0, i32)
        )
        totals = [_from_lane(code, own, source) for own in totals]
    return totals


def over_lanes(code: KernelCode, reducer: Reducer, values: Sequence[SSAValue], lanes: int) -> list[SSAValue]:
    """Combines the partial results of `lanes` lanes, a power of two; lane 0 gets the total."""
    found, width = list(values), constant(code, WARP, i32)
    while lanes > 1:
        lanes //= 2
        offset = constant(code, lanes, i32)
        with code.located(reducer.op.location):
            others = [shuffled(code, "down", value, offset, width) for value in found]
        found = reducer.combined(code, found, others)
    return found


def _over_warps(
    code: KernelCode,
    threads: RowThreads,
    thread: SSAValue,
    reducers: Sequence[Reducer],
    partials: Sequence[Sequence[SSAValue]],
) -> Partials:
    """Combines the results of a row's warps, which their first lanes hold; lane 0 of each of these warps then has the row's."""
    warps, all_warps = threads.warps_per_row, threads.per_block // WARP
    warp, lane = code.index.delinearize(thread, (all_warps, WARP))
    own = [value for values in partials for value in values]
    arrays = SharedArrays(code, all_warps, [value.type for value in own])
    with code.where(code.index.compare("eq", lane, 0)) as inner:
        arrays.store(inner, own, warp)
    code.insert(gpu.BarrierOp())
    number = code.index.remainder(lane, warps)
    if warps < all_warps:
        number = code.index.add(code.index.multiply(code.index.quotient(warp, warps), warps), number)
    loaded = parts_of(reducers, arrays.load(code, code.index.value(number)))
    return [over_lanes(code, reducer, values, warps) for reducer, values in zip(reducers, loaded, strict=True)]


def _from_lane(code: KernelCode, values: Sequence[SSAValue], lane: SSAValue) -> list[SSAValue]:
    width = constant(code, WARP, i32)
    return [shuffled(code, "idx", value, lane, width) for value in values]
