"""Compares each stage of a program with unknown sizes with the NumPy reference, and its kernels with NumPy on their real inputs.

    check_program(program, drawn_inputs(program, {"b": 2, "s": 16}, seed=0)).raise_if_different()

Stages are compared bit by bit; if a pass may change the order of a sum, an element must be within the error bounds of the ops.
Source: docs/reference/contracts "Passes" and "Numbers".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xla_emitters.dtypes import Array
from xla_emitters.errors import ExecutionError
from xla_emitters.explore.check.verdict import Reference, Verdict, reference_of
from xla_emitters.explore.check.watched_kernels import check_kernels
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.pipelines.pass_lists import program_rows
from xla_emitters.pipelines.passes import BY_LLVM
from xla_emitters.pipelines.program_passes import EXECUTABLE_PROGRAM_STAGES
from xla_emitters.program import Program

WATCHED = ("loops", "kernels", "llvm-dialect")
"""The stages at which each kernel has a verdict of its own. So have those of `BY_LLVM`, by a second run of LLVM, where they are wrong."""


def check_program(
    program: Program,
    inputs: Sequence[Array],
    stages: Sequence[str] = (),
    atol: float | None = None,
    rtol: float | None = None,
) -> Verdict:
    """Compares every stage with the NumPy reference, and each kernel with NumPy on its real inputs: at the last stage, or at a wrong one.

    stages  by default all after `stablehlo`, which is the reference
    raises  DataError for arguments that do not fit; UsageError for a stage that is not recorded
    """
    made = lowerings_of(program)
    arrays = made.checked(inputs)
    reference = reference_of(program, arrays, atol, rtol)
    stages = stages or [stage for stage in made.stages if stage != EXECUTABLE_PROGRAM_STAGES[0]]
    verdicts = [_compared(program, arrays, reference, stage) for stage in stages]
    kernels = _kernels_at(program, arrays, verdicts)
    if wrong := [verdict for verdict in verdicts if not verdict.ok]:
        details = tuple(f"stage {verdict.name}: {line}" for verdict in wrong for line in verdict.details)
        details += tuple(f"kernel {kernel.name}: {kernel.summary}" for kernel in kernels if not kernel.ok)
        return Verdict(False, f"stage {wrong[0].name}: {wrong[0].summary}", details, "", tuple(kernels))
    if bad := [kernel for kernel in kernels if not kernel.ok]:
        details = tuple(f"kernel {kernel.name}: {kernel.summary}" for kernel in bad)
        return Verdict(False, details[0], details, "", tuple(kernels))
    last = verdicts[-1].summary if verdicts else "nothing was compared"
    return Verdict(True, f"{', '.join(stages)}: {last}", kernels=tuple(kernels))


def results_at(program: Program, inputs: Sequence[Array], stage: str) -> Verdict:
    """Compares the program's results at one stage with the NumPy reference. raises like `check_program`"""
    arrays = lowerings_of(program).checked(inputs)
    reference = reference_of(program, arrays)
    found = _compared(program, arrays, reference, stage)
    return Verdict(found.ok, f"{'ok  ' if found.ok else ''}{stage}: {found.summary}", found.details)


def _compared(program: Program, arrays: Sequence[Array], reference: Reference, stage: str) -> Verdict:
    try:
        verdict = reference.compare(program.run(arrays, stage))
    except ExecutionError as error:
        verdict = Verdict(False, f"fails: {error.message}", (error.message,))
    return Verdict(verdict.ok, verdict.summary, verdict.details, stage)


def _kernels_at(program: Program, arrays: Sequence[Array], stages: Sequence[Verdict]) -> list[Verdict]:
    """The kernels' verdicts at the first wrong stage, else at the last one; none if there are no kernels, or a pipeline makes them."""
    wrong = [stage.name for stage in stages if not stage.ok]
    on_kernels = [stage.name for stage in stages if stage.name in WATCHED]
    shown = next((name for name in wrong if name in (*WATCHED, *BY_LLVM)), on_kernels[-1] if on_kernels else None)
    if shown is None or program_rows(lowerings_of(program).options)[1] is not None:
        return []
    try:
        kernels, _ = check_kernels(program, arrays, shown)
    except ExecutionError:
        # The stage's verdict has reported it already.
        return []
    if not wrong or shown in wrong:
        return kernels
    return [replace(each, summary=f"at stage {shown}: {each.summary}") if each.ok else each for each in kernels]
