"""The loop of a fusion whose roots reduce rows: the schedules differ only in the number of threads per row.

    lmhlo.reduce %x, %zero -> %y {dimensions = 1}         scf.parallel (%block, %thread) = (0, 0) to (%rows, 256) step (1, 1) {
                                                            %p = scf.for %j = %thread to %cols step 256 iter_args(%a = -0.0) {
                                                              %e = memref.load %x[%block, %j]
                                                   ->         yield %a + %e
                                                            }
                                                            %total = ... the rounds of `row_rounds`
                                                            if %thread == 0: memref.store %zero + %total, %y[%block]
                                                          } {disc.schedule = "row1"}

Reductions of matrices of one shape share the loop. Other roots have equally many elements; each thread writes those at its positions. On a
CPU, those with other rows get a loop of their own, which has their coordinates without divisions.
No rows: no block. No columns: the loop runs zero times, and the result is the initial value. Roots that reduce columns get loops of their
own, after this one, or atomic updates from it (`column_reduction_schedule`).

How many threads share a row:

    row1   RowReductionSchedule1: a block per row, two rounds with shared memory between them. For long rows.
           scf.parallel (%block, %thread) = (0, 0) to (%rows, 256) step (1, 1) { ... } {disc.schedule = "row1"}
    row2   RowReductionSchedule2: a warp per row, one round. For short rows, and for many of them.
           %blocks = (%rows + 7) / 8                                       on the host
           scf.parallel (%block, %thread) = (0, 0) to (%blocks, 256) step (1, 1) {
             %row = %block * 8 + %thread / 32
             if %row < %rows { ... }
           } {disc.schedule = "row2"}
    row3   RowReductionSchedule3: eight lanes per row, the last three steps of a round. For rows of few columns.
           %row = %block * 32 + %thread / 8                                lanes beyond the last row exchange, but write nothing
    row    on a CPU: one thread per row, without exchange.
           scf.parallel (%row, %thread) = (0, 0) to (%rows, 1) step (1, 1) {
             %total = scf.for %j = %thread to %cols step 1 iter_args(%a = -0.0) { ... }
             memref.store %zero + %total, %y[%row]
           } {disc.schedule = "row"}         LLVM splits the sum into adjacent partial sums (`disc-reassociate-reductions`)

A thread's loop over every n-th element, or every n-th group of adjacent ones, unrolled by several steps.

    for %j = %first to %end step n { body(%j) }
->
    for %j = %first to max(%end - 3n, 0) step 4n { for %k = 0 to 4 { body(%j + %k * n) } }       the inner loop is unrolled later
    for %j = (where that ended) to %end step n { body(%j) }

With a `width` of 4, body(%j) above is `for %v = 0 to 4 { body(%j + %v) }`, with accesses of four elements. Loads of eight
elements (four if a thread takes single ones) are independent of each other. The order in which a thread combines its elements stays
the same. If sizes are known and every thread has equally many elements, there is one loop with a known number of steps.

For a CPU: the loop over a row whose reduction LLVM cannot vectorize, such as the place of the largest element, with 64 partial results.

    %v[0 .. 64], %i[0 .. 64] = the partial result of no elements
    scf.for %first = 0 to %cols step 64 {
      scf.for %lane = 0 to min(64, %cols - %first) {           each lane has its own partial result, and LLVM vectorizes
        %v[%lane], %i[%lane] = body(%v[%lane], %i[%lane], %x[%row, %first + %lane], ...)
      }
    }
    the lanes are combined from the first to the last

A sum, a maximum or another single op is a loop with a carried value: LLVM splits that itself.
Source: seed document, "LhloLegalizeToLoop"; docs/reference/4 3.4 to 3.6; row3: "DhloSpecializeFusionWithSpeculation", one of three plans by
the size of the dimension to reduce; row: the GPU's schedules, reduced to one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from xdsl.ir import SSAValue

from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dialects.mlir import gpu
from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.column_reduction_schedule import (
    Update,
    emit_columns,
    emit_starts,
    is_atomic,
    update_from_rows,
)
from xla_emitters.dynamic.loops.combine import (
    Reducer,
    by_shape,
    parts_of,
    reduces_columns,
    reduces_rows,
    starts_of,
    store_results,
    with_elements,
    with_partials,
)
from xla_emitters.dynamic.loops.kernel_code import KernelCode, LoopBody
from xla_emitters.dynamic.loops.loop_schedule import emit_loop
from xla_emitters.dynamic.loops.roots import write_root
from xla_emitters.dynamic.loops.row_rounds import ALONE, THREADS, WARP, RowPlace, RowThreads, SharedArrays, combine_row
from xla_emitters.dynamic.loops.schedule import THREADS_HINT, FusionLoops, Schedule
from xla_emitters.rewrite.kernel_pass import refusal

LANES = 64


def needs_lanes(reducers: Sequence[Reducer]) -> bool:
    """Whether one of the reductions is not a single op on a single array."""
    return any(len(reducer.elements) > 1 or None in reducer.opcodes for reducer in reducers)


def loop_over_lanes(code: KernelCode, cols: Number, reducers: Sequence[Reducer], step: LoopBody) -> Sequence[SSAValue]:
    """The carried values after all elements of a row."""
    starts = starts_of(code, reducers)
    arrays = SharedArrays(code, LANES, [value.type for value in starts])
    index = code.index
    used = index.minimum(cols, LANES)

    def combine(inner: KernelCode, lane: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return with_partials(inner, reducers, carried, arrays.load(inner, lane))

    with code.each(0, used) as (inner, lane):
        arrays.store(inner, starts, lane)
    with code.each(0, cols, LANES) as (outer, first):
        with outer.each(0, outer.index.minimum(outer.index.subtract(cols, first), LANES)) as (inner, lane):
            column = inner.index.value(inner.index.add(first, lane))
            arrays.store(inner, step(inner, column, arrays.load(inner, lane)), lane)
    return code.loop(0, used, 1, starts, combine)


TOGETHER = 4
"""Steps in an unrolled iteration."""
MOST_TOGETHER = 8
"""Elements in an unrolled iteration."""


def strided_loop(
    code: KernelCode,
    first: SSAValue,
    end: Number,
    step: int,
    inits: Sequence[SSAValue],
    body: LoopBody,
    width: int = 1,
    *,
    waits: bool = True,
) -> Sequence[SSAValue]:
    """The final carried values; `first` and `end` are not negative. If a block is one thread, elements are taken in order.

    first  less than `step`, unless `end` is unknown
    width  adjacent elements of a step; divides `first`, `end` and `step`
    waits  whether a step waits for memory: several steps are then taken at a time
    """
    index, together = code.index, min(TOGETHER, MOST_TOGETHER // width) if waits else 1
    stride, reach = together * step, (together - 1) * step

    def one(inner: KernelCode, start: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        if width == 1:
            return body(inner, start, carried)

        def element(innermost: KernelCode, number: SSAValue, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return body(innermost, innermost.index.value(innermost.index.add(start, number)), values)

        return inner.neighbours(width, carried, element)

    def numbered(
        inner: KernelCode, start: SSAValue, number: SSAValue, values: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        at = inner.index.add(start, inner.index.multiply(number, step))
        return one(inner, inner.index.value(at), values)

    if step > 1 and isinstance(end, int) and end and end % step == 0:
        if end == step:
            return one(code, first, inits)
        return code.loop(0, end // step, 1, inits, lambda inner, number, values: numbered(inner, first, number, values))
    if step == 1 or together == 1 or (isinstance(end, int) and end <= reach):
        return code.loop(first, end, step, inits, one)

    def group(inner: KernelCode, start: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return inner.loop(0, together, 1, carried, lambda c, number, values: numbered(c, start, number, values))

    last = index.maximum(index.subtract(end, reach), 0)
    found = code.loop(first, last, stride, inits, group)
    left = index.maximum(index.subtract(last, first), 0)
    groups = index.quotient(index.add(left, stride - 1), stride)
    return code.loop(index.add(first, index.multiply(groups, stride)), end, step, found, one)


ROWS_OF_BEGIN = 32
"""Rows per block, if there are enough, in a loop with work before its first row."""
FEW_THREADS = 1 << 16
"""Least number of threads, if there are rows for them: with 16 bytes in flight each, they saturate a GPU's memory."""
FEW_BLOCKS = 128
"""Least number of blocks: one for most multiprocessors."""
HeldBody: TypeAlias = Callable[[KernelCode, SSAValue, Sequence[SSAValue], SSAValue], Sequence[SSAValue]]
"""(code inside, column, carried values, number of the element among the thread's own) -> the next carried values."""
Visit = Callable[[KernelCode, RowPlace], None]
"""Emits the work of a thread for its row."""


