"""A position in HLO text that moves forward: it holds the next token, consumes it, and makes errors that name what was expected.

gelu.hlo:6:38: error: [hlo.parse] expected ')' after the operands
    %b = f32[2] negate(%a
                         ^
    got the end of the text
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from xla_emitters.dtypes import DTYPES
from xla_emitters.errors import ParseError
from xla_emitters.hlo_text.lexer import Lexer, Source, Token, TokenKind

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


class Cursor:
    """Reads tokens of a source in order; `token` is the next one, not yet consumed."""

    def __init__(self, source: Source):
        self.source = source
        self._lexer = Lexer(source)
        self._depth = 0
        self.previous = Token(TokenKind.END, "", 0, 0)
        self.token = self._lexer.next()

    def advance(self) -> Token:
        """Consumes the token and returns it."""
        token = self.previous = self.token
        self.token = self._lexer.next()
        return token

    def peek(self) -> Token:
        """The token after `token`."""
        position = self._lexer.position
        token = self._lexer.next()
        self._lexer.position = position
        return token

    def skip_to(self, offset: int) -> None:
        """Makes the token at `offset` the next one; the text before it counts as consumed."""
        self._lexer.position = offset
        self.previous = Token(TokenKind.NAME, "", offset, offset)
        self.token = self._lexer.next()

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of `texts`."""
        return self.token.text in texts

    def accept(self, text: str) -> bool:
        """Consumes the next token if it is `text`; returns whether it did."""
        if self.token.text != text:
            return False
        self.advance()
        return True

    def expect(self, text: str, where: str) -> Token:
        """Consumes `text`; `where` ends the message, e.g. "after the operands"."""
        if self.token.text != text:
            raise self.unexpected(f"'{text}' {where}")
        return self.advance()

    def expect_kind(self, kind: TokenKind, what: str) -> Token:
        """Consumes a token of that kind; `what` is its meaning, for the message."""
        if self.token.kind is not kind:
            raise self.unexpected(f"{what}, {kind.value}")
        return self.advance()

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

    @contextmanager
    def nested(self) -> Generator[None]:
        """Counts one level of nesting inside the `with`; raises ParseError above MAX_NESTING levels."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self._too_deep()
        try:
            yield
        finally:
            self._depth -= 1

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
                    if len(open_groups) + self._depth > MAX_NESTING:
                        raise self._too_deep()
                elif token.text in ")}]" and token.text != _CLOSERS[open_groups.pop().text]:
                    raise self.unexpected(f"'{_CLOSERS[start.text]}'")
            self.advance()
        return self.source.text[start.start : self.previous.end]

    def skip_instruction(self) -> None:
        """Consumes an instruction without checking its attributes and operands; raises ParseError where its groups do not match.

        It ends at the end of the computation or where the next instruction begins: at a `name =` that no comma precedes.
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

    def _too_deep(self) -> ParseError:
        return self.error(f"parentheses or braces are nested more than {MAX_NESTING} deep", self.token)

    def error(self, message: str, token: Token, *, details: tuple[str, ...] = (), help: str = "") -> ParseError:
        """An error at a token."""
        place = self.source.place(token.start, token.end)
        return ParseError(message, stage="hlo.parse", place=place, details=details, help=help)

    def unexpected(self, wanted: str, *, help: str = "") -> ParseError:
        """An error at the next token: expected `wanted`, got the token."""
        return self.error(f"expected {wanted}", self.token, details=(f"got {self.token}",), help=help)


def nearest(name: str, names: Iterable[str]) -> str:
    """`; did you mean '...'?` with the most similar name, or "" if none is similar."""
    found = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean '{found[0]}'?" if found else ""
