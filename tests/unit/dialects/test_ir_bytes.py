"""IR that was packed and unpacked is the same text, with locations, at every stage."""

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.irdl import IRDLOperation, irdl_op_definition

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.ir_bytes import ir_from_bytes, ir_to_bytes
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.pipelines.compiler import compile

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("stage", ["xla_gpu", "flat", "llvm-dialect"])
@pytest.mark.parametrize("name", ["row_sum", "transpose"])
def test_ir_is_the_same_with_its_locations(name: str, stage: str) -> None:
    module = parse_ir(compile(EXAMPLES / f"{name}.hlo", stage=stage, cache=False).code)
    again = ir_from_bytes(ir_to_bytes(module))
    again.verify()
    assert print_ir(again, locations=True) == print_ir(module, locations=True)
    assert again.is_structurally_equivalent(module)


def test_an_operand_may_come_later_in_the_text() -> None:
    text = """func.func @f(%c : i1) -> i32 {
      cf.br ^bb2
    ^bb1:
      %sum = arith.addi %one, %one : i32
      func.return %sum : i32
    ^bb2:
      %one = arith.constant 1 : i32
      cf.br ^bb1
    }"""
    module = parse_ir(text)
    again = ir_from_bytes(ir_to_bytes(module))
    again.verify()
    assert print_ir(again) == print_ir(module)


def test_an_op_that_its_name_does_not_find_is_refused() -> None:
    @irdl_op_definition
    class MineOp(IRDLOperation):
        name = "mine.op"

    with pytest.raises(ValueError, match=r"mine\.op"):
        ir_to_bytes(ModuleOp([MineOp()]))
