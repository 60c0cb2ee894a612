"""The traits in the table are still missing from the classes, and the effects and speculatability that follow."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType, f32
from xdsl.ir import Block, Operation, Region
from xdsl.traits import ConditionallySpeculatable, MemoryEffect

from xla_emitters.dialects.context import op_named
from xla_emitters.dialects.mlir import arith, llvm, scf, tensor
from xla_emitters.rewrite.added_traits import ADDED_TRAITS
from xla_emitters.rewrite.effects import has_trait_type, is_speculatable

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
