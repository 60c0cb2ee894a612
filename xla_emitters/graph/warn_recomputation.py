"""Warns if an ENTRY that is one kernel would compute elements many times over. Changes nothing. On HLO.

    ENTRY softmax { ... s = f32[512] reduce(e, z)  ... ROOT d = f32[512,512] divide(e, b) }

    warning: one kernel takes 268,959,744 steps where its instructions alone take 1,048,576 (256 times over), most of them again for %e
      help: `xla-emitters optimize FILE` lets XLA choose the fusions; a program in StableHLO is divided into kernels here

HLO before optimization is correct, but slow as one kernel: a reduction under a broadcast computes a whole row for each element.
A step is an element that is computed or combined (`graph/recomputation.py`). The result is the same, so this is not an error. Fusions
in the HLO are XLA's own choice, and are not checked.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.graph.control_computations import is_one_kernel
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.refusals import supported_view
from xla_emitters.graph.view import is_scheduled
from xla_emitters.rewrite.kernel_pass import KernelPass

_TIMES = 4
_MORE = 1_000_000
"""Least factor, and least number of additional steps, for a warning."""
_REMEDY = (
    "`xla-emitters optimize FILE` lets XLA choose the fusions; a program in StableHLO is divided into kernels here"
)


class WarnRecomputationPass(KernelPass):
    name = "xla-warn-recomputation"

    def apply_to(self, op: ModuleOp) -> None:
        entry = entry_of(op)
        if not is_one_kernel(entry) or (view := supported_view(entry)) is None or is_scheduled(view):
            return
        from xla_emitters.graph.recomputation import (
            recomputation_of,  # imported here: of a module, fusions are kernels
        )

        found = recomputation_of(view)
        if found is None or found.times < _TIMES or found.steps - found.once < _MORE:
            return
        times = f"{found.steps:,} steps where its instructions alone take {found.once:,} ({found.times:,} times over)"
        worst = found.worst.instruction_name.data
        self.warn(found.worst, f"one kernel takes {times}, most of them again for %{worst}", _REMEDY)
