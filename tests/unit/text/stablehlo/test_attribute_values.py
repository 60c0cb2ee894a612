"""Literals and attributes: every bit of every element type, in every form that MLIR writes."""

import numpy as np
import pytest

from xla_emitters.dtypes import DTYPES, DType, Kind, dtype
from xla_emitters.errors import ParseError
from xla_emitters.support.source import Source
from xla_emitters.text.stablehlo.attribute_values import parse_attribute
from xla_emitters.text.stablehlo.stablehlo_lexer import StableHloCursor
from xla_emitters.text.stablehlo.stablehlo_literals import Literal, literal_text


def read(text: str) -> object:
    return parse_attribute(StableHloCursor(Source(text, "x")))


def literal(text: str) -> np.ndarray:
    found = read(text)
    assert isinstance(found, Literal)
    return found.array


HELD = [row for row in DTYPES if row.name not in ("s1", "u1", "f6e3m2fn", "f6e2m3fn")]


def samples(element: DType, count: int) -> np.ndarray:
    """Arrays of random bit patterns (of types below eight bits: of values)."""
    chance = np.random.default_rng(count)
    if element.kind is Kind.PRED:
        return chance.integers(0, 2, count).astype(np.bool_)
    if element.bits < 8:
        low = -(1 << element.bits - 1) if element.kind is Kind.SIGNED else 0
        values = chance.integers(low, low + (1 << element.bits), count)
        return values.astype(element.numpy) if element.is_integer else (values / 4).astype(element.numpy)
    return chance.integers(0, 256, (count, element.numpy.itemsize), np.uint8).view(element.numpy).reshape(-1)


@pytest.mark.parametrize("element", HELD, ids=lambda row: row.name)
@pytest.mark.parametrize("count", [1, 6, 60])
def test_a_printed_literal_is_read_as_the_same_bits(element: DType, count: int) -> None:
    array = samples(element, count).reshape(-1, 2) if count > 1 else samples(element, 1).reshape(())
    array = np.where(np.isnan(array), np.zeros_like(array), array) if element.kind is Kind.COMPLEX else array
    found = literal(literal_text(array, element))
    assert found.shape == array.shape
    assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dense<[[1, -2], [3, 4]]> : tensor<2x2xi8>", np.asarray([[1, -2], [3, 4]], np.int8)),
        ("dense<> : tensor<0x3xf32>", np.zeros((0, 3), np.float32)),
        ("dense<0xFF800000> : tensor<2xf32>", np.asarray([-np.inf, -np.inf], np.float32)),
        ('dense<"0x000080BF0000803F"> : tensor<2xf32>', np.asarray([-1, 1], np.float32)),
        ('dense<"0x803F"> : tensor<3xbf16>', np.ones(3, dtype("bf16").numpy)),
        ('dense<"0x010001"> : tensor<3xi1>', np.asarray([True, False, True])),
        ('dense<"0x0500"> : tensor<11xi1>', np.asarray([True, False, True] + [False] * 8)),
        ("dense<(1.0,-2.5)> : tensor<complex<f32>>", np.asarray(1 - 2.5j, np.complex64)),
        ("dense<[true, false]> : tensor<2xi1>", np.asarray([True, False])),
        ("dense<[1, 0]> : tensor<2xindex>", np.asarray([1, 0], np.int64)),
        ("dense<-1.0e-05> : tensor<1xf64>", np.asarray([-1e-5])),
    ],
)
def test_literals_as_mlir_writes_them(text: str, expected: np.ndarray) -> None:
    found = literal(text)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "text",
    [
        "dense<[1, [2]]> : tensor<2xi32>",
        "dense<[[1, 2], [3]]> : tensor<2x2xi32>",
        "dense<[1, 2]> : tensor<3xi32>",
        "dense<300> : tensor<i8>",
        "dense<> : tensor<2xi8>",
        "dense<1.5> : tensor<i8>",
        'dense<"0x0102"> : tensor<3xi32>',
        'dense<"0x012"> : tensor<i32>',
        "dense<true> : tensor<?xi1>",
        "dense<maybe> : tensor<i1>",
        "dense<[1, 2> : tensor<2xi32>",
    ],
)
def test_a_literal_that_is_not_of_its_type_is_an_error(text: str) -> None:
    with pytest.raises(ParseError) as found:
        read(text)
    assert found.value.place is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12 : i64", 12),
        ("1 : f32", 1.0),
        ("true", True),
        ('"a\\22b\\n"', 'a"b\n'),
        ("array<i64: 1, -2>", [1, -2]),
        ("array<i64>", []),
        ("#stablehlo<precision HIGHEST>", "HIGHEST"),
        ("{a = [1, 2], b}", {"a": [1, 2], "b": True}),
        ("#stablehlo.gather<offset_dims = [1], index_vector_dim = 1>", {"offset_dims": [1], "index_vector_dim": 1}),
    ],
)
def test_attributes_are_values(text: str, expected: object) -> None:
    assert read(text) == expected
