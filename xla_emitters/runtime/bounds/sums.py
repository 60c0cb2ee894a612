"""Sums whose order is open: how far roundings take them, whatever the order.

An element of a sum goes through at most n roundings, each by a factor of 1 + d, |d| <= u, half of eps. So a sum is off by at most
((1 + u)^n - 1) times the sum of magnitudes. What the operands may be off comes on top, and what the sum of reference is off itself.
Source: Higham, "Accuracy and Stability of Numerical Algorithms", 3.1 and 4.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xla_emitters.dtypes import Array, NumpyType
from xla_emitters.runtime.tolerance import Bounds, farthest, info, settled, unknown_where, wide


def growth(roundings: Any, unit: float) -> Any:
    """(1 + unit)^roundings - 1: how far so many roundings take a number, relative to its size."""
    return np.expm1(roundings * np.log1p(unit))


def unit_of(kind: NumpyType) -> float:
    """How far rounding to nearest takes a normal number of a float type, relative to its size."""
    return float(info(kind).eps) / 2


def smallest(kind: NumpyType) -> float:
    """The smallest number above zero: what a product may lose below the normal numbers."""
    return float(info(kind).smallest_subnormal)


def any_order(chain: int, terms: int, unit: float, sizes: Array, total: Array) -> Array:
    """How far additions may take a sum of so many terms, in any order in which none goes through more than `chain` of them.

    sizes  the sum of magnitudes
    total  the size of the sum, or more

    As each term is taken by (1 + unit)^chain; or as each of the additions is off by `unit` of a sum of some terms, which is no larger than
    the sum of those of one sign, (sizes + total) / 2, and no further off than the former.
    """
    by_terms = growth(chain, unit) * sizes
    return np.minimum(by_terms, max(0, terms - 1) * unit * ((sizes + total) / 2 + by_terms) * (1 + unit))


def around(kind: NumpyType, low: Array, high: Array, slack: Array, may_overflow: Array) -> Bounds:
    """[low - slack, high + slack], rounded to the type: rounding keeps order, so it holds all values of the type that are between.

    Infinities and NaNs that are certain stay; where an order may leave the type's range anything may come of it, but NaN stays NaN.
    """
    with np.errstate(all="ignore"):
        is_special, is_nan = (low == high) & ~np.isfinite(low), np.isnan(low) & np.isnan(high)
        # Beyond the last number of a type without infinity there is NaN.
        least, most = (float(farthest(kind, sign)) for sign in (-1, 1))
        ends = [
            np.where(may_overflow & ~is_nan, sign * np.inf, np.where(is_special, end, end + sign * slack))
            for end, sign in ((low, -1), (high, 1))
        ]
        return settled(*(np.asarray(end).clip(least, most).astype(kind) for end in ends))


def magnitudes(bounds: Bounds) -> Array:
    """The largest size of each element, in the wide type."""
    low = wide(bounds.low)
    np.abs(low, out=low)
    return low if bounds.is_point else np.maximum(low, np.abs(wide(bounds.high)))


def middle_and_radius(bounds: Bounds) -> tuple[Array, Array]:
    """The middle of the interval in the wide type, and how far the ends are from it."""
    low = wide(bounds.low)
    if bounds.is_point:
        return low, np.zeros_like(low)
    high = wide(bounds.high)
    middle = low / 2 + high / 2
    return middle, np.where(
        low == high, 0, np.maximum(high - middle, middle - low) * (1 + 4 * float(np.finfo(low.dtype).eps))
    )


def finite(sizes: Array, instead: float) -> Array:
    return np.where(np.isfinite(sizes), sizes, instead)


def sum_bounds(array: Bounds, init: Bounds, axes: tuple[int, ...], chain: int, unit: float) -> Bounds:
    """The sum of elements along `axes`, and of `init`, in any order in which none goes through more than `chain` additions.

    unit  how far an addition is off, relative to its result

    What is made of numbers that are not negative is not negative.
    """
    kind = array.low.dtype
    sizes, first = magnitudes(array), magnitudes(init)
    low = wide(array.low).sum(axes) + wide(init.low)
    high = low if array.is_point and init.is_point else wide(array.high).sum(axes) + wide(init.high)
    total = kept = sizes.sum(axes) + first
    if not np.isfinite(total).all():
        kept = finite(sizes, 0).sum(axes) + finite(first, 0)
    count = sizes.size // max(1, total.size) + 1
    chain, own = min(chain, count), 2 * growth(count, float(np.finfo(sizes.dtype).eps))
    slack = any_order(chain, count, unit, total, np.maximum(np.abs(low), np.abs(high))) + own * total
    found = around(kind, low, high, slack, kept * (1 + growth(chain, unit) + own) > float(info(kind).max))
    if not array.is_point:
        found = unknown_where(array.is_unknown.any(axes) & ~np.isnan(found.low), found)
    return within_sign(
        found, (array.low >= 0).all(axes) & (init.low >= 0), (array.high <= 0).all(axes) & (init.high <= 0)
    )


def within_sign(bounds: Bounds, is_positive: Array, is_negative: Array) -> Bounds:
    """The bounds cut off at zero where none of the terms is beyond it; unless nothing is known."""
    zero, known = bounds.low.dtype.type(0), ~bounds.is_unknown
    low = np.where(is_positive & known & (bounds.low < 0), zero, bounds.low)
    return Bounds(low, np.where(is_negative & known & (bounds.high > 0), zero, bounds.high))
