"""Loops of known length as one call of machine code, against the same loops in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.errors import DataError, EndlessLoop
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.runtime.cpu import counted_loop
from xla_emitters.runtime.cpu.code_chain import Words
from xla_emitters.runtime.cpu.counted_loop import FIRST_AT_ONCE, CountedLoop
from xla_emitters.runtime.cpu.loop_numbers import MOST_AT_ONCE
from xla_emitters.runtime.cpu.loop_states import Given, LoopMemory
from xla_emitters.runtime.walk import Frame
from xla_emitters.support import limits

# a, b = b, 0.5 a + x[i]; ys[i] = b: arrays change places, rows are read and written at the loop's number.
SCAN = """
func.func public @main(%x: tensor<?x4xf32>, %a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<?x4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %half = stablehlo.constant dense<5.000000e-01> : tensor<4xf32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
  %ys = stablehlo.negate %x : tensor<?x4xf32>
  %r:4 = stablehlo.while(%i = %zero, %p = %a, %q = %b, %y = %ys) : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<?x4xf32>
    cond {
      %more = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %row = stablehlo.dynamic_slice %x, %i, %zero, sizes = [1, 4] : (tensor<?x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
      %flat = stablehlo.reshape %row : (tensor<1x4xf32>) -> tensor<4xf32>
      %less = stablehlo.multiply %p, %half : tensor<4xf32>
      %new = stablehlo.add %less, %flat : tensor<4xf32>
      %wide = stablehlo.reshape %new : (tensor<4xf32>) -> tensor<1x4xf32>
      %set = "stablehlo.dynamic_update_slice"(%y, %wide, %i, %zero)
        : (tensor<?x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<?x4xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %q, %new, %set : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<?x4xf32>
    }
  return %r#1, %r#2, %r#3 : tensor<4xf32>, tensor<4xf32>, tensor<?x4xf32>
}
"""


def scanned(x: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
    rows = []
    for row in x:
        a, b = b, np.float32(0.5) * a + row
        rows.append(b)
    return a, b, np.array(rows, np.float32).reshape(x.shape)


def drawn(trips: int, seed: int = 0) -> list[Any]:
    draw = np.random.default_rng(seed)
    return [draw.standard_normal(shape, np.float32) for shape in ((trips, 4), (4,), (4,))]


def frame_of(program: Any, inputs: list[Any]) -> Frame:
    made = lowerings_of(program).loaded
    return made.frame(made.bind([each.shape for each in inputs]))


@pytest.mark.parametrize(
    "trips", [1, 2, 3, 4, 5, 6, 7, FIRST_AT_ONCE, FIRST_AT_ONCE + 1, FIRST_AT_ONCE + MOST_AT_ONCE + 1, 5 * MOST_AT_ONCE]
)
def test_memory_and_numbers_are_those_of_each_iteration(trips: int) -> None:
    program = xe.compile(SCAN)
    for seed in range(2):
        for found, wanted in zip(program(*drawn(trips, seed)), scanned(*drawn(trips, seed)), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_a_scan_is_one_call() -> None:
    inputs = drawn(9)
    assert sum(isinstance(run, CountedLoop) for run in frame_of(xe.compile(SCAN), inputs).code) == 1


def test_results_of_a_call_stay_as_they_are() -> None:
    program = xe.compile(SCAN)
    first = program(*drawn(9))
    copies = [each.copy() for each in first]
    program(*drawn(9, 1))
    for found, copy in zip(first, copies, strict=True):
        assert np.array_equal(found, copy)


def test_arguments_are_not_written() -> None:
    inputs = drawn(9)
    xe.compile(SCAN)(*inputs)
    for found, wanted in zip(inputs, drawn(9), strict=True):
        assert np.array_equal(found, wanted)


def test_more_iterations_than_allowed_are_refused() -> None:
    program = xe.compile(SCAN)
    program(*drawn(9))
    with limits.limited_iterations(8), pytest.raises(EndlessLoop, match="8 iterations"):
        program(*drawn(9))


def test_a_loop_s_memory_counts() -> None:
    program = xe.compile(SCAN)
    with limits.limited_memory(16), pytest.raises(DataError, match="memory"):
        program(*drawn(9))


# Three arrays change, one after the other: the new ones live beside the old ones until the iteration ends.
THREE = """
func.func public @main(%m: tensor<?xf32>, %a: tensor<100xf32>, %b: tensor<100xf32>, %c: tensor<100xf32>)
    -> (tensor<100xf32>, tensor<100xf32>, tensor<100xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.get_dimension_size %m, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %r:4 = stablehlo.while(%i = %zero, %p = %a, %q = %b, %s = %c) : tensor<i32>, tensor<100xf32>, tensor<100xf32>, tensor<100xf32>
    cond {
      %more = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %x = stablehlo.add %p, %q : tensor<100xf32>
      %y = stablehlo.reverse %q, dims = [0] : tensor<100xf32>
      %z = stablehlo.reverse %s, dims = [0] : tensor<100xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %x, %y, %z : tensor<i32>, tensor<100xf32>, tensor<100xf32>, tensor<100xf32>
    }
  return %r#1, %r#2, %r#3 : tensor<100xf32>, tensor<100xf32>, tensor<100xf32>
}
"""


def test_all_memory_of_a_loop_counts_together() -> None:
    program, inputs = xe.compile(THREE), [np.zeros(size, np.float32) for size in (9, 100, 100, 100)]
    assert any(isinstance(run, CountedLoop) for run in frame_of(program, inputs).code)
    with limits.limited_memory(program.memory(inputs).peak - 1), pytest.raises(DataError, match="memory"):
        program(*inputs)


@pytest.mark.parametrize(("seconds", "wanted"), [(0.0, [16, 32, 64, 88]), (1.0, [16, 8, 4, 2, *[1] * 170])])
def test_long_iterations_leave_python_time_for_signals(
    monkeypatch: pytest.MonkeyPatch, seconds: float, wanted: list[int]
) -> None:
    """A call of machine code is as many iterations as take little time: Python handles Ctrl-C between two calls."""
    clock, calls = count(), list[int]()
    monkeypatch.setattr(counted_loop, "perf_counter", lambda: next(clock) * seconds)
    make = CountedLoop.__init__

    def made(self: CountedLoop, frame: Frame, step: Any, code: Callable[..., int], *others: Any) -> None:
        def counted(*given: int) -> int:
            calls.append(given[4])
            return code(*given)

        make(self, frame, step, counted, *others)

    monkeypatch.setattr(CountedLoop, "__init__", made)
    program, inputs = xe.compile(SCAN), drawn(200)
    for found, expected in zip(program(*inputs), scanned(*inputs), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert calls == wanted


def test_memory_is_set_anew_after_an_interrupt() -> None:
    """An interrupt between two words leaves no word as it was for the next run."""
    first, last = (np.zeros(4, np.float32) for _ in range(2))
    arrays = [first]
    frame = cast("Frame", SimpleNamespace(arrays=arrays, varying=[], fresh=None))
    words = Interrupted([0, 0])
    memory = LoopMemory(frame, [(Given(0), [(cast("Words", words), 0), (cast("Words", words), 1)])], [])
    memory.begin()
    arrays[0], words.is_interrupted = last, True
    with pytest.raises(KeyboardInterrupt):
        memory.begin()
    words.is_interrupted = False
    memory.begin()
    assert words == [last.ctypes.data] * 2


class Interrupted(list[int]):
    """Words of which the second is not set where a signal comes before."""

    is_interrupted = False

    def __setitem__(self, place: Any, value: Any) -> None:
        if place == 1 and self.is_interrupted:
            raise KeyboardInterrupt
        super().__setitem__(place, value)


def test_a_loop_with_a_branch_runs_step_by_step() -> None:
    branch = SCAN.replace(
        "%less = stablehlo.multiply %p, %half : tensor<4xf32>",
        """%less = "stablehlo.case"(%i) ({
        stablehlo.return %p : tensor<4xf32>
      }, {
        %product = stablehlo.multiply %p, %half : tensor<4xf32>
        stablehlo.return %product : tensor<4xf32>
      }) : (tensor<i32>) -> tensor<4xf32>""",
    )
    program, (x, a, b) = xe.compile(branch), drawn(9)
    assert not any(isinstance(run, CountedLoop) for run in frame_of(program, [x, a, b]).code)
    # The first iteration does not halve.
    wanted = scanned(x[1:], b, a + x[0])
    for found, expected in zip(program(x, a, b)[:2], wanted, strict=False):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


# k, a = k + 1, a + k / 2^63, with k of 64 bits without a sign, which the kernel reads as a number of the host.
LARGE = """
func.func public @main(%x: tensor<?xf32>, %a: tensor<f32>) -> (tensor<f32>, tensor<ui64>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %large = stablehlo.constant dense<9223372036854775808> : tensor<ui64>
  %step = stablehlo.constant dense<4611686018427387904> : tensor<ui64>
  %scale = stablehlo.constant dense<0x20000000> : tensor<f32>
  %r:3 = stablehlo.while(%i = %zero, %k = %large, %b = %a) : tensor<i32>, tensor<ui64>, tensor<f32>
    cond {
      %more = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %f = stablehlo.convert %k : (tensor<ui64>) -> tensor<f32>
      %part = stablehlo.multiply %f, %scale : tensor<f32>
      %c = stablehlo.add %b, %part : tensor<f32>
      %l = stablehlo.add %k, %step : tensor<ui64>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %l, %c : tensor<i32>, tensor<ui64>, tensor<f32>
    }
  return %r#2, %r#1 : tensor<f32>, tensor<ui64>
}
"""


def test_numbers_beyond_63_bits() -> None:
    program = xe.compile(LARGE)
    for trips in (1, 3, 9):
        k, a = 1 << 63, np.float32(1)
        for _ in range(trips):
            a, k = a + np.float32(k) * np.float32(2.0**-63), (k + (1 << 62)) % (1 << 64)
        found, number = program(np.zeros(trips, np.float32), np.float32(1))
        assert float(found) == float(a)
        assert int(number) == k
