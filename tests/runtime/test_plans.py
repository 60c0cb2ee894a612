"""Calls at known sizes are repeated without the host program: the same bits, new result arrays, segments chosen by data."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from long_lists import but_long
from runtime.host_runs import program_runs
from runtime.programs_table import programs

from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_host import CPU
from xla_emitters.pipelines.programs import DynamicProgram, compile_program
from xla_emitters.runtime.ral import plans, recording
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.program import LoadedProgram
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


def test_the_host_program_runs_twice_at_each_size(monkeypatch: pytest.MonkeyPatch) -> None:
    program = compiled(DOUBLED)
    runs = program_runs(program, monkeypatch)
    for _ in range(3):
        for size in (0, 1, 5):
            x = np.arange(size, dtype=np.float32)
            np.testing.assert_array_equal(program(x), x + x)
    assert len(runs) == 6
    assert (program.counters.runs, program.counters.live) == (9, 0)


REPEATED = (
    *("layer", "random", "dropout", "until_large", "given_trips", "decoder", "update_slice", "branches", "sorted"),
    # A function of each kind that the runtime calls: a convolution, random bits, the largest, a product of bf16.
    *("convolution", "generator", "largest_two", "bfloat_softmax"),
)


# A layer's products, bits of a generator and slices of a cache are in others too.
@pytest.mark.parametrize("name", but_long(REPEATED, ("decoder", "dropout", "random")))
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


def test_the_sizes_called_last_keep_their_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MOST_PLANS", 2)
    program = compiled(DOUBLED)
    runs = program_runs(program, monkeypatch)
    for size in (1, 1, 2, 2, 1, 3, 1, 2):
        program(np.ones(size, np.float32))
    assert len(runs) == 6  # all but the third and fourth call of size 1: size 3 takes the place of size 2


def test_a_plan_that_was_dropped_for_its_memory_is_not_recorded_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MOST_BYTES", 40_000)
    program, w = compiled(PRODUCTS), np.eye(4, dtype=np.float32)
    runs = program_runs(program, monkeypatch)
    for _ in range(plans.AGAIN):
        for size in (1000, 1001):  # each plan fits, both do not
            program(np.ones((size, 4), np.float32), w)
    assert len(runs) == plans.AGAIN + 2  # all calls of the first, whose plan the second one's replaces


PRODUCTS = """module @m { func.func public @main(%x: tensor<?x4xf32>, %w: tensor<4x4xf32>) -> tensor<?x4xf32> {
  %y = stablehlo.dot %x, %w : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %z = stablehlo.dot %y, %w : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  return %z : tensor<?x4xf32> } }"""


def test_the_memory_of_plans_is_that_of_their_buffers_and_events() -> None:
    """A temporary, and at most the result too, of 16 bytes a row each; the plan of a size is made by its second call."""
    program, w, rows, code = compiled(PRODUCTS), np.eye(4, dtype=np.float32), 0, 0
    made = program.loaded.plans
    assert made is not None
    for size in (100, 1000):
        for new in (0, size):
            program(np.ones((size, 4), np.float32), w)
            rows, code = rows + new, code + 3 * plans.EVENT_BYTES * (new > 0)  # two events of one segment
            assert 16 * rows <= made.bytes - code <= 32 * rows + 1024  # alignment


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


# ------------------------------------------------------------------------------------------------- loops of many trips

TRIPS = """module @m {{ func.func public @main(%n: tensor<i32>, %x: tensor<?x?xf32>) -> tensor<?x?xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<?x?xf32>
   cond {{ %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
     stablehlo.return %c : tensor<i1> }}
   do {{ %j = stablehlo.add %i, %one : tensor<i32>
     %z = {0}
     stablehlo.return %j, %z : tensor<i32>, tensor<?x?xf32> }}
  return %0#1 : tensor<?x?xf32> }} }}"""
BODIES = {
    "kernels": "stablehlo.negate %y : tensor<?x?xf32>",
    "products": "stablehlo.dot_general %y, %x, contracting_dims = [1] x [0] : "
    "(tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>",
}
TURN = np.array([[0, 1], [-1, 0]], np.float32)


def after(body: str, trips: int, x: Array) -> Array:
    """The loop's result for x. For products: TURN to the power of trips + 1, whose elements are 0, 1 and -1."""
    if body == "kernels":
        return -x if max(0, trips) % 2 else x
    return np.linalg.matrix_power(x, max(0, trips) + 1)


@pytest.mark.parametrize("body", BODIES)
def test_loops_whose_trips_an_argument_says_are_repeated(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = compiled(TRIPS.format(BODIES[body]))
    runs, sizes = program_runs(program, monkeypatch), (3, 100, 0, 3, 1000, 100, -7, 7)
    for _ in range(4):
        for trips in sizes:
            np.testing.assert_array_equal(program.run([np.int32(trips), TURN]), [after(body, trips, TURN)])
    done = len(runs)
    for trips in sizes * 3:
        np.testing.assert_array_equal(program(np.array(trips, np.int32), TURN), after(body, trips, TURN))
    assert len(runs) == done  # each number of trips is repeated
    assert program.counters.runs == 7 * len(sizes)
    assert program.counters.live == 0


def test_a_number_of_trips_that_is_too_large_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_EVENTS", 500)
    program = compiled(TRIPS.format(BODIES["products"]))
    runs = program_runs(program, monkeypatch)
    for trips in (20, 20, 600, 20, 600, 20):
        np.testing.assert_array_equal(program(np.array(trips, np.int32), TURN), after("products", trips, TURN))
    done = len(runs)
    for trips in (20, 600, 20, 20):
        np.testing.assert_array_equal(program(np.array(trips, np.int32), TURN), after("products", trips, TURN))
    assert len(runs) == done + 1


def test_a_few_conditions_on_an_argument_keep_a_segment_for_each_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """An argument with many values that only selects between two paths through the program is not read itself."""
    program = compiled(
        """module @m { func.func public @main(%x: tensor<?xf32>, %n: tensor<i32>) -> tensor<?xf32> {
        %five = stablehlo.constant dense<5> : tensor<i32>
        %c = stablehlo.compare LT, %n, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %y = "stablehlo.if"(%c) ({
          %a = stablehlo.negate %x : tensor<?xf32>
          stablehlo.return %a : tensor<?xf32>
        }, {
          %a = stablehlo.abs %x : tensor<?xf32>
          stablehlo.return %a : tensor<?xf32>
        }) : (tensor<i1>) -> tensor<?xf32>
        return %y : tensor<?xf32> } }"""
    )
    runs, x = program_runs(program, monkeypatch), np.array([-1, 2, -3], np.float32)
    for n in range(-20, 40):
        np.testing.assert_array_equal(program(x, np.array(n, np.int32)), -x if n < 5 else np.abs(x))
    assert len(runs) == 3


# ------------------------------------------------------------------------------------------------------- donated memory

CACHE = """module @m { func.func public @main(%cache: tensor<?x?xf32> {tf.aliasing_output = 0 : i32}, %row: tensor<1x?xf32>,
                                       %at: tensor<i32>) -> (tensor<?x?xf32>, tensor<1x?xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %double = stablehlo.add %row, %row : tensor<1x?xf32>
  %new = stablehlo.dynamic_update_slice %cache, %double, %at, %zero
    : (tensor<?x?xf32>, tensor<1x?xf32>, tensor<i32>, tensor<i32>) -> tensor<?x?xf32>
  return %new, %double : tensor<?x?xf32>, tensor<1x?xf32> } }"""


@pytest.mark.parametrize("donate", [False, True])
def test_a_donated_argument_is_written_in_place_by_repeated_calls(
    donate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compiled(CACHE)
    runs, row = program_runs(program, monkeypatch), np.ones((1, 3), np.float32)
    cache = np.zeros((5, 3), np.float32)
    wanted = np.zeros((5, 3), np.float32)
    for call in range(40):
        at, row[...] = call % 5, call
        given, before = cache, cache.copy()
        wanted[at] = 2 * call
        cache, double = program(cache, row, np.array(at, np.int32), donate=donate)
        np.testing.assert_array_equal(cache, wanted)
        np.testing.assert_array_equal(double, 2 * row)
        assert np.shares_memory(given, cache) == donate
        if not donate:
            np.testing.assert_array_equal(given, before)
    assert len(runs) <= 10


def test_an_array_that_is_donated_twice_or_begins_anywhere_is_copied() -> None:
    program, at = compiled(CACHE), np.array(1, np.int32)
    memory = np.zeros(40, np.float32)
    for begin in (0, 0, 0, 1, 0):
        memory[...] = range(40)
        cache = memory[begin : begin + 15].reshape(5, 3)
        row = cache[4:]  # the program reads it after it has written the other
        wanted, doubled = cache.copy(), row * 2
        wanted[1] = doubled
        found, double = program(cache, row, at, donate=True)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(double, doubled)
        assert not np.shares_memory(found, memory)


def test_data_that_decide_after_a_donated_argument_was_written_do_not_see_it_twice() -> None:
    """A new value runs the host program on the unchanged arguments."""
    program = compiled(
        """module @m { func.func public @main(%x: tensor<?xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<?xf32>, tensor<f32>) {
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %most = stablehlo.constant dense<100.0> : tensor<f32>
        %0:2 = stablehlo.while(%y = %x, %s = %zero) : tensor<?xf32>, tensor<f32>
         cond { %c = stablehlo.compare LT, %s, %most : (tensor<f32>, tensor<f32>) -> tensor<i1>
           stablehlo.return %c : tensor<i1> }
         do { %z = stablehlo.add %y, %y : tensor<?xf32>
           %t = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
           stablehlo.return %z, %t : tensor<?xf32>, tensor<f32> }
        return %0#0, %0#1 : tensor<?xf32>, tensor<f32> } }"""
    )
    for start in (1, 1, 1, 30, 5, 30, 1, 5, 200):
        wanted, total = np.full(2, start, np.float32), 0.0
        while total < 100:
            wanted, total = wanted * 2, wanted.sum() * 2
        for donate in (True, False):
            found, s = program(np.full(2, start, np.float32), donate=donate)
            np.testing.assert_array_equal(found, wanted)
            assert s == total


def test_few_trips_that_an_argument_decides_are_repeated_on_a_donated_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of trips is read before the first write."""
    program = compiled(
        """module @m { func.func public @main(%x: tensor<?xf32> {tf.aliasing_output = 0 : i32}, %n: tensor<i32>) -> tensor<?xf32> {
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %seven = stablehlo.constant dense<7.0> : tensor<1xf32>
        %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<?xf32>
         cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
           stablehlo.return %c : tensor<i1> }
         do { %j = stablehlo.add %i, %one : tensor<i32>
           %z = stablehlo.dynamic_update_slice %y, %seven, %i : (tensor<?xf32>, tensor<1xf32>, tensor<i32>) -> tensor<?xf32>
           stablehlo.return %j, %z : tensor<i32>, tensor<?xf32> }
        return %0#1 : tensor<?xf32> } }"""
    )
    runs = program_runs(program, monkeypatch)
    for trips in (2, 2, 2, 2, 0, 0, 1, 1, 2, 0, 1):
        for donate in (True, False):
            x = np.arange(1, 4, dtype=np.float32)
            found = program(x, np.array(trips, np.int32), donate=donate)
            np.testing.assert_array_equal(found, [7] * trips + [1, 2, 3][trips:])
            assert np.shares_memory(found, x) == donate
    assert len(runs) <= 6


ENDED_BY_DATA = """module @m { func.func public @main(%x: tensor<?xf32>, %most: tensor<f32>) -> (tensor<?xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %shape = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %cache = stablehlo.dynamic_broadcast_in_dim %none, %shape, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
  %0:3 = stablehlo.while(%i = %zero, %c = %cache, %s = %none) : tensor<i32>, tensor<?xf32>, tensor<f32>
   cond { %less = stablehlo.compare LT, %s, %most : (tensor<f32>, tensor<f32>) -> tensor<i1>
     stablehlo.return %less : tensor<i1> }
   do { %e = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<?xf32>, tensor<i32>) -> tensor<1xf32>
     %d = stablehlo.dynamic_update_slice %c, %e, %i : (tensor<?xf32>, tensor<1xf32>, tensor<i32>) -> tensor<?xf32>
     %f = stablehlo.reshape %e : (tensor<1xf32>) -> tensor<f32>
     %t = stablehlo.add %s, %f : tensor<f32>
     %j = stablehlo.add %i, %one : tensor<i32>
     stablehlo.return %j, %d, %t : tensor<i32>, tensor<?xf32>, tensor<f32> }
  return %0#1, %0#0 : tensor<?xf32>, tensor<i32> } }"""


@pytest.mark.parametrize(
    "limits", [(2.5, 2.5, 2.5, 0, 0, 4.5, 2.5, 4.5, 0, 2.5), (0, 0, 0, 2.5, 4.5, 2.5, 0, 2.5, 4.5, 0)]
)
def test_a_cache_of_zeros_in_a_loop_that_data_end_is_empty_in_each_call(
    limits: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache is known until the loop writes it, which the recorded call may not do."""
    program = compiled(ENDED_BY_DATA)
    runs = program_runs(program, monkeypatch)
    for number, most in enumerate((*limits, *limits[::-1], *limits)):
        x = np.ones(100, np.float32) + np.float32(number) / 1024
        trips = int(np.count_nonzero(np.cumsum(x, dtype=np.float32) < most)) + (most > 0)
        found, count = program(x, np.array(most, np.float32))
        np.testing.assert_array_equal(found, np.where(np.arange(100) < trips, x, 0))
        assert count == trips
    assert len(runs) <= 6


# ------------------------------------------------------------------------------------------------------- several segments

SOURCE = """def main(ctx, x):
    y = ctx.alloc((), s32)
    if x.item(0) > 0:
        y[()] = 1
    else:
        y[()] = 2
    return (y,)
"""


def test_a_buffer_that_two_segments_write_is_written_in_each_call() -> None:
    """Both know what they write; the buffer was allocated before the first read of data."""
    other = compiled(DOUBLED).loaded
    assert other.plans is not None
    kernels, steps = other.context.kernels, other.plans._steps  # pyright: ignore[reportPrivateUsage]
    program = LoadedProgram(SOURCE, {}, {"s32": "s32"}, Constants({}), kernels, steps=steps)
    for sign in (1, 1, 1, -1, -1, 1, -1, 1):
        (found,) = program.run([np.array([sign, 0], np.float32)])
        assert int(found) == (1 if sign > 0 else 2)


TURNS = """module @m { func.func public @main(%x: tensor<?x2xf32>, %most: tensor<f32>) -> tensor<?x2xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %w = stablehlo.constant dense<[[0.0, -1.0], [1.0, 0.0]]> : tensor<2x2xf32>
  %0:2 = stablehlo.while(%s = %zero, %v = %x) : tensor<f32>, tensor<?x2xf32>
   cond { %less = stablehlo.compare LT, %s, %most : (tensor<f32>, tensor<f32>) -> tensor<i1>
     stablehlo.return %less : tensor<i1> }
   do { %t = stablehlo.add %s, %one : tensor<f32>
     %y = stablehlo.dot %v, %w : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
     stablehlo.return %t, %y : tensor<f32>, tensor<?x2xf32> }
  return %0#1 : tensor<?x2xf32> } }"""


def turned(x: Array, trips: int) -> Array:
    return x @ np.linalg.matrix_power(np.array([[0, -1], [1, 0]], np.float32), trips)


def test_a_long_loop_that_data_end_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """One path may have any number of segments: no machine code replaces a loop with a product."""
    program, x = compiled(TURNS), np.arange(6, dtype=np.float32).reshape(3, 2)
    runs = program_runs(program, monkeypatch)
    for trips in (300, 300, 300, 301, 301, 300, 301):
        np.testing.assert_array_equal(program(x, np.array(trips, np.float32)), turned(x, trips))
    assert len(runs) == 3


def test_too_many_paths_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MOST_SEGMENTS", 3)
    program, x = compiled(TURNS), np.arange(6, dtype=np.float32).reshape(3, 2)
    runs = program_runs(program, monkeypatch)
    for trips in (9, 9, 9, 8, 7, 9, 6, 9, 5, 9, 9):
        np.testing.assert_array_equal(program(x, np.array(trips, np.float32)), turned(x, trips))
    assert len(runs) == 8


def test_products_in_any_dimensions_need_no_python_between() -> None:
    case = programs()["three_factors"]
    program, arrays = case.compiled(), case.inputs(case.case.sizes[0])
    first = program.run(arrays)
    for _ in range(3):
        for found, wanted in zip(program.run(arrays), first, strict=True):
            assert found.tobytes() == wanted.tobytes()
    assert program.loaded.plans is not None
    (plan,) = program.loaded.plans._known.values()  # pyright: ignore[reportPrivateUsage]
    assert plan.root.code.header


MIXED = """module @m {{ func.func public @main(%x: tensor<{x}xf32>, %y: tensor<{x}xf32>) -> tensor<{x}xf32> {{
  %z = stablehlo.dot_general %x, %y, batching_dims = {batch} x {batch}, contracting_dims = [{last}] x [{last}] :
    (tensor<{x}xf32>, tensor<{x}xf32>) -> tensor<{x}xf32>
  return %z : tensor<{x}xf32> }} }}"""


@pytest.mark.parametrize(
    ("batch", "subscripts"),
    [([0, 2], "bqhd,bkhd->bhqk"), ([0, 1, 3], "nbqhd,nbkhd->nbhqk")],
    ids=["heads", "of a vmap"],
)
def test_products_of_heads_between_places_need_no_python_between(batch: list[int], subscripts: str) -> None:
    """No single stride leads from one matrix of the batch to the next."""
    rank = len(batch) + 2
    text = MIXED.format(batch=batch, last=rank - 1, x="x".join("?" * rank))
    program, rng = compiled(text), np.random.default_rng(0)
    x, y = (rng.integers(-4, 5, (2, 3, 5, 4, 6)[5 - rank :]).astype(np.float32) for _ in range(2))
    for _ in range(4):
        np.testing.assert_array_equal(program(x, y), np.einsum(subscripts, x, y))
    assert program.loaded.plans is not None
    (plan,) = program.loaded.plans._known.values()  # pyright: ignore[reportPrivateUsage]
    assert plan.root.code.header


@pytest.mark.parametrize("name", ["ends_early", "two_choices_deep"])
def test_conditions_on_integers_need_no_python_between(name: str) -> None:
    case = programs()[name]
    program, arrays = case.compiled(), case.inputs(case.case.sizes[0])
    first = program.run(arrays)
    for _ in range(3):
        for found, wanted in zip(program.run(arrays), first, strict=True):
            assert found.tobytes() == wanted.tobytes()
    assert program.loaded.plans is not None
    (plan,) = program.loaded.plans._known.values()  # pyright: ignore[reportPrivateUsage]
    segments = [plan.root]
    for segment in segments:
        segments += segment.children.values()
    assert len(segments) > 4
    assert all(segment.code.header or segment.code.is_empty for segment in segments)
