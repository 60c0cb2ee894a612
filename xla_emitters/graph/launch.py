"""Launch dimensions: the number of threads, the elements per thread, and the map from ids to elements.

    bf16[6,512,4096] on h200                    unroll 4: more elements than resident threads
    3145728 threads of 4 elements               128 a block, 24576 blocks
    (th_x, bl_x)[vector_index] -> (bl_x floordiv 4096, (bl_x floordiv 8) mod 512,
                                   (bl_x mod 8) * 512 + th_x * 4 + vector_index)

    f32[20] on h200                             1 block of 20 threads
    s8[1000003]                                 7813 x 128 and the constraint bl_x * 128 + th_x in [0, 1000002]

Consecutive threads process consecutive groups of elements in the result's memory order, so writes coalesce. The constraint masks threads
beyond the last element. Ids of extent 1 are not in the map.
Source: docs/reference/2 2.0.1-2.0.4; seed document, "MLIR Conversion".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import delinearize_in_bounds
from xla_emitters.device import Device
from xla_emitters.errors import Place, Unsupported
from xla_emitters.program import LaunchDimensions

THREADS_PER_BLOCK = 128
"""Four warps: enough to hide latency, few enough that blocks balance over the chip."""


def launch_for(elements: int, unroll: int, device: Device, place: Place | None = None) -> LaunchDimensions:
    """The blocks and threads that visit each of `elements` elements at least once, `unroll` elements per thread.

    A block of fewer than 128 threads is not rounded up to whole warps: 20 elements take 20 threads.
    place    of the fusion, for the message
    raises   Unsupported if the grid does not fit even when its blocks are split over x and y.

    >>> from xla_emitters.device import device
    >>> launch_for(6 * 512 * 4096, unroll=4, device=device("a6000"))
    LaunchDimensions(grid=(24576, 1, 1), block=(128, 1, 1), sizes=())
    """
    if elements <= 1:
        return LaunchDimensions((1, 1, 1), (1, 1, 1))
    groups = -(-elements // unroll)
    threads = min(THREADS_PER_BLOCK, groups)
    blocks = -(-groups // threads)
    y = -(-blocks // device.grid_max_x)
    x = -(-blocks // y)
    if y > device.grid_max_y:
        raise Unsupported(
            f"{elements} elements need {blocks} blocks of {threads} threads, more than {device.name} can launch",
            stage="launch",
            place=place,
            details=(f"a grid holds {device.grid_max_x} x {device.grid_max_y} blocks",),
        )
    return LaunchDimensions((x, y, 1), (threads, 1, 1))


def work_item_map(
    launch: LaunchDimensions, shape: Sequence[int], minor_to_major: Sequence[int], unroll: int
) -> IndexingMap:
    """The map from thread and block ids, and `vector_index` over a thread's elements, to the index of an element.

    shape           of the result, dimension sizes
    minor_to_major  its layout: dimension numbers, fastest varying in memory first
    returns         ids -> indices, simplified; constrained to the result's elements if the grid has more
    """
    elements = math.prod(shape)
    chunk = unroll * launch.blocks * launch.threads
    extents = dict(launch.ids)
    dims = tuple(Variable(Interval(0, extent - 1), name) for name, extent in launch.ids)
    ids = {name: Expr.variable(i) for i, name in enumerate(extents)}
    range_vars = (
        Variable(Interval(0, -(-elements // chunk) - 1), "chunk"),
        Variable(Interval(0, unroll - 1), "vector_index"),
    )
    linear = Expr.variable(len(dims)) * chunk + Expr.variable(len(dims) + 1)
    stride = unroll
    for axis, threads, blocks in zip("xyz", launch.block, launch.grid, strict=True):
        zero = Expr.constant(0)
        linear += (ids.get(f"th_{axis}", zero) + ids.get(f"bl_{axis}", zero) * threads) * stride
        stride *= threads * blocks
    # In memory order, slowest first. The slowest needs no mod, because the constraint bounds `linear`.
    order = tuple(reversed(minor_to_major))
    along = delinearize_in_bounds(linear, [shape[dimension] for dimension in order])
    results = [along[order.index(dimension)] for dimension in range(len(shape))]
    bounds = ((linear, Interval(0, elements - 1)),)
    full = IndexingMap(tuple(results), dims=dims, range_vars=range_vars, constraints=bounds)
    return full.simplify().remove_unused_symbols()[0]
