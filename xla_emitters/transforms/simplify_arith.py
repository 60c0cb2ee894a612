"""Simplify arithmetic whose result follows from the ranges of its operands.

    %0 = arith.cmpi sge, %thread_id_x, %c0        ->  %true, and the scf.if on it is its then-side
    %1 = arith.minsi %i, %c511                    ->  %i, when %i is known to be at most 511
    %2 = arith.addi %i, %c4                       ->  %2 = arith.addi %i, %c4 {xla.range = [4 : index, 515 : index]}
    andi (trunci %a), (trunci %b)                 ->  trunci (andi %a, %b)
    shuffle (extui (trunci %a))                   ->  extui (trunci (shuffle %a)), if %a is as wide as the shuffled value
    apply_indexing #map(%i), i in [0, 511]        ->  the map's bounds limited to those of the enclosing loop, and simplified

First every addi, muli, minsi, maxsi, index_cast, index_castui and |x| gets its range as an attribute, if its operands have known ranges and
the result cannot wrap in the width of its type (for index: the width in the module's data layout, 32 bits if it has none). Then the
patterns run to a fixed point, with folding and the canonical forms of `scf.if` and `scf.for`.

The truncations are moved after andi and ori because predicates are stored as bytes: a reduction of predicates then stays in bytes.
Source: XLA simplify_arith.cc. Unsigned comparisons are decided as unsigned here (`rewrite/range_folds.py`); atan2(x, 1) is left to
libdevice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerType, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith, scf
from xla_emitters.dialects.mlir.arith import IndexCastUIOp
from xla_emitters.dialects.mlir.gpu import ShuffleOp
from xla_emitters.dialects.quick_op import walk
from xla_emitters.dialects.ranges import RANGE_ATTR, range_attr, range_of_value
from xla_emitters.dialects.xla_gpu import ApplyIndexingOp, LoopOp
from xla_emitters.rewrite.constants import constant_integer
from xla_emitters.rewrite.index_width import index_width
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.patterns import apply_patterns_by_type
from xla_emitters.rewrite.range_folds import RANGE_PATTERNS
from xla_emitters.rewrite.scf_patterns import SCF_PATTERNS
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True)
class SimplifyArithPass(KernelPass):
    """See the head of the file.

    fast_min_max              minimumf and maximumf become one comparison and a select; the result is the first operand if either is NaN
    explicit_nan_propagation  minimumf and maximumf become minnumf and maxnumf, and a select of NaN if either operand is NaN
    """

    name = "xla-simplify-arith"

    fast_min_max: bool = False
    explicit_nan_propagation: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        index_bits = index_width(op)
        for inner in walk(op):
            _annotate(inner, index_bits)
        patterns: dict[type[Operation], tuple[RewritePattern, ...]] = {
            **PATTERNS,
            **(FAST_MIN_MAX if self.fast_min_max else EXPLICIT_NAN if self.explicit_nan_propagation else {}),
        }
        apply_patterns_by_type(op, lambda op_type: patterns.get(op_type, ()), fold=True, ctx=ctx)


# Ranges ------------------------------------------------------------------------------------------------------------------

ANY_INDEX = Interval(-(1 << 63), (1 << 63) - 1)


def _annotate(op: Operation, index_bits: int) -> None:
    """Sets the range of `op`'s result, if the ranges of its operands determine one and the result cannot wrap."""
    rule = RANGES.get(type(op))
    if rule is None or RANGE_ATTR in op.attributes:
        return
    found = rule(op)
    if found is None or not found.is_feasible:
        return
    match op.results[0].type:
        case IndexType():
            bits = index_bits
        case IntegerType(width=width):
            bits = width.data
        case _:
            return
    cannot_wrap = isinstance(op, arith.MinSIOp | arith.MaxSIOp)
    if cannot_wrap or (-(1 << (bits - 1)) <= found.lower and found.upper < 1 << (bits - 1)):
        op.attributes[RANGE_ATTR] = range_attr(found.lower, found.upper)


