"""Faults behind the LLVM dialect, planted in the PTX, in the text that LLVM is given, and in what its passes return: `check` finds each at
the stage where it is, and `bisect` says that LLVM is to blame, and between which stages.

A fault must change a result's bits on these inputs. Where a kernel calls libdevice (SILU's exponential) it must leave the ops' bounds.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from long_lists import every

from xla_emitters.explore.bisect.bisect import bisect
from xla_emitters.explore.check.check import check
from xla_emitters.explore.check.verdict import Verdict
from xla_emitters.lowering.toolchain import toolchain
from xla_emitters.tools.bisect_verb import culprit_lines

CORPUS = Path(__file__).parents[1] / "corpus"
GELU = "loop/act_gelu_f32.7a8ac9a5.hlo"
SILU = "loop/act_silu_bfloat16.14f74e0d.hlo"
ROWS = "reduction/red_row_float32.b87f7b91.hlo"
NARROW = "reduction/red_row_bfloat16.aec05601.hlo"
TRANSPOSE = "transpose/attn_float32.2063fe71.hlo"
SCATTER = "scatter/scatter_add_float32.2b0cc0af.hlo"

SUMS = r"add\.rn\.f32\s+%r13, %r10, %r11;\s*add\.rn\.f32\s+%r14, %r12, %r13"
UPDATE = r"(?:atom|red)(?:\.\w+)*\.global(?:\.\w+)*\.add\.f32\s+(?:%r\d+, )?(\[[^\]]*\]), (%r\d+);"
# (file, what is wrong, pattern, replacement) in the PTX
OF_PTX = (
    (GELU, "predicate", r"setp\.le", "setp.ge"),
    (GELU, "the other predicate", r"setp\.ge\.f32", "setp.lt.f32"),
    (GELU, "operands of a selection", r"(selp\.f32\s+%r\d+), (\S+), (\S+), (%p\d+)", r"\1, \3, \2, \4"),
    (GELU, "constant", r"0f3F4C422A", "0f3F4C4230"),
    (GELU, "sign of a constant", r"0f3D372713", "0fBD372713"),
    (GELU, "rounding of a product", r"mul\.rn\.f32", "mul.rz.f32"),
    (GELU, "rounding of a sum", r"add\.rn\.f32", "add.rp.f32"),
    (GELU, "rounding of a fused product", r"fma\.rn\.f32(\s+%r23)", r"fma.rm.f32\1"),
    (
        GELU,
        "product and sum not fused",
        r"fma\.rn\.f32\s+(%r23), (%r\d+), (\S+), (\S+);",
        r"mul.rn.f32 \1, \2, \3; add.rn.f32 \1, \1, \4;",
    ),
    (GELU, "quotient upside down", r"(div\.full\.f32\s+%r\d+), (%r\d+), (%r\d+);", r"\1, \3, \2;"),
    (GELU, "no magnitude", r"abs\.f32\s+(%r\d+), (%r\d+);", r"mov.b32 \1, \2;"),
    (GELU, "lanes of the load", r"\{%r6, %r7, %r8, %r9\}", "{%r7, %r6, %r8, %r9}"),
    (GELU, "lanes of the store", r"\{%r33, %r57, %r81, %r105\}", "{%r33, %r57, %r105, %r81}"),
    (GELU, "lane stored twice", r"\{%r33, %r57, %r81, %r105\}", "{%r33, %r57, %r81, %r81}"),
    (GELU, "misaligned store", r"\[%rd7\]", "[%rd7+4]"),
    (GELU, "store of a neighbour", r"\[%rd7\]", "[%rd7+16]"),
    (GELU, "load of a neighbour", r"\[%rd6\]", "[%rd6+16]"),
    (GELU, "address beyond the array", r"shl\.b32\s+%r4, %r2, 9", "shl.b32 %r4, %r2, 10"),
    (GELU, "address scaled by 8", r"mul\.wide\.u32\s+%rd5, %r5, 4", "mul.wide.u32 %rd5, %r5, 8"),
    (GELU, "parameters exchanged", r"\[fusion_param_1\]", "[fusion_param_0]"),
    (GELU, "wrong id", r"%tid\.x", "%ctaid.x"),
    (
        GELU,
        "denormals flushed on the way",
        r"add\.rn\.f32\s+(%r\d+), (%r\d+), 0f3F800000",
        r"add.rn.sat.f32 \1, \2, 0f3F800000",
    ),
    (GELU, "early end", r"add\.s64\s+%rd7", "@!%p3 ret; add.s64 %rd7"),
    (SILU, "type of a sum", r"add\.rn\.bf16", "add.rn.f16"),
    (NARROW, "rounding of a conversion", r"cvt\.rn\.bf16\.f32", "cvt.rz.bf16.f32"),
    (SILU, "other function", r"ex2\.approx", "lg2.approx"),
    (ROWS, "no barrier", r"bar\.sync\s+0;", ""),
    (ROWS, "barrier of some threads", r"bar\.sync\s+0;", "@%p1 bar.sync 0;"),
    (ROWS, "distance of an exchange", r"%r38, 8,|%r40, 8,", "%r40, 7,"),
    (ROWS, "clamp of an exchange", r"%r38, 16, 31", "%r38, 16, 15"),
    (ROWS, "members of an exchange", r"%r38, 16, 31, -1", "%r38, 16, 31, 65535"),
    (ROWS, "direction of an exchange", r"shfl\.sync\.down", "shfl.sync.up"),
    (ROWS, "neutral number", r"mov\.b32\s+%r59, 0f00000000", "mov.b32 %r59, 0f3F800000"),
    (ROWS, "guard negated", r"@%p3 bra", "@!%p3 bra"),
    (ROWS, "guard of a shared store", r"@%p1 bra", "@!%p1 bra"),
    (ROWS, "all warps read", r"setp\.gt\.u32\s+%p2, %r1, 7", "setp.gt.u32 %p2, %r1, 15"),
    (ROWS, "too little shared memory", r"shared_0\[32\]", "shared_0[28]"),
    (
        ROWS,
        "order of a sum",
        SUMS,
        "add.rn.f32 %r13, %r11, %r12; add.rn.f32 %r14, %r10, %r13",
    ),
    (TRANSPOSE, "no barrier", r"bar\.sync\s+0;", ""),
    (TRANSPOSE, "row of the tile", r"%r11, 33, %r5", "%r11, 32, %r5"),
    (TRANSPOSE, "offset in the tile", r"\[%rd11\+528\]", "[%rd11+532]"),
    (TRANSPOSE, "an element is not written to the tile", r"st\.shared\.b32\s+\[%rd9\+48\], %r17;", ""),
    (TRANSPOSE, "offset in the result", r"\[%rd13\+8192\]", "[%rd13+8196]"),
    (TRANSPOSE, "width of a load", r"ld\.global\.nc\.b32\s+(%r\d+)", r"ld.global.nc.u16 \1"),
    (
        SCATTER,
        "not atomic",
        UPDATE,
        r"st.global.b32 \1, \2;",
    ),
    (
        SCATTER,
        "other update",
        UPDATE,
        r"red.global.max.s32 \1, \2;",
    ),
)


# (file, what is wrong, pattern, replacement) in the text that our printer gives to LLVM
OF_PRINTER = (
    (GELU, "predicate", r"fcmp olt", "fcmp ogt"),
    (GELU, "operands of a division", r"fdiv float (%\S+), (%\S+)", r"fdiv float \2, \1"),
    (GELU, "constant", r"fmul float (%\S+), 0x3FE9884540000000", r"fmul float \1, 0x3FE9884560000000"),
    (GELU, "lane of a vector", r"(extractelement <4 x float> %\S+, i32) 0", r"\1 1"),
    (
        GELU,
        "alignment that does not hold",
        r"store <4 x float> (%\S+), ptr (%\S+)",
        r"store <4 x float> \1, ptr \2, align 64",
    ),
    (GELU, "address", r"getelementptr inbounds float, ptr (%\S+), i32", r"getelementptr inbounds i64, ptr \1, i32"),
    (SILU, "sign", r"fneg bfloat (%\S+)", r"fmul bfloat \1, 0xR3F80"),
    (ROWS, "no barrier", r"\n.*@llvm\.nvvm\.barrier\.cta\.sync\.aligned\.all\(i32 0\)", "\n"),
    (ROWS, "distance of an exchange", r"(@llvm\.nvvm\.shfl\.sync\.down\.f32\(.*i32) 16, (i32 31\))", r"\1 15, \2"),
    (TRANSPOSE, "size of the tile's row", r"mul i32 (%\S+), 33", r"mul i32 \1, 32"),
    (SCATTER, "other update", r"atomicrmw fadd", "atomicrmw fsub"),
)
# The same in what comes back from LLVM's passes: as if one of them, or libdevice, were wrong.
OF_PASSES = (
    (GELU, "predicate", r"fcmp olt", "fcmp uge"),
    (
        GELU,
        "operands of a selection",
        r"select i1 (%\S+), float (\S+), float (\S+)\n",
        r"select i1 \1, float \3, float \2\n",
    ),
    (
        GELU,
        "fused product",
        r"@llvm\.fma\.f32\(float (\S+), float (\S+), float (\S+)\)",
        r"@llvm.fma.f32(float \1, float \3, float \2)",
    ),
    (SILU, "instruction of libdevice", r"@llvm\.nvvm\.ex2\.approx\.f32\(", "@llvm.nvvm.lg2.approx.f("),
    (ROWS, "value of a phi", r"(phi float \[ \S+, \S+ \], \[) 0\.000000e\+00", r"\1 1.000000e+00"),
    (ROWS, "branches", r"br i1 (%\S+), label (%\S+), label (%\S+)", r"br i1 \1, label \3, label \2"),
    (TRANSPOSE, "offset", r"(getelementptr inbounds nuw i8, ptr (?:addrspace\(3\) )?%\S+, i64) 528", r"\1 532"),
)


class Fault(NamedTuple):
    """A row of the tables: text of a file that is replaced, at its first place."""

    file: str
    what: str
    pattern: str
    replacement: str


Plant = Callable[[str, str, str], None]


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Plant:
    """plant(where, pattern, replacement): the first match is replaced in the text "given" to LLVM, or in its "llvm_ir" or "ptx"."""
    given, finish = toolchain.print_llvm_ir, toolchain.PtxCompiler.finish_both

    def replaced(pattern: str, replacement: str, text: str) -> str:
        found, count = re.subn(pattern, replacement, text, count=1)
        assert count == 1, f"no {pattern} in:\n{text}"
        return found

    def planted(where: str, pattern: str, replacement: str) -> None:
        wrong = partial(replaced, pattern, replacement)

        def finished(self: Any, module: Any) -> toolchain.ToolTexts:
            texts = finish(self, module)
            return replace(texts, **{where: wrong(getattr(texts, where))})

        if where == "given":
            monkeypatch.setattr(toolchain, "print_llvm_ir", lambda module: wrong(given(module)))
        else:
            monkeypatch.setattr(toolchain.PtxCompiler, "finish_both", finished)

    return planted


def text_of(file: str) -> str:
    """A file of the corpus. GELU's has 4 million elements, of which the bounds take a second: an eighth of them are enough."""
    return (CORPUS / file).read_text().replace("f32[8,512,1024]", "f32[8,64,1024]")


