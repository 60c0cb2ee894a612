"""How far two kernel modules are the same: the IR after a pass of XLA's against that after ours.

    same           equal once values are renumbered
    renamed        equal but for spelling: scf.forall for thread ids, discardable attributes, names of variables of maps, names and
                   order of functions, places of constants and ids
    same but for   equal once differences that docs/decisions describes are undone; `decisions` names them
    differs        else: with the ops that one side has more often, both in the last form

A difference is undone by the same rewrite on both sides, which keeps the meaning of any module. So it never hides another difference. The
forms that are compared, each made from the one before, until the two sides are equal:

    undone       `IN_CODE` and `IN_STRUCTURE`; cited if a rewrite changes one side and not the other
    folded       our xla-simplify-arith, xla-canonicalize and xla-cse, twice
    inlined      each function's code where it is called, then folded again
    reordered    of the folded or the inlined form: the same ops of the same values in the same regions, in another order
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnrealizedConversionCastOp
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.context import make_context
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.differences_in_code import IN_CODE, Rewrite
from xla_emitters.explore.differences_in_structure import DECISION, IN_STRUCTURE, inline_everything
from xla_emitters.explore.ir_listing import count_ops, listing, values_of
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.transforms.canonicalize import CanonicalizePass
from xla_emitters.transforms.cse import CsePass
from xla_emitters.transforms.from_upstream_spelling import FromUpstreamSpellingPass
from xla_emitters.transforms.simplify_arith import SimplifyArithPass

VERDICTS = ("same", "renamed", "same but for", "differs")
REWRITES = (*IN_CODE, *IN_STRUCTURE)
CHECKS = "02-the-seed-and-the-stages.md", "checks of bounds decided earlier"
FOLDED = DECISION, "what is folded later"
INLINED = DECISION, "what is a function"
REORDERED = DECISION, "the order of ops"


@dataclass(frozen=True)
class Difference:
    """verdict    one of VERDICTS
    ops        op -> (how many ours, how many XLA's), in the last form, where they differ; empty for verdicts other than "differs"
    decisions  (file of docs/decisions, what it says): for "same but for" the whole difference, for "differs" a part of it
    """

    verdict: str
    ops: dict[str, tuple[int, int]]
    decisions: tuple[tuple[str, str], ...] = ()


class KernelIr:
    """One side at one point, and its normal forms; `module` is not changed."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.ops = sum(1 for op in module.walk() if op is not module)

    @cached_property
    def exact(self) -> list[str]:
        """Values renumbered, all attributes kept."""
        return listing(self.module, keeps_spelling=True)

    @cached_property
    def spelled(self) -> ModuleOp:
        """In our spelling, without casts there and back, which XLA keeps until its last pass."""
        copy = self.module.clone()
        run_pass(FromUpstreamSpellingPass(), make_context(), copy)
        _without_casts_back(copy)
        return copy

    @cached_property
    def loose(self) -> list[str]:
        return listing(self.spelled, keeps_spelling=False)

    @cached_property
    def rewritten(self) -> tuple[ModuleOp, frozenset[Rewrite]]:
        """After all of REWRITES, and those that changed something."""
        copy = self.spelled.clone()
        return copy, frozenset(rewrite for rewrite in REWRITES if rewrite.apply(copy))

    @cached_property
    def taken_back(self) -> list[str]:
        return listing(self.rewritten[0], keeps_spelling=False)

    @cached_property
    def folded(self) -> Form:
        copy = self.rewritten[0].clone()
        _fold(copy)
        return Form(copy, self.rewritten[1])

    @cached_property
    def inlined(self) -> Form:
        copy = self.folded.module.clone()
        if not inline_everything(copy):
            return self.folded
        _fold(copy)
        made = frozenset(rewrite for rewrite in IN_STRUCTURE if rewrite.apply(copy))
        _fold(copy)
        return Form(copy, self.folded.made | made)


class Form:
    """A module in a normal form; `made` are the rewrites that changed it."""

    def __init__(self, module: ModuleOp, made: frozenset[Rewrite]) -> None:
        self.module, self.made = module, made

    @cached_property
    def lines(self) -> list[str]:
        return listing(self.module, keeps_spelling=False)

    @cached_property
    def values(self) -> Counter[str]:
        return values_of(self.module)

    @cached_property
    def skeleton(self) -> Counter[str]:
        """Everything but the formulas of elements."""
        return values_of(self.module, keeps_formulas=False)


def difference(ours: KernelIr, theirs: KernelIr) -> Difference:
    """The difference between the two sides."""
    if ours.exact == theirs.exact:
        return Difference("same", {})
    if ours.loose == theirs.loose:
        return Difference("renamed", {})
    cited = _one_sided(ours.rewritten[1], theirs.rewritten[1])
    if cited and ours.taken_back == theirs.taken_back:
        return Difference("same but for", {}, cited)
    sides = ours.rewritten[0], theirs.rewritten[0]
    checks = _checks(sides[0]) != _checks(sides[1]) and _checks(ours.folded.module) == _checks(theirs.folded.module)
    also = (CHECKS,) if checks else ()
    for needed, one, other in (((), ours.folded, theirs.folded), ((INLINED,), ours.inlined, theirs.inlined)):
        cited = (*_one_sided(one.made, other.made), *also)
        if one.lines == other.lines:
            return Difference("same but for", {}, (*cited, *needed) or (FOLDED,))
        if one.values == other.values:
            return Difference("same but for", {}, (*cited, *needed, REORDERED))
    counts = count_ops(ours.inlined.module), count_ops(theirs.inlined.module)
    names = dict.fromkeys((*counts[0], *counts[1]))
    ops = {name: (counts[0][name], counts[1][name]) for name in names if counts[0][name] != counts[1][name]}
    return Difference("differs", ops, cited)


def _one_sided(ours: frozenset[Rewrite], theirs: frozenset[Rewrite]) -> tuple[tuple[str, str], ...]:
    return tuple(dict.fromkeys((each.decision, each.what) for each in REWRITES if each in ours ^ theirs))


def _checks(module: ModuleOp) -> int:
    return sum(1 for op in module.walk() if op.name in ("arith.cmpi", "scf.if"))


def _fold(module: ModuleOp) -> None:
    context = make_context()
    for _ in range(2):
        for each in (SimplifyArithPass(), CanonicalizePass(), CsePass()):
            _run_if_it_can(each, context, module)


def _without_casts_back(module: ModuleOp) -> None:
    """`unrealized_conversion_cast` of a cast, or of casts of it, of a value of the same type -> that value."""
    casts = [op for op in module.walk() if isinstance(op, UnrealizedConversionCastOp) and len(op.operands) == 1]
    for op in casts:
        value = op.operands[0]
        while value.type != op.results[0].type and isinstance(inner := value.owner, UnrealizedConversionCastOp):
            value = inner.operands[0]
        if value.type == op.results[0].type:
            op.results[0].replace_all_uses_with(value)
    for op in reversed(casts):
        if op.results[0].first_use is None:
            Rewriter.erase_op(op)


def _run_if_it_can(each: SimplifyArithPass | CanonicalizePass | CsePass, context: Context, module: ModuleOp) -> None:
    """Runs a pass that folds; IR that it refuses, such as that of a foreign pass, does not change."""
    try:
        run_pass(each, context, module)
    except XlaEmittersError:
        return
