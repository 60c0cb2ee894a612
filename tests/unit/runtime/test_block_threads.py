"""Launches that are run again and again: all of their blocks each time, and threads only where they help."""

from __future__ import annotations

import threading
import time

from xla_emitters.runtime.block_threads import TIMED_RUNS, Shared


def test_each_run_covers_all_blocks_once() -> None:
    seen = list[tuple[int, int]]()
    run = Shared(lambda first, last: seen.append((first, last)), 37, 2)
    for _ in range(TIMED_RUNS + 2):
        seen.clear()
        run()
        assert sorted(block for first, last in seen for block in range(first, last)) == list(range(37))


def test_a_launch_of_no_time_is_not_shared_any_more() -> None:
    seen = list[tuple[int, int]]()
    run = Shared(lambda first, last: seen.append((first, last)), 16, 2)
    for _ in range(TIMED_RUNS + 1):
        seen.clear()
        run()
    assert seen == [(0, 16)]


def test_a_long_launch_stays_shared() -> None:
    threads = set[int]()

    def work(first: int, last: int) -> None:
        threads.add(threading.get_ident())
        time.sleep(0.001 * (last - first))

    run = Shared(work, 16, 2)
    for _ in range(TIMED_RUNS + 1):
        threads.clear()
        run()
    assert len(threads) == 2
