"""Dead code elimination: erases unused ops without effects, users before definitions, and blocks that nothing branches to."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.ir.post_order import PostOrderIterator
from xdsl.rewriter import Rewriter

from xla_emitters.rewrite.effects import is_dead


def dce(root: Operation) -> bool:
    """Erases dead ops inside `root` in one walk from the last op to the first; returns whether there were any."""
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


def erase_unreachable_blocks(root: Operation) -> bool:
    """Erases the blocks inside `root` that cannot be reached from their region's entry; returns whether there were any."""
    changed = False
    for op in root.walk():
        for region in op.regions:
            if region.first_block is None or region.first_block is region.last_block:
                continue
            reached = set(PostOrderIterator(region.first_block))
            for block in [block for block in region.blocks if block not in reached]:
                region.erase_block(block, safe_erase=False)
                changed = True
    return changed
