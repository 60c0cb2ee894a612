"""Runs jobs in separate processes: several at once, each with a time limit; a job that dies or takes too long does not stop the others.

    run_jobs([Job("a.hlo", work_a), Job("b.hlo", work_b)], 2, 60.0, said)      yields Done("a.hlo", result), Done("b.hlo", None, "took ...")

Results come in the order of the jobs. Where the system can fork, a process is forked and shares the loaded modules; else it starts fresh.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any

from xla_emitters.own_time import POLL_SECONDS, OwnTime
from xla_emitters.tools.terminal import progress


@dataclass(frozen=True)
class Job:
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
    jobs: Sequence[Job], at_once: int, timeout_seconds: float | None, said: Callable[[str, int], str]
) -> Iterator[Done]:
    """Yields the outcome of each job, in their order.

    timeout_seconds  limit of each job, of the time that its process takes itself (`own_time`); None: no limit
    said             makes the progress line from the name of the job that is waited for and the number of jobs after it
    """
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    waiting, running, done = list(enumerate(jobs))[::-1], dict[Connection, _Running](), dict[int, Done]()
    try:
        for number, job in enumerate(jobs):
            with progress(said(job.name, len(jobs) - number - 1)):
                while number not in done:
                    while waiting and len(running) < at_once:
                        started = _start(context, *waiting.pop(), timeout_seconds)
                        running[started.connection] = started
                    for each in _ended(list(running.values())):
                        del running[each.connection]
                        done[each.number] = each.outcome(timeout_seconds)
            yield done.pop(number)
    finally:
        for each in running.values():
            each.end()


def isolated(work: Callable[[], Any], timeout_seconds: float | None) -> Any:
    """What `work` returns when run in a separate process; None where the process dies or takes too long. Its output is dropped.

    raises what `work` raises
    """
    (done,) = run_jobs([Job("", partial(_quietly, work))], 1, timeout_seconds, lambda name, left: name)
    if isinstance(done.result, Exception):
        raise done.result
    return done.result


def _quietly(work: Callable[[], Any]) -> Any:
    # Ctrl-C interrupts the waiting process, which ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")
    try:
        return work()
    except Exception as error:
        return error


@dataclass(frozen=True)
class _Running:
    """A process, and the connection that its result comes from. `limit` is in seconds of `taken`."""

    number: int
    job: Job
    process: Any
    connection: Connection
    taken: OwnTime
    limit: float | None

    @property
    def is_late(self) -> bool:
        return self.limit is not None and self.taken.seconds() >= self.limit

    def outcome(self, timeout_seconds: float | None) -> Done:
        """The result that was sent, or the reason why there is none."""
        try:
            if self.connection.poll():
                return Done(self.job.name, self.connection.recv())
            return Done(self.job.name, None, f"took longer than {timeout_seconds:g} s")
        except EOFError:
            self.process.join()
            return Done(self.job.name, None, f"its process ended with {_signal(self.process.exitcode)}")
        finally:
            self.end()

    def end(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def _signal(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _start(context: Any, number: int, job: Job, timeout_seconds: float | None) -> _Running:
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sending, job), daemon=True)
    process.start()
    sending.close()
    return _Running(number, job, process, receiving, OwnTime(process.pid), timeout_seconds)


def _work(connection: Connection, job: Job) -> None:
    """Runs in the new process: sends what the job returns."""
    connection.send(job.work())
    connection.close()


def _ended(running: Sequence[_Running]) -> list[_Running]:
    """Waits a while for processes that have sent a result, died, or passed their limit; returns those."""
    limits = [each.limit for each in running if each.limit is not None]
    ready = wait([each.connection for each in running], min(POLL_SECONDS, *limits) if limits else None)
    return [each for each in running if each.connection in ready or each.is_late]
