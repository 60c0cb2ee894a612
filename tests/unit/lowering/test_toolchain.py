"""PTX by one process and by four, machine code, and every way in which the tools can fail."""

import os
import re
import stat
from pathlib import Path

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import InternalError, ToolError
from xla_emitters.lowering import toolchain
from xla_emitters.lowering.toolchain import (
    assemble,
    compile_to_llvm_ir,
    compile_to_ptx,
    compile_to_ptx_by_steps,
    count_instructions,
    disassemble,
    find_tool,
    find_tools,
)

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")


def missing(*names: str) -> str:
    """Which of the tools are missing, for a skip's reason; "" when none is."""
    return "; ".join(
        str(found.message) for name, found in find_tools().items() if name in names and isinstance(found, ToolError)
    )


needs_llvm = pytest.mark.skipif(bool(missing("mlir-opt")), reason=missing("mlir-opt"))
needs_steps = pytest.mark.skipif(
    bool(missing("mlir-translate", "llvm-link", "opt", "llc")),
    reason=missing("mlir-translate", "llvm-link", "opt", "llc"),
)
needs_nvidia = pytest.mark.skipif(bool(missing("ptxas", "libdevice")), reason=missing("ptxas", "libdevice"))
needs_nvdisasm = pytest.mark.skipif(bool(missing("nvdisasm")), reason=missing("nvdisasm"))

# tanh of bf16 through libdevice, with bf16 arithmetic around it, one element a thread.
KERNEL = """
llvm.func @__nv_tanhf(f32) -> f32
llvm.func @tanh(%in: !llvm.ptr {llvm.noalias}, %out: !llvm.ptr {llvm.noalias})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
  %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
  %p = llvm.getelementptr inbounds %in[%t] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
  %x = llvm.load %p invariant : !llvm.ptr -> bf16
  %x2 = llvm.fmul %x, %x : bf16
  %w = llvm.fpext %x2 : bf16 to f32
  %y = llvm.call @__nv_tanhf(%w) : (f32) -> f32
  %n = llvm.fptrunc %y : f32 to bf16
  %q = llvm.getelementptr inbounds %out[%t] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
  llvm.store %n, %q : bf16, !llvm.ptr
  llvm.return
}
"""
# No function of libdevice; a value of 4096 shared bytes would be in KERNEL's way.
PLAIN = """
llvm.func @{name}(%p: !llvm.ptr) attributes {{nvvm.kernel}} {{
  %x = llvm.load %p : !llvm.ptr -> f32
  %y = llvm.fdiv %x, %x : f32
  llvm.store %y, %p : f32, !llvm.ptr
  llvm.return
}}
"""


def fake(directory: Path, name: str, script: str) -> str:
    """An executable shell script in the place of a tool."""
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


SAYS_22 = 'if [ "$1" = --version ]; then echo "LLVM version 22.1.8"; exit 0; fi\n'


@needs_llvm
@needs_nvidia
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernel_assembles(architecture: str) -> None:
    """bf16 arithmetic is widened where the chip lacks it, libdevice is linked, and ptxas takes the result."""
    ptx = compile_to_ptx(parse_ir(KERNEL), architecture)
    assert f".target {architecture}" in ptx
    assert ".visible .entry tanh(" in ptx
    assert ".reqntid 128, 1, 1" in ptx
    assert ".func" not in ptx
    assert len(re.findall(r"ld\.global\.nc", ptx)) == 1
    assembly = assemble(ptx, architecture)
    assert assembly.cubin[:4] == b"\x7fELF"
    assert assembly.registers > 0
    assert assembly.spill_bytes == assembly.shared_bytes == 0


@needs_llvm
def test_xla_options_reach_the_backend() -> None:
    """f32 division is div.full, within two units in the last place, as in XLA; LLVM's own choice would be div.rn."""
    ptx = compile_to_ptx(parse_ir(PLAIN.format(name="f")), "sm_90")
    assert "div.full.f32" in ptx
    assert "div.rn" not in ptx


DIVIDED = """
llvm.func @divided(%p: !llvm.ptr) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
  %c10 = llvm.mlir.constant(10 : i32) : i32
  %c12 = llvm.mlir.constant(12 : i32) : i32
  %c128 = llvm.mlir.constant(128 : i32) : i32
  %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
  %b = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 360> : i32
  %0 = llvm.mul %b, %c128 : i32
  %i = llvm.add %0, %t : i32
  %q = llvm.udiv %i, %c10 : i32
  %r = llvm.urem %i, %c10 : i32
  %1 = llvm.mul %r, %c12 : i32
  %j = llvm.add %1, %q : i32
  %a = llvm.getelementptr inbounds %p[%j] : (!llvm.ptr, i32) -> !llvm.ptr, f32
  %x = llvm.load %a : !llvm.ptr -> f32
  llvm.store %x, %p : f32, !llvm.ptr
  llvm.return
}
"""


