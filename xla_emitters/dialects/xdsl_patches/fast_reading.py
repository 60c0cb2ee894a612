"""Faster reading of MLIR text: tokens and the parser's smallest steps, in fewer calls than xDSL 0.74 makes.

    %0 = arith.addi %a, %b : i32    two expressions and nine calls per token     ->  one expression for the blanks and the token
    parser._current_token           a call of a Python function                  ->  `attrgetter`
    parser.parse_punctuation(",")   four calls before the token is compared      ->  none

Only plain tokens are read here: ASCII identifiers, numbers, punctuation, strings without backslashes. Everything else, the end and errors
included, is left to xDSL's own function, which reads it again from the same position. So tokens, positions and messages are xDSL's.
Source: xDSL 0.74, xdsl/utils/mlir_lexer.py, xdsl/utils/lexer.py, xdsl/parser/generic_parser.py, xdsl/parser/base_parser.py.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

from xdsl.parser import attribute_parser
from xdsl.parser.base_parser import BaseParser
from xdsl.parser.generic_parser import GenericParser
from xdsl.utils.lexer import Span, Token
from xdsl.utils.mlir_lexer import (
    KIND_BY_PUNCTUATION_SPELLING,
    MLIRLexer,
    MLIRToken,
    MLIRTokenKind,
    StringLiteral,
)

from xla_emitters.dialects.xdsl_patches.patch import Member

_new: Callable[[Any], Any] = object.__new__

_SUFFIX = r"(?:[0-9]+|[a-zA-Z$._-][a-zA-Z0-9$._-]*)"
_NAME = r"[a-zA-Z_][a-zA-Z0-9_$.]*"


class _Plain(NamedTuple):
    """A kind of token that is read here."""

    kind: MLIRTokenKind
    expression: str
    span: type[Span[str]] = Span


_PLAIN = (
    _Plain(MLIRTokenKind.PERCENT_IDENT, f"%{_SUFFIX}"),
    _Plain(MLIRTokenKind.BARE_IDENT, _NAME),
    *(_Plain(KIND_BY_PUNCTUATION_SPELLING[each], re.escape(each)) for each in (",", ":", "(", ")", "=", "<", ">")),
    _Plain(MLIRTokenKind.FLOAT_LIT, r"[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?"),
    _Plain(MLIRTokenKind.INTEGER_LIT, "0x[0-9a-fA-F]+|[0-9]+"),
    _Plain(MLIRTokenKind.EXCLAMATION_IDENT, f"!{_SUFFIX}"),
    _Plain(MLIRTokenKind.STRING_LIT, r'"[^"\\\n\v\f]*"', StringLiteral),
    _Plain(MLIRTokenKind.L_BRACE, r"\{(?!-#)"),
    *(_Plain(KIND_BY_PUNCTUATION_SPELLING[each], re.escape(each)) for each in ("}", "[", "]", "?", "*", "|", "+")),
    _Plain(MLIRTokenKind.HASH_IDENT, rf"#(?!-\}}){_SUFFIX}"),
    _Plain(MLIRTokenKind.AT_IDENT, f"@{_NAME}"),
    _Plain(MLIRTokenKind.CARET_IDENT, rf"\^{_SUFFIX}"),
    _Plain(MLIRTokenKind.ARROW, "->"),
    _Plain(MLIRTokenKind.MINUS, "-(?!>)"),
)
# Possessive: a comment must not be cut so that its rest is read as a token.
_TOKEN = re.compile(r"(?:\s++|//[^\n]*+)*+(?:" + "|".join(f"({each.expression})" for each in _PLAIN) + ")", re.ASCII)
# By number of the group; group 0 is the whole match.
_KINDS = (MLIRTokenKind.EOF, *[each.kind for each in _PLAIN])
_SPANS: tuple[type[Span[str]], ...] = (Span, *[each.span for each in _PLAIN])


def _lexing(own: Callable[[MLIRLexer], MLIRToken]) -> Callable[[MLIRLexer], MLIRToken]:
    match_at = _TOKEN.match

    def lex(self: MLIRLexer) -> MLIRToken:
        text = self.input
        # The lexer of declarative formats inherits this one and has other identifiers.
        found = match_at(text.content, self.pos) if type(self) is MLIRLexer else None
        if found is None:
            return own(self)
        group: Any = found.lastindex
        span = _new(_SPANS[group])
        # A frozen dataclass: its __init__ sets each field by a function call.
        fields = span.__dict__
        fields["start"], fields["end"] = found.span(group)
        fields["input"] = text
        self.pos = fields["end"]
        token: MLIRToken = _new(Token)
        token.kind = _KINDS[group]
        token.span = span
        return token

    return lex


def _text(self: Token[Any, Any]) -> str:
    span = self.span
    content = span.input.content[span.start : span.end]
    return content if type(content) is str else self.span.text


def _consume_token(own: Callable[..., Any]) -> Callable[..., Any]:
    def consume(self: GenericParser[Any, Any], expected_kind: Any = None) -> Any:
        state = self._parser_state
        token = state.current_token
        if expected_kind is not None and token.kind != expected_kind:
            return own(self, expected_kind)
        state.current_token = state.lexer.lex()
        return token

    return consume


def _parse_optional_token(self: GenericParser[Any, Any], expected_kind: Any) -> Any:
    state = self._parser_state
    token = state.current_token
    if token.kind is not expected_kind:
        return None
    state.current_token = state.lexer.lex()
    return token


def _parse_optional_characters(self: GenericParser[Any, Any], text: str) -> str | None:
    state = self._parser_state
    if state.current_token.text != text:
        return None
    state.current_token = state.lexer.lex()
    return text


def _optional_punctuation(own: Callable[..., Any]) -> Callable[..., Any]:
    kinds: dict[str, MLIRTokenKind] = dict(KIND_BY_PUNCTUATION_SPELLING)

    def parse_optional_punctuation(self: BaseParser, punctuation: Any) -> Any:
        state = self._parser_state
        if punctuation not in kinds:
            return own(self, punctuation)
        if state.current_token.kind is not kinds[punctuation]:
            return None
        state.current_token = state.lexer.lex()
        return punctuation

    return parse_optional_punctuation


def _punctuation(own: Callable[..., Any]) -> Callable[..., Any]:
    kinds: dict[str, MLIRTokenKind] = dict(KIND_BY_PUNCTUATION_SPELLING)

    def parse_punctuation(self: BaseParser, punctuation: Any, context_msg: str = "") -> Any:
        state = self._parser_state
        if punctuation not in kinds or state.current_token.kind is not kinds[punctuation]:
            return own(self, punctuation, context_msg)
        state.current_token = state.lexer.lex()
        return punctuation

    return parse_punctuation


_GETTERS = (
    ("_current_token", "_parser_state.current_token"),
    ("lexer", "_parser_state.lexer"),
    ("pos", "_parser_state.current_token.span.start"),
)

FAST_READING: tuple[Member, ...] = (
    Member(MLIRLexer, "lex", "makes nine calls a token", _lexing),
    Member(Token, "text", "calls five functions", lambda _: property(_text)),
    *(
        Member(GenericParser, name, "calls a function", lambda _, path=path: property(attrgetter(path)))
        for name, path in _GETTERS
    ),
    Member(GenericParser, "_consume_token", "calls two properties", _consume_token),
    Member(GenericParser, "_parse_optional_token", "calls `_consume_token`", lambda _: _parse_optional_token),
    Member(GenericParser, "parse_optional_characters", "calls `_consume_token`", lambda _: _parse_optional_characters),
    Member(BaseParser, "parse_optional_punctuation", "looks the spelling up three times", _optional_punctuation),
    Member(BaseParser, "parse_punctuation", "looks the spelling up three times", _punctuation),
    Member(attribute_parser, "base", "makes the constraint of a dense attribute's type anew each time", cache),
)
