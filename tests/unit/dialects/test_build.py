"""Building blocks of kernels, as text and as numbers."""

from collections.abc import Sequence
from itertools import product

import pytest
from xdsl.builder import Builder
from xdsl.dialects import test
from xdsl.dialects.builtin import IndexType, IntegerAttr, i1, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects import build
from xla_emitters.dialects.mlir import arith, func, scf
from xla_emitters.dialects.mlir.arith import IndexCastUIOp
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.dialects.xla_gpu import ApplyIndexingOp

INDEX = IndexType()


def function(*types: Attribute) -> tuple[func.FuncOp, Builder]:
    made = func.FuncOp("f", (types, ()))
    return made, Builder(InsertPoint.at_end(made.body.block))


def lines(made: func.FuncOp, values: Sequence[SSAValue] = ()) -> list[str]:
    if values:
        made.body.block.add_op(test.TestOp(values))
    printed = print_ir(made).splitlines()
    start = next(i for i, line in enumerate(printed) if "func.func" in line)
    return [line.strip() for line in printed[start + 1 : -1]]


class Run:
    """Runs the ops that building blocks make; records what the "test.op" inside them are given."""

    def __init__(self, made: func.FuncOp, arguments: Sequence[int]):
        self.seen: list[tuple[int, ...]] = []
        self.values: dict[SSAValue, int] = dict(zip(made.body.block.args, arguments, strict=True))
        self.block(made.body.block)

    def block(self, block: Block) -> list[int]:
        for op in block.ops:
            operands = [self.values[operand] for operand in op.operands]
            if isinstance(op, scf.YieldOp | func.ReturnOp):
                return operands
            self.values |= dict(zip(op.results, self.results(op, operands), strict=True))
        return []

    def results(self, op: Operation, operands: list[int]) -> Sequence[int]:
        match op:
            case arith.ConstantOp(value=IntegerAttr() as constant):
                return [constant.value.data]
            case ApplyIndexingOp():
                return op.map.evaluate(operands[: op.map.num_dims], operands[op.map.num_dims :])
            case arith.CmpiOp():
                a, b = operands
                return [int({0: a == b, 3: a <= b, 5: a >= b}[op.predicate.value.data])]
            case arith.AndIOp():
                return [operands[0] & operands[1]]
            case arith.IndexCastOp() | IndexCastUIOp():
                return operands
            case arith.MinSIOp() | arith.MinUIOp():
                return [min(operands)]
            case arith.MaxSIOp():
                return [max(operands)]
            case scf.ForOp():
                lower, upper, step, *carried = operands
                for iv in range(lower, upper, step):
                    self.values |= dict(zip(op.body.block.args, [iv, *carried], strict=True))
                    carried = self.block(op.body.block)
                return carried
            case scf.IfOp():
                region = op.true_region if operands[0] else op.false_region
                return self.block(region.block) if region.blocks else []
            case test.TestOp():
                self.seen.append(tuple(operands))
                return [operands[0] + 1 for _ in op.results]
            case _:
                raise AssertionError(op.name)


def test_a_constant_stands_once_at_the_start_of_its_block():
    made, builder = function(INDEX)
    build.constant_index(builder, 4)
    builder.insert(test.TestOp(made.body.block.args))
    values = [build.constant_index(builder, n) for n in (4, 0, 4)]
    assert values[0] is values[2]
    assert lines(made)[:3] == [
        "%c4 = arith.constant 4 : index",
        "%c0 = arith.constant 0 : index",
        '"test.op"(%arg0) : (index) -> ()',
    ]


def test_a_constant_is_not_put_behind_the_insertion_point():
    made, builder = function()
    first = build.constant_index(builder, 1)
    build.constant_index(builder, 2)
    before = Builder(InsertPoint.before(first.owner))
    build.constant_index(before, 2)
    build.constant_index(before, 1)
    assert [line.split()[0] for line in lines(made)] == ["%c2", "%c1", "%c1_0", "%c2_0"]


def test_each_result_of_a_map_is_an_op_of_its_own_or_what_it_plainly_is():
    made, builder = function(INDEX, INDEX)
    map = IndexingMap.parse(
        "(th_x, bl_x)[v] -> (bl_x floordiv 8, th_x, 7, v), domain: th_x in [0, 7], bl_x in [0, 31], v in [0, 3], th_x + v in [0, 9]"
    )
    values = build.apply_indexing(builder, map, [*made.body.block.args, made.body.block.args[0]])
    assert values[1] is values[3] is made.body.block.args[0]
    assert lines(made, values) == [
        "%c7 = arith.constant 7 : index",
        "%0 = xla_gpu.apply_indexing #map(%arg0, %arg1)[%arg0]",
        '"test.op"(%0, %arg0, %c7, %arg0) : (index, index, index, index) -> ()',
    ]


