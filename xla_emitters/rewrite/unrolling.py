"""Copies of a loop's body, for passes that write loops out.

scf.for %v = %c0 to %c2 step %c1 iter_args(%a = %x) {      %a0 = f(%x, %c0)
  %n = f(%a, %v)                                     ->    %a1 = f(%a0, %c1)
  scf.yield %n
}
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.build import constant_index
from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import scf


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
    terminator = loop.body.block.last_op
    assert isinstance(terminator, scf.YieldOp)
    values: dict[SSAValue, SSAValue] = dict(zip(loop.body.block.args, (variable, *carried), strict=True))
    for op in loop.body.block.ops:
        if op is not terminator:
            builder.insert(op.clone(values))
    return [values.get(value, value) for value in terminator.arguments]
