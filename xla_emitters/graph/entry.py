"""The ENTRY of a module, and the instruction that makes each array of a control computation.

    %w = (s32[], f32[8]) while(%s)
    %x = f32[8] get-tuple-element(%w), index=1      producers_of(%x)  [(%w, 1)]
    %b = f32[4,2] bitcast(%x)                       producers_of(%b)  [(%w, 1)]     the same memory under another shape
    %t = (f32[8], f32[8]) tuple(%x, %f)             producers_of(%t)  [(%w, 1), (%f, 0)]

The arrays of a tuple are numbered by leaf: nested tuples are flattened in order.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    TupleOp,
    find_computation,
)
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.dialects.hlo.types import element_of, leaf_types
from xla_emitters.dialects.verification import place_from_location
from xla_emitters.errors import VerifyError


def entry_of(module: ModuleOp) -> ComputationOp:
    """The entry computation. raises VerifyError if there is none."""
    for op in module.ops:
        if isinstance(op, ComputationOp) and op.is_entry:
            return op
    raise VerifyError("the module has no entry computation", stage="plan", place=place_from_location(module))


def computation_of(source: FusionOp | ComputationOp) -> ComputationOp:
    """The computation itself, or the one that a fusion calls."""
    return find_computation(source, source.calls) if isinstance(source, FusionOp) else source


def producers_of(value: SSAValue) -> list[tuple[HloOp, int]]:
    """Per leaf of a value: the instruction that makes it, seen through tuples and bitcasts, and the number of the leaf in its result."""
    op = value.owner
    assert isinstance(op, HloOp)
    match op:
        case TupleOp():
            return [producer for operand in op.operands for producer in producers_of(operand)]
        case GetTupleElementOp():
            first, count = leaves_of_element(op)
            return producers_of(op.operands[0])[first : first + count]
        case BitcastOp() if is_same_memory(op):
            return producers_of(op.operands[0])
        case _:
            return [(op, leaf) for leaf in range(len(leaf_types(op.result.type)))]


def is_same_memory(op: BitcastOp) -> bool:
    """Whether the operand's buffer is also a buffer of the result."""
    return element_of(op.operands[0]) == element_of(op.result)


def changes_width(op: BitcastOp) -> bool:
    """Whether a bitcast changes the bit width of elements: no kernel computes it, but a copy of the bytes does."""
    return element_of(op.operands[0]).bits != element_of(op.result).bits


def leaves_of_element(op: GetTupleElementOp) -> tuple[int, int]:
    """The number of the first leaf of a tuple's element among the tuple's leaves, and the number of the element's leaves."""
    whole = op.operands[0].type
    assert isinstance(whole, TupleType)
    index = op.index.value.data
    before = sum(len(leaf_types(ir_type)) for ir_type in whole.types.data[:index])
    return before, len(leaf_types(whole.types.data[index]))
