"""Time limits of other processes, in time that they take themselves: a process that waits for a busy machine's CPU is not late.

    has_ended = within(120.0, process.pid, done.wait)       False: it took 120 s, and has not ended

A process takes the CPU time of itself and its descendants, and the time in which all of them sleep. Where the system does not tell (it has
no /proc), all time counts.
Source: proc(5), `/proc/pid/stat`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

POLL_SECONDS = 0.2
PROCESSES = Path("/proc")


def within(seconds: float, process: int, wait: Callable[[float], bool]) -> bool:
    """Waits for a process, at most until it has taken so many seconds; returns whether it ended in time.

    process  its id
    wait     waits at most the given seconds; returns whether the process has ended, or answered
    """
    taken = OwnTime(process)
    while not wait(min(POLL_SECONDS, seconds / 4)):
        if taken.seconds() >= seconds:
            return False
    return True


class OwnTime:
    """Counts the time that a process takes from now on; `seconds` is called again and again."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._total = 0.0
        self._cpu, _ = _used(process)
        self._at = time.monotonic()

    def seconds(self) -> float:
        """The time so far, as in the file's head."""
        (cpu, is_asleep), at = _used(self._process), time.monotonic()
        spent = max(0.0, cpu - self._cpu)
        self._total += at - self._at if is_asleep and not spent else spent
        self._cpu, self._at = cpu, at
        return self._total


def _used(process: int) -> tuple[float, bool]:
    """CPU seconds of a process and its descendants, and whether none of them runs, waits for a CPU or for a disk."""
    ticks, is_asleep = 0, True
    for each in _family(process):
        # The second field is the program's name in parentheses, and may contain some.
        with suppress(OSError):
            state, *numbers = (
                (PROCESSES / str(each) / "stat")
                .read_text(encoding="utf-8", errors="replace")
                .rpartition(")")[2]
                .split()
            )
            ticks += sum(
                map(int, numbers[10:14])
            )  # in user and system mode, its own and of children that it has waited for
            is_asleep &= state not in "RD"
    return ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0, is_asleep


def _family(process: int) -> Iterator[int]:
    yield process
    with suppress(OSError):
        for thread in (PROCESSES / str(process) / "task").iterdir():
            for child in (thread / "children").read_text(encoding="utf-8").split():
                yield from _family(int(child))
