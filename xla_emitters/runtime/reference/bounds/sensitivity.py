"""Narrower bounds for small results: the signed effect of each rounding on each element of the result.

Intervals take the operands of an op as independent, so values that cancel (x - mean(x), dots in a row) widen them again and again. Here a
value X_j of any correct kernel is compared with one chain of values C_j, each op computed in float64 and rounded once:

    X_j - C_j  =  f_j(X) - f_j(C) + (X_j - f_j(X)) - (C_j - f_j(C))  =  s_j (X - C) + e_j

with chosen slopes s_j and a rest e_j of three parts: the op's own error X_j - f_j(X), which has a bound; C_j - f_j(C),
which is known; and f_j(X) - f_j(C) - s_j (X - C), of the order of the squared distances of the operands from C, bounded over the operands'
intervals (`slopes`). So the distance of a result y from C is the sum over all j of (the product of slopes from value j to y) e_j: slopes
are multiplied and added backwards from y with their signs, so that opposite effects cancel.

    x  -> tanh ->  t  -> dot w ->  y        slopes of y by t: w       by x: w (1 - tanh^2)
                                            e of tanh 6.5 ulp         e of dot its roundings (`contraction_bounds`)

If an element's own interval is no wider than that of its e, its whole interval is taken as its error and no earlier error counts: where
rounding to a type leaves one number, as often in 16 bits, that number is known. The same holds for results of ops without a
derivative here (an open selection, a scatter). Roundings to a type use the spacing of its numbers: there is none where both operands of a
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

from xla_emitters.dialects.hlo.base import HloOp, integers, no_call
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
from xla_emitters.graph.reduction_starts import combining_opcodes
from xla_emitters.runtime.reference.bounds.contraction_bounds import matrix_product, rounding_of, transposed_products
from xla_emitters.runtime.reference.bounds.slopes import (
    EPS,
    SLOPES,
    CenteredOperand,
    Ends,
    as_float64,
    linearized,
    outside,
)
from xla_emitters.runtime.reference.bounds.sums import (
    any_order,
    around,
    half_spacing,
    nearest_to_zero,
    running_sum,
    unit_of,
)
from xla_emitters.runtime.reference.tolerance import Bounds, everything, floor_of, info, settled, ulps_of, unknown_where

LARGEST = 1024
"""Most elements of each value of the chain."""
MOST_READ = 1 << 14
"""Most elements of an array that is read: there is a slope for each of them and each element of a result."""

Back = Callable[[Array], Sequence[Array | None]]
"""Maps the slopes by a result to those by each operand; None where there are none. The first dimension indexes results of the chain."""


@dataclass(frozen=True)
class _Rule:
    """Linearization of an op on real numbers, in addition to the interval of its result.

    center  a value of the op for its operands' centers
    own     the interval of e at the head of the file
    back    a `Back`: slopes by the result to slopes by the operands
    flow    the sum of magnitudes of slopes times the operands' distances, over `terms` terms: bounds the rounding of slopes here
    """

    center: Array
    own: Ends
    back: Back
    flow: Array
    terms: int = 1


@dataclass(frozen=True)
class _Step:
    """One recorded op.

    box     the interval of its result, which contains the center too
    center  the value C_j at the head of the file
    reach   upper bound of a value's distance from the center
    own     the interval of e at the head of the file
    back    a `Back`: slopes by the result to slopes by the operands
    """

    operands: tuple[Bounds, ...]
    box: Bounds
    center: Array
    reach: Array
    own: Ends
    back: Back | None


@dataclass
class Tape:
    """The steps of a chain, in order. Bounds that are not the box of a step are those of known values."""

    steps: list[_Step] = field(default_factory=list[_Step])
    numbers: dict[int, int] = field(default_factory=dict[int, int])

    def _given(self, bounds: Bounds) -> CenteredOperand:
        number = self.numbers.get(id(bounds))
        if number is None:
            value = bounds.low.astype(np.float64)
            return CenteredOperand(value, np.zeros(value.shape), (value, value))
        step = self.steps[number]
        return CenteredOperand(step.center, step.reach, as_float64(bounds))

    def has(self, bounds: Bounds) -> bool:
        """Whether the distance from the center is known: the bounds are a step's box, or a point."""
        return bounds.is_point or id(bounds) in self.numbers

    def record(self, op: HloOp, operands: Sequence[Bounds], found: Bounds, chain: int | None = None) -> Bounds:
        """The interval of the result of `op`, narrowed where that is worth its cost.

        operands  intervals of this tape
        found     bounds of the result for these operands
        chain     for a reduction that threads share: most combinations in a row that an element goes through
        """
        if found.is_point or not is_small(op):
            return found
        step = self._step(op, operands, found, chain)
        if op.opcode in NARROWED and step.back is not None:
            self._add(step)
            narrow = intersected(step.box, self.bounds_at(len(self.steps) - 1, found.low.dtype))
            del self.numbers[id(self.steps.pop().box)]
            step = _cut(replace(step, box=narrow, reach=_reach(narrow, step.center)))
        self._add(step)
        return step.box

    def _add(self, step: _Step) -> None:
        self.numbers[id(step.box)] = len(self.steps)
        self.steps.append(step)

    def _step(self, op: HloOp, operands: Sequence[Bounds], found: Bounds, chain: int | None) -> _Step:
        rule = None
        # The derivatives here are of real numbers: a value computed from complex ones starts a new chain.
        if all(bounds.low.dtype.kind != "c" and self.has(bounds) for bounds in operands):
            rule = _rule_of(op, [self._given(bounds) for bounds in operands], found, chain)
        if rule is not None and _are_finite(rule.center, *found.ends):
            center = rule.center.astype(found.low.dtype)
            box = Bounds(np.minimum(found.low, center), np.maximum(found.high, center))
            slack = (rule.terms + 8) * EPS * rule.flow
            # A kernel may compute exactly as here: e may be 0.
            own = np.minimum(rule.own[0], 0) - slack, np.maximum(rule.own[1], 0) + slack
            return _cut(_Step(tuple(operands), box, rule.center, _reach(box, rule.center), own, rule.back))
        low, high = as_float64(found)
        center = low / 2 + high / 2
        return _Step((), found, center, _reach(found, center), outside((low - center, high - center)), None)

    def bounds_of(self, bounds: Bounds) -> Bounds | None:
        """The narrower bounds of the step with that interval; None for a known value, or one that is not recorded."""
        number = self.numbers.get(id(bounds))
        return None if number is None else self.bounds_at(number, bounds.low.dtype)

    def bounds_at(self, number: int, kind: NumpyType) -> Bounds:
        """The narrower bounds of a step; unknown where a derivative on the way has no bound."""
        center = self.steps[number].center
        if not (size := center.size):
            return everything(kind, center.shape)
        slopes: dict[int, Array] = {number: np.eye(size).reshape(size, *center.shape)}
        total, spread = np.zeros(size), np.zeros(size)
        for at in range(number, -1, -1):
            if at not in slopes:
                continue
            slope = slopes.pop(at).reshape(size, -1)
            step = self.steps[at]
            least, most = (end.reshape(-1) for end in step.own)
            if not _are_finite(least, most):
                return everything(kind, center.shape)
            total += slope @ (least / 2 + most / 2)
            # Relative error of rounding here.
            spread += np.abs(slope) @ ((most / 2 - least / 2) + slope.shape[1] * EPS * np.maximum(-least, most))
            if step.back is None:
                continue
            for operand, given in zip(step.operands, step.back(slope.reshape(size, *step.center.shape)), strict=True):
                of = self.numbers.get(id(operand))
                if of is None or given is None:
                    continue
                if of in slopes:
                    given = slopes[of] + given
                    spread += EPS * np.abs(given).reshape(size, -1) @ self.steps[of].reach.reshape(-1)
                slopes[of] = given
        middle = center + total.reshape(center.shape)
        slack = spread.reshape(center.shape) * (1 + 2 * (number + size) * EPS) + number * EPS * (
            np.abs(middle) + np.abs(center)
        )
        found = around(kind, middle, middle, slack, np.abs(middle) + slack > float(info(kind).max))
        return unknown_where(~np.isfinite(slack) | ~np.isfinite(middle), found)


