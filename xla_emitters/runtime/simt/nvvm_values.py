"""The NumPy values of PTX instructions that the llvm dialect has no op for: calls of the intrinsic `llvm.nvvm.<mnemonic>`.

    llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"(%x) : (f32) -> f32           2 to the power of x, rounded once
    llvm.call_intrinsic "llvm.nvvm.fma.rm.f32"(%a, %b, %c) ...                  rounded down, once
    llvm.call_intrinsic "llvm.nvvm.prmt.b32"(%a, %b, %selector) ...             bytes of two words

One row a mnemonic: its stem -> a function of the rest of the name that returns the function of lanes. Approximations are computed right:
in float64, rounded once; what hardware may differ by is the ISA's stated error. Source: PTX ISA 8.8, chapter 9.7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, partial

import numpy as np

from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import Unsupported, UsageError
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.arith_rules import FLOAT_OPS
from xla_emitters.runtime.simt.code import Binary, Kernel, Unary
from xla_emitters.runtime.simt.scalars import F32, F64, Form, integer, signed, unsigned, wrap

ROWS: dict[str, Callable[[Sequence[str]], Kernel]] = {}
"""Stem -> (the rest of the mnemonic at its dots) -> the function of lanes."""

MODES = {"rz": "toward_zero", "rm": "downward", "rp": "upward", "rna": "to_nearest_away"}
WORD = integer(32)


def row(*stems: str) -> Callable[[Callable[[Sequence[str]], Kernel]], Callable[[Sequence[str]], Kernel]]:
    def register(make: Callable[[Sequence[str]], Kernel]) -> Callable[[Sequence[str]], Kernel]:
        ROWS.update(dict.fromkeys(stems, make))
        return make

    return register


def lanes(*stems: str) -> Callable[[Kernel], Kernel]:
    """A row's function of lanes itself, with the rest of the name, which ends with a type, in front."""

    def register(function: Kernel) -> Kernel:
        return row(*stems)(lambda rest: partial(function, rest) if form(rest[-1]) else function)

    return register


@cache
def value_of(name: str) -> Kernel | None:
    """The function of an intrinsic without its `llvm.nvvm.`; None if there is no row for it."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        if (make := ROWS.get(".".join(parts[:count]))) is not None:
            try:
                return make(parts[count:])
            except (UsageError, Unsupported, ValueError, KeyError, IndexError):
                return None  # a name of LLVM's own, such as ex2.approx.f, or parts that the row does not know
    return None


@cache
def form(word: str) -> Form:
    """The form of PTX's scalar type."""
    return scalars.float_form(dtype(word)) if word[:2] == "bf" or word[0] == "f" else integer(int(word[1:]))


def reading(word: str) -> Callable[[Form, Array], Array]:
    """How an integer type reads bits."""
    return signed if word[0] == "s" else unsigned


# ---------------------------------------------------------------------------------------------- floats: flushing, saturating, extrema


@row("ftz")
def ftz(rest: Sequence[str]) -> Unary:
    """A denormal number becomes zero, its sign stays."""
    of = form(rest[0])
    least = of.lanes.type(dtype(rest[0]).float_format.smallest_normal)

    def flushed(x: Array) -> Array:
        denormal = np.abs(x) < least
        return np.where(denormal, np.copysign(of.lanes.type(0), x), x) if denormal.any() else x

    return flushed


@row("saturate")
def saturate(rest: Sequence[str]) -> Unary:
    """Into [0, 1]; NaN gives +0."""
    of = form(rest[0])
    zero, one = of.lanes.type(0), of.lanes.type(1)
    return lambda x: np.where(x > zero, np.minimum(x, one), zero)


@row("satfinite")
def satfinite(rest: Sequence[str]) -> Unary:
    """Infinities become the largest numbers of their sign; NaN stays."""
    is_tf32 = rest[0] == "tf32"
    of = form("f32" if is_tf32 else rest[0])
    most = of.lanes.type(_LARGEST_TF32 if is_tf32 else dtype(rest[0]).float_format.max)
    return lambda x: np.where(x > most, most, np.where(x < -most, -most, x))


_LARGEST_TF32 = np.array(0x7F7FE000, np.uint32).view(F32)


@row("relu")
def relu(rest: Sequence[str]) -> Unary:
    """Not below 0; NaN stays."""
    of = form(rest[0])
    zero = of.lanes.type(0)
    return lambda x: np.where(x < zero, zero, x)


