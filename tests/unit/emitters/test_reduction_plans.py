"""Plans of reductions: launches as XLA's, and by enumeration that every element is read once and every result written once."""

import math
from collections import Counter
from itertools import product

import pytest
from long_lists import but_long, every

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.device import device
from xla_emitters.emitters.reduction_plans import (
    ReductionPlan,
    ReductionWork,
    plan_for,
    reduction_works,
    split_grid,
)
from xla_emitters.graph.reduction_kinds import ABSENT, FusionReductions, Reduction


def plan(is_row: bool, dims: tuple[int, int, int], bits: int = 32, output_bits: int = 0, gpu: str = "h200"):
    """The plan for reductions of arrays whose elements have `bits`."""
    found = FusionReductions(Reduction(is_row, dims), (), (), (), bits, output_bits or bits)
    return plan_for(found, device(gpu))


@pytest.mark.parametrize(
    ("is_row", "dims", "bits", "name", "grid", "block", "tile"),
    [
        (True, (1, 8, 2048), 32, "row", 4, 256, (2, 4)),
        (True, (1, 4096, 16384), 32, "row", 4096, 1024, (1, 33)),
        (True, (1, 100, 128), 64, "row", 13, 256, None),
        (True, (1, 2048, 64), 16, "multi-row", 256, 256, None),
        (True, (1, 1024, 4), 32, "multi-row", 16, 256, None),
        (False, (13, 1051, 321), 32, "column", 143, 1024, (32, 33)),
        (False, (1, 2048, 64), 32, "column", 1, 1024, (32, 65)),
        (False, (10240, 72, 32), 32, "small column", 10240, 128, (8, 33)),
        (False, (100, 256, 2), 32, "small column", 100, 64, (32, 3)),
    ],
)
def test_worked_examples(
    is_row: bool, dims: tuple[int, int, int], bits: int, name: str, grid: int, block: int, tile: tuple[int, ...] | None
):
    """Source: docs/reference/2 8 "Worked examples", 2.4.4-2.4.7."""
    made = plan(is_row, dims, bits)
    assert (made.name, made.launch.grid, made.launch.block) == (name, (grid, 1, 1), (block, 1, 1))
    assert (made.shared.tile if made.shared else None) == tile


def test_the_device_decides_how_much_a_thread_of_a_short_row_reads():
    assert plan(True, (1, 2048, 64), 16, gpu="a6000").launch.blocks == 128
    assert plan(True, (1, 2048, 64), 16, gpu="h200").launch.blocks == 256


def test_a_fusion_without_arrays_to_read_or_write_has_no_short_rows():
    """Every result is a tuple: nothing says how wide an element is."""
    assert plan(True, (1, 2048, 64), 32, ABSENT).name == "row"
    assert plan(True, (1, 2048, 64), ABSENT, 32).name == "multi-row"


SHAPES = [
    *[(True, (major, kept, minor)) for major in (1, 3) for kept in (1, 70) for minor in (1, 8, 33)],
    *[(True, (major, kept, minor)) for major in (1, 3) for kept in (1, 9) for minor in (100, 515, 516)],
    *[(False, (major, middle, minor)) for major in (1, 3) for middle in (32, 65) for minor in (2, 16, 33, 70)],
]
SMALL = [shape for shape in SHAPES if math.prod(shape[1]) < 15000]


OTHER_WORK = [
    (True, (1, 70, 96), ReductionWork(4, 8)),
    (True, (3, 5, 32), ReductionWork(4, 4)),
    (True, (1, 9, 4), ReductionWork(4, 1)),
    (True, (1, 3, 516), ReductionWork(4, 64)),
    (True, (1, 2, 700), ReductionWork(2, 192)),
    (False, (2, 33, 70), ReductionWork(2, 8)),
    (False, (1, 35, 132), ReductionWork(4, 16)),
    (False, (2, 40, 36), ReductionWork(1, 8)),
]


@pytest.mark.parametrize(("is_row", "dims", "work"), every(2, OTHER_WORK), ids=str)
def test_other_work_of_a_thread(is_row: bool, dims: tuple[int, int, int], work: ReductionWork):
    """As XLA's choice: each element read once, each result made of its own elements; the blocks of the same results are those found."""
    found = FusionReductions(Reduction(is_row, dims), (), (), (), 32, 32)
    made, own = plan_for(found, device("h200"), work), plan(is_row, dims)
    assert made != own
    assert set(Counter(points(made.input)).values()) == {1}
    assert {place: sorted(each) for place, each in carried_out(made).items()} == {
        place: sorted(each) for place, each in carried_out(own).items()
    }
    blocks = [results_of_blocks(each) for each in (made, own)]
    for block, results in blocks[0].items():
        wanted = {other for other, others in blocks[1].items() if others & results}
        assert set(made.same_blocks([block], own)) == wanted


def results_of_blocks(made: ReductionPlan) -> dict[int, set[tuple[int, ...]]]:
    ids = [name for name, _ in made.launch.ids]
    found: dict[int, set[tuple[int, ...]]] = {}
    for dims, symbols in made.output.points():
        block = dims[ids.index("bl_x")] if "bl_x" in ids else 0
        found.setdefault(block, set()).add(tuple(made.output.evaluate(dims, symbols)))
    return found


@pytest.mark.parametrize("bits", [16, 64])
@pytest.mark.parametrize(("is_row", "dims"), but_long(SHAPES, SHAPES[1::2]), ids=str)
def test_every_element_is_read_once_and_every_result_written_once(is_row: bool, dims: tuple[int, int, int], bits: int):
    """What a thread reads goes by warps' lanes and tiles to the thread that writes the result that it belongs to."""
    made = plan(is_row, dims, bits)
    reads = Counter(points(made.input))
    assert set(reads.values()) == {1}
    assert len(reads) == math.prod(dims)
    assert all(0 <= index < size for place in reads for index, size in zip(place, made.input_shape, strict=True))
    writes = Counter(points(made.output))
    assert set(writes.values()) == {1}
    assert len(writes) == math.prod(found_kept(is_row, dims))


