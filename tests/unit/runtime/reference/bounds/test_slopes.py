"""Functions as straight lines: derivatives are in their intervals, and the remainder is within its bound."""

import numpy as np
import pytest

from xla_emitters.dialects.hlo.elementwise import ROWS
from xla_emitters.dtypes import dtype
from xla_emitters.runtime.reference.bounds.slopes import SLOPES, CenteredOperand, linearized

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("opcode", sorted({*SLOPES, "multiply", "divide"} - {"copy"}))
def test_what_is_left_beside_a_straight_line(opcode: str) -> None:
    """Drawn from intervals of many sizes, some of which hold poles: float64's value is that near to the line through the center."""
    row = next(row for row in ROWS if row.opcode == opcode)
    rng = np.random.default_rng(11)
    count, given = 500, list[CenteredOperand]()
    for _ in row.operands:
        low = rng.standard_normal(count) * 2 + 0.5
        high = low + 10 ** rng.uniform(-6, 0, count)
        center = low + (high - low) * rng.uniform(0, 1, count)
        given.append(CenteredOperand(center, np.maximum(high - center, center - low), (low, high)))
    slopes, left = linearized(opcode, given)
    assert np.isfinite(left).mean() > 0.3
    with np.errstate(all="ignore"):
        middle = row.means(dtype("f64"), *(operand.center for operand in given))
        for _ in range(40):
            share = rng.choice([0, 1, rng.uniform()], (len(given), count))
            at = [a + (b - a) * part for (a, b), part in zip((operand.ends for operand in given), share, strict=True)]
            line = sum(slope * (x - operand.center) for slope, x, operand in zip(slopes, at, given, strict=True))
            off = np.abs(row.means(dtype("f64"), *at) - middle - line)
            assert (np.isinf(left) | (off <= left + 1e-13 * (1 + np.abs(middle)))).all()


def test_half_of_what_is_left_is_too_little() -> None:
    """Of a product at the corner of its operands: what is left is all of (x - a) (y - b)."""
    x, y = (
        CenteredOperand(np.array([c]), np.array([0.5]), (np.array([c - 0.5]), np.array([c + 0.5]))) for c in (2.0, 3.0)
    )
    (by_x, by_y), left = linearized("multiply", [x, y])
    off = 2.5 * 3.5 - 2 * 3 - float(by_x[0]) * 0.5 - float(by_y[0]) * 0.5
    assert off == pytest.approx(0.25)
    assert float(left[0]) == pytest.approx(0.25)
