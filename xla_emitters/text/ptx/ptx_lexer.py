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
    END         the end, or a NUL, which texts from C end with

Source: PTX ISA 8.8, chapter 4, "Syntax".
"""

from __future__ import annotations

import re
from enum import Enum
from typing import ClassVar

from xla_emitters.support import cursor

STAGE = "ptx.parse"


class PtxTokenKind(Enum):
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
      | (?P<PUNCTUATION> << | >> | [\[\]{}()<>,;:+\-*/@!=|&~^%?](?<!/) | /(?![/*]) )
      | (?P<END>         \Z | \0 )
      | (?P<UNKNOWN>     . )
    )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
Token = cursor.Token[PtxTokenKind]


class PtxCursor(cursor.PatternCursor[PtxTokenKind]):
    """Reads the tokens of a text.

    >>> from xla_emitters.support.source import Source
    >>> cursor = PtxCursor(Source("@%p ld.b32 %r1, [%rd1+8];", "x.ptx"))
    >>> [cursor.advance().text for _ in range(6)]
    ['@', '%p', 'ld.b32', '%r1', ',', '[']
    """

    stage = STAGE
    max_nesting = 100
    groups = "blocks"
    pattern = _PATTERN
    kinds = PtxTokenKind
    faults: ClassVar = {
        "/": ("this comment is not closed", "end it with */"),
        '"': ("this string is not closed", 'end it with "'),
    }
