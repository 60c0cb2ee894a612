"""Buffers, addresses and checked access, without a kernel."""

import numpy as np
import pytest
from xdsl.dialects import test

from xla_emitters.errors import ExecutionError, InternalError
from xla_emitters.program import LaunchDimensions
from xla_emitters.runtime.simt.memory import Memory, Space, bounds

OP = test.TestOp()
BLOCKS, THREADS = 2, 3


def memory(**options) -> Memory:
    return Memory(LaunchDimensions((9, 1, 1), (THREADS, 1, 1)), np.array([4, 7]), **options)


def lanes(*rows) -> np.ndarray:
    return np.array(rows, dtype=np.int64)


def test_addresses_name_their_buffer():
    m = memory()
    one = m.add("one", np.zeros(16, np.uint8), alignment=16)
    other = m.add("other", np.zeros(16, np.uint8), alignment=256)
    assert m.buffers_at(OP, lanes([one.base, one.end, one.base - 1]), None) == [(one, None)]
    assert m.buffers_at(OP, lanes([other.base + 5]), None) == [(other, None)]
    parts = m.buffers_at(OP, lanes([one.base, other.base, one.base]), None)
    assert [buffer for buffer, _ in parts] == [one, other]
    assert [active.tolist() for _, active in parts] == [[[True, False, True]], [[False, True, False]]]
    # The address of an inactive lane is garbage.
    active = np.array([[True, False]])
    assert m.buffers_at(OP, lanes([one.base, 12345]), active) == [(one, active)]


@pytest.mark.parametrize("alignment", [1, 2, 16, 32, 256])
def test_a_buffer_is_aligned_as_promised_and_no_better(alignment):
    base = memory().add("b", np.zeros(4, np.uint8), alignment).base
    assert base % alignment == 0
    assert base % (2 * alignment) != 0


def test_gather_and_scatter_under_a_mask():
    m = memory()
    buffer = m.add("b", np.arange(24, dtype=np.uint8), alignment=8)
    index = lanes([0, 1, 2], [3, 4, 1000])
    active = np.array([[True, True, False], [True, True, False]])
    got = m.gather(OP, buffer, index, np.dtype(np.uint16), active, 2)
    np.testing.assert_array_equal(
        got[active], np.arange(24, dtype=np.uint8).view(np.uint16).reshape(6, 2)[[0, 1, 3, 4]]
    )
    m.scatter(OP, buffer, index, np.full((2, 3, 2), 0xFFFF, np.uint16), active)
    assert buffer.data.reshape(6, 4).max(axis=1).tolist() == [255, 255, 11, 255, 255, 23]


def test_where_lanes_meet_the_last_one_wins():
    m = memory()
    buffer = m.add("b", np.zeros(4, np.uint8), alignment=4)
    m.scatter(OP, buffer, lanes([1]), np.arange(6, dtype=np.uint8).reshape(2, 3), None)
    assert buffer.data.tolist() == [0, 5, 0, 0]


@pytest.mark.parametrize(("space", "instances"), [(Space.SHARED, BLOCKS), (Space.PRIVATE, BLOCKS * THREADS)])
def test_each_block_or_thread_has_its_own_instance(space, instances):
    m = memory()
    buffer = m.allocate("b", space, size=4, alignment=4)
    assert buffer.data.size == (16 if space is Space.SHARED else 4) * instances
    values = np.arange(6, dtype=np.int32).reshape(2, 3)
    m.scatter(OP, buffer, lanes([0]), values, None)
    got = np.broadcast_to(m.gather(OP, buffer, lanes([0, 0, 0], [0, 0, 0]), values.dtype, None), (2, 3))
    np.testing.assert_array_equal(got, values if space is Space.PRIVATE else [[2, 2, 2], [5, 5, 5]])


def test_fresh_memory_shows_when_it_is_read():
    buffer = memory().allocate("b", Space.SHARED, size=4, alignment=4)
    assert set(buffer.data.tolist()) == {0xA5}


def test_out_of_bounds_names_the_block_of_the_launch():
    m = memory()
    buffer = m.add("b", np.zeros(6, np.uint8), alignment=4)
    byte = np.dtype(np.uint8)
    with pytest.raises(
        ExecutionError, match=r"test\.op in block 7, thread 1 reads index 6 of b, which has 6 of 1 bytes each"
    ):
        m.gather(OP, buffer, lanes([0, 1, 2], [3, 6, 4]), byte, None)
    with pytest.raises(ExecutionError, match=r"in block 4, thread 2 writes index -1 of b"):
        m.scatter(OP, buffer, lanes([0, 1, -1]), np.zeros((1, 1), byte), None)


def test_instances_that_are_no_whole_rows_are_our_mistake():
    m = memory()
    buffer = m.allocate("b", Space.PRIVATE, size=6, alignment=4)
    with pytest.raises(InternalError, match="do not divide into rows of 4"):
        m.view(buffer, np.dtype(np.int32))


def test_shared_memory_of_six_bytes_holds_one_word():
    m = memory()
    buffer = m.allocate("b", Space.SHARED, size=6, alignment=4)
    words = np.array([[7], [8]], np.int32)
    m.scatter(OP, buffer, lanes([0], [0]), words, None)
    np.testing.assert_array_equal(m.gather(OP, buffer, lanes([0], [0]), words.dtype, None), words)
    with pytest.raises(ExecutionError, match="index 1 of b, which has 1 of 4 bytes each"):
        m.gather(OP, buffer, lanes([1], [0]), words.dtype, None)


def test_bounds_look_at_active_lanes_alone():
    assert bounds(lanes([5, -3, 9]), None) == (-3, 9)
    assert bounds(lanes([5, -3, 9]), np.array([[True, False, False]])) == (5, 5)
    assert bounds(lanes([5]), np.array([[True, False], [True, True]])) == (5, 5)
