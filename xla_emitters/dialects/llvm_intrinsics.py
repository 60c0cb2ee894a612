"""The `llvm` dialect's intrinsics: functions of numbers that LLVM knows by name.

    %m = llvm.intr.maximum(%a, %b) {fastmathFlags = #llvm.fastmath<nnan>} : (f32, f32) -> f32
    %n = "llvm.intr.ctlz"(%i) <{is_zero_poison = false}> : (i32) -> i32             those with a flag have the generic form alone

Source: MLIR 22, LLVM dialect.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import I1, I32, BoolAttr, IntegerAttr, IntegerType, VectorType
from xdsl.dialects.llvm import FastMathAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation, SSAValue
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
from xdsl.traits import Pure

from xla_emitters.dialects.llvm_values import FLOAT, INTEGER, NO_FLAGS, truth_type
from xla_emitters.dialects.op_family import op_of_family

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


@irdl_op_definition
class PowIOp(IRDLOperation):
    """`llvm.intr.powi(%x, %n) : (f32, i32) -> f32`: to an integer power."""

    name = "llvm.intr.powi"

    T: ClassVar = VarConstraint("T", FLOAT)
    val = operand_def(T)
    power = operand_def(IntegerType)
    fastmathFlags = prop_def(FastMathAttr, default_value=NO_FLAGS)
    res = result_def(T)

    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"
    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(Pure())

    def __init__(self, val: SSAValue | Operation, power: SSAValue | Operation):
        super().__init__(operands=[val, power], result_types=[SSAValue.get(val).type])


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
