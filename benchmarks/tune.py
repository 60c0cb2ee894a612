"""The cost model's figures for XLA's choice of kernels and for those by price: `python -m benchmarks.tune`.

    fusion (at least 100 MB) ─tune="xla"──> kernels ─cost model─> expected time, bound, bytes under way, instructions
                             └tune="price"> kernels ─────┘

Nothing here is measured on a GPU: see docs/cost_model.md. `--skinny` adds reductions with few results, which are smaller. For a fusion of
several kernels, times and instructions are sums, the other figures those of the slowest. `ours/XLA` is a quotient of expected times.
"""

import argparse
import math
import re
import sys
from dataclasses import dataclass

from benchmarks.cost import TARGET, Fusion
from benchmarks.memory_bound import FUSIONS, SKINNY
from benchmarks.table import header, print_table
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.cost.cost import cost
from xla_emitters.pricing.model import KernelCost
from xla_emitters.pricing.report import bytes_text, microseconds

TITLES = (
    *("fusion", "must move", "XLA's choice", "ours", "in flight", "instructions", "bound"),
    *("XLA's time", "ours", "range", "ours/XLA"),
)


@dataclass(frozen=True)
class Pair:
    """A fusion's kernels by XLA's choice and by price; `work` says what a thread does in both."""

    name: str
    work: tuple[str, str]
    by_rule: tuple[KernelCost, ...]
    by_price: tuple[KernelCost, ...]

    @property
    def ratio(self) -> float:
        return total_time(self.by_price) / total_time(self.by_rule)

    @property
    def instructions(self) -> float:
        """Instructions of the whole grid, by price relative to XLA's choice."""
        by_rule, by_price = (
            sum(each.instructions * each.blocks * each.threads for each in kernels)
            for kernels in (self.by_rule, self.by_price)
        )
        return by_price / by_rule


def total_time(kernels: tuple[KernelCost, ...]) -> float:
    return sum(each.time for each in kernels)


def slowest(kernels: tuple[KernelCost, ...]) -> KernelCost:
    return max(kernels, key=lambda each: each.time)


def pair(fusion: Fusion) -> Pair | str:
    """The kernels of both, or why there are none."""
    try:
        reports = [cost(fusion.hlo, targets=(TARGET,), tune=tune).costs[0] for tune in ("xla", "price")]
    except XlaEmittersError as error:
        return f"{fusion.name}: {error.message}"
    (by_rule, by_price), program = [report.kernels for report in reports], reports[1].program
    assert program is not None
    decisions = [each.data for trace in program.traces for each in trace.decisions if each.topic == "tune"]
    splits = [each.text for each in program.graph.remarks if each.pass_name == "tune"]
    work = ("-", "-")
    if decisions:
        first, *_ = decisions
        candidates = first["candidates"]
        work = (candidates[0]["candidate"] if candidates else first["chosen"], first["chosen"])
    if len(by_price) > len(by_rule) and splits:
        parts = re.search(r"\d+ parts", splits[0])
        work = (work[0], f"{parts[0] if parts else 'parts'}, {_short(work[1])}")
    return Pair(fusion.name, (_short(work[0]), _short(work[1])), by_rule, by_price)


def _short(work: str) -> str:
    return work.removesuffix(" a thread")


def cells(found: Pair) -> list[str]:
    by_rule, ours = slowest(found.by_rule), slowest(found.by_price)
    bounds = by_rule.bound if by_rule.bound == ours.bound else f"{ours.bound}, XLA's {by_rule.bound}"
    needed = sum(each.bytes_needed for each in found.by_rule)
    low, high = (sum(getattr(each, end) for each in found.by_price) for end in ("time_low", "time_high"))
    return [
        found.name,
        bytes_text(needed),
        found.work[0],
        "the same" if found.work[0] == found.work[1] else found.work[1],
        f"{bytes_text(ours.bytes_in_flight)}, XLA's {bytes_text(by_rule.bytes_in_flight)}",
        f"{found.instructions:.2f}",
        bounds,
        microseconds(total_time(found.by_rule)),
        microseconds(total_time(found.by_price)),
        f"{microseconds(low)} - {microseconds(high)}",
        f"{found.ratio:.3f}",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Expected times of XLA's choice of kernels and of those by price.")
    parser.add_argument("names", nargs="*", help="only these fusions of benchmarks.memory_bound")
    parser.add_argument("--skinny", action="store_true", help="reductions of few results, below 100 MB")
    options = parser.parse_args()
    fusions = SKINNY if options.skinny else FUSIONS
    found = list[Pair | str]()
    for each in fusions:
        if not options.names or each.name in options.names:
            found.append(pair(each))
            print(each.name, file=sys.stderr, flush=True)
    rows = [each for each in found if isinstance(each, Pair)]
    print(header(f"Expected by the cost model, not measured: {len(rows)} fusions bound by memory on {TARGET}"))
    print("'in flight' is of one multiprocessor; 'instructions' are those of the whole grid, ours over XLA's choice")
    print_table(TITLES, [cells(each) for each in rows])
    for what, values in (
        ("expected times", [each.ratio for each in rows]),
        ("instructions", [each.instructions for each in rows]),
    ):
        if values:
            mean = math.exp(sum(map(math.log, values)) / len(values))
            print(f"geometric mean of {what}, ours over XLA's choice: {mean:.3f}")
    missing = [each for each in found if isinstance(each, str)]
    for reason in missing:
        print(f"not priced: {reason}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
