"""PTX by one process and by four, of one kernel and of several, and every way in which LLVM's tools can fail."""

import re
from collections.abc import Callable
from functools import partialmethod
from pathlib import Path

import pytest
from sass_counts import count_instructions
from tools_here import SAYS_22, fake_tool, here, needs
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.errors import InternalError, ToolError, UsageError
from xla_emitters.lowering.convert_ids_to_calls import ConvertIdsToCallsPass
from xla_emitters.lowering.llvm_ir.spelling import escaped
from xla_emitters.lowering.toolchain import toolchain, tools
from xla_emitters.lowering.toolchain.machine_code import assemble, disassemble
from xla_emitters.lowering.toolchain.toolchain import compile_to_llvm_ir, compile_to_ptx, compile_to_ptx_by_steps
from xla_emitters.rewrite.id_functions import declared_by
from xla_emitters.settings import Toolchain
from xla_emitters.support.processes import RunningTool

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")


needs_llvm = needs("mlir-opt")
needs_steps = needs("mlir-translate", "llvm-link", "opt", "llc")
needs_nvidia = needs("ptxas", "libdevice")
needs_nvdisasm = needs("nvdisasm")

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


def ready(text: str) -> ModuleOp:
    """A module as the last pass leaves it."""
    module = parse_ir(text)
    ConvertIdsToCallsPass().apply(make_context(), module)
    module.verify()
    return module


@needs_llvm
@needs_nvidia
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernel_assembles(architecture: str) -> None:
    """bf16 arithmetic is widened where the chip lacks it, libdevice is linked, and ptxas takes the result."""
    ptx = compile_to_ptx(ready(KERNEL), architecture, here())
    assert f".target {architecture}" in ptx
    assert ".visible .entry tanh(" in ptx
    assert ".reqntid 128, 1, 1" in ptx
    assert ".func" not in ptx
    assert len(re.findall(r"ld\.global\.nc", ptx)) == 1
    assembly = assemble(ptx, architecture, here())
    assert assembly.cubin[:4] == b"\x7fELF"
    assert assembly.registers > 0
    assert assembly.spill_bytes == assembly.shared_bytes == 0


@needs_llvm
def test_xla_options_reach_the_backend() -> None:
    """f32 division is div.full, within two units in the last place, as in XLA; LLVM's own choice would be div.rn."""
    ptx = compile_to_ptx(parse_ir(PLAIN.format(name="f")), "sm_90", here())
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
    ptx = compile_to_ptx(ready(DIVIDED), "sm_90", here())
    assert ".reg .b16" not in ptx
    assert re.findall(r"mul\.wide\.\w+", ptx) == ["mul.wide.u32"]


@needs_steps
def test_ids_have_ranges_as_metadata() -> None:
    """Correlated value propagation looks at attributes only: for block ids they say that there are fewer than 2^24."""
    both = DIVIDED + DIVIDED.replace("@divided", "@other").replace("128>", "64>").replace("128, 1, 1", "64, 1, 1")
    text = compile_to_llvm_ir(ready(both), "sm_90", here())
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
    module = ready(KERNEL)
    one, four = (
        compile_to_ptx(module, architecture, here()),
        compile_to_ptx_by_steps(module, architecture, here(), tmp_path),
    )

    def body(ptx: str) -> list[str]:
        lines = (re.sub(r"//.*", "", line).strip() for line in ptx.splitlines())
        return [line for line in lines if line]

    assert body(one) == body(four)
    kept = ["kernel-linked.ll", "kernel-opt.ll", "kernel.ll", "kernel.mlir", "kernel.ptx"]
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    assert "define ptx_kernel void @tanh" in (tmp_path / "kernel.ll").read_text()