def _of_both(combine: Callable[[Interval, Interval], Interval]) -> Callable[[Operation], Interval | None]:
    def rule(op: Operation) -> Interval | None:
        left, right = range_of_value(op.operands[0]), range_of_value(op.operands[1])
        return None if left is None or right is None else combine(left, right)

    return rule


def _of_either(choose: Callable[[int, int], int]) -> Callable[[Operation], Interval | None]:
    """Rule for minsi and maxsi: one known operand bounds the result from one side, so the second op of a clamp gets both bounds."""

    def rule(op: Operation) -> Interval | None:
        left, right = range_of_value(op.operands[0]), range_of_value(op.operands[1])
        if left is None and right is None:
            return None
        left, right = left or ANY_INDEX, right or ANY_INDEX
        return Interval(choose(left.lower, right.lower), choose(left.upper, right.upper))

    return rule


def _of_nonnegative_operand(op: Operation) -> Interval | None:
    """The operand's range if it is nonnegative, since an unsigned cast keeps such values. The caller checks that they fit the result."""
    known = range_of_value(op.operands[0])
    return known if known is not None and known.lower >= 0 else None


def _of_absolute_value(op: Operation) -> Interval | None:
    """The range of `select(%x >= 0, %x, 0 - %x)`. The smallest integer has no absolute value, so the range of %x must be known."""
    assert isinstance(op, arith.SelectOp)
    comparison, negated = op.cond.owner, op.rhs.owner
    if not isinstance(comparison, arith.CmpiOp) or not isinstance(negated, arith.SubiOp):
        return None
    is_nonnegative = comparison.predicate.value.data == 5 and constant_integer(comparison.rhs) == 0
    if (
        not is_nonnegative
        or comparison.lhs is not op.lhs
        or negated.rhs is not op.lhs
        or constant_integer(negated.lhs) != 0
    ):
        return None
    if (known := range_of_value(op.lhs)) is None:
        return None
    smallest = 0 if known.contains(0) else min(abs(known.lower), abs(known.upper))
    return Interval(smallest, max(abs(known.lower), abs(known.upper)))


RANGES: dict[type[Operation], Callable[[Operation], Interval | None]] = {
    arith.AddiOp: _of_both(lambda a, b: a + b),
    arith.MuliOp: _of_both(lambda a, b: _product(a, b)),
    arith.MinSIOp: _of_either(min),
    arith.MaxSIOp: _of_either(max),
    arith.IndexCastOp: lambda op: range_of_value(op.operands[0]),
    IndexCastUIOp: _of_nonnegative_operand,
    arith.SelectOp: _of_absolute_value,
}


