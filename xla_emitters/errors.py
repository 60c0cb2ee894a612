"""Every failure that a user can meet, as one class per kind, each with its exit code.

    bias.hlo:6:38: error: [hlo.verify] elementwise operands differ in shape
        ROOT %sum = f32[64,4096] add(%x, %bias)
                                         ^~~~~
        operand 1 is f32[4096]; 'add' needs f32[64,4096]
        help: %b = f32[64,4096] broadcast(%bias), dimensions={1}

The class says whose fault it is: `ParseError` and `VerifyError` the input's, `Unsupported` ours (not yet),
`ToolError` the machine's, `InternalError` a promise broken between two of our own stages. The exception carries
the same facts as fields, so that a test or a tool never has to read the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

SHOWN = 20
"""How many errors of one run are printed; the others are counted."""


@dataclass(frozen=True)
class Place:
    """A piece of one source line.

    line, column   count from 1; `column` and `end_column` (exclusive) are in characters
    text           the whole source line without its newline, or "" when it is not at hand
    """

    file: str
    line: int
    column: int
    end_column: int = 0
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def excerpt(self) -> str:
        """The source line with carets below the piece, indented by four; "" without text."""
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
    stage    where in the system, e.g. "hlo.parse", "hlo.verify", "emit", "toolchain"
    place    where in the input, if known
    details  lines printed below the excerpt: what was wanted and what was got
    notes    (place, text) of other places that matter, such as a definition
    help     the way out
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
        lines = [f"{where}error: {stage}{self.message}"]
        if self.place and (excerpt := self.place.excerpt()):
            lines.append(excerpt)
        lines += [f"    {detail}" for detail in self.details]
        for place, text in self.notes:
            lines.append(f"{f'{place}: ' if place else ''}note: {text}")
            if place and (excerpt := place.excerpt()):
                lines.append(excerpt)
        if self.help:
            lines.append(f"    help: {self.help}")
        lines += [other.render() for other in self.others[: SHOWN - 1]]
        if (left := len(self.others) - (SHOWN - 1)) > 0:
            lines.append(f"and {left} more")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()


class ParseError(XlaEmittersError):
    """The text is not in the language."""


class VerifyError(XlaEmittersError):
    """The text parses, but breaks a rule of the language: shapes, types, names, cycles."""


class Unsupported(XlaEmittersError):
    """Legal input that this version does not compile; the message names it and says what is supported."""


class DataError(XlaEmittersError):
    """Arrays that do not fit the program: a missing key, a wrong type or shape, a pickled object."""


class ExecutionError(XlaEmittersError):
    """The CPU executor met something a GPU would silently do wrong, e.g. an access out of bounds."""


class UsageError(XlaEmittersError):
    """A command line or an argument that makes no sense."""

    exit_code = 2


class NumbersDiffer(XlaEmittersError):
    """A stage computes other numbers than the reference."""

    exit_code = 3


class ToolError(XlaEmittersError):
    """An external tool or an extra is missing, of the wrong version, or failed."""

    exit_code = 4


class InternalError(XlaEmittersError):
    """A promise between two of our own stages is broken: a bug in this project."""

    exit_code = 70
