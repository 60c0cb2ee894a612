"""Bounds of elementwise ops: whatever operands are drawn from their intervals, the reference's value lies within."""

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xla_emitters.dialects.hlo.base import no_call
from xla_emitters.dialects.hlo.elementwise import ROWS, ElementwiseOp, ElementwiseRow
from xla_emitters.dtypes import Array, Kind, dtype
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.bounds.elementwise_bounds import bounds_after
from xla_emitters.runtime.reference.tolerance import Bounds, extremes, point, ulps_of
from xla_emitters.text.hlo import parse_hlo

F32 = np.float32


def op_of(code: str, *types: str, result: str, size: int, rest: str = "") -> ElementwiseOp:
    names = ["a", "b", "c"][: len(types)]
    lines = [
        f"{name} = {type}[{size}] parameter({at})" for at, (name, type) in enumerate(zip(names, types, strict=True))
    ]
    lines.append(f"ROOT r = {result}[{size}] {code}({', '.join(names)}){rest}")
    op = entry_of(parse_hlo("ENTRY e {\n" + "\n".join(lines) + "\n}\n", "x.hlo")).root.owner
    assert isinstance(op, ElementwiseOp)
    return op


def after(op: ElementwiseOp, *operands: Bounds) -> Bounds:
    return bounds_after(op, operands, lambda arrays: op.evaluate(arrays, no_call))


def interval(low: Sequence[float], high: Sequence[float], type: Any = F32) -> Bounds:
    return Bounds(np.array(low).astype(type), np.array(high).astype(type))


def drawn_intervals(rng: np.random.Generator, type: str, count: int) -> Bounds:
    """Of many widths; some hold zero, some are single values, some reach infinity."""
    kind = dtype(type).numpy
    with np.errstate(all="ignore"):
        low = (rng.standard_normal(count) * 10 ** rng.uniform(-3, 1.5, count)).astype(kind)
        width = np.where(rng.random(count) < 0.2, 0, 10 ** rng.uniform(-7, 1.5, count))
        high = np.maximum((low.astype(np.float64) + width).astype(kind), low)
    low[:3], high[:3] = np.array([-1, 0, 0]).astype(kind), np.array([0, 1, 0]).astype(kind)
    high[3:6] = extremes(kind)[1]
    return Bounds(low, high)


def drawn_points(rng: np.random.Generator, bounds: Bounds) -> Array:
    """A value of each interval: the ends often, zero where it is inside, NaN where nothing is known."""
    low, high = (np.clip(end.astype(np.float64), -1e30, 1e30) for end in bounds.ends)
    share = rng.uniform(0, 1, low.shape)
    value = (low + (high - low) * share).astype(bounds.low.dtype)
    value = np.minimum(np.maximum(value, bounds.low), bounds.high)
    which = rng.integers(0, 6, low.shape)
    value = np.where(which == 0, bounds.low, np.where(which == 1, bounds.high, value))
    return np.where((which == 2) & (low <= 0) & (high >= 0), value.dtype.type(0), value)


FLOATS = [row for row in ROWS if Kind.FLOAT in row.takes]


@pytest.mark.parametrize("type", ["f32", "bf16", "f8e4m3fn", "f64"])
@pytest.mark.parametrize("row", FLOATS, ids=lambda row: row.opcode)
def test_of_floats(row: ElementwiseRow, type: str) -> None:
    rng = np.random.default_rng(3)
    count = 300
    operands = [drawn_intervals(rng, type, count) for _ in row.operands]
    op = op_of(row.opcode, *[type] * len(operands), result="pred" if row.opcode == "is-finite" else type, size=count)
    found = after(op, *operands)
    for _ in range(60):
        points = [drawn_points(rng, bounds) for bounds in operands]
        value = op.evaluate(points, no_call)
        admitted = found.admits(value)
        assert admitted.all(), [(*(p[at] for p in points), value[at]) for at in np.argwhere(~admitted)[:5]]


@pytest.mark.parametrize("opcode", ["multiply", "subtract", "divide", "power", "atan2", "remainder", "add", "maximum"])
def test_of_one_value_twice(opcode: str) -> None:
    """x * x over [-1, 2] is never negative, and x - x is 0; all that is drawn lies within."""
    rng = np.random.default_rng(4)
    x = drawn_intervals(rng, "f32", 300)
    op = op_of(opcode, "f32", "f32", result="f32", size=300)
    found = after(op, x, x)
    for _ in range(60):
        value = drawn_points(rng, x)
        assert found.admits(op.evaluate([value, value], no_call)).all()
    two = interval([-1, 1], [2, 1.5])
    if opcode == "multiply":
        assert after(op_of(opcode, "f32", "f32", result="f32", size=2), two, two).low.tolist() == [0, 1]
    if opcode == "subtract":
        assert after(op_of(opcode, "f32", "f32", result="f32", size=2), two, two).high.tolist() == [0, 0]


