"""Our ops behave as xDSL's own do: the same program of edits, on ops of its classes and of ours, ends in the same state."""

import gc
import random
import weakref
from collections.abc import Callable
from typing import Any, cast

import pytest
from unit.dialects.stock import stock_context
from xdsl.builder import Builder, ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import arith as upstream_arith
from xdsl.dialects import func as upstream_func
from xdsl.dialects import memref as upstream_memref
from xdsl.dialects import scf as upstream_scf
from xdsl.dialects import test
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp, StringAttr, i32, i64
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.parser import Parser
from xdsl.rewriter import InsertPoint

from xla_emitters.dialects.completion import adopt
from xla_emitters.dialects.context import DIALECTS, REPLACED_DIALECTS, make_context
from xla_emitters.dialects.mlir import arith, cf, func, memref, scf
from xla_emitters.dialects.quick_op import QuickOp

XDSLS, OURS = (upstream_arith, upstream_func, upstream_memref, upstream_scf), (arith, func, memref, scf)


def both(found: Callable[..., object]) -> tuple[object, object]:
    """What `found` returns with xDSL's dialects `arith`, `func`, `memref` and `scf`, and with ours."""
    return found(*XDSLS), found(*OURS)


def edited(seed: int, arith: Any) -> list[object]:
    """Thirty ops, a hundred random edits; every list of uses, operand, name and default afterwards."""
    draw = random.Random(seed)
    block = Block(arg_types=[i32, i32])
    values: list[SSAValue] = list(block.args)
    builder = Builder(InsertPoint.at_end(block))
    for number in range(30):
        op = builder.insert(arith.AddiOp(draw.choice(values), draw.choice(values)))
        op.result.name_hint = draw.choice([None, f"x_{number}", f"sum{number}_1_2"])
        values.append(op.result)
    ops = list(block.ops)
    for _ in range(100):
        op, value = draw.choice(ops), draw.choice(values)
        match draw.randrange(6):
            case 0:
                op.operands[draw.randrange(2)] = value
            case 1:
                op.operands = [value, draw.choice(values)]
            case 2:
                draw.choice(values).replace_all_uses_with(value)
            case 3 if op.results[0].first_use is None and len(ops) > 4:
                ops.remove(op)
                values.remove(op.results[0])
                op.detach()
                op.erase()
            case 4:
                op.results[0].name_hint = f"again_{draw.randrange(9)}"
            case _:
                op.detach()
                block.insert_op_before(op, draw.choice([other for other in ops if other is not op]))
    number_of = {op: number for number, op in enumerate(block.ops)}
    return [
        *([(number_of[use.operation], use.index) for use in value.uses] for value in values),
        *([values.index(operand) for operand in op.operands] for op in block.ops),
        *((value.name_hint, value.has_one_use()) for value in values),
        *(sorted(op.properties.items()) for op in block.ops),
    ]


@pytest.mark.parametrize("seed", range(8))
def test_random_edits_end_in_the_same_state(seed: int) -> None:
    own, ours = both(lambda arith, *_: edited(seed, arith))
    assert ours == own


NESTED = """
scf.if %c { "test.op"() {n = 1} : () -> ()
  scf.for %i = %a to %b step %s { "test.op"() {n = 2} : () -> () "test.op"() {n = 3} : () -> () }
} else { "test.op"() {n = 4} : () -> () }
cf.br ^b
^b:
"test.op"() {n = 5} : () -> ()
"""


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("region_first", [False, True])
@pytest.mark.parametrize("erase", [False, True])
def test_walks_are_in_the_same_order_also_where_ops_are_erased(reverse: bool, region_first: bool, erase: bool) -> None:
    def walked(context: Context) -> list[str]:
        module = Parser(
            context, f"func.func @f(%c: i1, %a: index, %b: index, %s: index) {{ {NESTED} func.return }}"
        ).parse_module()
        found: list[str] = []
        for op in module.walk(reverse=reverse, region_first=region_first):
            found.append(f"{op.name} {op.attributes}")
            if erase and op.name == "test.op":
                op.detach()
                op.erase()
        return found

    own, ours = walked(stock_context()), walked(make_context())
    assert ours == own
    assert len(ours) > 10


