"""Narrower bounds of small results: how far each rounding on the way may take each element, signs and all.

Intervals take the operands of an op as independent, so what cancels (x - mean(x), dots in a row) widens them again and again. Here a value
X_j of any correct kernel is compared with one chain of values C_j, every op of which is computed in float64 and rounded once:

    X_j - C_j  =  f_j(X) - f_j(C) + e_j  =  f_j'(between) (X - C) + e_j          e_j = (X_j - f_j(X)) - (C_j - f_j(C))

What an op may be off by itself, X_j - f_j(X), has a bound, and C_j - f_j(C) is known, so e_j is in an interval. Operands are in theirs, and
so is all between X and C, which bounds the derivative: by interval arithmetic backwards from y, as a middle and a radius each, y's
distance from C is the sum over all j of (derivatives of y by value j) e_j.

    x  -> tanh ->  t  -> dot w ->  y        dy/dt = w, known          dy/dx in w (1 - tanh^2 of x's interval)
                                            e of tanh 6.5 ulp         e of dot its roundings (`contraction`)

An element whose own interval is no wider than that of its e counts as off by all of its interval, and nothing before it counts: so where
the roundings to a type leave one number, as they often do in 16 bits, that number is known. So does what an op gives that has no
derivative here (an open selection, a scatter). Roundings to a type are taken by the spacing of its numbers: none where both operands of a
sum are multiples of the spacing there. Dots, sums and quotients on the way are narrowed too, before others use them.
The derivatives of all elements by all values are matrices, so this is only for chains whose values have few elements: `LARGEST`.
Source: Moore, Kearfott, Cloud, "Introduction to Interval Analysis", 6; Griewank, Walther, "Evaluating Derivatives", 3; Higham,
"Accuracy and Stability of Numerical Algorithms", 2.1 and 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

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
from xla_emitters.dtypes import Array, Kind, NumpyType, dtype
from xla_emitters.fusions.reduction_starts import combining_opcodes
from xla_emitters.runtime.bounds.contraction import matrix_product, rounding_of, transposed_products
from xla_emitters.runtime.bounds.slopes import SLOPES
from xla_emitters.runtime.bounds.sums import any_order, around, half_spacing, running_sum, unit_of
from xla_emitters.runtime.tolerance import Bounds, info, settled, ulps_of, unknown_where

LARGEST = 1024
"""Elements of every value on the way, at most."""
EPS = float(np.finfo(np.float64).eps)
Slope = tuple[Array, Array]
"""The middle and the radius of derivatives."""
Ends = tuple[Array, Array]
"""The least and the greatest of what something may be, in float64."""
Back = Callable[[Slope], Sequence[Slope | None]]
"""From the derivatives by a result to those by each operand; None where there are none."""


@dataclass(frozen=True)
class _Rule:
    """What is known of an op of real numbers, beside the interval of its result.

    center  a value of the op for its operands' centers
    own     the interval of e at the head of the file
    back    see `Back`
    """

    center: Array
    own: Ends
    back: Back


@dataclass(frozen=True)
class _Step:
    """What one op gives.

    box     its interval, which holds the center too
    center  the value that others are compared with
    own     the interval of e at the head of the file
    back    see `Back`
    """

    operands: tuple[Bounds, ...]
    box: Bounds
    center: Array
    own: Ends
    back: Back | None


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
        if op.opcode in NARROWED and step.back is not None:
            self._add(step)
            narrow = intersected(step.box, self.bounds_at(len(self.steps) - 1, found.low.dtype))
            del self.numbers[id(self.steps.pop().box)]
            step = _cut(replace(step, box=narrow))
        self._add(step)
        return step.box

    def _add(self, step: _Step) -> None:
        self.numbers[id(step.box)] = len(self.steps)
        self.steps.append(step)

    def _step(self, op: HloOp, operands: Sequence[Bounds], found: Bounds, chain: int | None) -> _Step:
        rule = None
        # The derivatives here are of real numbers: what is made of complex ones begins anew.
        if all(bounds.low.dtype.kind != "c" and self.has(bounds) for bounds in operands):
            rule = _rule_of(op, operands, [self.center_of(bounds) for bounds in operands], found, chain)
        if rule is not None and _are_finite(rule.center, *rule.own, *found.ends):
            center = rule.center.astype(found.low.dtype)
            box = Bounds(np.minimum(found.low, center), np.maximum(found.high, center))
            # A kernel may do what was done here: e may be 0.
            own = np.minimum(rule.own[0], 0), np.maximum(rule.own[1], 0)
            return _cut(_Step(tuple(operands), box, rule.center, own, rule.back))
        low, high = (end.astype(np.float64) for end in found.ends)
        center = low / 2 + high / 2
        return _Step((), found, center, _outside((low - center, high - center)), None)

    def bounds_of(self, bounds: Bounds) -> Bounds | None:
        """The narrower bounds of what has that interval; None for what is known, or not recorded."""
        number = self.numbers.get(id(bounds))
        return None if number is None else self.bounds_at(number, bounds.low.dtype)

    def bounds_at(self, number: int, kind: NumpyType) -> Bounds:
        """The narrower bounds of a step; nothing is known where a derivative on the way has no bound."""
        center = self.steps[number].center
        size = center.size
        slopes: dict[int, Slope] = {
            number: (np.eye(size).reshape(size, *center.shape), np.zeros((size, *center.shape)))
        }
        total, spread = np.zeros(size), np.zeros(size)
        for at in range(number, -1, -1):
            if at not in slopes:
                continue
            slope = slopes.pop(at)
            step = self.steps[at]
            moved, reach = _times_ends(slope, step.own)
            total += moved.reshape(size, -1).sum(1)
            spread += reach.reshape(size, -1).sum(1)
            if step.back is None:
                continue
            for operand, given in zip(step.operands, step.back(slope), strict=True):
                of = self.numbers.get(id(operand))
                if of is None or given is None:
                    continue
                old = slopes.get(of)
                slopes[of] = given if old is None else (old[0] + given[0], old[1] + given[1] + EPS * np.abs(given[0]))
        middle, slack = center + total.reshape(center.shape), spread.reshape(center.shape) * (1 + 1e-9)
        found = around(kind, middle, middle, slack, np.abs(middle) + slack > float(info(kind).max))
        return unknown_where(~np.isfinite(slack) | ~np.isfinite(middle), found)


NARROWED = frozenset(("dot", "reduce", "divide", "rsqrt"))
"""Ops whose intervals are narrowed before others use them."""


def _are_finite(*arrays: Array) -> bool:
    return all(bool(np.isfinite(array.astype(np.float64)).all()) for array in arrays)


def _outside(ends: Ends) -> Ends:
    """Ends that are differences of two float64 numbers, moved by what these may be rounded."""
    size = 2 * EPS * np.maximum(np.abs(ends[0]), np.abs(ends[1]))
    return ends[0] - size, ends[1] + size


def _cut(step: _Step) -> _Step:
    """The step with those elements a value of their own whose interval is no wider than that of what the op is off."""
    low, high = (end.astype(np.float64) - step.center for end in step.box.ends)
    alone = _outside((low, high))
    least, most = step.own
    back = step.back
    is_cut = alone[1] - alone[0] <= most - least
    if back is None or not is_cut.any():
        return step

    def kept(slope: Slope) -> Sequence[Slope | None]:
        return back((np.where(is_cut, 0, slope[0]), np.where(is_cut, 0, slope[1])))

    own = np.where(is_cut, alone[0], least), np.where(is_cut, alone[1], most)
    return replace(step, own=own, back=kept)


def _times_ends(slope: Slope, ends: Ends) -> tuple[Array, Array]:
    """The product of a derivative and a distance: its middle and radius, roundings of these included."""
    middle, radius = ends[0] / 2 + ends[1] / 2, ends[1] / 2 - ends[0] / 2
    most = np.maximum(np.abs(ends[0]), np.abs(ends[1]))
    moved = np.where(most > 0, slope[0] * middle, 0)
    reach = np.where(most > 0, np.abs(slope[0]) * radius + slope[1] * most, 0)
    return moved, reach + 1e-9 * np.abs(moved)


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


def _rule_of(
    op: HloOp, operands: Sequence[Bounds], centers: Sequence[Array], found: Bounds, chain: int | None
) -> _Rule | None:
    """None where an op has no derivative here."""
    if isinstance(op, MoveOp):
        return _moved(op, centers)
    if isinstance(op, DotOp):
        return _dot(op, operands, centers)
    if isinstance(op, ReduceOp):
        return _reduced(op, operands, centers, chain)
    return _elementwise(op, operands, centers, found) if isinstance(op, ElementwiseOp) else None


def _rounded(exact: Array, off: Array, kind: NumpyType, back: Back) -> _Rule:
    """float64's value rounded to the type, of an op by which kernels, and float64, are at most `off` from the exact value."""
    center = exact.astype(kind).astype(np.float64)
    missed = center - exact
    return _Rule(center, _outside((-off - missed, off - missed)), back)


