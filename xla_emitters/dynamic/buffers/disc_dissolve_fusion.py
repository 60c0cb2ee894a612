"""Replaces fusions by their ops, for a host that computes op by op.

    "lmhlo.fusion"() ({ lmhlo.abs %x -> %t; lmhlo.negate %t -> %y; lmhlo.terminator })        ->      lmhlo.abs %x -> %t
                                                                                                     lmhlo.negate %t -> %y

NumPy has no kernels: a buffer between two ops of a fusion lives from one to the other (`disc-buffer-optimization` runs after this), not
as long as the fusion; its constants become the program's. Not one of the seed's passes, and not used on the way to kernels.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscDissolveFusionPass(KernelPass):
    name = "disc-dissolve-fusion"

    def apply_to(self, op: ModuleOp) -> None:
        for fusion in [inner for inner in op.walk() if isinstance(inner, FusionOp)]:
            *ops, _ = fusion.body.block.ops
            for inner in ops:
                inner.detach()
            Rewriter.insert_op(ops, InsertPoint.before(fusion))
            Rewriter.erase_op(fusion)
