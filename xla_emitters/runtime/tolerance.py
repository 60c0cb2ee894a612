"""How far a result may be from the reference: a bound carried through the chain of HLO ops, written from their definitions.

A kernel may round each op differently from NumPy within the op's own tolerance: nothing for + - * and selections, 2 ulp for
division and roots, 6 ulp for f32 transcendentals ... What those differences do to the end of a chain depends on the values: 1 + tanh(x)
near -1 turns one ulp of tanh into all of the digits. So each value is carried as an interval that holds every admissible result:

    x            [x, x]
    t = tanh(x)  [tanh(x) - 6 ulp, tanh(x) + 6 ulp]
    1 + t        the op at all corners of its operands' intervals, rounded; least and greatest

Elementwise ops are monotone in each operand on the narrow intervals that occur here, or jump (compare, select), where the corners
are the two sides of the jump; so the corners bound the op. Each corner is one NumPy evaluation of the reference: 2^operands of them
for an op whose operands are intervals, one where they are points.

A complex number lies in a rectangle, an interval for each part, and has four corners. What its functions may be off counts in units of
the modulus, for both parts alike; pow by as much again for each unit of its exponent's logarithm, logistic for what 1 + exp(-z) cancels,
atan2 for what x^2 + y^2 does, and of one of 1 at least; a quotient may be anything where the parts of its numerator add to more than the
largest number. Where a rounding decides on which side of a cut a number is, its real part is any angle; where it decides which way an
infinite part of a power points, that part is anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.complex_meaning import from_parts
from xla_emitters.dtypes import Array, Kind, NumpyType, dtype_of
from xla_emitters.functions import BY_OPCODE

_OF_COMPLEX = frozenset(opcode for opcode, row in BY_OPCODE.items() if row.takes_complex) | {"sign"}
_ULPS_OF_COMPLEX = 16


@dataclass(frozen=True)
class Bounds:
    """Every admissible value of one array: element by element, `low` <= value <= `high`, or NaN where an end is.

    From -inf to +inf nothing is known, so NaN is admissible too; likewise over all numbers of a type that has no infinity.
    """

    low: Array
    high: Array

    @property
    def is_point(self) -> bool:
        return self.low is self.high

    @property
    def corners(self) -> tuple[Array, ...]:
        if self.low.dtype.kind != "c":
            return self.low, self.high
        ends = [(part(self.low), part(self.high)) for part in (np.real, np.imag)]
        return tuple(from_parts(*corner) for corner in product(*ends))

    def admits(self, array: Array) -> Array:
        """Where `array` is admissible; any NaN is where either end is NaN."""
        if self.is_point and array.dtype.kind in "biu":
            return array == self.low
        if array.dtype.kind == "c":
            parts = (Bounds(part(self.low), part(self.high)).admits(part(array)) for part in (np.real, np.imag))
            return np.logical_and(*parts)
        with np.errstate(invalid="ignore"):
            inside = (array >= self.low) & (array <= self.high)
        if array.dtype.kind in "biu" or "int" in array.dtype.name:
            return inside
        is_unknown = (self.low == farthest(array.dtype, -1)) & (self.high == farthest(array.dtype, +1))
        return inside | (np.isnan(array) & (np.isnan(self.low) | np.isnan(self.high) | is_unknown))


def ulps_of(opcode: str, element: str, bits: int) -> int:
    """How many units in the last place of its result type an op may be off.

    opcode   HLO's name
    element  kind of the result: only "float" ops round
    bits     width of the result type
    """
    function = BY_OPCODE.get(opcode)
    return function.ulps.of(bits) if function and element == Kind.FLOAT.value else 0


def widen(array: Array, ulps: int, direction: int) -> Array:
    """`array` moved by `ulps` representable values towards -inf or +inf, at least by the smallest normal number."""
    if ulps == 0:
        return array
    info = _info(array.dtype)
    least, most, tiny = float(info.min), float(info.max), float(info.smallest_normal)
    target, moved = farthest(array.dtype, direction), array
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(ulps):
            moved = np.nextafter(moved, target)
        floor = np.clip(array.astype(np.float64) + direction * tiny, least, most).astype(array.dtype)
        return np.where(np.isfinite(array), (np.maximum if direction > 0 else np.minimum)(moved, floor), array)


def farthest(kind: NumpyType, direction: int) -> Array:
    """The infinity of a float type in that direction, or its last number: some 8-bit floats have no infinity, one has no sign."""
    infinity = np.array(direction * np.inf).astype(kind)
    info = _info(kind)
    return np.array(float(info.max if direction > 0 else info.min)).astype(kind) if np.isnan(infinity) else infinity


def widen_complex(low: Array, high: Array, ulps: Array, least: float = 0.0) -> tuple[Array, Array]:
    """The rectangle from `low` to `high`, each part moved outwards by so many ulps of the modulus, at least by the smallest normal number.

    low, high  of floats, or by their parts of complex numbers
    least      what counts as the modulus where that is smaller
    """
    with np.errstate(all="ignore"):
        modulus = np.maximum(np.abs(low), np.abs(high))
        info = _info(modulus.dtype)
        size = np.clip(modulus, least, float(info.max))
        slack = np.maximum(ulps * size * float(info.eps), float(info.smallest_normal)).astype(modulus.dtype)
        # No digit of it is certain, nor which way an infinity points.
        slack = np.where(ulps * float(info.eps) < 1, np.where(np.isnan(modulus), 0, slack), np.inf)
        outwards = (
            (np.where(slack == np.inf, -slack, part(low) - slack), np.where(slack == np.inf, slack, part(high) + slack))
            for part in ((np.real, np.imag) if low.dtype.kind == "c" else (np.asarray,))
        )
        lows, highs = zip(*outwards, strict=True)
        return (from_parts(*lows), from_parts(*highs)) if low.dtype.kind == "c" else (lows[0], highs[0])


def _ulps_of_complex(opcode: str, operands: Sequence[Bounds]) -> Array:
    """How many ulps of its result's modulus an op on complex numbers may be off."""
    with np.errstate(all="ignore"):
        first, last = (np.asarray(bound.low, np.complex128) for bound in (operands[0], operands[-1]))
        match opcode:
            case "power":
                growth = 1 + np.abs(last * np.log(first))
            case "logistic":
                falling = np.exp(-first)
                growth = 1 + np.abs(falling) / np.abs(1 + falling)
            case "atan2":
                squares = first * first + last * last
                growth = (1 + np.abs(first) ** 2 + np.abs(last) ** 2) / np.abs(squares)
            case "divide":
                # Scaled by the divisor's larger part, the numerator's parts are added: that may overflow though the quotient does not.
                info = _info(np.real(operands[0].low).dtype)
                may_overflow = np.abs(first.real) + np.abs(first.imag) > float(info.max)
                growth = np.where(may_overflow, 1 / float(info.eps), 1)
            case _:
                growth = np.ones(())
        return _ULPS_OF_COMPLEX * np.where(np.isfinite(growth), growth, 1)


