"""The greedy driver: locations of new ops, folding, termination, and time linear in the number of ops."""

import time

import pytest
from xdsl.dialects.builtin import FloatAttr, NameLoc, StringAttr, UnknownLoc
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import arith, scf
from xla_emitters.errors import InternalError
from xla_emitters.rewrite.common_subexpressions import cse
from xla_emitters.rewrite.patterns import apply_patterns_by_type
from xla_emitters.transforms.canonicalize import canonicalize
from xla_emitters.transforms.loop_invariant_code_motion import loop_invariant_code_motion


class DoubleIsSum(RewritePattern):
    """x * 2 is x + x."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.MulfOp, rewriter: PatternRewriter) -> None:
        owner = op.rhs.owner
        if isinstance(owner, arith.ConstantOp) and owner.value == FloatAttr(2.0, op.rhs.type):
            rewriter.replace(op, arith.AddfOp(op.lhs, op.lhs))


BECOMES_THE_ONLY_USER = """
  func.func @f(%x: i32) -> i32 {
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %0 = arith.addi %x, %one : i32
    %1 = arith.addi %0, %two : i32
    %unused = arith.muli %0, %0 : i32
    return %1 : i32
  }"""
YIELDS_ONE_VALUE = """
  func.func @f(%c: i1, %x: i32) -> (i32, i32) {
    %zero = arith.constant 0 : i32
    %square = arith.muli %x, %x : i32
    %0 = scf.if %c -> i32 {
      scf.yield %x : i32
    } else {
      %1 = arith.addi %x, %zero : i32
      scf.yield %1 : i32
    }
    return %0, %square : i32, i32
  }"""
BECOMES_EMPTY = """
  func.func @f(%c: i1, %x: i32, %m: memref<i32>) {
    scf.if %c {
      memref.store %x, %m[] : memref<i32>
    } else {
      %1 = arith.addi %x, %x : i32
      scf.yield
    }
    return
  }"""


@pytest.mark.parametrize(
    ("text", "gone"),
    [(BECOMES_THE_ONLY_USER, "arith.muli"), (YIELDS_ONE_VALUE, "scf.if"), (BECOMES_EMPTY, "arith.addi")],
)
def test_ops_are_visited_again_when_what_they_look_at_changes(text: str, gone: str):
    """An op that is visited before something else is folded or erased is rewritten all the same."""
    module = parse_ir(text)
    assert canonicalize(module)
    names = [op.name for op in module.walk()]
    assert gone not in names
    assert names.count("arith.addi") == (text is BECOMES_THE_ONLY_USER)
    assert all(not op.false_region.blocks for op in module.walk() if isinstance(op, scf.IfOp))
    assert not canonicalize(module)  # nothing was left to do


@pytest.mark.tiny
def test_new_ops_take_the_location_of_the_op_that_they_replace():
    module = parse_ir("""
        func.func @f(%x: f32) -> f32 {
          %c = arith.constant 2.0 : f32 loc("two")
          %0 = arith.mulf %x, %c : f32 loc("double")
          return %0 : f32
        }""")
    assert apply_patterns_by_type(module, lambda _: (DoubleIsSum(),))
    [new] = [op for op in module.walk() if isinstance(op, arith.AddfOp)]
    assert new.location == NameLoc(StringAttr("double"), new.location.location)
    assert not apply_patterns_by_type(module, lambda _: (DoubleIsSum(),))  # nothing more to do


PRODUCT_AND_SUM = """
  func.func @f(%x: i32) -> (i32, i32) {
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %product = arith.muli %two, %three : i32
    %of_product = arith.addi %product, %three : i32
    %four = arith.constant 4 : i32
    %sum = arith.addi %four, %four : i32
    return %of_product, %sum : i32, i32
  }"""


@pytest.mark.parametrize(("begin_with", "sums"), [(None, 0), ((arith.MuliOp,), 1)])
def test_begins_with_ops_of_the_given_types_and_visits_their_users(
    begin_with: tuple[type[Operation], ...] | None, sums: int
):
    """The product is folded, and then its user; the other sum is left alone unless all ops are visited."""
    module = parse_ir(PRODUCT_AND_SUM)
    assert apply_patterns_by_type(module, lambda _: (), fold=True, begin_with=begin_with)
    assert count(module, arith.MuliOp) == 0
    assert count(module, arith.AddiOp) == sums


def test_without_fold_nothing_else_is_touched():
    """A lowering may leave ops unused, or constants inside a loop, on purpose."""
    module = parse_ir("""
        func.func @f() {
          %c = arith.constant 2 : index
          %0 = arith.addi %c, %c : index
          return
        }""")
    assert not apply_patterns_by_type(module, lambda _: (DoubleIsSum(),))
    assert [op.name for op in module.walk()].count("arith.addi") == 1


def test_a_folded_constant_says_where_it_is_from():
    module = parse_ir("""
        func.func @f() -> f32 {
          %c = arith.constant 2.0 : f32 loc("two")
          %0 = arith.mulf %c, %c : f32 loc("square")
          return %0 : f32
        }""")
    canonicalize(module)
    [constant] = [op for op in module.walk() if isinstance(op, arith.ConstantOp)]
    assert constant.value == FloatAttr(4.0, constant.result.type)
    assert "square" in str(constant.location)


def test_a_constant_of_several_instructions_belongs_to_none():
    module = parse_ir("""
        func.func @f(%x: f32) -> f32 {
          %c = arith.constant 2.0 : f32 loc("two")
          %d = arith.constant 2.0 : f32 loc("also_two")
          %0 = arith.addf %x, %c : f32 loc("a")
          %1 = arith.subf %0, %d : f32 loc("b")
          return %1 : f32
        }""")
    canonicalize(module)
    [constant] = [op for op in module.walk() if isinstance(op, arith.ConstantOp)]
    assert isinstance(constant.location, UnknownLoc)


class Swap(RewritePattern):
    """Never content."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.AddiOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, arith.AddiOp(op.rhs, op.lhs))


