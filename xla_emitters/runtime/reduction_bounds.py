"""What a reduction that threads share may give: its elements are combined in an order that the reference does not have.

    sum          the sum in twice the precision, and around it (combinations in a row) x eps x (sum of magnitudes)
    product      likewise, relative to the product; and what overflows or underflows on the way
    max, argmax  what is chosen does not depend on the order
    others       what the reference gives, and for each rounding in a row an ulp of it, or of the greatest element if that is more:
                 weighted means cancel

Each result of a reduction of several arrays has its own row. Elements are known up to bounds of their own: sums take the sums of these.
Source: docs/reference/contracts "Numbers": reductions are off by the longest chain of additions; Higham, "Accuracy and Stability", 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, cast

import ml_dtypes
import numpy as np

from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.complex_meaning import from_parts
from xla_emitters.dialects.hlo.computation import find_computation
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.types import element_of, is_array
from xla_emitters.dtypes import Array, Kind
from xla_emitters.fusions.reduction_starts import combining_opcodes, only_chooses
from xla_emitters.runtime.tolerance import Bounds, by_parts, farthest, ulps_of, widen, widen_complex

Evaluate = Callable[[Sequence[Array]], Any]


def bounds_in_any_order(op: ReduceOp, operands: Sequence[Bounds], chain: int, evaluate: Evaluate) -> Any:
    """Bounds of the result, or a tuple of them: all that a kernel may give that combines at most `chain` times in a row.

    evaluate  the reference: the op's value on arrays
    """
    count = len(op.arrays)
    body = find_computation(op, op.to_apply)
    eps = max((_eps(inner) for inner in body.instructions), default=0.0)
    chooses = only_chooses(body)
    in_order: list[Bounds] | None = None
    found = list[Bounds]()
    for number, opcode in enumerate(combining_opcodes(body)):
        array, init, kind = operands[number], operands[count + number], element_of(op.operands[count + number]).kind
        axes = tuple(integers(op.dimensions))
        if opcode == "add" and kind in (Kind.FLOAT, Kind.COMPLEX):
            parts = [
                _sum(part, start, axes, chain * eps) for part, start in zip(_parts(array), _parts(init), strict=True)
            ]
            found.append(
                parts[0]
                if len(parts) == 1
                else Bounds(from_parts(*(p.low for p in parts)), from_parts(*(p.high for p in parts)))
            )
            continue
        if opcode == "multiply" and kind in (Kind.FLOAT, Kind.COMPLEX):
            multiplied = _product if kind is Kind.FLOAT else _complex_product
            found.append(multiplied(array, init, axes, chain * eps))
            continue
        if in_order is None:
            in_order = corners_of_each(operands, evaluate)
        own = in_order[number]
        is_exact = chooses or opcode in ("maximum", "minimum") or kind in (Kind.PRED, Kind.SIGNED, Kind.UNSIGNED)
        if is_exact:
            found.append(own)
        elif kind is Kind.COMPLEX:
            found.append(Bounds(*widen_complex(own.low, own.high, np.array(chain))))
        else:
            rounding = [inner for inner in body.instructions if inner.operands and _eps(inner)]
            ulps = chain * sum(max(1, ulps_of(inner.opcode, kind.value, 32)) for inner in rounding)
            found.append(_near(own, array, init, axes, chain, ulps * eps))
    return found[0] if count == 1 else tuple(found)


def _eps(op: HloOp) -> float:
    """Between 1 and the next number, in the type that an op of a reduction's computation rounds to."""
    if not is_array(op.result.type) or element_of(op.result).kind not in (Kind.FLOAT, Kind.COMPLEX):
        return 0.0
    finfo: Any = ml_dtypes.finfo
    kind = element_of(op.result).numpy
    return float(finfo(np.dtype(f"f{kind.itemsize // 2}") if kind.kind == "c" else kind).eps)


def _parts(bounds: Bounds) -> list[Bounds]:
    """Real and imaginary part of complex numbers, each with bounds of its own; what is real is its only part."""
    if bounds.low.dtype.kind != "c":
        return [bounds]
    return [Bounds(np.real(bounds.low), np.real(bounds.high)), Bounds(np.imag(bounds.low), np.imag(bounds.high))]


def _sum(array: Bounds, init: Bounds, axes: tuple[int, ...], relative: float) -> Bounds:
    kind = array.low.dtype
    starts = _ends(init)
    ends = [_wide(part).sum(axes) for part in ((array.low,) if array.is_point else _ends(array))]
    low, high = ends[0] + _wide(starts[0]), ends[-1] + _wide(starts[1])
    each = _magnitudes(array)
    finite = magnitudes = each.sum(axes) + _magnitudes(init)
    if not np.isfinite(magnitudes).all():
        finite = _finite(each, 0).sum(axes) + _finite(_magnitudes(init), 0)
    return around(kind, low, high, relative * magnitudes, finite > float(_info(kind).max))


def _product(array: Bounds, init: Bounds, axes: tuple[int, ...], relative: float) -> Bounds:
    """Of bounds that are no points, each factor may be either end: the magnitudes say how far the product may be off."""
    kind = array.low.dtype
    with np.errstate(over="ignore", invalid="ignore"):
        middle = _wide(array.low).prod(axes) * _wide(init.low)
        magnitudes = _magnitudes(array).prod(axes) * _magnitudes(init)
    # Beyond the wide type's range, too, a zero among finite factors makes 0.
    is_zero = np.isnan(middle) & np.isfinite(_wide(array.low)).all(axes) & np.isfinite(_wide(init.low))
    middle, magnitudes = np.where(is_zero, 0, middle), np.where(is_zero, 0, magnitudes)
    spread = magnitudes - abs(middle)
    # A product of some factors may be as large as that of all that are above 1, and lose as much below the smallest number.
    finite = [_finite(_magnitudes(bounds), 1) for bounds in (array, init)]
    grown = np.maximum(finite[0], 1).prod(axes) * np.maximum(finite[1], 1)
    shrunk = np.minimum(_not_zero(finite[0]), 1).prod(axes) * np.minimum(_not_zero(finite[1]), 1)
    lost = grown * float(_info(kind).smallest_normal)
    # Where some factors alone give 0, infinity times that is NaN.
    vanishes = np.isinf(magnitudes) & (shrunk < float(_info(kind).smallest_normal))
    may_overflow = (grown > float(_info(kind).max)) | vanishes
    return around(kind, middle, middle, relative * magnitudes + spread + lost, may_overflow)


