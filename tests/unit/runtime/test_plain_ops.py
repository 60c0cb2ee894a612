"""Ops as rows of plain data: on all pairs of some numbers, against Python's integers reduced to the width of the type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xla_emitters.errors import DataError
from xla_emitters.library.arguments import numpy_type
from xla_emitters.runtime.plain_ops import COMPARISONS, ON_ELEMENTS, plain_function

TYPES = ("s8", "u8", "s32", "u64")


def numbers(name: str) -> list[int]:
    info = np.iinfo(numpy_type(name))
    return sorted(
        {info.min, info.min + 1, 0, 1, 2, 3, 7, info.max - 1, info.max} | ({-1, -3, -7} if info.min else set())
    )


def quotient(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else -1


PYTHON: dict[str, Callable[..., int]] = {
    "abs": abs,
    "add": lambda x, y: x + y,
    "and": lambda x, y: x & y,
    "clamp": lambda low, x, high: min(max(x, low), high),
    "convert": int,
    "copy": int,
    "divide": quotient,
    "maximum": max,
    "minimum": min,
    "multiply": lambda x, y: x * y,
    "negate": lambda x: -x,
    "not": lambda x: ~x,
    "or": lambda x, y: x | y,
    "remainder": lambda x, y: x - y * quotient(x, y) if y else x,
    "sign": lambda x: (x > 0) - (x < 0),
    "subtract": lambda x, y: x - y,
    "xor": lambda x, y: x ^ y,
}
UNARY = ("abs", "convert", "copy", "negate", "not", "sign")


def test_each_op_on_elements_is_tried() -> None:
    assert PYTHON.keys() | {"select"} == set(ON_ELEMENTS)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("opcode", PYTHON)
def test_integers_wrap_around(opcode: str, name: str) -> None:
    """The least number divided by -1 is itself; x / 0 has all bits set, and its remainder is x."""
    kind, some = numpy_type(name), numbers(name)
    rank = 3 if opcode == "clamp" else 1 if opcode in UNARY else 2
    grid = [axis.reshape(-1) for axis in np.meshgrid(*[np.array(some, kind)] * rank, indexing="ij")]
    out = np.empty(grid[0].shape, kind)
    with np.errstate(all="ignore"):
        plain_function({"opcode": opcode})(*grid, out)
    width = 8 * kind.itemsize
    wanted = [PYTHON[opcode](*map(int, point)) % (1 << width) for point in zip(*grid, strict=True)]
    assert [int(value) % (1 << width) for value in out] == wanted


@pytest.mark.parametrize("direction", COMPARISONS)
def test_comparisons(direction: str) -> None:
    some = np.array([-1, 0, 1], np.int32)
    x, y = (axis.reshape(-1) for axis in np.meshgrid(some, some))
    out = np.empty(9, np.bool_)
    plain_function({"opcode": "compare", "direction": direction})(x, y, out)
    assert out.tolist() == [getattr(int(a), f"__{direction.lower()}__")(int(b)) for a, b in zip(x, y, strict=True)]


def test_truth_values_are_added_by_or_and_multiplied_by_and() -> None:
    x, y, out = np.array([0, 0, 1, 1], np.bool_), np.array([0, 1, 0, 1], np.bool_), np.empty(4, np.bool_)
    for opcode, wanted in (("add", x | y), ("multiply", x & y), ("maximum", x | y), ("minimum", x & y), ("not", None)):
        plain_function({"opcode": opcode})(*((x,) if wanted is None else (x, y)), out)
        assert out.tolist() == (~x if wanted is None else wanted).tolist()


@pytest.mark.parametrize("shape", [(), (4,)])
def test_select_and_conversion_to_truth_values(shape: tuple[int, ...]) -> None:
    numbers, truth = np.full(shape, 2, np.int32), np.empty(shape, np.bool_)
    plain_function({"opcode": "convert"})(numbers, truth)
    assert truth.all()
    out = np.empty(shape, np.int32)
    plain_function({"opcode": "select"})(~truth, numbers, numbers + 1, out)
    assert (out == 3).all()


def test_parts_of_lists() -> None:
    x, out = np.arange(6, dtype=np.int64), np.empty(2, np.int64)
    plain_function({"opcode": "slice", "starts": [1], "limits": [5], "strides": [2]})(x, out)
    assert out.tolist() == [1, 3]
    both = np.empty(4, np.int64)
    plain_function({"opcode": "concatenate", "dimension": 0})(out, out + 10, both)
    assert both.tolist() == [1, 3, 11, 13]
    rows = np.empty((2, 3), np.int64)
    plain_function({"opcode": "broadcast", "dimensions": [0]})(out, rows)
    assert rows.tolist() == [[1, 1, 1], [3, 3, 3]]


def test_an_assertion_stops_with_its_numbers_in_its_words() -> None:
    stop = plain_function({"opcode": "shape-assertion", "message": "{0} is not {1}", "outputs": 0})
    stop(np.array(True), np.array(3), np.array(3))
    with pytest.raises(DataError, match="3 is not 4"):
        stop(np.array(False), np.array(3), np.array(4))


def test_a_constant_is_found_by_its_name_and_type() -> None:
    held, out = np.array([1.0, 2.0], np.float32), np.empty(2, np.float32)
    stored: dict[tuple[str, Any], Any] = {("c", np.dtype(np.float32)): held}
    row = {"opcode": "constant", "types": ["f32"], "constant": "c"}
    plain_function(row, lambda name, kind: stored[name, kind])(out)
    assert out.tolist() == [1, 2]


def test_a_convolution_takes_its_padding_from_an_operand() -> None:
    along = {"size": 0, "stride": 1, "pad": [0, 0], "base_dilation": 1, "window_dilation": 1, "reversed": False}
    config = {
        "types": ["f32", "f32"],
        "operands": ["image", "kernel"],
        "outputs": ["result"],
        "kind": "forward",
        "labels": ["bf0", "oi0", "bf0"],
        "window": [along],
        "feature_groups": 1,
        "batch_groups": 1,
        "scale": 1,
        "side_scale": 0,
        "activation": "none",
        "slope": 0,
    }
    row = {
        "name": "c",
        "opcode": "dynamic-conv",
        "types": ["f32", "f32", "s32", "f32"],
        "outputs": 1,
        "library": ["convolution", config],
    }
    x, w = np.arange(4, dtype=np.float32), np.array([1, 2, 3], np.float32)
    out = np.empty((1, 1, 5), np.float32)
    plain_function(row)(x.reshape(1, 1, 4), w.reshape(1, 1, 3), np.array([[1, 2]], np.int32), out)
    assert out.reshape(-1).tolist() == np.convolve(np.pad(x, (1, 2)), w[::-1], "valid").tolist()
