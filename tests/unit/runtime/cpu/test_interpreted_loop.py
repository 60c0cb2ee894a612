"""Loops that machine code runs, against the same loops in NumPy; and steps written by hand, against the same steps one by one."""

from collections.abc import Sequence
from functools import cache
from itertools import count, product
from typing import Any

import numpy as np
import pytest
from runtime.cpu_ways import compiled

import xla_emitters as xe
from xla_emitters.errors import DataError, EndlessLoop
from xla_emitters.library.arguments import element_name, numpy_type
from xla_emitters.lowering.cpu.cpu_code import CpuCode
from xla_emitters.lowering.cpu.cpu_steps import CHAIN_IR, ENTRY
from xla_emitters.lowering.cpu.cpu_target import cpu_target
from xla_emitters.lowering.cpu.loop_interpreter import INTERPRETER_IR
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.program.executable import Constants, Executable
from xla_emitters.program.steps import (
    DIVISIONS,
    FUNCTIONS,
    Allocate,
    ArrayPlace,
    Branch,
    Compute,
    Load,
    Loop,
    Move,
    NumberSlot,
    Release,
    Step,
    Store,
    steps_within,
)
from xla_emitters.runtime.cpu import interpreted_loop
from xla_emitters.runtime.cpu.cpu_platform import CpuPlatform
from xla_emitters.runtime.cpu.interpreted_loop import FIRST_AT_ONCE, InterpretedLoop
from xla_emitters.runtime.loaded import LoadedProgram
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


