"""Bounds of ops on complex numbers whose operands lie in rectangles.

    add, subtract, negate, multiply   part by part, each rounding as the reference does it
    exp, log, sqrt, tanh, a / b ...   z lies in a disc around the rectangle's middle m, of radius r: f(z) is as far from f(m) as the
                                      derivative allows, |f(z) - f(m)| <= r sup |f'|, plus the function's own error in ulps of the modulus
    across a cut or a pole            anything

    exp       |exp m| (e^r - 1)            log         -log(1 - r/|m|)          tan, tanh   r / inf |cos|^2, r / inf |cosh|^2
    a / b     (ra + |a/b| rb) / (|b| - rb) sqrt        |sqrt m| r/|m|           sin, cos    r cosh(|Im m| + r)
    a^b       exp of b log a               rsqrt       |m|^-1/2 ((1 - r/|m|)^-1/2 - 1)

A function's own error is counted in ulps of the modulus, for both parts alike. Extra ulps: pow has as many again for each unit of its
exponent's logarithm; logistic for the cancellation in 1 + exp(-z); atan2 for that in x^2 + y^2, whose modulus counts as at least 1. A
quotient is unbounded where the parts of its numerator add to more than the largest number. Where a rounding decides on which side of a
cut a number is, its real part is any angle; where it decides the direction of an infinite part of a power, that part is unbounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from xla_emitters.dialects.hlo.complex_meaning import from_parts, over_largest_part
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dtypes import Array
from xla_emitters.runtime.reference.tolerance import (
    ROUGH_OF_COMPLEX,
    ULPS_OF_COMPLEX,
    Bounds,
    beside_overflow,
    everything,
    hull,
    info,
    joined,
    outward,
    point,
    settled,
    unknown_where,
)

Evaluate = Callable[[Sequence[Array]], Array]


def complex_after(op: ElementwiseOp, operands: Sequence[Bounds], evaluate: Evaluate, *, is_outward: bool) -> Bounds:
    """Every admissible result of an op that takes complex numbers. See `elementwise.bounds_after`."""
    is_known = all(bounds.is_point for bounds in operands)
    match op.opcode:
        case "real":
            return operands[0].parts[0]
        case "imag":
            return operands[0].parts[1]
        case "negate":
            return settled(*(evaluate([end]) for end in reversed(operands[0].ends)))
        case "add" | "subtract":
            one, other = operands
            ends = other.ends if op.opcode == "add" else other.ends[::-1]
            if is_known:
                found = point(evaluate([one.low, other.low]))
            else:
                found = settled(*(evaluate([a, b]) for a, b in zip(one.ends, ends, strict=True)))
                found = unknown_where(one.is_unknown | other.is_unknown, found)
            return outward(found) if is_outward else found
        case "multiply" if not is_known or is_outward:
            return product(*operands, is_outward=is_outward)
        case opcode if opcode in ROUGH_OF_COMPLEX:
            return _function(op, operands, evaluate)
        case _ if is_known:
            return point(evaluate([bounds.low for bounds in operands]))
        case "maximum" | "minimum":
            return _extreme(op.opcode, *operands)
        case "clamp":
            least, value, most = operands
            return _extreme("minimum", _extreme("maximum", least, value), most)
        case _:
            return everything(element_of(op.result).numpy, np.broadcast_shapes(*(b.low.shape for b in operands)))


def _extreme(opcode: str, one: Bounds, other: Bounds) -> Bounds:
    """maximum or minimum: where the intervals of the real parts are disjoint, they decide which operand it is."""
    either, (a, _), (b, _) = hull(one, other), one.parts, other.parts
    above, below = a.low > b.high, a.high < b.low
    first, second = (above, below) if opcode == "maximum" else (below, above)
    ends = zip(one.ends, other.ends, either.ends, strict=True)
    return Bounds(*(np.where(first, x, np.where(second, y, open_end)) for x, y, open_end in ends))


def product(one: Bounds, other: Bounds, *, is_outward: bool = False) -> Bounds:
    """(a + bi)(c + di) from the intervals of the parts: ac - bd and ad + bc, each product and sum rounded once."""
    (a, b), (c, d) = one.parts, other.parts
    outer: Callable[[Bounds], Bounds] = outward if is_outward else lambda bounds: bounds

    def times(x: Bounds, y: Bounds) -> Bounds:
        values = [p * q for p in x.ends for q in y.ends]
        mixed = np.isnan(reduce(np.add, values))
        return outer(unknown_where(mixed, Bounds(reduce(np.minimum, values), reduce(np.maximum, values))))

    ac, bd, ad, bc = times(a, c), times(b, d), times(a, d), times(b, c)
    real = outer(_settled_or_unknown(ac.low - bd.high, ac.high - bd.low))
    return joined(real, outer(_settled_or_unknown(ad.low + bc.low, ad.high + bc.high)))


def _settled_or_unknown(low: Array, high: Array) -> Bounds:
    return unknown_where(np.isnan(low) | np.isnan(high), Bounds(low, high))


# ---------------------------------------------------------------------------------------------------- functions


def _function(op: ElementwiseOp, operands: Sequence[Bounds], evaluate: Evaluate) -> Bounds:
    if all(bounds.is_point for bounds in operands):
        value = evaluate([bounds.low for bounds in operands])
        return off_by_ulps(op.opcode, value, value, operands)
    kind = element_of(op.result).numpy
    single = reduce(np.logical_and, (bounds.is_single for bounds in operands))
    discs = [_disc(bounds) for bounds in operands]
    middles, radii = [middle for middle, _ in discs], [radius for _, radius in discs]
    value = np.asarray(op.ROW.means(op.deciding, *middles))
    radius = _reach(op.opcode, middles, radii, value)
    radius = radius + 8 * float(np.finfo(np.float64).eps) * np.abs(value)
    crosses = reduce(np.logical_or, (_touches_cut(op.opcode, bounds) for bounds in operands[:1]))
    is_open = ~np.isfinite(radius) | ~np.isfinite(value) | crosses
    is_open |= reduce(np.logical_or, (bounds.is_unknown | ~np.isfinite(bounds.low) for bounds in operands))
    ends = (
        [(part(value) - radius).astype(np.real(np.zeros((), kind)).dtype) for part in (np.real, np.imag)],
        [(part(value) + radius).astype(np.real(np.zeros((), kind)).dtype) for part in (np.real, np.imag)],
    )
    at_low = evaluate([bounds.low for bounds in operands])
    low, high = (np.where(single, at_low, end[0] if kind.kind != "c" else from_parts(*end)) for end in ends)
    is_open |= ~np.isfinite(low) | ~np.isfinite(high)
    found = off_by_ulps(op.opcode, low, high, operands)
    return unknown_where(is_open & ~single, found)


def _disc(bounds: Bounds) -> tuple[Array, Array]:
    """The middle of rectangles, and how far a corner is from it, roundings of both included."""
    low, high = (np.asarray(end, np.complex128) for end in bounds.ends)
    middle = low / 2 + high / 2
    radius = np.abs(high / 2 - low / 2)
    slack = 4 * float(np.finfo(np.float64).eps)
    return middle, np.where(bounds.is_single, 0, radius * (1 + slack) + slack * np.abs(middle))


def _touches_cut(opcode: str, bounds: Bounds) -> Array:
    """Whether a rectangle contains points of the negative real axis, or zero, where the function is discontinuous."""
    if opcode not in ("log", "log-plus-one", "sqrt", "rsqrt", "power"):
        return np.zeros(bounds.low.shape, np.bool_)
    real, imaginary = bounds.parts
    start = -1 if opcode == "log-plus-one" else 0
    return np.asarray((real.low <= start) & (imaginary.low <= 0) & (imaginary.high >= 0))


def _reach(opcode: str, middles: Sequence[Array], radii: Sequence[Array], value: Array) -> Array:
    """How far a function's value may be from its value at the middle; infinite or NaN where there is no bound."""
    m, r = middles[0], radii[0]
    size, relative = np.abs(m), r / np.abs(m)

    def inside(bound: Array, limit: Array = relative) -> Array:
        return np.where(limit < 1, bound, np.inf)

    def by_square(least: Array, reach: Array) -> Array:
        return np.where(least > 0, reach / (least * least), np.inf)

    match opcode:
        case "abs":
            return r
        case "sign":
            return inside(2 * relative)
        case "exponential" | "exponential-minus-one":
            return np.abs(np.exp(m)) * np.expm1(r)
        case "log":
            return inside(-np.log1p(-relative))
        case "log-plus-one":
            moved = r / np.abs(1 + m)
            return inside(-np.log1p(-moved), moved)
        case "sqrt":
            return inside(np.sqrt(size) * relative)
        case "rsqrt":
            return inside((1 / np.sqrt(1 - relative) - 1) / np.sqrt(size))
        case "sine" | "cosine":
            return r * np.cosh(np.abs(np.imag(m)) + r)
        case "tan":
            return by_square(np.abs(np.cos(m)) - r * np.cosh(np.abs(np.imag(m)) + r), r)
        case "tanh":
            return by_square(np.abs(np.cosh(m)) - r * np.cosh(np.abs(np.real(m)) + r), r)
        case "logistic":
            half, reach = m / 2, r / 2
            return by_square(np.abs(np.cosh(half)) - reach * np.cosh(np.abs(np.real(half)) + reach), reach) / 2
        case "divide":
            left = np.abs(middles[1]) - radii[1]
            return np.where(left > 0, (r + np.abs(value) * radii[1]) / left, np.inf)
        case "power":
            return np.abs(value) * np.expm1(_reach_of_exponent(middles, radii))
        case _:
            return np.where(r + radii[-1] > 0, np.inf, 0)


