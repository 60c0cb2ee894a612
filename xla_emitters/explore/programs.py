"""Programs with unknown sizes, from text, and compared with the NumPy reference stage by stage.

    program = compile_text(text, "layer.mlir")
    inputs = drawn_inputs(program, {"b": 2, "s": 16}, seed=0)      of pipelines.program_inputs
    check_program(program, inputs).raise_if_different()

Stages are compared bit by bit; where a pass may change the order of a sum, an element must be within the error bounds of the ops.
Source: docs/reference/contracts "Passes" and "Numbers".
"""

from __future__ import annotations

from collections.abc import Sequence

from xla_emitters.dtypes import Array
from xla_emitters.errors import ExecutionError, UsageError
from xla_emitters.explore.check import Reference, Verdict
from xla_emitters.fusions.entry import entry_of
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import PROGRAM_STAGES
from xla_emitters.pipelines.programs import DynamicProgram, compile_program, executable_stage
from xla_emitters.rewrite.recorder import Observer
from xla_emitters.runtime.ral.buffer_ops import value_of
from xla_emitters.runtime.reference import evaluate, evaluate_bounds
from xla_emitters.runtime.steps import MOST_ITERATIONS
from xla_emitters.runtime.tolerance import Bounds
from xla_emitters.sizes import specialize
from xla_emitters.stablehlo_text import parse_stablehlo


def compile_text(
    text: str, name: str, options: CompileOptions | None = None, observe: Observer | None = None
) -> DynamicProgram:
    """A program from StableHLO text. raises ParseError, VerifyError, Unsupported with the place in the text."""
    return compile_program(parse_stablehlo(text, name), options, observe=observe)


def reference_of(
    program: DynamicProgram,
    inputs: Sequence[Array],
    atol: float | None = None,
    rtol: float | None = None,
    most_iterations: int = MOST_ITERATIONS,
) -> Reference:
    """The NumPy reference of the module as it was read, on arguments that fit; products are those of the runtime's library."""
    values = evaluate(entry_of(program.source), inputs, most_iterations=most_iterations, value_of=value_of)
    return ProgramReference(program, inputs, atol, rtol, values, most_iterations=most_iterations)


class ProgramReference(Reference):
    """The reference of a program: its bounds are those of the program at the arguments' sizes, found when they are asked for."""

    def __init__(
        self,
        program: DynamicProgram,
        inputs: Sequence[Array],
        atol: float | None,
        rtol: float | None,
        values: list[Array],
        most_iterations: int,
    ) -> None:
        super().__init__(entry_of(program.source), inputs, atol, rtol, values, most_iterations=most_iterations)
        self._program = program

    def _of_ops(self) -> list[Bounds]:
        arrays, sizes = self._program.checked_with_sizes(self.inputs)
        static = entry_of(specialize(self._program.source, sizes, self._program.sizes))
        return evaluate_bounds(static, arrays, most_iterations=self.most_iterations, any_order=True)


def check_program(
    program: DynamicProgram,
    inputs: Sequence[Array],
    stages: Sequence[str] = (),
    atol: float | None = None,
    rtol: float | None = None,
    most_iterations: int = MOST_ITERATIONS,
) -> Verdict:
    """Every stage against the NumPy reference.

    stages  by default all after `stablehlo`, which is the reference
    raises  DataError for arguments that do not fit; UsageError for a stage that is not recorded
    """
    arrays = program.checked(inputs)
    reference = reference_of(program, arrays, atol, rtol, most_iterations)
    stages = stages or [stage for stage in program.stages if stage != PROGRAM_STAGES[0]]
    verdicts: list[Verdict] = []
    for stage in stages:
        try:
            verdict = reference.compare(program.run(arrays, stage))
        except ExecutionError as error:
            verdict = Verdict(False, f"fails: {error.message}", (error.message,))
        verdicts.append(Verdict(verdict.ok, verdict.summary, verdict.details, stage))
    if wrong := [verdict for verdict in verdicts if not verdict.ok]:
        details = tuple(f"stage {verdict.name}: {line}" for verdict in wrong for line in verdict.details)
        return Verdict(False, f"stage {wrong[0].name}: {wrong[0].summary}", details, "", tuple(verdicts))
    last = verdicts[-1].summary if verdicts else "nothing was compared"
    return Verdict(True, f"{', '.join(stages)}: {last}", kernels=tuple(verdicts))


def wanted_stages(asked: str) -> list[str]:
    """The stages that `--stages` names: "all" are those that run on a CPU but the first. raises UsageError for unknown ones."""
    if asked == "all":
        return list(PROGRAM_STAGES[1:-1])
    if asked == "passes":
        raise UsageError("the passes of a program are not run one by one", stage="check", help="--stages all")
    return [executable_stage(stage, "check") for stage in asked.split(",")]
