"""The ENTRY of a module, and the instruction that makes each array of a control computation.

    %w = (s32[], f32[8]) while(%s)
    %x = f32[8] get-tuple-element(%w), index=1      producers_of(%x)  [(%w, 1)]
    %b = f32[4,2] bitcast(%x)                       producers_of(%b)  [(%w, 1)]     the same memory under another shape
    %t = (f32[8], f32[8]) tuple(%x, %f)             producers_of(%t)  [(%w, 1), (%f, 0)]

The arrays of a tuple are numbered by leaf: nested tuples are flattened in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TupleType, i64
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.hlo.base import HloOp, owner_of
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    TupleOp,
    find_computation,
)
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.dialects.hlo.types import element_of, leaf_types, tuple_types
from xla_emitters.dialects.quick_op import ops_of
from xla_emitters.dialects.verification import place_from_location
from xla_emitters.errors import VerifyError


def entry_of(module: ModuleOp) -> ComputationOp:
    """The entry computation. raises VerifyError if there is none."""
    for op in ops_of(module.body.block):
        if isinstance(op, ComputationOp) and op.is_entry:
            return op
    raise VerifyError("the module has no entry computation", stage="plan", place=place_from_location(module))


def computation_of(source: FusionOp | ComputationOp) -> ComputationOp:
    """The computation itself, or the one that a fusion calls."""
    return find_computation(source, source.calls) if isinstance(source, FusionOp) else source


def producers_of(value: SSAValue) -> list[tuple[HloOp, int]]:
    """Per leaf of a value: the instruction that makes it, seen through tuples and bitcasts, and the number of the leaf in its result."""
    op = owner_of(value)
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
    return leaves_before(op.operands[0].type, op.index.value.data)


def leaves_before(ir_type: Attribute, index: int) -> tuple[int, int]:
    """The number of leaves of a tuple before its element `index`, and the number of leaves of that element."""
    types = tuple_types(ir_type)
    return sum(len(leaf_types(part)) for part in types[:index]), len(leaf_types(types[index]))


def leaf_at(ir_type: Attribute, path: Iterable[int]) -> int:
    """The number of the first leaf of the element at `path`, an index for each level of nested tuples."""
    number = 0
    for index in path:
        number += leaves_before(ir_type, index)[0]
        ir_type = tuple_types(ir_type)[index]
    return number


def tuple_elements(value: SSAValue, insert: Callable[[HloOp], SSAValue], name: str = "") -> list[SSAValue]:
    """The elements of a tuple as values of their own; [value] for an array. `name`: begins their names; "": that of the tuple."""
    if not isinstance(value.type, TupleType):
        return [value]
    stem = name or owner_of(value).instruction_name.data
    return [
        insert(GetTupleElementOp([value], ir_type, f"{stem}.{n}", {"index": IntegerAttr(n, i64)}))
        for n, ir_type in enumerate(value.type.types)
    ]
