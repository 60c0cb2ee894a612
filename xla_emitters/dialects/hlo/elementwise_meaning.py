"""Meaning in NumPy of elementwise HLO ops for which no single NumPy function is enough.

Every function takes the deciding HLO type (the first operand's) and the operands, widened to a type that NumPy computes in
(`convert.widen`: bf16 to float32, s4 to int8); the caller rounds or wraps the result to the result's type, once.

    divide  s32  7 / 0 = -1        -2^31 / -1 = -2^31       remainder  7 % 0 = 7      -2^31 % -1 = 0
    shift        by the width or more gives 0, or the sign  power      2^-1 = 0       (-1)^-3 = -1
    maximum      NaN if either is;  max(-0, +0) = +0        sign       sign(-0) = -0  sign(NaN) = NaN

Source: docs/reference/1 5.3 "Exact semantics of the non-trivial ones"; where XLA's emitter departs from HLO's own definition (integer power
with more than six exponent bits, sign of unsigned), HLO's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from xla_emitters.dialects.hlo import complex_meaning
from xla_emitters.dialects.hlo.convert import wrap
from xla_emitters.dtypes import Array, DType, FloatFormat, Kind
from xla_emitters.support.late_dataclass import dataclass

Meaning: TypeAlias = Callable[..., Array]
"""(deciding type, operands...) -> result, in NumPy's own types."""


@dataclass(frozen=True)
class numpy:
    """A NumPy function that is right for every type as it is."""

    function: Callable[..., Any]

    def __call__(self, _: DType, *operands: Array) -> Array:
        return np.asarray(self.function(*operands))


def ufunc_of(meaning: Meaning, dt: DType) -> np.ufunc | None:
    """The NumPy function that alone computes a meaning for a real deciding type and operands of NumPy's types; None if there is none."""
    if dt.kind is Kind.COMPLEX:
        return None
    if isinstance(meaning, numpy):
        return meaning.function if isinstance(meaning.function, np.ufunc) else None
    if meaning is divide and not dt.is_integer:
        return np.divide
    return np.multiply if meaning is multiply else None


def pattern(x: Array, dt: DType) -> Array:
    """The bits of integers as unsigned integers of at least eight bits, with zeros above the type's width."""
    unsigned = x.view(np.dtype(f"u{x.dtype.itemsize}"))
    bits = dt.significant_bits
    return unsigned if bits == x.dtype.itemsize * 8 else unsigned & unsigned.dtype.type((1 << bits) - 1)


# ------------------------------------------------------------------------------------------- division and power


def _safe_divisor(dt: DType, x: Array, y: Array) -> Array:
    """`y` with 1 wherever dividing by it is not defined: 0, and -1 under the lowest value."""
    bad = y == 0
    if dt.kind is Kind.SIGNED:
        bad |= (y == -1) & (x == -(1 << dt.significant_bits - 1))
    return np.where(bad, y.dtype.type(1), y)


def multiply(dt: DType, x: Array, y: Array) -> Array:
    """Complex numbers in their own type, by parts."""
    if dt.kind is not Kind.COMPLEX:
        return np.asarray(np.multiply(x, y))
    return complex_meaning.product(x.astype(dt.numpy), y.astype(dt.numpy))


def divide(dt: DType, x: Array, y: Array) -> Array:
    if dt.kind is Kind.COMPLEX:
        return complex_meaning.quotient(x, y)
    if not dt.is_integer:
        return np.asarray(np.divide(x, y))
    safe = _safe_divisor(dt, x, y)
    quotient = (x - np.fmod(x, safe)) // safe
    return np.where(y == 0, ~np.zeros_like(x), quotient)


def remainder(dt: DType, x: Array, y: Array) -> Array:
    """Truncating: the sign is the dividend's."""
    if not dt.is_integer:
        return np.asarray(np.fmod(x, y))
    return np.where(y == 0, x, np.fmod(x, _safe_divisor(dt, x, y)))