def _product(a: Interval, b: Interval) -> Interval:
    ends = [x * y for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
    return Interval(min(ends), max(ends))


# Patterns ----------------------------------------------------------------------------------------------------------------


class NarrowLogic(RewritePattern):
    """`andi(trunci %a, trunci %b)` → `trunci(andi(%a, %b))`, also ori; an operand that is not truncated is extended."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.AndIOp | arith.OrIOp, rewriter: PatternRewriter) -> None:
        wide = [side.owner.input if isinstance(side.owner, arith.TruncIOp) else None for side in (op.lhs, op.rhs)]
        types = {value.type for value in wide if value is not None}
        wide_type = types.pop() if len(types) == 1 else None
        narrow_type = op.result.type
        if not isinstance(wide_type, IntegerType) or not isinstance(narrow_type, IntegerType):
            return
        sides: list[SSAValue] = []
        for side, wider in zip((op.lhs, op.rhs), wide, strict=True):
            sides.append(
                wider
                if wider is not None
                else rewriter.insert(arith.ExtUIOp(side, cast(IntegerType, wide_type))).result
            )
        combined = rewriter.insert(type(op)(sides[0], sides[1]))
        rewriter.replace(op, arith.TruncIOp(combined.result, narrow_type))


class ShuffleWide(RewritePattern):
    """`shuffle(extui(trunci %x))` → `extui(trunci(shuffle %x))`: a predicate reduced over a warp is then not extended in each step."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ShuffleOp, rewriter: PatternRewriter) -> None:
        extended, value_type = op.value.owner, op.value.type
        cut = extended.input.owner if isinstance(extended, arith.ExtUIOp) else None
        if not isinstance(cut, arith.TruncIOp) or not isa(value_type, IntegerType) or cut.input.type != value_type:
            return
        moved = rewriter.insert(ShuffleOp(op.mode.word.data, cut.input, op.offset, op.width))
        narrow = rewriter.insert(arith.TruncIOp(moved.shuffle_result, cut.result.type))
        wide = rewriter.insert(arith.ExtUIOp(narrow.result, value_type))
        rewriter.replace(op, (), (wide.result, moved.valid))


class RefineBounds(RewritePattern):
    """Limits the range of a map's variable to the loop's bounds if its operand is a loop's induction variable."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ApplyIndexingOp, rewriter: PatternRewriter) -> None:
        refined = [_refined(v, operand) for v, operand in zip(op.map.variables, op.operands, strict=True)]
        if all(new is old for new, old in zip(refined, op.map.variables, strict=True)):
            return
        dims = op.map.num_dims
        tighter = replace(op.map, dims=tuple(refined[:dims]), range_vars=tuple(refined[dims:])).simplify()
        rewriter.replace(op, ApplyIndexingOp(op.operands, tighter, op.attributes))


def _refined(variable: Variable, operand: SSAValue) -> Variable:
    """`variable` with the bounds of `operand`, if that is an induction variable with tighter bounds."""
    if not isinstance(operand, BlockArgument) or not isinstance(operand.block.parent_op(), scf.ForOp | LoopOp):
        return variable
    known = range_of_value(operand)
    both = variable.bounds if known is None else variable.bounds.intersect(known)
    return variable if both == variable.bounds or not both.is_feasible else Variable(both, variable.name)


@dataclass(frozen=True)
class CompareAndSelect(RewritePattern):
    """`minimumf(%a, %b)` → `select(cmpf predicate %a, %b; %a, %b)`; also maximumf."""

    predicate: str

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.MinimumfOp | arith.MaximumfOp, rewriter: PatternRewriter) -> None:
        is_first = rewriter.insert(arith.CmpfOp(op.lhs, op.rhs, self.predicate, op.fastmath))
        rewriter.replace(op, arith.SelectOp(is_first.result, op.lhs, op.rhs))


@dataclass(frozen=True)
class NanBeside(RewritePattern):
    """`minimumf(%a, %b)` → `select(cmpf ord %a, %b; of_numbers(%a, %b), NaN)`; also maximumf."""

    of_numbers: type[arith.MinnumfOp | arith.MaxnumfOp]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.MinimumfOp | arith.MaximumfOp, rewriter: PatternRewriter) -> None:
        if not isinstance(float_type := op.result.type, AnyFloat):
            return
        are_numbers = rewriter.insert(arith.CmpfOp(op.lhs, op.rhs, "ord", op.fastmath))
        of_numbers = rewriter.insert(self.of_numbers(op.lhs, op.rhs, op.fastmath))
        nan = rewriter.insert(arith.ConstantOp(FloatAttr(math.nan, float_type)))
        rewriter.replace(op, arith.SelectOp(are_numbers.result, of_numbers.result, nan.result))


FAST_MIN_MAX: dict[type[Operation], tuple[RewritePattern, ...]] = {
    arith.MinimumfOp: (CompareAndSelect("ule"),),
    arith.MaximumfOp: (CompareAndSelect("uge"),),
}
EXPLICIT_NAN: dict[type[Operation], tuple[RewritePattern, ...]] = {
    arith.MinimumfOp: (NanBeside(arith.MinnumfOp),),
    arith.MaximumfOp: (NanBeside(arith.MaxnumfOp),),
}
PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {
    **RANGE_PATTERNS,
    **SCF_PATTERNS,
    **dict.fromkeys((arith.AndIOp, arith.OrIOp), (NarrowLogic(),)),
    ApplyIndexingOp: (RefineBounds(),),
    ShuffleOp: (ShuffleWide(),),
}