def checked(file: str, stages: str, *, verify: bool = False) -> Verdict:
    """verify: the IR after every pass, which is the same with any fault"""
    return check(text_of(file), stages=stages, blocks=4, target="h100", verify=verify)


def named(fault: Fault) -> str:
    return f"{fault[0].split('/')[0]}: {fault[1]}"


def expect_found(fault: Fault, where: str, stages: str, stage: str, plant: Plant) -> None:
    file, what, pattern, replacement = fault
    plant(where, pattern, replacement)
    verdict = checked(file, stages)
    assert not verdict.ok, what
    assert verdict.summary.partition(":")[0].partition(" ")[0] == stage, verdict.summary


@pytest.mark.parametrize("fault", every(4, map(Fault._make, OF_PTX)), ids=named)
def test_a_fault_of_the_ptx_is_found(fault: Fault, plant: Plant) -> None:
    expect_found(fault, "ptx", "llvm,ptx", "ptx", plant)


@pytest.mark.parametrize("fault", every(3, map(Fault._make, OF_PRINTER)), ids=named)
def test_a_fault_of_the_printer_is_found(fault: Fault, plant: Plant) -> None:
    expect_found(fault, "given", "llvm-dialect,llvm,ptx", "llvm", plant)


@pytest.mark.parametrize("fault", every(3, map(Fault._make, OF_PASSES)), ids=named)
def test_a_fault_of_the_passes_is_found(fault: Fault, plant: Plant) -> None:
    expect_found(fault, "llvm_ir", "llvm-dialect,llvm,ptx", "llvm", plant)