def power(dt: DType, x: Array, y: Array) -> Array:
    """For integers modulo 2^bits, by squaring; a negative exponent gives 0 but for the bases 1 and -1."""
    if dt.kind is Kind.COMPLEX:
        return complex_meaning.power(x, y)
    if not dt.is_integer:
        return np.asarray(np.power(x, y))
    exponent = pattern(y, dt)
    result, square = np.ones_like(x), x
    for bit in range(dt.significant_bits):
        result = np.where((exponent >> exponent.dtype.type(bit)) & 1 != 0, wrap(result * square, dt), result)
        square = wrap(square * square, dt)
    if dt.kind is Kind.UNSIGNED:
        return result
    ones, zeros = np.ones_like(x), np.zeros_like(x)
    inverse = np.where(x == 1, ones, np.where(x == -1, np.where(y % 2 == 0, ones, -ones), zeros))
    return np.where(y >= 0, result, inverse)


def multiply_high(dt: DType, x: Array, y: Array) -> Array:
    """The upper half of the product."""
    bits = dt.significant_bits
    if bits < 64:
        wide = np.int64 if dt.kind is Kind.SIGNED else np.uint64
        return (x.astype(wide) * y.astype(wide)) >> wide(bits)
    # Python's integers hold the product; for 0-d arrays NumPy returns plain ones.
    return np.asarray(x.astype(object) * y.astype(object) >> bits, object).astype(x.dtype)


# ------------------------------------------------------------------------------------------- bits


def shift_left(dt: DType, x: Array, y: Array) -> Array:
    amount, bits = pattern(y, dt), dt.significant_bits
    return np.where(amount < bits, (pattern(x, dt) << _below(amount, bits)).astype(x.dtype), x.dtype.type(0))


def shift_right_logical(dt: DType, x: Array, y: Array) -> Array:
    amount, bits = pattern(y, dt), dt.significant_bits
    return np.where(amount < bits, (pattern(x, dt) >> _below(amount, bits)).astype(x.dtype), x.dtype.type(0))


def shift_right_arithmetic(dt: DType, x: Array, y: Array) -> Array:
    """The top bit is shifted in, for unsigned types too, so shifting by the width or more leaves only copies of it."""
    amount, bits = pattern(y, dt), dt.significant_bits
    signed = x.view(np.dtype(f"i{x.dtype.itemsize}"))
    spare = signed.dtype.type(x.dtype.itemsize * 8 - bits)
    extended = (signed << spare) >> spare
    return (extended >> _below(amount, bits).astype(signed.dtype)).astype(x.dtype)


def _below(amount: Array, bits: int) -> Array:
    return np.minimum(amount, amount.dtype.type(bits - 1))


def population_count(dt: DType, x: Array) -> Array:
    return np.bitwise_count(pattern(x, dt)).astype(x.dtype)


def count_leading_zeros(dt: DType, x: Array) -> Array:
    bits = pattern(x, dt).astype(np.uint64)
    # frexp's exponent is the bit length; 32 bits at a time are exact in float64.
    high, low = (np.frexp(half.astype(np.float64))[1] for half in (bits >> np.uint64(32), bits & np.uint64(2**32 - 1)))
    return (dt.significant_bits - np.where(high > 0, high + 32, low)).astype(x.dtype)


# ------------------------------------------------------------------------------------------- order and sign


def maximum(dt: DType, x: Array, y: Array) -> Array:
    if dt.kind is Kind.COMPLEX:
        return np.where(complex_meaning.stands(np.greater, np.greater_equal, x, y), x, y)
    largest = np.asarray(np.maximum(x, y))
    # NumPy takes either of two equal zeros; adding them keeps -0 only if both are.
    return np.where((x == 0) & (y == 0), x + y, largest) if dt.kind is Kind.FLOAT else largest


def minimum(dt: DType, x: Array, y: Array) -> Array:
    if dt.kind is Kind.COMPLEX:
        return np.where(complex_meaning.stands(np.less, np.less_equal, x, y), x, y)
    smallest = np.asarray(np.minimum(x, y))
    return np.where((x == 0) & (y == 0), -(-x - y), smallest) if dt.kind is Kind.FLOAT else smallest


def clamp(dt: DType, lowest: Array, x: Array, highest: Array) -> Array:
    return minimum(dt, maximum(dt, lowest, x), highest)


