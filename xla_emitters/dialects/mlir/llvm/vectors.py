"""The `llvm` dialect's intrinsics on vectors: reductions, parts, and vectors of numbers in a row.

    %s = "llvm.intr.vector.reduce.add"(%w) : (vector<4xi32>) -> i32
    %m = llvm.intr.vector.reduce.fmax(%v) : (vector<4xf32>) -> f32
    %h = llvm.intr.vector.extract %v[2] : vector<2xf32> from vector<4xf32>
    %n = llvm.intr.stepvector : vector<4xi32>

Source: MLIR 22, LLVM dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    I1,
    AnyFloatConstr,
    IntegerAttr,
    IntegerType,
    SignlessIntegerConstraint,
    VectorType,
    i1,
)
from xdsl.dialects.llvm import FastMathAttr, LLVMStructType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from xla_emitters.dialects.mlir.llvm.values import NO_FLAGS
from xla_emitters.dialects.mlir.op_rows import op_of_family


def _vector(value: SSAValue | Operation) -> VectorType[Attribute]:
    type = SSAValue.get(value).type
    assert isa(type, VectorType[Attribute]), f"{type} is no vector"
    return type


# ---- reductions -------------------------------------------------------------------------------------------------------------------------


class IntegerReductionOp(IRDLOperation):
    """`"llvm.intr.vector.reduce.add"(%w) : (vector<4xi32>) -> i32`. No custom form."""

    T: ClassVar = VarConstraint("T", SignlessIntegerConstraint)
    arg = operand_def(VectorType.constr(T))
    res = result_def(T)

    traits = traits_def(Pure())

    def __init__(self, arg: SSAValue | Operation):
        super().__init__(operands=[arg], result_types=[_vector(arg).element_type])


class FloatReductionOp(IRDLOperation):
    """`llvm.intr.vector.reduce.fmax(%v) : (vector<4xf32>) -> f32`"""

    T: ClassVar = VarConstraint("T", AnyFloatConstr)
    arg = operand_def(VectorType.constr(T))
    fastmathFlags = prop_def(FastMathAttr, default_value=NO_FLAGS)
    res = result_def(T)

    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"
    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(Pure())

    def __init__(self, arg: SSAValue | Operation):
        super().__init__(operands=[arg], result_types=[_vector(arg).element_type])


INTEGER_REDUCTIONS = {
    name: op_of_family(IntegerReductionOp, f"llvm.intr.vector.reduce.{name}")
    for name in ("add", "mul", "and", "or", "xor", "smax", "smin", "umax", "umin")
}
FLOAT_REDUCTIONS = {
    name: op_of_family(FloatReductionOp, f"llvm.intr.vector.reduce.{name}")
    for name in ("fmax", "fmin", "fmaximum", "fminimum")
}
"""Kind -> op. Sums and products of floats, which have an order and a start, are xDSL's."""

# ---- parts ------------------------------------------------------------------------------------------------------------------------------


@irdl_op_definition
class VectorExtractOp(IRDLOperation):
    """`llvm.intr.vector.extract %v[2] : vector<2xf32> from vector<4xf32>`: neighbours from element `pos` on."""

    name = "llvm.intr.vector.extract"

    srcvec = operand_def(VectorType)
    pos = prop_def(IntegerAttr)
    res = result_def(VectorType)

    def __init__(self, srcvec: SSAValue | Operation, pos: int, res_type: Attribute):
        super().__init__(operands=[srcvec], properties={"pos": IntegerAttr(pos, 64)}, result_types=[res_type])

    @classmethod
    def parse(cls, parser: Parser) -> VectorExtractOp:
        source = parser.parse_unresolved_operand()
        with parser.in_square_brackets():
            position = parser.parse_integer()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        parser.parse_keyword("from")
        op = VectorExtractOp(parser.resolve_operand(source, parser.parse_type()), position, type)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.srcvec)
        printer.print_string(f"[{self.pos.value.data}]")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.res.type)
        printer.print_string(" from ")
        printer.print_attribute(self.srcvec.type)

    def verify_(self) -> None:
        _verify_part(self.res.type, self.srcvec.type, self.pos.value.data)


