"""Narrower bounds of small results: how far each rounding on the way may take each element, signs and all.

Intervals take the operands of an op as independent, so what cancels (x - mean(x), dots in a row) widens them again and again. A chain of
ops is also a function y(d) of all that its ops are off by: op j gives f_j(operands) + d_j with |d_j| <= r_j. By the mean value theorem

    |y(d) - y(0)| <= sum over j of sup |dy / d(value of j)| r_j

with the derivatives anywhere between 0 and d. Every value stays in its interval there (the intervals of this file hold exact, rounded and
partly rounded values alike), so interval arithmetic backwards from y bounds the derivatives: each is a middle and a radius.

    x  -> tanh ->  t  -> dot w ->  y        dy/dt = w, known          dy/dx in w (1 - tanh^2 of x's interval)
                                            r of tanh 6.5 ulp         r of dot its roundings (`contraction`)

What an op gives that has no derivative here (an open selection, a scatter) counts as off by all of its interval. y(0), every op in float64,
is off by roundings of its own, which are added to r. Dots, sums and quotients on the way are narrowed too, before others use them.
The derivatives of all elements by all values are matrices, so this is only for chains whose values have few elements: `LARGEST`.
Source: Moore, Kearfott, Cloud, "Introduction to Interval Analysis", 6; Griewank, Walther, "Evaluating Derivatives", 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.computation import (
    CallOp,
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    find_computation,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.contractions import DotOp
from xla_emitters.dialects.hlo.elementwise import ConvertOp, ElementwiseOp, SelectOp
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.shape_ops import BitcastOp, MoveOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array
from xla_emitters.dtypes import Array, Kind, dtype
from xla_emitters.fusions.reduction_starts import combining_opcodes
from xla_emitters.runtime.bounds.contraction import matrix_product, rounding_of, transposed_products
from xla_emitters.runtime.bounds.sums import any_order, around, smallest, unit_of
from xla_emitters.runtime.tolerance import Bounds, info, outward, settled, ulps_of, unknown_where

LARGEST = 1024
"""Elements of every value on the way, at most."""
EPS = float(np.finfo(np.float64).eps)
Slope = tuple[Array, Array]
"""The middle and the radius of derivatives."""


@dataclass(frozen=True)
class _Step:
    """What one op gives.

    box     its interval; exact, rounded and partly rounded values lie within
    center  float64's value of the chain up to here
    off     how far a kernel's op may be off by itself, and float64's
    slopes  from the derivatives by the result to those by each operand; None where there are none
    """

    operands: tuple[Bounds, ...]
    box: Bounds
    center: Array
    off: Array
    slopes: Callable[[Slope], Sequence[Slope | None]] | None


@dataclass
class Tape:
    """The steps of a chain, in order. Bounds that are no step's box are known values."""

    steps: list[_Step] = field(default_factory=list[_Step])
    numbers: dict[int, int] = field(default_factory=dict[int, int])

    def center_of(self, bounds: Bounds) -> Array:
        number = self.numbers.get(id(bounds))
        return bounds.low.astype(np.float64) if number is None else self.steps[number].center

    def has(self, bounds: Bounds) -> bool:
        """Whether its derivatives are known: a step's, or nothing that may be off."""
        return bounds.is_point or id(bounds) in self.numbers

    def record(self, op: HloOp, operands: Sequence[Bounds], found: Bounds, chain: int | None = None) -> Bounds:
        """The interval of what `op` gives, narrowed where that pays.

        operands  intervals of this tape
        found     what the op may give for them
        chain     of a reduction that threads share, how many combinations in a row an element goes through
        """
        if found.is_point or not is_small(op):
            return found
        step = self._step(op, operands, found, chain)
        if op.opcode in ("dot", "reduce", "divide", "rsqrt"):
            self._add(step)
            narrow = intersected(step.box, outward(self.bounds_at(len(self.steps) - 1, found.low.dtype)))
            del self.numbers[id(self.steps.pop().box)]
            step = replace(step, box=narrow)
        self._add(step)
        return step.box

    def _add(self, step: _Step) -> None:
        self.numbers[id(step.box)] = len(self.steps)
        self.steps.append(step)

    def _step(self, op: HloOp, operands: Sequence[Bounds], found: Bounds, chain: int | None) -> _Step:
        rule = None
        # The derivatives here are of real numbers: what is made of complex ones begins anew.
        if all(bounds.low.dtype.kind != "c" and self.has(bounds) for bounds in operands):
            rule = _rule_of(op, operands, [self.center_of(bounds) for bounds in operands], chain)
        if rule is not None:
            center, off, slopes = rule
            box = found if isinstance(op, MoveOp) else outward(outward(found))
            holds = np.isfinite(center) & np.isfinite(off)
            if (
                holds.all()
                and np.isfinite(box.low.astype(np.float64)).all()
                and np.isfinite(box.high.astype(np.float64)).all()
            ):
                return _Step(tuple(operands), box, center, off, slopes)
        low, high = (end.astype(np.float64) for end in found.ends)
        center = low / 2 + high / 2
        off = np.maximum(high - center, center - low) * (1 + 4 * EPS)
        return _Step((), found, center, off, None)

    def bounds_of(self, bounds: Bounds) -> Bounds | None:
        """The narrower bounds of what has that interval; None for what is known, or not recorded."""
        number = self.numbers.get(id(bounds))
        return None if number is None else self.bounds_at(number, bounds.low.dtype)

    def bounds_at(self, number: int, kind: Any) -> Bounds:
        """The narrower bounds of a step; nothing is known where a derivative on the way has no bound."""
        step = self.steps[number]
        size = step.center.size
        slopes: dict[int, Slope] = {
            number: (np.eye(size).reshape(size, *step.center.shape), np.zeros((size, *step.center.shape)))
        }
        total = np.zeros(size)
        for at in range(number, -1, -1):
            if at not in slopes:
                continue
            middle, radius = slopes.pop(at)
            step = self.steps[at]
            reach = np.abs(middle) + radius
            total += np.where(step.off > 0, reach * step.off, 0).reshape(size, -1).sum(1)
            if step.slopes is None:
                continue
            for operand, slope in zip(step.operands, step.slopes((middle, radius)), strict=True):
                of = self.numbers.get(id(operand))
                if of is None or slope is None:
                    continue
                old = slopes.get(of)
                slopes[of] = slope if old is None else (old[0] + slope[0], old[1] + slope[1] + EPS * np.abs(slope[0]))
        center = self.steps[number].center
        slack = total.reshape(center.shape) * (1 + 1e-9)
        found = around(kind, center, center, slack, np.abs(center) + slack > float(info(kind).max))
        return unknown_where(~np.isfinite(slack), found)