def _extremum(is_max: bool, rest: Sequence[str]) -> Kernel:
    """-0 is less than +0; a NaN loses, but with `NaN` it wins; `abs`: of magnitudes, `xorsign`: with the product's sign."""
    pick = scalars.maximum if is_max else scalars.minimum

    def run(one: Array, other: Array) -> Array:
        if "abs" in rest:
            sign = np.signbit(one) ^ np.signbit(other)
            found = chosen(np.abs(one), np.abs(other))
            return np.copysign(found, np.where(sign, -1, 1).astype(one.dtype)) if "xorsign" in rest else found
        return chosen(one, other)

    def chosen(one: Array, other: Array) -> Array:
        if "NaN" in rest:
            return pick(one, other)
        return pick(np.where(np.isnan(one), other, one), np.where(np.isnan(other), one, other))

    return run


ROWS["min"], ROWS["max"] = partial(_extremum, False), partial(_extremum, True)


# ---------------------------------------------------------------------------------------------- floats: directed rounding


def _towards(of: Form, mode: str, high: Array, low: Array) -> Array:
    """The sum of two float64, of which the second is less than half a digit of the first, rounded in a direction to f32."""
    nearest = high.astype(F32)
    difference = np.where(high == nearest, low, high - nearest.astype(F64))
    return _step(of, MODES[mode], nearest, difference)


def _step(of: Form, mode: str, nearest: Array, difference: Array) -> Array:
    """The neighbour of a rounded number in the direction of `mode`; `difference` is the exact number less the rounded one."""
    match mode:
        case "downward":
            target, moves = -np.inf, difference < 0
        case "upward":
            target, moves = np.inf, difference > 0
        case _:
            target, moves = 0, (difference < 0) & (nearest > 0) | (difference > 0) & (nearest < 0)
    return scalars.chosen(moves, np.nextafter(nearest, of.lanes.type(target)), nearest)


def _zero_sum(mode: str, total: Array, *signs: Array) -> Array:
    """A sum that is exactly zero is -0 when rounded down, unless both summands are +0."""
    if mode != "rm":
        return total
    positive = np.logical_and.reduce(np.broadcast_arrays(*(~np.signbit(term) for term in signs)))
    return np.where((total == 0) & ~positive, -np.abs(total), total)


def _sum_of(is_difference: bool, rest: Sequence[str]) -> Binary:
    mode, word = rest
    of = form(word)

    def run(one: Array, other: Array) -> Array:
        if is_difference:
            other = -other
        if of.lanes == F32:
            high, low = scalars.two_sum(one.astype(F64), other.astype(F64))
            found = _towards(of, mode, high, low)
        else:
            high, low = scalars.two_sum(one, other)
            found = _step(of, MODES[mode], high, np.where(np.isfinite(high), low, -high))
        found = np.where(np.isfinite(one) & np.isfinite(other), found, one + other)
        return _zero_sum(mode, found, one, other)

    return run


ROWS["add"], ROWS["sub"] = partial(_sum_of, False), partial(_sum_of, True)


def _exactly(apart: Callable[..., Fraction], of: Form, mode: str, nearest: Callable[..., Array]) -> Kernel:
    """A function of float64 rounded in a direction, by exact fractions; slow, and rare.

    apart    (the rounded number, the operands) -> a fraction with the sign of the exact number less the rounded one
    nearest  (the operands) -> the rounded number; an infinite one of finite operands has overflowed
    """

    def run(*operands: Array) -> Array:
        lanes = np.broadcast_arrays(*operands)
        rounded = np.broadcast_to(nearest(*operands), lanes[0].shape)
        difference = np.zeros(rounded.shape)
        finite = np.logical_and.reduce([np.isfinite(lane) for lane in lanes])
        difference = np.where(finite & np.isinf(rounded), -rounded, difference)
        for place in zip(*np.nonzero(finite & np.isfinite(rounded)), strict=True):
            found = apart(*(Fraction(float(lane[place])) for lane in (rounded, *lanes)))
            difference[place] = (found > 0) - (found < 0)
        return _step(of, MODES[mode], rounded, difference)

    return run


def _product_apart(rounded: Fraction, a: Fraction, b: Fraction, c: Fraction = Fraction(0)) -> Fraction:
    return a * b + c - rounded


