"""Error of sums whose order is open: upper bounds for any order.

An element of a sum goes through at most n roundings, each by a factor of 1 + d, |d| <= u, half of eps. So a sum is off by at most
((1 + u)^n - 1) times the sum of magnitudes. The operands' error and that of the reference's own sum are added.
Source: Higham, "Accuracy and Stability of Numerical Algorithms", 3.1 and 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from xla_emitters.dtypes import Array, NumpyType
from xla_emitters.runtime.reference.tolerance import Bounds, farthest, info, settled, unknown_where, wide


def growth(roundings: Any, unit: float) -> Any:
    """(1 + unit)^roundings - 1: the relative error of that many roundings."""
    return np.expm1(roundings * np.log1p(unit))


def unit_of(kind: NumpyType) -> float:
    """The relative error of rounding a normal number of a float type to nearest."""
    return float(info(kind).eps) / 2


def smallest(kind: NumpyType) -> float:
    """The smallest number above zero: the most that a product may lose by underflow."""
    return float(info(kind).smallest_subnormal)


def any_order(chain: int, terms: int, unit: float, sizes: Array, total: Array) -> Array:
    """Error of the additions of a sum of `terms` terms, in any order in which no term goes through more than `chain` of them.

    sizes  the sum of magnitudes
    total  the magnitude of the sum, or more

    The smaller of two bounds: each term is off by (1 + unit)^chain; or each addition is off by `unit` of a partial sum, which is at most
    the sum of the terms of one sign, (sizes + total) / 2, plus the error by the former bound.
    """
    by_terms = growth(chain, unit) * sizes
    return np.minimum(by_terms, max(0, terms - 1) * unit * ((sizes + total) / 2 + by_terms) * (1 + unit))


def around(kind: NumpyType, low: Array, high: Array, slack: Array, may_overflow: Array) -> Bounds:
    """[low - slack, high + slack], rounded to the type: rounding is monotone, so this contains all values of the type in between.

    Certain infinities and NaNs stay; where some order may overflow the result is unknown, but NaN stays NaN. With NaN at one end only the
    result is unknown: infinities may cancel or not.
    """
    with np.errstate(all="ignore"):
        is_special, is_nan = (low == high) & ~np.isfinite(low), np.isnan(low) & np.isnan(high)
        may_overflow = may_overflow | (np.isnan(low) != np.isnan(high))
        # Above the largest number of a type without infinity is NaN.
        least, most = (float(farthest(kind, sign)) for sign in (-1, 1))
        ends = [
            np.where(may_overflow & ~is_nan, sign * np.inf, np.where(is_special, end, end + sign * slack))
            for end, sign in ((low, -1), (high, 1))
        ]
        return settled(*(np.asarray(end).clip(least, most).astype(kind) for end in ends))


def magnitudes(bounds: Bounds) -> Array:
    """The largest magnitude of each element, in the wide type."""
    low = wide(bounds.low)
    np.abs(low, out=low)
    return low if bounds.is_point else np.maximum(low, np.abs(wide(bounds.high)))


def middle_and_radius(bounds: Bounds) -> tuple[Array, Array]:
    """The middle of the interval in the wide type, and the distance of its ends."""
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
    """The sum of the elements along `axes` and of `init`, in any order in which no term goes through more than `chain` additions.

    unit  relative error of an addition

    A sum of nonnegative numbers is nonnegative.
    """
    kind = array.low.dtype
    first, terms = magnitudes(init), wide(array.low)
    low = terms.sum(axes) + wide(init.low)
    # Of a point, its own wide numbers turn into their sizes: another array as large would take most of the time.
    sizes = np.abs(terms, out=terms) if array.is_point else magnitudes(array)
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
    """The bounds cut off at zero where all terms have one sign; unknown bounds stay."""
    zero, known = bounds.low.dtype.type(0), ~bounds.is_unknown
    low = np.where(is_positive & known & (bounds.low < 0), zero, bounds.low)
    return Bounds(low, np.where(is_negative & known & (bounds.high > 0), zero, bounds.high))


# ---------------------------------------------------------------------------------------------------- by the spacing of numbers


def half_spacing(sizes: Array, kind: NumpyType) -> Array:
    """Largest error of rounding a number of magnitude up to `sizes` to nearest: half the spacing of the type's numbers there."""
    limits = info(kind)
    _, exponents = np.frexp(np.maximum(sizes, float(limits.smallest_normal)))
    return np.ldexp(float(limits.eps), exponents - 2)


