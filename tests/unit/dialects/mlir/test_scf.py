"""`scf.forall` and `tensor.parallel_insert_slice`, which are in the first IR that today's XLA prints."""

from __future__ import annotations

import pytest
from unit.dialects.mlir_opt import assert_means_the_same

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import scf, tensor
from xla_emitters.errors import VerifyError

BODY = """scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[0] [8] [1] : tensor<8xf32> into tensor<8xf32>
    }"""
LINES = (
    f"%r = scf.forall (%i) in (128) shared_outs(%o = %t) -> (tensor<8xf32>) {{ {BODY} }}",
    f"%r = scf.forall (%i, %j) in (128, %n) shared_outs(%o = %t) -> (tensor<8xf32>) {{ {BODY} }}",
    f"%r = scf.forall (%i) = (%n) to (8) step (2) shared_outs(%o = %t) -> (tensor<8xf32>) {{ {BODY} }}",
    "scf.forall (%i) in (%n) {\n }",
    f"%r = scf.forall (%i) in (128) shared_outs(%o = %t) -> (tensor<8xf32>) {{ {BODY} }} {{note}}",
)


def in_function(line: str) -> str:
    return f"func.func @f(%n: index, %t: tensor<8xf32>) {{\n{line}\n return }}"


def test_every_op_means_in_our_text_what_it_means_in_mlirs():
    covered = assert_means_the_same([in_function(line) for line in LINES])
    assert {scf.ForallOp.name, scf.InParallelOp.name, tensor.ParallelInsertSliceOp.name} <= covered


def test_the_body_takes_the_indices_and_the_shared_outs():
    loop = LINES[0].replace("%r = scf.forall", '%r = "scf.forall"')
    assert loop  # the custom form cannot be wrong; the generic one can
    with pytest.raises(VerifyError, match="its body must take 1 indices and the shared outs"):
        parse_ir(
            in_function(
                '"scf.forall"() <{operandSegmentSizes = array<i32: 0, 0, 0, 0>, staticLowerBound = array<i64: 0>, '
                "staticUpperBound = array<i64: 8>, staticStep = array<i64: 1>}> ({\n ^bb0(%i: i32):\n"
                '"scf.forall.in_parallel"() ({}) : () -> () }) : () -> ()'
            )
        )
