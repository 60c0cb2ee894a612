"""What binding computes once, and what it leaves to the run: steps written by hand, values counted by hand."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from xla_emitters.errors import DataError
from xla_emitters.program.bind import ALIGNMENT, BoundSteps, bind
from xla_emitters.program.steps import (
    FUNCTIONS,
    Allocate,
    ArrayPlace,
    Branch,
    Call,
    Compute,
    Dimension,
    Launch,
    Load,
    Loop,
    Move,
    NumberSlot,
    Release,
    Step,
    Store,
    View,
)

N = [NumberSlot(index) for index in range(9)]
X = ArrayPlace(0, "f32", (N[0],), on_device=True)


def device(slot: int, *shape: Any) -> ArrayPlace:
    return ArrayPlace(slot, "f32", shape, on_device=True)


def host(slot: int) -> ArrayPlace:
    return ArrayPlace(slot, "s32", (), on_device=False)


def no_ops(number: int, arrays: Sequence[Any]) -> None:
    raise AssertionError(f"op {number} is not to be evaluated")


def bound(
    steps: Sequence[Step], results: Sequence[ArrayPlace] = (), size: int = 12, evaluate: Any = no_ops
) -> BoundSteps:
    return bind(steps, [X], results, [(size,)], (), evaluate)


def launch(*arguments: Any, grid: Any = 1) -> Launch:
    return Launch("k", (grid, 1, 1), (32, 1, 1), 0, arguments)


def test_numbers_of_sizes_are_gone() -> None:
    steps = [Compute(N[1], "add", (N[0], 63)), Compute(N[2], "floordiv", (N[1], 64)), launch(X, N[1], grid=N[2])]
    assert bound(steps, size=130).steps == (launch(device(0, 130), 193, grid=3),)


def test_a_grid_without_blocks_launches_nothing() -> None:
    assert bound([launch(X, grid=N[0])], size=0).steps == ()


def test_a_division_by_zero_is_refused() -> None:
    with pytest.raises(DataError, match="by zero"):
        bound([Compute(N[1], "remainder", (5, N[0]))], size=0)


def test_one_of_the_branches_is_left() -> None:
    steps = [Compute(N[1], "gt", (N[0], 10)), Branch("b", N[1], ((launch(X, 0),), (launch(X, 1),)), ())]
    assert [step.arguments[1] for step in bound(steps, size=12).steps if isinstance(step, Launch)] == [1]
    assert [step.arguments[1] for step in bound(steps, size=10).steps if isinstance(step, Launch)] == [0]


def test_a_number_that_data_decide_stays_with_all_that_follows_from_it() -> None:
    read = Call(0, "d2h", (X,), (host(1),))
    steps = [Allocate(host(1)), read, Load(N[1], host(1), ()), Compute(N[2], "add", (N[1], N[0])), launch(X, grid=N[2])]
    found = bound(steps).steps
    assert [type(step) for step in found] == [Allocate, Call, Load, Compute, Launch]
    assert found[3] == Compute(N[2], "add", (N[1], 12))


def test_arithmetic_of_the_host_is_evaluated_once() -> None:
    def add_one(number: int, arrays: Sequence[Any]) -> None:
        arrays[1][...] = arrays[0] + 1

    steps = [
        Allocate(host(1)),
        Store(host(1), (), N[0]),
        Allocate(host(2)),
        Call(0, "add", (host(1),), (host(2),)),
        Load(N[1], host(2), ()),
        launch(X, N[1]),
    ]
    assert bound(steps, evaluate=add_one).steps == (launch(device(0, 12), 13),)


# ---------------------------------------------------------------------------------------------------------------- memory


def test_arrays_that_are_never_needed_at_once_share_memory() -> None:
    a, b, c = (device(slot, N[0]) for slot in (1, 2, 3))
    steps = [Allocate(a), launch(X, a), Allocate(b), launch(a, b), Release(1), Allocate(c), launch(b, c), Release(2)]
    found = bound([*steps, launch(c, X), Release(3)])
    assert found.offsets[1] == found.offsets[3] != found.offsets[2]
    assert found.arena_bytes == 2 * ALIGNMENT


def test_a_result_has_memory_of_its_own() -> None:
    a = device(1, N[0])
    found = bound([Allocate(a), launch(X, a)], [a])
    assert found.offsets == {}
    assert found.results == (device(1, 12),)


def test_memory_is_kept_for_a_second_name() -> None:
    a, view, b = device(1, N[0]), device(2, 3, 4), device(3, N[0])
    found = bound([Allocate(a), View(a, view), Release(1), Allocate(b), launch(view, b), Release(2), Release(3)])
    assert found.offsets[1] == found.offsets[2] != found.offsets[3]


def test_a_reshape_to_other_elements_is_refused() -> None:
    with pytest.raises(DataError, match=r"no reshape of \[12\] to \[5\]"):
        bound([View(X, device(1, 5))])


def test_memory_from_before_a_loop_is_kept_through_it() -> None:
    """It is last named early in the body, which runs again."""
    a, b = device(1, N[0]), device(2, N[0])
    read = Call(0, "d2h", (X,), (host(3),))
    body = (launch(a, X), Allocate(b), launch(b, X), Release(2))
    loop = Loop("l", (Allocate(host(3)), read, Load(N[1], host(3), ()), Release(3)), N[1], body, ())
    found = bound([Allocate(a), launch(X, a), loop, Release(1)])
    assert found.offsets[1] != found.offsets[2]


def test_a_carried_array_that_grows_has_no_known_size() -> None:
    """Its first size is that of the argument; the body moves a larger one to its slot."""
    start, state, larger = device(1, N[0]), device(2, N[3]), device(4, N[4])
    condition = (Allocate(host(3)), Call(0, "d2h", (state,), (host(3),)), Load(N[1], host(3), ()), Release(3))
    body = (Dimension(N[3], 2, 0), Compute(N[4], "add", (N[3], 1)), Allocate(larger), launch(larger), Move(((4, 2),)))
    loop = Loop("l", condition, N[1], body, (2,))
    found = bound([Allocate(start), Move(((1, 2),)), loop], [state])
    (left,) = (step for step in found.steps if isinstance(step, Loop))
    assert left.body[0] == Dimension(N[3], 2, 0)
    assert 2 not in found.shapes
    same = (Dimension(N[3], 2, 0), Allocate(device(4, N[3])), launch(device(4, N[3])), Move(((4, 2),)))
    found = bound([Allocate(start), Move(((1, 2),)), Loop("l", condition, N[1], same, (2,))], [state])
    (left,) = (step for step in found.steps if isinstance(step, Loop))
    assert left.body[0] == Allocate(device(4, 12))
    assert found.shapes[2] == (12,)


def test_an_array_of_the_host_in_a_loop_whose_carried_array_grows() -> None:
    """The body is bound twice, as its first carried size does not last. Its array of the host is 12 in each."""
    start, state, larger = device(1, N[0]), device(2, N[3]), device(4, N[4])
    read = Call(0, "d2h", (state,), (host(3),))
    condition = (Allocate(host(3)), read, Load(N[1], host(3), ()), Release(3))
    grows = (Dimension(N[3], 2, 0), Compute(N[4], "add", (N[3], 1)), Allocate(larger))
    told = Call(1, "h2d", (host(5),), (larger,))
    body = (*grows, Allocate(host(5)), Store(host(5), (), N[0]), told, Release(5), Move(((4, 2),)))
    found = bound([Allocate(start), Move(((1, 2),)), Loop("l", condition, N[1], body, (2,))], [state])
    (left,) = (step for step in found.steps if isinstance(step, Loop))
    assert left.body == (*grows, told, Move(((4, 2),)))
    assert found.known == {5: np.int32(12)}
    body = (*grows, Allocate(host(5)), Store(host(5), (), N[3]), told, Release(5), Move(((4, 2),)))
    found = bound([Allocate(start), Move(((1, 2),)), Loop("l", condition, N[1], body, (2,))], [state])
    (left,) = (step for step in found.steps if isinstance(step, Loop))
    assert left.body == body  # in the first try the size was 12
    assert not found.known


def counting(start: Any, limit: Any, *body: Step) -> Loop:
    """The bound loop that runs while N[1], from `start` on, is less than `limit`."""
    loop = Loop("l", (Compute(N[2], "lt", (N[1], limit)),), N[2], (launch(X, N[1]), *body), (), (1,))
    (found,) = (step for step in bound([Compute(N[1], "copy", (start,)), loop]).steps if isinstance(step, Loop))
    return found


def plus(increment: Any, function: str = "add.s32") -> tuple[Step, Step]:
    return Compute(N[3], function, (N[1], increment)), Compute(N[1], "copy", (N[3],))


@pytest.mark.parametrize("start", [-5, 0, 11, 12, 40])
@pytest.mark.parametrize("increment", [1, 2, 5])
def test_a_loop_that_counts_runs_a_known_number_of_times_without_a_condition(start: int, increment: int) -> None:
    found, times, number = counting(start, N[0], *plus(increment)), 0, start
    while number < 12:
        number, times = number + increment, times + 1
    assert (found.trips, found.condition) == (times, ())


@pytest.mark.parametrize(
    ("limit", "body"),
    [
        (N[0], plus(0)),
        (N[0], plus(-1)),
        (N[0], plus(1, "subtract.s32")),
        (N[0], plus(N[1])),
        (N[4], plus(1)),  # nobody knows it
        (2**31 - 1, plus(2)),  # the sum wraps around before it is reached
        (N[0], (*plus(1), *plus(1))),
        (N[0], plus(1)[::-1]),  # the last iteration's sum
        (N[0], (*plus(1), Branch("b", N[5], ((), (Compute(N[1], "copy", (7,)),)), (), (1,)))),
        (N[0], (plus(1)[0], Load(N[1], host(3), ()))),
    ],
)
def test_other_loops_keep_their_condition(limit: Any, body: Sequence[Step]) -> None:
    found = counting(0, limit, *body)
    assert found.trips is None
    assert found.condition


def test_what_fails_where_it_may_never_run_is_left_to_the_run() -> None:
    read = [Allocate(host(3)), Call(0, "d2h", (X,), (host(3),)), Load(N[1], host(3), ())]
    branch = Branch("b", N[1], ((), (Compute(N[2], "floordiv", (5, N[0])), launch(X, N[2]))), ())
    (left,) = (step for step in bound([*read, branch], size=0).steps if isinstance(step, Branch))
    assert left.branches[1][0] == Compute(N[2], "floordiv", (5, 0))


def test_known_arrays_of_the_host_are_the_same_in_every_call() -> None:
    steps = [Allocate(host(1)), Store(host(1), (), N[0]), Call(0, "h2d", (host(1),), (X,))]
    assert bound(steps).known[1] == np.int32(12)


TYPES = {"s8": (-128, 127), "u8": (0, 255), "s32": (-(1 << 31), (1 << 31) - 1), "u64": (0, (1 << 64) - 1)}


@pytest.mark.parametrize("name", TYPES)
def test_numbers_wrap_around_and_divide_as_hlo_does(name: str) -> None:
    """On all pairs of some numbers; the least number divided by -1 is itself, x / 0 has all bits set, and its remainder is x."""
    least, most = TYPES[name]
    some = sorted({least, least + 1, 0, 1, 2, 3, 7, most - 1, most} | ({-1, -3, -7} if least else set()))
    for x in some:
        for y in some:
            quotient = int(Fraction(x, y)) if y else -1
            wanted = {"add": x + y, "subtract": x - y, "multiply": x * y, "quotient": quotient}
            for function, value in (wanted | {"rest": x - y * quotient if y else x}).items():
                found = FUNCTIONS[f"{function}.{name}"](x, y)
                assert least <= found <= most
                assert (found - value) % (most - least + 1) == 0, (function, x, y)