def _complex_product(array: Bounds, init: Bounds, axes: tuple[int, ...], relative: float) -> Bounds:
    """Each factor is anywhere in its rectangle. A product rounds by at most 2 eps of its modulus, and so by that in either part."""
    with np.errstate(all="ignore"):
        (middle, reach), (first, first_reach) = (_middle(bounds) for bounds in (array, init))
        product = middle.prod(axes) * first
        largest = (abs(middle) + reach).prod(axes) * (abs(first) + first_reach)
        spread = largest - abs(product)
        grown = np.maximum(abs(middle) + reach, 1).prod(axes) * np.maximum(abs(first) + first_reach, 1)
    part = np.real(array.low).dtype
    lost = grown * float(_info(part).smallest_normal)
    slack = 2 * relative * largest + spread + lost
    # Parts are sums of two products, each as large as the modulus. Which part an infinity makes NaN depends on the order.
    may_overflow = ~(2 * grown <= float(_info(part).max))
    product = np.where(may_overflow, 0, product)
    parts = [around(part, own(product), own(product), slack, may_overflow) for own in (np.real, np.imag)]
    return Bounds(from_parts(*(p.low for p in parts)), from_parts(*(p.high for p in parts)))


def _middle(bounds: Bounds) -> tuple[Array, Array]:
    """The middle of complex rectangles in the widest type, and how far their corners are from it."""
    low, high = (end.astype(np.clongdouble) for end in _ends(bounds))
    return (low + high) / 2, abs(high - low) / 2


def _finite(magnitudes: Array, instead: float) -> Array:
    return np.where(np.isfinite(magnitudes), magnitudes, instead)


def _not_zero(magnitudes: Array) -> Array:
    return np.where(magnitudes > 0, magnitudes, 1)


def _info(kind: np.dtype[Any]) -> Any:
    """Largest and smallest normal number of a float type, also of those that NumPy lacks."""
    finfo: Any = ml_dtypes.finfo
    return finfo(kind)


def _ends(bounds: Bounds) -> tuple[Array, Array]:
    return bounds.low, bounds.high


def _wide(array: Array) -> Array:
    """`array` in a type of twice its precision, or in the widest that there is."""
    return np.asarray(array).astype(np.longdouble if array.dtype == np.float64 else np.float64)


def _near(own: Bounds, array: Bounds, init: Bounds, axes: tuple[int, ...], chain: int, relative: float) -> Bounds:
    """What the reference gives, some ulps of it or `relative` of the largest number that it may be made of around it."""
    elements = _finite(_magnitudes(array), 0).max(axes, initial=0)
    largest = np.maximum(np.maximum(elements, _finite(_magnitudes(init), 0)), _finite(_magnitudes(own), 0))
    low, high = (_wide(end) for end in _ends(own))
    by_size = around(own.low.dtype, low, high, relative * largest, np.zeros_like(largest, bool))
    by_ulps = widen(own.low, chain, -1), widen(own.high, chain, +1)
    return Bounds(np.minimum(by_size.low, by_ulps[0]), np.maximum(by_size.high, by_ulps[1]))


def _magnitudes(bounds: Bounds) -> Array:
    low = _wide(bounds.low)
    np.abs(low, out=low)
    return low if bounds.is_point else np.maximum(low, abs(_wide(bounds.high)))


def around(kind: np.dtype[Any], low: Array, high: Array, slack: Array, may_overflow: Array) -> Bounds:
    """[low - slack, high + slack]; the result itself where it is not finite; anything where a part may overflow, but NaN stays NaN."""
    with np.errstate(all="ignore"):
        is_special = ~np.isfinite(low) | ~np.isfinite(high)
        is_nan = np.isnan(low) | np.isnan(high)
        # Beyond the last number of a type without infinity there is NaN.
        least, most = (float(farthest(kind, sign)) for sign in (-1, 1))
        ends = [
            np.where(may_overflow & ~is_nan, sign * np.inf, np.where(is_special, end, end + sign * slack))
            for end, sign in ((low, -1), (high, 1))
        ]
    return Bounds(*(end.clip(least, most).astype(kind) for end in ends))


def corners_of_each(operands: Sequence[Bounds], evaluate: Evaluate) -> list[Bounds]:
    """For each result, the least and the greatest over all corners of the operands' bounds, in the reference's order."""
    loose = [number for number, bounds in enumerate(operands) if not bounds.is_point]
    found: list[Bounds] | None = None
    for choice in product((False, True), repeat=len(loose)):
        upper = {number for number, is_upper in zip(loose, choice, strict=True) if is_upper}
        value = evaluate([bounds.high if n in upper else bounds.low for n, bounds in enumerate(operands)])
        parts = cast("tuple[Array, ...]", value) if isinstance(value, tuple) else (value,)
        if found is None:
            found = [Bounds(part, part) for part in parts]
        else:
            pairs = zip(found, parts, strict=True)
            found = [
                Bounds(by_parts(np.minimum, old.low, part), by_parts(np.maximum, old.high, part)) for old, part in pairs
            ]
    assert found is not None
    return found
