"""A verb on many files: one row a file, made here or wherever `executors` is told to; a file that fails does not stop the others."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from xla_emitters.errors import UsageError, XlaEmittersError
from xla_emitters.tools.crashes import reduced_crash
from xla_emitters.tools.executors import carried_out
from xla_emitters.tools.failures import INTERRUPTED, TERMINATED, reported
from xla_emitters.tools.terminal import marked_error
from xla_emitters.tools.workers import Done, NamedWork


@dataclass
class FileRow:
    """The outcome of one file.

    exit_code of this file alone
    messages  what was printed on stderr
    """

    file: str
    exit_code: int = 0
    messages: str = field(default="", repr=False)

    @property
    def error(self) -> dict[str, Any] | None:
        """As docs/json.md says."""
        return {"exit_code": self.exit_code, "message": self.messages.rstrip("\n")} if self.exit_code else None

    @classmethod
    def kept(cls, **fields: Any) -> Self:
        """A row from what `--resume` has of it."""
        return cls(**fields)

    def saw(self, error: XlaEmittersError) -> None:
        """Is called with an error that ends the work."""

    def lost(self, why: str) -> None:
        """Is called where the work had no end."""


@dataclass
class PrintedRow(FileRow):
    """text: for standard output; data: the same for --json"""

    text: str = ""
    data: dict[str, Any] = field(default_factory=dict[str, Any])


Row = TypeVar("Row", bound=FileRow)
Work = Callable[[argparse.Namespace, str, Row], int]
"""Fills in the row of a file; returns its exit code, or raises."""


def rows_of(
    options: argparse.Namespace,
    files: Sequence[str],
    doing: str,
    made: type[Row],
    work: Work[Row],
    output: Callable[[str], Path] | None = None,
) -> Iterator[Row]:
    """Yields a row for each file, in order, after its messages were printed; ends at one that was interrupted.

    doing   the word that the progress line begins with
    output  the folder that a file's work writes: where it is gone, what `--resume` has of the file is not enough
    raises  as `carried_out`
    """
    if options.executor is not None and "-" in files:
        raise UsageError("--executor has workers of its own: no '-'", stage=options.verb)
    plain = argparse.Namespace(**{key: value for key, value in vars(options).items() if key not in ("run", "parser")})
    jobs = [NamedWork(name, partial(_row, plain, name, made, work)) for name in files]

    def depends(job: NamedWork) -> bytes:
        written = output is not None and output(job.name).exists()
        return bytes([written]) + (Path(job.name).read_bytes() if Path(job.name).is_file() else b"")

    for done in carried_out(options, jobs, doing, made.kept, depends=depends, apart=("files", "file", "json")):
        row = _lost(made, done, options.verb) if done.failure else done.result
        sys.stderr.write(marked_error(row.messages, sys.stderr))
        yield row
        if row.exit_code in (INTERRUPTED, TERMINATED):
            return


def _row(options: argparse.Namespace, name: str, made: type[Row], work: Work[Row]) -> Row:
    row, messages = made(name), io.StringIO()
    with redirect_stderr(messages):
        reduced = partial(reduced_crash, name, options)
        row.exit_code = reported(partial(work, options, name, row), reduced, row.saw, debug=options.settings.debug)
    row.messages = messages.getvalue()
    return row


def _lost(made: type[Row], done: Done, verb: str) -> Row:
    row = made(done.name, 1, f"error: [{verb}] {done.name}: {done.failure}\n")
    row.lost(done.failure)
    return row
