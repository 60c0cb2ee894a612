"""Bounds of elementwise ops on real numbers, for operands within their bounds.

    rises, falls     add, max, floor, tanh, rsqrt ...      the ends of the operands give the ends
    each way         multiply, divide, power, atan2        monotone in each operand while the others stay: the least and greatest corner
    turning points   abs, cosh, sine, cosine, x * x        the ends, and the turning point where it lies between them
    poles            divide, power, tan, atan2             unbounded (any angle) where the interval contains a pole
    jumps            compare, floor, convert, select       the ends; both sides
    integers         + - * wrap                            the corners if none wraps, else the whole type

Exact ops are evaluated in the type that the reference computes in: rounding is monotone, so the rounded ends are the ends of the rounded
values. Functions are evaluated in a type of twice the precision, rounded once, and moved outwards by their ulps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from xla_emitters.dialects.hlo.base import no_call
from xla_emitters.dialects.hlo.convert import convert_array, round_once
from xla_emitters.dialects.hlo.convert import widen as computed
from xla_emitters.dialects.hlo.elementwise import (
    BitcastConvertOp,
    CompareOp,
    ComplexOp,
    ConvertOp,
    ElementwiseOp,
    SelectOp,
    real_part,
)
from xla_emitters.dialects.hlo.elementwise_meaning import total_order
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dtypes import Array, DType, Kind
from xla_emitters.runtime.reference.bounds.complex_bounds import complex_after
from xla_emitters.runtime.reference.tolerance import (
    Bounds,
    beside_overflow,
    extremes,
    hull,
    is_float,
    joined,
    outward,
    point,
    settled,
    ulps_of,
    unknown_where,
    wide,
    widen,
)

Evaluate = Callable[[Sequence[Array]], Array]

_RISES = frozenset(
    "ceil floor round-nearest-afz round-nearest-even sign real imag reduce-precision maximum minimum clamp"
    " exponential exponential-minus-one log log-plus-one logistic sqrt cbrt erf sinh tanh asin asinh acosh atanh".split()
)
"""Ops of floats that rise with every operand."""
_DIRECTIONS = {
    "add": (1, 1),
    "subtract": (1, -1),
    "negate": (-1,),
    "acos": (-1,),
    **{opcode: (1, 1, 1) for opcode in _RISES},
}
"""Whether a result rises (1) or falls with each operand."""
_RISES_WITH_INTEGERS = frozenset(("maximum", "minimum", "clamp", "sign"))
_RISES_WITH_BITS = frozenset(("add", "multiply", "and", "or", "maximum", "minimum", "clamp"))
NEVER_NEGATIVE = frozenset(("exponential", "sqrt", "rsqrt", "cosh", "logistic", "acos", "acosh"))


def bounds_after(
    op: ElementwiseOp, operands: Sequence[Bounds], evaluate: Evaluate, *, is_outward: bool = False
) -> Bounds:
    """Every admissible result of an op whose operands are anywhere within their bounds.

    evaluate    the reference: the op's value on arrays
    is_outward  the bounds hold the op's exact value too, not only the rounded one
    """
    kind, result = op.deciding.kind, element_of(op.result)
    is_known = all(bounds.is_point for bounds in operands)
    with np.errstate(all="ignore"):
        if Kind.COMPLEX in (kind, result.kind) and not isinstance(op, SelectOp | CompareOp | ConvertOp | ComplexOp):
            return complex_after(op, operands, evaluate, is_outward=is_outward)
        ulps = ulps_of(op.opcode, result.kind.value, result.bits)
        if is_known and ulps == 0:
            found = point(evaluate([bounds.low for bounds in operands]))
        else:
            found = _loose(op, operands, evaluate, ulps)
        return outward(found) if is_outward and ulps == 0 and op.opcode in _ROUNDED else found


_ROUNDED = frozenset(("add", "subtract", "multiply", "convert", "remainder", "reduce-precision"))


def _loose(op: ElementwiseOp, operands: Sequence[Bounds], evaluate: Evaluate, ulps: int) -> Bounds:
    match op:
        case SelectOp():
            return _selected(*operands)
        case CompareOp():
            return _compared(op, *operands)
        case ConvertOp():
            return converted(operands[0], op.deciding, element_of(op.result))
        case ComplexOp():
            return joined(*operands)
        case BitcastConvertOp():
            return reinterpreted(operands[0], evaluate)
        case _ if op.deciding.kind is Kind.FLOAT:
            return _float(op, operands, evaluate, ulps)
        case _:
            return _integer(op, operands, evaluate)


# ---------------------------------------------------------------------------------------------------- floats


def _float(op: ElementwiseOp, operands: Sequence[Bounds], evaluate: Evaluate, ulps: int) -> Bounds:
    if op.opcode == "is-finite":
        return _finite(operands[0])
    target = element_of(op.result).numpy

    def in_wide(arrays: Sequence[Array]) -> Array:
        value = op.ROW.means(op.deciding, *(wide(array) for array in arrays))
        return value.astype(target) if value.dtype.itemsize > 8 else round_once(value, target)

    low, high = _range(op.opcode, operands, in_wide if ulps else evaluate)
    found = settled(low, high)
    is_loose = ~reduce(np.logical_and, (bounds.is_single for bounds in operands))
    # Both ends may be NaN though values between them are not: NaN is certain only where an operand is NaN, or all operands are known.
    is_nan = reduce(np.logical_or, (np.isnan(bounds.low) for bounds in operands))
    is_unknown = reduce(np.logical_or, (bounds.is_unknown for bounds in operands))
    found = unknown_where((is_unknown & ~is_nan) | (np.isnan(found.low) & is_loose & ~is_nan), found)
    if ulps == 0:
        return found
    is_unknown = found.is_unknown
    low, high = beside_overflow(found.low, found.high, operands)
    low, high = widen(low, ulps, -1), widen(high, ulps, +1)
    if op.opcode in NEVER_NEGATIVE:
        low = np.where((low < 0) & (found.low >= 0), low.dtype.type(0), low)
    return unknown_where(is_unknown, Bounds(low, high))


def _range(opcode: str, operands: Sequence[Bounds], value: Evaluate) -> tuple[Array, Array]:
    """The least and greatest value of the op for operands within their bounds."""
    if all(bounds.is_point for bounds in operands):
        found = value([bounds.low for bounds in operands])
        return found, found
    is_square = len(operands) == 2 and operands[0] is operands[1]
    match opcode:
        case "multiply" if is_square:
            return _turning_at_zero(operands[0], lambda x: value([x, x]))
        case "subtract" | "divide" if is_square:
            low, high = operands[0].ends
            found = _least_and_greatest([value([low, low]), value([high, high])])
            return _where_any(_holds_zero(operands[0]) & (opcode == "divide"), found)
        case "abs" | "cosh":
            return _turning_at_zero(operands[0], lambda x: value([x]))
        case "sine" | "cosine":
            return _wave(opcode, operands[0], value)
        case "tan":
            found = _ends(operands, (1,), value)
            return _where_any(_passes(operands[0], np.pi / 2, np.pi), found)
        case "divide":
            return _where_any(_holds_zero(operands[1]), corners(operands, value))
        case "rsqrt":
            # Of -0.0 it is -inf, of 0.0 inf.
            low, high = operands[0].ends
            is_both = (low == 0) & np.signbit(low) & ~np.signbit(high)
            return _where_any(is_both, _ends(operands, (-1,), value))
        case "power":
            return _power(operands, value)
        case "atan2":
            return _angle(operands, value)
        case "remainder":
            return _remainder(operands, value)
        case _ if opcode in _DIRECTIONS:
            return _ends(operands, _DIRECTIONS[opcode], value)
        case _:
            return corners(operands, value)


def _ends(operands: Sequence[Bounds], directions: Sequence[int], value: Evaluate) -> tuple[Array, Array]:
    """Least and greatest value of an op that is monotone in all operands."""
    ends = [bounds.ends[::direction] for bounds, direction in zip(operands, directions, strict=False)]
    return value([low for low, _ in ends]), value([high for _, high in ends])


def corners(operands: Sequence[Bounds], value: Evaluate) -> tuple[Array, Array]:
    """Least and greatest value of an op that is monotone in each operand, in either direction: each is at one of the corners."""
    choices = [(bounds.low,) if bounds.is_point else bounds.ends for bounds in operands]
    return _least_and_greatest([value(list(chosen)) for chosen in product(*choices)])


def _least_and_greatest(values: Sequence[Array]) -> tuple[Array, Array]:
    """The least and greatest of the values; the whole type where some values are NaN and others not."""
    low, high = reduce(np.minimum, values), reduce(np.maximum, values)
    if not is_float(low.dtype):
        return low, high
    mixed = np.isnan(low) & ~reduce(np.logical_and, map(np.isnan, values))
    return _where_any(mixed, (low, high)) if mixed.any() else (low, high)


def _where_any(mask: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
    least, most = extremes(ends[0].dtype)
    return np.where(mask, least, ends[0]), np.where(mask, most, ends[1])


def _holds_zero(bounds: Bounds) -> Array:
    """Mask of values that are uncertain and may be zero."""
    return np.asarray((bounds.low <= 0) & (bounds.high >= 0) & (not bounds.is_point))


def _turning_at_zero(bounds: Bounds, value: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Least and greatest value of a function that falls up to 0 and then rises."""
    low, high = _least_and_greatest([value(bounds.low), value(bounds.high)])
    is_inside = (bounds.low < 0) & (bounds.high > 0)
    if not is_inside.any():
        return low, high
    return np.where(is_inside, np.minimum(low, value(np.zeros_like(bounds.low))), low), high