def test_a_wrong_number_of_operands_is_xdsls_error() -> None:
    def message(arith: Any, *_: Any) -> str:
        with pytest.raises(ValueError, match="Expected 2") as error:
            arith.AddiOp.build(operands=[], result_types=[i32])
        return str(error.value)

    own, ours = both(message)
    assert ours == own
    assert "Expected 2" in str(ours)


def test_ops_with_variadic_fields_and_regions_are_built() -> None:
    value = test.TestOp(result_types=[i32, i64])
    block = Block([scf.YieldOp()])
    condition = arith.ConstantOp(IntegerAttr(1, 1))
    made = scf.IfOp(condition, [], Region(block), None)
    assert made.cond is condition.result
    assert made.true_region.block is block
    branch = cf.ConditionalBranchOp(condition, Block(arg_types=[i32]), [value.results[0]], Block(), [])
    assert list(branch.then_arguments) == [value.results[0]]
    assert not branch.else_arguments
    assert [str(size) for size in branch.properties] == ["operandSegmentSizes"]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_one_variadic_field_takes_a_list(count: int) -> None:
    """As xDSL builds it, from values, ops and another op's operands; a value that is not a list is xDSL's error."""
    source = test.TestOp(result_types=[i32] * 3)
    values = list(source.results[:count])

    def made(_: Any, func: Any, *__: Any) -> object:
        op = func.ReturnOp.build(operands=[values])
        again = func.ReturnOp.build(operands=[op.operands])
        return [str(value.type) for value in again.operands], list(again.operands) == values, op.properties

    own, ours = both(made)
    assert ours == own
    with pytest.raises(ValueError, match="Expected"):
        func.ReturnOp.build(operands=[values, values])


@pytest.mark.parametrize("sizes", [(0, 0), (1, 0), (2, 1), (0, 3)])
def test_several_variadic_lists_have_their_sizes(sizes: tuple[int, int]) -> None:
    source = test.TestOp(result_types=[IndexType()] * 5)
    dynamic, symbols = source.results[: sizes[0]], list(source.results[2 : 2 + sizes[1]])

    def made(_: Any, __: Any, memref: Any, ___: Any) -> object:
        op = memref.AllocOp(dynamic, symbols, MemRefType(i32, [-1] * sizes[0]), None)
        lists = [list(op.dynamic_sizes), list(op.symbol_operands), list(op.operands)]
        return [[source.results.index(value) for value in values] for values in lists], dict(op.properties)

    own, ours = both(made)
    assert ours == own
    assert len(cast(Any, ours)[0][2]) == sum(sizes)


def test_loops_and_branches_are_xdsls() -> None:
    """Regions as they are, as lists of blocks, and none; one op in place of its result."""

    def made(arith: Any, _: Any, __: Any, scf: Any) -> object:
        step = arith.ConstantOp(IntegerAttr.from_index_int_value(1))
        condition = arith.ConstantOp(IntegerAttr(1, 1))
        body = Region(Block([scf.YieldOp()], arg_types=[IndexType()]))
        loop = scf.ForOp(step, step.result, step, [], body)
        branch = scf.IfOp(condition, [i32], [Block([scf.YieldOp(condition)])], Region(Block([scf.YieldOp(condition)])))
        bare = scf.IfOp(condition, [], Region(Block([scf.YieldOp()])))
        assert loop.body is body
        assert body.parent is loop
        assert branch.true_region.parent is branch
        ops = (loop, branch, bare)
        types, blocks = (
            [[r.type for r in op.results] for op in ops],
            [[len(r.blocks) for r in op.regions] for op in ops],
        )
        return [len(op.operands) for op in ops], types, blocks, [op.properties for op in ops]

    own, ours = both(made)
    assert ours == own


def test_an_op_is_taken_for_its_only_result() -> None:
    one = arith.ConstantOp(IntegerAttr(1, i32))
    assert arith.AddiOp(one, one).lhs is one.result
    with pytest.raises(ValueError, match="single result"):
        arith.AddiOp(one, test.TestOp(result_types=[i32, i32]))


def test_an_erased_value_that_is_used_is_xdsls_error() -> None:
    one = arith.ConstantOp(IntegerAttr(1, i32))
    arith.AddiOp(one, one)
    with pytest.raises(ValueError, match="still has uses"):
        one.erase()


