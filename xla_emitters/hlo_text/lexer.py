"""HLO text to tokens with their positions.

    %tanh_0 = bf16[6,512]{1,0} tanh(%x), dims={0}   // a comment
    NAME    =  NAME [INT,INT]{INT,INT} NAME(NAME), NAME={INT}

The lexer is context-free and reads one token at a time, so that a syntax error at the top of a large file is found at once and a literal of
a million numbers makes no list of tokens. Keywords, opcodes, types and attribute names are all NAME: the grammar tells them apart by
position, so an instruction may be called `f32` (or `%inf`). A token is one of

    NAME        %?[A-Za-z_][A-Za-z0-9_.-]*      the text includes the `%`, `Token.name` does not
    INT FLOAT   -12   1.5e-3  -inf  nan  nan(0x7)
    SIZES       3x4x5                            window sizes
    PADDING     1_2x0_0_1                        low_high(_interior) per dimension
    LABELS      b01f_01io->b01f                  dimension labels of a convolution
    STRING      "..." or '...' with C escapes
    PUNCTUATION = , : * # + ~ [ ] { } ( ) < > ? / -> <= ...
    UNKNOWN     any other character: an error except in opaque text such as JSON
    END

Unlike XLA's lexer, spaces around `=` and `:` mean nothing.
Source: docs/reference/1 6.1.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from xla_emitters.errors import ParseError, Place


class TokenKind(Enum):
    """The kinds of tokens; the values are the words for messages."""

    NAME = "a name"
    INT = "an integer"
    FLOAT = "a number"
    SIZES = "sizes such as 3x3"
    PADDING = "padding such as 0_1x2_0"
    LABELS = "dimension labels such as b01f_01io->b01f"
    STRING = "a string"
    PUNCTUATION = "punctuation"
    UNKNOWN = "an unknown character"
    END = "the end of the text"


# One match per token, with the space and comments before it. Longest forms first: 1x2 before 1, 0_1 before 0, labels before names.
_PATTERN = re.compile(
    r"""
    (?: [ \t\r\n]+ | //[^\r\n]* | /\*.*?\*/ )*
    (?: (?P<LABELS>      [0-9bf?]{2,}_[0-9io?]{2,}->[0-9bf?]{2,} )
      | (?P<PUNCTUATION> -> | <= | \.\.\. | [=,:*\#+~\[\]{}()<>?] | /(?!\*) )
      | (?P<NAN>         -?(?:nan(?:\(0x[0-9a-fA-F]+\))?|inf)(?![A-Za-z0-9_.\-]) )
      | (?P<NAME>        %?[A-Za-z_][A-Za-z0-9_.]*(?:-(?!>)[A-Za-z0-9_.]*)* )
      | (?P<PADDING>     -?\d+_-?\d+(?:_-?\d+)?(?:x-?\d+_-?\d+(?:_-?\d+)?)* (?![A-Za-z0-9_]) )
      | (?P<SIZES>       \d+(?:x\d+)+ (?![A-Za-z0-9_]) )
      | (?P<FLOAT>       -?(?: \d+\.\d*(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ ) )
      | (?P<INT>         -?\d+ )
      | (?P<STRING>      "[^"\\]*(?:\\.[^"\\]*)*" | '[^'\\]*(?:\\.[^'\\]*)*' )
      | (?P<END>         \Z )
      | (?P<UNKNOWN>     . )
    )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
# The kind of each group of the pattern, by its number; there is no group 0.
_KINDS = [
    TokenKind.END,
    *(TokenKind.FLOAT if name == "NAN" else TokenKind[name] for name in _PATTERN.groupindex),
]
# Characters that begin an unclosed comment or string, or are not HLO text -> the message and the help.
_FAULTS = {
    "/": ("this comment is not closed", "end it with */"),
    '"': ("this string is not closed", 'end it with "'),
    "'": ("this string is not closed", "end it with '"),
    "\ufeff": ("unexpected byte order mark", "XLA refuses it too: save the file as UTF-8 without it"),
}


@dataclass(slots=True)
class Token:
    """A piece of the text: `text` is source[start:end]."""

    kind: TokenKind
    text: str
    start: int
    end: int

    @property
    def name(self) -> str:
        """A NAME without its `%`."""
        return self.text.removeprefix("%")

    def __str__(self) -> str:
        if self.kind is TokenKind.END:
            return self.kind.value
        shown = self.text if len(self.text) <= 40 else f"{self.text[:37]}..."
        return f"'{shown}'" if shown.isprintable() else ascii(shown)


class Source:
    """A text, its name, and the offsets of its lines."""

    def __init__(self, text: str, file: str):
        self.text = text
        self.file = file
        self._shown = (0, "")

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """The line and column of an offset, both from 1."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def place(self, start: int, end: int) -> Place:
        """The place of text[start:end], cut at the end of its first line."""
        line, column = self.line_and_column(start)
        return self.place_at(line, column, end - start)

    def place_at(self, line: int, column: int, width: int) -> Place:
        """The place of `width` characters at a line and column, with the line's text."""
        shown = self._line(line)
        end_column = min(column + max(width, 1), max(len(shown), column) + 1)
        return Place(self.file, line, column, end_column, shown)

    def _line(self, line: int) -> str:
        """A line as it is printed in messages. The last one is cached: a whole module may be one line, with thousands of errors."""
        if self._shown[0] == line:
            return self._shown[1]
        first = self._line_starts[line - 1]
        newline = self.text.find("\n", first)
        shown = self.text[first : newline if newline >= 0 else len(self.text)].rstrip("\r")
        if not shown.isprintable():
            shown = "".join(
                char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in shown
            )
        self._shown = (line, shown)
        return shown


class Lexer:
    """Reads tokens one by one.

    >>> lexer = Lexer(Source("%a = f32[2]", "x.hlo"))
    >>> [lexer.next().text for _ in range(4)]
    ['%a', '=', 'f32', '[']
    """

    def __init__(self, source: Source):
        self.source = source
        self.position = 0

    def next(self) -> Token:
        """The next token; at the end of the text every call returns END.

        raises ParseError for a comment or a string that is not closed, and for a byte order mark.
        """
        match = _PATTERN.match(self.source.text, self.position)
        assert match is not None, "the last alternative matches any character"
        group = match.lastindex
        assert group is not None
        self.position = match.end()
        found = Token(_KINDS[group], match[group], match.start(group), self.position)
        if found.kind is TokenKind.UNKNOWN and found.text in _FAULTS:
            message, remedy = _FAULTS[found.text]
            place = self.source.place(found.start, found.end + (found.text == "/"))
            raise ParseError(message, stage="hlo.parse", place=place, help=remedy)
        return found
