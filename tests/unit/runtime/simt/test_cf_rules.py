"""Branches: threads diverge and reconverge in a graph of any shape."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError
from xla_emitters.runtime.simt import execute

NUMBERS = np.arange(-20, 44, dtype=np.int32)


def through(blocks: str, values: np.ndarray, **options) -> np.ndarray:
    """Runs a callee of these blocks, which takes %a and returns an i32, for each value."""
    module = parse_ir(f"""
func.func private @callee(%a: i32) -> i32 {{
{blocks}
}}
func.func @main(%in: tensor<{values.size}xi32>, %out: tensor<{values.size}xi32>) -> tensor<{values.size}xi32>
    attributes {{xla.entry, {launch(16, values.size // 16)}}} {{
  %thread = gpu.thread_id x
  %block = gpu.block_id x
  %threads = arith.constant 16 : index
  %first = arith.muli %block, %threads : index
  %lane = arith.addi %first, %thread : index
  %a = tensor.extract %in[%lane] : tensor<{values.size}xi32>
  %r = func.call @callee(%a) : (i32) -> i32
  %written = tensor.insert %r into %out[%lane] : tensor<{values.size}xi32>
  func.return %written : tensor<{values.size}xi32>
}}""")
    result = np.zeros_like(values)
    execute(module, [values, result], **options)
    return result


def test_a_diamond_joins():
    blocks = """
  %zero = arith.constant 0 : i32
  %negative = arith.cmpi slt, %a, %zero : i32
  cf.cond_br %negative, ^minus, ^plus
^minus:
  %m = arith.subi %zero, %a : i32
  cf.br ^join(%m : i32)
^plus:
  %d = arith.addi %a, %a : i32
  cf.br ^join(%d : i32)
^join(%v: i32):
  %r = arith.addi %v, %a : i32
  return %r : i32"""
    np.testing.assert_array_equal(through(blocks, NUMBERS), np.where(NUMBERS < 0, 0, 3 * NUMBERS))


def test_each_thread_loops_its_own_number_of_times():
    """Also uses, behind the loop, a value that each thread computed in its own last round."""
    blocks = """
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  cf.br ^head(%zero, %zero : i32, i32)
^head(%i: i32, %sum: i32):
  %square = arith.muli %i, %i : i32
  %more = arith.cmpi slt, %i, %a : i32
  cf.cond_br %more, ^body, ^exit
^body:
  %next = arith.addi %i, %one : i32
  %more_sum = arith.addi %sum, %i : i32
  cf.br ^head(%next, %more_sum : i32, i32)
^exit:
  %r = arith.addi %sum, %square : i32
  return %r : i32"""
    wanted = [sum(range(max(n, 0))) + max(n, 0) ** 2 for n in NUMBERS.tolist()]
    assert through(blocks, NUMBERS).tolist() == wanted


def test_block_arguments_that_are_exchanged():
    """A back edge that swaps two arguments reads both before it writes either."""
    blocks = """
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %mask = arith.constant 7 : i32
  %count = arith.andi %a, %mask : i32
  %ten = arith.constant 10 : i32
  %twenty = arith.constant 20 : i32
  cf.br ^head(%zero, %ten, %twenty : i32, i32, i32)
^head(%i: i32, %x: i32, %y: i32):
  %more = arith.cmpi slt, %i, %count : i32
  cf.cond_br %more, ^body, ^exit
^body:
  %next = arith.addi %i, %one : i32
  cf.br ^head(%next, %y, %x : i32, i32, i32)
^exit:
  return %x : i32"""
    assert through(blocks, NUMBERS).tolist() == [10 if n % 2 == 0 else 20 for n in NUMBERS.tolist()]


def test_several_returns():
    blocks = """
  %zero = arith.constant 0 : i32
  %ten = arith.constant 10 : i32
  %negative = arith.cmpi slt, %a, %zero : i32
  cf.cond_br %negative, ^early, ^on
^early:
  return %zero : i32
^on:
  %big = arith.cmpi sgt, %a, %ten : i32
  cf.cond_br %big, ^middle, ^late
^middle:
  return %ten : i32
^late:
  return %a : i32"""
    np.testing.assert_array_equal(through(blocks, NUMBERS), np.clip(NUMBERS, 0, 10))


def test_switch():
    blocks = """
  %c3 = arith.constant 3 : i32
  %key = arith.andi %a, %c3 : i32
  %c10 = arith.constant 10 : i32
  cf.switch %key : i32, [
    default: ^join(%a : i32),
    1: ^one,
    2: ^join(%c10 : i32)
  ]
^one:
  %twice = arith.addi %a, %a : i32
  cf.br ^join(%twice : i32)
^join(%r: i32):
  return %r : i32"""
    wanted = [{1: 2 * n, 2: 10}.get(n & 3, n) for n in NUMBERS.tolist()]
    assert through(blocks, NUMBERS).tolist() == wanted


def test_a_loop_with_two_entries():
    """Irreducible: odd threads enter the loop in the middle. Every thread counts down to zero, adding 1 or 100."""
    blocks = """
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %hundred = arith.constant 100 : i32
  %mask = arith.constant 15 : i32
  %n = arith.andi %a, %mask : i32
  %low = arith.andi %a, %one : i32
  %odd = arith.cmpi ne, %low, %zero : i32
  cf.cond_br %odd, ^second(%n, %zero : i32, i32), ^first(%n, %zero : i32, i32)
^first(%i: i32, %s: i32):
  %s1 = arith.addi %s, %one : i32
  %i1 = arith.subi %i, %one : i32
  %more1 = arith.cmpi sgt, %i1, %zero : i32
  cf.cond_br %more1, ^second(%i1, %s1 : i32, i32), ^exit(%s1 : i32)
^second(%j: i32, %t: i32):
  %t1 = arith.addi %t, %hundred : i32
  %j1 = arith.subi %j, %one : i32
  %more2 = arith.cmpi sgt, %j1, %zero : i32
  cf.cond_br %more2, ^first(%j1, %t1 : i32, i32), ^exit(%t1 : i32)
^exit(%r: i32):
  return %r : i32"""

    def count(a: int) -> int:
        left, total, step = a & 15, 0, 100 if a & 1 else 1
        while True:
            total, left, step = total + step, left - 1, 101 - step
            if left <= 0:
                return total

    assert through(blocks, NUMBERS).tolist() == [count(n) for n in NUMBERS.tolist()]


def test_nested_loops_with_an_early_exit():
    """Counts pairs i < j < n until their product passes a limit: the inner loop may leave both."""
    blocks = """
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %limit = arith.constant 30 : i32
  cf.br ^outer(%zero, %zero : i32, i32)
^outer(%i: i32, %found: i32):
  %more = arith.cmpi slt, %i, %a : i32
  cf.cond_br %more, ^start, ^exit(%found : i32)
^start:
  %i1 = arith.addi %i, %one : i32
  cf.br ^inner(%i1, %found : i32, i32)
^inner(%j: i32, %f: i32):
  %inside = arith.cmpi slt, %j, %a : i32
  cf.cond_br %inside, ^test, ^outer(%i1, %f : i32, i32)
^test:
  %product = arith.muli %i, %j : i32
  %passed = arith.cmpi sgt, %product, %limit : i32
  %f1 = arith.addi %f, %one : i32
  %j1 = arith.addi %j, %one : i32
  cf.cond_br %passed, ^exit(%f : i32), ^inner(%j1, %f1 : i32, i32)
^exit(%r: i32):
  return %r : i32"""

    def count(n: int) -> int:
        found = 0
        for i in range(max(n, 0)):
            for j in range(i + 1, n):
                if i * j > 30:
                    return found
                found += 1
        return found

    assert through(blocks, NUMBERS).tolist() == [count(n) for n in NUMBERS.tolist()]


def test_assert_names_the_thread():
    blocks = """
  %limit = arith.constant 43 : i32
  %small = arith.cmpi slt, %a, %limit : i32
  cf.assert %small, "too big"
  return %a : i32"""
    with pytest.raises(ExecutionError, match=r"cf\.assert in block 3, thread 15 fails: too big"):
        through(blocks, NUMBERS)


def test_an_endless_loop_ends_with_an_error():
    blocks = """
  cf.br ^again
^again:
  cf.br ^again"""
    with pytest.raises(ExecutionError, match=r"cf\.br in block 0, thread 0 never ends"):
        through(blocks, NUMBERS)
