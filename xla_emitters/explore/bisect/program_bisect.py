"""Finds the pass that made the numbers of a program with unknown sizes wrong, by executing every state between two passes at given sizes.

    bisect("layer.mlir", sizes={"b": 2, "s": 16})

      stablehlo ... fused          the IR after each pass, on tensors or buffers
      loops, kernels, host         the same, kernels on the CPU executor
      each kernel, to llvm-dialect all kernels after the same pass; if that is wrong, one kernel at a time
      the CPU's own branch         fusions as NumPy ops, then the program as a call runs it

A state must give the bits of the state before it, or, after a pass of `check.TOLERANT`, be within the bounds of the
reference. Because these passes may change bits, each kernel is also compared with NumPy on its real inputs (`watched_kernels`).
States that are equal to the one before are not executed. Two passes leave half-written loops, which cannot be executed:
if the state after the next pass is wrong, the earlier pass is named, and the other is among the culprit's `alternatives`.

Limits: it does not see a pass that is wrong at other sizes or on other numbers. Passes over kernels of the CPU (LLVM) are judged as one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.collector import collector_at_rest
from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.mlir import gpu
from xla_emitters.dtypes import Array
from xla_emitters.errors import ExecutionError, InternalError, Unsupported
from xla_emitters.explore.bisect.blame import Blame, Culprit, Element, Found, Search, Thread, blamed, blamed_hlo
from xla_emitters.explore.bisect.wrong_thread import LaunchDifference, first_difference
from xla_emitters.explore.check.module_stages import rounds_otherwise
from xla_emitters.explore.check.verdict import TOLERANT, Reference, Verdict, changed_results, reference_of
from xla_emitters.explore.check.watched_kernels import check_kernels
from xla_emitters.lowering.toolchain.tools import ptx_reason_missing
from xla_emitters.pipelines.lowerings import Lowerings, lowerings_of
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import program_rows, rows_of
from xla_emitters.pipelines.passes import BY_LLVM, PassRow
from xla_emitters.pipelines.program_kernels import GpuLowering
from xla_emitters.pipelines.program_passes import PROGRAM_OPS, RUN_ON_KERNELS
from xla_emitters.pipelines.program_runs import load_any, run_module
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.pipelines.recorder import Observer, Recorder
from xla_emitters.program import Program
from xla_emitters.rewrite.kernel_pass import verify_after
from xla_emitters.runtime.arrays import differing
from xla_emitters.runtime.numpy_platform import Kernels
from xla_emitters.runtime.ral.buffer_ops import value_of
from xla_emitters.runtime.ral.simt_kernels import SimtKernels
from xla_emitters.runtime.simt.sanitizer import SanitizerOfLaunches

CPU_STAGE = "cpu"
"""The name, in place of a stage, for what a call runs: `fused`, then fusions as ops of NumPy or as machine code."""


@collector_at_rest()
def search_program(
    program: Program,
    inputs: Sequence[Array],
    *,
    atol: float | None = None,
    rtol: float | None = None,
    sanitize: bool = True,
) -> Search:
    """`bisect` of a program on arguments that fit. raises DataError for others; Unsupported for a program that NumPy cannot evaluate"""
    arrays = lowerings_of(program).checked(inputs)
    reference = reference_of(program, arrays, atol, rtol)
    search = _Search(program, arrays, reference, sanitize=sanitize)
    culprit = None
    try:
        search.compile()
        search.compare_kernels()
    except Found as found:
        culprit = found.culprit
    except InternalError as error:
        culprit = search.crash(error)
    return Search(culprit, search.executed, search.kernels, search.last)


@dataclass(frozen=True)
class _State:
    """The IR after a pass.

    rows     the list of the pass, and its number in it, from 1
    modules  the program, or each kernel by name
    run      the results
    host     what launches the kernels, where `modules` are kernels
    by_llvm  the stage that LLVM made: "llvm" or "ptx"; "" for a pass
    """

    name: str
    rows: Sequence[PassRow]
    number: int
    modules: Mapping[str, ModuleOp]
    run: Callable[[], list[Array]]
    host: ModuleOp | None = None
    by_llvm: str = ""

    @property
    def stage(self) -> str:
        return self.by_llvm or next((row.stage for row in self.rows[self.number - 1 :] if row.stage), CPU_STAGE)

    @property
    def ends_a_stage(self) -> bool:
        return self.number == len(self.rows) or self.rows[self.number - 1].stage is not None

    def is_as(self, other: _State | None) -> bool:
        """Whether it is the same IR as the other state: a pass that changes nothing leaves the copy from before it, see `_copy_of`."""
        return (
            other is not None
            and self.modules.keys() == other.modules.keys()
            and all(module is other.modules[name] for name, module in self.modules.items())
        )


class _Search:
    """The states in order, and the results of the last right one.

    skipped  states since then that nothing executes
    is_free  a pass since then may change bits
    copy     what the last pass over the whole program left
    last     what the last comparison found
    """

    def __init__(self, program: Program, arrays: list[Array], reference: Reference, *, sanitize: bool) -> None:
        self.program, self.arrays, self.reference, self.sanitize = program, arrays, reference, sanitize
        self.source, own = lowerings_of(program).source, lowerings_of(program).options
        self.options = CompileOptions(
            target=program.target,
            record="none",
            pass_options=own.pass_options,
            pipeline=own.pipeline,
            settings=own.settings,
        )
        self.executed = self.kernels = 0
        self.last = "nothing was executed"
        self._right: _State | None = None
        self._results: Sequence[Array] = reference.values
        self._skipped = list[_State]()
        self._is_free = False
        self._at: tuple[Sequence[PassRow], int] = ((), 0)
        self._copy: ModuleOp | None = None

    # ------------------------------------------------------------------------------------------------------- the passes

    def compile(self) -> None:
        observe = self._observer(_whole_program(self.options))
        self.program = compile_program(self.source, self.options, observe=observe)
        compiled = lowerings_of(self.program)
        assert compiled.fused is not None
        before = self._right, self._results, self._copy
        try:
            lowering = GpuLowering(compiled.name, compiled.fused, self.options, observe)
            self._kernels(lowering)
            self._by_llvm(lowering)
        except Unsupported:
            # An op without a kernel is not a wrong number: calls run such a program by NumPy.
            self._skipped = []
        self._right, self._results, self._copy = before
        self._is_free = False
        self._on_cpu(compiled)

    def _observer(self, rows: Sequence[PassRow]) -> Observer:
        """Judges the whole program after each pass of the list."""
        self._at = rows, 0

        def observe(name: str, stage: str | None, module: ModuleOp) -> None:
            if name == "read":
                return
            number, copy = self._at[1] + 1, _copy_of(name, module, self._copy)
            self._at, self._copy = (rows, number), copy
            self._judge(_State(name, rows, number, {"": copy}, lambda: self._run(copy)))

        return observe

    def _kernels(self, lowering: GpuLowering) -> None:
        """Judges all kernels after each pass over kernels; not those that the caller's passes made for their own host program."""
        if program_rows(self.options)[1] is not None:
            return
        rows, host = rows_of("program-kernel"), lowering.at("kernels")
        names = [kernel.name for kernel in lowering.kernels]
        self.kernels = len(names)
        left = {name: list[tuple[str, ModuleOp]]() for name in names}

        def observer(name: str) -> Observer:
            self._at = rows, 0

            def observe(pass_name: str, stage: str | None, module: ModuleOp) -> None:
                last = left[name][-1][1] if left[name] else None
                left[name].append((pass_name, _copy_of(pass_name, module, last)))
                self._at = rows, self._at[1] + 1

            return observe

        for name in names:
            lowering.lowered(name, observe=observer(name))
        for number in range(1, len(rows) + 1 if names else 1):
            modules = {name: states[number - 1][1] for name, states in left.items()}
            pass_name = left[names[0]][number - 1][0]
            self._judge(_State(pass_name, rows, number, modules, partial(self._launch, host, modules), host))

    def _by_llvm(self, lowering: GpuLowering) -> None:
        """Judges what LLVM makes of the kernels, where it is there; not of those that the caller's passes made."""
        if not self.kernels or ptx_reason_missing(self.options.toolchain):
            return
        rows, host = rows_of("program-kernel"), lowering.at("kernels")
        names = [kernel.name for kernel in lowering.kernels]
        self._is_free |= any(rounds_otherwise(lowering.lowered(name)) for name in names)
        for stage in BY_LLVM:
            modules = {name: lowering.read_back(stage, name) for name in names}
            self._judge(_State("LLVM", rows, len(rows), modules, partial(self._launch, host, modules), host, stage))

    def _on_cpu(self, compiled: Lowerings) -> None:
        """Judges the CPU's program in which fusions are NumPy ops, then the program as a call runs it."""
        assert compiled.fused is not None
        rows, module, context = (*PROGRAM_OPS, *rows_of("program-host")), compiled.fused.clone(), make_context()
        recorder = Recorder(compiled.name, "none", False, self._observer(rows))
        for row in rows:
            recorder.run(row.make(self.options), row.stage, context, module)
        self._is_free = True  # sums may be in another order
        way = compiled.cpu.name
        self._judge(
            _State(
                f"code of the CPU ({way})", (), 0, {}, lambda: compiled.loaded.run(compiled.owned(_copies(self.arrays)))
            )
        )

    def compare_kernels(self) -> None:
        """Compares single kernels: where passes may change bits, the bounds of a whole program are wide, those of one kernel are not."""
        if not self.kernels:
            return
        if (wrong := self._wrong_at(RUN_ON_KERNELS[-1])) is None:
            return
        rows = rows_of("program-kernel")
        if (earlier := self._wrong_at(RUN_ON_KERNELS[0])) is not None:
            wrong, rows = earlier, _whole_program(self.options)
        names = [row.make(self.options).name for row in rows]
        # A kernel is compared with its own ops on buffers: passes on tensors, which may change bits too, are not in question.
        number = max(number for number, name in enumerate(names, 1) if name in TOLERANT)
        state = _State(names[number - 1], rows, number, {}, list)
        raise Found(replace(self._culprit(state, "numbers", wrong.summary), kernel=wrong.name))

    def _wrong_at(self, stage: str) -> Verdict | None:
        """NumPy's verdict on the first wrong kernel of a stage."""
        self.executed += 1
        verdicts, _ = check_kernels(self.program, self.arrays, stage)
        return next((verdict for verdict in verdicts if not verdict.ok), None)

    # ------------------------------------------------------------------------------------------------------- execution

    def _run(self, module: ModuleOp) -> list[Array]:
        return self._launch(module, {}) if _kernels_in(module) else run_module(module, _copies(self.arrays))

    def _launch(self, host: ModuleOp, kernels: Mapping[str, ModuleOp]) -> list[Array]:
        """Runs the host program with its kernels replaced by these."""
        own = _kernels_in(host)
        launched = SimtKernels(lambda name, _: kernels.get(name) or ModuleOp([own[name].clone()]))
        if self.sanitize:
            launched = launched.watched_by(SanitizerOfLaunches())
        return load_any(host, launched).run_on_garbage(_copies(self.arrays))

    def _judge(self, state: _State) -> None:
        """Executes a state unless it is that before it. raises Found where it is wrong"""
        self._is_free |= state.name in TOLERANT
        if state.modules and state.is_as(self._skipped[-1] if self._skipped else self._right):
            return
        try:
            self.executed += 1
            found = state.run()
        except Unsupported as error:
            self._skipped.append(state)
            if state.ends_a_stage:
                raise Found(self._culprit(state, "execution", error.message, failure=error)) from error
            return
        except Exception as error:
            if isinstance(error, InternalError) and not state.modules:
                raise  # of a pass: a call compiles the rest
            has_message = isinstance(error, ExecutionError | InternalError)
            summary = error.message if has_message else f"{type(error).__name__}: {error}"
            raise Found(self._culprit(state, "execution", summary, failure=error)) from error
        changed = "" if self._is_free else changed_results(found, self._results)
        verdict = self.reference.compare(found)
        if changed or not verdict.ok:
            culprit = self._culprit(state, "numbers", changed or verdict.summary, found)
            raise Found(culprit)
        self.last = verdict.summary
        self._right, self._results, self._skipped, self._is_free = state, found, [], False

    def _difference(self, state: _State, failure: Exception | None) -> LaunchDifference | None:
        """The first launch that gives something else than before the pass; None where no launch does, or nothing is launched.

        failure  what the run of the state raised
        """
        host = state.host or state.modules.get("")
        before: Mapping[str, ModuleOp] = self._right.modules if self._right is not None else {}
        if host is None or not (new := _kernels_in(host)):
            return None
        old = _kernels_in(before[""]) if "" in before else new

        def kernel_before(name: str) -> ModuleOp:
            return before.get(name) or ModuleOp([old.get(name, new[name]).clone()])

        def kernel_after(name: str) -> ModuleOp:
            return state.modules.get(name) or ModuleOp([new[name].clone()])

        def run(kernels: Kernels) -> None:
            load_any(host, kernels).run_on_garbage(_copies(self.arrays))

        for may_change_bits in (True, False) if self._is_free else (False,):
            self.executed += 1
            versions = run, kernel_before, kernel_after
            how = {"sanitize": self.sanitize, "may_change_bits": may_change_bits}
            if found := first_difference(*versions, **how, failure=failure):
                return found
        return None

    # ------------------------------------------------------------------------------------------------------ the answer

    def _culprit(
        self, state: _State, kind: str, summary: str, found: Sequence[Array] = (), failure: Exception | None = None
    ) -> Culprit:
        before, element, difference = self._right, self._element(found), self._difference(state, failure)
        first = self._skipped[0] if self._skipped else state
        others = dict.fromkeys(other.name for other in (*self._skipped, state) if other is not first)
        passes, number = len(first.rows), first.number
        kernel, thread = ("", None) if difference is None else (difference.kernel, _thread(difference))
        if state.by_llvm:
            blame = Blame()  # a text of LLVM's has little in common with the one before
        elif difference is not None:
            versions = difference.before, difference.after
            blame = blamed(*versions, difference.computed_before, difference.computed_after)
        else:
            blame = self._blame(state, before, failure)
        found_at = first.stage, first.name, number, passes, summary, (summary,), blame, element, thread
        return replace(Culprit(kind, kernel, *found_at), executed=self.executed, alternatives=tuple(others))

    def _blame(self, state: _State, before: _State | None, failure: Exception | None) -> Blame:
        """What changed, where no launch says it. Values say more than text, but a program that fails has none."""
        earlier: Mapping[str, ModuleOp] = {} if before is None else before.modules
        for name, module in state.modules.items():
            old = earlier.get(name, self.source if not name else None)
            if old is None or module.is_structurally_equivalent(old):
                continue
            is_hlo = all(
                any(isinstance(op, ComputationOp) and op.is_entry for op in each.ops) for each in (old, module)
            )
            if is_hlo and failure is None:
                return blamed_hlo(old, module, self.arrays, self._results, value_of)[0]
            return blamed(old, module, (), ())
        return Blame()

    def _element(self, found: Sequence[Array]) -> Element | None:
        """The first element that is neither unchanged nor admissible; else the first that changed."""
        changed: Element | None = None
        pairs = zip(found, self._results, self.reference.values, strict=False)
        for number, (now, was, wanted) in enumerate(pairs):
            if now.shape != was.shape or now.dtype != was.dtype:
                return None
            different = differing(now, was)
            wrong = different & ~self.reference.bounds[number].admits(now) if different.any() else different
            for places in (wrong, different):
                if places.any():
                    index = tuple(map(int, np.argwhere(places)[0]))
                    element = Element(f"r{number}", index, str(was[index]), str(now[index]), str(wanted[index]))
                    if places is wrong:
                        return element
                    changed = changed or element
        return changed

    def crash(self, error: InternalError) -> Culprit:
        """The pass that failed: the one after the last that succeeded."""
        rows, number = self._at
        state = _State(error.stage or "compile", rows, number + 1, {}, list)
        culprit = self._culprit(state, "crash", error.message)
        return replace(culprit, details=tuple(error.render().splitlines()), error=error)