@pytest.mark.parametrize("trips", [1, 2, 3, 4, 5, 6, 7, FIRST_AT_ONCE, FIRST_AT_ONCE + 1, 3 * FIRST_AT_ONCE, 10_000])
def test_memory_and_numbers_are_those_of_each_iteration(trips: int) -> None:
    program = compiled(SCAN)
    for seed in range(2):
        for found, wanted in zip(program(*drawn(trips, seed)), scanned(*drawn(trips, seed)), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_a_scan_is_one_call_whose_arguments_and_results_stay_as_they_are() -> None:
    program, inputs = compiled(SCAN), drawn(9)
    assert loop_in(frame_of(program, inputs))
    first = program(*inputs)
    copies = [each.copy() for each in first]
    program(*drawn(9, 1))
    for found, wanted in zip([*first, *inputs], [*copies, *drawn(9)], strict=True):
        assert np.array_equal(found, wanted)


def test_more_iterations_than_allowed_are_refused() -> None:
    program = compiled(SCAN)
    program(*drawn(9))
    with limits.limited_iterations(8), pytest.raises(EndlessLoop, match="8 iterations"):
        program(*drawn(9))


def test_a_loop_s_memory_counts() -> None:
    program = compiled(SCAN)
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
    program, inputs = compiled(THREE), [np.zeros(size, np.float32) for size in (9, 100, 100, 100)]
    assert loop_in(frame_of(program, inputs))
    with limits.limited_memory(program.memory(inputs).peak - 1), pytest.raises(DataError, match="memory"):
        program(*inputs)


def test_a_loop_needs_no_more_memory_than_its_steps() -> None:
    """Memory that no slot holds is free: that of the arguments' copies, and of other places of the loop."""
    program, inputs = compiled(THREE), [np.zeros(size, np.float32) for size in (9, 100, 100, 100)]
    program(*inputs)
    with limits.limited_memory(program.memory(inputs).peak):
        for _ in range(2):
            program(*inputs)


def loop_in(frame: Frame) -> InterpretedLoop:
    (loop,) = (run for run in frame.code if isinstance(run, InterpretedLoop))
    return loop


@pytest.mark.parametrize(("seconds", "wanted"), [(0.0, [16, 32, 64, 128]), (1.0, [16, 8, 4, 2, *[1] * 170])])
def test_long_iterations_leave_python_time_for_signals(
    monkeypatch: pytest.MonkeyPatch, seconds: float, wanted: list[int]
) -> None:
    """A call of machine code is as many iterations as take little time: Python handles Ctrl-C between two calls."""
    clock, calls = count(), list[int]()
    monkeypatch.setattr(interpreted_loop, "perf_counter", lambda: next(clock) * seconds)
    program, inputs = xe.compile(SCAN, record="none"), drawn(200)
    frame = frame_of(program, inputs)
    frame.run(inputs)  # the next one knows how much memory it takes: nothing else stops it
    loop: Any = loop_in(frame)
    code, loop._at_once = loop._code, FIRST_AT_ONCE

    def counted(*given: int) -> int:
        calls.append(loop._fuel[0])
        return code(*given)

    loop._code = counted
    for found, expected in zip(frame.run(inputs), scanned(*inputs), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert calls == wanted


def test_words_are_set_anew_after_an_interrupt() -> None:
    """An interrupt between two words leaves no word as it was for the next run."""
    loop: Any = object.__new__(InterpretedLoop)
    loop._set, words = {}, Interrupted([0, 0])
    places = [(words, 0), (words, 1)]
    loop._tell(("slot", 0), 5, places)
    words.is_interrupted = True
    with pytest.raises(KeyboardInterrupt):
        loop._tell(("slot", 0), 6, places)
    words.is_interrupted = False
    words[:] = [5, 5]
    loop._tell(("slot", 0), 5, places)
    loop._tell(("slot", 0), 6, places)
    assert words == [6, 6]


class Interrupted(list[int]):
    """Words of which the second is not set where a signal comes before."""

    is_interrupted = False

    def __setitem__(self, place: Any, value: Any) -> None:
        if place == 1 and self.is_interrupted:
            raise KeyboardInterrupt
        super().__setitem__(place, value)


def test_a_loop_with_a_branch() -> None:
    branch = SCAN.replace(
        "%less = stablehlo.multiply %p, %half : tensor<4xf32>",
        """%less = "stablehlo.case"(%i) ({
        stablehlo.return %p : tensor<4xf32>
      }, {
        %product = stablehlo.multiply %p, %half : tensor<4xf32>
        stablehlo.return %product : tensor<4xf32>
      }) : (tensor<i32>) -> tensor<4xf32>""",
    )
    program, (x, a, b) = xe.compile(branch, record="none"), drawn(9)
    assert loop_in(frame_of(program, [x, a, b]))
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
    program = xe.compile(LARGE, record="none")
    for trips in (1, 3, 9):
        k, a = 1 << 63, np.float32(1)
        for _ in range(trips):
            a, k = a + np.float32(k) * np.float32(2.0**-63), (k + (1 << 62)) % (1 << 64)
        found, number = program(np.zeros(trips, np.float32), np.float32(1))
        assert float(found) == float(a)
        assert int(number) == k


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
def decaying(trips: int) -> list[Any]:
    x = np.array([1.0, -0.5, 0.25], np.float32)
    return [x, np.float32(0.5), np.float32(0.0), np.float32(1.9 * 0.5 ** (trips / 2) if trips else 2.0)]


@pytest.mark.parametrize("wanted", [0, 1, 2, 3, 4, 5, 61, 62, 63, 64, 65, 126, 127, 128, 190])
def test_the_loop_ends_where_numpy_s_does(wanted: int) -> None:
    program, given = compiled(ITERATION), decaying(wanted)
    trips, *expected = iterated(*given)
    assert abs(trips - wanted) <= 1
    for _ in range(2):
        for found, value in zip(program(*given), expected, strict=True):
            assert np.array_equal(found, value)


def test_such_a_loop_is_one_step() -> None:
    program, given = compiled(ITERATION), decaying(5)
    made = lowerings_of(program).loaded
    frame = made.frame(made.bind([np.shape(each) for each in given]))
    assert sum(isinstance(run, InterpretedLoop) for run in frame.code) == 1


def test_a_state_that_comes_back_is_an_endless_loop() -> None:
    x, one = np.array([1.0, -0.5], np.float32), np.float32(1.0)
    with pytest.raises(EndlessLoop, match=r"the state after (\d+) iterations is the one after (\d+)") as error:
        compiled(ITERATION)(x, one, np.float32(0.0), np.float32(0.5))
    later, earlier = (int(word) for word in str(error.value).split() if word.isdecimal())
    assert later > earlier
    assert (later - earlier) % 2 == 0  # a, b = b, a


@pytest.mark.parametrize("most", [0, 1, 7, 64, 200])
def test_the_limit_allows_as_many_iterations_and_no_more(most: int) -> None:
    program = compiled(ITERATION)
    for wanted in {0, 1, 5, 7, 8, 63, 64, 65, 66, 198, 199, 200, 201, 202}:
        trips, *expected = iterated(*decaying(wanted))
        with limits.limited_iterations(most):
            if trips > most:
                with pytest.raises(EndlessLoop, match=f"within {most} iterations"):
                    program(*decaying(wanted))
            else:
                assert np.array_equal(program(*decaying(wanted))[1], expected[1])


@pytest.mark.parametrize("bound", [1e9, 40.0, 12.0, 5.0, 1.5, 0.0])
def test_a_number_of_the_host_may_end_it_too(bound: float) -> None:
    program = compiled(AT_MOST_TWENTY)
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
    made = lowerings_of(compiled(AT_MOST_TWENTY)).loaded
    frame = made.frame(made.bind([(3,), (), (), ()]))
    assert sum(isinstance(run, InterpretedLoop) for run in frame.code) == 1


def test_a_number_that_no_iteration_changes_is_read_in_each_run() -> None:
    program = xe.compile(
        ITERATION.replace("%bound: tensor<f32>)", "%bound: tensor<f32>, %may: tensor<i1>)").replace(
            "stablehlo.return %more", "%both = stablehlo.and %more, %may : tensor<i1>\n      stablehlo.return %both"
        )
    )
    given = decaying(5)
    for may in (True, False, True):
        wanted = iterated(*given)[1:] if may else (-given[0], given[0])
        for found, value in zip(program(*given, np.bool_(may)), wanted, strict=True):
            assert np.array_equal(found, value)


# ------------------------------------------------------------------------------------------------------- steps written by hand


class StepByStep(CpuPlatform):
    """Loops run step by step."""

    def whole(self, frame: Frame, step: Loop) -> None:
        return None


@cache
def code() -> CpuCode:
    return CpuCode(CHAIN_IR + INTERPRETER_IR, cpu_target())


def on(
    platform: type[CpuPlatform],
    inputs: list[Any],
    steps: Sequence[Step],
    results: Sequence[ArrayPlace],
    *,
    in_code: bool = True,
) -> list[Any]:
    """The results of steps whose parameters are the first slots. `in_code`: machine code runs their loop, on the CPU's platform"""
    places = tuple(ArrayPlace(n, element_name(each.dtype), each.shape, True) for n, each in enumerate(inputs))
    made = Executable(places, tuple(results), tuple(steps), 40, 40, Constants(()), {}, (), frozenset())
    loaded = LoadedProgram(made, platform([], lambda name: code().address(f"{name}{ENTRY}")))
    frame = loaded.frame(loaded.bind([each.shape for each in inputs]))
    assert sum(isinstance(run, InterpretedLoop) for run in frame.code) == (in_code and platform is CpuPlatform)
    found = [frame.run(inputs) for _ in range(2)]
    for one, two in zip(*found, strict=True):
        assert np.array_equal(one, two)
    return found[0]


def n(index: int) -> NumberSlot:
    return NumberSlot(index)


def both(inputs: list[Any], steps: Sequence[Step], results: Sequence[ArrayPlace]) -> list[Any]:
    found, wanted = (on(platform, inputs, steps, results) for platform in (CpuPlatform, StepByStep))
    for one, two in zip(found, wanted, strict=True):
        assert np.array_equal(one, two)
    return found


NUMBERS, SUM = ArrayPlace(0, "s64", (12,), True), ArrayPlace(1, "s64", (12,), False)
COUNT = Compute(n(0), "add", (n(0), 1))


def loop(name: str, trips: int, *body: Step) -> Loop:
    assigned = {step.result.index for step in steps_within(body) if isinstance(step, Compute | Load)}
    return Loop(name, (), 1, body, (), tuple(assigned), trips)


def test_loops_and_branches_inside_of_loops() -> None:
    """sums[i] = the sum of v, 2 v, 7 or -v for each of i elements v, which its rest by 4 chooses."""
    v, choice = n(3), n(4)
    steps = (
        Allocate(SUM),
        Compute(n(0), "copy", (0,)),
        loop(
            "outer",
            12,
            Compute(n(1), "copy", (0,)),
            Compute(n(2), "copy", (0,)),
            Loop(
                "inner",
                (Compute(n(6), "lt", (n(1), n(0))),),
                n(6),
                (
                    Load(v, NUMBERS, (n(1),)),
                    Compute(choice, "remainder", (v, 4)),
                    Branch(
                        "which",
                        choice,
                        (
                            (Compute(n(5), "copy", (v,)),),
                            (Compute(n(5), "add", (v, v)),),
                            (Compute(n(5), "copy", (7,)),),
                            (Compute(n(5), "subtract", (0, v)),),
                        ),
                        (),
                        (5,),
                    ),
                    Compute(n(2), "add", (n(2), n(5))),
                    Compute(n(1), "add", (n(1), 1)),
                ),
                (),
                (1, 2),
            ),
            Store(SUM, (n(0),), n(2)),
            COUNT,
        ),
    )
    values = np.array([5, -3, 8, 2, 2, 7, -6, 0, 11, 4, -1, 9])
    chosen = [(value, 2 * value, 7, -value)[value % 4] for value in values]
    (found,) = both([values], steps, [SUM])
    assert list(found) == [sum(chosen[:count]) for count in range(12)]


def test_memory_changes_places_on_the_way_that_was_taken() -> None:
    """Of two arrays the one that a branch writes anew is the other one afterwards."""
    a, b, made = (ArrayPlace(slot, "s64", (1,), True) for slot in (2, 3, 4))
    swap = (
        Allocate(made),
        Load(n(1), a, (0,)),
        Compute(n(1), "multiply", (n(1), 3)),
        Store(made, (0,), n(1)),
        Release(a.slot),
        Move(((b.slot, a.slot), (made.slot, b.slot))),
    )
    keep = (Load(n(1), b, (0,)), Compute(n(1), "add", (n(1), 1)), Store(b, (0,), n(1)))
    steps = (
        *(
            step
            for number, place in enumerate((a, b))
            for step in (Allocate(place), Load(n(9), NUMBERS, (number,)), Store(place, (0,), n(9)))
        ),
        Compute(n(0), "copy", (0,)),
        loop("l", 12, Load(n(2), NUMBERS, (n(0),)), Branch("b", n(2), (keep, swap), ()), COUNT),
    )
    values = np.array([1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0])
    one, two = 1, 0
    for value in values:
        one, two = (two, 3 * one) if value else (one, two + 1)
    assert [int(each[0]) for each in both([values], steps, [a, b])] == [one, two]


def test_a_division_by_zero_names_its_operands() -> None:
    steps = (
        Allocate(SUM),
        Compute(n(0), "copy", (0,)),
        loop(
            "l",
            12,
            Load(n(1), NUMBERS, (n(0),)),
            Compute(n(2), "floordiv", (17, n(1))),
            Store(SUM, (n(0),), n(2)),
            COUNT,
        ),
    )
    values = np.array([1, 2, -3, 5, -17, 18, 1, 1, 1, 1, 1, 1])
    assert np.array_equal(both([values], steps, [SUM])[0], 17 // values)
    values[7] = 0
    for platform in (CpuPlatform, StepByStep):
        with pytest.raises(DataError, match="floordiv by zero, of 17"):
            on(platform, [values], steps, [SUM])


@pytest.mark.parametrize("trips", [60, 63, 64, 65, 200])
def test_an_inner_loop_that_does_not_end(trips: int) -> None:
    """Each run of it is watched anew: it ends `trips` times after as many iterations, and then its number does not change any more."""
    steps = (
        Allocate(SUM),
        Compute(n(0), "copy", (0,)),
        loop(
            "outer",
            12,
            Load(n(3), NUMBERS, (n(0),)),
            Compute(n(1), "copy", (0,)),
            Loop(
                "inner",
                (Compute(n(2), "lt", (n(1), trips)),),
                n(2),
                (Compute(n(1), "add", (n(1), n(3))),),
                (),
                (1,),
            ),
            Store(SUM, (n(0),), n(1)),
            COUNT,
        ),
    )
    assert list(both([np.ones(12, np.int64)], steps, [SUM])[0]) == [trips] * 12
    values = np.array([1, 1, 1, 0, *[1] * 8])
    for platform in (CpuPlatform, StepByStep):
        with pytest.raises(EndlessLoop, match="loop %inner does not end"):
            on(platform, [values], steps, [SUM])


FAR = 2**63 - 1
EDGES = {
    "s64": (-(2**63), -(2**62), -17, -2, -1, 0, 1, 2, 7, 2**31, 2**62, FAR),
    **{f"u{bits}": (0, 1, 2, 7, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1) for bits in (8, 16, 32)},
    **{f"s{bits}": (-(2 ** (bits - 1)), -7, -1, 0, 1, 5, 2 ** (bits - 1) - 1) for bits in (8, 16, 32)},
}


@pytest.mark.parametrize("function", [name for name in FUNCTIONS if not name.endswith(".u64")])
def test_functions_are_those_of_python(function: str) -> None:
    """Of numbers whose result 64 bits hold; the elements of a type wrap around."""
    name, _, kind = function.partition(".")
    edges, count = EDGES[kind or "s64"], 1 if name == "copy" else 3 if name == "select" else 2
    columns, wanted = list[tuple[int, ...]](), list[int]()
    for operands in product(edges, repeat=count):
        if function in DIVISIONS and operands[1] == 0:
            continue
        value = FUNCTIONS[function](*operands)
        if -(2**63) <= value <= FAR:
            columns.append(operands)
            wanted.append(value)
    inputs = [np.array(column) for column in zip(*columns, strict=True)]
    given = [ArrayPlace(slot, "s64", (len(wanted),), True) for slot in range(count)]
    result = ArrayPlace(count, "s64", (len(wanted),), False)
    steps = (
        Allocate(result),
        Compute(n(0), "copy", (0,)),
        loop(
            "l",
            len(wanted),
            *(Load(n(number), place, (n(0),)) for number, place in enumerate(given, 1)),
            Compute(n(9), function, tuple(n(number) for number in range(1, count + 1))),
            Store(result, (n(0),), n(9)),
            COUNT,
        ),
    )
    assert on(CpuPlatform, inputs, steps, [result])[0].tolist() == wanted


@pytest.mark.parametrize("kind", ["pred", "s8", "u8", "s16", "u16", "s32", "u32", "s64"])
def test_elements_are_read_and_written_in_their_type(kind: str) -> None:
    values = np.arange(24).reshape(3, 8).astype(numpy_type(kind))
    if kind != "pred":
        values[1, 2:4] = np.iinfo(values.dtype).min, np.iinfo(values.dtype).max
    source, target = ArrayPlace(0, kind, (3, 8), True), ArrayPlace(1, kind, (8, 3), False)
    steps = (
        Allocate(target),
        Compute(n(0), "copy", (0,)),
        loop(
            "rows",
            3,
            Compute(n(1), "copy", (0,)),
            loop(
                "columns",
                8,
                Load(n(2), source, (n(0), n(1))),
                Store(target, (n(1), n(0)), n(2)),
                Compute(n(1), "add", (n(1), 1)),
            ),
            COUNT,
        ),
    )
    assert np.array_equal(both([values], steps, [target])[0], values.T)


def test_numbers_of_64_bits_without_a_sign_from_outside_run_step_by_step() -> None:
    large, result = ArrayPlace(0, "u64", (1,), True), ArrayPlace(1, "u64", (1,), False)
    for function, wanted in (("gt", 1), ("maximum", 2**63 + 5), ("copy", 2**63 + 5)):
        operands = (n(1),) if function == "copy" else (n(1), 5)
        steps = (
            Allocate(SUM_AFTER),
            Allocate(result),
            Load(n(1), large, (0,)),
            Compute(n(2), "copy", (0,)),
            Compute(n(0), "copy", (0,)),
            loop("l", 12, Compute(n(2), function, operands), Store(SUM_AFTER, (n(0),), n(0)), COUNT),
            Store(result, (0,), n(2)),
        )
        (found,) = on(CpuPlatform, [np.array([2**63 + 5], np.uint64)], steps, [result], in_code=False)
        assert int(found[0]) == wanted


SUM_AFTER = ArrayPlace(2, "s64", (12,), False)


def test_arrays_that_begin_at_the_same_byte_keep_their_types() -> None:
    """A loop changes one of two arguments of the same memory, and two of which one has no elements."""
    x = np.arange(4, dtype=np.float32)
    one, other, result = (
        ArrayPlace(0, "f32", (4,), True),
        ArrayPlace(1, "s32", (4,), True),
        ArrayPlace(5, "s64", (12,), False),
    )
    reads = (Load(n(1), other, (1,)), Store(result, (n(0),), n(1)))
    there, back = Move(((one.slot, 2),)), Move(((2, one.slot),))
    steps = (Allocate(result), Compute(n(0), "copy", (0,)), loop("l", 12, *reads, there, back, COUNT))
    assert both([x, x.view(np.int32)], steps, [one, result])[0].dtype == np.float32
    empty = ArrayPlace(1, "f32", (0,), True)
    there, back = Move(((0, 2), (1, 3))), Move(((2, 0), (3, 1)))
    steps = (Compute(n(0), "copy", (0,)), loop("l", 2, there, back, COUNT))
    assert [each.shape for each in both([x, x[:0]], steps, [one, empty])] == [(4,), (0,)]
