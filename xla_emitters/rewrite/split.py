"""Splits a block before an op, in time that does not depend on the number of blocks around it.

    ^a: ..., op, rest        ->        ^a: ...        ^b: op, rest

xDSL's own `Block.split_before` counts the blocks of the region up to the block, and once more to insert the new one: the square of the
number of splits for a function where each op gets a block.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Block, Operation


def split_before(op: Operation, arg_types: Sequence[Attribute] = ()) -> Block:
    """A new block behind the op's block, with `op` and what is behind it; the op's block is left without a terminator.

    arg_types  the types of the new block's arguments
    """
    before = op.parent
    assert before is not None
    assert before.parent is not None
    behind = Block(arg_types=arg_types)
    before.parent.insert_block_after(behind, before)
    moved: Operation | None = op
    while moved is not None:
        following = moved.next_op
        moved.detach()
        behind.add_op(moved)
        moved = following
    return behind
