"""Moves invariant ops out of loops; see `rewrite/licm.py`."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.licm import loop_invariant_code_motion
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True)
class LoopInvariantCodeMotionPass(KernelPass):
    """Moves pure, loop-invariant ops in front of their `scf.for` or `scf.while`, if they cannot fail or are sure to run."""

    name = "xla-loop-invariant-code-motion"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        loop_invariant_code_motion(op)
