"""The programs of tests/corpus/stablehlo, programs, loops and library, compiled once each and run at all their sizes, against JAX's values.

    python -m runtime.programs_table                a table of all programs, and the BERT-like layer; exit code 1 where numbers differ
    python -m runtime.programs_table rope layer     of these
    python -m runtime.programs_table --jax ...      with JAX in this environment: its stall at each new shape of the layer, in the same run

A row: the program, how many shapes, the largest difference from JAX's values in units of the largest magnitude, seconds to compile, and
milliseconds of a warm call at the largest shape. Of the layer: the error against float64; medians, over the shape and its neighbours, of
the first call at a shape, of the one after it, and of the quotients of their CPU seconds, in which the load of the machine does not count.
"""

import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from runtime import dynamic_programs, library_programs, loop_programs, stablehlo_programs
from runtime.stablehlo_programs import Case

from xla_emitters.errors import XlaEmittersError
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import COMPILATIONS, compile_program
from xla_emitters.program import Program
from xla_emitters.text.stablehlo import parse_stablehlo

LAYER = ((1, 1), (1, 7), (2, 16), (3, 33), (8, 128), (16, 512))


@dataclass(frozen=True)
class KnownProgram:
    """A program of a corpus."""

    name: str
    folder: Path
    case: Case

    def text(self) -> str:
        return (self.folder / f"{self.name}.mlir").read_text()

    def compiled(self) -> Program:
        return compile_program(parse_stablehlo(self.text(), f"{self.name}.mlir"), CompileOptions(record="none"))

    def inputs(self, sizes: Mapping[str, int]) -> list[Any]:
        return stablehlo_programs.inputs_of(self.name, sizes, self.case)

    def differences(self, program: Program) -> list[float]:
        """Per shape the largest difference from JAX, in units of the largest magnitude or 1. raises AssertionError for other shapes."""
        found = list[float]()
        with np.load(self.folder / f"{self.name}.npz") as expected:
            for number, sizes in enumerate(self.case.sizes):
                results = program.run(self.inputs(sizes))
                assert f"{number}/r{len(results)}" not in expected
                found.append(max(difference(a, expected[f"{number}/r{i}"]) for i, a in enumerate(results)))
        return found


