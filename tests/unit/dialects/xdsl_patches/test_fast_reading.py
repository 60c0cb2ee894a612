"""The lexer here gives the tokens, positions and errors of xDSL's own, on any text."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import KIND_BY_PUNCTUATION_SPELLING, MLIRLexer, MLIRToken, MLIRTokenKind

from xla_emitters.dialects.xdsl_patches.fast_reading import FAST_READING
from xla_emitters.dialects.xdsl_patches.patch import XDSLS_OWN

PIECES = (
    *KIND_BY_PUNCTUATION_SPELLING,
    *(
        "%0",
        "%a.b-c$1",
        "%",
        "^bb0",
        "^",
        "!llvm.ptr",
        "!",
        "#loc1",
        "#0",
        "#",
        "@f",
        '@"a b"',
        "@",
        "@1",
        "é",
        "aé",
        "٣",
    ),
    *("i32", "_x", "a.b$", "x1x", "0", "12", "0x1F", "0xi32", "0x", "1.", "1.5e-3", "1.5e", "1e5", "12i", "..", "."),
    *(
        '"s"',
        '""',
        '"a\\nb"',
        '"\\ff"',
        '"open',
        '"a\nb"',
        "//c x\n",
        "// end",
        "/",
        "\n",
        "\t",
        " ",
        "\v",
        "\f",
        "~",
        "\\",
        "'",
    ),
)
Lex = Callable[[MLIRLexer], MLIRToken]
Found = tuple[MLIRTokenKind, str, int, int, str, int]


def tokens(text: str, lex: Lex) -> Iterator[Found | str]:
    lexer = MLIRLexer(Input(text, "<text>"))
    try:
        while True:
            token = lex(lexer)
            span = token.span
            yield token.kind, type(span).__name__, span.start, span.end, token.text, lexer.pos
            if token.kind is MLIRTokenKind.EOF:
                return
    except ParseError as error:
        yield str(error)


def own_lex() -> Lex:
    return XDSLS_OWN[MLIRLexer, "lex"]


@pytest.mark.parametrize("piece", PIECES)
def test_a_token_at_the_end_of_the_text_is_xdsls(piece: str) -> None:
    assert list(tokens(piece, MLIRLexer.lex)) == list(tokens(piece, own_lex()))


def test_tokens_in_any_order_are_xdsls() -> None:
    draw = random.Random(0)
    found = set[MLIRTokenKind | str]()
    for _ in range(2000):
        text = draw.choice(("", " ")).join(draw.choices(PIECES, k=draw.randrange(1, 9)))
        wanted = list(tokens(text, own_lex()))
        assert list(tokens(text, MLIRLexer.lex)) == wanted, repr(text)
        found |= {each if isinstance(each, str) else each[0] for each in wanted}
    assert found >= set(MLIRTokenKind)


@pytest.mark.parametrize("text", ["[1 , 2", '{a = 1, "b"}', "(1 : i32)", "<1>", "?", "["])
def test_steps_of_the_parser_are_xdsls(text: str) -> None:
    def steps() -> list[object]:
        context = Context()
        context.load_dialect(Builtin)
        found: list[object] = []
        parser = Parser(context, text)
        for punctuation in ("[", "{", "(", ",", "<"):
            found.append((parser.parse_optional_punctuation(punctuation), parser.pos))
            found.append(parser.parse_optional_characters("a"))
        for parse in (
            parser.parse_attribute,
            lambda: parser.parse_punctuation("]"),
            lambda: parser.parse_characters(")"),
        ):
            try:
                found.append((parse(), parser.pos))
            except ParseError as error:
                found.append(str(error))
        return found

    ours = steps()
    replaced = [(row.holder, row.name, row.holder.__dict__[row.name]) for row in FAST_READING]
    try:
        for holder, name, _ in replaced:
            setattr(holder, name, XDSLS_OWN[holder, name])
        assert steps() == ours
    finally:
        for holder, name, member in replaced:
            setattr(holder, name, member)