def is_small(op: HloOp) -> bool:
    """Whether an op's result is recorded."""
    if not is_array(op.result.type):
        return False
    kind = element_of(op.result)
    return kind.kind is Kind.FLOAT and kind.numpy.itemsize <= 4 and math.prod(dims_of(op.result)) <= LARGEST


def is_worth_a_tape(computation: ComputationOp) -> bool:
    """Whether all that is computed, here and in fusions, is small."""
    for op in computation.instructions:
        if isinstance(op, FusionOp | CallOp):
            if not is_worth_a_tape(find_computation(computation, op.callees()[0].symbol)):
                return False
        elif is_array(op.result.type) and not isinstance(op, ParameterOp | ConstantOp | GetTupleElementOp):
            if math.prod(dims_of(op.result)) > LARGEST:
                return False
    return True


def intersected(one: Bounds, other: Bounds) -> Bounds:
    """What both admit; the first where they have nothing in common or one knows nothing."""
    low, high = np.maximum(one.low, other.low), np.minimum(one.high, other.high)
    keeps = other.is_unknown | ~(low <= high)
    return Bounds(np.where(keeps, one.low, low), np.where(keeps, one.high, high))


# ---------------------------------------------------------------------------------------------------- ops

_Rule = tuple[Array, Array, Callable[[Slope], Sequence[Slope | None]]]


def _rule_of(op: HloOp, operands: Sequence[Bounds], centers: Sequence[Array], chain: int | None) -> _Rule | None:
    """float64's value, how far a kernel and float64 may be off, and the derivatives; None where an op has none."""
    if isinstance(op, MoveOp):
        return _moved(op, operands, centers)
    if isinstance(op, DotOp):
        return _dot(op, operands, centers)
    if isinstance(op, ReduceOp):
        return _reduced(op, operands, centers, chain)
    return _elementwise(op, operands, centers) if isinstance(op, ElementwiseOp) else None


def _moved(op: MoveOp, operands: Sequence[Bounds], centers: Sequence[Array]) -> _Rule | None:
    if isinstance(op, BitcastOp) and element_of(op.operands[0]) != element_of(op.result):
        return None
    numbers = op.evaluate([np.arange(centers[0].size).reshape(centers[0].shape)], _no_call).reshape(-1)
    shape = centers[0].shape

    def back(slope: Slope) -> Sequence[Slope]:
        return [tuple(_gathered(part, numbers, shape) for part in slope)]  # pyright: ignore

    return op.evaluate([centers[0]], _no_call), np.zeros(dims_of(op.result)), back


