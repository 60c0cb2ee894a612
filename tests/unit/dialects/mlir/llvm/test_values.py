"""Constants fold; comparisons know their predicates by name; errors of casts and truncations."""

import pytest
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, VectorType, bf16, f32, i1, i16, i32
from xdsl.ir import Block
from xdsl.traits import ConstantLike

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.errors import ParseError, VerifyError

BLOCK = Block(arg_types=[i32, VectorType(f32, [4]), f32])
N, V, X = BLOCK.args


def test_a_constant_is_known_as_one():
    constant = llvm.ConstantOp(FloatAttr(0.5, bf16), bf16)
    assert ConstantLike.get_constant_value(constant.result) == FloatAttr(0.5, bf16)


@pytest.mark.parametrize(("number", "name"), list(enumerate(llvm.ICmpOp.PREDICATES)))
def test_a_comparison_is_built_by_name(number: int, name: str):
    assert llvm.ICmpOp(N, N, name).predicate == IntegerAttr(number, 64)
    assert llvm.ICmpOp(N, N, name).predicate_name == name


def test_comparing_vectors_gives_a_vector():
    assert llvm.FCmpOp(V, V, "olt").res.type == VectorType(i1, [4])
    assert llvm.FCmpOp(X, X, "olt").res.type == i1


def in_function(line: str) -> str:
    return f"llvm.func @f(%i: i32, %x: f32, %v: vector<4xf32>) {{\n{line}\nllvm.return }}"


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ('%0 = llvm.icmp "less" %i, %i : i32', ParseError, "unknown predicate 'less'; one of: eq, ne, slt"),
        (
            '%0 = "llvm.icmp"(%i, %i) <{predicate = 17 : i64}> : (i32, i32) -> i1',
            VerifyError,
            "there is no predicate 17",
        ),
        (
            '%0 = "llvm.fcmp"(%v, %v) <{predicate = 4 : i64, fastmathFlags = #llvm.fastmath<none>}>'
            " : (vector<4xf32>, vector<4xf32>) -> i1",
            VerifyError,
            "gives vector<4xi1>, not i1",
        ),
        ("%0 = llvm.trunc %i : i32 to i32", VerifyError, "cannot truncate i32 to i32"),
        (
            "%0 = llvm.trunc %i : i32 to vector<4xi8>",
            VerifyError,
            "cannot convert i32 to vector<4xi8>: they differ in shape",
        ),
        ("%0 = llvm.zext %i : i32 to i16", VerifyError, "cast from i32 to i16"),
        ("%0 = llvm.sext %i : i32 to i32", VerifyError, "cast from i32 to i32"),
        ("%0 = llvm.uitofp %i : i32 to vector<2xf32>", VerifyError, "cannot convert i32 to vector<2xf32>"),
        ("%0 = llvm.fptosi %i : i32 to i32", VerifyError, "llvm.fptosi"),
        ("%0 = llvm.addrspacecast %i : i32 to !llvm.ptr", VerifyError, "llvm.addrspacecast"),
        ('%0 = llvm.icmp "eq" %x, %x : f32', VerifyError, "compares integers or pointers, not f32"),
        ('%0 = llvm.fcmp "oeq" %i, %i : i32', VerifyError, "compares floats, not i32"),
    ],
)
def test_what_is_wrong_is_said(line: str, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        parse_ir(in_function(line))


def test_values_are_built():
    built = (
        llvm.ExtractElementOp(V, N),
        llvm.PoisonOp(VectorType(bf16, [4])),
        llvm.ZeroOp(VectorType(f32, [4])),
        llvm.FreezeOp(X),
        llvm.TruncOp(N, i16, llvm.OverflowAttr((llvm.OverflowFlag.NO_SIGNED_WRAP,))),
        llvm.FPToSIOp(X, i32),
        llvm.UIToFPOp(N, f32),
        llvm.SelectOp(llvm.ICmpOp(N, N, "eq").res, X, X),
    )
    assert [print_ir(op).split(" = ")[1] for op in built] == [
        "llvm.extractelement %arg0[%arg1 : i32] : vector<4xf32>",
        "llvm.mlir.poison : vector<4xbf16>",
        "llvm.mlir.zero : vector<4xf32>",
        "llvm.freeze %arg0 : f32",
        "llvm.trunc %arg0 overflow<nsw> : i32 to i16",
        "llvm.fptosi %arg0 : f32 to i32",
        "llvm.uitofp %arg0 : i32 to f32",
        "llvm.select %1, %arg0, %arg0 : i1, f32",
    ]


def test_a_range_is_read_and_written():
    module = parse_ir("module attributes {r = #llvm.constant_range<i32, -4, 128>} {}")
    assert module.attributes["r"] == llvm.ConstantRangeAttr.of(32, -4, 128)
    assert "#llvm.constant_range<i32, -4, 128>" in print_ir(module)
