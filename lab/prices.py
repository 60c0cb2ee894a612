"""What the cost model expects of the JAX functions of `lab/gpu/cases.py`, beside what an H200 took for the same kernels.

    make lab NAME=prices                          the table, and docs/pictures/prices.svg
    make lab NAME="prices --fit"                  how good the constants would be if half of the rows had chosen them
    make lab NAME="prices --ways xla,auto"        what each --tune expects, beside XLA's measured times; "price" takes ten minutes
    make lab NAME="prices --programs"             what the kernels of a program of unknown sizes expect, beside XLA's measured times
    make lab NAME="prices --rules"                what --tune auto expects beside --tune xla, over the fusions of `benchmarks/`

The functions are optimized by the real XLA without a GPU, with its Triton fusions off as on the machine with the GPU, and compiled by the
project. Measured are our kernels of that module, as a captured graph (`ours_off_us`); the drawn integers have the same range as there.
`lab/gpu/functions.py` made the rows; `benchmarks/results/2026-11-28-h200.jsonl` holds them.
"""

import argparse
import json
import math
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import cost as benchmarks_of_cost
from benchmarks import memory_bound
from benchmarks.table import header, print_table
from xla_emitters.explore.cost.cost import cost
from xla_emitters.explore.optimize import optimize
from xla_emitters.pricing import model, price
from xla_emitters.pricing.model import Assumption, KernelCost
from xla_emitters.pricing.report import ProgramCost

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "benchmarks/results/2026-11-28-h200.jsonl"
PICTURE = ROOT / "docs/pictures/prices.svg"
DEVICE = "h200"
START = {"MEMORY_SHARE": 0.92, "TURN_BYTES": 0.1, "RUN_BYTES": 8.0, "BLOCK_STARTS": 1.0}
"""The constants of `pricing.model` whose expected values the measured rows chose, and where `--fit` begins to search."""


@dataclass(frozen=True)
class Row:
    """A function: microseconds expected and measured, and the bound of its dearest kernel."""

    name: str
    priced: ProgramCost
    measured_us: float | None
    xla_us: float

    @property
    def ratio(self) -> float:
        return self.priced.time / self.measured_us if self.measured_us else math.nan


def measured_rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in MEASURED.read_text().splitlines()]


def module_of(name: str) -> tuple[str, dict[int, Any]]:
    """The function's module as XLA optimizes it without Triton, and its parameters of integers, drawn as on the GPU."""
    jax: Any = import_module("jax")  # late: JAX takes a second

    cases, options = _cases()
    function, specs, _ = cases[name]
    arguments = [jax.ShapeDtypeStruct(shape, kind) for shape, kind, _ in specs]
    lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cuda",))
    draw = np.random.default_rng(7)
    integers: dict[int, Any] = {
        number: np.asarray(draw.integers(0, highest + 1, shape), np.int32)
        for number, (shape, kind, highest) in enumerate(specs)
        if highest is not None and np.dtype(kind) == np.int32
    }
    return optimize(lowered.as_text(), DEVICE, options), integers


@cache
def _cases() -> tuple[dict[str, Any], dict[str, Any]]:
    """The functions, and XLA's options without Triton."""
    gpu = ROOT / "lab/gpu"
    return runpy.run_path(str(gpu / "cases.py"))["CASES"], runpy.run_path(str(gpu / "without_triton.py"))["OFF"]


def priced(name: str, tune: str = "xla") -> ProgramCost:
    text, integers = module_of(name)
    return cost(text, targets=(DEVICE,), tune=tune, data=integers).costs[0]


def errors(rows: Sequence[Row]) -> str:
    """
    >>> errors([])
    'no row'
    """
    found = sorted(abs(row.ratio - 1) for row in rows if row.measured_us)
    if not found:
        return "no row"
    within = sum(error <= 0.15 for error in found)
    return f"median error {median(found):.1%}, largest {found[-1]:.1%}, {within} of {len(found)} within 15 %"


def table(rows: Sequence[Row]) -> None:
    print_table(
        ("function", "expected", "measured", "ratio", "XLA", "bound"),
        [
            (
                row.name,
                f"{row.priced.time:.1f}",
                f"{row.measured_us:.1f}" if row.measured_us else "-",
                f"{row.ratio:.3f}" if row.measured_us else "-",
                f"{row.xla_us:.1f}",
                row.priced.dearest.bound if row.priced.dearest else "-",
            )
            for row in rows
        ],
    )


# ---------------------------------------------------------------------------------------------------------------------- the constants


@dataclass(frozen=True)
class Priced:
    """The kernels of a function as arguments of `kernel_cost`, so that they can be priced again with other constants."""

    row: Row
    kernels: tuple[tuple[int, tuple[Any, ...]], ...]

    def again(self) -> Row:
        kernels = tuple(replace(model.kernel_cost(*given), launches=launches) for launches, given in self.kernels)
        return replace(self.row, priced=replace(self.row.priced, kernels=kernels))


