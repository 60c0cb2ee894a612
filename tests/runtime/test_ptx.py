"""The last stage: PTX that ptxas accepts for every architecture, and that is no worse than XLA's for GELU."""

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from long_lists import but_long, every
from sass_counts import count_instructions
from tools_here import PTX, SASS, STEPS, here, needs

from xla_emitters.lowering.toolchain.machine_code import Assembly, assemble, disassemble
from xla_emitters.pipelines.compiler import compile, keep_intermediates
from xla_emitters.program import Program
from xla_emitters.tools.main import main

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.hlo"))
GELU = next(path for path in EXAMPLES if path.stem == "gelu")
GELU_BY_XLA = Path(__file__).parents[1] / "unit" / "lowering" / "gelu_by_xla.ptx"
CORPUS = Path(__file__).parents[1] / "corpus"
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")


@cache
def compiled(path: Path, target: str) -> Program:
    return compile(path, target=target, record="none")


def body(ptx: str) -> list[str]:
    """PTX without comments and blank lines."""
    lines = (re.sub(r"//.*", "", line).strip() for line in ptx.splitlines())
    return [line for line in lines if line]


ON_CHIPS = [(path, architecture) for path in EXAMPLES for architecture in ARCHITECTURES]


# The oldest and the newest, GELU for all: `make corpus` assembles each fusion for all four.
@needs(*SASS)
@pytest.mark.parametrize(
    ("path", "architecture"),
    but_long(ON_CHIPS, [(path, chip) for path, chip in ON_CHIPS if path != GELU and chip in ARCHITECTURES[1:3]]),
    ids=lambda value: value if isinstance(value, str) else value.stem,
)
def test_ptxas_takes_every_example(path: Path, architecture: str) -> None:
    """Nothing spills, shared memory is what the program says, and the entry is the kernel that it names."""
    program = compiled(path, architecture)
    for kernel in program.kernels:
        assert f".target {architecture}" in kernel.ptx
        assert ".extern" not in kernel.ptx
        (entry,) = (found for found in assemble(kernel.ptx, architecture, here()).entries if found.name == kernel.name)
        assert entry.name == kernel.name
        assert entry.registers > 0
        assert (entry.spill_bytes, entry.shared_bytes) == (0, kernel.shared_bytes)
        threads = ", ".join(str(extent) for extent in kernel.launch.block)
        assert f".reqntid {threads}" in kernel.ptx


ELEMENT_CODE = sorted((Path(__file__).parents[1] / "filecheck" / "emitters").glob("*/*.hlo"))


