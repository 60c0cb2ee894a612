"""Programs with unknown sizes: StableHLO to a host program, by the list PROGRAM of `program_passes.py` in order.

    parse_stablehlo -> PROGRAM -> steps_of_buffers -> a function of arrays

    program = compile_program(parse_stablehlo(text))        once
    y = program(x)                                          at any sizes, again and again
    program.run([x], stage="lmhlo")                         the same bits from the IR of an earlier stage
    program.run([x], stage="kernels")                       fusions as kernels, on the CPU executor

Compilation has two branches after the stage `fused`. For a call on the CPU by NumPy, a fusion is its ops, each executed by NumPy; this host
program is made at once. In the other branch (`GpuLowering` of `program_kernels`) fusions are kernels; it runs when kernels are requested.

The arguments are checked before anything is computed: number, ranks, types, JAX's assertions, sizes (`sizes.ProgramGuards`).

Source: seed document, "DHLO2Executable"; docs/reference/4 1.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr

from xla_emitters.device import device
from xla_emitters.dialects.collector import collector_at_rest
from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.types import is_array
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.dtypes import Array
from xla_emitters.dynamic.passes.disc_inliner import DiscInlinerPass
from xla_emitters.dynamic.passes.disc_number_random_ops import WITH_STATE, DiscNumberRandomOpsPass
from xla_emitters.dynamic.sizes import sizes_of
from xla_emitters.dynamic.sizes.program import arguments_at, parameter_specs, result_specs
from xla_emitters.errors import UsageError
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.inlining import refuse_many_calls
from xla_emitters.pipelines.lowerings import Lowerings, elided_in, lowerings_of
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import OF_PROGRAMS, program_rows, refuse_unknown_passes, rows_of
from xla_emitters.pipelines.passes import PassRow
from xla_emitters.pipelines.program_passes import (
    CODE_STAGES,
    CPU_KERNEL,
    CPU_LOOPS,
    HOST_BY_LLVM,
    KEPT_STAGES,
    ON_KERNELS,
    PROGRAM_OPS,
    PROGRAM_PRECISION,
    PROGRAM_STAGES,
)
from xla_emitters.pipelines.recorder import Observer, Recorder
from xla_emitters.program import ArraySpec, Kernel, LibraryCall, Program
from xla_emitters.program.compiled import refuse_left_out
from xla_emitters.program.executable import NO_STEPS
from xla_emitters.program.steps import Step
from xla_emitters.rewrite.kernel_pass import refusal
from xla_emitters.runtime.loaded import Dispatch
from xla_emitters.text.hlo.stack_frames import STACK_TABLES
from xla_emitters.text.stablehlo.computations import SKIPPED
from xla_emitters.trace import Remark, Trace

# Kernels for a GPU, and what explains a program, are imported where they are asked for: a call on the CPU needs neither.
if TYPE_CHECKING:
    from xla_emitters.pipelines.program_gpu import GpuProgram
    from xla_emitters.pipelines.program_steps import ProgramSteps
    from xla_emitters.program.bound_program import BoundProgram
    from xla_emitters.program.outline import Outline
    from xla_emitters.runtime.memory_history import MemoryHistory


@dataclass
class Compilations:
    """How many programs this process has compiled; a run at another size must not increase it."""

    made: int = 0


COMPILATIONS = Compilations()


@dataclass(frozen=True)
class Deviation:
    """The difference between a result in mixed precision and the program in its own types.

    result     number of the result
    largest    largest difference of two elements; inf if one of them is not finite and they differ
    magnitude  magnitude of the largest finite element
    """

    result: int
    largest: float
    magnitude: float

    @classmethod
    def of(cls, number: int, found: Array, wanted: Array) -> Deviation:
        """The deviation of one array from another of the same shape."""
        wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
        a, b = found.astype(wide), wanted.astype(wide)
        finite = np.isfinite(a) & np.isfinite(b)
        largest = float(np.abs(a[finite] - b[finite]).max(initial=0.0))
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            largest = float("inf")
        return cls(number, largest, float(np.abs(b[np.isfinite(b)]).max(initial=0.0)))

    def __str__(self) -> str:
        part = f" ({self.largest / self.magnitude:.1e} of the largest element)" if self.magnitude else ""
        return f"r{self.result} differs by at most {self.largest:.1e}{part}"


class OnDemand(Lowerings):
    """The compilation of a program in StableHLO."""

    @cached_property
    def _written(self) -> ProgramSteps:
        from xla_emitters.pipelines.program_steps import ProgramSteps

        # A host program that the caller's own passes made has no steps: they are made of buffers.
        has_steps = self.stage in ON_KERNELS and program_rows(self.options)[1] is None
        return ProgramSteps(self.lowering.steps if has_steps else NO_STEPS, self.sizes)

    @property
    def temporaries(self) -> tuple[ArraySpec, ...]:
        return self._written.temporaries

    @property
    def constants(self) -> tuple[int, ...]:
        return self._written.constants

    @property
    def steps(self) -> tuple[Step, ...]:
        return self._written.steps

    @property
    def calls(self) -> tuple[LibraryCall, ...]:
        return self._written.calls

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return self._kernels

    @cached_property
    def _kernels(self) -> tuple[Kernel, ...]:
        if self.stage not in ON_KERNELS:
            return ()
        ptx = self.lowering.ptx if self.stage in CODE_STAGES and self.lowering.kernels else ""
        return tuple(self._written.kernel(kernel, ptx) for kernel in self.lowering.kernels)

    @property
    def code(self) -> str:
        return self._code

    @cached_property
    def _code(self) -> str:
        return self.lowering.code(self.stage) if self.stage in ON_KERNELS else print_ir(self.module)

    @property
    def graph(self) -> Trace:
        return Trace()

    @property
    def traces(self) -> tuple[Trace, ...]:
        if self.stage not in ON_KERNELS:
            return (self.passes,)
        return (Trace(self.passes.name, [*self.passes.steps, *self.lowering.trace.steps]),)

    @property
    def recorded(self) -> tuple[Trace, ...]:
        return self.traces if "lowering" in self.__dict__ else (self.passes,)

    def contents(self, program: Program, sizes: Mapping[str, int]) -> Outline:
        from xla_emitters.pipelines.program_outline import contents_of

        return contents_of(program, self, sizes)

    def explain(self, program: Program, sizes: Mapping[str, int]) -> list[str]:
        from xla_emitters.pipelines.program_report import report

        return report(program, self, sizes, lambda inputs: deviations_of(program, inputs))

    def explained(self, program: Program, sizes: Mapping[str, int]) -> dict[str, Any]:
        from xla_emitters.pipelines.program_report import report_json

        return report_json(program, self, sizes, lambda inputs: deviations_of(program, inputs))

    def run(self, program: Program, inputs: Sequence[Any], stage: str | None, *, donate: bool) -> list[Array]:
        """Without `stage` at that of the compilation, or, where that is code for a GPU, as a call runs it on the CPU."""
        arrays = self.owned(self.checked(inputs), donate=donate)
        if stage is None and self.stage in CODE_STAGES:
            return self.loaded.run(arrays)
        stage = executable_stage(stage or self.stage, "run")
        if stage in ON_KERNELS:
            return self.lowering.run(arrays, stage)
        from xla_emitters.pipelines.program_runs import run_module  # imported here: a call runs without it

        return run_module(self.at(stage), arrays)

    def bind(self, program: Program, sizes: Mapping[str, int]) -> BoundProgram:
        from xla_emitters.pipelines.program_inputs import refuse_other_sizes
        from xla_emitters.program.bound_program import BoundProgram

        refuse_other_sizes(program, sizes, "it cannot be bound", "p.bind({})")
        refuse_left_out(self.name, self.left_out)
        parameters = tuple(arguments_at(self.sizes, sizes))
        shapes = [spec.shape for spec in parameters]
        self.loaded.prepare(shapes)
        return BoundProgram(program, {**sizes}, parameters, lambda: self.lowering.watched("llvm-dialect").bind(shapes))

    def memory(self, program: Program, inputs: Sequence[Any]) -> MemoryHistory:
        return self.loaded.memory(self.owned(self.checked(inputs)))

    def dispatches(self, program: Program, inputs: Sequence[Any]) -> list[Dispatch]:
        return self.loaded.dispatches(self.owned(self.checked(inputs)))

    def on_gpu(self, program: Program) -> GpuProgram:
        return self._on_gpu

    @cached_property
    def _on_gpu(self) -> GpuProgram:
        from xla_emitters.pipelines.program_gpu import GpuProgram

        refuse_left_out(self.name, self.left_out)
        return GpuProgram(self)


def deviations_of(program: Program, inputs: Sequence[Any], results: Sequence[Array] | None = None) -> list[Deviation]:
    """The difference, on these arguments, between mixed precision and the program in its own types, per result; [] without it.

    results  of a run on these arguments, if there was one
    raises   like `Program.run`
    """
    made = lowerings_of(program)
    if made.plain is None:
        return []
    wanted = compile_program(made.plain, replace(made.options, mixed_precision="", record="none")).run(inputs)
    found = program.run(inputs) if results is None else results
    return [Deviation.of(number, *pair) for number, pair in enumerate(zip(found, wanted, strict=True))]


@collector_at_rest()
def compile_program(
    module: ModuleOp, options: CompileOptions | None = None, *, observe: Observer | None = None
) -> Program:
    """A program from a module of the `hlo` dialect, which is not changed.

    options  `stage` is one of PROGRAM_STAGES
    observe  called after each pass up to `fused`
    raises   UsageError for a stage that programs, or the pipeline, do not have, an option of a pass that is not run, or an unknown target;
             Unsupported with the place in the text, VerifyError
    """
    options = options or CompileOptions()
    if options.tune == "price":
        raise UsageError(
            f"--tune {options.tune} is for modules of HLO text: a price needs known sizes",
            stage="compile",
            help="leave out --tune",
        )
    stage = known_stage(options.stage, "compile")
    rows = _rows_to(stage, options)
    refuse_unknown_passes(
        options, rows, *map(rows_of, OF_PROGRAMS), PROGRAM_PRECISION, PROGRAM_OPS, CPU_LOOPS, CPU_KERNEL, HOST_BY_LLVM
    )
    device(options.target)  # refuses an unknown target even at stages that do not depend on it
    name = module.sym_name.data if module.sym_name else "program"
    recorder = Recorder(name, options.record, options.verify, observe)
    module = _with_random_numbers(module, options.rng_seed)
    context, plain = make_context(), module if options.mixed_precision else None
    if plain is not None:
        module, precision = plain.clone(), Recorder(name, "none", options.verify, None)
        for row in PROGRAM_PRECISION:
            precision.run(row.make(options), row.stage, context, module)
    copy = module.clone()
    copy.attributes.pop(STACK_TABLES, None)  # lines of Python are looked up in the module that was read
    entry = entry_of(copy)
    _refuse_other_than_arrays(entry)
    refuse_many_calls(module)
    sizes = sizes_of(module)
    recorder.read("stablehlo", copy, _skipped(copy))
    if stage != PROGRAM_STAGES[0]:
        for constant in list(elided_in(copy)):
            constant.properties["value"] = constant.coded
    kept = dict[str, ModuleOp]()
    for row in rows:
        row.run(options, recorder, context, copy)
        if row.stage in KEPT_STAGES and recorder.keeps_text:
            kept[row.stage] = copy.clone()
    fused = None
    if stage in ON_KERNELS:
        if options.pipeline is not None:
            _refuse_tensors(copy)
        fused = copy.clone()
        host = Recorder(name, "none", options.verify, None)
        for row in PROGRAM_OPS:
            host.run(row.make(options), row.stage, context, copy)
        if options.constants:
            from xla_emitters.dynamic.host.disc_convert_const_to_ral import write_constants

            write_constants(copy, Path(options.constants))
    COMPILATIONS.made += 1
    made = OnDemand(name, module, sizes, stage, copy, fused, recorder.trace, options, plain, kept)
    guards = sizes.guards
    return Program(
        name,
        options.target,
        tuple(parameter_specs(sizes)),
        tuple(result_specs(module, sizes)),
        made,
        stage,
        left_out=made.left_out,
        symbols=tuple(solved.symbol for solved in guards.plan.solved),
        guards=tuple(guards.lines()),
        names=tuple(parameter.name for parameter in guards.parameters),
    )


def _skipped(module: ModuleOp) -> list[Remark]:
    """One remark about the ops beside the functions, which the reader has skipped; they are taken from the module's attributes."""
    found = module.attributes.pop(SKIPPED, None)
    if not isinstance(found, StringAttr):
        return []
    return [Remark("read", f"skipped ops beside the functions, which do not use them: {found.data}")]


