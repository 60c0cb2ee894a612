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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr

from xla_emitters.buffers.buffer_uses import leaves_the_block, writes
from xla_emitters.buffers.disc_legalize_to_lhlo import is_donated
from xla_emitters.device import device
from xla_emitters.dialects.collector import collector_at_rest
from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.disc_ral import is_marker, is_runtime_value
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.types import as_array, element_of, is_array, leaf_types
from xla_emitters.dialects.printer import print_ir
from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import UsageError
from xla_emitters.fusions.entry import entry_of
from xla_emitters.graph.disc_inliner import DiscInlinerPass
from xla_emitters.graph.disc_number_random_ops import WITH_STATE, DiscNumberRandomOpsPass
from xla_emitters.hlo_text.header import STACK_TABLES
from xla_emitters.host.disc_convert_const_to_ral import write_constants
from xla_emitters.host.steps_of_buffers import steps_of_buffers
from xla_emitters.library.arguments import element_name
from xla_emitters.memory_limit import limited_memory
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import OF_PROGRAMS, program_rows, refuse_unknown_passes, rows_of
from xla_emitters.pipelines.passes import Row
from xla_emitters.pipelines.program_host import CpuBackend, choose_backend
from xla_emitters.pipelines.program_passes import (
    CODE_STAGES,
    CPU_KERNEL,
    CPU_LOOPS,
    HOST_BY_LLVM,
    ON_KERNELS,
    PROGRAM_OPS,
    PROGRAM_PRECISION,
    PROGRAM_STAGES,
    RUN_ON_KERNELS,
)
from xla_emitters.program.compiled import refuse_left_out
from xla_emitters.program.outline import Outline
from xla_emitters.program.platforms import OnFunction, OnPlatform, known_platform, one_or_all, platform_of
from xla_emitters.rewrite.kernel_pass import refusal
from xla_emitters.rewrite.locations import first_position, instructions_of
from xla_emitters.rewrite.recorder import Observer, Recorder
from xla_emitters.runtime.loaded import MOST_BINDINGS, Counters, Dispatch, LoadedProgram
from xla_emitters.runtime.memory import Memory
from xla_emitters.runtime.numpy_platform import NumpyPlatform
from xla_emitters.runtime.ral.buffer_ops import value_of
from xla_emitters.runtime.ral.constants import constants_in
from xla_emitters.runtime.ral.kernels import Kernels
from xla_emitters.runtime.reference import evaluate
from xla_emitters.sizes import Argument, Sizes, sizes_of
from xla_emitters.stablehlo_text.computations import SKIPPED
from xla_emitters.trace import Remark, Trace

# Kernels for a GPU, and what explains a program, are imported where they are asked for: a call on the CPU needs neither.
if TYPE_CHECKING:
    from xla_emitters.pipelines.program_gpu import GpuProgram
    from xla_emitters.pipelines.program_kernels import GpuLowering, SizedKernel
    from xla_emitters.runtime.ral.host_program import HostProgram


@dataclass
class Compilations:
    """How many programs this process has compiled; a run at another size must not increase it."""

    made: int = 0


COMPILATIONS = Compilations()
_LOADING = RLock()
"""Held while a program is loaded, so that threads that call it first at the same time share one context."""


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


