"""Constants keep their bits, which xDSL alone loses."""

import math
from typing import Any

import pytest
from xdsl.dialects.builtin import (
    BFloat16Type,
    BytesAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    FloatAttr,
    VectorType,
    f32,
)

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.float_bits import dense_of, float_attr, float_attr_of_bits, is_splat, pack, unpack, values_of
from xla_emitters.dialects.mlir_printer import print_ir

NANS: dict[str, tuple[Any, int]] = {
    "f32": (Float32Type(), 0x7F800001),
    "f16": (Float16Type(), 0x7E01),
    "bf16": (BFloat16Type(), 0x7F81),
    "f8E5M2": (Float8E5M2Type(), 0xFF),
}
"""A type, and a NaN whose sign or payload is not that of the usual one."""


@pytest.mark.parametrize("name", NANS)
def test_a_nan_keeps_its_bits(name: str):
    kind, bits = NANS[name]
    data = bits.to_bytes(kind.compile_time_size, "little")
    assert pack(kind, unpack(kind, data)) == data
    value = float_attr_of_bits(bits, kind)
    assert pack(kind, [value.value.data]) == data
    assert float_attr(value.value.data, kind) == value
    assert pack(ComplexType(kind), unpack(ComplexType(kind), data * 4)) == data * 4
    assert values_of(dense_of(VectorType(kind, [3]), [value.value.data]))[2] != 0
    assert dense_of(VectorType(kind, [3]), [value.value.data]).data == BytesAttr(data * 3)


@pytest.mark.parametrize("name", NANS)
def test_a_nan_is_read_and_written_as_it_is(name: str):
    kind, bits = NANS[name]
    word = f"0x{bits:0{2 * kind.compile_time_size}X}"
    text = f"{{a = {word} : {name}, b = dense<{word}> : vector<2x{name}>, c = dense<[{word}, 1.000000e+00]> : vector<2x{name}>}}"
    module = parse_ir(f"module attributes {text} {{}}")
    assert text in print_ir(module)
    assert print_ir(parse_ir(print_ir(module))) == print_ir(module)


@pytest.mark.parametrize("name", NANS)
def test_xdsl_alone_loses_them(name: str):
    """When this fails, xDSL has caught up."""
    kind, bits = NANS[name]
    data = bits.to_bytes(kind.compile_time_size, "little")
    assert kind.pack(kind.unpack(data, 1)) != data


def test_the_only_nan_of_a_format_is_what_every_nan_becomes():
    assert float_attr(-math.nan, Float8E4M3FNType()) != FloatAttr(1.0, Float8E4M3FNType())
    assert pack(Float8E4M3FNType(), [math.nan]) == b"\x7f"


def test_zeros_of_two_signs_are_no_splat_and_xdsl_alone_says_so():
    zeros = DenseIntOrFPElementsAttr.from_list(VectorType(f32, [2]), [0.0, -0.0])
    assert not is_splat(zeros)
    assert zeros.is_splat()


def test_hexadecimal_numbers_are_bits_of_floats_and_values_of_integers():
    module = parse_ir(
        "module attributes {a = dense<[0xFF80, 1.0]> : vector<2xbf16>, b = dense<0x10> : vector<2xi32>, "
        "c = dense<(0x7F800000, 0xFF800000)> : tensor<1xcomplex<f32>>, d = dense<(0x7F800000, 1.5)> : tensor<2xcomplex<f32>>} {}"
    )
    a, b, c, d = (module.attributes[name] for name in "abcd")
    assert isinstance(a, DenseIntOrFPElementsAttr)
    assert isinstance(b, DenseIntOrFPElementsAttr)
    assert isinstance(c, DenseIntOrFPElementsAttr)
    assert isinstance(d, DenseIntOrFPElementsAttr)
    assert list(a.get_values()) == [float("-inf"), 1.0]
    assert list(b.get_values()) == [16, 16]
    assert list(c.get_values()) == [(float("inf"), float("-inf"))]
    assert list(d.get_values()) == [(float("inf"), 1.5)] * 2
