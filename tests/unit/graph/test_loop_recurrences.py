"""What ends a loop, found through fusions and calls; one that will run too long is refused after few iterations."""

import operator
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from long_lists import every

import xla_emitters as xe
from xla_emitters.dialects.hlo.types import element_of, leaf_types
from xla_emitters.errors import EndlessLoop, ExecutionError
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.loop_recurrences import deciding_leaves, loop_end_of
from xla_emitters.program import Program
from xla_emitters.program.steps import Loop, Recurrence, steps_within
from xla_emitters.runtime import scalar_computations
from xla_emitters.runtime.reference import reference
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.runtime.repetition import CLEARLY_LONG_LOOP, LONG_LOOP, asked_after
from xla_emitters.support.limits import limited_iterations
from xla_emitters.text.hlo import parse_hlo


def loop(condition: str, step: str) -> str:
    """A `while` over (s32 i, s32 n, f32[4] x): `condition` is of i and n, `step` the next i."""
    return f"""
HloModule m, is_scheduled=true
half {{ x = f32[4] parameter(0)
  c = f32[] constant(0.5)
  b = f32[4] broadcast(c), dimensions={{}}
  ROOT h = f32[4] multiply(x, b) }}
next {{ i = s32[] parameter(0)
  n = s32[] parameter(1)
  two = s32[] constant(2)
  ROOT s = s32[] {step} }}
holds {{ i = s32[] parameter(0)
  n = s32[] parameter(1)
  limit = s32[] constant(7)
  ROOT c = pred[] {condition} }}
body {{ t = (s32[], s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] get-tuple-element(t), index=1
  x = f32[4] get-tuple-element(t), index=2
  j = s32[] fusion(i, n), kind=kLoop, calls=next
  y = f32[4] fusion(x), kind=kLoop, calls=half
  ROOT r = (s32[], s32[], f32[4]) tuple(j, n, y) }}
cond {{ t = (s32[], s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] get-tuple-element(t), index=1
  ROOT c = pred[] fusion(i, n), kind=kLoop, calls=holds }}
ENTRY main {{ i = s32[] parameter(0)
  n = s32[] parameter(1)
  x = f32[4] parameter(2)
  t = (s32[], s32[], f32[4]) tuple(i, n, x)
  w = (s32[], s32[], f32[4]) while(t), condition=cond, body=body
  ROOT o = f32[4] get-tuple-element(w), index=2 }}
"""


UNTIL_BOUND = loop("compare(i, n), direction=LT", "add(i, two)")
NEVER = loop("compare(limit, i), direction=NE", "subtract(i, two)")
TRIPLED = loop("compare(limit, i), direction=NE", "multiply(i, n)")  # 3 ** n is never 7, of any number of bits
X = np.array([1, -2, 3, 0.5], np.float32)


def found(text: str) -> Recurrence | None:
    """What ends the loop, as steps have it: with leaves in place of slots."""
    (op,) = (op for op in entry_of(parse_hlo(text)).instructions if op.opcode == "while")
    end = loop_end_of(op)
    return None if end is None else Recurrence(end.leaves, end.text(leaf_types(op.operands[0].type)), end.is_exact)


def outlasts(ends: Recurrence, state: Sequence[Any], most: int) -> bool:
    parameters = scalar_computations._entry_of(ends.text).parameters
    arrays = [np.asarray(value, element_of(p.result).numpy) for value, p in zip(state, parameters, strict=True)]
    return scalar_computations.outlasts(ends, arrays, most)


ROWS: dict[str, Callable[[int, int], int]] = {
    "multiply(i, two)": lambda i, _: i * 2,
    "add(i, n)": operator.add,
    "subtract(two, i)": lambda i, _: 2 - i,
    "add(two, i)": lambda i, _: 2 + i,
    "maximum(i, n)": max,
    "xor(i, n)": lambda i, n: i ^ n,
    "divide(i, two)": lambda i, _: abs(i) // 2 * (1 if i >= 0 else -1),
    "remainder(i, n)": lambda i, n: abs(i) % n * (1 if i >= 0 else -1) if n else i,
    "divide(i, n)": lambda i, n: abs(i) // n * (1 if i >= 0 else -1) if n else -1,
    "clamp(n, i, two)": lambda i, n: min(max(i, n), 2),
    "not(i)": lambda i, _: ~i,
}


DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


# Every fifth of them: all steps, directions and types.
@pytest.mark.parametrize(("step", "direction", "kind"), every(5, product(ROWS, DIRECTIONS, ("s32", "u32"))))
def test_trips_are_those_of_a_loop_of_integers_that_wrap_around(step: str, direction: str, kind: str) -> None:
    """Against Python's integers, one step at a time, brought into 32 bits by NumPy."""
    text = loop(f"compare(i, limit), direction={direction}", step).replace("s32", kind)
    ends = found(text)
    assert ends is not None
    element = np.dtype({"s32": np.int32, "u32": np.uint32}[kind])
    compare: dict[str, Any] = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal}
    compare |= {"GT": np.greater, "GE": np.greater_equal}
    for start in (0, 1, 7, 9, 2**31 - 3):
        for other in (0, 1, 5):
            i, trips = start, 0
            while compare[direction](i, 7) and trips <= 200:
                i, trips = int(np.array(ROWS[step](i, other) % 2**32, np.uint32).view(element)), trips + 1
            state = [(start, other)[leaf] for leaf in ends.state]
            for most in (0, 1, 20, 199):
                assert outlasts(ends, state, most) == (trips > most)


FLOAT_ROWS: dict[str, Callable[[Any, Any], Any]] = {
    "multiply(i, n)": operator.mul,
    "add(i, n)": operator.add,
    "subtract(n, i)": lambda i, n: n - i,
    "divide(i, n)": operator.truediv,
    "divide(two, i)": lambda i, _: np.float32(2) / i,
    "maximum(i, n)": np.maximum,
    "minimum(n, i)": lambda i, n: np.minimum(n, i),
    "negate(i)": lambda i, _: -i,
    "sqrt(i)": lambda i, _: np.sqrt(i),
    "clamp(n, i, two)": lambda i, n: np.clip(i, n, np.float32(2)),
}


@pytest.mark.parametrize(("step", "direction", "kind"), every(5, product(FLOAT_ROWS, DIRECTIONS, ("f32", "f64"))))
def test_trips_are_those_of_a_loop_of_floats(step: str, direction: str, kind: str) -> None:
    """Against NumPy, one step at a time in the type: sums that stop to grow, infinities, NaN, powers that become zero."""
    ends = found(loop(f"compare(i, limit), direction={direction}", step).replace("s32", kind))
    assert ends.is_exact == (kind != "f32" or "divide" not in step)  # a GPU's division of f32 is within 2 ulp
    element: Any = {"f32": np.float32, "f64": np.float64}[kind]
    compare: dict[str, Any] = {"EQ": operator.eq, "NE": operator.ne, "LT": operator.lt, "LE": operator.le}
    compare |= {"GT": operator.gt, "GE": operator.ge}
    for start in (0.0, -0.0, 7.0, 6.9, -1.5, 3e38, np.inf, np.nan):
        for other in (0.0, 1.0, 0.7, -1.0, 3e7):
            i, n, trips = element(start), element(other), 0
            with np.errstate(all="ignore"):
                while compare[direction](i, element(7)) and trips <= 200:
                    i, trips = element(FLOAT_ROWS[step](i, n)), trips + 1
            state = [np.array([(start, other)[leaf]], element) for leaf in ends.state]
            for most in (0, 1, 20, 199):
                assert outlasts(ends, state, most) == (trips > most), (start, other)


