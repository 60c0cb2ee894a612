"""Finds the pass that made the numbers wrong: first kernel, stage and pass, the op that it changed, the first wrong element, its thread.

    bisect("gelu.hlo", blocks=16)
      kernel fusion      hlo ... inlined  right     executed at the ends of stages, as `check` does
                         flat             wrong  -> the 6 passes between: binary search, each probe one execution
      xla-flatten-tensors (pass 12 of 40)           the first pass after which results differ from the bits of the stage before

At every probe the kernel runs on its real inputs, and its results must be the bits of the last right probe, or, after a pass of
`check.TOLERANT`, within the bounds of the reference; a race, or a read of unwritten memory, counts as wrong. Ends of stages,
and both sides of passes that may change bits, are always probed. If a probe is wrong, at least one pass since the last right probe is, and
binary search finds a pass that turns right into wrong. If a later pass hides the error of an earlier one, no end of a stage is wrong; then
every pass is executed. Passes on HLO are evaluated one by one, by NumPy.

Limits: it does not see a pass that is wrong in blocks that were not run or on numbers that were not drawn. If a pass has a right result but
leaves something (a range, an attribute) that makes a later pass go wrong, the later one is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np
from xdsl.dialects.builtin import AnyFloat, ModuleOp, TensorType
from xdsl.ir import Operation

from xla_emitters.dialects.collector import collector_at_rest
from xla_emitters.dialects.hlo.device_groups import devices_of
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import InternalError
from xla_emitters.explore.bisect.blame import (
    Blame,
    Computed,
    Culprit,
    Element,
    Found,
    Search,
    Thread,
    blamed,
    blamed_emission,
    blamed_hlo,
)
from xla_emitters.explore.bisect.program_bisect import search_program
from xla_emitters.explore.check.module_stages import (
    CheckOptions,
    KernelCheck,
    StageComparison,
    rounds_otherwise,
)
from xla_emitters.explore.check.on_devices import given_on_devices, on_each_device
from xla_emitters.explore.check.overwriting import declares_overwrites, evaluate_overwriting
from xla_emitters.explore.check.verdict import Verdict, may_change_bits
from xla_emitters.explore.compile import examined
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.graph.entry import entry_of
from xla_emitters.pipelines.compiler import lower_for_tools, with_splits
from xla_emitters.pipelines.options import CompileKeywords, CompileOptions
from xla_emitters.pipelines.pass_lists import kernel_rows
from xla_emitters.pipelines.passes import BY_LLVM, EXECUTABLE_STAGES, FOR_TOOLS, GRAPH, KERNEL, PassRow
from xla_emitters.pipelines.program_inputs import given_inputs
from xla_emitters.pipelines.recorder import Observer
from xla_emitters.program import Program, Slot
from xla_emitters.rewrite.kernel_entry import entry_of_kernel, launch_of
from xla_emitters.runtime.arrays import StandardInput, differing
from xla_emitters.runtime.device_threads import devices_wanted
from xla_emitters.runtime.layouts import from_buffer
from xla_emitters.runtime.simt.follow import LaneValues, LastWriter


@collector_at_rest()
def bisect(
    source: str | Path | bytes | bytearray | Program | ModuleOp,
    *,
    sizes: Mapping[str, int] | None = None,
    blocks: int = 0,
    sanitize: bool = True,
    inputs: str | Path | StandardInput | Sequence[Array] | None = None,
    seed: int = 0,
    atol: float | None = None,
    rtol: float | None = None,
    devices: int | None = None,
    instead: str = "",
    **compiling: Unpack[CompileKeywords],
) -> Search:
    """Finds the first kernel and pass after which the numbers are wrong.

    The arguments are those of `check`. raises what `check` raises, except the InternalError of a pass, which is a culprit too
    """
    module, compiling = examined(source, compiling)
    if isinstance(module, Program):
        arrays = given_inputs(module, sizes or {}, inputs, seed, instead=instead)
        how_far: Any = {"atol": atol, "rtol": rtol, "sanitize": sanitize}
        return search_program(module, arrays, **how_far)
    how = CheckOptions("passes", blocks, sanitize, atol, rtol, seed)
    given: CompileKeywords = {"verify": True, **compiling, "stage": how.last_stage, "record": "none"}
    options = CompileOptions(**given)
    if devices_wanted(devices_of(module) if options.fusion is None else 1, devices, "bisect") > 1:
        return search_on_devices(module, how, options, cast("Any", inputs))
    return search_module(module, how, options, inputs)


def search_on_devices(
    module: ModuleOp,
    how: CheckOptions,
    options: CompileOptions,
    inputs: str | Path | StandardInput | Sequence[Sequence[Array]] | None,
) -> Search:
    """What the first device with a culprit finds; without one, what each does. raises as `check_on_devices`"""
    found = on_each_device(
        given_on_devices(module, options, inputs, how.seed),
        lambda arrays: search_module(module, how, options, arrays),
        lambda search: search.culprit is not None,
    )
    wrong = next((device for device in sorted(found) if found[device].culprit is not None), None)
    return replace(found[min(found) if wrong is None else wrong], device=wrong)


def search_module(
    module: ModuleOp,
    how: CheckOptions,
    options: CompileOptions,
    inputs: str | Path | StandardInput | Sequence[Array] | None,
) -> Search:
    """`bisect` of a module of HLO on one device."""
    options, _ = with_splits(module, options)
    executed = kernels = 0
    for every_pass in (False, True):
        search = None
        try:
            search = _Bisection.of(module, options, how, inputs)
            search.every_pass, search.executed, search.rows = every_pass, executed, kernel_rows(options)
            search.compare_text()
            search.compile(module, options)
        except Found as found:
            return Search(found.culprit, found.culprit.executed, search.kernels if search else 0)
        except InternalError as error:
            culprit = search.crash(error) if search else _crash(error, "", _number_in_graph(error.stage), len(GRAPH))
            return Search(culprit, culprit.executed, search.kernels if search else 0)
        executed, kernels = search.executed, search.kernels
    return Search(None, executed, kernels)


class _Bisection(StageComparison):
    """Like the comparison of `check`, but searches among the passes over a kernel.

    every_pass  execute after each pass, in order
    """

    every_pass = False
    executed = 0
    kernels = 0
    _graph_passes = 0
    rows: Sequence[PassRow] = KERNEL
    _overwrites_well = True
    _before: ModuleOp | None = None

    def compare_text(self) -> None:
        super().compare_text()
        self.executed += 1
        if (problem := self.problem_in_hlo) is not None:
            raise Found(
                Culprit("numbers", "", "hlo", "print and parse", 0, len(GRAPH), problem.summary, problem.details)
            )

    def stages_by_llvm(self, options: CompileOptions) -> tuple[str, ...]:
        """Those of modules of several kernels too."""
        return self.how.by_llvm(options.toolchain, options.pipeline is None)

    def graph_observer(self, name: str, stage: str | None, module: ModuleOp) -> None:
        self._graph_passes += 1
        super().graph_observer(name, stage, module)
        if (problem := self.problem_in_hlo or self._problem_in_buffers(module)) is not None:
            before, number = self._before, self._graph_passes
            blame, element = blamed_hlo(before, module, self.reference.inputs, self.reference.values)
            summary = problem.summary
            culprit = Culprit(
                "numbers", "", "graph", name, number, len(GRAPH), summary, problem.details, blame, element
            )
            raise Found(replace(culprit, executed=self.executed + self.evaluated))
        self._before = module.clone()

    def _problem_in_buffers(self, module: ModuleOp) -> Verdict | None:
        """Whether a pass lets an instruction overwrite an array that is still needed. Modules that do so from the start are not judged:
        a later pass inserts copies."""
        entry = entry_of(module)
        if self.program.fusion is not None or not self._overwrites_well or not declares_overwrites(entry):
            return None
        self.executed += 1
        verdict = self.reference.compare(evaluate_overwriting(entry, self.reference.inputs))
        if verdict.ok:
            return None
        if self._before is None:
            self._overwrites_well = False
            return None
        return Verdict(False, f"an array is written over that is still needed: {verdict.summary}", verdict.details)

    def observer(self, planned: PlannedKernel) -> Observer:
        number = self.kernels
        self.kernels += 1
        kernel = _KernelBisection(planned, self, self.reaching.get(number))
        self._kernels.append(kernel)
        return kernel.observe

    def crash(self, error: InternalError) -> Culprit:
        """The pass that failed: the one after the last that succeeded, of the first kernel that is not done."""
        kernels = (kernel for kernel in self._kernels if isinstance(kernel, _KernelBisection))
        now = next((kernel for kernel in kernels if not kernel.is_done), None)
        if now is None:
            return _crash(error, "", self._graph_passes + 1, len(GRAPH), self.executed)
        rows = self.rows
        return _crash(error, now.planned.name, now.count, len(rows) + len(FOR_TOOLS), self.executed, rows)


def _crash(
    error: InternalError, kernel: str, number: int, passes: int, executed: int = 0, rows: Sequence[PassRow] = KERNEL
) -> Culprit:
    details = tuple(error.render().splitlines())
    stage = _stage_of(number, rows) if kernel else "graph"
    name = error.stage or "emit"
    return Culprit("crash", kernel, stage, name, number, passes, error.message, details, executed=executed, error=error)


def _number_in_graph(name: str) -> int:
    """The row of GRAPH, from 1, of a pass; 0 if the name is not of a pass on HLO."""
    names = [row.make(CompileOptions()).name for row in GRAPH]
    return names.index(name) + 1 if name in names else 0


def _stage_of(number: int, rows: Sequence[PassRow]) -> str:
    """The stage that row `number` of a kernel's passes, from 1, belongs to; 0 is emission."""
    if number == 0:
        return "xla_gpu"
    return next((row.stage for row in rows[number - 1 :] if row.stage), EXECUTABLE_STAGES[-1])


