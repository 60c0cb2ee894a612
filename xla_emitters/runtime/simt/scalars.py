"""How a value of a scalar IR type is held in lanes and in memory, wrapped and rounded.

    IR type     lanes (an array of values)            memory (one element)
    i1          bool                                  uint8, 0 or 1
    i2 .. i64   smallest signed int, sign extended    unsigned int of that size, upper bits 0
    i65 ..      Python ints                           -
    index, ptr  int64                                 uint64
    bf16        float32, already rounded              uint16
    f16, f8 ..  themselves (NumPy or ml_dtypes)       unsigned int of that size
    f32, f64    themselves                            uint32, uint64
    complex     complex64, complex128                 themselves

Every operation is bit-exact: integers wrap in their own width, a narrow float is computed in float32 and rounded after each
op. float32 has more than twice the digits of a narrow float plus two, so rounding twice equals rounding once for + - * / and
square root. bf16 is held as float32 because most of a kernel's values are bf16: then only the rounding takes time.
Integers have no sign of their own: an op uses the signed or the unsigned reading of its operands.

These functions depend on arrays and forms, never on an op. They take arrays of any shape and never write to their arguments.
Source: docs/reference/contracts "Numbers"; docs/reference/1 5.4; the LLVM language reference for what is undefined (see `shift_left`,
`to_integer`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ComplexType, IndexType, IntegerType, TensorType, VectorType
from xdsl.ir import Attribute

from xla_emitters.dialects.mlir.llvm import LLVMPointerType
from xla_emitters.dtypes import Array, DType, Kind, dtype_of
from xla_emitters.errors import Unsupported

BF16 = np.dtype(ml_dtypes.bfloat16)
F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)


class Class(Enum):
    """The kind of arithmetic of a form."""

    INTEGER = "integer"
    FLOAT = "float"
    COMPLEX = "complex"


@dataclass(frozen=True)
class Form:
    """How values of one scalar type are held.

    bits     width of the type
    lanes    NumPy type of an array of values
    memory   NumPy type of one element in memory; None when the type is not stored in memory
    rounded  NumPy type to whose values a float result is rounded
    """

    name: str
    kind: Class
    bits: int
    lanes: np.dtype[Any]
    memory: np.dtype[Any] | None
    rounded: np.dtype[Any]

    @property
    def is_integer(self) -> bool:
        return self.kind is Class.INTEGER

    @property
    def is_float(self) -> bool:
        return self.kind is Class.FLOAT

    @property
    def is_wide(self) -> bool:
        """Whether lanes are Python ints: more than 64 bits."""
        return self.bits > 64 and self.is_integer

    @property
    def size(self) -> int:
        """Bytes of one element in memory."""
        return self.storage.itemsize

    @property
    def storage(self) -> np.dtype[Any]:
        """`memory`. raises Unsupported naming the type where it is None."""
        if self.memory is None:
            raise Unsupported(f"the executor cannot store {self.name} in memory", stage="simt")
        return self.memory


def integer(bits: int, name: str = "") -> Form:
    """The form of a signless integer of `bits` bits."""
    name = name or f"i{bits}"
    if bits == 1:
        return Form(name, Class.INTEGER, 1, np.dtype(np.bool_), np.dtype(np.uint8), np.dtype(np.bool_))
    size = next((size for size in (8, 16, 32, 64) if bits <= size), None)
    if size is None:
        return Form(name, Class.INTEGER, bits, np.dtype(object), None, np.dtype(object))
    lanes = np.dtype(f"i{size // 8}")
    return Form(name, Class.INTEGER, bits, lanes, np.dtype(f"u{size // 8}"), lanes)


BOOL = integer(1)
INDEX = integer(64, "index")
POINTER = integer(64, "pointer")
"""A pointer is a number: see `memory`, which gives each buffer its own range of addresses."""


@cache
def form_of(ir_type: Attribute) -> Form:
    """The form of a scalar type, or of the elements of a vector or tensor type.

    raises Unsupported naming a type that the executor does not support.
    """
    match ir_type:
        case VectorType() | TensorType():
            return form_of(ir_type.element_type)
        case IntegerType():
            return integer(ir_type.width.data)
        case IndexType():
            return INDEX
        case LLVMPointerType():
            return POINTER
        case _:
            pass
    row = dtype_of(ir_type)
    if isinstance(ir_type, ComplexType):
        return Form(row.name, Class.COMPLEX, row.bits, row.numpy, row.numpy, row.numpy)
    if row.kind is not Kind.FLOAT:
        raise Unsupported(f"the executor does not support values of type '{ir_type}'", stage="simt")
    return float_form(row)


def float_form(row: DType) -> Form:
    """The form of a float type."""
    lanes = row.numpy
    return Form(row.name, Class.FLOAT, row.bits, F32 if lanes == BF16 else lanes, np.dtype(f"u{lanes.itemsize}"), lanes)


# ------------------------------------------------------------------------------------------ constants, bits


def constant(form: Form, value: complex) -> Array:
    """One value as lanes of shape (1, 1); integers wrap, floats round once."""
    if form.is_integer:
        modulus = 1 << form.bits
        number = int(value.real) % modulus
        if form.bits > 1 and number >= modulus // 2:
            number -= modulus
        return np.full((1, 1), number, dtype=form.lanes)
    if form.kind is Class.COMPLEX:
        return np.full((1, 1), value, dtype=form.lanes)
    return from_float(form, np.full((1, 1), value.real, dtype=F64))


def poison(form: Form) -> Array:
    """An undefined value: every byte is 0xA5, so that a use of it is noticed."""
    return from_bits(form, np.full((1, form.size), 0xA5, np.uint8).view(form.storage))


def to_bits(form: Form, values: Array) -> Array:
    """Lanes to memory elements."""
    if form.rounded == BF16:
        return (values.view(np.uint32) >> 16).astype(np.uint16)
    bits = values.view(form.storage)
    partial = form.bits < 8 * form.size and form.is_integer and form.bits > 1
    return bits & form.storage.type((1 << form.bits) - 1) if partial else bits


def from_bits(form: Form, bits: Array) -> Array:
    """Memory elements to lanes; bits above the type's width are ignored."""
    if form.rounded == BF16:
        return np.left_shift(bits, 16, dtype=np.uint32).view(F32)
    if form.bits == 1:
        return (bits & 1).astype(np.bool_)
    values = bits.view(form.lanes)
    return wrap(form, values) if form.is_integer else values


