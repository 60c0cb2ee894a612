"""Protocol buffers' text format, which XLA describes GPUs in: any message, without its schema.

    core_count: 84                          message.number("core_count", least=1)             -> 84
    cuda_compute_capability { major: 8 }    message.child("cuda_compute_capability")          -> a message
    platform_name: "CUDA"                   message.text("platform_name")                     -> "CUDA"

Which fields there are is for the reader to know: one that nobody asks for is only checked for its syntax.
Source: protobuf's "Text Format Language Specification".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from xla_emitters.errors import ParseError, Place

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
    """A value as it is written, and where."""

    kind: str
    written: str
    place: Place


@dataclass
class Message:
    """Fields by name, each with its values in order. `place` is where the message begins."""

    place: Place
    fields: dict[str, list[Scalar | Message]] = field(default_factory=dict[str, "list[Scalar | Message]"])

    def child(self, name: str) -> Message | None:
        """The message called `name`, or None. raises ParseError where it is something else, or there are two."""
        value = self._only(name)
        if isinstance(value, Scalar):
            raise ParseError(f"{name} is a message", stage=_STAGE, place=value.place, help=f"{name} {{ ... }}")
        return value

    def number(self, name: str, least: int) -> int | None:
        """The integer called `name`, or None. raises ParseError where it is something else, or below `least`."""
        value = self._only(name)
        if value is None:
            return None
        if isinstance(value, Scalar) and (match := _INTEGER.fullmatch(value.written)):
            number = int(match[0], {"hexadecimal": 16, "octal": 8, "decimal": 10}[match.lastgroup or ""])
            if least <= number < 2**63:
                return number
        got = value.written if isinstance(value, Scalar) else "a message"
        raise ParseError(f"{name} is {got}; an integer of {least} or more is wanted", stage=_STAGE, place=value.place)

    def text(self, name: str) -> str | None:
        """The string or the name called `name`, without quotes, or None."""
        value = self._only(name)
        return value.written.strip("\"'") if isinstance(value, Scalar) else None

    def _only(self, name: str) -> Scalar | Message | None:
        values = self.fields.get(name, [])
        if len(values) > 1:
            raise ParseError(
                f"{name} is given twice",
                stage=_STAGE,
                place=values[1].place,
                notes=((values[0].place, "the first one"),),
            )
        return values[0] if values else None


def parse_text_proto(text: str, file: str) -> Message:
    """The message that `text` is; `file` is its name in messages. raises ParseError with the place."""
    return _Reader(text, file).message("")


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.position = 0
        self.advance()

    def advance(self) -> None:
        """To the next token: its kind is "end" behind the last one."""
        skipped = _SKIPPED.match(self.text, self.position)
        self.start = skipped.end() if skipped else self.position
        match = _TOKEN.match(self.text, self.start)
        self.kind, self.token = (match.lastgroup or "", match[0]) if match else ("end", "")
        self.position = self.start + len(self.token)
        if match is None and self.start < len(self.text):
            self.token = self.text[self.start]
            raise self.error("is no token of protobuf's text format")

    def place(self) -> Place:
        before = self.text.rfind("\n", 0, self.start) + 1
        line = self.text[before:].split("\n", 1)[0]
        column = self.start - before + 1
        return Place(self.file, self.text.count("\n", 0, self.start) + 1, column, column + len(self.token), line)

    def error(self, what: str) -> ParseError:
        found = f"'{self.token}'" if self.token else "the end of the text"
        return ParseError(f"{found} {what}", stage=_STAGE, place=self.place())

    def takes(self, *marks: str) -> bool:
        if found := self.kind == "mark" and self.token in marks:
            self.advance()
        return found

    def message(self, closing: str) -> Message:
        """Fields up to `closing`, "" for the end of the text."""
        message = Message(self.place())
        while not (self.kind == "end" if closing == "" else self.takes(closing)):
            if self.kind != "name":
                raise self.error(
                    f"is where a field's name or '{closing}' is wanted" if closing else "is no field's name"
                )
            values = message.fields.setdefault(self.token, [])
            self.advance()
            values += self.values(has_colon=self.takes(":"))
            self.takes(",", ";")
        return message

    def values(self, has_colon: bool) -> list[Scalar | Message]:
        """What stands behind a field's name: one value, or a list of them."""
        if not self.takes("["):
            return [self.value(has_colon)]
        values = list[Scalar | Message]()
        while not self.takes("]"):
            values.append(self.value(has_colon))
            if not self.takes(",") and self.token != "]":
                raise self.error("is where ',' or ']' is wanted")
        return values

    def value(self, has_colon: bool) -> Scalar | Message:
        if self.kind == "mark" and (closing := _CLOSING.get(self.token)):
            self.advance()
            return self.message(closing)
        if not has_colon or self.kind not in ("string", "number", "name"):
            raise self.error("is where a value is wanted" if has_colon else "is where ':' or '{' is wanted")
        scalar = Scalar(self.kind, self.token, self.place())
        self.advance()
        while scalar.kind == self.kind == "string":  # strings side by side are one
            scalar = Scalar("string", scalar.written[:-1] + self.token[1:], scalar.place)
            self.advance()
        return scalar