@dataclass(frozen=True)
class DynamicProgram:
    """A compiled program with unknown sizes.

    name     of the module
    target   the device that the program is compiled for
    source   the module that was read
    sizes    its sizes over the program's symbols, and the conditions that a call's arguments must satisfy
    results  shapes (an unknown size is UNBOUNDED) and element types of the results
    stage    the last stage of the compilation
    module   the IR of that stage; for a stage of `GpuLowering`, the host program that calls NumPy
    fused    buffers and fusions, before the two branches; None if compilation stopped before
    passes   what each pass up to `fused` did, with the IR of each stage
    options  of the compilation
    plain    the module before mixed precision; None without it
    """

    name: str
    target: str
    source: ModuleOp = field(repr=False, compare=False)
    sizes: Sizes = field(repr=False, compare=False)
    results: tuple[tuple[str, tuple[int, ...]], ...]
    stage: str
    module: ModuleOp = field(repr=False, compare=False)
    fused: ModuleOp | None = field(repr=False, compare=False)
    passes: Trace = field(repr=False, compare=False)
    options: CompileOptions = field(repr=False, compare=False)
    plain: ModuleOp | None = field(default=None, repr=False, compare=False)

    def __call__(self, *inputs: Any, donate: bool = False, max_memory: int | str | None = None) -> Any:
        """Runs the program, at any sizes that fit it, where its arrays are: on the GPU if one of them is there, else on the CPU.

        donate, max_memory   as in `run`, on the CPU
        returns  the result, or a tuple if there are several: NumPy arrays from the CPU, CuPy arrays from a GPU
        raises   like `run`, and `on`
        """
        if platform_of(inputs) == "cpu":
            return one_or_all(self.run(inputs, donate=donate, max_memory=max_memory))
        with limited_memory(max_memory):
            return self._on_gpu(*inputs)

    def run_cpu(self, *inputs: Any, stage: str | None = None, max_memory: int | str | None = None) -> Any:
        """Runs the IR of a stage on the CPU; returns results like `__call__`. raises like `run`"""
        return one_or_all(self.run(inputs, stage, max_memory=max_memory))

    def on(self, platform: str) -> OnPlatform:
        """The program as a function of arrays on a platform: "cpu", or "gpu" through CuPy.

        raises  UsageError for another platform; for "gpu" ToolError without CuPy or a device, and later errors like `lowering`
        """
        return self._on_gpu if known_platform(platform) == "gpu" else OnFunction(self.run)

    @cached_property
    def _on_gpu(self) -> GpuProgram:
        from xla_emitters.pipelines.program_gpu import GpuProgram

        refuse_left_out(self.name, self.left_out)
        return GpuProgram(self, lambda: self.lowering)

    @property
    def lines(self) -> dict[str, int]:
        """Instruction -> the line, counted from 1, on which it starts in the text that was read."""
        found = (
            (names[0], at[1])
            for op in self.source.walk()
            if (names := instructions_of(op)) and (at := first_position(op))
        )
        return dict(found)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of the unknown sizes, in the guards' order."""
        return tuple(solved.symbol for solved in self.sizes.guards.plan.solved)

    def __str__(self) -> str:
        from xla_emitters.pipelines.program_report import signature

        return signature(self)

    @cached_property
    def outline(self) -> Outline:
        """What `repr` and notebooks show: fusions and calls, dearest first, at assumed sizes. Nothing is compiled or run for it."""
        from xla_emitters.pipelines.program_outline import outline_of

        return outline_of(self)

    def __repr__(self) -> str:
        return self.outline.text()

    def _repr_html_(self) -> str:
        """For notebooks: a card; the stages are shown by `trace`."""
        return self.outline.html()

    def explain(self, **sizes: int) -> str:
        """Symbols and their sources, what a run checks, where and how each op runs; with sizes also the memory of a run.

        raises  DataError for names that are not symbols, or sizes that the program refuses
        """
        from xla_emitters.pipelines.program_report import report

        return report(self, sizes)

    def explained(self, **sizes: int) -> dict[str, Any]:
        """The same as plain data: see docs/json.md, "explain --json"."""
        from xla_emitters.pipelines.program_report import report_json

        return report_json(self, sizes, lambda: self.lowering)

    @cached_property
    def lowering(self) -> GpuLowering:
        """Compiles the fusions to kernels. raises UsageError if compilation stopped before, Unsupported for what no kernel computes"""
        if self.fused is None:
            raise UsageError(
                f"{self.name} was compiled up to '{self.stage}' only", stage="program", help="compile without `stage`"
            )
        from xla_emitters.pipelines.program_kernels import GpuLowering

        return GpuLowering(self.name, self.fused, self.options)

    @property
    def kernels(self) -> tuple[SizedKernel, ...]:
        """The program's kernels, in the order of first launches. raises like `lowering`"""
        return self.lowering.kernels

    @property
    def ptx(self) -> str:
        """All kernels as one PTX module. raises like `lowering`, ToolError like `lowering.compile_to_ptx`"""
        return self.lowering.ptx

    @cached_property
    def code(self) -> str:
        """The printed text of `stage`: IR, PTX, SASS. raises like `lowering` and `GpuLowering.listed`"""
        return self.lowering.code(self.stage) if self.stage in ON_KERNELS else print_ir(self.module)

    @property
    def trace(self) -> Trace:
        """What each pass did, with the IR of each stage, up to the last one that compilation reaches. raises like `lowering`"""
        if self.stage not in ON_KERNELS:
            return self.passes
        return Trace(self.passes.name, [*self.passes.steps, *self.lowering.trace.steps])

    def to_json(self) -> dict[str, Any]:
        """Plain data, as docs/json.md says; without the trace."""
        from xla_emitters.pipelines.program_json import program_json

        return program_json(self, self.code, self.lowering if self.stage in ON_KERNELS else None)

    @property
    def graph(self) -> Trace:
        """Empty: the passes on HLO are in `trace` with all others. Exists because a program that XLA optimized has it."""
        return Trace()

    @property
    def left_out(self) -> tuple[str, ...]:
        """The constants whose data the text omits: the code has zeros for them, and does not run."""
        return self._left_out

    @cached_property
    def _left_out(self) -> tuple[str, ...]:
        return tuple(f"%{op.instruction_name.data}" for op in _elided(self.source))

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The traces recorded so far; the same interface as of a program that XLA optimized."""
        return (self.trace,) if "lowering" in self.__dict__ else (self.passes,)

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that `run` executes: those whose IR was recorded, and all of `GpuLowering`."""
        recorded = tuple(step.stage for step in self.passes.steps if step.stage and step.ir)
        if self.stage not in ON_KERNELS:
            return recorded
        later = program_rows(self.options)[1]
        return (*recorded, *(RUN_ON_KERNELS if later is None else RUN_ON_KERNELS[2:]))

    def run(
        self,
        inputs: Sequence[Any],
        stage: str | None = None,
        *,
        donate: bool = False,
        max_memory: int | str | None = None,
    ) -> list[Array]:
        """The results for these arguments: NumPy arrays, or values that convert to them.

        stage   the stage to execute, by default that of the compilation; for "ptx" and "sass" the program as a call runs it on the CPU
        donate  allows the program to write into the arguments that the text declares donated, and to return them: the caller must not use
                them afterwards. Otherwise the program gets copies of them
        max_memory  bytes, or a text such as "2G", that its arrays may take at a time; None: three quarters of what is free
        raises  DataError for arguments that do not fit the program, and for arrays beyond that limit; ExecutionError; like `lowering` for
                a stage of `GpuLowering`
        """
        if max_memory is not None:
            with limited_memory(max_memory):
                return self.run(inputs, stage, donate=donate)
        stage = stage or self.stage
        arrays = self._owned(self.checked(inputs), donate=donate)
        if stage in CODE_STAGES:
            return self.loaded.run(arrays)
        if stage in ON_KERNELS:
            return self.lowering.run(arrays, stage)
        return run_module(self.at(stage), arrays)

    def memory(self, inputs: Sequence[Any]) -> Memory:
        """What happens to the buffers during a run on these arguments. raises like `run`; UsageError at a stage on tensors."""
        return self.loaded.memory(self._owned(self.checked(inputs)))

    def dispatches(self, inputs: Sequence[Any], *, donate: bool = False) -> list[Dispatch]:
        """What a run on these arguments launches, calls and copies, in order. raises like `run`"""
        return self.loaded.dispatches(self._owned(self.checked(inputs), donate=donate))

    def deviations(self, inputs: Sequence[Any], results: Sequence[Array] | None = None) -> list[Deviation]:
        """The difference, on these arguments, between mixed precision and the program in its own types, per result; [] without it.

        results  of a run on these arguments, if there was one
        raises   like `run`
        """
        if self.plain is None:
            return []
        options = replace(self.options, mixed_precision="", record="none")
        wanted = compile_program(self.plain, options).run(inputs)
        found = self.run(inputs) if results is None else results
        return [Deviation.of(number, *pair) for number, pair in enumerate(zip(found, wanted, strict=True))]

    @property
    def donated(self) -> tuple[int, ...]:
        """Indices of the arguments that the text declares donated by the caller."""
        parameters = entry_of(self.source).parameters
        return tuple(number for number, parameter in enumerate(parameters) if is_donated(parameter))

    @property
    def overwritten(self) -> tuple[int, ...]:
        """The donated arguments that the program writes into or returns; it frees the other ones."""
        return self._overwritten

    @cached_property
    def _overwritten(self) -> tuple[int, ...]:
        if self.fused is None:
            return self.donated
        (function,) = (op for op in self.fused.ops if isinstance(op, func.FuncOp) and not op.is_declaration)
        arguments = [(number, function.args[number]) for number in self.donated]
        return tuple(
            number for number, buffer in arguments if any(writes(use) or leaves_the_block(use) for use in buffer.uses)
        )

    def _owned(self, arrays: list[Array], *, donate: bool = False) -> list[Array]:
        """The arguments, with copies of those that a run overwrites: of all of them, or if `donate`, of those that cannot be donated."""
        for number in self.overwritten:
            array, others = arrays[number], [*arrays[:number], *arrays[number + 1 :]]
            is_placed = array.ctypes.data % 16 == 0  # the alignment that kernels rely on; other arrays are copied
            is_free = donate and is_placed and array.flags.writeable
            if not is_free or any(np.may_share_memory(array, other) for other in others):
                arrays[number] = array.copy()
        return arrays

    def checked(self, inputs: Sequence[Any]) -> list[Array]:
        """The arguments as row-major arrays in the machine's byte order. raises DataError naming the argument that does not fit."""
        return self.checked_with_sizes(inputs)[0]

    def checked_with_sizes(self, inputs: Sequence[Any]) -> tuple[list[Array], dict[str, int]]:
        """The arguments like `checked`, and the values of the program's symbols."""
        refuse_left_out(self.name, self.left_out)
        arrays = [np.asarray(value) for value in self._typed(inputs)]
        key = tuple([(array.dtype, array.shape) for array in arrays])
        if (values := self._fitting.get(key)) is None:
            values = self.sizes.guards.check([Argument(element_name(array.dtype), array.shape) for array in arrays])
            if len(self._fitting) >= MOST_BINDINGS:
                self._fitting.clear()
            self._fitting[key] = values
        # Copies arrays that are strided or in the other byte order; rank 0 stays rank 0, unlike with `ascontiguousarray`.
        return [np.asarray(array, array.dtype.newbyteorder("="), order="C") for array in arrays], {**values}

    @cached_property
    def _fitting(self) -> dict[tuple[Any, ...], dict[str, int]]:
        """Types and sizes of arguments that fit -> the values of the symbols."""
        return {}

    def _typed(self, inputs: Sequence[Any]) -> Iterator[Any]:
        """The arguments; Python's numbers get the type of their parameter, as in JAX."""
        types = self.sizes.guards.types
        for number, value in enumerate(inputs):
            is_number = isinstance(value, bool | int | float | complex) and number < len(types)
            yield np.asarray(value, dtype(types[number]).numpy) if is_number else value

    def at(self, stage: str) -> ModuleOp:
        """The module at the end of a stage. raises UsageError for a stage that was not reached, or not recorded."""
        if stage in ON_KERNELS:
            return self.lowering.at(stage)
        if stage == self.stage:
            return self.module
        text = next((step.ir for step in self.passes.steps if step.stage == stage), None)
        if text is None:
            raise UsageError(f"no IR of stage '{stage}'", stage="run", help=f"recorded: {', '.join(self.stages)}")
        return parse_ir(text, f"<{stage}>")

    @property
    def cpu(self) -> CpuBackend:
        """How a call is computed: machine code by LLVM, or NumPy, and why. raises like `choose_backend`"""
        return self._cpu

    @cached_property
    def _cpu(self) -> CpuBackend:
        if self.fused is None:
            return CpuBackend("numpy", f"compilation stopped at '{self.stage}'")
        return choose_backend(self.name, self.fused, self.options, self.sizes)

    @cached_property
    def loaded(self) -> LoadedProgram:
        """The steps that a call runs. raises UsageError at a stage on tensors, which has none; like `cpu`; ToolError from LLVM"""
        with _LOADING:
            lowering = self.cpu.lowering
            return self.__dict__.get("loaded") or (
                lowering.loaded if lowering else load(self.module, constants=self.options.constants)
            )

    @property
    def counters(self) -> Counters:
        """What the program did so far."""
        return self.loaded.counters


