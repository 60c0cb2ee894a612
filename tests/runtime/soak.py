"""One program under load: threads call it with random sizes for minutes; memory must not grow, and no number may be wrong.

    python -m runtime.soak                              8 threads for 600 seconds, 600 calls a second in all
    python -m runtime.soak --seconds 5 --rate 400       exit code 1 for a wrong number, or memory that grows

The program is the BERT-like layer of the corpus, at sizes that are drawn once, each with its expected values from the NumPy reference. Half
of the calls are at a few of the sizes. Every result is compared, within the program's tolerance. A row of the table is of one period:
calls, the resident set while the threads call, and the resident set after each of them has ended its call and the allocator has given
back what it keeps of freed arrays (`malloc_trim`; growth is judged by it), the sets of sizes that were bound. Each has memory for as many
calls as were ever in flight at once: so before the first row all threads call all sizes in one order, some rounds long.
"""

import argparse
import ctypes
import gc
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition, Event, Thread
from typing import Any, TypeAlias

import numpy as np
from runtime.programs_table import difference, programs

from xla_emitters.explore.check.verdict import reference_of
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.text.stablehlo import parse_stablehlo

NAME = "layer"
THREADS = 8
SIZES, HOT = 48, 4
GROWTH = 0.01
"""Allowed growth of the resident set at rest after the first row."""
ROUNDS = 20
"""Calls of each thread at each size before the first row."""
STATUS = Path("/proc/self/status")


Row: TypeAlias = tuple[float, int, float, float, int]


@dataclass
class Soak:
    """The result of a run.

    calls  number of calls that ended; wrong: of those, wrong ones; errors: errors that were raised
    rows   seconds, calls, resident MiB while threads call, and at rest, sets of sizes that were bound
    """

    calls: int = 0
    wrong: list[str] = field(default_factory=list[str])
    errors: list[str] = field(default_factory=list[str])
    rows: list[Row] = field(default_factory=list[Any])

    @property
    def growth(self) -> float:
        """The largest growth of the resident set at rest after the first row, as a fraction."""
        return max(row[3] for row in self.rows) / self.rows[0][3] - 1


def resident_mib() -> float:
    """Memory of this process that is in RAM."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def trimmed_mib() -> float:
    """The same after the garbage collector ran and the allocator returned unused memory."""
    gc.collect()
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
    return resident_mib()


class Rest:
    """Threads that work until they are asked to rest."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._resting = 0
        self._is_wanted = False
        self._changed = Condition()

    def __enter__(self) -> None:
        """Waits until all rest."""
        with self._changed:
            self._is_wanted = True
            self._changed.wait_for(lambda: self._resting == self._threads)

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_wanted = False
            self._changed.notify_all()

    def take(self) -> None:
        """Called by each thread between two pieces of work: rests if the threads are asked to."""
        if not self._is_wanted:
            return
        with self._changed:
            self._resting += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._is_wanted)
            self._resting -= 1


def soak(
    seconds: float, rate: float, period: float, say: Callable[[str], None] = lambda line: None, sizes: int = SIZES
) -> Soak:
    """Calls the program for that time, or until there are two rows: the first calls make machine code, which may take seconds.

    rate    calls a second of all threads together, at most
    period  seconds between two rows
    sizes   number of sizes to choose from
    """
    program, cases = _program(sizes)
    tolerance, found, stop, rest = programs()[NAME].case.tolerance, Soak(), Event(), Rest(THREADS)
    counts = [0] * THREADS

    def work(number: int) -> None:
        for inputs, _ in cases * ROUNDS:
            program.run(inputs)
        draw, due = np.random.default_rng(number), time.perf_counter()
        while not stop.is_set():
            rest.take()
            case = draw.integers(HOT) if draw.random() < 0.5 else draw.integers(len(cases))
            inputs, wanted = cases[case]
            try:
                worst = max(difference(a, b) for a, b in zip(program.run(inputs), wanted, strict=True))
            except Exception as error:
                found.errors.append(f"{type(error).__name__}: {error}")
                continue
            if not worst <= tolerance:
                found.wrong.append(f"{[array.shape for array in inputs[:1]]}: {worst}")
            counts[number] += 1
            due += THREADS / rate
            stop.wait(max(0.0, due - time.perf_counter()))

    threads = [Thread(target=work, args=(number,), daemon=True) for number in range(THREADS)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    while (now := time.perf_counter() - start) < seconds or len(found.rows) < 2:
        stop.wait(max(0.0, min(period, seconds - now)))
        busy = resident_mib()
        with rest:
            at_rest = trimmed_mib()
        now = time.perf_counter() - start
        row = now, sum(counts), busy, at_rest, program.compilation.loaded.bindings
        found.rows.append(row)
        counted = f"{row[0]:8.0f} {row[1]:9d} {row[2]:10.1f} {row[3]:9.1f} {row[4]:9d}"
        say(f"{counted} {len(found.wrong):7d} {len(found.errors):7d}")
    stop.set()
    for thread in threads:
        thread.join()
    found.calls = sum(counts)
    return found


def _program(count: int) -> tuple[Program, list[tuple[list[Any], list[Any]]]]:
    """The program, and arguments with their results at all sizes."""
    listed = programs()[NAME]
    options = CompileOptions(record="none")
    program = compile_program(parse_stablehlo(listed.text(), NAME), options)
    draw = np.random.default_rng(0)
    cases = list[tuple[list[Any], list[Any]]]()
    for number in range(count):
        sizes = {"b": int(draw.integers(1, 9)), "s": int(draw.integers(1, 49))}
        inputs = drawn_inputs(program, sizes, number)
        cases.append((list(inputs), reference_of(program, inputs).values))
    program.run(cases[0][0])  # its kernels are compiled by the first call
    return program, cases


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--rate", type=float, default=600.0, help="calls a second")
    parser.add_argument("--period", type=float, default=30.0, help="seconds between two rows")
    given = parser.parse_args()
    print(
        f"{THREADS} threads, {NAME}.mlir at {SIZES} sizes, at most {given.rate:g} calls a second, {given.seconds:g} s"
    )
    print(" seconds     calls   resident   at rest  bindings   wrong  errors", flush=True)
    found = soak(given.seconds, given.rate, given.period, lambda line: print(line, flush=True))
    growth = found.growth
    print(
        f"{found.calls} calls, {len(found.wrong)} wrong, {len(found.errors)} errors; after the first row +{growth:.1%}"
    )
    for line in (*found.wrong[:5], *found.errors[:5]):
        print(f"  {line}")
    return int(bool(found.wrong or found.errors) or growth > GROWTH)


if __name__ == "__main__":
    sys.exit(main())
