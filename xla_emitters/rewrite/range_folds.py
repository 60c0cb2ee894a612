"""Fold comparisons, minima and maxima whose result follows from value ranges: it is the same for every thread and iteration.

    %thread_id_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
    %0 = arith.cmpi sle, %thread_id_x, %c127                                   ->  %true

Ranges are of signed values (`dialects/ranges.py`). An unsigned comparison is folded only if neither operand can be negative: then the
signed and the unsigned order agree. (XLA evaluates unsigned predicates on signed intervals.)
Source: docs/reference/2 3.3 "xla-simplify-arith".
"""

from __future__ import annotations

from typing import TypeAlias

from xdsl.dialects.builtin import IndexType, IntegerType, i1
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from xla_emitters.algebra.interval import Interval
from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.ranges import range_of_value
from xla_emitters.rewrite.constants import constant_op, integer_attr
from xla_emitters.rewrite.folders import FIRST_UNSIGNED

Extremum: TypeAlias = arith.MinSIOp | arith.MaxSIOp | arith.MinUIOp | arith.MaxUIOp


def decide_comparison(op: arith.CmpiOp) -> bool | None:
    """The result of `op` if it is the same for all values in the ranges of its operands, else None."""
    if op.lhs.type == i1:
        return None  # i1 has no order here: `true` is 1 in some attributes and -1 in others
    predicate = op.predicate.value.data
    if (ranges := _ranges(op, is_unsigned=predicate >= FIRST_UNSIGNED)) is None:
        return None
    left, right = ranges
    # eq ne slt sle sgt sge ult ule ugt uge: a < b is not b <= a
    kind = predicate if predicate < FIRST_UNSIGNED else predicate - 4
    if kind < 2:
        known = _is_equal(left, right)
    else:
        known = _is_at_most(left, right) if kind in (3, 4) else _is_at_most(right, left)
    return None if known is None else known != (kind in (1, 2, 4))


def _ranges(op: arith.CmpiOp | Extremum, *, is_unsigned: bool) -> tuple[Interval, Interval] | None:
    """The ranges of the two operands, if they are known; as unsigned numbers if both are not negative."""
    left, right = range_of_value(op.lhs), range_of_value(op.rhs)
    if left is None or right is None or not (left.is_feasible and right.is_feasible):
        return None
    return None if is_unsigned and (left.lower < 0 or right.lower < 0) else (left, right)


def _is_equal(a: Interval, b: Interval) -> bool | None:
    if a.upper < b.lower or b.upper < a.lower:
        return False
    return True if a.is_point and b.is_point else None


def _is_at_most(a: Interval, b: Interval) -> bool | None:
    if a.upper <= b.lower:
        return True
    return False if a.lower > b.upper else None


def decide_extremum(op: Operation) -> SSAValue | None:
    """The operand that a minimum or maximum always equals, if the ranges determine it."""
    if not isinstance(op, Extremum):
        return None
    if (ranges := _ranges(op, is_unsigned=isinstance(op, arith.MinUIOp | arith.MaxUIOp))) is None:
        return None
    left, right = ranges
    is_minimum = isinstance(op, arith.MinSIOp | arith.MinUIOp)
    if _is_at_most(left, right):
        return op.lhs if is_minimum else op.rhs
    if _is_at_most(right, left):
        return op.rhs if is_minimum else op.lhs
    return None


class DecideComparisons(RewritePattern):
    """Replaces a comparison by a constant if its operands' ranges decide it."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.CmpiOp, rewriter: PatternRewriter) -> None:
        if not isinstance(op.lhs.type, IndexType | IntegerType):
            return
        if (outcome := decide_comparison(op)) is not None:
            rewriter.replace(op, constant_op(integer_attr(outcome, i1)))


class DecideExtrema(RewritePattern):
    """Replaces a minimum or maximum by one of its operands if the operands' ranges decide which."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Extremum, rewriter: PatternRewriter) -> None:
        if (operand := decide_extremum(op)) is not None:
            rewriter.replace(op, (), (operand,))


RANGE_PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {
    arith.CmpiOp: (DecideComparisons(),),
    **dict.fromkeys((arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp), (DecideExtrema(),)),
}
