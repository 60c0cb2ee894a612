"""How often a loop runs, and copies of its body, for passes that write loops out; bodies in the place of ops.

scf.for %v = %c0 to %c2 step %c1 iter_args(%a = %x) {      %a0 = f(%x, %c0)
  %n = f(%a, %v)                                     ->    %a1 = f(%a0, %c1)
  scf.yield %n
}
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.build import constant_index
from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import scf
from xla_emitters.dialects.ranges import constant_of


def unroll_fully(loop: scf.ForOp, trips: int) -> None:
    """Replaces `loop` by `trips` copies of its body, each with a constant as the induction variable."""
    builder = located_builder(InsertPoint.before(loop), loop)
    carried: list[SSAValue] = list(loop.iter_args)
    for iteration in range(trips):
        carried = copy_body(loop, builder, constant_index(builder, iteration), carried)
    for result in loop.results:
        result.name_hint = None  # the loop's name does not fit the values of its copies
    Rewriter.replace_op(loop, [], carried)


def copy_body(loop: scf.ForOp, builder: Builder, variable: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
    """Inserts one copy of the body with its arguments replaced; returns the values it yields. Ops keep their locations."""
    ops, yielded = copied(loop.body.block, (variable, *carried))
    for op in ops:
        builder.insert(op)
    return yielded


def copied(block: Block, arguments: Sequence[SSAValue]) -> tuple[list[Operation], list[SSAValue]]:
    """Copies of the block's ops on `arguments`, without the terminator, and what its operands are there."""
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    *ops, terminator = block.ops
    return [op.clone(values) for op in ops], [values.get(value, value) for value in terminator.operands]


def inline_body(block: Block, place: InsertPoint, arguments: Sequence[SSAValue]) -> list[SSAValue]:
    """Moves the block's ops, on `arguments`, and erases the terminator; returns what its operands are there."""
    terminator = block.last_op
    assert terminator is not None
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    passed_on = [values.get(value, value) for value in terminator.operands]
    Rewriter.erase_op(terminator)
    Rewriter.inline_block(block, place, arguments)
    return passed_on


def trip_count_of_plain_loop(loop: scf.ForOp) -> int | str:
    """Trip count of a `0..C step 1` loop over `index`, else a string: why it has none."""
    lower, upper, step = (constant_of(bound) for bound in (loop.lb, loop.ub, loop.step))
    if not isinstance(loop.lb.type, IndexType):
        return f"its induction variable is {loop.lb.type}, not index"
    if lower != 0:
        return "it does not start at 0"
    if step != 1:
        return "step is not 1"
    if upper is None:
        return "its upper bound is not a constant"
    return max(upper, 0)
