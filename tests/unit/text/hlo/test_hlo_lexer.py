"""Tokens: their kinds, texts and positions."""

import pytest

from xla_emitters.errors import ParseError
from xla_emitters.support.source import Source
from xla_emitters.text.hlo.hlo_lexer import MAX_NESTING, HloCursor, HloToken, HloTokenKind, read_token


def tokens(text: str) -> list[HloToken]:
    source = Source(text, "t.hlo")
    found = list[HloToken]()
    while (token := read_token(source, found[-1].end if found else 0)).kind is not HloTokenKind.END:
        found.append(token)
    return found


TOKENS = {
    HloTokenKind.NAME: ("%tanh_0", "fused.1-clone", "inf.1", "nano"),
    HloTokenKind.INT: ("12", "-12"),
    HloTokenKind.FLOAT: ("1.5e-3", "1.", "-2e+10", "inf", "-inf", "nan", "-nan(0x7f)"),
    HloTokenKind.SIZES: ("3x4x5",),
    HloTokenKind.PADDING: ("0_1", "-1_2_3x0_-4"),
    HloTokenKind.LABELS: ("b01f_01io->b01f", "0b1f_?i0o->01bf"),
    HloTokenKind.STRING: (r'"a \" b"', "'a'"),
    HloTokenKind.PUNCTUATION: ("->", "<=", "..."),
    HloTokenKind.UNKNOWN: ("@",),
}


@pytest.mark.parametrize(("text", "kind"), [(text, kind) for kind, texts in TOKENS.items() for text in texts])
def test_one_token(text: str, kind: HloTokenKind):
    """Each of these is one token, and its own text."""
    (token,) = tokens(text)
    assert (token.kind, token.text) == (kind, text)


def test_a_percent_sign_is_not_part_of_the_name():
    (token,) = tokens("%a.1")
    assert token.name == "a.1"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a->b", ["a", "->", "b"]),
        ("f32[2]{0}", ["f32", "[", "2", "]", "{", "0", "}"]),
        ("slice={[0:2]}", ["slice", "=", "{", "[", "0", ":", "2", "]", "}"]),
        ("HloModule m:", ["HloModule", "m", ":"]),
        ("a=b, %c", ["a", "=", "b", ",", "%c"]),
        ("f32[<=8,?]", ["f32", "[", "<=", "8", ",", "?", "]"]),
    ],
)
def test_several_tokens(text: str, parts: list[str]):
    assert [token.text for token in tokens(text)] == parts


def test_comments_and_spaces_are_skipped():
    assert [t.text for t in tokens("a /* b\n c */ d // e\n\t\r\n f/*x*/g")] == ["a", "d", "f", "g"]


@pytest.mark.parametrize(("text", "what"), [("a /* b", "comment"), ('a "b', "string"), ("'", "string")])
def test_what_is_not_closed_is_an_error_at_its_start(text: str, what: str):
    with pytest.raises(ParseError, match=f"this {what} is not closed") as error:
        tokens(text)
    assert error.value.place.column == text.index({"comment": "/"}.get(what, text[-2:].strip() or text)[0]) + 1


def test_a_byte_order_mark_is_refused_by_name():
    """XLA: "1:0: error: expects name"."""
    with pytest.raises(ParseError, match=r"t.hlo:1:1: error: \[hlo.parse\] unexpected byte order mark"):
        read_token(Source("\ufeffHloModule m", "t.hlo"), 0)


def test_a_place_has_line_column_and_the_lines_text():
    source = Source("a\n  bcd ef\ng", "t.hlo")
    place = source.place(4, 7)
    assert (place.file, place.line, place.column, place.end_column, place.text) == ("t.hlo", 2, 3, 6, "  bcd ef")


def test_the_last_line_needs_no_newline_and_characters_that_do_not_print_are_replaced():
    assert Source("a\nb\x00c", "t").place(2, 3).text == "b\N{REPLACEMENT CHARACTER}c"


def test_a_string_of_a_megabyte_is_one_token():
    (token,) = tokens('"' + "x" * 1_000_000 + '"')
    assert token.kind is HloTokenKind.STRING


def cursor(text: str) -> HloCursor:
    return HloCursor(Source(text, "t.hlo"))


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
