"""Buffers of a call: names and references, ownership, and what remains when a call fails."""

from __future__ import annotations

import numpy as np
import pytest

from xla_emitters.errors import DataError, InternalError
from xla_emitters.runtime.ral.context import Call, Context

F32 = np.dtype(np.float32)


def call_with(*inputs: np.ndarray) -> Call:
    return Call(Context(), inputs)


def test_a_buffer_is_freed_with_its_last_name() -> None:
    call = call_with()
    buffer = call.alloc((2, 3), F32)
    view = call.inc_ref(buffer, (6,))
    call.dealloc(buffer)
    assert call.context.counters.live == 1
    view[...] = 1
    call.dealloc(view)
    assert call.context.counters.live == 0
    call.end()


def test_peak_bytes_are_those_of_buffers_that_are_there_together() -> None:
    call = call_with()
    for _ in range(3):
        call.dealloc(call.alloc((10,), F32))
    one, other = call.alloc((10,), F32), call.alloc((5,), F32)
    assert call.peak_bytes == 60
    call.dealloc(one)
    call.dealloc(other)


def test_another_name_of_an_argument_is_freed_without_the_argument() -> None:
    argument = np.arange(6, dtype=np.float32)
    call = call_with(argument)
    view = call.inc_ref(call.recv_input(0), (2, 3))
    call.dealloc(view)
    call.end()
    assert argument.tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(InternalError, match="does not own"):
        call.dealloc(argument)


@pytest.mark.parametrize("what", ["argument", "name of an argument", "shared"])
def test_a_result_is_a_buffer_of_its_own(what: str) -> None:
    call = call_with(np.zeros(4, np.float32))
    made = {
        "argument": lambda: call.recv_input(0),
        "name of an argument": lambda: call.inc_ref(call.recv_input(0), (4,)),
        "shared": lambda: call.inc_ref(call.alloc((4,), F32), (4,)),
    }[what]()
    with pytest.raises(InternalError, match="not a buffer of its own"):
        call.send_output(0, made)


@pytest.mark.parametrize("shape", [(5,), (-1,), (-2, -3)])
def test_another_name_has_as_many_elements(shape: tuple[int, ...]) -> None:
    call = call_with()
    buffer = call.alloc((2, 3), F32)
    with pytest.raises(DataError, match="no reshape of"):
        call.inc_ref(buffer, shape)


def test_a_negative_size_and_too_much_memory_are_refused_and_the_call_goes_on() -> None:
    call = call_with()
    with pytest.raises(DataError, match="negative"):
        call.alloc((-1,), F32)
    with pytest.raises(DataError, match="out of memory"):
        call.alloc((1 << 60,), F32)
    call.dealloc(call.alloc((2,), F32))
    call.end()


def test_a_call_that_leaves_a_buffer_is_a_bug_and_leaves_none_in_the_context() -> None:
    call = call_with()
    call.alloc((2,), F32)
    with pytest.raises(InternalError, match="1 buffers were not freed"):
        call.end()
    assert call.context.counters.live == 0
