"""What a loop counts, found through fusions and calls; one that counts too long is refused before its body runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.errors import ExecutionError
from xla_emitters.fusions.entry import entry_of
from xla_emitters.fusions.loop_counters import LoopCounter, counter_of
from xla_emitters.hlo_text import parse_hlo
from xla_emitters.program import Program
from xla_emitters.program.steps import Loop, steps_within
from xla_emitters.runtime import reference
from xla_emitters.runtime.reference import evaluate
from xla_emitters.runtime.repetition import outlasts


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
X = np.array([1, -2, 3, 0.5], np.float32)


def found(text: str) -> LoopCounter | None:
    (op,) = (op for op in entry_of(parse_hlo(text)).instructions if op.opcode == "while")
    return counter_of(op)


@pytest.mark.parametrize(
    ("text", "counter"),
    [
        (UNTIL_BOUND, LoopCounter(0, 1, True, 2, "LT", "s32")),
        (NEVER, LoopCounter(0, 7, False, -2, "NE", "s32")),
        (loop("compare(limit, i), direction=GE", "add(two, i)"), LoopCounter(0, 7, False, 2, "LE", "s32")),
        (loop("compare(i, limit), direction=LT", "multiply(i, two)"), None),
        (loop("compare(i, limit), direction=LT", "add(i, n)"), None),
        (loop("compare(i, limit), direction=LT", "subtract(two, i)"), None),
        (loop("compare(n, limit), direction=LT", "add(i, two)"), None),  # it stands still
    ],
)
def test_the_counter_is_found_or_none(text: str, counter: LoopCounter | None) -> None:
    assert found(text) == counter


@pytest.mark.parametrize("name", ["s8", "u8"])
@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
def test_trips_are_those_of_a_loop_that_wraps_around(name: str, direction: str) -> None:
    """Against NumPy's own integers of eight bits, one step at a time."""
    element = np.dtype({"s8": np.int8, "u8": np.uint8}[name])
    compare: dict[str, Any] = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal}
    compare |= {"GT": np.greater, "GE": np.greater_equal}
    low, high = np.iinfo(element).min, np.iinfo(element).max
    for start in (low, low + 3, 0, 5, high):
        for bound in (low, 4, high - 1, high):
            for step in (-7, -1, 0, 1, 2, 100):
                value, trips = np.array([start], element), 0
                change = np.array([step % 256], np.uint8).view(element)
                while compare[direction](value, np.array([bound], element)).all() and trips <= 300:
                    value, trips = value + change, trips + 1
                for most in (0, 1, 20, 299):
                    assert outlasts(int(start), int(bound), step, direction, name, most) == (trips > most)


def refuse(*_: object) -> None:
    raise AssertionError("the body runs")


def test_a_module_refuses_before_the_body_runs_and_runs_what_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    program = xe.compile(UNTIL_BOUND)
    assert isinstance(program, Program)
    np.testing.assert_array_equal(program.run_cpu(np.int32(1), np.int32(8), X), X / 16)
    again = Program.from_json(program.to_json())
    (of_program,), (of_json,) = (
        [step for step in steps_within(p.steps) if isinstance(step, Loop)] for p in (program, again)
    )
    assert of_program.counter is not None
    assert of_json.counter == of_program.counter
    endless = xe.compile(NEVER)
    monkeypatch.setattr("xla_emitters.runtime.walk.Repetition", refuse)
    with pytest.raises(ExecutionError, match="%w does not end within 100000 iterations"):
        endless.run_cpu(np.int32(0), np.int32(0), X)


def test_the_reference_refuses_before_the_body_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = entry_of(parse_hlo(UNTIL_BOUND))
    np.testing.assert_array_equal(evaluate(entry, [np.int32(1), np.int32(8), X], most_iterations=4)[0], X / 16)
    with pytest.raises(ExecutionError, match="within 3 iterations"):
        evaluate(entry, [np.int32(1), np.int32(8), X], most_iterations=3)
    monkeypatch.setattr(reference.Repetition, "is_found", refuse)
    with pytest.raises(ExecutionError, match="%w does not end within 100000 iterations"):
        evaluate(entry_of(parse_hlo(NEVER)), [np.int32(0), np.int32(0), X])
