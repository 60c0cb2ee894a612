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

from xla_emitters.errors import ParseError, Place
from xla_emitters.support.source import Source

_STAGE = "target"
_SKIPPED = re.compile(r"(?:\s|#[^\n]*)*")
_TOKEN = re.compile(
    r"""(?P<string> "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
      | (?P<number> -?\s* (?: 0[xX][0-9a-fA-F]+ | (?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[fF]? ) ) (?!\w)
      | (?P<name> -?[A-Za-z_]\w* | \[[\w./-]+\](?=\s*[:{<]) )
      | (?P<mark> [{}<>\[\]:,;] )""",
    re.VERBOSE,
)
_INTEGER = re.compile(r"(?P<hexadecimal>0[xX][0-9a-fA-F]+)|(?P<octal>0[0-7]*)|(?P<decimal>[1-9][0-9]*)")
_CLOSING = {"{": "}", "<": ">"}


@dataclass(frozen=True)
class Scalar:
    """A value as written, and its place."""

    kind: str
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


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.position = 0
        self.advance()

    def advance(self) -> None:
        """Moves to the next token; after the last one its kind is "end"."""
        skipped = _SKIPPED.match(self.text, self.position)
        self.start = skipped.end() if skipped else self.position
        match = _TOKEN.match(self.text, self.start)
        self.kind, self.token = (match.lastgroup or "", match[0]) if match else ("end", "")
        self.position = self.start + len(self.token)
        if match is None and self.start < len(self.text):
            self.token = self.text[self.start]
            raise self.error("is not a token of protobuf's text format")

    def place(self) -> Place:
        return self.source.place(self.start, self.start + len(self.token))

    def error(self, what: str) -> ParseError:
        found = f"'{self.token}'" if self.token else "the end of the text"
        return ParseError(f"{found} {what}", stage=_STAGE, place=self.place())

    def takes(self, *marks: str) -> bool:
        if found := self.kind == "mark" and self.token in marks:
            self.advance()
        return found

    def message(self, closing: str) -> Message:
        """Reads fields up to `closing`, "" for the end of the text."""
        message = Message(self.place())
        while not (self.kind == "end" if closing == "" else self.takes(closing)):
            if self.kind != "name":
                raise self.error(
                    f"where a field's name or '{closing}' is expected" if closing else "is not a field's name"
                )
            values = message.fields.setdefault(self.token, [])
            self.advance()
            values += self.values(has_colon=self.takes(":"))
            self.takes(",", ";")
        return message

    def values(self, has_colon: bool) -> list[Scalar | Message]:
        """Reads the text after a field's name: one value, or a list of values."""
        if not self.takes("["):
            return [self.value(has_colon)]
        values = list[Scalar | Message]()
        while not self.takes("]"):
            values.append(self.value(has_colon))
            if not self.takes(",") and self.token != "]":
                raise self.error("where ',' or ']' is expected")
        return values

    def value(self, has_colon: bool) -> Scalar | Message:
        if self.kind == "mark" and (closing := _CLOSING.get(self.token)):
            self.advance()
            return self.message(closing)
        if not has_colon or self.kind not in ("string", "number", "name"):
            raise self.error("where a value is expected" if has_colon else "where ':' or '{' is expected")
        scalar = Scalar(self.kind, self.token, self.place())
        self.advance()
        while scalar.kind == self.kind == "string":  # adjacent strings are one string
            scalar = Scalar("string", scalar.written[:-1] + self.token[1:], scalar.place)
            self.advance()
        return scalar
