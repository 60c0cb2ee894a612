"""Bounds of a correct kernel: for each value an interval that contains it, carried through the chain of HLO ops.

    x             [x, x]                                              inputs are known
    t = tanh(x)   [tanh(x) - 6 ulp, tanh(x) + 6 ulp]                  a function is off by its ulps
    1 + t         [fl(1 + t.low), fl(1 + t.high)]                     rounding is monotone, so the ends of a monotone op bound it
    s = dot(t, b) the exact sum, widened by the error of t and by rounding in any order

Promised: every kernel of the following kind gives values within the bounds, whatever its inputs are.

    functions       divide, sqrt, rsqrt within 2 ulp of the result's type, others within 6 ulp in f32, 4 in f64, 1 in 16 and 8 bits; complex
                    numbers within 16 ulp of the modulus; against the value in twice the precision, rounded once. At least within the
                    smallest normal number (of f32 for a narrower type, since it is computed in f32). Functions that are never negative
                    (exp, sqrt, logistic ...) give no negative result.
    dot, convolution  products and sums each rounded in the type that sums are held in, or not rounded (fused), in any order
    reductions      of heroes, which threads share: any order in which no element goes through more combinations than in the kernel here.
                    Others: the reference's order; windows over several dimensions: any order
    scatters        any order of an element's updates
    all other ops   exactly the reference's value, given the operands: + - * of floats and integers, selections, conversions, moves

The interval of an op contains all its results for operands within theirs, by the op's definition: `elementwise_bounds` (monotone functions
by their ends, others by their turning points and poles), `complex_bounds` (discs), `contraction_bounds`, `reduction_bounds` and
`scatter_bounds` (sums of magnitudes), `indexed_windows` (all windows that an index may name). A comparison is open where the intervals
overlap, and a selection by it the hull of both; an integer that is not certain is an interval too, the whole type where it may wrap.

`bounds.relations` narrows intervals by relations between two operands: x - max(x) is not above 0, x / sum(x)
not above 1. Where all values have few elements, straight lines narrow these intervals (`bounds.sensitivity`): cancellation is taken into
account there, and where the roundings to a type leave one number, that number is known.

Not promised: that every result within the bounds is right. Intervals take two operands as independent, unless they are one instruction
(x * x), so in large arrays a chain that cancels (x - mean(x)), or many dots in a row, have wider bounds than necessary; so has a loop that
amplifies errors until the squares of distances count. A reduction by a custom body (no sum, product or choice) is held to its bound in
one order, doubled: that other orders are no worse is assumed, see `reduction_bounds`. One instruction has one value: an instruction that is
computed twice in a kernel is taken to give the same bits both times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np

from xla_emitters.dialects.hlo.complex_meaning import from_parts
from xla_emitters.dtypes import Array, Kind, NumpyType
from xla_emitters.functions import BY_OPCODE
from xla_emitters.runtime.bundle.bundle_numbers import admitted

ROUGH_OF_COMPLEX = frozenset(opcode for opcode, row in BY_OPCODE.items() if row.takes_complex) | {"sign"}
ULPS_OF_COMPLEX = 16


def ulps_of(opcode: str, element: str, bits: int) -> int:
    """How many units in the last place of its result type an op may be off.

    opcode   HLO's name
    element  kind of the result: only "float" ops round
    bits     width of the result type
    """
    function = BY_OPCODE.get(opcode)
    return function.ulps.of(bits) if function and element == Kind.FLOAT.value else 0


@dataclass(frozen=True)
class Bounds:
    """Every admissible value of one array: element by element, `low` <= value <= `high`, and NaN where both ends are.

    From -inf to +inf the value is unknown, so NaN is admissible too; likewise the whole range of a type that has no infinity. Complex
    numbers lie in a rectangle: each part is bounded by itself.
    """

    low: Array
    high: Array

    @property
    def is_point(self) -> bool:
        """Whether every element is known bit for bit."""
        return self.low is self.high

    @property
    def ends(self) -> tuple[Array, Array]:
        return self.low, self.high

    @property
    def parts(self) -> tuple[Bounds, ...]:
        """The bounds of a complex number's real and imaginary part; of a real number its own."""
        if self.low.dtype.kind != "c":
            return (self,)
        if self.is_point:
            return tuple(point(np.asarray(part(self.low))) for part in (np.real, np.imag))
        return tuple(Bounds(np.asarray(part(self.low)), np.asarray(part(self.high))) for part in (np.real, np.imag))

    @property
    def is_unknown(self) -> Array:
        """Mask of floats that may be anything, NaN included; for complex numbers, of those with any such part. False for other types."""
        if self.low.dtype.kind == "c":
            return np.logical_or(*(part.is_unknown for part in self.parts))
        if self.is_point or not is_float(self.low.dtype):
            return np.zeros(self.low.shape, np.bool_)
        least, most = extremes(self.low.dtype)
        return (self.low == least) & (self.high == most)

    @property
    def is_single(self) -> Array:
        """Mask of elements with one admissible value only; NaN counts as one."""
        if self.is_point:
            return np.ones(self.low.shape, np.bool_)
        if self.low.dtype.kind == "c":
            return np.logical_and(*(part.is_single for part in self.parts))
        same = np.asarray(self.low == self.high)
        return same | (np.isnan(self.low) & np.isnan(self.high)) if is_float(self.low.dtype) else same

    def admits(self, array: Array) -> Array:
        """Mask of the elements of `array` that are admissible."""
        if self.is_point and array.dtype.kind in "biu":
            return array == self.low
        return admitted(array, self.low, self.high)


