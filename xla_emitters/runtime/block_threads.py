"""How many threads share the blocks of a launch, and threads of Python that share other work.

parts_of(blocks, total_bytes)        launches: a thread team's machine code shares them (`cpu/thread_team`)
share(work, count, parts)            functions of Python that call NumPy or BLAS, which do not hold Python's lock
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

SHARED_WORK = 1 << 18
"""Total bytes of a launch's arrays from which on threads share its blocks: below, waking a thread takes longer."""
PIECES = 4
"""Ranges of a launch's blocks per thread."""


def parts_of(blocks: int, total_bytes: int) -> int:
    """How many threads share a launch's blocks, given the total bytes of its arrays."""
    return min(blocks, thread_count(), total_bytes // SHARED_WORK + 1)


def share(work: Callable[[int, int], None], count: int, parts: int) -> None:
    """Calls `work` on ranges that cover 0 to `count`, in this thread and others."""
    if min(parts, count) < 2:
        return work(0, count)
    pieces = min(count, parts * PIECES)
    ends = [count * piece // pieces for piece in range(pieces + 1)]
    left = list(pairwise(ends))

    def some() -> None:
        # Each running thread takes the next range, so that none waits for a thread that has not started.
        while left:
            try:
                first, last = left.pop()
            except IndexError:
                return
            work(first, last)

    others = [_pool().submit(some) for _ in range(parts - 1)]
    some()
    for other in others:
        if not other.cancel():
            other.result()
    return None


def thread_count() -> int:
    """How many threads share work: as many as there are cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(allowed(0)) if allowed else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, thread_count() - 1), "xla-emitters")
