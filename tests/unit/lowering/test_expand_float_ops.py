"""f32 tanh and erf by polynomials, against NumPy's and Python's in f64: within 6 units in the last place."""

import math

import numpy as np
import pytest
from unit.lowering.straight_line import run

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.lowering.expand_float_ops import ExpandFloatOpsPass
from xla_emitters.rewrite.notes import take_notes


def expanded(name: str):
    module = parse_ir(f"func.func @f(%x: f32) -> f32 {{ %y = math.{name} %x : f32\n func.return %y : f32 }}")
    ExpandFloatOpsPass().apply(make_context(), module)
    module.verify()
    return module


def every_ten_thousandth() -> np.ndarray:
    """Finite f32 of both signs, evenly over their bit patterns."""
    positive = np.arange(0, 0x7F800000, 10_007, dtype=np.uint32).view(np.float32)
    return np.concatenate([positive, -positive])


@pytest.mark.parametrize(
    ("name", "reference"),
    [("tanh", np.tanh), ("erf", np.vectorize(math.erf, otypes=[np.float64]))],
)
def test_within_six_units(name: str, reference: np.ufunc) -> None:
    x = every_ten_thousandth()
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        (got,) = run(expanded(name), [x])
    assert got.dtype == np.float32
    wanted = reference(x.astype(np.float64))
    unit = np.spacing(np.maximum(np.abs(wanted.astype(np.float32)), np.finfo(np.float32).tiny)).astype(np.float64)
    assert np.max(np.abs(got.astype(np.float64) - wanted) / unit) <= 6


@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_special_values(name: str) -> None:
    """NaN stays NaN, infinities give one, zeros keep their sign."""
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    with np.errstate(invalid="ignore"):
        (got,) = run(expanded(name), [x])
    np.testing.assert_array_equal(got, np.array([np.nan, 1, -1, 0, 0], np.float32))
    assert list(np.signbit(got[3:])) == [False, True]


def test_refusal_can_be_asked_for() -> None:
    module = parse_ir("func.func @f(%x: f32) -> f32 { %y = math.tanh %x : f32\n func.return %y : f32 }")
    with take_notes() as notes:
        ExpandFloatOpsPass(approximate_tanh=False).apply(make_context(), module)
    assert [remark.text for remark in notes.remarks] == ["skipped math.tanh: approximate-tanh is off"]
