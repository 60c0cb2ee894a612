"""Parameters that a module's `input_output_alias` donates: updated where they are, without a copy, and what becomes of the arrays."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_process import call_main
from unit.runtime.fake_gpu import fake_cupy, for_fake

from xla_emitters.explore.cost.cost import cost
from xla_emitters.pipelines.compiler import compile
from xla_emitters.program import Program
from xla_emitters.program.steps import Copy, Move, steps_within
from xla_emitters.runtime.bundle import bundle_main
from xla_emitters.runtime.cuda.cupy_launcher import launch_program

Array = np.ndarray[Any, Any]
UPDATE = """c = f32[64,8] parameter(0) r = f32[1,8] parameter(1) i = s32[] parameter(2) z = s32[] constant(0)
  ROOT d = f32[64,8] dynamic-update-slice(c, r, i, z)"""
CACHE = f"""HloModule cache, input_output_alias={{ {{0}}: (0, {{}}, may-alias) }}
first {{ {UPDATE} }}
second {{ {UPDATE} }}
negated {{ x = f32[64,8] parameter(0) ROOT n = f32[64,8] negate(x) }}
ENTRY main {{ c = f32[64,8] parameter(0) r = f32[1,8] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)
  a = f32[64,8] fusion(c, r, i), kind=kLoop, calls=first
  b = f32[64,8] fusion(a, r, j), kind=kLoop, calls=second
  m = f32[64,8] fusion(b), kind=kLoop, calls=negated
  ROOT t = (f32[64,8], f32[64,8]) tuple(b, m) }}"""
"""Two rows of a cache are written, one after the other; then all of it is read."""
LOOP = """HloModule steps, input_output_alias={ {}: (0, {}, may-alias) }
doubled { x = f32[64] parameter(0) ROOT a = f32[64] add(x, x) }
next { i = s32[] parameter(0) one = s32[] constant(1) ROOT n = s32[] add(i, one) }
less { i = s32[] parameter(0) k = s32[] constant(3) ROOT l = pred[] compare(i, k), direction=LT }
cond { s = (s32[], f32[64]) parameter(0) i = s32[] get-tuple-element(s), index=0 ROOT l = pred[] fusion(i), kind=kLoop, calls=less }
body { s = (s32[], f32[64]) parameter(0) i = s32[] get-tuple-element(s), index=0 x = f32[64] get-tuple-element(s), index=1
  y = f32[64] fusion(x), kind=kLoop, calls=doubled n = s32[] fusion(i), kind=kLoop, calls=next
  ROOT t = (s32[], f32[64]) tuple(n, y) }
