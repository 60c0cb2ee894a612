"""Our ops are defined when they are first used, and are then what xDSL's own decorator makes."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.irdl import (
    IRDLOperation,
    attr_def,
    operand_def,
    opt_attr_def,
    result_def,
    traits_def,
)
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.traits import Pure
from xdsl.utils.exceptions import PyRDLOpDefinitionError, VerifyException

from xla_emitters.dialects import op_definition as file
from xla_emitters.dialects.context import ADDED_DIALECTS, DIALECTS, REPLACED_DIALECTS
from xla_emitters.dialects.op_definition import is_waiting, op_definition
from xla_emitters.dialects.quick_op import QuickOp


@pytest.mark.parametrize("name", sorted((*ADDED_DIALECTS, *REPLACED_DIALECTS)))
def test_every_definition_that_waits_is_right(name: str) -> None:
    for op in DIALECTS[name]().operations:
        if issubclass(op, IRDLOperation) and "get_irdl_definition" in vars(op):  # `xla` renames ops of `xla_gpu`
            assert op.get_irdl_definition().name == op.name
            assert not is_waiting(op)
            if (text := op.get_irdl_definition().assembly_format) is not None:
                FormatProgram.from_str(text, op.get_irdl_definition())


class Base(QuickOp):
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

    return op_definition(AnOp)


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
        op_definition(child).get_irdl_definition()
    assert not is_waiting(parent)


def test_a_compilation_defines_few_of_our_ops() -> None:
    code = (
        "import xla_emitters as xe; xe.compile('examples/gelu.hlo', stage='llvm-dialect', cache=False)\n"
        "from xla_emitters.dialects.op_definition import is_waiting\n"
        "from xla_emitters.dialects.quick_op import QuickOp\n"
        "below = lambda op: [op, *(found for child in type.__subclasses__(op) for found in below(child))]\n"
        "print(sum(map(is_waiting, below(QuickOp))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 100


@pytest.mark.parametrize("use", FIRST_USES.values(), ids=FIRST_USES)
def test_an_op_that_another_thread_uses_at_the_same_time(monkeypatch: pytest.MonkeyPatch, use: Any) -> None:
    """While the class is being defined, no thread finds the members of its bases."""
    op, xdsls, is_being_defined = an_op(), file.get_accessors_from_op_def, threading.Event()

    def slow(*arguments: Any) -> Any:
        is_being_defined.set()
        time.sleep(0.05)
        return xdsls(*arguments)

    monkeypatch.setattr(file, "get_accessors_from_op_def", slow)
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(use, op)
        assert is_being_defined.wait(60)
        assert op.get_irdl_definition().name == "arith.of_a_test"
        assert op.has_trait(Pure)
        made = built(op)
        assert (made.lhs, made.kind) == (made.operands[0], IntegerAttr(1, i32))
        assert isinstance(vars(op)["get_irdl_definition"], classmethod)
        first.result()
