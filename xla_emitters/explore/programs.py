"""Compiles programs with unknown sizes from text, and compares them with the NumPy reference stage by stage.

    program = compile_text(text, "layer.mlir")
    inputs = drawn_inputs(program, {"b": 2, "s": 16}, seed=0)      of pipelines.program_inputs
    check_program(program, inputs).raise_if_different()

Stages are compared with the reference bit by bit; if a pass may change the order of a sum, an element must be within the error bounds of
the ops. `check_passes` runs the IR after each single pass: it must give the bits of the pass before, except after the passes in `TOLERANT`.
Source: docs/reference/contracts "Passes" and "Numbers".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dtypes import Array
from xla_emitters.errors import ExecutionError, UsageError, XlaEmittersError
from xla_emitters.explore.check import TOLERANT, Reference, Verdict
from xla_emitters.explore.watched_kernels import check_kernels
from xla_emitters.fusions.entry import entry_of
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.pipelines.pass_lists import program_rows
from xla_emitters.pipelines.program_bundle import bundled_program
from xla_emitters.pipelines.program_inputs import drawn_inputs, result_specs
from xla_emitters.pipelines.program_passes import EXECUTABLE_PROGRAM_STAGES, RUN_ON_KERNELS
from xla_emitters.pipelines.program_runs import run_module
from xla_emitters.pipelines.programs import executable_stage
from xla_emitters.program import ArraySpec, Program
from xla_emitters.program.compiled import refuse_left_out
from xla_emitters.runtime.arrays import differing
from xla_emitters.runtime.bundle import ProgramCase, Shape
from xla_emitters.runtime.inputs import allowed_starts
from xla_emitters.runtime.ral.buffer_ops import value_of
from xla_emitters.runtime.reference import evaluate
from xla_emitters.runtime.reference_bounds import evaluate_bounds
from xla_emitters.runtime.repetition import MOST_ITERATIONS
from xla_emitters.runtime.tolerance import Bounds
from xla_emitters.sizes import specialize

WATCHED = ("loops", "kernels", "llvm-dialect")
"""The stages at which each kernel has a verdict of its own."""


def reference_of(
    program: Program,
    inputs: Sequence[Array],
    atol: float | None = None,
    rtol: float | None = None,
    most_iterations: int = MOST_ITERATIONS,
) -> Reference:
    """The NumPy reference of the module as it was read, on arguments that fit; products are computed by the runtime's library.

    raises  Unsupported where the text leaves out the data of constants
    """
    refuse_left_out(program.name, program.left_out)
    made = lowerings_of(program)
    entry = entry_of(made.source)
    values = evaluate(entry, inputs, most_iterations=most_iterations, value_of=value_of)

    def bounds() -> list[Bounds]:
        arrays, sizes = made.checked_with_sizes(inputs)
        static = entry_of(specialize(made.source, sizes, made.sizes))
        return evaluate_bounds(static, arrays, most_iterations=most_iterations, any_order=True)

    return Reference(entry, inputs, atol, rtol, values, most_iterations=most_iterations, bounds_of_ops=bounds)


def bundle_program(
    program: Program, text: str, sizes: Sequence[Mapping[str, int]], *, name: str, seed: int = 0
) -> ProgramCase:
    """A program with drawn inputs at each of these sizes, and the bounds of its results, ready for `write_bundle`.

    raises  DataError for unknown symbols, and sizes that the program refuses; Unsupported for what no kernel computes
    """
    shapes = [_shape(program, values, seed) for values in sizes]
    return ProgramCase(name, text, bundled_program(program), shapes)


def _shape(program: Program, values: Mapping[str, int], seed: int) -> Shape:
    inputs = drawn_inputs(program, values, seed)
    reference = reference_of(program, inputs)
    made = lowerings_of(program)
    parameters = [
        ArraySpec(spec.dtype, array.shape, tuple(reversed(range(array.ndim))))
        for spec, array in zip(program.parameters, inputs, strict=True)
    ]
    places = allowed_starts(entry_of(specialize(made.source, values, made.sizes)))
    bounds = [_known(*pair) for pair in zip(reference.bounds, reference.values, strict=True)]
    return Shape(values, seed, parameters, inputs, result_specs(program, reference.values), bounds, places)


ROUNDINGS = 64
"""Allowed error, in roundings of the largest element, if the ops' bounds are infinite."""


def _known(bounds: Bounds, value: Array) -> Bounds:
    """The bounds of a result; if they are infinite around a finite number, some roundings around the reference's number."""
    if value.dtype.kind in "biuc" or "int" in value.dtype.name:
        return bounds
    low, high, exact = (array.astype(np.float64) for array in (bounds.low, bounds.high, value))
    finite = np.isfinite(exact)
    room = (
        ROUNDINGS * float(cast(Any, ml_dtypes.finfo(value.dtype)).eps) * float(np.abs(exact[finite]).max(initial=0.0))
    )
    unknown = finite & ~np.isfinite(low) & ~np.isfinite(high)
    low, high = np.where(unknown, exact - room, low), np.where(unknown, exact + room, high)
    with np.errstate(over="ignore"):
        return Bounds(low.astype(value.dtype), high.astype(value.dtype))