def _square_apart(rounded: Fraction, a: Fraction) -> Fraction:
    return a - rounded * rounded


def _quotient_apart(rounded: Fraction, a: Fraction, b: Fraction) -> Fraction:
    return a / b - rounded


@row("mul")
def mul(rest: Sequence[str]) -> Binary:
    mode, word = rest
    of = form(word)
    if of.lanes != F32:
        return _exactly(_product_apart, of, mode, np.multiply)

    def run(a: Array, b: Array) -> Array:
        exact = a.astype(F64) * b.astype(F64)
        return np.where(np.isfinite(exact), _towards(of, mode, exact, np.zeros_like(exact)), exact.astype(F32))

    return run


@row("fma")
def fma(rest: Sequence[str]) -> Kernel:
    mode, word = rest
    of = form(word)
    fused = partial(scalars.fused_multiply_add, of)
    if of.lanes != F32:
        return _exactly(_product_apart, of, mode, fused)

    def run(a: Array, b: Array, c: Array) -> Array:
        product, addend = a.astype(F64) * b.astype(F64), c.astype(F64)
        high, low = scalars.two_sum(product, addend)
        found = np.where(np.isfinite(high), _towards(of, mode, high, low), high.astype(F32))
        return _zero_sum(mode, found, product, addend)

    return run


# ---------------------------------------------------------------------------------------------- floats: functions

_FUNCTIONS: dict[str, Unary] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "rcp": lambda x: 1.0 / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
}


def _function(name: str, rest: Sequence[str]) -> Unary:
    mode, *flushes, word = rest
    of, compute = form(word), _FUNCTIONS[name]
    if mode != "approx":
        return _directed_root(name, mode, of)
    if flushes:
        return partial(_upper_word, compute)
    # Once in float64, rounded once: the hardware's error is the ISA's bound.
    return lambda x: scalars.from_float(of, compute(np.ascontiguousarray(x).astype(F64)))


for _name in _FUNCTIONS:
    ROWS[_name] = partial(_function, _name)


def _upper_word(compute: Unary, x: Array) -> Array:
    """rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: from the upper word of the operand, to the upper word of the result.

    The lower 32 bits of the operand are ignored, those of the result are 0; denormals are flushed.
    Source: PTX ISA, "rcp.approx.ftz.f64" and "rsqrt.approx.ftz.f64".
    """
    upper = np.uint64(0xFFFF_FFFF_0000_0000)
    least = np.finfo(F64).tiny

    def cut(values: Array) -> Array:
        values = np.where(np.abs(values) < least, np.copysign(0.0, values), values)
        return np.where(np.isnan(values), values, (values.view(np.uint64) & upper).view(F64))

    return cut(compute(cut(x)))


def _directed_root(name: str, mode: str, of: Form) -> Unary:
    """rcp and sqrt, rounded in a direction."""
    if name == "rcp":
        quotient = _quotient_towards(mode, of)
        return lambda x: quotient(np.ones_like(x), x)
    if of.lanes != F32:
        return _exactly(_square_apart, of, mode, np.sqrt)

    def run(x: Array) -> Array:
        nearest = np.sqrt(x)
        # The square of a float32 is exact in float64.
        difference = x.astype(F64) - nearest.astype(F64) ** 2
        return np.where(np.isfinite(nearest), _step(of, MODES[mode], nearest, difference), nearest)

    return run


def _quotient_towards(mode: str, of: Form) -> Binary:
    """A quotient rounded in a direction. By zero it is an infinity, in every direction."""
    if of.lanes != F32:
        function = _exactly(_quotient_apart, of, mode, np.divide)
        return lambda one, other: np.where(other == 0, one / other, function(one, np.where(other == 0, 1, other)))

    def run(one: Array, other: Array) -> Array:
        nearest = one / other
        is_rounded = np.isfinite(one) & np.isfinite(other) & (other != 0)
        # The product is exact in float64, infinite where the quotient has overflowed.
        difference = (one.astype(F64) - nearest.astype(F64) * other.astype(F64)) * np.sign(other)
        return np.where(is_rounded, _step(of, MODES[mode], nearest, difference), nearest)

    return run


