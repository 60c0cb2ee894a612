"""Bounds of a reduction: in the reference's order, or, where threads share it, in any order.

    sum          the sum in twice the precision, and around it the roundings of the longest chain of additions (`sums`)
    product      the product, and around it the roundings of all multiplications; and intermediate overflow or underflow
    max, argmax  the result does not depend on the order
    others       (weighted means ...) the body's bounds with each rounding moved outwards, so that they contain the exact value E of
                 the reduction and the kernel's value K if it combined in the same order; width W. In another order the result differs
                 from E by as many roundings, assumed to be at most W as well. So K is within W of the bounds

In the reference's order, a body that is monotone maps ends to ends; any other body is evaluated step by step on bounds, even if its
operands are known: where its ops have errors of their own (the exponential in a cumulative log-sum-exp), so has each step.
Each result of a reduction of several arrays has its own row. The loops of a window over several dimensions may be peeled, which
changes the order: such a reduction counts as shared. Source: docs/reference/contracts "Numbers"; Higham, "Accuracy and Stability", 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.called import arrays_of
from xla_emitters.dialects.hlo.complex_meaning import from_parts
from xla_emitters.dialects.hlo.computation import ComputationOp, ParameterOp, TupleOp, find_computation
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp
from xla_emitters.dialects.hlo.reductions import ReduceOp, ReduceWindowOp, ReducingOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array, leaf_types
from xla_emitters.dialects.hlo.windows import visited
from xla_emitters.dtypes import Array, Kind
from xla_emitters.graph.reduction_starts import combining_opcodes, only_chooses
from xla_emitters.runtime.reference.bounds.sums import (
    around,
    finite,
    growth,
    magnitudes,
    middle_and_radius,
    sum_bounds,
    unit_of,
    within_sign,
)
from xla_emitters.runtime.reference.tolerance import (
    Bounds,
    everything,
    info,
    is_float,
    joined,
    point,
    settled,
    ulps_of,
    unknown_where,
    wide,
)

MOST_POINTS = 64
"""Points of a window whose elements are laid out beside each other, to be summed in twice the precision."""
Evaluate = Callable[[Sequence[Array]], Any]

Run = Callable[..., Sequence[Bounds]]
"""(bounds of a computation's parameters, is_outward) -> bounds of its results, element by element."""


def bounds_of_reduction(
    op: ReducingOp,
    operands: Sequence[Bounds],
    chain: int | None,
    evaluate: Evaluate,
    run: Run,
    scan: int | None = None,
) -> Any:
    """Bounds of the result, or a tuple of them.

    chain     most combinations in a row that an element goes through, if threads share the reduction; else None. Of a window: its elements
    evaluate  the reference: the op's value on arrays
    run       evaluates the reduction's computation on bounds
    scan      of a window: most combinations of a kernel that computes the window and others as one scan; None: none does
    """
    body, count = find_computation(op, op.to_apply), len(op.arrays)
    if isinstance(op, ReduceWindowOp) and sum(dim.size > 1 for dim in op.window.data.dims) > 1:
        chain = math.prod(dim.size for dim in op.window.data.dims)
    in_order: list[Bounds] | None = None
    in_any_order: list[Bounds] | None = None
    found = list[Bounds]()
    chooses = only_chooses(body)
    for number, opcode in enumerate(combining_opcodes(body)):
        array, init, kind = operands[number], operands[count + number], element_of(op.operands[count + number]).kind
        rounds = chain is not None and kind in (Kind.FLOAT, Kind.COMPLEX)
        if rounds and chain is not None and opcode == "add":
            is_scan = scan is not None and chain <= MOST_POINTS and kind is Kind.FLOAT
            if isinstance(op, ReduceWindowOp) and (is_scan or (chain > MOST_POINTS and _can_reorder(op))):
                (ordered,) = _in_order(op, operands, body, evaluate, run)
                found.append(_reordered(ordered, operands, unit_of_body(body), evaluate, scan or 0))
                continue
            parts = zip(array.parts, init.parts, strict=True)
            sums = [_sum(op, part, start, chain, unit_of_body(body)) for part, start in parts]
            found.append(sums[0] if kind is Kind.FLOAT else joined(*sums))
        elif rounds and chain is not None and opcode == "multiply" and isinstance(op, ReduceOp):
            multiplied = _product if kind is Kind.FLOAT else _complex_product
            found.append(multiplied(array, init, tuple(integers(op.dimensions)), unit_of_body(body)))
        elif rounds and chain is not None and not chooses and opcode not in ("maximum", "minimum"):
            in_any_order = in_any_order or _own_body(op, operands, chain, run)
            is_product = scan is not None and opcode == "multiply" and kind is Kind.FLOAT
            found.append(
                _underflowing(in_any_order[number], operands, evaluate) if is_product else in_any_order[number]
            )
        else:
            in_order = in_order or _in_order(op, operands, body, evaluate, run)
            found.append(in_order[number])
    return found[0] if count == 1 else tuple(found)


def _can_reorder(op: ReduceWindowOp) -> bool:
    """Whether `_reordered` has the bounds of its sums: counts and sums of magnitudes are nearly exact in its type."""
    element = element_of(op.operands[0])
    return len(op.arrays) == 1 and element.kind is Kind.FLOAT and element.bits >= 32


def _reordered(ordered: Bounds, operands: Sequence[Bounds], unit: float, evaluate: Evaluate, scan: int = 0) -> Bounds:
    """Sums in any order from those in the reference's: both are as far from the exact ones as the additions of a window round.

    scan  additions that an element goes through in a scan, of which the window may be a part: what rounds elsewhere counts here
    """
    array, init = operands
    kind = ordered.low.dtype
    largest = [np.maximum(np.abs(bounds.low), np.abs(bounds.high)).astype(kind) for bounds in operands]
    (sizes,) = arrays_of(evaluate(largest))
    (counts,) = arrays_of(evaluate([np.ones_like(array.low), np.ones_like(init.low)]))
    low, high = (wide(end) for end in ordered.ends)
    roundings = np.maximum(wide(counts), scan)
    reach = 2 * math.expm1(math.log1p(unit)) * roundings * wide(sizes) * (1 + unit) ** 2
    # The sizes are rounded sums too.
    return around(kind, low, high, reach * (1 + unit * wide(counts)), ordered.is_unknown)


def _underflowing(found: Bounds, operands: Sequence[Bounds], evaluate: Evaluate) -> Bounds:
    """Products of a window that another order may take below the smallest normal number, and then multiply by the factors above 1."""
    largest = [np.maximum(finite(magnitudes(bounds), 1), 1).astype(bounds.low.dtype) for bounds in operands]
    (grown,) = arrays_of(evaluate(largest))
    low, high = (wide(end) for end in found.ends)
    lost = finite(wide(grown), 0) * float(info(found.low.dtype).smallest_normal)
    return around(found.low.dtype, low, high, lost, found.is_unknown | ~np.isfinite(grown))


def in_scan(op: HloOp, operands: Sequence[Bounds], found: Bounds, scan: int) -> Bounds:
    """The bounds of an op that combines two parts of a scan, whose elements the kernel combines in another order.

    Each element of a row is an operand of at least one such op, or is in a window: there the roundings of its whole chain count.
    scan   most combinations in a row of the kernel
    """
    kind = element_of(op.result).kind
    if op.opcode not in ("add", "multiply") or kind is not Kind.FLOAT or _is_of_windows(op):
        return found
    low, high = (wide(end) for end in found.ends)
    one, other = (finite(magnitudes(bounds), 0) for bounds in operands)
    sizes = one + other if op.opcode == "add" else np.maximum(np.abs(low), np.abs(high))
    lost = float(info(found.low.dtype).smallest_normal) if op.opcode == "multiply" else 0.0
    return around(found.low.dtype, low, high, growth(2 * scan, _unit(op)) * sizes + lost, found.is_unknown)


def _is_of_windows(op: HloOp) -> bool:
    """Whether its computation has windows, where the roundings are counted."""
    inside = op.parent_op()
    return isinstance(inside, ComputationOp) and any(isinstance(other, ReduceWindowOp) for other in inside.instructions)


def unit_of_body(body: ComputationOp) -> float:
    """Relative rounding error of one combination."""
    units = [_unit(inner) for inner in body.instructions]
    return math.expm1(sum(math.log1p(unit) for unit in units))


def _unit(op: HloOp) -> float:
    """Relative rounding error of one op: 0 if it does not round, for example a conversion to a wider type."""
    if not is_array(op.result.type) or not op.operands:
        return 0.0
    result, first = element_of(op.result), element_of(op.operands[0])
    if result.kind not in (Kind.FLOAT, Kind.COMPLEX):
        return 0.0
    unit = unit_of(result.numpy)
    if op.opcode == "convert" and first.kind is result.kind and unit_of(first.numpy) >= unit:
        return 0.0
    return unit


# ---------------------------------------------------------------------------------------------------- in the reference's order


_RISES = {
    Kind.FLOAT: ("add", "maximum", "minimum"),
    Kind.SIGNED: ("maximum", "minimum"),
    Kind.UNSIGNED: ("maximum", "minimum"),
    Kind.PRED: ("add", "multiply", "maximum", "minimum", "and", "or"),
    Kind.COMPLEX: ("add",),
}
"""Combinations that are monotone in both operands."""


def _in_order(
    op: ReducingOp, operands: Sequence[Bounds], body: ComputationOp, evaluate: Evaluate, run: Run
) -> list[Bounds]:
    if all(bounds.is_point for bounds in operands) and _has_one_value(body):
        return [point(value) for value in arrays_of(evaluate([bounds.low for bounds in operands]))]
    count = len(op.arrays)
    kinds = [element_of(operand).kind for operand in op.operands[:count]]
    if all(opcode in _RISES[kind] for opcode, kind in zip(combining_opcodes(body), kinds, strict=True)):
        # Where an operand is unknown, NaN, which spreads to all results.
        unknown = [bounds.is_unknown for bounds in operands]
        is_any = any(bool(mask.any()) for mask in unknown)
        ends = [
            arrays_of(evaluate([_nan_where(end, mask) for end, mask in zip(chosen, unknown, strict=True)]))
            for chosen in zip(*(bounds.ends for bounds in operands), strict=True)
        ]
        found = [settled(low, high) for low, high in zip(*ends, strict=True)]
        return [unknown_where(_is_nan(bounds.low), bounds) if is_any else bounds for bounds in found]
    if isinstance(op, ReduceOp) and only_chooses(body):
        return _as_tree(op, operands, 1, run, is_outward=False)
    return _step_by_step(op, operands, run)


def _has_one_value(body: ComputationOp) -> bool:
    """Whether every machine computes the body's ops alike: an exponential, say, has a different last bit on a GPU."""
    for op in body.instructions:
        if not isinstance(op, ElementwiseOp):
            if not isinstance(op, ParameterOp | ConstantOp | TupleOp):
                return False
        elif ulps_of(op.opcode, element_of(op.result).kind.value, element_of(op.result).bits):
            return False
    return True


def _nan_where(array: Array, mask: Array) -> Array:
    return np.where(mask, np.array(np.nan).astype(array.dtype), array) if mask.any() else array


def _is_nan(array: Array) -> Array:
    return np.isnan(array) if is_float(array.dtype) or array.dtype.kind == "c" else np.zeros(array.shape, np.bool_)


def taken(bounds: Bounds, of: Callable[[Array], Array]) -> Bounds:
    """Some of the elements: `of` chooses them from either end."""
    return point(of(bounds.low)) if bounds.is_point else Bounds(of(bounds.low), of(bounds.high))


def _step_by_step(op: ReducingOp, operands: Sequence[Bounds], run: Run) -> list[Bounds]:
    """One element after the other, in the reference's order, on bounds."""
    count, shape = len(op.arrays), dims_of(leaf_types(op.result.type)[0])
    carried = [taken(init, lambda end: np.broadcast_to(end, shape)) for init in operands[count:]]
    for inside, arrays in _steps(op, operands[:count]):
        if inside is None:
            carried = list(run([*carried, *arrays]))
            continue
        own = [taken(bounds, lambda end, inside=inside: end[inside]) for bounds in carried]
        carried = [
            Bounds(_replaced(old.low, inside, new.low), _replaced(old.high, inside, new.high))
            for old, new in zip(carried, run([*own, *arrays]), strict=True)
        ]
    return [settled(*(np.broadcast_to(end, shape) for end in bounds.ends)) for bounds in carried]


def _replaced(array: Array, where: Array, values: Array) -> Array:
    array = array.copy()
    array[where] = values
    return array


def _steps(op: ReducingOp, arrays: Sequence[Bounds]) -> Iterator[tuple[Array | None, list[Bounds]]]:
    """For each step: which elements of the result take part (None: all), and what is combined with them."""
    if isinstance(op, ReduceOp):
        rows = [_rows_first(op, bounds) for bounds in arrays]
        for at in range(len(rows[0].low)):
            yield None, [taken(bounds, lambda end, at=at: np.asarray(end[at], end.dtype)) for bounds in rows]
        return
    assert isinstance(op, ReduceWindowOp)
    for inside, (at,) in visited(dims_of(leaf_types(op.result.type)[0]), op.reduced_map()):
        yield inside, [taken(bounds, lambda end, at=at: end[at]) for bounds in arrays]


def _rows_first(op: ReduceOp, bounds: Bounds) -> Bounds:
    """The array with its reduced dimensions first, as one, then the kept ones."""
    reduced = sorted(integers(op.dimensions))
    kept = [dim for dim in range(bounds.low.ndim) if dim not in reduced]
    sizes = [bounds.low.shape[dim] for dim in kept]
    steps = math.prod(bounds.low.shape[dim] for dim in reduced)
    return taken(bounds, lambda end: end.transpose([*reduced, *kept]).reshape(steps, *sizes))


# ---------------------------------------------------------------------------------------------------- in any order


def _own_body(op: ReducingOp, operands: Sequence[Bounds], chain: int, run: Run) -> list[Bounds]:
    """See "others" in the table at the head of the file."""
    if isinstance(op, ReduceOp):
        found = _as_tree(op, operands, chain, run, is_outward=True)
    else:
        found = _step_by_step(op, operands, partial(run, is_outward=True))
    return [once_more(bounds) for bounds in found]


def once_more(bounds: Bounds) -> Bounds:
    """The bounds, moved outwards by their own width."""
    if bounds.low.dtype.kind == "c":
        return joined(*map(once_more, bounds.parts))
    if not is_float(bounds.low.dtype):
        return bounds
    low, high = (wide(end) for end in bounds.ends)
    return around(bounds.low.dtype, low, high, high - low, bounds.is_unknown)


def _as_tree(op: ReduceOp, operands: Sequence[Bounds], chain: int, run: Run, *, is_outward: bool) -> list[Bounds]:
    """`chain` elements one after the other, then their results in pairs, then these in pairs ...; the initial value is combined last."""
    count, shape = len(op.arrays), dims_of(leaf_types(op.result.type)[0])
    inits = [taken(init, lambda end: np.broadcast_to(end, shape)) for init in operands[count:]]
    rows = [_rows_first(op, bounds) for bounds in operands[:count]]
    total = len(rows[0].low)
    if total == 0:
        return inits

    def combined(one: Sequence[Bounds], other: Sequence[Bounds]) -> list[Bounds]:
        return list(run([*one, *other], is_outward=is_outward))

    def part(bounds: Sequence[Bounds], first: int, end: int) -> list[Bounds]:
        return [taken(own, lambda array: array[first:end]) for own in bounds]

    def after(one: Sequence[Bounds], other: Sequence[Bounds]) -> list[Bounds]:
        pairs = zip(one, other, strict=True)
        return [Bounds(*(np.concatenate(ends) for ends in zip(a.ends, b.ends, strict=True))) for a, b in pairs]

    width = -(-total // max(1, chain))
    carried = part(rows, 0, width)
    for first in range(width, total, width):
        given = part(rows, first, min(first + width, total))
        size = len(given[0].low)
        done = combined(part(carried, 0, size), given)
        carried = done if size == width else after(done, part(carried, size, width))
    while width > 1:
        half = width // 2
        done = combined(part(carried, 0, half), part(carried, half, 2 * half))
        carried = done if width % 2 == 0 else after(done, part(carried, width - 1, width))
        width -= half
    last = [taken(bounds, lambda end: end[0]) for bounds in carried]
    return [settled(*(np.broadcast_to(end, shape) for end in bounds.ends)) for bounds in combined(inits, last)]


def _sum(op: ReducingOp, array: Bounds, init: Bounds, chain: int, unit: float) -> Bounds:
    if isinstance(op, ReduceOp):
        return sum_bounds(array, init, tuple(integers(op.dimensions)), chain, unit)
    # A dimension for the elements of each window, zero where the window is outside the array.
    shape = dims_of(leaf_types(op.result.type)[0])
    columns = list[Bounds]()
    for inside, (given,) in _steps(op, [array]):
        assert inside is not None
        zeros = np.zeros(shape, array.low.dtype)
        columns.append(taken(given, lambda end, inside=inside, zeros=zeros: _replaced(zeros, inside, end)))
    if not columns:  # Every window has only padding and holes.
        return sum_bounds(point(np.zeros((0, *shape), array.low.dtype)), init, (0,), chain, unit)
    ends = [np.stack([column.ends[which] for column in columns]) for which in (0, 1)]
    return sum_bounds(point(ends[0]) if array.is_point else Bounds(*ends), init, (0,), chain, unit)


def _product(array: Bounds, init: Bounds, axes: tuple[int, ...], unit: float) -> Bounds:
    """|x1 x2 ... - m1 m2 ...| <= (|m1| + r1)(|m2| + r2) ... - |m1| |m2| ..., for factors within r of m."""
    kind = array.low.dtype
    with np.errstate(all="ignore"):
        (middle, reach), (first, first_reach) = (middle_and_radius(bounds) for bounds in (array, init))
        largest = (np.abs(middle) + reach).prod(axes) * (np.abs(first) + first_reach)
        value = middle.prod(axes) * first
    # A zero among finite factors gives 0 even beyond the wide type's range.
    is_zero = np.isnan(value) & np.isfinite(middle).all(axes) & np.isfinite(first)
    value, largest = np.where(is_zero, 0, value), np.where(is_zero, 0, largest)
    spread = largest - np.abs(value)
    # A product of some factors is at most the product of all factors above 1; an underflow on the way is multiplied by as much.
    sizes = [finite(magnitudes(bounds), 1) for bounds in (array, init)]
    grown = np.maximum(sizes[0], 1).prod(axes) * np.maximum(sizes[1], 1)
    shrunk = np.minimum(_not_zero(sizes[0]), 1).prod(axes) * np.minimum(_not_zero(sizes[1]), 1)
    lost = grown * float(info(kind).smallest_normal)
    # Where the product of some factors alone gives 0, infinity times that is NaN.
    vanishes = np.isinf(largest) & (shrunk < float(info(kind).smallest_normal))
    may_overflow = (grown > float(info(kind).max)) | vanishes
    found = around(kind, value, value, _relative(unit, array, value) * largest + spread + lost, may_overflow)
    loose = array.is_unknown.any(axes) | (~np.isfinite(middle) & ~array.is_single).any(axes)
    found = unknown_where(loose & ~np.isnan(found.low), found)
    return within_sign(found, (array.low >= 0).all(axes) & (init.low >= 0), np.zeros(value.shape, np.bool_))


def _relative(unit: float, array: Bounds, value: Array) -> float:
    """Total relative error from the roundings of a product, including those of the product computed here.

    In a sum, an element is affected by the roundings of its own chain only; in a product, by every rounding, in any order.
    """
    count = array.low.size // max(1, value.size) + 1
    eps = float(
        np.finfo(np.longdouble if array.low.dtype.itemsize >= 8 and array.low.dtype.kind != "c" else np.float64).eps
    )
    return growth(count, unit) + 4 * growth(count, eps)


def _complex_product(array: Bounds, init: Bounds, axes: tuple[int, ...], unit: float) -> Bounds:
    """Product with each factor anywhere in its rectangle: it rounds by at most 2 eps of its modulus, and so by that in either part."""
    with np.errstate(all="ignore"):
        (middle, reach), (first, first_reach) = (_middle(bounds) for bounds in (array, init))
        value = middle.prod(axes) * first
        largest = (np.abs(middle) + reach).prod(axes) * (np.abs(first) + first_reach)
        spread = largest - np.abs(value)
        grown = np.maximum(np.abs(middle) + reach, 1).prod(axes) * np.maximum(np.abs(first) + first_reach, 1)
    part = np.real(array.low).dtype
    lost = grown * float(info(part).smallest_normal)
    slack = _relative(4 * unit, array, value) * largest + spread + lost
    # A part is a sum of two products, each as large as the modulus. Which part an infinity makes NaN depends on the order.
    may_overflow = ~(2 * grown <= float(info(part).max))
    value = np.where(may_overflow, 0, value)
    parts = [around(part, own(value), own(value), slack, may_overflow) for own in (np.real, np.imag)]
    return Bounds(from_parts(*(p.low for p in parts)), from_parts(*(p.high for p in parts)))


def _middle(bounds: Bounds) -> tuple[Array, Array]:
    """The middle of complex rectangles in the widest type, and how far their corners are from it."""
    low, high = (end.astype(np.clongdouble) for end in bounds.ends)
    return (low + high) / 2, np.abs(high - low) / 2


def _not_zero(sizes: Array) -> Array:
    return np.where(sizes > 0, sizes, 1)


def nothing_known(op: HloOp) -> Any:
    """The bounds of a result that may be anything: one array's, or a tuple of them."""
    found = anything(leaf_types(op.result.type))
    return found[0] if is_array(op.result.type) else tuple(found)


def anything(leaves: Sequence[Attribute]) -> list[Bounds]:
    """The bounds of arrays of these types that may be anything."""
    return [everything(element_of(leaf).numpy, dims_of(leaf)) for leaf in leaves]
