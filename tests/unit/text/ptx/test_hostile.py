"""Cut, mutated and made-up PTX: each text gives a message with a place, a located fault, or numbers, and soon."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unit.text.ptx.damaged_ptx import Ending, damaged, how_it_ends
from unit.text.ptx.one_instruction import HEAD
from unit.text.ptx.test_warpgroups import KERNEL, SHARED
from unit.tools.test_ptx_files import MAPPED

from xla_emitters.dialects.mlir.tensor_maps import TensorMap
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
ZEROS = np.zeros((16, 16), np.float32)
WARPGROUP = KERNEL.format(
    **{
        "shared": SHARED,
        "bytes": 16,
        "name": "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
        "scale_d": 1,
        "guard": "",
    },
    **{"a": "%rd4", "registers": "%d0, %d1, %d2, %d3", "end": ", 1, 1, 0, 1", "loads": "", "stores": ""},
)
HOPPER: dict[str, tuple[str, list[Array], LaunchDimensions, dict[str, Any]]] = {
    "tensor maps": (
        *(MAPPED, [ZEROS, np.zeros(128, np.uint8), ZEROS], LaunchDimensions((2, 1, 1), (32, 1, 1))),
        {"tensor_maps": {0: TensorMap((8, 16), 64), 1: TensorMap((8, 16), 64, argument=2)}},
    ),
    "warpgroups": (
        *(
            HEAD + WARPGROUP,
            [np.zeros(SHARED, np.uint8), *[np.zeros((128, 4), np.uint32)] * 2, *[np.array(1 << 62)] * 2],
        ),
        *(LaunchDimensions((1, 1, 1), (128, 1, 1)), {"shared_bytes": SHARED}),
    ),
}
SECONDS = 20.0
"""A text is read and run in less, on a machine that is busy."""


@cache
def source(file: str) -> tuple[str, tuple[Array, ...], LaunchDimensions]:
    """PTX, arrays of zeros, and the launch."""
    (kernel,) = compile(CORPUS / file, target="h100", stage="ptx").kernels
    arrays = tuple(np.zeros(each.array.elements, dtype(each.array.dtype).numpy) for each in kernel.arguments)
    return kernel.ptx, arrays, kernel.launch


def survives(text: str, arrays: Sequence[Array], launch: LaunchDimensions, **more: Any) -> Ending:
    """How a text ends; its message has a place."""
    found = how_it_ends(text, arrays, launch, **more)
    assert found.is_located, found
    assert found.seconds < SECONDS, found
    return found


@pytest.mark.parametrize("file", FILES)
def test_damaged_texts(file: str) -> None:
    """One text for each kind of damage and some more; `lab/ptx` has thousands, and asks ptxas about those that run."""
    text, arrays, launch = source(file)
    for seed in range(36):
        dice = random.Random(f"{file} {seed}")
        survives(damaged(dice, text)[1], arrays, launch)


@pytest.mark.parametrize("name", HOPPER)
def test_damaged_texts_for_hopper(name: str) -> None:
    text, arrays, launch, more = HOPPER[name]
    assert survives(text, arrays, launch, **more).outcome == "ran"
    for seed in range(40):
        survives(damaged(random.Random(f"{name} {seed}"), text)[1], arrays, launch, **more)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        ".version",
        ".version 8",
        ".version " + "9" * 5000 + ".0",
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
    survives(text, [], LaunchDimensions((1, 1, 1), (32, 1, 1)))
