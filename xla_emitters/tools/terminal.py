"""Colours and a progress line, for terminals only.

Neither is written to a pipe or a file. `NO_COLOR` (any value) turns colours off, `FORCE_COLOR` turns them on. The progress line appears
on stderr after a second and is erased when the work is done.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Timer
from typing import TextIO

from xla_emitters.settings import wishes_colour

PROGRESS_AFTER_SECONDS = 1.0
_RED, _PLAIN = "\x1b[1;31m", "\x1b[0m"
# "error:" at the start of a line, or after the `file:line:column: ` that starts it. Lines that quote the source are indented.
_ERROR = re.compile(r"^((?:\S.*?:\d+: )?)error:", re.MULTILINE)


def wants_colour(stream: TextIO) -> bool:
    """Whether text for `stream` may contain colour codes."""
    return stream.isatty() if (wish := wishes_colour()) is None else wish


def coloured(text: str, kind: str, stream: TextIO) -> str:
    """`text`, coloured if `stream` shows colours. `kind` chooses the lexer, as in `lexer_for`."""
    if not wants_colour(stream):
        return text
    from pygments import highlight
    from pygments.formatters import TerminalFormatter

    from xla_emitters.trace.lexers import lexer_for

    formatter: TerminalFormatter[str] = TerminalFormatter()
    return highlight(text, lexer_for(kind), formatter)


def marked_error(message: str, stream: TextIO) -> str:
    """The message with the "error:" of each error in red if `stream` shows colours."""
    return _ERROR.sub(rf"\1{_RED}error:{_PLAIN}", message) if wants_colour(stream) else message


@contextmanager
def progress(what: str) -> Generator[None]:
    """Prints `what ...` on a terminal's stderr when the body of the `with` takes longer than a second."""
    stream = sys.stderr
    if not stream.isatty():
        yield
        return
    shown = list[str]()

    def show() -> None:
        shown.append(what)
        print(f"{what} ...", end="", file=stream, flush=True)

    timer = Timer(PROGRESS_AFTER_SECONDS, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if shown:
            print(f"\r{' ' * (len(what) + 4)}\r", end="", file=stream, flush=True)