def _gathered(slope: Array, numbers: Array, shape: tuple[int, ...]) -> Array:
    """Derivatives by the elements that were moved, from those by the places where they went."""
    rows = slope.reshape(len(slope), -1)
    found = np.zeros((int(np.prod(shape)), len(slope)))
    np.add.at(found, numbers, rows.T)
    return found.T.reshape(len(slope), *shape)


def _dot(op: DotOp, operands: Sequence[Bounds], centers: Sequence[Array]) -> _Rule | None:
    if op.held != dtype("f32") or any(op.kept(number)[1:] != [dtype("f32")] for number in (0, 1)):
        return None
    x, y = operands
    rounding, terms = rounding_of(op, x, y)
    kind = element_of(op.result).numpy
    center = matrix_product(op, *centers)
    if kind.itemsize < 4:
        rounding = rounding + unit_of(kind) * (np.abs(center) + rounding + _reach(op, x, y, centers)) + smallest(kind)

    def back(slope: Slope) -> Sequence[Slope]:
        return transposed_products(op, slope, x, y, (terms + 2) * EPS)

    return center, rounding, back


def _reach(op: DotOp, x: Bounds, y: Bounds, centers: Sequence[Array]) -> Array:
    """How far an element may be from the center's, for operands anywhere within their intervals."""
    (a, b), radii = (
        centers,
        [
            np.maximum(np.abs(bounds.high.astype(np.float64) - center), np.abs(bounds.low.astype(np.float64) - center))
            for bounds, center in zip((x, y), centers, strict=True)
        ],
    )
    return matrix_product(op, radii[0], np.abs(b) + radii[1]) + matrix_product(op, np.abs(a), radii[1])


def _reduced(op: ReduceOp, operands: Sequence[Bounds], centers: Sequence[Array], chain: int | None) -> _Rule | None:
    body = find_computation(op, op.to_apply)
    if len(op.arrays) > 1 or len(list(body.instructions)) != 3 or not operands[1].is_point:
        return None
    (opcode,) = combining_opcodes(body)
    array, axes = operands[0], tuple(integers(op.dimensions))
    ends = [end.astype(np.float64) for end in array.ends]

    def over(values: Array) -> Array:
        return np.expand_dims(values, axes)

    if opcode == "add":
        sizes = np.maximum(np.abs(ends[0]), np.abs(ends[1])).sum(axes) + np.abs(centers[1])
        count = int(np.prod([array.low.shape[dim] for dim in axes])) + 1
        unit = unit_of(array.low.dtype)
        if chain is None:
            off = _in_sequence(ends, centers, axes, unit)
        else:
            signed = [end.sum(axes) + centers[1] for end in ends]
            off = any_order(min(chain, count), count, unit, sizes, np.maximum(*map(np.abs, signed)))
        off = off + count * EPS * sizes

        def back_sum(slope: Slope) -> Sequence[Slope | None]:
            later = tuple(dim + 1 for dim in axes)
            shape = (len(slope[0]), *array.low.shape)
            return [tuple(np.broadcast_to(np.expand_dims(part, later), shape) for part in slope), None]  # pyright: ignore

        return centers[0].sum(axes) + centers[1], off, back_sum
    if opcode not in ("maximum", "minimum"):
        return None
    choose = np.maximum if opcode == "maximum" else np.minimum
    least, most = (choose(choose.reduce(end, axes), centers[1]) for end in ends)
    may = ends[1] >= over(least) if opcode == "maximum" else ends[0] <= over(most)
    from_init = centers[1] >= least if opcode == "maximum" else centers[1] <= most
    is_open = (may.sum(axes) + from_init) > 1
    center = choose(choose.reduce(centers[0], axes), centers[1])
    # Where it is open which one is chosen, the result is a value of its own.
    off = np.where(is_open, np.maximum(most - center, center - least), 0)
    share = (may & ~over(is_open)).astype(np.float64)

    def back_choice(slope: Slope) -> Sequence[Slope | None]:
        later = tuple(dim + 1 for dim in axes)
        return [_times(tuple(np.expand_dims(part, later) for part in slope), share, share), None]  # pyright: ignore

    return center, off, back_choice


