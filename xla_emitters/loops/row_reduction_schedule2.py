"""RowReductionSchedule2: a warp per row, and one round of shuffles. For short rows, and for many of them.

    %blocks = (%rows + 7) / 8                                                     on the host
    scf.parallel (%block, %thread) = (0, 0) to (%blocks, 256) step (1, 1) {
      %row = %block * 8 + %thread / 32
      if %row < %rows { ... }
    } {disc.schedule = "row2"}

See `row_loop` for the loop and `row_rounds` for the round.
Source: seed document, "LhloLegalizeToLoop".
"""

from __future__ import annotations

from xla_emitters.loops.row_loop import emit_row_loop
from xla_emitters.loops.row_rounds import WARP, RowThreads
from xla_emitters.loops.schedule import FusionLoops

NAME = "row2"
WARP_A_ROW = RowThreads(WARP)


def emit_row_reduction_schedule2(fusion: FusionLoops) -> None:
    """The loops of a fusion whose roots reduce rows, one warp per row."""
    emit_row_loop(fusion, NAME, WARP_A_ROW)
