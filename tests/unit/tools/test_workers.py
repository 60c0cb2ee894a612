"""Jobs in processes: results in order, jobs that die and jobs that take too long are distinguished, none is left running."""

import multiprocessing
import os
import time
from functools import partial

import pytest

from xla_emitters.tools.workers import Done, NamedWork, run_jobs


def doubled(number: int, seconds: float = 0.0) -> int:
    time.sleep(seconds)
    return 2 * number


def killed() -> None:
    os.kill(os.getpid(), 9)


def left(name: str, more: int) -> str:
    return f"{name} {more}"


@pytest.mark.parametrize("at_once", [1, 3])
def test_results_are_in_the_order_of_the_jobs(at_once: int) -> None:
    """The first takes longest."""
    jobs = [NamedWork(str(n), partial(doubled, n, 0.3 if n == 0 else 0.0)) for n in range(5)]
    assert list(run_jobs(jobs, at_once, None, left)) == [Done(str(n), 2 * n) for n in range(5)]


def test_some_do_not_end_well() -> None:
    jobs = [
        NamedWork("slow", partial(doubled, 1, 60.0)),
        NamedWork("dies", killed),
        NamedWork("well", partial(doubled, 3)),
    ]
    slow, dies, well = run_jobs(jobs, 2, 1.0, left)
    assert slow == Done("slow", None, "took longer than 1 s")
    assert dies == Done("dies", None, "its process ended with signal 9")
    assert well == Done("well", 6)
    assert multiprocessing.active_children() == []


def test_who_stops_asking_leaves_no_process() -> None:
    found = run_jobs(
        [NamedWork("quick", partial(doubled, 1)), NamedWork("slow", partial(doubled, 1, 60.0))], 2, None, left
    )
    assert next(found).result == 2
    found.close()
    assert multiprocessing.active_children() == []
