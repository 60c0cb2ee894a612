"""Programs on the CPU where people work: warm calls at real sizes beside JAX, the call itself, and a new size.

    python -m benchmarks.cpu                    three tables; needs JAX
    python -m benchmarks.cpu softmax layer      these rows of the first table alone
    python -m benchmarks.cpu --calls            without the first table

The first table: milliseconds of a warm call, arrays of NumPy in, results out; blocks of calls of both systems take turns, and the least
median of a block counts. The second: what a call takes on arrays of a few elements; microseconds a call, and a bound step with its work.
The third: the first call at a size that the program has not met, and a second one there; JAX's first is a compilation.
"""

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import xla_emitters as xe
from benchmarks.executed_steps import steps_of
from benchmarks.table import header, print_table
from xla_emitters.runtime.cpu.blas import kernels, library
from xla_emitters.runtime.walk import HostMemory
from xla_emitters.support.extras import install_command

BLOCK_SECONDS, TURNS = 0.2, 5
MOST_QUOTIENT, MEAN_QUOTIENT = 1.5, 0.8
"""Of our time and JAX's: of each row, and the geometric mean of all."""


def products() -> str:
    """The CPU whose code our products use: an environment may ask OpenBLAS for another one than this."""
    return kernels() if library() is not None else f"NumPy {np.__version__}"


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


CALLS: Mapping[str, Mapping[str, int]] = {
    "layer": {"b": 1, "s": 1},
    "decoder": {"b": 2, "s": 100},
    "until_large": {"b": 2, "s": 3},
    "scan": {"b": 100, "s": 1},
}
"""Program of tests/runtime/programs_table -> sizes at which there is little work; the loops have a hundred trips."""


FEW_STEPS = 20


def calls() -> None:
    """What a call takes on arrays of a few elements; and, where it has few steps, what is left of it without them: the rest is noise."""
    known, rows = import_module("runtime.programs_table").programs(), list[list[str]]()
    for name, sizes in CALLS.items():
        program, inputs = known[name].compiled(), known[name].inputs(sizes)
        steps = steps_of(program.compilation.loaded, inputs, HostMemory())
        frame = program.compilation.loaded.frame(program.compilation.loaded.bind([np.shape(array) for array in inputs]))
        whole, walked = in_turns([partial(program.run, inputs), partial(frame.run, inputs)])
        said = " ".join((name, *(f"{symbol}={size}" for symbol, size in sizes.items())))
        rest = f"{1e3 * (whole - walked):.1f}" if steps < FEW_STEPS else ""
        rows.append([said, str(steps), f"{1e3 * whole:.1f}", rest, f"{1e3 * walked / steps:.2f}"])
    print_table(("call", "steps", "us", "besides steps, us", "us a step"), rows)


def new_sizes() -> None:
    """The first call at a size that a program has not met, and a second one there."""
    from benchmarks.cpu_programs import layer_at

    jax: Any = import_module("jax")
    program, jitted = xe.compile(layer_at(1, 1).exported(), record="none"), jax.jit(layer_at(1, 1).function)
    times = list[tuple[float, float, float, float]]()
    for number in range(20):
        inputs = layer_at(2 + number % 7, 16 + 3 * number).inputs
        runs = partial(program, *inputs), partial(lambda given: jax.block_until_ready(jitted(*given)), inputs)
        times.append(tuple(1e3 * seconds(run) for run in (runs[0], runs[0], runs[1], runs[1])))
    first, warm, theirs, their_warm = (statistics.median(column) for column in zip(*times, strict=True))
    print_table(
        ("a layer at 20 new sizes, medians", "first ms", "warm ms", "JAX first ms", "JAX warm ms"),
        [["", f"{first:.2f}", f"{warm:.2f}", f"{theirs:.1f}", f"{their_warm:.2f}"]],
    )


def seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main(arguments: Sequence[str]) -> int:
    try:
        jax: Any = import_module("jax")
    except ImportError:
        print(
            f"error: this compares with JAX, which is not installed: {install_command(extras='jax')}", file=sys.stderr
        )
        return 4
    jax.config.update("jax_platforms", "cpu")
    print(header(f"programs of unknown size on the CPU, warm, beside JAX {jax.__version__}, products for {products()}"))
    if arguments != ["--calls"]:
        work([name for name in arguments if not name.startswith("-")])
    if not arguments or "--calls" in arguments:
        sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
        calls()
        new_sizes()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
