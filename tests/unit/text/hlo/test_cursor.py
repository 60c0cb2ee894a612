"""Looking one token ahead, opaque text, and the limit on nesting."""

from __future__ import annotations

import pytest

from xla_emitters.errors import ParseError
from xla_emitters.support.source import Source
from xla_emitters.text.hlo.cursor import MAX_NESTING, Cursor


def cursor(text: str) -> Cursor:
    return Cursor(Source(text, "t.hlo"))


def test_peek_consumes_nothing():
    c = cursor("a b c")
    assert c.peek().text == "b"
    assert [c.advance().text for _ in range(3)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "group", ["{a=1, b={2}}", '{"k":"}"}', "[1,2]<=", "true", '"x"', "{devices=[2,1]<=[2] @ $}", "{ [ ( ) ] }"]
)
def test_opaque_text_comes_back_as_written(group: str):
    c = cursor(f"{group} , rest")
    assert c.opaque("a value") == (group.removesuffix("<="))
    assert c.accept("," if not group.endswith("<=") else "<=")


@pytest.mark.parametrize(("text", "message"), [("{ a ", "this '{' is not closed"), ("{ ( }", "expected"), ("", "got")])
def test_opaque_text_must_be_balanced(text: str, message: str):
    with pytest.raises(ParseError) as error:
        cursor(text).opaque("a value")
    assert message in str(error.value)


def test_nesting_has_a_limit():
    cursor("{" * MAX_NESTING + "}" * MAX_NESTING).opaque("a value")
    with pytest.raises(ParseError, match="more than 200 deep"):
        cursor("{" * 10_000 + "}" * 10_000).opaque("a value")


@pytest.mark.parametrize("text", ["9223372036854775808", "-9223372036854775809", "9" * 5000])
def test_an_integer_has_64_bits(text: str):
    with pytest.raises(ParseError, match="does not fit 64 bits"):
        cursor(text).integer("a number")


def test_an_unexpected_token_says_what_was_wanted_and_what_came():
    with pytest.raises(ParseError) as error:
        cursor("f32[2").expect("(", "before it")
    assert str(error.value).splitlines() == [
        "t.hlo:1:1: error: [hlo.parse] expected '(' before it",
        "    f32[2",
        "    ^~~",
        "    got 'f32'",
    ]
