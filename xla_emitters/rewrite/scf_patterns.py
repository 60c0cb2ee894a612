"""Canonical forms of `scf`: branches on known conditions, loops that run once or never, values that are only passed through.

    scf.if %true { A } else { B }                                    ->  A
    %r = scf.if %c -> (T) { scf.yield %x } else { scf.yield %x }     ->  %x
    scf.if %c { A } else { B }   scf.if %c { C } else { D }          ->  scf.if %c { A C } else { B D }
    scf.for %i = %c0 to %c1 step %c1 { A }                           ->  A with %i := %c0
    %r = scf.for ... iter_args(%a = %x) { ... scf.yield %a }         ->  %x, inside and after the loop

The patterns do not weigh costs. An `scf.if` of tensors never becomes an `arith.select`: a branch with an insert writes one tensor in
place, a select would need two tensors. Ops keep their locations; a rebuilt loop or branch keeps its location and attributes.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from xla_emitters.dialects.locations import fuse_locations
from xla_emitters.dialects.mlir import scf, vector
from xla_emitters.rewrite.constants import constant_integer, constant_op, integer_attr


def inline_branch(rewriter: PatternRewriter, op: Operation, region: Region, arguments: Sequence[SSAValue] = ()) -> None:
    """Replaces `op` by the ops of the only block of `region`, and `op`'s results by the values that its terminator yields."""
    block = region.block
    terminator = block.last_op
    assert terminator is not None
    values = terminator.operands
    rewriter.erase(terminator)
    rewriter.inline_block(block, InsertPoint.before(op), arguments)
    # The yielded values were read before inlining: replace the block's arguments in them too.
    replaced = {id(argument): value for argument, value in zip(block.args, arguments, strict=True)}
    rewriter.replace(op, (), [replaced.get(id(value), value) for value in values])


def yielded(block: Block) -> tuple[SSAValue, ...]:
    """The values that the block's terminator yields."""
    terminator = block.last_op
    return () if terminator is None else tuple(terminator.operands)


class FoldConstantIf(RewritePattern):
    """`scf.if` on a constant → the ops of one side."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.IfOp, rewriter: PatternRewriter) -> None:
        if (condition := constant_integer(op.cond)) is None:
            return
        taken = op.true_region if condition else op.false_region
        if not taken.blocks:
            rewriter.erase(op)
            return
        inline_branch(rewriter, op, taken)


class FoldConstantSwitch(RewritePattern):
    """`scf.index_switch` on a constant → the ops of one case."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.IndexSwitchOp, rewriter: PatternRewriter) -> None:
        if (wanted := constant_integer(op.arg)) is None:
            return
        cases = dict(zip(op.cases.get_values(), op.case_regions, strict=True))
        inline_branch(rewriter, op, cases.get(wanted, op.default_region))


class InlineExecuteRegion(RewritePattern):
    """`scf.execute_region` of one block → the block's ops, unless it is marked `no_inline`."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.ExecuteRegionOp, rewriter: PatternRewriter) -> None:
        if op.region.first_block is op.region.last_block and "no_inline" not in op.properties:
            inline_branch(rewriter, op, op.region)


class DecideByEnclosingIf(RewritePattern):
    """Inside a side of `scf.if %c`, another `scf.if %c` → the ops of the same side."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.IfOp, rewriter: PatternRewriter) -> None:
        region = op.parent_region()
        while region is not None:
            around = region.parent
            if isinstance(around, scf.IfOp) and around.cond is op.cond:
                constant = rewriter.insert(constant_op(integer_attr(region is around.true_region, i1)))
                op.operands[0] = constant.result
                rewriter.notify_op_modified(op)
                return
            region = None if around is None else around.parent_region()


