"""Canonicalisation: the whole module folded and in canonical form, every op with a location.

    %0 = arith.addi %c1, %x : index         ->  %c1 at the function's entry, once;  %0 = arith.addi %x, %c1
    %1 = arith.cmpi slt, %c0, %c4 : index       %1 is %true, the branch is its then-side
    scf.if %1 { ... }

Folders (`folders.py`), the patterns for `arith` and `scf` below and in `scf_patterns.py`, and the patterns that other dialects register
with xDSL (`HasCanonicalizationPatterns`). Those that xDSL has for `arith` and `scf` are not used: ours fold what they fold, exactly and
in one place. Blocks that nothing branches to go.

Not done, so that later stages see what the seed shows: `vector.extract` and `vector.insert` at a dynamic position keep it, even when the
position is a constant; insertions that fill a vector do not become `vector.from_elements`; `tensor.extract` of a `tensor.insert` stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import HasCanonicalizationPatternsTrait

from xla_emitters.rewrite.dce import erase_unreachable_blocks
from xla_emitters.rewrite.folders import constant_integer, constant_op, integer_attr, is_constant_value
from xla_emitters.rewrite.patterns import apply_patterns_by_type
from xla_emitters.rewrite.scf_patterns import SCF_PATTERNS

OUR_DIALECTS = frozenset({"arith", "scf"})


def canonicalize(root: Operation, ctx: Context | None = None) -> bool:
    """Folds and canonicalises everything inside `root`, to a fixed point; whether anything changed."""
    changed = apply_patterns_by_type(root, canonicalization_patterns, fold=True, ctx=ctx)
    if erase_unreachable_blocks(root):
        # What those blocks used may be dead now, or used once.
        apply_patterns_by_type(root, canonicalization_patterns, fold=True, ctx=ctx)
        return True
    return changed


def canonicalization_patterns(op_type: type[Operation]) -> Sequence[RewritePattern]:
    """The patterns for ops of `op_type`: ours for `arith` and `scf`, else those that its dialect registers."""
    if op_type.name.partition(".")[0] in OUR_DIALECTS:
        return (*ARITH_PATTERNS.get(op_type, ()), *SCF_PATTERNS.get(op_type, ()))
    found: list[RewritePattern] = []
    for trait in op_type.traits.traits:
        if isinstance(trait, HasCanonicalizationPatternsTrait):
            found += trait.get_patterns(op_type)
    return found


# The predicate that says the same with operands exchanged: eq ne slt sle sgt sge ult ule ugt uge.
EXCHANGED = (0, 1, 4, 5, 2, 3, 8, 9, 6, 7)


class ComparedConstantToTheRight(RewritePattern):
    """%c < %x is %x > %c."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.CmpiOp, rewriter: PatternRewriter) -> None:
        if not is_constant_value(op.lhs) or is_constant_value(op.rhs):
            return
        op.properties["predicate"] = IntegerAttr(EXCHANGED[op.predicate.value.data], i64)
        op.operands = (op.rhs, op.lhs)
        rewriter.notify_op_modified(op)


class SelectOfFalseAndTrue(RewritePattern):
    """%c ? false : true is not %c."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.SelectOp, rewriter: PatternRewriter) -> None:
        if op.result.type != i1 or op.cond.type != i1:
            return
        if constant_integer(op.lhs) == 0 and constant_integer(op.rhs) == -1:
            rewriter.replace(op, arith.XOrIOp(op.cond, op.rhs))


class AddConstants(RewritePattern):
    """(%x + c) + d is %x + (c + d), also with differences; both wrap alike, so overflow flags go."""

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


ARITH_PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {
    arith.CmpiOp: (ComparedConstantToTheRight(),),
    arith.SelectOp: (SelectOfFalseAndTrue(),),
    arith.AddiOp: (AddConstants(),),
    arith.SubiOp: (AddConstants(),),
}
