"""Four ways to distribute a reduction over threads, as launches and indexing maps.

    row            f32[8,2048] -> f32[8]      128 threads a row, two rows a block; each sums 8 pairs 256 elements apart, then the lanes of
                                              a warp combine by shuffles, and the 4 warps of a row through shared memory
    multi-row      f32[1024,4] -> f32[1024]   rows so short that a warp holds several: shuffles alone
    column         f32[96,4096] -> f32[4096]  32 columns by 32 rows at once: a row per warp; the 32 sums of a column are moved
                                              through shared memory to the lanes of one warp
    small column   f32[9000,8] -> f32[8]      rows so short that a warp reads several: a block reads the whole array in order

A plan consists of maps: `input` from ids and range variables to the elements that a thread reads, `output` from ids to those that it
writes. In between, partial results of threads are combined by shuffles over `distance` (0: none), then through a shared tile, written at
`shared.write` and read at `shared.read`, which is transposed so that the parts of one result are in one warp; shuffles follow again.
Elements outside a map's domain are not read or not written.
Source: docs/reference/2 2.4.4-2.4.7; XLA reduction.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import delinearize_in_bounds
from xla_emitters.device import Device
from xla_emitters.dialects.hlo.types import element_of, leaf_types
from xla_emitters.emitters.launch_ids import LaunchIds
from xla_emitters.graph.reduction_kinds import ABSENT, ELEMENTS_PER_THREAD, WARP, FusionReductions, vector_size
from xla_emitters.program import LaunchDimensions

ZERO = Expr.constant(0)
WARPS_DOWN = 32
"""Warps in a block of a column reduction; each starts one row below the previous one."""
SMALL_COLUMN_THREADS = 128
FEW_THREADS = 256
"""The most threads in a block that several short rows share."""


@dataclass(frozen=True)
class SharedStage:
    """How partial results are combined through shared memory.

    write     ids and vector index -> index in the tile, for the threads that write
    read      ids and vector index -> index in the tile, for the threads that read
    padding   elements added to the tile's last dim, against bank conflicts
    distance  the greatest distance of the shuffles that follow
    """

    write: IndexingMap
    read: IndexingMap
    padding: int
    distance: int

    @property
    def tile(self) -> tuple[int, ...]:
        """Sizes of the tile, padding included."""
        sizes = [self.write.simplify().result_range(i).upper + 1 for i in range(self.write.num_results)]
        return (*sizes[:-1], sizes[-1] + self.padding)


@dataclass(frozen=True)
class ReductionWork:
    """The work of one thread, where it differs from XLA's choice.

    vector   neighbours per access
    threads  row reductions: threads side by side along a row, a power of two up to a warp, or whole warps; columns: warps below each other
    """

    vector: int
    threads: int


@dataclass(frozen=True)
class ReductionPlan:
    """See the file's head.

    name         of the variant
    launch       blocks and threads of one group
    input_shape  the array that is read, reshaped so that maps are simple; row major, in memory order
    input        ids and range variables -> index into `input_shape`
    vector       partial results per thread; if above 1, the last range variable selects one
    distance     the greatest distance of the shuffles of the threads' sums; 0: none
    shared       the second stage; None where one warp computes the result
    output       ids, and the range variables of `shared.read` -> index over the kept dims, for the threads that write
    span         (n, m): a block computes m of each n results that are neighbours in memory
    chain        the most combinations that an element passes through, in its thread and across threads
    """

    name: str
    launch: LaunchDimensions
    input_shape: tuple[int, ...]
    input: IndexingMap
    vector: int
    distance: int
    shared: SharedStage | None
    output: IndexingMap
    span: tuple[int, int]
    chain: int

    def same_blocks(self, blocks: Sequence[int], other: ReductionPlan) -> Sequence[int]:
        """The blocks of another plan for the same reductions that compute the results of `blocks`."""
        found = set[int]()
        for block in blocks:
            group, block = divmod(block, self.launch.blocks)
            (run, own), (_, theirs) = self.span, other.span
            major, part = divmod(block, -(-run // own))
            last = min((part + 1) * own, run) - 1
            first_block = group * other.launch.blocks + major * -(-run // theirs)
            found.update(first_block + number for number in range(part * own // theirs, last // theirs + 1))
        return sorted(found)


def plan_for(found: FusionReductions, device: Device, work: ReductionWork | None = None) -> ReductionPlan:
    """The variant that suits a fusion's reductions, and its plan.

    work  one of `reduction_works`; None: XLA's choice
    """
    _, _, minor = found.shape.dims
    if found.shape.is_row:
        if work is not None:
            return (
                _lanes_of_rows(found, device, work.vector, work.threads)
                if work.threads <= WARP
                else _row(found, device, work)
            )
        return _multi_row(found, device) or _row(found, device)
    return _small_column(found, device) if WARP % minor == 0 else _column(found, device, work)


LOADS = (1, 2, 4, 8)
"""The candidates for the number of accesses of a thread along a row."""
WARPS_DOWN_CHOICES = (8, 16, WARPS_DOWN)
ACCESS_BITS = (64, 128)
"""The candidates for the width of an access."""


def reduction_works(found: FusionReductions, device: Device) -> Sequence[ReductionWork]:
    """The alternatives to XLA's choice of work per thread: wider accesses, more or fewer of them.

    The longest chain of additions is at most twice `Reduction.longest_chain`, so the bound on rounding errors stated there still holds:
    a unit in the last place is two roundings.
    """
    _, middle, minor = found.shape.dims
    if found.input_bits > max(ACCESS_BITS) or (WARP % minor == 0 and not found.shape.is_row):
        return ()
    sizes = sorted({max(1, bits // found.input_bits) for bits in ACCESS_BITS})
    works = list[ReductionWork]()
    for vector in [size for size in sizes if minor % size == 0] or [1]:
        if not found.shape.is_row:
            works += [
                ReductionWork(vector, down) for down in WARPS_DOWN_CHOICES if down <= middle and WARP * vector <= minor
            ]
            continue
        vectors = -(-minor // vector)
        lanes = [lanes for lanes in (1, 2, 4, 8, 16, WARP) if vectors % lanes == 0 and vectors // lanes <= LOADS[-1]]
        warps = [_rounded_up(-(-vectors // loads), WARP) for loads in LOADS if vectors > WARP * loads]
        fitting = [threads for threads in warps if threads <= device.threads_per_block_max]
        works += [ReductionWork(vector, threads) for threads in dict.fromkeys((*lanes, *fitting))]
    own = plan_for(found, device)
    longest = 2 * found.shape.longest_chain(min(found.input_bits, found.output_bits))
    plans = {work: plan_for(found, device, work) for work in works}
    return [
        work
        for work, plan in plans.items()
        if plan != own
        and plan.chain <= longest
        and stage_bytes(plan, found) <= device.shared_bytes_per_block
        and plan.launch.blocks >= min(own.launch.blocks, device.cores)
    ]


def stage_bytes(plan: ReductionPlan, found: FusionReductions) -> int:
    """Shared memory of a block in bytes: one tile for each value that a reduction carries."""
    results = [leaf for hero in found.reduce_heroes for leaf in leaf_types(hero.result.type)]
    tile = math.prod(plan.shared.tile) if plan.shared else 0
    return sum(tile * element_of(result).bits // 8 for result in results)


def split_grid(blocks: int, device: Device) -> tuple[int, int, int]:
    """A grid of `blocks` blocks along x; the y extent is doubled until x is small enough."""
    y = 1
    while -(-blocks // y) > device.grid_max_x:
        y = min(2 * y, device.grid_max_y)
    return (-(-blocks // y), y, 1)


# ------------------------------------------------------------------------------------------------- rows


def _row(found: FusionReductions, device: Device, work: ReductionWork | None = None) -> ReductionPlan:
    major, kept, minor = found.shape.dims
    threads = min(device.threads_per_block_max, _rounded_up(-(-minor // ELEMENTS_PER_THREAD), WARP))
    vector = vector_size(minor, threads, found.input_bits, found.reduce_heroes)
    if work is not None:
        threads, vector = work.threads, work.vector
    rows = _rows_per_block(kept, threads) if 2 * threads <= FEW_THREADS else 1
    vectors = minor // vector
    steps = -(-vectors // threads)
    launch = LaunchDimensions(split_grid(-(-kept // rows), device), (rows * threads, 1, 1))
    ids = LaunchIds(launch)
    row_in_block, along = delinearize_in_bounds(ids.thread, (rows, threads))
    row = ids.block * rows + row_in_block
    shape = (major, kept, vectors, vector)
    index = (ids.symbol(0), row, ids.symbol(1) * threads + along, ids.symbol(2))
    warps = threads // WARP
    shared = None
    if warps > 1:
        lane, warp = along % WARP, along // WARP
        shared = SharedStage(
            ids.of_threads(ids.map((row_in_block, warp), (), (lane, 1))),
            ids.of_threads(ids.map((row_in_block, lane), (), (along, warps))),
            padding=1 if warps % WARP == 0 else 0,
            distance=WARP // 2,
        )
    return ReductionPlan(
        "row",
        launch,
        shape,
        ids.map(index, _range_vars(major, steps, vector), *zip(index, shape, strict=True)),
        1,
        WARP // 2,
        shared,
        ids.map((row,), (), (along, 1), (row, kept)),
        (kept, rows),
        major * steps * vector + _halvings(WARP) + _halvings(warps),
    )


def _halvings(count: int) -> int:
    return (count - 1).bit_length()


def _range_vars(major: int, steps: int, vector: int) -> list[tuple[str, int]]:
    return [("major", major), ("step", steps), ("vector_index", vector)]


def _rounded_up(count: int, unit: int) -> int:
    return -(-count // unit) * unit


def _rows_per_block(rows: int, threads: int) -> int:
    """The number of rows, each of few threads, that share a block."""
    return rows if rows * threads <= FEW_THREADS else FEW_THREADS // threads


def _multi_row(found: FusionReductions, device: Device) -> ReductionPlan | None:
    """Plan for short rows; None if a row is longer than a warp or not a power of two."""
    _, kept, minor = found.shape.dims
    smallest = min(found.input_bits, found.output_bits)
    # In a fusion without parameters the results decide; without array results no element counts as narrow.
    largest = found.output_bits if found.input_bits == ABSENT else max(found.input_bits, found.output_bits)
    vector = min(minor, 64 // smallest)
    if largest >= 32:
        vector = min(vector, 128 // largest)
    if minor & (minor - 1) or minor > WARP * vector:
        return None

    def blocks(vector: int) -> int:
        return -(-kept // _rows_per_block(kept, minor // vector))

    while vector > 1 and blocks(vector) < device.cores:
        vector //= 2
    if minor > WARP * vector:
        return None
    return _lanes_of_rows(found, device, vector, minor // vector)


def _lanes_of_rows(found: FusionReductions, device: Device, vector: int, threads: int) -> ReductionPlan:
    """Plan for rows so short that a warp holds several: `threads` lanes per row, each with the same number of vectors."""
    major, kept, minor = found.shape.dims
    rows, steps = _rows_per_block(kept, threads), minor // (vector * threads)
    launch = LaunchDimensions(split_grid(-(-kept // rows), device), (rows * threads, 1, 1))
    ids = LaunchIds(launch)
    row_in_block, along = delinearize_in_bounds(ids.thread, (rows, threads))
    row = ids.block * rows + row_in_block
    shape = (major, kept, minor)
    index = (ids.symbol(0), row, (ids.symbol(1) * threads + along) * vector + ids.symbol(2))
    return ReductionPlan(
        "multi-row",
        launch,
        shape,
        ids.map(index, _range_vars(major, steps, vector), (row, kept)),
        1,
        threads // 2,
        None,
        ids.map((row,), (), (along, 1), (row, kept)),
        (kept, rows),
        major * steps * vector + _halvings(threads),
    )


# ------------------------------------------------------------------------------------------------- columns


def _column(found: FusionReductions, device: Device, work: ReductionWork | None = None) -> ReductionPlan:
    major, middle, minor = found.shape.dims
    vector, down = vector_size(minor, WARP, found.input_bits, found.reduce_heroes), WARPS_DOWN
    if work is not None:
        vector, down = work.vector, work.threads
    across = -(-minor // (WARP * vector))
    launch = LaunchDimensions(split_grid(major * across, device), (down * WARP, 1, 1))
    ids = LaunchIds(launch)
    warp, lane = ids.thread // WARP, ids.thread % WARP
    outer, block = delinearize_in_bounds(ids.block, (major, across))
    vectors = [("vector_index", vector)] if vector > 1 else []
    steps, of_step = -(-middle // down), ids.symbol(0)
    element = ids.symbol(1) if vector > 1 else ZERO
    row, column = warp + of_step * down, (block * WARP + lane) * vector + element
    # In the tile and in the result, only the index within the vector remains.
    element = ids.symbol(0) if vector > 1 else ZERO
    # In the last stage a column has as many threads as there were warps, side by side in one warp.
    of_columns, of_warps = ids.thread // down, ids.thread % down
    written = (block * WARP + of_columns) * vector + element
    return ReductionPlan(
        "column",
        launch,
        found.shape.dims,
        ids.map((outer, row, column), [("step", steps), *vectors], (row, middle), (column, minor)),
        vector,
        0,
        SharedStage(
            ids.of_threads(ids.map((lane, warp * vector + element), vectors)),
            ids.of_threads(ids.map((of_columns, of_warps * vector + element), vectors)),
            padding=1,
            distance=down // 2,
        ),
        ids.map((outer, written), vectors, (of_warps, 1), (written, minor)),
        (minor, WARP * vector),
        steps + _halvings(down),
    )


def _small_column(found: FusionReductions, device: Device) -> ReductionPlan:
    major, middle, minor = found.shape.dims
    vector = vector_size(middle * minor, WARP, found.input_bits, found.reduce_heroes)
    threads = SMALL_COLUMN_THREADS
    rows = vector * threads // minor
    while rows > WARP and vector > 1:
        vector, rows = vector // 2, rows // 2
    if rows > WARP:
        threads, rows = threads * WARP // rows, WARP
    launch = LaunchDimensions(split_grid(major, device), (threads, 1, 1))
    ids = LaunchIds(launch)
    vectors = [("vector_index", vector)] if vector > 1 else []
    steps = -(-(middle * minor) // (vector * threads))
    element = ids.symbol(1) if vector > 1 else ZERO
    place = (ids.thread + ids.symbol(0) * threads) * vector + element
    index = (ids.block, place // minor, place % minor)
    element = ids.symbol(0) if vector > 1 else ZERO
    write = delinearize_in_bounds(ids.thread * vector + element, (rows, minor))
    turned = ids.thread + element * threads
    column, row = delinearize_in_bounds(turned, (minor, rows))
    padding = 0 if threads == WARP and vector == 1 else -(-minor // (threads * vector))
    of_input = ids.map(index, [("step", steps), *vectors], (place, middle * minor), (ids.block, major))
    return ReductionPlan(
        "small column",
        launch,
        found.shape.dims,
        of_input,
        vector,
        0,
        SharedStage(
            ids.of_threads(ids.map(write, vectors)),
            ids.of_threads(ids.map((row, column), vectors)),
            padding,
            distance=rows // 2,
        ),
        ids.map((ids.block, turned // rows), vectors, (ids.thread % rows, 1), (ids.block, major)),
        (minor, minor),
        steps + _halvings(rows),
    )
