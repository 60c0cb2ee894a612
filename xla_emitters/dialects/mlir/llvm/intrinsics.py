"""The `llvm` dialect's intrinsics: functions of numbers that LLVM knows by name.

    %m = llvm.intr.maximum(%a, %b) {fastmathFlags = #llvm.fastmath<nnan>} : (f32, f32) -> f32
    %n = "llvm.intr.ctlz"(%i) <{is_zero_poison = false}> : (i32) -> i32             those with a flag have the generic form alone

Source: MLIR 22, LLVM dialect.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import (
    I1,
    I32,
    BoolAttr,
    FloatAttr,
    IntegerAttr,
    VectorType,
    f64,
    i1,
)
from xdsl.dialects.llvm import FastMathAttr, LLVMStructType
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
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

from xla_emitters.dialects.mlir.llvm.values import FLOAT, INTEGER, NO_FLAGS, truth_type
from xla_emitters.dialects.mlir.op_rows import op_of_family

# ---- floats -----------------------------------------------------------------------------------------------------------------------------


class FloatIntrinsicOp(IRDLOperation):
    """`llvm.intr.name(%a, ...) {fastmathFlags = ...} : (f32, ...) -> f32`: of operands of one type, the result's."""

    T: ClassVar = VarConstraint("T", FLOAT)
    fastmathFlags = prop_def(FastMathAttr, default_value=NO_FLAGS)
    res = result_def(T)

    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"
    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(Pure())

    def __init__(self, *operands: SSAValue | Operation, fast_math: FastMathAttr | FastMathFlag | None = None):
        super().__init__(
            operands=operands,
            result_types=[SSAValue.get(operands[0]).type],
            properties={"fastmathFlags": fast_math if isinstance(fast_math, FastMathAttr) else FastMathAttr(fast_math)},
        )


class FloatUnaryOp(FloatIntrinsicOp):
    """A float intrinsic of one operand."""

    arg = operand_def(FloatIntrinsicOp.T)


class FloatBinaryOp(FloatIntrinsicOp):
    """A float intrinsic of two operands."""

    lhs = operand_def(FloatIntrinsicOp.T)
    rhs = operand_def(FloatIntrinsicOp.T)


class FloatTernaryOp(FloatIntrinsicOp):
    """A float intrinsic of three operands."""

    a = operand_def(FloatIntrinsicOp.T)
    b = operand_def(FloatIntrinsicOp.T)
    c = operand_def(FloatIntrinsicOp.T)


class FloatAndIntegerOp(IRDLOperation):
    """`llvm.intr.powi(%x, %n) : (f32, i32) -> f32`: of a float and an integer."""

    T: ClassVar = VarConstraint("T", FLOAT)
    val = operand_def(T)
    power = operand_def(INTEGER)
    fastmathFlags = prop_def(FastMathAttr, default_value=NO_FLAGS)
    res = result_def(T)

    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"
    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(Pure())

    def __init__(self, val: SSAValue | Operation, power: SSAValue | Operation):
        super().__init__(operands=[val, power], result_types=[SSAValue.get(val).type])


class FloatToIntegerOp(IRDLOperation):
    """`llvm.intr.lrint(%x) : (f32) -> i64`: rounded to an integer; poison where that does not fit."""

    val = operand_def(FLOAT)
    res = result_def(INTEGER)

    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"

    traits = traits_def(Pure())

    def __init__(self, val: SSAValue | Operation, res_type: Attribute):
        super().__init__(operands=[val], result_types=[res_type])


class FloatPartsOp(IRDLOperation):
    """`llvm.intr.frexp(%x) : (f32) -> !llvm.struct<(f32, i32)>`: two results in one."""

    val = operand_def(FLOAT)
    fastmathFlags = prop_def(FastMathAttr, default_value=NO_FLAGS)
    res = result_def(LLVMStructType)

    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"
    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(Pure())

    def __init__(self, val: SSAValue | Operation, second: Attribute):
        super().__init__(operands=[val], result_types=[LLVMStructType.from_type_list([SSAValue.get(val).type, second])])

    def verify_(self) -> None:
        types = tuple(self.res.type.types)
        if len(types) != 2 or types[0] != self.val.type:
            raise VerifyException(f"gives two numbers, the first of {self.val.type}, not {self.res.type}")


