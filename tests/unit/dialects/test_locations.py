"""Locations: fused without repeats, printed in words, and given to ops without one."""

from xdsl.builder import Builder
from xdsl.dialects.builtin import FileLineColLoc, FusedLoc, IntAttr, IntegerAttr, NameLoc, StringAttr, UnknownLoc, i1
from xdsl.ir import Block, Region
from xdsl.rewriter import InsertPoint

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.locations import UNKNOWN, fuse_all, fuse_locations, locate, located_builder, place_of
from xla_emitters.dialects.mlir import arith, scf


def location(name: str, line: int) -> NameLoc:
    return NameLoc(StringAttr(name), FileLineColLoc(StringAttr("gelu.hlo"), IntAttr(line), IntAttr(3)))


A, B, C = location("a", 1), location("b", 2), location("c", 3)


def test_fusing_keeps_each_part_once_and_flattens():
    both = fuse_locations(A, B)
    assert isinstance(both, FusedLoc)
    assert list(both.locations) == [A, B]
    assert fuse_locations(both, A) == both
    assert fuse_locations(B, both) == fuse_locations(B, A)
    assert list(fuse_locations(both, fuse_locations(C, A)).locations) == [A, B, C]
    assert fuse_all((both, UNKNOWN, C, A)) == fuse_locations(both, C)
    assert fuse_all((A, UNKNOWN, A)) == A
    assert fuse_all(()) == UNKNOWN
    assert fuse_locations(UnknownLoc(), A) == A
    assert fuse_locations(A, UnknownLoc()) == A
    assert fuse_locations(A, A) == A


def test_place_of_names_the_instruction_and_where_it_stands():
    op = arith.ConstantOp(IntegerAttr(1, i1))
    op.location = A
    assert place_of(op) == "a (gelu.hlo:1:3)"
    op.location = fuse_locations(A, B)
    assert place_of(op) == "a (gelu.hlo:1:3), b (gelu.hlo:2:3)"


def test_place_of_an_op_without_location_is_that_of_the_op_around_it():
    inner = arith.ConstantOp(IntegerAttr(1, i1))
    condition = arith.ConstantOp(IntegerAttr(1, i1))
    outer = scf.IfOp(condition, [], Region(Block([inner, scf.YieldOp()])))
    assert place_of(inner) == ""
    outer.location = B
    assert place_of(inner) == "b (gelu.hlo:2:3)"


def test_inserted_ops_take_the_location_of_the_op_they_serve():
    block = Block()
    served = arith.ConstantOp(IntegerAttr(1, i1))
    served.location = A
    builder: Builder = located_builder(InsertPoint.at_end(block), served)
    new = builder.insert(arith.ConstantOp(IntegerAttr(0, i1)))
    own = arith.ConstantOp(IntegerAttr(0, i1))
    own.location = B
    builder.insert(own)
    assert (new.location, own.location) == (A, B)


def test_locate_reaches_ops_inside():
    inner = arith.ConstantOp(IntegerAttr(1, i1))
    condition = arith.ConstantOp(IntegerAttr(1, i1))
    outer = scf.IfOp(condition, [], Region(Block([inner, scf.YieldOp()])))
    locate(outer, C)
    assert (outer.location, inner.location) == (C, C)


def test_locations_are_read_from_text():
    module = parse_ir('func.func @f() {\n  %0 = arith.constant true loc("a"("gelu.hlo":1:3))\n  return\n}')
    [constant] = [op for op in module.walk() if isinstance(op, arith.ConstantOp)]
    assert constant.location == A
