"""Operands of calls of the runtime: the context and the stream of the function around an op, and all sizes of a buffer."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.disc_ral import ContextType, StreamOp
from xla_emitters.dialects.mlir import arith, func
from xla_emitters.rewrite.kernel_pass import refusal


def context_of(op: Operation) -> SSAValue:
    """The context argument of the function. raises Unsupported if it has none."""
    holder: Operation | None = op
    while holder is not None and not isinstance(holder, func.FuncOp):
        holder = holder.parent_op()
    if holder is not None and holder.args and isinstance(holder.args[0].type, ContextType):
        return holder.args[0]
    raise refusal(
        "context", op, f"'{op.name}' is in a function without a context", "run disc-inject-execution-context first"
    )


def stream_of(op: Operation) -> SSAValue:
    """The stream of that context, read once at the beginning of the function."""
    context = context_of(op)
    block = context.owner
    assert not isinstance(block, Operation)
    # Not among the uses of the context: all calls of the runtime use it.
    if (found := next((first for first in block.ops if isinstance(first, StreamOp)), None)) is not None:
        return found.stream
    made = StreamOp(context)
    made.stream.name_hint = "stream"
    Rewriter.insert_op(made, InsertPoint.at_start(block))
    return made.stream


def sizes_of(op: Operation, ir_type: Attribute, unknown: Sequence[SSAValue]) -> list[SSAValue]:
    """All sizes of a buffer as values before `op`.

    unknown  values of the sizes that the type leaves unknown
    """
    assert isinstance(ir_type, MemRefType)
    left, found = iter(unknown), list[SSAValue]()
    for size in ir_type.get_shape():
        if size < 0:
            found.append(next(left))
            continue
        made = arith.ConstantOp(IntegerAttr(size, IndexType()))
        made.location = op.location
        made.result.name_hint = f"c{size}"
        Rewriter.insert_op(made, InsertPoint.before(op))
        found.append(made.result)
    return found
