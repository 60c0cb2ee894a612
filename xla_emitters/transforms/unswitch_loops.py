"""Move a branch with a loop-invariant condition from inside the loop to around it.

    scf.for %v = %c0 to %c4 step %c1 iter_args(%a = %x) {        scf.if %c {
      %r = scf.if %c -> (T) { A } else { scf.yield %a }            scf.for %v ... iter_args(%a = %x) { A }
      scf.yield %r                                           ->   } else {
    }                                                              scf.yield %x
                                                                 }

First, conditions whose outcome follows from value ranges are folded: a bounds check that always holds leaves no branch. Then, inner loops
first, a loop whose body is only one scf.if and its yield, with a condition computed outside the loop, becomes two loops inside one
scf.if; the canonical forms of `scf.for` remove the loop that only passes its values through. The body may also hold pure ops that only the
branch uses: they move with it. A loop with any other op in its body is left alone, because both copies would have that op.
Source: XLA unswitch_loops.cc, which takes {scf.if, yield} only; folding by ranges happens where the seed's flat listing shows it.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.mlir import scf
from xla_emitters.rewrite.constants import constant_integer
from xla_emitters.rewrite.effects import is_pure
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.patterns import apply_patterns_by_type
from xla_emitters.rewrite.range_folds import RANGE_PATTERNS
from xla_emitters.rewrite.scf_patterns import SCF_PATTERNS
from xla_emitters.rewrite.unrolling import inline_body

PATTERNS = {**RANGE_PATTERNS, **SCF_PATTERNS}


class UnswitchLoopsPass(KernelPass):
    name = "xla-unswitch-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self._simplify(op, ctx)
        changed = False
        for loop in [inner for inner in op.walk(region_first=True) if isinstance(inner, scf.ForOp)]:
            loops = [loop]
            while loops:
                side = loops.pop()
                if (branch := self._branch_to_move(side)) is not None:
                    loops += _unswitch(side, branch)
                    changed = True
        if changed:
            self._simplify(op, ctx)

    def _simplify(self, op: ModuleOp, ctx: Context) -> None:
        apply_patterns_by_type(op, lambda op_type: PATTERNS.get(op_type, ()), fold=True, ctx=ctx, begin_with=PATTERNS)

    def _branch_to_move(self, loop: scf.ForOp) -> scf.IfOp | None:
        """The branch of `loop` that can be moved around it; None if there is none."""
        branches = [op for op in loop.body.block.ops if isinstance(op, scf.IfOp)]
        if len(branches) != 1:
            return self.skip(loop, f"its body has {len(branches)} branches") if branches else None
        [branch] = branches
        if loop.is_ancestor(branch.cond.owner):
            return self.skip(loop, "the condition of its branch changes in the loop")
        if constant_integer(branch.cond) is not None:
            return None
        for op in loop.body.block.ops:
            if op is branch or op is loop.body.block.last_op:
                continue
            if not is_pure(op) or not all(_serves(branch, user.operation, loop) for r in op.results for user in r.uses):
                return self.skip(loop, f"its body has more than the branch ({op.name})")
        return branch


def _serves(branch: scf.IfOp, user: Operation, loop: scf.ForOp) -> bool:
    """Whether `user` is inside `branch`, or is an op beside it that is checked separately."""
    if branch.is_ancestor(user):
        return user is not branch
    return user.parent is loop.body.block and user is not loop.body.block.last_op


def _unswitch(loop: scf.ForOp, branch: scf.IfOp) -> tuple[scf.ForOp, scf.ForOp]:
    """Moves `branch` around `loop`; returns the loops on its two sides, the true side first."""
    condition, results = branch.cond, tuple(loop.results)
    other = loop.clone()
    [other_branch] = [op for op in other.body.block.ops if isinstance(op, scf.IfOp)]
    _take_side(branch, branch.true_region)
    _take_side(other_branch, other_branch.false_region)

    after = loop.next_op  # never None: a loop is not a terminator
    assert after is not None
    loop.detach()
    then_yield, else_yield = scf.YieldOp(*results), scf.YieldOp(*other.results)
    types = [result.type for result in results]
    new = scf.IfOp(condition, types, [Block([loop, then_yield])], [Block([other, else_yield])])
    new.location = loop.location
    for old, result in zip(results, new.results, strict=True):
        result.name_hint = old.name_hint
        old.replace_uses_with_if(result, lambda use: use.operation is not then_yield)
    Rewriter.insert_op(new, InsertPoint.before(after))
    return loop, other


def _take_side(branch: scf.IfOp, side: Region) -> None:
    """Replaces `branch` by the ops of one of its sides."""
    values = inline_body(side.block, InsertPoint.before(branch), ()) if side.blocks else ()
    Rewriter.replace_op(branch, (), values)
