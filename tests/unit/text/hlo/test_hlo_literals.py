"""Literals: values against NumPy, bit patterns, ranges, and text that reads back as the same bits."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.dialects.hlo.constant import dense, is_dense, undense
from xla_emitters.dialects.hlo.types import array_type
from xla_emitters.dtypes import DTYPES, DType, Kind, dtype
from xla_emitters.errors import ParseError
from xla_emitters.support.source import Source
from xla_emitters.text.hlo import hlo_literals, parse_hlo, print_hlo
from xla_emitters.text.hlo.hlo_lexer import HloCursor, HloTokenKind
from xla_emitters.text.hlo.hlo_literals import literal_text, parse_literal


def read(text: str, name: str, dims: tuple[int, ...] = ()) -> Any:
    cursor = HloCursor(Source(text, "t.hlo"))
    value = parse_literal(cursor, array_type(dtype(name).ir_type, dims))
    assert cursor.token.kind is HloTokenKind.END
    assert is_dense(value)
    return undense(value)


def bits(array: Any) -> list[int]:
    if array.dtype == np.complex128:
        array = array.view(np.float64)
    return np.ascontiguousarray(array).reshape(-1).view(f"u{array.dtype.itemsize}").tolist()


@pytest.mark.parametrize(
    ("text", "name", "dims", "expected"),
    [
        ("0.5", "f32", (), np.float32(0.5)),
        ("1", "bf16", (), ml_dtypes.bfloat16(1)),
        ("true", "pred", (), np.bool_(True)),
        ("{1, 0, false}", "pred", (3,), [True, False, False]),
        ("{ {1, 2}, {3, -4} }", "s32", (2, 2), [[1, 2], [3, -4]]),
        ("{1 2 3}", "u8", (3,), [1, 2, 3]),
        ("{{}, {}}", "f32", (2, 0), np.zeros((2, 0))),
        ("{}", "f32", (0,), []),
        ("{-8, 7}", "s4", (2,), [-8, 7]),
        ("18446744073709551615", "u64", (), 2**64 - 1),
        ("-9223372036854775808", "s64", (), -(2**63)),
        ("(1, -2.5)", "c64", (), 1 - 2.5j),
        ("{(1, 2), (-1, 0)}", "c128", (2,), [1 + 2j, -1 + 0j]),
        ("{{{1}}, {{2}}}", "f64", (2, 1, 1), [[[1]], [[2]]]),
    ],
)
def test_a_literal_is_this_array(text: str, name: str, dims: tuple[int, ...], expected: Any):
    value = read(text, name, dims)
    assert value.dtype == dtype(name).numpy
    assert value.shape == dims
    assert value.tolist() == np.asarray(expected).astype(dtype(name).numpy).tolist()


@pytest.mark.parametrize(
    ("text", "name", "pattern"),
    [
        ("nan", "f32", 0x7FC00000),
        ("-nan", "f32", 0xFFC00000),
        ("nan(0x7)", "f32", 0x7F800007),
        ("-nan(0x1)", "f64", 0xFFF0000000000001),
        ("nan", "bf16", 0x7FC0),
        ("-nan(0x3)", "bf16", 0xFF83),
        ("nan", "f16", 0x7E00),
        ("nan(0x1)", "f8e5m2", 0x7D),
        ("nan", "f8e4m3fn", 0x7F),
        ("inf", "f32", 0x7F800000),
        ("-inf", "f8e5m2", 0xFC),
        ("-0", "f32", 0x80000000),
        ("-0.0", "f64", 1 << 63),
        ("0.1", "f32", 0x3DCCCCCD),
        ("1e-45", "f32", 1),
        # 1 + 2^-8 is half way between two bf16; the tail beyond f32's precision must still count (rounding once, to 1 + 2^-7).
        ("1.00390625000000001", "bf16", 0x3F80),
        ("1.0039062500000002", "bf16", 0x3F81),
    ],
)
def test_a_float_has_these_bits(text: str, name: str, pattern: int):
    assert bits(read(text, name)) == [pattern]


def test_a_nan_inside_a_complex_number_keeps_the_other_part():
    value = read("{(nan(0x7), 1), (2, -inf)}", "c64", (2,))
    assert bits(value.view(np.float32)) == [0x7F800007, 0x3F800000, 0x40000000, 0xFF800000]


@pytest.mark.parametrize(
    ("text", "name", "dims", "message"),
    [
        ("128", "s8", (), "'128' is out of range for s8"),
        ("-1", "u8", (), "its values are from 0 to 255"),
        ("8", "s4", (), "its values are from -8 to 7"),
        ("9" * 5000, "s64", (), "out of range"),
        ("1.5", "s32", (), "expected a value of s32"),
        ("1e39", "f32", (), "out of range for f32"),
        ("1e400", "f64", (), "out of range for f64"),
        ("9" * 500, "f32", (), "an integer of more than 64 bits"),
        ("65520", "f16", (), "out of range for f16"),
        ("{1, 2, 1e5}", "f16", (3,), "'1e5' is out of range"),
        ("inf", "f8e4m3fn", (), "out of range"),
        ("nan", "f4e2m1fn", (), "out of range"),
        ("7", "f4e2m1fn", (), "its largest finite value is 6"),
        ("nan(0x800000)", "f32", (), "payload in f32 is from 1 to 0x7fffff"),
        ("nan(0x0)", "f32", (), "payload"),
        ("nan(0x1)", "f8e4m3fn", (), "has no payload"),
        ("{1, 2}", "f32", (3,), "2 items where the shape needs 3"),
        ("{1, 2, 3, 4}", "f32", (3,), "more than 3 items in dimension 0"),
        ("{{1}, {2}, {3}}", "f32", (2, 1), "more than 2 items in dimension 0"),
        ("{{1, 2}, {3}}", "f32", (2, 2), "1 items where the shape needs 2"),
        ("{1}", "f32", (1, 1), "the array has rank 2"),
        ("{{1}}", "f32", (1,), "braces are nested deeper than the array's rank, 1"),
        ("{}", "f32", (2, 0), "0 items where the shape needs 2"),
        ("1", "f32", (1,), "expected '{'"),
        ("{1}", "f32", (), "expected a scalar"),
        ("{1", "f32", (1,), "expected '}'"),
        ("1", "c64", (), "expected '(' before the parts of a c64"),
        ("yes", "pred", (), "expected 'true', 'false', 0 or 1"),
        ("{1}", "f32", (10**12,), "1 items where the shape needs 1000000000000"),
    ],
)
def test_a_wrong_literal_says_why(text: str, name: str, dims: tuple[int, ...], message: str):
    with pytest.raises(ParseError) as error:
        read(text, name, dims)
    assert message in str(error.value)


def test_an_out_of_range_number_is_pointed_at():
    with pytest.raises(ParseError) as error:
        read("{1, 1e5, 2}", "f16", (3,))
    assert (error.value.place.column, error.value.place.end_column) == (5, 8)


def test_elided_data_is_none():
    cursor = HloCursor(Source("{...}", "t.hlo"))
    assert parse_literal(cursor, array_type(dtype("f32").ir_type, (10**12,))) is None


# -------------------------------------------------------------------------------------------------------------------- there and back


def every_pattern(element: DType) -> Any:
    """All values of a type of up to 8 bits, one in seven of 16; of a wider one, its corners and a spread of bit patterns."""
    if element.kind is Kind.PRED:
        return np.array([True, False])
    if element.is_integer:
        allowed = element.integers
        values = list(allowed) if element.bits <= 8 else [allowed[0], -1 if allowed[0] else 5, 0, 1, allowed[-1]]
        return np.array(values, np.uint64 if allowed[0] == 0 else np.int64).astype(element.numpy)
    if element.kind is Kind.COMPLEX:
        parts = every_pattern(dtype("f32" if element.name == "c64" else "f64"))
        return parts[: len(parts) // 2 * 2].view(element.numpy)
    used = {"f4e2m1fn": 4, "f6e3m2fn": 6, "f6e2m3fn": 6}.get(element.name, element.bits)
    if used <= 16:
        return np.arange(0, 1 << used, 1 if used <= 8 else 7).astype(f"u{element.bytes}").view(element.numpy)
    spread = np.random.default_rng(7).integers(0, 1 << 63, 3000, dtype=np.uint64) * np.uint64(2)
    corners = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 0.1, 16777217.0], np.float64).astype(element.numpy)
    return np.concatenate([corners, spread.view(f"u{element.bytes}").view(element.numpy)])


@pytest.mark.parametrize("element", DTYPES, ids=lambda element: element.name)
def test_text_reads_back_as_the_same_bits(element: DType):
    """Every value of every small type, and of wide types many: NaN payloads, denormals, -0, extremes."""
    array = every_pattern(element)
    text = literal_text(dense(array, element))
    assert bits(read(text, element.name, array.shape)) == bits(array)


@pytest.mark.parametrize(
    ("value", "name", "text"),
    [
        (0.1, "f32", "0.1"),
        (1.0, "f32", "1"),
        (0.79785, "bf16", "0.797"),
        (65504, "f16", "65504"),
        (240, "f8e4m3fn", "240"),
        (1e30, "f32", "1e+30"),
        (-0.0, "f64", "-0.0"),
        (np.finfo(np.float32).max, "f32", "3.4028234663852886e+38"),
        (1 / 3, "f64", "0.3333333333333333"),
    ],
)
def test_a_float_is_written_short(value: float, name: str, text: str):
    assert literal_text(dense(np.array(value).astype(dtype(name).numpy), dtype(name))) == text


def test_arrays_are_written_row_major_with_braces():
    assert literal_text(dense(np.arange(6, dtype=np.int32).reshape(2, 3), dtype("s32"))) == "{ {0, 1, 2}, {3, 4, 5} }"


@pytest.mark.parametrize("name", ["f32", "f64", "bf16", "s8", "s64", "u32"])
def test_many_plain_numbers_are_read_as_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch):
    """Runs of numbers take a quick way; what it makes, and what it says of numbers that do not fit, is the same."""
    draw = np.random.default_rng(0)
    exponents = draw.integers(-50, 40, 400)
    numbers = [
        f"{mantissa:.6g}e{exponent}" for mantissa, exponent in zip(draw.standard_normal(400), exponents, strict=True)
    ]
    if not name.startswith(("f", "b")):
        numbers = [str(number) for number in draw.integers(-130 if name[0] == "s" else 0, 130, 400)]
    rows = ", ".join("{" + " , ".join(numbers[start : start + 100]) + "}" for start in range(0, 400, 100))
    text = f"HloModule m\n\nENTRY e {{\n  ROOT c = {name}[4,100] constant({{{rows}}})\n}}\n"

    def read() -> str:
        try:
            return print_hlo(parse_hlo(text))
        except ParseError as error:
            return error.render()

    at_once = read()
    monkeypatch.setattr(hlo_literals, "_RUN_AT_LEAST", 10**9)
    assert read() == at_once