@row("div")
def div(rest: Sequence[str]) -> Kernel:
    kind, *words = rest
    if not words:
        return _integer_division(kind, is_remainder=False)
    of = form(words[0])
    if kind == "full":
        return FLOAT_OPS["div"](of)
    if kind == "approx":
        # For a divisor beyond 2**126 the ISA gives 0, for an infinite dividend NaN.
        def approximate(one: Array, other: Array) -> Array:
            large = (np.abs(other) > 2.0**126) & np.isfinite(other)
            zero = np.copysign(np.float32(0), one) * np.sign(other)
            return np.where(large, np.where(np.isinf(one), np.float32(np.nan), zero), one / other)

        return approximate

    return _quotient_towards(kind, of)


# ---------------------------------------------------------------------------------------------- conversions


@row("cvt")
def cvt(rest: Sequence[str]) -> Kernel:
    mode, to, of = rest
    if to == "tf32":
        return partial(_to_tf32, mode)
    if mode == "sat":
        return _saturated(to, of)
    target, source = form(to), form(of)
    if mode == "rs":
        return partial(_by_chance, target, *{"f16": (13, -14), "bf16": (16, -126)}[to])
    if source.is_float and target.is_integer:
        return partial(_to_integer, mode, to, of)
    if source.is_integer:
        return partial(_integer_towards, mode, target, of)
    return partial(scalars.convert_float_towards, source, target, MODES[mode])


def _by_chance(target: Form, bits: int, least: int, values: Array, random: Array) -> Array:
    """An f32 without its last `bits` digits, after as many random bits are added to them.

    least  the exponent of the smallest normal number of `target`, below which more digits are lost
    """
    exact = values.astype(F64)
    last = np.maximum(np.frexp(exact)[1] - 1, least) - (23 - bits)
    added = (random & (1 << bits) - 1) * np.ldexp(1.0, last - bits)
    found = np.ldexp(np.trunc(np.ldexp(np.abs(exact) + added, -last)), last)
    return scalars.from_float(target, np.where(np.isfinite(exact), np.copysign(found, exact), exact))


_WHOLE: dict[str, Unary] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _to_integer(mode: str, to: str, of: str, values: Array) -> Array:
    """Saturates. NaN gives 0 from f32 and narrower to 32 bits and fewer, else the bit pattern with only the sign bit."""
    source, target = form(of), form(to)
    whole = _WHOLE[mode](scalars.widen(source, values).astype(F64))
    found = scalars.to_integer(target, whole, to[0] == "s")
    if of == "f64" or target.bits == 64:
        found = np.where(np.isnan(whole), scalars.constant(target, 1 << (target.bits - 1)), found)
    return found


def _saturated(to: str, of: str) -> Kernel:
    target, source = form(to), form(of)
    low, high = (-(1 << target.bits - 1), (1 << target.bits - 1) - 1) if to[0] == "s" else (0, (1 << target.bits) - 1)
    read = reading(of)

    def run(values: Array) -> Array:
        given = read(source, values)
        given = given.astype(object if 64 in (source.bits, target.bits) else np.int64)
        return wrap(target, np.minimum(np.maximum(given, low), high))

    return run


def _integer_towards(mode: str, target: Form, of: str, values: Array) -> Array:
    """Integers of at most 32 bits are exact in float64; of 64 bits they are rounded by exact integers."""
    source = form(of)
    given = reading(of)(source, values)
    if source.bits < 64 and target.lanes == F64:
        return given.astype(F64)
    nearest = scalars.from_integer(target, given)
    exact = [int(number) for number in given.reshape(-1).tolist()]
    rounded = [float(number) for number in scalars.widen(target, nearest).reshape(-1).tolist()]
    apart = np.array(
        [
            0 if near in (float("inf"), float("-inf")) else (number > int(near)) - (number < int(near))
            for number, near in zip(exact, rounded, strict=True)
        ]
    ).reshape(nearest.shape)
    if target.lanes in (F32, F64) and target.rounded == target.lanes:
        return _step(target, MODES[mode], nearest, apart.astype(np.float64))
    return scalars.convert_float_towards(form("f64"), target, MODES[mode], given.astype(F64))


