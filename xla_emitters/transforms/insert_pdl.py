"""A kernel waits for the kernels before it: the device's half of programmatic dependent launch (PDL).

    func.func @fusion(%x: tensor<128xf32>, ...) {          func.func @fusion(%x: tensor<128xf32>, ...) {
      ...                                            ->      "xla_gpu.pdl_wait"() : () -> ()
                                                             ...

A kernel launched with the PDL attribute may start before the previous kernel in the stream has ended. The wait is the first op of every
public function with a body and returns when the previous kernel's writes are visible; without the attribute it does nothing. Code in front
of the wait could overlap with the previous kernel. As in XLA there is none, so only the start of the blocks is hidden.

Needs Hopper (9.0) or newer: older GPUs lack the instruction. The pass is not in the list of passes (docs/decisions/17); `--pipeline` takes
it by name, between xla-cse at the end of stage `unrolled` and xla-convert-pure-call-ops.
Source: docs/reference/2 3.3 "xla-gpu-insert-pdl"; PTX ISA, "griddepcontrol".
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint

from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.xla_gpu.tensors import PdlWaitOp
from xla_emitters.rewrite.kernel_pass import DevicePass
from xla_emitters.rewrite.symbols import functions, is_private, scopes

SINCE = (9, 0)


class InsertPdlPass(DevicePass):
    name = "xla-gpu-insert-pdl"

    def apply_to(self, op: ModuleOp) -> None:
        for function in (found for module in scopes(op) for found in functions(module).values()):
            if is_private(function) or not function.body.blocks:
                continue
            entry = function.body.blocks[0]
            if self.device.compute_capability < SINCE:
                self.skip(function, f"{self.device.architecture} has no griddepcontrol, which sm_90 brought")
            elif isinstance(entry.first_op, PdlWaitOp):
                self.skip(function, "it waits already")
            else:
                located_builder(InsertPoint.at_start(entry), function).insert(PdlWaitOp())
