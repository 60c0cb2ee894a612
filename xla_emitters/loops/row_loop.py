"""The loop of a fusion whose roots reduce rows: `row_reduction_schedule1` and `2` differ only in how many threads share a row.

    lmhlo.reduce %x, %zero -> %y {dimensions = 1}         scf.parallel (%block, %thread) = (0, 0) to (%rows, 256) step (1, 1) {
                                                            %p = scf.for %j = %thread to %cols step 256 iter_args(%a = -0.0) {
                                                              %e = memref.load %x[%block, %j]
                                                   ->         yield %a + %e
                                                            }
                                                            %total = ... the rounds of `row_rounds`
                                                            if %thread == 0: memref.store %zero + %total, %y[%block]
                                                          } {disc.schedule = "row1"}

All reductions have operands of one shape and share the loop. Other roots have as many elements; each thread writes those at its places.
No row: no block. No column: the loop runs zero times, and the result is the initial value. Roots that reduce columns get loops of their
own, after this one, or atomic updates from it (`column_reduction_schedule`).
Source: seed document, "LhloLegalizeToLoop"; docs/reference/4 3.4 to 3.6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from xla_emitters.buffers.index_code import Number
from xla_emitters.loops.column_reduction_schedule import emit_columns, emit_starts, is_atomic, update_from_rows
from xla_emitters.loops.combine import Reducer, parts_of, reduced_dim, starts_of, store_results, with_elements
from xla_emitters.loops.kernel_code import KernelCode
from xla_emitters.loops.matrix_roots import write_root
from xla_emitters.loops.row_rounds import THREADS, RowPlace, RowThreads, combine_row
from xla_emitters.loops.schedule import FusionLoops

Visit = Callable[[KernelCode, RowPlace], None]
"""Writes what a thread does for its row."""


def emit_row_loop(fusion: FusionLoops, name: str, threads: RowThreads) -> None:
    """The loops of a fusion with at least one root that reduces rows."""
    reducers = [Reducer.of(root) for root in fusion.roots if reduced_dim(root) == 1]
    columns = [Reducer.of(root) for root in fusion.roots if reduced_dim(root) == 0]
    others = [root for root in fusion.roots if reduced_dim(root) is None]
    rows, cols = shape = fusion.numbers.sizes(reducers[0].arrays[0])
    atomic = [reducer for reducer in columns if is_atomic(fusion, reducer)]
    updates = [update_from_rows(reducer) for reducer in atomic]
    emit_starts(fusion, atomic)

    def visit(code: KernelCode, place: RowPlace) -> None:
        row = place.row

        def step(inner: KernelCode, column: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            for root in others:
                write_root(fusion, inner, root, (row, column), shape)
            for update in updates:
                update(inner, row, column)
            return with_elements(inner, reducers, carried, [row, column])

        found = code.loop(place.lane, cols, threads.per_row, starts_of(code, reducers), step)
        totals = combine_row(code, threads, place.thread, reducers, parts_of(reducers, found), everyone=False)

        def write(inner: KernelCode) -> Sequence[SSAValue]:
            store_results(inner, reducers, totals, row)
            return ()

        code.branch(place.is_first(code), (), write)

    for_each_row(fusion, name, threads, rows, visit)
    if ordered := [reducer for reducer in columns if reducer not in atomic]:
        emit_columns(fusion, ordered, ())


def for_each_row(fusion: FusionLoops, name: str, threads: RowThreads, rows: Number, visit: Visit) -> None:
    """A parallel loop whose threads visit all rows; all threads of a row do so together."""

    def body(code: KernelCode, variables: Sequence[SSAValue]) -> None:
        block, thread = variables
        block.name_hint, thread.name_hint = "block", "thread"
        place = threads.place(code, block, thread)
        if threads.rows_per_block == 1:
            return visit(code, place)

        def inside(inner: KernelCode) -> Sequence[SSAValue]:
            visit(inner, place)
            return ()

        # The same for all threads of a warp, so its shuffles find all lanes.
        is_row = code.insert(arith.CmpiOp(place.row, code.index.value(rows), "ult")).result
        code.branch(is_row, (), inside)
        return None

    host, per_block = fusion.numbers.code, threads.rows_per_block
    blocks = host.divide(host.add(rows, per_block - 1), per_block)
    fusion.parallel(name, [blocks, THREADS], [1, 1], body)
