"""The schedules of row reductions: how many threads share a row. See `row_loop` for the loop and `row_rounds` for the rounds of shuffles.

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

Source: seed document, "LhloLegalizeToLoop"; row3: "DhloSpecializeFusionWithSpeculation", one of three plans by the size of the dimension to
reduce; row: the GPU's schedules, reduced to one thread.
"""

from __future__ import annotations

from xla_emitters.dynamic.loops.row_loop import emit_row_loop
from xla_emitters.dynamic.loops.row_rounds import ALONE, THREADS, WARP, RowThreads
from xla_emitters.dynamic.loops.schedule import FusionLoops

BLOCK_A_ROW, WARP_A_ROW, LANES_A_ROW = RowThreads(THREADS), RowThreads(WARP), RowThreads(8)


def emit_row_reduction_alone(fusion: FusionLoops) -> None:
    """The loops of a fusion whose roots reduce rows, a thread a row."""
    emit_row_loop(fusion, "row", ALONE)


def emit_row_reduction_schedule1(fusion: FusionLoops) -> None:
    """The loops of a fusion whose roots reduce rows, one block per row."""
    emit_row_loop(fusion, "row1", BLOCK_A_ROW)


def emit_row_reduction_schedule2(fusion: FusionLoops) -> None:
    """The loops of a fusion whose roots reduce rows, one warp per row."""
    emit_row_loop(fusion, "row2", WARP_A_ROW)


def emit_row_reduction_schedule3(fusion: FusionLoops) -> None:
    """The loops of a fusion whose roots reduce rows, eight lanes per row."""
    emit_row_loop(fusion, "row3", LANES_A_ROW)
