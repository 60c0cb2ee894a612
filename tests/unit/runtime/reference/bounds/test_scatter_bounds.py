"""Bounds of scatters: they admit updates in any order, and reject what no order gives."""

from itertools import permutations

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.dtypes import dtype
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.runtime.reference.reference_bounds import evaluate_bounds
from xla_emitters.text.hlo import parse_hlo


def program(type: str, body: str, count: int, flags: str = "") -> str:
    return f"""
combine {{
  a = {type}[] parameter(0)
  b = {type}[] parameter(1)
  {body}
}}

ENTRY main {{
  p = {type}[3] parameter(0)
  rows = s32[{count}] parameter(1)
  u = {type}[{count}] parameter(2)
  ROOT s = {type}[3] scatter(p, rows, u), update_window_dims={{}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=combine{flags}
}}
"""


BODIES = {
    "add": "ROOT r = {t}[] add(a, b)",
    "multiply": "ROOT r = {t}[] multiply(a, b)",
    "maximum": "ROOT r = {t}[] maximum(b, a)",
}


@pytest.mark.parametrize("type", ["f32", "f16", "f64"])
@pytest.mark.parametrize("body", ["add", "multiply", "maximum"])
def test_every_order_of_the_updates_is_within(type: str, body: str) -> None:
    """Four updates of one element and one of another, in all 120 orders; the third element is as it was, exactly."""
    numpy = {"f32": np.float32, "f16": np.float16, "f64": np.float64}[type]
    entry = entry_of(parse_hlo(program(type, BODIES[body].format(t=type), 5)))
    p = np.array([1.1, -2.3, 0.7], numpy)
    rows, updates = np.array([0, 0, 1, 0, 0], np.int32), np.array([3.3, -1.7, 0.01, 1e3, -0.3], numpy)
    (bounds,) = evaluate_bounds(entry, [p, rows, updates])
    for order in permutations(range(5)):
        (value,) = evaluate(entry, [p, rows[list(order)], updates[list(order)]])
        assert bounds.admits(value).all()
    assert bounds.low[2] == bounds.high[2] == p[2]
    off = np.nextafter(bounds.high[0], numpy(np.inf))
    assert not bounds.admits(np.array([off, p[1], p[2]], numpy))[0]
    low, high = float(bounds.low[0]), float(bounds.high[0])
    assert high - low < 40 * float(np.finfo(numpy).eps) * 1e4 * abs(high)


@pytest.mark.parametrize(
    ("type", "body"), [("f8e4m3fn", "add"), ("f8e4m3fnuz", "add"), ("f16", "add"), ("f16", "multiply")]
)
def test_some_orders_leave_the_range_of_the_type(type: str, body: str) -> None:
    """Two large numbers and their opposites: to NaN or infinity in some orders, to the sum in others. The second is as exact as ever."""
    entry = entry_of(parse_hlo(program(type, BODIES[body].format(t=type), 4)))
    numpy = dtype(type).numpy
    most = 0.9 * float(ml_dtypes.finfo(numpy).max)
    updates = np.array([most, -most, most, -most] if body == "add" else [1e3, 1e-3, 1e3, 1e-3]).astype(numpy)
    p, rows = np.array([1, 2, 3], numpy), np.zeros(4, np.int32)
    (bounds,) = evaluate_bounds(entry, [p, rows, updates])
    finite = list[bool]()
    for order in permutations(range(4)):
        (value,) = evaluate(entry, [p, rows, updates[list(order)]])
        finite.append(bool(np.isfinite(value[0])))
        assert bounds.admits(value).all(), value
    assert len(set(finite)) == 2
    assert not bounds.admits(np.array([1, 2.5, 3], numpy))[1]


def test_of_several_updates_that_take_the_place_any_may_be_the_last() -> None:
    entry = entry_of(parse_hlo(program("s32", "n = s32[] negate(a)\n  ROOT r = s32[] subtract(b, n)", 4)))
    p, rows = np.array([10, 20, 30], np.int32), np.array([0, 5, 0, 2], np.int32)
    (bounds,) = evaluate_bounds(entry, [p, rows, np.array([1, 2, 4, 3], np.int32)])
    assert bounds.low.tolist() == bounds.high.tolist() == [15, 20, 33]
    text = program("f32", "ROOT b2 = f32[] parameter(1)", 4).replace("  b = f32[] parameter(1)\n", "", 1)
    (bounds,) = evaluate_bounds(
        entry_of(parse_hlo(text)), [p.astype(np.float32), rows, np.array([1, 2, 4, 3], np.float32)]
    )
    assert (bounds.low.tolist(), bounds.high.tolist()) == ([1, 20, 3], [4, 20, 3])


def test_where_indices_are_different_there_is_one_order() -> None:
    entry = entry_of(parse_hlo(program("f32", BODIES["add"].format(t="f32"), 2, ", unique_indices=true")))
    arrays = [np.array([1, 2, 3], np.float32), np.array([2, 0], np.int32), np.array([0.1, 0.2], np.float32)]
    (bounds,) = evaluate_bounds(entry, arrays)
    assert bounds.low.tolist() == bounds.high.tolist() == evaluate(entry, arrays)[0].tolist()