def _passes(bounds: Bounds, first: float, period: float) -> Array:
    """Whether first + n * period is in the interval for an integer n. Places are known to 2^-40 of their size."""
    low, high = (wide(end) for end in bounds.ends)
    slack = 2.0**-40 * (1 + np.maximum(np.abs(low), np.abs(high)))
    return np.asarray(~(np.floor((high + slack - first) / period) <= np.floor((low - slack - first) / period)))


def _wave(opcode: str, bounds: Bounds, value: Evaluate) -> tuple[Array, Array]:
    """Sine and cosine: the ends, and 1 or -1 where a turning point is inside. Known operands give their value."""
    low, high = _least_and_greatest([value([end]) for end in bounds.ends])
    first, is_loose, one = (np.pi / 2 if opcode == "sine" else 0.0), ~bounds.is_single, low.dtype.type(1)
    high = np.where(_passes(bounds, first, 2 * np.pi) & is_loose, np.maximum(high, one), high)
    return np.where(_passes(bounds, first + np.pi, 2 * np.pi) & is_loose, np.minimum(low, -one), low), high


def _power(operands: Sequence[Bounds], value: Evaluate) -> tuple[Array, Array]:
    """Power: monotone in each operand for a base above zero; for other bases if the exponent is one integer, even ones turning at zero."""
    base, exponent = operands
    low, high = corners(operands, value)
    is_integer = exponent.is_single & (np.rint(computed(exponent.low)) == computed(exponent.low))
    holds_zero = (base.low <= 0) & (base.high >= 0)
    single = base.is_single & exponent.is_single & (base.is_point | ~holds_zero)
    turns = is_integer & (exponent.low > 0) & (base.low < 0) & (base.high > 0) & np.asarray(low >= 0)
    bad = (base.low <= 0) & ~is_integer & ~((base.low == 0) & (exponent.low > 0))
    bad |= holds_zero & is_integer & (exponent.low < 0)
    low = np.where(turns, np.minimum(low, low.dtype.type(0)), low)
    return _where_any(bad & ~single, (low, high))