def point(array: Array) -> Bounds:
    """The bounds of an array that is known bit for bit."""
    return Bounds(array, array)


def everything(kind: NumpyType, shape: tuple[int, ...]) -> Bounds:
    """The bounds of an array whose type and shape alone are known."""
    least, most = extremes(kind)
    return Bounds(np.broadcast_to(least, shape), np.broadcast_to(most, shape))


def settled(low: Array, high: Array) -> Bounds:
    """The bounds with these ends; unknown where only one of them is NaN. Equal ends make a point, except for floats,
    whose zeros may differ in sign."""
    if low.dtype.kind == "c":
        return by_parts(settled, low, high)
    if not is_float(low.dtype):
        return point(low) if low is high or np.array_equal(low, high) else Bounds(low, high)
    if low is high:
        return point(low)
    mixed = np.isnan(low) != np.isnan(high)
    return unknown_where(mixed, Bounds(low, high))


def unknown_where(mask: Array, bounds: Bounds) -> Bounds:
    """The bounds, unknown where `mask` holds."""
    if not mask.any():
        return bounds
    least, most = extremes(bounds.low.dtype)
    return Bounds(np.where(mask, least, bounds.low), np.where(mask, most, bounds.high))


def hull(one: Bounds, other: Bounds) -> Bounds:
    """The least bounds that contain both; unknown where one is NaN and the other is not."""
    if one is other:
        return one
    if one.low.dtype.kind == "c":
        return joined(*(hull(a, b) for a, b in zip(one.parts, other.parts, strict=True)))
    low, high = np.minimum(one.low, other.low), np.maximum(one.high, other.high)
    if not is_float(low.dtype):
        return settled(low, high)
    return unknown_where(np.isnan(one.low) != np.isnan(other.low), Bounds(low, high))


def joined(real: Bounds, imaginary: Bounds) -> Bounds:
    """The bounds of complex numbers with these parts."""
    if real.is_point and imaginary.is_point:
        return point(from_parts(real.low, imaginary.low))
    return Bounds(from_parts(real.low, imaginary.low), from_parts(real.high, imaginary.high))


def by_parts(bounds_of: Callable[[Array, Array], Bounds], low: Array, high: Array) -> Bounds:
    """`bounds_of` the ends of each part of complex numbers."""
    return joined(*(bounds_of(np.asarray(part(low)), np.asarray(part(high))) for part in (np.real, np.imag)))


# ---------------------------------------------------------------------------------------------------- types


def is_float(kind: NumpyType) -> bool:
    """Whether a NumPy type, or one of `ml_dtypes`, holds real floats."""
    return "float" in kind.name