def _to_tf32(mode: str, values: Array) -> Array:
    """f32 with 10 digits after the point: ties away from zero (`rna`), to even (`rn`), or cut (`rz`)."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    match mode:
        case "rna":
            rounded = bits + np.uint32(0x1000)
        case "rn":
            rounded = bits + np.uint32(0x0FFF) + (bits >> np.uint32(13) & np.uint32(1))
        case _:
            rounded = bits
    rounded = (rounded & np.uint32(0xFFFFE000)).view(F32)
    return np.where(np.isfinite(values), rounded, values)


# ---------------------------------------------------------------------------------------------- integers


@row("mul.hi")
def mul_hi(rest: Sequence[str]) -> Binary:
    word = rest[0]
    of, read = form(word), reading(word)
    if of.bits < 64:
        wide = np.int64 if word[0] == "s" else np.uint64
        return lambda a, b: wrap(of, (read(of, a).astype(wide) * read(of, b).astype(wide)) >> of.bits)

    def run(a: Array, b: Array) -> Array:
        x, y, low, half = a.view(np.uint64), b.view(np.uint64), np.uint64(0xFFFFFFFF), np.uint64(32)
        (x1, x0), (y1, y0) = ((value >> half, value & low) for value in (x, y))
        middle = x1 * y0 + (x0 * y0 >> half)
        upper = x1 * y1 + (middle >> half) + ((middle & low) + x0 * y1 >> half)
        found = upper.view(np.int64)
        if word[0] == "s":
            # The signed product is the unsigned one less 2**64 times the other factor, for each negative factor.
            found = found - np.where(a < 0, b, 0) - np.where(b < 0, a, 0)
        return found

    return run


def _integer_division(word: str, is_remainder: bool) -> Binary:
    """By zero: all ones, and the dividend as remainder, as hardware does (the ISA leaves it open). The least integer by -1 wraps."""
    of, read = form(word), reading(word)
    function = scalars.truncated_remainder if is_remainder else scalars.truncated_quotient
    by_unsigned = np.remainder if is_remainder else np.floor_divide

    def run(a: Array, b: Array) -> Array:
        zero = b == 0
        minus = (b == -1) if word[0] == "s" else np.False_
        safe = np.where(zero | minus, np.ones_like(b), b)
        found = wrap(of, (function if word[0] == "s" else by_unsigned)(read(of, a), read(of, safe)))
        if word[0] == "s":
            found = np.where(minus, np.zeros_like(a) if is_remainder else wrap(of, -a), found)
        return np.where(zero, a if is_remainder else np.full_like(a, -1), found)

    return run


@row("rem")
def rem(rest: Sequence[str]) -> Binary:
    return _integer_division(rest[0], is_remainder=True)


def _shift(shift: Callable[[Form, Array, Array], Array] | None, rest: Sequence[str]) -> Binary:
    """An amount beyond the width shifts everything out."""
    of, is_signed = form(rest[0]), rest[0][0] == "s"
    shift = shift or (scalars.shift_right_arithmetic if is_signed else scalars.shift_right_logical)
    return lambda a, n: shift(of, a, np.minimum(unsigned(WORD, n), np.uint32(of.bits)).astype(of.lanes))


ROWS["shl"], ROWS["shr"] = partial(_shift, scalars.shift_left), partial(_shift, None)


@lanes("shf")
def shf(rest: Sequence[str], a: Array, b: Array, c: Array) -> Array:
    """The upper word of (b:a) << c, or the lower of (b:a) >> c."""
    to_left, wraps = rest[0] == "l", rest[1] == "wrap"
    amount = unsigned(WORD, c).astype(np.uint64)
    amount = amount & np.uint64(31) if wraps else np.minimum(amount, np.uint64(32))
    both = unsigned(WORD, b).astype(np.uint64) << np.uint64(32) | unsigned(WORD, a).astype(np.uint64)
    found = (both << amount) >> np.uint64(32) if to_left else both >> amount
    return found.astype(np.uint32).view(np.int32)


@lanes("prmt")
def prmt(rest: Sequence[str], a: Array, b: Array, c: Array) -> Array:
    """Each nibble of the selector picks a byte of (b:a); its top bit replicates the byte's sign."""
    both = unsigned(WORD, b).astype(np.uint64) << np.uint64(32) | unsigned(WORD, a).astype(np.uint64)
    selector = unsigned(WORD, c).astype(np.int64)
    total = np.zeros((1, 1), np.uint64)
    for number in range(4):
        nibble = selector >> 4 * number & 15
        byte = both >> (8 * (nibble & 7)).astype(np.uint64) & np.uint64(0xFF)
        copies = np.where(byte & np.uint64(0x80) != 0, np.uint64(0xFF), np.uint64(0))
        total = total | np.where(nibble & 8 != 0, copies, byte) << np.uint64(8 * number)
    return total.astype(np.uint32).view(np.int32)


