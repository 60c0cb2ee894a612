"""Attributes of instructions: every one that an op class declares has a syntax, and is written as it was read."""

import pytest

from xla_emitters.dialects.hlo import HLO_OPS
from xla_emitters.errors import ParseError
from xla_emitters.support.source import Source
from xla_emitters.text.hlo.attribute_text import COMMON, SYNTAX, attributes_of
from xla_emitters.text.hlo.hlo_lexer import HloCursor, HloTokenKind


def cursor(text: str) -> HloCursor:
    return HloCursor(Source(text, "t.hlo"))


@pytest.mark.parametrize("opcode", HLO_OPS)
def test_every_attribute_of_an_opcode_has_a_syntax(opcode: str):
    for name, _ in attributes_of(HLO_OPS[opcode]):
        assert name in SYNTAX
        assert name not in COMMON


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dimensions", "{}"),
        ("dimensions", "{0,2,1}"),
        ("index", "3"),
        ("indices_are_sorted", "true"),
        ("direction", "LT"),
        ("kind", "kLoop"),
        ("to_apply", "%add"),
        ("slice", "{[0:10], [2:8:3]}"),
        ("slice", "{}"),
        ("padding", "0_1x-2_3"),
        ("padding", "0_1_0x-2_3_4"),
        ("dim_labels", "b01f_01io->b01f"),
        ("window", "{}"),
        ("window", "{size=3}"),
        ("window", "{size=2x2 stride=1x2 pad=0_1x-1_0 lhs_dilate=1x2 rhs_dilate=3x1 rhs_reversal=0x1}"),
        ("operand_precision", "{default,highest}"),
        ("algorithm", "dot_bf16_bf16_f32_x3"),
    ],
)
def test_a_value_is_written_as_it_was_read(name: str, text: str):
    c = cursor(text)
    value = SYNTAX[name].parse(c)
    assert c.token.kind is HloTokenKind.END
    assert SYNTAX[name].text(value) == text


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("dimensions", "{0,}", "expected a number"),
        ("dimensions", "0", "expected '{'"),
        ("slice", "{[0]}", "expected ':'"),
        ("slice", "{[0:1:2:3]}", "expected ']'"),
        ("padding", "1", "expected low_high_interior"),
        ("padding", "0_99999999999999999999", "does not fit 64 bits"),
        ("window", "{size=2x2 stride=1}", "stride of the window has 1 numbers, its size 2"),
        ("window", "{size=2 stride=0}", "stride of the window is too small"),
        ("window", "{stride=1}", "a window has a size"),
        ("window", "{size=2 size=2}", "'size' is given twice"),
        ("window", "{sizes=2}", "'sizes' is not a part of a window"),
        ("window", "{size=2 pad=0_1_2}", "low_high for each dimension"),
        ("direction", "3", "expected a word"),
        ("indices_are_sorted", "1", "'true' or 'false'"),
    ],
)
def test_a_wrong_value_says_why(name: str, text: str, message: str):
    with pytest.raises(ParseError) as error:
        SYNTAX[name].parse(cursor(text))
    assert message in str(error.value)