@needs(*SASS)
@pytest.mark.parametrize("path", every(2, ELEMENT_CODE[::4]), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_ptxas_takes_the_code_of_ops(path: Path) -> None:
    """One file an op: branches, loops, calls and shared memory come out of the passes as PTX, and nothing spills.

    Every fourth of them: `make corpus` and `make fuzz` assemble all that they compile.
    """
    if "RUN: not " in path.read_text():
        return
    program = compiled(path, "sm_75")
    assert ".extern" not in program.code
    found = {
        (entry.name, entry.spill_bytes, entry.shared_bytes) for entry in assemble(program.code, "sm_75", here()).entries
    }
    assert found == {(kernel.name, 0, kernel.shared_bytes) for kernel in program.kernels}


TRANSPOSES = (
    "tr_210.2775965b",
    "tr_021_bfloat16.13357f20",
    "tr_2d_int8.c40be876",
    "tr_2d_int4.1cc42bfc",
    "tr_multi_out.72b18c97",
)


@needs(*PTX)
@pytest.mark.parametrize("name", TRANSPOSES)
def test_transposes_make_no_more_accesses_than_xlas(name: str) -> None:
    """To global memory and to shared memory, reading and writing: how many instructions, and none is narrower than XLA's narrowest."""
    file = f"transpose/{name}.hlo"
    theirs = json.loads((CORPUS / "xla.json").read_text())["files"][file]["kernels"][0]["memory_ops"]
    (kernel,) = compiled(CORPUS / file, "h200").kernels
    ours = Counter(line.split()[0] for line in body(kernel.ptx) if re.match(r"(ld|st)\.(global|shared)", line))
    for kind in ("ld.global", "st.global", "ld.shared", "st.shared"):
        made = {access: count for access, count in ours.items() if access.startswith(kind)}
        given = {access: count for access, count in theirs.items() if access.startswith(kind)}
        assert sum(made.values()) <= sum(given.values())
        assert min(map(access_bytes, made)) >= min(map(access_bytes, given))


@needs(*SASS)
def test_neighbours_are_added_to_memory_by_one_instruction() -> None:
    """Four f32 on sm_90; since the old values are not used it is a reduction."""
    path = next(path for path in ELEMENT_CODE if path.stem == "vectors_f32_add")
    (kernel,) = compiled(path, "h200").kernels
    sass = disassemble(assemble(kernel.ptx, "sm_90", here()).cubin, here())
    assert re.findall(r"\b(?:ATOM|RED)G?\.\S*ADD\.(\w+)", sass) == ["F32x4"]


def measured(ptx: str, architecture: str) -> tuple[Assembly, int, str]:
    """(what ptxas says, SASS instructions of the whole text without NOP, SASS)."""
    assembly = assemble(ptx, architecture, here())
    sass = disassemble(assembly.cubin, here())
    return assembly, count_instructions(sass), sass


@needs(*SASS)
def test_gelu_is_no_worse_than_xlas() -> None:
    """XLA's own PTX for the same fusion, target sm_90a, through the same ptxas: registers and SASS instructions are the bound."""
    (kernel,) = compiled(GELU, "h200").kernels
    ours, instructions, sass = measured(kernel.ptx, "sm_90")
    theirs, their_instructions, _ = measured(GELU_BY_XLA.read_text(), "sm_90a")
    assert ours.spill_bytes == theirs.spill_bytes == 0
    assert ours.registers <= theirs.registers
    assert instructions <= their_instructions
    for access in ("LDG", "STG"):
        (found,) = re.findall(rf"\b{access}\.\S+", sass)
        assert ".64" in found


@needs(*STEPS)
@pytest.mark.parametrize("path", every(3, EXAMPLES), ids=lambda path: path.stem)
def test_four_processes_give_the_body_that_one_gives(path: Path, tmp_path: Path) -> None:
    program = compile(path)
    keep_intermediates(program, tmp_path, here())
    for kernel in program.kernels:
        assert body((tmp_path / kernel.name / "kernel.ptx").read_text()) == body(kernel.ptx)


@needs(*STEPS)
def test_intermediates_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`compile --keep-intermediates` prints what it always prints and leaves every file of the second way."""
    assert main(["compile", str(GELU), "--keep-intermediates", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert body(out) == body(compiled(GELU, "h200").kernels[0].ptx)
    assert err == ""
    (directory,) = tmp_path.iterdir()
    assert directory.name == "fusion"
    kept = {path.name: path.read_text() for path in directory.iterdir()}
    assert sorted(kept) == ["kernel-linked.ll", "kernel-opt.ll", "kernel.ll", "kernel.mlir", "kernel.ptx"]
    assert "define ptx_kernel void @fusion(" in kept["kernel.ll"]
    assert "define internal float @__nv_tanhf" in kept["kernel-linked.ll"]
    assert "@__nv_tanhf" not in kept["kernel-opt.ll"]
    assert body(kept["kernel.ptx"]) == body(out)


@needs(*STEPS)
def test_the_stage_llvm_is_optimised_llvm_ir(capsys: pytest.CaptureFixture[str]) -> None:
    """libdevice is inlined, loads are vectors and known not to change, ids have ranges: attributes suit 32-bit divisions."""
    assert main(["compile", str(GELU), "--stage", "llvm"]) == 0
    text = capsys.readouterr().out
    assert "define ptx_kernel void @fusion(ptr noalias" in text
    assert "call float @__nv_tanhf" not in text
    assert re.search(r"load <4 x bfloat>, ptr .*!invariant.load", text)
    assert len(re.findall(r"store <4 x bfloat>", text)) == 1
    for register, extent in (("tid", 128), ("ctaid", 24576)):
        (metadata,) = re.findall(rf"@llvm\.nvvm\.read\.ptx\.sreg\.{register}\.x\(\).*!range (!\d+)", text)
        assert f"{metadata} = !{{i32 0, i32 {extent}}}" in text
    assert f"range(i32 0, {2**24})" in text


def access_bytes(instruction: str) -> int:
    """Bytes that a PTX load or store moves.

    >>> access_bytes("ld.global.nc.v2.b32")
    8
    """
    found = re.search(r"(?:\.v(\d))?\.[bfus](\d+)$", instruction)
    assert found, instruction
    return int(found[1] or 1) * int(found[2]) // 8


@needs(*PTX)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_bytes_are_moved_together(architecture: str) -> None:
    """pred[6,512,4096]: one-byte elements, a thread's all in one access, or in accesses of 16 bytes where it has more."""
    path = next(path for path in EXAMPLES if path.stem == "not_pred")
    (kernel,) = compiled(path, architecture).kernels
    bytes_per_thread = kernel.arguments[0].bytes // (kernel.launch.blocks * kernel.launch.threads)
    assert bytes_per_thread >= 4
    accesses = [line.split()[0] for line in body(kernel.ptx) if re.match(r"(ld|st)\.global", line)]
    for kind in ("ld", "st"):
        widths = [access_bytes(access) for access in accesses if access.startswith(kind)]
        assert sum(widths) == bytes_per_thread, accesses
        assert min(widths) >= min(bytes_per_thread, 16), accesses


@needs(*PTX)
def test_a_grid_that_overhangs_still_moves_sixteen_bytes_at_once() -> None:
    """f32[20,40,300] on an a6000: 469 blocks of 512 elements, of which the last is half empty; one check, then vectors."""
    path = next(path for path in EXAMPLES if path.stem == "negate_20x40x300")
    lines = body(compiled(path, "a6000").kernels[0].ptx)
    accesses = [line.split()[0] for line in lines if re.match(r"(ld|st)\.global", line)]
    assert [access_bytes(access) for access in accesses] == [16, 16]
    assert sum(line.startswith("setp") for line in lines) == 1


@needs(*PTX)
def test_a_bounds_check_guards_the_last_block() -> None:
    """s8[1000003] has an odd count: the kernel compares and branches before it touches memory."""
    path = next(path for path in EXAMPLES if path.stem == "not_s8")
    lines = body(compiled(path, "h200").kernels[0].ptx)
    compare = next(number for number, line in enumerate(lines) if line.startswith("setp"))
    branch = next(number for number, line in enumerate(lines) if re.match(r"@%p\d+ bra", line))
    access = next(number for number, line in enumerate(lines) if re.match(r"(ld|st)\.global", line))
    assert compare < branch < access
