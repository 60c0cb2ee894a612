"""Bounds of dot and convolution: sums of products in any order, products rounded or not.

With operands a ± r and b ± s, over the k terms of an element:

    sum a b                                   of the middles, in float64
    + sum r (|b| + s) + |a| s                 error of the operands
    + u S + (k - 1) u (M + ((1 + u)^k - 1) S) the products' roundings and those of k - 1 additions, in the type that sums are held in
    + k times the smallest number             what products lose by underflow

with S = sum (|a| + r)(|b| + s), and M = (S + |sum a b| + error of the operands) / 2. In any order, every partial sum is a sum of some of
the terms, so it is no larger than the sum of all terms of one sign, and no further off than ((1 + u)^k - 1) S.
Then the sum is converted to the result's type. A complex product is four real ones, so a part has twice as many terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from xla_emitters.dialects.hlo.contractions import ContractingOp, DotOp
from xla_emitters.dialects.hlo.types import dims_of, element_of
from xla_emitters.dialects.hlo.windows import visited
from xla_emitters.dtypes import Array, Kind, NumpyType
from xla_emitters.library.arguments import arranged
from xla_emitters.runtime.reference.bounds.elementwise_bounds import converted
from xla_emitters.runtime.reference.bounds.sums import around, growth, smallest, unit_of
from xla_emitters.runtime.reference.tolerance import (
    Bounds,
    everything,
    info,
    is_float,
    joined,
    point,
    settled,
    unknown_where,
)

Evaluate = Callable[[Sequence[Array]], Array]
Contract = Callable[[Array, Array], Array]
"""Contracts two arrays of float64, in some order."""


def bounds_of_contraction(op: ContractingOp, operands: Sequence[Bounds], evaluate: Evaluate) -> Bounds:
    """Every admissible result. raises Unsupported where the op's `evaluate` does."""
    held, result = op.held, element_of(op.result)
    terms = math.prod(variable.bounds.trip_count for variable in op.output_to_input()[0].range_vars)
    is_exact = held.kind not in (Kind.FLOAT, Kind.COMPLEX) or terms <= 0
    if is_exact and all(bounds.is_point for bounds in operands):
        return point(evaluate([bounds.low for bounds in operands]))
    if held.kind is Kind.PRED:
        return settled(*(evaluate(list(ends)) for ends in zip(*(bounds.ends for bounds in operands), strict=True)))
    if is_exact:
        return everything(result.numpy, dims_of(op.result))
    factors = list[Bounds]()
    for number, bounds in enumerate(operands):
        for source, target in pairwise(op.kept(number)):
            bounds = converted(bounds, source, target)
        factors.append(bounds)
    x, y = factors
    with np.errstate(all="ignore"):
        value = evaluate([bounds.low for bounds in operands]) if not are_finite(*operands) else None
        bounds_of = partial(sums_of_products, partial(_contracted, op), terms=terms, shape=dims_of(op.result))
        if held.kind is Kind.FLOAT:
            return converted(bounds_of([(1, x, y)], value=value), held, result)
        (a, b), (c, d) = x.parts, y.parts
        parts = [None, None] if value is None else [np.asarray(np.real(value)), np.asarray(np.imag(value))]
        real = bounds_of([(1, a, c), (-1, b, d)], value=parts[0])
        return joined(real, bounds_of([(1, a, d), (1, b, c)], value=parts[1]))


def are_finite(*given: Bounds) -> bool:
    """Whether no element may be infinite or NaN."""
    ends = (end for bounds in given for end in bounds.ends if is_float(end.dtype) or end.dtype.kind == "c")
    return all(bool(np.isfinite(end).all()) for end in ends)


def sums_of_products(
    contract: Contract,
    pairs: Sequence[tuple[int, Bounds, Bounds]],
    terms: int | Array,
    shape: tuple[int, ...],
    value: Array | None = None,
) -> Bounds:
    """The sum of signed contractions of pairs of factors, each in the type that sums are held in.

    terms  of one contraction: of all elements, or of each
    shape  of the result
    value  the reference's value of the same part, used where it is not finite: infinities and NaNs of known operands are certain. None:
           what operands that are not finite go to is unknown
    """
    kind = pairs[0][1].low.dtype
    middle, size, reach = (np.zeros(shape) for _ in range(3))
    special = np.zeros(shape, np.bool_)
    for sign, x, y in pairs:
        (a, r, odd_a), (b, s, odd_b) = _factor(x), _factor(y)
        most_a, most_b = np.abs(a) + r, np.abs(b) + s
        middle += sign * contract(a, b)
        size += contract(most_a, most_b)
        if not x.is_point:
            reach += contract(r, most_b)
        if not y.is_point:
            reach += contract(np.abs(a), s)
        if odd_a.any() or odd_b.any():
            special |= (contract(odd_a, np.ones_like(b)) + contract(np.ones_like(a), odd_b)) > 0
    roundings = terms * len(pairs)
    own = growth(roundings + 8, unit_of(np.dtype(np.float64)))
    largest = (size + np.abs(middle) + reach) / 2
    slack = reach * (1 + 2 * own) + _rounding(roundings, kind, size, largest)
    may_overflow = largest * (1 + own) + (2 * growth(roundings, unit_of(kind)) + own) * size > float(info(kind).max)
    found = around(kind, middle - slack, middle + slack, np.zeros(shape), may_overflow)
    if not special.any():
        return found
    if value is None or not all(bounds.is_point for _, x, y in pairs for bounds in (x, y)):
        return unknown_where(special, found)
    value = value.astype(kind)
    certain = special & (~may_overflow | np.isnan(value))
    found = Bounds(np.where(certain, value, found.low), np.where(certain, value, found.high))
    return unknown_where(special & ~certain, found)