def test_floats_and_integers_decide_together() -> None:
    """A step size that is halved until it is below a bound, but at most n times; the bound is an f64 made of an f32 and of an integer."""
    text = """
HloModule m
body { t = (f32[], s32[], s32[]) parameter(0)
  x = f32[] get-tuple-element(t), index=0
  i = s32[] get-tuple-element(t), index=1
  n = s32[] get-tuple-element(t), index=2
  half = f32[] constant(0.5)
  one = s32[] constant(1)
  y = f32[] multiply(x, half)
  j = s32[] add(i, one)
  ROOT r = (f32[], s32[], s32[]) tuple(y, j, n) }
cond { t = (f32[], s32[], s32[]) parameter(0)
  x = f32[] get-tuple-element(t), index=0
  i = s32[] get-tuple-element(t), index=1
  n = s32[] get-tuple-element(t), index=2
  bound = f64[] constant(1e-3)
  wide = f64[] convert(x)
  whole = f64[] convert(n)
  scaled = f64[] divide(wide, whole)
  large = pred[] compare(scaled, bound), direction=GT
  few = pred[] compare(i, n), direction=LT
  ROOT c = pred[] and(large, few) }
ENTRY main { x = f32[] parameter(0)
  i = s32[] constant(0)
  n = s32[] parameter(1)
  t = (f32[], s32[], s32[]) tuple(x, i, n)
  ROOT w = (f32[], s32[], s32[]) while(t), condition=cond, body=body }
"""
    ends = found(text)
    assert ends is not None
    for x, n in ((1.0, 4), (1.0, 100), (1.0, 1), (np.inf, 9)):
        trips, held = 0, np.float32(x)
        while np.float64(held) / n > 1e-3 and trips < n:
            held, trips = held * np.float32(0.5), trips + 1
        state = [(np.float32(x), 0, n)[leaf] for leaf in ends.state]
        assert [outlasts(ends, state, most) for most in (trips - 1, trips)] == [trips > 0, False]


NOT_FOLLOWED = [
    loop("compare(i, limit), direction=LT, type=TOTALORDER", "add(i, n)").replace("s32", "f32"),
    loop("compare(i, limit), direction=LT", "add(i, n)").replace("s32", "bf16"),
    loop("compare(n, limit), direction=LT", "add(i, two)").replace("tuple(j, n, y)", "tuple(j, drawn, y)"),
]


@pytest.mark.parametrize("text", NOT_FOLLOWED)
def test_where_another_op_decides_none_is_found(text: str) -> None:
    drawn = 'drawn = s32[] custom-call(), custom_call_target="Drawn"\n  ROOT r'
    assert found(text.replace("ROOT r", drawn)) is None


def test_the_state_may_hold_the_answer() -> None:
    """A predicate that the body computes for the next iteration."""
    text = """
HloModule m
body { t = (s32[], pred[]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  three = s32[] constant(3)
  j = s32[] multiply(i, three)
  limit = s32[] constant(1000)
  less = pred[] compare(j, limit), direction=LT
  ROOT r = (s32[], pred[]) tuple(j, less) }
cond { t = (s32[], pred[]) parameter(0)
  ROOT c = pred[] get-tuple-element(t), index=1 }
ENTRY main { i = s32[] parameter(0)
  go = pred[] constant(true)
  t = (s32[], pred[]) tuple(i, go)
  ROOT w = (s32[], pred[]) while(t), condition=cond, body=body }
"""
    ends = found(text)
    assert ends.state == (1, 0)
    assert [outlasts(ends, (1, 1), most) for most in (6, 7)] == [True, False]  # 3**7 > 1000


ENDLESS = [(NEVER, 0, 0), (TRIPLED, 3, 3)]
GROWING = loop("compare(i, limit), direction=NE", "multiply(i, n)").replace("s32", "f32")


def refuse(*_: object) -> None:
    raise AssertionError("the loop is still run")


def test_a_module_runs_what_ends() -> None:
    program = xe.compile(UNTIL_BOUND)
    assert isinstance(program, Program)
    np.testing.assert_array_equal(program.run_cpu(np.int32(1), np.int32(8), X), X / 16)
    again = Program.from_json(program.to_json())
    (of_program,), (of_json,) = (
        [step for step in steps_within(p.steps) if isinstance(step, Loop)] for p in (program, again)
    )
    assert of_program.ends is not None
    assert of_json.ends == of_program.ends


