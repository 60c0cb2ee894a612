"""Runs a program at recurring sizes until its fusions have kernels for these sizes or are known not to get one, and reports the gain.

    program = compile_program(module, CompileOptions(heat="on"))
    print("\\n".join(heat_report(program, inputs, "b = 2, s = 16")))

On the CPU the program is called and the kernels are timed. For a GPU it is executed once and the work of its kernels is counted:
instructions and bytes of all threads, for the kernels for all sizes and for the kernels for these sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.pipelines.programs import DynamicProgram
from xla_emitters.runtime.ral.heat import TIMED, Heat
from xla_emitters.runtime.ral.hot_compiler import HotCompiler

STAGE = "llvm-dialect"
WAIT_SECONDS = 600.0


@dataclass(frozen=True)
class ProgramHeat:
    """What was measured.

    cpu      counts of calls; None where NumPy computes the program
    kernels  counts for a GPU; None where some op has no kernel: see `reason`
    """

    target: str
    cpu: Heat | None
    kernels: Heat | None
    reason: str = ""

    def lines(self) -> list[str]:
        """The lines that `explain --runtime` prints."""
        lines = ["hot fusions on the CPU"]
        lines += (
            [f"  {line}" for line in self.cpu.report()] if self.cpu else ["  NumPy computes them: none are kernels"]
        )
        lines.append(f"hot fusions as kernels for {self.target}: instructions and bytes of all threads of one run")
        lines += [f"  {line}" for line in self.kernels.report()] if self.kernels else [f"  {self.reason}"]
        return lines

    def to_json(self) -> dict[str, Any]:
        """Plain data, as docs/json.md says."""
        return {
            name: [spot.to_json() for spot in heat.spots] if heat else []
            for name, heat in (("cpu", self.cpu), ("kernels", self.kernels))
        }


def measure_heat(program: DynamicProgram, inputs: Sequence[Array]) -> ProgramHeat:
    """Calls a program on these arrays until its hot fusions have kernels for their sizes, then as often as needed to time them."""
    compiler = HotCompiler.of_process()
    if program.heat is not None:
        for _ in range(program.heat.limits.calls):
            program.run(inputs)
        compiler.wait(WAIT_SECONDS)
        for _ in range(TIMED + 1):
            program.run(inputs)
    try:
        kernels = program.lowering.loaded(STAGE).context.heat
        assert kernels is not None
        kernels.limits = replace(kernels.limits, calls=1)
        program.run(inputs, STAGE)
        compiler.wait(WAIT_SECONDS)
        program.run(inputs, STAGE)
    except Unsupported as error:
        return ProgramHeat(program.target, program.heat, None, error.message)
    return ProgramHeat(program.target, program.heat, kernels)
