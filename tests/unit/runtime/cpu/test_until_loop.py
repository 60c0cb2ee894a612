"""Loops that an array ends as calls of machine code, against the same loops in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.errors import EndlessLoop
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.runtime.cpu.until_loop import UntilLoop
from xla_emitters.support import limits

# a, b = b, rate a + step while some element of b - a is above the bound: the arrays change places.
ITERATION = """
func.func public @main(%x: tensor<?xf32>, %rate: tensor<f32>, %step: tensor<f32>, %bound: tensor<f32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %d = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %n = stablehlo.reshape %d : (tensor<i32>) -> tensor<1xi32>
  %start = stablehlo.negate %x : tensor<?xf32>
  %r:2 = stablehlo.while(%a = %start, %b = %x) : tensor<?xf32>, tensor<?xf32>
    cond {
      %difference = stablehlo.subtract %b, %a : tensor<?xf32>
      %size = stablehlo.abs %difference : tensor<?xf32>
      %most = stablehlo.reduce(%size init: %zero) applies stablehlo.maximum across dimensions = [0]
        : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
      %more = stablehlo.compare GT, %most, %bound, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %rates = stablehlo.dynamic_broadcast_in_dim %rate, %n, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
      %steps = stablehlo.dynamic_broadcast_in_dim %step, %n, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
      %less = stablehlo.multiply %a, %rates : tensor<?xf32>
      %next = stablehlo.add %less, %steps : tensor<?xf32>
      stablehlo.return %b, %next : tensor<?xf32>, tensor<?xf32>
    }
  return %r#0, %r#1 : tensor<?xf32>, tensor<?xf32>
}
"""
# The same, with at most twenty iterations, whose number counts too: it is a number of the host, which a kernel of the body reads.
AT_MOST_TWENTY = (
    ITERATION.replace("%r:2 = stablehlo.while(%a", "%r:3 = stablehlo.while(%i = %c0, %a")
    .replace(": tensor<?xf32>, tensor<?xf32>\n    cond", ": tensor<i32>, tensor<?xf32>, tensor<?xf32>\n    cond")
    .replace("%zero =", "%c0 = stablehlo.constant dense<0> : tensor<i32>\n  %zero =")
    .replace("%zero =", "%c1 = stablehlo.constant dense<1> : tensor<i32>\n  %zero =")
    .replace("%zero =", "%c20 = stablehlo.constant dense<20> : tensor<i32>\n  %zero =")
    .replace(
        "stablehlo.return %more",
        "%early = stablehlo.compare LT, %i, %c20, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "      %both = stablehlo.and %more, %early : tensor<i1>\n      stablehlo.return %both",
    )
    .replace("%less = stablehlo.multiply %a, %rates", "%less0 = stablehlo.multiply %a, %rates")
    .replace(
        "%next =",
        "%f = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>\n"
        "      %fs = stablehlo.dynamic_broadcast_in_dim %f, %n, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>\n"
        "      %less = stablehlo.add %less0, %fs : tensor<?xf32>\n      %j = stablehlo.add %i, %c1 : tensor<i32>\n      %next =",
    )
    .replace("stablehlo.return %b, %next : ", "stablehlo.return %j, %b, %next : tensor<i32>, ")
    .replace(
        "return %r#0, %r#1 : tensor<?xf32>, tensor<?xf32>",
        "return %r#1, %r#2, %r#0 : tensor<?xf32>, tensor<?xf32>, tensor<i32>",
    )
    .replace("-> (tensor<?xf32>, tensor<?xf32>)", "-> (tensor<?xf32>, tensor<?xf32>, tensor<i32>)")
)


def iterated(x: Any, rate: Any, step: Any, bound: Any) -> tuple[int, Any, Any]:
    a, b, trips = -x, x, 0
    while np.abs(b - a).max() > bound:
        a, b, trips = b, a * rate + step, trips + 1
    return trips, a, b


# From the start both arrays shrink by the rate in every second iteration: the bound decides after how many it ends. All numbers are exact.
def inputs(trips: int) -> list[Any]:
    x = np.array([1.0, -0.5, 0.25], np.float32)
    return [x, np.float32(0.5), np.float32(0.0), np.float32(1.9 * 0.5 ** (trips / 2) if trips else 2.0)]


@pytest.mark.parametrize("wanted", [0, 1, 2, 3, 4, 5, 61, 62, 63, 64, 65, 126, 127, 128, 190])
def test_the_loop_ends_where_numpy_s_does(wanted: int) -> None:
    program, given = xe.compile(ITERATION), inputs(wanted)
    trips, *expected = iterated(*given)
    assert abs(trips - wanted) <= 1
    for _ in range(2):
        for found, value in zip(program(*given), expected, strict=True):
            assert np.array_equal(found, value)


def test_such_a_loop_is_one_step() -> None:
    program, given = xe.compile(ITERATION), inputs(5)
    made = lowerings_of(program).loaded
    frame = made.frame(made.bind([np.shape(each) for each in given]))
    assert sum(isinstance(run, UntilLoop) for run in frame.code) == 1


def test_a_state_that_comes_back_is_an_endless_loop() -> None:
    x, one = np.array([1.0, -0.5], np.float32), np.float32(1.0)
    with pytest.raises(EndlessLoop, match=r"the state after (\d+) iterations is the one after (\d+)") as error:
        xe.compile(ITERATION)(x, one, np.float32(0.0), np.float32(0.5))
    later, earlier = (int(word) for word in str(error.value).split() if word.isdecimal())
    assert later > earlier
    assert (later - earlier) % 2 == 0  # a, b = b, a


@pytest.mark.parametrize("most", [0, 1, 7, 64, 200])
def test_the_limit_allows_as_many_iterations_and_no_more(most: int) -> None:
    program = xe.compile(ITERATION)
    for wanted in {0, 1, 5, 7, 8, 63, 64, 65, 66, 198, 199, 200, 201, 202}:
        trips, *expected = iterated(*inputs(wanted))
        with limits.limited_iterations(most):
            if trips > most:
                with pytest.raises(EndlessLoop, match=f"within {most} iterations"):
                    program(*inputs(wanted))
            else:
                assert np.array_equal(program(*inputs(wanted))[1], expected[1])


@pytest.mark.parametrize("bound", [1e9, 40.0, 12.0, 5.0, 1.5, 0.0])
def test_a_number_of_the_host_may_end_it_too(bound: float) -> None:
    program = xe.compile(AT_MOST_TWENTY)
    for scale in (1.0, 8.0):
        x, rate, step = np.array([1.0, -0.5, 0.25], np.float32) * np.float32(scale), np.float32(0.5), np.float32(0.25)
        a, b, trips = -x, x, 0
        while np.abs(b - a).max() > bound and trips < 20:
            a, b, trips = b, a * rate + np.float32(trips) + step, trips + 1
        found = program(x, rate, step, np.float32(bound))
        assert int(found[2]) == trips
        assert np.array_equal(found[0], a)
        assert np.array_equal(found[1], b)


def test_such_a_loop_is_one_step_too() -> None:
    made = lowerings_of(xe.compile(AT_MOST_TWENTY)).loaded
    frame = made.frame(made.bind([(3,), (), (), ()]))
    assert sum(isinstance(run, UntilLoop) for run in frame.code) == 1


def test_a_number_that_no_iteration_changes_is_read_in_each_run() -> None:
    program = xe.compile(
        ITERATION.replace("%bound: tensor<f32>)", "%bound: tensor<f32>, %may: tensor<i1>)").replace(
            "stablehlo.return %more", "%both = stablehlo.and %more, %may : tensor<i1>\n      stablehlo.return %both"
        )
    )
    given = inputs(5)
    for may in (True, False, True):
        wanted = iterated(*given)[1:] if may else (-given[0], given[0])
        for found, value in zip(program(*given, np.bool_(may)), wanted, strict=True):
            assert np.array_equal(found, value)
