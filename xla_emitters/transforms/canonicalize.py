"""Canonicalisation: folds the module and rewrites it to canonical form; every op keeps a location.

    %0 = arith.addi %c1, %x : index         ->  %c1 at the function's entry, once;  %0 = arith.addi %x, %c1
    %1 = arith.cmpi slt, %c0, %c4 : index       %1 is %true, the branch is its then-side
    scf.if %1 { ... }

It applies the folders (`folders.py`), the patterns for `arith` and `scf` below and in `scf_patterns.py`, and the
patterns that other dialects register with xDSL (`HasCanonicalizationPatterns`). It does not use xDSL's patterns for `arith` and `scf`:
ours fold the same ops, exactly and in one place. Blocks that nothing branches to are erased.

Left alone, because the seed's listings show these forms: `vector.extract` and `vector.insert` at a dynamic position keep it, even if the
position is a constant; insertions that fill a vector do not become `vector.from_elements`; `tensor.extract` of a `tensor.insert` stays.

Conversions between integers and floats, and what is compared after one, as MLIR's canonicalizer:

    %1 = arith.extui %0 : i1 to i8
    %2 = arith.extsi %1 : i8 to i32             ->   %2 = arith.extui %0 : i1 to i32
    %3 = arith.sitofp %1 : i8 to f32            ->   %3 = arith.uitofp %0 : i1 to f32
    %4 = arith.cmpf ogt, %3, 0.0 : f32          ->   %4 = arith.cmpi ugt, %0, false : i1

A comparison of a converted integer with a constant is left alone where rounding of the integer could change its answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, ModuleOp, i1, i64
from xdsl.ir import Attribute, Operation
from xdsl.ir.post_order import PostOrderIterator
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import HasCanonicalizationPatternsTrait

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith
from xla_emitters.dtypes import WIDE_FLOATS
from xla_emitters.rewrite.constants import (
    constant_integer,
    constant_op,
    constant_value,
    integer_attr,
    is_constant_value,
    width,
)
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.patterns import apply_patterns_by_type
from xla_emitters.rewrite.scf_patterns import SCF_PATTERNS

OUR_DIALECTS = frozenset({"arith", "scf"})


def canonicalize(root: Operation, ctx: Context | None = None) -> bool:
    """Folds and canonicalises everything inside `root`, to a fixed point; returns whether anything changed."""
    changed = apply_patterns_by_type(root, canonicalization_patterns, fold=True, ctx=ctx)
    if erase_unreachable_blocks(root):
        # The values that those blocks used may be dead now, or have only one use.
        apply_patterns_by_type(root, canonicalization_patterns, fold=True, ctx=ctx)
        return True
    return changed


@cache
def canonicalization_patterns(op_type: type[Operation]) -> Sequence[RewritePattern]:
    """The patterns for ops of `op_type`: ours for `arith` and `scf`, else those that its dialect registers."""
    if op_type.name.partition(".")[0] in OUR_DIALECTS:
        tables = ARITH_PATTERNS, CONVERSION_PATTERNS, SCF_PATTERNS
        return tuple(pattern for table in tables for pattern in table.get(op_type, ()))
    found: list[RewritePattern] = []
    for trait in op_type.traits.traits:
        if isinstance(trait, HasCanonicalizationPatternsTrait):
            found += trait.get_patterns(op_type)
    return found


# Each predicate's equivalent for exchanged operands, by number: eq ne slt sle sgt sge ult ule ugt uge.
EXCHANGED = (0, 1, 4, 5, 2, 3, 8, 9, 6, 7)
# Each predicate's negation.
INVERSE = (1, 0, 5, 4, 3, 2, 9, 8, 7, 6)
NE = 1


class ComparedConstantToTheRight(RewritePattern):
    """`%c < %x` → `%x > %c`."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.CmpiOp, rewriter: PatternRewriter) -> None:
        if not is_constant_value(op.lhs) or is_constant_value(op.rhs):
            return
        op.properties["predicate"] = IntegerAttr(EXCHANGED[op.predicate.value.data], i64)
        op.operands = (op.rhs, op.lhs)
        rewriter.notify_op_modified(op)


