"""`--tune price`: the candidate of an emitter whose kernel the cost model expects to be the fastest.

    candidates ─emit, list "kernel"─> LLVM dialect ─all in one module─> PTX ─ptxas─> SASS ┐
                            └─ some blocks on the CPU executor ─────────> accesses ───────┴─> expected time of each

    GELU of bf16[6,512,4096] on h200:   4 a thread 16.4 us, 8 a thread 15.4 us ...   ->   the decision "tune", with every figure

The first candidate is XLA's choice. The model cannot distinguish times that differ by less than `LEAST_GAIN`: among the candidates within
that margin of the fastest, the one whose grid executes the fewest instructions is taken; XLA's choice is kept if none of them saves
`LEAST_GAIN` of its instructions. On the CPU executor the chosen kernel must compute the same bits in the first, middle and last blocks as
the kernel of XLA's choice; sums may differ by as much as another order of additions allows. The times are expectations
(docs/cost_model.md).
All candidates together take one run of LLVM and one of ptxas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.emitters.emitter import Emitter, TunableEmitter, Way
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.pricing.model import LEAST_GAIN, KernelCost
from xla_emitters.rewrite.notes import decide, take_notes
from xla_emitters.tuning.agreement import disagreement
from xla_emitters.tuning.priced_kernels import Passes, TriedKernel, price_kernels


@dataclass(frozen=True)
class Candidate:
    """One way to make a kernel, and its expected cost.

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
            "grid_instructions": grid_instructions(cost),
            "bytes_in_flight": cost.bytes_in_flight,
            "tolerance": self.way.tolerance,
        }

    def __str__(self) -> str:
        return f"{self.name}: {self.cost.time:.4g} us, {self.cost.bound}"


def cheapest_candidate(planned: PlannedKernel, passes: Passes, emitter: TunableEmitter) -> Emitter:
    """The first candidate in the order of choice that computes the same as XLA's choice; the decision "tune" has the figures of all.

    raises   ToolError without LLVM or ptxas and nvdisasm; errors of the executor
    """
    ways = emitter.candidates(planned.view, passes.device)
    xlas, *others = ways
    if not others:
        decide("tune", f"{xlas.name}, the only candidate", chosen=xlas.name, candidates=[])
        return xlas.emitter
    known = priced_candidates([(planned, way) for way in ways], passes)
    by_rule = known[0]
    chosen, wrong = by_rule, dict[str, str]()
    for each in in_order_of_choice(known):
        if each is by_rule:
            break
        same, tolerance = each.way.same_blocks, each.way.tolerance
        why = disagreement(each.module, by_rule.module, planned.view, planned.arguments, same, tolerance)
        if why is None:
            chosen = each
            break
        wrong[each.name] = why
    prices = "; ".join(f"{each}{', not taken: ' + wrong[each.name] if each.name in wrong else ''}" for each in known)
    decide(
        "tune",
        f"{chosen.name}, by {_reason(chosen, known)}{_order(chosen.way)}. {prices}",
        chosen=chosen.name,
        candidates=[{**each.figures, "wrong": wrong.get(each.name)} for each in known],
    )
    return chosen.way.emitter


def in_order_of_choice(known: Sequence[Candidate]) -> Sequence[Candidate]:
    """The candidates, best first; XLA's choice is the first of `known`.

    First those whose expected times the model cannot distinguish from the least, ordered by instructions of their grids; then the slower
    ones, by time.
    """
    by_rule, *_ = known
    # A candidate that is faster by less than the launch's uncertainty is not known to be faster.
    is_short = by_rule.cost.bound == "launch"
    least = by_rule.cost.time if is_short else min(each.cost.time for each in known)

    def order(each: Candidate) -> tuple[float, ...]:
        if each.cost.time > (1 + LEAST_GAIN) * least:
            return (1, each.cost.time)
        return (0, grid_instructions(each.cost) * (1 - LEAST_GAIN if each is by_rule else 1))

    return sorted(known, key=order)


def grid_instructions(cost: KernelCost) -> int:
    """Instructions that all threads of a launch execute."""
    return cost.instructions * cost.blocks * cost.threads


def _reason(chosen: Candidate, known: Sequence[Candidate]) -> str:
    """By what `in_order_of_choice` has decided."""
    by_rule, *_ = known
    least, is_short = min(each.cost.time for each in known), by_rule.cost.bound == "launch"
    if chosen is by_rule and is_short and least <= (1 - LEAST_GAIN) * by_rule.cost.time:
        return "instructions: where the launch takes longest, expected times are not compared"
    if chosen is by_rule or chosen.cost.time <= (1 - LEAST_GAIN) * by_rule.cost.time:
        return "expected times"
    share = grid_instructions(chosen.cost) / grid_instructions(by_rule.cost)
    return f"instructions ({share:.2f} of those of XLA's choice) at expected times that the model cannot tell apart"


def _order(way: Way) -> str:
    if not way.tolerance:
        return ""
    return f" (sums in another order than XLA's choice, within {way.tolerance:.1e} of a sum of positive numbers)"


def priced_candidates(ways: Sequence[tuple[PlannedKernel, Way]], passes: Passes) -> Sequence[Candidate]:
    """The candidates for the given ways to make kernels, each with its expected cost. raises like `cheapest_candidate`"""
    with take_notes():  # discarded: these kernels are candidates
        tried = [
            TriedKernel.of(planned.view, planned.arguments, way.emitter.emit(planned.view, passes.device), passes)
            for planned, way in ways
        ]
        costs = price_kernels(tried, passes)
    return [Candidate(way, kernel.module, cost) for (_, way), kernel, cost in zip(ways, tried, costs, strict=True)]
