"""Faults behind the LLVM dialect, planted in the PTX: `check` finds each, and names the stage; `bisect` says that LLVM is to blame.

A fault must change a result's bits on these inputs. Where a kernel calls libdevice (SILU's exponential) it must leave the ops' bounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from long_lists import every
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.explore.bisect.bisect import bisect
from xla_emitters.explore.check.check import check
from xla_emitters.explore.check.verdict import Verdict
from xla_emitters.lowering.toolchain import toolchain

CORPUS = Path(__file__).parents[1] / "corpus"
GELU = "loop/act_gelu_f32.7a8ac9a5.hlo"
SILU = "loop/act_silu_bfloat16.14f74e0d.hlo"
ROWS = "reduction/red_row_float32.b87f7b91.hlo"
NARROW = "reduction/red_row_bfloat16.aec05601.hlo"
TRANSPOSE = "transpose/attn_float32.2063fe71.hlo"
SCATTER = "scatter/scatter_add_float32.2b0cc0af.hlo"

SUMS = r"add\.rn\.f32\s+%r13, %r10, %r11;\s*add\.rn\.f32\s+%r14, %r12, %r13"
UPDATE = r"(?:atom|red)(?:\.\w+)*\.global(?:\.\w+)*\.add\.f32\s+(?:%r\d+, )?(\[[^\]]*\]), (%r\d+);"
# (file, what is wrong, pattern, replacement)
FAULTS = (
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
        r"add\.rn\.f32\s+%r13, %r10, %r11;\s*add\.rn\.f32\s+%r14, %r12, %r13",
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
        r"(?:atom|red)(?:\.\w+)*\.global(?:\.\w+)*\.add\.f32\s+(?:%r\d+, )?(\[[^\]]*\]), (%r\d+);",
        r"st.global.b32 \1, \2;",
    ),
    (
        SCATTER,
        "other update",
        r"((?:atom|red)(?:\.\w+)*\.global(?:\.\w+)*)\.add\.f32\s+(?:%r\d+, )?(\[[^\]]*\]), (%r\d+);",
        r"red.global.max.s32 \2, \3;",
    ),
)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """What makes PTX now replaces the first text of a pattern."""

    def plant(pattern: str, replacement: str) -> None:
        finish = toolchain.PtxCompiler.finish_both

        def wrong(self: toolchain.PtxCompiler, module: ModuleOp) -> toolchain.ToolTexts:
            texts = finish(self, module)
            text, count = re.subn(pattern, replacement, texts.ptx, count=1)
            assert count == 1, f"no {pattern} in:\n{text}"
            return replace(texts, ptx=text)

        monkeypatch.setattr(toolchain.PtxCompiler, "finish_both", wrong)

    return plant


def text_of(file: str) -> str:
    """A file of the corpus. GELU's has 4 million elements, of which the bounds take a second: an eighth of them are enough."""
    return (CORPUS / file).read_text().replace("f32[8,512,1024]", "f32[8,64,1024]")


def checked(file: str, *, verify: bool = False) -> Verdict:
    """verify: the IR after every pass, which is the same with any fault"""
    return check(text_of(file), stages="llvm,ptx", blocks=4, target="h100", verify=verify)


@pytest.mark.parametrize(
    ("file", "what", "pattern", "replacement"),
    every(4, FAULTS),
    ids=[f"{row[0].split('/')[0]}: {row[1]}" for row in FAULTS],
)
def test_a_planted_fault_is_found(
    file: str, what: str, pattern: str, replacement: str, planted: Callable[[str, str], None]
) -> None:
    planted(pattern, replacement)
    verdict = checked(file)
    assert not verdict.ok, what
    assert verdict.summary.startswith("ptx"), verdict.summary


@pytest.mark.parametrize("file", every(2, [GELU, SILU, ROWS, NARROW, TRANSPOSE, SCATTER]))
def test_without_a_fault_the_stage_is_right(file: str) -> None:
    verdict = checked(file, verify=True)
    assert verdict.ok, verdict.summary


def test_bisect_blames_llvm(planted: Callable[[str, str], None]) -> None:
    planted(r"setp\.le", "setp.ge")
    culprit = bisect(text_of(GELU), blocks=2, target="h100").culprit
    assert culprit is not None
    assert (culprit.stage, culprit.name, culprit.kind) == ("ptx", "LLVM", "numbers")
    # The selection that the predicate is for, in the PTX.
    assert culprit.blame.place.startswith("fusion.ptx:")
    assert "llvm.select" in culprit.blame.op


def test_bisect_blames_llvm_in_a_module_of_several_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The square of one kernel becomes a sum, in LLVM IR and so in no pass of ours."""
    finish = toolchain.PtxCompiler.finish_both

    def wrong(self: toolchain.PtxCompiler, module: ModuleOp) -> toolchain.ToolTexts:
        texts = finish(self, module)
        return replace(texts, llvm_ir=re.sub("fmul float", "fadd float", texts.llvm_ir, count=1))

    monkeypatch.setattr(toolchain.PtxCompiler, "finish_both", wrong)
    culprit = bisect(Path(__file__).parents[2] / "examples" / "modules" / "loop.hlo", target="h100").culprit
    assert culprit is not None
    assert (culprit.kernel, culprit.stage, culprit.name, culprit.kind) == ("squared", "llvm", "LLVM", "numbers")
    assert culprit.blame.place.startswith("squared.ll:")
    assert "llvm.fadd" in culprit.blame.op
