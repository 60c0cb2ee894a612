"""`--tune price`, for a fusion that can be computed row by row: chooses the cheapest one-kernel way, or the kernels of XLA's plan.

    softmax of f32[16384,2048] on h200
      XLA's plan             3 kernels, 512 MiB move: 136 us      <- split: the maximum, the sum, the quotient
      256 threads a row ...  1 kernel, 256 MiB move: 62 us        <- taken: the least, and `row_agreement` finds no wrong element
      ...

All kernels together take one run of LLVM and one of ptxas. The times are expectations (docs/cost_model.md). One kernel is taken only if
it is expected to be faster than the plan by `LEAST_GAIN`. XLA's plan is not priced if its single kernel would recompute rows for each
element (`fusions/recomputation`): then the cheapest way is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import make_context
from xla_emitters.emitters.emit import emit_fusion
from xla_emitters.emitters.partitioner import sanitize
from xla_emitters.errors import Unsupported
from xla_emitters.fusions.buffers import kernel_arguments
from xla_emitters.fusions.recomputation import recomputation_of
from xla_emitters.fusions.view import FusionView
from xla_emitters.hlo_text import print_hlo
from xla_emitters.kernels.kernel_entry import launch_of, shared_bytes
from xla_emitters.lowering.toolchain import compile_to_ptx
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import rows_of
from xla_emitters.pipelines.passes import FOR_TOOLS, PassRow
from xla_emitters.pipelines.stitched_kernel import RowWay, StitchedFusion, emit_stitched, program_of, ways_of
from xla_emitters.planning.plan import plan_program
from xla_emitters.pricing.model import KernelCost
from xla_emitters.pricing.price import machine_code_of, price_kernel
from xla_emitters.pricing.row_agreement import row_disagreement
from xla_emitters.program import Argument, Kernel
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.rewrite.merge import merge_modules
from xla_emitters.rewrite.notes import take_notes

PLAN = "XLA's plan"
LEAST_GAIN = 0.02
"""Smallest gain, relative to the expected time of XLA's plan."""
TOO_OFTEN = 4
"""A kernel that recomputes its elements this many times is not priced: executing it here would take too long."""


@dataclass(frozen=True)
class Option:
    """One way to compute a fusion: some kernels, one after the other.

    way    the way of one stitched kernel; None: XLA's plan
    """

    name: str
    way: RowWay | None
    kernels: Sequence[_Lowered] = field(repr=False)
    costs: tuple[KernelCost, ...] = ()

    @property
    def time(self) -> float:
        """Expected time of all kernels in microseconds."""
        return sum(cost.time for cost in self.costs)

    @property
    def bytes_moved(self) -> int:
        return sum(cost.bytes_moved for cost in self.costs)

    @property
    def figures(self) -> dict[str, Any]:
        return {
            "candidate": self.name,
            "kernels": len(self.costs),
            "time": self.time,
            "bytes_moved": self.bytes_moved,
            "registers": [cost.registers for cost in self.costs],
            "bounds": [cost.bound for cost in self.costs],
        }

    def __str__(self) -> str:
        kernels = f"{len(self.costs)} kernel{'s' * (len(self.costs) > 1)}"
        return f"{self.name}: {kernels}, {self.bytes_moved / 1e6:.4g} MB, {self.time:.4g} us"


@dataclass(frozen=True)
class RowChoice:
    """The choice for a fusion.

    way      the way of the one kernel; None: XLA's plan
    options  all options that were priced; XLA's plan is first if it was
    wrong    name of an option -> why its numbers are rejected
    """

    way: RowWay | None
    options: tuple[Option, ...]
    wrong: dict[str, str]

    @staticmethod
    def of(way: RowWay | None, options: Sequence[Option], wrong: dict[str, str]) -> RowChoice:
        """The choice without the kernels, which are not needed any more."""
        return RowChoice(way, tuple(replace(each, kernels=()) for each in options), wrong)

    def __str__(self) -> str:
        rows = (
            f"{each}, not taken: {self.wrong[each.name]}" if each.name in self.wrong else str(each)
            for each in self.options
        )
        return f"{self.way or PLAN}, by expected times. {'; '.join(rows)}"

    @property
    def summary(self) -> str:
        """The choice, and the plan that it is cheaper than, as text."""
        return "; ".join(str(each) for each in self.options if each.way in (None, self.way))

    @property
    def figures(self) -> list[dict[str, Any]]:
        return [{**each.figures, "wrong": self.wrong.get(each.name)} for each in self.options]