def emit_row_loop(fusion: FusionLoops, name: str, threads: RowThreads) -> None:
    """Emits the loops of a fusion with at least one root that reduces rows. A vector is one column: one block alone would be too slow."""
    is_row = [reduces_rows(root) and not reduces_columns(root) for root in fusion.roots]
    rows = [
        Reducer.of(root, by_row=True, is_cpu=fusion.is_cpu)
        for root, found in zip(fusion.roots, is_row, strict=True)
        if found
    ]
    columns = [Reducer.of(root, by_row=False, is_cpu=fusion.is_cpu) for root in fusion.roots if reduces_columns(root)]
    reducing = {reducer.op for reducer in (*rows, *columns)}
    others = [root for root in fusion.roots if root not in reducing]
    if not rows:
        return emit_columns(fusion, columns, others)
    threads = _hinted(fusion, threads)
    first, *rest = by_shape(fusion.numbers, rows)
    shape = first[0].shape(fusion.numbers)
    if fusion.is_cpu:
        apart = [root for root in others if fusion.numbers.sizes(root.outputs[0])[-1:] != (shape[1],)]
        for root in apart:
            emit_loop(fusion, [root])
        others = [root for root in others if root not in apart]
    atomic = [found for found in columns if is_atomic(fusion, found) and found.shape(fusion.numbers) == shape]
    emit_starts(fusion, atomic)
    _emit_rows(fusion, name, threads, first, others, [update_from_rows(reducer) for reducer in atomic])
    for group in rest:
        _emit_rows(fusion, name, threads, group, (), ())
    if ordered := [reducer for reducer in columns if reducer not in atomic]:
        emit_columns(fusion, ordered, ())
    return None


