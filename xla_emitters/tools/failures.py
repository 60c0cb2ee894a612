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
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException

from xla_emitters.errors import InternalError, UsageError, XlaEmittersError
from xla_emitters.settings import read_settings
from xla_emitters.tools.terminal import marked_error

INTERRUPTED = 130
"""The exit code that shells report for a program ended by Ctrl-C."""


class VerbParser(argparse.ArgumentParser):
    """A parser whose errors are our messages: what is wrong and where help is, not the whole usage."""

    def error(self, message: str) -> NoReturn:
        unknown = re.fullmatch(r"unrecognized arguments: (-[^\s=]+).*", message)
        near = difflib.get_close_matches(unknown[1], self._option_string_actions, n=1, cutoff=0.75) if unknown else []
        help = f"{near[0]}? " if near else ""
        error = UsageError(message, stage="usage", help=f"{help}see {self.prog} --help")
        print(marked_error(error.render(), sys.stderr), file=sys.stderr)
        self.exit(UsageError.exit_code)


def reported(
    run: Callable[[], int],
    reduced: Callable[[Path], str] = lambda directory: "",
    seen: Callable[[XlaEmittersError], object] = lambda error: None,
    *,
    debug: bool | None = None,
) -> int:
    """Calls `run` and returns its exit code; an exception becomes a message on stderr and the exit code of its kind.

    Python's warnings become messages too.

    reduced  called for a bug of ours with the reproducer's directory: writes a smaller input there and returns lines about it
    seen     called with an error of ours, as it is reported
    debug    whether tracebacks are printed too; default: what the environment says
    """
    debug = read_settings().debug if debug is None else debug
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            warnings.simplefilter("ignore", DeprecationWarning)  # for developers, as Python has it
            return run()
    except XlaEmittersError as error:
        if debug:
            traceback.print_exc()
        print(marked_error(error.render(), sys.stderr), file=sys.stderr)
        seen(error)
        if isinstance(error, InternalError):
            print(reproducer(reduced), file=sys.stderr)
        return error.exit_code
    except (ParseError, VerifyException, DiagnosticException) as error:
        # A pass made IR that does not verify, or `opt` gave a pass IR that it does not accept.
        if debug:
            traceback.print_exc()
        print(f"error: [verify] {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader (`head`, a pager) closed the pipe, which is not an error. Python would report it again when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"error: [file] {error.filename or ''}: {error.strerror or error}", file=sys.stderr)
        return 1
    except (RecursionError, MemoryError) as error:
        print(f"error: [limits] {limit_reached(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if debug:
            raise
        print(f"error: [internal] {type(error).__name__}: {error}", file=sys.stderr)
        print(reproducer(reduced), file=sys.stderr)
        return InternalError.exit_code


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
    path.write_text(f"# cd {Path.cwd()}\n# {shlex.join(sys.argv)}\n\n{traceback.format_exc()}", "utf-8")
    line = f"    this is a bug in xla_emitters; please report it with {path}"
    try:
        return "\n".join(filter(None, (line, reduced(directory))))
    except (Exception, KeyboardInterrupt):
        # An error is being reported already: a second failure is not shown.
        return line
