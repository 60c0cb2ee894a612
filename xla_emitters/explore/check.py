"""Does every stage compute what the HLO says? The NumPy reference against the executor after every pass.

    check("gelu.hlo")
      (reference)        r0 by NumPy (and, where an op may round, the bounds of what is admissible)
      hlo                printed, read back and evaluated: the same bits
      xla_gpu            executed: the same bits as the reference, or within the bounds
      ... every pass ...  executed: the same bits as before the pass, but for the passes in `TOLERANT`
      llvm-dialect

Large grids can be sampled: some blocks run, and only what they write is compared. Source: design.md 2.5 and 4 "Numbers".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType

from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.gather_scatter import ScatterOp
from xla_emitters.dialects.xla_gpu import LoopOp
from xla_emitters.dtypes import Array
from xla_emitters.emitters.emit import refuse_without_code
from xla_emitters.errors import ExecutionError, NumbersDiffer, UsageError
from xla_emitters.fusions.program_plan import PlannedKernel, called_by, computation_of, entry_of
from xla_emitters.kernels.kernel_entry import launch_of
from xla_emitters.pipeline import (
    EXECUTABLE_STAGES,
    Observer,
    compile_module,
    kernel_arguments,
    plan_module,
    read_module,
)
from xla_emitters.program import Program
from xla_emitters.runtime.arrays import StandardInput, differing, from_buffer, load_arrays
from xla_emitters.runtime.bundle import Case
from xla_emitters.runtime.cpu_launcher import Slots, allocate, run_kernel, run_program
from xla_emitters.runtime.inputs import draw_inputs, places_said_by
from xla_emitters.runtime.reference import evaluate, evaluate_bounds
from xla_emitters.runtime.simt.sanitizer import Sanitizer
from xla_emitters.runtime.tolerance import Bounds


@dataclass(frozen=True)
class Tolerance:
    """That a pass may change bits.

    reason   why
    applies  whether it may in this kernel, given as the pass leaves it
    """

    reason: str
    applies: Callable[[ModuleOp], bool] = lambda module: True


def hands_on_over_several_variables(module: ModuleOp) -> bool:
    """Whether the order of some loop's iterations, when it changes, can change what is computed.

    Peeling takes the last iterations of an inner variable after all others of the outer ones, so a loop over one variable keeps its order.
    Nor does it matter to a loop that hands on tensors alone: an element of them is written in one iteration, or updated in the iterations
    of one value of the inner variables. Sums, and whatever else is combined, are handed on as scalars and vectors.
    """
    loops = (op for op in module.walk() if isinstance(op, LoopOp) and len(op.map.range_vars) > 1)
    return any(not isinstance(type, TensorType) for loop in loops for type in loop.result_types)


# Passes that may change bits; everywhere else consecutive stages are bit-identical.
TOLERANT = {
    "convert-complex-to-standard": Tolerance(
        "complex quotients and functions are written out in their own type: 16 ulp of the modulus each"
    ),
    "xla-gpu-peel-loops": Tolerance(
        "a reduction over several variables combines the elements of a variable's last iteration after all others",
        hands_on_over_several_variables,
    ),
    "xla-expand-float-ops": Tolerance("f32 tanh and erf become polynomials: 6 ulp each"),
}


@dataclass(frozen=True)
class Verdict:
    """Whether numbers are right, in one line and, if not, in several.

    ok       all compared elements are admissible
    summary  one line for a table
    details  where and by how much they are not
    program  what was compiled, up to the last stage that was looked at; None where nothing was
    """

    ok: bool
    summary: str
    details: tuple[str, ...] = ()
    program: Program | None = None

    def raise_if_different(self) -> None:
        """raises NumbersDiffer unless `ok`."""
        if not self.ok:
            raise NumbersDiffer(self.summary, stage="check", details=self.details)


@dataclass
class Reference:
    """What the HLO computes on some inputs: exact values, and on demand the bounds of what a kernel may give."""

    computation: ComputationOp
    inputs: Sequence[Array]
    atol: float | None = None
    rtol: float | None = None
    values: list[Array] = field(default_factory=list[Array])
    _bounds: list[Bounds] | None = None

    def __post_init__(self) -> None:
        self.values = evaluate(self.computation, self.inputs)

    @property
    def bounds(self) -> list[Bounds]:
        """Per result: from the tolerances of the ops, or from `atol` and `rtol` where they are given."""
        if self._bounds is None:
            if self.atol is None and self.rtol is None:
                self._bounds = evaluate_bounds(self.computation, self.inputs)
            else:
                self._bounds = [self._around(value) for value in self.values]
        return self._bounds

    def _around(self, value: Array) -> Bounds:
        if value.dtype.kind in "biu" or "int" in value.dtype.name:
            return Bounds(value, value)
        wide = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
        slack = (self.atol or 0.0) + (self.rtol or 0.0) * np.abs(wide)
        if value.dtype.kind == "c":
            slack = slack * (1 + 1j)
        return Bounds((wide - slack).astype(value.dtype), (wide + slack).astype(value.dtype))

    def compare(
        self,
        results: Sequence[Array],
        written: Sequence[Array] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> Verdict:
        """Bit by bit first; what differs must be within the bounds.

        written  per result, which elements (flat, logical) were computed; None: all
        numbers  which results these are; None: all, in order
        """
        exact = total = 0
        details: list[str] = []
        chosen = range(len(self.values)) if numbers is None else numbers
        for at, (result, number) in enumerate(zip(results, chosen, strict=True)):
            different = differing(result, self.values[number])
            if written is not None:
                different = different & written[at].reshape(different.shape)
            count = different.size if written is None else int(np.count_nonzero(written[at]))
            wrong = different & ~self.bounds[number].admits(result) if different.any() else different
            total += count
            exact += count - int(np.count_nonzero(different))
            if wrong.any():
                details += self._differences(number, result, wrong)
        if details:
            return Verdict(False, f"differs from the NumPy reference: {details[0]}", tuple(details))
        how = "bit-identical to" if exact == total else f"({exact} bit-identical, all within the ops' bounds) equal to"
        return Verdict(True, f"{total} of {total} elements {how} the NumPy reference")

    def _differences(self, number: int, result: Array, wrong: Array) -> list[str]:
        positions = np.argwhere(wrong)[:5]
        lines = [f"r{number}: {int(np.count_nonzero(wrong))} of {wrong.size} elements"]
        for position in positions:
            at = tuple(int(index) for index in position)
            low, high = self.bounds[number].low[at], self.bounds[number].high[at]
            wanted = f"{low}" if f"{low}" == f"{high}" else f"{low} to {high}"
            lines.append(f"r{number}{list(at)} is {result[at]}, wanted {wanted}")
        return lines


def reference_for(
    module: ModuleOp,
    inputs: Sequence[Array],
    fusion: str | None = None,
    atol: float | None = None,
    rtol: float | None = None,
) -> Reference:
    """The reference of ENTRY, or of the computation that the fusion instruction `fusion` calls."""
    return Reference(drawn_for(module, fusion), inputs, atol, rtol)


def drawn_for(module: ModuleOp, fusion: str | None = None) -> ComputationOp:
    """What the inputs are for: ENTRY, or the computation that the fusion instruction `fusion` calls."""
    return entry_of(module) if fusion is None else called_by(module, fusion)


def check(
    source: str | Path,
    *,
    target: str = "h200",
    fusion: str | None = None,
    stages: str = "all",
    seed: int = 0,
    inputs: str | Path | StandardInput | Sequence[Array] | None = None,
    blocks: int = 0,
    atol: float | None = None,
    rtol: float | None = None,
    sanitize: bool = True,
    verify: bool = True,
    hero_rules: str = "current",
) -> Verdict:
    """Compiles, executes every stage on the CPU, compares with the NumPy reference.

    stages  "all", "passes" (after every single pass), or stage names with commas
    inputs  arrays, or an `.npz` of them; default: drawn from `seed`
    blocks  how many blocks to run, spread over the grid; 0: all
    sanitize  races, and reads of shared memory that nobody wrote, are errors too
    verify  run the IR verifier after every pass
    raises  what `compile` raises; ExecutionError becomes part of the verdict
    """
    wanted = stages_wanted(stages)
    module = read_module(source)
    # As `compile` refuses it, and before there are inputs to draw.
    for planned in plan_module(module, fusion, hero_rules).kernels:
        refuse_without_code(planned.source)
    shapes = compile_module(module, target=target, fusion=fusion, stage="hlo", record="none", hero_rules=hero_rules)
    if isinstance(inputs, str | Path | StandardInput):
        arrays = load_arrays(inputs, "p", shapes.parameters)
    else:
        arrays = draw_inputs(drawn_for(module, fusion), shapes.parameters, seed) if inputs is None else list(inputs)
    reference = reference_for(module, arrays, fusion, atol, rtol)
    comparison = StageComparison(reference, shapes, allocate(shapes, arrays), wanted, blocks, sanitize)
    if "hlo" in wanted:
        comparison.compare_hlo(run_program(shapes, arrays, "hlo"))
    program = compile_module(
        module,
        target=target,
        fusion=fusion,
        stage=max((name for name in wanted if name), key=EXECUTABLE_STAGES.index) if wanted else EXECUTABLE_STAGES[-1],
        record="none",
        verify=verify,
        observers=comparison.observer,
        hero_rules=hero_rules,
    )
    return replace(comparison.verdict(), program=program)


def stages_wanted(stages: str) -> tuple[str, ...]:
    """The executable stages that `stages` names; () for "passes", which is all there is. raises UsageError."""
    if stages == "passes":
        return ()
    if stages == "all":
        return EXECUTABLE_STAGES
    names = tuple(stages.split(","))
    for name in names:
        if name not in EXECUTABLE_STAGES:
            raise UsageError(
                f"stage '{name}' cannot be executed",
                stage="check",
                help=f"all, passes, or of: {', '.join(EXECUTABLE_STAGES)}",
            )
    return names


class StageComparison:
    """Executes the live module after each pass and compares with the pass before and with the reference.

    program  as planned: its arrays, without code
    slots    the program's buffers; parameters are filled in
    wanted   stages to execute; () for after every pass
    blocks   how many blocks of each kernel to run; 0: all
    sanitize whether races and the like are errors (see `simt/sanitizer`)
    """

    def __init__(
        self,
        reference: Reference,
        program: Program,
        slots: Slots,
        wanted: tuple[str, ...],
        blocks: int,
        sanitize: bool = True,
    ) -> None:
        self.reference = reference
        self.program = program
        self.slots = slots
        self.wanted = wanted
        self.blocks = blocks
        self.sanitize = sanitize
        self.executed = 0
        self.problem: Verdict | None = None
        self.last: Verdict = Verdict(True, "nothing executed")

    def verdict(self) -> Verdict:
        """The first stage that is wrong, or the last one that was compared."""
        if self.problem is not None:
            return self.problem
        unit = "executions after passes" if not self.wanted else "stage" if self.executed == 1 else "stages"
        where = f"{self.executed} {unit}"
        return Verdict(True, f"ok  {where}: {self.last.summary}")

    def compare_hlo(self, results: Sequence[Array]) -> None:
        """The stage `hlo`: HLO has one meaning, so these are the reference's bits."""
        self.executed += 1
        count = sum(int(np.count_nonzero(differing(a, b))) for a, b in zip(results, self.reference.values, strict=True))
        self.last = self.reference.compare(results)
        if count:
            self.problem = Verdict(False, f"hlo: {count} elements change when the text is read back", self.last.details)

    def observer(self, planned: PlannedKernel) -> Observer:
        """What `compile_module` calls after each pass over one kernel."""
        before: Slots | None = None
        given: Slots | None = None
        # By the first stage: behind pointers, elements that share a byte or a word are written together.
        sampled: dict[tuple[str, int], Array] | None = None
        tolerant = False
        arguments = kernel_arguments(planned)
        # Of what later kernels read nothing may be missing; nor of what several blocks write to one element.
        is_last = all(slot.kind == "result" for slot in planned.results) and not planned.overwritten
        is_scatter = any(isinstance(op, ScatterOp) for op in computation_of(planned.source).instructions)
        blocks = self.blocks if is_last and not is_scatter else 0

        def observe(name: str, stage: str | None, module: ModuleOp) -> None:
            nonlocal before, given, sampled, tolerant
            given = given or dict(self.slots)
            tolerant |= name in TOLERANT and TOLERANT[name].applies(module)
            if self.problem is not None or (self.wanted and stage not in self.wanted):
                return
            label = stage or name
            try:
                slots = dict(given)
                chosen = blocks_to_run(launch_of(module).blocks, blocks)
                written = run_kernel(module, arguments, slots, chosen, [Sanitizer()] if self.sanitize else [])
            except ExecutionError as error:
                self.problem = Verdict(False, f"{label}: {error.message}", tuple(error.render().splitlines()))
                return
            slots = {(slot.kind, slot.index): slots[slot.kind, slot.index] for slot in planned.results}
            self.executed += 1
            sampled = sampled or written
            self._compare(label, planned, slots, before, sampled, tolerant)
            before, tolerant = slots, False
            self.slots |= slots

        return observe

    def _compare(
        self,
        label: str,
        planned: PlannedKernel,
        slots: Slots,
        before: Slots | None,
        written: dict[tuple[str, int], Array] | None,
        tolerant: bool,
    ) -> None:
        if before is not None and not tolerant:
            for key, buffer in slots.items():
                different = differing(buffer, before[key])
                if different.any():
                    at = int(np.argmax(different))
                    line = f"{key[0]} {key[1]}, element {at} in memory: {before[key][at]} before, {buffer[at]} after"
                    self.problem = Verdict(
                        False, f"{label} changes {int(np.count_nonzero(different))} results: {line}", (line,)
                    )
                    return
        # Temporaries have no reference of their own: they are held through the results that are made from them.
        results = [slot for slot in planned.results if slot.kind == "result" and slot not in planned.overwritten]
        if not results:
            return
        arrays = [from_buffer(slots[slot.kind, slot.index], self.program.results[slot.index]) for slot in results]
        parts = None
        if written is not None:
            parts = [from_buffer(written["result", slot.index], self.program.results[slot.index]) for slot in results]
        verdict = self.reference.compare(arrays, parts, [slot.index for slot in results])
        self.last = verdict
        if not verdict.ok:
            self.problem = Verdict(False, f"{label}: {verdict.summary}", verdict.details)


def blocks_to_run(total: int, most: int) -> list[int] | None:
    """`most` of `total` blocks, the first and the last among them, evenly spread; None for all."""
    if most <= 0 or total <= most:
        return None
    return sorted({round(i * (total - 1) / max(1, most - 1)) for i in range(most)})


def bundle_case(
    source: str | Path,
    *,
    name: str,
    target: str = "h200",
    fusion: str | None = None,
    hero_rules: str = "current",
    seed: int = 0,
) -> Case:
    """A program with drawn inputs and what is admissible for its results, ready for `write_bundle`."""
    module = read_module(source)
    program = compile_module(module, target=target, fusion=fusion, hero_rules=hero_rules, record="none")
    computation = drawn_for(module, fusion)
    inputs = draw_inputs(computation, program.parameters, seed)
    bounds = Reference(computation, inputs).bounds
    return Case(name, program, program.hlo, seed, inputs, bounds, places=places_said_by(computation))
