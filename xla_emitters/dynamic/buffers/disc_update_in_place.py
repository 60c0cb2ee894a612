"""Lets an update of a part of a buffer that is not needed any more write into that buffer, not into a copy of it.

    ^(%cache):                                                           ^(%cache):
      %o = memref.alloc(%n) : memref<?x8xf32, "gpu">
      lmhlo.dynamic_update_slice %cache, %row, %i, %c0 -> %o      ->       lmhlo.dynamic_update_slice %cache, %row, %i, %c0 -> %cache
      memref.dealloc %cache
      lmhlo.terminator %o                                                  lmhlo.terminator %cache

So a loop that fills a cache, or a scan that fills its results, writes one row in each iteration. Conditions: the block that updates
also frees the array, so it owns it; every other use is before the update, or in a branch that is exclusive with it; the array has no
second name; and it is operand of the op only once. If the old value is used later, the copy stays.

Not changed: an array that a kernel of this block computes and only the update reads (one kernel writes both), and a
constant, which belongs to the program.
Not one of the seed's passes. Source: XLA's buffer assignment, which shares an operand's buffer in the same case; docs/reference/4 1.3.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dialects.mlir import memref
from xla_emitters.dynamic.buffers.buffer_uses import are_exclusive, frees, is_before, reads, uses_of, writes
from xla_emitters.dynamic.buffers.fusion_rules import why_not_fusible
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscUpdateInPlacePass(KernelPass):
    name = "disc-update-in-place"

    def apply_to(self, op: ModuleOp) -> None:
        for update in list(op.walk()):
            if isinstance(update, BufferOp) and update.name in UPDATES:
                for number, result in enumerate(list(update.outputs)):
                    if (why := _share(update, number, result)) is not None:
                        self.skip(update, why)


UPDATES = frozenset(("lmhlo.dynamic_update_slice", "lmhlo.scatter"))
"""Ops whose n-th result is their n-th operand with some elements changed."""


def _share(op: BufferOp, number: int, result: SSAValue) -> str | None:
    """Makes the operand's buffer the result; returns why not, or None."""
    array, made = op.inputs[number], result.owner
    if array is result:
        return None
    if not isinstance(made, memref.AllocOp) or made.parent is not op.parent or array.type != result.type:
        return "its result is not allocated beside it, as its operand is"
    if list(op.inputs).count(array) != 1:
        return "it reads the array that it updates"
    others = [use for use in uses_of(array) if use.operation is not op]
    ends = [use.operation for use in others if frees(use) and use.operation.parent is op.parent]
    if len(ends) != 1:
        return "the array belongs to another block"
    if any(isinstance(use.operation, lmhlo.IncRefOp) for use in others) or isinstance(array.owner, lmhlo.IncRefOp):
        return "the array has a second name"
    if any(not (frees(use) or is_before(use.operation, op) or are_exclusive(use.operation, op)) for use in others):
        return "the array is used afterwards"
    written = [use.operation for use in others if writes(use)]
    if any(writer.name == "lmhlo.constant" for writer in written):
        return "the array is a constant"
    if not any(map(reads, uses_of(result))):
        return "nothing reads its result"
    is_read = any(map(reads, others))
    beside = [writer for writer in written if writer.parent is op.parent and isinstance(writer, BufferOp)]
    if not is_read and any(why_not_fusible(writer) is None for writer in beside) and why_not_fusible(op) is None:
        return "one kernel computes the array and updates it"
    Rewriter.erase_op(ends[0])
    hint = array.name_hint
    result.replace_all_uses_with(array)
    array.name_hint = hint
    Rewriter.erase_op(made)
    return None