def _hinted(fusion: FusionLoops, threads: RowThreads) -> RowThreads:
    """The threads with as many in a block as the fusion asks for: more for the row, if it has all of them, else more rows."""
    if (hint := fusion.threads_hint) is None:
        return threads
    if hint < WARP or hint & (hint - 1):
        why = f"a block of {hint} threads for rows; a power of two from {WARP} on can exchange results"
        raise refusal("loops", fusion.op, why, f"another {THREADS_HINT}")
    return RowThreads(hint if threads.per_row == threads.per_block else min(threads.per_row, hint), hint)


def _emit_rows(
    fusion: FusionLoops,
    name: str,
    threads: RowThreads,
    reducers: Sequence[Reducer],
    others: Sequence[BufferOp],
    updates: Sequence[Update],
) -> None:
    """The loop of reductions of matrices of one shape."""
    rows, cols = shape = reducers[0].shape(fusion.numbers)
    width = fusion.vector

    def visit(code: KernelCode, place: RowPlace) -> None:
        def step(inner: KernelCode, column: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            for root in others:
                write_root(fusion, inner, root, (place.row, column), shape)
            for update in updates:
                update(inner, place.row, column)
            return with_elements(inner, reducers, carried, (place.row, column))

        if fusion.is_cpu and needs_lanes(reducers):
            found = loop_over_lanes(code, cols, reducers, step)
        else:
            found = loop_over_row(code, place, threads, cols, width, starts_of(code, reducers), step)
        totals = combine_row(code, threads, place.thread, reducers, parts_of(reducers, found), everyone=False)
        with code.where(place.is_first(code)) as inner:
            store_results(inner, reducers, totals, place.row)

    for_each_row(fusion, name, threads, rows, visit)


def loop_over_row(
    code: KernelCode,
    place: RowPlace,
    threads: RowThreads,
    cols: Number,
    width: int,
    starts: Sequence[SSAValue],
    body: LoopBody,
    *,
    waits: bool = True,
) -> Sequence[SSAValue]:
    """The carried values after all of a thread's elements of its row, `width` adjacent ones at a time; `starts` if it has none.

    waits  whether an element waits for memory
    """
    first = code.index.value(code.index.multiply(place.lane, width))
    end = code.index.multiple(cols, width)

    def loop(inner: KernelCode) -> Sequence[SSAValue]:
        return strided_loop(inner, first, end, width * threads.per_row, starts, body, width, waits=waits)

    return place.where_row(code, starts, loop)


def loop_over_held_row(
    code: KernelCode,
    place: RowPlace,
    threads: RowThreads,
    cols: Number,
    width: int,
    steps: int,
    starts: Sequence[SSAValue],
    body: HeldBody,
) -> Sequence[SSAValue]:
    """As `loop_over_row`, unrolled: `body` gets the number of each element among the thread's own as a constant."""

    def unrolled(inner: KernelCode) -> Sequence[SSAValue]:
        return held_steps(inner, place.lane, threads.per_row, cols, width, steps, starts, body)

    return place.where_row(code, starts, unrolled)


def held_steps(
    code: KernelCode,
    lane: SSAValue,
    per_row: int,
    cols: Number,
    width: int,
    steps: int,
    starts: Sequence[SSAValue],
    body: HeldBody,
) -> Sequence[SSAValue]:
    """The carried values after a thread's elements of a row of `cols`, at most `steps` times `width`; threads without them skip a step."""
    first, stride, carried = code.index.multiply(lane, width), per_row * width, starts
    for number in range(steps):
        start = code.index.value(code.index.add(first, number * stride))

        def step(
            inner: KernelCode, start: SSAValue = start, carried: Sequence[SSAValue] = carried, number: int = number
        ) -> Sequence[SSAValue]:
            if width == 1:
                return body(inner, start, carried, inner.index.value(number))

            def element(innermost: KernelCode, at: SSAValue, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
                held = innermost.index.value(innermost.index.add(at, number * width))
                return body(innermost, innermost.index.value(innermost.index.add(start, at)), values, held)

            return inner.neighbours(width, carried, element)

        if isinstance(cols, int) and (number + 1) * stride <= cols:
            carried = step(code)
        else:
            is_column = code.index.compare("ult", start, cols)
            before = carried
            carried = code.branch(is_column, [value.type for value in before], step, lambda _, before=before: before)
    return carried


def for_each_row(
    fusion: FusionLoops,
    name: str,
    threads: RowThreads,
    rows: Number,
    visit: Visit,
    begin: Callable[[KernelCode, SSAValue], None] | None = None,
) -> None:
    """A parallel loop in which threads visit all rows, and all threads of a row visit it together.

    begin  (code, thread): what a block computes once, before its first row; it then takes several rows
    """
    host, per_block = fusion.numbers.code, threads.rows_per_block
    groups = host.divide(host.add(rows, per_block - 1), per_block)
    blocks = groups
    if begin is not None:
        at_most = -(-ROWS_OF_BEGIN // per_block)
        few = max(FEW_THREADS // threads.per_block, FEW_BLOCKS)
        blocks = host.maximum(host.minimum(groups, few), host.divide(host.add(groups, at_most - 1), at_most))

    def at(code: KernelCode, group: SSAValue, thread: SSAValue) -> None:
        place = threads.place(code, group, thread, rows)
        if place.is_row is None or not threads.is_apart:
            return visit(code, place)
        # Uniform within a warp, so its shuffles find all lanes.
        with code.where(place.is_row) as inner:
            visit(inner, replace(place, is_row=None))
        return None

    def body(code: KernelCode, variables: Sequence[SSAValue]) -> None:
        block, thread = variables
        block.name_hint, thread.name_hint = "block", "thread"
        if begin is None:
            return at(code, block, thread)
        begin(code, thread)
        with code.each(block, groups, blocks) as (inner, group):
            at(inner, group, thread)
            if threads.warps_per_row > 1:
                # All threads must have read the values exchanged for these rows before any writes those of the next.
                inner.insert(gpu.BarrierOp())
        return None

    fusion.parallel(name, [blocks, threads.per_block], [1, 1], body)


BLOCK_A_ROW, WARP_A_ROW, LANES_A_ROW = RowThreads(THREADS), RowThreads(WARP), RowThreads(8)
ROW_SCHEDULES: Mapping[str, Schedule] = {
    name: partial(emit_row_loop, name=name, threads=threads)
    for name, threads in (("row", ALONE), ("row1", BLOCK_A_ROW), ("row2", WARP_A_ROW), ("row3", LANES_A_ROW))
}
"""Name -> function that writes the loops of a fusion whose roots reduce rows; see the file's head."""
