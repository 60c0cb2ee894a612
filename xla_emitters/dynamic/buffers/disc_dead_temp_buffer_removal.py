"""Removes buffers that are never read, with the ops that write them; also buffers whose loaded elements are unused.

    %t = memref.alloc() : memref<4xf32, "gpu">
    lmhlo.abs %x -> %t                                        ->       (nothing)
    %v = memref.load %t[%i]      (%v has no use)
    memref.dealloc %t

Repeated, since a removed op may have been the last reader of another buffer. An op with several results is removed when none is read. An op
that updates a buffer in place does not count as its reader. A buffer that is given away stays; so does an op that may stop the program,
such as an assertion, because it has no result.
Source: seed document, "DeadTempBufferRemoval"; docs/reference/4 1.3.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue, Use
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.disc_ral import is_marker
from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dialects.mlir import memref
from xla_emitters.dynamic.buffers.buffer_uses import Allocation, allocations, frees, uses_of
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscDeadTempBufferRemovalPass(KernelPass):
    name = "disc-dead-temp-buffer-removal"

    def apply_to(self, op: ModuleOp) -> None:
        pending = list(allocations(op))
        while pending:
            alloc = pending.pop()
            if alloc.parent is not None and _is_never_read(alloc.memref):
                pending += _remove(alloc)


CHECKING = frozenset(("lmhlo.set_dimension_size",))
"""Ops that check a number computed from data, which is their result's size: the size is used even if the result is not."""


def _is_never_read(buffer: SSAValue) -> bool:
    """Whether a buffer is only freed, and written by ops whose other results are never read either."""
    return isinstance(buffer.owner, Allocation) and all(map(_is_ignorable, uses_of(buffer)))


def _is_ignorable(use: Use) -> bool:
    op = use.operation
    if isinstance(op, memref.LoadOp):
        return not uses_of(op.res)
    if isinstance(op, BufferOp) and op.name not in CHECKING and (buffer := op.operands[use.index]) in op.outputs:
        return all(_is_written_alone(output, op) for output in op.outputs if output is not buffer)
    return frees(use) or is_marker(op) or isinstance(op, memref.StoreOp)


def _is_written_alone(buffer: SSAValue, op: Operation) -> bool:
    """Whether `op`, the deallocation and the marker are the only uses of an allocated buffer."""
    is_ours = isinstance(buffer.owner, Allocation)
    return is_ours and all(use.operation is op or frees(use) or is_marker(use.operation) for use in uses_of(buffer))


def _remove(alloc: Allocation) -> list[Allocation]:
    """Erases a buffer and the ops that use it; returns the allocations of the other buffers that these ops read or wrote."""
    freed = list[Allocation]()
    users = dict.fromkeys(use.operation for use in uses_of(alloc.memref))
    for op in users:
        buffers = [operand for operand in op.operands if operand is not alloc.memref]
        freed += [buffer.owner for buffer in buffers if isinstance(buffer.owner, Allocation)]
        Rewriter.erase_op(op)
    Rewriter.erase_op(alloc)
    return freed