def _moved(op: MoveOp, centers: Sequence[Array]) -> _Rule | None:
    if isinstance(op, BitcastOp) and element_of(op.operands[0]) != element_of(op.result):
        return None
    numbers = op.evaluate([np.arange(centers[0].size).reshape(centers[0].shape)], _no_call).reshape(-1)
    shape = centers[0].shape

    def back(slope: Slope) -> Sequence[Slope]:
        return [(_gathered(slope[0], numbers, shape), _gathered(slope[1], numbers, shape))]

    nothing = np.zeros(dims_of(op.result))
    return _Rule(op.evaluate([centers[0]], _no_call), (nothing, nothing), back)


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
    off, terms = rounding_of(op, x, y)
    kind = element_of(op.result).numpy
    exact = matrix_product(op, *centers)
    if kind.itemsize < 4:
        off = off + half_spacing(np.abs(exact) + off + _reach(op, x, y, centers), kind)

    def back(slope: Slope) -> Sequence[Slope]:
        return transposed_products(op, slope, x, y, (terms + 2) * EPS)

    return _rounded(exact, off, kind, back)


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
    kind, shape = array.low.dtype, array.low.shape
    ends = array.low.astype(np.float64), array.high.astype(np.float64)

    def over(values: Array) -> Array:
        return np.expand_dims(values, axes)

    def back_by(share: Array) -> Back:
        later = tuple(dim + 1 for dim in axes)

        def back(slope: Slope) -> Sequence[Slope | None]:
            middle, radius = (np.expand_dims(part, later) for part in slope)
            return [(middle * share, radius * share), None]

        return back

    if opcode == "add" and chain is None:
        kept = [dim for dim in range(len(shape)) if dim not in axes]
        turned = [*sorted(axes), *kept]
        dims = [shape[dim] for dim in turned]

        def in_order(values: Array) -> Array:
            return values.transpose(turned).reshape(-1, *(shape[dim] for dim in kept))

        total = running_sum(in_order(ends[0]), in_order(ends[1]), in_order(centers[0]), centers[1], kind)
        share = total.share.reshape(dims).transpose(np.argsort(turned))
        return _Rule(total.center, _outside(total.own), back_by(share))
    if opcode == "add":
        sizes = np.maximum(np.abs(ends[0]), np.abs(ends[1])).sum(axes) + np.abs(centers[1])
        count = int(np.prod([shape[dim] for dim in axes])) + 1
        signed = [end.sum(axes) + centers[1] for end in ends]
        off = any_order(min(chain or count, count), count, unit_of(kind), sizes, np.maximum(*map(np.abs, signed)))
        off = off + count * EPS * sizes
        return _rounded(centers[0].sum(axes) + centers[1], off, kind, back_by(np.ones(shape)))
    if opcode not in ("maximum", "minimum"):
        return None
    choose = np.maximum if opcode == "maximum" else np.minimum
    least, most = (choose(choose.reduce(end, axes), centers[1]) for end in ends)
    may = ends[1] >= over(least) if opcode == "maximum" else ends[0] <= over(most)
    from_init = centers[1] >= least if opcode == "maximum" else centers[1] <= most
    is_open = (may.sum(axes) + from_init) > 1
    center = choose(choose.reduce(centers[0], axes), centers[1])
    # Where it is open which one is chosen, the result is a value of its own.
    own = np.where(is_open, least - center, 0), np.where(is_open, most - center, 0)
    return _Rule(center, own, back_by((may & ~over(is_open)).astype(np.float64)))


