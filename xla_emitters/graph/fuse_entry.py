"""Instructions beside fusions: copies become fusions; constants, and bitcasts that fusions read, are moved into the fusions. On HLO.

    k = f32[] constant(2)                                   inside:  k = f32[] constant(2)
    b = f32[1200] bitcast(p)                                         b = f32[1200] bitcast(p)
    f = f32[1200] fusion(b, k), calls=scaled        ->      f = f32[1200] fusion(p), calls=scaled.whole
    c = f32[1200] copy(q)                                   c = f32[1200] fusion(q), calls=c.computation

So a constant needs no buffer, and a bitcast no kernel. A constant with another user (a tuple, a loop, a library call) is written by
a fusion, a new one for each use, so that a loop has an array of its own. A bitcast with another user stays if it keeps the element
type, because planning looks through it; else a fusion copies.
Source: XLA fusion_wrapper.cc for copies; for the rest, buffers that XLA shares or fills when it loads a program.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import CopyOp
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.graph.control_computations import control_computations, fusions_of, is_one_kernel
from xla_emitters.graph.entry import changes_width, is_same_memory
from xla_emitters.graph.fusion_parts import Part, Parting, copying, is_fusible_bitcast, taken_inside
from xla_emitters.graph.names import Names
from xla_emitters.graph.refusals import supported_view
from xla_emitters.rewrite.kernel_pass import KernelPass, Skip


class FuseEntryPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect. An ENTRY that is one kernel stays as it is."""

    name = "xla-fuse-entry"

    def apply_to(self, op: ModuleOp) -> None:
        computations = control_computations(op)
        if is_one_kernel(computations[-1]):
            return
        names = Names(op)
        for computation in computations:
            _fuse(names, computation, self.skip)


def _fuse(names: Names, around: ComputationOp, skip: Skip) -> None:
    """The pass in one control computation."""
    copies = [op for op in around.instructions if isinstance(op, CopyOp) and not isinstance(op.result.type, TupleType)]
    for op in copies:
        copied = copying(names, op.operands[0], op.result.type, op, op.instruction_name.data)
        names.replace(op, copied)
    for op in list(around.instructions):
        if isinstance(op, ConstantOp) or (is_fusible_bitcast(op) and not is_same_memory(op)):
            for use in [
                use
                for use in op.result.uses
                if not isinstance(use.operation, FusionOp | BitcastOp) or _is_kept(use.operation)
            ]:
                made = copying(names, op.result, op.result.type, use.operation, op.instruction_name.data)
                use.operation.operands[use.index] = made
    for fusion in fusions_of(around):
        if any(
            isinstance(operand.owner, ConstantOp) or is_fusible_bitcast(operand.owner) for operand in fusion.operands
        ):
            _take_in(names, fusion, skip)
    for op in reversed(list(around.instructions)):
        if isinstance(op, ConstantOp | BitcastOp) and op.result.first_use is None:
            Rewriter.erase_op(op)


def _is_kept(op: object) -> bool:
    return isinstance(op, BitcastOp) and changes_width(op)


def _take_in(names: Names, fusion: FusionOp, skip: Skip) -> None:
    """Replaces a fusion by one that contains the constants and bitcasts that it reads; not one with `output_to_operand_aliasing`."""
    view = supported_view(fusion)
    if view is None:
        return
    if fusion.output_to_operand_aliasing is not None:
        return skip(fusion, "it says by number in which operands' buffers its results are")
    parting = Parting(names, fusion, view.computation)
    part, given = Part(parting.callee), list[SSAValue]()
    for parameter, operand in zip(view.parameters, view.operands, strict=True):
        if isinstance(operand.owner, ConstantOp) or is_fusible_bitcast(operand.owner):
            part.taken[parameter.result] = taken_inside(part, operand, given)
    name = f"{parting.callee.sym_name.data}.whole"
    made = parting.call(part, name, [part.take(parting.callee.root)], given, "")
    names.replace(fusion, made.result)
