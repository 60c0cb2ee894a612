"""How often a loop may run, and how much memory a run may take. Needs Python alone, as bundles do.

    with limited_iterations(1_000_000): program(x)  a loop that runs longer is an EndlessLoop

    memory_limit()                                  bytes: three quarters of what is free, or what the caller allowed
    with limited_memory("2G"): program(x)           an array that does not fit is a DataError, which names the op, the size and the bytes
    refuse_beyond_limit((n, 4), 4, "f32", "%y")

Memory is checked before an array is allocated. Sizes that data decide may be anything. Without a limit the system starts to swap, or its
kernel kills the process.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from math import prod
from pathlib import Path

from xla_emitters.errors import DataError, UsageError

HELP = "--max-memory SIZE, or xla_emitters.limited_memory(SIZE), allows another amount"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d{1,18})([KMGT]?)(?:i?B)?", re.IGNORECASE)
_SECONDS = 1.0
"""How long a reading of the free memory is used."""
_allowed: ContextVar[int | None] = ContextVar("allowed memory", default=None)
_read = (float("-inf"), 0)

MOST_ITERATIONS = 100_000
"""Most iterations of one loop; a longer loop is taken to be endless."""

_iterations: ContextVar[int] = ContextVar("most iterations", default=MOST_ITERATIONS)


@contextmanager
def limited_iterations(most: int | None) -> Generator[None]:
    """Limits every single loop of runs inside the block to so many iterations; None leaves the limit as it is.

    raises  UsageError for a negative limit
    """
    if most is not None and most < 0:
        raise UsageError(f"{most} iterations are no limit", stage="usage", help=f"the default is {MOST_ITERATIONS}")
    token = _iterations.set(_iterations.get() if most is None else most)
    try:
        yield
    finally:
        _iterations.reset(token)


def iteration_limit() -> int:
    """Most iterations of one loop; a longer loop raises EndlessLoop."""
    return _iterations.get()


def bytes_of(size: int | str) -> int:
    """A number of bytes. raises UsageError for a text that is none

    >>> bytes_of("2G"), bytes_of("512 MiB"), bytes_of(100)
    (2147483648, 536870912, 100)
    """
    match = _SIZE.fullmatch(str(size).replace(" ", ""))
    if match is None:
        raise UsageError(
            f"'{size}' is no amount of memory", stage="usage", help="such as 2G, 512M, or a number of bytes"
        )
    return int(match[1]) * _UNITS[match[2].upper()]


@contextmanager
def limited_memory(most: int | str | None) -> Generator[None]:
    """Limits the memory of runs inside the block; None leaves the limit as it is. raises UsageError like `bytes_of`"""
    token = _allowed.set(_allowed.get() if most is None else bytes_of(most))
    try:
        yield
    finally:
        _allowed.reset(token)


def allowed_memory() -> int | None:
    """The limit that the caller set; None: none."""
    return _allowed.get()


def memory_limit() -> int:
    """The bytes that a run may take now."""
    global _read
    if (allowed := _allowed.get()) is not None:
        return allowed
    now = time.monotonic()
    if now - _read[0] > _SECONDS:
        _read = now, free_bytes() * 3 // 4
    return _read[1]


def refuse_beyond_limit(shape: Sequence[int], itemsize: int, element: str, what: str, taken: int = 0) -> None:
    """raises DataError if an array does not fit beside `taken` bytes; `what` names it, `element` is its type."""
    wanted = itemsize * prod(max(1, extent) for extent in shape)  # NumPy counts sizes of 0 as 1 here
    if wanted + taken > (limit := memory_limit()):
        beside = f" beside {taken} bytes of others" if taken else ""
        extents = ",".join(map(str, shape))
        raise DataError(
            f"out of memory: {what} is {element}[{extents}], {wanted} bytes{beside}; a run may take {limit} bytes",
            stage="memory",
            help=HELP,
        )


def free_bytes() -> int:
    """The memory that is free on this machine, and in its container; all memory where the system does not say what is free."""
    found = [_system_bytes()]
    with suppress(OSError, ValueError):  # no control group, or one without a limit ("max")
        group = Path("/sys/fs/cgroup")
        cached = re.search(r"^inactive_file (\d+)$", (group / "memory.stat").read_text("utf-8"), re.MULTILINE)
        used = int((group / "memory.current").read_text("utf-8")) - int(cached[1] if cached else 0)
        found.append(max(0, int((group / "memory.max").read_text("utf-8")) - used))
    return min(found)


def _system_bytes() -> int:
    with suppress(OSError):
        if found := re.search(r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text("utf-8"), re.MULTILINE):
            return int(found[1]) << 10
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 1 << 40  # Windows: Python's own library does not say; NumPy's MemoryError does
