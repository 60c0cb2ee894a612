"""A position in a text that moves forward by tokens: holds the next token, consumes it, and reports errors with the expected token.

    gelu.hlo:6:38: error: [hlo.parse] expected ')' after the operands
        %b = f32[2] negate(%a
                             ^
        got the end of the text

A language derives its cursor from `TokenCursor` and says how one token is read. Tokens are read one at a time, so that a syntax error
at the top of a large file is found at once.

`PatternCursor` reads tokens by one regular expression. `ExpressionCursor` is for arithmetic expressions, the texts of indexing maps and of
sizes: names, integers and marks such as `+` or `->`.

th_x * 4 + v in [0, 499]        NAME MARK INT MARK NAME NAME MARK INT MARK INT MARK END
"""

from __future__ import annotations

import difflib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import ClassVar, Generic, TypeVar, cast

from xla_emitters.errors import ParseError
from xla_emitters.support.source import Source

K = TypeVar("K", bound=Enum, covariant=True)
T = TypeVar("T", bound="Token[Enum]")
ItemT = TypeVar("ItemT")
KindT = TypeVar("KindT", bound=Enum)

LONGEST_SHOWN = 60
"""Longer tokens are cut in messages; in characters."""


class Token(Generic[K]):
    """A piece of a text: `text` is source[start:end]. The values of `kind` are the words for messages; one of them is END."""

    __slots__ = ("end", "kind", "start", "text")

    def __init__(self, kind: K, text: str, start: int, end: int):
        self.kind = kind
        self.text = text
        self.start = start
        self.end = end

    def __str__(self) -> str:
        if self.kind.name == "END":
            return str(self.kind.value)
        shown = self.text if len(self.text) <= LONGEST_SHOWN else f"{self.text[: LONGEST_SHOWN - 3]}..."
        return f"'{shown}'" if shown.isprintable() else ascii(shown)


