"""Values of ops that branch, loop, order and move."""

from typing import Any

import numpy as np
import pytest

from xla_emitters.errors import EndlessLoop, ExecutionError, Unsupported
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.runtime.reference.reference_bounds import evaluate_bounds
from xla_emitters.support.limits import limited_iterations
from xla_emitters.text.hlo.hlo_parser import parse_hlo

COMPUTATIONS = """HloModule m

step {
  t = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[4] get-tuple-element(t), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4] add(x, x)
  ROOT r = (s32[], f32[4]) tuple(j, y)
}

stay {
  t = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[4] get-tuple-element(t), index=1
  y = f32[4] negate(x)
  ROOT r = (s32[], f32[4]) tuple(i, y)
}

goes_on {
  t = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT
}

forever {
  t = (s32[], f32[4]) parameter(0)
  ROOT r = pred[] constant(true)
}

negated {
  x = f32[4] parameter(0)
  ROOT r = f32[4] negate(x)
}

doubled {
  x = f32[4] parameter(0)
  ROOT r = f32[4] add(x, x)
}

squared {
  x = f32[4] parameter(0)
  ROOT r = f32[4] multiply(x, x)
}

"""
X = np.array([1, -2, 3, 0.5], np.float32)


def run(*lines: str, inputs: Any = (), most: int | None = None) -> list[Any]:
    text = COMPUTATIONS + "ENTRY e {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"
    with limited_iterations(most):
        return evaluate(entry_of(parse_hlo(text, "m.hlo")), list(inputs))


LOOP = ["i = s32[] parameter(0)", "x = f32[4] parameter(1)", "t = (s32[], f32[4]) tuple(i, x)"]
WHILE = "ROOT w = (s32[], f32[4]) while(t), condition=goes_on, body=step"


def test_a_loop_runs_while_its_condition_holds() -> None:
    number, got = run(*LOOP, WHILE, inputs=(np.int32(2), X))
    assert (number, got.tolist()) == (5, (8 * X).tolist())
    number, got = run(*LOOP, WHILE, inputs=(np.int32(9), X))
    assert (number, got.tolist()) == (9, X.tolist())


def test_a_loop_that_does_not_end_is_named() -> None:
    lines = [*LOOP, WHILE.replace("goes_on", "forever").replace("ROOT w", "ROOT spin")]
    with pytest.raises(EndlessLoop, match=r"m\.hlo:.*loop %spin does not end: "):  # no number decides
        run(*lines, inputs=(np.int32(0), X), most=100)
    with pytest.raises(
        EndlessLoop, match=r"m\.hlo:.*loop %w does not end: the state after \d+ iterations is the one after \d+"
    ):
        run(*LOOP, WHILE.replace("body=step", "body=stay"), inputs=(np.int32(0), X))
    assert run(*LOOP, WHILE, inputs=(np.int32(0), X), most=5)[0] == 5
    with pytest.raises(ExecutionError, match="within 4 iterations"):
        run(*LOOP, WHILE, inputs=(np.int32(0), X), most=4)


BRANCH = ["s = s32[] parameter(0)", "x = f32[4] parameter(1)"]


@pytest.mark.parametrize(("number", "factor"), [(0, -X), (1, 2 * X), (2, X * X), (3, X * X), (-1, X * X)])
def test_a_branch_by_number_is_the_last_when_out_of_range(number: int, factor: Any) -> None:
    line = "ROOT c = f32[4] conditional(s, x, x, x), branch_computations={negated, doubled, squared}"
    assert run(*BRANCH, line, inputs=(np.int32(number), X))[0].tolist() == factor.tolist()


@pytest.mark.parametrize(("chosen", "factor"), [(True, -X), (False, 2 * X)])
def test_a_branch_by_predicate(chosen: bool, factor: Any) -> None:
    line = "ROOT c = f32[4] conditional(s, x, x), true_computation=negated, false_computation=doubled"
    got = run(BRANCH[0].replace("s32", "pred"), BRANCH[1], line, inputs=(np.bool_(chosen), X))
    assert got[0].tolist() == factor.tolist()


def test_async_operations_are_done_at_once() -> None:
    started = "a = ((f32[4]), f32[4], s32[]) async-start(x), calls=squared"
    lines = [started, "b = ((f32[4]), f32[4], s32[]) async-update(a)", "ROOT d = f32[4] async-done(b)"]
    assert run("x = f32[4] parameter(0)", *lines, inputs=(X,))[0].tolist() == (X * X).tolist()


def test_what_orders_and_moves_keeps_its_operand() -> None:
    lines = [
        "x = f32[4] parameter(0)",
        "t = token[] after-all()",
        "a = f32[4] add-dependency(x, t)",
        "b = f32[4] opt-barrier(a)",
        "c = (f32[4], f32[4], u32[]) copy-start(b)",
        "d = f32[4] copy-done(c)",
        "n = s32[] get-dimension-size(d), dimensions={0}",
        "p = u32[] partition-id()",
        "ROOT r = (f32[4], s32[], u32[]) tuple(d, n, p)",
    ]
    got, size, number = run(*lines, inputs=(X,))
    assert (got.tolist(), int(size), int(number)) == (X.tolist(), 4, 0)


def test_what_needs_other_devices_or_the_host_is_refused() -> None:
    lines = [
        "t = token[] after-all()",
        "i = (f32[4], token[]) infeed(t)",
        "ROOT x = f32[4] get-tuple-element(i), index=0",
    ]
    with pytest.raises(Unsupported, match="'infeed'"):
        run(*lines)


def bounds(*lines: str, inputs: Any) -> Any:
    text = COMPUTATIONS + "ENTRY e {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"
    return evaluate_bounds(entry_of(parse_hlo(text, "m.hlo")), list(inputs))


def test_bounds_go_through_loops_and_branches_that_are_decided() -> None:
    """exp is not known exactly: three doublings of it are off by as much, relatively."""
    lines = [*LOOP[:2], "y = f32[4] exponential(x)", "t = (s32[], f32[4]) tuple(i, y)", WHILE]
    number, value = bounds(*lines, inputs=(np.int32(2), X))
    assert number.is_point
    assert (value.low < 8 * np.exp(X)).all()
    assert ((value.high - value.low) < 1e-5 * np.exp(X) * 8).all()
    branch = "ROOT c = f32[4] conditional(s, x, x), branch_computations={negated, doubled}"
    (value,) = bounds(*BRANCH, branch, inputs=(np.int32(0), X))
    assert value.low.tolist() == (-X).tolist()


def test_nothing_is_known_where_a_rounding_decides() -> None:
    """sqrt(2)^2 < 2 may be either."""
    lines = [
        "x = f32[4] parameter(0)",
        "k = f32[] constant(2)",
        "r = f32[] sqrt(k)",
        "q = f32[] multiply(r, r)",
        "p = pred[] compare(q, k), direction=LT",
        "ROOT c = f32[4] conditional(p, x, x), true_computation=negated, false_computation=doubled",
    ]
    (value,) = bounds(*lines, inputs=(X,))
    assert value.is_unknown.all()
