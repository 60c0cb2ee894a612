"""Softmax, norms and their gradients: split, in one kernel by rule, and by price, as the cost model sees them: `python -m benchmarks.rows`.

    row_modules/*.hlo (what XLA makes of JAX programs) ── --triton split ─> kernels, bytes that move, expected time
                                                       ├─ (by rule) ──────> the same
                                                       └─ --tune price ───> the same

Nothing here is measured on a GPU: see docs/cost_model.md. Each array of activations has at least 128 MiB. 'XLA has' is what the real XLA's
module contains. The plan is that of the split form (docs/heroes.md). Bytes are between memory and the second-level cache; 'least' is what
must move: inputs and results, once.
"""

import argparse
import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.table import header, print_table
from xla_emitters.dtypes import dtype
from xla_emitters.explore.cost.cost import cost
from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pricing.report import ProgramCost, microseconds

TARGET = "h200"
MODULES = Path(__file__).parent / "row_modules"
TITLES = (
    *("module", "XLA has", "least MB", "split", "MB", "expected", "by rule", "MB", "expected", "by price"),
    *("bound", "registers", "occupancy", "rule/split", "rule/price", "way"),
)


@dataclass(frozen=True)
class Row:
    """One module: its cost split, by rule, and by price."""

    name: str
    has: str
    least: int
    plan: ProgramCost
    by_rule: ProgramCost
    by_price: ProgramCost | None
    way: str

    @property
    def cells(self) -> list[str]:
        ours = max(self.by_rule.kernels, key=lambda kernel: kernel.time)
        return [
            self.name,
            self.has,
            f"{self.least / 1e6:.0f}",
            str(len(self.plan.kernels)),
            f"{moved(self.plan) / 1e6:.0f}",
            microseconds(self.plan.time),
            str(len(self.by_rule.kernels)),
            f"{moved(self.by_rule) / 1e6:.0f}",
            microseconds(self.by_rule.time),
            microseconds(self.by_price.time) if self.by_price else "",
            ours.bound,
            str(ours.registers),
            f"{ours.occupancy:.0%}",
            f"{self.by_rule.time / self.plan.time:.2f}",
            f"{self.by_rule.time / self.by_price.time:.2f}" if self.by_price else "",
            self.way,
        ]


def moved(found: ProgramCost) -> int:
    return sum(kernel.bytes_moved for kernel in found.kernels)


def row_of(path: Path, *, by_price: bool) -> Row:
    text, module = path.read_text(), read_module(path)
    triton = len(re.findall(r'"kind":"__triton', text))
    others = len(re.findall(r" fusion\(", text)) - triton
    has = ", ".join(f"{count} {kind}" for count, kind in ((triton, "Triton"), (others, "emitted")) if count)
    shapes = compile_module(module, CompileOptions(target=TARGET, stage="hlo", record="none"))
    least = sum(dtype(spec.dtype).size_bytes(spec.elements) for spec in (*shapes.parameters, *shapes.results))
    (plan,) = cost(module, targets=(TARGET,), triton="split").costs
    (by_rule,) = cost(module, targets=(TARGET,)).costs
    priced = cost(module, targets=(TARGET,), tune="price").costs[0] if by_price else None
    made = compile_module(module, CompileOptions(target=TARGET, stage="xla_gpu"))
    ways = [each.text for trace in made.traces for each in trace.decisions if each.topic == "rows"]
    return Row(
        path.stem, has, least, plan, by_rule, priced, "; ".join(way.partition(": ")[2] for way in ways) or "split"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Expected times of softmax, norms and gradients: split, and in one kernel."
    )
    parser.add_argument("files", nargs="*", help="modules; by default those of benchmarks/row_modules")
    parser.add_argument("--price", action="store_true", help="also by price, which takes minutes")
    options = parser.parse_args()
    paths = map(Path, options.files or sorted(MODULES.glob("*.hlo")))
    rows = [row_of(path, by_price=options.price) for path in paths]
    print(header(f"Expected by the cost model, not measured: {len(rows)} modules of rows on {TARGET}"))
    print_table(TITLES, [row.cells for row in rows])
    ratios = [row.by_rule.time / row.plan.time for row in rows]
    print(f"expected times by rule over those split, geometric mean: {math.prod(ratios) ** (1 / len(ratios)):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
