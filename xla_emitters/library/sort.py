"""Sorts along one dimension, by keys or by any comparator; and the first k elements of a sort.

    keys    [{"operand": 0, "descending": true, "order": "total"}, {"operand": 1, ...}]        the first one decides, ties by the next

Each key becomes an array of integers with the same order; then the arrays are sorted by the last key, the one before it, and so on, each
time stably. `order` states how a key compares:

    "numeric"   integers and pred by value; floats too, -0 equal to +0, NaN after all numbers (HLO's comparison has no order for NaN)
    "total"     floats by HLO's total order: -NaN < -inf < ... < -0 < +0 < ... < +inf < NaN
    "canonical" a total order in which zeros are equal, and NaNs: after all numbers

    "radix"     a total order in which zeros are equal: CUB's

`part` is "real" or "imag" for a key that is a part of a complex operand. Without keys, a merge sort calls the configuration's comparator
(HLO text) on arrays: log2(n) rounds that double the runs, each with at most log2(n) + 1 calls on all elements at once.
A comparator that is not an order still gives a permutation.
Source: docs/reference/1 6.8 "sort"; HLO's comparison types.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xla_emitters.errors import DataError, Unsupported
from xla_emitters.library.arguments import Array, LibraryArguments, is_float, widened

IsBefore = Callable[[Array, Array], Array]
"""(positions, positions) -> whether the element at the first precedes the one at the second."""


def sort(arguments: LibraryArguments) -> list[Array]:
    """The operands, sorted together, stably.

    raises  Unsupported for a comparator if `on_elements` is None
    """
    config, xp = arguments.config, arguments.xp
    dimension = config["dimension"]
    moved = [xp.moveaxis(array, dimension, -1) for array in arguments.operands]
    order = _order(arguments, moved)
    found = [xp.take_along_axis(array, order, axis=-1) for array in moved]
    return [xp.ascontiguousarray(xp.moveaxis(array, -1, dimension)) for array in found]


def top_k(arguments: LibraryArguments) -> list[Array]:
    """The first k of each row and their positions; of equal ones the earlier first. The key is the configuration's."""
    xp, (operand,) = arguments.xp, arguments.operands
    k = arguments.results[0][1][-1]
    if k > operand.shape[-1]:
        raise DataError(f"no {k} largest of {list(operand.shape)}", stage="library")
    order = _by_keys(arguments.config["keys"], [operand], arguments.types, xp)[..., :k]
    return [xp.take_along_axis(operand, order, axis=-1), arguments.result(1, order)]


def _order(arguments: LibraryArguments, moved: Sequence[Array]) -> Array:
    """The permutation along the last dimension that sorts."""
    config, xp = arguments.config, arguments.xp
    if moved[0].size == 0 or moved[0].shape[-1] == 1:
        return xp.zeros(moved[0].shape, np.int64)
    if config["keys"] is not None:
        return _by_keys(config["keys"], moved, arguments.types, xp)
    if arguments.on_elements is None or arguments.on_gpu:
        where = "on a GPU" if arguments.on_gpu else "without HLO's reference"
        raise Unsupported(
            f"no sort by this comparator {where}",
            stage="library",
            help="sorts by keys are: operands compared with LT or GT, one after the other",
        )
    on_elements, text = arguments.on_elements, config["comparator"]
    shape = moved[0].shape
    rows = math.prod(shape[:-1])
    flat = [array.reshape(rows, shape[-1]) for array in moved]

    def is_before(one: Array, other: Array) -> Array:
        return on_elements(text, [np.take_along_axis(array, at, axis=1) for array in flat for at in (one, other)])

    return merge_sorted(is_before, rows, shape[-1]).reshape(shape)


def _by_keys(keys: Sequence[Mapping[str, Any]], arrays: Sequence[Array], types: Sequence[str], xp: Any) -> Array:
    order = None
    for key in reversed(keys):
        operand: int = key["operand"]
        values = sortable(arrays[operand], types[operand], key, xp)
        if order is None:
            order = _stable(values, xp)
        else:
            order = xp.take_along_axis(order, _stable(xp.take_along_axis(values, order, axis=-1), xp), axis=-1)
    if order is None:
        shape = arrays[0].shape
        return xp.broadcast_to(xp.arange(shape[-1]), shape)
    return order


def _stable(values: Array, xp: Any) -> Array:
    return xp.argsort(values, axis=-1, kind="stable")


def sortable(array: Array, name: str, key: Mapping[str, Any], xp: Any) -> Array:
    """Integers whose ascending order is the key's order."""
    values: Array = widened(array, name, xp)
    if part := key.get("part"):
        values, name = (xp.real(values) if part == "real" else xp.imag(values)), "f32" if name == "c64" else "f64"
    if is_float(name):
        values = _float_order(xp.ascontiguousarray(values).reshape(values.shape), key["order"], xp)
    elif name == "pred":
        values = values.astype(np.uint8)
    return ~values if key["descending"] else values


def _float_order(values: Array, order: str, xp: Any) -> Array:
    if order != "total":
        values = xp.where(values == 0, values.dtype.type(0), values)
    if order in ("numeric", "canonical"):
        values = xp.where(xp.isnan(values), xp.asarray(np.nan, values.dtype), values)
    bits = values.view(f"int{8 * values.dtype.itemsize}")
    return xp.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def merge_sorted(is_before: IsBefore, rows: int, count: int) -> Array:
    """Positions 0 ... count - 1 in order, for each row; equal ones in the order of their positions. [rows, count]"""
    order = np.broadcast_to(np.arange(count), (rows, count)).copy()
    width = 1
    while width < count and rows:
        order = _merged(is_before, order, width)
        width *= 2
    return order


def _merged(is_before: IsBefore, order: Array, width: int) -> Array:
    """Sorted runs of `width`, merged in pairs.

    The new position of an element is its position in its run, plus the number of elements before it in the other run, found by bisection.
    """
    count = int(order.shape[1])
    at: Array = np.arange(count)
    run = at // width
    is_left = run % 2 == 0
    other = np.where(is_left, run + 1, run - 1) * width
    ends = np.minimum(other + width, count)
    low = np.broadcast_to(np.minimum(other, count), order.shape).copy()
    high = np.broadcast_to(np.maximum(ends, np.minimum(other, count)), order.shape).copy()
    for _ in range(width.bit_length()):
        middle = (low + high) // 2
        open_ = low < high
        theirs = np.take_along_axis(order, np.minimum(middle, count - 1), axis=1)
        # A left element follows elements strictly before it; a right one also those equal to it.
        first, second = np.where(is_left, theirs, order), np.where(is_left, order, theirs)
        before = is_before(first, second)
        goes_up = open_ & np.where(is_left, before, ~before)
        low = np.where(goes_up, middle + 1, low)
        high = np.where(open_ & ~goes_up, middle, high)
    pair = run // 2 * (2 * width)
    places = pair + (at - run * width) + (low - np.minimum(other, count))
    # If the comparator is not an order, two elements may get one position; sorting them gives a permutation anyway.
    return np.take_along_axis(order, np.argsort(places, axis=1, kind="stable"), axis=1)