@needs_llvm
def test_indices_are_divided_in_32_bits() -> None:
    """46080 elements fit in 16 bits, but nothing of the index is computed in 16; it has no sign, and its address is one sum."""
    ptx = compile_to_ptx(parse_ir(DIVIDED), "sm_90")
    assert ".reg .b16" not in ptx
    assert re.findall(r"mul\.wide\.\w+", ptx) == ["mul.wide.u32"]


@needs_steps
def test_ids_have_ranges_as_metadata() -> None:
    """Correlated value propagation looks at attributes only: of block ids it is told that there are fewer than 2^24."""
    both = DIVIDED + DIVIDED.replace("@divided", "@other").replace("128>", "64>").replace("128, 1, 1", "64, 1, 1")
    text = compile_to_llvm_ir(parse_ir(both), "sm_90")
    ids = re.findall(r"call (.*)i32 @llvm\.nvvm\.read\.ptx\.sreg\.(\w+)\.x\(\), !range (!\d+)", text)
    ranges = dict(re.findall(r"^(!\d+) = !\{i32 0, i32 (\d+)\}$", text, re.M))
    assert [(id, attribute.strip(), ranges[range]) for attribute, id, range in ids] == [
        ("tid", "", "128"),
        ("ctaid", "range(i32 0, 16777216)", "360"),
        ("tid", "", "64"),
        ("ctaid", "range(i32 0, 16777216)", "360"),
    ]
    assert "@sreg" not in text


@needs_llvm
@needs_steps
@needs_nvidia
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_steps_give_the_same_body(architecture: str, tmp_path: Path) -> None:
    """Four processes and one agree on every line but comments, and the intermediates are kept."""
    module = parse_ir(KERNEL)
    one, four = compile_to_ptx(module, architecture), compile_to_ptx_by_steps(module, architecture, tmp_path)

    def body(ptx: str) -> list[str]:
        lines = (re.sub(r"//.*", "", line).strip() for line in ptx.splitlines())
        return [line for line in lines if line]

    assert body(one) == body(four)
    kept = ["kernel-linked.ll", "kernel-opt.ll", "kernel.ll", "kernel.mlir", "kernel.ptx"]
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    assert "define ptx_kernel void @tanh" in (tmp_path / "kernel.ll").read_text()


@needs_llvm
@needs_nvidia
@needs_nvdisasm
def test_several_entries() -> None:
    """One text with two kernels: resources by kernel, instructions by kernel or together."""
    ptx = compile_to_ptx(parse_ir(PLAIN.format(name="f") + KERNEL), "sm_90")
    assembly = assemble(ptx, "sm_90")
    assert [entry.name for entry in assembly.entries] == ["f", "tanh"]
    assert assembly.registers == max(entry.registers for entry in assembly.entries)
    sass = disassemble(assembly.cubin)
    assert count_instructions(sass) == count_instructions(sass, "f") + count_instructions(sass, "tanh")
    assert 0 < count_instructions(sass, "f") < count_instructions(sass, "tanh")
    with pytest.raises(KeyError):
        count_instructions(sass, "g")


def test_nop_is_not_counted() -> None:
    """Padding is left out; a predicate in front does not hide an instruction."""
    sass = """
\t.section\t.text.f,"ax",@progbits
.text.f:
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/               @P0 EXIT ;
        /*0020*/              @!P1 BRA `(.L_x_0) ;
        /*0030*/              @UP0 UIADD3 UR4, UR4, 0x1, URZ ;
        /*0040*/                   NOP ;
        /*0050*/                   NOP;
"""
    assert count_instructions(sass, "f") == 4


def test_resources_are_read() -> None:
    """Spills of both kinds add up, and shared memory is found."""
    said = """ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 4224 bytes smem
"""
    (found,) = toolchain._resources(said, ["k", "other"])
    assert (found.registers, found.spill_bytes, found.shared_bytes) == (40, 20, 4224)


@needs_llvm
def test_unknown_chip() -> None:
    """mlir-opt answers 0 for a chip that it does not know."""
    with pytest.raises(ToolError, match="does not know the processor 'sm_999'"):
        compile_to_ptx(parse_ir(PLAIN.format(name="f")), "sm_999")


@needs_llvm
def test_missing_libdevice_function() -> None:
    """mlir-opt answers 0 when libdevice lacks what is called."""
    text = KERNEL.replace("__nv_tanhf", "__nv_nothing")
    with pytest.raises(ToolError, match="libdevice does not define __nv_nothing"):
        compile_to_ptx(parse_ir(text), "sm_90")


@needs_llvm
def test_call_of_an_undefined_function() -> None:
    """A function that no library has is a mistake of ours."""
    text = KERNEL.replace("__nv_tanhf", "mystery")
    with pytest.raises(InternalError, match="calls mystery, which nothing defines"):
        compile_to_ptx(parse_ir(text), "sm_90")


