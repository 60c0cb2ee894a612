"""Bounds of a scatter whose updates of one element come in any order, and may be combined with one another first.

    sum          the sum in twice the precision, widened by the roundings of one addition per update of the element
    product      likewise, relative to the product; both are unbounded where some order leaves the type's range
    replaced     the hull of the element's updates
    max, and ..  independent of the order
    others       as the reductions' others: the body's bounds, moved outwards by their width where an element has several updates

An element without updates keeps its value. Where the program promises that no element gets two updates, there is one order. Where an index
is not certain, any update may be for any element: the result is unknown.
Source: docs/reference/contracts "Numbers"; Higham, "Accuracy and Stability", 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xla_emitters.dialects.hlo.called import arrays_of
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.gather_scatter import ScatterOp, turns
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dtypes import Array, Kind
from xla_emitters.graph.scatters import combining_opcode
from xla_emitters.runtime.reference.bounds.reduction_bounds import Run, nothing_known, once_more, taken
from xla_emitters.runtime.reference.bounds.sums import around, growth, magnitudes, middle_and_radius, unit_of
from xla_emitters.runtime.reference.tolerance import Bounds, info, joined, point, settled, unknown_where, wide

Evaluate = Callable[[Sequence[Array]], Any]


def bounds_of_scatter(
    op: ScatterOp, body: ComputationOp, operands: Sequence[Bounds], evaluate: Evaluate, run: Run
) -> Any:
    """Bounds of the result, or a tuple of them.

    body      the computation that combines an element with an update
    evaluate  the reference: the op's value on arrays
    run       evaluates a computation on bounds
    """
    count = len(op.arrays)
    if not operands[count].is_point:
        return nothing_known(op)
    kind, opcode = element_of(op.arrays[0]).kind, combining_opcode(body)
    is_exact = opcode is not None and opcode not in ("add", "multiply", "parameter")
    has_one_order = (
        op.has_unique_indices or is_exact or (opcode != "parameter" and kind not in (Kind.FLOAT, Kind.COMPLEX))
    )
    if count > 1 or has_one_order:
        found = _in_order(op, operands, evaluate, run)
        return found[0] if count == 1 else tuple(found)
    array, indices, update = operands
    updates, targets = op.places(indices.low)
    if opcode == "add" or opcode == "parameter":
        combine = _sum if opcode == "add" else _any_of
        parts = [combine(a, u, updates, targets) for a, u in zip(array.parts, update.parts, strict=True)]
        return parts[0] if kind is not Kind.COMPLEX else joined(*parts)
    counts = np.bincount(targets, minlength=array.low.size).reshape(array.low.shape)
    (found,) = _in_order(op, operands, evaluate, run)
    if kind is Kind.COMPLEX or opcode != "multiply":
        (outwards,) = _carried(op, operands, run, is_outward=True)
        moved = once_more(outwards)
        return settled(*(np.where(counts > 1, wider, end) for wider, end in zip(moved.ends, found.ends, strict=True)))
    anywhere = _product(array, update, updates, targets, counts)
    return Bounds(np.where(counts > 1, anywhere.low, found.low), np.where(counts > 1, anywhere.high, found.high))


def _in_order(op: ScatterOp, operands: Sequence[Bounds], evaluate: Evaluate, run: Run) -> list[Bounds]:
    """Update after update, in the reference's order."""
    if all(bounds.is_point for bounds in operands):
        return list(map(point, arrays_of(evaluate([bounds.low for bounds in operands]))))
    return _carried(op, operands, run, is_outward=False)


def _carried(op: ScatterOp, operands: Sequence[Bounds], run: Run, *, is_outward: bool) -> list[Bounds]:
    count = len(op.arrays)
    updates, targets = op.places(operands[count].low)
    shape = operands[0].low.shape
    carried = [tuple(end.reshape(-1).copy() for end in bounds.ends) for bounds in operands[:count]]
    for turn in turns(targets):
        at, of = targets[turn], updates[turn]
        given = [taken(bounds, lambda end, of=of: end.reshape(-1)[of]) for bounds in operands[count + 1 :]]
        new = run([*(Bounds(low[at], high[at]) for low, high in carried), *given], is_outward=is_outward)
        for (low, high), bounds in zip(carried, new, strict=True):
            low[at], high[at] = bounds.ends
    return [settled(low.reshape(shape), high.reshape(shape)) for low, high in carried]