def _angle(operands: Sequence[Bounds], value: Evaluate) -> tuple[Array, Array]:
    """atan2: monotone in each operand while the other stays, except across the half line x <= 0 of y = 0, where any angle is possible."""
    y, x = operands
    low, high = corners(operands, value)
    is_cut = np.asarray((y.low <= 0) & (y.high >= 0) & (x.low <= 0)) & ~(
        y.is_single & x.is_single & (y.is_point and x.is_point)
    )
    if y.is_point:
        # The sign of the zero says on which side of the half line the point is.
        is_cut &= ~(y.low == 0) | (x.high >= 0)
    half = np.array(np.pi).astype(low.dtype)
    return np.where(is_cut, -half, low), np.where(is_cut, half, high)


def _remainder(operands: Sequence[Bounds], value: Evaluate) -> tuple[Array, Array]:
    """Remainder x - n y with n = trunc(x / y): monotone in each operand while n stays; else less than |y|, with the sign of x."""
    x, y = operands
    low, high = corners(operands, value)
    quotients = [wide(a) / wide(b) for a, b in product(x.ends, y.ends)]
    slack = 1 + 2.0**-40
    least, most = reduce(np.minimum, quotients), reduce(np.maximum, quotients)
    is_same = (np.trunc(least * slack) == np.trunc(most * slack)) & (np.trunc(least / slack) == np.trunc(most / slack))
    is_same &= (np.trunc(least * slack) == np.trunc(least / slack)) & ~_holds_zero(y)
    is_same |= x.is_single & y.is_single
    size = np.minimum(np.maximum(np.abs(y.low), np.abs(y.high)), np.maximum(np.abs(x.low), np.abs(x.high))).astype(
        low.dtype
    )
    zero = low.dtype.type(0)
    ends = (
        np.where(is_same, low, np.where(x.low < 0, -size, zero)),
        np.where(is_same, high, np.where(x.high > 0, size, zero)),
    )
    is_special = ~np.isfinite(x.low) | ~np.isfinite(x.high) | _holds_zero(y) | ((y.low == 0) & (y.high == 0))
    return _where_any(is_special & ~(x.is_single & y.is_single), ends)


