"""The programs of the corpus with kernels for each of their sizes, against JAX's values, and what such kernels gain.

    python -m runtime.heat_table                     on the CPU: whole calls at the last sizes, the best of 300, without and with
    python -m runtime.heat_table rope layer          of these
    python -m runtime.heat_table --kernels rope      kernels for a GPU, on the CPU executor: instructions and bytes of all threads

Exit code 1 if numbers differ. On the CPU a kernel that is not faster is dropped, as always; numbers are compared before that.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from runtime.programs_table import Program, programs

from xla_emitters.errors import XlaEmittersError
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import DynamicProgram, compile_program
from xla_emitters.runtime.ral.heat import TIMED, Heat
from xla_emitters.runtime.ral.hot_compiler import HotCompiler
from xla_emitters.runtime.ral.hot_spots import Spot
from xla_emitters.stablehlo_text import parse_stablehlo

STAGE = "llvm-dialect"
CALLS = 300


class AtStage:
    """A program whose `run` executes a stage."""

    def __init__(self, program: DynamicProgram, stage: str | None) -> None:
        self._program = program
        self._stage = stage

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        return self._program.run(inputs, self._stage)


def row_of(listed: Program, *, kernels: bool) -> tuple[str, bool]:
    """A line of the table, and whether the numbers are right."""
    options = CompileOptions(record="none", heat="calls=1,kernels=4096")
    program = compile_program(parse_stablehlo(listed.text(), listed.name), options)
    heat = program.lowering.loaded(STAGE).context.heat if kernels else program.heat
    if heat is None:
        return f"{listed.name:24} {program.cpu.name}: {program.cpu.reason}", True
    runs: Any = AtStage(program, STAGE if kernels else None)
    listed.differences(runs)
    HotCompiler.of_process().wait()
    for spot in heat.spots:
        spot.fastest = [None, None]  # so that no kernel is dropped before its numbers are compared
    worst = max(listed.differences(runs))
    states = Counter(spot.what if spot.is_replaced else "kept" for spot in heat.spots)
    counted = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
    gained = _counted(heat.spots) if kernels else _timed(listed, program, heat)
    is_right = worst <= listed.case.tolerance
    return f"{listed.name:24} {worst:9.1e} {gained} {'' if is_right else 'WRONG '}{counted}", is_right


def _counted(spots: Sequence[Spot]) -> str:
    """Instructions and bytes of the fusions that were replaced, with the kernels for these sizes relative to those for all."""
    sums = [0, 0, 0, 0]
    for spot in spots:
        if spot.is_replaced and spot.gain.instructions and spot.gain.bytes:
            found = (*spot.gain.instructions, *spot.gain.bytes)
            sums = [a + b for a, b in zip(sums, found, strict=True)]
    share = [sums[n + 1] / sums[n] if sums[n] else 1.0 for n in (0, 2)]
    return f"{share[0]:13.2f} {share[1]:6.2f} "


def _timed(listed: Program, program: DynamicProgram, heat: Heat) -> str:
    """Microseconds of a whole call at the last sizes, best of many, of a program without heat and of this one, in turns."""
    inputs, other = listed.inputs(listed.case.sizes[-1]), listed.compiled()
    for _ in range(TIMED + 1):
        program.run(inputs)
    before, after = list[float](), list[float]()
    for _ in range(CALLS):
        before.append(_seconds(lambda: other.run(inputs)))
        after.append(_seconds(lambda: program.run(inputs)))
    return f"{min(before) * 1e6:10.1f} {min(after) * 1e6:8.1f} {min(after) / min(before):6.2f} "


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--kernels", action="store_true")
    given = parser.parse_args()
    print(
        f"{'program':24} {'error':>9} "
        + ("instructions  bytes" if given.kernels else "us without   with  share")
        + "  fusions at sizes"
    )
    wrong = 0
    for name, listed in sorted(programs().items()):
        if given.names and name not in given.names:
            continue
        try:
            line, is_right = row_of(listed, kernels=given.kernels)
        except XlaEmittersError as error:
            line, is_right = f"{name:24} {error.message[:90]}", True
        wrong += not is_right
        print(line, flush=True)
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
