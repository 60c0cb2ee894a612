"""Definitions of ops wait until they are used, and are then what xDSL's own decorator makes; those of other packages' ops do not wait."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.irdl import (
    IRDLOperation,
    attr_def,
    irdl_op_definition,
    operand_def,
    opt_attr_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import PyRDLOpDefinitionError, VerifyException

from xla_emitters.dialects.context import DIALECTS
from xla_emitters.dialects.xdsl_patches.lazy_formats import OURS_AND_XDSLS
from xla_emitters.dialects.xdsl_patches.lazy_ops import is_waiting


@pytest.mark.parametrize("name", sorted(OURS_AND_XDSLS | {"disc_ral", "lmhlo"}))
def test_every_definition_that_waits_is_right(name: str) -> None:
    for op in DIALECTS[name]().operations:
        if issubclass(op, IRDLOperation) and "get_irdl_definition" in vars(op):  # `xla` renames ops of `xla_gpu`
            assert op.get_irdl_definition().name == op.name
            assert not is_waiting(op)


class Base(IRDLOperation):
    lhs = operand_def(i32)
    step = opt_attr_def(IntegerAttr)

    def verify_(self) -> None:
        raise VerifyException("asked")


def an_op() -> type[Any]:
    class AnOp(Base):
        name = "arith.of_a_test"
        kind = attr_def(IntegerAttr)
        out = result_def(i32)
        traits = traits_def(Pure())
        assembly_format = "$lhs attr-dict"

    AnOp.__module__ = "xla_emitters.dialects.of_a_test"
    return irdl_op_definition(AnOp)


def built(op: type[Any]) -> Any:
    from xdsl.dialects.test import TestOp

    return op.create(
        operands=TestOp(result_types=[i32]).results, result_types=[i32], attributes={"kind": IntegerAttr(1, i32)}
    )


FIRST_USES = {
    "definition": lambda op: op.get_irdl_definition(),
    "traits": lambda op: op.traits,
    "has_trait": lambda op: op.has_trait(Pure),
    "operand": lambda op: built(op).lhs,
    "attribute": lambda op: built(op).kind,
    "set": lambda op: setattr(built(op), "kind", IntegerAttr(2, i32)),
    "parse": lambda op: op.parse,
    "print": lambda op: str(built(op)),
    "build": lambda op: op.build(
        operands=[built(op).results[0]], result_types=[i32], attributes={"kind": IntegerAttr(1, i32)}
    ),
}


@pytest.mark.parametrize("use", FIRST_USES.values(), ids=FIRST_USES)
def test_the_first_use_of_a_member_defines_the_op(use: Any) -> None:
    op = an_op()
    assert is_waiting(op)
    use(op)
    assert not is_waiting(op)
    definition = op.get_irdl_definition()
    assert [name for name, _ in definition.operands] == ["lhs"]
    assert [name for name, _ in definition.results] == ["out"]
    assert sorted(definition.attributes) == ["kind", "step"]
    one = built(op)
    assert (one.kind, one.step) == (IntegerAttr(1, i32), None)
    assert op.has_trait(Pure)
    with pytest.raises(VerifyException, match="asked"):
        one.verify()
    assert str(one).startswith("%0 = arith.of_a_test %1")


def test_a_base_keeps_its_fields_for_the_next_op() -> None:
    an_op().get_irdl_definition()
    assert an_op().get_irdl_definition().operands


def test_an_op_is_defined_before_one_that_inherits_from_it() -> None:
    parent = an_op()
    child = type("Child", (parent,), {"name": "arith.child", "__module__": "xla_emitters.x", "__annotations__": {}})
    with pytest.raises(PyRDLOpDefinitionError):  # as xDSL: what an op's class inherits from has no fields of its own
        irdl_op_definition(child).get_irdl_definition()
    assert not is_waiting(parent)


def test_a_mistake_in_somebody_elses_op_is_an_error_at_its_class() -> None:
    with pytest.raises(PyRDLOpDefinitionError):

        @irdl_op_definition
        class WrongOp(IRDLOperation):
            name = "arith.wrong"
            result = 3


def test_a_compilation_defines_few_ops() -> None:
    """Of 735 that it loads."""
    code = (
        "import xdsl.irdl as irdl, xdsl.irdl.operations as operations; made = []; define = irdl.irdl_op_definition\n"
        "irdl.irdl_op_definition = operations.irdl_op_definition = lambda op: made.append(op) or define(op)\n"
        "import xla_emitters as xe; xe.compile('examples/gelu.hlo', stage='llvm-dialect', cache=False); print(len(made))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 200