@irdl_op_definition
class VectorInsertOp(IRDLOperation):
    """`llvm.intr.vector.insert %h, %v[2] : vector<2xf32> into vector<4xf32>`: `%v` with other elements from `pos` on."""

    name = "llvm.intr.vector.insert"

    dstvec = operand_def(VectorType)
    srcvec = operand_def(VectorType)
    pos = prop_def(IntegerAttr)
    res = result_def(VectorType)

    def __init__(self, srcvec: SSAValue | Operation, dstvec: SSAValue | Operation, pos: int):
        super().__init__(
            operands=[dstvec, srcvec],
            properties={"pos": IntegerAttr(pos, 64)},
            result_types=[SSAValue.get(dstvec).type],
        )

    @classmethod
    def parse(cls, parser: Parser) -> VectorInsertOp:
        source = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        target = parser.parse_unresolved_operand()
        with parser.in_square_brackets():
            position = parser.parse_integer()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        part = parser.resolve_operand(source, parser.parse_type())
        parser.parse_keyword("into")
        op = VectorInsertOp(part, parser.resolve_operand(target, parser.parse_type()), position)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list((self.srcvec, self.dstvec), printer.print_ssa_value)
        printer.print_string(f"[{self.pos.value.data}]")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.srcvec.type)
        printer.print_string(" into ")
        printer.print_attribute(self.dstvec.type)

    def verify_(self) -> None:
        if self.res.type != self.dstvec.type:
            raise VerifyException(f"inserts into {self.dstvec.type}, but gives {self.res.type}")
        _verify_part(self.srcvec.type, self.dstvec.type, self.pos.value.data)


def _shape(type: Attribute) -> tuple[Attribute, int]:
    """The element type and the number of elements of a vector."""
    assert isa(type, VectorType[Attribute])
    return type.element_type, type.element_count()


def _verify_part(part: Attribute, whole: Attribute, position: int) -> None:
    """raises VerifyException unless `part` lies inside `whole`, at a multiple of its own length"""
    (element, count), (of, available) = _shape(part), _shape(whole)
    if element != of or position % count or not 0 <= position <= available - count:
        raise VerifyException(f"{part} is not what {whole} has at position {position}")


@irdl_op_definition
class VectorInterleaveOp(IRDLOperation):
    """`"llvm.intr.vector.interleave2"(%a, %b)`: a0 b0 a1 b1 ... No custom form."""

    name = "llvm.intr.vector.interleave2"

    T: ClassVar = VarConstraint("T", VectorType.constr())
    vec1 = operand_def(T)
    vec2 = operand_def(T)
    res = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(self, vec1: SSAValue | Operation, vec2: SSAValue | Operation):
        element, count = _shape(SSAValue.get(vec1).type)
        super().__init__(operands=[vec1, vec2], result_types=[VectorType(element, [2 * count])])

    def verify_(self) -> None:
        element, count = _shape(self.vec1.type)
        if self.res.type != (wanted := VectorType(element, [2 * count])):
            raise VerifyException(f"two of {self.vec1.type} make {wanted}, not {self.res.type}")


@irdl_op_definition
class VectorDeinterleaveOp(IRDLOperation):
    """`"llvm.intr.vector.deinterleave2"(%v)`: the elements at even places, and those at odd ones. No custom form."""

    name = "llvm.intr.vector.deinterleave2"

    vec = operand_def(VectorType)
    res = result_def(LLVMStructType)

    traits = traits_def(Pure())

    def __init__(self, vec: SSAValue | Operation):
        super().__init__(operands=[vec], result_types=[self.struct_of(SSAValue.get(vec).type)])

    @staticmethod
    def struct_of(type: Attribute) -> LLVMStructType:
        """What the op gives for a vector of `type`."""
        element, count = _shape(type)
        return LLVMStructType.from_type_list([VectorType(element, [count // 2])] * 2)

    def verify_(self) -> None:
        if self.res.type != (wanted := self.struct_of(self.vec.type)):
            raise VerifyException(f"{self.vec.type} comes apart into {wanted}, not {self.res.type}")


# ---- numbers in a row -------------------------------------------------------------------------------------------------------------------


@irdl_op_definition
class StepVectorOp(IRDLOperation):
    """`llvm.intr.stepvector : vector<4xi32>`: 0, 1, 2, 3."""

    name = "llvm.intr.stepvector"

    res = result_def(VectorType[IntegerType])

    assembly_format = "attr-dict `:` type($res)"

    traits = traits_def(Pure())

    def __init__(self, type: Attribute):
        super().__init__(result_types=[type])


@irdl_op_definition
class ActiveLaneMaskOp(IRDLOperation):
    """`llvm.intr.get.active.lane.mask %base, %n : i32, i32 to vector<4xi1>`: whether base + 0, base + 1 ... are below n, unsigned."""

    name = "llvm.intr.get.active.lane.mask"

    T: ClassVar = VarConstraint("T", SignlessIntegerConstraint)
    base = operand_def(T)
    n = operand_def(T)
    res = result_def(VectorType[I1])

    assembly_format = "$base `,` $n attr-dict `:` type($base) `,` type($n) `to` type($res)"

    traits = traits_def(Pure())

    def __init__(self, base: SSAValue | Operation, n: SSAValue | Operation, shape: Sequence[int]):
        super().__init__(operands=[base, n], result_types=[VectorType(i1, shape)])
