"""Cost of operations on indexing maps: `python -m benchmarks.indexing`.

Three maps as passes meet them before they are simplified: the elements of a launch followed by their place in memory (what
xla-flatten-tensors simplifies), the same for a shape that the grid does not fit, and a launch through two reshapes.
`cold` has seen neither the map nor its expressions before; `equal map` finds the answer by value, `same map` by object.
Times are medians over the rounds.
"""

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks.table import header, print_table
from xla_emitters.algebra import map as map_module
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import linearize_physical_map, reshape_map
from xla_emitters.device import device
from xla_emitters.graph.launch import launch_for, work_item_map

POINTS = 1 << 20


def launch(shape: tuple[int, ...], unroll: int) -> IndexingMap:
    """The elements that threads of an H200 visit, row major."""
    order = tuple(reversed(range(len(shape))))
    return work_item_map(launch_for(math.prod(shape), unroll, device("h200")), shape, order, unroll)


def offsets(shape: tuple[int, ...]) -> IndexingMap:
    """From indices to places in memory, row major."""
    return linearize_physical_map(shape, tuple(reversed(range(len(shape)))))


def pairs() -> dict[str, tuple[str, str]]:
    """Two maps to compose, as text: an existing map object would keep its expressions cached."""
    gelu, middle, last = (6, 512, 4096), (3072, 64, 64), (24, 8192, 64)
    made = {
        "bf16[6,512,4096]": (launch(gelu, 4), offsets(gelu)),
        "f32[64,257,33]": (launch((64, 257, 33), 1), offsets((64, 257, 33))),
        "two reshapes": (launch(gelu, 4).compose(reshape_map(gelu, middle)), reshape_map(middle, last)),
    }
    return {name: (str(first), str(second)) for name, (first, second) in made.items()}


def median(function: Callable[[], Callable[[], object]], rounds: int) -> float:
    """Microseconds of what `function` returns, made anew for each round."""
    times: list[float] = []
    for _ in range(rounds):
        work = function()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def measure(first: str, second: str, rounds: int) -> dict[str, float]:
    """Microseconds of each operation on the composition of the two."""
    parse = IndexingMap.parse
    text = str(parse(first).compose(parse(second)))

    def compose() -> Callable[[], object]:
        one, other = parse(first), parse(second)
        return lambda: one.compose(other)

    def cold() -> Callable[[], object]:
        map_module._normal_form.cache_clear()
        return parse(text).simplify

    def same() -> Callable[[], object]:
        m = parse(text)
        m.simplify()
        return m.simplify

    def evaluate(m: IndexingMap) -> Callable[[], object]:
        draw = np.random.default_rng(0)
        values = [draw.integers(v.bounds.lower, v.bounds.upper, POINTS, endpoint=True) for v in m.variables]
        return lambda: m.evaluate(values[: m.num_dims], values[m.num_dims :])

    cold_time = median(cold, rounds)  # before anything holds the map's expressions
    composed, simplified = parse(text), parse(text).simplify()
    few = max(rounds // 20, 3)
    return {
        "parse": median(lambda: lambda: parse(text), rounds),
        "print": median(lambda: composed.to_text, rounds),
        "compose": median(compose, rounds),
        f"evaluate {POINTS} points": median(lambda: evaluate(composed), few),
        f"evaluate {POINTS} points, simplified": median(lambda: evaluate(simplified), few),
        "simplify, same map": median(same, rounds),
        "simplify, equal map": median(lambda: parse(text).simplify, rounds),
        "simplify, cold": cold_time,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="What operations on indexing maps cost.")
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    columns = {name: measure(*pair, rounds) for name, pair in pairs().items()}
    print(header(f"Indexing maps, median of {rounds} rounds, microseconds"))
    rows = next(iter(columns.values()))
    print_table(["", *columns], [[row, *(f"{column[row]:.1f}" for column in columns.values())] for row in rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