NARROWED = frozenset(("dot", "reduce", "divide", "rsqrt"))
"""Ops whose intervals are narrowed before others use them."""


def _are_finite(*arrays: Array) -> bool:
    return all(bool(np.isfinite(array.astype(np.float64)).all()) for array in arrays)


def _reach(box: Bounds, center: Array) -> Array:
    low, high = as_float64(box)
    return np.maximum(high - center, center - low) * (1 + 2 * EPS)


def _cut(step: _Step) -> _Step:
    """The step, with those elements cut from the chain whose interval is no wider than the rest e: they start anew."""
    low, high = (end - step.center for end in as_float64(step.box))
    alone = outside((low, high))
    least, most = step.own
    back = step.back
    is_cut = ~(alone[1] - alone[0] > most - least)
    if back is None or not is_cut.any():
        return step

    def kept(slope: Array) -> Sequence[Array | None]:
        return back(np.where(is_cut, 0, slope))

    own = np.where(is_cut, alone[0], least), np.where(is_cut, alone[1], most)
    return replace(step, own=own, back=kept)


def is_small(op: HloOp) -> bool:
    """Whether an op's result is recorded."""
    if not is_array(op.result.type):
        return False
    kind = element_of(op.result)
    return kind.kind is Kind.FLOAT and kind.numpy.itemsize <= 4 and math.prod(dims_of(op.result)) <= LARGEST


