"""An op at the sizes of its operands' values: for evaluating programs with unknown sizes in their types.

    reduce(f32[?,8]) on an array of 5 x 8     ->     reduce(f32[5,8]): f32[5]

An op with a value that depends on its types (index maps, windows) computes its result's sizes by its shape rule; `at_sizes` returns
a copy with static types. The copy is in no block, but it finds the computations that the op calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from xdsl.dialects.builtin import TupleType
from xdsl.ir import Attribute, Block

from xla_emitters.dialects.hlo.base import HloOp, fault
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp
from xla_emitters.dialects.hlo.shape_rule import Broken, Condition, Number, Sizing, TypeSizing, as_int, spelled
from xla_emitters.dialects.hlo.types import array_type, as_array, has_dynamic_dims, tuple_type, tuple_types

HloOpT = TypeVar("HloOpT", bound=HloOp)


class ValueSizing(TypeSizing):
    """The sizes of arrays, and the elements that they hold. A requirement that does not hold is a DataError."""

    def __init__(self, op: HloOp, arrays: Sequence[Any]) -> None:
        super().__init__(op.operands)
        self.op, self.arrays = op, arrays

    def axis(self, operand: int, dim: int) -> Number:
        return int(self.arrays[operand].shape[dim])

    def axes(self, operand: int) -> list[Number]:
        return [int(size) for size in self.arrays[operand].shape]

    def held(self, operand: int, *indices: int) -> Number:
        return int(self.arrays[operand][indices])

    def require(
        self,
        said: str,
        shown: Sequence[Number],
        conditions: Sequence[Condition],
        *,
        guarded: bool = False,
        of_data: bool = False,
    ) -> None:
        if any(as_int(a) > as_int(b) for a, b in conditions):
            raise fault(self.op, said.format(*shown))

    def same(self, a: Number, b: Number, broken: Broken) -> Number:
        if as_int(a) != as_int(b):
            raise fault(self.op, ": ".join(("sizes differ", f"{a} and {b}")))
        return a

    def same_product(self, a: Sequence[Number], b: Sequence[Number], broken: Broken) -> None:
        left, right = self.product(a), self.product(b)
        if isinstance(left, int) and isinstance(right, int) and left != right:
            raise fault(self.op, f"{a} has {left} elements, {b} {right}")

    def fits(self, window: Number, size: Number, broken: Broken, said: str) -> None:
        Sizing.fits(self, window, size, broken, said)

    def repeats(self, own: Number, wanted: Number, broken: Broken, said: str) -> Number:
        if own not in (1, wanted):
            raise fault(self.op, said.format(own, wanted))
        return wanted


def at_sizes(op: HloOp, operands: Sequence[Any]) -> HloOp:
    """`op` itself, or a copy at the sizes of these arrays if its types have unknown ones and its value depends on them.

    raises DataError if the shape rule of an op with unknown sizes does not take these arrays
    """
    if not any(has_dynamic_dims(value.type) for value in (*op.operands, op.result)):
        return op
    if op.DEPENDS_ON_SIZES:
        return with_operands(op, operands, type(op), op.properties)
    if not isinstance(op, ElementwiseOp) and not op.number_operands:  # these check by themselves
        op.shapes(ValueSizing(op, operands))
    return op


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
    made = copy(op.result.type)
    found = made.shapes(ValueSizing(made, operands))
    assert found is not None
    parts = [
        array_type(as_array(part).element_type, spelled(sizes))
        for part, sizes in zip(tuple_types(op.result.type), found, strict=True)
    ]
    return copy(tuple_type(parts) if isinstance(op.result.type, TupleType) else parts[0])
