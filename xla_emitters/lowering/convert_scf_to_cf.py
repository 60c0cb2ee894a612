"""Lowers loops and branches with regions to blocks and jumps.

    %r = scf.for %i = %lb to %ub step %s iter_args(%a = %init) { B; yield %b }; rest
->
      br ^head(%lb, %init)
    ^head(%i, %a):                              // the loop's test; %r is %a here
      cond_br (%i < %ub), ^body, ^rest
    ^body:
      B
      br ^head(%i + %s, %b)
    ^rest:
      rest

    scf.if       cond_br to ^then and ^else, both jump to ^rest(results)
    scf.while    ^before(args): cond_br to ^after(values) or ^rest; ^after jumps back to ^before
    scf.execute_region a jump to its first block; every yield jumps to ^rest(results)
    scf.index_switch   cf.switch on the flag as an integer, every case jumps to ^rest(results)

A loop's `loop_annotation` is moved to the branch back to its test, where LLVM reads it.

Blocks are in execution order: a test before its body, branches before the blocks that follow them. The CPU executor relies
on that (it always runs the first block that has live threads). scf.forall and scf.parallel are refused.
Source: docs/reference/2 3.1 (convert-scf-to-cf, row 41); MLIR's documentation of the scf dialect.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseIntElementsAttr, IntegerType, ModuleOp, VectorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from xla_emitters.dialects.locations import located_builder, replace_by
from xla_emitters.dialects.mlir import arith, cf, func, scf
from xla_emitters.dialects.mlir.llvm.metadata import LOOP_ANNOTATION
from xla_emitters.dialects.quick_op import walk
from xla_emitters.rewrite.index_width import index_width
from xla_emitters.rewrite.kernel_pass import KernelPass, refusal
from xla_emitters.rewrite.split import split_before


class ConvertScfToCfPass(KernelPass):
    name = "xla-convert-scf-to-cf"

    def apply_to(self, op: ModuleOp) -> None:
        for function in walk(op):
            if isinstance(function, func.FuncOp):
                block = function.body.blocks.first
                # Lowering adds blocks after the one that it splits, so the walk reaches them.
                while block is not None:
                    self._lower_first(block)
                    block = block.next_block

    def _lower_first(self, block: Block) -> None:
        """Lowers the first scf op of a block; the ops after it are then in a later block."""
        for op in block.ops:
            if not op.name.startswith("scf."):
                continue
            match op:
                case scf.IfOp():
                    return _lower_if(op)
                case scf.ForOp():
                    return _lower_for(op)
                case scf.WhileOp():
                    return _lower_while(op)
                case scf.IndexSwitchOp():
                    return _lower_index_switch(op)
                case scf.ExecuteRegionOp():
                    return _lower_execute_region(op)
                case scf.YieldOp() | scf.ConditionOp():
                    pass
                case _:
                    raise self.refuse(op, f"no lowering for {op.name}")


def _lower_if(op: scf.IfOp) -> None:
    before, rest = _split(op, with_results=True)
    then = _move_body(op, op.true_region.block, rest)
    _end_with_jump(op, then, rest)
    otherwise = rest
    if op.false_region.blocks:
        otherwise = _move_body(op, op.false_region.block, rest)
        _end_with_jump(op, otherwise, rest)
    _finish(op, before, cf.ConditionalBranchOp(op.cond, then, (), otherwise, ()), rest.args)


def _lower_for(op: scf.ForOp) -> None:
    before, rest = _split(op)
    body = _move_body(op, op.body.block, rest)
    head = Block(arg_types=[argument.type for argument in body.args])
    _insert_before(head, body)

    ending = _terminator(op, body)
    builder = located_builder(InsertPoint.before(ending), op)
    following = builder.insert(arith.AddiOp(body.args[0], op.step)).result
    back = cf.BranchOp(head, following, *ending.operands)
    if (annotation := op.attributes.get(LOOP_ANNOTATION)) is not None:
        back.attributes[LOOP_ANNOTATION] = annotation
    _replace_terminator(op, body, back)
    for old, new in zip(list(body.args), head.args, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
        body.erase_arg(old)

    builder = located_builder(InsertPoint.at_end(head), op)
    is_less = "ult" if "unsignedCmp" in op.properties else "slt"
    goes_on = builder.insert(arith.CmpiOp(head.args[0], op.ub, is_less)).result
    builder.insert(cf.ConditionalBranchOp(goes_on, body, (), rest, ()))
    _finish(op, before, cf.BranchOp(head, op.lb, *op.iter_args), head.args[1:])


def _lower_while(op: scf.WhileOp) -> None:
    before, rest = _split(op)
    test = _move_body(op, op.before_region.block, rest)
    body = _move_body(op, op.after_region.block, rest)
    _end_with_jump(op, body, test)
    condition, *values = _terminator(op, test).operands
    _replace_terminator(op, test, cf.ConditionalBranchOp(condition, body, values, rest, ()))
    _finish(op, before, cf.BranchOp(test, *op.arguments), values)


def _lower_index_switch(op: scf.IndexSwitchOp) -> None:
    before, rest = _split(op, with_results=True)
    cases = [_move_body(op, region.block, rest) for region in op.case_regions]
    default = _move_body(op, op.default_region.block, rest)
    for block in (*cases, default):
        _end_with_jump(op, block, rest)
    integer = IntegerType(index_width(op))
    flag = located_builder(InsertPoint.at_end(before), op).insert(arith.IndexCastOp(op.arg, integer)).result
    # An op without cases has no list of values.
    values = DenseIntElementsAttr.from_list(VectorType(integer, [len(cases)]), op.cases.get_values()) if cases else None
    switch = cf.SwitchOp(flag, default, (), values, cases, [() for _ in cases])
    _finish(op, before, switch, rest.args)


def _lower_execute_region(op: scf.ExecuteRegionOp) -> None:
    before, rest = _split(op, with_results=True)
    blocks = list(op.region.blocks)
    op.region.move_blocks_before(rest)
    for block in blocks:
        if isinstance(block.last_op, scf.YieldOp):
            _end_with_jump(op, block, rest)
    _finish(op, before, cf.BranchOp(blocks[0]), rest.args)


def _split(op: Operation, *, with_results: bool = False) -> tuple[Block, Block]:
    """The op's block, which now ends with the op, and a new block with the ops after it; `with_results`: with an argument per result."""
    before = op.parent
    if before is None or op.next_op is None:
        raise refusal(ConvertScfToCfPass.name, op, f"{op.name} is not followed by a terminator")
    rest = split_before(op.next_op, op.result_types if with_results else ())
    return before, rest