def found_kept(is_row: bool, dims: tuple[int, int, int]) -> tuple[int, ...]:
    return Reduction(is_row, dims).kept


def points(map: IndexingMap) -> list[tuple[int, ...]]:
    return [tuple(map.evaluate(dims, symbols)) for dims, symbols in map.points()]


@pytest.mark.parametrize(("is_row", "dims"), every(4, SMALL), ids=str)
def test_what_is_summed_is_what_belongs_together(is_row: bool, dims: tuple[int, int, int]):
    """The plan carried out: each result is the set of its elements, each once."""
    made = plan(is_row, dims, 32)
    results = carried_out(made)
    kept = found_kept(is_row, dims)
    assert len(results) == math.prod(kept)
    wanted: dict[tuple[int, ...], list[int]] = {}
    for number, (i, j, k) in enumerate(product(*map(range, dims))):
        wanted.setdefault((j,) if is_row else (i, k), []).append(number)
    assert {place: sorted(elements) for place, elements in results.items()} == wanted


def linear(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    number = 0
    for i, size in zip(index, shape, strict=True):
        number = number * size + i
    return number


def carried_out(made: ReductionPlan) -> dict[tuple[int, ...], list[int]]:
    """By result, the elements (by number in memory) that the thread which writes it has in the end."""
    ids = [name for name, _ in made.launch.ids]
    extents = dict(made.launch.ids)
    found: dict[tuple[int, ...], list[int]] = {}
    partial: dict[tuple[int, ...], dict[tuple[int, int], list[int]]] = {}
    for dims, symbols in made.input.points():
        thread = dims[ids.index("th_x")] if "th_x" in ids else 0
        block = tuple(dim for name, dim in zip(ids, dims, strict=True) if name != "th_x")
        vector = symbols[-1] if made.vector > 1 else 0
        place = linear(tuple(made.input.evaluate(dims, symbols)), made.input_shape)
        partial.setdefault(block, {}).setdefault((thread, vector), []).append(place)
    threads = extents.get("th_x", 1)
    for block, own in partial.items():
        values = [[own.get((t, v), []) for t in range(threads)] for v in range(made.vector)]
        values = [shuffled(lanes, made.distance) for lanes in values]
        if made.shared is not None:
            tile: dict[tuple[int, ...], list[int]] = {}
            for dims, symbols in made.shared.write.points():
                at = tuple(made.shared.write.evaluate(dims, symbols))
                assert at not in tile
                tile[at] = values[symbols[-1] if symbols else 0][dims[0]]
            read = [[list[int]() for _ in range(threads)] for _ in range(made.vector)]
            for dims, symbols in made.shared.read.points():
                at = tuple(made.shared.read.evaluate(dims, symbols))
                read[symbols[-1] if symbols else 0][dims[0]] = tile[at]
            values = [shuffled(lanes, made.shared.distance) for lanes in read]
        for dims, symbols in made.output.points():
            if tuple(dim for name, dim in zip(ids, dims, strict=True) if name != "th_x") == block:
                thread = dims[ids.index("th_x")] if "th_x" in ids else 0
                found[tuple(made.output.evaluate(dims, symbols))] = values[symbols[-1] if symbols else 0][thread]
    return found


def shuffled(lanes: list[list[int]], distance: int) -> list[list[int]]:
    """Each lane's elements and those of the lanes above it, `distance` first; beyond the warp its own, as the hardware gives."""
    while distance:
        last = [min(t - t % 32 + 31, len(lanes) - 1) for t in range(len(lanes))]
        lanes = [own + lanes[t + distance if t + distance <= last[t] else t] for t, own in enumerate(lanes)]
        distance //= 2
    return lanes


def test_more_blocks_than_a_grid_is_wide():
    gpu = device("h200")
    assert split_grid(2**31 - 1, gpu) == (2**31 - 1, 1, 1)
    assert split_grid(2**31, gpu) == (2**30, 2, 1)
    assert split_grid(2**33 + 1, gpu) == (2**30 + 1, 8, 1)


@pytest.mark.parametrize(("is_row", "dims"), SHAPES, ids=str)
def test_what_has_one_value_is_no_loop(is_row: bool, dims: tuple[int, int, int]):
    """A vector of one element has no index, neither where it is read nor where it is written."""
    made = plan(is_row, dims, bits=64)
    for map in (made.input, made.output):
        assert [variable.name for variable in map.range_vars if variable.bounds.is_point] == []


@pytest.mark.parametrize(
    ("is_row", "dims"),
    [
        (True, (1, 65536, 32)),
        (True, (1, 4096, 96)),
        (True, (1, 512, 4096)),
        (True, (2, 8, 16384)),
        (False, (1, 64, 8192)),
    ],
)
def test_chains_of_other_work_keep_the_bound_on_rounding_errors(is_row: bool, dims: tuple[int, int, int]):
    """At most twice the longest of the reference's bound, counted on the plan carried out for small ones."""
    found = FusionReductions(Reduction(is_row, dims), (), (), (), 32, 32)
    works = reduction_works(found, device("h200"))
    assert works
    for work in works:
        made = plan_for(found, device("h200"), work)
        assert made.chain <= 2 * found.shape.longest_chain(32)
        sizes = [variable.bounds.upper + 1 for variable in made.input.range_vars]
        in_thread = math.prod(sizes) // made.vector
        assert made.chain >= in_thread
