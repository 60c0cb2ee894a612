"""Subclasses complete xDSL's ops and leave them as they are; what xDSL makes becomes ours."""

from importlib import import_module

import pytest
from xdsl.dialects import arith as stock_arith
from xdsl.dialects import memref as stock_memref
from xdsl.dialects import scf as stock_scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType, UnitAttr, i32
from xdsl.ir import Attribute, Block, Operation
from xdsl.irdl import opt_prop_def
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.completion import adopt, completed, own_class
from xla_emitters.dialects.context import REPLACED_DIALECTS, op_named, parse_ir
from xla_emitters.dialects.mlir import arith, cf, func, memref
from xla_emitters.rewrite.patterns import apply_patterns_by_type


@completed
class FlooredOp(stock_arith.FloorDivSIOp):
    note = opt_prop_def(UnitAttr)
    assembly_format = "$lhs `,` $rhs (`noted` $note^)? attr-dict `:` type($result)"

    def verify_(self) -> None:
        if self.note is not None and self.lhs is self.rhs:
            raise VerifyException("noted twice")


def test_a_completed_op_has_xdsls_fields_and_its_own():
    block = Block(arg_types=[i32])
    op = FlooredOp(block.args[0], block.args[0])
    assert (op.lhs, op.note) == (block.args[0], None)
    assert isinstance(op, stock_arith.FloorDivSIOp)
    op.verify_()
    op.note = UnitAttr()
    assert op.properties == {"note": UnitAttr()}
    with pytest.raises(VerifyException, match="noted twice"):
        op.verify_()


def test_xdsls_op_stays_as_it_is():
    assert "note" not in stock_arith.FloorDivSIOp.get_irdl_definition().properties
    assert not hasattr(stock_arith.FloorDivSIOp, "note")
    assert "exact" not in str(stock_arith.ShRSIOp.get_irdl_definition().assembly_format)


def test_an_adopted_op_is_the_same_object_of_our_class():
    block = Block(arg_types=[i32])
    op: Operation = stock_arith.TruncIOp(block.args[0], i32)
    result = op.results[0]
    adopt(op)
    assert type(op) is arith.TruncIOp
    assert op.result is result
    assert op.overflowFlags == arith.IntegerOverflowAttr("none")


def test_an_op_that_a_pattern_inserts_is_adopted():
    class ToStock(RewritePattern):
        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
            if isinstance(op, arith.AddiOp):
                rewriter.replace(op, stock_arith.ShRSIOp(op.lhs, op.rhs))

    module = parse_ir("func.func @f(%x: i32) -> i32 {\n%r = arith.addi %x, %x : i32\nreturn %r : i32\n}")
    apply_patterns_by_type(module, lambda _: (ToStock(),))
    (shifted,) = [op for op in module.walk() if op.name == "arith.shrsi"]
    assert type(shifted) is arith.ShRSIOp


def test_xdsls_patterns_of_branches_make_ours():
    """xDSL's canonicalisation of cf.cond_br makes cf.cond_br and arith.select."""
    text = """func.func @f(%c: i1, %x: i32, %y: i32) -> i32 {
      cf.cond_br %c, ^bb1(%x : i32), ^bb1(%y : i32)
    ^bb1(%r: i32):
      return %r : i32
    }"""
    module = parse_ir(text)
    patterns = [
        pattern
        for trait in cf.ConditionalBranchOp.traits
        if hasattr(trait, "get_canonicalization_patterns")
        for pattern in trait.get_canonicalization_patterns()
    ]
    assert apply_patterns_by_type(module, lambda _: patterns)
    assert [type(op) for op in module.walk() if op.name == "arith.select"] == [arith.SelectOp]


@pytest.mark.parametrize("dialect", REPLACED_DIALECTS)
def test_a_module_exports_the_classes_of_its_dialect(dialect: str):
    """`arith.CmpiOp` of a module of ours is the class that its context reads, never xDSL's that it replaces."""
    found = REPLACED_DIALECTS[dialect]()
    module = import_module(f"xla_emitters.dialects.mlir.{dialect}")
    for base, classes in ((Operation, found.operations), (Attribute, found.attributes)):
        ours = {one.name: one for one in classes}
        for exported in vars(module).values():
            if isinstance(exported, type) and issubclass(exported, base) and getattr(exported, "name", None) in ours:
                assert exported is ours[exported.name]


def test_the_class_of_ours_is_known_by_xdsls():
    assert own_class(stock_scf.ForOp) is op_named("scf.for")
    assert own_class(stock_scf.YieldOp) is op_named("scf.yield")
    assert own_class(op_named("scf.for")) is None


def test_an_adopted_constant_keeps_its_properties():
    op: Operation = stock_arith.CmpiOp(*(stock_arith.ConstantOp(IntegerAttr(1, i32)) for _ in range(2)), "slt")
    adopt(op)
    assert type(op) is arith.CmpiOp
    op.verify()


def test_what_xdsls_class_makes_for_ours_is_ours():
    """`DeallocOp.get` of xDSL's names its own class; called by ours it makes one of ours. xDSL's makes xDSL's."""
    buffer = Block(arg_types=[MemRefType(i32, [4])]).args[0]
    assert type(memref.DeallocOp.get(buffer)) is op_named("memref.dealloc")
    assert type(memref.CastOp.get(buffer, MemRefType(i32, [-1]))) is memref.CastOp
    assert type(func.FuncOp.external("f", [i32], [])) is func.FuncOp
    assert type(stock_memref.DeallocOp.get(buffer)) is stock_memref.DeallocOp
