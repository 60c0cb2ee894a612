"""Sizes as text: jax.export's notation in any spelling, and located errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from repeatable import repeatable

from xla_emitters.algebra.size import Size
from xla_emitters.algebra.size_text import parse_size, print_shape
from xla_emitters.errors import ParseError


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("b*2", "2*b"),
        ("1+s", "s + 1"),
        ("- s + 1", "-s + 1"),
        ("+b", "b"),
        ("b^2*b", "b^3"),
        ("b^0", "1"),
        ("b*-1", "-b"),
        ("3 * -b", "-3*b"),
        ("floordiv(b, - 2)", "floordiv(-b, 2)"),
        ("max( b ,1)", "max(1, b)"),
        ("(b + 1)*(b - 1)", "b^2 - 1"),
        ("mod(s,2)+2*floordiv(s,2)", "mod(s, 2) + 2*floordiv(s, 2)"),
        ("\n  2\n* b", "2*b"),
        ("floordiv(b, 0)", "floordiv(b, 0)"),
    ],
)
def test_spellings(text, normal):
    size = parse_size(text)
    assert parse_size(normal) == size
    assert sorted(str(size).split(" + ")) == sorted(normal.split(" + "))


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "expected a size, got the end of the text"),
        ("b +", 4, "expected a size, got the end of the text"),
        ("b s", 3, "expected an operator or the end of the text, got 's'"),
        ("2b", 2, "expected an operator or the end of the text, got 'b'"),
        ("s // 2", 3, "unexpected character '/'"),
        ("s % 2", 3, "unexpected character '%'"),
        ("b +  $", 6, "unexpected character '$'"),
        ("floor(s, 2)", 1, "unknown operation 'floor'"),
        ("1 + flordiv(s, 2)", 5, "unknown operation 'flordiv'"),
        ("floordiv(s)", 11, "expected ',' between the operands, got ')'"),
        ("max(s, 1, 2)", 9, "expected ')' after the operands, got ','"),
        ("max", 4, "expected '(' after 'max', got the end of the text"),
        ("b^s", 3, "expected a number, got 's'"),
        ("b^101", 3, "a power above 100"),
        ("b*_", 3, "'_' stands for sizes that are not in the text"),
        ("...", 1, "'...' stands for sizes that are not in the text"),
        ("1" * 3000, 1, "a number of more than 2400 digits"),
        ("(" * 5000 + "b", 61, "parentheses and signs are nested more than 60 deep"),
        ("-" * 5000 + "b", 62, "parentheses and signs are nested more than 60 deep"),
        ("(a + b + c + d + e)^60", 1, "a size with more than"),
    ],
)
def test_errors_have_their_place(text, column, message):
    with pytest.raises(ParseError) as caught:
        parse_size(text, "x.mlir")
    assert caught.value.message.startswith(message)
    assert (caught.value.place.line, caught.value.place.column) == (1, column)


def test_an_error_shows_its_line_and_the_way_out():
    with pytest.raises(ParseError) as caught:
        parse_size("b +\n  2*s // 2")
    assert caught.value.render().splitlines() == [
        "<size>:2:7: error: [shapes.parse] unexpected character '/'",
        "      2*s // 2",
        "          ^",
        "    help: floordiv(a, b)",
    ]


@given(st.text(alphabet="bs01 +-*^(),floordivmaxn._/\n", max_size=30))
@repeatable(600)
def test_any_text_is_a_size_or_an_error_with_a_place(text):
    try:
        size = parse_size(text)
    except ParseError as error:
        place = error.place
    else:
        assert parse_size(str(size)) == size
        return
    assert 1 <= place.column <= len(text) + 1


def test_a_shape_of_ints_prints():
    assert print_shape([2, Size.symbol("b")]) == "(2, b)"
