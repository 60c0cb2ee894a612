"""llvmlite in a process of its own:
what is linked, what is cached, that it keeps running, and that its crash does not end the caller.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from tools_here import here, needs

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.errors import InternalError, ToolError
from xla_emitters.lowering.convert_ids_to_calls import ConvertIdsToCallsPass
from xla_emitters.lowering.toolchain import llvm_process, toolchain
from xla_emitters.lowering.toolchain.toolchain import (
    compile_to_llvm_ir,
    compile_to_ptx,
    compile_to_ptx_by_steps,
    start_compile,
)
from xla_emitters.settings import TOOLCHAIN
from xla_emitters.support.processes import ResidentTool, borrow_tool, end_idle_tools

pytestmark = [pytest.mark.usefixtures("llvmlite_makes_ptx"), needs("llvmlite")]

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


KERNELS = (("plain", PLAIN, "sm_90"), ("tanh", TANH, "sm_75"), ("sin", TANH.replace("tanhf", "sinf"), "sm_100"))


@pytest.fixture
def llvmlite_makes_ptx(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(TOOLCHAIN, "llvmlite")
    end_idle_tools()
    yield
    end_idle_tools()


def ready(text: str):
    module = parse_ir(text)
    ConvertIdsToCallsPass().apply(make_context(), module)
    return module


@needs("libdevice")
@pytest.mark.parametrize("architecture", ["sm_75", "sm_90", "sm_100"])
def test_libdevice_is_linked_and_nothing_of_it_is_left(architecture: str) -> None:
    """XLA's options reach the backend; what libdevice asks about denormal numbers is answered; ids are inlined."""
    ptx = compile_to_ptx(ready(TANH), architecture, here())
    assert f".target {architecture}" in ptx
    assert ".visible .entry tanh(" in ptx
    assert not re.search(r"\.func|__nv|sreg\.|fma\.rn\.ftz", ptx)
    assert "fma.rn.f32" in ptx
    assert "div.full.f32" in ptx


@needs("libdevice")
def test_llvm_ir_that_ptx_is_made_of() -> None:
    text = compile_to_llvm_ir(ready(TANH), "sm_90", here())
    assert "define ptx_kernel void @tanh(ptr" in text
    assert "!range" in text
    assert "@__nv" not in text


@needs("libdevice")
def test_what_is_between_is_kept(tmp_path: Path) -> None:
    module = ready(TANH)
    assert compile_to_ptx_by_steps(module, "sm_90", here(), tmp_path) == compile_to_ptx(module, "sm_90", here())
    kept = ["kernel-linked.ll", "kernel-opt.ll", "kernel.ll", "kernel.mlir", "kernel.ptx"]
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    assert "declare float @__nv_tanhf(float)" in (tmp_path / "kernel.ll").read_text()
    assert "define internal float @__nv_tanhf(float" in (tmp_path / "kernel-linked.ll").read_text()
    assert "define internal i32 @sreg.tid.x.0.128()" in (tmp_path / "kernel-linked.ll").read_text()
    assert "__nv_sinf" not in (tmp_path / "kernel-linked.ll").read_text()


@needs("libdevice")
def test_a_damaged_libdevice_matters_to_kernels_that_call_it(tmp_path: Path) -> None:
    damaged = tmp_path / "libdevice.bc"
    damaged.write_bytes(b"no bitcode")
    toolchain = replace(here(), files=(("libdevice", str(damaged)),))
    assert ".entry plain(" in compile_to_ptx(parse_ir(PLAIN), "sm_90", toolchain)
    with pytest.raises(ToolError, match="llvmlite failed: "):
        compile_to_ptx(ready(TANH), "sm_90", toolchain)
    assert ".entry plain(" in compile_to_ptx(parse_ir(PLAIN), "sm_90", toolchain)


def test_a_crash_of_llvm_is_an_error_of_the_tool() -> None:
    """The caller lives, and knows what LLVM said."""
    with pytest.raises(ToolError, match=r"llvmlite failed \((signal|exit) \d+\)") as raised:
        compile_to_ptx(parse_ir(CANNOT_SELECT), "sm_90", here())
    assert raised.value.exit_code == 4
    assert any("rdtsc" in line for line in (raised.value.message, *raised.value.details))
    assert ".entry plain(" in compile_to_ptx(parse_ir(PLAIN), "sm_90", here())


def test_unknown_chip() -> None:
    with pytest.raises(ToolError, match="llvmlite does not know the processor 'sm_999'"):
        compile_to_ptx(parse_ir(PLAIN), "sm_999", here())


@needs("libdevice")
def test_missing_libdevice_function() -> None:
    with pytest.raises(ToolError, match="libdevice does not define __nv_nothing"):
        compile_to_ptx(ready(TANH.replace("__nv_tanhf", "__nv_nothing")), "sm_90", here())


def test_call_of_an_undefined_function() -> None:
    with pytest.raises(InternalError, match="calls mystery, which nothing defines"):
        compile_to_ptx(ready(TANH.replace("__nv_tanhf", "mystery")), "sm_90", here())