@dataclass(frozen=True)
class _Lowered:
    """A kernel in the LLVM dialect, and the fusion that it computes."""

    view: FusionView
    arguments: tuple[Argument, ...]
    module: ModuleOp


_KNOWN: dict[tuple[str, ...], RowChoice] = {}
"""Choices by fusion, device and rules: one command plans the same module several times."""
_MOST_KNOWN = 256


def choose_way(view: FusionView, found: StitchedFusion, plan: ModuleOp, options: CompileOptions) -> RowChoice:
    """The cheapest way to compute a fusion, or XLA's plan if no way is cheaper. Like `_chosen`, but cached in the process."""
    key = (print_hlo(program_of(view)), repr(options.device), options.hero_rules)
    if (known := _KNOWN.get(key)) is None:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        known = _KNOWN[key] = _chosen(view, found, plan, options)
    return known


def _chosen(view: FusionView, found: StitchedFusion, plan: ModuleOp, options: CompileOptions) -> RowChoice:
    """The choice, from the expected costs of all kernels.

    plan     a module with the original fusion, named by `options.fusion`; None: with an ENTRY that is one kernel
    raises   ToolError without LLVM or ptxas and nvdisasm; errors of the executor
    """
    with take_notes():  # discarded: these kernels are candidates
        tried = [*_of_plan(plan, options)]
        for way in ways_of(found):
            module = emit_stitched(view, options.device, way)
            _run(rows_of("kernel"), options, module)
            tried.append(Option(str(way), way, [_Lowered(view, kernel_arguments(view), module)]))
        priced = _priced(tried, options)
    by_plan = next((each for each in priced if each.way is None), None)
    wrong = dict[str, str]()
    for each in sorted(priced, key=lambda option: option.time):
        if each.way is None or (by_plan is not None and each.time > (1 - LEAST_GAIN) * by_plan.time):
            break
        why = row_disagreement(each.kernels[0].module, view, each.kernels[0].arguments, (found.rows, found.columns))
        if why is None:
            return RowChoice.of(each.way, priced, wrong)
        wrong[each.name] = why
    return RowChoice.of(None, priced, wrong)


def _of_plan(plan: ModuleOp, options: CompileOptions) -> Sequence[Option]:
    """The kernels that the passes of `--tune xla` make of the fusion; none if these would recompute too much or are refused."""
    options, module = replace(options, tune="xla", triton="split"), plan.clone()
    try:
        _run(rows_of("graph"), options, module)
        kernels = plan_program(module).kernels
        if any((found := recomputation_of(each.view)) is not None and found.times >= TOO_OFTEN for each in kernels):
            return ()
        lowered = list[_Lowered]()
        for each in kernels:
            made = emit_fusion(each.view, options.device, options.hero_rules)
            _run(rows_of("kernel"), options, made)
            lowered.append(_Lowered(each.view, each.arguments, made))
    except Unsupported:
        return ()
    return (Option(PLAN, None, lowered),)


def _priced(options_: Sequence[Option], options: CompileOptions) -> tuple[Option, ...]:
    """The options, with the expected costs of their kernels."""
    chip = options.device
    kernels = [kernel for option in options_ for kernel in option.kernels]
    launches = [(launch_of(kernel.module), shared_bytes(kernel.module)) for kernel in kernels]
    whole, renamed = merge_modules([kernel.module.clone() for kernel in kernels])
    _run(FOR_TOOLS, options, whole)
    ptx = compile_to_ptx(whole, chip.architecture, options.toolchain)
    code, costs = machine_code_of(ptx, chip.architecture, options.toolchain), list[KernelCost]()
    for lowered, symbols, (launch, shared) in zip(kernels, renamed, launches, strict=True):
        symbol = sanitize(lowered.view.name)
        kernel = Kernel(symbols.get(symbol, symbol), ptx, chip.architecture, launch, shared, lowered.arguments)
        costs.append(price_kernel(kernel, lowered.view, lowered.module, chip, code))
    left = iter(costs)
    return tuple(replace(option, costs=tuple(next(left) for _ in option.kernels)) for option in options_)


def _run(rows: Sequence[PassRow], options: CompileOptions, module: ModuleOp) -> None:
    context = make_context()
    for row in rows:
        run_pass(row.make(options), context, module)
