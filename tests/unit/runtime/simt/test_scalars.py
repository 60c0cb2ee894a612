"""Exact arithmetic on arrays, against Python's integers and fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    bf16,
    f16,
    f32,
    f64,
)

from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.scalars import form_of, integer

# The executor silences these around a whole run.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def wrapped(number: int, bits: int) -> int:
    """Two's complement by definition; i1 is 0 or 1 as lanes."""
    number %= 1 << bits
    return number - (1 << bits) if bits > 1 and number >> (bits - 1) else number


def edge_integers(bits: int) -> list[int]:
    top = 1 << (bits - 1)
    return sorted({0, 1, -1, 2, 3, top - 1, -top, top // 2, -top // 3, 0x5A5A5A5A5A5A5A5A % top})


def lanes(bits: int, numbers: list[int]) -> np.ndarray:
    return scalars.wrap(integer(bits), np.array(numbers, object).reshape(1, -1))


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16, 32, 64])
def test_memory_holds_the_low_bits_alone(bits):
    form = integer(bits)
    values = lanes(bits, edge_integers(bits))
    bits_in_memory = scalars.to_bits(form, values)
    assert [int(n) for n in bits_in_memory[0]] == [n % (1 << bits) for n in edge_integers(bits)]
    noise = bits_in_memory | bits_in_memory.dtype.type((0xFF << bits) & 0xFF if bits < 8 else 0)
    np.testing.assert_array_equal(scalars.from_bits(form, noise), values)


@pytest.mark.parametrize("bits", [1, 4, 8, 32, 64])
def test_counting_bits(bits):
    form, numbers = integer(bits), edge_integers(bits)
    digits = [format(n % (1 << bits), f"0{bits}b") for n in numbers]
    values = lanes(bits, numbers)
    expected = {
        scalars.leading_zeros: [len(d) - len(d.lstrip("0")) for d in digits],
        scalars.trailing_zeros: [len(d) - len(d.rstrip("0")) for d in digits],
        scalars.population_count: [d.count("1") for d in digits],
    }
    for function, counts in expected.items():
        assert [int(n) for n in function(form, values)[0]] == [wrapped(n, bits) for n in counts]


@pytest.mark.parametrize("bits", [4, 8, 32])
def test_integer_power_wraps_and_rounds_inverses_to_zero(bits):
    bases, exponents = np.meshgrid(range(-3, 4), range(-3, 8))
    bases, exponents = bases.reshape(1, -1), exponents.reshape(1, -1)

    def power(base: int, exponent: int) -> int:
        if exponent < 0:
            return {1: 1, -1: -1 if exponent % 2 else 1}.get(base, 0)
        return wrapped(base**exponent, bits)

    form = integer(bits)
    result = scalars.integer_power(form, bases.astype(form.lanes), exponents.astype(form.lanes))
    assert result.tolist()[0] == [power(int(b), int(e)) for b, e in zip(bases[0], exponents[0], strict=True)]


# ---- floats


def as_fraction(value) -> Fraction:
    return Fraction(float(value))