def _move_body(op: Operation, block: Block, rest: Block) -> Block:
    """Moves a region's only block to just before `rest`."""
    region = block.parent
    if region is None or len(region.blocks) != 1:
        raise refusal(ConvertScfToCfPass.name, op, f"{op.name} with several blocks in a region")
    region.move_blocks_before(rest)
    return block


def _insert_before(block: Block, target: Block) -> None:
    if target.parent is not None:
        target.parent.insert_block_before(block, target)


def _terminator(op: Operation, block: Block) -> Operation:
    """The last op of `block`, which is in a region of `op`."""
    if block.last_op is None:
        raise refusal(ConvertScfToCfPass.name, op, f"{op.name} with a region without a terminator")
    return block.last_op


def _end_with_jump(op: Operation, block: Block, target: Block) -> None:
    """Replaces the block's yield by a jump that passes the yielded values."""
    _replace_terminator(op, block, cf.BranchOp(target, *_terminator(op, block).operands))


def _replace_terminator(op: Operation, block: Block, jump: Operation) -> None:
    """Replaces the block's terminator by `jump`, with the location of `op`: the location of a yield without values is lost in text."""
    old = _terminator(op, block)
    located_builder(InsertPoint.before(old), op).insert(jump)
    old.detach()
    old.erase()


def _finish(op: Operation, before: Block, jump: Operation, results: Sequence[SSAValue]) -> None:
    """Ends the block before the op with `jump`, and replaces the op by `results`."""
    located_builder(InsertPoint.at_end(before), op).insert(jump)
    replace_by(op, results)