@irdl_op_definition
class IsFPClassOp(IRDLOperation):
    """`"llvm.intr.is.fpclass"(%x) <{bit = 3 : i32}>`: whether the value is of one of the classes in `bit` (1 and 2: NaN)."""

    name = "llvm.intr.is.fpclass"

    arg = operand_def(FLOAT)
    bit = prop_def(IntegerAttr[I32])
    res = result_def(I1 | VectorType[I1])

    traits = traits_def(Pure())

    def __init__(self, arg: SSAValue | Operation, bit: int):
        super().__init__(
            operands=[arg],
            properties={"bit": IntegerAttr(bit, 32)},
            result_types=[truth_type(SSAValue.get(arg).type)],
        )


PowIOp = op_of_family(FloatAndIntegerOp, "llvm.intr.powi")
LdexpOp = op_of_family(FloatAndIntegerOp, "llvm.intr.ldexp")
LRintOp = op_of_family(FloatToIntegerOp, "llvm.intr.lrint")
LLRintOp = op_of_family(FloatToIntegerOp, "llvm.intr.llrint")
LRoundOp = op_of_family(FloatToIntegerOp, "llvm.intr.lround")
LLRoundOp = op_of_family(FloatToIntegerOp, "llvm.intr.llround")
FrexpOp = op_of_family(FloatPartsOp, "llvm.intr.frexp")
SinCosOp = op_of_family(FloatPartsOp, "llvm.intr.sincos")
FAtanOp = op_of_family(FloatUnaryOp, "llvm.intr.atan")
FAcosOp = op_of_family(FloatUnaryOp, "llvm.intr.acos")
FAsinOp = op_of_family(FloatUnaryOp, "llvm.intr.asin")
FCoshOp = op_of_family(FloatUnaryOp, "llvm.intr.cosh")
FExp10Op = op_of_family(FloatUnaryOp, "llvm.intr.exp10")
FLog10Op = op_of_family(FloatUnaryOp, "llvm.intr.log10")
FNearbyIntOp = op_of_family(FloatUnaryOp, "llvm.intr.nearbyint")
FRintOp = op_of_family(FloatUnaryOp, "llvm.intr.rint")
FRoundOp = op_of_family(FloatUnaryOp, "llvm.intr.round")
FRoundEvenOp = op_of_family(FloatUnaryOp, "llvm.intr.roundeven")
FSinhOp = op_of_family(FloatUnaryOp, "llvm.intr.sinh")
FTanOp = op_of_family(FloatUnaryOp, "llvm.intr.tan")
FTanhOp = op_of_family(FloatUnaryOp, "llvm.intr.tanh")
FTruncOp = op_of_family(FloatUnaryOp, "llvm.intr.trunc")
FAtan2Op = op_of_family(FloatBinaryOp, "llvm.intr.atan2")
FMaximumOp = op_of_family(FloatBinaryOp, "llvm.intr.maximum")
FMinimumOp = op_of_family(FloatBinaryOp, "llvm.intr.minimum")
FMulAddOp = op_of_family(FloatTernaryOp, "llvm.intr.fmuladd")

# ---- integers ---------------------------------------------------------------------------------------------------------------------------


class IntegerIntrinsicOp(IRDLOperation):
    """`llvm.intr.name(%a, ...) : (i32, ...) -> i32`: of operands of one type, the result's."""

    T: ClassVar = VarConstraint("T", INTEGER)
    res = result_def(T)

    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"

    traits = traits_def(Pure())

    def __init__(self, *operands: SSAValue | Operation):
        super().__init__(operands=operands, result_types=[SSAValue.get(operands[0]).type])


class IntegerUnaryOp(IntegerIntrinsicOp):
    """An integer intrinsic of one operand."""

    arg = operand_def(IntegerIntrinsicOp.T)


class IntegerBinaryOp(IntegerIntrinsicOp):
    """An integer intrinsic of two operands."""

    lhs = operand_def(IntegerIntrinsicOp.T)
    rhs = operand_def(IntegerIntrinsicOp.T)


class IntegerTernaryOp(IntegerIntrinsicOp):
    """An integer intrinsic of three operands."""

    a = operand_def(IntegerIntrinsicOp.T)
    b = operand_def(IntegerIntrinsicOp.T)
    c = operand_def(IntegerIntrinsicOp.T)


