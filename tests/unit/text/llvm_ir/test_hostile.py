"""Cut, mutated and made-up LLVM IR: each text gives a message with a place, a located fault, or numbers, and soon."""

import random

import pytest
from unit.text.llvm_ir.damaged_llvm_ir import damaged, survives
from unit.text.ptx.damaged_ptx import FILES, source

from xla_emitters.program import LaunchDimensions


@pytest.mark.parametrize("file", FILES)
def test_damaged_texts(file: str) -> None:
    """Several texts for each kind of damage; `lab/ptx` has thousands."""
    text, arrays, launch = source(file, "llvm")
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
