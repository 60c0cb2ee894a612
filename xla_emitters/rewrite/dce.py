"""Dead code: ops that nobody uses and that have no effect go, users before definitions."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from xla_emitters.rewrite.effects import is_dead


def dce(root: Operation) -> bool:
    """Erases dead ops inside `root`; whether there were any. One walk from the last op to the first."""
    changed = False
    for region in root.regions:
        for block in region.blocks:
            op = block.last_op
            while op is not None:
                before = op.prev_op
                changed |= bool(op.regions) and dce(op)
                if is_dead(op):
                    Rewriter.erase_op(op)
                    changed = True
                op = before
    return changed
