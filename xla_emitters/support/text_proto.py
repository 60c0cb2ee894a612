"""A reader of protocol buffers' text format, in which XLA describes GPUs: reads any message, without its schema.

    core_count: 84                          message.number("core_count", least=1)             -> 84
    cuda_compute_capability { major: 8 }    message.child("cuda_compute_capability")          -> a message
    platform_name: "CUDA"                   message.text("platform_name")                     -> "CUDA"

The caller names the fields it needs; the syntax of all others is checked, but not their names and types.
Source: protobuf's "Text Format Language Specification".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

from xla_emitters.errors import ParseError, Place
from xla_emitters.support.cursor import PatternCursor
from xla_emitters.support.source import Source

_STAGE = "target"
_INTEGER = re.compile(r"(?P<hexadecimal>0[xX][0-9a-fA-F]+)|(?P<octal>0[0-7]*)|(?P<decimal>[1-9][0-9]*)")
_CLOSING = {"{": "}", "<": ">"}


@dataclass(frozen=True)
class Scalar:
    """A value as written, and its place."""

    written: str
    place: Place


@dataclass
class Message:
    """Fields by name, each with its values in order. `place` is the beginning of the message."""

    place: Place
    fields: dict[str, list[Scalar | Message]] = field(default_factory=dict[str, "list[Scalar | Message]"])

    def child(self, name: str) -> Message | None:
        """The message in field `name`, or None. Raises ParseError if it is not a message, or if there are two."""
        value = self._only(name)
        if isinstance(value, Scalar):
            raise ParseError(f"{name} must be a message", stage=_STAGE, place=value.place, help=f"{name} {{ ... }}")
        return value

    def number(self, name: str, least: int) -> int | None:
        """The integer in field `name`, or None. Raises ParseError if it is not an integer, or below `least`."""
        value = self._only(name)
        if value is None:
            return None
        if isinstance(value, Scalar) and (match := _INTEGER.fullmatch(value.written)):
            number = int(match[0], {"hexadecimal": 16, "octal": 8, "decimal": 10}[match.lastgroup or ""])
            if least <= number < 2**63:
                return number
        got = value.written if isinstance(value, Scalar) else "a message"
        raise ParseError(f"{name} must be an integer of at least {least}, got {got}", stage=_STAGE, place=value.place)

    def text(self, name: str) -> str | None:
        """The string, without quotes, or the name in field `name`, or None."""
        value = self._only(name)
        return value.written.strip("\"'") if isinstance(value, Scalar) else None

    def _only(self, name: str) -> Scalar | Message | None:
        values = self.fields.get(name, [])
        if len(values) > 1:
            raise ParseError(
                f"{name} is given twice",
                stage=_STAGE,
                place=values[1].place,
                notes=((values[0].place, "first given here"),),
            )
        return values[0] if values else None


def parse_text_proto(text: str, file: str) -> Message:
    """Parses `text` as one message; `file` is its name in errors. Raises ParseError with the place."""
    return _Reader(Source(text, file)).message("")


class _Kind(Enum):
    STRING = "a string"
    NUMBER = "a number"
    NAME = "a name"
    MARK = "a mark"
    UNKNOWN = "an unknown character"
    END = "the end of the text"


class _Reader(PatternCursor[_Kind]):
    stage = _STAGE
    kinds = _Kind
    pattern = re.compile(
        r"""(?: \s | \#[^\n]* )*
        (?: (?P<STRING> "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
          | (?P<NUMBER> -?\s* (?: 0[xX][0-9a-fA-F]+ | (?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[fF]? ) (?!\w) )
          | (?P<NAME> -?[A-Za-z_]\w* | \[[\w./-]+\](?=\s*[:{<]) )
          | (?P<MARK> [{}<>\[\]:,;] )
          | (?P<END> \Z )
          | (?P<UNKNOWN> . ) )""",
        re.VERBOSE,
    )

    def wrong(self, what: str) -> ParseError:
        return self.error(f"{self.token} {what}", self.token)

    def place(self) -> Place:
        return self.source.place(self.token.start, self.token.end)

    def message(self, closing: str) -> Message:
        """Reads fields up to `closing`, "" for the end of the text."""
        message = Message(self.place())
        while not self.accept(closing):
            if self.token.kind is not _Kind.NAME:
                where = f"where a field's name or '{closing}' is expected" if closing else "is not a field's name"
                raise self.wrong(where)
            values = message.fields.setdefault(self.advance().text, [])
            values += self.values(has_colon=self.accept(":"))
            if self.at(",", ";"):
                self.advance()
        return message

    def values(self, has_colon: bool) -> list[Scalar | Message]:
        """Reads the text after a field's name: one value, or a list of values."""
        if not self.accept("["):
            return [self.value(has_colon)]
        values = list[Scalar | Message]()
        while not self.accept("]"):
            values.append(self.value(has_colon))
            if not self.accept(",") and not self.at("]"):
                raise self.wrong("where ',' or ']' is expected")
        return values

    def value(self, has_colon: bool) -> Scalar | Message:
        if closing := _CLOSING.get(self.token.text):
            self.advance()
            return self.message(closing)
        if not has_colon or self.token.kind not in (_Kind.STRING, _Kind.NUMBER, _Kind.NAME):
            raise self.wrong("where a value is expected" if has_colon else "where ':' or '{' is expected")
        place, first = self.place(), self.advance()
        written = first.text
        while first.kind is self.token.kind is _Kind.STRING:  # adjacent strings are one string
            written = written[:-1] + self.advance().text[1:]
        return Scalar(written, place)
