"""Calls at sizes that were seen are repeated without the host program: the same bits, results of their own, data that decides."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from runtime.programs_table import programs

from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_host import CPU
from xla_emitters.pipelines.programs import DynamicProgram, compile_program
from xla_emitters.runtime.ral import plans
from xla_emitters.stablehlo_text import parse_stablehlo

pytest.importorskip("llvmlite", reason="llvmlite is not installed")

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def by_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CPU, "llvm")


def compiled(text: str) -> DynamicProgram:
    return compile_program(parse_stablehlo(text, "<test>"), CompileOptions(record="none"))


DOUBLED = """module @m { func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y = stablehlo.add %x, %x : tensor<?xf32>
  return %y : tensor<?xf32> } }"""
CASE = """module @m { func.func public @main(%x: tensor<?xf32>, %c: tensor<i32>) -> tensor<?xf32> {
  %y = "stablehlo.case"(%c) ({
    %a = stablehlo.negate %x : tensor<?xf32>
    stablehlo.return %a : tensor<?xf32>
  }, {
    %a = stablehlo.abs %x : tensor<?xf32>
    stablehlo.return %a : tensor<?xf32>
  }, {
    stablehlo.return %x : tensor<?xf32>
  }) : (tensor<i32>) -> tensor<?xf32>
  return %y : tensor<?xf32> } }"""


def program_runs(program: DynamicProgram, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one at each run of the host program."""
    runs, loaded = list[int](), program.loaded
    run = loaded._run

    def counted(*arguments: Any) -> list[Array]:
        runs.append(1)
        return run(*arguments)

    monkeypatch.setattr(loaded, "_run", counted)
    return runs


def test_the_host_program_runs_twice_at_each_size(monkeypatch: pytest.MonkeyPatch) -> None:
    program = compiled(DOUBLED)
    runs = program_runs(program, monkeypatch)
    for _ in range(3):
        for size in (0, 1, 5):
            x = np.arange(size, dtype=np.float32)
            np.testing.assert_array_equal(program(x), x + x)
    assert len(runs) == 6
    assert (program.counters.runs, program.counters.live) == (9, 0)


@pytest.mark.parametrize(
    "name",
    [
        *("layer", "random", "dropout", "until_large", "given_trips", "decoder", "update_slice", "branches", "sorted"),
        # A function of each kind that the runtime calls: a convolution, random bits, the largest, a product of bf16.
        *("convolution", "generator", "largest_two", "bfloat_softmax"),
    ],
)
def test_a_repeated_call_has_the_bits_of_the_first(name: str) -> None:
    program = programs()[name]
    found = program.compiled()
    for sizes in program.case.sizes:
        inputs = program.inputs(sizes)
        first, *others = [found.run(inputs) for _ in range(4)]
        for other in others:
            assert [(a.dtype, a.shape, a.tobytes()) for a in other] == [(a.dtype, a.shape, a.tobytes()) for a in first]


def test_data_decide_anew_in_each_call() -> None:
    program = compiled(CASE)
    x = np.array([-1, 2, -3], np.float32)
    for which in (0, 1, 2, 0, 2, 1, 1, 0, 2, -5, 7, -5, 7) * 3:
        wanted = {0: -x, 1: np.abs(x)}.get(which, x)
        np.testing.assert_array_equal(program(x, np.int32(which)), wanted)


def test_results_belong_to_the_caller() -> None:
    program = compiled(CASE)
    x, kept = np.ones(300, np.float32), list[tuple[int, Array]]()
    for which in (0, 1, 2) * 3:
        found = program(x, np.int32(which))
        kept.append((which, found.copy()))
        found[:] = 77
        x += 1
    for number, (which, found) in enumerate(kept):
        assert set(found) == {-(number + 1) if which == 0 else number + 1}


def test_other_types_and_layouts_are_checked_again() -> None:
    program = compiled(DOUBLED)
    x = np.arange(6, dtype=np.float32)
    for _ in range(3):
        program(x)
    np.testing.assert_array_equal(program(x[::2]), x[::2] * 2)
    np.testing.assert_array_equal(program(x.astype(">f4")), x * 2)
    with pytest.raises(Exception, match="f64"):
        program(x.astype(np.float64))


def test_a_repeated_call_takes_arguments_that_begin_anywhere() -> None:
    program = compiled(DOUBLED)
    x = np.arange(1001, dtype=np.float32)
    for _ in range(3):
        program(x[:1000])
    np.testing.assert_array_equal(program(x[1:]), x[1:] * 2)


def test_threads_share_a_program() -> None:
    program = compiled(DOUBLED)
    arrays = [np.full(5000, value, np.float32) for value in range(200)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(program, arrays))
    for value, found in enumerate(results):
        np.testing.assert_array_equal(found, np.full(5000, 2 * value, np.float32))


def test_a_program_goes_on_beyond_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MOST_PLANS", 2)
    monkeypatch.setattr(plans, "MOST_BYTES", 1 << 12)
    program = compiled(DOUBLED)
    for size in (1, 2, 3, 4, 4000, 1, 4000) * 3:
        np.testing.assert_array_equal(program(np.ones(size, np.float32)), np.full(size, 2, np.float32))


@pytest.mark.parametrize("donate", [False, True])
def test_a_donated_argument_is_returned_as_it_is(donate: bool) -> None:
    program = compiled(
        """module @m { func.func public @main(%x: tensor<?xf32> {tf.aliasing_output = 1 : i32}, %y: tensor<?xf32> {jax.buffer_donor = true})
          -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
        %z = stablehlo.negate %y : tensor<?xf32>
        return %z, %x, %x : tensor<?xf32>, tensor<?xf32>, tensor<?xf32> } }"""
    )
    for call in range(5):
        x, y = np.arange(6, dtype=np.float32) + call, np.full(6, call, np.float32)
        found = program(x.copy(), y.copy(), donate=donate)
        for result, wanted in zip(found, (-y, x, x), strict=True):
            np.testing.assert_array_equal(result, wanted)
