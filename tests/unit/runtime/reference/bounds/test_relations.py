"""Relations between two operands of which each alone is unbounded: softmax of unknown scores."""

import numpy as np
import pytest

from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference import reference_bounds
from xla_emitters.runtime.reference.bounds.relations import by_relations
from xla_emitters.runtime.reference.tolerance import Bounds
from xla_emitters.text.hlo import parse_hlo

F32 = np.float32
SOFTMAX = """
sum {{ a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT r = f32[] add(a, b) }}
most {{ a = f32[] parameter(0)
       b = f32[] parameter(1)
       ROOT r = f32[] maximum(a, b) }}
ENTRY e {{
  x = f32[4,8] parameter(0)
  v = f32[8,5] parameter(1)
  least = f32[] constant({least})
  zero = f32[] constant({zero})
  m = f32[4] reduce(x, least), dimensions={{1}}, to_apply=most
  mb = f32[4,8] broadcast(m), dimensions={{0}}
  d = f32[4,8] subtract(x, mb)
  p = f32[4,8] exponential(d)
  s = f32[4] reduce(p, zero), dimensions={{1}}, to_apply=sum
  sb = f32[4,8] broadcast(s), dimensions={{0}}
  q = f32[4,8] divide(p, sb)
  ROOT r = f32[4,5] dot(q, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""


def found_for(values: dict[str, Bounds], name: str, least: str = "-inf", zero: str = "0") -> Bounds:
    """Bounds of an instruction from those of its operands."""
    entry = entry_of(parse_hlo(SOFTMAX.format(least=least, zero=zero), "x.hlo"))
    op = next(op for op in entry.instructions if op.instruction_name.data == name)
    operands = [values[operand.owner.instruction_name.data] for operand in op.operands]
    with np.errstate(all="ignore"):
        return by_relations(op, operands, values[name])


def wide(low: float, high: float, *dims: int) -> Bounds:
    return Bounds(np.full(dims, low, F32), np.full(dims, high, F32))


def test_nothing_is_above_its_maximum() -> None:
    values = {"x": wide(-5, 5, 4, 8), "mb": wide(-5, 5, 4, 8), "d": wide(-10, 10, 4, 8)}
    assert found_for(values, "d").high.max() == 0


@pytest.mark.parametrize(("least", "is_known"), [("-inf", True), ("3", False)])
def test_one_of_the_powers_is_one(least: str, is_known: bool) -> None:
    """Unless the maximum may be of none of them."""
    values = {"p": wide(0, 1, 4, 8), "zero": wide(0, 0), "s": wide(0, 8, 4)}
    found = found_for(values, "s", least)
    assert (found.low >= 1 - 1e-6).all() == is_known


@pytest.mark.parametrize(("zero", "is_known"), [("0", True), ("-1", False)])
def test_a_share_is_not_above_one(zero: str, is_known: bool) -> None:
    values = {"p": wide(0, 1, 4, 8), "sb": wide(0.5, 8, 4, 8), "q": wide(0, 2, 4, 8)}
    assert (found_for(values, "q", zero=zero).high <= 1 + 1e-6).all() == is_known


def test_means_are_between() -> None:
    """And all that NumPy's f32 gives for any scores is."""
    rng = np.random.default_rng(3)
    v = rng.standard_normal((8, 5)).astype(F32)
    values = {"q": wide(0, 1, 4, 8), "v": Bounds(v, v), "r": wide(-20, 20, 4, 5)}
    found = found_for(values, "r")
    assert (found.high <= np.maximum(v.max(0), 0) * F32(1.0001)).all()
    assert (found.low >= np.minimum(v.min(0), 0) * F32(1.0001)).all()
    for scale in (0, 1, 30):
        x = (scale * rng.standard_normal((4, 8))).astype(F32)
        p = np.exp(x - x.max(1, keepdims=True))
        assert found.admits(p / p.sum(1, keepdims=True) @ v).all()


def test_scores_that_are_not_known_do_not_make_a_softmax_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without relations the sum of powers may be 0, and 0 / 0 anything."""
    rng = np.random.default_rng(4)
    x, v = (1e6 * rng.standard_normal((4, 8))).astype(F32), rng.standard_normal((8, 5)).astype(F32)
    # Scores of that size, times themselves and tanh, are off by more than the range of exp.
    lines = "  x0 = f32[4,8] parameter(0)\n  t = f32[4,8] tanh(x0)\n  u = f32[4,8] multiply(x0, x0)\n  x = f32[4,8] multiply(t, u)\n"
    text = SOFTMAX.format(least="-inf", zero="0").replace("  x = f32[4,8] parameter(0)\n", lines)
    (found,) = reference_bounds.evaluate_bounds(entry_of(parse_hlo(text, "x.hlo")), [x, v])
    assert np.isfinite(found.low).all()
    assert np.isfinite(found.high).all()
    monkeypatch.setattr(reference_bounds, "by_relations", as_found)
    (found,) = reference_bounds.evaluate_bounds(entry_of(parse_hlo(text, "x.hlo")), [x, v])
    assert not np.isfinite(found.high).all()


def as_found(op: object, operands: object, found: Bounds) -> Bounds:
    return found
