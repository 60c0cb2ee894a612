"""Which loops a kernel runs, and that the module's values do not change by a bit."""

import json
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr

import xla_emitters as xe
from xla_emitters.dialects.verification import verify_ir
from xla_emitters.graph.control_computations import control_computations, fusions_run_by
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.fuse_loops import FuseLoopsPass
from xla_emitters.graph.view import view_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo

STATE = "(s32[], f32[4,8], f32[4,8], f32[])"


def text(step: str, trips: str, root: str = "ROOT r = f32[4,8] get-tuple-element(w), index=1") -> str:
    """A loop over a counter, an array that changes, one that stays, and a scalar."""
    return f"""HloModule m
add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }}
next {{ i = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT r = s32[] add(i, one) }}
halved {{ s = f32[] parameter(0)
  h = f32[] constant(0.5)
  ROOT r = f32[] multiply(s, h) }}
step {{ x = f32[4,8] parameter(0)
  y = f32[4,8] parameter(1)
  s = f32[] parameter(2)
  i = s32[] parameter(3)
  {step} }}
body {{ t = {STATE} parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[4,8] get-tuple-element(t), index=1
  y = f32[4,8] get-tuple-element(t), index=2
  s = f32[] get-tuple-element(t), index=3
  in = s32[] fusion(i), kind=kLoop, calls=next
  xn = f32[4,8] fusion(x, y, s, i), kind=kLoop, calls=step
  sn = f32[] fusion(s), kind=kLoop, calls=halved
  ROOT o = {STATE} tuple(in, xn, y, sn) }}
less {{ i = s32[] parameter(0)
  n = s32[] constant(12)
  ROOT r = pred[] compare(i, n), direction=LT }}
more {{ t = {STATE} parameter(0)
  i = s32[] get-tuple-element(t), index=0
  ROOT r = pred[] fusion(i), kind=kLoop, calls=less }}
first {{ ROOT z = s32[] constant(0) }}
ENTRY e {{ x = f32[4,8] parameter(0)
  y = f32[4,8] parameter(1)
  s = f32[] parameter(2)
  z = s32[] fusion(), kind=kLoop, calls=first
  t = {STATE} tuple(z, x, y, s)
  w = {STATE} while(t), condition=more, body=body{trips}
  {root} }}
"""


TRIPS = ', backend_config={"known_trip_count":{"n":"12"},"known_init_step":{"init":"0","step":"1"}}'
SHORT = """b = f32[4,8] broadcast(s), dimensions={}
  c = f32[] convert(i)
  d = f32[4,8] broadcast(c), dimensions={}
  m = f32[4,8] multiply(x, b)
  n = f32[4,8] add(m, d)
  ROOT r = f32[4,8] add(n, y)"""
LONG = "\n".join(
    [
        "a0 = f32[4,8] add(x, y)",
        *(f"a{n} = f32[4,8] multiply(a{n - 1}, y)" for n in range(1, 60)),
        "ROOT r = f32[4,8] add(a59, y)",
    ]
)


def fused(given: str) -> ModuleOp:
    found = parse_hlo(given, "m")
    FuseLoopsPass().apply_to(found)
    verify_ir(found)
    return found


def loops(found: ModuleOp) -> list[str]:
    """The trip counts of the loops that are left."""
    ops = (op for each in control_computations(found) for op in each.instructions if op.opcode == "while")
    configs = [op.attributes["backend_config"] for op in ops]
    return [json.loads(each.data)["known_trip_count"]["n"] for each in configs if isinstance(each, StringAttr)]


@pytest.mark.parametrize(
    ("step", "left"),
    [
        (SHORT, []),
        (LONG, ["3"]),  # 63 operations, of 256: four times
    ],
)
@pytest.mark.parametrize(
    "root",
    [
        "ROOT r = f32[4,8] get-tuple-element(w), index=1",
        f"ROOT r = {STATE} copy(w)",
        "a = f32[4,8] get-tuple-element(w), index=1\n  sr = f32[] get-tuple-element(w), index=3\n"
        "  ir = s32[] get-tuple-element(w), index=0\n  ROOT r = (f32[4,8], f32[], s32[]) tuple(a, sr, ir)",
    ],
)
def test_iterations_run_in_one_kernel_with_the_same_values(step: str, left: list[str], root: str) -> None:
    given, random = text(step, TRIPS, root), np.random.default_rng(0)
    x, y = (random.uniform(0.5, 1.5, (4, 8)).astype(np.float32) for _ in range(2))
    arrays = [x, y, np.float32(1.25)]
    found = fused(given)
    assert loops(found) == left
    wanted = evaluate(entry_of(parse_hlo(given, "m")), arrays)
    assert all(np.array_equal(a, b) for a, b in zip(evaluate(entry_of(found), arrays), wanted, strict=True))
    if "copy" not in root:
        program = xe.compile(given, tune="auto", cache=False, stage="llvm-dialect")
        answer: Any = program.run_cpu(*arrays, stage="llvm-dialect")
        ran = [answer] if len(program.results) == 1 else answer
        assert all(np.allclose(a, b, rtol=1e-6) for a, b in zip(ran, wanted, strict=True))


def test_what_xla_states_is_not_believed() -> None:
    for stated in ("", TRIPS.replace("12", "7")):
        given, x = text(SHORT, stated), np.ones((4, 8), np.float32)
        found = fused(given)
        assert loops(found) == []
        wanted, got = (evaluate(entry_of(each), [x, x, np.float32(1)]) for each in (parse_hlo(given, "m"), found))
        assert np.array_equal(got[0], wanted[0])


@pytest.mark.parametrize("stated", ["{abc}", '{"known_trip_count":{"m":"12"}}', '{"known_trip_count":12}'])
def test_a_configuration_that_states_no_trip_count_stays(stated: str) -> None:
    found = fused(text(LONG, f", backend_config={stated}"))
    (left,) = [op for each in control_computations(found) for op in each.instructions if op.opcode == "while"]
    assert left.attributes["backend_config"] == StringAttr(stated)


def test_what_is_not_read_is_not_computed() -> None:
    (fusion,) = fusions_run_by(entry_of(fused(text(SHORT.replace("add(m, d)", "add(m, m)"), TRIPS))))
    assert [parameter.instruction_name.data for parameter in view_of(fusion).parameters] == [
        "state.1",
        "state.2",
        "state.3",
    ]


@pytest.mark.parametrize(
    "step",
    [
        # Another element is needed.
        "t = f32[8,4] transpose(x), dimensions={1,0}\n  ROOT r = f32[4,8] bitcast(t)",
        "ROOT r = f32[4,8] reverse(x), dimensions={1}",
        "z = f32[] constant(0)\n  q = f32[] reduce(x, z), dimensions={0,1}, to_apply=add\n"
        "ROOT r = f32[4,8] broadcast(q), dimensions={}",
    ],
)
def test_other_loops_stay(step: str) -> None:
    assert any(op.opcode == "while" for op in entry_of(fused(text(step, TRIPS))).instructions)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # 13 iterations have no divisor; a loop that never runs; one whose bound is a number of the state.
        ("s32[] constant(12)", "s32[] constant(13)"),
        ("s32[] constant(12)", "s32[] constant(0)"),
        ("first { ROOT z = s32[] constant(0) }", "first { q = f32[] constant(0)\n  ROOT z = s32[] convert(q) }"),
    ],
)
def test_loops_stay_unless_constants_say_how_often_they_run(before: str, after: str) -> None:
    given = text(LONG, TRIPS)
    assert before in given
    assert any(op.opcode == "while" for op in entry_of(fused(given.replace(before, after))).instructions)
