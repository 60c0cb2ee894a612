"""Intended differences in structure between our code and XLA's: what is a function, what a loop carries, where an index is computed.

    xla_gpu.loop (%t)[%r, %v] -> (%a, %b) in "(t)[r, v] -> (t * 2 + v, 0), domain: ..., r in [0, 0], v in [0, 1]" iter_args(%o = %out)
        ... %r ... %a ... %b ...; xla_gpu.yield %o
    ->
    xla_gpu.loop (%t)[%v] -> () in "(t)[v] -> (), domain: ..., v in [0, 1]"
        %a = apply_indexing (t, v) -> (t * 2 + v); ... 0 ... %a ... 0 ...; xla_gpu.yield            (%o is %out, and so is the result)

Each rewrite keeps the meaning of any module, and is applied to both sides. If two modules are equal after a rewrite and were not before,
this difference was all that they differed by.
`inline_everything` puts each function's body where it is called; after it, signatures of functions do not matter.
Source: docs/decisions/20-what-is-the-same-but-for.md.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects import arith, func, gpu, scf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, TensorType, i64
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.ranges import range_of_value
from xla_emitters.dialects.xla_gpu.calls import PureCallOp, ShuffleReduceOp
from xla_emitters.dialects.xla_gpu.loops import ApplyIndexingOp, LoopOp, YieldOp
from xla_emitters.dialects.xla_gpu.tensors import PredicatedExtractOp, PredicatedInsertOp
from xla_emitters.explore.differences_in_code import Rewrite
from xla_emitters.explore.merged_loops import loops_beside_each_other
from xla_emitters.indexing import Expr, IndexingMap, Interval, Variable
from xla_emitters.indexing.expression import ExprKind, linear_terms, make, make_sum, postorder
from xla_emitters.rewrite.data_layout import index_width
from xla_emitters.rewrite.effects import is_speculatable
from xla_emitters.rewrite.folders import constant_integer, constant_op
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.rewrite.symbols import functions, symbols_in
from xla_emitters.transforms.erase_dead_functions import EraseDeadFunctionsPass

DECISION = "20-what-is-the-same-but-for.md"
_WARP = 32
_MOST_THREADS = 1024
_ULE = 7
MOST_OPS = 20_000
"""A module that would become larger is not inlined."""

_INDEX = IndexType()
_START = i64
_Call = PureCallOp | func.CallOp


def _without_uncalled_functions(module: ModuleOp) -> bool:
    before = len(functions(module))
    run_pass(EraseDeadFunctionsPass(), make_context(), module)
    return len(functions(module)) != before


def _without_unchanged_values(module: ModuleOp) -> bool:
    """A value that each iteration of an `xla_gpu.loop` passes on unchanged -> the value before the loop."""
    changed = False
    for loop in tuple(op for op in module.walk() if isinstance(op, LoopOp)):
        end = loop.body.block.last_op
        assert isinstance(end, YieldOp)
        kept = [n for n, (own, new) in enumerate(zip(loop.iter_args, end.operands, strict=True)) if own is not new]
        if len(kept) == len(loop.inits):
            continue
        inits, arguments, results = tuple(loop.inits), tuple(loop.iter_args), tuple(loop.results)
        end.operands = [end.operands[n] for n in kept]
        for n in (n for n in range(len(inits)) if n not in kept):
            arguments[n].replace_all_uses_with(inits[n])
            results[n].replace_all_uses_with(inits[n])
            loop.body.block.erase_arg(arguments[n])
        body = Rewriter().move_region_contents_to_new_regions(loop.body)
        new = LoopOp(tuple(loop.dims), [inits[n] for n in kept], loop.map, body, loop.attributes)
        Rewriter.insert_op(new, InsertPoint.before(loop))
        for place, n in enumerate(kept):
            results[n].replace_all_uses_with(new.results[place])
        Rewriter.erase_op(loop)
        changed = True
    return changed


def _maps_in_their_simplest_form(module: ModuleOp) -> bool:
    """Maps of loops simplified on their domain; those of `apply_indexing` are simplified by folding."""
    changed = False
    for loop in tuple(op for op in module.walk() if isinstance(op, LoopOp)):
        simpler = loop.map.simplify()
        if str(simpler) != str(loop.map) and not simpler.is_known_empty:
            loop.properties["indexing_map_attr"] = type(loop.indexing_map_attr)(simpler)
            changed = True
    return changed


def _remainders_that_constraints_decide(module: ModuleOp) -> bool:
    """`(x * 4 + r) mod 64` in a loop's map -> `x * 4 + r`, where a constraint says that x is at most 15, and r is at most 3."""
    changed = False
    for loop in tuple(op for op in module.walk() if isinstance(op, LoopOp)):
        it, made, is_other = loop.map, dict[Expr, Expr](), False
        for node in postorder(it.results):
            if node.kind >= ExprKind.VARIABLE:
                made[node] = node
            elif node.kind is ExprKind.MOD and _is_below(_range_on_domain(it, node.lhs), node.rhs):
                made[node], is_other = made[node.lhs], True
            else:
                made[node] = make(node.kind, made[node.lhs], made[node.rhs])
        if is_other:
            simpler = replace(it, results=tuple(made[result] for result in it.results)).simplify()
            loop.properties["indexing_map_attr"] = type(loop.indexing_map_attr)(simpler)
            changed = True
    return changed


