"""The cost model against what an H200 took (`lab/prices.py`): one function of each kind of bound."""

import pytest
from long_lists import every
from tools_here import SASS, needs

from lab.prices import errors, measured_rows, priced

MEASURED = {row["name"]: row.get("ours_off_us") for row in measured_rows()}


@needs(*SASS)
@pytest.mark.parametrize("name", every(3, ["sum_rows", "concat_minor", "transpose_f32", "gather_rows", "dequant"]))
def test_expected_times_are_near_the_measured_ones(name: str) -> None:
    """Reads, copies, tiles, a part of an array that stays in a cache, blocks that start slowly: within 6 %."""
    pytest.importorskip("jaxlib", reason="the extra [xla] is not installed")
    assert priced(name).time == pytest.approx(MEASURED[name], rel=0.06)


def test_a_function_that_was_not_measured_is_no_error() -> None:
    assert MEASURED["mandelbrot"] is None
    assert errors([]) == "no row"