def test_llvm_ir_that_does_not_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake of the printer is what LLVM says about it, not a traceback."""
    monkeypatch.setattr(toolchain, "print_llvm_ir", lambda module: "define void @f() {\n  ret i32 0\n}\n")
    with pytest.raises(ToolError, match="llvmlite failed: ") as raised:
        compile_to_ptx(parse_ir(PLAIN), "sm_90", here())
    assert "value doesn't match function result type" in f"{raised.value.message} {raised.value.details}"
    assert "Traceback" not in str(raised.value)


def test_another_llvm_is_refused() -> None:
    class Binding:
        llvm_version_info = (15, 0, 7)

    with pytest.raises(llvm_process.RefusedByLlvm, match="this llvmlite has LLVM 15; 22 is needed"):
        llvm_process.LlvmCompiler(Binding, [])


def test_llvm_ir_beside_the_ptx_that_is_made_of_it() -> None:
    with start_compile("sm_90", here()) as compiler:
        texts, alone = compiler.finish_both(parse_ir(PLAIN)), compiler.finish(parse_ir(PLAIN))
    assert texts.ptx == alone
    assert texts.llvm_ir == compile_to_llvm_ir(parse_ir(PLAIN), "sm_90", here())
    assert texts.seconds > 0.0


# ---- the process stays ------------------------------------------------------------------------------------------------------------------


def test_one_process_for_all_compilations() -> None:
    """Also where a compilation ends before it has a module."""
    with start_compile("sm_90", here()) as compiler:
        first = compiler._tool
    assert isinstance(first, ResidentTool)
    for _ in range(2):
        with start_compile("sm_90", here()) as compiler:
            assert compiler._tool is first
            assert ".entry plain(" in compiler.finish(parse_ir(PLAIN))
    end_idle_tools()
    assert first._process.poll() is not None
    with start_compile("sm_90", here()) as compiler:
        assert compiler._tool is not first


def test_compilations_at_the_same_time_have_a_process_each() -> None:
    with start_compile("sm_90", here()) as one, start_compile("sm_90", here()) as other:
        assert one._tool is not other._tool
        assert one.finish(parse_ir(PLAIN)) == other.finish(parse_ir(PLAIN))


@needs("libdevice")
def test_a_kernel_does_not_depend_on_those_before() -> None:
    """Of the same process, of other chips, with and without libdevice, after an error."""
    end_idle_tools()
    alone = {name: compile_to_ptx(ready(text), chip, here()) for name, text, chip in KERNELS if not end_idle_tools()}
    for name, text, chip in (*KERNELS, *reversed(KERNELS)):
        with pytest.raises(ToolError):
            compile_to_ptx(parse_ir(PLAIN), "sm_999", here())
        assert compile_to_ptx(ready(text), chip, here()) == alone[name]


def test_a_process_that_was_killed_is_replaced() -> None:
    with start_compile("sm_90", here()) as compiler:
        tool = compiler._tool
        assert isinstance(tool, ResidentTool)
    tool._process.kill()
    tool._process.wait()
    assert ".entry plain(" in compile_to_ptx(parse_ir(PLAIN), "sm_90", here())


def test_one_that_does_not_answer_is_ended_in_time() -> None:
    tool = ResidentTool((sys.executable, "-c", "import time; time.sleep(60)"), "sleeper")
    with pytest.raises(ToolError, match=r"sleeper did not end within 0\.3 s"), tool:
        tool.ask({}, timeout_seconds=0.3)
    assert not tool.is_alive


def test_one_that_was_interrupted_is_not_asked_again() -> None:
    """Its answer to the interrupted job would be taken for the next one's."""

    class Interrupted:
        def readline(self) -> bytes:
            raise KeyboardInterrupt

        def close(self) -> None: ...

    with start_compile("sm_90", here()) as compiler:
        tool = compiler._tool
        assert isinstance(tool, ResidentTool)
    job = {"text": "a", "wanted": "ptx", "chip": "sm_90", "features": "", "called": [], "keep": None}
    with borrow_tool(tool.command, tool.name) as again:
        assert again is tool
        again._process.stdout = cast(Any, Interrupted())
        with pytest.raises(KeyboardInterrupt):
            again.ask(job)
    assert not tool.is_alive
    assert ".entry plain(" in compile_to_ptx(parse_ir(PLAIN), "sm_90", here())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_starts_its_own() -> None:
    """The process that this one started answers this one alone."""
    assert ".entry plain(" in compile_to_ptx(parse_ir(PLAIN), "sm_90", here())
    if (child := os.fork()) == 0:
        try:
            with start_compile("sm_90", here()) as compiler:
                is_own = compiler._tool is not None and compiler._tool._process_id == os.getpid()
                made = ".entry plain(" in compiler.finish(parse_ir(PLAIN))
            end_idle_tools()
        except BaseException:
            os._exit(9)
        os._exit(0 if is_own and made else 8)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ".entry plain(" in compile_to_ptx(parse_ir(PLAIN), "sm_90", here())


def test_nothing_is_left_when_the_caller_is_killed() -> None:
    """It ends with its stdin."""
    program = (
        "import os, signal\n"
        "from xla_emitters.lowering.toolchain.toolchain import start_compile\n"
        "from xla_emitters.settings import read_settings\n"
        "with start_compile('sm_90', read_settings().toolchain) as compiler: print(compiler._tool._process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    process = int(done.stdout)
    for _ in range(100):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.05)
    raise AssertionError("it is still there")