def _finite(bounds: Bounds) -> Bounds:
    low, high = np.isfinite(bounds.low), np.isfinite(bounds.high)
    never = np.isnan(bounds.low) | ((bounds.low == bounds.high) & ~low)
    return settled(np.asarray(low & high & ~bounds.is_unknown), ~never & ~(bounds.is_single & ~low))


# ---------------------------------------------------------------------------------------------------- choices


def _selected(predicate: Bounds, then: Bounds, otherwise: Bounds) -> Bounds:
    either = None if predicate.is_point else hull(then, otherwise)
    low = np.where(predicate.low, then.low, otherwise.low)
    if either is None:
        return (
            point(low)
            if then.is_point and otherwise.is_point
            else Bounds(low, np.where(predicate.low, then.high, otherwise.high))
        )
    high = np.where(predicate.low, then.high, otherwise.high)
    is_open = predicate.low != predicate.high
    return settled(np.where(is_open, either.low, low), np.where(is_open, either.high, high))


_ORDERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "GT": (np.greater, np.greater),
    "GE": (np.greater_equal, np.greater),
    "LT": (np.less, np.less),
    "LE": (np.less_equal, np.less),
}
"""Comparison direction -> the order, and the same order without equality."""


def _compared(op: CompareOp, x: Bounds, y: Bounds) -> Bounds:
    """The bounds of a comparison: certainly true, certainly false, or open."""
    direction, single = op.direction.data, x.is_single & y.is_single
    is_unknown = x.is_unknown | y.is_unknown
    at_once = np.asarray(op.evaluate([x.low, y.low], no_call))
    if op.deciding.kind is Kind.COMPLEX:
        never, always = _complex_order(direction, x, y)
        is_nan = np.asarray(False)
    else:
        is_nan = np.isnan(x.low) | np.isnan(y.low) if is_float(x.low.dtype) else np.asarray(False)
        if op.is_total_order:
            x, y = _in_total_order(x), _in_total_order(y)
        never, always = _order(direction, x, y)
        single = single | is_nan
    if x is y and not op.is_total_order:
        always, never = _same(direction) & ~is_unknown, ~_same(direction) & ~is_unknown
        single = single | is_nan
    low = np.where(single, at_once, always & ~is_unknown)
    return settled(low, np.where(single, at_once, ~never | is_unknown))


