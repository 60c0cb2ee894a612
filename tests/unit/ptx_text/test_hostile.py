"""Cut, mutated and made-up PTX: each text gives a message with a place, a located fault, or numbers, and soon."""

from __future__ import annotations

import random
import re
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from unit.ptx_text.one_instruction import HEAD

from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.any_ptx import PtxKernel
from xla_emitters.pipelines.compiler import compile
from xla_emitters.program import Launch

CORPUS = Path(__file__).parents[2] / "corpus"
FILES = (
    "reduction/red_row_float32.b87f7b91.hlo",
    "transpose/attn_float32.2063fe71.hlo",
    "loop/act_silu_bfloat16.14f74e0d.hlo",
    "scatter/scatter_add_bfloat16.a7bab153.hlo",
)
SECONDS = 20.0
"""A text is read and run in less, on a machine that is busy."""
_TOKEN = re.compile(r"[%$.\w]+|\S")
WORDS = (
    "%r1",
    "%rd1",
    "%p1",
    "0",
    "-1",
    "4294967296",
    "0f7F800000",
    ";",
    ",",
    "{",
    "}",
    "[",
    "]",
    "@",
    "bra",
    "ret",
    "ld.shared.v4.b32",
)


@cache
def text_of(file: str) -> str:
    return compile(CORPUS / file, target="h100", stage="ptx").kernels[0].ptx


def mutated(text: str, dice: random.Random) -> str:
    """A text with some tokens cut out, doubled, exchanged or replaced, or cut short."""
    if dice.random() < 0.2:
        return text[: dice.randrange(len(text))]
    for _ in range(dice.choice((1, 1, 2, 5))):
        spans = [match.span() for match in _TOKEN.finditer(text)]
        (start, end), (first, last) = dice.choice(spans), dice.choice(spans)
        new = dice.choice(("", text[start:end] * 2, text[first:last], dice.choice(WORDS), str(dice.randrange(1 << 20))))
        text = text[:start] + new + text[end:]
    return text


def survives(text: str) -> str:
    """How a text ends: "ran", or the class of the message, which has a place or names the kernel."""
    start = time.perf_counter()
    try:
        kernel = PtxKernel.read(text, "hostile.ptx")
        arrays = [np.zeros(64, np.float32) for _ in kernel.parameters]
        block = (*kernel.entry.bounds.get("reqntid", (32,)), 1, 1)[:3]
        kernel.run(arrays, Launch((1, 1, 1), (block[0], block[1], block[2])), most_iterations=100)
        outcome = "ran"
    except XlaEmittersError as error:
        outcome, place = type(error).__name__, error.place
        is_located = place is not None or outcome in ("DataError", "ExecutionError", "Unsupported")
    else:
        is_located = True
    assert is_located, outcome
    assert time.perf_counter() - start < SECONDS
    return outcome


@pytest.mark.parametrize("file", FILES)
def test_mutated_texts(file: str) -> None:
    dice = random.Random(7)
    outcomes = {survives(mutated(text_of(file), dice)) for _ in range(120)}
    assert {"ParseError", "ran"} <= outcomes | {"ran"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        ".version",
        ".version 8",
        HEAD + ".entry f() {" + "{" * 5000,
        HEAD + ".entry f() {" + "ld.b32 {" * 3,
        HEAD + ".entry f(.param .b8 p[99999999999999999999]) { ret; }",
        HEAD + ".entry f() { .shared .b8 s[1073741824]; ret; }",
        HEAD + ".global .b8 x[1073741824]; .entry f() { .reg .b64 %a; mov.u64 %a, x; ret; }",
        HEAD + ".entry f() { .reg .b32 %r<4000000000>; mov.u32 %r3999999999, 1; ret; }",
        HEAD + ".entry f() { .reg .b32 %r; mov.u32 %r, " + "9" * 5000 + "; ret; }",
        HEAD + ".entry f() { .reg .b32 %r; mov.u32 %r, " + "-" * 5000 + "1; ret; }",
        HEAD + ".global .b8 x = " + "{" * 5000 + "; .entry f() { ret; }",
        HEAD + ".func g() { call g, (); ret; } .entry f() { call g, (); ret; }",
        HEAD + ".entry f() { .reg .pred %p; L: @%p bra L; bra L; }",
        HEAD + ".entry f() { /* ",
        HEAD + ".entry f() { .reg .b128 %q; mov.b128 %q, 0; ret; }",
        HEAD + ".entry f() { .reg .b32 %r; ld.global.b32 %r, [0]; ret; }",
        HEAD + ".entry f() { .loc 1 2 3, function_name",
        HEAD + ".entry f() .reqntid 0, 0, 0 { ret; }",
        HEAD + ".entry f() { .local .align 8 .b8 l[1000000000]; .reg .b64 %a; mov.u64 %a, l; ret; }",
        HEAD + ".entry f() { .reg .b32 %r<3>; div.s32 %r1, %r2, 0; rem.u32 %r1, %r2, 0; ret; }",
    ],
)
def test_made_up_texts(text: str) -> None:
    survives(text)
