"""Launch dimensions and work-item maps: the seed's, XLA's known figures, and by enumeration that every element is visited once."""

import math
from collections import Counter

import pytest

from xla_emitters.device import DEVICES, device
from xla_emitters.errors import Unsupported
from xla_emitters.graph.launch import launch_for, work_item_map
from xla_emitters.program import LaunchDimensions

GELU = (6, 512, 4096)
ROW_MAJOR = {1: (0,), 2: (1, 0), 3: (2, 1, 0)}


def test_gelu_has_the_seeds_launch_and_map():
    launch = launch_for(math.prod(GELU), 4, device("a6000"))
    assert launch == LaunchDimensions(grid=(24576, 1, 1), block=(128, 1, 1))
    assert str(work_item_map(launch, GELU, ROW_MAJOR[3], 4)) == (
        "(th_x, bl_x)[vector_index] -> ("
        "bl_x floordiv 4096, (bl_x floordiv 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + vector_index), "
        "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]"
    )


@pytest.mark.parametrize(
    ("elements", "unroll", "blocks", "threads"),
    [
        (0, 1, 1, 1),
        (1, 1, 1, 1),
        (20, 1, 1, 20),
        (128, 1, 1, 128),
        (129, 1, 2, 128),
        (20 * 40 * 300, 4, 469, 128),
        (20 * 40 * 300, 1, 1875, 128),
        (1000003, 1, 7813, 128),
        (7, 2, 1, 4),
    ],
)
def test_launch(elements: int, unroll: int, blocks: int, threads: int):
    for gpu in DEVICES:
        assert launch_for(elements, unroll, gpu) == LaunchDimensions((blocks, 1, 1), (threads, 1, 1))


def test_blocks_beyond_the_grid_go_to_y():
    launch = launch_for(2**31 * 128 * 3, 1, device("h200"))
    x, y, z = launch.grid
    assert (y, z) == (4, 1)
    assert x * y * 128 >= 2**31 * 128 * 3
    assert x <= device("h200").grid_max_x


def test_a_grid_that_does_not_fit_is_refused():
    with pytest.raises(Unsupported, match="more than h200 can launch"):
        launch_for(2**60, 1, device("h200"))


def test_a_count_that_does_not_divide_is_masked_by_a_constraint():
    launch = launch_for(1000003, 1, device("h200"))
    assert str(work_item_map(launch, (1000003,), ROW_MAJOR[1], 1)) == (
        "(th_x, bl_x) -> (bl_x * 128 + th_x), domain: th_x in [0, 127], bl_x in [0, 7812], "
        "bl_x * 128 + th_x in [0, 1000002]"
    )


def test_ids_of_extent_one_are_not_in_the_map():
    assert (
        str(work_item_map(LaunchDimensions((1, 1, 1), (20, 1, 1)), (20,), (0,), 1))
        == "(th_x) -> (th_x), domain: th_x in [0, 19]"
    )
    assert str(work_item_map(LaunchDimensions((1, 1, 1), (1, 1, 1)), (), (), 1)) == "() -> ()"
    assert str(work_item_map(LaunchDimensions((1, 1, 1), (1, 1, 1)), (1, 1), (1, 0), 1)) == "() -> (0, 0)"


@pytest.mark.parametrize("unroll", [1, 2, 4, 8])
@pytest.mark.parametrize(
    ("shape", "minor_to_major"),
    [
        ((7,), (0,)),
        ((5, 3), (1, 0)),
        ((5, 3), (0, 1)),
        ((1, 4, 33), (2, 1, 0)),
        ((4, 1, 33), (0, 2, 1)),
        ((300,), (0,)),
        ((1,), (0,)),
    ],
)
@pytest.mark.parametrize(
    "launch",
    [
        None,
        LaunchDimensions((2, 2, 1), (8, 2, 1)),
        LaunchDimensions((1, 1, 3), (16, 1, 2)),
        LaunchDimensions((1, 1, 1), (2, 1, 1)),
    ],
)
def test_every_element_is_visited_once_in_memory_order(
    shape: tuple[int, ...], minor_to_major: tuple[int, ...], unroll: int, launch: LaunchDimensions | None
):
    """Also by grids of two and three dimensions, and by grids that are too small and go round in chunks."""
    launch = launch or launch_for(math.prod(shape), unroll, device("h200"))
    visits = work_item_map(launch, shape, minor_to_major, unroll)
    seen = Counter(visits.evaluate(dims, symbols) for dims, symbols in visits.points())
    assert set(seen.values()) <= {1}
    assert len(seen) == math.prod(shape)
    assert all(0 <= i < size for index in seen for i, size in zip(index, shape, strict=True))


def test_neighbouring_threads_write_neighbouring_memory():
    """Whatever the layout: one step of th_x is `unroll` elements further in memory."""
    shape, order = (64, 32), (0, 1)
    visits = work_item_map(launch_for(2048, 4, device("h200")), shape, order, 4)

    def place(thread: int, block: int, vector_index: int) -> int:
        i, j = visits.evaluate((thread, block), (vector_index,))
        return j * shape[0] + i

    assert [place(5, 2, v) - place(5, 2, 0) for v in range(4)] == [0, 1, 2, 3]
    assert place(6, 2, 0) - place(5, 2, 0) == 4
    assert place(0, 3, 0) - place(0, 2, 0) == 512
