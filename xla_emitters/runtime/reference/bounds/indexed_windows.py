"""Bounds of ops that read or write windows at uncertain indices: the hull over all windows that the indices may name.

An element of the result depends on one row of indices. So all rows are stepped together from the least index to the greatest, and the hull
of the op's results at each step holds every admissible one. Beyond `MOST_WINDOWS` steps, any element may be read from anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product

import numpy as np

from xla_emitters.dialects.hlo.convert import widen
from xla_emitters.dialects.hlo.dynamic_slices import DynamicSliceOp, DynamicUpdateSliceOp
from xla_emitters.dialects.hlo.gather_scatter import GatherOp
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.dtypes import Array
from xla_emitters.runtime.reference.tolerance import Bounds, hull, is_float, joined, point, settled, unknown_where

Evaluate = Callable[[Sequence[Array]], Array]

MOST_WINDOWS = 64
"""The most steps that are evaluated; beyond, any window is assumed."""


def bounds_of_window(
    op: GatherOp | DynamicSliceOp | DynamicUpdateSliceOp, operands: Sequence[Bounds], evaluate: Evaluate
) -> Bounds:
    """Every admissible result."""
    count = 2 if isinstance(op, DynamicUpdateSliceOp) else 1
    arrays, starts = operands[:count], operands[count:]
    if all(start.is_point for start in starts):
        return _at(arrays, [start.low for start in starts], evaluate)
    if isinstance(op, GatherOp):
        last = max((last for last in op.last_starts), default=0)
        found = _moved_together(op, arrays[0], starts[0], last, evaluate)
    else:
        sizes = dims_of(op.result if isinstance(op, DynamicSliceOp) else op.operands[1])
        places = [
            range(*(int(np.clip(widen(end), 0, most)) + more for end, more in zip(start.ends, (0, 1), strict=True)))
            for start, most in zip(starts, op.last_starts(sizes), strict=True)
        ]
        found = None
        if int(np.prod([len(place) for place in places])) <= MOST_WINDOWS:
            # As 64-bit numbers: clamped indices fit.
            chosen = ([np.asarray(at, np.int64) for at in window] for window in product(*places))
            found = reduce(hull, (_at(arrays, window, evaluate) for window in chosen))
    if found is not None:
        return found
    shape = dims_of(op.result)
    anywhere = _any_element(arrays[-1], shape)
    return hull(arrays[0], anywhere) if isinstance(op, DynamicUpdateSliceOp) else anywhere


def _at(arrays: Sequence[Bounds], starts: Sequence[Array], evaluate: Evaluate) -> Bounds:
    low = evaluate([*(array.low for array in arrays), *starts])
    if all(array.is_point for array in arrays):
        return point(low)
    return Bounds(low, evaluate([*(array.high for array in arrays), *starts]))


def _moved_together(op: GatherOp, array: Bounds, rows: Bounds, last: int, evaluate: Evaluate) -> Bounds | None:
    """The hull over all rows of indices; None if there are more than `MOST_WINDOWS`."""
    low, high = (np.clip(widen(end).astype(object), 0, last).astype(np.int64) for end in rows.ends)
    along, numbers = op.index_vector_dim.value.data, len(op.mapped)
    axes = tuple(dim for dim in range(low.ndim) if dim != along)
    spread = np.asarray((high - low).max(axes, initial=0)).reshape(-1)
    widths = [int(width) + 1 for width in (spread if along < low.ndim else np.broadcast_to(spread, numbers))]
    if int(np.prod(widths)) > MOST_WINDOWS:
        return None

    def moved(by: Sequence[int]) -> Array:
        shift = np.asarray(by, np.int64)
        if along < low.ndim:
            shift = shift.reshape([-1 if dim == along else 1 for dim in range(low.ndim)])
        return np.minimum(low + shift, high)

    return reduce(hull, (_at([array], [moved(by)], evaluate) for by in product(*map(range, widths))))


def _any_element(array: Bounds, shape: tuple[int, ...]) -> Bounds:
    """Bounds that contain every element of an array."""
    if not array.low.size:
        return Bounds(np.zeros(shape, array.low.dtype), np.ones(shape, array.low.dtype))

    def ends(part: Bounds) -> Bounds:
        low, high = np.min(part.low), np.max(part.high)
        found = settled(np.broadcast_to(low, shape), np.broadcast_to(high, shape))
        odd = np.isnan(low) if is_float(low.dtype) else np.asarray(False)
        return unknown_where(np.broadcast_to(odd | part.is_unknown.any(), shape), found)

    if array.low.dtype.kind != "c":
        return ends(array)
    real, imaginary = map(ends, array.parts)
    return joined(real, imaginary)
