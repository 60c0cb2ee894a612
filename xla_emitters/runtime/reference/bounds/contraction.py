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
from itertools import pairwise, product

import numpy as np

from xla_emitters.dialects.hlo.contractions import ContractingOp, DotOp
from xla_emitters.dialects.hlo.types import dims_of, element_of
from xla_emitters.dialects.hlo.windows import points_inside
from xla_emitters.dtypes import Array, Kind, NumpyType
from xla_emitters.runtime.reference.bounds.elementwise import converted
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


def bounds_of_contraction(op: ContractingOp, operands: Sequence[Bounds], evaluate: Evaluate) -> Bounds:
    """Every admissible result. raises Unsupported where the op's `evaluate` does."""
    held, result = op.held, element_of(op.result)
    terms = math.prod(
        variable.bounds.upper - variable.bounds.lower + 1 for variable in op.output_to_input()[0].range_vars
    )
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
        value = evaluate([bounds.low for bounds in operands]) if not _are_finite(operands) else None
        if held.kind is Kind.FLOAT:
            found = _sum(op, [(1, x, y)], terms, value)
            return converted(found, held, result)
        (a, b), (c, d) = x.parts, y.parts
        parts = [] if value is None else [np.asarray(np.real(value)), np.asarray(np.imag(value))]
        real = _sum(op, [(1, a, c), (-1, b, d)], terms, parts[0] if parts else None)
        imaginary = _sum(op, [(1, a, d), (1, b, c)], terms, parts[1] if parts else None)
        return joined(real, imaginary)


def _are_finite(operands: Sequence[Bounds]) -> bool:
    return all(
        bool(np.isfinite(end).all())
        for bounds in operands
        for end in bounds.ends
        if is_float(end.dtype) or end.dtype.kind == "c"
    )


def _sum(op: ContractingOp, pairs: Sequence[tuple[int, Bounds, Bounds]], terms: int, value: Array | None) -> Bounds:
    """The sum of signed contractions of pairs of factors, each in the type that sums are held in.

    value  the reference's value of the same part, used where it is not finite: infinities and NaNs of known operands are certain
    """
    kind, shape = pairs[0][1].low.dtype, dims_of(op.result)
    middle, size, reach = (np.zeros(shape) for _ in range(3))
    special = np.zeros(shape, np.bool_)
    for sign, x, y in pairs:
        (a, r, odd_a), (b, s, odd_b) = _factor(x), _factor(y)
        most_a, most_b = np.abs(a) + r, np.abs(b) + s
        middle += sign * _contracted(op, a, b)
        size += _contracted(op, most_a, most_b)
        if not x.is_point:
            reach += _contracted(op, r, most_b)
        if not y.is_point:
            reach += _contracted(op, np.abs(a), s)
        if value is not None:
            ones = np.ones_like(a), np.ones_like(b)
            special |= (_contracted(op, odd_a, ones[1]) + _contracted(op, ones[0], odd_b)) > 0
    roundings = terms * len(pairs)
    own = growth(roundings + 8, unit_of(np.dtype(np.float64)))
    largest = (size + np.abs(middle) + reach) / 2
    slack = reach * (1 + 2 * own) + _rounding(roundings, kind, size, largest)
    may_overflow = largest * (1 + own) + (2 * growth(roundings, unit_of(kind)) + own) * size > float(info(kind).max)
    found = around(kind, middle - slack, middle + slack, np.zeros(shape), may_overflow)
    if value is None or not special.any():
        return found
    is_known = all(bounds.is_point for _, x, y in pairs for bounds in (x, y))
    value = value.astype(kind)
    if is_known:
        certain = special & (~may_overflow | np.isnan(value))
        found = Bounds(np.where(certain, value, found.low), np.where(certain, value, found.high))
        return unknown_where(special & ~certain, found)
    return unknown_where(special, found)


