"""Faults behind the LLVM dialect, planted in the text that LLVM is given and in what its passes return: `check` finds each at the stage
`llvm`, and `bisect` says between which stages it is.

A fault must change a result's bits on these inputs. Where a kernel calls libdevice (SILU's exponential) it must leave the ops' bounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from long_lists import every
from runtime.test_ptx_faults import text_of
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.explore.bisect.bisect import bisect
from xla_emitters.explore.check.check import check
from xla_emitters.lowering.toolchain import toolchain
from xla_emitters.tools.bisect_verb import culprit_lines

GELU = "loop/act_gelu_f32.7a8ac9a5.hlo"
SILU = "loop/act_silu_bfloat16.14f74e0d.hlo"
ROWS = "reduction/red_row_float32.b87f7b91.hlo"
TRANSPOSE = "transpose/attn_float32.2063fe71.hlo"
SCATTER = "scatter/scatter_add_float32.2b0cc0af.hlo"

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


@pytest.fixture
def of_printer(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """What is given to LLVM now has the replacement in the place of the pattern's first match."""

    def plant(pattern: str, replacement: str) -> None:
        given = toolchain.print_llvm_ir

        def wrong(module: ModuleOp) -> str:
            return _replaced(pattern, replacement, given(module))

        monkeypatch.setattr(toolchain, "print_llvm_ir", wrong)

    return plant


@pytest.fixture
def of_passes(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """The same in what LLVM's passes return."""

    def plant(pattern: str, replacement: str) -> None:
        finish = toolchain.PtxCompiler.finish_both

        def wrong(self: toolchain.PtxCompiler, module: ModuleOp) -> toolchain.ToolTexts:
            texts = finish(self, module)
            return replace(texts, llvm_ir=_replaced(pattern, replacement, texts.llvm_ir))

        monkeypatch.setattr(toolchain.PtxCompiler, "finish_both", wrong)

    return plant


def _replaced(pattern: str, replacement: str, text: str) -> str:
    found, count = re.subn(pattern, replacement, text, count=1)
    assert count == 1, f"no {pattern} in:\n{text}"
    return found


def found_at(file: str) -> str:
    verdict = check(text_of(file), stages="llvm-dialect,llvm,ptx", blocks=4, target="h100", verify=False)
    assert not verdict.ok, verdict.summary
    return verdict.summary.partition(":")[0].partition(" ")[0]


@pytest.mark.parametrize(
    ("file", "what", "pattern", "replacement"), every(3, OF_PRINTER), ids=[row[1] for row in OF_PRINTER]
)
def test_a_fault_of_the_printer_is_found(
    file: str, what: str, pattern: str, replacement: str, of_printer: Callable[[str, str], None]
) -> None:
    of_printer(pattern, replacement)
    assert found_at(file) == "llvm", what


@pytest.mark.parametrize(
    ("file", "what", "pattern", "replacement"), every(3, OF_PASSES), ids=[row[1] for row in OF_PASSES]
)
def test_a_fault_of_the_passes_is_found(
    file: str, what: str, pattern: str, replacement: str, of_passes: Callable[[str, str], None]
) -> None:
    of_passes(pattern, replacement)
    assert found_at(file) == "llvm", what


def test_bisect_names_the_stages_around_a_fault_of_the_printer(of_printer: Callable[[str, str], None]) -> None:
    of_printer(r"fcmp olt", "fcmp ogt")
    culprit = bisect(text_of(GELU), blocks=2, target="h100").culprit
    assert culprit is not None
    assert (culprit.stage, culprit.name, culprit.kind) == ("llvm", "LLVM", "numbers")
    assert culprit.blame.place.startswith("fusion.ll:")
    assert "between llvm-dialect and llvm)" in culprit_lines(culprit)[0]
