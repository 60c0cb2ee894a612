"""Cut, mutated and made-up PTX: each text gives a message with a place, a located fault, or numbers, and soon."""

import random
from typing import Any

import numpy as np
import pytest
from unit.text.ptx.damaged_ptx import FILES, damaged, source, survives
from unit.text.ptx.one_instruction import HEAD
from unit.text.ptx.test_warpgroups import KERNEL, SHARED
from unit.tools.test_ptx_files import MAPPED

from xla_emitters.dialects.mlir.tensor_maps import TensorMap
from xla_emitters.dtypes import Array
from xla_emitters.program import LaunchDimensions

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


@pytest.mark.parametrize("file", FILES)
def test_damaged_texts(file: str) -> None:
    """One text for each kind of damage and some more; `lab/ptx` has thousands, and asks ptxas about those that run."""
    text, arrays, launch = source(file, "ptx")
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