@pytest.mark.parametrize(("text", "i", "n"), ENDLESS)
def test_a_module_refuses_after_few_iterations(text: str, i: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = xe.compile(text)
    monkeypatch.setattr("xla_emitters.runtime.walk.Repetition.is_found", refuse)
    with pytest.raises(ExecutionError, match="%w does not end within 100000 iterations"):
        endless.run_cpu(np.int32(i), np.int32(n), X)


def test_a_module_refuses_a_loop_of_floats_that_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """1.001 ** k passes 7 and never equals it in 100,000 steps; it does not come back to a state before it is infinite."""
    endless = xe.compile(GROWING)
    monkeypatch.setattr("xla_emitters.runtime.walk.Repetition.is_found", refuse)
    with pytest.raises(ExecutionError, match="%w does not end within 100000 iterations"):
        endless.run_cpu(np.float32(1), np.float32(1.001), X)
    np.testing.assert_array_equal(endless.run_cpu(np.float32(28), np.float32(0.5), X), X / 4)


def test_the_reference_runs_what_ends() -> None:
    entry = entry_of(parse_hlo(UNTIL_BOUND))
    with limited_iterations(4):
        np.testing.assert_array_equal(evaluate(entry, [np.int32(1), np.int32(8), X])[0], X / 16)
    with limited_iterations(3), pytest.raises(ExecutionError, match="within 3 iterations"):
        evaluate(entry, [np.int32(1), np.int32(8), X])


@pytest.mark.parametrize(("text", "i", "n"), ENDLESS)
def test_the_reference_refuses_after_few_iterations(text: str, i: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    conditions = list[object]()

    def counted(*_: object) -> bool:
        conditions.append(1)
        return False

    monkeypatch.setattr(reference.Repetition, "is_found", counted)
    with pytest.raises(ExecutionError, match="%w does not end within 100000 iterations"):
        evaluate(entry_of(parse_hlo(text)), [np.int32(i), np.int32(n), X])
    assert len(conditions) == LONG_LOOP


BESIDE = """
HloModule m, is_scheduled=true
largest { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b) }
nearer { x = f32[4] parameter(0)
  c = f32[] constant(0.5)
  b = f32[4] broadcast(c), dimensions={}
  h = f32[4] multiply(x, b)
  ROOT y = f32[4] add(h, b) }
count { i = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT j = s32[] add(i, one) }
above { x = f32[4] parameter(0)
  zero = f32[] constant(0)
  m = f32[] reduce(x, zero), dimensions={0}, to_apply=largest
  limit = f32[] constant(0.75)
  ROOT c = pred[] compare(m, limit), direction=GT }
body { t = (s32[], (f32[4], s32[])) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  p = (f32[4], s32[]) get-tuple-element(t), index=1
  x = f32[4] get-tuple-element(p), index=0
  k = s32[] get-tuple-element(p), index=1
  j = s32[] fusion(i), kind=kLoop, calls=count
  y = f32[4] fusion(x), kind=kLoop, calls=nearer
  q = (f32[4], s32[]) tuple(y, i)
  ROOT r = (s32[], (f32[4], s32[])) tuple(j, q) }
cond { t = (s32[], (f32[4], s32[])) parameter(0)
  p = (f32[4], s32[]) get-tuple-element(t), index=1
  x = f32[4] get-tuple-element(p), index=0
  ROOT c = pred[] fusion(x), kind=kInput, calls=above }
ENTRY main { i = s32[] parameter(0)
  x = f32[4] parameter(1)
  p = (f32[4], s32[]) tuple(x, i)
  t = (s32[], (f32[4], s32[])) tuple(i, p)
  w = (s32[], (f32[4], s32[])) while(t), condition=cond, body=body
  ROOT o = s32[] get-tuple-element(w), index=0 }
"""
"""x becomes 1 and stays there; the integers beside it go on."""


def test_what_decides_and_what_does_not() -> None:
    def leaves(text: str) -> frozenset[int] | None:
        (op,) = (op for op in entry_of(parse_hlo(text)).instructions if op.opcode == "while")
        return deciding_leaves(op)

    assert leaves(BESIDE) == {1}
    assert leaves(UNTIL_BOUND) == {0, 1}
    assert leaves(BESIDE.replace("tuple(y, i)", "tuple(y, k)")) == {1}
    # x is made of the last counter, which is made of the first one
    read = BESIDE.replace("fusion(x), kind=kLoop, calls=nearer", "fusion(z), kind=kLoop, calls=nearer")
    read = read.replace("  y =", "  f = f32[] convert(k)\n  z = f32[4] broadcast(f), dimensions={}\n  y =")
    assert leaves(read) == {0, 1, 2}


def test_a_state_that_decides_comes_back_beside_counters() -> None:
    """In a module and in the reference: 2 - 2 ** -k is 1 + 2 ** -24 at last, rounded to 1, far before 100,000 iterations."""
    endless, start = BESIDE, np.full(4, 2, np.float32)
    message = r"loop %w does not end: the state after \d+ iterations is the one after \d+"
    with pytest.raises(EndlessLoop, match=message):
        xe.compile(endless).run_cpu(np.int32(0), start)
    with pytest.raises(EndlessLoop, match=message):
        evaluate(entry_of(parse_hlo(endless)), [np.int32(0), start])
    ends = BESIDE.replace("0.75", "1.01")  # 1 + 2 ** -k: 1.0078125 after 7
    np.testing.assert_array_equal(xe.compile(ends).run_cpu(np.int32(0), start), 7)
    np.testing.assert_array_equal(evaluate(entry_of(parse_hlo(ends)), [np.int32(0), start])[0], 7)


def array_loop(condition: str, step: str, sizes: str = "4") -> str:
    """A `while` over (s32 i, f32[sizes] x and y) that counts in i: `condition` and `step` are instructions up to a ROOT, of x, y, i."""
    return (
        """
HloModule m, is_scheduled=true
largest { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b) }
add { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT m = s32[] add(a, b) }
count { i = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT j = s32[] add(i, one) }
next { x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  i = s32[] parameter(2)
  STEP }
holds { x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  i = s32[] parameter(2)
  CONDITION }
body { t = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[4] get-tuple-element(t), index=1
  y = f32[4] get-tuple-element(t), index=2
  j = s32[] fusion(i), kind=kLoop, calls=count
  z = f32[4] fusion(x, y, i), kind=kLoop, calls=next
  ROOT r = (s32[], f32[4], f32[4]) tuple(j, z, x) }
cond { t = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[4] get-tuple-element(t), index=1
  y = f32[4] get-tuple-element(t), index=2
  ROOT c = pred[] fusion(x, y, i), kind=kLoop, calls=holds }
ENTRY main { i = s32[] parameter(0)
  x = f32[4] parameter(1)
  y = f32[4] parameter(2)
  t = (s32[], f32[4], f32[4]) tuple(i, x, y)
  w = (s32[], f32[4], f32[4]) while(t), condition=cond, body=body
  ROOT o = s32[] get-tuple-element(w), index=0 }
""".replace("STEP", step)
        .replace("CONDITION", condition)
        .replace("f32[4]", f"f32[{sizes}]")
    )


LOGISTIC = """
  r = f32[] constant(3.9)
  one = f32[] constant(1)
  rs = f32[4] broadcast(r), dimensions={}
  ones = f32[4] broadcast(one), dimensions={}
  rest = f32[4] subtract(ones, x)
  scaled = f32[4] multiply(x, rs)
  ROOT z = f32[4] multiply(scaled, rest)"""
"""Does not come back to a state in 100,000 iterations of four of these."""
LARGEST = """
  zero = f32[] constant(0)
  m = f32[] reduce(x, zero), dimensions={0}, to_apply=largest
  limit = f32[] constant(LIMIT)
  ROOT c = pred[] compare(m, limit), direction=LT"""
ONE_ELEMENT = """
  part = f32[1] slice(x), slice={[2:3]}
  m = f32[] reshape(part)
  limit = f32[] constant(LIMIT)
  ROOT c = pred[] compare(m, limit), direction=LT"""
OF_TWO = """
  d = f32[4] subtract(x, y)
  zero = f32[] constant(0)
  m = f32[] reduce(d, zero), dimensions={0}, to_apply=largest
  limit = f32[] constant(LIMIT)
  ROOT c = pred[] compare(m, limit), direction=LT"""
HOW_MANY = """
  limit = f32[] constant(LIMIT)
  limits = f32[4] broadcast(limit), dimensions={}
  far = pred[4] compare(x, limits), direction=GE
  ones = s32[4] convert(far)
  zero = s32[] constant(0)
  n = s32[] reduce(ones, zero), dimensions={0}, to_apply=add
  ROOT c = pred[] compare(n, zero), direction=EQ"""
WRAPPED = """
  big = s32[] constant(1073741824)
  zero = s32[] constant(0)
  k = s32[] multiply(i, big)
  last = f32[1] slice(x), slice={[0:1]}
  m = f32[] reshape(last)
  limit = f32[] constant(LIMIT)
  less = pred[] compare(m, limit), direction=LT
  above = pred[] compare(k, big), direction=NE
  first = pred[] compare(i, zero), direction=EQ
  either = pred[] or(above, less)
  ROOT c = pred[] or(either, first)"""
"""Of the counter too: i * 2 ** 30 wraps around."""
CONDITIONS: dict[str, tuple[Callable[[Any, Any, int, Any], bool], float]] = {
    LARGEST: (lambda x, y, i, limit: max(x.max(), 0) < limit, 0.974),
    ONE_ELEMENT: (lambda x, y, i, limit: x[2] < limit, 0.974),
    OF_TWO: (lambda x, y, i, limit: max((x - y).max(), 0) < limit, 0.5391),
    HOW_MANY: (lambda x, y, i, limit: not (x >= limit).any(), 0.974),
    WRAPPED: (lambda x, y, i, limit: (i * 1073741824 - 1073741824) % 2**32 != 0 or x[0] < limit, 0.93),
}
"""Condition -> it in NumPy, and a limit that is reached: an element is at most 0.975, 3.9 / 4."""
STARTS = np.array([0.1, 0.2, 0.37, 0.45], np.float32), np.array([0.9, 0.9, 0.9, 0.9], np.float32)


def trips_by_numpy(holds: Callable[[Any, Any, int, Any], bool], limit: float, most: int) -> int:
    """Up to `most`."""
    (x, y), i, bound = STARTS, 0, np.float32(limit)
    while i < most and holds(x, y, i, bound):
        x, y, i = (x * np.float32(3.9)) * (np.float32(1) - x), x, i + 1
    return i


@pytest.mark.parametrize("condition", CONDITIONS)
def test_arrays_that_never_come_back_are_followed(condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reduction, an element, two arrays, a count of elements, a counter that wraps: refused early, or run to its value."""
    for module in ("repetition", "walk"):
        monkeypatch.setattr(f"xla_emitters.runtime.{module}.LONG_LOOP", 4)
    holds, limit = CONDITIONS[condition]
    trips = trips_by_numpy(holds, limit, 2000)
    assert 4 < trips < 2000
    ends = found(array_loop(condition.replace("LIMIT", str(limit)), LOGISTIC))
    state = [(0, *STARTS)[leaf] for leaf in ends.state]
    assert [outlasts(ends, state, most) for most in (trips - 1, trips)] == [True, False]
    endless = array_loop(condition.replace("LIMIT", "2"), LOGISTIC)
    if condition == LARGEST:
        program = xe.compile(array_loop(condition.replace("LIMIT", str(limit)), LOGISTIC))
        np.testing.assert_array_equal(program.run_cpu(np.int32(0), *STARTS), trips)
        with limited_iterations(5000), pytest.raises(ExecutionError, match="%w does not end within 5000 iterations"):
            evaluate(entry_of(parse_hlo(endless)), [np.int32(0), *STARTS])
    monkeypatch.setattr("xla_emitters.runtime.walk.Repetition.is_found", refuse)
    with limited_iterations(5000), pytest.raises(ExecutionError, match="%w does not end within 5000 iterations"):
        xe.compile(endless).run_cpu(np.int32(0), *STARTS)


def test_elements_that_move() -> None:
    """Reversed, transposed, broadcast and spread elements, constants and iotas, against NumPy."""
    step = """
  table = f32[2,2] constant({{0.5, 0.25}, {1, 2}})
  other = f32[2,2] transpose(table), dimensions={1,0}
  line = f32[4] reshape(other)
  back = f32[4] reverse(x), dimensions={0}
  index = f32[4] iota(), iota_dimension=0
  pair = f32[2] slice(x), slice={[0:4:3]}
  grid = f32[2,2] broadcast(pair), dimensions={1}
  flat = f32[4] bitcast(grid)
  a = f32[4] multiply(line, back)
  b = f32[4] add(a, index)
  ROOT z = f32[4] maximum(b, flat)"""
    ends = found(array_loop(LARGEST.replace("LIMIT", "1000"), step))
    assert ends is not None
    x, trips = STARTS[0], 0
    while x.max() < 1000:
        moved = np.array([0.5, 1, 0.25, 2], np.float32) * x[::-1] + np.arange(4, dtype=np.float32)
        x, trips = np.maximum(moved, x[[0, 3, 0, 3]]), trips + 1
    assert trips > 5
    state = [(0, *STARTS)[leaf] for leaf in ends.state]
    assert [outlasts(ends, state, most) for most in (trips - 1, trips)] == [True, False]


SUM = array_loop(LARGEST.replace("LIMIT", "1000"), "ROOT z = f32[4] add(x, y)").replace("maximum(a, b)", "add(a, b)")
SLOWED = """
  c = f32[] constant(1.5)
  b = f32[4] broadcast(c), dimensions={}
  e = f32[4] sine(x)
  ROOT z = f32[4] divide(e, b)"""
ROUNDED: list[tuple[str, Callable[[Any, Any], Any], Callable[[Any], bool]]] = [
    (SUM, lambda x, y: x + y, lambda x: x.sum(dtype=np.float32) < 1000),
    (
        array_loop(LARGEST.replace("LIMIT", "1e-3").replace("LT", "GT"), SLOWED),
        lambda x, y: np.sin(x) / np.float32(1.5),
        lambda x: x.max() > 1e-3,
    ),
]


@pytest.mark.parametrize(("text", "step", "goes_on"), ROUNDED)
def test_what_machines_round_differently_is_followed_after_many_iterations(text: str, step: Any, goes_on: Any) -> None:
    """Sums of floats, quotients of f32 and functions: it says how long the loop runs, but is not asked at once."""
    ends = found(text)
    assert not ends.is_exact
    assert asked_after(is_exact=ends.is_exact) == CLEARLY_LONG_LOOP
    x, y = STARTS
    trips = 0
    while goes_on(x):
        x, y, trips = step(x, y), x, trips + 1
    assert trips > 5
    state = [(0, *STARTS)[leaf] for leaf in ends.state]
    assert [outlasts(ends, state, most) for most in (trips - 1, trips)] == [True, False]


def test_what_takes_longer_to_foresee_than_to_run_is_run() -> None:
    """Arrays of more than 65,536 elements, large constants, layouts of another order; and code that is too long for the limit."""
    largest = LARGEST.replace("LIMIT", "2")
    assert found(array_loop(largest, LOGISTIC, "65536")) is not None
    assert found(array_loop(largest, LOGISTIC, "65537")) is None
    for size, is_followed in ((1024, True), (1025, False)):
        values = ", ".join("1" for _ in range(size))
        given = LOGISTIC.replace("broadcast(r), dimensions={}", f"constant({{{values}}})")
        assert (found(array_loop(largest, given, str(size))) is not None) == is_followed
    columns = largest.replace("dimensions={0}", "dimensions={0,1}")
    assert found(array_loop(columns, LOGISTIC, "2,2")) is not None
    assert found(array_loop(columns, LOGISTIC, "2,2").replace("f32[2,2]", "f32[2,2]{0,1}")) is None
    ends = found(array_loop(largest, LOGISTIC, "1024"))
    assert not outlasts(ends, [np.full(1024, 0.1, np.float32) for _ in ends.state], 10**9)