def test_an_op_is_in_one_block_and_not_in_itself() -> None:
    inner = Block()
    outer = scf.ExecuteRegionOp.build(regions=[Region(inner)], result_types=[[]])
    with pytest.raises(ValueError, match="contained in the operation"):
        inner.add_op(outer)
    Block([outer])
    with pytest.raises(ValueError, match="already attached"):
        Block([outer])


def test_ops_go_to_the_implicit_builder_and_only_there() -> None:
    module = ModuleOp([])
    with ImplicitBuilder(module.body):
        made = arith.ConstantOp(IntegerAttr(1, i32))
        with pytest.raises(ValueError, match="implicit builder"):
            Builder(InsertPoint.at_end(Block())).insert(arith.ConstantOp(IntegerAttr(2, i32)))
    assert module.body.block.first_op is made
    assert arith.ConstantOp(IntegerAttr(1, i32)).parent is None


def test_a_name_that_is_none_is_refused_in_the_words_of_its_class() -> None:
    value = arith.ConstantOp(IntegerAttr(1, i32)).result
    for _ in range(2):
        with pytest.raises(ValueError, match="Invalid OpResult name format `1 x`"):
            value.name_hint = "1 x"
    value.name_hint = "x_12"
    assert value.name_hint == "x"


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("clone_operands", [False, True])
def test_a_clone_is_xdsls(mapped: bool, names: bool, clone_operands: bool) -> None:
    def cloned(arith: Any, *_: Any) -> object:
        block = Block(arg_types=[i32, i32])
        left, right = block.args
        op = arith.AddiOp(left, right)
        op.result.name_hint, op.attributes["tag"] = "sum", StringAttr("a")
        block.add_op(op)
        mapper: dict[SSAValue, SSAValue] = {left: right} if mapped else {}
        made = op.clone(mapper, clone_name_hints=names, clone_operands=clone_operands)
        assert made.properties is not op.properties
        assert made.attributes is not op.attributes
        assert mapper[op.result] is made.results[0]
        uses = [[(use.operation is made, use.index) for use in value.uses] for value in block.args]
        operands = [block.args.index(operand) for operand in made.operands]
        (result,) = made.results
        return operands, uses, made.properties, made.attributes, result.name_hint, result.type, made.parent

    own, ours = both(cloned)
    assert own == ours


def test_an_erased_op_is_freed_at_once() -> None:
    block = Block(arg_types=[i32])
    op = arith.AddiOp(block.args[0], block.args[0])
    block.add_op(op)
    gone = weakref.ref(op)
    was_on = gc.isenabled()
    gc.disable()
    try:
        op.detach()
        op.erase()
        del op
        assert gone() is None
        assert block.args[0].first_use is None
    finally:
        if was_on:
            gc.enable()


def test_instances_are_those_of_the_bases() -> None:
    zero = arith.ConstantOp(IntegerAttr(0, i32))
    objects: list[object] = [zero, zero.result, zero.value, i32, StringAttr("s"), Block(), "s", None]
    classes = [Operation, arith.ConstantOp, upstream_arith.ConstantOp, arith.AddiOp]
    classes += [SSAValue, OpResult, Attribute, Block]
    for one in objects:
        for kind in classes:
            assert isinstance(one, kind) == (kind in type(one).__mro__), (one, kind)
            assert issubclass(type(one), kind) == (kind in type(one).__mro__)
        assert isinstance(one, (arith.AddiOp, SSAValue)) == isinstance(one, SSAValue)


def test_ops_and_values_are_equal_to_themselves_alone() -> None:
    one, other = arith.ConstantOp(IntegerAttr(0, i32)), arith.ConstantOp(IntegerAttr(0, i32))
    assert one == one
    assert one != other
    assert one.result == one.result
    assert one.result != other.result
    assert len({one, other, one.result, other.result, one.result.owner}) == 4


@pytest.mark.parametrize("name", sorted(REPLACED_DIALECTS))
def test_every_op_of_ours_is_quick_and_of_its_dialect(name: str) -> None:
    """Of xDSL's classes are only those without fields, and those that its code makes by their class."""
    for op in DIALECTS[name]().operations:
        assert issubclass(op, QuickOp) or op.name.startswith(("builtin.",)), op
        assert adopt(op.__new__(op)).__class__ is op
