"""Masks: which lanes agree, how paths join, which value of a tensor is the newest."""

import numpy as np
import pytest
from xdsl.dialects import test

from xla_emitters.errors import ExecutionError, Unsupported
from xla_emitters.program import LaunchDimensions
from xla_emitters.runtime.simt.machine import Machine, merge
from xla_emitters.runtime.simt.memory import Memory
from xla_emitters.runtime.simt.scalars import integer

BYTE = integer(8)


def machine() -> Machine:
    launch = LaunchDimensions((6, 2, 1), (2, 2, 2))
    blocks = np.array([0, 7, 11])
    return Machine(launch, blocks, Memory(launch, blocks))


def flags(*rows: str) -> np.ndarray:
    return np.array([[c == "1" for c in row] for row in rows])


def test_coordinates():
    m = machine()
    assert m.shape == (3, 8)
    assert m.block_id(0).tolist() == [[0], [1], [5]]
    assert m.block_id(1).tolist() == [[0], [1], [1]]
    assert m.thread_id(0).tolist() == [[0, 1] * 4]
    assert m.thread_id(2).tolist() == [[0] * 4 + [1] * 4]


def test_split():
    m = machine()
    assert m.split(flags("1")) is True
    assert m.split(flags("0")) is False
    yes, no = m.split(flags("10"))
    assert yes.tolist() == [[True, False]]
    assert no.tolist() == [[False, True]]
    with m.only(flags("1100")):
        assert m.split(flags("1101")) is True
        assert m.split(flags("0011")) is False
        yes, no = m.split(flags("1010"))
        assert yes.tolist() == [[True, False, False, False]]
        assert no.tolist() == [[False, True, False, False]]
    assert m.active is None


def test_choose_runs_only_what_a_lane_needs():
    m, ran = machine(), []

    def way(name: str, value: int):
        def run():
            ran.append((name, None if m.active is None else m.active.tolist()))
            return [np.full((1, 1), value)]

        return run

    assert m.choose(flags("1"), way("then", 1), way("else", 2))[0].tolist() == [[1]]
    assert ran == [("then", None)]
    ran.clear()
    assert m.choose(flags("10"), way("then", 1), way("else", 2))[0].tolist() == [[1, 2]]
    assert ran == [("then", [[True, False]]), ("else", [[False, True]])]


def test_merge_goes_into_structs_and_vectors():
    one, other = np.array([[1, 1]]), np.array([[2, 2]])
    assert [part.tolist() for part in merge(flags("10"), (one, other), (other, one))] == [[[1, 2]], [[2, 1]]]
    assert merge(flags("10"), one, None) is one


def test_tensors_of_different_buffers_do_not_merge():
    m = machine()
    tensors = [m.tensor(m.memory.add(name, np.zeros(4, np.uint8), 4), BYTE, (4,), (1,)) for name in "ab"]
    with pytest.raises(Unsupported, match="different buffers"):
        merge(flags("10"), *tensors)


def test_stamps_through_a_fork():
    m = machine()
    before = m.tensor(m.memory.add("a", np.zeros(4, np.uint8), 4), BYTE, (4,), (1,))
    m.check_newest(test.TestOp(), before)

    def keep():
        # The other way has written, but these lanes have not seen it.
        m.check_newest(test.TestOp(), before)
        return [before]

    (joined,) = m.choose(flags("10"), lambda: [m.updated(before)], keep)
    m.check_newest(test.TestOp(), joined)
    with pytest.raises(ExecutionError, match="from before a later write"):
        m.check_newest(test.TestOp(), before)


def test_a_way_that_drops_its_write_makes_the_join_stale():
    m = machine()
    before = m.tensor(m.memory.add("a", np.zeros(4, np.uint8), 4), BYTE, (4,), (1,))

    def write_and_forget():
        m.updated(before)
        return [before]

    (joined,) = m.choose(flags("10"), write_and_forget, lambda: [before])
    with pytest.raises(ExecutionError, match="from before a later write"):
        m.check_newest(test.TestOp(), joined)


def test_without_writes_nothing_becomes_stale():
    m = machine()
    before = m.tensor(m.memory.add("a", np.zeros(4, np.uint8), 4), BYTE, (4,), (1,))
    (joined,) = m.choose(flags("10"), lambda: [before], lambda: [before])
    m.check_newest(test.TestOp(), before)
    m.check_newest(test.TestOp(), joined)


def test_uniform_looks_at_active_lanes():
    m = machine()
    assert m.uniform(np.array([[3, 3, 4]])) is None
    with m.only(flags("110")):
        assert m.uniform(np.array([[3, 3, 4]])) == 3