@collector_at_rest()
def compile_program(
    module: ModuleOp, options: CompileOptions | None = None, *, observe: Observer | None = None
) -> DynamicProgram:
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
    results = tuple(
        (element_of(leaf).name, as_array(leaf).get_shape()) for leaf in leaf_types(entry.root.type) if is_array(leaf)
    )
    sizes = sizes_of(module)
    recorder.read("stablehlo", copy, _skipped(copy))
    if stage != PROGRAM_STAGES[0]:
        for constant in list(_elided(copy)):
            constant.properties["value"] = constant.coded
    for row in rows:
        recorder.run(row.make(options), row.stage, context, copy)
    fused = None
    if stage in ON_KERNELS:
        if options.pipeline is not None and (left := next(_entries(copy), None)):
            raise refusal(
                "compile",
                left,
                "the pipeline ends on tensors, but kernels are made of buffers",
                "end it behind disc-legalize-to-lhlo, or give options of passes alone: --pass-options",
            )
        fused = copy.clone()
        host = Recorder(name, "none", options.verify, None)
        for row in PROGRAM_OPS:
            host.run(row.make(options), row.stage, context, copy)
        if options.constants:
            write_constants(copy, Path(options.constants))
    COMPILATIONS.made += 1
    return DynamicProgram(
        name, options.target, module, sizes, results, stage, copy, fused, recorder.trace, options, plain
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
    module, context = module.clone(), make_context()
    DiscInlinerPass().apply(context, module)
    DiscNumberRandomOpsPass(seed).apply(context, module)
    return module


def known_stage(stage: str, where: str) -> str:
    """`stage` itself. raises UsageError for a stage that programs do not have; `where` names the caller in the message"""
    if stage not in PROGRAM_STAGES:
        raise UsageError(f"a program has no stage '{stage}'", stage=where, help=f"one of: {', '.join(PROGRAM_STAGES)}")
    return stage


def executable_stage(stage: str, where: str) -> str:
    """`stage` itself. raises UsageError like `known_stage`, and for a stage that no CPU runs"""
    if known_stage(stage, where) in CODE_STAGES:
        raise UsageError(f"no CPU runs the stage '{stage}'", stage=where, help=f"up to '{RUN_ON_KERNELS[-1]}'")
    return stage


def _rows_to(stage: str, options: CompileOptions) -> Sequence[Row]:
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


def _entries(module: ModuleOp) -> Iterator[ComputationOp]:
    """The entries on tensors; none on buffers."""
    return (op for op in module.ops if isinstance(op, ComputationOp) and op.is_entry)


def _elided(module: ModuleOp) -> Iterator[ConstantOp]:
    """The constants without data."""
    return (op for op in module.walk() if isinstance(op, ConstantOp) and op.is_elided)


def _refuse_other_than_arrays(entry: ComputationOp) -> None:
    """raises Unsupported for a parameter that is not an array."""
    for parameter in entry.parameters:
        if not is_array(parameter.result.type):
            name = parameter.instruction_name.data
            raise refusal("programs", parameter, f"parameter %{name} is {parameter.result.type}, no array")


def run_module(module: ModuleOp, arrays: Sequence[Array]) -> list[Array]:
    """The results of a program after any pass, on tensors or on buffers, for arguments that fit. raises DataError, ExecutionError

    Buffers are filled before the run, so that a result that is never written is certainly wrong.
    """
    if any(_entries(module)):
        return evaluate(entry_of(module), arrays, value_of=value_of)
    loaded = load_any(module)
    given = [array.copy() if number in loaded.donated else array for number, array in enumerate(arrays)]
    return loaded.run_on_garbage(given)


def load(module: ModuleOp, kernels: Kernels | None = None, constants: str = "") -> LoadedProgram:
    """A program on buffers as a function of arrays. raises like `steps_of_buffers`

    kernels    the kernels that it launches; None: it launches none
    constants  the file that holds them; "": the module does
    """
    made = steps_of_buffers(module, constants_in(constants))
    return LoadedProgram(made, NumpyPlatform(made.ops, kernels))


def load_any(module: ModuleOp, kernels: Kernels | None = None) -> LoadedProgram | HostProgram:
    """A program on buffers after any pass, as a function of arrays. raises like `load` and `HostProgram`"""
    if not is_host_program(module):
        return load(module, kernels)
    # Imported here: steps run without it, and it loads the executor.
    from xla_emitters.runtime.ral.host_program import HostProgram

    return HostProgram(module, kernels)


def is_host_program(module: ModuleOp) -> bool:
    """Whether a pass on the host has run: the function has blocks, takes a context, or marks buffers."""
    found = [op for op in module.ops if isinstance(op, func.FuncOp) and not op.is_declaration]
    return any(
        len(op.body.blocks) > 1 or any(map(is_runtime_value, op.args)) or any(map(is_marker, op.body.block.ops))
        for op in found
    )