def _rounding(roundings: int | Array, kind: NumpyType, size: Array, largest: Array) -> Array:
    """Upper bound of the error from rounding a sum of products, including that of computing the sum in float64 here.

    size     S at the head of the file
    largest  M
    """
    unit = unit_of(kind)
    own = growth(roundings + 8, unit_of(np.dtype(np.float64)))
    on_the_way = largest + growth(roundings, unit) * size
    rounding = unit * size + np.maximum(0, roundings - 1) * unit * on_the_way * (1 + unit)
    return rounding * (1 + 2 * own) + own * size + 2 * roundings * smallest(kind)


def rounding_of(op: DotOp, x: tuple[Array, Array], y: tuple[Array, Array]) -> tuple[Array, int]:
    """Upper bound of the error of a dot of values between these ends, from rounding in f32 and in float64; and its number of terms."""
    (a, r), (b, s) = ((low / 2 + high / 2, high / 2 - low / 2) for low, high in (x, y))
    most_b = np.abs(b) + s
    size = _contracted(op, np.abs(a) + r, most_b)
    reach = _contracted(op, r, most_b) + _contracted(op, np.abs(a), s)
    terms = math.prod(dims_of(op.operands[0])[dim] for dim in op.pairing.lhs_contracting)
    largest = (size + np.abs(_contracted(op, a, b)) + reach) / 2
    return _rounding(terms, np.dtype(np.float32), size, largest), terms


def transposed_products(op: DotOp, slope: Array, x: Array, y: Array) -> list[Array]:
    """The slopes by the elements of both operands, from the slopes by the result; the first dimension indexes results of the chain."""
    pairing, chain = op.pairing, x.ndim + y.ndim
    left, right = list(range(x.ndim)), list(range(x.ndim, chain))
    for one, other in (
        *zip(pairing.lhs_batch, pairing.rhs_batch, strict=True),
        *zip(pairing.lhs_contracting, pairing.rhs_contracting, strict=True),
    ):
        right[other] = left[one]
    summed = [left[dim] for dim in pairing.lhs_contracting]
    batch = [left[dim] for dim in pairing.lhs_batch]
    free = [label for label in (*left, *right) if label not in (*batch, *summed)]
    ours = slope, [chain, *batch, *free]
    return [
        np.einsum(*ours, factor, labels, [chain, *wanted], optimize=True)
        for factor, labels, wanted in ((y, right, left), (x, left, right))
    ]


def _factor(bounds: Bounds) -> tuple[Array, Array, Array]:
    """The middle, the radius, and a mask of where an end is not finite: middle and radius are 0 there."""
    low = bounds.low.astype(np.float64)
    if bounds.is_point:
        odd = ~np.isfinite(low)
        return np.where(odd, 0, low), np.zeros_like(low), odd.astype(np.float64)
    high = bounds.high.astype(np.float64)
    odd = ~(np.isfinite(low) & np.isfinite(high))
    low, high = np.where(odd, 0, low), np.where(odd, 0, high)
    middle = low / 2 + high / 2
    radius = np.maximum(high - middle, middle - low) * (1 + 4 * float(np.finfo(np.float64).eps))
    return middle, np.where(low == high, 0, radius), odd.astype(np.float64)


def _contracted(op: ContractingOp, x: Array, y: Array) -> Array:
    """The op on arrays of float64, in some order."""
    if isinstance(op, DotOp):
        return matrix_product(op, x, y)
    total = np.zeros(shape := dims_of(op.result))
    for inside, (one, other) in visited(shape, *op.output_to_input()):
        total[inside] += x[one] * y[other]
    return total


def matrix_product(op: DotOp, x: Array, y: Array) -> Array:
    """A dot of arrays of float64, in some order."""
    pairing = op.pairing
    left = arranged(x, pairing.lhs_batch, contracting=pairing.lhs_contracting, contracting_last=True)
    right = arranged(y, pairing.rhs_batch, contracting=pairing.rhs_contracting, contracting_last=False)
    return (left @ right).reshape(dims_of(op.result))