class CountZerosOp(IRDLOperation):
    """`"llvm.intr.ctlz"(%a) <{is_zero_poison = false}>`: zero bits before the first one; of 0 the width, or poison. No custom form."""

    T: ClassVar = VarConstraint("T", INTEGER)
    arg = operand_def(T)
    is_zero_poison = prop_def(BoolAttr)
    res = result_def(T)

    traits = traits_def(Pure())

    def __init__(self, arg: SSAValue | Operation, is_zero_poison: bool = False):
        super().__init__(
            operands=[arg],
            properties={"is_zero_poison": BoolAttr.from_bool(is_zero_poison)},
            result_types=[SSAValue.get(arg).type],
        )


CountLeadingZerosOp = op_of_family(CountZerosOp, "llvm.intr.ctlz")
CountTrailingZerosOp = op_of_family(CountZerosOp, "llvm.intr.cttz")


@irdl_op_definition
class AbsOp(IRDLOperation):
    """`"llvm.intr.abs"(%a) <{is_int_min_poison = false}>`: of the least integer itself, or poison. No custom form."""

    name = "llvm.intr.abs"

    T: ClassVar = VarConstraint("T", INTEGER)
    arg = operand_def(T)
    is_int_min_poison = prop_def(BoolAttr)
    res = result_def(T)

    traits = traits_def(Pure())

    def __init__(self, arg: SSAValue | Operation, is_int_min_poison: bool = False):
        super().__init__(
            operands=[arg],
            properties={"is_int_min_poison": BoolAttr.from_bool(is_int_min_poison)},
            result_types=[SSAValue.get(arg).type],
        )


BitReverseOp = op_of_family(IntegerUnaryOp, "llvm.intr.bitreverse")
ByteSwapOp = op_of_family(IntegerUnaryOp, "llvm.intr.bswap")
CtPopOp = op_of_family(IntegerUnaryOp, "llvm.intr.ctpop")
SMaxOp = op_of_family(IntegerBinaryOp, "llvm.intr.smax")
SMinOp = op_of_family(IntegerBinaryOp, "llvm.intr.smin")
UMaxOp = op_of_family(IntegerBinaryOp, "llvm.intr.umax")
UMinOp = op_of_family(IntegerBinaryOp, "llvm.intr.umin")
FunnelShiftLeftOp = op_of_family(IntegerTernaryOp, "llvm.intr.fshl")
FunnelShiftRightOp = op_of_family(IntegerTernaryOp, "llvm.intr.fshr")


class ThreeWayCompareOp(IRDLOperation):
    """`llvm.intr.scmp(%a, %b) : (i32, i32) -> i8`: -1, 0 or 1."""

    T: ClassVar = VarConstraint("T", INTEGER)
    lhs = operand_def(T)
    rhs = operand_def(T)
    res = result_def(INTEGER)

    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"

    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation, res_type: Attribute):
        super().__init__(operands=[lhs, rhs], result_types=[res_type])


class WithOverflowOp(IRDLOperation):
    """`"llvm.intr.sadd.with.overflow"(%a, %b) : (i32, i32) -> !llvm.struct<(i32, i1)>`: wrapped, and whether it was. No custom form."""

    T: ClassVar = VarConstraint("T", INTEGER)
    lhs = operand_def(T)
    rhs = operand_def(T)
    res = result_def(LLVMStructType)

    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[lhs, rhs], result_types=[self.struct_of(SSAValue.get(lhs).type)])

    @staticmethod
    def struct_of(type: Attribute) -> LLVMStructType:
        """What the op gives for operands of `type`."""
        return LLVMStructType.from_type_list([type, truth_type(type)])

    def verify_(self) -> None:
        if self.res.type != (wanted := self.struct_of(self.lhs.type)):
            raise VerifyException(f"the result is {self.res.type}; it must be {wanted}")


