"""Tokens of MLIR text, in fewer calls than xDSL's lexer makes.

    %0 = arith.addi %a, %b : i32    two expressions and nine calls per token     ->  one expression for the blanks and the token

Only plain tokens are read here: ASCII identifiers, numbers, punctuation, strings without backslashes. Everything else, the end and errors
included, is left to xDSL's lexer, which reads it again from the same position. So tokens, positions and messages are xDSL's.
Source: xDSL, xdsl/utils/mlir_lexer.py, xdsl/utils/lexer.py.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from xdsl.utils.lexer import Span, Token
from xdsl.utils.mlir_lexer import (
    KIND_BY_PUNCTUATION_SPELLING,
    MLIRLexer,
    MLIRToken,
    MLIRTokenKind,
    StringLiteral,
)

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


class QuickToken(Token[MLIRTokenKind, str]):
    """A token that holds its text; xDSL's cuts it out of the input each time."""

    # In place of a property: each token has a value of its own.
    text: str = ""  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]


class QuickLexer(MLIRLexer):
    """xDSL's lexer, with the changes listed in the file's head."""

    # As in xDSL, except for the possessive `++` and `*+`: without them the time to notice a missing closing quote doubles with every
    # character.
    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')

    def lex(self) -> MLIRToken:
        """The next token. raises xDSL's ParseError if there is none"""
        source = self.input
        found = _TOKEN.match(source.content, self.pos)
        if found is None:
            return super().lex()
        group: Any = found.lastindex
        span = _new(_SPANS[group])
        # A frozen dataclass: its __init__ sets each field by a function call.
        fields = span.__dict__
        fields["start"], fields["end"] = found.span(group)
        fields["input"] = source
        self.pos = fields["end"]
        token: MLIRToken = _new(QuickToken)
        token.kind = _KINDS[group]
        token.span = span
        token.text = found[group]  # pyright: ignore[reportAttributeAccessIssue]
        return token