def _in_sequence(ends: Sequence[Array], centers: Sequence[Array], axes: tuple[int, ...], unit: float) -> Array:
    """What roundings may take a sum that goes in the reference's order: each partial sum by `unit` of its size, which is what the exact one
    may be, and how far the sum is off so far."""
    kept = [dim for dim in range(ends[0].ndim) if dim not in axes]
    count = int(np.prod([ends[0].shape[dim] for dim in axes]))

    def in_order(values: Array) -> Array:
        return values.transpose([*sorted(axes), *kept]).reshape(count, *(values.shape[dim] for dim in kept))

    exact = centers[1] + np.cumsum(in_order(centers[0]), axis=0)
    radius = np.cumsum(in_order(np.maximum(ends[1] - centers[0], centers[0] - ends[0])), axis=0)
    off = np.zeros(exact.shape[1:])
    for partial in np.abs(exact) + radius:
        off = off + unit * (partial + off)
    return off * (1 + count * EPS)


def _times(slope: Slope, low: Array, high: Array) -> Slope:
    """Derivatives times an interval of each element, roundings of this included."""
    middle = low / 2 + high / 2
    radius = np.maximum(high - middle, middle - low) + 4 * EPS * np.abs(middle)
    return slope[0] * middle, np.abs(slope[0]) * radius + slope[1] * (np.abs(middle) + radius)


def _elementwise(op: ElementwiseOp, operands: Sequence[Bounds], centers: Sequence[Array]) -> _Rule | None:
    result = element_of(op.result)
    shape = np.broadcast_shapes(*(center.shape for center in centers))
    if any(center.shape != shape for center in centers[1:] if not isinstance(op, SelectOp)):
        return None
    kind = result.numpy
    wide = [(bounds.low.astype(np.float64), bounds.high.astype(np.float64)) for bounds in operands]
    if isinstance(op, ConvertOp):
        if op.deciding.kind is not Kind.FLOAT or op.deciding.numpy.itemsize > 4:
            return None
        center, slopes = centers[0], [(np.ones(shape), np.ones(shape))]
    elif isinstance(op, SelectOp):
        predicate = operands[0]
        if not predicate.is_point or predicate.low.shape != shape:
            return None
        holds = predicate.low.astype(np.float64)
        center = np.where(predicate.low, centers[1], centers[2])
        slopes = [(np.zeros(shape), np.zeros(shape)), (holds, holds), (1 - holds, 1 - holds)]
    else:
        found = SLOPES.get(op.opcode)
        if found is None or op.deciding.kind is not Kind.FLOAT:
            return None
        center = np.asarray(op.ROW.means(dtype("f64"), *centers))
        slopes = found(*wide)
    most = np.maximum.reduce([np.abs(center), *_sizes(op, wide)])
    ulps = ulps_of(op.opcode, Kind.FLOAT.value, result.bits)
    if ulps:
        off = (ulps + 1) * float(info(kind).eps) * most + 2 * float(info(kind).smallest_normal)
    elif op.opcode in ("add", "subtract", "multiply", "convert"):
        off = unit_of(kind) * most + smallest(kind)
    else:
        off = np.zeros(shape)

    def back(slope: Slope) -> Sequence[Slope | None]:
        return [_times(slope, *own) for own in slopes]

    return center, off + 8 * EPS * most, back


def _sizes(op: ElementwiseOp, ends: Sequence[tuple[Array, Array]]) -> list[Array]:
    """How large the exact result may be, for operands within their intervals."""

    def magnitude(which: int) -> Array:
        return np.maximum(np.abs(ends[which][0]), np.abs(ends[which][1]))

    match op.opcode:
        case "add" | "subtract":
            sign = 1 if op.opcode == "add" else -1
            (a, b), (c, d) = ends[0], ends[1][::sign]
            return [np.abs(a + sign * c), np.abs(b + sign * d)]
        case "multiply":
            return [magnitude(0) * magnitude(1)]
        case "divide":
            (c, d) = ends[1]
            least = np.where((c > 0) | (d < 0), np.minimum(np.abs(c), np.abs(d)), 0)
            return [magnitude(0) / least]
        case "select":
            return [magnitude(1), magnitude(2)]
        case "maximum" | "minimum":
            return [magnitude(0), magnitude(1)]
        case "convert" | "abs" | "negate" | "copy":
            return [magnitude(0)]
        case "sine" | "cosine":
            return [np.ones_like(ends[0][0])]
        case _:
            # Monotone: the ends; of cosh, even, too.
            return [np.abs(np.asarray(op.ROW.means(dtype("f64"), end))) for end in ends[0]]


Ends = tuple[Array, Array]


def _sorted(one: Array, other: Array) -> Ends:
    return np.minimum(one, other), np.maximum(one, other)