ENTRY main { x = f32[64] parameter(0) z = s32[] constant(0) init = (s32[], f32[64]) tuple(z, x)
  w = (s32[], f32[64]) while(init), condition=cond, body=body ROOT r = f32[64] get-tuple-element(w), index=1 }"""
"""A loop whose state begins as the parameter: doubled three times."""
READ_LATER = CACHE.replace("fusion(b), kind=kLoop, calls=negated", "fusion(c), kind=kLoop, calls=negated")
"""The cache as it was is read after it was updated."""


def kept(text: str) -> str:
    """The module without its donations."""
    return re.sub(r", input_output_alias=\{ \{\d?\}: \(0, \{\}, may-alias\) \}", "", text)


def cache_inputs() -> list[Array]:
    rng = np.random.default_rng(0)
    return [
        rng.standard_normal((64, 8)).astype(np.float32),
        rng.standard_normal((1, 8)).astype(np.float32),
        np.array(5, np.int32),
        np.array(40, np.int32),
    ]


def cache_results(c: Array, r: Array, i: Array, j: Array) -> list[Array]:
    made = c.copy()
    made[int(i)] = made[int(j)] = r[0]
    return [made, -made]


def loop_results(x: Array) -> list[Array]:
    return [8 * x]


CASES = {
    "cache": (CACHE, cache_inputs, cache_results),
    "loop": (LOOP, lambda: [cache_inputs()[0][:, 0].copy()], loop_results),
}


def copies_of(program: Program) -> int:
    return sum(isinstance(step, Copy) for step in steps_within(program.steps))


def time_of(text: str) -> float:
    (found,) = cost(text, tune="xla").costs
    return found.time


@pytest.mark.parametrize("tune", ["xla", "auto"])
@pytest.mark.parametrize("name", CASES)
def test_no_step_copies_a_donated_parameter(name: str, tune: str) -> None:
    """Its memory moves; the model expects less time; `explain` says so, and counts its bytes once."""
    text, _, _ = CASES[name]
    given, own = (compile(each, target="h200", tune=tune, record="none") for each in (text, kept(text)))
    assert copies_of(given) == 0
    assert sum(isinstance(step, Move) for step in given.steps) == 1
    if tune == "xla":  # by rule, the loop is one kernel, which reads the parameter and writes the result
        assert copies_of(own) == 1
        assert name == "loop" or time_of(text) < time_of(kept(text))
    assert given.peak_bytes < own.peak_bytes
    assert "argument 0 (p0): written into" in given.explain()
    assert given.explained()["donated"] == [{"argument": 0, "is_overwritten": True}]
    assert own.explained()["donated"] == []


@cache
def recorded(name: str) -> Program:
    return compile(CASES[name][0], stage="llvm-dialect", tune="xla", record="stages")


@pytest.mark.parametrize("stage", [None, "graph", "xla_gpu", "llvm-dialect"])
@pytest.mark.parametrize("name", CASES)
def test_arrays_of_the_caller_stay_unless_they_are_donated(name: str, stage: str | None) -> None:
    _, inputs, results = CASES[name]
    program, arrays = recorded(name), inputs()
    before, wanted = [array.copy() for array in arrays], results(*arrays)
    for found, expected in zip(program.run(arrays, stage), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)
    for found, expected in zip(program.run(arrays, stage, donate=True), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_donated_array_of_the_host_is_the_result() -> None:
    program, inputs = compile(CACHE, stage="llvm-dialect"), cache_inputs()
    wanted = cache_results(*inputs)
    found = program(*inputs, donate=True)
    assert np.may_share_memory(found[0], inputs[0])
    np.testing.assert_array_equal(inputs[0], wanted[0])
    inputs = cache_inputs()
    inputs[0].flags.writeable = False
    assert not np.may_share_memory(program(*inputs, donate=True)[0], inputs[0])
    np.testing.assert_array_equal(inputs[0], cache_inputs()[0])


@pytest.mark.parametrize("name", CASES)
def test_on_a_gpu_a_donated_array_is_not_copied(name: str) -> None:
    text, inputs, results = CASES[name]
    program, arrays = for_fake(text, tune="xla"), inputs()
    wanted = results(*arrays)
    with fake_cupy() as cupy:
        placed = [cupy.asarray(array) for array in arrays]
        found = launch_program(program, placed)
        np.testing.assert_array_equal(cupy.asnumpy(found[0]), wanted[0])
        np.testing.assert_array_equal(cupy.asnumpy(placed[0]), arrays[0])
        assert found[0].data.ptr != placed[0].data.ptr
        found = launch_program(program, placed, donate=True)
        np.testing.assert_array_equal(cupy.asnumpy(found[0]), wanted[0])
        assert found[0].data.ptr == placed[0].data.ptr
        np.testing.assert_array_equal(launch_program(program, arrays)[0], wanted[0])


def test_a_bundle_runs_them(tmp_path: Path) -> None:
    """Checked, then timed again and again: the loop on copies, so that each run has the same trips."""
    files, path = [tmp_path / f"{name}.hlo" for name in CASES], tmp_path / "kernels.zip"
    for file, (text, _, _) in zip(files, CASES.values(), strict=True):
        file.write_text(text)
    words = ["xla-emitters", "bundle", "--target", "t4", "--tune", "xla", *map(str, files), "-o", str(path)]
    assert call_main(words, b"")[0] == 0
    with fake_cupy():
        assert bundle_main.main(["--bundle", str(path), "--repeat", "2"]) == 0


def test_one_array_as_two_arguments_is_copied() -> None:
    text = """HloModule two, input_output_alias={ {}: (0, {}, may-alias) }
f { x = f32[64] parameter(0) y = f32[64] parameter(1) ROOT s = f32[64] add(x, y) }
ENTRY main { x = f32[64] parameter(0) y = f32[64] parameter(1) ROOT s = f32[64] fusion(x, y), kind=kLoop, calls=f }"""
    program, x = compile(text, stage="llvm-dialect"), np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(program(x, x, donate=True), 2 * np.arange(64))
    np.testing.assert_array_equal(x, np.arange(64))


def test_what_is_read_later_is_copied_by_a_step() -> None:
    program, inputs = compile(READ_LATER, stage="llvm-dialect", tune="xla"), cache_inputs()
    assert copies_of(program) == 1
    for donate in (False, True):
        made, negated = program(*inputs, donate=donate)
        np.testing.assert_array_equal(made, cache_results(*cache_inputs())[0])
        np.testing.assert_array_equal(negated, -cache_inputs()[0])
        np.testing.assert_array_equal(inputs[0], cache_inputs()[0])
