"""HLO text to tokens with their positions.

    %tanh_0 = bf16[6,512]{1,0} tanh(%x), dims={0}   // a comment
    NAME    =  NAME [INT,INT]{INT,INT} NAME(NAME), NAME={INT}

The lexer is context-free and reads one token at a time, so that a syntax error at the top of a large file is found at once and a literal of
a million numbers makes no list of tokens. Keywords, opcodes, types and attribute names are all NAME: the grammar tells them apart by
position, so an instruction may be called `f32` (or `%inf`). A token is one of

    NAME        %?[A-Za-z_][A-Za-z0-9_.-]*      the text includes the `%`, `HloToken.name` does not
    INT FLOAT   -12   1.5e-3  -inf  nan  nan(0x7)
    SIZES       3x4x5                            window sizes
    PADDING     1_2x0_0_1                        low_high(_interior) per dimension
    LABELS      b01f_01io->b01f                  dimension labels of a convolution
    STRING      "..." or '...' with C escapes
    PUNCTUATION = , : * # + ~ [ ] { } ( ) < > ? / -> <= ...
    UNKNOWN     any other character: an error except in opaque text such as JSON
    END

Unlike XLA's lexer, spaces around `=` and `:` mean nothing.
The cursor over tokens also reads names, numbers, and text that is kept as it is (`opaque`).
Source: docs/reference/1 6.1.
"""

from __future__ import annotations

import re
from enum import Enum

from xla_emitters.dtypes import DTYPES
from xla_emitters.errors import ParseError
from xla_emitters.support import cursor
from xla_emitters.support.cursor import TokenCursor
from xla_emitters.support.source import Source


class HloTokenKind(Enum):
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
    HloTokenKind.END,
    *(HloTokenKind.FLOAT if name == "NAN" else HloTokenKind[name] for name in _PATTERN.groupindex),
]
# Characters that begin an unclosed comment or string, or are not HLO text -> the message and the help.
_FAULTS = {
    "/": ("this comment is not closed", "end it with */"),
    '"': ("this string is not closed", 'end it with "'),
    "'": ("this string is not closed", "end it with '"),
    "\ufeff": ("unexpected byte order mark", "XLA refuses it too: save the file as UTF-8 without it"),
}


class HloToken(cursor.Token[HloTokenKind]):
    """A piece of HLO text."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """A NAME without its `%`."""
        return self.text.removeprefix("%")


def read_token(source: Source, offset: int) -> HloToken:
    """The token at `offset` or after it; at the end of the text, END.

    raises ParseError for a comment or a string that is not closed, and for a byte order mark.

    >>> source = Source("%a = f32[2]", "x.hlo")
    >>> [read_token(source, offset).text for offset in (0, 2, 4, 8)]
    ['%a', '=', 'f32', '[']
    """
    match = _PATTERN.match(source.text, offset)
    assert match is not None, "the last alternative matches any character"
    group = match.lastindex
    assert group is not None
    found = HloToken(_KINDS[group], match[group], match.start(group), match.end())
    if found.kind is HloTokenKind.UNKNOWN and found.text in _FAULTS:
        message, remedy = _FAULTS[found.text]
        place = source.place(found.start, found.end + (found.text == "/"))
        raise ParseError(message, stage="hlo.parse", place=place, help=remedy)
    return found


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


class HloCursor(TokenCursor[HloToken]):
    """Reads tokens of HLO text in order; `token` is the next one, not yet consumed."""

    stage = "hlo.parse"
    max_nesting = MAX_NESTING
    groups = "parentheses or braces"

    def read(self, offset: int) -> HloToken:
        return read_token(self.source, offset)

    def empty(self, offset: int) -> HloToken:
        return HloToken(HloTokenKind.NAME, "", offset, offset)

    def name(self, what: str) -> HloToken:
        """Consumes a name."""
        if self.token.kind is not HloTokenKind.NAME:
            raise self.unexpected(what)
        return self.advance()

    def new_name(self, what: str) -> HloToken:
        """Consumes a name that is defined here: not a reserved word of HLO text, unless it is written with `%`."""
        if self.token.text in _RESERVED:
            raise self.error(f"'{self.token.text}' cannot be {what}", self.token, help=f"write %{self.token.text}_")
        return self.name(what)

    def integer(self, what: str) -> int:
        """Consumes an integer of 64 bits."""
        token = self.expect_kind(HloTokenKind.INT, what)
        return self.to_integer(token)

    def to_integer(self, token: HloToken) -> int:
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
        if start.kind is HloTokenKind.END:
            raise self.unexpected(what)
        if start.text == "{" and (group := _FLAT_GROUP.match(self.source.text, start.start)):
            self.skip_to(group.end())
            return group[0]
        if start.text not in _CLOSERS:
            return self.advance().text
        return self.balanced(_CLOSERS, f"'{_CLOSERS[start.text]}'", MAX_NESTING - self.depth)

    def skip_instruction(self) -> None:
        """Consumes an instruction without checking its attributes and operands; raises ParseError where its groups do not match.

        The instruction ends at the end of the computation, or where the next one begins: at a `name =` without a comma before it.
        """
        self.accept("ROOT")
        self.advance()
        while not self.at("}"):
            at_name = self.token.kind is HloTokenKind.NAME and self.previous.text != ","
            if at_name and (self.peek().text == "=" or (self.at("ROOT") and self.peek().kind is HloTokenKind.NAME)):
                return
            if self.at(")", "]"):
                raise self.unexpected("an instruction")
            self.opaque("an instruction")
