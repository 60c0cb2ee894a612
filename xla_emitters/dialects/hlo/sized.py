"""An op at the sizes of its operands' values: for evaluating programs with unknown sizes in their types.

    reduce(f32[?,8]) on an array of 5 x 8     ->     reduce(f32[5,8]): f32[5]

An op with a value that depends on its types (index maps, windows) computes its result's sizes by `HloOp.result_sizes`; `at_sizes` returns
a copy with static types. The copy is in no block, but it finds the computations that the op calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from xdsl.dialects.builtin import TupleType
from xdsl.ir import Attribute, Block

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.types import array_type, as_array, has_dynamic_dims, tuple_type

HloOpT = TypeVar("HloOpT", bound=HloOp)


def at_sizes(op: HloOp, operands: Sequence[Any]) -> HloOp:
    """`op` itself, or a copy at the sizes of these arrays if its types have unknown ones and its value depends on them."""
    if not op.DEPENDS_ON_SIZES or not any(has_dynamic_dims(value.type) for value in (*op.operands, op.result)):
        return op
    return with_operands(op, operands, type(op), op.properties)


def with_operands(
    op: HloOp,
    operands: Sequence[Any],
    op_class: type[HloOpT],
    properties: Mapping[str, Attribute],
    result_type: Attribute | None = None,
) -> HloOpT:
    """An op of that class beside `op`, with the element types of its first operands and the sizes of these arrays.

    result_type  None: that of `op`, at the sizes that follow from the operands'
    """
    types = [
        array_type(as_array(value.type).element_type, array.shape)
        for value, array in zip(op.operands, operands, strict=False)
    ]
    known = op_class.get_irdl_definition().properties

    def copy(result_type: Attribute) -> HloOpT:
        found = op_class.create(
            operands=Block(arg_types=types).args,
            result_types=[result_type],
            properties={name: value for name, value in properties.items() if name in known},
            attributes={**op.attributes},
            location=op.location,
        )
        found.parent = op.parent
        return found

    if result_type is not None:
        return copy(result_type)
    return copy(_resized(op.result.type, copy(op.result.type).result_sizes()))


def _resized(ir_type: Attribute, sizes: Sequence[int]) -> Attribute:
    if isinstance(ir_type, TupleType):
        return tuple_type([_resized(part, sizes) for part in ir_type.types])
    return array_type(as_array(ir_type).element_type, sizes)