def _times(slope: Slope, low: Array, high: Array) -> Slope:
    """Derivatives times an interval of each element, roundings of this included."""
    middle = low / 2 + high / 2
    radius = np.maximum(high - middle, middle - low) + 4 * EPS * np.abs(middle)
    return slope[0] * middle, np.abs(slope[0]) * radius + slope[1] * (np.abs(middle) + radius)


def _elementwise(
    op: ElementwiseOp, operands: Sequence[Bounds], centers: Sequence[Array], found: Bounds
) -> _Rule | None:
    result = element_of(op.result)
    shape = np.broadcast_shapes(*(center.shape for center in centers))
    if any(center.shape != shape for center in centers[1:] if not isinstance(op, SelectOp)):
        return None
    kind = result.numpy
    wide = [(bounds.low.astype(np.float64), bounds.high.astype(np.float64)) for bounds in operands]
    if isinstance(op, ConvertOp):
        if op.deciding.kind is not Kind.FLOAT or op.deciding.numpy.itemsize > 4:
            return None
        exact, slopes = centers[0], [(np.ones(shape), np.ones(shape))]
    elif isinstance(op, SelectOp):
        predicate = operands[0]
        if not predicate.is_point or predicate.low.shape != shape:
            return None
        holds = predicate.low.astype(np.float64)
        exact = np.where(predicate.low, centers[1], centers[2])
        slopes = [(np.zeros(shape), np.zeros(shape)), (holds, holds), (1 - holds, 1 - holds)]
    else:
        rule = SLOPES.get(op.opcode)
        if rule is None or op.deciding.kind is not Kind.FLOAT:
            return None
        exact = np.asarray(op.ROW.means(dtype("f64"), *centers))
        slopes = rule(*wide)

    def back(slope: Slope) -> Sequence[Slope | None]:
        return [_times(slope, *own) for own in slopes]

    # What is rounded is no larger than the largest number that it may be rounded to.
    most = np.maximum(*(np.abs(end.astype(np.float64)) for end in found.ends))
    most = np.maximum(most, np.abs(exact))
    ulps = ulps_of(op.opcode, Kind.FLOAT.value, result.bits)
    if ulps:
        off = (2 * ulps + 1) * half_spacing(most, kind)
        off = np.maximum(off, float(info(kind).smallest_normal) + half_spacing(most, kind))
    elif op.opcode in ("add", "subtract"):
        off = np.where(_is_exact(operands, most, kind), 0, half_spacing(most, kind))
    elif op.opcode in ("multiply", "convert"):
        off = half_spacing(most, kind)
    else:
        return _rounded(exact, np.zeros(shape), kind, back)
    return _rounded(exact, off + 8 * EPS * most, kind, back)


def _is_exact(operands: Sequence[Bounds], most: Array, kind: NumpyType) -> Array:
    """Where both operands of a sum are multiples of the distance between the numbers where the sum is: it is a number of the type."""
    grids = [half_spacing(_least_size(bounds), kind) for bounds in operands]
    return np.minimum(*grids) >= half_spacing(most, kind)


def _least_size(bounds: Bounds) -> Array:
    low, high = (end.astype(np.float64) for end in bounds.ends)
    return np.where((low <= 0) & (high >= 0), 0, np.minimum(np.abs(low), np.abs(high)))


def _no_call(name: str, operands: Sequence[object]) -> Array:
    raise AssertionError(name)


def narrowed(bounds: Bounds, by: Bounds | None) -> Bounds:
    """The bounds of a result, as far as the tape's admit it too."""
    return bounds if by is None or bounds.is_point else settled(*intersected(bounds, by).ends)