INTEGERS = [row for row in ROWS if Kind.SIGNED in row.takes]


@pytest.mark.parametrize("type", ["s8", "u8", "s4", "s64", "pred"])
@pytest.mark.parametrize("row", INTEGERS, ids=lambda row: row.opcode)
def test_of_integers(row: ElementwiseRow, type: str) -> None:
    if dtype(type).kind not in row.takes:
        return
    rng = np.random.default_rng(5)
    count, kind = 300, dtype(type).numpy
    least, most = (int(end) for end in extremes(kind))
    least, most = max(least, -(2**62)), min(most, 2**62)
    operands = list[Bounds]()
    for _ in row.operands:
        ends = rng.integers(least, most, (2, count), endpoint=True)
        near = np.minimum(ends[0] + rng.integers(0, 3, count), most)
        ends[1] = np.where(rng.random(count) < 0.6, near, ends[1])
        operands.append(Bounds(ends.min(0).astype(kind), ends.max(0).astype(kind)))
    op = op_of(row.opcode, *[type] * len(operands), result=type, size=count)
    found = after(op, *operands)
    for _ in range(60):
        points = [
            rng.integers(*(end.astype(np.int64) for end in bounds.ends), endpoint=True).astype(kind)
            for bounds in operands
        ]
        assert found.admits(op.evaluate(points, no_call)).all()


@pytest.mark.parametrize("source", ["f32", "s8", "u8", "pred", "bf16"])
@pytest.mark.parametrize("target", ["pred", "s4", "u8", "s32", "f32", "f16", "f8e4m3fn", "c64"])
def test_conversions(source: str, target: str) -> None:
    if source == target:
        return
    rng = np.random.default_rng(6)
    kind = dtype(source).numpy
    if dtype(source).kind is Kind.FLOAT:
        x = drawn_intervals(rng, source, 300)
    else:
        least, most = (int(end) for end in extremes(kind))
        ends = rng.integers(least, most, (2, 300), endpoint=True)
        x = Bounds(ends.min(0).astype(kind), ends.max(0).astype(kind))
    op = op_of("convert", source, result=target, size=300)
    found = after(op, x)
    for _ in range(60):
        value = (
            drawn_points(rng, x)
            if dtype(source).kind is Kind.FLOAT
            else rng.integers(*(end.astype(np.int64) for end in x.ends), endpoint=True).astype(kind)
        )
        assert found.admits(op.evaluate([value], no_call)).all()


@pytest.mark.parametrize("type", ["FLOAT", "TOTALORDER"])
@pytest.mark.parametrize("direction", ["EQ", "NE", "GE", "GT", "LE", "LT"])
def test_comparisons_are_open_where_intervals_overlap(direction: str, type: str) -> None:
    rng = np.random.default_rng(8)
    x, y = (drawn_intervals(rng, "f32", 300) for _ in range(2))
    op = op_of("compare", "f32", "f32", result="pred", size=300, rest=f", direction={direction}, type={type}")
    found = after(op, x, y)
    for _ in range(60):
        assert found.admits(op.evaluate([drawn_points(rng, x), drawn_points(rng, y)], no_call)).all()
    small = op_of("compare", "f32", "f32", result="pred", size=3, rest=f", direction=LT, type={type}")
    found = after(small, interval([1, 1, 3], [2, 2, 4]), interval([3, 2, 1], [4, 3, 2]))
    assert (found.low.tolist(), found.high.tolist()) == ([True, False, False], [True, True, False])


def test_a_selection_by_an_open_comparison_is_either() -> None:
    op = op_of("select", "pred", "f32", "f32", result="f32", size=3)
    predicate = Bounds(np.array([False, False, True]), np.array([False, True, True]))
    found = after(op, predicate, point(np.array([1, 1, 1], F32)), point(np.array([5, 5, 5], F32)))
    assert (found.low.tolist(), found.high.tolist()) == ([5, 1, 1], [5, 5, 1])


