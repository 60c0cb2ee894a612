"""Which equal ops become one: also those whose operands become equal first, and only where one of them comes before the other."""

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.rewrite.common_subexpressions import cse

CHAINS = """
  func.func @f(%x: i32, %y: i32) -> (i32, i32) {
    %0 = arith.addi %x, %y : i32
    %1 = arith.muli %0, %x : i32
    %2 = arith.shli %1, %y : i32
    %3 = arith.addi %y, %x : i32
    %4 = arith.muli %x, %3 : i32
    %5 = arith.shli %4, %y : i32
    return %2, %5 : i32, i32
  }"""
OTHER_SIDE = """
  func.func @f(%c: i1, %x: i32, %y: i32) -> (i32, i32) {
    %0 = arith.addi %x, %y : i32
    %1 = scf.if %c -> i32 {
      %2 = arith.muli %0, %x : i32
      scf.yield %2 : i32
    } else {
      scf.yield %x : i32
    }
    %3 = arith.addi %x, %y : i32
    %4 = arith.muli %3, %x : i32
    return %1, %4 : i32, i32
  }"""
READS = """
  func.func @f(%m: memref<8xi32>, %x: index, %y: index) -> (i32, i32, i32) {
    %0 = arith.addi %x, %y : index
    %1 = memref.load %m[%0] : memref<8xi32>
    %2 = arith.addi %x, %y : index
    %3 = memref.load %m[%2] : memref<8xi32>
    memref.store %3, %m[%x] : memref<8xi32>
    %4 = arith.addi %x, %y : index
    %5 = memref.load %m[%4] : memref<8xi32>
    return %1, %3, %5 : i32, i32, i32
  }"""


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (CHAINS, {"arith.addi": 1, "arith.muli": 1, "arith.shli": 1}),
        (OTHER_SIDE, {"arith.addi": 1, "arith.muli": 2}),  # the first product may not have run
        (READS, {"arith.addi": 1, "memref.load": 2}),  # the store may have changed what is read
    ],
)
def test_ops_are_merged_whose_operands_are_merged_first(text: str, left: dict[str, int]):
    """The first op of each pair has an operand that nothing else uses until the operand's twin is merged into it."""
    module = parse_ir(text)
    assert cse(module)
    names = [op.name for op in module.walk()]
    assert {name: names.count(name) for name in left} == left
    assert not cse(module)