def info(kind: NumpyType) -> Any:
    """Largest and smallest normal number, and eps, of a float type, also of those that NumPy lacks."""
    finfo: Any = ml_dtypes.finfo
    return finfo(np.real(np.zeros((), kind)).dtype if kind.kind == "c" else kind)


def extremes(kind: NumpyType) -> tuple[Array, Array]:
    """The least and the greatest value of a type: infinities where it has them."""
    if kind.kind == "c":
        least, most = extremes(np.real(np.zeros((), kind)).dtype)
        return from_parts(least, least), from_parts(most, most)
    if kind.kind == "b":
        return np.array(False), np.array(True)
    if is_float(kind):
        return farthest(kind, -1), farthest(kind, +1)
    iinfo: Any = ml_dtypes.iinfo
    limits = iinfo(kind)
    return np.array(int(limits.min)).astype(kind), np.array(
        int(limits.max), np.uint64 if limits.min == 0 else np.int64
    ).astype(kind)


def farthest(kind: NumpyType, direction: int) -> Array:
    """The infinity of a float type in that direction, or its last number: some 8-bit floats have no infinity, one has no sign."""
    infinity = np.array(direction * np.inf).astype(kind)
    limits = info(kind)
    return np.array(float(limits.max if direction > 0 else limits.min)).astype(kind) if np.isnan(infinity) else infinity


def wide(array: Array) -> Array:
    """Floats in a type of at least twice their precision, or in the widest available."""
    return np.asarray(array).astype(np.longdouble if array.dtype.itemsize >= 8 else np.float64)


# ---------------------------------------------------------------------------------------------------- widening


def floor_of(kind: NumpyType) -> float:
    """Least error allowed to a function: the smallest normal number of the type that it is computed in, f32 for narrower ones."""
    return float(info(kind if kind.itemsize >= 4 else np.dtype(np.float32)).smallest_normal)


def widen(array: Array, ulps: int, direction: int, least: float | None = None) -> Array:
    """`array` moved by `ulps` representable values towards -inf or +inf, at least by `least` (default: `floor_of` its type)."""
    if ulps == 0:
        return array
    limits = info(array.dtype)
    lowest, highest = float(limits.min), float(limits.max)
    by_least = floor_of(array.dtype) if least is None else least
    target, moved = farthest(array.dtype, direction), array
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for _ in range(ulps):
            moved = np.nextafter(moved, target)
        floor = np.clip(array.astype(np.float64) + direction * by_least, lowest, highest).astype(array.dtype)
        return np.where(np.isfinite(array), (np.maximum if direction > 0 else np.minimum)(moved, floor), array)


def outward(bounds: Bounds) -> Bounds:
    """The bounds with each end moved outwards by one number: they contain the exact result before rounding to nearest too."""
    if bounds.low.dtype.kind == "c":
        return joined(*map(outward, bounds.parts))
    if not is_float(bounds.low.dtype):
        return bounds
    return Bounds(widen(bounds.low, 1, -1, 0.0), widen(bounds.high, 1, +1, 0.0))


def beside_overflow(low: Array, high: Array, operands: Sequence[Bounds]) -> tuple[Array, Array]:
    """The ends of a function's result; where the reference overflows, the lower bound is the largest number: a kernel may be just below.

    An infinity from an infinite operand or from a pole at zero (1 / 0, log 0) is certain.
    """
    overflows = reduce(np.logical_and, [np.isfinite(end) & (end != 0) for bounds in operands for end in bounds.ends])

    def nearest(part: Array, infinity: float) -> Array:
        largest = info(part.dtype).max
        return np.where(overflows & (part == infinity), np.copysign(largest, infinity).astype(part.dtype), part)

    if low.dtype.kind != "c":
        return nearest(low, np.inf), nearest(high, -np.inf)
    return (
        from_parts(nearest(np.real(low), np.inf), nearest(np.imag(low), np.inf)),
        from_parts(nearest(np.real(high), -np.inf), nearest(np.imag(high), -np.inf)),
    )
