"""Whole texts of LLVM IR: functions, metadata, attributes, control flow; and what is refused, with its place."""

import numpy as np
import pytest
from xdsl.dialects.builtin import FusedLoc

from xla_emitters.dialects.locations import place_of
from xla_emitters.dialects.mlir import llvm
from xla_emitters.errors import DataError, ParseError, Unsupported, VerifyError
from xla_emitters.explore.check.any_llvm_ir import LlvmIrKernel
from xla_emitters.explore.check.any_ptx import launch_of
from xla_emitters.text.llvm_ir import raise_kernel, read_llvm_ir

TWO = """; ModuleID = 'x'
source_filename = "x"
target datalayout = "e-i64:64"
target triple = "nvptx64-nvidia-cuda"

; Function Attrs: nounwind
define ptx_kernel void @"one two"(ptr noundef align 16 captures(none) dereferenceable(64) %0, i32 %1) local_unnamed_addr #0 !dbg !4 {
  %3 = getelementptr i32, ptr %0, i32 %1, !dbg !7
  store i32 5, ptr %3, align 4, !dbg !7, !tbaa !{}
    #dbg_value(i32 %1, !8, !DIExpression(), !7)
  ret void
}

define void @"other"(ptr %x) #1 {
  ret void
}

declare void @llvm.mystery(i32 immarg) #1

attributes #0 = { nounwind "nvvm.reqntid"="64,1,1" "nvvm.maxnreg"="32" }
attributes #1 = { nounwind memory(none) }
!llvm.dbg.cu = !{!2}
!1 = !DIFile(filename: "scale.cu", directory: "/src")
!2 = distinct !DICompileUnit(language: DW_LANG_C, file: !1)
!4 = distinct !DISubprogram(name: "f", scope: !1, file: !1, line: 1, unit: !2)
!6 = distinct !DILexicalBlock(scope: !4, line: 2)
!7 = !DILocation(line: 30, column: 7, scope: !6)
"""


def test_kernels_attributes_and_places() -> None:
    module = read_llvm_ir(TWO, "x.ll")
    (entry,) = module.entries
    assert entry.name == "one two"
    assert module.bounds(entry) == {"reqntid": (64, 1, 1)}
    ir = raise_kernel(module, entry)
    store = next(op for op in ir.walk() if isinstance(op, llvm.StoreOp))
    assert isinstance(store.location, FusedLoc)
    assert "x.ll:9:3" in place_of(store)
    assert "scale.cu:30:7" in place_of(store)


def test_a_block_must_be_as_the_kernel_asks() -> None:
    kernel = LlvmIrKernel.read(TWO, "x.ll")
    arrays = [np.zeros(4, np.int32), np.array(1, np.int32)]
    assert kernel.run(arrays, launch_of("1x64")[0])[0].tolist() == [0, 5, 0, 0]
    with pytest.raises(DataError, match="must have 64x1x1 threads"):
        kernel.run(arrays, launch_of("1x32")[0])
    with pytest.raises(DataError, match="a number of 32 bits"):
        kernel.run([arrays[0], np.array(1, np.int64)], launch_of("1x64")[0])


def test_without_the_convention_of_kernels_any_function_is_one() -> None:
    text = "define void @f(ptr %x) {\n  store i8 1, ptr %x, align 1\n  ret void\n}\n"
    assert LlvmIrKernel.read(text, "f.ll").run([np.zeros(1, np.int8)], launch_of("1x1")[0])[0].tolist() == [1]


BODY = "define ptx_kernel void @k(ptr %p, i32 %n) {{\n{}\n}}\n"


@pytest.mark.parametrize(
    ("body", "message", "line"),
    [
        ("ret void\nret void", "expected a label or", 3),
        ("a:\n  ret void\nb:\n  %x = add i32 %n, 1", "expected the end of a block", 6),
        ("br label %nowhere", "'%nowhere' is not defined", 2),
        ("%x = add i32 %y, 1\nret void", "'%y' is not defined", 2),
        ("%n = add i32 1, 1\nret void", "'%n' is defined twice", 2),
        ("%x = add i64 %n, 1\nret void", "'%n' is i32, not i64", 2),
        ("%x = add i32 %y, 1\n%y = add i64 1, 1\nret void", "'%y' is i64, not i32", 2),
        ("br label %a\na:\n%x = phi i32 [ 0, %b ]\nret void\nb:\nbr label %a", "no value for one of", 4),
        ("br label %a\na:\n%x = add i32 1, 1\n%y = phi i32 [ 0, %0 ]\nret void", "a phi is at the start", 5),
        ("a:\nbr label %a", "the first block has no predecessors", 4),
        ("br i32 %n, label %a, label %a\na:\nret void", "a branch is taken by an i1", 2),
        ("switch i32 %n, label %a [ i32 1, label %a i32 1, label %a ]\na:\nret void", "has a case twice", 2),
        ("ret i32 0", "returns !llvm.void, not i32", 2),
        ("%x = ret void", "'ret' has no value", 2),
        ("store i32 1, ptr %p, align 3\nret void", "a power of two", 2),
        ("%x = extractvalue { i32 } poison, 1\nret void", "has no field 1", 2),
        ("%x = shufflevector <2 x i32> poison, <2 x i32> poison, <1 x i32> <i32 4>\nret void", "no element", 2),
        ("%x = icmp olt i32 %n, 1\nret void", "there is no comparison 'olt'", 2),
        ("%x = select i1 true, i32 %n, i64 1\nret void", "chooses between", 2),
        ("store i32 1, ptr @nowhere, align 4\nret void", "'@nowhere' is not defined", 2),
        ("%x = frobnicate i32 %n\nret void", "instruction 'frobnicate' is not supported", 2),
        ("%x = add i129 1, 1\nret void", "an integer of 129 bits", 2),
        ("%x = add <2 x i65> poison, poison\nret void", "a vector of i65", 2),
        ("switch i128 1, label %a [ i128 1, label %a ]\na:\nret void", "a switch of i128", 2),
        ("%x = getelementptr i8, <2 x ptr> poison, i32 1\nret void", "a getelementptr of", 2),
        ("indirectbr ptr %p, [label %a]\na:\nret void", "instruction 'indirectbr'", 2),
        ("%x = fadd i32 %n, %n\nret void", "llvm.fadd", 2),
        ("%x = trunc i32 %n to i64\nret void", "llvm.trunc", 2),
        (
            "br i1 true, label %a, label %b\na:\n%x = add i32 1, 1\nbr label %b\nb:\n%y = add i32 %x, 1\nret void",
            "%x is used",
            7,
        ),
    ],
)
def test_what_is_wrong_is_named_at_its_place(body: str, message: str, line: int) -> None:
    module = read_llvm_ir(BODY.format(body), "k.ll")
    with pytest.raises((ParseError, Unsupported, VerifyError), match=message) as caught:
        raise_kernel(module, module.entries[0])
    assert (caught.value.place.file, caught.value.place.line) == ("k.ll", line)
