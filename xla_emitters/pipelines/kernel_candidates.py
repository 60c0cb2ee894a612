"""`--tune price`: the candidate of an emitter whose kernel the cost model expects to be the fastest.

    candidates ─emit, list "kernel"─> LLVM dialect ─all in one module─> PTX ─ptxas─> SASS ┐
                            └─ some blocks on the CPU executor ─────────> accesses ───────┴─> expected time of each

    GELU of bf16[6,512,4096] on h200:   4 a thread 16.4 us, 8 a thread 15.4 us ...   ->   the decision "tune", with every figure

The first candidate is XLA's choice. Another one is taken only if it is expected to need `LEAST_GAIN` less time, since the model cannot
tell smaller differences, and if the CPU executor finds the same bits in its first, middle and last blocks as in the kernel that XLA's
choice makes, or sums that are as near as additions in another order allow. The times are expectations (docs/cost_model.md). XLA's choice
is priced alone: where the memory needs nearly all of its time, or its launch most of it, no other is looked at. The others together take
one run of LLVM and one of ptxas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.device import Device
from xla_emitters.dialects.context import make_context
from xla_emitters.emitters.partitioner import sanitize
from xla_emitters.emitters.ways import Emitter, TunableEmitter, Way
from xla_emitters.kernels.kernel_entry import launch_of, shared_bytes
from xla_emitters.lowering.toolchain import compile_to_ptx
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import rows_of
from xla_emitters.pipelines.passes import FOR_TOOLS, Row
from xla_emitters.planning.host_steps import PlannedKernel
from xla_emitters.pricing.agreement import disagreement
from xla_emitters.pricing.model import KernelCost, least_time
from xla_emitters.pricing.price import machine_code_of, price_kernel
from xla_emitters.program import Kernel
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.rewrite.merge import merge_modules
from xla_emitters.rewrite.notes import decide, take_notes

LEAST_GAIN = 0.02
"""Of the expected time of XLA's choice."""


@dataclass(frozen=True)
class Candidate:
    """A way to make a kernel, and what the kernel is expected to cost.

    module  the kernel in the LLVM dialect
    """

    way: Way
    module: ModuleOp
    cost: KernelCost

    @property
    def name(self) -> str:
        return self.way.name

    @property
    def figures(self) -> dict[str, Any]:
        cost = self.cost
        return {
            "candidate": self.name,
            "time": cost.time,
            "bound": cost.bound,
            "registers": cost.registers,
            "instructions": cost.instructions,
            "bytes_in_flight": cost.bytes_in_flight,
            "tolerance": self.way.tolerance,
        }

    def __str__(self) -> str:
        return f"{self.name}: {self.cost.time:.4g} us, {self.cost.bound}"


def cheapest_candidate(planned: PlannedKernel, options: CompileOptions, emitter: TunableEmitter) -> Emitter:
    """The candidate of the least expected time, which the decision "tune" names with the figures of all.

    raises   ToolError without LLVM or ptxas and nvdisasm; what the executor raises
    """
    ways = emitter.candidates(planned.view, options.device)
    xlas, *others = ways
    if not others:
        decide("tune", f"{xlas.name}, the only candidate", chosen=xlas.name, candidates=[])
        return xlas.emitter
    (by_rule,) = priced_candidates([(planned, xlas)], options)
    if (why := why_no_gain(by_rule.cost, options.device)) is not None:
        figures = [{**by_rule.figures, "wrong": None}]
        decide("tune", f"{by_rule}: {why}", chosen=xlas.name, candidates=figures)
        return xlas.emitter
    known = [by_rule, *priced_candidates([(planned, way) for way in others], options)]
    chosen, wrong = by_rule, dict[str, str]()
    for each in sorted(known, key=lambda candidate: candidate.cost.time):
        if each is by_rule or each.cost.time > (1 - LEAST_GAIN) * by_rule.cost.time:
            break
        same, tolerance = each.way.same_blocks, each.way.tolerance
        why = disagreement(each.module, by_rule.module, planned.view, planned.arguments, same, tolerance)
        if why is None:
            chosen = each
            break
        wrong[each.name] = why
    told = "; ".join(f"{each}{', not taken: ' + wrong[each.name] if each.name in wrong else ''}" for each in known)
    decide(
        "tune",
        f"{chosen.name}, by expected times{_order(chosen.way)}. {told}",
        chosen=chosen.name,
        candidates=[{**each.figures, "wrong": wrong.get(each.name)} for each in known],
    )
    return chosen.way.emitter


def why_no_gain(cost: KernelCost, device: Device) -> str | None:
    """Why no candidate is looked at beside XLA's choice; None: one may be faster by `LEAST_GAIN`."""
    if cost.bound == "launch":
        return "all of it takes less than its launch, whose time the model does not know so well"
    if cost.time * (1 - LEAST_GAIN) <= (least := least_time(cost.bytes_needed, device)):
        return f"its bytes alone take {least:.4g} us, so that no candidate is faster by {LEAST_GAIN:.0%}"
    return None


def _order(way: Way) -> str:
    if not way.tolerance:
        return ""
    return f" (sums in another order than XLA's choice, within {way.tolerance:.1e} of a sum of positive numbers)"


def priced_candidates(ways: Sequence[tuple[PlannedKernel, Way]], options: CompileOptions) -> Sequence[Candidate]:
    """Ways to make kernels, with what each is expected to cost. raises as `cheapest_candidate`"""
    chip = options.device
    with take_notes():  # of kernels that are not compiled in the end
        lowered = [_lowered(planned, options, way.emitter) for planned, way in ways]
        launches = [(launch_of(module), shared_bytes(module)) for module in lowered]
        whole, renamed = merge_modules([module.clone() for module in lowered])
        _run(FOR_TOOLS, options, whole)
    ptx = compile_to_ptx(whole, chip.architecture)
    code, found = machine_code_of(ptx, chip.architecture), list[Candidate]()
    for (planned, way), module, symbols, (launch, shared) in zip(ways, lowered, renamed, launches, strict=True):
        symbol = sanitize(planned.name)
        kernel = Kernel(symbols.get(symbol, symbol), ptx, chip.architecture, launch, shared, planned.arguments)
        found.append(Candidate(way, module, price_kernel(kernel, planned.view, module, chip, code)))
    return found


def _lowered(planned: PlannedKernel, options: CompileOptions, emitter: Emitter) -> ModuleOp:
    module = emitter.emit(planned.view, options.device)
    _run(rows_of("kernel"), options, module)
    return module


def _run(rows: Sequence[Row], options: CompileOptions, module: ModuleOp) -> None:
    context = make_context()
    for row in rows:
        run_pass(row.make(options), context, module)
