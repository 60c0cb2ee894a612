"""The CPU that machine code is made for: what its name may be, what it has, and code that calls what does not exist."""

import platform
from typing import Any

import pytest

from xla_emitters.lowering.cpu.cpu_target import is_object, undefined_symbols

pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")

from xla_emitters.errors import ToolError, UsageError
from xla_emitters.lowering.cpu.cpu_code import CpuCode, cpu_object
from xla_emitters.lowering.cpu.cpu_target import cpu_target, probed

on_x86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="levels are of x86-64")
TRIPLE = "x86_64-unknown-linux-gnu"
# System V ABI for x86-64, "Micro-architecture levels", in LLVM's spelling;
# without cmpxchg16b and lahf, which LLVM inlines into anything.
V2 = {"popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"}
V3 = V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
OTHERS = {"avx512bf16", "avx512fp16", "amx-tile", "sse4a", "xop"}


@pytest.mark.parametrize(
    ("name", "wanted"), [("x86-64", set[str]()), ("x86-64-v2", V2), ("x86-64-v3", V3), ("x86-64-v4", V4)]
)
def test_a_level_has_the_instructions_that_the_abi_says(name: str, wanted: set[str]) -> None:
    assert probed(TRIPLE, name, "", tuple(sorted(V4 | OTHERS))) == wanted


def test_instructions_are_added_and_taken_away_with_those_that_need_them() -> None:
    asked = ("avx", "avx2", "avx512f", "f16c", "sse4.1")
    assert probed(TRIPLE, "x86-64-v2", "+f16c", asked) == {"avx", "f16c", "sse4.1"}  # f16c's registers are avx's
    assert probed(TRIPLE, "znver4", "-avx2", asked) == {"avx", "f16c", "sse4.1"}


@on_x86
def test_what_follows_from_a_level() -> None:
    widths = {name: cpu_target(name).vector_bytes for name in ("x86-64-v2", "x86-64-v3", "x86-64-v4")}
    assert widths == {"x86-64-v2": 16, "x86-64-v3": 32, "x86-64-v4": 64}
    assert not cpu_target("x86-64-v2").converts_f16
    assert cpu_target("x86-64-v2,+f16c").converts_f16
    assert cpu_target("x86-64-v3").converts_f16


def test_this_machine_runs_its_own_code() -> None:
    assert not cpu_target().lacking


@on_x86
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        *(
            (name, "names no CPU")
            for name in ("help", "native,+help", "x86-64-v2,f16c", "a b", "x86-64-v3,", 'x"', "-")
        ),
        ("x86-64-v9", "makes no code for the CPU 'x86-64-v9'"),  # LLVM ends its process
        ("pentium4", "makes no code for the CPU 'pentium4'"),  # 32 bits: likewise
        ("native,+avx3", r"knows no instructions '\+avx3'"),
    ],
)
def test_an_unknown_cpu_is_refused(asked: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        cpu_target(asked)


@on_x86
def test_code_that_this_machine_cannot_run_is_made_and_not_run() -> None:
    cpu = cpu_target("native,+xop" if not cpu_target("native,+xop").lacking == () else "native,+avx10.2")
    text = "define i32 @one() {\n  ret i32 1\n}\n"
    assert cpu_object(text, {"one": "one"}, cpu)
    with pytest.raises(UsageError, match=r"this machine has no .*, which code for 'native,"):
        CpuCode(text, cpu)


MISSING = """declare float @no_such_function(float)
define float @f(float %x) {
  %y = call float @no_such_function(float %x)
  ret float %y
}
"""
ADDED_BY_LLVM = "define bfloat @f(float %x) {\n  %y = fptrunc float %x to bfloat\n  ret bfloat %y\n}\n"


@on_x86
@pytest.mark.parametrize(("text", "name"), [(MISSING, "no_such_function"), (ADDED_BY_LLVM, "__truncsfbf2")])
@pytest.mark.parametrize("for_linker", [False, True])
def test_a_call_of_a_function_that_does_not_exist_is_refused_when_the_code_is_made(
    text: str, name: str, for_linker: bool
) -> None:
    """Before, the second one was a signal at the first call, and an object file that no linker takes."""
    with pytest.raises(ToolError, match=f"no function '{name}'"):
        _ = (
            cpu_object(text, {"f": "f"}, cpu_target("x86-64-v2"))
            if for_linker
            else CpuCode(text, cpu_target("x86-64-v2"))
        )


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