def _either_side(low: Array, high: Array, operands: Sequence[Bounds]) -> tuple[Array, Array]:
    """The bounds of atan2, whose real part is any from -pi to pi where a rounding decides on which side of a cut something lies.

    That is x^2 + y^2 beside the negative real axis, of which the root is taken; and a result beside pi or -pi, which is a logarithm.
    """
    kind = np.real(low).dtype
    with np.errstate(all="ignore"):
        y, x = (np.asarray(bound.low, np.complex128) for bound in operands)
        squares, size = y * y + x * x, np.abs(y) ** 2 + np.abs(x) ** 2
        rounding = _ULPS_OF_COMPLEX * float(_info(kind).eps)
        is_open = (squares.real < 0) & (np.abs(squares.imag) <= rounding * size)
        furthest = np.maximum(np.abs(np.real(low)), np.abs(np.real(high)))
        is_open |= furthest >= np.pi * (1 - rounding)
    ends = np.where(is_open, -np.pi, np.real(low)), np.where(is_open, np.pi, np.real(high))
    return from_parts(ends[0].astype(kind), np.imag(low)), from_parts(ends[1].astype(kind), np.imag(high))


def _either_infinity(low: Array, high: Array, operands: Sequence[Bounds]) -> tuple[Array, Array]:
    """The bounds of a power: where it overflows, which way a part points is open if a rounding of the angle decides on it."""
    kind = np.real(low).dtype
    with np.errstate(all="ignore"):
        base, exponent = (np.asarray(bound.low, np.complex128) for bound in operands)
        turns = exponent * np.log(base)
        rounding = _ULPS_OF_COMPLEX * float(_info(kind).eps) * (1 + np.abs(turns))
        ends = list[tuple[Array, Array]]()
        for part, size in ((np.real, np.abs(np.cos(turns.imag))), (np.imag, np.abs(np.sin(turns.imag)))):
            is_open = (np.isinf(part(low)) | np.isinf(part(high))) & ~(size > rounding)
            ends.append((np.where(is_open, -np.inf, part(low)), np.where(is_open, np.inf, part(high))))
    lows, highs = zip(*ends, strict=True)
    return from_parts(*(end.astype(kind) for end in lows)), from_parts(*(end.astype(kind) for end in highs))


