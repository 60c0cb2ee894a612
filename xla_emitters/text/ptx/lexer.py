"""PTX to tokens with their positions.

    @%p1 ld.global.nc.v2.b32 {%r1, %r2}, [%rd1+8];    // a comment
    @ NAME NAME {NAME, NAME}, [NAME + NUMBER];

An instruction with its modifiers is one NAME, as are a register, a special register (`%tid.x`), a label and a symbol. A token is one of

    NAME        [%$_A-Za-z] and what follows, dots and `::` included
    DIRECTIVE   .version  .align  .b32
    NUMBER      -12  0x1FU  0b101  017  1.5e-3  0f3F800000 (f32's bits)  0d3FF0000000000000 (f64's bits)
    STRING      "..."
    PUNCTUATION any other character of PTX
    UNKNOWN     any other character
    END

Source: PTX ISA 8.8, chapter 4, "Syntax".
"""

from __future__ import annotations

import re
from enum import Enum

from xla_emitters.errors import ParseError
from xla_emitters.support import cursor
from xla_emitters.support.source import Source

STAGE = "ptx.parse"


class TokenKind(Enum):
    """The kinds of tokens; the values are the words for messages."""

    NAME = "a name"
    DIRECTIVE = "a directive"
    NUMBER = "a number"
    STRING = "a string"
    PUNCTUATION = "punctuation"
    UNKNOWN = "an unknown character"
    END = "the end of the text"


_PATTERN = re.compile(
    r"""
    (?: [ \t\r\n\f]+ | //[^\n]* | /\*.*?\*/ )*
    (?: (?P<NAME>        (?: [%$_][\w$]* | [A-Za-z][\w$]* ) (?: \.\w+ (?: ::\w+ )* )* )
      | (?P<DIRECTIVE>   \.[A-Za-z_]\w*(?: ::\w+ )* )
      | (?P<NUMBER>      0[fF][0-9a-fA-F]{8}\b | 0[dD][0-9a-fA-F]{16}\b | 0[xX][0-9a-fA-F]+U? | 0[bB][01]+U?
                       | \d+\.\d*(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ | \d+U? )
      | (?P<STRING>      "[^"\\\n]*(?:\\.[^"\\\n]*)*" )
      | (?P<PUNCTUATION> [\[\]{}()<>,;:+\-*/@!=|&~^%?](?<!/) | /(?![/*]) )
      | (?P<END>         \Z )
      | (?P<UNKNOWN>     . )
    )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_KINDS = [TokenKind.END, *(TokenKind[name] for name in _PATTERN.groupindex)]
_FAULTS = {"/": ("this comment is not closed", "end it with */"), '"': ("this string is not closed", 'end it with "')}

Token = cursor.Token[TokenKind]


def read_token(source: Source, offset: int) -> Token:
    """The token at `offset` or after it; at the end of the text, END. raises ParseError for a comment or a string that is not closed

    >>> source = Source("@%p ld.b32 %r1, [%rd1+8];", "x.ptx")
    >>> [read_token(source, offset).text for offset in (0, 1, 3, 15, 16)]
    ['@', '%p', 'ld.b32', '[', '[']
    """
    match = _PATTERN.match(source.text, offset)
    assert match is not None, "the last alternative matches any character"
    group = match.lastindex
    assert group is not None
    found = Token(_KINDS[group], match[group], match.start(group), match.end())
    if found.kind is TokenKind.UNKNOWN:
        message, remedy = _FAULTS.get(found.text, (f"unexpected character {found}", ""))
        raise ParseError(message, stage=STAGE, place=source.place(found.start, found.end), help=remedy)
    return found