def _same(direction: str) -> Any:
    """Whether the relation `direction` holds between a number and itself."""
    return np.asarray(direction in ("EQ", "GE", "LE"))


def _order(direction: str, x: Bounds, y: Bounds) -> tuple[Any, Any]:
    """Two masks: the relation holds for no x and y within their bounds; it holds for all of them."""
    (a, b), (c, d) = ((computed(end) for end in bounds.ends) for bounds in (x, y))
    if direction in ("EQ", "NE"):
        apart, alike = (b < c) | (a > d), (a == b) & (c == d) & (a == c)
        return (apart, alike) if direction == "EQ" else (alike, apart)
    order, _ = _ORDERS[direction]
    if direction in ("GT", "GE"):
        return ~order(b, c), order(a, d)
    return ~order(a, d), order(b, c)


def _complex_order(direction: str, x: Bounds, y: Bounds) -> tuple[Any, Any]:
    """As `_order` for complex numbers: by the real parts, and by the imaginary parts where these are equal."""
    (never, always), (never_either, always_either) = (
        _order(direction, *pair) for pair in zip(x.parts, y.parts, strict=True)
    )
    if direction == "EQ":
        return never | never_either, always & always_either
    if direction == "NE":
        return never & never_either, always | always_either
    strictly, weakly = f"{direction[0]}T", f"{direction[0]}E"
    never_strictly, always_strictly = _order(strictly, x.parts[0], y.parts[0])
    never_weakly, always_weakly = _order(weakly, x.parts[0], y.parts[0])
    return never_weakly | (never_strictly & never_either), always_strictly | (always_weakly & always_either)


def _in_total_order(bounds: Bounds) -> Bounds:
    """The bounds as integers in total order; a zero of uncertain sign spans both."""
    low, high = (computed(end) for end in bounds.ends)
    if not bounds.is_point:
        low, high = np.where(low == 0, -np.zeros_like(low), low), np.where(high == 0, np.zeros_like(high), high)
    return Bounds(total_order(low), total_order(high))


# ---------------------------------------------------------------------------------------------------- conversions


def converted(bounds: Bounds, source: DType, target: DType) -> Bounds:
    """Bounds of a conversion: monotone, except to pred (nonzero is true) and for integers that wrap."""
    if source.kind is Kind.COMPLEX:
        part = real_part(source)
        if target.kind is Kind.COMPLEX:
            wanted = real_part(target)
            return joined(*(converted(own, part, wanted) for own in bounds.parts))
        return converted(bounds.parts[0], part, target)
    if bounds.is_point:
        return point(convert_array(bounds.low, source, target))
    low, high = (convert_array(end, source, target) for end in bounds.ends)
    if target.kind is Kind.PRED:
        is_open = ~bounds.is_single & (
            ((bounds.low <= low.dtype.type(0)) & (bounds.high >= low.dtype.type(0))) | bounds.is_unknown
        )
        return settled(np.where(is_open, False, low), np.where(is_open, True, high))
    if source.kind is Kind.FLOAT and target.is_integer:
        # NaN gives 0, which lies between the ends.
        return settled(np.minimum(low, high), np.maximum(low, high))
    if source.kind is Kind.FLOAT:
        nan_at_both = np.isnan(np.real(low)) & np.isnan(np.real(high)) & (bounds.low <= 0) & (bounds.high >= 0)
        nan_at_both &= ~bounds.is_single
        found = settled(low, high)
        if target.kind is Kind.COMPLEX:
            real, imaginary = found.parts
            return joined(unknown_where(bounds.is_unknown | nan_at_both, real), imaginary)
        return unknown_where(bounds.is_unknown | nan_at_both, found)
    if target.is_integer:
        least, most = (int(end) for end in extremes(target.numpy))
        given = [computed(end).astype(object) for end in bounds.ends]
        fits = np.asarray((given[0] >= least) & (given[1] <= most), np.bool_)
        return _whole_type_where(~fits & ~bounds.is_single, np.minimum(low, high), np.maximum(low, high))
    return settled(low, high)