def _reach_of_exponent(middles: Sequence[Array], radii: Sequence[Array]) -> Array:
    """How far b log a may be from its value at the middles."""
    (base, exponent), (r, own) = middles, radii
    relative = r / np.abs(base)
    of_logarithm = np.where(r > 0, np.where(relative < 1, -np.log1p(-relative), np.inf), 0)
    return own * (np.abs(np.log(base)) + of_logarithm) + np.abs(exponent) * of_logarithm


# ---------------------------------------------------------------------------------------------------- a function's own error


def off_by_ulps(opcode: str, low: Array, high: Array, operands: Sequence[Bounds]) -> Bounds:
    """The bounds of a function whose exact result is between `low` and `high`: widened by the function's own error."""
    low, high = beside_overflow(low, high, operands)
    if opcode == "atan2":
        low, high = _either_side(low, high, operands)
    elif opcode == "power":
        low, high = _either_infinity(low, high, operands)
    moved = widen_complex(low, high, _ulps(opcode, operands), float(opcode == "atan2"))
    if opcode == "abs":
        moved = np.where(low >= 0, np.maximum(moved[0], low.dtype.type(0)), moved[0]), moved[1]
    return settled(*moved)


def widen_complex(low: Array, high: Array, ulps: Array, least: float = 0.0) -> tuple[Array, Array]:
    """The rectangle from `low` to `high`, each part moved outwards by `ulps` ulps of the modulus, at least by the smallest normal number.

    low, high  arrays of floats, or of complex numbers, which are widened part by part
    least      lower limit of the modulus that the ulps are taken of
    """
    with np.errstate(all="ignore"):
        modulus = np.maximum(np.abs(low), np.abs(high))
        if low.dtype.kind == "c" and low is not high:
            sides = [np.maximum(np.abs(part(low)), np.abs(part(high))) for part in (np.real, np.imag)]
            modulus = np.hypot(*sides)
        limits = info(modulus.dtype)
        size = np.clip(modulus, least, float(limits.max))
        slack = np.maximum(ulps * size * float(limits.eps), float(limits.smallest_normal)).astype(modulus.dtype)
        # None of its digits is certain, nor the direction of an infinity.
        slack = np.where(ulps * float(limits.eps) < 1, np.where(np.isnan(modulus), 0, slack), np.inf)
        outwards = (
            (np.where(slack == np.inf, -slack, part(low) - slack), np.where(slack == np.inf, slack, part(high) + slack))
            for part in ((np.real, np.imag) if low.dtype.kind == "c" else (np.asarray,))
        )
        lows, highs = zip(*outwards, strict=True)
        return (from_parts(*lows), from_parts(*highs)) if low.dtype.kind == "c" else (lows[0], highs[0])