SAddSatOp = op_of_family(IntegerBinaryOp, "llvm.intr.sadd.sat")
UAddSatOp = op_of_family(IntegerBinaryOp, "llvm.intr.uadd.sat")
SSubSatOp = op_of_family(IntegerBinaryOp, "llvm.intr.ssub.sat")
USubSatOp = op_of_family(IntegerBinaryOp, "llvm.intr.usub.sat")
SShlSatOp = op_of_family(IntegerBinaryOp, "llvm.intr.sshl.sat")
UShlSatOp = op_of_family(IntegerBinaryOp, "llvm.intr.ushl.sat")
SCmpOp = op_of_family(ThreeWayCompareOp, "llvm.intr.scmp")
UCmpOp = op_of_family(ThreeWayCompareOp, "llvm.intr.ucmp")
SAddWithOverflowOp = op_of_family(WithOverflowOp, "llvm.intr.sadd.with.overflow")
UAddWithOverflowOp = op_of_family(WithOverflowOp, "llvm.intr.uadd.with.overflow")
SSubWithOverflowOp = op_of_family(WithOverflowOp, "llvm.intr.ssub.with.overflow")
USubWithOverflowOp = op_of_family(WithOverflowOp, "llvm.intr.usub.with.overflow")
SMulWithOverflowOp = op_of_family(WithOverflowOp, "llvm.intr.smul.with.overflow")
UMulWithOverflowOp = op_of_family(WithOverflowOp, "llvm.intr.umul.with.overflow")

# ---- hints ------------------------------------------------------------------------------------------------------------------------------


@irdl_op_definition
class ExpectOp(IRDLOperation):
    """`llvm.intr.expect %n, %m : i32`: the first operand, which is the second most of the time."""

    name = "llvm.intr.expect"

    T: ClassVar = VarConstraint("T", INTEGER)
    val = operand_def(T)
    expected = operand_def(T)
    res = result_def(T)

    assembly_format = "$val `,` $expected attr-dict `:` type($val)"

    traits = traits_def(Pure())

    def __init__(self, val: SSAValue | Operation, expected: SSAValue | Operation):
        super().__init__(operands=[val, expected], result_types=[SSAValue.get(val).type])


@irdl_op_definition
class ExpectWithProbabilityOp(IRDLOperation):
    """`llvm.intr.expect.with.probability %n, %m, 5.000000e-01 : i32`: as `expect`, with how often."""

    name = "llvm.intr.expect.with.probability"

    T: ClassVar = VarConstraint("T", INTEGER)
    val = operand_def(T)
    expected = operand_def(T)
    prob = prop_def(FloatAttr)
    res = result_def(T)

    traits = traits_def(Pure())

    def __init__(self, val: SSAValue | Operation, expected: SSAValue | Operation, probability: float):
        super().__init__(
            operands=[val, expected],
            properties={"prob": FloatAttr(probability, 64)},
            result_types=[SSAValue.get(val).type],
        )

    @classmethod
    def parse(cls, parser: Parser) -> ExpectWithProbabilityOp:
        val = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        expected = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        probability = float(parser.parse_number())
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        value, likely = (parser.resolve_operand(operand, type) for operand in (val, expected))
        op = ExpectWithProbabilityOp(value, likely, probability)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(", ")
        printer.print_float(self.prob.value.data, f64)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.val.type)


@irdl_op_definition
class IsConstantOp(IRDLOperation):
    """`"llvm.intr.is.constant"(%n) : (i32) -> i1`: whether LLVM comes to know the value. No custom form."""

    name = "llvm.intr.is.constant"

    val = operand_def()
    res = result_def(I1)

    traits = traits_def(Pure())

    def __init__(self, val: SSAValue | Operation):
        super().__init__(operands=[val], result_types=[i1])


@irdl_op_definition
class SSACopyOp(IRDLOperation):
    """`llvm.intr.ssa.copy %x : f32`: its operand."""

    name = "llvm.intr.ssa.copy"

    T: ClassVar = VarConstraint("T", AnyAttr())
    operand = operand_def(T)
    res = result_def(T)

    assembly_format = "$operand attr-dict `:` type($operand)"

    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue | Operation):
        super().__init__(operands=[operand], result_types=[SSAValue.get(operand).type])


class TrapOp(IRDLOperation):
    """`llvm.intr.trap`: ends the kernel with an error."""

    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__()


EndWithTrapOp = op_of_family(TrapOp, "llvm.intr.trap")
DebugTrapOp = op_of_family(TrapOp, "llvm.intr.debugtrap")
