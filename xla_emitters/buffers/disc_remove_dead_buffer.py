"""Buffers that are only allocated and freed, such as those between ops that became one, are removed.

    %t = memref.alloc(%n) : memref<?xf32, "gpu">
    %v = lmhlo.inc_ref %t(%m) : ...                           ->       (nothing)
    memref.dealloc %v; memref.dealloc %t

Also through other names. A buffer of which a size is asked stays, as does one that anything reads, writes or gives away.
Source: seed document, "DhloRemoveDeadBuffer"; docs/reference/4 1.3.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from xla_emitters.buffers.buffer_uses import allocations, uses_of
from xla_emitters.dialects import lmhlo
from xla_emitters.rewrite.kernel_pass import KernelPass


@dataclass(frozen=True)
class DiscRemoveDeadBufferPass(KernelPass):
    """See the file's head."""

    name = "disc-remove-dead-buffer"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for alloc in allocations(op):
            if (dead := _users_if_dead(alloc)) is None:
                self.skip(alloc, "it is used")
                continue
            for user in reversed(dead):
                Rewriter.erase_op(user)


def _users_if_dead(alloc: Operation) -> list[Operation] | None:
    """The allocation and all that uses it, each after what it uses; None where something does more than free or name it."""
    found = [alloc]
    for op in found:
        if isinstance(op, memref.DeallocOp):
            continue
        for use in uses_of(op.results[0]):
            if not isinstance(use.operation, memref.DeallocOp | lmhlo.IncRefOp):
                return None
            found.append(use.operation)
    return found
