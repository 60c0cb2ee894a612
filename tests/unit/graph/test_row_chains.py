"""The longest chain of combinations in a kernel that scans a row, counted from what its threads do."""

import math

import pytest

from xla_emitters.graph.row_chains import chain_of_scan


def counted(columns: int, per_row: int, width: int) -> int:
    """The combinations that the row's last element goes through at most, step by step as `row_scans` makes them."""
    steps = math.ceil(columns / (per_row * width))
    own, lanes, warps = width - 1, min(32, per_row), per_row // 32
    depth = own + round(math.log2(lanes))  # the last lane's total of a step
    if warps <= 1:
        carried = 0  # the initial value
        for _ in range(steps - 1):
            carried = max(carried, depth) + 1
    else:
        carried, groups = 0, math.ceil(steps * warps / 32)
        for _ in range(groups):
            carried = max(carried, depth + 5) + 1
    return max(carried, depth) + 1 + 1


@pytest.mark.parametrize("columns", [2, 3, 31, 32, 100, 1000, 4096, 16384, 24576])
@pytest.mark.parametrize(
    ("per_row", "width"), [(1, 1), (1, 4), (8, 1), (16, 4), (32, 2), (32, 8), (64, 4), (256, 4), (1024, 8)]
)
def test_no_chain_is_longer(columns: int, per_row: int, width: int) -> None:
    assert (
        counted(columns, per_row, width)
        <= chain_of_scan(columns, per_row, width)
        <= 2 * counted(columns, per_row, width) + 3
    )