@pytest.mark.parametrize("file", every(2, [GELU, SILU, ROWS, NARROW, TRANSPOSE, SCATTER]))
def test_without_a_fault_the_stage_is_right(file: str) -> None:
    verdict = checked(file, "llvm,ptx", verify=True)
    assert verdict.ok, verdict.summary


@pytest.mark.parametrize(
    ("where", "pattern", "replacement", "stage", "place", "said"),
    [
        # The selection that the predicate is for, in the PTX.
        ("ptx", r"setp\.le", "setp.ge", "ptx", "fusion.ptx:", "llvm.select"),
        ("given", "fcmp olt", "fcmp ogt", "llvm", "fusion.ll:", "between llvm-dialect and llvm)"),
    ],
)
def test_bisect_blames_llvm(
    where: str, pattern: str, replacement: str, stage: str, place: str, said: str, plant: Plant
) -> None:
    plant(where, pattern, replacement)
    culprit = bisect(text_of(GELU), blocks=2, target="h100").culprit
    assert (culprit.stage, culprit.name, culprit.kind) == (stage, "LLVM", "numbers")
    assert culprit.blame.place.startswith(place)
    assert said in culprit.blame.op + culprit_lines(culprit)[0]


def test_bisect_blames_llvm_in_a_module_of_several_kernels(plant: Plant) -> None:
    """The square of one kernel becomes a sum, in LLVM IR and so in no pass of ours."""
    plant("llvm_ir", "fmul float", "fadd float")
    culprit = bisect(Path(__file__).parents[2] / "examples" / "modules" / "loop.hlo", target="h100").culprit
    assert (culprit.kernel, culprit.stage, culprit.name, culprit.kind) == ("squared", "llvm", "LLVM", "numbers")
    assert culprit.blame.place.startswith("squared.ll:")
    assert "llvm.fadd" in culprit.blame.op
