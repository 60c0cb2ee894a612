"""Calls that nest to any depth, without a change of Python's recursion limit, which is the whole process's.

    continued(run)      `run()`, on the stack of a new thread if this one's is half used

XLA's partitions are functions that call each other, thousands deep in large fusions, and a call may be inside any region. Python gives each
thread a stack of `sys.getrecursionlimit()` frames. The caller waits for the thread, so only one runs at a time. It has the caller's context
variables, such as NumPy's error state.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
MOST_CALLS = 30_000
"""Calls, one in another: more are taken for calls without end."""
EVERY = 4
"""The nested calls after which the stack is looked at: looking costs as much as a few ops."""


def continued(run: Callable[[], T]) -> T:
    """`run()`, on a new stack where less than half of this one is left. raises what it raises"""
    if not _is_half_used():
        return run()
    results, errors = list[T](), list[BaseException]()

    def work() -> None:
        try:
            results.append(run())
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=copy_context().run, args=(work,), daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors.pop()
    return results.pop()


def _is_half_used() -> bool:
    frame, left = sys._getframe(), sys.getrecursionlimit() // 2  # pyright: ignore[reportPrivateUsage]
    while (frame := frame.f_back) is not None and left:
        left -= 1
    return frame is not None
