"""Repeated calls while fusions are counted: they count, installing or removing a kernel takes effect in the next call, right results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runtime.host_runs import program_runs

from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.pipelines.hot_fusions import HotFusion, HotFusions, load_for_cpu
from xla_emitters.pipelines.hot_kernels import compile_hot
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_host import CPU
from xla_emitters.pipelines.program_llvm import HOST
from xla_emitters.pipelines.programs import DynamicProgram, compile_program
from xla_emitters.runtime.program_cache import DIRECTORY
from xla_emitters.runtime.ral.heat import TIMED, Heat, HeatLimits
from xla_emitters.runtime.ral.hot_compiler import HotCompiler
from xla_emitters.runtime.ral.hot_spots import HotKernel, Spot
from xla_emitters.stablehlo_text import parse_stablehlo

pytest.importorskip("llvmlite", reason="llvmlite is not installed")

Array = np.ndarray[Any, Any]
OF_TWO = """module @m {{ func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> {{
  %y = stablehlo.{} %x, %x : tensor<?xf32>
  return %y : tensor<?xf32> }} }}"""
ADDED, MULTIPLIED = OF_TWO.format("add"), OF_TWO.format("multiply")
SUMS = """module @m { func.func public @main(%x: tensor<?x?xi32>) -> (tensor<?x?xi32>, tensor<?xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %q = stablehlo.multiply %x, %x : tensor<?x?xi32>
  %s = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x?xi32>, tensor<i32>) -> tensor<?xi32>
  %t = stablehlo.transpose %q, dims = [1, 0] : (tensor<?x?xi32>) -> tensor<?x?xi32>
  return %t, %s : tensor<?x?xi32>, tensor<?xi32> } }"""
NEVER = "calls=1000000"


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CPU, "llvm")
    monkeypatch.setenv(DIRECTORY, str(tmp_path))
    monkeypatch.delenv("XLA_EMITTERS_DISABLE_CACHE", raising=False)


def compiled(heat: str, text: str) -> DynamicProgram:
    return compile_program(parse_stablehlo(text, "<test>"), CompileOptions(record="none", heat=heat))


def heat_of(program: DynamicProgram) -> Heat:
    assert program.heat is not None
    return program.heat


def squares(spot: Spot) -> HotKernel:
    """Code for a spot of ADDED that multiplies: its results say that it ran."""
    other = compiled("off", MULTIPLIED)
    assert other.fused is not None
    hot = HotFusions(other.fused, "cpu", other.options, load_for_cpu)
    (fusion,) = (op.fusion_name.data for op in other.fused.walk() if isinstance(op, FusionOp))
    asked = Spot(fusion, spot.shapes, spot.numbers)
    return load_for_cpu(compile_hot(HotFusion(hot, Heat(HeatLimits(), lambda *_: None), asked).request()))


@pytest.mark.parametrize("host", ["python", "llvm"])
def test_a_kernel_that_comes_or_goes_takes_effect_in_the_next_call(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOST, host)
    program, x = compiled(NEVER, ADDED), np.arange(1, 1001, dtype=np.float32)
    runs = program_runs(program, monkeypatch)
    for _ in range(2 * TIMED):
        np.testing.assert_array_equal(program(x), x + x)
    before = len(runs)
    np.testing.assert_array_equal(program(x), x + x)
    assert len(runs) == before  # a plan
    heat = heat_of(program)
    (spot,) = heat.spots
    heat.replace(spot, squares(spot))
    for _ in range(2 * TIMED):
        np.testing.assert_array_equal(program(x), x * x)
        spot.fastest = [None, None]  # so that it is not dropped for its time
    before = len(runs)
    np.testing.assert_array_equal(program(x), x * x)
    assert len(runs) == before  # a plan with it
    heat.keep(spot, "a test")
    for _ in range(2 * TIMED):
        np.testing.assert_array_equal(program(x), x + x)
    assert (spot.calls, spot.runs) == (6 * TIMED + 2, 2 * TIMED + 1)
    assert program.counters.runs == 6 * TIMED + 2


def test_kernels_are_put_in_in_the_middle_of_repeated_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    program = compiled("calls=300", SUMS)
    runs = program_runs(program, monkeypatch)
    shapes = [(1, 1), (3, 5), (4, 64), (33, 8), (2, 257)]
    cases = [np.random.default_rng(n).integers(-1000, 1000, shape, np.int32) for n, shape in enumerate(shapes)]
    wanted = [((x * x).T, (x * x).sum(1, dtype=np.int32)) for x in cases]
    draw, calls = np.random.default_rng(0), 10_000
    for call in range(calls):
        at = int(draw.integers(len(cases)))
        for found, right in zip(program(cases[at]), wanted[at], strict=True):
            np.testing.assert_array_equal(found, right)
        if call in (4000, 7000):
            assert HotCompiler.of_process().wait(120)
    heat = heat_of(program)
    fusions = len({spot.fusion for spot in heat.spots})
    assert sum(spot.calls for spot in heat.spots) == fusions * calls
    assert all(spot.what for spot in heat.spots)  # each had a kernel of its own
    assert all(TIMED <= spot.runs < spot.calls for spot in heat.spots)
    assert len(runs) < calls / 3  # the others were repeated
    assert program.counters.runs == calls
    assert program.counters.live == 0


def test_fusions_that_are_forgotten_are_counted_anew() -> None:
    program = compiled("calls=1000000,spots=2", ADDED)
    for size in (10, 20, 30, 10, 20, 30):
        x = np.ones(size, np.float32)
        for _ in range(2 * TIMED):
            np.testing.assert_array_equal(program(x), x + x)
    heat = heat_of(program)
    assert len(heat.spots) <= 2
    assert max(spot.calls for spot in heat.spots) == 2 * TIMED