def is_worth_a_tape(computation: ComputationOp) -> bool:
    """Whether all computed values, in fusions too, are small, and so are the slopes of a result by the arrays that are read."""
    arrays = [op.result.type for op in computation.instructions if is_array(op.result.type)]
    if max((math.prod(dims_of(array)) for array in arrays), default=0) > MOST_READ:
        return False
    for op in computation.instructions:
        if isinstance(op, FusionOp | CallOp):
            if not is_worth_a_tape(find_computation(computation, op.callees()[0].symbol)):
                return False
        elif is_array(op.result.type) and not isinstance(op, ParameterOp | ConstantOp | GetTupleElementOp):
            if math.prod(dims_of(op.result)) > LARGEST:
                return False
    return True


def intersected(one: Bounds, other: Bounds) -> Bounds:
    """The intersection of both; `one` where it is empty or where either is unknown."""
    low, high = np.maximum(one.low, other.low), np.minimum(one.high, other.high)
    keeps = other.is_unknown | ~(low <= high)
    return Bounds(np.where(keeps, one.low, low), np.where(keeps, one.high, high))


# ---------------------------------------------------------------------------------------------------- ops


def _rule_of(op: HloOp, operands: Sequence[CenteredOperand], found: Bounds, chain: int | None) -> _Rule | None:
    """The rule of an op; None where it has no derivative here."""
    if isinstance(op, MoveOp):
        return _moved(op, operands[0])
    if isinstance(op, DotOp):
        return _dot(op, *operands)
    if isinstance(op, ReduceOp):
        return _reduced(op, operands, found.low.dtype, chain)
    return _elementwise(op, operands, found) if isinstance(op, ElementwiseOp) else None


def _rounded(exact: Array, off: Array, kind: NumpyType, back: Back, flow: Array, terms: int = 1) -> _Rule:
    """The rule for a float64 value rounded to the type; kernels and float64 are at most `off` from the linear value."""
    center = exact.astype(kind).astype(np.float64)
    missed = center - exact
    return _Rule(center, outside((-off - missed, off - missed)), back, flow, terms)


def _moved(op: MoveOp, operand: CenteredOperand) -> _Rule | None:
    if isinstance(op, BitcastOp) and element_of(op.operands[0]) != element_of(op.result):
        return None
    shape = operand.center.shape
    numbers = op.evaluate([np.arange(operand.center.size).reshape(shape)], no_call).reshape(-1)

    def back(slope: Array) -> Sequence[Array]:
        rows = slope.reshape(len(slope), -1)
        found = np.zeros((operand.center.size, len(slope)))
        np.add.at(found, numbers, rows.T)
        return [found.T.reshape(len(slope), *shape)]

    nothing = np.zeros(dims_of(op.result))
    center, reach = (op.evaluate([part], no_call) for part in (operand.center, operand.reach))
    return _Rule(center, (nothing, nothing), back, reach, len(numbers))


def _dot(op: DotOp, x: CenteredOperand, y: CenteredOperand) -> _Rule | None:
    """x y = a b + b (x - a) + a (y - b) + (x - a) (y - b), for centers a and b."""
    if op.held != dtype("f32") or any(op.kept(number)[1:] != [dtype("f32")] for number in (0, 1)):
        return None
    kind = element_of(op.result).numpy
    exact, left = matrix_product(op, x.center, y.center), matrix_product(op, x.reach, y.reach)
    flow = matrix_product(op, np.abs(x.center), y.reach) + matrix_product(op, x.reach, np.abs(y.center))
    off, terms = rounding_of(op, x.ends, y.ends)
    if kind.itemsize < 4:
        off = off + half_spacing(np.abs(exact) + off + flow + left, kind)

    def back(slope: Array) -> Sequence[Array]:
        return transposed_products(op, slope, x.center, y.center)

    return _rounded(exact, off + left * (1 + (terms + 2) * EPS), kind, back, flow, 2 * exact.size * terms)


