"""Loops whose launches threads might share, against the same loops in NumPy: before and after it is known whether threads help."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, cycle
from typing import Any

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.runtime import block_threads
from xla_emitters.runtime.cpu.interpreted_loop import InterpretedLoop
from xla_emitters.runtime.cpu.timed_loop import TimedLoop
from xla_emitters.runtime.walk import Frame

TRIPS, WIDTH = 12, 50_000

# ys[i] = s = 0.5 s + x[i]: an iteration touches one row of two large arrays.
SCAN = """
func.func public @main(%x: tensor<?x50000xf32>, %s0: tensor<50000xf32>, %ys: tensor<?x50000xf32>
  ) -> (tensor<50000xf32>, tensor<?x50000xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %half = stablehlo.constant dense<5.000000e-01> : tensor<50000xf32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x50000xf32>) -> tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %s = %s0, %y = %ys) : tensor<i32>, tensor<50000xf32>, tensor<?x50000xf32>
    cond {
      %more = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %row = stablehlo.dynamic_slice %x, %i, %zero, sizes = [1, 50000]
        : (tensor<?x50000xf32>, tensor<i32>, tensor<i32>) -> tensor<1x50000xf32>
      %flat = stablehlo.reshape %row : (tensor<1x50000xf32>) -> tensor<50000xf32>
      %less = stablehlo.multiply %s, %half : tensor<50000xf32>
      %new = stablehlo.add %less, %flat : tensor<50000xf32>
      %wide = stablehlo.reshape %new : (tensor<50000xf32>) -> tensor<1x50000xf32>
      %set = "stablehlo.dynamic_update_slice"(%y, %wide, %i, %zero)
        : (tensor<?x50000xf32>, tensor<1x50000xf32>, tensor<i32>, tensor<i32>) -> tensor<?x50000xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %new, %set : tensor<i32>, tensor<50000xf32>, tensor<?x50000xf32>
    }
  return %r#1, %r#2 : tensor<50000xf32>, tensor<?x50000xf32>
}
"""

# s = 0.5 s + x until all of it is small.
UNTIL = """
func.func public @main(%x: tensor<?xf32>, %least: tensor<f32>) -> (tensor<i32>, tensor<?xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %none = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %r:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<?xf32>
    cond {
      %size = stablehlo.abs %s : tensor<?xf32>
      %most = stablehlo.reduce(%size init: %none) applies stablehlo.maximum across dimensions = [0]
        : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
      %more = stablehlo.compare GT, %most, %least, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %twice = stablehlo.add %s, %s : tensor<?xf32>
      %four = stablehlo.add %twice, %twice : tensor<?xf32>
      %less = stablehlo.divide %twice, %four : tensor<?xf32>
      %new = stablehlo.multiply %less, %s : tensor<?xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %new : tensor<i32>, tensor<?xf32>
    }
  return %r#0, %r#1 : tensor<i32>, tensor<?xf32>
}
"""


def scanned(x: Any, state: Any, _: Any) -> tuple[Any, Any]:
    rows = [*accumulate(x, lambda state, row: np.float32(0.5) * state + row, initial=state)]
    return rows[-1], np.array(rows[1:], np.float32)


def drawn(seed: int) -> list[Any]:
    draw = np.random.default_rng(seed)
    return [draw.standard_normal(shape, np.float32) for shape in ((TRIPS, WIDTH), (WIDTH,), (TRIPS, WIDTH))]


def clock(durations: list[int]) -> Callable[[], float]:
    """A clock on which what is timed takes so long, in turn: shared, alone, shared ..."""
    times = accumulate(step for duration in cycle(durations) for step in (0, duration))
    return lambda: float(next(times))


def loop_of(frame: Frame) -> TimedLoop:
    (loop,) = (run for run in frame.code if isinstance(run, TimedLoop))
    return loop


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_threads, "thread_count", lambda: 2)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(("shared", "alone"), [(1, 1), (1, 2)])
def test_a_scan_that_threads_do_not_help_becomes_one_call(
    shared: int, alone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_threads, "perf_counter", clock([shared, alone]))
    loaded = lowerings_of(xe.compile(SCAN)).loaded
    frame = loaded.frame(loaded.bind([each.shape for each in drawn(0)]))
    for seed in range(3):
        for found, wanted in zip(frame.run(drawn(seed)), scanned(*drawn(seed)), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    assert isinstance(loop_of(frame).run, InterpretedLoop) == (alone == shared)
    assert not frame.later


@pytest.mark.usefixtures("two_threads")
def test_a_loop_that_data_end_becomes_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_threads, "perf_counter", clock([1]))
    x, least = np.full(1 << 20, 1, np.float32), np.array(0.001, np.float32)
    x[7] = 1000
    loaded = lowerings_of(xe.compile(UNTIL)).loaded
    frame = loaded.frame(loaded.bind([x.shape, ()]))
    for _ in range(3):
        trips, state = frame.run([x, least])
        assert trips == 20
        np.testing.assert_array_equal(state, x * np.float32(2.0**-20))
    assert isinstance(loop_of(frame).run, InterpretedLoop)
