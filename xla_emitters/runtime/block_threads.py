"""Threads that share the blocks of a launch.

    run = Shared(lambda first, last: ..., blocks, parts_of(blocks, total_bytes))
    run()

How long blocks take is not known before they run: a kernel may touch one row of a large array, and threads that share what fits a core's
cache wait for each other's lines. So the first runs are timed, alone and shared in turn, and the faster way stays.
Machine code that runs does not hold Python's lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from math import inf
from time import perf_counter

SHARED_WORK = 1 << 19
"""Total bytes of a launch's arrays from which on threads share its blocks: below, waking a thread takes longer."""
PIECES = 4
"""Ranges of a launch's blocks per thread."""
TIMED_RUNS = 8
"""Of a launch: half of them alone."""


def parts_of(blocks: int, total_bytes: int) -> int:
    """How many threads share a launch's blocks, given the total bytes of its arrays."""
    return min(blocks, thread_count(), total_bytes // SHARED_WORK + 1)


class Shared:
    """A launch that is run again and again; see the file's head."""

    def __init__(self, work: Callable[[int, int], None], count: int, parts: int) -> None:
        self._work, self._count, self._parts = work, count, parts
        self._left, self._alone, self._together = TIMED_RUNS, inf, inf

    @property
    def is_timed(self) -> bool:
        """Whether it is known which way is faster."""
        return self._left == 0

    @property
    def is_alone(self) -> bool:
        return self._parts == 1

    def __call__(self) -> None:
        if self._left > 0:
            self._timed()
        else:
            share(self._work, self._count, self._parts)

    def _timed(self) -> None:
        self._left -= 1
        is_alone, start = self._left % 2 == 0, perf_counter()
        share(self._work, self._count, 1 if is_alone else self._parts)
        seconds = perf_counter() - start
        if is_alone:
            self._alone = min(self._alone, seconds)
        else:
            self._together = min(self._together, seconds)
        if self._left == 0 and self._alone <= self._together:
            self._parts = 1


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