def check_program(
    program: Program,
    inputs: Sequence[Array],
    stages: Sequence[str] = (),
    atol: float | None = None,
    rtol: float | None = None,
    most_iterations: int = MOST_ITERATIONS,
) -> Verdict:
    """Compares every stage with the NumPy reference, and each kernel with NumPy on its real inputs: at the last stage, or at a wrong one.

    stages  by default all after `stablehlo`, which is the reference
    raises  DataError for arguments that do not fit; UsageError for a stage that is not recorded
    """
    made = lowerings_of(program)
    arrays = made.checked(inputs)
    reference = reference_of(program, arrays, atol, rtol, most_iterations)
    stages = stages or [stage for stage in made.stages if stage != EXECUTABLE_PROGRAM_STAGES[0]]
    verdicts: list[Verdict] = []
    for stage in stages:
        try:
            verdict = reference.compare(program.run(arrays, stage))
        except ExecutionError as error:
            verdict = Verdict(False, f"fails: {error.message}", (error.message,))
        verdicts.append(Verdict(verdict.ok, verdict.summary, verdict.details, stage))
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


def _kernels_at(program: Program, arrays: Sequence[Array], stages: Sequence[Verdict]) -> list[Verdict]:
    """The kernels' verdicts at the first wrong stage, else at the last one; none if there are no kernels, or a pipeline makes them."""
    on_kernels = [stage for stage in stages if stage.name in WATCHED]
    if not on_kernels or program_rows(lowerings_of(program).options)[1] is not None:
        return []
    stage = next((each for each in on_kernels if not each.ok), on_kernels[-1])
    try:
        return check_kernels(program, arrays, stage.name)[0]
    except ExecutionError:
        # The stage's verdict has reported it already.
        return []


def check_passes(
    program: Program,
    inputs: Sequence[Array],
    atol: float | None = None,
    rtol: float | None = None,
    most_iterations: int = MOST_ITERATIONS,
) -> Verdict:
    """Compares the results after every pass with those after the pass before and with the NumPy reference. Stops at the first wrong pass.

    Passes on kernels are not executed one by one: kernels are executed at the ends of stages, within the bounds of the ops.

    program  compiled with `record="passes"`
    raises   DataError for arguments that do not fit; UsageError if passes are not recorded
    """
    made = lowerings_of(program)
    arrays = made.checked(inputs)
    reference = reference_of(program, arrays, atol, rtol, most_iterations)
    before, text, executed = reference.values, made.passes.steps[0].ir, 0
    last = Verdict(True, "nothing was executed")
    for step in made.passes.steps[1:]:
        if step.ir is None:
            raise UsageError("the passes of this program are not recorded", stage="check", help='record="passes"')
        if step.ir == text:
            continue
        text = step.ir
        try:
            found = run_module(parse_ir(text, f"<after {step.name}>"), arrays)
        except XlaEmittersError as error:
            return Verdict(False, f"{step.name}: fails: {error.message}", tuple(error.render().splitlines()))
        executed += 1
        is_tolerant = step.name in TOLERANT
        if wrong := None if is_tolerant else changed_results(found, before):
            return Verdict(False, f"{step.name}: {wrong}", (wrong,))
        last, before = reference.compare(found), found
        if not last.ok:
            return Verdict(False, f"{step.name}: {last.summary}", last.details)
    for stage in [stage for stage in made.stages if stage in RUN_ON_KERNELS]:
        executed += 1
        last = reference.compare(program.run(arrays, stage))
        if not last.ok:
            return Verdict(False, f"{stage}: {last.summary}", last.details)
    return Verdict(True, f"ok  {executed} executions after passes: {last.summary}")


def changed_results(found: Sequence[Array], before: Sequence[Array]) -> str:
    """How a pass changed the results, bit by bit; "" if it did not."""
    if len(found) != len(before):
        return f"{len(before)} results before, {len(found)} after"
    for number, (one, other) in enumerate(zip(found, before, strict=True)):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return f"r{number} is {other.dtype}{list(other.shape)} before, {one.dtype}{list(one.shape)} after"
        different = differing(one, other)
        if different.any():
            at = tuple(int(index) for index in np.argwhere(different)[0])
            count = int(np.count_nonzero(different))
            return f"{count} elements of r{number} change: r{number}{list(at)} is {other[at]} before, {one[at]} after"
    return ""


def wanted_stages(asked: str) -> list[str]:
    """The stages in the value of `--stages`, separated by commas. raises UsageError for unknown ones."""
    return [executable_stage(stage, "check") for stage in asked.split(",")]
