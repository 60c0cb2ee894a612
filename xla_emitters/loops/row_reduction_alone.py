"""The schedule of row reductions on a CPU: one thread a row, and nothing to exchange.

    scf.parallel (%row, %thread) = (0, 0) to (%rows, 1) step (1, 1) {
      %total = scf.for %j = %thread to %cols step 1 iter_args(%a = -0.0) { ... }
      memref.store %zero + %total, %y[%row]
    } {disc.schedule = "row"}

See `row_loop` for the loop. Partial sums beside each other are LLVM's work (`disc-reassociate-reductions`).
Source: seed document, "LhloLegalizeToLoop" (the schedules of a GPU, of which this is what is left for one thread).
"""

from __future__ import annotations

from xla_emitters.loops.row_loop import emit_row_loop
from xla_emitters.loops.row_rounds import ALONE
from xla_emitters.loops.schedule import FusionLoops

NAME = "row"


def emit_row_reduction_alone(fusion: FusionLoops) -> None:
    """The loops of a fusion whose roots reduce rows, a thread a row."""
    emit_row_loop(fusion, NAME, ALONE)