def recorded(names: Sequence[str], measured: Mapping[str, Mapping[str, Any]]) -> list[Priced]:
    """The functions, priced, with what `kernel_cost` was given for each."""
    given: list[tuple[Any, ...]] = []

    def record(*arguments: Any) -> KernelCost:
        given.append(arguments)
        return model.kernel_cost(*arguments)

    found: list[Priced] = []
    price.kernel_cost, before = record, price.kernel_cost
    try:
        for name in names:
            given.clear()
            one = priced(name)
            row = Row(name, one, measured[name].get("ours_off_us"), measured[name]["xla_off_us"])
            launches = [kernel.launches for kernel in one.kernels]
            found.append(Priced(row, tuple(zip(launches, list(given), strict=True))))
    finally:
        price.kernel_cost = before
    return found


def loss(rows: Sequence[Priced]) -> float:
    """The mean of the squared logarithms of the ratios."""
    return sum(math.log(each.again().ratio) ** 2 for each in rows) / len(rows)


def fit(rows: Sequence[Priced], say: Callable[[str], None]) -> dict[str, float]:
    """The constants' expected values, one after the other by ever smaller steps from where they are; leaves them there."""
    best = loss(rows)
    for step in (1.2, 1.1, 1.05, 1.05, 1.02, 1.02, 1.01, 1.01):
        for name in START:
            for factor in (step, 1 / step):
                while True:
                    now: Assumption = getattr(model, name)
                    setattr(model, name, replace(now, expected=now.expected * factor))
                    if (tried := loss(rows)) >= best * 0.9999:
                        setattr(model, name, now)
                        break
                    best = tried
        say(f"steps of {step}: {math.sqrt(best):.4f}")
    return {name: getattr(model, name).expected for name in START}


def cross(rows: Sequence[Priced]) -> None:
    """Constants from the one half of the rows, errors on both; and the other way round."""
    rows = [each for each in rows if each.row.measured_us]
    model.parse, model.executed = cache(model.parse), cache(model.executed)
    before = {name: getattr(model, name) for name in START}
    for first in (0, 1):
        used, held = rows[first::2], rows[1 - first :: 2]
        for name, value in START.items():
            setattr(model, name, replace(before[name], expected=value))
        found = fit(used, lambda text: print(f"  {text}", file=sys.stderr))
        print(", ".join(f"{name} {value:.3g}" for name, value in found.items()))
        print(f"  {len(used)} rows that chose them: {errors([each.again() for each in used])}")
        print(f"  {len(held)} others: {errors([each.again() for each in held])}")


def ways(names: Sequence[str], measured: Mapping[str, Mapping[str, Any]], chosen: Sequence[str]) -> None:
    """What each way to choose kernels is expected to take for XLA's module without Triton, beside XLA's own times, as it comes."""
    print(
        header(
            "Expected by the cost model for each --tune, and XLA as it comes, measured on 2026-11-28 on an h200, microseconds"
        )
    )
    rows: list[tuple[str, ...]] = []
    shares: dict[str, list[float]] = {way: [] for way in chosen}
    for name in names:
        xla = measured[name]["xla_us"]
        found = {way: priced(name, way).time for way in chosen}
        for way, time in found.items():
            shares[way].append(time / xla)
        each = [text for time in found.values() for text in (f"{time:.1f}", f"{time / xla:.2f}")]
        rows.append((name, f"{measured[name]['limit_us']:.1f}", f"{xla:.1f}", *each))
    means = [f"{math.exp(sum(map(math.log, shares[way])) / len(names)):.3f}" for way in chosen]
    rows.append(("geometric mean", "", "", *(text for mean in means for text in ("", mean))))
    titles = [text for way in chosen for text in (way, "of XLA")]
    print_table(("function", "limit", "XLA", *titles), rows)


def programs(names: Sequence[str], measured: Mapping[str, Mapping[str, Any]]) -> None:
    """What the kernels of the functions compiled for any size are expected to take, beside XLA's times for the one size."""
    from xla_emitters import from_jax  # late: JAX takes a second

    jax: Any = import_module("jax")
    print(
        header("Expected by the cost model for programs of unknown sizes, and XLA as measured on an h200, microseconds")
    )
    rows: list[tuple[str, ...]] = []
    shares: list[float] = []
    for name in names:
        function, specs, shapes = _cases()[0][name]
        if shapes is None:
            continue
        arguments = [jax.ShapeDtypeStruct(shape, kind) for shape, kind, _ in specs]
        program = from_jax(function, *arguments, dynamic=True, shapes=shapes, target=DEVICE, record="none")
        sizes: dict[str, int] = {}
        for text, (shape, _, _) in zip(shapes, specs, strict=True):
            symbols = zip(text.split(", "), shape, strict=True)
            sizes |= {symbol: size for symbol, size in symbols if not symbol.isdigit()}
        time, xla = cost(program, sizes=sizes, targets=(DEVICE,)).costs[0].time, measured[name]["xla_us"]
        shares.append(time / xla)
        rows.append((name, f"{measured[name]['limit_us']:.1f}", f"{xla:.1f}", f"{time:.1f}", f"{time / xla:.2f}"))
    mean = math.exp(sum(map(math.log, shares)) / len(shares))
    rows.append(("geometric mean", "", "", "", f"{mean:.3f}"))
    print_table(("function", "limit", "XLA", "program", "of XLA"), rows)


