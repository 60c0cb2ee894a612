"""Protobuf's text format: what its specification allows, and where a fault is."""

import re

import pytest

from xla_emitters.errors import ParseError
from xla_emitters.support.text_proto import parse_text_proto


@pytest.mark.parametrize(
    "text",
    [
        "a { b: 18 }",
        "a: { b: 18, }; # of cores",
        "a < b: 0x12; c: -inf >",
        "a\n{b:022 c: [1, 2.5e-3, -3f, .5] d: []}",
        "a { [foo.bar/x.y]: { z: 'it' \"s\" } b: 18 e: [{}, <>] e {} }",
    ],
)
def test_spellings_of_one_message(text: str) -> None:
    message = parse_text_proto(text, "t").child("a")
    assert message.number("b", least=0) == 18


def test_strings_side_by_side_are_one() -> None:
    message = parse_text_proto('name: "NVIDIA" \' A6000\' e: CUDA e2: "a#b"', "t")
    assert [message.text(name) for name in ("e", "e2", "nothing")] == ["CUDA", "a#b", None]
    assert parse_text_proto('n: "NVIDIA" " A6000"', "t").text("n") == "NVIDIA A6000"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("a {\n  b: 1\n", "t:3:1", "the end of the text where a field's name or '}' is expected"),
        ("a {\n  b 1 }", "t:2:5", "'1' where ':' or '{' is expected"),
        ("a { b: }", "t:1:8", "'}' where a value is expected"),
        ("a { b: [1 2] }", "t:1:11", "'2' where ',' or ']' is expected"),
        ("a { b: 1 } }", "t:1:12", "'}' is not a field's name"),
        ("a { b: 1 >", "t:1:10", "'>' where a field's name or '}' is expected"),
        ('a { b: "x }', "t:1:8", "unexpected character '\"'"),
        ("a { b: 12x }", "t:1:8", "unexpected character '1'"),
        ("a { b: 08 }", "t:1:8", "b must be an integer of at least 1, got 08"),
        ("a { b: 0 }", "t:1:8", "b must be an integer of at least 1, got 0"),
        ("a { b: 2.5 }", "t:1:8", "b must be an integer of at least 1, got 2.5"),
        ("a { b {} }", "t:1:8", "b must be an integer of at least 1, got a message"),
        ("a { b: 9223372036854775808 }", "t:1:8", "b must be an integer of at least 1, got 9223372036854775808"),
        ("a { b: 1\n b: 2 }", "t:2:5", "b is given twice"),
        ("a: 3", "t:1:4", "a must be a message"),
    ],
)
def test_faults(text: str, place: str, message: str) -> None:
    with pytest.raises(ParseError, match=re.escape(message)) as raised:
        (parse_text_proto(text, "t").child("a") or parse_text_proto("", "t")).number("b", least=1)
    assert str(raised.value.place) == place
