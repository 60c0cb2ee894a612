"""Integer code for conversions of 8- and 4-bit floats, and of f16 if asked: a narrow float to f32, f32 or f64 rounded to a narrow float.

    f8E4M3FN  s eeee mmm     value, e > 0:  1.mmm * 2^(e - bias)          e = 0:  0.mmm * 2^(1 - bias)

    widen     mmm is shifted to the top of f32's fraction, and the difference of the biases is added to the exponent. With e = 0 the value
              1.mmm * 2^(1 - bias) is built instead, and 2^(1 - bias) subtracted: exact, and without subnormal numbers.
    narrow    the lost bits are rounded to nearest even by adding half of the last kept bit to the whole pattern; a carry moves into
              the exponent. A result with e = 0 is in the last bits of |x| + 2^k, where f32's own addition has rounded it.
              f64 is first rounded to odd as f32: the second rounding then gives the same result as a single one.

Format, value beyond the largest finite one, NaN:

    IEEE       infinity; NaN     f8E5M2, f8E4M3, f8E3M4, f16: infinity and NaN have the highest exponent
    TOP_NAN    NaN; NaN          f8E4M3FN: all ones is NaN
    ZERO_NAN   NaN; NaN          f8E5M2FNUZ, f8E4M3FNUZ, f8E4M3B11FNUZ: the pattern of -0 is NaN, zero has no sign
    NONE       largest; a zero   f4E2M1FN

f8E8M0FNU has only an exponent: no sign, no zero. Ties go up; zero, negative numbers, infinity and NaN become its NaN, 255.
Every function returns bit for bit the result of `ml_dtypes`, and so of XLA. Scalars only.
Source: docs/reference/2 3.3 "xla-expand-float-ops"; the OCP 8-bit floating point and microscaling formats; ml_dtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    AnyFloat,
    ContainerType,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    f32,
    f64,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.type import get_element_type_or_self

from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import arith, math
from xla_emitters.dialects.quick_op import operands_of
from xla_emitters.dtypes import DTYPES, FloatFormat, Specials, dtype
from xla_emitters.support.late_dataclass import dataclass

_F32 = dtype("f32").float_format
SIGN, FRACTION, BIAS = _F32.sign, _F32.fraction_bits, _F32.bias
INFINITY, QUIET_NAN = _F32.beyond, _F32.nan

FORMATS = {
    row.ir_type.name: row.float_format for row in DTYPES if row.is_narrow_float and row.bits == row.float_format.bits
}
"""The formats handled as integers, by their name in the IR: those that fill their storage."""
_CONVERTED = FORMATS | {row.ir_type.name: row.float_format for row in DTYPES if row.name == "f16"}
"""The formats that can be converted by integer code; f16 on CPUs without instructions for it."""


def is_narrow(value_type: Attribute) -> bool:
    """Whether `value_type` is one of the formats that are handled as integers."""
    return value_type.name in FORMATS


def compute_wider(op: Operation, is_widened: Callable[[Attribute], bool], wide: AnyFloat = f32) -> None:
    """Replaces `op` by the same op on f32, between conversions of the types that are widened. wide: of the result before it is rounded"""
    b = located_builder(InsertPoint.before(op), op)
    for number, operand in enumerate(op.operands):
        if is_widened(operand.type):
            op.operands[number] = b.insert(arith.ExtFOp(operand, f32)).result
    if len(op.results) == 1 and isinstance(own := op.results[0].type, AnyFloat) and is_widened(own):
        computed = Rewriter.replace_value_with_new_type(op.results[0], wide)
        rounded = arith.TruncFOp(computed, own)
        computed.replace_uses_with_if(rounded.result, lambda use: use.operation is not rounded)
        located_builder(InsertPoint.after(op), op).insert(rounded)


CONVERSIONS = (arith.ExtFOp, arith.TruncFOp)
MOVES = (arith.ConstantOp, arith.SelectOp, arith.BitcastOp)


def is_number_op(op: Operation) -> bool:
    """Whether `op` computes with narrow floats instead of only moving their bits."""
    if not _computes(type(op)):
        return False
    for value in (*operands_of(op), *op.results):
        value_type = value.type
        if value_type.name in FORMATS or (
            _has_elements(type(value_type)) and is_narrow(get_element_type_or_self(value_type))
        ):
            return True
    return False


@cache
def _computes(op_type: type[Operation]) -> bool:
    return op_type.name.startswith(("arith.", "math.")) and not issubclass(op_type, MOVES)


@cache
def _has_elements(value_type: type[Attribute]) -> bool:
    return issubclass(value_type, ContainerType)


def widen(b: Builder, x: SSAValue) -> SSAValue:
    """Converts a narrow float to f32; exact."""
    assert isinstance(x.type, AnyFloat)
    bits = Integers(b)
    code = b.insert(arith.ExtUIOp(b.insert(arith.BitcastOp(x, IntegerType(x.type.bitwidth))).result, i32)).result
    form = _CONVERTED[x.type.name]
    if not form.has_sign:
        value = bits.shift_left(code, FRACTION)
        value = bits.select("eq", code, 0, bits.constant(1 << FRACTION - 1), value)
        return bits.as_float(bits.select("eq", code, 255, bits.constant(QUIET_NAN), value))

    magnitude = bits.and_(code, form.sign - 1)
    shifted = bits.shift_left(magnitude, FRACTION - form.fraction_bits)
    normal = bits.add(shifted, BIAS - form.bias << FRACTION)
    with_one = bits.as_float(bits.or_(shifted, bits.constant(BIAS + 1 - form.bias << FRACTION)))
    one = b.insert(arith.ConstantOp(FloatAttr(2.0 ** (1 - form.bias), f32))).result
    subnormal = bits.of_float(b.insert(arith.SubfOp(with_one, one)).result)
    value = bits.select("ult", magnitude, 1 << form.fraction_bits, subnormal, normal)
    match form.specials:
        case Specials.IEEE:
            special = bits.or_(shifted, bits.constant(INFINITY))
            value = bits.select("ugt", magnitude, form.largest, special, value)
        case Specials.TOP_NAN:
            value = bits.select("eq", magnitude, form.nan, bits.constant(QUIET_NAN), value)
        case Specials.ZERO_NAN:
            value = bits.select("eq", code, form.nan, bits.constant(QUIET_NAN), value)
        case Specials.NONE:
            pass
    sign = bits.shift_left(bits.and_(code, form.sign), 32 - form.bits)
    return bits.as_float(bits.or_(value, sign))


def narrow(b: Builder, x: SSAValue, target: AnyFloat) -> SSAValue:
    """Rounds f32 or f64 once, to nearest even, to a narrow float."""
    bits = Integers(b)
    pattern = rounded_to_odd(b, x) if isinstance(x.type, Float64Type) else bits.of_float(x)
    magnitude = bits.and_(pattern, SIGN - 1)
    form = _CONVERTED[target.name]
    if not form.has_sign:
        value = _exponent(bits, pattern, magnitude)
    else:
        value = _rounded(bits, magnitude, form)
        sign = bits.and_(bits.shift_right(pattern, 32 - form.bits), form.sign)
        signed = bits.or_(value, sign)
        nan = bits.constant(form.nan)
        if form.specials is Specials.ZERO_NAN:
            signed = bits.select("eq", value, 0, value, signed)
        elif form.specials is Specials.NONE:
            nan = b.insert(arith.XOrIOp(sign, nan)).result
        value = bits.select("ugt", magnitude, INFINITY, nan, signed)
    code = b.insert(arith.TruncIOp(value, IntegerType(target.bitwidth))).result
    return b.insert(arith.BitcastOp(code, target)).result


def _rounded(bits: Integers, magnitude: SSAValue, form: FloatFormat) -> SSAValue:
    """The bits, without sign, of the f32 magnitude `magnitude` rounded to the format; undefined for NaN."""
    dropped = FRACTION - form.fraction_bits
    odd = bits.and_(bits.shift_right(magnitude, dropped), 1)
    raised = bits.add(bits.add(magnitude, (1 << dropped - 1) - 1 - (BIAS - form.bias << FRACTION)), odd)
    normal = bits.shift_right(raised, dropped)
    # 2^last is the last bit of a subnormal, and of a sum above 2^(last + FRACTION).
    last = 1 - form.bias - form.fraction_bits
    anchor = bits.b.insert(arith.ConstantOp(FloatAttr(2.0 ** (last + FRACTION), f32))).result
    total = bits.of_float(bits.b.insert(arith.AddfOp(bits.as_float(magnitude), anchor)).result)
    subnormal = bits.add(total, -(BIAS + last + FRACTION << FRACTION))
    value = bits.select("ult", magnitude, BIAS + 1 - form.bias << FRACTION, subnormal, normal)
    return bits.select("ugt", value, form.largest, bits.constant(form.beyond), value)


def _exponent(bits: Integers, pattern: SSAValue, magnitude: SSAValue) -> SSAValue:
    """f8E8M0FNU's pattern; its least value, 2^-127, is the only f32 subnormal that is neither rounded up to 2^-126 nor down to it."""
    half = 1 << FRACTION - 1
    value = bits.shift_right(bits.add(magnitude, half), FRACTION)
    value = bits.select("eq", magnitude, half, bits.constant(0), value)
    value = bits.select("ugt", value, 254, bits.constant(255), value)
    # Zero, negative or NaN: as unsigned numbers, all patterns except 0 < pattern <= infinity.
    return bits.select("ugt", bits.add(pattern, -1), INFINITY - 1, bits.constant(255), value)


