"""Which ops may be erased, merged and hoisted."""

import pytest
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType, f32
from xdsl.ir import Block, Operation, Region
from xdsl.traits import ConditionallySpeculatable, MemoryEffect

from xla_emitters.dialects.context import op_named, parse_ir
from xla_emitters.dialects.mlir import arith, llvm, scf, tensor
from xla_emitters.rewrite.effects import (
    ADDED_TRAITS,
    has_trait_type,
    is_dead,
    is_pure,
    is_speculatable,
    is_terminator,
    may_write,
    memory_use,
)

OPS = """
func.func private @g(index) -> index
func.func @f(%t: tensor<8xf32>, %x: f32, %i: index, %n: i32) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %m1 = arith.constant -1 : index
  %add = arith.addi %i, %c3 : index
  %div_unknown = arith.divui %c3, %i : index
  %div_zero = arith.divui %i, %c0 : index
  %div_three = arith.divui %i, %c3 : index
  %div_minus_one = arith.divsi %i, %m1 : index
  %rem_three = arith.remsi %i, %c3 : index
  %extract = tensor.extract %t[%i] : tensor<8xf32>
  %insert = tensor.insert %x into %t[%i] : tensor<8xf32>
  %call = func.call @g(%i) : (index) -> index
  %pure_call = xla_gpu.pure_call @g(%i) : (index) -> index
  return
}
"""


@pytest.fixture(scope="module")
def ops():
    module = parse_ir(OPS)
    return {op.results[0].name_hint: op for op in module.walk() if op.results}


@pytest.mark.parametrize("name", ["add", "div_three", "rem_three"])
def test_what_cannot_fail_may_run_early(ops, name: str):
    assert is_pure(ops[name])
    assert is_speculatable(ops[name])


@pytest.mark.parametrize("name", ["div_unknown", "div_zero", "div_minus_one", "extract", "insert", "pure_call"])
def test_what_can_fail_may_not(ops, name: str):
    """x / 0 is undefined, also -2^31 / -1; an index may lie outside the tensor."""
    assert is_pure(ops[name])
    assert is_dead(ops[name])
    assert not is_speculatable(ops[name])


def test_an_ordinary_call_may_do_anything(ops):
    assert may_write(ops["call"])
    assert not is_dead(ops["call"])


NESTED = """
func.func private @g(index) -> index
func.func @f(%m: memref<8xf32>, %x: f32, %i: index, %c: i1) {
  %read = memref.load %m[%i] : memref<8xf32>
  memref.store %x, %m[%i] : memref<8xf32>
  %call = func.call @g(%i) : (index) -> index
  %pure = scf.if %c -> f32 { %a = arith.addf %x, %x : f32  scf.yield %a : f32 } else { scf.yield %x : f32 }
  %reads = scf.if %c -> f32 { %b = memref.load %m[%i] : memref<8xf32>  scf.yield %b : f32 } else { scf.yield %x : f32 }
  scf.for %j = %i to %i step %i { memref.store %x, %m[%j] : memref<8xf32> }
  return
}
"""


def test_memory_use_is_both_questions_at_once():
    ops = [op for op in parse_ir(NESTED).walk() if not is_terminator(op)]
    assert [memory_use(op) for op in ops] == [(is_pure(op), may_write(op)) for op in ops]
    assert {memory_use(op) for op in ops} == {(True, False), (False, False), (False, True)}


INDEX = IndexType()


@pytest.mark.parametrize("name", ADDED_TRAITS)
def test_the_class_still_lacks_a_trait_of_the_kind(name: str):
    """When this fails, xDSL has caught up: take the op out of the table. `Pure` is of both kinds, and may lack in one."""
    op = op_named(name)
    for kind in (MemoryEffect, ConditionallySpeculatable):
        added = [trait for trait in ADDED_TRAITS[name] if isinstance(trait, kind)]
        if added and not (kind is ConditionallySpeculatable and len(added) == 1 and isinstance(added[0], MemoryEffect)):
            assert not any(isinstance(trait, kind) for trait in op.traits)
            assert has_trait_type(op, kind)


@pytest.mark.parametrize("op", [llvm.SDivOp, llvm.UDivOp, llvm.SRemOp, llvm.URemOp, arith.CeilDivUIOp])
def test_division_is_never_hoisted(op: type[Operation]):
    assert has_trait_type(op, MemoryEffect)
    assert not has_trait_type(op, ConditionallySpeculatable)


def loop(step: int | None) -> scf.ForOp:
    outside = Block(arg_types=[INDEX])
    zero = arith.ConstantOp(IntegerAttr(0, INDEX))
    stride = arith.ConstantOp(IntegerAttr(step, INDEX)).result if step is not None else outside.args[0]
    body = Block(arg_types=[INDEX])
    body.add_op(scf.YieldOp())
    return scf.ForOp(zero, zero, stride, [], Region(body))


@pytest.mark.parametrize(("step", "wanted"), [(1, True), (4, True), (0, False), (-1, False), (None, False)])
def test_a_loop_is_hoisted_only_if_it_surely_ends(step: int | None, wanted: bool):
    assert is_speculatable(loop(step)) is wanted


def test_a_loop_with_a_division_by_what_may_be_zero_is_not_hoisted():
    made = loop(1)
    block = made.body.block
    block.insert_ops_before([arith.DivSIOp(block.args[0], block.args[0])], block.first_op)
    assert not is_speculatable(made)


@pytest.mark.parametrize(("dim", "wanted"), [(0, True), (1, True), (2, False), (-1, False)])
def test_a_dimension_that_a_tensor_has_may_be_asked_anywhere(dim: int, wanted: bool):
    block = Block(arg_types=[TensorType(f32, [4, -1])])
    constant = arith.ConstantOp(IntegerAttr(dim, INDEX))
    assert is_speculatable(tensor.DimOp(block.args[0], constant.result)) is wanted
