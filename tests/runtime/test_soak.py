"""A second of the load that `make soak` puts on a program for ten minutes."""

from __future__ import annotations

from pathlib import Path

import pytest
from runtime.soak import STATUS, Soak, soak

from xla_emitters.runtime.program_cache import DIRECTORY


@pytest.mark.skipif(not STATUS.exists(), reason="this system does not say how much memory a process has")
def test_threads_call_a_program_at_random_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY, str(tmp_path))
    found = soak(seconds=1, rate=100, period=0.25, sizes=4)
    assert not found.wrong
    assert not found.errors
    assert found.calls >= 8  # on a machine that does much else
    first, *_, last = (row[3] for row in found.rows)
    assert last < 1.2 * first


def test_buffers_of_plans_are_no_growth() -> None:
    before, later = (30, 0, 190.0, 180.0, 0.0, 0, 0), (60, 0, 190.0, 180.0, 0.0, 0, 0)
    assert Soak(rows=[before, later, (90, 0, 210.0, 190.0, 10.0, 0, 0)]).growth(60) == 0
    assert Soak(rows=[before, later, (90, 0, 210.0, 198.0, 9.0, 0, 0)]).growth(60) == pytest.approx(0.05)
