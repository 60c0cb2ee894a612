"""Allows sums and products carried by loops to be reassociated: LLVM then keeps several partial results side by side, in a vector.

    %s = scf.for %j = %0 to %n step %1 iter_args(%a = %zero) {
      %b = arith.addf %a, %x                     ->              %b = arith.addf %a, %x fastmath<reassoc>
      scf.yield %b
    }

Only float sums and products that a loop carries, and only the op that carries them: the added values are computed as before. HLO leaves
the order of a reduction open, and so do the bounds on results.
Source: LLVM language reference, "Fast-Math Flags"; XLA's semantics of Reduce.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.utils import FastMathFlag

from xla_emitters.dialects.mlir import arith, scf
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.scf_patterns import yielded


class DiscReassociateReductionsPass(KernelPass):
    name = "disc-reassociate-reductions"

    def apply_to(self, op: ModuleOp) -> None:
        for loop in op.walk():
            if not isinstance(loop, scf.ForOp):
                continue
            for carried, following in zip(loop.body.block.args[1:], yielded(loop.body.block), strict=True):
                combined = following.owner
                if isinstance(combined, arith.AddfOp | arith.MulfOp) and carried in combined.operands:
                    combined.properties["fastmath"] = arith.FastMathFlagsAttr([FastMathFlag.REASSOC])
