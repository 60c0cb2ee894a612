"""Bounds by derivatives: derivatives are within their intervals, and cancellation gives tighter bounds than intervals alone."""

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.dialects.hlo.base import no_call
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.contractions import DotOp
from xla_emitters.dtypes import Array
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference import reference_bounds
from xla_emitters.runtime.reference.bounds.contraction_bounds import transposed_products
from xla_emitters.runtime.reference.bounds.sensitivity import Tape, intersected
from xla_emitters.runtime.reference.reference_bounds import evaluate_bounds
from xla_emitters.runtime.reference.tolerance import Bounds, point
from xla_emitters.text.hlo import parse_hlo

F32 = np.float32


@pytest.mark.parametrize(
    ("lhs", "rhs", "how"),
    [
        ((3, 4), (4, 5), "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
        ((4, 3), (5, 4), "lhs_contracting_dims={0}, rhs_contracting_dims={1}"),
        (
            (2, 3, 4),
            (4, 2, 5),
            "lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={0}",
        ),
        ((3, 4, 2), (2, 5, 4), "lhs_contracting_dims={2,1}, rhs_contracting_dims={0,2}"),
    ],
)
def test_dots_backwards(lhs: tuple[int, ...], rhs: tuple[int, ...], how: str) -> None:
    """The derivatives of a weighted sum of the results, by each element of both operands: by differences, which are exact for dots."""
    rng = np.random.default_rng(12)
    x, y = rng.standard_normal(lhs), rng.standard_normal(rhs)
    result = {2: "3,5", 3: "2,3,5" if "batch" in how else "3,5"}[len(lhs)]
    shapes = [",".join(map(str, dims)) for dims in (lhs, rhs)]
    lines = (
        f"a = f64[{shapes[0]}] parameter(0)",
        f"b = f64[{shapes[1]}] parameter(1)",
        f"ROOT d = f64[{result}] dot(a, b), {how}",
    )
    text = "\n".join(("ENTRY e {", *lines, "}\n"))
    op = entry_of(parse_hlo(text, "x.hlo")).root.owner
    assert isinstance(op, DotOp)
    weights = rng.standard_normal(tuple(map(int, result.split(","))))
    found = transposed_products(op, weights[np.newaxis], x, y)

    def value(a: Array, b: Array) -> float:
        return float((op.evaluate([a, b], no_call) * weights).sum())

    for number, (array, slopes) in enumerate(zip((x, y), found, strict=True)):
        assert slopes.shape == (1, *array.shape)
        for at in np.ndindex(*array.shape):
            moved = array.copy()
            moved[at] += 1
            either = (moved, y) if number == 0 else (x, moved)
            assert value(*either) - value(x, y) == pytest.approx(slopes[0][at], abs=1e-9)


CENTERED = """
sum { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT r = f32[] add(a, b) }
ENTRY e {
  x = f32[4,32] parameter(0)
  w = f32[32,32] parameter(1)
  t = f32[4,32] tanh(x)
  d = f32[4,32] dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  v = f32[4,32] dot(d, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  z = f32[] constant(0)
  s = f32[4] reduce(v, z), dimensions={1}, to_apply=sum
  k = f32[] constant(0.03125)
  kb = f32[4] broadcast(k), dimensions={}
  m = f32[4] multiply(s, kb)
  mb = f32[4,32] broadcast(m), dimensions={0}
  c = f32[4,32] subtract(v, mb)
  ROOT f = f32[4,32] tanh(c)
}
"""


def test_chains_that_cancel_are_known_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against intervals alone; and what functions moved at random by their ulps give is within."""
    rng = np.random.default_rng(13)
    x = rng.standard_normal((4, 32)).astype(F32)
    w = (rng.standard_normal((32, 32)) / 6).astype(F32)
    entry = entry_of(parse_hlo(CENTERED, "x.hlo"))
    (narrow,) = evaluate_bounds(entry, [x, w])
    monkeypatch.setattr(reference_bounds, "is_worth_a_tape", never)
    (wide,) = evaluate_bounds(entry, [x, w])
    assert (narrow.low >= wide.low).all()
    assert (narrow.high <= wide.high).all()
    assert np.median((wide.high - wide.low) / (narrow.high - narrow.low)) > 1.5
    for _ in range(50):
        t = (np.tanh(x.astype(np.float64)) * (1 + rng.uniform(-3, 3, x.shape) * 2.0**-23)).astype(F32)
        v = ((t.astype(np.float64) @ w).astype(F32).astype(np.float64) @ w.T).astype(F32)
        c = v - (v.sum(1, dtype=F32) * F32(0.03125))[:, None]
        assert narrow.admits(np.tanh(c.astype(np.float64)).astype(F32)).all()


def never(computation: ComputationOp) -> bool:
    return False


def test_bounds_that_have_nothing_in_common_stay() -> None:
    one, other = (Bounds(np.array([low], F32), np.array([high], F32)) for low, high in ((1, 2), (3, 4)))
    assert intersected(one, other).low.tolist() == [1]


def test_what_is_known_is_not_recorded() -> None:
    tape = Tape()
    entry = entry_of(parse_hlo("ENTRY e {\na = f32[2] parameter(0)\nROOT r = f32[2] negate(a)\n}\n", "x.hlo"))
    op = entry.root.owner
    value = point(np.array([1, 2], F32))
    assert tape.record(op, [value], value) is value
    assert not tape.steps


def test_roundings_that_leave_one_number_are_known() -> None:
    """bf16: the sum of 256 and each tanh, which one ulp does not take to the next number; the values, by hand, are 256 + 0.76 = 256."""
    lines = (
        "x = bf16[4] parameter(0)",
        "t = bf16[4] tanh(x)",
        "c = bf16[] constant(256)",
        "cb = bf16[4] broadcast(c), dimensions={}",
        "ROOT s = bf16[4] add(t, cb)",
    )
    entry = entry_of(parse_hlo("\n".join(("ENTRY e {", *lines, "}\n")), "x.hlo"))
    (found,) = evaluate_bounds(entry, [np.array([0.3, -0.2, 0.5, 0.1], ml_dtypes.bfloat16)])
    assert found.low.astype(float).tolist() == found.high.astype(float).tolist() == [256] * 4


def test_an_array_without_elements_has_bounds() -> None:
    lines = ("x = f32[0,3] parameter(0)", "y = f32[0,3] exponential(x)", "ROOT d = f32[0,3] divide(x, y)")
    entry = entry_of(parse_hlo("\n".join(("ENTRY e {", *lines, "}\n")), "x.hlo"))
    (found,) = evaluate_bounds(entry, [np.zeros((0, 3), F32)])
    assert found.low.shape == found.high.shape == (0, 3)
