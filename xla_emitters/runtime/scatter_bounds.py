"""What a scatter may give whose updates of one element come in any order, and are perhaps combined with one another first.

    sum          the sum in twice the precision, and around it (updates of the element) x eps x (sum of magnitudes)
    product      likewise, relative to the product; and for both anything where some order leaves the type's range on the way
    replaced     what any of the element's updates is
    max, and ..  the order does not matter
    others       what the reference gives, and an ulp for each update of the element

An element without updates is as it was. Where the program promises that no element gets two updates, there is one order.
Source: docs/reference/contracts "Numbers"; Higham, "Accuracy and Stability", 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.gather_scatter import ScatterOp, turns
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dtypes import Array, Kind
from xla_emitters.fusions.scatters import combining_opcode
from xla_emitters.runtime.reduction_bounds import around, corners_of_each
from xla_emitters.runtime.tolerance import Bounds, widen

Evaluate = Callable[[Sequence[Array]], Any]


def bounds_of_scatter(op: ScatterOp, body: ComputationOp, operands: Sequence[Bounds], evaluate: Evaluate) -> Any:
    """Bounds of the result, or a tuple of them.

    body      the computation that combines an element with an update
    evaluate  the reference: the op's value on arrays
    """
    in_order = corners_of_each(operands, evaluate)
    if len(in_order) > 1:
        return tuple(in_order)
    (found,) = in_order
    array, indices, update = operands
    kind, opcode = element_of(op.arrays[0]).kind, combining_opcode(body)
    is_exact = opcode is not None and opcode not in ("add", "multiply", "parameter")
    if op.has_unique_indices or is_exact or not indices.is_point:
        return found
    if opcode != "parameter" and kind not in (Kind.FLOAT, Kind.COMPLEX):
        return found
    updates, targets = op.places(indices.low)
    if opcode == "add" or opcode == "parameter":
        combine = _sum if opcode == "add" else _any_of
        ends = [
            combine(
                Bounds(part(array.low), part(array.high)), Bounds(part(update.low), part(update.high)), updates, targets
            )
            for part in ((np.real, np.imag) if kind is Kind.COMPLEX else (np.asarray,))
        ]
        if len(ends) == 1:
            return ends[0]
        return Bounds(*(_complex(one, other) for one, other in zip(_ends(ends[0]), _ends(ends[1]), strict=True)))
    counts = np.bincount(targets, minlength=found.low.size).reshape(found.low.shape)
    if kind is Kind.COMPLEX or opcode != "multiply":
        low, high = found.low, found.high
        for left in range(int(counts.max(initial=0))):
            low = np.where(counts > left, widen(low, 1, -1), low)
            high = np.where(counts > left, widen(high, 1, +1), high)
        return Bounds(low, high)
    slack = _eps(found.low) * (counts + 1) * np.maximum(abs(_wide(found.low)), abs(_wide(found.high)))
    grown, shrunk = (
        _combined(np.multiply, part(_magnitudes(array), 1), part(_magnitudes(update), 1), updates, targets)
        for part in (np.maximum, np.minimum)
    )
    leaves = (counts > 1) & ((grown > _most(found.low)) | ((shrunk < _tiny(found.low)) & (shrunk > 0)))
    return _around(
        found.low.dtype, _wide(found.low), _wide(found.high), np.where(counts > 1, slack + _tiny(found.low), 0), leaves
    )


def _sum(array: Bounds, update: Bounds, updates: Array, targets: Array) -> Bounds:
    def added(one: Array, other: Array) -> Array:
        return _combined(np.add, one, other, updates, targets)

    low, high = (added(_wide(a), _wide(u)) for a, u in zip(_ends(array), _ends(update), strict=True))
    magnitudes = added(_magnitudes(array), _magnitudes(update))
    counts = np.bincount(targets, minlength=low.size).reshape(low.shape)
    slack = counts * (_eps(array.low) * magnitudes + _tiny(array.low))
    leaves = (counts > 1) & np.isfinite(magnitudes) & (magnitudes + slack > _most(array.low))
    return _around(array.low.dtype, low, high, slack, leaves)


def _combined(ufunc: np.ufunc, array: Array, update: Array, updates: Array, targets: Array) -> Array:
    """Each element of `array` and all updates that go to it."""
    total = array.reshape(-1).copy()
    ufunc.at(total, targets, update.reshape(-1)[updates])
    return total.reshape(array.shape)


def _any_of(array: Bounds, update: Bounds, updates: Array, targets: Array) -> Bounds:
    low, high = (end.reshape(-1).copy() for end in _ends(array))
    for number, turn in enumerate(turns(targets)):
        at = targets[turn]
        least, most = (end.reshape(-1)[updates[turn]] for end in _ends(update))
        low[at] = least if number == 0 else np.minimum(low[at], least)
        high[at] = most if number == 0 else np.maximum(high[at], most)
    return Bounds(low.reshape(array.low.shape), high.reshape(array.low.shape))


def _ends(bounds: Bounds) -> tuple[Array, Array]:
    return bounds.low, bounds.high


def _wide(array: Array) -> Array:
    """`array` in a type of twice its precision, or in the widest that there is."""
    return array.astype(np.longdouble if array.dtype == np.float64 else np.float64)


def _magnitudes(bounds: Bounds) -> Array:
    return np.maximum(abs(_wide(bounds.low)), abs(_wide(bounds.high)))


def _eps(array: Array) -> float:
    finfo: Any = ml_dtypes.finfo
    return float(finfo(array.dtype).eps)


def _tiny(array: Array) -> float:
    """What is lost where memory takes numbers below the smallest normal one as zero."""
    finfo: Any = ml_dtypes.finfo
    return float(finfo(array.dtype).smallest_normal)


def _most(array: Array) -> float:
    finfo: Any = ml_dtypes.finfo
    return float(finfo(array.dtype).max)


def _around(kind: np.dtype[Any], low: Array, high: Array, slack: Array, leaves: Array) -> Bounds:
    """[low - slack, high + slack], rounded outwards; anything where an order leaves the type's range."""
    found = around(kind, low, high, slack, leaves)
    return Bounds(
        np.where(slack > 0, widen(found.low, 1, -1), found.low),
        np.where(slack > 0, widen(found.high, 1, +1), found.high),
    )


def _complex(real: Array, imaginary: Array) -> Array:
    return (real + 1j * imaginary).astype(np.result_type(real, np.complex64))
