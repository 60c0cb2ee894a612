"""ENTRY becomes a call of one fusion, with a parameter for each operand. On HLO.

    %a = f32[8] fusion(%p), calls=first                  p0 = f32[8] parameter(0)
    ROOT %b = f32[8] fusion(%a, %p), calls=second   ->   p1 = f32[8] parameter(1)
                                                         ROOT %b = f32[8] fusion(p0, p1), calls=second
                                              fusion=b

The fusion may be in ENTRY, in a loop, in a branch or in a called computation; ENTRY's comes first if a name occurs twice. Module attributes
that refer to ENTRY's parameters by number are left out.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.hlo.computation import ParameterOp
from xla_emitters.graph.control_computations import fusion_named
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.fusion_parts import NewComputation
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True)
class SelectFusionPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect.

    fusion  name of the instruction; "": ENTRY stays as it is. raises UsageError where no control computation has it
    """

    name = "xla-select-fusion"

    fusion: str = ""

    def apply_to(self, op: ModuleOp) -> None:
        if not self.fusion:
            return
        entry, called, alone = entry_of(op), fusion_named(op, self.fusion), NewComputation()
        op.attributes.pop("hlo.input_output_alias", None)
        alone.names.add(self.fusion)  # the fusion keeps its own, which its kernel has
        parameters = [
            alone.insert(ParameterOp(number, value.type, f"p{number}"), called)
            for number, value in enumerate(called.operands)
        ]
        alone.names.remove(self.fusion)
        made = alone.finish(entry.sym_name.data, [alone.copy(called, parameters)], entry, is_entry=True)
        Rewriter.insert_op(made, InsertPoint.after(entry))
        Rewriter.erase_op(entry)
