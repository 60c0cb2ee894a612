"""isinstance, hashes and equality of IR are those of unpatched xDSL."""

from __future__ import annotations

from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Iterator

import pytest
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32
from xdsl.ir import Attribute, Block, Operation, OpResult, ParametrizedAttribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition

from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.xdsl_patches.early import EARLY
from xla_emitters.dialects.xdsl_patches.fast_classes import PlainClasses, PlainMeta

ROOTS = [row.root for row in EARLY if isinstance(row, PlainClasses)]


def below(root: type) -> Iterator[type]:
    yield root
    for subclass in type.__subclasses__(root):
        yield from below(subclass)


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: root.__name__)
def test_no_class_of_ir_asks_for_virtual_subclasses(root: type) -> None:
    """Classes of dialects that were loaded after the patch too."""
    assert type(root) is PlainMeta
    assert [found for found in below(root) if type(found) is ABCMeta] == []


def test_instances_are_those_of_the_bases() -> None:
    zero = arith.ConstantOp(IntegerAttr(0, i32))
    objects: list[object] = [zero, zero.result, zero.value, i32, StringAttr("s"), Block(), "s", None]
    classes = [Operation, arith.ConstantOp, arith.AddiOp, SSAValue, OpResult, Attribute, ParametrizedAttribute, Block]
    for one in objects:
        for kind in classes:
            assert isinstance(one, kind) == (kind in type(one).__mro__), (one, kind)
            assert issubclass(type(one), kind) == (kind in type(one).__mro__)
        assert isinstance(one, (arith.AddiOp, SSAValue)) == isinstance(one, SSAValue)


def test_abstract_methods_stay_abstract() -> None:
    class Half(Attribute, ABC):
        name = "half"

        @abstractmethod
        def missing(self) -> None: ...

    assert type(Half) is PlainMeta
    with pytest.raises(TypeError, match="abstract"):
        Half()


def test_a_class_made_later_is_plain() -> None:
    class Later(IRDLOperation):
        name = "test.later"

    assert type(irdl_op_definition(Later)) is PlainMeta


def test_ops_and_values_are_equal_to_themselves_alone() -> None:
    one, other = arith.ConstantOp(IntegerAttr(0, i32)), arith.ConstantOp(IntegerAttr(0, i32))
    assert one == one
    assert one != other
    assert one.result == one.result
    assert one.result != other.result
    assert len({one, other, one.result, other.result, one.result.owner}) == 4