@needs_llvm
def test_every_kernel_has_its_entry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A backend that leaves one of two kernels out is not believed, whatever else is in its answer."""
    whole = compile_to_ptx(ready(PLAIN.format(name="f") + PLAIN.format(name="g")), "sm_90", here())
    f, g = (whole.index(f".visible .entry {name}(") for name in "fg")
    lacking = tmp_path / "answer"
    lacking.write_text(f'assembly = "{escaped((whole[:f] + whole[g:]).encode())}"')
    monkeypatch.setenv(
        "XLA_EMITTERS_MLIR_OPT", fake_tool(tmp_path, "mlir-opt", f"{SAYS_22}cat > /dev/null; cat {lacking}")
    )
    assert ".visible .entry g(" in compile_to_ptx(ready(PLAIN.format(name="g")), "sm_90", here())
    with pytest.raises(InternalError) as raised:
        compile_to_ptx(ready(PLAIN.format(name="f") + PLAIN.format(name="g")), "sm_90", here())
    assert raised.value.message == "the PTX lacks an entry: f"


@needs_llvm
@needs_steps
@needs_nvidia
@needs_nvdisasm
@pytest.mark.parametrize("lowering", [compile_to_ptx, compile_to_ptx_by_steps])
def test_several_entries(lowering: Callable[[ModuleOp, str, Toolchain], str]) -> None:
    """One text with three kernels, of which two share the functions that read ids: resources and instructions by kernel."""
    module = ready(PLAIN.format(name="f") + KERNEL + DIVIDED)
    shared = [op for op in module.body.ops if declared_by(op) is not None]
    assert [op.sym_name.data for op in shared] == ["sreg.tid.x.0.128", "sreg.ctaid.x.0.360"]
    ptx = lowering(module, "sm_90", here())
    assert len(re.findall(r"^\.version", ptx, re.M)) == 1
    assert re.findall(r"^\.visible \.entry (\w+)\(", ptx, re.M) == ["f", "tanh", "divided"]
    assembly = assemble(ptx, "sm_90", here())
    assert [entry.name for entry in assembly.entries] == ["f", "tanh", "divided"]
    assert assembly.registers == max(entry.registers for entry in assembly.entries)
    sass = disassemble(assembly.cubin, here())
    assert count_instructions(sass) == sum(count_instructions(sass, name) for name in ("f", "tanh", "divided"))
    assert 0 < count_instructions(sass, "f") < count_instructions(sass, "tanh")
    with pytest.raises(KeyError):
        count_instructions(sass, "g")


@needs_llvm
def test_unknown_chip() -> None:
    """mlir-opt answers 0 for a chip that it does not know."""
    with pytest.raises(ToolError, match="does not know the processor 'sm_999'"):
        compile_to_ptx(parse_ir(PLAIN.format(name="f")), "sm_999", here())


@needs_llvm
@pytest.mark.parametrize(
    ("architecture", "version"),
    [("sm_75", "8.6"), ("sm_90a", "8.6"), ("sm_100", "8.6"), ("sm_103", "8.8"), ("sm_120", "8.7"), ("sm_121", "8.8")],
)
def test_ptx_is_of_the_first_version_that_drivers_and_the_chip_know(architecture: str, version: str) -> None:
    assert f".version {version}\n" in compile_to_ptx(parse_ir(PLAIN.format(name="f")), architecture, here())


@needs_llvm
def test_missing_libdevice_function() -> None:
    """mlir-opt answers 0 when libdevice lacks what is called."""
    text = KERNEL.replace("__nv_tanhf", "__nv_nothing")
    with pytest.raises(ToolError, match="libdevice does not define __nv_nothing"):
        compile_to_ptx(parse_ir(text), "sm_90", here())


@needs_llvm
def test_call_of_an_undefined_function() -> None:
    """A function that no library has is a mistake of ours."""
    text = KERNEL.replace("__nv_tanhf", "mystery")
    with pytest.raises(InternalError, match="calls mystery, which nothing defines"):
        compile_to_ptx(parse_ir(text), "sm_90", here())


@needs_llvm
def test_no_kernel() -> None:
    """Without nvvm.kernel LLVM makes a device function, without a word."""
    text = PLAIN.format(name="f").replace("attributes {nvvm.kernel} ", "")
    with pytest.raises(InternalError, match=r"no function with nvvm.kernel"):
        compile_to_ptx(parse_ir(text), "sm_90", here())


def test_hanging_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = fake_tool(tmp_path, "mlir-opt", SAYS_22 + "exec sleep 60")
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", path)
    monkeypatch.setattr(RunningTool, "finish", partialmethod(RunningTool.finish, timeout_seconds=0.3))
    with pytest.raises(ToolError, match=r"mlir-opt did not end within 0\.3 s") as raised:
        compile_to_ptx(parse_ir(PLAIN.format(name="f")), "sm_90", here())
    assert raised.value.details[-1].startswith(f"command: {path} --gpu-module-to-binary=format=isa")


def test_failing_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the tool said about the error, the exit code and the command are in the message."""
    path = fake_tool(
        tmp_path, "mlir-opt", SAYS_22 + 'echo "warming up" >&2; echo "<stdin>:3:1: error: bad op" >&2; exit 7'
    )
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", path)
    with pytest.raises(ToolError, match=r"mlir-opt failed \(exit 7\): <stdin>:3:1: error: bad op") as raised:
        compile_to_ptx(parse_ir(PLAIN.format(name="f")), "sm_90", here())
    assert raised.value.details[0] == "warming up"
    assert raised.value.details[-1].startswith("command: ")


