"""Intrinsics are built from their operands; wrong types are refused."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import VectorType, f32, i32
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Block

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.op_rows import op_of_family
from xla_emitters.dialects.printer import print_ir
from xla_emitters.errors import VerifyError

BLOCK = Block(arg_types=[f32, VectorType(f32, [4]), i32])
X, V, N = BLOCK.args


def test_they_are_built():
    built = (
        llvm.FRoundEvenOp(V),
        llvm.FMaximumOp(X, X, fast_math=llvm.FastMathAttr([FastMathFlag.NO_NANS])),
        llvm.FMulAddOp(X, X, X),
        llvm.SMaxOp(N, N),
        llvm.CtPopOp(N),
        llvm.CountLeadingZerosOp(N),
        llvm.AbsOp(N),
        llvm.IsFPClassOp(X, 3),
        llvm.PowIOp(X, N),
    )
    assert [print_ir(op).split(" = ", 1)[1] for op in built] == [
        "llvm.intr.roundeven(%arg0) : (vector<4xf32>) -> vector<4xf32>",
        "llvm.intr.maximum(%arg0, %arg0) {fastmathFlags = #llvm.fastmath<nnan>} : (f32, f32) -> f32",
        "llvm.intr.fmuladd(%arg0, %arg0, %arg0) : (f32, f32, f32) -> f32",
        "llvm.intr.smax(%arg0, %arg0) : (i32, i32) -> i32",
        "llvm.intr.ctpop(%arg0) : (i32) -> i32",
        '"llvm.intr.ctlz"(%arg0) <{is_zero_poison = false}> : (i32) -> i32',
        '"llvm.intr.abs"(%arg0) <{is_int_min_poison = false}> : (i32) -> i32',
        '"llvm.intr.is.fpclass"(%arg0) <{bit = 3 : i32}> : (f32) -> i1',
        "llvm.intr.powi(%arg0, %arg1) : (f32, i32) -> f32",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "%0 = llvm.intr.maximum(%x, %d) : (f32, f64) -> f32",
        "%0 = llvm.intr.roundeven(%i) : (i32) -> i32",
        "%0 = llvm.intr.smax(%x, %x) : (f32, f32) -> f32",
        "%0 = llvm.intr.roundeven(%x) : (f32) -> f64",
    ],
)
def test_operands_and_result_have_one_type(line: str):
    with pytest.raises(VerifyError, match=r"llvm\.intr\."):
        parse_ir(f"llvm.func @f(%x: f32, %d: f64, %i: i32) {{ {line}\n llvm.return }}")


def test_a_family_makes_ops_that_differ_in_name():
    one, two = op_of_family(llvm.FloatUnaryOp, "test.one"), op_of_family(llvm.FloatUnaryOp, "test.two")
    assert (one.name, two.name) == ("test.one", "test.two")
    assert issubclass(one, llvm.FloatUnaryOp)
    assert not isinstance(one(X), two)