def _sum(array: Bounds, update: Bounds, updates: Array, targets: Array) -> Bounds:
    """The sum of updates. Atomics in memory may flush numbers below the smallest normal one to zero."""
    kind = array.low.dtype

    def added(one: Array, other: Array) -> Array:
        return _combined(np.add, one, other, updates, targets)

    low = added(wide(array.low), wide(update.low))
    high = low if array.is_point and update.is_point else added(wide(array.high), wide(update.high))
    sizes = added(magnitudes(array), magnitudes(update))
    counts = np.bincount(targets, minlength=low.size).reshape(low.shape)
    relative = growth(counts, unit_of(kind)) + 2 * growth(counts, float(np.finfo(low.dtype).eps))
    slack = relative * sizes + counts * float(info(kind).smallest_normal)
    leaves = (counts > 1) & np.isfinite(sizes) & (sizes + slack > float(info(kind).max))
    found = around(kind, low, high, slack, leaves)
    is_unknown = _combined(np.maximum, array.is_unknown, update.is_unknown, updates, targets)
    return unknown_where(is_unknown & ~np.isnan(found.low), found)


def _product(array: Bounds, update: Bounds, updates: Array, targets: Array, counts: Array) -> Bounds:
    """As the product of a reduction: the product of the middles, the error of the factors, and the roundings of each update."""
    kind = array.low.dtype

    def multiplied(of: Callable[[Array], Array], *factors: Array) -> Array:
        return _combined(np.multiply, of(factors[0]), of(factors[1]), updates, targets)

    with np.errstate(all="ignore"):
        (middle, reach), (other, other_reach) = (middle_and_radius(bounds) for bounds in (array, update))
        value = multiplied(np.asarray, middle, other)
        most = np.abs(middle) + reach, np.abs(other) + other_reach
        largest = multiplied(np.asarray, *most)
        grown = multiplied(lambda sizes: np.maximum(sizes, 1), *most)
        shrunk = multiplied(lambda sizes: np.minimum(sizes, 1), *most)
        relative = growth(counts, unit_of(kind)) + 4 * growth(counts + 1, float(np.finfo(middle.dtype).eps))
        tiny = float(info(kind).smallest_normal)
        # What underflow loses may be multiplied by all factors above 1.
        slack = relative * largest + (largest - np.abs(value)) + tiny * np.maximum(grown, 1)
        leaves = (
            (grown > float(info(kind).max)) | ((shrunk < tiny) & (shrunk > 0)) | (np.isnan(largest) & ~np.isnan(value))
        )
    found = around(kind, value, value, slack, leaves)
    is_unknown = _combined(np.maximum, array.is_unknown, update.is_unknown, updates, targets)
    return unknown_where(is_unknown & ~np.isnan(found.low), found)


def _combined(ufunc: np.ufunc, array: Array, update: Array, updates: Array, targets: Array) -> Array:
    """Each element of `array` and all updates that go to it."""
    total = array.reshape(-1).copy()
    ufunc.at(total, targets, update.reshape(-1)[updates])
    return total.reshape(array.shape)


def _any_of(array: Bounds, update: Bounds, updates: Array, targets: Array) -> Bounds:
    low, high = (end.reshape(-1).copy() for end in array.ends)
    for number, turn in enumerate(turns(targets)):
        at = targets[turn]
        least, most = (end.reshape(-1)[updates[turn]] for end in update.ends)
        low[at] = least if number == 0 else np.minimum(low[at], least)
        high[at] = most if number == 0 else np.maximum(high[at], most)
    return settled(low.reshape(array.low.shape), high.reshape(array.low.shape))
