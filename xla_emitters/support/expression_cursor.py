"""Tokens of arithmetic expressions: names, integers and marks such as `+` or `->`. For the texts of indexing maps and of sizes.

th_x * 4 + v in [0, 499]        NAME MARK INT MARK NAME NAME MARK INT MARK INT MARK END
"""

from __future__ import annotations

import re
from enum import Enum
from typing import ClassVar

from xla_emitters.errors import ParseError
from xla_emitters.support.cursor import Token, TokenCursor
from xla_emitters.support.source import Source


class ExpressionKind(Enum):
    """The kinds of tokens; the values are the words for messages."""

    NAME = "a name"
    INT = "an integer"
    MARK = "a mark"
    END = "the end of the text"


ExpressionToken = Token[ExpressionKind]


class ExpressionCursor(TokenCursor[ExpressionToken]):
    """Reads the tokens of one expression or map; a language derives from it and says which marks it has.

    Raises ParseError with the place for a character that starts no token.
    """

    marks: ClassVar[re.Pattern[str]]
    """One token with the space before it, as a group named after its kind: made by `token_pattern`."""
    hints: ClassVar[dict[str, str]] = {}
    """What to write instead of a character that starts no token."""

    def __init__(self, text: str, file: str):
        super().__init__(Source(text, file))

    def read(self, offset: int) -> ExpressionToken:
        match = self.marks.match(self.source.text, offset)
        if match is None:
            raise self._unknown_character(offset)
        kind = match.lastgroup or "END"
        return Token(ExpressionKind[kind], match[kind], match.start(kind), match.end(kind))

    def empty(self, offset: int) -> ExpressionToken:
        return Token(ExpressionKind.MARK, "", offset, offset)

    def unexpected(self, wanted: str, *, help: str = "") -> ParseError:
        """One line without details: an error inside an attribute is quoted in the error of the IR around it."""
        return self.error(f"expected {wanted}, got {self.token}", self.token, help=help)

    def end(self, wanted: str = "the end of the text") -> None:
        """Raises ParseError unless all tokens are consumed."""
        if self.token.kind is not ExpressionKind.END:
            raise self.unexpected(wanted)

    def _unknown_character(self, offset: int) -> ParseError:
        text = self.source.text
        start = len(text) - len(text[offset:].lstrip())
        token = Token(ExpressionKind.MARK, text[start], start, start + 1)
        return self.error(f"unexpected character {token.text!r}", token, help=self.hints.get(token.text, ""))


def token_pattern(marks: str, first_of_name: str) -> re.Pattern[str]:
    """The pattern of one token.

    marks           a regular expression of the language's marks
    first_of_name   the characters that a name may start with, as in a set of a regular expression

    >>> match = token_pattern("->|[-+]", "A-Za-z").match("  d0 -> ")
    >>> match["NAME"], match.lastgroup
    ('d0', 'NAME')
    """
    return re.compile(rf"\s*(?:(?P<NAME>[{first_of_name}][A-Za-z0-9_]*)|(?P<INT>[0-9]+)|(?P<MARK>{marks})|(?P<END>$))")
