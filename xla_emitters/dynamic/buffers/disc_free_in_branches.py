"""Frees a buffer whose last use is a choice in each branch, so that a branch may keep it, or write into it.

    %r = lmhlo.case %i ({                               %r = lmhlo.case %i ({
      lmhlo.copy %x -> %o                                 lmhlo.copy %x -> %o
      lmhlo.terminator %o                                 memref.dealloc %x
    }, {                                                  lmhlo.terminator %o
      lmhlo.negate %x -> %p                     ->      }, {
      lmhlo.terminator %p                                 lmhlo.negate %x -> %p
    })                                                    memref.dealloc %x
    memref.dealloc %x                                     lmhlo.terminator %p })

A branch borrows outside buffers that it reads. To yield one, it must copy it; a loop whose body is a choice between "change the
state" and "leave it" would copy the state each time. The branch that frees the buffer owns it: `disc-lower-to-buffer-alias` then yields
%x itself, and `disc-update-in-place` lets an update write into it. A branch that does not use the buffer frees it too.

Conditions: the buffer is freed in the block of the choice, and its only use behind the choice is the deallocation. Outer choices
come first: an inner one then finds the deallocation in its own block. Not one of the seed's passes.
"""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.mlir import memref
from xla_emitters.dynamic.buffers.buffer_uses import are_exclusive, is_before, leaves_the_block, uses_of
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscFreeInBranchesPass(KernelPass):
    name = "disc-free-in-branches"

    def apply_to(self, op: ModuleOp) -> None:
        for choice in list(op.walk()):
            if isinstance(choice, lmhlo.CaseOp):
                for buffer in _captured(choice):
                    _free_inside(choice, buffer)


def _captured(choice: lmhlo.CaseOp) -> list[SSAValue]:
    """The outside buffers that the branches use, each once."""
    used = (operand for inner in choice.walk() for operand in inner.operands if isinstance(operand.type, MemRefType))
    return list(dict.fromkeys(buffer for buffer in used if not choice.is_ancestor(buffer.owner)))


def _free_inside(choice: lmhlo.CaseOp, buffer: SSAValue) -> None:
    block = choice.parent
    assert block is not None
    freed = [
        use.operation
        for use in uses_of(buffer)
        if isinstance(use.operation, memref.DeallocOp) and use.operation.parent is block
    ]
    if len(freed) != 1 or not choice.is_before_in_block(freed[0]):
        return
    for use in uses_of(buffer):
        op = use.operation
        if op is freed[0] or are_exclusive(op, choice):
            continue
        is_done = choice.is_ancestor(op) or is_before(op, choice)
        if not is_done or leaves_the_block(use) or isinstance(op, lmhlo.IncRefOp):
            return
    for region in choice.branches:
        last = region.block.last_op
        assert last is not None
        end = memref.DeallocOp.build(operands=[buffer])
        end.location = freed[0].location
        Rewriter.insert_op(end, InsertPoint.before(last))
    Rewriter.erase_op(freed[0])
