"""Softmax, norms and their gradients: XLA's plan and ours by price, as the cost model sees them: `python -m benchmarks.rows`.

    row_modules/*.hlo (what XLA makes of JAX programs) ── --tune xla ───> kernels, bytes that move, expected time
                                                        └─ --tune price ─> the same

Nothing here is measured on a GPU: see docs/cost_model.md. Each array of activations has at least 128 MiB. 'XLA has' is what the real XLA's
module contains. A fusion for Triton, which XLA compiles to one kernel by Triton, is split here by `--tune xla` (docs/heroes.md): the plan
is that of the split form. Bytes are between memory and the second-level cache; 'least' is what must move: inputs and results, once.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.table import header, print_table
from xla_emitters.dtypes import dtype
from xla_emitters.explore.cost import ProgramCost, cost
from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pricing.report import microseconds

TARGET = "h200"
MODULES = Path(__file__).parent / "row_modules"
TITLES = (
    *("module", "XLA has", "least MB", "kernels", "MB", "expected", "kernels by price", "MB", "expected"),
    *("bound", "registers", "occupancy", "ratio", "way"),
)


@dataclass(frozen=True)
class Row:
    """One module: its cost by XLA's plan, and by price."""

    name: str
    has: str
    least: int
    plan: ProgramCost
    by_price: ProgramCost
    way: str

    @property
    def ratio(self) -> float:
        """Of expected times."""
        return self.by_price.time / self.plan.time

    @property
    def cells(self) -> list[str]:
        ours = max(self.by_price.kernels, key=lambda kernel: kernel.time)
        return [
            self.name,
            self.has,
            f"{self.least / 1e6:.0f}",
            str(len(self.plan.kernels)),
            f"{moved(self.plan) / 1e6:.0f}",
            microseconds(self.plan.time),
            str(len(self.by_price.kernels)),
            f"{moved(self.by_price) / 1e6:.0f}",
            microseconds(self.by_price.time),
            ours.bound,
            str(ours.registers),
            f"{ours.occupancy:.0%}",
            f"{self.ratio:.2f}",
            self.way,
        ]


def moved(found: ProgramCost) -> int:
    return sum(kernel.bytes_moved for kernel in found.kernels)


def row_of(path: Path) -> Row:
    text, module = path.read_text(), read_module(path)
    triton = len(re.findall(r'"kind":"__triton', text))
    others = len(re.findall(r" fusion\(", text)) - triton
    has = ", ".join(f"{count} {kind}" for count, kind in ((triton, "Triton"), (others, "emitted")) if count)
    shapes = compile_module(module, CompileOptions(target=TARGET, stage="hlo", record="none"))
    least = sum(dtype(spec.dtype).size_bytes(spec.elements) for spec in (*shapes.parameters, *shapes.results))
    (plan,) = cost(module, targets=(TARGET,)).costs
    (by_price,) = cost(module, targets=(TARGET,), tune="price").costs
    made = compile_module(module, CompileOptions(target=TARGET, tune="price", stage="xla_gpu"))
    ways = [each.text for trace in made.traces for each in trace.decisions if each.topic == "rows"]
    return Row(path.stem, has, least, plan, by_price, "; ".join(way.partition(": ")[2] for way in ways) or "XLA's plan")


def main() -> int:
    parser = argparse.ArgumentParser(description="Expected times of softmax, norms and gradients: XLA's plan, ours.")
    parser.add_argument("names", nargs="*", help="only these modules of benchmarks/row_modules")
    names = parser.parse_args().names
    rows = [row_of(path) for path in sorted(MODULES.glob("*.hlo")) if not names or path.stem in names]
    print(header(f"Expected by the cost model, not measured: {len(rows)} modules of rows on {TARGET}"))
    print_table(TITLES, [row.cells for row in rows])
    mean = math.exp(sum(math.log(row.ratio) for row in rows) / max(1, len(rows)))
    print(f"geometric mean of expected times, by price over XLA's plan: {mean:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
