"""Loops of known length as one call of machine code, against the same loops in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.errors import DataError, EndlessLoop
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.runtime.cpu.counted_loop import FIRST_AT_ONCE, CountedLoop
from xla_emitters.runtime.cpu.loop_numbers import MOST_AT_ONCE
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