def test_silent_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Exit code 0 and no PTX."""
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", fake_tool(tmp_path, "mlir-opt", SAYS_22 + "exec cat > /dev/null"))
    with pytest.raises(ToolError, match="made no PTX for sm_90"):
        compile_to_ptx(parse_ir(PLAIN.format(name="f")), "sm_90", here())


@pytest.mark.parametrize(
    ("asked", "found", "way", "reason"),
    [
        ("auto", ("mlir-opt", "llvmlite"), "llvmlite", "llvmlite is here"),
        ("auto", ("llvmlite",), "llvmlite", "llvmlite is here"),
        ("auto", ("mlir-opt",), "mlir-opt", "llvmlite was not found; mlir-opt is here"),
        ("llvmlite", ("mlir-opt", "llvmlite"), "llvmlite", "llvmlite is here"),
        ("mlir-opt", ("mlir-opt", "llvmlite"), "mlir-opt", "mlir-opt is here"),
        ("steps", ("mlir-translate", "llvm-link", "opt", "llc"), "steps", "mlir-translate is here"),
        ("auto", (), None, "llvmlite was not found"),
        ("llvmlite", ("mlir-opt",), None, "llvmlite was not found"),
        ("mlir-opt", ("llvmlite",), None, "mlir-opt was not found"),
        ("steps", ("mlir-opt", "llvmlite"), None, "mlir-translate was not found"),
    ],
)
def test_the_way_that_is_taken(
    asked: str, found: tuple[str, ...], way: str | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the variable names, or what is found; no other way replaces one that was asked for."""

    def find(name: str, toolchain: Toolchain) -> str:
        if name not in found:
            raise ToolError(f"{name} was not found", help=f"get {name}")
        return name

    monkeypatch.setattr(tools, "find_tool", find)
    toolchain = Toolchain(asked)
    if way is not None:
        choice = tools.choose_way(toolchain)
        assert (choice.way, choice.reason) == (way, reason)
        return
    with pytest.raises(ToolError) as raised:
        tools.choose_way(toolchain)
    assert raised.value.message == reason
    if asked == "auto":
        assert raised.value.help == "get llvmlite; or: get mlir-opt"


@pytest.mark.parametrize("asked", ["auto", ""])
def test_a_tool_that_the_user_names_is_not_passed_over(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", "/nowhere/mlir-opt")
    monkeypatch.setenv("XLA_EMITTERS_TOOLCHAIN", asked)
    with pytest.raises(ToolError, match="mlir-opt was not found"):
        tools.choose_way(here())


def test_a_way_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_EMITTERS_TOOLCHAIN", "gcc")
    with pytest.raises(UsageError, match="XLA_EMITTERS_TOOLCHAIN is 'gcc'") as raised:
        compile_to_ptx(parse_ir(PLAIN.format(name="f")), "sm_90", here())
    assert raised.value.help == "one of: auto, llvmlite, mlir-opt, steps"
    assert raised.value.exit_code == 2


@needs("mlir-opt", "llvmlite", "libdevice", "llc", "opt", "llvm-link", "mlir-translate")
def test_the_cache_knows_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    found: set[str] = set()
    for way in tools.PtxWay:
        monkeypatch.setenv("XLA_EMITTERS_TOOLCHAIN", way)
        found.add(tools.tools_fingerprint(here()))
    assert len(found) == 3
    monkeypatch.setenv("XLA_EMITTERS_TOOLCHAIN", "auto")
    assert tools.tools_fingerprint(here()) in found


def test_strings_survive_the_way_through_mlir() -> None:
    """Quotes, backslashes, tabs and newlines of a PTX text are escaped in gpu.binary."""
    printed = r'gpu.binary @k [#gpu.object<#t, assembly = "a\22b\\c\0A\09d">]'
    assert toolchain._assembly_of(printed) == 'a"b\\c\n\td'
    assert toolchain._assembly_of("module {}") == ""
    assert escaped('a"b\\c\né'.encode()) == r"a\22b\5Cc\0A\C3\A9"
