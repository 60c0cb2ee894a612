"""Checks that every stage computes what the HLO says: the NumPy reference against the executor after every pass.

    check("gelu.hlo")
      (reference)        r0 by NumPy (and, if an op may round, the bounds of admissible values)
      hlo                printed, read back and evaluated: the same bits
      graph              if passes on HLO changed the module: evaluated, within the bounds
      xla_gpu            executed: the same bits as the reference, or within the bounds
      ... every pass ...  executed: the same bits as before the pass, except for the passes in `TOLERANT`
      llvm-dialect
      llvm, ptx          for a program of one kernel: what LLVM made of it, read back; the same bits, unless it calls libdevice

Each kernel of a program is compared separately with the reference, on the arrays that it gets when all steps before are right; so
temporaries are compared like results, and the kernels of loops and branches too. Then all steps run, and the program's results are
compared with the reference of the whole program.
Large grids can be sampled: some blocks run, and only what they write is compared. Source: docs/reference/contracts "Passes" and "Numbers".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Self

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.hlo.gather_scatter import ScatterOp
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dtypes import Array, dtype
from xla_emitters.emitters.emit import refuse_without_code
from xla_emitters.errors import ExecutionError, UsageError
from xla_emitters.explore.check.verdict import Reference, Verdict, may_change_bits, reference_for
from xla_emitters.functions import FUNCTIONS, TRANSCENDENTAL
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.graph.control_computations import drawn_for
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.row_chains import row_chains
from xla_emitters.graph.select_fusion import SelectFusionPass
from xla_emitters.library.devices import is_one_of_several
from xla_emitters.lowering.toolchain.tools import ptx_reason_missing
from xla_emitters.pipelines.compiler import compile_module, lower_for_tools, plan_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import BY_LLVM, EXECUTABLE_STAGES, RUNNABLE_STAGES
from xla_emitters.pipelines.recorder import Observer
from xla_emitters.program import Program, Slot
from xla_emitters.program.steps import Move
from xla_emitters.rewrite.kernel_entry import launch_of
from xla_emitters.runtime.arrays import StandardInput, differing, load_arrays
from xla_emitters.runtime.cpu.cpu_launcher import run_kernel, run_program
from xla_emitters.runtime.inputs import draw_inputs
from xla_emitters.runtime.layouts import from_buffer, to_buffer
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.runtime.reference.reference_bounds import evaluate_bounds
from xla_emitters.runtime.reference.reference_run import FirstCalls, Reaching, reaching
from xla_emitters.runtime.simt.memory import Watcher
from xla_emitters.runtime.simt.raised_kernels import module_of_llvm_ir, module_of_ptx
from xla_emitters.runtime.simt.sanitizer import Sanitizer
from xla_emitters.settings import Toolchain
from xla_emitters.text.hlo import parse_hlo, print_hlo


@dataclass(frozen=True)
class CheckOptions:
    """Which parts of a program are executed.

    stages    "all", "passes" (after every single pass), or stage names with commas
    blocks    how many blocks of a kernel to run, spread over the grid; 0: all
    sanitize  whether races, and reads of unwritten shared memory, are errors too (see `simt/sanitizer`)
    atol, rtol  allowed absolute and relative errors of results, instead of the bounds of the ops
    seed      draws arrays that are not given
    raises    UsageError for stages that cannot be executed, and for negative numbers
    """

    stages: str = "all"
    blocks: int = 0
    sanitize: bool = True
    atol: float | None = None
    rtol: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.blocks < 0:
            raise UsageError(f"{self.blocks} blocks cannot be run", stage="check", help="0 runs all blocks")
        named = [] if self.stages in ("all", "passes") else self.stages.split(",")
        for name in named:
            if name in ("all", "passes"):
                raise UsageError(f"'{name}' is not combined with stages", stage="check", help=f"--stages {name}")
            if name not in RUNNABLE_STAGES:
                raise UsageError(
                    f"stage '{name}' cannot be executed",
                    stage="check",
                    help=f"all, passes, or of: {', '.join(RUNNABLE_STAGES)}",
                )

    def wants(self, stage: str | None) -> bool:
        """Whether to execute the IR after a pass; `stage` is the stage that ends with it, or None."""
        return self.stages == "passes" or (stage is not None and (self.stages == "all" or stage in self.named))

    @property
    def last_stage(self) -> str:
        """The last stage before LLVM that is executed."""
        named = self.named - {*BY_LLVM}
        return max(named, key=EXECUTABLE_STAGES.index) if named else EXECUTABLE_STAGES[-1]

    def by_llvm(self, toolchain: Toolchain, is_alone: bool) -> tuple[str, ...]:
        """The stages that LLVM makes, to execute. With "all" and "passes" for one kernel of the usual passes, where PTX can be made."""
        if not self.named:
            return BY_LLVM if is_alone and ptx_reason_missing(toolchain) is None else ()
        return tuple(stage for stage in BY_LLVM if stage in self.named)

    @cached_property
    def named(self) -> frozenset[str]:
        """The stages that were requested by name."""
        return frozenset() if self.stages in ("all", "passes") else frozenset(self.stages.split(","))


class StageComparison:
    """Executes the IR after each pass, and compares with the pass before and with the reference.

    reference  of the whole program
    program    as planned: its arrays, without code
    reaching   kernel number -> the arrays of its first launch, computed by the reference; see `reference_run`
    is_alone   whether the program is one kernel and nothing else
    any_order  sums may be in any order, not only in the order of XLA's kernel: kernels are chosen by price
    evaluated       how often HLO was evaluated
    problem_in_hlo  what is wrong with HLO that was read back, or that a pass has produced
    """

    any_order = False

    def __init__(
        self,
        reference: Reference,
        program: Program,
        reaching: Mapping[int, Reaching],
        how: CheckOptions,
        is_alone: bool = True,
    ) -> None:
        self.reference = reference
        self.program = program
        self.reaching = reaching
        self.how = how
        self.is_alone = is_alone
        self.evaluated = 0
        self.problem_in_hlo: Verdict | None = None
        self._kernels: list[KernelCheck] = []
        self._last_in_hlo = Verdict(True, "nothing executed")
        self._text: str | None = None
        self._is_selected = program.fusion is None

    @classmethod
    def of(
        cls,
        module: ModuleOp,
        options: CompileOptions,
        how: CheckOptions,
        inputs: str | Path | StandardInput | Sequence[Array] | None = None,
    ) -> Self:
        """The comparison of a module, on given or drawn arrays.

        raises what `plan_module`, `load_arrays` and `reaching` raise
        """
        # Refused like by `compile`, before inputs are drawn.
        plan = plan_module(module, options)
        for planned in plan.kernels:
            refuse_without_code(planned.view)
        shapes = compile_module(module, replace(options, stage="hlo"))
        shapes.refuse_left_out()
        if isinstance(inputs, str | Path | StandardInput):
            arrays = load_arrays(inputs, "p", shapes.parameters)
        else:
            drawn = drawn_for(module, options.fusion)
            arrays = draw_inputs(drawn, shapes.parameters, how.seed) if inputs is None else list(inputs)
        calls = FirstCalls(drawn_for(module, options.fusion))
        # Of a kernel that is alone some elements may be enough. That it takes over donated memory changes nothing.
        is_alone = len([step for step in plan.steps if not isinstance(step, Move)]) == 1 == len(plan.kernels)
        is_sampled = is_alone and how.blocks > 0 and not is_one_of_several()
        values = [] if is_sampled else calls.evaluate(arrays)
        reference = reference_for(module, arrays, options.fusion, how.atol, how.rtol, values, options, plan)
        if is_one_of_several():  # the others need its arrays to make theirs, whether it needs bounds or not
            _ = reference.bounds
        given = reaching(plan, arrays, calls=calls, is_computed=not is_sampled)
        made = cls(reference, shapes, given, how, is_alone)
        made.any_order = options.tune == "price"
        return made

    def verdict(self, compiled: Program) -> Verdict:
        """The first wrong stage of the first wrong kernel; else, of several kernels or steps, the whole; else the last comparison."""
        own = tuple(kernel.verdict() for kernel in self._kernels)
        before = self.problem_in_hlo
        wrong = next((verdict for verdict in own if not verdict.ok), None)
        if before is not None:
            return before if self.is_alone else replace(before, kernels=own)
        if wrong is not None and self.is_alone:
            return replace(wrong, name="")
        if wrong is not None:
            details = [line for verdict in own if not verdict.ok for line in (verdict.summary, *verdict.details)]
            return Verdict(False, f"kernel {wrong.name}: {wrong.summary}", tuple(details[1:]), kernels=own)
        counted = self.evaluated + max((kernel.executed for kernel in self._kernels), default=0)
        unit = "executions after passes" if self.how.stages == "passes" else "stage" if counted == 1 else "stages"
        if self.is_alone:
            last = self._kernels[-1].last if self._kernels and self._kernels[-1].executed else self._last_in_hlo
            return Verdict(True, f"ok  {counted} {unit}: {last.summary}")
        has_code = all(kernel.module is not None for kernel in self._kernels)
        whole = self._whole(compiled) if has_code and compiled.steps else self._last_in_hlo
        if not whole.ok:
            return replace(whole, summary=f"each kernel is right by itself, but the whole {whole.summary}", kernels=own)
        kernels = f"{len(own)} kernel{'' if len(own) == 1 else 's'}"
        return Verdict(True, f"ok  {counted} {unit} of {kernels}: {whole.summary}", kernels=own)

    def _whole(self, compiled: Program) -> Verdict:
        """The program's results when all its steps run, with each kernel as it is after the last pass."""
        if self.how.blocks:
            return Verdict(
                True,
                f"{len(self._kernels)} kernels equal to their references; blocks are sampled, so the whole was not run",
            )
        modules = [kernel.module for kernel in self._kernels if kernel.module is not None]
        try:
            results = run_program(
                compiled,
                self.reference.inputs,
                self.how.last_stage,
                modules=modules,
            )
        except ExecutionError as error:
            return Verdict(False, f"fails: {error.message}", tuple(error.render().splitlines()))
        return self.reference.compare(results)

    def compare_text(self) -> None:
        """Checks the stage `hlo`, if requested: evaluation is exact, so the values must be the reference's bits.

        The text is evaluated only if it reads back as a different module; an equal module has the same values.
        """
        if not self.how.wants("hlo"):
            return
        reference = self.reference
        read_back = parse_hlo(self.program.hlo, f"<{self.program.name}>")
        module = reference.computation.parent_op()
        is_same = module is not None and module.is_structurally_equivalent(read_back)
        results = reference.values if is_same else run_program(self.program, reference.inputs, "hlo")
        self.evaluated += 1
        self._last_in_hlo = reference.compare(results)
        count = sum(int(np.count_nonzero(differing(a, b))) for a, b in zip(results, reference.values, strict=True))
        if count:
            summary = f"hlo: {count} elements change when the text is read back"
            self.problem_in_hlo = Verdict(False, summary, self._last_in_hlo.details)

    @property
    def observed(self) -> Sequence[KernelCheck]:
        """Those that were observed so far."""
        return self._kernels

    def compile(self, module: ModuleOp, options: CompileOptions) -> Program:
        """Compiles the module, and executes after each pass, and what LLVM makes, as far as that is wanted."""
        stages = self.stages_by_llvm(options)
        texts = list[str]()
        program = compile_module(
            module,
            replace(options, stage="ptx") if stages else options,
            observers=self.observer,
            graph_observer=self.graph_observer,
            llvm_ir=texts.append if "llvm" in stages else None,
        )
        for own, kernel in zip(self._kernels, program.kernels if stages else (), strict=False):
            for stage in stages:
                made = module_of_ptx(kernel) if stage == "ptx" else module_of_llvm_ir(texts[0], kernel)
                own.compare_by_llvm(stage, made)
        return program

    def stages_by_llvm(self, options: CompileOptions) -> tuple[str, ...]:
        """The stages that LLVM makes, to execute."""
        return self.how.by_llvm(options.toolchain, self.is_alone and options.pipeline is None)

    def graph_observer(self, name: str, stage: str | None, module: ModuleOp) -> None:
        """Called by `compile_module` after each pass on HLO: evaluates ENTRY if the pass changed the module, and at the stage `graph` if
        that was requested by name.

        For a fusion that is compiled alone, inputs are available once a pass has reduced the module to that fusion.
        """
        self._is_selected |= name == SelectFusionPass.name
        if self.problem_in_hlo is not None or not self._is_selected or not self.how.wants(stage):
            return
        text = print_hlo(module)
        before, self._text = self._text or self.program.hlo, text
        if stage == "hlo" or (text == before and self.how.stages in ("all", "passes")):
            return
        self.evaluated += 1
        self._last_in_hlo = self.reference.compare(evaluate(entry_of(module), self.reference.inputs))
        label = stage if stage is not None and self.how.stages != "passes" else name
        if not self._last_in_hlo.ok:
            self.problem_in_hlo = replace(self._last_in_hlo, summary=f"{label}: {self._last_in_hlo.summary}")

    def observer(self, planned: PlannedKernel) -> Observer:
        """Called by `compile_module` after each pass over one kernel."""
        kernel = KernelCheck(planned, self, self.reaching.get(len(self._kernels)))
        self._kernels.append(kernel)
        return kernel.observe