def reinterpret(source: Form, target: Form, values: Array) -> Array:
    """The same bits as lanes of another form of the same width."""
    return from_bits(target, to_bits(source, values).view(target.storage))


# ------------------------------------------------------------------------------------------ integers


def wrap(form: Form, values: Array) -> Array:
    """Integers of any width, modulo 2**bits, as lanes of `form`."""
    if form.bits == 1:
        return (values & 1).astype(np.bool_)
    if form.is_wide:
        half = 1 << (form.bits - 1)
        return ((values.astype(object) + half) & (2 * half - 1)) - half
    if values.dtype == object:
        values = values & 0xFFFF_FFFF_FFFF_FFFF
        values = values.astype(np.uint64)
    values = values.astype(form.lanes, copy=False)
    spare = 8 * form.lanes.itemsize - form.bits
    return (values << spare) >> spare if spare else values


def signed(form: Form, values: Array) -> Array:
    """The signed reading of lanes: i1 true is -1."""
    return -values.astype(np.int8) if form.bits == 1 else values


def unsigned(form: Form, values: Array) -> Array:
    """The unsigned reading of lanes."""
    if form.is_wide:
        return values & ((1 << form.bits) - 1)
    return to_bits(form, values)


def shift_amount(form: Form, amount: Array) -> Array:
    """An unsigned shift amount, clamped to the width, in a NumPy type that does not change the type of the shifted lanes."""
    return np.minimum(unsigned(form, amount), form.bits).astype(np.int8 if form.bits == 1 else form.lanes)


def shift_left(form: Form, value: Array, amount: Array) -> Array:
    """Shifting by the width or more is poison in LLVM, 0 here: HLO code selects it away."""
    return wrap(form, signed(form, value) << shift_amount(form, amount))


def shift_right_logical(form: Form, value: Array, amount: Array) -> Array:
    """As `shift_left`: 0 when shifted out."""
    bits = unsigned(form, value)
    return wrap(form, bits >> shift_amount(form, amount).astype(bits.dtype))


def shift_right_arithmetic(form: Form, value: Array, amount: Array) -> Array:
    """As `shift_left`: copies of the sign when shifted out."""
    return wrap(form, signed(form, value) >> shift_amount(form, amount))


