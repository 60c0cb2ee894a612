"""The team of threads of this process, which run machine code (`lowering/cpu/team_code`) and never Python.

    job = job_of(table, rows, parts, timed=True)       a row of a chain: (job.code, job.address)

The threads are started when a job first wants them. They end before the interpreter does: their code and the team's memory are freed after
that. A forked process has none until a job is made there; the jobs that it inherited run in one thread.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import time
from functools import cache
from threading import Lock, Thread

from xla_emitters.errors import ToolError
from xla_emitters.lowering.cpu.cpu_code import plain_code
from xla_emitters.lowering.cpu.cpu_steps import CHAIN_IR, ENTRY
from xla_emitters.lowering.cpu.team_code import (
    CHOSEN,
    FIRST_WAIT,
    JOB_WORDS,
    TEAM,
    TEAM_ALIGNMENT,
    TEAM_BYTES,
    TEAM_IR,
    TIMED_RUNS,
)

_NEVER = (1 << 63) - 1
_TeamCode = ctypes.CFUNCTYPE(None, ctypes.c_size_t)


class _Team:
    """raises ToolError where the C library has no POSIX threads"""

    def __init__(self) -> None:
        self._loaded = code = plain_code(CHAIN_IR + TEAM_IR)
        self.code = code.address(f"{TEAM}{ENTRY}")
        self._begin, self._work, self._end = (
            _TeamCode(code.address(f"{TEAM}.{name}")) for name in ("begin", "work", "end")
        )
        self._memory = (ctypes.c_char * (TEAM_BYTES + TEAM_ALIGNMENT))()
        start = ctypes.addressof(self._memory)
        self.address = start + -start % TEAM_ALIGNMENT
        self._lock, self._threads = Lock(), list[Thread]()
        self._begin(self.address)
        atexit.register(self._stop)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def grow(self, threads: int) -> None:
        """Starts threads, so that there are at least so many."""
        with self._lock:
            while len(self._threads) < threads:
                self._threads.append(Thread(target=self._work, args=(self.address,), name="xla-emitters", daemon=True))
                self._threads[-1].start()

    def _renew(self) -> None:
        """After a fork no other thread exists, and none has a part of a job."""
        self._lock, self._threads = Lock(), []
        ctypes.memset(self.address, 0, TEAM_BYTES)
        self._begin(self.address)

    def _stop(self) -> None:
        with self._lock:
            self._end(self.address)
            for thread in self._threads:
                thread.join()


@cache
def process_team() -> _Team | None:
    """The threads; None where the C library has no POSIX threads."""
    try:
        return _Team()
    except ToolError:
        return None


def job_of(table: int, rows: int, parts: int, *, timed: bool) -> Job | None:
    """Calls of a chain's rows, by this thread and others; None where the C library has no POSIX threads.

    table  the address of rows of `cpu_steps.CHAIN`, which may be called in any order
    rows   how many there are
    parts  how many threads share them
    timed  some runs are timed, by several threads, then by one, and the faster way stays
    """
    team = process_team()
    return None if team is None else Job(team, table, rows, parts, timed=timed)


class Job:
    """See `job_of`."""

    def __init__(self, team: _Team, table: int, rows: int, parts: int, *, timed: bool) -> None:
        team.grow(parts - 1)
        runs = TIMED_RUNS if timed else 0
        trial = runs, _NEVER, _NEVER, time.CLOCK_MONOTONIC, parts, FIRST_WAIT
        self.words = (ctypes.c_int64 * JOB_WORDS)(team.address, table, rows, parts, *trial)
        self.code, self.address = team.code, ctypes.addressof(self.words)

    @property
    def parts(self) -> int:
        """How many threads share the rows, as far as it is known."""
        return self.words[CHOSEN]
