"""The three plans of a row reduction by price, without a GPU: `python -m benchmarks.row_plans`.

A sum of the rows of f32[rows,columns] with unknown sizes, with a block, a warp and eight lanes per row, at each of `SHAPES`: microseconds
that the cost model expects on an h200. The thresholds of `disc-specialize-fusion-with-speculation` are those with the smallest largest
loss: the time of the plan that they choose over that of the best plan.
"""

from itertools import combinations

import xla_emitters as xe
from xla_emitters.dynamic.buffers import disc_specialize_fusion_with_speculation as speculation
from xla_emitters.explore.cost.program_cost import price_work

COLUMNS = (8, 64, 128, 255, 256, 511, 512, 1023, 1024, 2047, 2048, 4095, 4096, 8192)
SHAPES = [(rows, columns) for rows in (32, 1024, 4096, 16384) for columns in COLUMNS if rows * columns <= 1 << 25]
EVERY = 1 << 40
PLANS = {"block": (-1, -1), "warp": (-1, EVERY), "eight lanes": (EVERY, EVERY)}
"""Plan -> limits with which it is chosen for all sizes."""
TEXT = """
func.func public @main(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
"""


def prices(plan: str) -> dict[tuple[int, int], float]:
    """Expected microseconds per shape."""
    limits = dict(zip(("lanes_columns", "warp_columns"), PLANS[plan], strict=True))
    speculation.LIMITS = speculation.LIMITS._replace(**limits)
    program = xe.compile(TEXT, record="none")
    return {
        (rows, columns): sum(cost.time for cost in price_work(program, {"d0": rows, "d1": columns})[0])
        for rows, columns in SHAPES
    }


def main() -> None:
    found = {plan: prices(plan) for plan in PLANS}
    print(f"{'rows':>6} {'columns':>8} {'block':>8} {'warp':>8} {'eight lanes':>12}  cheapest")
    for rows, columns in SHAPES:
        times = {plan: found[plan][rows, columns] for plan in PLANS}
        block, warp, lanes = times.values()
        print(
            f"{rows:6} {columns:8} {block:8.2f} {warp:8.2f} {lanes:12.2f}  {min(times, key=lambda plan: times[plan])}"
        )

    def largest_loss(lanes: int, warp: int) -> float:
        return max(
            found["eight lanes" if columns <= lanes else "warp" if columns <= warp else "block"][rows, columns]
            / min(found[plan][rows, columns] for plan in PLANS)
            for rows, columns in SHAPES
        )

    losses = {limits: largest_loss(*limits) for limits in combinations((64, 128, 256, 512, 1024, 2048, 4096, 8192), 2)}
    print("limits with the smallest largest loss")
    for lanes, warp in sorted(losses, key=lambda limits: losses[limits])[:5]:
        print(f"  eight lanes up to {lanes} columns, a warp up to {warp}: {losses[lanes, warp]:.2f}")


if __name__ == "__main__":
    main()