@lanes("lop3")
def lop3(rest: Sequence[str], a: Array, b: Array, c: Array, table: Array) -> Array:
    """Each bit of the result is the bit of the table at the place that the three bits spell."""
    numbers = table.reshape(-1)
    look_up, found = int(numbers[0]), np.zeros((1, 1), np.int32)
    for place in range(8):
        if look_up >> place & 1:
            terms = [x if place & bit else ~x for x, bit in ((a, 4), (b, 2), (c, 1))]
            found = found | (terms[0] & terms[1] & terms[2])
    return found


@lanes("bfe")
def bfe(rest: Sequence[str], a: Array, position: Array, length: Array) -> Array:
    """`length` bits from `position` on; a signed field is extended with its top bit, beyond the operand with the operand's."""
    word = rest[0]
    of = form(word)
    start, count = (value.astype(np.int64) & 0xFF for value in (position, length))
    value = reading(word)(of, a)
    shifted = value >> np.minimum(start, of.bits - 1).astype(value.dtype)
    if word[0] == "u":
        shifted = np.where(start >= of.bits, value.dtype.type(0), shifted)
    kept = np.minimum(count, of.bits)
    if word[0] == "s":
        # The sign is that of the field's last bit inside the operand.
        kept = np.where(start + kept > of.bits, np.maximum(of.bits - np.minimum(start, of.bits - 1), 1), kept)
        spare = np.minimum(of.bits - kept, of.bits - 1).astype(value.dtype)
        found = shifted << spare >> spare
    else:
        one = np.ones((1, 1), value.dtype)
        below = (one << np.minimum(kept, of.bits - 1).astype(value.dtype)) - one
        found = np.where(kept >= of.bits, shifted, shifted & below)
    return wrap(of, np.where(count == 0, value.dtype.type(0), found))


@lanes("bfi")
def bfi(rest: Sequence[str], a: Array, b: Array, position: Array, length: Array) -> Array:
    """`b` with `length` of its bits, from `position` on, replaced by the lowest of `a`."""
    of = form(rest[0])
    start, count = (np.minimum(value.astype(np.int64) & 0xFF, of.bits) for value in (position, length))
    ones = scalars.constant(of, -1)
    low = scalars.shift_left(of, ones, count.astype(of.lanes))
    mask = scalars.shift_left(of, ~low, start.astype(of.lanes))
    return b & ~mask | scalars.shift_left(of, a, start.astype(of.lanes)) & mask


@lanes("bfind")
def bfind(rest: Sequence[str], a: Array) -> Array:
    """The place of the highest bit that is not the sign; all ones where there is none."""
    word, counts_shift = rest[-1], "shiftamt" in rest
    of = form(word)
    value = np.where(a < 0, ~a, a) if word[0] == "s" else a
    zeros = scalars.leading_zeros(of, value).astype(np.int32)
    found = zeros if counts_shift else of.bits - 1 - zeros
    return np.where(zeros == of.bits, np.int32(-1), found).astype(np.int32)


@lanes("fns")
def fns(rest: Sequence[str], mask: Array, base: Array, n: Array) -> Array:
    """The place of the n-th set bit at or above `base` (below, for a negative n); all ones where there is none. n = 0: `base` if set."""
    bits, start, n = unsigned(WORD, mask), unsigned(WORD, base).astype(np.int64), n.astype(np.int64)
    step = np.where(n < 0, -1, 1)
    left = np.where(n == 0, 1, np.abs(n))
    found = np.full(np.broadcast_shapes(mask.shape, base.shape, n.shape), -1, np.int32)
    for number in range(32):
        place = start + step * number
        is_there = (place >= 0) & (place < 32) & ((n != 0) | (number == 0))
        is_set = is_there & (bits >> np.where(is_there, place, 0).astype(bits.dtype) & 1 != 0)
        found = np.where(is_set & (left == 1), place, found).astype(np.int32)
        left = left - is_set
    return found


@row("read")
def clock(rest: Sequence[str]) -> Kernel:
    """Time stands still here: 0."""
    lanes = np.int32 if rest[0] == "clock" or rest[-1] == "lo" else np.int64
    return lambda: np.zeros((1, 1), lanes)
