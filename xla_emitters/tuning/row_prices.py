"""`--tune price`, for a fusion that can be computed row by row: chooses the cheapest one-kernel way, or the kernels of XLA's plan.

    softmax of f32[16384,2048] on h200
      XLA's plan             3 kernels, 512 MiB move: 136 us      <- split: the maximum, the sum, the quotient
      256 threads a row ...  1 kernel, 256 MiB move: 62 us        <- taken: the least, and `row_agreement` finds no wrong element
      ...

All kernels together take one run of LLVM and one of ptxas. The times are expectations (docs/cost_model.md). One kernel is taken only if
it is expected to be faster than the plan by `LEAST_GAIN`. XLA's plan is not priced if its single kernel would recompute rows for each
element (`graph/recomputation`): then the cheapest way is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from xla_emitters.emitters.emit import emit_fusion
from xla_emitters.errors import Unsupported
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.graph.recomputation import recomputation_of
from xla_emitters.pricing.model import LEAST_GAIN, KernelCost
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.tuning.priced_kernels import Passes, TriedKernel, price_kernels
from xla_emitters.tuning.row_agreement import row_disagreement

WayT = TypeVar("WayT")
"""How one kernel reads the rows; as text, its name."""

PLAN = "XLA's plan"
TOO_OFTEN = 4
"""A kernel that recomputes its elements this many times is not priced: executing it here would take too long."""


@dataclass(frozen=True)
class Option(Generic[WayT]):
    """One way to compute a fusion: some kernels, one after the other.

    way    the way of one stitched kernel; None: XLA's plan
    """

    name: str
    way: WayT | None
    kernels: Sequence[TriedKernel] = field(repr=False)
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
class RowChoice(Generic[WayT]):
    """The choice for a fusion.

    way      the way of the one kernel; None: XLA's plan
    options  all options that were priced; XLA's plan is first if it was
    wrong    name of an option -> why its numbers are rejected
    """

    way: WayT | None
    options: tuple[Option[WayT], ...]
    wrong: dict[str, str]

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


def _choice(way: WayT | None, options: Sequence[Option[WayT]], wrong: dict[str, str]) -> RowChoice[WayT]:
    """The choice without the kernels, which are not needed any more."""
    return RowChoice(way, tuple(replace(each, kernels=()) for each in options), wrong)


_KNOWN: dict[tuple[str, ...], RowChoice[Any]] = {}
"""Choices by fusion, device and rules: one command plans the same module several times."""
_MOST_KNOWN = 256


def choose_way(
    key: tuple[str, ...],
    matrix: tuple[int, int],
    kernels_of_ways: Callable[[], Sequence[tuple[WayT, TriedKernel]]],
    xlas_plan: Callable[[], Sequence[PlannedKernel]],
    passes: Passes,
) -> RowChoice[WayT]:
    """The cheapest way to compute a fusion, or XLA's plan if no way is cheaper.

    key              the fusion, device and rules as text: the choice is kept in the process
    matrix           rows and columns
    kernels_of_ways  returns each way with its kernel
    xlas_plan        returns the kernels that the passes of `--tune xla` make of the fusion
    raises           ToolError without LLVM or ptxas and nvdisasm; errors of the executor
    """
    if (known := _KNOWN.get(key)) is None:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        known = _KNOWN[key] = _chosen(matrix, kernels_of_ways, xlas_plan, passes)
    return known


def _chosen(
    matrix: tuple[int, int],
    kernels_of_ways: Callable[[], Sequence[tuple[WayT, TriedKernel]]],
    xlas_plan: Callable[[], Sequence[PlannedKernel]],
    passes: Passes,
) -> RowChoice[WayT]:
    """The choice, from the expected costs of all kernels."""
    with take_notes():  # discarded: these kernels are candidates
        plan = _of_plan(xlas_plan, passes)
        tried = [Option[WayT](PLAN, None, plan)] if plan else []
        tried += [Option(str(way), way, [kernel]) for way, kernel in kernels_of_ways()]
        priced = _priced(tried, passes)
    by_plan = next((each for each in priced if each.way is None), None)
    wrong = dict[str, str]()
    for each in sorted(priced, key=lambda option: option.time):
        if each.way is None or (by_plan is not None and each.time > (1 - LEAST_GAIN) * by_plan.time):
            break
        (kernel,) = each.kernels
        why = row_disagreement(kernel.module, kernel.view, kernel.arguments, matrix)
        if why is None:
            return _choice(each.way, priced, wrong)
        wrong[each.name] = why
    return _choice(None, priced, wrong)


def _of_plan(xlas_plan: Callable[[], Sequence[PlannedKernel]], passes: Passes) -> Sequence[TriedKernel]:
    """The kernels of XLA's plan; none if these would recompute too much or are refused."""
    try:
        kernels = xlas_plan()
        if any((found := recomputation_of(each.view)) is not None and found.times >= TOO_OFTEN for each in kernels):
            return ()
        emitted = ((each, emit_fusion(each.view, passes.device, passes.hero_rules)) for each in kernels)
        return [TriedKernel.of(each.view, each.arguments, module, passes) for each, module in emitted]
    except Unsupported:
        return ()


def _priced(options: Sequence[Option[WayT]], passes: Passes) -> tuple[Option[WayT], ...]:
    """The options, with the expected costs of their kernels."""
    costs = iter(price_kernels([kernel for option in options for kernel in option.kernels], passes))
    return tuple(replace(option, costs=tuple(next(costs) for _ in option.kernels)) for option in options)