def rounded_to_odd(b: Builder, x: SSAValue) -> SSAValue:
    """The bits of f64 as f32, rounded towards zero, with the last bit set if any bit was lost, so that no new ties arise.

    Source: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd" (2008).
    """
    bits = Integers(b)
    near = b.insert(arith.TruncFOp(x, f32)).result
    back = b.insert(arith.ExtFOp(near, f64)).result
    size, wanted = (b.insert(math.AbsFOp(value)).result for value in (back, x))
    too_large = b.insert(arith.ExtUIOp(b.insert(arith.CmpfOp(size, wanted, "ogt")).result, i32)).result
    lost = b.insert(arith.ExtUIOp(b.insert(arith.CmpfOp(back, x, "une")).result, i32)).result
    toward_zero = b.insert(arith.SubiOp(bits.of_float(near), too_large)).result
    return bits.or_(toward_zero, lost)


@dataclass(frozen=True)
class Integers:
    """Integer arithmetic by a builder, of i32 unless another type is given."""

    b: Builder
    kind: IntegerType = i32

    def constant(self, value: int) -> SSAValue:
        return self._insert(arith.ConstantOp(IntegerAttr(value, self.kind, truncate_bits=True)))

    def of_float(self, x: SSAValue) -> SSAValue:
        return self._insert(arith.BitcastOp(x, self.kind))

    def as_float(self, x: SSAValue) -> SSAValue:
        return self._insert(arith.BitcastOp(x, f32))

    def add(self, x: SSAValue, y: SSAValue | int) -> SSAValue:
        return self._insert(arith.AddiOp(x, self.constant(y) if isinstance(y, int) else y))

    def and_(self, x: SSAValue, mask: int) -> SSAValue:
        return self._insert(arith.AndIOp(x, self.constant(mask)))

    def or_(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self._insert(arith.OrIOp(x, y))

    def shift_left(self, x: SSAValue, places: int) -> SSAValue:
        return self._insert(arith.ShLIOp(x, self.constant(places)))

    def shift_right(self, x: SSAValue, places: int) -> SSAValue:
        return self._insert(arith.ShRUIOp(x, self.constant(places)))

    def select(self, predicate: str, x: SSAValue, y: int, then: SSAValue, otherwise: SSAValue) -> SSAValue:
        """then where `x predicate y`, else otherwise."""
        holds = self._insert(arith.CmpiOp(x, self.constant(y), predicate))
        return self._insert(arith.SelectOp(holds, then, otherwise))

    def _insert(self, op: Operation) -> SSAValue:
        return self.b.insert(op).results[0]
