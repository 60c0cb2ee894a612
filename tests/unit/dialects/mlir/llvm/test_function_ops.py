"""Functions, calls and globals: public unless marked otherwise, and called with the types that they are declared with."""

import pytest
from xdsl.dialects.builtin import UnitAttr, f32
from xdsl.ir import Block, Region

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.errors import ParseError, VerifyError


def test_a_function_is_external_unless_said_otherwise():
    """An internal kernel is removed by -O3, because nothing calls it."""
    body = Region(Block(arg_types=[llvm.LLVMPointerType()]))
    body.block.add_op(llvm.ReturnOp())
    kernel = llvm.FuncOp(
        "k", llvm.LLVMFunctionType([llvm.LLVMPointerType()]), body=body, extra_attrs={"nvvm.kernel": UnitAttr()}
    )
    assert kernel.linkage == llvm.EXTERNAL
    assert print_ir(kernel).splitlines()[0] == "llvm.func @k(%arg0: !llvm.ptr) attributes {nvvm.kernel} {"


def test_a_declaration():
    declared = llvm.FuncOp("__nv_tanhf", llvm.LLVMFunctionType([f32], f32))
    assert print_ir(declared) == "llvm.func @__nv_tanhf(f32) -> f32"


CALLED = """
llvm.func @g(f32) -> f32
llvm.func @many(f32, ...)
llvm.func @f(%x: f32, %d: f64, %p: !llvm.ptr) {{
  {line}
  llvm.return
}}
"""


def test_a_call_fits_its_callee():
    """That of a function with more arguments; `test_llvm.py` has others."""
    line = "llvm.call @many(%x, %d) vararg(!llvm.func<void (f32, ...)>) : (f32, f64) -> ()"
    assert line in print_ir(parse_ir(CALLED.format(line=line)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%0 = llvm.call @g(%d) : (f64) -> f32", "is called with other types"),
        ("llvm.call @g(%x) : (f32) -> ()", "is called with other types"),
        ("llvm.call @h(%x) : (f32) -> ()", "there is no llvm.func @h"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(line: str, message: str):
    with pytest.raises(VerifyError, match=message):
        parse_ir(CALLED.format(line=line))


def test_a_function_has_one_result_or_none():
    with pytest.raises(ParseError, match=r"an llvm\.func must have one result or none"):
        parse_ir("llvm.func @f() -> (f32, f32)")


def test_the_entry_block_takes_what_the_type_says():
    with pytest.raises(VerifyError, match="the entry block takes 1 arguments, which do not match"):
        parse_ir(
            '"llvm.func"() <{CConv = #llvm.cconv<ccc>, function_type = !llvm.func<void (f32)>, linkage = #llvm.linkage<external>, '
            'sym_name = "f", unnamed_addr = 0 : i64, visibility_ = 0 : i64}> ({ ^bb0(%x: i32): llvm.return }) : () -> ()'
        )


def test_shared_memory_is_a_global_of_address_space_3():
    tile = llvm.GlobalOp(llvm.LLVMArrayType(1056, f32), "tile", "private", addr_space=3, unnamed_addr=2, alignment=16)
    assert print_ir(tile) == (
        "llvm.mlir.global private unnamed_addr @tile() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<1056 x f32>"
    )


def test_a_global_without_a_type_is_refused():
    with pytest.raises(ParseError, match="expected ':' and the variable's type"):
        parse_ir("llvm.mlir.global private @x()")