def _ulps(opcode: str, operands: Sequence[Bounds]) -> Array:
    """How many ulps of its result's modulus an op on complex numbers may be off, for operands anywhere within their bounds."""
    with np.errstate(all="ignore"):
        (first, r), (last, own) = _disc(operands[0]), _disc(operands[-1])
        match opcode:
            case "power":
                exponent = np.abs(last * np.log(first)) + _reach_of_exponent((first, last), (r, own))
                growth = 1 + exponent
            case "logistic":
                falling = np.exp(-first)
                spread = np.abs(falling) * np.expm1(r)
                growth = 1 + (np.abs(falling) + spread) / np.abs(np.abs(1 + falling) - spread)
            case "atan2":
                first, last = over_largest_part(*np.broadcast_arrays(first, last))
                squares = first * first + last * last
                growth = (1 + np.abs(first) ** 2 + np.abs(last) ** 2) / np.abs(squares)
            case "divide":
                # The parts of the numerator are scaled by the divisor's larger part and added: that may overflow, the quotient may not.
                limits = info(np.real(operands[0].low).dtype)
                may_overflow = np.abs(np.real(first)) + np.abs(np.imag(first)) + 2 * r > float(limits.max)
                growth = np.where(may_overflow, 1 / float(limits.eps), 1)
            case _:
                growth = np.ones(())
        return ULPS_OF_COMPLEX * np.where(np.isfinite(growth), growth, 1)