class ForwardIfResults(RewritePattern):
    """Replaces a result for which both sides yield the same value by that value; drops unused results."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.IfOp, rewriter: PatternRewriter) -> None:
        if not op.output:
            if op.false_region.blocks and isinstance(op.false_region.block.first_op, scf.YieldOp):
                # An empty else can be dropped.
                replace_branch(rewriter, op, ())
            return
        then_values, else_values = yielded(op.true_region.block), yielded(op.false_region.block)
        for result, one, other in zip(op.output, then_values, else_values, strict=True):
            if one is other and result.first_use is not None:
                rewriter.replace_all_uses_with(result, one)
        kept = tuple(i for i, result in enumerate(op.output) if result.first_use is not None)
        if len(kept) < len(op.output):
            replace_branch(rewriter, op, kept)


def replace_branch(rewriter: PatternRewriter, op: scf.IfOp | scf.IndexSwitchOp, kept: Sequence[int]) -> None:
    """Rebuilds `op` with only the results numbered in `kept`; the others must be unused. An else that is then empty is dropped."""
    for region in op.regions:
        if region.blocks:
            terminator = region.block.last_op
            assert terminator is not None
            terminator.operands = [terminator.operands[i] for i in kept]
    types, (first, *others) = [op.results[i].type for i in kept], [op.detach_region(0) for _ in tuple(op.regions)]
    if isinstance(op, scf.IfOp):
        (other,) = others
        has_else = other.blocks and (kept or not isinstance(other.block.first_op, scf.YieldOp))
        new = scf.IfOp(op.cond, types, first, other if has_else else None, attr_dict=dict(op.attributes))
    else:
        new = scf.IndexSwitchOp(op.arg, op.cases, first, others, types, dict(op.attributes))
    _replace_keeping(rewriter, op, new, kept)


class CombineIfs(RewritePattern):
    """Merges two consecutive branches on one condition; the second's sides use the values that the first's sides yield.

    Only insertions into vectors may be between them, as between the copies of an unrolled loop: they are moved after the merged branch.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.IfOp, rewriter: PatternRewriter) -> None:
        first = op.prev_op
        while isinstance(first, vector.InsertOp):
            if any(op.is_ancestor(use.operation) for use in first.result.uses):
                return
            first = first.prev_op
        if not isinstance(first, scf.IfOp) or first.cond is not op.cond:
            return
        for side, further in zip(first.regions, op.regions, strict=True):
            if side.blocks and further.blocks:
                values = yielded(side.block)
                for result, value in zip(first.output, values, strict=True):
                    rewriter.replace_uses_with_if(
                        result, value, lambda use, side=further: side.is_ancestor(use.operation)
                    )
                terminator, last = side.block.last_op, further.block.last_op
                assert terminator is not None
                assert last is not None
                last.operands = [*values, *last.operands]
                rewriter.erase(terminator)
                rewriter.inline_block(further.block, InsertPoint.at_end(side.block))
            else:
                further.move_blocks(side)
        sides = [first.detach_region(side) for side in (first.true_region, first.false_region)]
        results = [*first.output, *op.output]
        new = scf.IfOp(op.cond, [result.type for result in results], *sides, attr_dict=first.attributes | op.attributes)
        new.location = fuse_locations(first.location, op.location)
        for result, old in zip(new.output, results, strict=True):
            result.name_hint = old.name_hint
        split = len(first.output)
        rewriter.replace(first, new, new.output[:split])
        rewriter.replace(op, (), new.output[split:])


class RemoveTrivialLoops(RewritePattern):
    """Replaces a loop that never runs by its initial values, and one that runs once by its body."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.ForOp, rewriter: PatternRewriter) -> None:
        lower, upper = constant_integer(op.lb), constant_integer(op.ub)
        if "unsignedCmp" in op.properties and op.lb is not op.ub and any(b is None or b < 0 for b in (lower, upper)):
            return  # a negative bound is a large unsigned number
        if op.lb is op.ub or (lower is not None and upper is not None and lower >= upper):
            rewriter.replace(op, (), op.iter_args)
            return
        step = constant_integer(op.step)
        if lower is None or upper is None or step is None:
            return
        if step >= upper - lower:
            inline_branch(rewriter, op, op.body, (op.lb, *op.iter_args))


class ForwardIterArgs(RewritePattern):
    """Replaces a carried value that never changes by its initial value; drops a carried value that is never read."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.ForOp, rewriter: PatternRewriter) -> None:
        if not op.iter_args:
            return
        arguments = op.body.block.args[1:]
        kept: list[int] = []
        for i, (init, argument, value) in enumerate(zip(op.iter_args, arguments, yielded(op.body.block), strict=True)):
            is_unread = argument.first_use is None and op.res[i].first_use is None
            if not (is_unread or value is argument or value is init):
                kept.append(i)
        if len(kept) == len(arguments):
            return
        for i in range(len(arguments)):
            if i not in kept:
                rewriter.replace_all_uses_with(arguments[i], op.iter_args[i])
                rewriter.replace_all_uses_with(op.res[i], op.iter_args[i])
        replace_for(rewriter, op, kept)


def replace_for(rewriter: PatternRewriter, op: scf.ForOp, kept: Sequence[int]) -> None:
    """Rebuilds `op` with only the carried values numbered in `kept`; the results and arguments of the others must be unused."""
    block = op.body.block
    terminator = block.last_op
    assert terminator is not None
    terminator.operands = [terminator.operands[i] for i in kept]
    inits = [op.iter_args[i] for i in kept]
    for i in reversed(range(len(op.iter_args))):
        if i not in kept:
            rewriter.erase_block_argument(block.args[1 + i])
    new = scf.ForOp(op.lb, op.ub, op.step, inits, op.detach_region(op.body))
    new.attributes.update(op.attributes)
    new.properties.update(op.properties)
    _replace_keeping(rewriter, op, new, kept)


def _replace_keeping(rewriter: PatternRewriter, op: Operation, new: Operation, kept: Sequence[int]) -> None:
    """Replaces `op` by `new`, whose results are those of `op` numbered in `kept`."""
    new.location = op.location
    for result, number in zip(new.results, kept, strict=True):
        result.name_hint = op.results[number].name_hint
    values: list[SSAValue | None] = [None] * len(op.results)
    for result, number in zip(new.results, kept, strict=True):
        values[number] = result
    rewriter.replace(op, new, values)


SCF_PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {
    scf.IfOp: (FoldConstantIf(), ForwardIfResults(), DecideByEnclosingIf(), CombineIfs()),
    scf.ForOp: (RemoveTrivialLoops(), ForwardIterArgs()),
    scf.IndexSwitchOp: (FoldConstantSwitch(),),
    scf.ExecuteRegionOp: (InlineExecuteRegion(),),
}
