"""Warm compile time of one fusion, ours against the real XLA's, interleaved in one process: `make bench`.

Ours is HLO text to PTX, and again with ptxas behind it; XLA's is HLO text to an executable without dumps and includes its own ptxas run.
The cache is off. Two clocks: `wall`, and `CPU`, the processor time of this process and of the tools that it started, which other work on
the machine disturbs less. Read the ratios.
"""

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.table import header, print_table
from xla_emitters.errors import ToolError
from xla_emitters.explore.real_xla import XlaGpu
from xla_emitters.lowering.toolchain.machine_code import assemble
from xla_emitters.pipelines.compiler import compile
from xla_emitters.settings import read_settings
from xla_emitters.support.processes import idle_processes

XLA = "XLA, with ptxas"


def milliseconds(function: Callable[[], object]) -> tuple[float, float]:
    """Wall time and processor time of one call."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    function()
    return (time.perf_counter() - wall) * 1e3, (cpu_seconds() - cpu) * 1e3


def cpu_seconds() -> float:
    """Processor time of this process, all threads, and of its children: those that have ended, and LLVM's, which keeps running."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime + sum(map(_seconds_of, idle_processes()))


def _seconds_of(process: int) -> float:
    """Processor time of a process so far; 0 where the system has no file for it."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description="Warm compile time against the real XLA's.")
    parser.add_argument("file", nargs="?", default="examples/gelu.hlo")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    text = Path(options.file).read_text()

    def ours() -> str:
        return compile(text, record="none", cache=False).kernels[0].ptx

    def ours_and_ptxas() -> None:
        assemble(ours(), "sm_90", read_settings().toolchain)

    contenders: dict[str, Callable[[], object]] = {
        "ours, passes only": lambda: compile(text, record="none", stage="llvm-dialect", cache=False),
        "ours, to PTX": ours,
        "ours, with ptxas": ours_and_ptxas,
    }
    try:
        # XLA's parser wants a space before a colon or none at all in the header's name.
        xla, theirs = XlaGpu(), text.replace("HloModule m:", "HloModule m")
        contenders[XLA] = lambda: xla.compile(theirs)
    except ToolError as error:
        print(f"the real XLA is not measured: {error.message}; {error.help}", file=sys.stderr)
    for _ in range(3):
        for contender in contenders.values():
            contender()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for _ in range(options.rounds):
        for name, contender in contenders.items():
            times[name].append(milliseconds(contender))
    print(header(f"{options.file}, {options.rounds} rounds interleaved, ms"))
    rows: list[list[str]] = []
    for name, measured in times.items():
        wall, cpu = (list(clock) for clock in zip(*measured, strict=True))
        row = [name, *(f"{pick(clock):.1f}" for clock in (wall, cpu) for pick in (statistics.median, min))]
        if XLA in times:
            row += [f"{ratio(measured, times[XLA], clock):.2f}" for clock in (0, 1)]
        rows.append(row)
    titles = ["", "wall median", "wall best", "CPU median", "CPU best"]
    print_table(titles + (["wall/XLA", "CPU/XLA"] if XLA in times else []), rows)
    return 0


def ratio(ours: list[tuple[float, float]], theirs: list[tuple[float, float]], clock: int) -> float:
    """The median over the rounds of ours / theirs."""
    return statistics.median(one[clock] / other[clock] for one, other in zip(ours, theirs, strict=True))


if __name__ == "__main__":
    sys.exit(main())
