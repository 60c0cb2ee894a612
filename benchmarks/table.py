"""The output of every benchmark: where and when it ran, then a table."""

import os
import platform
from collections.abc import Sequence
from datetime import date

from xla_emitters.support.columns import aligned


def header(what: str) -> str:
    """Two lines: `what`; then the date, the machine and how busy it is, Python."""
    machine = f"{_processor()}, {os.cpu_count()} CPUs, load average {os.getloadavg()[0]:.1f}"
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
    print("\n".join(aligned([titles, *rows], right=range(1, len(titles)))))
