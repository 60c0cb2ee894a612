"""`xe.cost`: the expected cost of every kernel of a fusion or a module on one or several devices, without a GPU.

xe.cost("gelu.hlo", targets=("h200", "a6000")).costs[0].kernels[0].bound   ->   "memory"
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from xla_emitters.device import DEFAULT_DEVICE, device
from xla_emitters.emitters.partitioner import sanitize
from xla_emitters.errors import UsageError
from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import EXECUTABLE_STAGES
from xla_emitters.planning.host_steps import PlannedKernel
from xla_emitters.pricing.model import KernelCost
from xla_emitters.pricing.price import machine_code_of, price_kernel
from xla_emitters.program import Branch, Kernel, LibraryCall, Loop, Program, Step
from xla_emitters.program.steps import steps_in
from xla_emitters.rewrite.recorder import Observer

if TYPE_CHECKING:
    from xla_emitters.pipelines.programs import DynamicProgram

STAGE = EXECUTABLE_STAGES[-1]


@dataclass(frozen=True)
class ProgramCost:
    """The kernels of a program on one device.

    kernels        in the order of their first launches
    library_calls  names of library functions, one per call; they are not priced
    is_estimate    whether `launches` of some kernel is a guess: a loop without a known trip count counts once, and so does each branch
    program        for a module: the priced program, with the decisions in its traces
    """

    target: str
    kernels: tuple[KernelCost, ...]
    library_calls: tuple[str, ...] = ()
    is_estimate: bool = False
    program: Program | None = field(default=None, repr=False, compare=False)

    @property
    def time(self) -> float:
        """Expected microseconds of all launches, one after the other, without library calls."""
        return sum(kernel.time * kernel.launches for kernel in self.kernels)

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "time": self.time,
            "kernels": [kernel.to_json() for kernel in self.kernels],
            "library_calls": list(self.library_calls),
            "launches_known": not self.is_estimate,
        }


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
        from xla_emitters.pricing.report import report_text

        return report_text(self.name, [(cost.kernels, cost.library_calls, cost.is_estimate) for cost in self.costs])


def cost(
    source: str | Path | Program | DynamicProgram | ModuleOp,
    *,
    targets: Sequence[str] = (DEFAULT_DEVICE,),
    fusion: str | None = None,
    hero_rules: str = "current",
    triton: str = "split",
    pipeline: tuple[ModulePass, ...] | None = None,
    sizes: Mapping[str, int] | None = None,
    tune: str = "xla",
    pass_options: tuple[tuple[str, str, Any], ...] = (),
) -> CostReport:
    """The cost of every kernel.

    source   path of an `.hlo` file, HLO text, a module that was read, or a compiled program, of which the source is used
    targets  devices or architectures
    fusion   only the kernels of this fusion instruction
    hero_rules, triton, pipeline, tune, pass_options  as in `CompileOptions`; a compiled program keeps its own
    sizes    for a program with unknown sizes: those at which its launches are priced
    raises   what `compile` raises; ToolError without ptxas and nvdisasm; DataError for sizes that are missing or do not fit
    """
    if not targets:
        raise UsageError("no target is given", stage="cost")
    if not isinstance(source, str | Path | Program | ModuleOp):
        return CostReport(source.name, tuple(_cost_at(source, target, sizes or {}) for target in targets))
    if sizes:
        raise UsageError("sizes are for programs; those of HLO text are known", stage="cost")
    if isinstance(source, Program):
        source, fusion = source.hlo, fusion or source.fusion
    module = source if isinstance(source, ModuleOp) else read_module(source)
    options = [
        CompileOptions(
            target=target,
            fusion=fusion,
            hero_rules=hero_rules,
            triton=triton,
            record="none",
            pipeline=pipeline,
            tune=tune,
            pass_options=pass_options,
        )
        for target in targets
    ]
    found = [_cost_of(module, each) for each in options]
    return CostReport(found[0][0], tuple(each for _, each in found))


def _cost_at(program: DynamicProgram, target: str, sizes: Mapping[str, int]) -> ProgramCost:
    """The cost of a program's launches on one device, at given sizes."""
    # Imported here, so that HLO does not load the second system.
    from xla_emitters.explore.program_cost import price_launches
    from xla_emitters.pipelines.program_listing import list_program
    from xla_emitters.pipelines.program_passes import CODE_STAGES
    from xla_emitters.pipelines.programs import compile_program

    options = replace(program.options, target=target, record="none", stage=CODE_STAGES[0])
    placed = compile_program(program.source, replace(options, stage="placed"))
    calls = tuple(op.function or op.name for op in list_program(placed.module).library_calls)
    kernels = price_launches(compile_program(program.source, options), sizes)
    return ProgramCost(device(target).name, kernels, calls)


def _cost_of(module: ModuleOp, options: CompileOptions) -> tuple[str, ProgramCost]:
    """The program's name, and its cost on one device."""
    kept: list[tuple[PlannedKernel, ModuleOp]] = []

    def keep(planned: PlannedKernel) -> Observer:
        return lambda name, at, kernel: kept.append((planned, kernel.clone())) if at == STAGE else None

    program = compile_module(module, options, observers=keep)
    chip = device(options.target)
    calls = tuple(step.name for step in steps_in(program.steps) if isinstance(step, LibraryCall))
    if not kept:
        return program.name, ProgramCost(chip.name, (), calls, program=program)
    code = machine_code_of(program.code, chip.architecture)
    launches = Counter[str]()
    is_estimate = _count_launches(program.steps, 1, launches)
    reached = {kernel.name: kernel for kernel in program.kernels}
    if len(reached) < len(kept):
        # A kernel without a launch.
        kept = [(planned, lowered) for planned, lowered in kept if sanitize(planned.name) in reached]
    kernels = [
        replace(price_kernel(kernel, planned.view, lowered, chip, code), launches=launches[kernel.name])
        for kernel, (planned, lowered) in zip(reached.values(), kept, strict=True)
    ]
    return program.name, ProgramCost(chip.name, tuple(kernels), calls, is_estimate, program)


def _count_launches(steps: Sequence[Step], times: int, launches: Counter[str]) -> bool:
    """Adds how often one run launches each kernel; returns whether these numbers are a guess."""
    is_estimate = False
    for step in steps:
        match step:
            case Kernel():
                launches[step.name] += times
            case Loop():
                trips = times * (step.trips or 1)
                is_estimate |= step.trips is None
                is_estimate |= _count_launches((*step.condition, *step.body), trips, launches)
            case Branch():
                is_estimate = True
                for branch in step.branches:
                    _count_launches(branch, times, launches)
            case _:
                pass
    return is_estimate
