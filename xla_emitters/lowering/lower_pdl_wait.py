"""Lowers the ops of dependent launches to PTX's instruction.

    "xla_gpu.pdl_wait"() : () -> ()                    ->   nvvm.griddepcontrol wait
    "xla_gpu.pdl_launch_dependents"() : () -> ()       ->   nvvm.griddepcontrol launch_dependents

In XLA's order this pass is after xla-lower-tensors. Our list of passes does not contain it, because no kernel of ours waits
(docs/decisions/17); xla-lower-to-llvm-gpu emits the same instruction for a wait in IR from elsewhere.
Source: docs/reference/2 3.3 "xla-lower-pdl-wait".
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.xla_gpu.tensors import PdlLaunchDependentsOp, PdlWaitOp
from xla_emitters.lowering.grid_dependency import griddepcontrol
from xla_emitters.rewrite.kernel_pass import KernelPass


class LowerPdlWaitPass(KernelPass):
    name = "xla-lower-pdl-wait"

    def apply_to(self, op: ModuleOp) -> None:
        for wait in [inner for inner in op.walk() if isinstance(inner, PdlWaitOp | PdlLaunchDependentsOp)]:
            located_builder(InsertPoint.before(wait), wait).insert(griddepcontrol(wait))
            Rewriter.erase_op(wait)