def test_of_nothing_nothing_is_known() -> None:
    """max(x, 5) is NaN where x is; an integer made of it is any."""
    x = interval([-np.inf], [np.inf])
    five = point(np.array([5], F32))
    assert after(op_of("maximum", "f32", "f32", result="f32", size=1), x, five).admits(np.array([np.nan], F32)).all()
    found = after(op_of("convert", "f32", result="s32", size=1), x)
    assert (found.low[0], found.high[0]) == (-(2**31), 2**31 - 1)
    assert after(op_of("is-finite", "f32", result="pred", size=1), x).low.tolist() == [False]


def test_poles_and_turning_points() -> None:
    def of(opcode: str, low: float, high: float) -> list[float]:
        found = after(op_of(opcode, "f32", result="f32", size=1), interval([low], [high]))
        return [float(found.low[0]), float(found.high[0])]

    np.testing.assert_allclose(of("cosine", -0.1, 0.2), [np.cos(0.2), 1], rtol=1e-6)
    np.testing.assert_allclose(of("sine", 1.5, 1.7), [np.sin(1.7), 1], rtol=1e-6)
    np.testing.assert_allclose(of("cosh", -1, 2), [1, np.cosh(2)], rtol=1e-5)
    assert of("tan", 1.5, 1.6) == [-np.inf, np.inf]
    assert of("abs", -1, 2) == [0, 2]
    divided = after(
        op_of("divide", "f32", "f32", result="f32", size=2), interval([1, 1], [1, 1]), interval([-1, 1], [1, 2])
    )
    assert divided.low[0] == -np.inf
    np.testing.assert_allclose([divided.low[1], divided.high[1]], [0.5, 1], rtol=1e-6)


def test_a_rounding_op_widens_what_its_operands_allow() -> None:
    x = np.array([2.0], F32)
    found = after(op_of("sqrt", "f32", result="f32", size=1), point(x))
    up = np.nextafter(np.nextafter(np.sqrt(x), F32(np.inf)), F32(np.inf))
    assert found.high[0] == up[0]
    found = after(op_of("tanh", "bf16", result="bf16", size=1), point(x.astype(ml_dtypes.bfloat16)))
    assert [float(found.low[0]), float(found.high[0])] == [0.9609375, 0.96875]


def test_what_is_never_negative_is_not_given_as_negative() -> None:
    """exp(-200) is below the smallest number of f32, so the floor goes below zero: 1 / (c + exp(x)) would have a pole."""
    found = after(op_of("exponential", "f32", result="f32", size=1), point(np.array([-200], F32)))
    assert found.low[0] == 0
    assert found.high[0] > 0


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(st.sampled_from(FLOATS), st.sampled_from(["f32", "f16", "bf16"]), st.data())
def test_float64_is_within(row: ElementwiseRow, type: str, data: st.DataObject) -> None:
    """Any op, any intervals, any numbers in them: float64's value of these, rounded once, and what the op's ulps make of it."""
    kind = dtype(type).numpy
    numbers = st.floats(-1e4, 1e4, width=16)
    operands, points = list[Bounds](), list[Array]()
    for _ in row.operands:
        # -0.0 is below 0.0: the two are different arguments of 1 / x.
        least, inside, most = sorted(
            data.draw(st.tuples(numbers, numbers, numbers)), key=lambda x: (x, math.copysign(1, x))
        )
        operands.append(interval([least], [most], kind))
        points.append(np.array([inside]).astype(kind))
    result = "pred" if row.opcode == "is-finite" else type
    op = op_of(row.opcode, *[type] * len(operands), result=result, size=1)
    found = after(op, *operands)
    with np.errstate(all="ignore"):
        value = np.asarray(row.means(dtype("f64"), *(x.astype(np.float64) for x in points))).astype(dtype(result).numpy)
        assert found.admits(value).all(), (points, value, found)
        for _ in range(ulps_of(row.opcode, Kind.FLOAT.value, kind.itemsize * 8) if result == type else 0):
            # Minus infinity is the value at a pole, or beyond all finite ones: the greatest finite one is not beside it.
            value = np.where(value == -np.inf, value, np.nextafter(value, np.array(np.inf).astype(kind)))
        assert found.admits(value).all(), (points, value, found)


def test_a_reciprocal_root_of_both_zeros_is_unknown() -> None:
    """1 / sqrt(-0.0) is -inf, 1 / sqrt(0.0) inf; of one of the two it is known."""
    op = op_of("rsqrt", "f32", result="f32", size=3)
    found = after(op, interval([-0.0, -0.0, 0.0], [0.0, -0.0, 0.0]))
    for values, admitted in (([-np.inf] * 3, [True, True, False]), ([np.inf] * 3, [True, False, True])):
        assert found.admits(np.array(values, np.float32)).tolist() == admitted
