"""What every benchmark prints: where and when it ran, then a table."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import date


def header(what: str) -> str:
    """One line: `what`, the date, the machine and how busy it is, Python."""
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    machine = f"{_processor()}, {os.cpu_count()} CPUs{load}"
    return f"{what}\n{date.today()}, {machine}, Python {platform.python_version()}"


def _processor() -> str:
    """The processor's name, as Linux tells it; else what Python knows."""
    try:
        with open("/proc/cpuinfo") as lines:
            names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        first, *others = (cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        print("  ".join((first, *others)).rstrip())