def _thread(difference: LaunchDifference) -> Thread | None:
    """The thread that writes the first element that differs."""
    if difference.lane is None:
        return None
    element = f"element {list(difference.index)} of the kernel's argument {difference.argument}"
    return Thread.of(difference.lane, difference.launch, element)


def _whole_program(options: CompileOptions) -> tuple[PassRow, ...]:
    """The passes over whole programs."""
    rows, later = program_rows(options)
    return (*rows, *(later or (*rows_of("program-loops"), *rows_of("program-host"))))


def _kernels_in(module: ModuleOp) -> dict[str, gpu.ModuleOp]:
    """The kernels of a program by name: the modules that hold them."""
    holders = [op for op in module.ops if isinstance(op, gpu.ModuleOp)]
    return {op.sym_name.data: holder for holder in holders for op in holder.walk() if isinstance(op, gpu.FuncOp)}


def _copy_of(name: str, module: ModuleOp, last: ModuleOp | None) -> ModuleOp:
    """A copy of what a pass left, verified; `last`, the copy from before the pass, where it changed nothing.

    raises InternalError that names the pass where it does not verify
    """
    if last is not None and module.is_structurally_equivalent(last):
        return last
    verify_after(name, module)
    return module.clone()


def _copies(arrays: Sequence[Array]) -> list[Array]:
    return [array.copy() for array in arrays]
