"""What the FileCheck cases do not show: block order, refusals, and that MLIR takes the result."""

import subprocess

import pytest
from tools_here import here

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import func
from xla_emitters.errors import ToolError, Unsupported
from xla_emitters.lowering.convert_scf_to_cf import ConvertScfToCfPass
from xla_emitters.lowering.toolchain.toolchain import module_body_text
from xla_emitters.lowering.toolchain.tools import find_tool

NESTED = """
func.func @f(%n: index, %c: i1, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) {
    %s = scf.if %c -> (f32) {
      %t = scf.for %j = %c0 to %i step %c1 iter_args(%b = %a) -> (f32) {
        %d = arith.addf %b, %x : f32 loc("add_0"("gelu.hlo":3:3))
        scf.yield %d : f32
      } loc("inner"("gelu.hlo":4:3))
      scf.yield %t : f32
    } else {
      scf.yield %x : f32
    } loc("branch"("gelu.hlo":5:3))
    scf.yield %s : f32
  } loc("outer"("gelu.hlo":6:3))
  func.return %r : f32
}
"""


def test_blocks_stand_in_the_order_they_run() -> None:
    """head, body, (then: head, body, rest), else, rest, rest: no jump but a loop's goes backwards."""
    module = parse_ir(NESTED)
    ConvertScfToCfPass().apply(make_context(), module)
    module.verify()
    (function,) = (op for op in module.walk() if isinstance(op, func.FuncOp))
    blocks = list(function.body.blocks)
    backward = [
        (blocks.index(block), blocks.index(successor))
        for block in blocks
        if block.last_op is not None
        for successor in block.last_op.successors
        if blocks.index(successor) <= blocks.index(block)
    ]
    assert len(blocks) == 10
    assert len(backward) == 2
    assert not any(op.name.startswith("scf.") for op in module.walk())


def test_mlir_takes_it() -> None:
    try:
        mlir_opt = find_tool("mlir-opt", here()).path
    except ToolError as error:
        pytest.skip(error.message)
    module = parse_ir(NESTED)
    ConvertScfToCfPass().apply(make_context(), module)
    subprocess.run([mlir_opt, "-"], input=module_body_text(module), text=True, check=True, capture_output=True)


def test_what_is_not_lowered_is_named() -> None:
    text = """
    func.func @f(%x: index) {
      scf.parallel (%i) = (%x) to (%x) step (%x) {
      }
      func.return
    }"""
    with pytest.raises(Unsupported, match=r"no lowering for scf.parallel"):
        ConvertScfToCfPass().apply(make_context(), parse_ir(text))
