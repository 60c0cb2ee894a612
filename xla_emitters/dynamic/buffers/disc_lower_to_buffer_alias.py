"""Makes the result of a copy or a reshape a second name of its operand's buffer, with a reference of its own, instead of a second buffer.

    %o = memref.alloc(%n) : memref<?x4xf32, "gpu">
    lmhlo.dynamic_reshape %a, %s -> %o                             ->    %o = lmhlo.inc_ref %a(%n) : memref<?xf32, "gpu"> -> ...
    use(%o); memref.dealloc %o                                           use(%o); memref.dealloc %o

    lmhlo.copy %a -> %o; memref.dealloc %a; return %o              ->    return %a

A buffer is written once and read afterwards, so two names of it have the same contents. The op becomes a name if it is in no fusion and
within one memory; if all other uses of %o are behind the op, and there is no other write to %o, nor to %a behind it. A buffer that is given
away (returned, yielded, carried by a loop) must be a buffer of its own, since a loop may update it in place. So a copy that is given away
is left out only if the deallocation is the only later use of %a, in the same block, and %a is the only name of its memory: then %a itself
is given; a reshape, only if %a is freed in the same block, and no other name of it is given. Arguments (except donated ones) and
constants are therefore never returned, and no two results share a buffer.
Source: seed document, "DhloLowerToBufferAlias"; docs/reference/4 1.3.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.lmhlo import BufferOp, space_of, tensor_of
from xla_emitters.dialects.mlir import memref
from xla_emitters.dynamic.buffers.buffer_uses import (
    BlockOrder,
    are_exclusive,
    frees,
    is_after,
    leaves_the_block,
    uses_of,
    writes,
)
from xla_emitters.rewrite.kernel_pass import KernelPass

COPIES = frozenset(("lmhlo.copy", "lmhlo.reshape", "lmhlo.dynamic_reshape"))
"""Ops whose result has the elements of operand 0, in row-major order."""


class DiscLowerToBufferAliasPass(KernelPass):
    name = "disc-lower-to-buffer-alias"

    def apply_to(self, op: ModuleOp) -> None:
        order = BlockOrder()
        for buffer_op in list(op.walk()):
            if isinstance(buffer_op, BufferOp) and buffer_op.name in COPIES:
                self._lower(buffer_op, order)

    def _lower(self, op: BufferOp, order: BlockOrder) -> None:
        if isinstance(op.parent_op(), lmhlo.FusionOp):
            return self.skip(op, "it is part of a fusion")
        source, result = op.inputs[0], op.outputs[0]
        alloc = result.owner
        if not isinstance(alloc, memref.AllocOp):
            return self.skip(op, "its result is not allocated here")
        if space_of(source.type) != space_of(result.type):
            return self.skip(op, "it moves data between memories")
        others = [use for use in uses_of(result) if use.operation is not op]
        if any(writes(use) for use in others) or any(
            writes(use) and not is_after(op, use.operation, order.precedes) and not are_exclusive(op, use.operation)
            for use in uses_of(source)
        ):
            return self.skip(op, "one of the two buffers is written again")
        if not all(is_after(use.operation, op, order.precedes) for use in others) or sum(map(frees, others)) > 1:
            return self.skip(op, "its result is not used behind it alone")
        if not any(map(leaves_the_block, others)) or (source.type != result.type and _is_ours_alone(op)):
            view = lmhlo.IncRefOp(operands=[source, alloc.dynamic_sizes], result_types=[result.type])
            view.location = op.location
            view.attributes |= alloc.attributes
            view.view.name_hint = result.name_hint
            Rewriter.insert_op(view, InsertPoint.before(op))
            order.replace(op, view)
            result.replace_all_uses_with(view.view)
            _erase(op, alloc)
            return None
        return self._give(op, alloc, order)

    def _give(self, op: BufferOp, alloc: memref.AllocOp, order: BlockOrder) -> None:
        """Gives the operand's own buffer away, if it has no later use."""
        source, result = op.inputs[0], op.outputs[0]
        later = [
            use.operation
            for use in uses_of(source)
            if use.operation is not op
            and not is_after(op, use.operation, order.precedes)
            and not are_exclusive(op, use.operation)
        ]
        is_last = len(later) == 1 and isinstance(later[0], memref.DeallocOp) and later[0].parent is op.parent
        if not is_last or tensor_of(source.type) != tensor_of(result.type):
            return self.skip(op, "its result is given away, and its operand is not free to be")
        if isinstance(source.owner, lmhlo.IncRefOp) or any(
            isinstance(use.operation, lmhlo.IncRefOp) for use in uses_of(source)
        ):
            return self.skip(op, "its result is given away, and its operand has another name")
        Rewriter.erase_op(later[0])
        result.replace_all_uses_with(source)
        _erase(op, alloc)
        return None


def _is_ours_alone(op: BufferOp) -> bool:
    """Whether the block of a reshape allocates and frees its operand, not a constant, and gives no other name of it away."""
    source = op.inputs[0]
    uses = uses_of(source)
    if not isinstance(source.owner, memref.AllocOp) or source.owner.parent is not op.parent:
        return False
    if any(leaves_the_block(use) or use.operation.name == "lmhlo.constant" for use in uses):
        return False
    names = [use.operation.view for use in uses if isinstance(use.operation, lmhlo.IncRefOp)]
    return any(map(frees, uses)) and not any(leaves_the_block(use) for name in names for use in uses_of(name))


def _erase(op: BufferOp, alloc: Operation) -> None:
    """Erases the op, and the allocation of its result."""
    Rewriter.erase_op(op, safe_erase=False)
    Rewriter.erase_op(alloc)
