"""Values and ops in the place of an op, under the names that its results had."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter


def copy_names(old: Iterable[SSAValue], new: Iterable[SSAValue]) -> None:
    """Names the new values as the old ones, which are as many."""
    for before, after in zip(old, new, strict=True):
        after.name_hint = before.name_hint


def take_over(op: Operation, new: Operation) -> Operation:
    """`new` with the attributes, location and names of `op`, whose results it has."""
    new.attributes.update(op.attributes)
    new.location = op.location
    copy_names(op.results, new.results)
    return new


def replace_alike(op: Operation, new: Operation) -> None:
    """Replaces `op` by `new`, with attributes, location and names."""
    Rewriter.replace_op(op, take_over(op, new))


def replace_by(op: Operation, values: Sequence[SSAValue]) -> None:
    """Replaces the op's results by `values`, gives unnamed values the results' names, and erases the op."""
    for result, value in zip(op.results, values, strict=True):
        if value.name_hint is None:
            value.name_hint = result.name_hint
        result.replace_all_uses_with(value)
    op.detach()
    op.erase()


def block_like(block: Block) -> Block:
    """An empty block with the arguments of `block`."""
    made = Block(arg_types=block.arg_types)
    copy_names(block.args, made.args)
    for new, old in zip(made.args, block.args, strict=True):
        new.location = old.location
    return made
