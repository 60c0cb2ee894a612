"""What all instructions share: opcodes, names, the syntax in IR, refusals."""

from typing import Any

import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, NameLoc, StringAttr, f32
from xdsl.traits import is_side_effect_free

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.hlo import HLO_OPS
from xla_emitters.dialects.hlo.base import HloOp, integers, opcode_of, written_at
from xla_emitters.dialects.hlo.computation import ParameterOp
from xla_emitters.dialects.hlo.types import array_type
from xla_emitters.errors import ParseError, Unsupported

T = array_type(f32, (4,))


def op(opcode: str, *operands: HloOp, name: str = "it", type: Any = T, **properties: Any) -> HloOp:
    return HLO_OPS[opcode]([operand.result for operand in operands], type, name, properties)


@pytest.mark.parametrize("opcode", HLO_OPS)
def test_an_ops_name_is_its_opcode_with_underscores(opcode: str):
    cls = HLO_OPS[opcode]
    assert opcode_of(cls) == opcode
    assert cls.name == "hlo." + opcode.replace("-", "_")


def test_the_value_is_named_after_the_instruction_where_mlir_allows():
    assert ParameterOp(0, T, "param_0.1").result.name_hint == "param_0.1"
    assert ParameterOp(0, T, "0 odd!").result.name_hint is None


@pytest.mark.parametrize("results", ["()", "(tensor<4xf32>, tensor<4xf32>)"])
def test_an_op_has_one_result(results: str):
    with pytest.raises(ParseError, match=r"Operation has \d results, but was given 1 to bind"):
        parse_ir(f"""hlo.computation @f {{
  %x = hlo.parameter 0 {{name = "x"}} : tensor<4xf32>
  %y = hlo.negate %x {{name = "y"}} : (tensor<4xf32>) -> {results}
  hlo.return %y : tensor<4xf32>
}}""")


def test_operands_and_result_of_one_type_are_printed_once():
    x = ParameterOp(0, T, "x")
    assert str(op("add", x, x, name="sum")) == '%sum = hlo.add %x, %x {name = "sum"} : tensor<4xf32>'
    broadcast = op("broadcast", x, type=array_type(f32, (2, 4)), dimensions=integer_array([1]))
    assert str(broadcast) == (
        '%it = hlo.broadcast %x {dimensions = array<i64: 1>, name = "it"} : (tensor<4xf32>) -> tensor<2x4xf32>'
    )


def test_instructions_have_no_effects_but_parameters_which_are_a_signature():
    x = ParameterOp(0, T, "x")
    assert is_side_effect_free(op("add", x, x))
    assert not is_side_effect_free(x)


def test_a_refusal_names_op_instruction_and_place():
    it = op("cholesky", ParameterOp(0, T, "x"))
    it.location = NameLoc(StringAttr("it"), FileLineColLoc(StringAttr("a.hlo"), IntAttr(3), IntAttr(5)))
    with pytest.raises(Unsupported, match="no code for HLO op 'cholesky'") as error:
        it.emit_element(None)
    assert error.value.place == written_at(it)
    assert str(error.value.place) == "a.hlo:3:5"
    assert written_at(ParameterOp(0, T, "x")) is None


def test_integer_arrays_there_and_back():
    assert integers(integer_array((3, -1))) == (3, -1)