def rules() -> None:
    """What the rules of `--tune auto` are expected to gain and lose over the fusions of `benchmarks/`."""
    print(
        header(
            "Expected by the cost model for --tune xla and auto, not measured: fusions of benchmarks/ on h200, microseconds"
        )
    )
    fusions = {fusion.name: fusion for fusion in (*memory_bound.FUSIONS, *benchmarks_of_cost.FUSIONS)}
    found = {
        name: [cost(fusion.hlo, targets=(DEVICE,), tune=tune).costs[0].time for tune in ("xla", "auto")]
        for name, fusion in fusions.items()
    }
    shares = {name: auto / xla for name, (xla, auto) in found.items()}
    rows = [(name, f"{xla:.1f}", f"{auto:.1f}", f"{shares[name]:.3f}") for name, (xla, auto) in found.items()]
    mean = math.exp(sum(map(math.log, shares.values())) / len(shares))
    rows += [("geometric mean", "", "", f"{mean:.3f}"), ("largest", "", "", f"{max(shares.values()):.3f}")]
    print_table(("fusion", "xla", "auto", "auto/xla"), rows)


# ------------------------------------------------------------------------------------------------------------------------ the picture


def picture(rows: Sequence[Row]) -> str:
    """Expected over measured times as SVG, both axes logarithmic; the band is 15 % wide to each side."""
    size, edge = 560, 48
    points = [row for row in rows if row.measured_us]
    low, high = math.log(25), math.log(700)

    def at(value: float) -> float:
        return edge + (math.log(value) - low) / (high - low) * (size - 2 * edge)

    def place(x: float, y: float) -> str:
        return f"{at(x):.1f},{size - at(y):.1f}"

    corners = ((27, 0.85), (27, 1.15), (600, 1.15), (600, 0.85))
    band = " ".join(place(x, x * share) for x, share in corners)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" font-family="sans-serif" font-size="11">',
        f'<rect width="{size}" height="{size}" fill="#fff"/>',
        f'<polygon points="{band}" fill="#e8eef7"/>',
        f'<polyline points="{place(27, 27)} {place(600, 600)}" stroke="#8aa" fill="none"/>',
    ]
    for tick in (30, 50, 100, 200, 400, 600):
        x, y = at(tick), size - at(tick)
        parts.append(f'<text x="{x:.1f}" y="{size - 24}" text-anchor="middle" fill="#555">{tick}</text>')
        parts.append(f'<text x="36" y="{y + 4:.1f}" text-anchor="end" fill="#555">{tick}</text>')
    parts.append(f'<text x="{size / 2}" y="{size - 6}" text-anchor="middle">measured on an H200, microseconds</text>')
    parts.append(
        f'<text x="12" y="{size / 2}" text-anchor="middle" transform="rotate(-90 12 {size / 2})">expected</text>'
    )
    for row in points:
        x, y = place(row.measured_us or 0, row.priced.time).split(",")
        says = f"{row.name}: {row.priced.time:.1f} expected, {row.measured_us:.1f} measured"
        parts.append(
            f'<circle cx="{x}" cy="{y}" r="4" fill="#2b6cb0" fill-opacity="0.7"><title>{says}</title></circle>'
        )
    return "\n".join([*parts, "</svg>", ""])


def main() -> int:
    parser = argparse.ArgumentParser(description="Expected times beside measured ones.")
    parser.add_argument(
        "--fit", action="store_true", help="choose the constants by half of the rows, show errors on both"
    )
    parser.add_argument("--ways", metavar="xla,auto,price", help="price these ways to choose kernels")
    parser.add_argument(
        "--rules", action="store_true", help="what --tune auto expects, over the fusions of benchmarks/"
    )
    parser.add_argument("--programs", action="store_true", help="price the functions as programs of unknown sizes")
    parser.add_argument("names", nargs="*", help="only these functions")
    options = parser.parse_args()
    measured = {row["name"]: row for row in measured_rows()}
    if options.rules:
        rules()
        return 0
    if options.programs:
        programs(options.names or list(measured), measured)
        return 0
    if options.ways:
        ways(options.names or list(measured), measured, options.ways.split(","))
        return 0
    rows = recorded(options.names or list(measured), measured)
    if options.fit:
        cross(rows)
        return 0
    shown = [each.row for each in rows]
    print(
        header(
            f"Expected by the cost model, and measured on 2026-11-28 on an {DEVICE}: {len(shown)} functions, microseconds"
        )
    )
    table(shown)
    print(errors(shown))
    if not options.names:
        PICTURE.write_text(picture(shown))
        print(f"{PICTURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
