"""A second of the load that `make soak` puts on a program for ten minutes."""

from __future__ import annotations

from pathlib import Path

import pytest
from runtime.soak import STATUS, soak

from xla_emitters.settings import CACHE_DIR


@pytest.mark.long  # `test_bound_programs.py` calls a program from several threads
@pytest.mark.skipif(not STATUS.exists(), reason="this system does not say how much memory a process has")
def test_threads_call_a_program_at_random_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_DIR, str(tmp_path))
    found = soak(seconds=1, rate=100, period=0.25, sizes=4)
    assert not found.wrong
    assert not found.errors
    assert found.calls >= 8  # on a machine that does much else
    first, *_, last = (row[3] for row in found.rows)
    assert last < 1.2 * first
