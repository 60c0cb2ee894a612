"""Work done by a copy of this process while it goes on.

    made = Forked(work)      the copy knows all that this process knows now
    ...
    made.answer()            what `work` returned

Where the system cannot fork, and in a process that may not have children, the work is done at once, here. What it writes to stdout and
stderr is dropped in a copy.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from xla_emitters.errors import ToolError

T = TypeVar("T")


class Forked(Generic[T]):
    """See the file's head.

    work  must return, and raise, what can be pickled
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._answer = list[T | Exception]()
        if sys.platform != "linux" or multiprocessing.current_process().daemon:
            self._answer.append(outcome(work))
            return
        context = multiprocessing.get_context("fork")
        self._connection, other = context.Pipe(duplex=False)
        self._process: Any = context.Process(target=_work, args=(other, work), daemon=True)
        self._process.start()
        other.close()

    def answer(self) -> T:
        """Waits for it. raises what `work` raises, ToolError if the process is killed"""
        if not self._answer:
            try:
                self._answer.append(self._connection.recv())
            except (EOFError, OSError):
                self._process.join()
                ended = ending(self._process.exitcode)
                self._answer.append(ToolError(f"a process of this command ended with {ended}", stage="compile"))
            self._process.kill()
            self._process.join()
            self._connection.close()
        (found,) = self._answer
        if isinstance(found, Exception):
            raise found
        return found


def ending(code: int) -> str:
    """How a process has ended, in words."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def outcome(work: Callable[[], T]) -> T | Exception:
    """What it returns, or raises."""
    try:
        return work()
    except Exception as error:
        return error


def quietly(work: Callable[[], T]) -> T | Exception:
    """`outcome`, in a process of its own, whose output is dropped from here on."""
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")
    return outcome(work)


def _work(connection: Connection, work: Callable[[], Any]) -> None:
    """In the copy."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C interrupts the waiting process, which ends this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # what was made before stays as long as this process
    connection.send(quietly(work))
