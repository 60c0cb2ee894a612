"""gather, scatter: shapes that fit and shapes that do not, values and maps."""

import numpy as np
import pytest
from unit.dialects.hlo.one_instruction import run, shaped, verify

from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.errors import VerifyError

BATCHING = (
    ("", "do not pair dimensions of one size"),  # one dimension of the array, none of the indices
    ("0", "do not pair dimensions of one size"),  # 8 batches in the array, 5 rows
    ("1", "do not pair dimensions of one size"),  # the dimension along which a row lies
    ("2", "are not different dimensions of the indices"),
)
"""What an array f32[8,3,64], of which dimension 0 is a batching one, does not go with in indices s32[5,1]."""


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (
            "f32[5,65] gather(x, n), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,"
            " slice_sizes={1,65}",
            "no slice of sizes {1,65} fits inside",
        ),
        (
            "f32[5,64] gather(x, n), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,"
            " slice_sizes={1,64}",
            "do not name the 1 dimensions of a slice",
        ),
        (
            "f32[8,64] scatter(x, n, y), update_window_dims={1,2}, scatter_dims_to_operand_dims={0}, index_vector_dim=1,"
            " to_apply=add",
            "the updates do not fit the indices",
        ),
        *(
            (
                f"f32[5,1,64] gather(y, n), offset_dims={{1,2}}, collapsed_slice_dims={{}}, operand_batching_dims={{0}},"
                f" start_indices_batching_dims={{{numbers}}}, start_index_map={{1}}, index_vector_dim=1, slice_sizes={{1,1,64}}",
                message,
            )
            for numbers, message in BATCHING
        ),
        *(
            (
                f"f32[8,3,64] scatter(y, n, u), update_window_dims={{1,2}}, inserted_window_dims={{}}, input_batching_dims={{0}},"
                f" scatter_indices_batching_dims={{{numbers}}}, scatter_dims_to_operand_dims={{1}}, index_vector_dim=1,"
                " to_apply=add",
                message,
            )
            for numbers, message in BATCHING
        ),
        (
            "f32[8,64] scatter(x, n, u, u), update_window_dims={1,2}, scatter_dims_to_operand_dims={0}, index_vector_dim=1,"
            " to_apply=add",
            "takes n arrays, the indices and n updates",
        ),
    ],
)
def test_what_does_not_fit(instruction: str, message: str):
    with pytest.raises(VerifyError) as error:
        verify(instruction)
    assert message in str(error.value)


def taken(x: np.ndarray, starts: np.ndarray, mapped: list[int], sizes: list[int]) -> list[np.ndarray]:
    """The window of each row of starts, clamped; rows along the last dimension."""
    windows = list[np.ndarray]()
    for row in starts.reshape(-1, len(mapped)):
        at = [0] * x.ndim
        for dim, start in zip(mapped, row, strict=True):
            at[dim] = min(max(int(start), 0), x.shape[dim] - sizes[dim])
        windows.append(x[tuple(slice(a, a + n) for a, n in zip(at, sizes, strict=True))])
    return windows


def test_gather_takes_windows():
    x = shaped(6, 8)
    rows = np.array([[0, 0], [3, 2], [-4, 100], [5, 7], [100, -1]], np.int64)
    code = "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={1,0}, index_vector_dim=1, slice_sizes={2,3}"
    op, (got,) = run(f"s32[5,2,3] gather(p0, p1), {code}", x, rows)
    assert got.tolist() == np.stack(taken(x, rows, [1, 0], [2, 3])).tolist()
    of_element, of_start = op.output_to_input()
    for index in np.ndindex(5, 2, 3):
        row = [int(rows[of_start.evaluate(index, (number,))]) for number in range(2)]
        assert row == rows[index[0]].tolist()
        starts = (min(max(row[0], 0), 5), min(max(row[1], 0), 4))  # of dimensions 1 and 0, as start_index_map says
        assert x[of_element.evaluate(index, starts)] == got[index]


def test_a_gather_drops_dimensions_and_puts_batches_anywhere():
    x, rows = shaped(6, 8), np.array([5, -1, 9], np.int64)
    code = "offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={6,1}"
    _, (got,) = run(f"s32[6,3] gather(p0, p1), {code}", x, rows)
    assert got.tolist() == x[:, [5, 0, 7]].tolist()


def test_a_gather_with_batching_dimensions():
    x, rows = shaped(2, 6, 4), np.array([[1, 5], [0, 2], [9, -9]], np.int64)
    code = (
        "offset_dims={2}, collapsed_slice_dims={1}, operand_batching_dims={0}, start_indices_batching_dims={1},"
        " start_index_map={1}, index_vector_dim=2, slice_sizes={1,1,4}"
    )
    _, (got,) = run(f"s32[3,2,4] gather(p0, p1), {code}", x, rows)
    want = [[x[batch, min(max(int(rows[row, batch]), 0), 5)].tolist() for batch in range(2)] for row in range(3)]
    assert got.tolist() == want


