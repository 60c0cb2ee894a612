"""RowReductionSchedule1: a block per row, and two rounds of shuffles with shared memory between them. For long rows.

    scf.parallel (%block, %thread) = (0, 0) to (%rows, 256) step (1, 1) { ... } {disc.schedule = "row1"}

See `row_loop` for the loop and `row_rounds` for the rounds.
Source: seed document, "LhloLegalizeToLoop".
"""

from __future__ import annotations

from xla_emitters.loops.row_loop import emit_row_loop
from xla_emitters.loops.row_rounds import THREADS, RowThreads
from xla_emitters.loops.schedule import FusionLoops

NAME = "row1"
BLOCK_A_ROW = RowThreads(THREADS)


def emit_row_reduction_schedule1(fusion: FusionLoops) -> None:
    """The loops of a fusion whose roots reduce rows, one block per row."""
    emit_row_loop(fusion, NAME, BLOCK_A_ROW)
