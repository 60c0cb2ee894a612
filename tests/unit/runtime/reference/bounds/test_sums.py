"""Sums by the spacing of numbers: they admit the sum of any terms within their intervals, and no others."""

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.runtime.reference.bounds.sums import half_spacing, running_sum, sum_bounds
from xla_emitters.runtime.reference.tolerance import Bounds, point

TYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype(np.float32)}


@pytest.mark.parametrize("type", TYPES)
def test_half_spacing_is_half_the_distance_to_the_next_number(type: str) -> None:
    kind = TYPES[type]
    numbers = np.array([1, 1.5, 1.99, 2, 1000, 0.1, 3e-6], kind)
    after = np.nextafter(numbers, np.array(np.inf).astype(kind)).astype(np.float64)
    assert (half_spacing(numbers.astype(np.float64), kind) * 2 == after - numbers.astype(np.float64)).all()


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("shift", [0, 3])
def test_sums_of_terms_within_their_intervals(type: str, shift: float) -> None:
    """A kernel's sum is the center's, the differences of the terms that have a share, and what it may be off beside them."""
    kind, rng = TYPES[type], np.random.default_rng(5)
    center = (rng.standard_normal((24, 200)) + shift).astype(kind)
    low, high = center, center
    for _ in range(2):
        low, high = (np.nextafter(end, np.array(to).astype(kind)) for end, to in ((low, -np.inf), (high, np.inf)))
    a, b, c = (part.astype(np.float64) for part in (low, high, center))
    found = running_sum(a, b, c, np.asarray(0.5), kind)
    assert (found.share == 0).any()
    chosen = [np.choose(rng.integers(0, 3, center.shape), [low, center, high]) for _ in range(30)]
    for terms in (low, high, center, *chosen):
        total = np.full(200, 0.5)
        for term in terms:
            total = (total + term.astype(np.float64)).astype(kind).astype(np.float64)
        rest = total - found.center - (found.share * (terms.astype(np.float64) - c)).sum(0)
        slack = 1e-12 * (1 + np.abs(total))
        assert (rest >= found.own[0] - slack).all()
        assert (rest <= found.own[1] + slack).all()


def test_sums_that_round_nothing_are_known() -> None:
    """Integers that 11 bits hold: nothing is lost."""
    terms = np.arange(1.0, 40.0)[:, None]
    found = running_sum(terms, terms, terms, np.asarray(0.0), TYPES["f16"])
    assert np.abs(found.own).max() < 1e-10
    assert found.center == terms.sum()


def test_an_infinity_that_may_cancel_another_makes_a_sum_unknown() -> None:
    """One term is infinite, the other may have overflowed to the other infinity: their sum is infinite or NaN."""
    low, high = np.array([-np.inf, np.inf], np.float32), np.array([-3e38, np.inf], np.float32)
    zero, nan = point(np.zeros((), np.float32)), np.array(np.nan, np.float32)
    with np.errstate(invalid="ignore"):
        found, certain = (sum_bounds(terms, zero, (0,), 2, 2**-24) for terms in (Bounds(low, high), point(high)))
    assert found.admits(high.sum(keepdims=True)).all()
    assert found.admits(nan)
    assert not certain.admits(nan)