def truncated_quotient(dividend: Array, divisor: Array) -> Array:
    """Division of integers that rounds to zero. `divisor` is not 0, and not -1 where `dividend` is the least number."""
    return (dividend - truncated_remainder(dividend, divisor)) // divisor


def truncated_remainder(dividend: Array, divisor: Array) -> Array:
    """The remainder with the dividend's sign; same conditions as `truncated_quotient`."""
    if dividend.dtype == object:
        floored = dividend % divisor
        return np.where((floored != 0) & ((dividend < 0) != (divisor < 0)), floored - divisor, floored)
    return np.fmod(dividend, divisor)


def absolute(form: Form, value: Array) -> Array:
    """The magnitude of the signed reading; the least integer is unchanged."""
    return wrap(form, np.abs(signed(form, value)))


def leading_zeros(form: Form, value: Array) -> Array:
    """Zeros above the highest set bit; the width for 0."""
    bits = unsigned(form, value)
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < form.bits:
            bits = bits | (bits >> shift)
    return wrap(form, form.bits - np.bitwise_count(bits).astype(np.int16))


def trailing_zeros(form: Form, value: Array) -> Array:
    """Zeros below the lowest set bit; the width for 0."""
    bits = unsigned(form, value)
    below = ~bits & (bits - bits.dtype.type(1))
    return wrap(form, np.minimum(np.bitwise_count(below), form.bits).astype(np.int16))


def population_count(form: Form, value: Array) -> Array:
    """Set bits."""
    return wrap(form, np.bitwise_count(unsigned(form, value)).astype(np.int16))


def integer_power(form: Form, base: Array, exponent: Array) -> Array:
    """base**exponent, wrapping; a negative exponent rounds 1/base**n to zero: 0 unless base is 1 or -1, also for base 0."""
    result, square = np.ones_like(base), base
    left = unsigned(form, exponent)
    while left.any():
        result = np.where(left & 1 != 0, wrap(form, result * square), result)
        square = wrap(form, square * square)
        left = left >> 1
    inverse = np.where(base == 1, 1, np.where(base == -1, np.where(exponent & 1 != 0, -1, 1), 0))
    return np.where(exponent < 0, inverse, result).astype(form.lanes)


# ------------------------------------------------------------------------------------------ floats


def widen(form: Form, values: Array) -> Array:
    """A float's lanes in the type that arithmetic uses: float32, or float64 for f64. Exact."""
    return values if form.lanes in (F32, F64) else values.astype(F32)


def narrow(form: Form, values: Array) -> Array:
    """float32 (float64 for f64) rounded once, to nearest even, to lanes of `form`."""
    if form.rounded == BF16:
        return values.astype(BF16).astype(F32)
    return values.astype(form.lanes, copy=False)


def from_float(form: Form, values: Array) -> Array:
    """float32 or float64 rounded once to lanes of `form`."""
    if values.dtype == F64 and form.rounded not in (F32, F64):
        values = round_to_odd(values)
    return narrow(form, values)


def round_to_odd(values: Array) -> Array:
    """float64 to float32 so that rounding the result again, to at most 22 digits, equals rounding once.

    An inexact result gets its last bit set: it is then on the same side of every tie as the exact value.
    Source: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd" (2008).
    """
    nearest = values.astype(F32)
    back = nearest.astype(F64)
    bits = nearest.view(np.uint32).copy()
    bits -= (np.abs(back) > np.abs(values)).astype(np.uint32)
    bits |= ((back != values) & ~np.isnan(values)).astype(np.uint32)
    return bits.view(F32)


def in_float(form: Form, function: Callable[..., Array]) -> Callable[..., Array]:
    """`function` of float32 (float64) arrays as a function of lanes of `form`, rounded once."""
    if form.lanes in (F32, F64):
        if form.rounded != BF16:
            return function
        return lambda *operands: function(*operands).astype(BF16).astype(F32)
    return lambda *operands: function(*(operand.astype(F32) for operand in operands)).astype(form.lanes)


def exact(form: Form, function: Callable[..., Array]) -> Callable[..., Array]:
    """As `in_float`, for a function whose result is an operand or its negative: bf16 lanes need no rounding."""
    return function if form.lanes in (F32, F64) else in_float(form, function)


def convert_float(source: Form, target: Form, values: Array) -> Array:
    """One float type to another, rounded once."""
    return from_float(target, widen(source, values))