@needs_llvm
def test_no_kernel() -> None:
    """Without nvvm.kernel LLVM makes a device function, without a word."""
    text = PLAIN.format(name="f").replace("attributes {nvvm.kernel} ", "")
    with pytest.raises(InternalError, match=r"no function with nvvm.kernel"):
        compile_to_ptx(parse_ir(text), "sm_90")


def test_missing_libdevice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable names a file that is not there: nothing else is tried."""
    monkeypatch.setenv("XLA_EMITTERS_LIBDEVICE", "/nowhere/libdevice.10.bc")
    with pytest.raises(ToolError, match="libdevice was not found") as raised:
        find_tool("libdevice")
    assert "XLA_EMITTERS_LIBDEVICE=/nowhere" in raised.value.details[0]
    assert raised.value.exit_code == 4
    assert "pip install" in raised.value.help


def test_missing_tool_says_where_it_looked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchain, "_places", lambda row: [f"{row.name}-22", row.name])
    with pytest.raises(ToolError, match="llc was not found") as raised:
        find_tool("llc")
    assert raised.value.details == ("looked at: llc-22, llc",)
    assert "apt-get install" in raised.value.help
    assert "XLA_EMITTERS_LLC" in raised.value.help


def test_wrong_major_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Debian's plain llc is version 14."""
    path = fake(tmp_path, "mlir-opt", 'echo "Debian LLVM version 14.0.6"')
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", path)
    with pytest.raises(ToolError, match=r"mlir-opt is of version 14\.0\.6, and 22 is needed") as raised:
        compile_to_ptx(parse_ir(PLAIN.format(name="f")), "sm_90")
    assert "apt-get install mlir-22-tools llvm-22" in raised.value.help


def test_version_is_asked_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And again when the file has changed."""
    log = tmp_path / "log"
    path = fake(tmp_path, "llc", f'echo asked >> {log}\necho "LLVM version 22.1.0"')
    monkeypatch.setenv("XLA_EMITTERS_LLC", path)
    assert find_tool("llc").version == find_tool("llc").version == "22.1.0"
    assert log.read_text().count("asked") == 1
    os.utime(path, ns=(1, 1))
    find_tool("llc")
    assert log.read_text().count("asked") == 2


def test_hanging_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = fake(tmp_path, "mlir-opt", SAYS_22 + "exec sleep 60")
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", path)
    with pytest.raises(ToolError, match=r"mlir-opt did not end within 0\.3 s") as raised:
        compile_to_ptx(parse_ir(PLAIN.format(name="f")), "sm_90", timeout_seconds=0.3)
    assert raised.value.details[-1].startswith(f"command: {path} --gpu-module-to-binary=format=isa")


def test_failing_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the tool said about the error, the exit code and the command are in the message."""
    path = fake(tmp_path, "mlir-opt", SAYS_22 + 'echo "warming up" >&2; echo "<stdin>:3:1: error: bad op" >&2; exit 7')
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", path)
    with pytest.raises(ToolError, match=r"mlir-opt failed \(exit 7\): <stdin>:3:1: error: bad op") as raised:
        compile_to_ptx(parse_ir(PLAIN.format(name="f")), "sm_90")
    assert raised.value.details[0] == "warming up"
    assert raised.value.details[-1].startswith("command: ")


def test_silent_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Exit code 0 and no PTX."""
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", fake(tmp_path, "mlir-opt", SAYS_22 + "exec cat > /dev/null"))
    with pytest.raises(ToolError, match="made no PTX for sm_90"):
        compile_to_ptx(parse_ir(PLAIN.format(name="f")), "sm_90")


def test_tool_that_cannot_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "ptxas"
    path.write_bytes(b"\x7fELF not really")
    path.chmod(0o755)
    monkeypatch.setenv("XLA_EMITTERS_PTXAS", str(path))
    with pytest.raises(ToolError, match="ptxas could not be started"):
        assemble(".version 8.6", "sm_90")


@needs_nvidia
def test_ptxas_refuses() -> None:
    with pytest.raises(ToolError, match=r"ptxas failed \(exit 255\).*Missing \.version directive"):
        assemble("nonsense", "sm_90")


def test_strings_survive_the_way_through_mlir() -> None:
    """Quotes, backslashes, tabs and newlines of a PTX text are escaped in gpu.binary."""
    printed = r'gpu.binary @k [#gpu.object<#t, assembly = "a\22b\\c\0A\09d">]'
    assert toolchain._assembly_of(printed) == 'a"b\\c\n\td'
    assert toolchain._assembly_of("module {}") == ""
    assert toolchain._escape('a"b\\c\né') == r"a\22b\5Cc\0A\C3\A9"
