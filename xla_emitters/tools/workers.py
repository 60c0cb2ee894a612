"""Runs jobs in separate processes: several at once, each with a time limit; a job that dies or takes too long does not stop the others.

    run_jobs([NamedWork("a.hlo", work_a), NamedWork("b.hlo", work_b)], 2, 60.0, said)
        yields Done("a.hlo", result), Done("b.hlo", None, "took ...")

Results come in the order of the jobs. Where the system can fork, a process is forked and shares the loaded modules; else it starts fresh.
A process does one job after the other, so that it loads and prepares things once; after `MOST_JOBS` a new one follows.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any

from xla_emitters.support.forked import ending, quietly
from xla_emitters.support.processes import POLL_SECONDS, OwnTime
from xla_emitters.tools.terminal import progress

MOST_JOBS = 50
"""Of one process: what it keeps from job to job is not kept for long."""


@dataclass(frozen=True)
class NamedWork:
    """Work with a name; `work` and its result must be picklable."""

    name: str
    work: Callable[[], Any]


@dataclass(frozen=True)
class Done:
    """What a job returned, or why it returned nothing."""

    name: str
    result: Any
    failure: str = ""


def run_jobs(
    jobs: Sequence[NamedWork], at_once: int, timeout_seconds: float | None, said: Callable[[str, int], str]
) -> Iterator[Done]:
    """Yields the outcome of each job, in their order.

    timeout_seconds  limit of each job, of the time that its process takes itself (`own_time`); None: no limit
    said             makes the progress line from the name of the job that is waited for and the number of jobs after it
    """
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    waiting, done = list(range(len(jobs)))[::-1], dict[int, Done]()
    running, idle = list[_Process](), list[_Process]()
    try:
        for number, job in enumerate(jobs):
            with progress(said(job.name, len(jobs) - number - 1)):
                while number not in done:
                    while waiting and len(running) < at_once:
                        running.append(idle.pop() if idle else _Process(context, jobs))
                        running[-1].begin(waiting.pop())
                    for each in _ended(running, timeout_seconds):
                        running.remove(each)
                        done[each.number] = each.outcome(timeout_seconds)
                        if each.goes_on:
                            idle.append(each)
            yield done.pop(number)
    finally:
        for each in (*running, *idle):
            each.end()


def isolated(work: Callable[[], Any], timeout_seconds: float | None) -> Any:
    """What `work` returns when run in a separate process; None where the process dies or takes too long. Its output is dropped.

    raises what `work` raises
    """
    (done,) = run_jobs([NamedWork("", partial(quietly, work))], 1, timeout_seconds, lambda name, left: name)
    if isinstance(done.result, Exception):
        raise done.result
    return done.result


class _Process:
    """A process that does jobs. `number` is that of its job, `taken` the time that it takes; it `goes_on` if another job may follow."""

    def __init__(self, context: Any, jobs: Sequence[NamedWork]) -> None:
        self._jobs, self._done = jobs, 0
        self.connection, other = context.Pipe()
        self._process = context.Process(target=_work, args=(other, jobs), daemon=True)
        self._process.start()
        other.close()

    def begin(self, number: int) -> None:
        """Gives it a job. One that has died since the last one is noticed as if the job had killed it."""
        self.number, self.taken, self.goes_on = number, OwnTime(self._process.pid), True
        self._done += 1
        with suppress(OSError):
            self.connection.send(number)

    def is_late(self, limit: float | None) -> bool:
        return limit is not None and self.taken.seconds() >= limit

    def outcome(self, timeout_seconds: float | None) -> Done:
        """The result that was sent, or the reason why there is none; then it has ended."""
        self.goes_on, name = False, self._jobs[self.number].name
        try:
            if self.connection.poll():
                found = self.connection.recv()
                self.goes_on = self._done < MOST_JOBS
                return Done(name, found)
            return Done(name, None, f"took longer than {timeout_seconds:g} s")
        except (EOFError, OSError):
            self._process.join()
            return Done(name, None, f"its process ended with {ending(self._process.exitcode)}")
        finally:
            if not self.goes_on:
                self.end()

    def end(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.join()
        self.connection.close()


def _work(connection: Connection, jobs: Sequence[NamedWork]) -> None:
    """Runs in the new process: sends what each job returns that it is asked for, until nobody asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C interrupts the waiting process, which ends this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(EOFError, BrokenPipeError):
        while True:
            number: int = connection.recv()
            connection.send(jobs[number].work())


def _ended(running: Sequence[_Process], limit: float | None) -> list[_Process]:
    """Waits a while for processes that have sent a result, died, or passed their limit; returns those."""
    ready = wait([each.connection for each in running], None if limit is None else min(POLL_SECONDS, limit))
    return [each for each in running if each.connection in ready or each.is_late(limit)]