@dataclass(frozen=True)
class RunningSum:
    """A sequential sum, and the range of a kernel's sum.

    center  the sum of the center's terms
    share   0 where the rounding covers any error of the term, else 1
    own     upper bound of: a kernel's sum, less the center's sum and the differences of the terms with share 1
    """

    center: Array
    share: Array
    own: tuple[Array, Array]


def running_sum(low: Array, high: Array, terms: Array, init: Array, kind: NumpyType) -> RunningSum:
    """Sums one after the other, along the first dimension, each rounded to the type.

    low, high  the interval of each term; all arrays hold numbers of the type as float64
    terms      the center's terms
    init       known; where sums start

    A partial sum S + x is rounded to a multiple of g, the distance between the numbers there.
        S and x are multiples of g                nothing is lost
        S is one, and all S + x have this g       S + round(x), whatever S is: where round(x) is one number, x has no share
        otherwise                                 up to g / 2 is lost
    Sums are monotone in their terms, so the sums of the lows and of the highs are the ends of a partial sum: where they are closer to
    each other than the error accumulated so far, they are used instead, and the terms so far have share 0.
    """
    shape = terms.shape[1:]
    least = most = center = np.broadcast_to(init, shape).astype(np.float64)
    own_low, own_high = np.zeros(shape), np.zeros(shape)
    share = np.ones(terms.shape)
    inexact, eps = np.zeros(shape), float(np.finfo(np.float64).eps)
    for number, (a, b, x) in enumerate(zip(low, high, terms, strict=True)):
        half = half_spacing(np.maximum(np.abs(least + a), np.abs(most + b)), kind)
        half = np.maximum(half, half_spacing(np.abs(center + x), kind))
        is_coarse = half_spacing(nearest_to_zero(least, most), kind) >= half
        is_exact = is_coarse & (half_spacing(nearest_to_zero(a, b), kind) >= half)
        exact = center + x
        after = exact.astype(kind).astype(np.float64)
        missed = after - exact
        lost = np.where(is_exact, 0, -half - missed), np.where(is_exact, 0, half - missed)
        # All of one spacing: the rounding of x alone decides, except half way, where the last digit of S does.
        is_alone = is_coarse & ~is_exact & (half_spacing(nearest_to_zero(least + a, most + b), kind) == half)
        spacing = 2 * half
        given = np.rint((after - center) / spacing)
        taken = (np.ceil(a / spacing - 0.5) - given) * spacing, (np.floor(b / spacing + 0.5) - given) * spacing
        is_taken = is_alone & (taken[1] - taken[0] <= lost[1] - lost[0])
        share[number] = np.where(is_taken, 0, 1)
        own_low = own_low + np.where(is_taken, taken[0], lost[0])
        own_high = own_high + np.where(is_taken, taken[1], lost[1])
        least, most = ((end + part).astype(kind).astype(np.float64) for end, part in ((least, a), (most, b)))
        center, inexact = after, inexact + eps * np.abs(exact)
        is_nearer = most - least <= own_high - own_low
        share[: number + 1] = np.where(is_nearer, 0, share[: number + 1])
        own_low, own_high = np.where(is_nearer, least - center, own_low), np.where(is_nearer, most - center, own_high)
    # float64 adds 16-bit floats exactly, but not always 32-bit ones.
    return RunningSum(center, share, (own_low - inexact, own_high + inexact))


def nearest_to_zero(low: Array, high: Array) -> Array:
    """The least magnitude of a number in the interval."""
    return np.where((low <= 0) & (high >= 0), 0, np.minimum(np.abs(low), np.abs(high)))
