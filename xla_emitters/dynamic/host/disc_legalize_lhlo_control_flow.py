"""Lowers loops and branches on buffers to blocks with branches (`cf`).

    %r = lmhlo.while(%a) ({ ^(%x): ... lmhlo.condition %p },             cf.br ^1(%a)
                          { ^(%y): ... lmhlo.terminator %b })     ->   ^1(%x): ... cf.cond_br %p, ^2, ^3
                                                                       ^2: ... cf.br ^1(%b)            (%y is %x)
                                                                       ^3: ...                         (%r is %x)

    %r = lmhlo.case(%i) ({ ... lmhlo.terminator %a }, { ... })   ->    cf.switch %i [default: ^2, 0: ^1]; each: cf.br ^3(%a)

    scf.if %p { ... } else { ... }                              ->    cf.cond_br %p, ^1, ^2; each: cf.br ^3

The selector and the condition are numbers on the host: if the device computes them, a copy to the host precedes the load. A loop's
buffers are passed from block to block; the body owns them and frees the last iteration's. Inner ops first become
blocks of their region, then of the function. Choices in kernels are not changed.
Source: seed document, "LegalizeLhloControlFlow"; docs/reference/4 1.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseIntElementsAttr, ModuleOp, VectorType, i32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import BlockInsertPoint, Rewriter

from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.mlir import cf, func, scf
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.split import split_before


class DiscLegalizeLhloControlFlowPass(KernelPass):
    name = "disc-legalize-lhlo-control-flow"

    def apply_to(self, op: ModuleOp) -> None:
        # Outer ops first: the blocks of an inner one are then in the function already. In a block the last ones first: what is behind an
        # op is moved to a block of its own, and so is moved once.
        choices = [inner for inner in op.walk() if isinstance(inner, lmhlo.WhileOp | lmhlo.CaseOp | scf.IfOp)]
        for inner in sorted(reversed(choices), key=_depth):
            if isinstance(inner, lmhlo.WhileOp):
                _lower_while(inner)
            elif isinstance(inner, lmhlo.CaseOp):
                _lower_case(inner)
            elif _is_on_host(inner, op):
                _lower_if(inner)


def _depth(op: Operation) -> int:
    """The number of choices and loops of the host around an op."""
    depth, holder = 0, op.parent_op()
    while isinstance(holder, scf.IfOp | lmhlo.WhileOp | lmhlo.CaseOp):
        depth, holder = depth + 1, holder.parent_op()
    return depth


def _is_on_host(op: Operation, module: ModuleOp) -> bool:
    """Whether a choice belongs to the host program, not to a kernel or a loop that becomes one."""
    holder = op.parent_op()
    while isinstance(holder, scf.IfOp | lmhlo.WhileOp | lmhlo.CaseOp):
        holder = holder.parent_op()
    return isinstance(holder, func.FuncOp) and holder.parent_op() is module


def _lower_while(op: lmhlo.WhileOp) -> None:
    before, after = _split(op)
    condition, body = op.condition.block, op.body.block
    _move(op.condition, before)
    _move(op.body, condition)
    decision = condition.last_op
    assert isinstance(decision, lmhlo.ConditionOp)
    _end(before, cf.BranchOp(condition, *op.inits), op)
    for carried, result, held in zip(body.args, op.res, condition.args, strict=True):
        carried.replace_all_uses_with(held)
        result.replace_all_uses_with(held)
    for carried in reversed(body.args):
        body.erase_arg(carried)
    _replace(decision, cf.ConditionalBranchOp(decision.holds, body, [], after, []))
    last = body.last_op
    assert last is not None
    _replace(last, cf.BranchOp(condition, *last.operands))
    Rewriter.erase_op(op)


def _lower_case(op: lmhlo.CaseOp) -> None:
    before, after = _split(op)
    branches = _branches(op, list(op.branches), before, after)
    _end(before, _switch(op.selector, branches), op)
    Rewriter.erase_op(op)


def _lower_if(op: scf.IfOp) -> None:
    before, after = _split(op)
    branches = _branches(op, [region for region in op.regions if region.blocks], before, after)
    then, otherwise = (*branches, after)[:2]
    _end(before, cf.ConditionalBranchOp(op.cond, then, [], otherwise, []), op)
    Rewriter.erase_op(op)


def _branches(op: Operation, regions: Sequence[Region], before: Block, after: Block) -> list[Block]:
    """Moves the regions of a choice between two blocks; each branches to `after` with the values that it yields."""
    branches = [region.block for region in regions]
    previous = before
    for region, block in zip(regions, branches, strict=True):
        _move(region, previous)
        previous = block
    arguments = [after.insert_arg(result.type, number) for number, result in enumerate(op.results)]
    for result, argument in zip(op.results, arguments, strict=True):
        argument.name_hint = result.name_hint
        result.replace_all_uses_with(argument)
    for block in branches:
        last = block.last_op
        assert last is not None
        _replace(last, cf.BranchOp(after, *last.operands))
    return branches


def _switch(selector: SSAValue, branches: Sequence[Block]) -> Operation:
    *cases, default = branches
    if not cases:
        return cf.BranchOp(default)
    numbers = DenseIntElementsAttr.from_list(VectorType(i32, [len(cases)]), list(range(len(cases))))
    return cf.SwitchOp(selector, default, [], numbers, cases, [[] for _ in cases])


def _split(op: Operation) -> tuple[Block, Block]:
    """The block up to `op`, which stays its last op, and a new one with what is behind it."""
    before = op.parent
    assert before is not None
    assert op.next_op is not None
    return before, split_before(op.next_op)


def _move(region: Region, behind: Block) -> None:
    """Moves the only block of a region behind a block of the function."""
    Rewriter.inline_region(region, BlockInsertPoint.after(behind))


def _end(block: Block, terminator: Operation, like: Operation) -> None:
    terminator.location = like.location
    block.add_op(terminator)


def _replace(op: Operation, terminator: Operation) -> None:
    terminator.location = op.location
    Rewriter.replace_op(op, terminator)
