"""Values, ops and attributes behave as xDSL's own do: the same program of edits, by its functions and by ours, ends in the same state."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

import pytest
from xdsl.builder import Builder, ImplicitBuilder
from xdsl.dialects import test
from xdsl.dialects.builtin import (
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
    VectorType,
    i32,
    i64,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import arith, cf, func, memref, scf
from xla_emitters.dialects.xdsl_patches.fast_attributes import FAST_ATTRIBUTES
from xla_emitters.dialects.xdsl_patches.fast_ops import FAST_OPS
from xla_emitters.dialects.xdsl_patches.fast_values import FAST_VALUES
from xla_emitters.dialects.xdsl_patches.patch import XDSLS_OWN

ROWS = (*FAST_VALUES, *FAST_OPS, *FAST_ATTRIBUTES)


@contextmanager
def as_xdsl_has_it() -> Generator[None]:
    """Without the rows; a member that xDSL inherits is deleted."""
    ours = [(row.holder, row.name, row.holder.__dict__[row.name]) for row in ROWS]
    try:
        for holder, name, _ in ours:
            if (own := XDSLS_OWN[holder, name]) is None:
                delattr(holder, name)
            else:
                setattr(holder, name, own)
        yield
    finally:
        for holder, name, value in ours:
            setattr(holder, name, value)


def both(found: Callable[[], object]) -> tuple[object, object]:
    with as_xdsl_has_it():
        own = found()
    return own, found()


def edited(seed: int) -> list[object]:
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
    own, ours = both(lambda: edited(seed))
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
    def walked() -> list[str]:
        module = parse_ir(f"func.func @f(%c: i1, %a: index, %b: index, %s: index) {{ {NESTED} func.return }}")
        found: list[str] = []
        for op in module.walk(reverse=reverse, region_first=region_first):
            found.append(f"{op.name} {op.attributes}")
            if erase and op.name == "test.op":
                op.detach()
                op.erase()
        return found

    own, ours = both(walked)
    assert ours == own
    assert len(walked()) > 10


@pytest.mark.parametrize("blocks", range(4))
def test_the_blocks_of_a_region_are_seen_once_each_also_where_they_are_erased(blocks: int) -> None:
    def seen(erase: bool) -> list[object]:
        region = Region([Block(arg_types=[i32] * number) for number in range(blocks)])
        numbers = list[int]()
        for block in region.blocks:
            numbers.append(len(block.args))
            if erase:
                region.erase_block(block)
        return [
            numbers,
            len(region.blocks),
            bool(region.blocks),
            [len(block.args) for block in reversed(region.blocks)],
        ]

    for erase in (False, True):
        own, ours = both(lambda erase=erase: seen(erase))
        assert ours == own
        assert seen(erase)[0] == list(range(blocks))


def test_a_wrong_number_of_operands_is_xdsls_error() -> None:
    def message() -> str:
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

    def made() -> object:
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

    def made() -> object:
        op = memref.AllocOp(dynamic, symbols, MemRefType(i32, [-1] * sizes[0]), None)
        lists = [list(op.dynamic_sizes), list(op.symbol_operands), list(op.operands)]
        return [[source.results.index(value) for value in values] for values in lists], dict(op.properties)

    own, ours = both(made)
    assert ours == own
    assert len(cast(Any, ours)[0][2]) == sum(sizes)


def test_loops_and_branches_are_xdsls() -> None:
    """Regions as they are, as lists of blocks, and none; one op in place of its result."""

    def made() -> object:
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
        return [
            (
                len(op.operands),
                [result.type for result in op.results],
                [len(r.blocks) for r in op.regions],
                op.properties,
            )
            for op in ops
        ]

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


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: IntegerAttr(cast(Any, StringAttr("s")), i32),
        lambda: IntegerAttr(300, IntegerType(8)),
        lambda: VectorType(StringAttr("s"), cast(Any, StringAttr("t"))),
        lambda: FunctionType(cast(Any, i32), cast(Any, i32)),
    ],
)
def test_attributes_are_verified_each_time(wrong: Callable[[], object]) -> None:
    """The constraints that depend on types, and what a class checks of values; right ones of the same types before and between."""
    for _ in range(2):
        IntegerAttr(3, IntegerType(8))
        VectorType(i32, [2])
        with pytest.raises((VerifyException, TypeError)):
            wrong()


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("clone_operands", [False, True])
def test_a_clone_is_xdsls(mapped: bool, names: bool, clone_operands: bool) -> None:
    def cloned() -> object:
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
        return (
            operands,
            uses,
            made.properties,
            made.attributes,
            made.results[0].name_hint,
            made.results[0].type,
            made.parent,
        )

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


def test_the_rows_are_what_runs() -> None:
    """`as_xdsl_has_it` tests nothing if a row is not in place."""
    assert all(row.holder.__dict__[row.name] is not XDSLS_OWN[row.holder, row.name] for row in ROWS)
    assert Operation.__init__.__module__.endswith("fast_ops")