def _info(kind: NumpyType) -> Any:
    """Largest and smallest normal number of a float type, also of those that NumPy lacks."""
    finfo: Any = ml_dtypes.finfo
    return finfo(kind)


def corners(operands: Sequence[Bounds], evaluate: Callable[[Sequence[Array]], Array]) -> tuple[Array, Array]:
    """The least and greatest value of `evaluate` over all corners of its operands.

    An operand that stands twice (x * x) is the same value in each corner.
    """
    distinct = list({id(bound): bound.corners for bound in operands if not bound.is_point}.items())
    low = high = None
    for choice in product(*(points for _, points in distinct)):
        chosen = {bound: point for (bound, _), point in zip(distinct, choice, strict=True)}
        value = evaluate([chosen.get(id(bound), bound.low) for bound in operands])
        if low is None or high is None:
            low = high = value
        else:
            low, high = by_parts(np.minimum, low, value), by_parts(np.maximum, high, value)
    assert low is not None
    assert high is not None
    return low, high


def by_parts(choose: Callable[[Array, Array], Array], one: Array, other: Array) -> Array:
    """`choose` of floats, or of each part of complex numbers, which NumPy orders by the real part first."""
    if one.dtype.kind != "c":
        return choose(one, other)
    return from_parts(choose(np.real(one), np.real(other)), choose(np.imag(one), np.imag(other)))


def bounds_after(
    opcode: str, ir_type: Attribute, operands: Sequence[Bounds], evaluate: Callable[[Sequence[Array]], Array]
) -> Bounds:
    """Every admissible result of one op whose operands are anywhere within their bounds.

    ir_type   element type of the result in the `hlo` dialect
    """
    low, high = corners(operands, evaluate)
    row = dtype_of(ir_type)
    if any(bound.low.dtype.kind == "c" for bound in operands):
        if opcode in _OF_COMPLEX:
            low, high = _beside_overflow(low, high, operands)
            if opcode == "atan2":
                low, high = _either_side(low, high, operands)
            elif opcode == "power":
                low, high = _either_infinity(low, high, operands)
            least = float(opcode == "atan2")
            low, high = widen_complex(low, high, _ulps_of_complex(opcode, operands), least)
        return Bounds(low, high)
    ulps = ulps_of(opcode, row.kind.value, row.bits)
    if ulps == 0:
        return Bounds(low, high)
    low, high = _beside_overflow(low, high, operands)
    return Bounds(widen(low, ulps, -1), widen(high, ulps, +1))


def _beside_overflow(low: Array, high: Array, operands: Sequence[Bounds]) -> tuple[Array, Array]:
    """The bounds, but from the largest number on where the reference overflows: a kernel may be just below.

    An infinity that an operand holds, or that comes of a zero (1 / 0, log 0), is certain.
    """
    with np.errstate(all="ignore"):
        overflows = np.logical_and.reduce(
            [np.isfinite(end) & (end != 0) for bound in operands for end in (bound.low, bound.high)]
        )

    def nearest(part: Array, infinity: float) -> Array:
        largest = _info(part.dtype).max
        return np.where(overflows & (part == infinity), np.copysign(largest, infinity).astype(part.dtype), part)

    if low.dtype.kind != "c":
        return nearest(low, np.inf), nearest(high, -np.inf)
    return (
        from_parts(nearest(np.real(low), np.inf), nearest(np.imag(low), np.inf)),
        from_parts(nearest(np.real(high), -np.inf), nearest(np.imag(high), -np.inf)),
    )
