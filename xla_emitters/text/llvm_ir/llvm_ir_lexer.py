"""LLVM IR to tokens with their positions.

    %v.4 = load <4 x bfloat>, ptr %v.3, align 8, !invariant.load !5     ; a comment
    LOCAL = WORD < NUMBER WORD WORD >, WORD LOCAL, WORD NUMBER, METADATA METADATA

A name in quotes is one token, as are a label with its colon and `c"..."`. Source: LLVM language reference, "Identifiers"; LLLexer.cpp.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import ClassVar

from xla_emitters.support import cursor

STAGE = "llvm.parse"


class LlvmTokenKind(Enum):
    """The kinds of tokens; the values are the words for messages."""

    LABEL = "a label such as bb0:"
    LOCAL = "a name such as %x"
    GLOBAL = "a name such as @f"
    METADATA = "metadata such as !5"
    GROUP = "a group of attributes such as #0"
    NUMBER = "a number"
    STRING = "a string"
    PUNCTUATION = "punctuation"
    WORD = "a word"
    UNKNOWN = "an unknown character"
    END = "the end of the text"


_NAME = r'(?: [-\w$.]+ | "[^"\n]*" )'
_PATTERN = re.compile(
    rf"""
    (?: [ \t\r\n\f]+ | ;[^\n]* )*
    (?: (?P<LABEL>       {_NAME}: )
      | (?P<LOCAL>       %{_NAME} )
      | (?P<GLOBAL>      @{_NAME} )
      | (?P<METADATA>    !(?: [-\w$.\\]+ | "[^"\n]*" )? )
      | (?P<GROUP>       \#\w+ )
      | (?P<NUMBER>      0x[HRKLM]?[0-9a-fA-F]+\b | [-+]?\d+(?: \.\d*(?: [eE][-+]?\d+ )? )? )
      | (?P<STRING>      c?"[^"\n]*" )
      | (?P<PUNCTUATION> \.\.\. | [()\[\]{{}}<>,=*|:$^] )
      | (?P<WORD>        [A-Za-z_.][\w.]* )
      | (?P<END>         \Z )
      | (?P<UNKNOWN>     . )
    )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPED = re.compile(r"\\(\\|[0-9a-fA-F]{2})")

Token = cursor.Token[LlvmTokenKind]


class LlvmCursor(cursor.PatternCursor[LlvmTokenKind]):
    """Reads the tokens of a text.

    >>> from xla_emitters.support.source import Source
    >>> cursor = LlvmCursor(Source("%a = add i32 %b, 1", "x.ll"))
    >>> [cursor.advance().text for _ in range(5)]
    ['%a', '=', 'add', 'i32', '%b']
    """

    stage = STAGE
    max_nesting = 100
    groups = "groups"
    pattern = _PATTERN
    kinds = LlvmTokenKind
    faults: ClassVar = {'"': ("this string is not closed", "")}

    def accept_any(self, *texts: str) -> str:
        """Consumes the next token if it is one of `texts`; returns it, else ""."""
        return self.advance().text if self.token.text in texts else ""

    def skip_group(self) -> None:
        """Consumes a group in parentheses, brackets or braces, with all that is inside it."""
        depth = 0
        while True:
            text = self.advance().text
            depth += (text in "([{") - (text in ")]}") if len(text) == 1 else 0
            if depth == 0:
                return
            if self.token.kind is LlvmTokenKind.END:
                raise self.unexpected("the end of the group")

    def integer(self, what: str) -> int:
        """A number without a sign and of a bearable size."""
        token = self.expect_kind(LlvmTokenKind.NUMBER, what)
        if not token.text.isdigit() or len(token.text) > 18:
            raise self.error(f"{what} must be a whole number", token)
        return int(token.text)


def unescaped(text: str) -> bytes:
    r"""The bytes of a string without its quotes: `\0A` is one of them."""
    return _ESCAPED.sub(lambda m: "\\" if m[1] == "\\" else chr(int(m[1], 16)), text).encode("latin-1", "replace")


def name_of(token: Token) -> str:
    """The name in a token such as `%x`, `@"a b"` or `bb0:`, without its sign and quotes."""
    text = token.text[:-1] if token.kind is LlvmTokenKind.LABEL else token.text[1:]
    return unescaped(text[1:-1]).decode("latin-1") if text.startswith('"') else text
