"""Speed and memory of the CPU executor at every stage, and of the work around it: `python -m benchmarks.executor`.

One fusion, all its elements. Every row is a process of its own, so that its peak memory is its own: inputs are drawn, the kernel is
compiled as far as the stage, and the IR there is run. `draw` is the drawing of the inputs alone, `reference` their evaluation by NumPy.
Wall time is the best of `--rounds`, CPU time that round's; memory is the peak resident set of the process, interpreter and arrays included.

`--corpus DIRECTORY` instead: every fusion there at the stages `scf` and `llvm-dialect`, in this process, CPU time of the first run
and the best of two more. It prints the slowest `1/--share` by time per element, of parameters and results, and the times of all.
`--before A.txt B.txt --after C.txt D.txt` compares such tables of two states of the code, each measured several times, in turns: the least
time of each file's first run.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import geometric_mean

from benchmarks.table import header, print_table

WITHOUT_CODE = ("draw", "reference")


def measure(file: str, row: str, rounds: int) -> dict[str, float]:
    """Seconds and bytes of one row, in this process."""
    from xla_emitters.explore.check.verdict import reference_for
    from xla_emitters.pipelines.compiler import compile_module, read_module
    from xla_emitters.pipelines.options import CompileOptions
    from xla_emitters.runtime.arrays import random_arrays
    from xla_emitters.runtime.cpu.cpu_launcher import run_program

    module = read_module(Path(file))
    program = compile_module(module, CompileOptions(stage="hlo" if row in WITHOUT_CODE else row, record="stages"))
    inputs = random_arrays(program.parameters, 0)
    surroundings: dict[str, Callable[[], object]] = {
        "draw": lambda: random_arrays(program.parameters, 0),
        "reference": lambda: reference_for(module, inputs).values,
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


def measure_corpus(directory: Path, share: int) -> int:
    """Prints the slowest of `share` parts."""
    from xla_emitters.errors import XlaEmittersError
    from xla_emitters.pipelines.compiler import compile_module, read_module
    from xla_emitters.pipelines.options import CompileOptions
    from xla_emitters.runtime.arrays import random_arrays
    from xla_emitters.runtime.cpu.cpu_launcher import run_program

    found: list[tuple[float, float, float, str]] = []
    for file in sorted(directory.glob("*/*.hlo")):
        try:
            program = compile_module(read_module(file), CompileOptions(stage="llvm-dialect", record="stages"))
            inputs = random_arrays(program.parameters, 0)
            times: list[list[float]] = []
            for stage in ("scf", "llvm-dialect"):
                times.append([])
                for _ in range(3):
                    began = time.process_time()
                    run_program(program, inputs, stage)
                    times[-1].append(time.process_time() - began)
        except XlaEmittersError:
            continue  # Nothing that runs: texts that leave out their data, loops whose drawn bounds are large.
        elements = sum(spec.elements for spec in (*program.parameters, *program.results))
        first, again = max(each[0] for each in times), max(min(each[1:]) for each in times)
        found.append((first / elements, first, again, f"{file.parent.name}/{file.name}"))
    slowest = sorted(found, reverse=True)[: (len(found) + share - 1) // share]
    rows = [
        [name, f"{each * 1e9:.1f}", f"{first * 1e3:.1f}", f"{again * 1e3:.1f}"] for each, first, again, name in slowest
    ]
    print(header(f"{len(found)} fusions, the slowest 1/{share} by time per element of the first run"))
    print_table(["", "first, ns an element", "first ms", "again ms"], rows)
    for title, some in ((f"slowest 1/{share}", slowest), ("all", found)):
        first, again = sum(each[1] for each in some), sum(each[2] for each in some)
        print(f"{title}: {first:.2f} s first, {again:.2f} s again")
    return 0


def compare_tables(before: Sequence[Path], after: Sequence[Path]) -> int:
    """Prints how many times as fast the first run is after a change."""
    old, new = least_times(before), least_times(after)
    names = sorted(old.keys() & new.keys(), key=lambda name: old[name] / new[name])
    rows = [[name, f"{old[name]:.1f}", f"{new[name]:.1f}", f"{old[name] / new[name]:.2f}"] for name in names]
    print_table(["", "before, first ms", "after, first ms", "times as fast"], rows)
    mean = geometric_mean([old[name] / new[name] for name in names])
    sums = [sum(times[name] for name in names) / 1e3 for times in (old, new)]
    print(f"{len(names)} files: geometric mean {mean:.2f} times as fast, {sums[0]:.2f} s before, {sums[1]:.2f} s after")
    return 0


def least_times(tables: Sequence[Path]) -> dict[str, float]:
    """File -> the least time of its first run in these tables, in milliseconds."""
    found: dict[str, float] = {}
    for table in tables:
        for words in map(str.split, table.read_text().splitlines()):
            if words and words[0].endswith(".hlo"):
                found[words[0]] = min(float(words[2]), found.get(words[0], float("inf")))
    return found


def peak_bytes() -> int:
    """The most memory that this process had resident (Linux counts in KiB, macOS in bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed and memory of the CPU executor at every stage.")
    parser.add_argument("file", nargs="?", default="examples/gelu.hlo")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--row", help="measure one row in this process and print it as JSON")
    parser.add_argument("--corpus", type=Path, help="a directory of directories of HLO files")
    parser.add_argument("--share", type=int, default=4, help="print the slowest of this many equal parts of the corpus")
    parser.add_argument("--before", type=Path, nargs="+", default=[], help="tables that --corpus printed")
    parser.add_argument("--after", type=Path, nargs="+", default=[], help="tables to compare with those of --before")
    options = parser.parse_args()
    if options.before:
        return compare_tables(options.before, options.after)
    if options.corpus:
        return measure_corpus(options.corpus, options.share)
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
