"""Two loops beside each other over the same indices as one loop.

    %a = xla_gpu.loop (%t)[%i] -> () in #map iter_args(%x = %p) { ... yield %q }
    %b = xla_gpu.loop (%t)[%j] -> () in #map iter_args(%y = %r) { ... yield %s }
    ->
    %a, %b = xla_gpu.loop (%t)[%i] -> () in #map iter_args(%x = %p, %y = %r) { ... yield %q, %s }

Tensors are values here, so a loop that uses no result of the one before, and has no other effect, may run in its iterations.
Source: docs/decisions/20-what-is-the-same-but-for.md.
"""

from __future__ import annotations

from xdsl.dialects import gpu
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.xla_gpu.loops import LoopOp, YieldOp
from xla_emitters.explore.ir_listing import map_of_operands
from xla_emitters.rewrite.effects import is_pure, may_write


def loops_beside_each_other(module: ModuleOp) -> bool:
    """Each such pair -> one loop; says whether there was one."""
    changed = False
    for first in tuple(op for op in module.walk() if isinstance(op, LoopOp)):
        if first.parent is None:
            continue
        between, other = list[Operation](), first.next_op
        while other is not None and not isinstance(other, LoopOp) and is_pure(other):
            between.append(other)
            other = other.next_op
        if isinstance(other, LoopOp) and _may_be_one(first, other, {first, *between}):
            _merge(first, other)
            changed = True
    return changed


def _may_be_one(first: LoopOp, second: LoopOp, earlier: set[Operation]) -> bool:
    """Whether both loops have the same domain and no map results, and the second uses nothing that `earlier` defines."""
    if first.map.num_results or second.map.num_results or len(first.dims) != len(second.dims):
        return False
    if may_write(first) or may_write(second):
        return False
    names = [f"d{number}" for number in range(len(first.dims))]
    return (
        map_of_operands(first.map, names) == map_of_operands(second.map, names)
        and all(_key(one) == _key(other) for one, other in zip(first.dims, second.dims, strict=True))
        and not any(
            operand.owner in earlier for op in second.walk() for operand in op.operands if operand not in second.dims
        )
    )


def _key(index: SSAValue) -> object:
    """Equal for the same index, an id also of another op."""
    op = index.owner
    return (op.name, op.dimension) if isinstance(op, gpu.ThreadIdOp | gpu.BlockIdOp) else index


def _merge(first: LoopOp, second: LoopOp) -> None:
    count, block = len(first.map.range_vars), first.body.block
    carried = [block.insert_arg(init.type, len(block.args)) for init in second.inits]
    end, other_end = block.last_op, second.body.block.last_op
    assert isinstance(end, YieldOp)
    assert isinstance(other_end, YieldOp)
    dims = dict(zip(second.dims, first.dims, strict=True))
    for op in second.body.walk():
        op.operands = [dims.get(operand, operand) for operand in op.operands]
    arguments = (*block.args[:count], *carried)
    by_argument: dict[SSAValue, SSAValue] = dict(zip(second.body.block.args, arguments, strict=True))
    handed = [by_argument.get(value, value) for value in other_end.operands]
    Rewriter.erase_op(other_end)
    Rewriter.inline_block(second.body.block, InsertPoint.before(end), arguments)
    end.operands = [*end.operands, *handed]
    results = tuple(first.results)
    body = Rewriter().move_region_contents_to_new_regions(first.body)
    merged = LoopOp(tuple(first.dims), (*first.inits, *second.inits), first.map, body, first.attributes)
    Rewriter.insert_op(merged, InsertPoint.before(first))
    for old, new in zip((*results, *second.results), merged.results, strict=True):
        old.replace_all_uses_with(new)
    Rewriter.erase_op(second)
    Rewriter.erase_op(first)
