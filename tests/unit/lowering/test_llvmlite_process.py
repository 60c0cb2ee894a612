"""LLVM inside llvmlite, in a process of its own: what is linked, what is kept, and that it takes no caller down."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools_here import needs

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.errors import InternalError, ToolError
from xla_emitters.lowering import llvmlite_process, toolchain
from xla_emitters.lowering.convert_ids_to_calls import ConvertIdsToCallsPass
from xla_emitters.lowering.toolchain import (
    TOOLCHAIN,
    compile_to_llvm_ir,
    compile_to_ptx,
    compile_to_ptx_by_steps,
    start_compile,
)

pytestmark = [needs("llvmlite"), pytest.mark.usefixtures("by_llvmlite")]

TANH = """
llvm.func @__nv_tanhf(f32) -> f32
llvm.func @tanh(%p: !llvm.ptr) attributes {nvvm.kernel} {
  %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
  %a = llvm.getelementptr inbounds %p[%t] : (!llvm.ptr, i32) -> !llvm.ptr, f32
  %x = llvm.load %a : !llvm.ptr -> f32
  %y = llvm.call @__nv_tanhf(%x) : (f32) -> f32
  %z = llvm.fdiv %y, %x : f32
  llvm.store %z, %a : f32, !llvm.ptr
  llvm.return
}
"""
PLAIN = """
llvm.func @plain(%p: !llvm.ptr) attributes {nvvm.kernel} {
  %x = llvm.load %p : !llvm.ptr -> f32
  llvm.store %x, %p : f32, !llvm.ptr
  llvm.return
}
"""
# An instruction that no NVIDIA GPU has: LLVM ends its process.
CANNOT_SELECT = PLAIN.replace(
    "  llvm.return", '  %i = llvm.call_intrinsic "llvm.x86.rdtsc"() : () -> i64\n  llvm.return'
)


@pytest.fixture
def by_llvmlite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOOLCHAIN, "llvm")


def ready(text: str):
    module = parse_ir(text)
    ConvertIdsToCallsPass().apply(make_context(), module)
    return module


@needs("libdevice")
@pytest.mark.parametrize("architecture", ["sm_75", "sm_90", "sm_100"])
def test_libdevice_is_linked_and_nothing_of_it_is_left(architecture: str) -> None:
    """XLA's options reach the backend; what libdevice asks about denormal numbers is answered; ids are inlined."""
    ptx = compile_to_ptx(ready(TANH), architecture)
    assert f".target {architecture}" in ptx
    assert ".visible .entry tanh(" in ptx
    assert not re.search(r"\.func|__nv|sreg\.|fma\.rn\.ftz", ptx)
    assert "fma.rn.f32" in ptx
    assert "div.full.f32" in ptx


@needs("libdevice")
def test_llvm_ir_that_ptx_is_made_of() -> None:
    text = compile_to_llvm_ir(ready(TANH), "sm_90")
    assert "define ptx_kernel void @tanh(ptr" in text
    assert "!range" in text
    assert "@__nv" not in text


@needs("libdevice")
def test_what_is_between_is_kept(tmp_path: Path) -> None:
    module = ready(TANH)
    assert compile_to_ptx_by_steps(module, "sm_90", tmp_path) == compile_to_ptx(module, "sm_90")
    kept = ["kernel-linked.ll", "kernel-opt.ll", "kernel.ll", "kernel.mlir", "kernel.ptx"]
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    assert "declare float @__nv_tanhf(float)" in (tmp_path / "kernel.ll").read_text()
    assert "define internal float @__nv_tanhf(float" in (tmp_path / "kernel-linked.ll").read_text()
    assert "define internal i32 @sreg.tid.x.0.128()" in (tmp_path / "kernel-linked.ll").read_text()
    assert "__nv_sinf" not in (tmp_path / "kernel-linked.ll").read_text()


def test_a_crash_of_llvm_is_an_error_of_the_tool() -> None:
    """The caller lives, and knows what LLVM said."""
    with pytest.raises(ToolError, match=r"llvmlite failed \((signal|exit) \d+\)") as raised:
        compile_to_ptx(parse_ir(CANNOT_SELECT), "sm_90")
    assert raised.value.exit_code == 4
    assert any("rdtsc" in line for line in (raised.value.message, *raised.value.details))
    assert ".entry plain(" in compile_to_ptx(parse_ir(PLAIN), "sm_90")


def test_unknown_chip() -> None:
    with pytest.raises(ToolError, match="llvmlite does not know the processor 'sm_999'"):
        compile_to_ptx(parse_ir(PLAIN), "sm_999")


@needs("libdevice")
def test_missing_libdevice_function() -> None:
    with pytest.raises(ToolError, match="libdevice does not define __nv_nothing"):
        compile_to_ptx(ready(TANH.replace("__nv_tanhf", "__nv_nothing")), "sm_90")


def test_call_of_an_undefined_function() -> None:
    with pytest.raises(InternalError, match="calls mystery, which nothing defines"):
        compile_to_ptx(ready(TANH.replace("__nv_tanhf", "mystery")), "sm_90")


def test_llvm_ir_that_does_not_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake of the printer is what LLVM says about it, not a traceback."""
    monkeypatch.setattr(toolchain, "print_llvm_ir", lambda module: "define void @f() {\n  ret i32 0\n}\n")
    with pytest.raises(ToolError, match=r"llvmlite failed \(exit 1\): error: ") as raised:
        compile_to_ptx(parse_ir(PLAIN), "sm_90")
    assert "value doesn't match function result type" in f"{raised.value.message} {raised.value.details}"
    assert "Traceback" not in str(raised.value)


def test_nothing_is_left_running_where_nothing_was_compiled() -> None:
    with start_compile("sm_90") as compiler:
        tool = compiler._tool
        assert tool is not None
        assert tool._process.poll() is None
    assert tool._process.poll() is not None


def test_another_llvm_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Binding:
        llvm_version_info = (15, 0, 7)

    monkeypatch.setattr(llvmlite_process, "import_module", lambda name: Binding)
    assert llvmlite_process.main(["ptx", "sm_90", "+ptx86"]) == 1
    assert capsys.readouterr().err == "error: this llvmlite has LLVM 15; 22 is needed\n"
