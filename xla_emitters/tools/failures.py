"""Turns a command's failure into a message on stderr and an exit code, never a traceback.

    0 ok · 1 the input is wrong or not supported · 2 usage · 3 numbers differ · 4 a tool or an extra is missing · 70 our own bug

`--debug` prints tracebacks too. For a bug of ours the message names a file with the traceback and the command line, and a
smaller input if one was made (`crashes`).
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException

from xla_emitters.errors import InternalError, UsageError, XlaEmittersError
from xla_emitters.settings import read_settings
from xla_emitters.tools.terminal import marked_error

INTERRUPTED, TERMINATED = 130, 143
"""The exit codes that shells report for a program ended by Ctrl-C, and by SIGTERM."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, of `timeout` or a batch system: as after Ctrl-C, the processes and temporary files of a command end with it."""


def stop_on_sigterm() -> None:
    """SIGTERM raises Terminated in the main thread from now on, unless it is ignored. A second one ends the process at once."""

    def stop(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise Terminated

    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, stop)


class VerbParser(argparse.ArgumentParser):
    """A parser whose errors are our messages: what is wrong and where help is, not the whole usage."""

    def error(self, message: str) -> NoReturn:
        unknown = re.fullmatch(r"unrecognized arguments: (-[^\s=]+).*", message)
        option = unknown[1] if unknown else ""
        near = difflib.get_close_matches(option, self._option_string_actions, n=1, cutoff=0.75)
        help = "write it after the verb; " if option in near else f"{near[0]}? " if near else ""
        error = UsageError(message, stage="usage", help=f"{help}see {self.prog} --help")
        _say(error.render())
        self.exit(UsageError.exit_code)


def ended(main: Callable[[], int]) -> int:
    """The exit code of a console script: what `main` returns, after all that it printed is written, or why it was not.

    Whatever is printed to a stream that is closed is dropped.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
    stop_on_sigterm()
    try:
        return reported(main)
    finally:
        _drop_unwritten()  # of --help, which ends the process


def reported(
    run: Callable[[], int],
    reduced: Callable[[Path], str] = lambda directory: "",
    seen: Callable[[XlaEmittersError], object] = lambda error: None,
    *,
    debug: bool | None = None,
) -> int:
    """Calls `run`, writes its output, and returns its exit code; an exception becomes a message on stderr and the exit code of its kind.

    Python's warnings become messages too.

    reduced  called for a bug of ours with the reproducer's directory: writes a smaller input there and returns lines about it
    seen     called with an error of ours, as it is reported
    debug    whether tracebacks are printed too; default: what the environment says
    """
    debug, code = read_settings().debug if debug is None else debug, 0
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            warnings.simplefilter("ignore", DeprecationWarning)  # for developers, as Python has it
            code = run()
            if not sys.stdout.closed:  # as the server of `lsp` leaves it
                sys.stdout.flush()
            return code
    except XlaEmittersError as error:
        if debug:
            traceback.print_exc()
        _say(error.render())
        seen(error)
        if isinstance(error, InternalError):
            _say(reproducer(reduced))
        return error.exit_code
    except (ParseError, VerifyException, DiagnosticException) as error:
        # A pass made IR that does not verify, or `opt` gave a pass IR that it does not accept.
        if debug:
            traceback.print_exc()
        _say(f"error: [verify] {error}")
        return 1
    except BrokenPipeError:
        _drop_unwritten()  # the reader (`head`, a pager) closed the pipe, which is not an error
        return code
    except OSError as error:
        _drop_unwritten()
        _say(f"error: [file] {f'{error.filename}: ' if error.filename else ''}{error.strerror or error}")
        return 1
    except (RecursionError, MemoryError) as error:
        _say(f"error: [limits] {limit_reached(error)}")
        return 1
    except KeyboardInterrupt as stop:
        return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED
    except Exception as error:
        if debug:
            raise
        _say(f"error: [internal] {type(error).__name__}: {error}")
        _say(reproducer(reduced))
        return InternalError.exit_code


def _say(message: str) -> None:
    """Prints to stderr; one that cannot be written changes no exit code."""
    with suppress(OSError):
        print(marked_error(message, sys.stderr), file=sys.stderr)


def _drop_unwritten() -> None:
    """Drops what stdout and stderr do not take. Python would try once more at exit, and end with 120."""
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            try:
                stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def limit_reached(error: RecursionError | MemoryError) -> str:
    """What was too much: for memory how much an array needs, where NumPy says so."""
    if isinstance(error, RecursionError):
        return "the input is nested too deeply"
    return f"out of memory{f': {error}' if str(error) else ''}"


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Without the place in our source."""
    print(f"warning: {message}", file=sys.stderr)


def reproducer(reduced: Callable[[Path], str]) -> str:
    """Writes the traceback and the command line to a file; returns lines that name the file and the smaller input."""
    # Imported here: only a bug of ours needs them.
    import shlex
    import tempfile

    directory = Path(tempfile.mkdtemp(prefix="xla-emitters-bug-"))
    path = directory / "reproducer.txt"
    path.write_text(
        f"# cd {Path.cwd()}\n# {shlex.join(sys.argv)}\n\n{traceback.format_exc()}", "utf-8", "backslashreplace"
    )
    line = f"    this is a bug in xla_emitters; please report it with {path}"
    try:
        return "\n".join(filter(None, (line, reduced(directory))))
    except (Exception, KeyboardInterrupt):
        # An error is being reported already: a second failure is not shown.
        return line