def _is_below(known: Interval, bound: Expr) -> bool:
    return bound.kind is ExprKind.CONSTANT and known.lower >= 0 and known.upper < bound.value


def _range_on_domain(it: IndexingMap, e: Expr) -> Interval:
    """The range of `e`, also for a positive multiple of a constrained expression plus other terms, floor-divided or not."""
    if e.kind is ExprKind.FLOORDIV and e.rhs.kind is ExprKind.CONSTANT and e.rhs.value > 0:
        return _range_on_domain(it, e.lhs) // Interval(e.rhs.value, e.rhs.value)
    found = it.range_of(e)
    terms, constant = linear_terms(e)
    for bounded, interval in it.constraints:
        parts, offset = linear_terms(bounded)
        factor = next((terms.get(part, 0) // count for part, count in parts.items()), 0)
        if factor > 0 and all(terms.get(part) == count * factor for part, count in parts.items()):
            rest = make_sum({term: count for term, count in terms.items() if term not in parts}, constant)
            scaled = (interval + Interval(-offset, -offset)) * Interval(factor, factor)
            found = found.intersect(scaled + it.range_of(rest))
    return found


def _indices_computed_in_the_body(module: ModuleOp) -> bool:
    """Results of a loop's map -> results of `apply_indexing` in its body; a range variable of one value -> that value."""
    changed = False
    for loop in tuple(op for op in module.walk() if isinstance(op, LoopOp)):
        it = loop.map
        if it.is_known_empty or it.runtime_vars:
            continue
        single = [n for n, variable in enumerate(it.range_vars) if variable.bounds.is_point]
        if not it.num_results and not single:
            continue
        block, first = loop.body.block, len(it.range_vars)
        entry = InsertPoint.at_start(block)
        for number in range(it.num_results):
            result = block.args[first + number]
            if result.first_use is not None:
                one = replace(it.submap(number), constraints=()).range_vars_to_dims(range(first))
                index = ApplyIndexingOp((*loop.dims, *block.args[:first]), one)
                Rewriter.insert_op(index, entry)
                result.replace_all_uses_with(index.results[0])
        for n in single:
            _replace_by_constant(block.args[n], it.range_vars[n].bounds.lower, loop)
        for argument in tuple(block.args[first : first + it.num_results]):
            block.erase_arg(argument)
        for n in reversed(single):
            block.erase_arg(block.args[n])
        body = Rewriter().move_region_contents_to_new_regions(loop.body)
        new = LoopOp(tuple(loop.dims), tuple(loop.inits), _without(it, single), body, loop.attributes)
        Rewriter.replace_op(loop, new)
        changed = True
    return changed


def _without(it: IndexingMap, single: list[int]) -> IndexingMap:
    """The map without results, and without range variables that have one value."""
    numbers = iter(range(len(it.variables)))
    alone = {it.num_dims + n: variable.bounds.lower for n, variable in enumerate(it.range_vars) if n in single}
    replacements = [
        Expr.constant(alone[n]) if n in alone else Expr.variable(next(numbers)) for n in range(len(it.variables))
    ]
    kept = [variable for n, variable in enumerate(it.range_vars) if n not in single]
    return replace(it, results=()).with_variables_replaced(replacements, dims=it.dims, range_vars=kept)


def _indices_of_one_value(module: ModuleOp) -> bool:
    """An index whose range is one value -> a constant."""
    changed = False
    for op in tuple(module.walk()):
        arguments = (argument for region in op.regions for block in region.blocks for argument in block.args)
        for value in (*op.results, *arguments):
            if isinstance(value.type, IndexType) and value.first_use is not None and op.name != "arith.constant":
                known = range_of_value(value)
                if known is not None and known.is_point:
                    _replace_by_constant(value, known.lower, op)
                    changed = True
    return changed


def _replace_by_constant(value: SSAValue, number: int, op: Operation) -> None:
    constant = constant_op(IntegerAttr(number, _INDEX))
    owner = value.owner
    point = InsertPoint.at_start(owner) if isinstance(owner, Block) else InsertPoint.after(op)
    Rewriter.insert_op(constant, point)
    value.replace_all_uses_with(constant.result)


def inline_everything(module: ModuleOp) -> bool:
    """Every call of a function that has a body of one block and does not call itself -> that body. Says whether there was one."""
    by_name = functions(module)
    order, open_names = list[str](), set[str]()

    def visit(name: str) -> None:
        if name in open_names:
            return
        open_names.add(name)
        for callee in {callee for callee in symbols_in(by_name[name]) if callee in by_name}:
            visit(callee)
        order.append(name)

    for name in by_name:
        visit(name)
    sizes, added = dict[str, int](), 0
    for name in order:
        for call in tuple(op for op in by_name[name].walk() if isinstance(op, _Call)):
            callee = call.callee if isinstance(call, PureCallOp) else call.callee.string_value()
            if callee in sizes and sizes[callee] + added <= MOST_OPS:
                _inline(call, by_name[callee])
                added += sizes[callee]
        if len(by_name[name].body.blocks) == 1:
            sizes[name] = sum(1 for _ in by_name[name].walk())
    run_pass(EraseDeadFunctionsPass(), make_context(), module)
    return added > 0


def _inline(call: _Call, callee: func.FuncOp) -> None:
    body = callee.body.block
    values: dict[SSAValue, SSAValue] = dict(zip(body.args, call.arguments, strict=True))
    copies = [op.clone(value_mapper=values) for op in body.ops if not isinstance(op, func.ReturnOp)]
    end = body.last_op
    assert end is not None
    Rewriter.insert_op(copies, InsertPoint.before(call))
    Rewriter.replace_op(call, [], [values.get(value, value) for value in end.operands])


def _without_guards_of_warps(module: ModuleOp) -> bool:
    """`if thread < 32 * n { ...; %r = predicated_insert %x into %t if %c; yield %r } else { yield %t }` -> that without `if`.

    Only where %c says that the thread is one of those, and the rest of the body has no effect.
    Whole warps then compute what they do not use, shuffles included.
    """
    changed = False
    for branch in tuple(op for op in module.walk() if isinstance(op, scf.IfOp)):
        last = _last_thread(branch.cond)
        if last is None or (last + 1) % _WARP or not branch.results or not branch.false_region.blocks:
            continue
        block, otherwise = branch.true_region.block, branch.false_region.block
        end, other_end = block.last_op, otherwise.last_op
        assert end is not None
        assert other_end is not None
        inserts = [value.owner for value in end.operands]
        is_guard = len(tuple(otherwise.ops)) == 1 and all(
            isinstance(op, PredicatedInsertOp)
            and op.dest is kept
            and (own := _last_thread(op.condition)) is not None
            and own <= last
            for op, kept in zip(inserts, other_end.operands, strict=True)
        )
        if not is_guard or not all(op in inserts or _runs_anywhere(op) for op in block.ops if op is not end):
            continue
        results = tuple(end.operands)
        Rewriter.erase_op(end)
        Rewriter.inline_block(block, InsertPoint.before(branch))
        Rewriter.replace_op(branch, [], results)
        changed = True
    return changed


def _runs_anywhere(op: Operation) -> bool:
    """Whether additional threads may run it: no effect, no call, no read that may be out of bounds."""
    if isinstance(op, tensor.ExtractOp):
        shape = op.tensor.type
        assert isa(shape, TensorType)
        ranges = [range_of_value(index) for index in op.indices]
        return all(
            known is not None and known.lower >= 0 and known.upper < size
            for known, size in zip(ranges, shape.get_shape(), strict=True)
        )
    return isinstance(op, PredicatedExtractOp | ShuffleReduceOp) or is_speculatable(op)


def _starts_clamped_before_they_are_indices(module: ModuleOp) -> bool:
    """`arith.minsi (arith.index_cast %i : i64 to index), %c5` -> `arith.index_cast (arith.minsi %i, %c5_i64)`, and `maxsi` likewise.

    Only where an index has 64 bits: a narrower one holds the low bits of %i.
    """
    if index_width(module) != _START.width.data:
        return False
    changed = False
    for op in tuple(op for op in module.walk() if isinstance(op, arith.MinSIOp | arith.MaxSIOp)):
        start, bound = op.lhs.owner, constant_integer(op.rhs)
        if isinstance(start, arith.IndexCastOp) and start.input.type == _START and bound is not None:
            constant = constant_op(IntegerAttr(bound, _START))
            clamped = type(op)(start.input, constant.result)
            index = arith.IndexCastOp(clamped.result, _INDEX)
            index.attributes |= op.attributes
            Rewriter.replace_op(op, (constant, clamped, index))
            changed = True
    return changed


def _sums_as_maps(module: ModuleOp) -> bool:
    """`arith.addi %i, %c2` of indices whose range is known -> `apply_indexing (i) -> (i + 2)`."""
    changed = False
    for op in tuple(op for op in module.walk() if isinstance(op, arith.AddiOp) and op.result.type == _INDEX):
        number, known = constant_integer(op.rhs), range_of_value(op.lhs)
        if number is not None and known is not None:
            it = IndexingMap((Expr.variable(0) + number,), (Variable(known, "i"),), (), (), ())
            Rewriter.replace_op(op, ApplyIndexingOp((op.lhs,), it))
            changed = True
    return changed


def _sums_of_two_as_maps(module: ModuleOp) -> bool:
    """`arith.addi %i, %j` of indices whose ranges are known -> `apply_indexing (i, j) -> (i + j)`."""
    changed = False
    for op in tuple(op for op in module.walk() if isinstance(op, arith.AddiOp) and op.result.type == _INDEX):
        left, right = _range_at(op, op.lhs), _range_at(op, op.rhs)
        if left is not None and right is not None and constant_integer(op.lhs) is constant_integer(op.rhs) is None:
            variables = Variable(left, "i"), Variable(right, "j")
            it = IndexingMap((Expr.variable(0) + Expr.variable(1),), variables, (), (), ())
            Rewriter.replace_op(op, ApplyIndexingOp((op.lhs, op.rhs), it))
            changed = True
    return changed


def _range_at(op: Operation, value: SSAValue) -> Interval | None:
    """The range of an operand of `op`, also by `arith.minui` and by the conditions of the branches that `op` is in."""
    if (known := range_of_value(value)) is not None:
        return known
    if isinstance(least := value.owner, arith.MinUIOp) and (bound := constant_integer(least.rhs) or -1) >= 0:
        return Interval(0, bound)
    inner, branch = op, op.parent_op()
    while branch is not None:
        if isinstance(branch, scf.IfOp) and inner.parent_region() is branch.true_region:
            for condition in (each.owner for each in _conjuncts(branch.cond)):
                if isinstance(condition, arith.CmpiOp) and condition.lhs is value:
                    bound = constant_integer(condition.rhs)
                    if bound is not None and bound >= 0 and condition.predicate.value.data == _ULE:
                        return Interval(0, bound)
        inner, branch = branch, branch.parent_op()
    return None


def _maps_of_maps(module: ModuleOp) -> bool:
    """A map of the result of a map that other ops read too -> a map of a copy of it, so that folding merges the two maps."""
    changed = False
    pending = [op for op in module.walk() if isinstance(op, ApplyIndexingOp)]
    while pending:
        op = pending.pop()
        for number, operand in enumerate(op.operands):
            inner = operand.owner
            if isinstance(inner, ApplyIndexingOp) and not operand.has_one_use() and len(inner.results) == 1:
                copy = inner.clone()
                Rewriter.insert_op(copy, InsertPoint.before(op))
                op.operands[number] = copy.results[0]
                pending.append(copy)
                changed = True
    return changed


def _bounds_that_remainders_imply(module: ModuleOp) -> bool:
    """`%x mod 32 == 0 and %x <= 992` -> `%x mod 32 == 0`, where %x is at most 1023."""
    changed = False
    for both in tuple(op for op in module.walk() if isinstance(op, arith.AndIOp)):
        for kept, bound in ((both.lhs, both.rhs), (both.rhs, both.lhs)):
            if any(_bounds(bound, last) for last in map(_last_of_remainder, _conjuncts(kept)) if last is not None):
                Rewriter.replace_op(both, [], [kept])
                changed = True
                break
    return changed


def _domains_as_wide_as_known(module: ModuleOp) -> bool:
    """A dim of `apply_indexing` whose domain is narrower than the operand's known range -> that range."""
    changed = False
    for op in tuple(op for op in module.walk() if isinstance(op, ApplyIndexingOp)):
        simple = op.map.simplify()
        known = [range_of_value(value) for value in op.operands[: op.map.num_dims]]
        dims = [
            replace(dim, bounds=wide) if wide is not None and wide.contains(dim.bounds) else dim
            for dim, wide in zip(simple.dims, known, strict=True)
        ]
        if tuple(dims) != simple.dims and not simple.is_known_empty:
            wider = replace(simple, dims=tuple(dims))
            Rewriter.replace_op(op, ApplyIndexingOp(tuple(op.operands), wider, op.attributes))
            changed = True
    return changed


def _conjuncts(condition: SSAValue) -> list[SSAValue]:
    if isinstance(both := condition.owner, arith.AndIOp):
        return [*_conjuncts(both.lhs), *_conjuncts(both.rhs)]
    return [condition]


def _last_of_remainder(condition: SSAValue) -> tuple[SSAValue, int] | None:
    """(x, the largest x) with `x mod m == r`."""
    match condition.owner:
        case arith.CmpiOp(lhs=OpResult(op=ApplyIndexingOp() as applied), rhs=right) as compared:
            rest, known = constant_integer(right), applied.map
            if compared.predicate.value.data != 0 or rest is None or len(known.results) != 1 or known.num_dims != 1:
                return None
            value = applied.operands[0]
            bounds = range_of_value(value)
            if bounds is None or bounds.lower < 0 or bounds.upper > _MOST_THREADS:
                return None
            fits = [
                x
                for x in range(bounds.lower, bounds.upper + 1)
                if known.constraints_satisfied([x]) and known.evaluate([x]) == (rest,)
            ]
            return (value, fits[-1]) if fits else None
        case _:
            return None


def _bounds(condition: SSAValue, last: tuple[SSAValue, int]) -> bool:
    """Whether it says no more than that a value is at most `last`."""
    match condition.owner:
        case arith.CmpiOp(lhs=left, rhs=right) as compared if left is last[0]:
            number = constant_integer(right)
            return number is not None and compared.predicate.value.data in (3, 7) and number >= last[1]
        case _:
            return False


def _last_thread(condition: SSAValue) -> int | None:
    """The largest thread id x for which the condition can hold, if it compares that id with a constant."""
    match condition.owner:
        case arith.AndIOp(lhs=left, rhs=right):
            known = [last for last in (_last_thread(left), _last_thread(right)) if last is not None]
            return min(known, default=None)
        case arith.CmpiOp(lhs=OpResult(op=gpu.ThreadIdOp() as thread), rhs=right) as compared:
            number = constant_integer(right)
            if number is None or thread.dimension.data != gpu.DimensionEnum.X:
                return None
            # eq, slt, sle, ult, ule: ids are not negative
            return {0: number, 2: number - 1, 3: number, 6: number - 1, 7: number}.get(compared.predicate.value.data)
        case _:
            return None


IN_STRUCTURE = (
    Rewrite(DECISION, "functions that nothing calls", _without_uncalled_functions),
    Rewrite(DECISION, "what loops carry unchanged", _without_unchanged_values),
    Rewrite(DECISION, "maps simplified on their domain", _maps_in_their_simplest_form),
    Rewrite("09-the-order-of-code.md", "remainders that bounds decide", _remainders_that_constraints_decide),
    Rewrite(DECISION, "indices that have one value", _indices_of_one_value),
    Rewrite(DECISION, "indices computed in the loop's map", _indices_computed_in_the_body),
    Rewrite(DECISION, "loops beside each other", loops_beside_each_other),
    Rewrite("02-the-seed-and-the-stages.md", "the k-th copy's number is a map", _sums_as_maps),
    Rewrite(DECISION, "starts that are clamped as they are given", _starts_clamped_before_they_are_indices),
    Rewrite(DECISION, "starts that maps add", _sums_of_two_as_maps),
    Rewrite(DECISION, "maps of results of maps", _maps_of_maps),
    Rewrite(DECISION, "bounds that remainders imply", _bounds_that_remainders_imply),
    Rewrite(DECISION, "domains narrower than what is known", _domains_as_wide_as_known),
    Rewrite(DECISION, "which warps run the last stage", _without_guards_of_warps),
)
