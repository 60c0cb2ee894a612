"""f32 tanh and erf become quotients of polynomials; ops on floats of eight and four bits become integer and f32 code.

    %y = math.tanh %x : f32
->
    %c = clamp(%x, -7.9988, 7.9988)                       // tanh rounds to 1 or -1 beyond
    %s = %c * %c
    %p = %c * (a13 s^6 + a11 s^5 + ... + a1)              // by math.fma, highest power first
    %q = b6 s^3 + b4 s^2 + b2 s + b0
    %y = |%x| < 0.0004 ? %x : %p / %q

    %y = math.erf %x : f32       ->     |%x| < 3.7439 ? %c P(%s) / Q(%s) : copysign(1, %x)

NaN stays NaN: x is clamped by a comparison that is false for NaN, or by minimum and maximum, as in XLA. tanh and erf on f64, bf16 and f16
are left for libdevice, and with `approximate-tanh=false` f32 tanh too. The expansions differ from the functions of NumPy that the executor
uses before this pass, by 6 units in the last place at most.

    %y = arith.extf %x : f8E4M3FN to f32                  ->     shifts, masks and selects on i32: see narrow_floats.py
    %y = arith.truncf %x : f64 to f8E5M2                  ->     likewise, rounded only once
    %c = arith.cmpf olt, %x, %z : f8E5M2                  ->     the same op on f32; so is every op but select, which only moves bits
    %y = math.absf %x : bf16                              ->     its bits without the sign; also for narrow floats with a sign bit

After this pass no op computes in a narrow float, except on vectors, which no emitter makes. Loads, stores and selects of narrow floats
remain; xla-lower-to-llvm-gpu turns these into integers.
Source: docs/reference/2 3.3 "xla-expand-float-ops" (erf's numbers); MLIR's math-to-polynomial approximation, after Eigen (tanh's).
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    ModuleOp,
    VectorType,
    f32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from xla_emitters.dialects.build import Number
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import located_builder, replace_by
from xla_emitters.dialects.mlir import arith, math
from xla_emitters.dialects.mlir.arith import rounds_to_nearest_even
from xla_emitters.dialects.quick_op import walk
from xla_emitters.dtypes import dtype_of
from xla_emitters.lowering.narrow_floats import CONVERSIONS, compute_wider, is_narrow, is_number_op, narrow, widen
from xla_emitters.rewrite.constants import literal
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.support.late_dataclass import dataclass

# Polynomials in x^2, highest power first.
_TANH_BOUND = 7.99881172180175781
_TANH_TINY = 0.0004
_TANH_ODD = (
    -2.76076847742355e-16,
    2.00018790482477e-13,
    -8.60467152213735e-11,
    5.12229709037114e-08,
    1.48572235717979e-05,
    6.37261928875436e-04,
    4.89352455891786e-03,
)
_TANH_EVEN = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)

_ERF_BOUND = 3.7439211627767994
_ERF_ODD = (
    0.00022905065861350646,
    0.0034082910107109506,
    0.050955695062380861,
    0.18520832239976145,
    1.128379143519084,
)
_ERF_EVEN = (
    -1.1791602954361697e-7,
    2.3547966471313185e-5,
    0.0010179625278914885,
    0.014070470171167667,
    0.11098505178285362,
    0.49746925110067538,
    1.0,
)


@dataclass(frozen=True)
class ExpandFloatOpsPass(KernelPass):
    """
    approximate_tanh  whether to expand f32 tanh; otherwise it is left for libdevice
    halves            whether tanh and erf of bf16 and f16 are those of f32, for a CPU: its library takes one element at a time
    """

    name = "xla-expand-float-ops"

    approximate_tanh: bool = True
    halves: bool = False

    def apply_to(self, op: ModuleOp) -> None:
        for found in list(walk(op)):
            if isinstance(found, math.AbsFOp) and (kept := _bits_of_absolute(found.operand.type)) is not None:
                replace_by(found, [_masked(found, kept)])
                continue
            if self.halves and isinstance(found, math.TanhOp | math.ErfOp) and _is_half(found.result.type):
                compute_wider(found, _is_half)
                continue
            if not is_number_op(found):
                continue
            if not _is_scalar_op(found):
                self.skip(found, "it computes on vectors")
            elif not isinstance(found, CONVERSIONS) and "scaling" not in found.name:
                compute_wider(found, is_narrow)
        for found in list(walk(op)):
            if isinstance(found, CONVERSIONS) and is_number_op(found) and _is_scalar_op(found):
                if rounds_to_nearest_even(found):
                    replace_by(found, [_converted(found)])
                else:
                    self.skip(found, "it does not round to nearest even")
            elif isinstance(found, math.TanhOp):
                if not self.approximate_tanh:
                    self.skip(found, "approximate-tanh is off")
                elif _is_f32(found.result.type):
                    replace_by(found, [_tanh(_number(found)).value])
            elif isinstance(found, math.ErfOp) and _is_f32(found.result.type):
                replace_by(found, [_erf(_number(found)).value])


# --- absolute values -------------------------------------------------------------------------------------------------------------


def _bits_of_absolute(value_type: Attribute) -> int | None:
    """The mask of the bits that the absolute value keeps; None if a mask is not enough, or if abs is an instruction."""
    if not isinstance(value_type, BFloat16Type) and not is_narrow(value_type):
        return None
    form = dtype_of(value_type).float_format
    # In formats without -0, the sign bit alone encodes NaN.
    return form.sign - 1 if form.has_minus_zero else None


def _masked(op: math.AbsFOp, kept: int) -> SSAValue:
    b = located_builder(InsertPoint.before(op), op)
    value_type = op.operand.type
    assert isinstance(value_type, AnyFloat)
    integer = IntegerType(value_type.bitwidth)
    bits = b.insert(arith.BitcastOp(op.operand, integer)).result
    mask = literal(b, kept, integer)
    return b.insert(arith.BitcastOp(b.insert(arith.AndIOp(bits, mask)).result, value_type)).result


# --- narrow floats ---------------------------------------------------------------------------------------------------------------


def _is_scalar_op(op: Operation) -> bool:
    return not any(isinstance(value_type, VectorType) for value_type in (*op.operand_types, *op.result_types))


def _is_half(value_type: Attribute) -> bool:
    return isinstance(value_type, BFloat16Type | Float16Type)


def _converted(op: arith.ExtFOp | arith.TruncFOp) -> SSAValue:
    """The result of a conversion from or to a narrow float."""
    b = located_builder(InsertPoint.before(op), op)
    value, target = op.input, op.result.type
    if is_narrow(value.type):
        value = widen(b, value)
    elif not isinstance(value.type, Float32Type | Float64Type):
        value = b.insert(arith.ExtFOp(value, f32)).result
    assert isinstance(target, AnyFloat)
    if is_narrow(target):
        return narrow(b, value, target)
    match target:
        case Float32Type():
            return value
        case Float64Type():
            return b.insert(arith.ExtFOp(value, target)).result
        case _:
            return b.insert(arith.TruncFOp(value, target)).result


# --- polynomials -----------------------------------------------------------------------------------------------------------------


def _is_f32(value_type: Attribute) -> bool:
    """f32, or a vector of it."""
    return isinstance(value_type.element_type if isa(value_type, VectorType) else value_type, Float32Type)


def _number(op: math.TanhOp | math.ErfOp) -> Number:
    """The operand, in code before the op."""
    return Number(located_builder(InsertPoint.before(op), op), op.operand)


def _tanh(x: Number) -> Number:
    # By comparisons, so that NaN stays.
    low, high = x.of(-_TANH_BOUND), x.of(_TANH_BOUND)
    below = x.holds("ult", high).choose(x, high)
    bounded = below.holds("ugt", low).choose(below, low)
    square = bounded * bounded
    quotient = bounded * square.polynomial(_TANH_ODD) / square.polynomial(_TANH_EVEN)
    return abs(x).holds("olt", _TANH_TINY).choose(x, quotient)


def _erf(x: Number) -> Number:
    bounded = x.maximum(x.of(-_ERF_BOUND)).minimum(x.of(_ERF_BOUND))
    square = bounded * bounded
    quotient = bounded * square.polynomial(_ERF_ODD) / square.polynomial(_ERF_EVEN)
    size, bound, limit = abs(x), x.of(_ERF_BOUND), x.of(1.0).with_sign_of(x)
    return size.holds("oge", bound).choose(limit, quotient)