def _with_random_numbers(module: ModuleOp, seed: int) -> ModuleOp:
    """The module with numbered and seeded `rng` ops, as its reference must see them too; `module` itself if it has none.

    Calls are inlined first: each call of a function takes numbers of its own.
    """
    if not any(isinstance(op, HloOp) and op.opcode in WITH_STATE for op in module.walk()):
        return module
    module = module.clone()
    DiscInlinerPass().apply_to(module)
    DiscNumberRandomOpsPass(seed).apply_to(module)
    return module


def known_stage(stage: str, where: str) -> str:
    """`stage` itself. raises UsageError for a stage that programs do not have; `where` names the caller in the message"""
    if stage not in PROGRAM_STAGES:
        raise UsageError(f"a program has no stage '{stage}'", stage=where, help=f"one of: {', '.join(PROGRAM_STAGES)}")
    return stage


def executable_stage(stage: str, where: str) -> str:
    """`stage` itself. raises UsageError like `known_stage`, and for a stage that no CPU runs"""
    if known_stage(stage, where) == CODE_STAGES[-1]:
        raise UsageError(f"no CPU runs the stage '{stage}'", stage=where, help=f"up to '{CODE_STAGES[0]}'")
    return stage


def _rows_to(stage: str, options: CompileOptions) -> Sequence[PassRow]:
    """The rows that lead to a stage; for a stage of `GpuLowering` all up to `fused`.

    raises  UsageError for a stage that is not a boundary of the pipeline
    """
    rows, later = program_rows(options)
    ends = {row.stage: number for number, row in enumerate(rows, 1) if row.stage}
    if options.pipeline is not None:
        of_kernels = ON_KERNELS if later is None else [each for each in ON_KERNELS if each not in ("loops", "kernels")]
        if stage not in (known := [PROGRAM_STAGES[0], *ends, *of_kernels]):
            raise UsageError(
                f"the pipeline has no stage '{stage}'", stage="compile", help=f"one of: {', '.join(known)}"
            )
    return rows if stage in ON_KERNELS else rows[: ends.get(stage, 0)]


def _refuse_tensors(module: ModuleOp) -> None:
    from xla_emitters.pipelines.program_runs import entries_of  # imported here: only a pipeline of one's own needs it

    if (left := next(entries_of(module), None)) is not None:
        raise refusal(
            "compile",
            left,
            "the pipeline ends on tensors, but kernels are made of buffers",
            "end it behind disc-legalize-to-lhlo, or give options of passes alone: --pass-options",
        )


def _refuse_other_than_arrays(entry: ComputationOp) -> None:
    """raises Unsupported for a parameter that is not an array."""
    for parameter in entry.parameters:
        if not is_array(parameter.result.type):
            name = parameter.instruction_name.data
            raise refusal("programs", parameter, f"parameter %{name} is {parameter.result.type}, no array")