def test_the_seeds_bounds_check():
    """As in the seed's "`xla_gpu` to `scf` conversion"."""
    made, builder = function(INDEX, INDEX)
    map = IndexingMap.parse("(th_x, bl_x)[v] -> (v), domain: th_x in [0, 127], bl_x in [0, 24575], v in [0, 3]")
    build.constraints_check(builder, map, made.body.block.args, [])
    assert lines(made) == [
        "%c0 = arith.constant 0 : index",
        "%c127 = arith.constant 127 : index",
        "%c24575 = arith.constant 24575 : index",
        "%0 = arith.cmpi sge, %arg0, %c0 : index",
        "%1 = arith.cmpi sle, %arg0, %c127 : index",
        "%2 = arith.andi %0, %1 : i1",
        "%3 = arith.cmpi sge, %arg1, %c0 : index",
        "%4 = arith.cmpi sle, %arg1, %c24575 : index",
        "%5 = arith.andi %3, %4 : i1",
        "%inbounds = arith.andi %2, %5 : i1",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "(d0, d1) -> (d0), domain: d0 in [1, 3], d1 in [0, 2]",
        "(d0, d1) -> (d0), domain: d0 in [2, 2], d1 in [0, 4], d0 + d1 in [3, 5]",
        "(d0, d1) -> (d0), domain: d0 in [0, 4], d1 in [0, 4], d1 mod 2 in [0, 0], d0 - d1 in [-1, 1]",
        "(d0, d1) -> (d0), domain: d0 in [0, 4], d1 in [4, 3]",
    ],
)
def test_a_bounds_check_says_whether_a_point_is_in_the_domain(text: str):
    map = IndexingMap.parse(text)
    made, builder = function(INDEX, INDEX)
    builder.insert(test.TestOp([build.constraints_check(builder, map, made.body.block.args, [])]))
    inside = {dims for dims, _ in map.points()}
    for point in product(range(-1, 6), repeat=2):
        assert Run(made, point).seen == [(int(point in inside),)]


def test_a_map_without_dims_and_constraints_is_always_inside():
    made, builder = function()
    value = build.constraints_check(builder, IndexingMap.parse("()[s0] -> (s0), domain: s0 in [0, 3]"), [], [])
    assert value.type == i1
    assert lines(made) == ["%true = arith.constant true"]


@pytest.mark.parametrize(
    "text",
    [
        "(d0)[s0, s1] -> (d0), domain: d0 in [0, 2], s0 in [0, 3], s1 in [2, 5]",
        "(d0)[s0, s1] -> (d0), domain: d0 in [0, 2], s0 in [0, 3], s1 in [2, 5], s0 + s1 in [3, 6], d0 + s0 in [0, 4]",
        "(d0)[s0] -> (d0), domain: d0 in [1, 2], s0 in [3, 3]",
        "(d0) -> (d0), domain: d0 in [1, 2]",
    ],
)
@pytest.mark.parametrize("carried", [True, False])
def test_a_loop_nest_visits_the_domain_in_order(text: str, carried: bool):
    """Symbol 0 is outermost; iter args go through all iterations, also those that are skipped."""
    map = IndexingMap.parse(text)
    made, builder = function(INDEX, i32)
    dim, init = made.body.block.args

    def body(inside: Builder, symbols: Sequence[SSAValue], iter_args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return inside.insert(test.TestOp([*iter_args, *symbols], [value.type for value in iter_args])).results

    results = build.loop_nest(builder, map, [dim], [init] if carried else [], body)
    assert len(results) == carried
    builder.insert(func.ReturnOp())
    made.verify()
    for value in range(4):
        run = Run(made, [value, 100])
        wanted = [symbols for dims, symbols in map.points() if dims == (value,)]
        counted = [(100 + number, *symbols) if carried else symbols for number, symbols in enumerate(wanted)]
        assert run.seen == counted
        if carried:
            assert run.values[results[0]] == 100 + len(wanted)


def test_ops_inside_a_nest_reach_the_listeners():
    """Locations are given by a listener."""
    made, builder = function(INDEX)
    heard: list[str] = []
    builder.operation_insertion_handler.append(lambda op: heard.append(op.name))
    map = IndexingMap.parse("(d0)[s0] -> (d0), domain: d0 in [0, 2], s0 in [0, 3]")

    def body(inside: Builder, symbols: Sequence[SSAValue], iter_args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        inside.insert(test.TestOp(symbols))
        return []

    build.loop_nest(builder, map, made.body.block.args, [], body)
    assert sorted(heard) == sorted(op.name for op in made.body.walk())


@pytest.mark.parametrize("high", [-1, 0, 5])
@pytest.mark.parametrize("type", [i32, i64, INDEX])
def test_a_clamp(high: int, type: Attribute):
    made, builder = function(type)
    builder.insert(test.TestOp([build.clamp_index(builder, made.body.block.args[0], high)]))
    for value in range(-8, 9):
        assert Run(made, [value]).seen == [(max(0, min(value, high)),)]


@pytest.mark.parametrize(
    ("value", "is_unsigned", "expected"),
    [
        (2**32 + 5, False, 9),
        (2**32 + 5, True, 9),
        (-(2**32) + 5, False, 0),
        (2**64 - 1, True, 9),
        (-1, False, 0),
        (7, True, 7),
    ],
)
def test_a_clamp_looks_at_all_bits_of_a_wide_integer(value: int, is_unsigned: bool, expected: int):
    """An index may have 32 bits only: the clamp is in the integer's own type, and the index comes after it."""
    made, builder = function(i64)
    builder.insert(test.TestOp([build.clamp_index(builder, made.body.block.args[0], 9, is_unsigned=is_unsigned)]))
    assert Run(made, [value]).seen == [(expected,)]
    assert lines(made)[-2].endswith(" : i64 to index")


def test_an_unsigned_clamp_compares_unsigned():
    made, builder = function(i32)
    build.clamp_index(builder, made.body.block.args[0], 5, is_unsigned=True)
    assert lines(made) == [
        "%c5 = arith.constant 5 : index",
        "%0 = arith.index_castui %arg0 : i32 to index",
        "%1 = arith.minui %0, %c5 : index",
    ]
