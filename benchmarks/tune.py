"""The cost model's figures for XLA's choice of a thread's work and for the one by price: `python -m benchmarks.tune`.

    fusion (at least 100 MB) ─tune="xla"──> kernel ─cost model─> expected time, bound, bytes under way, instructions
                             └tune="price"> kernel ─────┘

Nothing here is measured on a GPU: see docs/cost_model.md. The fusions are those of `benchmarks.cost`; of them the loop emitter alone has
candidates, and the others are compiled the same both ways. `ours/XLA` is a quotient of expected times.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass

from benchmarks.cost import FUSIONS, TARGET, Fusion
from benchmarks.table import header, print_table
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.cost import cost
from xla_emitters.pipelines.compiler import compile
from xla_emitters.pricing.model import KernelCost
from xla_emitters.pricing.report import bytes_text, microseconds

TITLES = (
    *("fusion", "must move", "XLA's work", "ours", "in flight", "instructions", "bound"),
    *("XLA's time", "ours", "range", "ours/XLA"),
)


@dataclass(frozen=True)
class Pair:
    """A fusion's kernel by XLA's choice and by price; `work` of a thread in both, "" of emitters without candidates."""

    name: str
    work: tuple[str, str]
    by_rule: KernelCost
    by_price: KernelCost

    @property
    def ratio(self) -> float:
        return self.by_price.time / self.by_rule.time

    @property
    def instructions(self) -> float:
        """Executed by the whole grid, by price over XLA's choice."""
        by_rule, by_price = (each.instructions * each.blocks * each.threads for each in (self.by_rule, self.by_price))
        return by_price / by_rule


def pair(fusion: Fusion) -> Pair | str:
    """Both kernels, or why there are none."""
    try:
        by_rule, by_price = (cost(fusion.hlo, targets=(TARGET,), tune=tune).kernels for tune in ("xla", "price"))
        if len(by_rule) != 1:
            return f"{fusion.name}: {len(by_rule)} kernels"
        decisions = compile(fusion.hlo, target=TARGET, tune="price", stage="xla_gpu").traces[0].decisions
    except XlaEmittersError as error:
        return f"{fusion.name}: {error.message}"
    found = [each.data for each in decisions if each.topic == "tune"]
    work = ("-", "-")
    if found:
        (data,) = found
        candidates = data["candidates"]
        work = (candidates[0]["candidate"] if candidates else data["chosen"], data["chosen"])
    return Pair(fusion.name, (_short(work[0]), _short(work[1])), by_rule[0], by_price[0])


def _short(work: str) -> str:
    return work.removesuffix(" a thread")


def cells(found: Pair) -> list[str]:
    by_rule, ours = found.by_rule, found.by_price
    bounds = by_rule.bound if by_rule.bound == ours.bound else f"{ours.bound}, XLA's {by_rule.bound}"
    return [
        found.name,
        bytes_text(ours.bytes_needed),
        *found.work,
        f"{bytes_text(ours.bytes_in_flight)}, XLA's {bytes_text(by_rule.bytes_in_flight)}",
        f"{found.instructions:.2f}",
        bounds,
        microseconds(by_rule.time),
        microseconds(ours.time),
        f"{microseconds(ours.time_low)} - {microseconds(ours.time_high)}",
        f"{found.ratio:.3f}",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Expected times of XLA's choice of a kernel and of the one by price.")
    parser.add_argument("names", nargs="*", help="only these fusions of benchmarks.cost")
    options = parser.parse_args()
    found = [pair(each) for each in FUSIONS if not options.names or each.name in options.names]
    rows = [each for each in found if isinstance(each, Pair)]
    print(header(f"Expected by the cost model, not measured: {len(rows)} fusions bound by memory on {TARGET}"))
    print("'in flight' is of one multiprocessor; 'instructions' are those of the whole grid, ours over XLA's choice")
    print_table(TITLES, [cells(each) for each in rows])
    for what, values in (
        ("expected times", [each.ratio for each in rows]),
        ("instructions", [each.instructions for each in rows]),
    ):
        if values:
            print(
                f"geometric mean of {what}, ours over XLA's choice: {math.exp(sum(map(math.log, values)) / len(values)):.3f}"
            )
    missing = [each for each in found if isinstance(each, str)]
    for reason in missing:
        print(f"not priced: {reason}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
