"""The ranges of index values that IR states."""

import pytest
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i32
from xdsl.ir import Operation

from xla_emitters.algebra.interval import Interval
from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.ranges import interval_of, range_attr, range_of_value

# Each use is of a value whose range is known, or not: None.
TEXT = """
func.func @f(%known: index {xla.range = [2 : index, 9 : index]}, %unknown: index, %t: tensor<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %id = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
  %bare = gpu.block_id x
  %sum = arith.addi %id, %c1 {xla.range = [1 : index, 128 : index]} : index
  %map:2 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * 4 + 1, d0 mod 8), domain: d0 in [0, 9]">(%unknown)
  "test.op"(%known, %unknown, %c7, %id, %bare, %sum, %map#0, %map#1) : (index, index, index, index, index, index, index, index) -> ()
  scf.for %i = %c1 to %c7 step %c1 {
    "test.op"(%i) : (index) -> ()
    scf.yield
  }
  scf.for %i = %c1 to %unknown step %c1 {
    "test.op"(%i) : (index) -> ()
    scf.yield
  }
  scf.for %i = %c7 to %c7 step %c1 {
    "test.op"(%i) : (index) -> ()
    scf.yield
  }
  scf.for %i = %c0 to %c7 step %c1 iter_args(%carried = %c0) -> (index) {
    "test.op"(%carried) : (index) -> ()
    scf.yield %carried : index
  }
  %l = xla_gpu.loop (%id)[%v] -> (%x, %y) in #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 2 + s0, s0 + 3), domain: d0 in [0, 9], s0 in [0, 3]">
      iter_args(%n = %c0) -> (index) {
    "test.op"(%v, %x, %y, %n) : (index, index, index, index) -> ()
    xla_gpu.yield %n : index
  }
  return
}
"""
WANTED = [
    [(2, 9), None, (7, 7), (0, 127), None, (1, 128), (1, 37), (0, 7)],
    [(1, 6)],
    [None],
    [None],
    [None],
    [(0, 3), (0, 21), (3, 6), None],
]


def test_ranges_of_values():
    uses = [op for op in parse_ir(TEXT).walk() if op.name == "test.op"]
    found = [[range_of_value(operand) for operand in op.operands] for op in uses]
    assert found == [[None if r is None else Interval(*r) for r in wanted] for wanted in WANTED]


def test_an_attribute_and_its_interval():
    attribute = range_attr(0, 24575)
    assert str(attribute) == "[0 : index, 24575 : index]"
    assert interval_of(attribute) == Interval(0, 24575)


@pytest.mark.parametrize(
    "attribute", [None, StringAttr("x"), ArrayAttr([IntegerAttr(1, i32)]), ArrayAttr([StringAttr("a")] * 2)]
)
def test_what_is_no_range(attribute: object):
    assert interval_of(attribute) is None


def test_a_value_of_a_later_block_is_unknown():
    text = """
      func.func @f(%n: index {xla.range = [0 : index, 3 : index]}) {
        cf.br ^bb1(%n : index)
      ^bb1(%m: index):
        "test.op"(%m) : (index) -> ()
        return
      }"""
    (use,) = [op for op in parse_ir(text).walk() if op.name == "test.op"]
    assert isinstance(use, Operation)
    assert range_of_value(use.operands[0]) is None
