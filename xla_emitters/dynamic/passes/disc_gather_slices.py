"""A slice of unknown size at a start computed from data becomes a gather, which reads its start on the device. On HLO.

    start = clamp(zero, at, last)                                start = clamp(zero, at, last)
    limit = add(start, sizes)                             ->     y = dynamic_gather(x, start, sizes), offset_dims={0,1}, ...
    y = real_dynamic_slice(x, start, limit, ones)

JAX writes `dynamic_slice` like this if the size of the slice has a symbol. All operands of a real_dynamic_slice but the first are read on
the host, because they give the size of the result. If the start is computed from data (the row of the largest element, an argument), this
is a copy to the host, in each iteration of a loop. A gather has the sizes apart from the start, so only sizes are on the host.

Not changed: a start that the host can compute, for example from a loop's counter (the slice then costs nothing); a start that is not
clamped (a gather would clamp it, where the slice is an error); a step that is not 1.
Not one of the seed's passes. Source: StableHLO specification, "dynamic_gather".
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.dynamic.passes.places import Placement
from xla_emitters.dynamic.passes.shape_code import ShapeCode
from xla_emitters.graph.names import Names
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscGatherSlicesPass(KernelPass):
    name = "disc-gather-slices"

    def apply_to(self, op: ModuleOp) -> None:
        names = Names(op)
        for entry in [inner for inner in op.ops if isinstance(inner, ComputationOp) and inner.is_entry]:
            placement = Placement(entry)
            for computation in placement.computations:
                for inner in list(computation.instructions):
                    if inner.opcode == "real-dynamic-slice" and placement.follows_data(inner.operands[1]):
                        self._gather(inner, placement, names)

    def _gather(self, op: HloOp, placement: Placement, names: Names) -> None:
        array, start, limit, strides = op.operands
        end, step = limit.owner, _outside(strides, placement).owner
        if not isinstance(step, ConstantOp) or step.is_elided or (step.array() != 1).any():
            return self.skip(op, "its step is not known to be 1")
        if not isinstance(start.owner, HloOp) or start.owner.opcode != "clamp":
            return self.skip(op, "its place comes from data and is not clamped")
        added = [value for value in end.operands if value is not start] if isinstance(end, HloOp) else []
        if not isinstance(end, HloOp) or end.opcode != "add" or len(added) != 1:
            return self.skip(op, "its place comes from data, and its size is not what is added to that")
        (sizes,) = added
        if placement.follows_data(sizes):
            return self.skip(op, "its size comes from data")
        axes = integer_array(range(len(dims_of(array))))
        properties = {
            "offset_dims": axes,
            "start_index_map": axes,
            "collapsed_slice_dims": integer_array([]),
            "index_vector_dim": IntegerAttr(0, i64),
        }
        code = ShapeCode(names, op)
        name = op.instruction_name.data
        names.replace(op, code.add("dynamic-gather", [array, start, sizes], op.result.type, properties, name))
        if end.result.first_use is None:
            Rewriter.erase_op(end)
        return None


def _outside(value: SSAValue, placement: Placement) -> SSAValue:
    """For a parameter of a loop's or branch's computation that is passed on unchanged: the value outside."""
    while (captured := placement.captured(value)) is not None:
        _, value = captured
    return value