def difference(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> float:
    """In units of the largest finite magnitude, or of 1; inf for another inf or NaN. raises AssertionError for another shape."""
    assert found.shape == wanted.shape, f"shape {found.shape}, JAX has {wanted.shape}"
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    a, b = found.astype(wide), wanted.astype(wide)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    largest = float(np.abs(b[finite]).max(initial=1.0))
    return float(np.abs(a[finite] - b[finite]).max(initial=0.0)) / largest


def programs() -> dict[str, KnownProgram]:
    """All programs of all corpora by name."""
    return {
        name: KnownProgram(name, module.CORPUS, case)
        for module in (stablehlo_programs, dynamic_programs, loop_programs, library_programs)
        for name, case in module.CASES.items()
    }


def row(program: KnownProgram) -> tuple[bool, str]:
    """Whether the program is right, and its row."""
    start = time.perf_counter()
    before = COMPILATIONS.made
    try:
        compiled = program.compiled()
        seconds = time.perf_counter() - start
        worst = max(program.differences(compiled))
    except XlaEmittersError as error:
        return False, f"{program.name:24} {error.message}"
    except AssertionError as error:
        return False, f"{program.name:24} differs: {error}"
    ok = worst <= program.case.tolerance and COMPILATIONS.made == before + 1
    inputs, times = program.inputs(program.case.sizes[-1]), list[float]()
    for _ in range(5):
        start = time.perf_counter()
        compiled.run(inputs)
        times.append(time.perf_counter() - start)
    warm = 1000 * statistics.median(times)
    shapes, verdict = len(program.case.sizes), "ok" if ok else "DIFFERS"
    return ok, f"{program.name:24} {shapes:6} {verdict:8} {worst:10.1e} {seconds:10.2f} {warm:9.2f}"


def layer_rows(with_jax: bool) -> tuple[bool, list[str]]:
    """The BERT-like layer at six shapes: error against float64, the first call and a warm one; with JAX, its calls beside them."""
    program, before = programs()["layer"].compiled(), COMPILATIONS.made
    for b, s in ((LAYER[-1][0] + 1, LAYER[-1][1]), (4, 3)):  # loads the program, and the process gets its memory
        program.run(stablehlo_programs.inputs_of("layer", {"b": b, "s": s}))
    jitted: Any = None
    if with_jax:
        jax: Any = import_module("jax")

        jitted = jax.jit(stablehlo_programs.functions()["layer"])

    def by_jax(inputs: Sequence[Any]) -> Any:
        return jitted(*inputs).block_until_ready()

    lines = [
        "layer          error   first ms   warm ms  first/warm" + ("  JAX first ms  JAX warm ms" if with_jax else "")
    ]
    is_right = True
    for b, s in LAYER:
        pairs, ratios, found = list[tuple[float, float]](), list[float](), list[Any]()
        drawn = [
            stablehlo_programs.inputs_of("layer", {"b": b, "s": s + more}) for more in range(5 if b * s > 4000 else 25)
        ]
        program.run(stablehlo_programs.inputs_of("layer", {"b": b, "s": s + len(drawn)}))
        for inputs in drawn:  # new shapes: this one and its neighbours, each after a call at another shape
            run = partial(program.run, inputs)
            start = time.process_time()
            first, results = timed(run)
            between = time.process_time()
            pairs.append((first, timed(run)[0]))
            ratios.append((between - start) / (time.process_time() - between))
            found.append(results[0])
        error = max(difference(result, in_float64(*inputs)) for result, inputs in zip(found, drawn, strict=True))
        is_right &= error <= 2e-5
        first, warm = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratio = statistics.median(ratios)
        line = f"({b}, {s})".ljust(12) + f"{error:9.1e} {1e3 * first:9.2f} {1e3 * warm:9.2f} {ratio:10.2f}"
        if jitted is not None:
            inputs = stablehlo_programs.inputs_of("layer", {"b": b, "s": s})
            stall, _ = timed(partial(by_jax, inputs))
            again = statistics.median(timed(partial(by_jax, inputs))[0] for _ in range(5))
            line += f" {1e3 * stall:12.1f} {1e3 * again:12.2f}"
        lines.append(line)
    compilations = COMPILATIONS.made - before + 1
    lines.append(f"compilations: {compilations}")
    return is_right and compilations == 1, lines


def timed(run: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    found = run()
    return time.perf_counter() - start, found


def in_float64(x: Any, w1: Any, w2: Any, scale: Any, bias: Any) -> Any:
    """The layer in float64, written for NumPy."""
    x, w1, w2, scale, bias = (array.astype(np.float64) for array in (x, w1, w2, scale, bias))
    b, s, d = x.shape
    q = (x @ w1).reshape(b, s, 4, d // 4).transpose(0, 2, 1, 3)
    scores = q @ q.swapaxes(-1, -2) / np.sqrt(d / 4)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    x = x + (weights @ q).transpose(0, 2, 1, 3).reshape(b, s, d)
    centered = x - x.mean(-1, keepdims=True)
    x = centered / np.sqrt(centered.var(-1, keepdims=True) + 1e-5) * scale + bias
    y = x @ w2
    return 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))


def main(arguments: Sequence[str]) -> int:
    names = [name for name in arguments if name != "--jax"]
    known = programs()
    print(f"{'program':24} {'shapes':>6} {'':8} {'difference':>10} {'compile s':>10} {'warm ms':>9}")
    verdicts = list[bool]()
    for name in names or known:
        ok, line = row(known[name])
        verdicts.append(ok)
        print(line, flush=True)
    print(f"{sum(verdicts)} of {len(verdicts)} programs right\n")
    if not names or "layer" in names:
        ok, lines = layer_rows("--jax" in arguments)
        verdicts.append(ok)
        print("\n".join(lines))
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