class TokenCursor(ABC, Generic[T]):
    """Reads the tokens of a source in order.

    token      the next token, not yet consumed
    previous   the token that was consumed last; before the first one, an empty token at offset 0
    """

    stage: ClassVar[str]
    """The stage that this cursor's errors name."""
    max_nesting: ClassVar[int]
    """The limit of nested groups: deeper than in real texts, and shallow enough for Python's stack."""
    groups: ClassVar[str]
    """The plural noun for nested groups, for the message."""

    def __init__(self, source: Source):
        self.source = source
        self.depth = 0
        self.previous = self.empty(0)
        self.token = self.read(0)

    @abstractmethod
    def read(self, offset: int) -> T:
        """The token at `offset` or after it; at the end of the text, END."""

    @abstractmethod
    def empty(self, offset: int) -> T:
        """A token without characters."""

    def advance(self) -> T:
        """Consumes the token and returns it."""
        token = self.previous = self.token
        self.token = self.read(token.end)
        return token

    def peek(self) -> T:
        """The token after `token`."""
        return self.read(self.token.end)

    def skip_to(self, offset: int) -> None:
        """Makes the token at `offset` the next one; the text before it counts as consumed."""
        self.previous = self.empty(offset)
        self.token = self.read(offset)

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of `texts`."""
        return self.token.text in texts

    def accept(self, text: str) -> bool:
        """Consumes the next token if it is `text`; returns whether it did."""
        if self.token.text != text:
            return False
        self.advance()
        return True

    def expect(self, text: str, where: str) -> T:
        """Consumes `text`; `where` ends the message, e.g. "after the operands"."""
        if self.token.text != text:
            raise self.unexpected(f"'{text}' {where}")
        return self.advance()

    def items(self, close: str, item: Callable[[], ItemT], what: str) -> list[ItemT]:
        """Consumes items with commas between them, each by `item`, and then `close`; `what` is the noun of one, with its article."""
        found = list[ItemT]()
        while not self.at(close):
            if found:
                self.expect(",", f"or '{close}' after {what}")
            found.append(item())
        self.advance()
        return found

    def balanced(self, closers: Mapping[str, str], wanted: str, deepest: int | None = None) -> str:
        """Consumes the group that begins here; returns its text.

        closers  opening bracket -> closing one
        wanted   what is expected where another bracket closes
        deepest  the limit of groups in one another; None: any number
        """
        start, opened = self.token.start, [self.advance()]
        while opened:
            token = self.token
            if not token.text:  # the end
                raise self.error(f"this '{opened[-1].text}' is not closed", opened[-1])
            if token.text in closers:
                if len(opened) == deepest:
                    raise self.too_deep()
                opened.append(token)
            elif token.text in closers.values() and token.text != closers[opened.pop().text]:
                raise self.unexpected(wanted)
            self.advance()
        return self.source.text[start : self.previous.end]

    def expect_kind(self, kind: Enum, what: str) -> T:
        """Consumes a token of that kind; `what` is its meaning, for the message."""
        if self.token.kind is not kind:
            raise self.unexpected(f"{what}, {kind.value}")
        return self.advance()

    @contextmanager
    def nested(self) -> Generator[None]:
        """Counts one level of nesting inside the `with`; raises ParseError above `max_nesting` levels."""
        self.depth += 1
        if self.depth > self.max_nesting:
            raise self.too_deep()
        try:
            yield
        finally:
            self.depth -= 1

    def too_deep(self) -> ParseError:
        """An error at the next token: one level of nesting too many."""
        return self.error(f"{self.groups} are nested more than {self.max_nesting} deep", self.token)

    def error(self, message: str, token: T, *, details: tuple[str, ...] = (), help: str = "") -> ParseError:
        """An error at a token."""
        place = self.source.place(token.start, token.end)
        return ParseError(message, stage=self.stage, place=place, details=details, help=help)

    def unexpected(self, wanted: str, *, help: str = "") -> ParseError:
        """An error at the next token: expected `wanted`, got the token."""
        return self.error(f"expected {wanted}", self.token, details=(f"got {self.token}",), help=help)


class PatternCursor(TokenCursor[Token[KindT]]):
    """Reads tokens by one regular expression, whose groups are named after the kinds of tokens.

    pattern  one token with the space and the comments before it; END is at the end of the text, UNKNOWN any other character
    kinds    the kinds of tokens
    faults   an unknown character -> message and help
    """

    pattern: ClassVar[re.Pattern[str]]
    kinds: ClassVar[type[Enum]]
    faults: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def read(self, offset: int) -> Token[KindT]:
        """The token at `offset` or after it. raises ParseError for an unknown character, such as that of a string that is not closed"""
        match = self.pattern.match(self.source.text, offset)
        assert match is not None, "the last alternative matches any character"
        kind = match.lastgroup
        assert kind is not None
        found = Token(cast("KindT", self.kinds[kind]), match[kind], match.start(kind), match.end())
        if kind == "UNKNOWN":
            message, remedy = self.faults.get(found.text, (f"unexpected character {found}", ""))
            raise self.error(message, found, help=remedy)
        return found

    def empty(self, offset: int) -> Token[KindT]:
        return Token(cast("KindT", self.kinds["END"]), "", offset, offset)


def nearest(name: str, names: Iterable[str]) -> str:
    """`; did you mean '...'?` with the shortest name that `name` begins, else the most similar one; "" if none is similar."""
    known = list(names)
    longer = [each for each in known if len(name) > 1 and each.startswith(name)]
    found = min(longer, key=len) if longer else next(iter(difflib.get_close_matches(name, known, n=1)), None)
    return f"; did you mean '{found}'?" if found else ""


def split_at_commas(text: str) -> list[str]:
    """The parts of a text between commas that are outside of brackets, without those that are empty.

    >>> split_at_commas("func.func(a,b), c{x=1,y}, vector<2x[4]xf32>")
    ['func.func(a,b)', 'c{x=1,y}', 'vector<2x[4]xf32>']
    """
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<([{") - (character in ">)]}")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


class ExpressionKind(Enum):
    """The kinds of tokens; the values are the words for messages."""

    NAME = "a name"
    INT = "an integer"
    MARK = "a mark"
    UNKNOWN = "an unknown character"
    END = "the end of the text"


ExpressionToken = Token[ExpressionKind]


class ExpressionCursor(PatternCursor[ExpressionKind]):
    """Reads the tokens of one expression or map; a language derives from it, and `token_pattern` makes its `pattern`."""

    kinds = ExpressionKind

    def __init__(self, text: str, file: str):
        super().__init__(Source(text, file))

    def unexpected(self, wanted: str, *, help: str = "") -> ParseError:
        """One line without details: an error inside an attribute is quoted in the error of the IR around it."""
        return self.error(f"expected {wanted}, got {self.token}", self.token, help=help)

    def end(self, wanted: str = "the end of the text") -> None:
        """Raises ParseError unless all tokens are consumed."""
        if self.token.kind is not ExpressionKind.END:
            raise self.unexpected(wanted)


def token_pattern(marks: str, first_of_name: str) -> re.Pattern[str]:
    """The pattern of one token.

    marks           a regular expression of the language's marks
    first_of_name   the characters that a name may start with, as in a set of a regular expression

    >>> match = token_pattern("->|[-+]", "A-Za-z").match("  d0 -> ")
    >>> match["NAME"], match.lastgroup
    ('d0', 'NAME')
    """
    known = rf"(?P<NAME>[{first_of_name}][A-Za-z0-9_]*)|(?P<INT>[0-9]+)|(?P<MARK>{marks})"
    return re.compile(rf"\s*(?:{known}|(?P<END>\Z)|(?P<UNKNOWN>.))")
