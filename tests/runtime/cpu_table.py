"""Programs on the CPU, warm: machine code by LLVM and NumPy, beside JAX's jit at the same shapes in the same run.

    python -m runtime.cpu_table                 all programs of all corpora, at the last of their sizes
    python -m runtime.cpu_table rope layer      these
    python -m runtime.cpu_table --random        beside that the layer at 200 new shapes, first calls: what compiling once is for
    python -m runtime.cpu_table --large         instead, programs at larger sizes, without NumPy

A row: milliseconds of a call, the median of blocks of calls that take turns (LLVM, JAX, NumPy, LLVM, ...), the least median of three; the
quotient of LLVM's and JAX's. The last line is their geometric mean. It needs JAX.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from runtime import dynamic_programs, library_programs, loop_programs, stablehlo_programs
from runtime.programs_table import Program, programs

from xla_emitters.pipelines.program_host import CPU
from xla_emitters.pipelines.programs import DynamicProgram

CALLS, TURNS = 15, 3
SHAPES = 200
LARGE = (
    ("layer", {"b": 8, "s": 128}),
    ("layer", {"b": 16, "s": 512}),
    ("masked_softmax", {"b": 4, "s": 512}),
    ("causal_attention", {"b": 8, "s": 128}),
    ("rope", {"b": 8, "s": 512}),
    ("cross_entropy", {"b": 64, "s": 512}),
    ("half_norm", {"b": 64, "s": 512}),
    ("embedding", {"b": 64, "s": 512}),
    ("cumulative", {"b": 64, "s": 512}),
    ("scatter_add", {"b": 512, "s": 512}),
    ("sorted", {"b": 64, "s": 512}),
)


def median_of(run: Callable[[], Any], calls: int = CALLS) -> float:
    times = list[float]()
    for _ in range(calls):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def compiled(program: Program, way: str, inputs: Sequence[Any]) -> DynamicProgram:
    os.environ[CPU] = way
    found = program.compiled()
    found.run(inputs)
    return found


def row(program: Program, jitted: Any) -> tuple[float, str]:
    """The quotient of LLVM's time and JAX's, and the row."""
    jax: Any = import_module("jax")
    inputs = program.inputs(program.case.sizes[-1])
    ours, plain = (compiled(program, way, inputs) for way in ("auto", "numpy"))
    runs: tuple[Callable[[], Any], ...] = (
        lambda: ours.run(inputs),
        lambda: jax.block_until_ready(jitted(*inputs)),
        lambda: plain.run(inputs),
    )
    runs[1]()
    turns = [[median_of(run) for run in runs] for _ in range(TURNS)]
    llvm, theirs, by_numpy = (min(column) for column in zip(*turns, strict=True))
    line = f"{program.name:24} {ours.cpu.name:6} {llvm:9.3f} {theirs:9.3f} {by_numpy:9.3f} {llvm / theirs:9.2f}"
    return llvm / theirs, line


def large_row(program: Program, sizes: Mapping[str, int], jitted: Any) -> tuple[float, str]:
    """Like `row`, at these sizes."""
    jax: Any = import_module("jax")
    inputs = program.inputs(sizes)
    ours = compiled(program, "auto", inputs)
    runs = (lambda: ours.run(inputs), lambda: jax.block_until_ready(jitted(*inputs)))
    for run in (*runs, *runs):
        run()
    llvm, theirs = (
        min(column) for column in zip(*([median_of(run, 5) for run in runs] for _ in range(TURNS)), strict=True)
    )
    said = ",".join(f"{name}={size}" for name, size in sizes.items())
    return llvm / theirs, f"{program.name + ' ' + said:30} {llvm:9.3f} {theirs:9.3f} {llvm / theirs:9.2f}"


def layer_at_random(jitted: Any) -> str:
    """The layer at SHAPES shapes, each once: compiling and all calls."""
    jax: Any = import_module("jax")
    rng = np.random.default_rng(0)
    shapes = [(int(rng.integers(1, 9)), int(rng.integers(1, 129))) for _ in range(SHAPES)]
    calls = [stablehlo_programs.inputs_of("layer", {"b": b, "s": s}) for b, s in shapes]
    os.environ[CPU] = "auto"
    start = time.perf_counter()
    program = programs()["layer"].compiled()
    for inputs in calls:
        program.run(inputs)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    for inputs in calls:
        jax.block_until_ready(jitted(*inputs))
    theirs = time.perf_counter() - start
    return f"layer at {SHAPES} random shapes, once each, compiling included: {ours:.2f} s, JAX {theirs:.2f} s, {ours / theirs:.3f}"


def main(arguments: Sequence[str]) -> int:
    jax: Any = import_module("jax")
    jax.config.update("jax_platforms", "cpu")
    names = [name for name in arguments if not name.startswith("--")]
    known = programs()
    corpora = stablehlo_programs, dynamic_programs, loop_programs, library_programs
    functions = {name: function for corpus in corpora for name, function in corpus.functions().items()}
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"JAX {jax.__version__}, NumPy {np.__version__}, {os.cpu_count()} cores, load {load}")
    if "--large" in arguments:
        rows = [large_row(known[name], sizes, jax.jit(functions[name])) for name, sizes in LARGE]
        print(f"{'program':30} {'ours ms':>9} {'JAX ms':>9} {'ours/JAX':>9}", *(line for _, line in rows), sep="\n")
        print(f"geometric mean of ours/JAX {statistics.geometric_mean(quotient for quotient, _ in rows):.2f}")
        return 0
    print(f"{'program':24} {'by':6} {'ours ms':>9} {'JAX ms':>9} {'NumPy ms':>9} {'ours/JAX':>9}")
    found = list[float]()
    for name in names or known:
        program = known[name]
        jax.config.update("jax_enable_x64", _is_wide(program))
        quotient, line = row(program, jax.jit(functions[name]))
        found.append(quotient)
        print(line, flush=True)
    jax.config.update("jax_enable_x64", False)
    print(f"{len(found)} programs, geometric mean of ours/JAX {statistics.geometric_mean(found):.2f}")
    if "--random" in arguments:
        print(layer_at_random(jax.jit(functions["layer"])))
    return 0


def _is_wide(program: Program) -> bool:
    """Whether a program has 64-bit arguments, which JAX accepts only with x64 enabled."""
    return any(np.asarray(array).dtype.itemsize >= 8 for array in program.inputs(program.case.sizes[-1]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
