"""A window of an axis whose size depends on data is checked by the host before the op runs. On HLO.

    y = gather(x[?], at), slice_sizes={1}              n = get_dimension_size(x), dimensions={0}
                                                 ->    shape_assertion(n >= 1, n, 1)
                                                       y = gather(x, at), slice_sizes={1}

Gathers, dynamic slices and updates clamp where a window begins, so that it ends inside the array; of an array that is smaller than the
window there is no such place, and a kernel would read or write memory outside. Sizes that follow from the arguments' shapes are checked
before a run; of those that data decide, as by `set_dimension_size`, nothing is known before.
Not one of the seed's passes. Source: docs/reference/4 3.1; StableHLO specification, "gather", "dynamic_slice", "dynamic_update_slice".
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, ModuleOp, StringAttr, i64
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.dynamic_shape_ops import DynamicGatherOp
from xla_emitters.dialects.hlo.gather_scatter import GatherOp
from xla_emitters.dialects.hlo.shape_ops import DynamicSliceOp, DynamicUpdateSliceOp
from xla_emitters.dialects.hlo.types import UNBOUNDED, array_type, dims_of, element_of, tuple_type
from xla_emitters.dtypes import dtype
from xla_emitters.graph.names import Names
from xla_emitters.graph.shape_code import SCALAR, Number, ShapeCode
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.sizes import sizes_of

WINDOWED = (GatherOp, DynamicGatherOp, DynamicSliceOp, DynamicUpdateSliceOp)


@dataclass(frozen=True)
class DiscCheckWindowsPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect."""

    name = "disc-check-windows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = [
            inner for inner in op.walk() if isinstance(inner, WINDOWED) and UNBOUNDED in dims_of(inner.operands[0])
        ]
        if not found or not any(isinstance(inner, ComputationOp) and inner.is_entry for inner in op.ops):
            return
        names, sizes = Names(op), sizes_of(op)
        for inner in found:
            known = sizes.of(inner.operands[0])
            for axis, size in enumerate(dims_of(inner.operands[0])):
                if size < 0 and (len(known) <= axis or known[axis] is None):
                    _check(inner, axis, ShapeCode(names, inner))


def _check(op: HloOp, axis: int, code: ShapeCode) -> None:
    """Asserts before an op that its window is not larger than the axis."""
    window = _window(op, axis, code)
    if window == 0:
        return
    size = code.size(op.operands[0], axis)
    fits = code.add(
        "compare",
        [code.scalar(size), code.scalar(window)],
        array_type(dtype("pred").ir_type, ()),
        {"direction": StringAttr("GE")},
        of_sizes=True,
    )
    said = f"%{op.instruction_name.data} = {op.opcode}: no window of {{1}} fits inside axis {axis} of the operand, whose size is {{0}}"
    shown = [fits, code.scalar(size), code.scalar(window)]
    code.add("shape-assertion", shown, tuple_type([]), {"message": StringAttr(said)}, of_sizes=True)


def _window(op: HloOp, axis: int, code: ShapeCode) -> Number:
    """How many elements of the axis the op reads or writes."""
    match op:
        case GatherOp():
            return integers(op.slice_sizes)[axis]
        case DynamicSliceOp():
            return integers(op.dynamic_slice_sizes)[axis]
        case DynamicGatherOp():
            return _element(op.operands[2], axis, code)
        case _:
            return code.size(op.operands[1], axis)


def _element(sizes: SSAValue, at: int, code: ShapeCode) -> Number:
    """A number of a list of sizes."""
    element = element_of(sizes)
    only = ArrayAttr[DenseArrayBase]([DenseArrayBase.from_list(i64, [at, at + 1, 1])])
    one = code.add("slice", [sizes], array_type(element.ir_type, (1,)), {"slice": only}, of_sizes=True)
    scalar = code.add("reshape", [one], array_type(element.ir_type, ()), of_sizes=True)
    return scalar if element.name == "s64" else code.add("convert", [scalar], SCALAR, of_sizes=True)
