"""How an op uses a buffer operand, and the positions of uses in a block.

memref.dealloc %b              frees                     lmhlo.add %x, %y -> %b, memref.store      write
memref.dim %b, a marker        asks for size or memory   func.return %b, lmhlo.terminator %b       give away, as does lmhlo.while (%b)
lmhlo.inc_ref %b               another name              everything else                           reads

lmhlo.dynamic_update_slice %b, %u, %i -> %b              updates in place: it writes a part of %b, and keeps the rest
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Block, Operation, SSAValue, Use

from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.disc_ral import is_marker
from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dialects.mlir import func, memref, scf


def frees(use: Use) -> bool:
    return isinstance(use.operation, memref.DeallocOp)


def asks_size(use: Use) -> bool:
    """Whether only the buffer's size is read, or the memory that it is in (`disc-insert-memory-marker`)."""
    return isinstance(use.operation, memref.DimOp) or is_marker(use.operation)


def writes(use: Use) -> bool:
    match use.operation:
        case BufferOp() as op:
            return use.index >= len(op.inputs)
        case memref.StoreOp():
            return use.index == 1
        case _:
            return False


def updated_in_place(op: Operation) -> list[SSAValue]:
    """The buffers that an op changes in part: the updated array and the result are one buffer."""
    return [buffer for buffer in op.outputs if buffer in op.inputs] if isinstance(op, BufferOp) else []


def leaves_the_block(use: Use) -> bool:
    return isinstance(use.operation, func.ReturnOp | lmhlo.TerminatorOp | lmhlo.WhileOp)


def reads(use: Use) -> bool:
    """Whether elements of the buffer are read, under this name or another."""
    return not (frees(use) or asks_size(use) or writes(use))


def is_used_inside(buffer: SSAValue, holder: Operation) -> bool:
    """Whether only ops inside of `holder` read and write a buffer."""
    return all(holder.is_ancestor(use.operation) or frees(use) or asks_size(use) for use in uses_of(buffer))


def is_read_inside(buffer: SSAValue, holder: Operation) -> bool:
    """Whether a buffer is allocated here, and only ops inside of `holder` read it."""
    is_read_outside = any(reads(use) and not holder.is_ancestor(use.operation) for use in uses_of(buffer))
    return isinstance(buffer.owner, memref.AllocOp) and not is_read_outside


def place_in(block: Block, op: Operation) -> Operation | None:
    """The op of `block` that is `op`, or encloses it; None if `op` is not inside."""
    inside: Operation | None = op
    while inside is not None and inside.parent is not block:
        inside = inside.parent_op()
    return inside


def precedes(first: Operation, second: Operation) -> bool:
    """Whether `first` is before `second` in their common block; False for ops of different blocks.

    It takes as many steps as there are ops between the two: `Operation.is_before_in_block` walks to the block's end.
    """
    if first.parent is None or first.parent is not second.parent or first is second:
        return False
    forward, other = first.next_op, second.next_op
    while forward is not second and other is not first and not (forward is None and other is None):
        forward = None if forward is None else forward.next_op
        other = None if other is None else other.next_op
    return forward is second


class BlockOrder:
    """The order of ops in their blocks, numbered once: for a pass that asks often about blocks of many ops, and moves none of them."""

    def __init__(self) -> None:
        self._places = dict[Operation, int]()

    def precedes(self, first: Operation, second: Operation) -> bool:
        """As the function `precedes`."""
        if first.parent is None or first.parent is not second.parent or first is second:
            return False
        for op in (first, second):
            if op not in self._places:
                self._places |= {inner: place for place, inner in enumerate(first.parent.ops)}
        return self._places[first] < self._places[second]

    def replace(self, op: Operation, by: Operation) -> None:
        """Notes that an op has the place of another one, which goes."""
        if (place := self._places.pop(op, None)) is not None:
            self._places[by] = place


def is_after(later: Operation, earlier: Operation, precedes: Callable[[Operation, Operation], bool] = precedes) -> bool:
    """Whether `later`, or an op around it, is behind `earlier` in the block of `earlier`; for an op in a fusion, in the fusion's block."""
    holder = earlier.parent_op()
    earlier = holder if isinstance(holder, lmhlo.FusionOp) else earlier
    assert earlier.parent is not None
    at = place_in(earlier.parent, later)
    return at is not None and at is not earlier and precedes(earlier, at)


def is_before(earlier: Operation, later: Operation) -> bool:
    """Whether `earlier`, or an op around it, is before `later`, or an op around that, in their common block."""
    holder: Operation | None = earlier
    while holder is not None and holder.parent is not None:
        if (at := place_in(holder.parent, later)) is not None:
            return at is not holder and precedes(holder, at)
        holder = holder.parent_op()
    return False


def are_exclusive(a: Operation, b: Operation) -> bool:
    """Whether two ops are in different branches of one choice, so that only one of them is executed."""
    holder: Operation | None = a
    while holder is not None:
        region, holder = holder.parent_region(), holder.parent_op()
        if isinstance(holder, lmhlo.CaseOp | scf.IfOp) and holder is not b and holder.is_ancestor(b):
            return region is None or not region.is_ancestor(b)
    return False


def is_in_loop(op: Operation) -> bool:
    """Whether an op runs more than once in one call."""
    holder = op.parent_op()
    while holder is not None and not isinstance(holder, func.FuncOp):
        if isinstance(holder, lmhlo.WhileOp):
            return True
        holder = holder.parent_op()
    return False


Allocation = memref.AllocOp | memref.AllocaOp


def allocations(root: Operation) -> list[Allocation]:
    """The allocations inside `root`, of the heap and of the stack."""
    return [op for op in root.walk() if isinstance(op, Allocation)]


def uses_of(value: SSAValue) -> list[Use]:
    return list(value.uses)
