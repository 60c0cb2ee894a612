"""Types of StableHLO and of the hlo dialect, both ways."""

import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX

from xla_emitters.dialects.hlo.types import dims_of, size_bounds
from xla_emitters.dtypes import DTYPES
from xla_emitters.errors import ParseError, Unsupported, XlaEmittersError
from xla_emitters.support.source import Source
from xla_emitters.text.stablehlo.stablehlo_lexer import StableHloCursor
from xla_emitters.text.stablehlo.stablehlo_types import parse_type, stablehlo_type

TEXTS = [
    "tensor<f32>",
    "tensor<4x?xbf16>",
    "tensor<0x3xcomplex<f64>>",
    "tensor<?x4xf32, #stablehlo.bounds<8, ?>>",
    "tuple<tensor<f32>, tuple<tensor<2xui8>>>",
    "!stablehlo.token",
    *(f"tensor<2x{row.ir_type}>" for row in DTYPES),
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_type_is_printed_as_it_is_read(text: str) -> None:
    assert stablehlo_type(parse_type(StableHloCursor(Source(text, "x")))) == text


def test_an_unknown_size_is_no_number_that_looks_known() -> None:
    ir_type = parse_type(
        StableHloCursor(Source("tensor<?x4x?xf32, #stablehlo.type_extensions<bounds = [8, ?, ?]>>", "x"))
    )
    assert dims_of(ir_type) == (DYNAMIC_INDEX, 4, DYNAMIC_INDEX)
    assert size_bounds(ir_type) == (8, 4, DYNAMIC_INDEX)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("tensor<4xnone>", ParseError),
        ("tensor<4x!quant.uniform<i8:f32, 1.0>>", Unsupported),
        ("tensor<4xf32, #sparse>", Unsupported),
        ("memref<4xf32>", Unsupported),
        ("tensor<*xf32>", Unsupported),
        ("tensor<4xq7>", ParseError),
        ("tensor<99999999999999999999xf32>", ParseError),
        (f"tensor<{'9' * 5000}xf32>", ParseError),
        (f"tensor<?xf32, #stablehlo.bounds<{'9' * 5000}>>", ParseError),
        ("tensor<4xf32, #stablehlo.bounds<8>>", ParseError),
        ("tensor<4xf32", ParseError),
        ("8", ParseError),
    ],
)
def test_a_type_that_is_not_taken_is_named(text: str, kind: type[XlaEmittersError]) -> None:
    with pytest.raises(kind) as found:
        parse_type(StableHloCursor(Source(text, "x")))
    assert found.value.place is not None