def _rounding(roundings: int, kind: NumpyType, size: Array, largest: Array) -> Array:
    """Upper bound of the error from rounding a sum of products, including that of computing the sum in float64 here.

    size     S at the head of the file
    largest  M
    """
    unit = unit_of(kind)
    own = growth(roundings + 8, unit_of(np.dtype(np.float64)))
    on_the_way = largest + growth(roundings, unit) * size
    rounding = unit * size + max(0, roundings - 1) * unit * on_the_way * (1 + unit)
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
    return [_back(op, slope, y, 1), _back(op, slope, x, 0)]


def _back(op: DotOp, slope: Array, factor: Array, number: int) -> Array:
    """The slopes by operand `number` of a dot: the slopes by the result, contracted with the other operand, `factor`."""
    pairing, dims = op.pairing, dims_of(op.operands[1 - number])
    sides = (pairing.lhs_batch, pairing.lhs_contracting), (pairing.rhs_batch, pairing.rhs_contracting)
    (batch, contracting), (own_batch, own_contracting) = sides[number], sides[1 - number]
    free = [dim for dim in range(factor.ndim) if dim not in (*batch, *contracting)]
    own_free = [dim for dim in range(len(dims)) if dim not in (*own_batch, *own_contracting)]
    sizes = [factor.shape[dim] for dim in batch]
    count = len(batch)
    by = factor.transpose([*batch, *free, *contracting]).reshape(
        math.prod(sizes), math.prod(factor.shape[dim] for dim in free), -1
    )
    # Dimensions of the result's slopes: one for the chain's results, batch, free ones of lhs, free ones of rhs.
    first, second = (own_free, free) if number == 1 else (free, own_free)
    left = list(range(1 + count, 1 + count + len(first)))
    right = list(range(1 + count + len(first), 1 + count + len(first) + len(second)))
    own, other = (left, right) if number == 1 else (right, left)
    turned = slope.transpose([0, *range(1, 1 + count), *own, *other])
    rows = [dims[dim] for dim in own_free]
    turned = turned.reshape(len(slope), math.prod(sizes), math.prod(rows), by.shape[1])
    found = turned @ by
    ends = [dims[dim] for dim in own_contracting]
    # In the order of `factor`'s contracting dimensions, which pair with the operand's own one by one.
    shaped = found.reshape(len(slope), *sizes, *rows, *ends)
    return shaped.transpose([0, *(1 + place for place in np.argsort([*own_batch, *own_free, *own_contracting]))])


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
    shape, maps = dims_of(op.result), op.output_to_input()
    total, where = np.zeros(shape), np.indices(shape)
    for numbers in product(*(range(v.bounds.lower, v.bounds.upper + 1) for v in maps[0].range_vars)):
        inside = points_inside(maps[0], where, numbers)
        one, other = (
            array[
                tuple(
                    np.broadcast_to(np.asarray(part), shape)[inside] for part in index_map.evaluate([*where], numbers)
                )
            ]
            for array, index_map in zip((x, y), maps, strict=True)
        )
        total[inside] += one * other
    return total


def matrix_product(op: DotOp, x: Array, y: Array) -> Array:
    """A dot of arrays of float64, in some order."""
    pairing = op.pairing
    batch = len(pairing.lhs_batch)
    free = [
        [dim for dim in range(array.ndim) if dim not in taken]
        for array, taken in (
            (x, (*pairing.lhs_batch, *pairing.lhs_contracting)),
            (y, (*pairing.rhs_batch, *pairing.rhs_contracting)),
        )
    ]
    left = x.transpose([*pairing.lhs_batch, *free[0], *pairing.lhs_contracting])
    right = y.transpose([*pairing.rhs_batch, *pairing.rhs_contracting, *free[1]])
    batches, rows = left.shape[:batch], left.shape[batch : batch + len(free[0])]
    columns = right.shape[right.ndim - len(free[1]) :]
    terms = math.prod(left.shape[batch + len(free[0]) :])
    sizes = math.prod(batches), math.prod(rows), math.prod(columns)
    found = left.reshape(sizes[0], sizes[1], terms) @ right.reshape(sizes[0], terms, sizes[2])
    return found.reshape(*batches, *rows, *columns)
