"""The `index` dialect: arithmetic on `index`, which has as many bits as an address.

    %2 = index.add %0, %1                    also sub mul divs divu ceildivs ... and or xor shl shrs shru
    %3 = index.cmp slt(%0, %1)
    %4 = index.casts %0 : index to i64       sign-extended; castu zero-extends
    %5 = index.constant 4

xDSL has no `index` dialect. Ops with one signature are rows of a table.
Source: MLIR 22, index dialect.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialect_interfaces.constant_materialization import ConstantMaterializationInterface
from xdsl.dialects.arith import CMPI_COMPARISON_OPERATIONS
from xdsl.dialects.builtin import BoolAttr, IndexType, IntegerAttr, IntegerType, i1
from xdsl.ir import Attribute, Dialect, Operation
from xdsl.irdl import (
    eq,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Commutative, ConstantLike, NoMemoryEffect, OpTrait, Pure
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.mlir.llvm.metadata import word_attribute
from xla_emitters.dialects.mlir.op_rows import op_of_row
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp

INDEX_TYPE = IndexType()


_BINARY: dict[str, Any] = {
    "lhs": operand_def(IndexType),
    "rhs": operand_def(IndexType),
    "result": result_def(IndexType),
}
# Name -> traits. Division by 0 is undefined, so division is not speculatable.
_TRAITS: dict[str, tuple[OpTrait, ...]] = {
    **dict.fromkeys(("add", "and", "maxs", "maxu", "mins", "minu", "mul", "or", "xor"), (Commutative(), Pure())),
    **dict.fromkeys(("shl", "shrs", "shru", "sub"), (Pure(),)),
    **dict.fromkeys(("ceildivs", "ceildivu", "divs", "divu", "floordivs", "rems", "remu"), (NoMemoryEffect(),)),
}
BINARY = {
    name: op_of_row(f"index.{name}", "$lhs `,` $rhs attr-dict", traits=traits, **_BINARY)
    for name, traits in _TRAITS.items()
}
"""Name -> the op of two indices, which gives an index."""


def _verify_cast(op: Any) -> None:
    if isinstance(op.input.type, IndexType) == isinstance(op.output.type, IndexType):
        raise VerifyException(f"casts between index and integers, not {op.input.type} to {op.output.type}")


CASTS = {
    name: op_of_row(
        f"index.{name}",
        "$input attr-dict `:` type($input) `to` type($output)",
        traits=(Pure(),),
        verify=_verify_cast,
        input=operand_def(IndexType | IntegerType),
        output=result_def(IndexType | IntegerType),
    )
    for name in ("casts", "castu")
}
"""Between index and an integer type, sign- or zero-extended."""


PredicateAttr = word_attribute("index.cmp_predicate", *CMPI_COMPARISON_OPERATIONS, is_spaced=True)

CmpOp = op_of_row(
    "index.cmp",
    "$pred `(` $lhs `,` $rhs `)` attr-dict",
    properties={"pred": prop_def(PredicateAttr)},
    traits=(Pure(),),
    lhs=operand_def(IndexType),
    rhs=operand_def(IndexType),
    result=result_def(i1),
)

# The width of an index in bits.
SizeOfOp = op_of_row("index.sizeof", "attr-dict", traits=(Pure(),), result=result_def(IndexType))


@op_definition
class ConstantOp(QuickOp):
    name = "index.constant"

    value = prop_def(IntegerAttr.constr(type=eq(INDEX_TYPE)))
    result = result_def(IndexType)

    assembly_format = "attr-dict $value"

    traits = traits_def(Pure(), ConstantLike())

    def __init__(self, value: int | IntegerAttr[IndexType]):
        held = IntegerAttr(value, INDEX_TYPE) if isinstance(value, int) else value
        super().__init__(properties={"value": held}, result_types=[INDEX_TYPE])


@op_definition
class BoolConstantOp(QuickOp):
    name = "index.bool.constant"

    value = prop_def(BoolAttr)
    result = result_def(i1)

    assembly_format = "attr-dict $value"

    traits = traits_def(Pure(), ConstantLike())

    def __init__(self, value: bool):
        super().__init__(properties={"value": BoolAttr.from_bool(value)}, result_types=[i1])


class _Materialization(ConstantMaterializationInterface):
    def materialize_constant(self, value: Attribute, type: Attribute) -> Operation | None:  # noqa: A002 (xDSL's name)
        if not isinstance(value, IntegerAttr):
            return None
        number = cast("IntegerAttr[IndexType | IntegerType]", value).value.data
        return ConstantOp(number) if type == INDEX_TYPE else BoolConstantOp(bool(number)) if type == i1 else None


INDEX = Dialect(
    "index",
    [*BINARY.values(), *CASTS.values(), CmpOp, SizeOfOp, ConstantOp, BoolConstantOp],
    [PredicateAttr],
    [_Materialization()],
)
