"""Sorts by keys and by comparators, top k; against Python's own stable sort."""

from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.errors import Unsupported
from xla_emitters.library import call
from xla_emitters.library.sort import merge_sorted

SPECIAL = np.array([2, np.nan, -0.0, 0.0, -np.inf, 1, -0.0, np.inf, -1, 2, 0.0], np.float32)


def key(
    operand: int = 0, order: str = "numeric", *, descending: bool = False, part: str | None = None
) -> dict[str, Any]:
    return {"operand": operand, "order": order, "descending": descending, "part": part}


def ordered(arrays: Sequence[Any], types: str, *keys: dict[str, Any], dimension: int = 0) -> list[Any]:
    config = {"types": types.split(), "dimension": dimension, "keys": list(keys), "comparator": None}
    results = [(name, array.shape) for name, array in zip(types.split(), arrays, strict=True)]
    return call("sort", config, arrays, results)


@pytest.mark.tiny
def test_the_order_of_floats() -> None:
    """numeric: zeros are equal, so they keep their order; total: -0 before +0."""
    places = np.arange(len(SPECIAL), dtype=np.int32)
    _, numeric = ordered([SPECIAL, places], "f32 s32", key())
    _, total = ordered([SPECIAL, places], "f32 s32", key(order="total"))
    assert numeric.tolist() == [4, 8, 2, 3, 6, 10, 5, 0, 9, 7, 1]
    assert total.tolist() == [4, 8, 2, 6, 3, 10, 5, 0, 9, 7, 1]
    _, canonical = ordered([SPECIAL, places], "f32 s32", key(order="canonical", descending=True))
    assert canonical.tolist() == [1, 7, 0, 9, 5, 2, 3, 6, 10, 8, 4]


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("s8", [-128, 127, 0, -1, 5]),
        ("u8", [0, 255, 128, 127, 1]),
        ("u64", [1 << 63, 0, (1 << 64) - 1, 7, 8]),
        ("s64", [-(1 << 63), (1 << 63) - 1, 0, -1, 1]),
        ("pred", [True, False, True, False, False]),
        ("f16", [1.5, -2, 0, 65504, -65504]),
        ("s4", [-8, 7, 0, -1, 3]),
    ],
)
@pytest.mark.parametrize("descending", [False, True])
def test_every_kind_of_number(name: str, numbers: list[Any], descending: bool) -> None:
    kinds = {"pred": np.bool_, "f16": np.float16, "s4": ml_dtypes.int4}
    array = np.array(numbers, np.uint64 if name == "u64" else None).astype(
        kinds.get(name, f"{name[0]}{name[1:]}".replace("s", "int").replace("u", "uint"))
    )
    (got,) = ordered([array], name, key(descending=descending))
    assert got.tolist() == sorted(array.tolist(), reverse=descending)


def test_later_keys_decide_ties_and_the_rest_goes_along() -> None:
    """Along a middle dimension, three operands, two keys in opposite directions."""
    random = np.random.default_rng(0)
    first, second = (
        random.integers(0, 4, (2, 40, 3)).astype(np.int32),
        random.integers(0, 3, (2, 40, 3)).astype(np.float32),
    )
    third = np.arange(first.size, dtype=np.int64).reshape(first.shape)
    arrays = ordered([first, second, third], "s32 f32 s64", key(0, descending=True), key(1), dimension=1)
    for i in range(2):
        for j in range(3):
            rows = sorted(
                zip(first[i, :, j], second[i, :, j], third[i, :, j], strict=True), key=lambda row: (-row[0], row[1])
            )
            for array, column in zip(arrays, zip(*rows, strict=True), strict=True):
                assert array[i, :, j].tolist() == list(column)


def test_parts_of_complex_numbers() -> None:
    numbers = np.array([2 + 1j, 1 + 5j, 2 - 3j, 1 + 2j], np.complex64)
    (got,) = ordered([numbers], "c64", key(part="real"), key(part="imag", descending=True))
    assert got.tolist() == [1 + 5j, 1 + 2j, 2 + 1j, 2 - 3j]


def test_a_comparator_is_called_on_arrays() -> None:
    """By the last digit: a stable merge sort, for every number of elements up to beyond a few runs."""
    calls = 0

    def by_last_digit(text: str, arrays: Sequence[Any]) -> Any:
        nonlocal calls
        assert text == "by last digit"
        calls += 1
        return arrays[0] % 10 < arrays[1] % 10

    for count in [*range(19), 64, 100]:
        numbers = np.random.default_rng(count).integers(0, 1000, (3, count)).astype(np.int32)
        config = {"types": ["s32"], "dimension": 1, "keys": None, "comparator": "by last digit"}
        calls = 0
        (got,) = call("sort", config, [numbers], [("s32", numbers.shape)], on_elements=by_last_digit)
        assert got.tolist() == [sorted(row, key=lambda number: number % 10) for row in numbers.tolist()]
        assert calls <= 36


def test_a_comparator_that_is_no_order_gives_a_permutation() -> None:
    random = np.random.default_rng(0)
    order = merge_sorted(lambda one, other: random.random(one.shape) < 0.5, 5, 33)
    assert (np.sort(order, axis=1) == np.arange(33)).all()


def test_merging_agrees_with_pythons_sort_for_any_weak_order() -> None:
    ranks = np.random.default_rng(1).integers(0, 5, 37)
    order = merge_sorted(lambda one, other: ranks[one] < ranks[other], 1, 37)[0]
    wanted = sorted(range(37), key=cmp_to_key(lambda i, j: int(ranks[i]) - int(ranks[j])))
    assert order.tolist() == wanted


def test_without_an_evaluator_a_comparator_is_refused() -> None:
    config = {"types": ["s32"], "dimension": 0, "keys": None, "comparator": "..."}
    with pytest.raises(Unsupported, match="no sort by this comparator without HLO's reference"):
        call("sort", config, [np.arange(3, dtype=np.int32)], [("s32", (3,))])


def test_the_first_k_and_where_they_were() -> None:
    """Of equal ones the earlier first; NaN is the largest."""
    array = np.array([[1, 3, 3, np.nan, -1], [0, 0, 0, 0, 0]], np.float32)
    config = {"types": ["f32"], "keys": [key(order="total", descending=True)]}
    values, places = call("top_k", config, [array], [("f32", (2, 3)), ("s32", (2, 3))])
    assert places.tolist() == [[3, 1, 2], [0, 1, 2]]
    assert np.array_equal(values, np.array([[np.nan, 3, 3], [0, 0, 0]], np.float32), equal_nan=True)
