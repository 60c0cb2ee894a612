"""Conversions against exact arithmetic: all values of small types, fractions, and the values where rounding twice shows."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.dialects.hlo.convert import convert_array, round_once, widen, wrap
from xla_emitters.dialects.hlo.convert import nearest as nearest_bound
from xla_emitters.dtypes import DTYPES, Array, Kind, dtype


def convert(x: Array, source: str, target: str) -> Array:
    value = convert_array(x, dtype(source), dtype(target))
    assert value.dtype == dtype(target).numpy
    assert value.shape == x.shape
    return value


def wrapped(value: int, bits: int, signed: bool) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> bits - 1 else value


def integers(values: list[int], type: str) -> Array:
    wide = np.int64 if dtype(type).kind is Kind.SIGNED else np.uint64
    return np.array(values, object).astype(wide).astype(dtype(type).numpy)


def all_of(type: str) -> Array:
    dt = dtype(type)
    return np.arange(1 << dt.bits, dtype=np.dtype(f"u{dt.bits // 8}")).view(dt.numpy)


INTEGER_TYPES = [dt.name for dt in DTYPES if dt.is_integer and dt.name not in ("s1", "u1")]


@pytest.mark.parametrize("target", INTEGER_TYPES)
@pytest.mark.parametrize("source", ["bf16", "f16", "f8e4m3fn", "f8e5m2"])
def test_convert_float_to_integer_saturates(source: str, target: str):
    dt = dtype(target)
    x = all_of(source)
    low, high = (-(1 << dt.bits - 1), (1 << dt.bits - 1) - 1) if dt.kind is Kind.SIGNED else (0, (1 << dt.bits) - 1)

    got = convert(x, source, target)
    assert got.astype(object).tolist() == [max(low, min(high, v)) for v in truncated(source)]


@cache
def truncated(source: str) -> list[int]:
    """Every value of a float type toward zero; 0 for NaN, beyond all integer types for infinities."""
    values = [float(v) for v in all_of(source)]
    return [
        0 if math.isnan(v) else math.trunc(v) if math.isfinite(v) else int(math.copysign(1 << 200, v)) for v in values
    ]


@pytest.mark.parametrize("source", INTEGER_TYPES)
@pytest.mark.parametrize("target", ["f16", "bf16", "f32", "f64"])
def test_convert_integer_to_float_rounds_once(source: str, target: str):
    dt = dtype(source)
    signed = dt.kind is Kind.SIGNED
    raw = set(range(min(1 << dt.bits, 4096)))
    for shift in range(0, dt.bits):
        for near in (
            -1,
            0,
            1,
            (1 << shift) >> 8,
            ((1 << shift) >> 8) + 1,
            (1 << shift) >> 24,
            ((1 << shift) >> 24) + 1,
        ):
            raw.add((1 << shift) + near)
            raw.add(-((1 << shift) + near))
    values = sorted({wrapped(v, dt.bits, signed) for v in raw})
    got = convert(integers(values, source), source, target)
    assert [float(v) for v in got] == [nearest(Fraction(v), target) for v in values]


@cache
def nearest(value: Fraction, target: str) -> float:
    """`value` in a float format, to nearest even, by exact arithmetic."""
    info = ml_dtypes.finfo(dtype(target).numpy)
    if value == 0:
        return 0.0
    exponent = math.frexp(float(value))[1] - 1
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    spacing = Fraction(2) ** (max(exponent, int(info.minexp)) - int(info.nmant))
    result = Fraction(round(value / spacing)) * spacing
    return math.copysign(math.inf, value) if abs(result) > Fraction(float(info.max)) else float(result)


@pytest.mark.parametrize("target", ["f16", "bf16", "f8e5m2"])
def test_convert_from_f64_rounds_once(target: str):
    """Values a little above a tie: by way of f32 they would become the tie, and round down."""
    ties = np.arange(1, 200) / 64 + 2.0 ** -(int(ml_dtypes.finfo(dtype(target).numpy).nmant) + 1)
    x = np.concatenate([ties, ties + 2.0**-45, ties - 2.0**-45, -(ties + 2.0**-45), [1e300, -1e300, 1e-300, 0.0, -0.0]])
    got = convert(x, "f64", target)
    for v, g in zip(x, got, strict=True):
        assert float(g) == nearest(Fraction(float(v)), target)
    assert np.signbit(got[-1])


@pytest.mark.parametrize("source", ["s8", "u8", "s32", "f32", "bf16", "pred", "c64"])
def test_convert_to_pred_is_not_equal_zero(source: str):
    x = np.array([0, 1, 2, 100]).astype(dtype(source).numpy)
    assert convert(x, source, "pred").tolist() == [False, True, True, True]


def test_convert_of_nan_to_pred_is_true():
    assert convert(np.array([np.nan, -0.0], np.float32), "f32", "pred").tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize("target", INTEGER_TYPES)
@pytest.mark.parametrize("source", INTEGER_TYPES)
def test_convert_between_integers_wraps(source: str, target: str):
    a, b = dtype(source), dtype(target)
    values = [
        wrapped(v, a.bits, a.kind is Kind.SIGNED)
        for v in (0, 1, 5, 7, 8, 127, 128, 200, 255, 32768, -1, -3, -128, 1 << 40)
    ]
    got = convert(integers(values, source), source, target)
    assert got.astype(object).tolist() == [wrapped(v, b.bits, b.kind is Kind.SIGNED) for v in values]


def test_convert_complex_by_parts_and_to_real_by_the_real_part():
    z = np.array([1.5 - 2j, -0.0 + 1j], np.complex64)
    assert convert(z, "c64", "c128").tolist() == [1.5 - 2j, 1j]
    assert convert(z, "c64", "s32").tolist() == [1, 0]
    assert convert(np.array([3], np.int8), "s8", "c64").tolist() == [3]


def test_widen_wrap_and_round_keep_every_value_that_fits():
    for type in ("s2", "s4", "u2", "u4", "s8", "u8"):
        dt = dtype(type)
        values = [wrapped(v, dt.bits, dt.kind is Kind.SIGNED) for v in range(1 << dt.bits)]
        x = integers(values, type)
        assert widen(x).dtype.itemsize == 1
        assert wrap(widen(x), dt).astype(int).tolist() == values
    for type in ("bf16", "f16", "f8e4m3fn", "f8e5m2", "f8e4m3b11fnuz"):
        x = all_of(type)
        number = ~np.isnan(widen(x))
        with np.errstate(all="ignore"):
            rounded = round_once(widen(x), x.dtype)
        assert rounded[number].tobytes() == x[number].tobytes()


@pytest.mark.parametrize(
    ("value", "type", "bound"),
    [(127, "bf16", 127.0), (2**31 - 1, "f32", 2.0**31), (2**31 - 1, "f64", 2.0**31 - 1), (2**31 - 1, "f16", math.inf)],
)
def test_bounds_of_integers_in_float_types(value: int, type: str, bound: float):
    assert nearest_bound(value, dtype(type).storage_type) == bound