def _reduced(op: ReduceOp, operands: Sequence[CenteredOperand], kind: NumpyType, chain: int | None) -> _Rule | None:
    body = find_computation(op, op.to_apply)
    if len(op.arrays) > 1 or len(list(body.instructions)) != 3 or operands[1].reach.any():
        return None
    (opcode,) = combining_opcodes(body)
    array, init, axes = operands[0], operands[1].center, tuple(integers(op.dimensions))
    shape, ends = array.center.shape, array.ends

    def over(values: Array) -> Array:
        return np.expand_dims(values, axes)

    def back_by(share: Array) -> Back:
        def back(slope: Array) -> Sequence[Array | None]:
            return [np.expand_dims(slope, tuple(dim + 1 for dim in axes)) * share, None]

        return back

    flow = array.reach.sum(axes)
    if opcode == "add" and chain is None:
        kept = [dim for dim in range(len(shape)) if dim not in axes]
        turned = [*sorted(axes), *kept]
        dims = [shape[dim] for dim in turned]

        def in_order(values: Array) -> Array:
            return values.transpose(turned).reshape(-1, *(shape[dim] for dim in kept))

        total = running_sum(in_order(ends[0]), in_order(ends[1]), in_order(array.center), init, kind)
        share = total.share.reshape(dims).transpose(np.argsort(turned))
        return _Rule(total.center, outside(total.own), back_by(share), flow)
    if opcode == "add":
        sizes = np.maximum(np.abs(ends[0]), np.abs(ends[1])).sum(axes) + np.abs(init)
        count = int(np.prod([shape[dim] for dim in axes])) + 1
        signed = [end.sum(axes) + init for end in ends]
        off = any_order(min(chain or count, count), count, unit_of(kind), sizes, np.maximum(*map(np.abs, signed)))
        off = off + count * EPS * sizes
        return _rounded(array.center.sum(axes) + init, off, kind, back_by(np.ones(shape)), flow)
    if opcode not in ("maximum", "minimum"):
        return None
    choose = np.maximum if opcode == "maximum" else np.minimum
    least, most = (choose(choose.reduce(end, axes), init) for end in ends)
    may = ends[1] >= over(least) if opcode == "maximum" else ends[0] <= over(most)
    from_init = init >= least if opcode == "maximum" else init <= most
    is_open = (may.sum(axes) + from_init) > 1
    center = choose(choose.reduce(array.center, axes), init)
    # Where the choice between the operands is open, the result starts a new chain.
    own = np.where(is_open, least - center, 0), np.where(is_open, most - center, 0)
    return _Rule(center, own, back_by((may & ~over(is_open)).astype(np.float64)), flow)


def _elementwise(op: ElementwiseOp, operands: Sequence[CenteredOperand], found: Bounds) -> _Rule | None:
    result = element_of(op.result)
    shape, kind = found.low.shape, result.numpy
    if isinstance(op, SelectOp):
        predicate, *choices = operands
        if predicate.reach.any() or any(choice.center.shape != shape for choice in choices):
            return None
        holds = np.broadcast_to(predicate.center, shape) != 0
        exact = np.where(holds, choices[0].center, choices[1].center)
        slopes, left = [np.zeros(shape), holds.astype(np.float64), (~holds).astype(np.float64)], np.zeros(shape)
    elif any(operand.center.shape != shape for operand in operands) or op.deciding.kind is not Kind.FLOAT:
        return None
    elif isinstance(op, ConvertOp):
        if op.deciding.numpy.itemsize > 4:
            return None
        exact, slopes, left = operands[0].center, [np.ones(shape)], np.zeros(shape)
    else:
        if op.opcode not in SLOPES and op.opcode not in ("multiply", "divide"):
            return None
        exact = np.asarray(op.ROW.means(dtype("f64"), *(operand.center for operand in operands)))
        slopes, left = linearized(op.opcode, operands)

    def back(slope: Array) -> Sequence[Array | None]:
        return [slope * own for own in slopes]

    # A rounded value is at most the largest number that it may be rounded to.
    most = np.maximum(*(np.abs(end) for end in as_float64(found)))
    most = np.maximum(most, np.abs(exact))
    flow = np.zeros(shape)
    for own, operand in zip(slopes, operands, strict=True):
        flow = flow + np.abs(own) * operand.reach
    ulps = ulps_of(op.opcode, Kind.FLOAT.value, result.bits)
    if ulps:
        half = half_spacing(most, kind)
        off = np.maximum(2 * ulps * half, floor_of(kind)) + half + 8 * EPS * most
    elif op.opcode in ("add", "subtract"):
        off = np.where(_is_exact(operands, most, kind), 0, half_spacing(most, kind)) + 2 * EPS * most
    elif op.opcode in ("multiply", "convert"):
        off = half_spacing(most, kind) + 2 * EPS * most
    else:
        off = np.zeros(shape)
    return _rounded(exact, off + left, kind, back, flow)


def _is_exact(operands: Sequence[CenteredOperand], most: Array, kind: NumpyType) -> Array:
    """Mask of exact sums: both operands are multiples of the spacing of numbers at the sum, so the sum is a number of the type."""
    grids = [half_spacing(nearest_to_zero(*operand.ends), kind) for operand in operands]
    return np.minimum(*grids) >= half_spacing(most, kind)


def narrowed(bounds: Bounds, by: Bounds | None) -> Bounds:
    """The bounds of a result, intersected with those of the tape."""
    return bounds if by is None or bounds.is_point else settled(*intersected(bounds, by).ends)
