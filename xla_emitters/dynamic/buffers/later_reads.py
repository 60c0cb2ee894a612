"""Whether an op may read a buffer later than it does now, in place of another op that read it: the buffer must still exist then, unchanged.

This holds for arguments that the program does not own, and for buffers that are only written before; these are then freed behind the op.
A list of sizes on the stack is not freed; it may have other names, under which nothing writes.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.lmhlo import DONATED, BufferOp, FusionOp, IncRefOp
from xla_emitters.dialects.mlir import func, memref
from xla_emitters.dynamic.buffers.buffer_uses import frees, is_after, is_before, precedes, uses_of, writes


def placed(op: Operation) -> Operation:
    """The op, or the fusion around it."""
    holder = op.parent_op()
    return holder if isinstance(holder, FusionOp) else op


def why_not_later(source: SSAValue, reader: BufferOp, later: Sequence[Operation]) -> str | None:
    """Why the ops of `later` cannot read what `reader` reads now; None: they can."""
    if isinstance(source, BlockArgument):
        function = source.block.parent_op()
        if not isinstance(function, func.FuncOp) or function.body.blocks[0] is not source.block:
            return "it reads what a loop carries"
        is_own = function.arg_attrs is not None and DONATED in function.arg_attrs.data[source.index].data
        return "it reads an argument that the program owns" if is_own else None
    if isinstance(source.owner, memref.AllocaOp):
        return None if _is_written_before(source, reader) else "what it reads is written later"
    if not isinstance(source.owner, memref.AllocOp):
        return "it reads another name of a buffer"
    block = placed(reader).parent
    if source.owner.parent is not block or any(op.parent is not block for op in later):
        return "its buffer, itself and its readers are not in one block"
    for use in uses_of(source):
        if not frees(use) and not isinstance(use.operation, BufferOp):
            return "what it reads has other names, or is given away"
        if frees(use) and use.operation.parent is not block:
            return "what it reads is freed in a branch"
        in_fusion = use.operation.parent is reader.parent and precedes(use.operation, reader)
        if writes(use) and not (in_fusion or is_after(placed(reader), use.operation)):
            return "what it reads is written later"
    return None


def _is_written_before(stack: SSAValue, reader: BufferOp) -> bool:
    """Whether memory of the stack is written only before the reader, and not under another name."""
    for use in uses_of(stack):
        if isinstance(use.operation, IncRefOp):
            if any(writes(other) for other in uses_of(use.operation.results[0])):
                return False
        elif writes(use) and not is_before(use.operation, reader):
            return False
    return True


def free_behind(buffer: SSAValue, op: Operation) -> None:
    """Frees a buffer behind an op that uses it, if it is freed before now."""
    for use in uses_of(buffer):
        if frees(use) and is_after(op, use.operation):
            use.operation.detach()
            Rewriter.insert_op(use.operation, InsertPoint.after(op))
