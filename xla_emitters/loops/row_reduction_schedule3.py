"""RowReductionSchedule3: eight lanes per row, and the last three steps of a round of shuffles. For rows of few columns.

    %blocks = (%rows + 31) / 32                                                   on the host
    scf.parallel (%block, %thread) = (0, 0) to (%blocks, 256) step (1, 1) {
      %row = %block * 32 + %thread / 8                                            lanes beyond the last row exchange, but write nothing
    } {disc.schedule = "row3"}

See `row_loop` for the loop and `row_rounds` for the round.
Source: seed document, "DhloSpecializeFusionWithSpeculation": one of three plans by the size of the dimension to reduce.
"""

from __future__ import annotations

from xla_emitters.loops.row_loop import emit_row_loop
from xla_emitters.loops.row_rounds import RowThreads
from xla_emitters.loops.schedule import FusionLoops

NAME = "row3"
LANES_A_ROW = RowThreads(8)


def emit_row_reduction_schedule3(fusion: FusionLoops) -> None:
    """The loops of a fusion whose roots reduce rows, eight lanes per row."""
    emit_row_loop(fusion, NAME, LANES_A_ROW)
