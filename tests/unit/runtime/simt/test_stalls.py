"""Who runs next among lanes that wait."""

import numpy as np

from xla_emitters.runtime.simt.stalls import Stalls

LANES = np.ones((1, 1), np.bool_)


def test_a_node_runs_again_when_memory_has_changed() -> None:
    stalls = Stalls([True, False, True])
    stalls.leave(0, LANES, 7)
    assert stalls.next([LANES, None, LANES], 7) == (2, False)
    assert stalls.next([LANES, None, LANES], 8) == (0, False)
    stalls.come(0)
    assert stalls.next([LANES, None, LANES], 7) == (0, False)
    assert stalls.take(0) is LANES
    assert stalls.next([None, None, None], 7) == (None, False)


def test_who_may_say_no_has_turns() -> None:
    """Nothing else can run: those that may say no, one after the other; one that may not only where there are no others."""
    stalls = Stalls([True, False, True])
    for number in range(3):
        stalls.leave(number, LANES, 1)
    waiting = [LANES, LANES, LANES]
    assert [stalls.next(waiting, 1) for _ in range(4)] == [(0, True), (2, True), (0, True), (2, True)]
    assert stalls.tried == [0, 2]
    stalls.take(0)
    stalls.take(2)
    assert stalls.next([None, LANES, None], 1) == (1, True)
    stalls.leave(2, LANES, 2)
    stalls.leave(1, LANES, 2)
    assert stalls.next([None, LANES, LANES], 2) == (2, True)
    assert stalls.tried == [2]
