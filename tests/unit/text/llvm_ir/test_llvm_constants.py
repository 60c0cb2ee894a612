"""Constants of LLVM IR as bits, values and bytes; expected from IEEE 754 and the language reference."""

import numpy as np
import pytest
from unit.text.llvm_ir.one_function import BF16, executed

from xla_emitters.errors import ParseError, Unsupported


@pytest.mark.parametrize(
    ("literal", "of", "result", "bits"),
    [
        ("float 0x4007154760000000", "float", np.uint32, 0x4038AA3B),
        ("float 1.500000e+00", "float", np.uint32, 0x3FC00000),
        ("float -0.000000e+00", "float", np.uint32, 0x80000000),
        ("float 0x7FF0000000000000", "float", np.uint32, 0x7F800000),
        ("float 0x7FF8000020000000", "float", np.uint32, 0x7FC00001),
        ("float 0x36A0000000000000", "float", np.uint32, 0x00000001),
        ("double 1.000000e-01", "double", np.uint64, 0x3FB999999999999A),
        ("double 0x7FF8000000000005", "double", np.uint64, 0x7FF8000000000005),
        ("half 0xH3C01", "half", np.uint16, 0x3C01),
        ("half 0xH7E01", "half", np.uint16, 0x7E01),
        ("bfloat 0xR3D37", "bfloat", np.uint16, 0x3D37),
        ("i32 -1", "i32", np.uint32, 0xFFFFFFFF),
        ("i64 9223372036854775808", "i64", np.uint64, 1 << 63),
        ("i8 255", "i8", np.uint8, 255),
        ("i32 zeroinitializer", "i32", np.uint32, 0),
    ],
)
def test_bits_of_literals(literal: str, of: str, result: type, bits: int) -> None:
    body = f"store {literal}, ptr %r, align 1\n%d = load i{8 * np.dtype(result).itemsize}, ptr %r, align 1"
    if np.dtype(result).itemsize == 1:
        body = f"%d = add i8 0, {literal.split()[-1]}"
    assert executed(body, np.zeros(1, np.int32), result=result).tolist() == [bits]


@pytest.mark.parametrize(
    "literal",
    [
        "float 1.000000e-01",
        "float 0x3FB999999999999A",
        "float 0xH3C00",
        "float 7",
        "half 0xR3C00",
        "half 0xH3C000",
        "bfloat 1.00390625",
        "double 0x10000000000000000",
        "i32 4294967296",
        "i8 -129",
        "i1 2",
        "i32 1.0",
        "i32 true",
        "ptr 5",
        "i32 null",
        "<2 x i32> <i32 1>",
        "<2 x i32> <i32 1, i64 2>",
        "{ i32 } [i32 1]",
        "i32 splat (i32 1)",
    ],
)
def test_what_is_no_value_of_its_type(literal: str) -> None:
    """`float 7` too: LLVM asks for the point."""
    with pytest.raises(ParseError) as caught:
        executed(f"store {literal}, ptr %r, align 1\n%d = add i32 0, 1", np.zeros(1, np.int32), result=np.int32)
    assert caught.value.place.line == 8


VECTORS = """store <4 x float> <float 1.0, float poison, float 0x7FF8000000000000, float -2.0>, ptr %r, align 1
%d = load float, ptr %e, align 4"""


def test_vectors_with_poison_and_nan() -> None:
    body = f"%e = getelementptr float, ptr %p0, i64 3\n{VECTORS.replace('%r', '%p0')}"
    assert executed(body, np.zeros(4, np.float32), result=np.float32).tolist() == [-2.0] * 4


GLOBALS = """@bytes = internal addrspace(1) constant [4 x i8] c"\\01\\FFa\\00", align 1
@numbers = private unnamed_addr addrspace(4) constant [3 x i16] [i16 5, i16 -2, i16 7], align 2
@mixed = internal constant { i8, i32, [2 x half] } { i8 1, i32 258, [2 x half] [half 0xH3C00, half 0xHC000] }
@zero = internal global [8 x i32] zeroinitializer, align 4
"""


@pytest.mark.parametrize(
    ("address", "of", "wanted"),
    [
        ("ptr addrspace(1) getelementptr inbounds (i8, ptr addrspace(1) @bytes, i64 1)", "i8", 255),
        ("ptr addrspace(4) getelementptr inbounds nuw (i8, ptr addrspace(4) @numbers, i64 2)", "i16", 65534),
        ("ptr getelementptr (i8, ptr @mixed, i64 4)", "i8", 2),
        ("ptr getelementptr ({ i8, i32, [2 x half] }, ptr @mixed, i64 0, i32 2, i64 1)", "i16", 0xC000),
        ("ptr getelementptr inrange(-4, 28) ([8 x i32], ptr @zero, i64 0, i64 7)", "i8", 0),
        ("ptr addrspacecast (ptr addrspace(4) @numbers to ptr)", "i16", 5),
        ("ptr inttoptr (i64 add (i64 ptrtoint (ptr @mixed to i64), i64 5) to ptr)", "i8", 1),
    ],
)
def test_globals_and_constant_expressions(address: str, of: str, wanted: int) -> None:
    body = f"%x = load {of}, {address}, align 1\n%d = zext {of} %x to i32"
    assert executed(body, np.zeros(1, np.int32), result=np.int32, more=GLOBALS).tolist() == [wanted]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@x = external global i32", "defined elsewhere"),
        ("@x = internal global ptr @y", "initial value"),
        ("@x = alias i32, ptr @y", "an alias"),
        ("@x = internal constant [2 x fp128] zeroinitializer", "the type 'fp128'"),
        ("@x = internal constant [2000000000 x i8] zeroinitializer", "more than"),
        ('module asm ".globl x"', "assembly of a module"),
        ("%pair = type { i32, i32 }", "the named type"),
        ("@x = internal constant <{ i8, i32 }> zeroinitializer", "a packed struct"),
    ],
)
def test_what_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message) as caught:
        executed("%d = add i32 0, 1", np.zeros(1, np.int32), result=np.int32, more=text)
    assert caught.value.place.line == 1


def test_bfloat_lanes() -> None:
    found = executed("%d = fmul bfloat %a0, 0xR3F00", np.array([3.0, -1.0], BF16), result=BF16)
    assert found.astype(np.float32).tolist() == [1.5, -0.5]
