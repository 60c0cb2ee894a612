"""The cursor over tokens of HLO text: also reads names, numbers, and text that is kept as it is (`opaque`)."""

from __future__ import annotations

import re

from xla_emitters.dtypes import DTYPES
from xla_emitters.support.cursor import TokenCursor
from xla_emitters.text.hlo.lexer import Token, TokenKind, read_token

MAX_NESTING = 200
"""How deep parentheses and braces may be nested: far deeper than in real modules, and shallow enough for Python's stack."""

# A group without nested groups and comments, matched at once instead of token by token: most opaque text has this form.
# The quantifiers are possessive, so an unclosed group fails in one pass, without backtracking.
_FLAT_GROUP = re.compile(r"""\{(?:[^{}()\[\]"'/]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+\}""", re.DOTALL)
_CLOSERS = {"(": ")", "{": "}", "[": "]"}
_LARGEST = 1 << 63
# The words that are not names in XLA's lexer (`nan` and `inf` are numbers here), and the types.
_RESERVED = frozenset(
    """HloModule ENTRY ROOT true false maximal replicated manual last_tile_dim_replicate shard_as shard_like unknown unreduced
    token opaque""".split()
) | {row.name for row in DTYPES}


class Cursor(TokenCursor[Token]):
    """Reads tokens of HLO text in order; `token` is the next one, not yet consumed."""

    stage = "hlo.parse"
    max_nesting = MAX_NESTING
    groups = "parentheses or braces"

    def read(self, offset: int) -> Token:
        return read_token(self.source, offset)

    def empty(self, offset: int) -> Token:
        return Token(TokenKind.NAME, "", offset, offset)

    def name(self, what: str) -> Token:
        """Consumes a name."""
        if self.token.kind is not TokenKind.NAME:
            raise self.unexpected(what)
        return self.advance()

    def new_name(self, what: str) -> Token:
        """Consumes a name that is defined here: not a reserved word of HLO text, unless it is written with `%`."""
        if self.token.text in _RESERVED:
            raise self.error(f"'{self.token.text}' cannot be {what}", self.token, help=f"write %{self.token.text}_")
        return self.name(what)

    def integer(self, what: str) -> int:
        """Consumes an integer of 64 bits."""
        token = self.expect_kind(TokenKind.INT, what)
        return self.to_integer(token)

    def to_integer(self, token: Token) -> int:
        """The value of an INT token; raises ParseError when it has more than 64 bits."""
        value = int(token.text) if len(token.text) <= 20 else _LARGEST
        if not -_LARGEST <= value < _LARGEST:
            raise self.error(f"{token} does not fit 64 bits", token)
        return value

    def boolean(self, what: str) -> bool:
        """Consumes `true` or `false`."""
        if self.token.text not in ("true", "false"):
            raise self.unexpected(f"{what}, 'true' or 'false'")
        return self.advance().text == "true"

    def opaque(self, what: str) -> str:
        """Consumes one token or one balanced group, and returns its text unchanged."""
        start = self.token
        if start.kind is TokenKind.END:
            raise self.unexpected(what)
        if start.text == "{" and (group := _FLAT_GROUP.match(self.source.text, start.start)):
            self.skip_to(group.end())
            return group[0]
        self.advance()
        if start.text not in _CLOSERS:
            return start.text
        open_groups = [start]
        while open_groups:
            token = self.token
            if token.kind is TokenKind.END:
                opener = open_groups[-1]
                raise self.error(f"this '{opener.text}' is not closed", opener)
            if token.kind is TokenKind.PUNCTUATION:
                if token.text in _CLOSERS:
                    open_groups.append(token)
                    if len(open_groups) + self.depth > MAX_NESTING:
                        raise self.too_deep()
                elif token.text in ")}]" and token.text != _CLOSERS[open_groups.pop().text]:
                    raise self.unexpected(f"'{_CLOSERS[start.text]}'")
            self.advance()
        return self.source.text[start.start : self.previous.end]

    def skip_instruction(self) -> None:
        """Consumes an instruction without checking its attributes and operands; raises ParseError where its groups do not match.

        The instruction ends at the end of the computation, or where the next one begins: at a `name =` without a comma before it.
        """
        self.accept("ROOT")
        self.advance()
        while not self.at("}"):
            at_name = self.token.kind is TokenKind.NAME and self.previous.text != ","
            if at_name and (self.peek().text == "=" or (self.at("ROOT") and self.peek().kind is TokenKind.NAME)):
                return
            if self.at(")", "]"):
                raise self.unexpected("an instruction")
            self.opaque("an instruction")
