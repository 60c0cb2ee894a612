"""Removes buffers that are only allocated and freed, such as those between ops that were fused.

    %t = memref.alloc(%n) : memref<?xf32, "gpu">
    %v = lmhlo.inc_ref %t(%m) : ...                           ->       (nothing)
    memref.dealloc %v; memref.dealloc %t

Also through second names, and with its marker. A buffer whose size is read stays, as does one that is read, written or given away.
Source: seed document, "DhloRemoveDeadBuffer"; docs/reference/4 1.3.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.disc_ral import is_marker
from xla_emitters.dialects.mlir import memref
from xla_emitters.dynamic.buffers.buffer_uses import allocations, uses_of
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscRemoveDeadBufferPass(KernelPass):
    name = "disc-remove-dead-buffer"

    def apply_to(self, op: ModuleOp) -> None:
        for alloc in allocations(op):
            if (dead := _users_if_dead(alloc)) is None:
                self.skip(alloc, "it is used")
                continue
            for user in reversed(dead):
                Rewriter.erase_op(user)


def _users_if_dead(alloc: Operation) -> list[Operation] | None:
    """The allocation and all its users, each after what it uses; None if one of them does more than free, rename or mark it."""
    found = [alloc]
    for op in found:
        if not op.results:
            continue
        for use in uses_of(op.results[0]):
            if not (isinstance(use.operation, memref.DeallocOp | lmhlo.IncRefOp) or is_marker(use.operation)):
                return None
            found.append(use.operation)
    return found
