"""StableHLO text to tokens with their positions, and a cursor over them.

    %5:2 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64}> : (tensor<4x?xf32>) -> tensor<4x?xf32> loc(#loc3)
    VALUE  STRING           VALUE    WORD        INT WORD     TYPE                TYPE            WORD ATTRIBUTE

The tokens are those of MLIR's assembly, with two exceptions that simplify the grammar: `tensor<...>` is one token (TYPE), read by
`types`, and `%5#1` is one VALUE. Whether a word is an op, a keyword or a type depends on its position. Tokens are read one at a time,
so a syntax error at the top of a large file is found at once.
Source: MLIR language reference, "Lexical structure" of the high-level structure (https://mlir.llvm.org/docs/LangRef/).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from xla_emitters.errors import Unsupported
from xla_emitters.support import cursor
from xla_emitters.support.cursor import TokenCursor
from xla_emitters.support.source import Source

STAGE = "stablehlo.parse"
MAX_NESTING = 60
"""The limit of nested regions and attributes: deeper than in real programs, and shallow enough for Python's stack."""


class StableHloTokenKind(Enum):
    """The kinds of tokens; the values are the words for messages."""

    VALUE = "a value such as %0"
    TYPE = "a type such as tensor<8xf32>"
    WORD = "a word"
    SYMBOL = "a symbol such as @main"
    ATTRIBUTE = "an attribute such as #loc1"
    DIALECT_TYPE = "a type such as !stablehlo.token"
    BLOCK = "a block such as ^bb0"
    HEX = "a hexadecimal number"
    FLOAT = "a number"
    INT = "an integer"
    STRING = "a string"
    PUNCTUATION = "punctuation"
    UNKNOWN = "an unknown character"
    END = "the end of the text"


_PATTERN = re.compile(
    r"""
    (?: [ \t\r\n]+ | //[^\n]* )*
    (?: (?P<VALUE>        %[A-Za-z0-9_$.\-]+(?:\#\d+)? )
      | (?P<TYPE>         tensor<(?:[^<>"]++|<(?:[^<>"]++|<[^<>"]*+>)*+>)*+> )
      | (?P<WORD>         [A-Za-z_][A-Za-z0-9_$.]* )
      | (?P<SYMBOL>       @(?:[A-Za-z_$.\-][A-Za-z0-9_$.\-]*|"[^"\\\n]*(?:\\.[^"\\\n]*)*") )
      | (?P<ATTRIBUTE>    \#[A-Za-z_][A-Za-z0-9_$.\-]* )
      | (?P<DIALECT_TYPE> ![A-Za-z_][A-Za-z0-9_$.\-]* )
      | (?P<BLOCK>        \^[A-Za-z0-9_$.\-]+ )
      | (?P<HEX>          0x[0-9A-Fa-f]+ )
      | (?P<FLOAT>        -?\d+\.\d*(?:[eE][+-]?\d+)? )
      | (?P<INT>          -?\d+ )
      | (?P<STRING>       "[^"\\\n]*(?:\\.[^"\\\n]*)*" )
      | (?P<PUNCTUATION>  -> | >= | :: | \{-\# | \#-\} | [=,:*+\-|/\[\]{}()<>?] )
      | (?P<END>          \Z )
      | (?P<UNKNOWN>      . )
    )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_KINDS = [StableHloTokenKind.END, *(StableHloTokenKind[name] for name in _PATTERN.groupindex)]
_ESCAPE = re.compile(rb"\\(?:([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_SHORT = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}
_CLOSERS = {"(": ")", "{": "}", "[": "]", "<": ">"}
_LARGEST = 1 << 64


Token: TypeAlias = cursor.Token[StableHloTokenKind]


def unquoted(text: str) -> str:
    """The characters of a string token, in UTF-8 where its bytes are; `\\22` is the byte 0x22. The text of any other token."""
    if not text.startswith('"'):
        return text
    inner = text[1:-1]
    if "\\" not in inner:
        return inner
    data = _ESCAPE.sub(lambda m: bytes.fromhex(m[1].decode()) if m[1] else _SHORT.get(m[2], m[2]), inner.encode())
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def quoted(text: str) -> str:
    """A string token of these characters.

    >>> quoted("größe"), unquoted(quoted("größe"))
    ('"gr\\\\C3\\\\B6\\\\C3\\\\9Fe"', 'größe')
    """
    shown = "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in text.encode())
    return f'"{shown}"'


@dataclass(frozen=True)
class Alias:
    """An attribute or a type that the text named, `#map = ...` or `!t = ...`: its value, and the text of it."""

    value: Any
    text: str


class StableHloCursor(TokenCursor[Token]):
    """Reads tokens of StableHLO text in order; `token` is the next one, not yet consumed.

    aliases  those read so far, by their names with `#` or `!`
    """

    stage = STAGE
    max_nesting = MAX_NESTING
    groups = "regions or attributes"

    def __init__(self, source: Source, aliases: dict[str, Alias] | None = None):
        super().__init__(source)
        self.aliases = {} if aliases is None else aliases

    def read(self, offset: int) -> Token:
        match = _PATTERN.match(self.source.text, offset)
        assert match is not None, "the last alternative matches any character"
        group = match.lastindex
        assert group is not None
        token = Token(_KINDS[group], match[group], match.start(group), match.end())
        if token.kind is StableHloTokenKind.UNKNOWN and token.text == '"':
            raise self.error("this string is not closed", token, help='end it with " on the same line')
        return token

    def unsupported(self, message: str, token: Token, help: str = "") -> Unsupported:
        """The error for legal text that is not taken, at a token."""
        return Unsupported(message, stage=STAGE, place=self.source.place(token.start, token.end), help=help)

    def empty(self, offset: int) -> Token:
        return Token(StableHloTokenKind.WORD, "", offset, offset)

    def integer(self, what: str) -> int:
        """Consumes an integer of 64 bits."""
        token = self.expect_kind(StableHloTokenKind.INT, what)
        value = int(token.text) if len(token.text) <= 21 else _LARGEST
        if not -(_LARGEST >> 1) <= value < _LARGEST:
            raise self.error(f"{token} does not fit 64 bits", token)
        return value

    def group(self, what: str) -> str:
        """Consumes one balanced group, such as `<[{"x"}, {}]>`, and returns its text."""
        start = self.token
        if start.text not in _CLOSERS:
            raise self.unexpected(what)
        return self.balanced(_CLOSERS, f"the end of the group that begins with '{start.text}'")
