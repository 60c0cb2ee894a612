"""Canonicalisation: folds the module and rewrites it to canonical form; every op keeps a location.

    %0 = arith.addi %c1, %x : index         ->  %c1 at the function's entry, once;  %0 = arith.addi %x, %c1
    %1 = arith.cmpi slt, %c0, %c4 : index       %1 is %true, the branch is its then-side
    scf.if %1 { ... }

It applies the folders (`folders.py`), the patterns for `arith` and `scf` below, in `conversion_patterns.py` and in `scf_patterns.py`, and
the patterns that other dialects register with xDSL (`HasCanonicalizationPatterns`). It does not use xDSL's patterns for `arith` and `scf`:
ours fold the same ops, exactly and in one place. Blocks that nothing branches to are erased.

Left alone, because the seed's listings show these forms: `vector.extract` and `vector.insert` at a dynamic position keep it, even if the
position is a constant; insertions that fill a vector do not become `vector.from_elements`; `tensor.extract` of a `tensor.insert` stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, IntegerType, i1, i64
from xdsl.ir import Attribute, Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import HasCanonicalizationPatternsTrait

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith
from xla_emitters.rewrite.conversion_patterns import CONVERSION_PATTERNS
from xla_emitters.rewrite.dce import erase_unreachable_blocks
from xla_emitters.rewrite.folders import constant_integer, constant_op, integer_attr, is_constant_value
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