@pytest.mark.parametrize("ir_type", [bf16, f16, f32, f64], ids=str)
@pytest.mark.parametrize("numpy_type", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_from_integer_rounds_once(ir_type, numpy_type):
    form = form_of(ir_type)
    info = np.iinfo(numpy_type)
    digits = {"bf16": 8, "f16": 11, "f32": 24, "f64": 53}[str(ir_type)]
    numbers = {0, 1, info.max, info.min, info.max // 3}
    for shift in range(info.bits):
        # Around ties of the result's precision.
        for offset in (-1, 0, 1):
            numbers.add(((1 << digits) + 1 << shift) + offset)
            numbers.add(((1 << digits) + 3 << shift) + offset)
            numbers.add((1 << shift) + offset)
    chosen = sorted(n for number in numbers for n in (number, -number) if info.min <= n <= info.max)
    got = scalars.widen(form, scalars.from_integer(form, np.array([chosen], dtype=numpy_type)))[0]
    largest = float(np.finfo(form.rounded if ir_type != bf16 else np.float32).max)
    for number, value in zip(chosen, got, strict=True):
        if abs(number) > largest:
            assert np.isinf(value) or abs(value) == largest
            continue
        exact = rounded_to_digits(number, digits)
        assert int(value) == exact, (number, value, exact)


def rounded_to_digits(number: int, digits: int) -> int:
    """Nearest integer with at most `digits` binary digits, ties to even."""
    magnitude, sign = abs(number), -1 if number < 0 else 1
    spare = max(0, magnitude.bit_length() - digits)
    kept, rest = magnitude >> spare, magnitude & ((1 << spare) - 1)
    half = 1 << (spare - 1) if spare else 1
    kept += rest > half or (rest == half and kept & 1)
    return sign * (kept << spare)


@pytest.mark.parametrize("bits", [1, 4, 8, 16, 32, 64, 128])
@pytest.mark.parametrize("is_signed", [True, False])
def test_to_integer_truncates_and_saturates(bits, is_signed):
    low = -(1 << (bits - 1)) if is_signed else 0
    high = (1 << (bits - 1)) - 1 if is_signed else (1 << bits) - 1
    small = [0.0, -0.0, 0.9, -0.9, 1.0, -1.0, 1.5, 127.5, 128.0, -128.0, -129.0, 255.0, 256.0, 1e10, -1e10]
    values = np.array([[*small, 2.0**31, 2.0**63, -(2.0**63), 2.0**64, 1e300, np.inf, -np.inf]])
    form = integer(bits)
    got = [int(n) for n in scalars.to_integer(form, values, is_signed)[0]]

    def clamped(value: float) -> int:
        whole = high if value == np.inf else low if value == -np.inf else int(value)
        return wrapped(min(max(whole, low), high), bits)

    assert got == [clamped(value) for value in values[0]]
    assert int(scalars.to_integer(form, np.array([[np.nan]]), is_signed)[0, 0]) == 0


def test_maximum_and_minimum_know_nan_and_signed_zeros():
    values = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], np.float32)
    one, other = (grid.reshape(-1) for grid in np.meshgrid(values, values))

    def key(value):
        return (value, 0 if np.signbit(value) else 1)

    for a, b, low, high in zip(one, other, scalars.minimum(one, other), scalars.maximum(one, other), strict=True):
        if np.isnan(a) or np.isnan(b):
            assert np.isnan(low)
            assert np.isnan(high)
        else:
            assert key(high) == max(key(a), key(b))
            assert key(low) == min(key(a), key(b))


@pytest.mark.parametrize("ir_type", [bf16, f16, f32, f64], ids=str)
def test_fused_multiply_add_rounds_once(ir_type):
    """Against exact fractions, at sums that nearly cancel and at ties plus a hair."""
    form = form_of(ir_type)
    digits = {BFloat16Type: 8, Float16Type: 11, Float32Type: 24, Float64Type: 53}[type(ir_type)]
    rng = np.random.default_rng(7)
    whole = rng.integers(1 << (digits - 1), 1 << digits, (3, 400)).astype(np.float64)
    a, b = whole[0] / 2.0 ** (digits - 1), whole[1] / 2.0 ** (digits - 1)
    tiny = 2.0 ** -(digits + 2 if digits < 20 else 40)
    c = np.where(rng.integers(0, 2, 400) == 0, -a, whole[2] * tiny / 2.0 ** (digits - 1)) * rng.choice([1, -1], 400)
    with np.errstate(all="ignore"):
        held = [scalars.from_float(form, x.reshape(1, -1)) for x in (a, b, c)]
        got = scalars.widen(form, scalars.fused_multiply_add(form, *held))[0].astype(np.float64)
    for x, y, z, value in zip(*(scalars.widen(form, x)[0] for x in held), got, strict=True):
        exact = as_fraction(x) * as_fraction(y) + as_fraction(z)
        assert value == rounded_fraction(exact, digits), (x, y, z)


