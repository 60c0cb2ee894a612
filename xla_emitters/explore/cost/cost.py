"""`xe.cost`: the expected cost of every kernel of a fusion or a module on one or several devices, without a GPU.

xe.cost("gelu.hlo", targets=("h200", "a6000")).costs[0].kernels[0].bound   ->   "memory"
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.device import DEFAULT_DEVICE, Device, device
from xla_emitters.dialects.hlo.computation import FusionOp
from xla_emitters.dialects.hlo.contractions import ContractingOp
from xla_emitters.dialects.hlo.library_calls import library_call_of
from xla_emitters.dialects.hlo.types import dims_of, element_of
from xla_emitters.dtypes import Array
from xla_emitters.errors import UsageError
from xla_emitters.explore.compile import examined
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.pipelines.compiler import compile_module
from xla_emitters.pipelines.options import CompileKeywords, CompileOptions
from xla_emitters.pipelines.passes import EXECUTABLE_STAGES
from xla_emitters.pipelines.recorder import Observer
from xla_emitters.pricing.call_prices import WITHOUT_WORK, CallCost, price_call, price_copy
from xla_emitters.pricing.collective_prices import price_collective
from xla_emitters.pricing.model import KernelCost
from xla_emitters.pricing.price import machine_code_of, price_kernel
from xla_emitters.pricing.report import ProgramCost, report_text
from xla_emitters.pricing.sass import counted_by_origin
from xla_emitters.pricing.timeline import timeline_of
from xla_emitters.program import Compiled, LibraryCall, Program
from xla_emitters.program.steps import Branch, Call, Copy, Launch, Loop, weighted
from xla_emitters.rewrite.kernel_entry import sanitize

STAGE = EXECUTABLE_STAGES[-1]


@dataclass(frozen=True)
class CostReport:
    """The cost of a program, for each requested device."""

    name: str
    costs: tuple[ProgramCost, ...]

    @property
    def kernels(self) -> tuple[KernelCost, ...]:
        """The kernels of all devices."""
        return tuple(kernel for cost in self.costs for kernel in cost.kernels)

    def to_json(self) -> dict[str, Any]:
        """Plain data, as docs/json.md says."""
        return {"name": self.name, "targets": [cost.to_json() for cost in self.costs]}

    def __str__(self) -> str:
        return report_text(self.name, self.costs)


def cost(
    source: str | Path | bytes | bytearray | Program | ModuleOp,
    *,
    targets: Sequence[str] = (DEFAULT_DEVICE,),
    sizes: Mapping[str, int] | None = None,
    compared: bool = False,
    data: Mapping[int, Array] | None = None,
    **compiling: Unpack[CompileKeywords],
) -> CostReport:
    """The cost of every kernel and library call.

    source   path or text of HLO or StableHLO, a module that was read, or a compiled program, of which the source is used
    targets  devices or architectures
    sizes    for a program with unknown sizes: those at which its launches are priced
    data     for HLO: number of a parameter -> its array, where that decides what is read (indices); others are drawn
    compared  for HLO: also price the other choice of kernels (`ProgramCost.xlas`, `ProgramCost.by_price`)
    compiling  the fields of `CompileOptions`, for HLO; a compiled program in StableHLO keeps its own
    raises   what `compile` raises, for an unknown target before anything is compiled; ToolError without ptxas and nvdisasm; DataError for
             sizes that are missing or do not fit
    """
    if not targets:
        raise UsageError("no target is given", stage="cost")
    for target in targets:
        device(target)  # an unknown one is refused before others are priced
    subject, compiling = examined(source, compiling)
    if isinstance(subject, Program):
        return CostReport(subject.name, tuple(_cost_at(subject, target, sizes or {}) for target in targets))
    if sizes:
        raise UsageError("sizes are for programs; those of HLO text are known", stage="cost")
    found = list[tuple[str, ProgramCost]]()
    for target in targets:
        given: CompileKeywords = {**compiling, "target": target, "stage": "ptx", "record": "none"}
        options = CompileOptions(**given)
        priced = _compared if compared and options.pipeline is None else _cost_of
        found.append(priced(subject, options, data))
    return CostReport(found[0][0], tuple(each for _, each in found))


def instructions_by_origin(program: Program) -> dict[str, Mapping[str, int]]:
    """Kernel name -> HLO instruction -> SASS instructions that a thread executes for it; "" -> those of none.

    program  of HLO: compiled to "sass" with `line_info`, stages recorded; with unknown sizes: compiled to code
    raises   ToolError without ptxas and nvdisasm
    """
    found = dict[str, Mapping[str, int]]()
    if isinstance(program.compilation, Compiled):
        names, traces = [kernel.name for kernel in program.kernels], program.traces
    else:
        from xla_emitters.pipelines.lowerings import lowerings_of  # imported here, as in `_cost_at`

        traces = lowerings_of(program).lowering.kernel_traces("sass")
        names = [trace.name for trace in traces]
    for name, trace in zip(names, traces, strict=False):
        listing = trace["sass"]
        found[name] = counted_by_origin(listing.ir or "", name, listing.sources)
    return found


def _cost_at(program: Program, target: str, sizes: Mapping[str, int]) -> ProgramCost:
    """The cost of a program's launches on one device, at given sizes."""
    # Imported here, so that HLO does not load the second system.
    from xla_emitters.explore.cost.program_cost import price_work
    from xla_emitters.pipelines.lowerings import lowerings_of
    from xla_emitters.pipelines.program_passes import CODE_STAGES
    from xla_emitters.pipelines.programs import compile_program

    made = lowerings_of(program)
    options = replace(made.options, target=target, record="none", stage=CODE_STAGES[0])
    own = program if options == made.options else compile_program(made.source, options)
    kernels, calls, timeline = price_work(own, sizes)
    return ProgramCost(device(target).name, kernels, calls, timeline=timeline)


