"""Speed and memory of the CPU executor at every stage, and of what surrounds it: `python -m benchmarks.executor`.

One fusion, all its elements. Every row is a process of its own, so that its peak memory is its own: inputs are drawn, the kernel is
compiled as far as the stage, and the IR there is run. `draw` is the drawing of the inputs alone, `reference` their evaluation by NumPy.
Wall time is the best of `--rounds`, CPU time that round's; memory is the peak resident set of the process, interpreter and arrays included.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.table import header, print_table

WITHOUT_CODE = ("draw", "reference")


def measure(file: str, row: str, rounds: int) -> dict[str, float]:
    """Seconds and bytes of one row, in this process."""
    from xla_emitters.explore.check import reference_for
    from xla_emitters.pipelines.compiler import compile_module, read_module
    from xla_emitters.pipelines.options import CompileOptions
    from xla_emitters.runtime.arrays import random_arrays
    from xla_emitters.runtime.cpu_launcher import run_program

    module = read_module(Path(file))
    program = compile_module(module, CompileOptions(stage="hlo" if row in WITHOUT_CODE else row, record="stages"))
    inputs = random_arrays(program.parameters, 0)
    surroundings: dict[str, Callable[[], object]] = {
        "draw": lambda: random_arrays(program.parameters, 0),
        "reference": lambda: reference_for(module, inputs),
    }
    work = surroundings.get(row, lambda: run_program(program, inputs, row))
    times: list[tuple[float, float]] = []
    for _ in range(rounds):
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall, cpu = min(times)
    elements = sum(spec.elements for spec in program.results)
    return {"wall": wall, "cpu": cpu, "bytes": peak_bytes(), "elements": elements}


def peak_bytes() -> int:
    """The most memory that this process had resident (Linux counts in KiB, macOS in bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed and memory of the CPU executor at every stage.")
    parser.add_argument("file", nargs="?", default="examples/gelu.hlo")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--row", help="measure one row in this process and print it as JSON")
    options = parser.parse_args()
    if options.row:
        print(json.dumps(measure(options.file, options.row, options.rounds)))
        return 0
    from xla_emitters.pipelines.passes import EXECUTABLE_STAGES

    rows: list[list[str]] = []
    for row in (*WITHOUT_CODE, *EXECUTABLE_STAGES[EXECUTABLE_STAGES.index("xla_gpu") :]):
        itself = [sys.executable, "-m", "benchmarks.executor", options.file]
        command = [*itself, "--rounds", str(options.rounds), "--row", row]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        rate = found["elements"] / found["wall"] / 1e6
        seconds = [f"{found[clock]:.2f}" for clock in ("wall", "cpu")]
        rows.append([row, *seconds, f"{rate:.1f}", f"{found['bytes'] / 1e6:.0f}"])
    print(header(f"{options.file}, best of {options.rounds} rounds, a process a row"))
    print_table(["", "wall s", "CPU s", "M elements/s", "peak MB"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