def _even(derivative: Callable[[Array], Array]) -> Callable[..., list[Ends]]:
    """The interval of a derivative that falls with the operand's size."""

    def of(x: Ends) -> list[Ends]:
        most = np.maximum(np.abs(x[0]), np.abs(x[1]))
        least = np.where((x[0] <= 0) & (x[1] >= 0), 0, np.minimum(np.abs(x[0]), np.abs(x[1])))
        return [(derivative(most), derivative(least))]

    return of


def _monotone(derivative: Callable[[Array], Array]) -> Callable[..., list[Ends]]:
    """The interval of a derivative that only rises, or only falls, over the numbers above `start`; unbounded if some are not."""

    def of(x: Ends) -> list[Ends]:
        return [_sorted(derivative(x[0]), derivative(x[1]))]

    return of


def _above(start: float, derivative: Callable[[Array], Array]) -> Callable[..., list[Ends]]:
    def of(x: Ends) -> list[Ends]:
        ((low, high),) = _monotone(derivative)(x)
        return [(np.where(x[0] > start, low, -np.inf), np.where(x[0] > start, high, np.inf))]

    return of


def _multiplied(a: Ends, b: Ends) -> list[Ends]:
    return [b, a]


def _divided(a: Ends, b: Ends) -> list[Ends]:
    is_sure = (b[0] > 0) | (b[1] < 0)
    inverse = _sorted(1 / b[0], 1 / b[1])
    products = [-p * q * q for p in a for q in inverse]
    by_divisor = np.minimum.reduce(products), np.maximum.reduce(products)
    return [(np.where(is_sure, low, -np.inf), np.where(is_sure, high, np.inf)) for low, high in (inverse, by_divisor)]


def _chosen(first: int) -> Callable[..., list[Ends]]:
    """maximum (1) and minimum (-1): 1 by the operand that is certainly chosen, 0 by the other, between where that is open."""

    def of(a: Ends, b: Ends) -> list[Ends]:
        above, below = (a[0] > b[1], a[1] < b[0]) if first == 1 else (a[1] < b[0], a[0] > b[1])
        one, zero = np.ones_like(a[0]), np.zeros_like(a[0])
        return [
            (np.where(above, one, zero), np.where(below, zero, one)),
            (np.where(below, one, zero), np.where(above, zero, one)),
        ]

    return of


def _constant(*slopes: float) -> Callable[..., list[Ends]]:
    def of(*operands: Ends) -> list[Ends]:
        return [
            (np.full_like(x[0], slope), np.full_like(x[0], slope)) for x, slope in zip(operands, slopes, strict=True)
        ]

    return of


def _of_abs(x: Ends) -> list[Ends]:
    return [(np.where(x[0] > 0, 1.0, -1.0), np.where(x[1] < 0, -1.0, 1.0))]


def _of_wave(derivative: Callable[[Array], Array]) -> Callable[..., list[Ends]]:
    def of(x: Ends) -> list[Ends]:
        middle, radius = derivative((x[0] + x[1]) / 2), np.abs(x[1] - x[0])
        return [(np.maximum(middle - radius, -1), np.minimum(middle + radius, 1))]

    return of


def _logistic(x: Array) -> Array:
    return 1 / ((1 + np.exp(-np.abs(x))) * (1 + np.exp(np.abs(x))))


SLOPES: dict[str, Callable[..., list[Ends]]] = {
    "add": _constant(1, 1),
    "subtract": _constant(1, -1),
    "negate": _constant(-1),
    "copy": _constant(1),
    "multiply": _multiplied,
    "divide": _divided,
    "abs": _of_abs,
    "maximum": _chosen(1),
    "minimum": _chosen(-1),
    "exponential": _monotone(np.exp),
    "exponential-minus-one": _monotone(np.exp),
    "log": _above(0, lambda x: 1 / x),
    "log-plus-one": _above(-1, lambda x: 1 / (1 + x)),
    "sqrt": _above(0, lambda x: 0.5 / np.sqrt(x)),
    "rsqrt": _above(0, lambda x: -0.5 / (x * np.sqrt(x))),
    "tanh": _even(lambda x: 1 / np.cosh(x) ** 2),
    "logistic": _even(_logistic),
    "erf": _even(lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x)),
    "sine": _of_wave(np.cos),
    "cosine": _of_wave(lambda x: -np.sin(x)),
}
"""By opcode, from the operands' intervals to those of the derivative by each."""


def _no_call(name: str, operands: Sequence[Any]) -> Any:
    raise AssertionError(name)


def narrowed(bounds: Bounds, by: Bounds | None) -> Bounds:
    """The bounds of a result, as far as the tape's admit it too."""
    return bounds if by is None or bounds.is_point else settled(*intersected(bounds, by).ends)