def sign(dt: DType, x: Array) -> Array:
    if dt.kind is Kind.FLOAT:
        return np.where((x == 0) | np.isnan(x), x, np.copysign(x.dtype.type(1), x))
    return complex_meaning.sign(x).astype(x.dtype) if dt.kind is Kind.COMPLEX else np.asarray(np.sign(x))


def total_order(x: Array) -> Array:
    """Floats as integers in IEEE's total order: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN."""
    bits = x.view(np.dtype(f"i{x.dtype.itemsize}"))
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


# ------------------------------------------------------------------------------------------- functions


def error_function(_: DType, x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def reciprocal_sqrt(dt: DType, x: Array) -> Array:
    if dt.kind is Kind.COMPLEX:
        return complex_meaning.reciprocal_sqrt(x)
    return np.asarray(x.dtype.type(1) / np.sqrt(x))


def exp_minus_one(dt: DType, x: Array) -> Array:
    return complex_meaning.exp_minus_one(x) if dt.kind is Kind.COMPLEX else np.asarray(np.expm1(x))


def log_plus_one(dt: DType, x: Array) -> Array:
    return complex_meaning.log_plus_one(x) if dt.kind is Kind.COMPLEX else np.asarray(np.log1p(x))


def arc_tangent_of_quotient(dt: DType, y: Array, x: Array) -> Array:
    if dt.kind is Kind.COMPLEX:
        return complex_meaning.arc_tangent_of_quotient(y, x)
    return np.asarray(np.arctan2(y, x))


def logistic(dt: DType, x: Array) -> Array:
    one = x.dtype.type(1)
    return divide(dt, np.asarray(one), one + np.exp(-x))


def round_half_away(_: DType, x: Array) -> Array:
    whole = np.trunc(x)
    return whole + np.copysign(np.abs(x - whole) >= 0.5, x).astype(x.dtype)


def reduce_precision(x: Array, dt: DType, exponent_bits: int, mantissa_bits: int) -> Array:
    """`x`, an array of the float type `dt` itself, rounded to fewer exponent and mantissa bits.

    Rounds the mantissa to nearest even; then magnitudes beyond the smaller exponent range become infinity, those below its
    smallest normal number zero, with their sign, both as `convert` represents them in `dt`. NaN stays NaN. Where the range is as large as
    that of `dt`, subnormal numbers stay.
    """
    form = dt.float_format
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    one, bits = unsigned.type(1), x.view(unsigned)
    negative: Array = bits & unsigned.type(form.sign)
    rounded: Array = bits ^ negative
    if mantissa_bits < form.fraction_bits:
        dropped = unsigned.type(form.fraction_bits - mantissa_bits)
        odd = ((rounded >> dropped) & one) ^ unsigned.type(last_bit_of_even(form, mantissa_bits))
        half = (one << (dropped - one)) - one
        rounded = (rounded + half + odd) & ~((one << dropped) - one)
    lowest, highest = range_kept(form, exponent_bits)
    small, large = rounded < lowest, rounded >= highest
    rounded = np.where(small, unsigned.type(form.below), np.where(large, unsigned.type(form.beyond), rounded))
    if not form.has_minus_zero:
        negative = np.where(rounded == 0, unsigned.type(0), negative)
    return np.where(np.isnan(x), bits, rounded | negative).view(x.dtype)


def carries_beyond(form: FloatFormat) -> bool:
    """Whether rounding up the largest value at any bit gives the pattern of infinity or NaN."""
    return form.beyond == form.largest + 1 and form.beyond % (1 << form.fraction_bits) == 0


def last_bit_of_even(form: FloatFormat, mantissa_bits: int) -> int:
    """The last bit of an even number with `mantissa_bits` bits. Without mantissa bits it is the exponent's last; IEEE's biases are odd."""
    return 1 if mantissa_bits == 0 and form.bias % 2 == 0 else 0


def range_kept(form: FloatFormat, exponent_bits: int) -> tuple[int, int]:
    """For a float with `exponent_bits` bits: its smallest normal number (0 if `form` has none below it), and the first number too large."""
    kept = (1 << exponent_bits - 1) - 1
    lowest, highest = form.bias - kept + 1, form.bias + kept + 1
    return lowest << form.fraction_bits if lowest > 1 else 0, min(highest << form.fraction_bits, form.largest + 1)
