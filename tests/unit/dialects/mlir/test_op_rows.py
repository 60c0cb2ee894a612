"""Ops are made from rows: of a family, or of their own."""

import pytest
from xdsl.context import Context
from xdsl.dialects import test
from xdsl.dialects.builtin import I32, Builtin, IntegerAttr, ModuleOp, UnitAttr, i32
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, eq, operand_def, opt_prop_def, prop_def, result_def
from xdsl.parser import Parser
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.mlir.op_rows import GENERIC_FORM, op_of_family, op_of_row


def _verify_step(op: IRDLOperation) -> None:
    step = op.properties["step"]
    assert isinstance(step, IntegerAttr)
    if step.value.data == 0:
        raise VerifyException("a step of 0")


STEP = op_of_row(
    "mine.step",
    "$of $step attr-dict",
    properties={"step": prop_def(IntegerAttr.constr(type=eq(i32))), "exact": opt_prop_def(UnitAttr)},
    traits=(Pure(),),
    verify=_verify_step,
    of=operand_def(I32),
    result=result_def(I32),
)
PLAIN = op_of_row("mine.plain", GENERIC_FORM, of=operand_def(I32))


def parsed(line: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, Dialect("mine", [STEP, PLAIN]), Dialect("test", [test.TestOp])):
        context.load_dialect(dialect)
    return Parser(context, f'%x = "test.op"() : () -> i32\n{line}').parse_module()


@pytest.mark.parametrize(
    "line", ["%r = mine.step %x 4", "%r = mine.step %x 4 {exact}", '"mine.plain"(%x) : (i32) -> ()']
)
def test_a_row_reads_and_prints_its_form(line: str):
    module = parsed(line)
    module.verify()
    assert str(module).splitlines()[2].strip() == line


def test_a_property_that_the_form_does_not_mention_is_in_the_dictionary():
    step = list(parsed("%r = mine.step %x 4 {exact, note}").walk())[-1]
    assert (sorted(step.properties), sorted(step.attributes)) == (["exact", "step"], ["note"])


def test_a_row_is_checked_and_has_its_traits():
    with pytest.raises(VerifyException, match="a step of 0"):
        parsed("%r = mine.step %x 0").verify()
    assert Pure() in STEP.traits.traits


class Unary(IRDLOperation):
    of = operand_def(I32)

    assembly_format = "$of attr-dict"


def test_a_family_makes_ops_that_differ_in_name():
    one, two = op_of_family(Unary, "mine.one"), op_of_family(Unary, "mine.two")
    assert (one.name, two.name) == ("mine.one", "mine.two")
    assert issubclass(one, Unary)
    assert not issubclass(one, two)