def convert_float_towards(source: Form, target: Form, mode: str, values: Array) -> Array:
    """One float type to a narrower one, rounded once in the direction that `mode` names.

    mode    "downward", "upward", "toward_zero" or "to_nearest_away"
    raises  Unsupported for a target without IEEE's layout, in which the next number is the next bit pattern
    """
    if target.rounded not in (BF16, F32, np.dtype(np.float16)):
        raise Unsupported(f"the executor does not round {mode} to {target.name}", stage="simt")
    exact = widen(source, values)
    nearest = from_float(target, exact)
    exact, near = exact.astype(F64), widen(target, nearest).astype(F64)
    below, above = exact < near, exact > near
    negative = np.signbit(near)
    match mode:
        case "downward":
            steps = np.where(below, np.where(negative, 1, -1), 0)
        case "upward":
            steps = np.where(above, np.where(negative, -1, 1), 0)
        case "toward_zero":
            steps = np.where(np.where(negative, above, below), -1, 0)
        case "to_nearest_away":
            # Ties that were rounded to the even neighbour towards zero.
            shorter = np.where(negative, below, above)
            further = widen(target, _stepped(target, nearest, shorter.astype(np.int8))).astype(F64)
            steps = np.where(shorter & (np.abs(further - exact) == np.abs(exact - near)), 1, 0)
        case _:
            raise Unsupported(f"the executor does not round {mode}", stage="simt")
    return _stepped(target, nearest, steps)


def _stepped(form: Form, values: Array, steps: Array) -> Array:
    """The number that is `steps` bit patterns further away from zero."""
    bits = to_bits(form, values)
    return from_bits(form, (bits.astype(np.int64) + steps).astype(bits.dtype))


def from_integer(form: Form, values: Array) -> Array:
    """Integers of any type to lanes of a float form, rounded once."""
    if values.dtype == np.bool_ or values.dtype.itemsize <= 4:
        return from_float(form, values.astype(F64))
    if form.rounded == F64 or (form.rounded == F32 and values.dtype != object):
        return values.astype(form.lanes)
    # The digits that float64 cannot hold are merged into a sticky last one; scaling back is exact.
    fold = 12 if values.dtype != object else max(12, int(max(abs(values).flat)).bit_length() - 52)
    sticky = (values >> fold) | ((values & ((1 << fold) - 1)) != 0).astype(values.dtype)
    folded = np.ldexp(sticky.astype(F64), fold)
    small = abs(values) < 1 << 52
    return from_float(form, np.where(small, np.where(small, values, 0).astype(F64), folded))


def to_integer(form: Form, values: Array, is_signed: bool) -> Array:
    """float32 or float64 rounded to zero to an integer.

    A result out of range is poison in LLVM. Here it saturates and NaN gives 0, as in PTX's cvt.rzi; HLO code selects it away.
    """
    bits = form.bits - 1 if is_signed else form.bits
    low, high = (-(1 << bits) if is_signed else 0), (1 << bits) - 1
    whole = np.trunc(values.astype(F64))
    fits = (whole >= low) & (whole <= high) & (whole < float(1 << bits))
    inside = np.where(fits, whole, 0.0)
    if form.bits > 64:
        exact = np.array([int(number) for number in inside.flat], dtype=object).reshape(inside.shape)
    else:
        exact = inside.astype(np.int64 if is_signed else np.uint64)
    limits = np.concatenate([constant(form, number)[0] for number in (low, high, 0)])
    limit = limits[np.where(np.isnan(values), 2, np.where(values > 0, 1, 0))]
    return np.where(fits, wrap(form, exact), limit)


def maximum(one: Array, other: Array) -> Array:
    """The greater; NaN when either is, and +0 is greater than -0 (IEEE 754-2019 maximum)."""
    return np.where((one == 0) & (other == 0), one + other, np.maximum(one, other))


def minimum(one: Array, other: Array) -> Array:
    """The less; NaN when either is, and -0 is less than +0 (IEEE 754-2019 minimum)."""
    return np.where((one == 0) & (other == 0), -(-one + -other), np.minimum(one, other))


SMALLEST_NORMAL = 2.0**-126
"""Of float32."""


