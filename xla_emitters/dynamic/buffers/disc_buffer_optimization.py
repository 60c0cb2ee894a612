"""Allocates each buffer just before its first use, and frees it just after its last.

    %a = alloc; %b = alloc                          %a = alloc
    op1 -> %a                                       op1 -> %a
    op2 -> %b                             ->        dealloc %a
    dealloc %a; dealloc %b                          %b = alloc; op2 -> %b; dealloc %b

Ops move within their block: a use inside a region counts as one of the op that has the region, so that a buffer used in two
branches is allocated before both. Another name of a buffer holds a reference of its own (`lmhlo.inc_ref`), so the first name can be
freed while the second is in use. To free early is safe if the device's pool is ordered like its stream: kernels launched before the
deallocation still sees the buffer.
Source: seed document, "DhloBufferOptimization"; docs/reference/4 1.3.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from xla_emitters.dialects.mlir import memref
from xla_emitters.dynamic.buffers.buffer_uses import place_in, uses_of
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscBufferOptimizationPass(KernelPass):
    name = "disc-buffer-optimization"

    def apply_to(self, op: ModuleOp) -> None:
        # A moved op stays behind, or before, all other uses of its buffer, so these numbers stay valid.
        order = {inner: number for number, inner in enumerate(op.walk())}
        last_free = dict[Operation, Operation]()
        for inner in list(order):
            if isinstance(inner, memref.AllocOp) and (places := _uses_in(inner, inner.memref)):
                _move_before(inner, min(places, key=order.__getitem__))
            elif isinstance(inner, memref.DeallocOp):
                places = [place for place in _uses_in(inner, inner.memref) if place is not inner]
                if places:
                    _move_behind(inner, max(places, key=order.__getitem__), last_free)


def _uses_in(op: Operation, buffer: SSAValue) -> list[Operation]:
    """The ops in the block of `op` that use a buffer, allocate it, or have a region that uses it."""
    assert op.parent is not None
    users = [use.operation for use in uses_of(buffer)]
    if isinstance(buffer.owner, Operation) and buffer.owner is not op:
        users.append(buffer.owner)
    return [place for user in users if (place := place_in(op.parent, user)) is not None]


def _move_before(op: Operation, place: Operation) -> None:
    assert op.parent is not None
    block = op.parent
    op.detach()
    block.insert_op_before(op, place)


def _move_behind(op: Operation, place: Operation, last_free: dict[Operation, Operation]) -> None:
    """Moves a deallocation behind `place` and what is freed there already: the order of frees stays as it is.

    last_free  the last deallocation that was moved behind each op
    """
    assert op.parent is not None
    block, after = op.parent, last_free.get(place, place)
    op.detach()
    while isinstance(after.next_op, memref.DeallocOp):
        after = after.next_op
    block.insert_op_after(op, after)
    last_free[place] = op
