"""Cut, mutated and made-up LLVM IR: each text gives a message with a place, a located fault, or numbers, and soon."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from unit.text.llvm_ir.damaged_llvm_ir import damaged, how_it_ends
from unit.text.ptx.damaged_ptx import Ending

from xla_emitters.dtypes import Array, dtype
from xla_emitters.pipelines.compiler import compile
from xla_emitters.program import LaunchDimensions

CORPUS = Path(__file__).parents[3] / "corpus"
FILES = (
    "reduction/red_row_float32.b87f7b91.hlo",
    "transpose/attn_float32.2063fe71.hlo",
    "loop/act_silu_bfloat16.14f74e0d.hlo",
    "scatter/scatter_add_bfloat16.a7bab153.hlo",
)
SECONDS = 20.0
"""A text is read and run in less, on a machine that is busy."""


@cache
def source(file: str) -> tuple[str, tuple[Array, ...], LaunchDimensions]:
    """LLVM IR, arrays of zeros, and the launch."""
    program = compile(CORPUS / file, target="h100", stage="llvm")
    (kernel,) = program.kernels
    arrays = tuple(np.zeros(each.array.elements, dtype(each.array.dtype).numpy) for each in kernel.arguments)
    return program.code, arrays, kernel.launch


def survives(text: str, arrays: Sequence[Array], launch: LaunchDimensions) -> Ending:
    """How a text ends; its message has a place."""
    found = how_it_ends(text, arrays, launch)
    assert found.is_located, found
    assert found.seconds < SECONDS, found
    return found


@pytest.mark.parametrize("file", FILES)
def test_damaged_texts(file: str) -> None:
    """Several texts for each kind of damage; `lab/ptx` has thousands."""
    text, arrays, launch = source(file)
    assert survives(text, arrays, launch).outcome == "ran"
    for seed in range(36):
        dice = random.Random(f"{file} {seed}")
        survives(damaged(dice, text)[1], arrays, launch)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        "define",
        "define void @k(",
        "define void @k() {",
        "define void @k() { }",
        "define void @k() { br label %a }",
        "define void @k() { a: b: ret void }",
        "define void @k() { a: br label %a }",
        "define void @k() { ret i32 0 }",
        "define i32 @k() { ret i32 %x }",
        "define void @k(i32 %x, i32 %x) { ret void }",
        "define void @k() { ret void } define void @k() { ret void }",
        "define void @k() { %x = alloca i32 %x = alloca i32 ret void }",
        "define void @k() { %x = br label %y y: ret void }",
        "define void @k() { call void @k() ret void }",
        "define void @k() { store i32 0, ptr @nowhere ret void }",
        "define void @k() { call void @l() ret void }",
        "@x = internal constant [2 x i32] [i32 1]",
        "!0 = !{",
        "attributes #0 = {",
        'target triple = "x',
        "%t = type { %t }",
    ],
)
def test_texts_that_are_no_kernels(text: str) -> None:
    survives(text, (), LaunchDimensions((1, 1, 1), (1, 1, 1)))
