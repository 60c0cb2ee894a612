"""Wraps each lone instruction of a control computation, beside fusions or ops for the host, into a fusion of its own. On HLO.

    s = f32[8,2] sort(x), dimensions={0}, to_apply=less                 s = f32[8,2] sort(x), dimensions={0}, to_apply=less
    t = f32[2,8] transpose(s), dimensions={1,0}                  ->     t = f32[2,8] fusion(s), calls=t.computation

So each step of a program is either one kernel, or not a kernel at all. Not wrapped: instructions that run other computations or a library;
`dot` and `convolution`, which a library computes unless they are all of ENTRY or in a fusion; parameters, tuples, constants and
bitcasts, which are not steps; copies, which `fuse_entry` handles, as it does constants and bitcasts. An ENTRY that is one kernel as a
whole is not changed. XLA fuses before it wraps: HLO before optimization makes a kernel for each instruction here.
Source: XLA fusion_wrapper.cc.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp, owner_of
from xla_emitters.dialects.hlo.computation import (
    CallOp,
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import CopyOp
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.dialects.hlo.types import is_array, leaf_types
from xla_emitters.graph.control_computations import control_computations, is_contraction, is_one_kernel
from xla_emitters.graph.fusion_parts import NewComputation, new_fusion
from xla_emitters.graph.names import Names
from xla_emitters.rewrite.kernel_pass import KernelPass

_STAY = (
    *(ParameterOp, TupleOp, GetTupleElementOp, FusionOp, CallOp, RuleOp),
    *(ConstantOp, BitcastOp, CopyOp),
)


class WrapInstructionsPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect. Instructions with tokens are not wrapped."""

    name = "xla-wrap-instructions"

    def apply_to(self, op: ModuleOp) -> None:
        computations = control_computations(op)
        if is_one_kernel(computations[-1]):
            return
        names = Names(op)
        for computation in computations:
            for each in list(computation.instructions):
                if not isinstance(each, _STAY) and not is_contraction(each) and _is_of_arrays(each):
                    _wrap(each, computation, names)


def _is_of_arrays(op: HloOp) -> bool:
    leaves = leaf_types(op.result.type)
    return bool(leaves) and all(map(is_array, (*(operand.type for operand in op.operands), *leaves)))


def _wrap(op: HloOp, around: ComputationOp, names: Names) -> None:
    """Replaces `op` by a fusion that computes it; a repeated operand is one parameter."""
    operands = list(dict.fromkeys(op.operands))
    values, inside = dict[SSAValue, SSAValue](), NewComputation()
    for number, operand in enumerate(operands):
        values[operand] = inside.insert(ParameterOp(number, operand.type, f"param_{number}"), owner_of(operand))
    result, name = inside.copy(op, [values[operand] for operand in op.operands]), op.instruction_name.data
    callee = inside.finish(f"{name}.computation", [result], op)
    names.add_computation(callee, around)
    names.replace(op, names.add(new_fusion(operands, callee, name), op))
