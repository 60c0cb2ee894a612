"""The schedule of row reductions on a CPU: one thread per row, without exchange.

    scf.parallel (%row, %thread) = (0, 0) to (%rows, 1) step (1, 1) {
      %total = scf.for %j = %thread to %cols step 1 iter_args(%a = -0.0) { ... }
      memref.store %zero + %total, %y[%row]
    } {disc.schedule = "row"}

See `row_loop` for the loop. LLVM splits the sum into adjacent partial sums (`disc-reassociate-reductions`).
Source: seed document, "LhloLegalizeToLoop" (the GPU's schedules, reduced to one thread).
"""

from __future__ import annotations

from xla_emitters.loops.row_loop import emit_row_loop
from xla_emitters.loops.row_rounds import ALONE
from xla_emitters.loops.schedule import FusionLoops

NAME = "row"


def emit_row_reduction_alone(fusion: FusionLoops) -> None:
    """The loops of a fusion whose roots reduce rows, a thread a row."""
    emit_row_loop(fusion, NAME, ALONE)