class ExtensionComparedWithZero(RewritePattern):
    """`cmpi ne, (extui or extsi %x : i1), 0` → `%x`."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.CmpiOp, rewriter: PatternRewriter) -> None:
        extension = op.lhs.owner
        if op.predicate.value.data != NE or not isinstance(extension, arith.ExtUIOp | arith.ExtSIOp):
            return
        if extension.input.type == i1 and constant_integer(op.rhs) == 0:
            rewriter.replace(op, (), [extension.input])


class SelectOfConstants(RewritePattern):
    """`select(c, false, true)` → `not c`; `select(c, 1, 0)` → `extui c`; `select(c, 0, 1)` → `extui(not c)`."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.SelectOp, rewriter: PatternRewriter) -> None:
        kind: Attribute = op.result.type
        if op.cond.type != i1 or not isa(kind, IntegerType):
            return
        one = -1 if kind == i1 else 1
        values = constant_integer(op.lhs), constant_integer(op.rhs)
        if values not in ((0, one), (one, 0)):
            return
        made: list[Operation] = []
        selected = op.cond
        if values[0] == 0:
            true = constant_op(integer_attr(1, i1))
            made += (true, arith.XOrIOp(op.cond, true))
            selected = made[-1].results[0]
        if kind != i1:
            made.append(arith.ExtUIOp(selected, kind))
        rewriter.replace(op, made, [made[-1].results[0] if made else selected])


class SelectByWhatIsNot(RewritePattern):
    """`select(not c, x, y)` → `select(c, y, x)`."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.SelectOp, rewriter: PatternRewriter) -> None:
        inverse = op.cond.owner
        if isinstance(inverse, arith.XOrIOp) and inverse.result.type == i1 and constant_integer(inverse.rhs) == -1:
            rewriter.replace(op, arith.SelectOp(inverse.lhs, op.rhs, op.lhs))


class NotOfComparison(RewritePattern):
    """`not (x < y)` → `x >= y` for integers, and so for every predicate of cmpi."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.XOrIOp, rewriter: PatternRewriter) -> None:
        compared = op.lhs.owner
        if isinstance(compared, arith.CmpiOp) and constant_integer(op.rhs) == -1:
            predicate = INVERSE[compared.predicate.value.data]
            rewriter.replace(op, arith.CmpiOp(compared.lhs, compared.rhs, predicate))


class AddConstants(RewritePattern):
    """`(x + c) + d` → `x + (c + d)`, also for differences. Both wrap alike; the new op has no overflow flags."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        inner = op.operands[0].owner
        if not isinstance(inner, arith.AddiOp | arith.SubiOp) or not op.operands[0].has_one_use():
            return
        outer_value, inner_value = constant_integer(op.operands[1]), constant_integer(inner.operands[1])
        if outer_value is None or inner_value is None:
            return
        signed_inner = inner_value if isinstance(inner, arith.AddiOp) else -inner_value
        signed_outer = outer_value if isinstance(op, arith.AddiOp) else -outer_value
        total = constant_op(integer_attr(signed_inner + signed_outer, op.results[0].type))
        rewriter.replace(op, (total, arith.AddiOp(inner.operands[0], total)))


class BitsBeforeExtension(RewritePattern):
    """`andi(ext x, ext y)` → `ext(andi x, y)` if both extend in the same way; also ori and xori."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        one, other = (operand.owner for operand in op.operands)
        for kind in (arith.ExtUIOp, arith.ExtSIOp):
            if isinstance(one, kind) and isinstance(other, kind) and one.input.type == other.input.type:
                narrow = type(op).create(operands=[one.input, other.input], result_types=[one.input.type])
                wide = kind.create(operands=narrow.results, result_types=[op.results[0].type])
                rewriter.replace(op, (narrow, wide))
                return


ARITH_PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {
    arith.CmpiOp: (ComparedConstantToTheRight(), ExtensionComparedWithZero()),
    arith.SelectOp: (SelectOfConstants(), SelectByWhatIsNot()),
    arith.AddiOp: (AddConstants(),),
    arith.SubiOp: (AddConstants(),),
    arith.AndIOp: (BitsBeforeExtension(),),
    arith.OrIOp: (BitsBeforeExtension(),),
    arith.XOrIOp: (BitsBeforeExtension(), NotOfComparison()),
}


def erase_unreachable_blocks(root: Operation) -> bool:
    """Erases the blocks inside `root` that cannot be reached from their region's entry; returns whether there were any."""
    changed = False
    for op in root.walk():
        for region in op.regions:
            if region.first_block is None or region.first_block is region.last_block:
                continue
            reached = set(PostOrderIterator(region.first_block))
            for block in [block for block in region.blocks if block not in reached]:
                region.erase_block(block, safe_erase=False)
                changed = True
    return changed


# Bits that hold a value without rounding, the implicit one included; the exponent of the largest value.
_FLOATS = {"bf16": (8, 127), "f16": (11, 15), "f32": (24, 127), "f64": (53, 1023)}
# cmpf's predicates oeq ogt oge olt ole one, by number; 7 more for ueq to une.
_ORDERED, _UNORDERED, _MIXED_TO_ORDERED = 7, 14, 7
_FALSE, _TRUE = 0, 15
_EQ, _GT, _GE, _LT, _LE, _NE = range(1, 7)
_SIGNED = {_EQ: 0, _GT: 4, _GE: 5, _LT: 2, _LE: 3, _NE: 1}
_UNSIGNED = {_EQ: 0, _GT: 8, _GE: 9, _LT: 6, _LE: 7, _NE: 1}


