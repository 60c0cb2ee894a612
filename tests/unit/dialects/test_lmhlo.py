"""Ops on buffers: made from the table of `hlo` ops, with their rules."""

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.hlo import HLO_OPS, PROGRAM_OPS
from xla_emitters.dialects.lmhlo import LEFT_OUT
from xla_emitters.dialects.lmhlo_dialect import BUFFER_OPS
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.errors import VerifyError


def test_every_op_of_hlo_has_a_kin_or_is_left_out_by_name() -> None:
    opcodes = set(HLO_OPS) | set(PROGRAM_OPS)
    assert opcodes == set(BUFFER_OPS) | LEFT_OUT
    assert not set(BUFFER_OPS) & LEFT_OUT


def test_an_op_with_two_results_is_printed_and_read() -> None:
    text = """func.func @main(%k: memref<4xf32>, %v: memref<2xf32, "gpu">, %i: memref<2xi32>) {
  lmhlo.topk %k -> %v, %i {k = 2 : i64, name = "t"} : (memref<4xf32>) -> (memref<2xf32, "gpu">, memref<2xi32>)
  return
}"""
    printed = print_ir(parse_ir(text))
    assert print_ir(parse_ir(printed)) == printed
    assert "lmhlo.topk %k -> %v, %i" in printed


RULES = {
    "of hlo": ('lmhlo.abs %a -> %b {name = "x"} : (memref<4xf32>) -> memref<5xf32>', "memref<4xf32>", "memref<5xf32>"),
    "of a second name": ("%v = lmhlo.inc_ref %a() : memref<4xf32> -> memref<4xi32>", "memref<4xf32>", "memref<5xf32>"),
}


@pytest.mark.parametrize("what", RULES)
def test_a_broken_rule_is_an_error(what: str) -> None:
    line, a, b = RULES[what]
    with pytest.raises(VerifyError):
        parse_ir(f"func.func @main(%a: {a}, %b: {b}) {{\n  {line}\n  return\n}}")


def test_attributes_are_of_the_kinds_that_hlo_has() -> None:
    line = 'lmhlo.transpose %a -> %a {dimensions = "1, 0", name = "t"} : (memref<4x4xf32>) -> memref<4x4xf32>'
    with pytest.raises(VerifyError, match="should be of base attribute array"):
        parse_ir(f"func.func @main(%a: memref<4x4xf32>) {{\n  {line}\n  return\n}}")


def test_buffers_that_are_read_and_written_are_told_apart() -> None:
    """MLIR-HLO writes the result as the last operand; here the arrow says it."""
    with pytest.raises(VerifyError, match=r"lmhlo\.abs %x, %y -> %z"):
        parse_ir(
            '"lmhlo.abs"(%a, %a) {name = "x"} : (memref<4xf32>, memref<4xf32>) -> ()'.join(
                ("func.func @main(%a: memref<4xf32>) {\n  ", "\n  return\n}")
            )
        )
