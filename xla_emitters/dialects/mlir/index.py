"""The `index` dialect: arithmetic on `index`, which has as many bits as an address.

    %2 = index.add %0, %1                    also sub mul divs divu ceildivs ... and or xor shl shrs shru
    %3 = index.cmp slt(%0, %1)
    %4 = index.casts %0 : index to i64       widened by its sign; castu by zeros
    %5 = index.constant 4

xDSL does not have it. Ops of one form are made from a family each.
Source: MLIR 22, index dialect.
"""

from __future__ import annotations

from enum import auto
from typing import cast

from xdsl.dialect_interfaces.constant_materialization import ConstantMaterializationInterface
from xdsl.dialects.builtin import BoolAttr, IndexType, IntegerAttr, IntegerType, i1
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Dialect, Operation, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    eq,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Commutative, ConstantLike, NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from xla_emitters.dialects.mlir.op_rows import op_of_family

INDEX_TYPE = IndexType()


class BinaryOp(IRDLOperation):
    """Two indices give an index."""

    lhs = operand_def(IndexType)
    rhs = operand_def(IndexType)
    result = result_def(IndexType)

    assembly_format = "$lhs `,` $rhs attr-dict"

    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[lhs, rhs], result_types=[INDEX_TYPE])


class CommutativeOp(BinaryOp):
    traits = traits_def(Commutative())


class DivisionOp(IRDLOperation):
    """As `BinaryOp`; undefined for a divisor of 0, so it is not done where it was not asked for."""

    lhs = operand_def(IndexType)
    rhs = operand_def(IndexType)
    result = result_def(IndexType)

    assembly_format = "$lhs `,` $rhs attr-dict"

    traits = traits_def(NoMemoryEffect())

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[lhs, rhs], result_types=[INDEX_TYPE])


AddOp = op_of_family(CommutativeOp, "index.add")
AndOp = op_of_family(CommutativeOp, "index.and")
MaxSOp = op_of_family(CommutativeOp, "index.maxs")
MaxUOp = op_of_family(CommutativeOp, "index.maxu")
MinSOp = op_of_family(CommutativeOp, "index.mins")
MinUOp = op_of_family(CommutativeOp, "index.minu")
MulOp = op_of_family(CommutativeOp, "index.mul")
OrOp = op_of_family(CommutativeOp, "index.or")
XOrOp = op_of_family(CommutativeOp, "index.xor")

ShlOp = op_of_family(BinaryOp, "index.shl")
ShrSOp = op_of_family(BinaryOp, "index.shrs")
ShrUOp = op_of_family(BinaryOp, "index.shru")
SubOp = op_of_family(BinaryOp, "index.sub")

CeilDivSOp = op_of_family(DivisionOp, "index.ceildivs")
CeilDivUOp = op_of_family(DivisionOp, "index.ceildivu")
DivSOp = op_of_family(DivisionOp, "index.divs")
DivUOp = op_of_family(DivisionOp, "index.divu")
FloorDivSOp = op_of_family(DivisionOp, "index.floordivs")
RemSOp = op_of_family(DivisionOp, "index.rems")
RemUOp = op_of_family(DivisionOp, "index.remu")


class CastOp(IRDLOperation):
    """Between index and an integer type."""

    input = operand_def(IndexType | IntegerType)
    output = result_def(IndexType | IntegerType)

    assembly_format = "$input attr-dict `:` type($input) `to` type($output)"

    traits = traits_def(Pure())

    def __init__(self, input: SSAValue | Operation, target_type: Attribute):
        super().__init__(operands=[input], result_types=[target_type])

    def verify_(self) -> None:
        if isinstance(self.input.type, IndexType) == isinstance(self.output.type, IndexType):
            raise VerifyException(f"casts between index and integers, not {self.input.type} to {self.output.type}")


CastSOp = op_of_family(CastOp, "index.casts")
CastUOp = op_of_family(CastOp, "index.castu")


class Predicate(StrEnum):
    EQ = auto()
    NE = auto()
    SLT = auto()
    SLE = auto()
    SGT = auto()
    SGE = auto()
    ULT = auto()
    ULE = auto()
    UGT = auto()
    UGE = auto()


@irdl_attr_definition
class PredicateAttr(EnumAttribute[Predicate], SpacedOpaqueSyntaxAttribute):
    name = "index.cmp_predicate"


@irdl_op_definition
class CmpOp(IRDLOperation):
    """`index.cmp slt(%a, %b)`"""

    name = "index.cmp"

    lhs = operand_def(IndexType)
    rhs = operand_def(IndexType)
    pred = prop_def(PredicateAttr)
    result = result_def(i1)

    traits = traits_def(Pure())

    def __init__(self, pred: Predicate, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[lhs, rhs], properties={"pred": PredicateAttr(pred)}, result_types=[i1])

    @classmethod
    def parse(cls, parser: Parser) -> CmpOp:
        predicate = parser.parse_str_enum(Predicate)
        with parser.in_parens():
            lhs = parser.parse_operand(INDEX_TYPE)
            parser.parse_punctuation(",")
            rhs = parser.parse_operand(INDEX_TYPE)
        op = CmpOp(predicate, lhs, rhs)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.pred.data}(")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(")")
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class SizeOfOp(IRDLOperation):
    """How many bits an index has."""

    name = "index.sizeof"

    result = result_def(IndexType)

    assembly_format = "attr-dict"

    traits = traits_def(Pure())

    def __init__(self) -> None:
        super().__init__(result_types=[INDEX_TYPE])


@irdl_op_definition
class ConstantOp(IRDLOperation):
    name = "index.constant"

    value = prop_def(IntegerAttr.constr(type=eq(INDEX_TYPE)))
    result = result_def(IndexType)

    assembly_format = "attr-dict $value"

    traits = traits_def(Pure(), ConstantLike())

    def __init__(self, value: int | IntegerAttr[IndexType]):
        held = IntegerAttr(value, INDEX_TYPE) if isinstance(value, int) else value
        super().__init__(properties={"value": held}, result_types=[INDEX_TYPE])


@irdl_op_definition
class BoolConstantOp(IRDLOperation):
    name = "index.bool.constant"

    value = prop_def(BoolAttr)
    result = result_def(i1)

    assembly_format = "attr-dict $value"

    traits = traits_def(Pure(), ConstantLike())

    def __init__(self, value: bool):
        super().__init__(properties={"value": BoolAttr.from_bool(value)}, result_types=[i1])


class _Materialization(ConstantMaterializationInterface):
    def materialize_constant(self, value: Attribute, type: Attribute) -> Operation | None:
        if not isinstance(value, IntegerAttr):
            return None
        number = cast("IntegerAttr[IndexType | IntegerType]", value).value.data
        return ConstantOp(number) if type == INDEX_TYPE else BoolConstantOp(bool(number)) if type == i1 else None


INDEX = Dialect(
    "index",
    [
        *(AddOp, AndOp, MaxSOp, MaxUOp, MinSOp, MinUOp, MulOp, OrOp, XOrOp, ShlOp, ShrSOp, ShrUOp, SubOp),
        *(CeilDivSOp, CeilDivUOp, DivSOp, DivUOp, FloorDivSOp, RemSOp, RemUOp),
        *(CastSOp, CastUOp, CmpOp, SizeOfOp, ConstantOp, BoolConstantOp),
    ],
    [PredicateAttr],
    [_Materialization()],
)