def _compared(module: ModuleOp, options: CompileOptions, data: Mapping[int, Array] | None) -> tuple[str, ProgramCost]:
    """As `_cost_of`, with the other choice of kernels: of all if `options` choose by price, else of the dearest one."""
    name, found = _cost_of(module, options, data)
    if options.tune == "price":
        return name, replace(found, xlas=_cost_of(module, replace(options, tune="xla"), data)[1])
    if (
        found.dearest is None
        or found.dearest.bound == "launch"
        or (fusion := _fusion_of(module, found.dearest.name)) is None
    ):
        return name, found
    is_xlas = options.tune == "xla" or (not options.tune and len(found.kernels) == 1)
    priced, ruled = (
        _cost_of(module, replace(options, tune=tune, fusion=fusion))[1] if wanted else None
        for tune, wanted in (("price", True), ("auto", is_xlas))
    )
    return name, replace(found, by_price=priced, by_rule=ruled)


def _fusion_of(module: ModuleOp, kernel: str) -> str | None:
    """The fusion instruction that a kernel is named after."""
    names = (op.instruction_name.data for op in module.walk() if isinstance(op, FusionOp))
    return next((name for name in names if sanitize(name) == kernel), None)


def _cost_of(
    module: ModuleOp, options: CompileOptions, data: Mapping[int, Array] | None = None
) -> tuple[str, ProgramCost]:
    """The program's name, and its cost on one device."""
    kept: list[tuple[PlannedKernel, ModuleOp]] = []

    def keep(planned: PlannedKernel) -> Observer:
        return lambda name, at, kernel: kept.append((planned, kernel.clone())) if at == STAGE else None

    program = compile_module(module, options, observers=keep)
    chip = device(options.target)
    launches, called, copied = Counter[str](), Counter[int](), Counter[Copy]()
    is_estimate = False
    for step, times in weighted(program.steps):
        match step:
            case Launch():
                launches[step.kernel] += times
            case Call():
                called[step.op] += times
            case Copy():
                copied[step] += times
            case Loop() | Branch():
                is_estimate |= isinstance(step, Branch) or step.trips is None
            case _:
                pass
    priced = [_price(call, chip) for call in program.calls]
    calls = [replace(each, launches=called[number]) for number, each in enumerate(priced) if each is not None]
    copies = {copy: _price_copy(program, copy, chip) for copy in copied}
    calls += [replace(copies[copy], launches=count) for copy, count in copied.items()]
    moves = {copy: each.time for copy, each in copies.items()}
    named = zip(program.calls, priced, strict=True)
    unpriced = [call.name for call, each in named if each is None and call.name not in WITHOUT_WORK]
    kernels, as_calls = list[KernelCost](), dict[str, tuple[CallCost, ...]]()
    if kept:
        code = machine_code_of(program.code, chip.architecture, options.toolchain)
        reached = {kernel.name: kernel for kernel in program.kernels}
        if len(reached) < len(kept):
            # A kernel without a launch.
            kept = [(planned, lowered) for planned, lowered in kept if sanitize(planned.name) in reached]
        for kernel, (planned, lowered) in zip(reached.values(), kept, strict=True):
            cost_of_one = price_kernel(kernel, planned.view, lowered, chip, code, data)
            kernels.append(replace(cost_of_one, launches=launches[kernel.name]))
            if products := tuple(_price_products(planned, chip)):
                as_calls[kernel.name] = products
    times = {kernel.name: kernel.time for kernel in kernels}
    return program.name, ProgramCost(
        chip.name,
        tuple(kernels),
        tuple(calls),
        tuple(unpriced),
        is_estimate,
        program,
        as_calls=as_calls,
        timeline=timeline_of(program.steps, program.calls, times, priced, moves),
    )


def _price_products(planned: PlannedKernel, chip: Device) -> Iterator[CallCost]:
    """What the products and convolutions of a kernel would take as library calls."""
    for op in planned.view.computation.walk():
        if isinstance(op, ContractingOp):
            name, config = library_call_of(op)
            operands = [(element_of(operand).name, dims_of(operand)) for operand in op.operands]
            priced = price_call(
                name,
                op.instruction_name.data,
                config,
                operands,
                [(element_of(op.result).name, dims_of(op.result))],
                chip,
            )
            if priced is not None:
                yield priced


def _price(call: LibraryCall, chip: Device) -> CallCost | None:
    operands, results = ([(each.dtype, each.shape) for each in of] for of in (call.operands, call.results))
    how = call.name, call.instruction, call.config, operands, results, chip
    return price_collective(*how) or price_call(*how)


def _price_copy(program: Program, copy: Copy, chip: Device) -> CallCost:
    source, target = (program.arrays.slot(place.slot) for place in (copy.source, copy.target))
    spec = program.arrays.spec(source)
    return price_copy(f"{source} -> {target}", (spec.dtype, spec.shape), chip)