def fused_multiply_add(form: Form, one: Array, two: Array, three: Array) -> Array:
    """one * two + three of lanes of a float form, rounded once.

    The product of two float32 is exact in float64. Rounding the sum to float64 and then to `form` is wrong only where the first rounding
    gives a tie of the second, which has 25 digits, or fewer: those sums are rounded to odd instead. The product of two f64 is held as a
    sum of two (Dekker); a result whose intermediates overflow, or whose lost digits underflow, is rounded twice.

    Source: Boldo and Melquiond (2008), algorithms "Fma" and "OddRoundedAdd".
    """
    if form.lanes == F64:
        high, low = _two_product(one, two)
        upper, lost_of_three = two_sum(three, low)
        total, lost_of_high = two_sum(high, upper)
        exact = total + _odd(*two_sum(lost_of_three, lost_of_high))
        return np.where(np.isfinite(exact), exact, one * two + three)
    operands = [widen(form, operand) for operand in (one, two, three)]
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    found = np.empty(shape, form.lanes)
    # By rows, so that what is between stays in the processor's cache.
    step = max(1, _FUSED_AT_ONCE * shape[0] // found.size) if found.size else 1
    for start in range(0, shape[0], step):
        rows = slice(start, start + step)
        found[rows] = _fused_rows(form, *(x if x.shape[0] == 1 else x[rows] for x in operands))
    return found


_FUSED_AT_ONCE = 1 << 14
"""Numbers: 128 KiB in float64."""


def _fused_rows(form: Form, one: Array, two: Array, three: Array) -> Array:
    """As `fused_multiply_add`, of float32 arrays, in float64."""
    product = np.multiply(one, two, dtype=F64)
    total = product + three
    found, bits = from_float(form, total), total.view(np.int64)
    if form.rounded == F32:
        ties = bits & (1 << 29) - 1 == 1 << 28
        if not np.abs(found).min() > SMALLEST_NORMAL:  # a denormal float32 has fewer digits; NaN hides them
            ties |= (np.abs(total) < SMALLEST_NORMAL) & (bits & (1 << 28) - 1 == 0)
    else:
        ties = bits & (1 << 28) - 1 == 0
    places = np.flatnonzero(ties)
    if places.size:  # few, and most of them are exact sums of short numbers
        nearest, error = two_sum(*(_at(places, total.shape, x.astype(F64, copy=False)) for x in (product, three)))
        if error.any():
            found.flat[places] = from_float(form, _odd(nearest, error))
    return found


def _at(places: Array, shape: tuple[int, ...], values: Array) -> Array:
    """The values at some places of the flat array of that shape, or the one value."""
    flat = values.reshape(-1)
    if values.size == 1:
        return flat
    return flat[places] if values.shape == shape else np.broadcast_to(values, shape)[np.unravel_index(places, shape)]


def two_sum(one: Array, other: Array) -> tuple[Array, Array]:
    """The rounded sum and its exact rounding error (0 where the sum is not finite)."""
    total = one + other
    part = total - one
    error = (one - (total - part)) + (other - part)
    return total, np.where(np.isfinite(total), error, 0.0)


def _odd(total: Array, error: Array) -> Array:
    """`total` rounded to odd instead of to nearest, given the exact error of rounding to nearest."""
    bits = total.view(np.int64)
    even = bits & 1 == 0
    away = (error > 0) == (total > 0)
    return np.where((error != 0) & even, np.where(away, bits + 1, bits - 1), bits).view(F64)


def _two_product(one: Array, two: Array) -> tuple[Array, Array]:
    """The rounded product and its exact rounding error, by splitting each factor in two halves of 26 digits."""

    def split(value: Array) -> tuple[Array, Array]:
        scaled = value * 134217729.0
        upper = scaled - (scaled - value)
        return upper, value - upper

    product = one * two
    (a, b), (c, d) = split(one), split(two)
    return product, ((a * c - product) + a * d + b * c) + b * d


_MANY_LANES = 1 << 12


def chosen(lanes: Array, new: Array, old: Array) -> Array:
    """`new` in `lanes` and `old` elsewhere.

    Many numbers of 32 bits are chosen by arithmetic: `np.where` branches, and takes four times as long where lanes follow no pattern.
    """
    is_simple = lanes.dtype == np.bool_ and new.dtype == old.dtype and new.dtype.itemsize == 4
    if (
        not is_simple
        or lanes.size < _MANY_LANES
        or np.broadcast_shapes(lanes.shape, new.shape, old.shape) != lanes.shape
    ):
        return np.where(lanes, new, old)
    bits, one, other = lanes.astype(np.int32), new.view(np.int32), old.view(np.int32)
    bits *= one ^ other
    bits ^= other
    return bits.view(new.dtype)
