"""Element types: every row agrees with itself, and with NumPy and ml_dtypes on sizes."""

from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType, ReducedPrecisionFloatType

from xla_emitters.dtypes import DTYPES, WIDE_FLOATS, DType, Kind, Specials, dtype, dtype_of
from xla_emitters.errors import Unsupported

NAMES = [row.name for row in DTYPES]


@pytest.mark.tiny
def test_names_and_ir_types_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert len({row.ir_type for row in DTYPES}) == len(DTYPES)


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_found_both_ways_and_has_sizes_and_storage(name: str) -> None:
    """NumPy's item is a whole byte or more; in memory sub-byte elements share one; kernels store signless integers as wide."""
    row = dtype(name)
    assert row.name == name
    assert dtype_of(row.ir_type) is row
    assert row.numpy.itemsize == row.bytes
    assert row.size_bytes(0) == 0
    assert row.size_bytes(7) == -(-7 * row.bits // 8)
    assert row.bits >= 8 or 8 % row.bits == 0
    if isinstance(row.storage_type, IntegerType):
        assert row.storage_type.signedness.data.name == "SIGNLESS"
        assert row.storage_type.width.data == row.bits


def test_kinds() -> None:
    assert {row.name for row in DTYPES if row.kind is Kind.PRED} == {"pred"}
    assert {row.name for row in DTYPES if row.kind is Kind.COMPLEX} == {"c64", "c128"}
    assert [row.name for row in DTYPES if row.is_integer and row.bits == 32] == ["s32", "u32"]
    for row in DTYPES:
        assert (row.kind is Kind.UNSIGNED) == (row.name.startswith("u"))


def test_values_survive_numpy() -> None:
    """Each NumPy type holds small numbers of its HLO type."""
    for row in DTYPES:
        numbers = np.array([0, 1], dtype=row.numpy) if row.name not in ("f8e8m0fnu", "s1") else None
        if numbers is not None:
            assert [complex(number) for number in numbers] == [0, 1], row.name


FLOATS = [row for row in DTYPES if row.kind is Kind.FLOAT]


def pattern(value: float, row: DType) -> int:
    """The bits that ml_dtypes, or NumPy, rounds a number to."""
    with np.errstate(over="ignore"):
        return int(np.asarray(value).astype(row.numpy).view(f"u{row.bytes}"))


@pytest.mark.parametrize("row", FLOATS, ids=lambda row: row.name)
def test_a_format_is_that_of_ml_dtypes(row: DType) -> None:
    form, about = row.float_format, cast("Any", ml_dtypes.finfo(row.numpy))
    assert (form.bits, form.exponent_bits, form.fraction_bits) == (about.bits, about.nexp, about.nmant)
    assert (form.max, form.smallest_normal) == (float(about.max), float(about.smallest_normal))
    assert (form.one, form.largest, form.beyond) == (pattern(1.0, row), pattern(form.max, row), pattern(np.inf, row))
    assert (form.nan, form.below) == (pattern(np.nan, row), pattern(0.0, row))
    assert form.has_infinity == np.isinf(np.asarray(np.inf).astype(row.numpy).astype(np.float64))
    if form.has_sign:
        assert pattern(-1.0, row) == form.sign | form.one
        assert pattern(-0.0, row) == form.sign * form.has_minus_zero
    else:
        assert form.sign == 0
        assert not form.has_minus_zero


@pytest.mark.parametrize("row", [row for row in FLOATS if row.bits <= 16], ids=lambda row: row.name)
def test_the_patterns_of_a_format_that_are_nan_or_infinite(row: DType) -> None:
    """Of all patterns, positive ones first."""
    form = row.float_format
    with np.errstate(invalid="ignore"):
        codes = np.arange(1 << form.bits, dtype=f"u{row.bytes}").view(row.numpy).astype(np.float64)
    halves = np.split(codes, 1 + form.has_sign)
    assert [int(np.isinf(half).sum()) for half in halves] == [int(form.has_infinity)] * len(halves)
    of_nan = [int(np.isnan(half).sum()) for half in halves]
    match form.specials:
        case Specials.IEEE:
            assert of_nan == [(1 << form.fraction_bits) - 1] * 2
        case Specials.TOP_NAN:
            assert of_nan == [1] * len(halves)
        case Specials.ZERO_NAN:
            assert of_nan == [0, 1]
        case Specials.NONE:
            assert of_nan == [0, 0]
    assert form.has_signed_nan == (len(of_nan) == 2 and all(of_nan))


@pytest.mark.parametrize("row", FLOATS, ids=lambda row: row.name)
def test_a_format_is_that_of_xdsl(row: DType) -> None:
    form = row.float_format
    if isinstance(row.ir_type, ReducedPrecisionFloatType):
        about = row.ir_type.SEMANTICS
        mine = (form.exponent_bits, form.fraction_bits, form.bias, form.has_sign)
        assert mine == (about.exponent_bits, about.mantissa_bits, about.exponent_bias, about.has_sign)
    else:
        assert isinstance(row.ir_type, WIDE_FLOATS)
    assert row.is_narrow_float != isinstance(row.ir_type, WIDE_FLOATS)


def test_parts_of_complex_numbers() -> None:
    assert [dtype(name).part.name for name in ("c64", "c128", "f32", "s8")] == ["f32", "f64", "f32", "s8"]


def test_unknown_types() -> None:
    with pytest.raises(Unsupported, match="no storage for element type 'token'") as raised:
        dtype("token")
    assert "bf16" in raised.value.help
    with pytest.raises(Unsupported, match="no storage for element type 'i7'"):
        dtype_of(IntegerType(7))
