"""Shapes to types and back."""

import pytest
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.types import type_text
from xla_emitters.dtypes import DTYPES
from xla_emitters.errors import ParseError
from xla_emitters.support.source import Source
from xla_emitters.text.hlo.hlo_lexer import HloCursor, HloTokenKind
from xla_emitters.text.hlo.shapes import ShapeReader


def read(text: str) -> Attribute:
    cursor = HloCursor(Source(text, "t.hlo"))
    type = ShapeReader(cursor).shape()
    assert cursor.token.kind is HloTokenKind.END
    return type


@pytest.mark.parametrize(
    ("text", "ir"),
    [
        ("bf16[6,512,4096]{2,1,0}", "tensor<6x512x4096xbf16>"),
        ("bf16[6,512,4096]", "tensor<6x512x4096xbf16>"),
        ("f32[]", "tensor<f32>"),
        ("f32[0]{0}", "tensor<0xf32>"),
        ("f32[8,64]{0,1}", "tensor<8x64xf32, #hlo.layout<[0, 1]>>"),
        ("s4[8,64]{1,0:E(4)}", 'tensor<8x64xi4, #hlo.layout<[1, 0], "E(4)">>'),
        ("f32[8,64]{1,0:T(8,128)(2,1)S(5)}", 'tensor<8x64xf32, #hlo.layout<[1, 0], "T(8,128)(2,1)S(5)">>'),
        ("f32[]{:T(128)}", 'tensor<f32, #hlo.layout<[], "T(128)">>'),
        ("f32[?]", "tensor<?xf32>"),
        ("f32[<=8,?]{1,0}", "tensor<?x?xf32, #hlo.layout<[1, 0], bounds = [8, ?]>>"),
        ("pred[3]", "tensor<3xi1>"),
        ("u32[3]", "tensor<3xui32>"),
        ("c64[3]", "tensor<3xcomplex<f32>>"),
        ("(f32[2], (s32[], token[]))", "tuple<tensor<2xf32>, tuple<tensor<i32>, !hlo.token>>"),
        ("()", "tuple<>"),
        ("opaque[]", "!hlo.opaque"),
        ("b(f32[2]{0})", "!hlo.buffer<tensor<2xf32>>"),
        ("f32 [ 8 , 64 ] { 1, 0 }", "tensor<8x64xf32>"),
    ],
)
def test_a_shape_is_this_type(text: str, ir: str):
    assert str(read(text)) == ir


@pytest.mark.parametrize(
    "text",
    [
        "f32[8,64]{0,1}",
        "s4[8,64]{1,0:E(4)}",
        "f32[]{:T(128)}",
        "f32[?]{0}",
        "f32[<=8,?]{1,0}",
        "(f32[2]{0}, (s32[], token[]))",
        "opaque[]",
        "b(f32[2]{0})",
        *(f"{row.name}[2,3]{{1,0}}" for row in DTYPES),
    ],
)
def test_a_type_with_its_layout_is_written_as_it_was_read(text: str):
    assert type_text(read(text), True) == text


def test_a_brace_after_a_space_and_before_a_name_opens_a_computation():
    cursor = HloCursor(Source("f32[2] { a", "t.hlo"))
    shapes = ShapeReader(cursor)
    assert str(shapes.shape()) == "tensor<2xf32>"
    assert cursor.token.text == "{"


def test_a_shape_met_again_may_be_followed_by_anything():
    """The second time a shape is found by its text; what follows must be read just the same."""
    cursor = HloCursor(Source("f32[2] f32[2]{0} f32[2] {0} f32[2]{0:S(1)} f32[2] x f32[2]", "t.hlo"))
    shapes = ShapeReader(cursor)
    types = [str(shapes.shape()) for _ in range(5)]
    assert types == ["tensor<2xf32>"] * 3 + ['tensor<2xf32, #hlo.layout<[0], "S(1)">>', "tensor<2xf32>"]
    assert cursor.advance().text == "x"
    assert str(shapes.shape()) == "tensor<2xf32>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f33[2]", "no element type 'f33'; did you mean 'f32'?"),
        ("F32[2]", "did you mean 'f32'?"),
        ("i32[2]", "did you mean 's32'?"),
        ("bfloat16[2]", "did you mean 'bf16'?"),
        ("float[2]", "did you mean 'f32'?"),
        ("f32[2", "expected ',' or ']'"),
        ("f32[-1]", "a size must not be negative"),
        ("f32[9223372036854775807,2]", "an array of 18446744073709551614 elements"),
        ("f32[<=9223372036854775807,<=9]", "elements"),
        ("f32[99999999999999999999]", "does not fit 64 bits"),
        ("f32[" + "1," * 64 + "1]", "an array of rank 65"),
        ("f32[2]{:}", "layout {:} does not fit an array of rank 1"),
        ("f32[2]{0:Q(1)}", "'Q(1)' is not a layout"),
        ("f32[2]{0:E(4)}", "f32 elements cannot be packed to 4 bits"),
        ("f32[2,3]{1}", "layout {1} does not fit an array of rank 2"),
        ("f32[2,3]{0,0}", "does not fit"),
        ("f32[2]{0:T(8", "not closed"),
        ("token[2]", "a token has no dimensions"),
        ("(f32[2]", "expected ',' or ')'"),
        ("(" * 10_000, "more than 200 deep"),
        ("b(" * 10_000, "more than 200 deep"),
    ],
)
def test_what_is_no_shape_says_why(text: str, message: str):
    with pytest.raises(ParseError) as error:
        read(text)
    assert message in str(error.value)
