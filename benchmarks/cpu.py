"""Programs on the CPU where people work: warm calls at real sizes beside JAX, the call itself, and a new size.

    python -m benchmarks.cpu                    four tables; needs JAX
    python -m benchmarks.cpu softmax layer      these rows of the first table alone

The first table: milliseconds of a warm call, arrays of NumPy in, results out; blocks of calls of both systems take turns, and the least
median of a block counts. The second: what a call costs besides the work, on programs as small as can be; microseconds a call, and a bound
step. The third: the first call at a size that the program has not met, less a warm one there; JAX's is a compilation.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import xla_emitters as xe
from benchmarks.table import header, print_table
from xla_emitters.extras import install_command

BLOCK_SECONDS, TURNS = 0.2, 5
MOST_QUOTIENT, MEAN_QUOTIENT = 1.5, 0.8
"""Of our time and JAX's: of each row, and the geometric mean of all."""


def block(run: Callable[[], Any]) -> float:
    """Milliseconds of a call: the median of a block of calls."""
    times, end = list[float](), time.perf_counter() + BLOCK_SECONDS
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def in_turns(runs: Sequence[Callable[[], Any]]) -> list[float]:
    """The least median of each."""
    for run in (*runs, *runs):
        run()
    return [min(column) for column in zip(*([block(run) for run in runs] for _ in range(TURNS)), strict=True)]


def difference(found: Any, wanted: Any) -> float:
    """The largest of all results, in units of the largest magnitude of each, or of 1."""
    jax: Any = import_module("jax")
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
    return max(_difference(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in pairs)


def _difference(found: Any, wanted: Any) -> float:
    """inf where one of them is not finite and they differ."""
    finite = np.isfinite(found) & np.isfinite(wanted)
    if not np.array_equal(found[~finite], wanted[~finite], equal_nan=True):
        return float("inf")
    scale = np.abs(wanted[finite]).max(initial=1.0)
    return float(np.abs(found[finite] - wanted[finite]).max(initial=0.0) / scale)


def work(names: Sequence[str]) -> None:
    from benchmarks.cpu_programs import works

    jax: Any = import_module("jax")
    found, rows = list[float](), list[list[str]]()
    for each in works(names):
        program = xe.compile(each.exported(), record="none")
        jitted = jax.jit(each.function)
        on_device = jax.device_put(each.inputs)
        error = difference(program(*each.inputs), jitted(*on_device))
        ours, theirs = in_turns(
            [
                partial(program, *each.inputs),
                lambda jitted=jitted, arrays=on_device: jax.block_until_ready(jitted(*arrays)),
            ]
        )
        found.append(ours / theirs)
        rows.append([each.title, f"{ours:.3f}", f"{theirs:.3f}", f"{ours / theirs:.2f}", f"{error:.0e}"])
        print(*rows[-1], file=sys.stderr, flush=True)
    print_table(("program", "ours ms", "JAX ms", "ours/JAX", "difference"), rows)
    print(
        f"{len(found)} programs, geometric mean {statistics.geometric_mean(found):.2f} (at most {MEAN_QUOTIENT}), "
        f"{sum(each > MOST_QUOTIENT for each in found)} above {MOST_QUOTIENT}"
    )


def main(arguments: Sequence[str]) -> int:
    try:
        jax: Any = import_module("jax")
    except ImportError:
        print(
            f"error: this compares with JAX, which is not installed: {install_command(extras='jax')}", file=sys.stderr
        )
        return 4
    jax.config.update("jax_platforms", "cpu")
    print(header(f"programs of unknown size on the CPU, warm, beside JAX {jax.__version__}, NumPy {np.__version__}"))
    work(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
