"""The undefined symbols of object files, in all three formats, against what LLVM's own `nm` lists for the same text."""

from __future__ import annotations

from typing import Any

import pytest

from xla_emitters.lowering.cpu.object_symbols import is_object, undefined_symbols

binding: Any = pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")
TEXT = """
@here = global i32 3
@elsewhere = external global i32
declare float @expf(float)
declare float @a_function_with_a_long_name(float)
declare float @declared_and_not_called(float)
define bfloat @own(float %x) {
  %y = call float @expf(float %x)
  %z = call float @a_function_with_a_long_name(float %y)
  %b = fptrunc float %z to bfloat
  ret bfloat %b
}
define void @fill(ptr %p, i64 %n) {
  call void @llvm.memset.p0.i64(ptr %p, i8 1, i64 %n, i1 false)
  %v = load i32, ptr @elsewhere
  store i32 %v, ptr @here
  ret void
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""
CALLED = {"expf", "a_function_with_a_long_name", "memset", "elsewhere"}
LINUX, MAC, WINDOWS = "unknown-linux-gnu", "apple-macosx", "pc-windows-msvc"


@pytest.mark.parametrize(
    ("triple", "more"),
    [
        *((f"x86_64-{system}", {"__truncsfbf2"}) for system in (LINUX, MAC, WINDOWS)),
        # AArch64 rounds to bf16 by instructions.
        *((f"aarch64-{system}", set[str]()) for system in (LINUX, MAC, WINDOWS)),
    ],
)
def test_functions_that_are_called_and_not_defined(triple: str, more: set[str]) -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    module = binding.parse_assembly(TEXT)
    module.triple = triple
    machine = binding.Target.from_triple(triple).create_target_machine(opt=3)
    data = machine.emit_object(module)
    assert is_object(data)
    assert undefined_symbols(data) == tuple(sorted(CALLED | more))


def test_other_data_is_refused() -> None:
    assert not is_object(b"")
    with pytest.raises(ValueError, match="not an object file"):
        undefined_symbols(b"#!/bin/sh\n")
