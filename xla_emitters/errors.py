"""The exceptions for all failures that a user can meet: one class per kind, each with its exit code.

    bias.hlo:6:38: error: [hlo.verify] elementwise operands differ in shape
        ROOT %sum = f32[64,4096] add(%x, %bias)
                                         ^~~~~
        operand 1 is f32[4096]; 'add' needs f32[64,4096]
        help: %b = f32[64,4096] broadcast(%bias), dimensions={1}

The class names the cause: `ParseError` and `VerifyError` an error in the input, `Unsupported` something that we do not
support yet, `ToolError` a missing or broken tool, `PluginError` a fault of a plugin, `InternalError` a bug, where one stage
broke a promise to another. The exception has the parts of the message as fields, so that a test or a tool need not parse the text.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

SHOWN = 20
"""Most errors of one run that are printed; the others are only counted."""
MOST_CHARACTERS = 4_000
"""Of one part of a message that are printed: a name or a number of the input may be megabytes long."""
AS_TEXT = " as text"
"""The end of the name of a text that was made of a binary file. Its lines are in no file, so its places are named by instructions."""
_DEFINED = re.compile(r"\s*(?:ROOT )?(%?[\w.#:-]+) = ")


@dataclass(frozen=True)
class Place:
    """A range of characters in one source line.

    line, column   from 1; `column` and `end_column` (exclusive) are in characters
    text           the whole source line without its newline, or "" if it is not available
    instruction    the name of the instruction there, if it is known
    """

    file: str
    line: int
    column: int
    end_column: int = 0
    text: str = ""
    instruction: str = ""

    def __str__(self) -> str:
        """
        >>> print(Place("x.pb as text", 7, 3, text="  ROOT %add.1 = f32[4] add(%x, %y)"))
        x.pb:%add.1
        """
        if self.file.endswith(AS_TEXT):
            defined = _DEFINED.match(self.text)
            if name := defined[1] if defined else self.instruction:
                return f"{self.file.removesuffix(AS_TEXT)}:{name}"
        return f"{self.file}:{self.line}:{self.column}"

    def excerpt(self) -> str:
        """The source line with carets below the range, indented by four; "" without text."""
        if not self.text:
            return ""
        line = self.text.expandtabs(1)
        start = max(self.column - 1, 0)
        # A line may be a megabyte (a dense constant): show a window around the place.
        first = max(0, start - 60)
        shown = line[first : first + 120]
        width = max(1, min(self.end_column - self.column, len(shown) - (start - first)))
        return f"    {shown}\n    {' ' * (start - first)}^{'~' * (width - 1)}"


class XlaEmittersError(Exception):
    """Base of all errors a user can meet.

    message  one line: what is wrong
    stage    the part of the system, e.g. "hlo.parse", "hlo.verify", "emit", "toolchain"
    place    the place in the input, if known
    details  lines printed below the excerpt: what was expected, and what was found
    notes    (place, text) of related places, such as a definition
    help     how to fix it
    others   further errors of the same run, in the order of the input
    """

    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str,
        *,
        stage: str = "",
        place: Place | None = None,
        details: tuple[str, ...] = (),
        notes: tuple[tuple[Place | None, str], ...] = (),
        help: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.stage = stage
        self.place = place
        self.details = details
        self.notes = notes
        self.help = help
        self.others: tuple[XlaEmittersError, ...] = ()

    def render(self) -> str:
        """The message as printed on stderr, without a trailing newline."""
        where = f"{self.place}: " if self.place else ""
        stage = f"[{self.stage}] " if self.stage else ""
        lines = [f"{where}error: {stage}{_shortened(self.message)}"]
        if self.place and (excerpt := self.place.excerpt()):
            lines.append(excerpt)
        lines += [f"    {_shortened(detail)}" for detail in self.details]
        for place, text in self.notes:
            lines.append(f"{f'{place}: ' if place else ''}note: {_shortened(text)}")
            if place and (excerpt := place.excerpt()):
                lines.append(excerpt)
        if self.help:
            lines.append(f"    help: {_shortened(self.help)}")
        lines += [other.render() for other in self.others[: SHOWN - 1]]
        if (left := len(self.others) - (SHOWN - 1)) > 0:
            lines.append(f"and {left} more")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()


def _shortened(text: str) -> str:
    """
    >>> _shortened("x" * 5_000)[-30:]
    'xxxx ... 1,000 more characters'
    """
    left = len(text) - MOST_CHARACTERS
    return text if left <= 0 else f"{text[:MOST_CHARACTERS]} ... {left:,} more characters"


class ParseError(XlaEmittersError):
    """The text has a syntax error."""


class VerifyError(XlaEmittersError):
    """The text parses, but breaks a rule of the language: shapes, types, names, cycles."""


class Unsupported(XlaEmittersError):
    """Legal input that this version does not compile; the message names it and says what is supported."""


class DataError(XlaEmittersError):
    """Arrays that do not match the program: a missing key, a wrong type or shape, a pickled object."""


class ExecutionError(XlaEmittersError):
    """The CPU executor found a fault that a GPU would not report, e.g. an access out of bounds."""


class UsageError(XlaEmittersError):
    """A wrong command line or argument."""

    exit_code = 2


class EndlessLoop(ExecutionError):
    """A loop is in a state in which it was before, or exceeds the limit of iterations. loop: the name of the instruction"""

    loop: str = ""


class NumbersDiffer(XlaEmittersError):
    """The numbers of a stage differ from the reference."""

    exit_code = 3


class ToolError(XlaEmittersError):
    """An external tool or an extra is missing, has the wrong version, or failed."""

    exit_code = 4


class PluginError(XlaEmittersError):
    """Code from outside this package failed, or broke a rule for plugins; the place is in that code."""


class InternalError(XlaEmittersError):
    """A bug in this project: one stage broke a promise to another."""

    exit_code = 70


@contextmanager
def file_errors(what: str, stage: str) -> Generator[None]:
    """Around reading or writing a file: an OSError becomes a UsageError, "cannot write OUT.npz: No space left on device"."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{what}: {error.strerror}", stage=stage) from error
