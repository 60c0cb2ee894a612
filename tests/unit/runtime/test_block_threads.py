"""Launches that are run again and again: all of their blocks each time, and threads only where they help."""

from __future__ import annotations

from itertools import cycle

import pytest

from xla_emitters.runtime import block_threads
from xla_emitters.runtime.block_threads import TIMED_RUNS


def test_each_run_covers_all_blocks_once() -> None:
    seen = list[tuple[int, int]]()
    run = block_threads.Shared(lambda first, last: seen.append((first, last)), 37, 2)
    for _ in range(TIMED_RUNS + 2):
        seen.clear()
        run()
        assert sorted(block for first, last in seen for block in range(first, last)) == list(range(37))


@pytest.mark.parametrize(("together", "alone"), [(1.0, 2.0), (2.0, 1.0)])
def test_the_faster_way_stays(together: float, alone: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that says how long each run takes, first one that is shared."""
    clock, seen = cycle([0.0, together, 0.0, alone]), list[tuple[int, int]]()
    monkeypatch.setattr(block_threads, "perf_counter", lambda: next(clock))
    run = block_threads.Shared(lambda first, last: seen.append((first, last)), 16, 2)
    for _ in range(TIMED_RUNS):
        run()
    assert run.is_timed
    seen.clear()
    run()
    assert (seen == [(0, 16)]) == run.is_alone == (alone < together)