@dataclass(frozen=True)
class _Boundary:
    """A kernel after a pass.

    number        of the pass: 0 is emission
    stage         that the pass belongs to
    changes_bits  whether the pass may have changed bits
    """

    number: int
    name: str
    stage: str
    module: ModuleOp
    changes_bits: bool


class _KernelBisection(KernelCheck):
    """Keeps the IR after each pass until the next probe; if a probe is wrong, searches there."""

    def __init__(self, planned: PlannedKernel, whole: _Bisection, given: Any) -> None:
        super().__init__(planned, whole, given)
        self.bisection = whole
        self.count = 0
        self._right: _Boundary | None = None
        self._right_results: list[Array] | None = None
        self._since: list[_Boundary] = []
        self._free_in_llvm = True

    @property
    def is_done(self) -> bool:
        return self.count > len(self.bisection.rows) + len(FOR_TOOLS)

    def compare_by_llvm(self, stage: str, module: ModuleOp) -> None:
        """Executes what LLVM made. All passes were right: what is wrong came from LLVM, or from how the code was given to it."""
        self._since.append(_Boundary(self.count, "LLVM", stage, module, self._free_in_llvm))
        self._free_in_llvm = False
        self._probe()

    def observe(self, name: str, stage: str | None, module: ModuleOp) -> None:
        if self._is_lowered:
            return
        self._is_lowered = stage == EXECUTABLE_STAGES[-1]
        changes_bits = may_change_bits(name, module)
        if changes_bits and self._since:
            self._probe()
        at = _stage_of(self.count, self.bisection.rows)
        self._since.append(_Boundary(self.count, name, at, module.clone(), changes_bits))
        self.count += 1
        if stage is not None or changes_bits or self.bisection.every_pass:
            self._probe()
        if stage == EXECUTABLE_STAGES[-1]:
            self._free_in_llvm = rounds_otherwise(module)
            lower_for_tools(module.clone(), CompileOptions(target=self.bisection.program.target), self._after_tool_pass)

    def _after_tool_pass(self, name: str, stage: str | None, module: ModuleOp) -> None:
        at = _stage_of(self.count, self.bisection.rows)
        self._since.append(_Boundary(self.count, name, at, module.clone(), False))
        self.count += 1
        self._probe()

    def _probe(self) -> None:
        """Executes the IR after the last pass; if it is wrong, raises Found for the first wrong pass since the last probe."""
        low, high = -1, len(self._since) - 1
        wrong = self._judge(high)
        if not isinstance(wrong, Verdict):
            self._right, self._right_results, self._since = self._since[-1], wrong, []
            return
        results = dict[int, list[Array]]()
        while high - low > 1:
            middle = (low + high) // 2
            outcome = self._judge(middle)
            if isinstance(outcome, Verdict):
                high, wrong = middle, outcome
            else:
                low, results[middle] = middle, outcome
        before = self._since[low] if low >= 0 else self._right
        raise Found(self._culprit(before, results.get(low, self._right_results), self._since[high], wrong))

    def _judge(self, position: int) -> list[Array] | Verdict:
        """The results after the pass at `position` since the last probe, or what is wrong with them."""
        boundary = self._since[position]
        self.bisection.executed += 1
        made = self.run(boundary.name, boundary.module)
        if isinstance(made, Verdict):
            return made
        is_free = any(other.changes_bits for other in self._since[: position + 1])
        return self.judged(boundary.name, made, None if is_free else self._right_results) or made

    def _culprit(
        self, before: _Boundary | None, right: list[Array] | None, after: _Boundary, wrong: Verdict
    ) -> Culprit:
        culprit = Culprit(
            "execution",
            self.planned.name,
            after.stage,
            after.name,
            after.number,
            len(self.bisection.rows) + len(FOR_TOOLS),
            wrong.summary,
            wrong.details,
            executed=self.bisection.executed,
        )
        made = self.run(after.name, after.module)
        if isinstance(made, Verdict):
            blame = blamed(before.module, after.module, (), ()) if before and after.stage not in BY_LLVM else Blame()
            return replace(culprit, blame=blame)
        element, flat, slot = self._first_wrong(made, right)
        lane = self._writer(after, slot, flat) or (self._writer(before, slot, flat) if before else None)
        thread = Thread.of(lane, launch_of(after.module)) if lane else None
        blame = self._blame(before, after, lane, slot, element)
        return replace(culprit, kind="numbers", element=element, thread=thread, blame=blame)

    def _blame(
        self, before: _Boundary | None, after: _Boundary, lane: tuple[int, int] | None, slot: Slot, element: Element
    ) -> Blame:
        def computed(boundary: _Boundary) -> Computed:
            if lane is None:
                return ()
            values = LaneValues(*lane)
            self.run("", boundary.module, [values], [lane[0]])
            if after.stage not in BY_LLVM:
                return values.computed
            # LLVM computes addresses otherwise: only floats are compared.
            return [(op, numbers) for op, numbers in values.computed if _is_computed_float(op)]

        if before is None:
            reference, number = self.reference, self.planned.results.index(slot)
            return blamed_emission(reference.computation, reference.inputs, number, element.index, computed(after))
        by_llvm = after.stage in BY_LLVM  # changes every line
        found = blamed(before.module, after.module, computed(before), computed(after), by_values=by_llvm)
        return replace(found, diff=()) if by_llvm else found

    def _first_wrong(self, made: list[Array], right: list[Array] | None) -> tuple[Element, int, Slot]:
        """The first element that is neither unchanged nor admissible, its index in memory, and its buffer."""
        candidates = list[tuple[int, tuple[Element, int, Slot]]]()
        for number, (slot, spec) in enumerate(zip(self.planned.results, self.result_arrays, strict=True)):
            now, wanted = from_buffer(made[number], spec), self.reference.values[number]
            different = differing(now, wanted) & self.compared(number)
            admissible = self.reference.bounds[number].admits(now)
            earlier = None if right is None else from_buffer(right[number], spec)
            changed = different if earlier is None else differing(now, earlier)
            for strength, wrong in enumerate((changed & different & ~admissible, changed & different, changed)):
                if wrong.any():
                    index = tuple(map(int, np.argwhere(wrong)[0]))
                    places = from_buffer(np.arange(made[number].size), spec)
                    was = "" if earlier is None else str(earlier[index])
                    element = Element(str(slot), index, was, str(now[index]), str(wanted[index]))
                    candidates.append((strength, (element, int(places[index]), slot)))
                    break
        if not candidates:
            raise InternalError("a kernel is wrong without a wrong element", stage="bisect")
        return min(candidates, key=lambda found: found[0])[1]

    def _writer(self, boundary: _Boundary, slot: Slot, flat: int) -> tuple[int, int] | None:
        """(block, thread) of the thread that writes an element last."""
        entry = entry_of_kernel(boundary.module)
        numbers = [n for n, argument in enumerate(self.arguments) if argument.slot == slot and argument.written]
        element = dtype(self.arguments[numbers[0]].array.dtype)
        is_tensor = isinstance(entry.function_type.inputs.data[numbers[0]], TensorType)
        each = element.numpy.itemsize if is_tensor or element.bits >= 8 or element.name == "pred" else element.bits / 8
        watcher = LastWriter(frozenset(numbers), flat, each)
        self.run("", boundary.module, [watcher])
        return watcher.found


def _is_computed_float(op: Operation) -> bool:
    return not isinstance(op, llvm.ConstantOp) and any(isinstance(result.type, AnyFloat) for result in op.results)