@pytest.mark.parametrize("order", ["C", "F"])
def test_fused_multiply_add_of_columns_rounds_once(order):
    """As NumPy lays out what it selects from values that all blocks share. The product is 2^-24 - 2^-70: the sum is below the tie."""
    x, y = np.full((3, 4), 1 + 2.0**-23, np.float32, order), np.full((1, 1), 2.0**-24 * (1 - 2.0**-23), np.float32)
    got = scalars.fused_multiply_add(form_of(f32), x, y, np.full((1, 1), 1 + 2.0**-23, np.float32))
    assert got.tolist() == np.full((3, 4), 1 + 2.0**-23).tolist()


def test_fused_multiply_add_of_denormal_results_rounds_once():
    """Against exact fractions: half a step of denormal numbers less 2 ** -196, which float64 cannot hold beside c. NaN is among them."""
    form, rng = form_of(f32), np.random.default_rng(3)
    hair = np.float32(2.0**-23)
    a = np.full(300, (1 + hair) * np.float32(2.0**-75), np.float32) * rng.choice([1, -1], 300).astype(np.float32)
    b = np.full(300, (1 - hair) * np.float32(2.0**-75), np.float32)
    c = rng.integers(-(1 << 22), 1 << 22, 300).astype(np.float32) * np.float32(2.0**-149)
    held = [np.concatenate([x, np.array([np.nan], np.float32)]).reshape(1, -1) for x in (a, b, c)]
    got = scalars.fused_multiply_add(form, *held)[0]
    assert np.isnan(got[-1])
    for x, y, z, value in zip(a, b, c, got, strict=False):
        kept, rest = divmod((as_fraction(x) * as_fraction(y) + as_fraction(z)) * Fraction(2) ** 149, 1)
        kept += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and kept % 2 == 1)
        assert as_fraction(value) * 2**149 == kept, (x, y, z)


def rounded_fraction(value: Fraction, digits: int) -> float:
    """Nearest number with `digits` binary digits, ties to even; no limit on the exponent (the test's values are normal)."""
    if value == 0:
        return 0.0
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= magnitude < Fraction(2) ** exponent
    scaled = magnitude / Fraction(2) ** (exponent - digits + 1)
    kept, rest = divmod(scaled, 1)
    kept += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and kept % 2 == 1)
    return float((1 if value > 0 else -1) * kept * Fraction(2) ** (exponent - digits + 1))


def test_poison_shows():
    assert scalars.to_bits(integer(32), scalars.poison(integer(32)))[0, 0] == 0xA5A5A5A5
    assert scalars.to_bits(form_of(bf16), scalars.poison(form_of(bf16)))[0, 0] == 0xA5A5


@pytest.mark.parametrize("shapes", [((8, 1024),) * 3, ((8, 1024), (1, 1), (8, 1024)), ((8, 1), (8, 1024), (1, 1024))])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint32", "float64", "int8"])
def test_lanes_choose_values_with_all_their_bits(dtype: str, shapes: tuple[tuple[int, int], ...]):
    """NaN with any payload, zeros of both signs: many lanes are chosen by arithmetic of bits, as `np.where` chooses."""
    rng = np.random.default_rng(0)
    lanes = rng.random(shapes[0]) < 0.4
    size = np.dtype(dtype).itemsize
    new, old = (np.frombuffer(rng.bytes(math.prod(shape) * size), dtype).reshape(shape).copy() for shape in shapes[1:])
    if dtype == "float32":
        new.reshape(-1)[:1], old.reshape(-1)[:2] = np.float32("-0.0"), (np.float32("nan"), 0.0)
    got, wanted = scalars.chosen(lanes, new, old), np.where(lanes, new, old)
    assert (got.dtype, got.shape, got.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())
