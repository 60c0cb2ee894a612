"""The parser reads what xDSL's refuses. When a call of xDSL's parser does not fail any more, xDSL has caught up."""

import random
from collections.abc import Iterator

import pytest
from unit.dialects.mlir_opt import mlir_reads
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import KIND_BY_PUNCTUATION_SPELLING, MLIRLexer, MLIRTokenKind

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir_parser import IRParser, QuickLexer
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.errors import ParseError as OurParseError

REFUSED_BY_XDSL = {
    "a complex number with one hexadecimal part": "module attributes {c = dense<(0x7F800000, 1.5)> : tensor<2xcomplex<f32>>} {}",
    "a distinct attribute": "module attributes {c = distinct[0]<>} {}",
}


@pytest.mark.parametrize("what", REFUSED_BY_XDSL)
def test_what_xdsl_refuses(what: str):
    text = REFUSED_BY_XDSL[what]
    printed = print_ir(parse_ir(text))
    assert print_ir(parse_ir(printed)) == printed
    with pytest.raises(ParseError):
        Parser(make_context(), text).parse_module()


def test_blocks_are_named_by_numbers_too():
    """As in MLIR; xDSL's own `is_default_block_name` makes xDSL refuse the label."""
    text = "func.func @f(%c: i1) {\n  cf.cond_br %c, ^1, ^0\n^0:\n  return\n^1:\n  cf.br ^0\n}"
    assert mlir_reads(text)
    printed = print_ir(parse_ir(text))
    assert "cf.cond_br %c, ^bb2, ^bb1" in printed
    assert print_ir(parse_ir(printed)) == printed
    with pytest.raises(ValueError, match="Invalid"):
        Parser(make_context(), text).parse_module()


def test_a_block_has_one_place():
    with pytest.raises(OurParseError, match="re-declaration of block '0'"):
        parse_ir("func.func @f() {\n  cf.br ^0\n^0:\n  cf.br ^0\n^0:\n  return\n}")


@pytest.mark.parametrize(
    "text", ["0 : i16777216", "0 : ui322000000000", "dense<0> : tensor<4xi322000000000>", f"0 : i{'9' * 5000}"]
)
def test_integers_have_as_many_bits_as_those_of_mlir(text: str):
    parse_ir("module attributes {value = 0 : i16777215} {}")
    with pytest.raises(OurParseError, match="an integer type has at most 16777215 bits") as raised:
        parse_ir(f"module attributes {{value = {text}}} {{}}")
    assert raised.value.place is not None


PIECES = (
    *KIND_BY_PUNCTUATION_SPELLING,
    *("%0", "%a.b-c$1", "%", "^bb0", "^", "!llvm.ptr", "!", "#loc1", "#0", "#"),
    *("@f", '@"a b"', "@", "@1", "é", "aé", "٣"),
    *("i32", "_x", "a.b$", "x1x", "0", "12", "0x1F", "0xi32", "0x", "1.", "1.5e-3", "1.5e", "1e5", "12i", "..", "."),
    *('"s"', '""', '"a\\nb"', '"\\ff"', '"open', '"a\nb"', "//c x\n", "// end", "/"),
    *("\n", "\t", " ", "\v", "\f", "~", "\\", "'"),
)
Found = tuple[MLIRTokenKind, str, int, int, str, int]


class XdslsLexer(MLIRLexer):
    """xDSL's, with a string literal that takes no 2^n steps."""

    _unescaped_characters_regex = QuickLexer._unescaped_characters_regex


def tokens(text: str, kind: type[MLIRLexer]) -> Iterator[Found | str]:
    lexer = kind(Input(text, "<text>"))
    try:
        while True:
            token = lexer.lex()
            span = token.span
            yield token.kind, type(span).__name__, span.start, span.end, token.text, lexer.pos
            if token.kind is MLIRTokenKind.EOF:
                return
    except ParseError as error:
        yield str(error)


LITERALS = ['""', '"a"', '"a \\22b\\n \\t \\\\ \\0A é"', '"a', '"a\n"', '"\\q"', '"\\']


@pytest.mark.parametrize("piece", [*PIECES, *LITERALS])
def test_a_token_at_the_end_of_the_text_is_xdsls(piece: str) -> None:
    assert list(tokens(piece, QuickLexer)) == list(tokens(piece, MLIRLexer))


def test_tokens_in_any_order_are_xdsls() -> None:
    draw = random.Random(0)
    found = set[MLIRTokenKind | str]()
    for _ in range(2000):
        text = draw.choice(("", " ")).join(draw.choices(PIECES, k=draw.randrange(1, 9)))
        wanted = list(tokens(text, XdslsLexer))
        assert list(tokens(text, QuickLexer)) == wanted, repr(text)
        found |= {each if isinstance(each, str) else each[0] for each in wanted}
    assert found >= set(MLIRTokenKind)


@pytest.mark.parametrize("text", ["[1 , 2", '{a = 1, "b"}', "(1 : i32)", "<1>", "?", "["])
def test_steps_of_the_parser_are_xdsls(text: str) -> None:
    def steps(kind: type[Parser]) -> list[object]:
        context = Context()
        context.load_dialect(Builtin)
        found: list[object] = []
        parser = kind(context, text, "<text>")
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

    assert steps(IRParser) == steps(Parser)


def test_a_string_that_does_not_end_is_an_error_at_once():
    """With xDSL's own pattern this line alone takes 2^40 steps."""
    (*_, message) = tokens('module attributes {a = "' + "x" * 40, QuickLexer)
    assert "before closing string literal" in str(message)
