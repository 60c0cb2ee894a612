"""Ranges of index values, as far as constants, attributes and loop bounds state them: without looking at arithmetic.

    %thread_id_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}     ->   [0, 127]

Source: docs/reference/1 1.6 "Static range of an SSA value".
"""

from __future__ import annotations

from functools import lru_cache
from typing import cast

# Ops that xDSL read count too.
from xdsl.dialects import func as stock_func
from xdsl.dialects import scf as stock_scf
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from xla_emitters.algebra.interval import Interval
from xla_emitters.dialects.attributes import index_number
from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.quick_op import PlainMeta, op_of

RANGE_ATTR = "xla.range"
"""The attribute, of an op or a function's argument, with its range; both ends are included."""


class KnowsRanges(Operation, metaclass=PlainMeta):
    """Interface of an op that knows the ranges of its index results, or of the index arguments of its body."""

    def range_of_result(self, number: int) -> Interval | None:
        """The range of result `number`; by default its `xla.range`."""
        return interval_of(self.attributes.get(RANGE_ATTR))

    def range_of_body_argument(self, number: int) -> Interval | None:
        """The range of argument `number` of the op's block."""
        return None


@lru_cache(4096)
def range_attr(lower: int, upper: int) -> ArrayAttr[Attribute]:
    """`[lower : index, upper : index]`"""
    return ArrayAttr([index_number(lower), index_number(upper)])


def interval_of(attribute: Attribute | None) -> Interval | None:
    """The interval of a `xla.range` attribute; None for another attribute."""
    match attribute:
        case ArrayAttr(data=(IntegerAttr() as lower, IntegerAttr() as upper)):
            return Interval(lower.value.data, upper.value.data)
        case _:
            return None


def constant_of(value: SSAValue) -> int | None:
    """The value of an integer `arith.constant`; None for other values."""
    match op_of(value):
        case arith.ConstantOp(value=IntegerAttr() as constant):
            return constant.value.data
        case _:
            return None


def range_of_value(value: SSAValue) -> Interval | None:
    """The least interval known to hold every value that `value` takes; None when nothing is known.

    Known are results of apply_indexing (over the map's domain), constants, values with `xla.range`, the induction variables of
    loops with constant bounds, and the induction variables and map results of `xla_gpu.loop`.
    """
    if (op := op_of(value)) is not None:
        return _range_of_result(op, cast("OpResult[Attribute]", value).index)
    if isinstance(value, BlockArgument):
        return _range_of_argument(value.block, value.index)
    return None


def _range_of_result(op: Operation, number: int) -> Interval | None:
    match op:
        case arith.ConstantOp(value=IntegerAttr() as constant):
            return Interval(constant.value.data, constant.value.data)
        case KnowsRanges():
            return op.range_of_result(number)
        case _:
            return interval_of(op.attributes.get(RANGE_ATTR))


def _range_of_argument(block: Block, number: int) -> Interval | None:
    match block.parent_op():
        case stock_func.FuncOp() as function:
            if function.arg_attrs is None or block.prev_block is not None:
                return None
            return interval_of(function.arg_attrs.data[number].data.get(RANGE_ATTR))
        case stock_scf.ForOp() as loop if number == 0:
            lower, upper = range_of_value(loop.lb), range_of_value(loop.ub)
            if lower is None or upper is None or not (lower.is_point and upper.is_point):
                return None
            last = Interval(lower.lower, upper.lower - 1)
            return last if last.is_feasible else None
        case KnowsRanges() as op:
            return op.range_of_body_argument(number)
        case _:
            return None


def bounds_of(value: SSAValue, bounds: Interval) -> Interval:
    """`bounds`, and within its range if the value has one that they meet."""
    known = range_of_value(value)
    both = bounds if known is None else bounds.intersect(known)
    return both if both.is_feasible else bounds
