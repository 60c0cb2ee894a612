"""Types, constants and names in LLVM IR's spelling."""

import re
import struct

import pytest
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, FloatAttr, VectorType, bf16, f16, f32, f64

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.float_bits import float_attr_of_bits
from xla_emitters.errors import Unsupported
from xla_emitters.lowering.llvm_ir.spelling import constant_text, escaped, global_name, type_text


@pytest.mark.parametrize(
    ("type", "text"),
    [
        ("i1", "i1"),
        ("bf16", "bfloat"),
        ("f16", "half"),
        ("f64", "double"),
        ("!llvm.ptr", "ptr"),
        ("!llvm.ptr<3>", "ptr addrspace(3)"),
        ("vector<4xf32>", "<4 x float>"),
        ("!llvm.array<2 x array<3 x i8>>", "[2 x [3 x i8]]"),
        ("!llvm.struct<(f32, struct<(i1)>)>", "{ float, { i1 } }"),
        ("!llvm.struct<()>", "{}"),
    ],
)
def test_types(type: str, text: str) -> None:
    (op,) = parse_ir(f"%0 = llvm.mlir.poison : {type}").ops
    assert type_text(op.results[0].type) == text


@pytest.mark.parametrize(
    "type", ["index", "f128", "tensor<4xf32>", "vector<2x2xf32>", "vector<[4]xf32>", '!llvm.struct<"s", (f32)>']
)
def test_types_that_llvm_ir_does_not_have_here(type: str) -> None:
    (op,) = parse_ir(f'%0 = "builtin.unrealized_conversion_cast"() : () -> {type}').ops
    with pytest.raises(Unsupported, match="no LLVM IR for the type"):
        type_text(op.results[0].type)


@pytest.mark.parametrize(
    "bits", [0x7FC00000, 0xFFC00000, 0x7FC12345, 0x7F800001, 0x7F800000, 0x80000000, 0x00000001, 0x3F8CCCCD]
)
def test_floats_keep_their_bits(bits: int) -> None:
    """A double of the same value; of a NaN the sign and the fraction, moved to where a double has it."""
    text = constant_text(float_attr_of_bits(bits, f32), f32)
    double = int(text, 16)
    exponent, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    assert double >> 63 == bits >> 31
    if exponent == 0xFF and fraction:
        assert double & (1 << 52) - 1 == fraction << 29
        assert double >> 52 & 0x7FF == 0x7FF
    else:
        assert struct.unpack("<d", struct.pack("<Q", double)) == struct.unpack("<f", struct.pack("<I", bits))


@pytest.mark.parametrize(
    ("type", "bits"), [(f16, 0x7C01), (f16, 0xFE03), (bf16, 0xFF81), (bf16, 0x7FC3), (f16, 0xFC00)]
)
def test_halves_keep_their_bits(type: AnyFloat, bits: int) -> None:
    letter = "H" if type == f16 else "R"
    assert constant_text(float_attr_of_bits(bits, type), type) == f"0x{letter}{bits:04X}"


@pytest.mark.parametrize(
    ("value", "type", "text"),
    [(1.0, f16, "0xH3C00"), (-2.0, bf16, "0xRC000"), (0.1, bf16, "0xR3DCD"), (0.1, f64, "0x3FB999999999999A")],
)
def test_floats_of_other_widths(value: float, type: object, text: str) -> None:
    assert constant_text(FloatAttr(value, type), type) == text


@pytest.mark.parametrize(("name", "type"), [("f16", f16), ("bf16", bf16), ("f32", f32), ("f64", f64)])
@pytest.mark.parametrize("shape", ["vector<6x", "!llvm.array<6 x ", "!llvm.array<2 x array<3 x "])
def test_a_list_of_floats_is_the_constants_of_each(name: str, type: object, shape: str) -> None:
    """Converted all at once: NaN, infinities, -0, a subnormal of every type."""
    numbers = [float("nan"), float("inf"), -0.0, 1e-40, -2.5, 0.1]
    listed = ", ".join(constant_text(FloatAttr(number, type), type) for number in numbers)
    (op,) = parse_ir(f'%0 = "builtin.unrealized_conversion_cast"() : () -> {shape}{name}{">" * shape.count("<")}').ops
    dense = DenseIntOrFPElementsAttr.from_list(VectorType(type, [6]), numbers)
    found = constant_text(dense, op.results[0].type)
    assert ", ".join(word for word in re.findall(r"0x[HR]?[0-9A-F]+", found)) == listed


@pytest.mark.parametrize(
    ("constant", "type", "message"),
    [
        ("1.0 : f128", "f128", "no LLVM IR for a float constant of type f128"),
        ("1.0 : f32", "i32", "no LLVM IR for a float constant of type i32"),
        ("[1 : i32]", "!llvm.struct<(i32, i32)>", "no LLVM IR for 1 parts of a constant of type"),
        ("[1 : i32, 2 : i32]", "i32", "no LLVM IR for 2 parts of a constant of type i32"),
    ],
)
def test_constants_that_llvm_ir_does_not_have_here(constant: str, type: str, message: str) -> None:
    (op,) = parse_ir(f"%0 = llvm.mlir.constant({constant}) : {type}").ops
    with pytest.raises(Unsupported, match=message):
        constant_text(op.properties["value"], op.results[0].type)


@pytest.mark.parametrize(
    ("constant", "type", "text"),
    [
        ("-1 : i8", "i8", "-1"),
        ("true", "i1", "true"),
        (
            "dense<[[1, 2], [3, 4]]> : tensor<2x2xi16>",
            "!llvm.array<2 x array<2 x i16>>",
            "[[2 x i16] [i16 1, i16 2], [2 x i16] [i16 3, i16 4]]",
        ),
        ("dense<true> : vector<2xi1>", "vector<2xi1>", "<i1 true, i1 true>"),
        ("[1 : i32, 2.0 : f32]", "!llvm.struct<(i32, f32)>", "{ i32 1, float 0x4000000000000000 }"),
        ("[1 : i8, 2 : i8]", "!llvm.array<2 x i8>", "[ i8 1, i8 2 ]"),
    ],
)
def test_constants(constant: str, type: str, text: str) -> None:
    (op,) = parse_ir(f"%0 = llvm.mlir.constant({constant}) : {type}").ops
    assert constant_text(op.properties["value"], op.results[0].type) == text


def test_names() -> None:
    assert global_name("fusion.1_$") == "@fusion.1_$"
    assert global_name('1 "a\\b') == '@"1 \\22a\\5Cb"'
    assert escaped("tab\té".encode()) == "tab\\09\\C3\\A9"