def test_patterns_that_undo_each_other_are_reported():
    module = parse_ir(
        "func.func @f(%x: index, %y: index) -> index {\n %0 = arith.addi %x, %y : index\n return %0 : index\n}"
    )
    with pytest.raises(InternalError, match=r"undo each other around 'arith.addi'"):
        apply_patterns_by_type(module, lambda _: (Swap(),))


def chain(ops: int) -> str:
    """A function of about `ops` ops in a row: every other one folds, a quarter are equal to another one."""
    lines = ["func.func @f(%x: f32, %y: index, %n: index) -> (f32, index) {", "%v0 = arith.addf %x, %x : f32",
             "%i0 = arith.addi %y, %y : index"]  # fmt: skip
    for i in range(ops // 4):
        lines += [
            f"%c{i} = arith.constant {i % 7} : index",
            f"%i{i + 1} = arith.addi %i{i}, %c{i} : index",
            f"%m{i} = arith.mulf %v{i}, %x : f32",
            f"%v{i + 1} = arith.addf %m{i}, %m{i} : f32",
        ]
    return "\n".join([*lines, f"return %v{ops // 4}, %i{ops // 4} : f32, index", "}"])


def loop_of(ops: int) -> str:
    """A loop of `ops` ops, half of them invariant."""
    lines = ["func.func @f(%x: f32) -> f32 {", "%c0 = arith.constant 0 : index", "%c4 = arith.constant 4 : index",
             "%c1 = arith.constant 1 : index",
             "%r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a0 = %x) -> (f32) {"]  # fmt: skip
    previous = "%x"
    for i in range(ops // 2):
        lines += [f"%k{i} = arith.mulf {previous}, %x : f32", f"%a{i + 1} = arith.addf %a{i}, %k{i} : f32"]
        previous = f"%k{i}"
    return "\n".join([*lines, f"scf.yield %a{ops // 2} : f32", "}", "return %r : f32", "}"])


@pytest.mark.parametrize("drive", [canonicalize, cse, loop_invariant_code_motion], ids=lambda f: f.__name__)
def test_time_grows_with_the_number_of_ops(drive):
    """Four times the ops take about four times as long, not sixteen."""

    def seconds(ops: int) -> float:
        best = 1e9
        text = loop_of(ops) if drive is loop_invariant_code_motion else chain(ops)
        original = parse_ir(text, verify=False)
        for _ in range(2):
            module = original.clone()
            start = time.process_time()
            drive(module)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(2000) < 9 * seconds(500) + 0.05


def count(module: Operation, op_type: type[Operation]) -> int:
    return sum(isinstance(op, op_type) for op in module.walk())


def test_invariant_ops_of_a_large_loop_leave_it():
    module = parse_ir(loop_of(200))
    assert loop_invariant_code_motion(module)
    [loop] = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    assert count(loop, arith.MulfOp) == 0
    assert count(module, arith.MulfOp) == 100
