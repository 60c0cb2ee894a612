"""What a reduction that threads share may give: its elements are combined in an order that the reference does not have.

    sum          the sum in twice the precision, and around it (combinations in a row) x eps x (sum of magnitudes)
    product      likewise, relative to the product; and what overflows or underflows on the way
    max, argmax  what is chosen does not depend on the order
    others       what the reference gives, and an ulp for each combination in a row

Each result of a reduction of several arrays has its own row. Elements are known up to bounds of their own: sums take the sums of these.
Source: design "Numbers": reductions are off by the longest chain of additions; Higham, "Accuracy and Stability", 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, cast

import ml_dtypes
import numpy as np

from xla_emitters.analysis.reduction_starts import body_of, combining_opcodes, only_chooses
from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.contractions import ReduceOp
from xla_emitters.dialects.hlo.types import element_of, is_array
from xla_emitters.dtypes import Array, Kind
from xla_emitters.runtime.tolerance import Bounds, widen

Evaluate = Callable[[Sequence[Array]], Any]


def bounds_in_any_order(op: ReduceOp, operands: Sequence[Bounds], chain: int, evaluate: Evaluate) -> Any:
    """Bounds of the result, or a tuple of them: all that a kernel may give that combines at most `chain` times in a row.

    evaluate  the reference: the op's value on arrays
    """
    count = len(op.arrays)
    body = body_of(op)
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
                else Bounds(_complex(*(p.low for p in parts)), _complex(*(p.high for p in parts)))
            )
            continue
        if opcode == "multiply" and kind is Kind.FLOAT:
            found.append(_product(array, init, axes, chain * eps))
            continue
        if in_order is None:
            in_order = corners_of_each(operands, evaluate)
        own = in_order[number]
        is_exact = chooses or opcode in ("maximum", "minimum") or kind in (Kind.PRED, Kind.SIGNED, Kind.UNSIGNED)
        found.append(own if is_exact else Bounds(widen(own.low, chain, -1), widen(own.high, chain, +1)))
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
    return [Bounds(bounds.low.real, bounds.high.real), Bounds(bounds.low.imag, bounds.high.imag)]


def _complex(real: Array, imaginary: Array) -> Array:
    return (real + 1j * imaginary).astype(np.result_type(real, np.complex64))


def _sum(array: Bounds, init: Bounds, axes: tuple[int, ...], relative: float) -> Bounds:
    kind = array.low.dtype
    low, high = (_wide(part).sum(axes) + _wide(first) for part, first in zip(_ends(array), _ends(init), strict=True))
    magnitudes = _magnitudes(array).sum(axes) + _magnitudes(init)
    return _around(kind, low, high, relative * magnitudes, magnitudes)


def _product(array: Bounds, init: Bounds, axes: tuple[int, ...], relative: float) -> Bounds:
    """Of bounds that are no points, each factor may be either end: the magnitudes say how far the product may be off."""
    kind = array.low.dtype
    middle = _wide(array.low).prod(axes) * _wide(init.low)
    magnitudes = _magnitudes(array).prod(axes) * _magnitudes(init)
    spread = magnitudes - abs(middle)
    # A product of some factors may be as large as that of all that are above 1, and lose as much below the smallest number.
    grown = np.maximum(_magnitudes(array), 1).prod(axes) * np.maximum(_magnitudes(init), 1)
    finfo: Any = ml_dtypes.finfo
    lost = grown * float(finfo(kind).smallest_normal)
    return _around(kind, middle, middle, relative * magnitudes + spread + lost, grown)


def _ends(bounds: Bounds) -> tuple[Array, Array]:
    return bounds.low, bounds.high


def _wide(array: Array) -> Array:
    """`array` in a type of twice its precision, or in the widest that there is."""
    return array.astype(np.longdouble if array.dtype == np.float64 else np.float64)


def _magnitudes(bounds: Bounds) -> Array:
    return np.maximum(abs(_wide(bounds.low)), abs(_wide(bounds.high)))


def _around(kind: np.dtype[Any], low: Array, high: Array, slack: Array, largest: Array) -> Bounds:
    """[low - slack, high + slack]; anything where a part of the result may overflow; the result itself where it is not finite."""
    finfo: Any = ml_dtypes.finfo
    with np.errstate(all="ignore"):
        is_special = ~np.isfinite(largest) | ~np.isfinite(low) | ~np.isfinite(high)
        may_overflow = (largest > float(finfo(kind).max)) & ~is_special
        ends = [
            np.where(is_special, end, np.where(may_overflow, sign * np.inf, end + sign * slack)).astype(kind)
            for end, sign in ((low, -1), (high, 1))
        ]
    return Bounds(ends[0], ends[1])


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
            found = [Bounds(np.minimum(old.low, part), np.maximum(old.high, part)) for old, part in pairs]
    assert found is not None
    return found