class ExtensionOfExtension(RewritePattern):
    """`extui(extui x)` → `extui x`; `extsi(extsi x)` → `extsi x`; `extsi(extui x)` → `extui x`, whose sign bit is 0."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        inner = op.operands[0].owner
        if isinstance(inner, arith.ExtUIOp) or (isinstance(inner, arith.ExtSIOp) and isinstance(op, arith.ExtSIOp)):
            rewriter.replace(op, type(inner).create(operands=[inner.input], result_types=[op.results[0].type]))


class FloatOfExtension(RewritePattern):
    """`uitofp(extui x)` → `uitofp x`; `sitofp(extsi x)` → `sitofp x`; `sitofp(extui x)` → `uitofp x`."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        inner = op.operands[0].owner
        if isinstance(inner, arith.ExtUIOp):
            kind = arith.UIToFPOp
        elif isinstance(inner, arith.ExtSIOp) and isinstance(op, arith.SIToFPOp):
            kind = arith.SIToFPOp
        else:
            return
        rewriter.replace(op, kind.create(operands=[inner.input], result_types=[op.results[0].type]))


class FloatOfIntegerCompared(RewritePattern):
    """`cmpf ogt, (uitofp %x), 2.5` → `cmpi ugt, %x, 2`; a constant outside of the integer's range decides the comparison."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.CmpfOp, rewriter: PatternRewriter) -> None:
        converted, constant = op.lhs.owner, constant_value(op.rhs)
        if not isinstance(converted, arith.SIToFPOp | arith.UIToFPOp) or not isinstance(constant, FloatAttr):
            return
        kind, number, is_signed = converted.input.type, constant.value.data, isinstance(converted, arith.SIToFPOp)
        bits = width(kind)
        if bits is None or not isinstance(op.rhs.type, WIDE_FLOATS) or math.isnan(number):
            return
        if not _is_compared_exactly(bits - is_signed, op.rhs.type.name, number, is_signed):
            return
        found = _integer_comparison(op.predicate.value.data, number, bits, is_signed)
        if isinstance(found, bool):
            rewriter.replace(op, constant_op(integer_attr(found, i1)))
        else:
            bound = constant_op(integer_attr(found[1], kind))
            predicate = (_SIGNED if is_signed else _UNSIGNED)[found[0]]
            rewriter.replace(op, (bound, arith.CmpiOp(converted.input, bound, predicate)))


def _is_compared_exactly(bits: int, name: str, number: float, is_signed: bool) -> bool:
    """Whether rounding to the float type moves no integer of `bits` bits, and a sign, from one side of `number` to the other or onto it."""
    significand, largest_exponent = _FLOATS[name]
    if bits + is_signed <= significand:
        return True
    if math.isinf(number):
        return largest_exponent >= bits
    # An integer that is rounded is at least 2^significand, before and after; none becomes larger than 2^bits.
    exponent = math.frexp(number)[1] - 1 if number else -1
    return exponent < significand or exponent > bits


def _integer_comparison(predicate: int, number: float, bits: int, is_signed: bool) -> bool | tuple[int, int]:
    """`x predicate number` for integers x: its answer for each of them, or one of _EQ to _NE and an integer to compare with."""
    if predicate in (_FALSE, _UNORDERED):
        return False
    if predicate in (_TRUE, _ORDERED):
        return True
    if predicate > _ORDERED:
        predicate -= _MIXED_TO_ORDERED
    smallest = -(1 << (bits - 1)) if is_signed else 0
    largest = smallest + (1 << bits) - 1
    if number > largest:
        return predicate in (_NE, _LT, _LE)
    if number < smallest:
        return predicate in (_NE, _GT, _GE)
    whole = math.trunc(number)
    if whole == number:
        return predicate, whole
    if predicate in (_EQ, _NE):
        return predicate == _NE
    if predicate in (_GT, _GE):
        return _GE if number < 0 else _GT, whole
    return _LT if number < 0 else _LE, whole


CONVERSION_PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {
    arith.ExtUIOp: (ExtensionOfExtension(),),
    arith.ExtSIOp: (ExtensionOfExtension(),),
    arith.UIToFPOp: (FloatOfExtension(),),
    arith.SIToFPOp: (FloatOfExtension(),),
    arith.CmpfOp: (FloatOfIntegerCompared(),),
}


class CanonicalizePass(KernelPass):
    """Folds ops, decides constant branches, keeps one copy of a constant per function. Like MLIR's `canonicalize`, with locations kept."""

    name = "xla-canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        canonicalize(op, ctx)
