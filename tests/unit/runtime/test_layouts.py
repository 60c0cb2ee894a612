"""Logical arrays in memory order, and back."""

import itertools

import numpy as np
import pytest

from xla_emitters.program import ArraySpec
from xla_emitters.runtime.layouts import from_buffer, to_buffer


def spec(name: str, shape: tuple[int, ...], layout: tuple[int, ...] | None = None) -> ArraySpec:
    return ArraySpec(name, shape, tuple(reversed(range(len(shape)))) if layout is None else layout)


@pytest.mark.tiny
def test_memory_order_of_a_column_major_array() -> None:
    """The example at the head of the file."""
    array = np.array([["a", "b", "c"], ["d", "e", "f"]])
    assert "".join(to_buffer(array, spec("f32", (2, 3), (0, 1)))) == "adbecf"
    assert "".join(to_buffer(array, spec("f32", (2, 3)))) == "abcdef"


@pytest.mark.parametrize("layout", list(itertools.permutations(range(3))))
def test_every_layout_of_rank_three(layout: tuple[int, ...]) -> None:
    """Element by element: offset = sum of index times stride, strides growing in minor-to-major order. There and back."""
    shape = (2, 3, 4)
    what = spec("s32", shape, layout)
    array = np.arange(24, dtype=np.int32).reshape(shape)
    buffer = to_buffer(array, what)
    strides, stride = [0, 0, 0], 1
    for dim in layout:
        strides[dim], stride = stride, stride * shape[dim]
    for index in itertools.product(*(range(extent) for extent in shape)):
        assert buffer[sum(i * s for i, s in zip(index, strides, strict=True))] == array[index]
    back = from_buffer(buffer, what)
    assert np.array_equal(back, array)
    assert np.shares_memory(back, buffer)


def test_scalars_and_empty_arrays() -> None:
    one = np.array(3.0, np.float32)
    assert to_buffer(one, spec("f32", ())).shape == (1,)
    assert from_buffer(to_buffer(one, spec("f32", ())), spec("f32", ())).shape == ()
    empty = np.zeros((3, 0), np.float32)
    assert from_buffer(to_buffer(empty, spec("f32", (3, 0), (0, 1))), spec("f32", (3, 0), (0, 1))).shape == (3, 0)
