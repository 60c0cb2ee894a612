"""Which ops may be erased, merged and hoisted."""

from __future__ import annotations

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.rewrite.effects import is_dead, is_pure, is_speculatable, is_terminator, may_write, memory_use

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