def _either_side(low: Array, high: Array, operands: Sequence[Bounds]) -> tuple[Array, Array]:
    """The bounds of atan2; its real part is anything from -pi to pi where a rounding decides on which side of a cut an argument is.

    Two such arguments: x^2 + y^2 near the negative real axis, before its root is taken; and a result near pi or -pi, which is a logarithm.
    """
    kind = np.real(low).dtype
    with np.errstate(all="ignore"):
        numbers = (np.asarray(bound.low, np.complex128) for bound in operands)
        y, x = over_largest_part(*np.broadcast_arrays(*numbers))
        squares, size = y * y + x * x, np.abs(y) ** 2 + np.abs(x) ** 2
        rounding = ULPS_OF_COMPLEX * float(info(kind).eps)
        is_open = (np.real(squares) < 0) & (np.abs(np.imag(squares)) <= rounding * size)
        furthest = np.maximum(np.abs(np.real(low)), np.abs(np.real(high)))
        is_open |= furthest >= np.pi * (1 - rounding)
    ends = np.where(is_open, -np.pi, np.real(low)), np.where(is_open, np.pi, np.real(high))
    return from_parts(ends[0].astype(kind), np.imag(low)), from_parts(ends[1].astype(kind), np.imag(high))


def _either_infinity(low: Array, high: Array, operands: Sequence[Bounds]) -> tuple[Array, Array]:
    """The bounds of a power: where it overflows and a rounding of the angle decides the sign of an infinite part, that part is unknown."""
    kind = np.real(low).dtype
    with np.errstate(all="ignore"):
        base, exponent = (np.asarray(bound.low, np.complex128) for bound in operands)
        turns = exponent * np.log(base)
        rounding = ULPS_OF_COMPLEX * float(info(kind).eps) * (1 + np.abs(turns))
        ends = list[tuple[Array, Array]]()
        for part, size in ((np.real, np.abs(np.cos(turns.imag))), (np.imag, np.abs(np.sin(turns.imag)))):
            is_open = (np.isinf(part(low)) | np.isinf(part(high))) & ~(size > rounding)
            ends.append((np.where(is_open, -np.inf, part(low)), np.where(is_open, np.inf, part(high))))
    lows, highs = zip(*ends, strict=True)
    return from_parts(*(end.astype(kind) for end in lows)), from_parts(*(end.astype(kind) for end in highs))
