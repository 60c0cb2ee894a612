"""Calls keep their attributes."""

import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import func
from xla_emitters.lowering.convert_pure_call_ops import ConvertPureCallOpsPass


@pytest.mark.tiny
def test_location_and_names_are_kept():
    module = parse_ir("""
        func.func private @f(%x: f32) -> f32 {
          return %x : f32
        }
        func.func @main(%x: f32) -> f32 {
          %pure_call = xla_gpu.pure_call @f(%x) {noinline} : (f32) -> f32
          return %pure_call : f32
        }""")
    place = FileLineColLoc(StringAttr("k.hlo"), IntAttr(1), IntAttr(1))
    for op in module.walk():
        op.location = place
    ConvertPureCallOpsPass().apply(make_context(), module)
    module.verify()
    (call,) = (op for op in module.walk() if isinstance(op, func.CallOp))
    assert call.location == place
    assert call.results[0].name_hint == "pure_call"
    assert set(call.attributes) == {"noinline"}