def test_starts_beyond_every_index_are_clamped_and_not_wrapped():
    x, rows = shaped(4), np.array([[2**64 - 1], [2**63], [2]], np.uint64)
    code = "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}"
    op, (got,) = run(f"s32[3] gather(p0, p1), {code}", x, rows)
    assert got.tolist() == [3, 3, 2]
    assert dims_of(op.result) == (3,)


def scattered(x: np.ndarray, rows: np.ndarray, updates: np.ndarray, mapped: list[int]) -> np.ndarray:
    """`x` with each update added at its row of indices, if it lies inside; rows along the last dimension, windows of full rank."""
    result = x.copy()
    for row, window in zip(rows.reshape(-1, len(mapped)), updates.reshape(-1, *updates.shape[-x.ndim :]), strict=True):
        at = [0] * x.ndim
        for dim, start in zip(mapped, row, strict=True):
            at[dim] = int(start)
        if all(0 <= a <= size - n for a, n, size in zip(at, window.shape, x.shape, strict=True)):
            result[tuple(slice(a, a + n) for a, n in zip(at, window.shape, strict=True))] += window
    return result


PLUS = "plus { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT sum = s32[] add(a, b) }\n"


def test_scatter_adds_windows_and_skips_those_that_do_not_lie_inside():
    x, updates = shaped(6, 8), shaped(5, 2, 3)
    rows = np.array(
        [[0, 0], [3, 2], [-1, 0], [5, 4], [6, 0]], np.int64
    )  # of dimensions 1 and 0; [-1, 0] and [6, 0] lie outside
    code = "update_window_dims={1,2}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, to_apply=plus"
    _, (got,) = run(f"s32[6,8] scatter(p0, p1, p2), {code}", x, rows, updates, computations=PLUS)
    assert got.tolist() == scattered(x, rows, updates, [1, 0]).tolist()
    assert got.tolist() != x.tolist()


def test_scatter_into_equal_places_goes_in_order_of_the_indices():
    """(x * 2 + u) of one element after the other; the window dimension comes first."""
    code = "update_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=twice"
    body = (
        "twice { a = s32[] parameter(0)\n b = s32[] parameter(1)\n two = s32[] constant(2)\n"
        " m = s32[] multiply(a, two)\n ROOT sum = s32[] add(m, b) }\n"
    )
    updates = np.array([[1, 2, 3], [10, 20, 30]], np.int32)
    rows = np.array([[1], [0], [1]], np.uint8)
    _, (got,) = run(f"s32[4] scatter(p0, p1, p2), {code}", np.zeros(4, np.int32), rows, updates, computations=body)
    # row 0: [., 1, 10, .]; row 1: [2, 2 * 1 + 20, 10, .]; row 2: [2, 2 * 22 + 3, 2 * 10 + 30, .]
    assert got.tolist() == [2, 47, 50, 0]


def test_scatter_drops_dimensions_and_keeps_batches():
    x, rows = shaped(2, 6, 4), np.array([[1, 5], [0, 2], [9, -9]], np.int64)
    updates = shaped(3, 2, 4) * 100
    code = (
        "update_window_dims={2}, inserted_window_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={1},"
        " scatter_dims_to_operand_dims={1}, index_vector_dim=2, to_apply=plus"
    )
    _, (got,) = run(f"s32[2,6,4] scatter(p0, p1, p2), {code}", x, rows, updates, computations=PLUS)
    want = x.copy()
    for row, batch in np.ndindex(2, 2):
        want[batch, rows[row, batch]] += updates[row, batch]
    assert got.tolist() == want.tolist()


def test_a_scatter_of_several_arrays():
    """Each takes the other's update: what is combined sees all old values and all updates."""
    body = (
        "swap { a = s32[] parameter(0)\n b = s32[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] parameter(3)\n"
        " e = s32[] add(a, d)\n f = s32[] subtract(b, c)\n ROOT both = (s32[], s32[]) tuple(e, f) }\n"
    )
    code = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=swap"
    one, two = np.array([1, 2, 3], np.int32), np.array([4, 5, 6], np.int32)
    rows, u, v = np.array([[2], [0]], np.int32), np.array([10, 20], np.int32), np.array([30, 40], np.int32)
    _, (first, second) = run(
        f"(s32[3], s32[3]) scatter(p0, p1, p2, p3, p4), {code}", one, two, rows, u, v, computations=body
    )
    assert (first.tolist(), second.tolist()) == ([41, 2, 33], [-16, 5, -4])


def test_a_window_over_a_whole_dimension_needs_no_index():
    code = "update_window_dims={0,1}, scatter_dims_to_operand_dims={1}, index_vector_dim=0, to_apply=plus"
    x, update = shaped(2, 5), np.ones((2, 2), np.int32)
    _, (got,) = run(f"s32[2,5] scatter(p0, p1, p2), {code}", x, np.array([3], np.int32), update, computations=PLUS)
    want = x.copy()
    want[:, 3:] += 1
    assert got.tolist() == want.tolist()