def reinterpreted(bounds: Bounds, evaluate: Evaluate) -> Bounds:
    """Bounds of a bitcast: the bits of an uncertain value may be any, and so may every value made of them."""
    low = evaluate([bounds.low])
    single = np.asarray(bounds.is_single)
    if bounds.is_point:
        return point(low)
    single = single & ~((bounds.low == 0) & (bounds.high == 0))
    if low.ndim > single.ndim:
        single = np.broadcast_to(single[..., np.newaxis], low.shape)
    elif low.ndim < single.ndim:
        single = single.all(-1)
    return _whole_type_where(~single, low, low)


def _whole_type_where(mask: Array, low: Array, high: Array) -> Bounds:
    least, most = extremes(low.dtype)
    return settled(np.where(mask, least, low), np.where(mask, most, high))


# ---------------------------------------------------------------------------------------------------- integers and truth values


def _integer(op: ElementwiseOp, operands: Sequence[Bounds], evaluate: Evaluate) -> Bounds:
    """Pred and integers: monotone ops by their ends; sums and products by their corners unless one wraps; quotients by a known divisor."""
    single = reduce(np.logical_and, (bounds.is_single for bounds in operands))
    kind, opcode = op.deciding.kind, op.opcode
    lows = evaluate([bounds.low for bounds in operands])
    if opcode in (_RISES_WITH_BITS if kind is Kind.PRED else _RISES_WITH_INTEGERS):
        return settled(lows, evaluate([bounds.high for bounds in operands]))
    if opcode == "not":
        return settled(evaluate([operands[0].high]), lows)
    if kind is not Kind.PRED and opcode in ("add", "subtract", "multiply", "negate", "abs"):
        return _without_wrapping(op, operands, single, lows)
    if opcode in ("divide", "remainder") and kind is not Kind.PRED:
        x, y = operands
        is_positive = np.asarray(y.is_single & (computed(y.low) > 0))
        if opcode == "divide":
            return _whole_type_where(~single & ~is_positive, lows, evaluate([x.high, y.low]))
        rest = computed(y.low) - 1
        least = np.where(computed(x.low) < 0, -rest, 0)
        ends = (np.where(single, lows, end.astype(lows.dtype)) for end in (least, rest))
        return _whole_type_where(~single & ~is_positive, *ends)
    return _whole_type_where(~single, lows, lows)


def _without_wrapping(op: ElementwiseOp, operands: Sequence[Bounds], single: Array, lows: Array) -> Bounds:
    functions: dict[str, Callable[..., Any]] = {
        "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "negate": np.negative, "abs": np.abs,
    }  # fmt: skip
    ends = [tuple(computed(end).astype(np.longdouble) for end in bounds.ends) for bounds in operands]
    if len(operands) == 2 and operands[0] is operands[1]:
        values = [functions[op.opcode](end, end) for end in ends[0]]
    else:
        values = [functions[op.opcode](*chosen) for chosen in product(*ends)]
    low, high = reduce(np.minimum, values), reduce(np.maximum, values)
    if op.opcode == "abs" or (op.opcode == "multiply" and len(values) == 2 and len(operands) == 2):
        low = np.where((ends[0][0] < 0) & (ends[0][1] > 0), 0, low)
    least, most = (int(end) for end in extremes(lows.dtype))
    fits = (low >= least) & (high <= most)
    middle = [np.where(fits, end, 0) for end in (low, high)]
    kept = [end.astype(np.uint64 if least == 0 else np.int64).astype(lows.dtype) for end in middle]
    ends_found = _whole_type_where(~fits & ~single, kept[0], kept[1])
    return settled(np.where(single, lows, ends_found.low), np.where(single, lows, ends_found.high))
