"""An ENTRY that only takes tuples apart, copies and returns: every command takes it, and no command takes it for a fusion."""

import json
from pathlib import Path

import numpy as np
import pytest
from in_process import printed

from xla_emitters.tools.main import main

A, B = np.arange(32, dtype=np.float32).reshape(4, 8) / 8, np.array([1, -2, 3], np.float32)
# The instructions after the parameters a and b, and the results.
CASES: dict[str, tuple[str, list[object]]] = {
    # What XLA:GPU (jaxlib 0.10.2) makes of `lambda a, b: (b, a)`.
    "swapped": (
        """tuple = (f32[3], f32[4,8]) tuple(b, a)
           first = f32[3] get-tuple-element(tuple), index=0
           second = f32[4,8] get-tuple-element(tuple), index=1
           copy.2 = f32[3] copy(first)
           copy.3 = f32[4,8] copy(second)
           ROOT tuple.2 = (f32[3], f32[4,8]) tuple(copy.2, copy.3)""",
        [B, A],
    ),
    "returned": ("ROOT t = (f32[4,8], f32[3], f32[4,8]) tuple(a, b, a)", [A, B, A]),
    "constants": (
        """k = s32[2] constant({5, -1})
           l = pred[] constant(true)
           ROOT t = (s32[2], pred[], s32[2]) tuple(k, l, k)""",
        [[5, -1], True, [5, -1]],
    ),
    "a copied tuple": (
        """t = (f32[4,8], f32[3]) tuple(a, b)
           c = (f32[4,8]{0,1}, f32[3]) copy(t)
           ROOT r = f32[4,8]{0,1} get-tuple-element(c), index=0""",
        [A],
    ),
    "an element": (
        """t = (f32[4,8], f32[3]) tuple(a, b)
           u = ((f32[4,8], f32[3]), f32[3]) tuple(t, b)
           v = (f32[4,8], f32[3]) get-tuple-element(u), index=0
           ROOT r = f32[3] get-tuple-element(v), index=1""",
        [B],
    ),
    "other bits": ("ROOT c = u32[3] bitcast(b)", [B.view(np.uint32)]),
}


@pytest.fixture
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    text = CASES[request.param][0]
    path = tmp_path / "m.hlo"
    path.write_text(f"HloModule m\nENTRY e {{ a = f32[4,8] parameter(0)\n b = f32[3] parameter(1)\n {text} }}\n")
    np.savez(tmp_path / "in.npz", p0=A, p1=B)
    return path


@pytest.mark.parametrize(("files", "case"), [(name, name) for name in CASES], indirect=["files"])
def test_the_arguments_come_back(files: Path, case: str) -> None:
    given, made = files.with_name("in.npz"), files.with_name("out.npz")
    assert main(["run", str(files), "--inputs", str(given), "--outputs", str(made)]) == 0
    with np.load(made) as results:
        for number, wanted in enumerate(CASES[case][1]):
            np.testing.assert_array_equal(results[f"r{number}"], np.asarray(wanted))


@pytest.mark.parametrize("verb", ["explain", "compile", "check", "cost"])
@pytest.mark.parametrize("files", ["swapped", "constants", "a copied tuple"], indirect=True)
def test_every_command_takes_it(files: Path, verb: str) -> None:
    assert main([verb, str(files)]) == 0


@pytest.mark.parametrize("files", ["swapped", "returned"], indirect=True)
def test_it_is_not_listed_as_a_fusion(files: Path) -> None:
    assert json.loads(printed("list", files, "--json"))["kernels"] == []
