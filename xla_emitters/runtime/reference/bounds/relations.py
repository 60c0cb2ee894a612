"""Bounds from relations between two operands, which interval arithmetic misses because it takes operands as independent.

    x - max(x)                  not above 0
    sum(exp(x - max(x)))        not below exp(0): one of the terms is that
    x / sum(x)                  not above 1, where nothing in x is negative
    dot(x / sum(x), v)          between the least and the greatest of v and 0, plus the rounding error of a sum of 1

The maximum is one of the numbers that it is taken over; a rounded sum of nonnegative numbers is no smaller than each of them, in any
order, because rounding is monotone; so is a division, which may be off by its ulps. `max(x)` and `sum(x)` are rows of x reduced and
broadcast again, in one computation. Without these rules the bounds of a softmax of uncertain values are infinite: its sum might be 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.computation import find_computation
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.contractions import DotOp
from xla_emitters.dialects.hlo.elementwise import ConvertOp, ElementwiseOp
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.shape_ops import BroadcastOp
from xla_emitters.dialects.hlo.types import dims_of, element_of
from xla_emitters.dtypes import Array, Kind, dtype
from xla_emitters.graph.reduction_starts import combining_opcodes
from xla_emitters.runtime.reference.bounds.contraction_bounds import are_finite
from xla_emitters.runtime.reference.bounds.sums import around, growth, smallest, unit_of
from xla_emitters.runtime.reference.tolerance import Bounds, floor_of, outward, ulps_of, widen


def by_relations(op: HloOp, operands: Sequence[Bounds], found: Bounds) -> Bounds:
    """The bounds of a result, narrowed by relations between its operands.

    operands  bounds of the op's operands
    found     bounds of the result with operands taken as independent
    """
    if found.is_point or element_of(op.result).kind is not Kind.FLOAT:
        return found
    zero, one = (np.array(number).astype(found.low.dtype) for number in (0, 1))
    if isinstance(op, ReduceOp):
        powers = _before_conversions(op.operands[0]).owner
        if not (_combines_by(op, "add") and isinstance(powers, HloOp) and powers.opcode == "exponential"):
            return found
        if _largest_of(powers.operands[0]) != tuple(integers(op.dimensions)) or not (operands[1].low >= 0).all():
            return found
        if not _starts_below(powers.operands[0]):
            return found
        of_power = element_of(powers.result)
        least = widen(np.ones((), of_power.numpy), ulps_of("exponential", Kind.FLOAT.value, of_power.bits), -1)
        # Conversions are monotone, but each rounds.
        off = widen(least.astype(found.low.dtype), 1, -1)
        known = np.isfinite(operands[0].low).all(tuple(integers(op.dimensions)))
        return Bounds(np.where(known & (found.low < off), off, found.low), found.high)
    if isinstance(op, DotOp):
        return _mean(op, operands, found)
    if not isinstance(op, ElementwiseOp) or op.opcode not in ("subtract", "divide"):
        return found
    # An operand of the op may be a scalar where the other is an array.
    known = np.logical_and.reduce(
        np.broadcast_arrays(*(np.isfinite(end) for bounds in operands for end in bounds.ends))
    )
    if op.opcode == "subtract":
        if _largest_of(op.result) is None:
            return found
        return Bounds(found.low, np.where(known & (found.high > zero), zero, found.high))
    if _shares_of(op.result) is None or not (operands[0].low >= 0).all() or not (operands[1].low > 0).all():
        return found
    most = widen(one, ulps_of("divide", Kind.FLOAT.value, element_of(op.result).bits), +1)
    return Bounds(found.low, np.where(known & (found.high > most), most, found.high))


def _mean(op: DotOp, operands: Sequence[Bounds], found: Bounds) -> Bounds:
    """A dot of shares x / sum(x) with other values: each share has the relative error of its division and of its sum."""
    shares, values = operands
    pairing, of_share = op.pairing, element_of(op.operands[0])
    quotient = _before_conversions(op.operands[0])
    total = _shares_of(quotient)
    same = total is not None and tuple(integers(total.dimensions)) == tuple(pairing.lhs_contracting)
    if not same or op.held != dtype("f32") or not (shares.low >= 0).all() or not are_finite(shares, values):
        return found
    terms = math.prod(dims_of(op.operands[0])[dim] for dim in pairing.lhs_contracting)
    unit = max(unit_of(element_of(value).numpy) for value in (op.operands[0], quotient))
    ulps = ulps_of("divide", Kind.FLOAT.value, of_share.bits)
    # Roundings: the additions of the sum, the ulps of the quotient, and the conversions.
    most = (1 + growth(2 * ulps + 4, 2 * unit)) * (1 + growth(terms + 1, 2 * unit)) + terms * 2 * floor_of(
        of_share.numpy
    )
    free = [dim for dim in range(values.low.ndim) if dim not in (*pairing.rhs_batch, *pairing.rhs_contracting)]
    turned = [*pairing.rhs_batch, *free]
    shape, batch = dims_of(op.result), len(pairing.rhs_batch)
    ends, over = list[Array](), tuple(pairing.rhs_contracting)
    for end, choose in ((values.low, np.minimum), (values.high, np.maximum)):
        farthest = choose(choose.reduce(end.astype(np.float64), over, keepdims=True), 0)
        kept = np.squeeze(farthest, over).transpose(np.argsort(np.argsort(turned)))
        inner = (1,) * (len(shape) - kept.ndim)
        ends.append(np.broadcast_to(kept.reshape(*kept.shape[:batch], *inner, *kept.shape[batch:]), shape) * most)
    # Rounding error of the dot itself.
    size = np.maximum(np.abs(ends[0]), np.abs(ends[1]))
    slack = growth(terms + 1, 2 * unit_of(np.dtype(np.float32))) * size + 2 * terms * smallest(np.dtype(np.float32))
    cut = outward(around(found.low.dtype, ends[0], ends[1], slack, np.zeros(shape, np.bool_)))
    low, high = np.maximum(found.low, cut.low), np.minimum(found.high, cut.high)
    return Bounds(np.where(low <= high, low, found.low), np.where(low <= high, high, found.high))


def _shares_of(value: SSAValue) -> ReduceOp | None:
    """The sum in x / sum(x)."""
    op = value.owner
    if not isinstance(op, ElementwiseOp) or op.opcode != "divide":
        return None
    total = _reduced_and_broadcast(op.operands[1], op.operands[0])
    if total is None or not _combines_by(total, "add"):
        return None
    init = total.operands[1].owner
    return total if isinstance(init, ConstantOp) and bool((init.array().astype(np.float64) >= 0).all()) else None


def _largest_of(value: SSAValue) -> tuple[int, ...] | None:
    """The dims over which the maximum is taken in x - max(x)."""
    op = value.owner
    if not isinstance(op, ElementwiseOp) or op.opcode != "subtract":
        return None
    largest = _reduced_and_broadcast(op.operands[1], op.operands[0])
    return tuple(integers(largest.dimensions)) if largest is not None and _combines_by(largest, "maximum") else None


def _starts_below(value: SSAValue) -> bool:
    """Whether the maximum in x - max(x) is an element of x: it starts from -inf, and no number is below that."""
    assert isinstance(value.owner, HloOp)
    largest = _reduced_and_broadcast(value.owner.operands[1], value.owner.operands[0])
    init = largest.operands[1].owner if largest is not None else None
    return isinstance(init, ConstantOp) and bool((init.array().astype(np.float64) == -np.inf).all())


def _reduced_and_broadcast(value: SSAValue, array: SSAValue) -> ReduceOp | None:
    """The reduction of `array` alone whose result, broadcast to the shape of `array`, is `value`."""
    broadcast = value.owner
    reduce = broadcast.operands[0].owner if isinstance(broadcast, BroadcastOp) else None
    if not isinstance(broadcast, BroadcastOp) or not isinstance(reduce, ReduceOp):
        return None
    dims, reduced = dims_of(array), integers(reduce.dimensions)
    kept = [dim for dim in range(len(dims)) if dim not in reduced]
    is_same = len(reduce.arrays) == 1 and reduce.operands[0] is array and dims_of(broadcast.result) == dims
    return reduce if is_same and list(integers(broadcast.dimensions)) == kept else None


def _combines_by(reduce: ReduceOp, opcode: str) -> bool:
    body = find_computation(reduce, reduce.to_apply)
    return len(list(body.instructions)) == 3 and combining_opcodes(body) == (opcode,)


def _before_conversions(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, ConvertOp):
        value = value.owner.operands[0]
    return value
