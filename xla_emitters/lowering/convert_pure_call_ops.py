"""Converts pure calls to calls.

    %x = xla_gpu.pure_call @f(%in, %i) {noinline} : (tensor<64xf32>, index) -> f32
->
    %x = func.call @f(%in, %i) {noinline} : (tensor<64xf32>, index) -> f32

The calls no longer say that the callee has no side effects, so this pass runs after the passes that merge, move or erase them.
Source: docs/reference/2 3.3 "xla-convert-pure-call-ops".
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects import xla_gpu
from xla_emitters.dialects.locations import replace_alike
from xla_emitters.dialects.mlir import func
from xla_emitters.dialects.quick_op import walk
from xla_emitters.rewrite.kernel_pass import KernelPass


class ConvertPureCallOpsPass(KernelPass):
    name = "xla-convert-pure-call-ops"

    def apply_to(self, op: ModuleOp) -> None:
        for pure in [found for found in walk(op) if isinstance(found, xla_gpu.PureCallOp)]:
            replace_alike(pure, func.CallOp(pure.callee_attr, pure.arguments, pure.result_types))