class KernelCheck:
    """One kernel: the IR after each pass is executed on the kernel's real inputs.

    given          its first launch; None: it is never launched, and arrays are drawn
    module         for a program of several steps, the kernel after the last pass
    arguments      of the kernel; `result_arrays` are the arrays that it writes
    """

    def __init__(self, planned: PlannedKernel, whole: StageComparison, given: Reaching | None) -> None:
        self.planned = planned
        self.whole = whole
        self.executed = 0
        self.problem: Verdict | None = None
        self.last = Verdict(True, "nothing executed")
        self.module: ModuleOp | None = None
        self.arguments = planned.arguments
        count = len(planned.operands)
        self.result_arrays = [argument.array for argument in self.arguments[count:]]
        operands, computation = self.arguments[:count], planned.view.computation
        if given is None:
            drawn = draw_inputs(computation, [argument.array for argument in operands], whole.how.seed)
            # Arguments with a common slot are one buffer: an operand that is passed twice, or updated in place.
            slots = dict[Slot, Array]()
            for array, argument in zip(drawn, operands, strict=True):
                slots.setdefault(argument.slot, to_buffer(array, argument.array))
            for argument in self.arguments[count:]:
                empty = np.zeros(argument.array.elements, dtype(argument.array.dtype).numpy)
                slots.setdefault(argument.slot, empty)
            buffers = [slots[argument.slot] for argument in self.arguments]
            inputs = [from_buffer(buffer, a.array) for buffer, a in zip(buffers, operands, strict=False)]
            self._reached = ", on arrays that are drawn: nothing reaches it"
        else:
            buffers = list(given.buffers)
            inputs = [from_buffer(buffer, a.array) for buffer, a in zip(buffers, operands, strict=False)]
            self._reached = ""
        values = evaluate(computation, inputs) if given is None else given.results
        chains = row_chains([planned.view])
        bounds = partial(evaluate_bounds, computation, inputs, any_order=whole.any_order, row_chains=chains)
        self.reference = Reference(computation, inputs, whole.how.atol, whole.how.rtol, values, bounds)
        self._given: list[Array] = buffers
        self._before: list[Array] | None = None
        # Determined at the first stage: after lowering to pointers, elements that share a byte or a word are written together.
        self._sampled: list[Array] | None = None
        self._tolerant = False
        self.calls_libdevice = True
        self._is_lowered = False
        # Several blocks may write to one element.
        is_scatter = any(isinstance(op, ScatterOp) for op in computation.instructions)
        self._blocks = 0 if is_scatter else whole.how.blocks

    def verdict(self) -> Verdict:
        """The first wrong stage, or the last comparison."""
        verdict = self.problem or self.last
        return replace(verdict, name=self.planned.name, summary=verdict.summary + self._reached)

    def observe(self, name: str, stage: str | None, module: ModuleOp) -> None:
        """Executes the kernel if this pass is to be checked, and after the passes that only the tools need."""
        if self._is_lowered:
            return  # those passes were run alone
        self._is_lowered = stage == EXECUTABLE_STAGES[-1]
        self._execute(name, stage, module)
        if stage == self.whole.how.last_stage and not self.whole.is_alone:
            self.module = module.clone()
        if self.whole.how.stages == "passes" and stage == EXECUTABLE_STAGES[-1]:
            lower_for_tools(module.clone(), CompileOptions(target=self.whole.program.target), self._execute)

    def _execute(self, name: str, stage: str | None, module: ModuleOp) -> None:
        """Executes the kernel after a pass, if that is to be checked; stops at the first wrong pass."""
        self._tolerant |= may_change_bits(name, module)
        if self.problem is not None or not self.whole.how.wants(stage):
            return
        made = self.run(stage or name, module)
        if isinstance(made, Verdict):
            self.problem = made
            return
        self.executed += 1
        self.problem = self.judged(stage or name, made, None if self._tolerant else self._before)
        self._before, self._tolerant = made, False
        self.calls_libdevice = stage != EXECUTABLE_STAGES[-1] or rounds_otherwise(module)

    def compare_by_llvm(self, stage: str, module: ModuleOp) -> None:
        """Executes what LLVM made: it gives the bits of the stage before, unless libdevice now computes what NumPy stood for."""
        if self.problem is not None:
            return
        if not self.whole.is_alone:
            self.module = module
        made = self.run(stage, module)
        if isinstance(made, Verdict):
            self.problem = made
            return
        self.executed += 1
        self.problem = self.judged(stage, made, None if self.calls_libdevice else self._before)
        self._before, self.calls_libdevice = made, False

    def run(
        self, label: str, module: ModuleOp, watchers: Sequence[Watcher] = (), blocks: Sequence[int] | None = None
    ) -> list[Array] | Verdict:
        """The buffers of the kernel's results according to `module`; a verdict if its execution fails.

        label     name of this point of the compilation in messages
        watchers  observe the run, in addition to the sanitizer
        blocks    to run; None: those that are compared
        """
        chosen = blocks_to_run(launch_of(module).blocks, self._blocks) if blocks is None else blocks
        sanitizers = [Sanitizer()] if self.whole.how.sanitize else []
        try:
            made, written = run_kernel(module, self.arguments, self._given, chosen, [*sanitizers, *watchers])
        except ExecutionError as error:
            return Verdict(False, f"{label}: {error.message}", tuple(error.render().splitlines()))
        self._sampled = self._sampled or written
        return made

    def run_all(self) -> None:
        """From here on all blocks are run and compared."""
        self._blocks, self._sampled = 0, None

    def judged(self, label: str, made: list[Array], before: list[Array] | None) -> Verdict | None:
        """What is wrong with the arrays that the kernel wrote; None if nothing is.

        before  the arrays at an earlier point, if they must be the same bits
        """
        for slot, buffer, earlier in zip(self.planned.results, made, before or (), strict=False):
            different = differing(buffer, earlier)
            if different.any():
                at = int(np.argmax(different))
                line = f"{slot.kind} {slot.index}, element {at} in memory: {earlier[at]} before, {buffer[at]} after"
                return Verdict(False, f"{label} changes {int(np.count_nonzero(different))} results: {line}", (line,))
        arrays = [*map(from_buffer, made, self.result_arrays)]
        parts = None if self._sampled is None else [*map(self.compared, range(len(made)))]
        verdict = self.reference.compare(arrays, parts, [*map(str, self.planned.results)])
        self.last = verdict
        return None if verdict.ok else replace(verdict, summary=f"{label}: {verdict.summary}")

    def compared(self, number: int) -> Array:
        """Which elements of a result are compared: those written by the blocks that are run."""
        spec = self.result_arrays[number]
        return np.ones(spec.shape, np.bool_) if self._sampled is None else from_buffer(self._sampled[number], spec)


def rounds_otherwise(module: ModuleOp) -> bool:
    """Whether code in the LLVM dialect has functions for which NumPy stands here: LLVM links libdevice's code or takes an instruction."""
    return any(
        (isinstance(op, llvm.CallOp) and op.callee is not None and op.callee.string_value().startswith("__nv_"))
        or op.name in _ROUNDED_OTHERWISE
        for op in module.walk()
    )


_ROUNDED_OTHERWISE = frozenset(name for row in FUNCTIONS if row.ulps is TRANSCENDENTAL for name in row.intrinsics) | {
    "llvm.intr.powi",
    "llvm.call_intrinsic",
}


def blocks_to_run(total: int, most: int) -> list[int] | None:
    """`most` of `total` blocks, the first and the last among them, evenly spread; None for all."""
    if most <= 0 or total <= most:
        return None
    return sorted({round(i * (total - 1) / max(1, most - 1)) for i in range(most)})
