"""A loop that an array of the device ends, and whose iterations only call machine code: many iterations in one call from Python.

    Loop:                                     machine code, so many times:
      Launch less: a, p                         call less, copy p to q
      Call d2h: p -> q                    ->    end where q is 0
      n = Load q; while n                       call k
      Launch k: a, b
      Move b -> a

Between two calls Python asks and watches, as `walk` does after each iteration, whether the loop ends at all. A loop that counts in numbers
of the host, or with other steps, runs step by step.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple

from xla_emitters.library.arguments import pointer
from xla_emitters.lowering.cpu.cpu_steps import UNTIL_ROW
from xla_emitters.program.bind import STAGE
from xla_emitters.program.steps import Compute, Load, Loop
from xla_emitters.runtime.cpu.loop_states import (
    Calls,
    Given,
    Held,
    LoopMemory,
    Memory,
    WriteConstant,
    are_simple,
    calls_of,
    states_of,
)
from xla_emitters.runtime.repetition import LONG_LOOP, Repetition, asked_after, too_long
from xla_emitters.runtime.walk import Frame, state_bytes
from xla_emitters.support.limits import iteration_limit

MOST_AT_ONCE, SECONDS_AT_ONCE = 1 << 12, 0.02
"""Iterations of one call, which become more while a call takes less time: a loop that does not end is found between two calls."""
UntilCode = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_size_t] + [ctypes.c_int64] * 4 + [ctypes.c_size_t])
"""`cpu_steps.UNTIL`."""


class _State(NamedTuple):
    """One iteration, ready to run.

    condition, body  their calls
    predicate        memory of the array that ends the loop
    slot             that it is in
    ended            slots and their memory behind the condition
    """

    condition: Calls
    body: Calls
    predicate: Memory
    slot: int
    ended: Held


def until_loop(frame: Frame, step: Loop, code: int, write: WriteConstant) -> UntilLoop | None:
    """A loop that ends where a predicate, which the condition reads last, is false; None for other loops.

    code  the address of `cpu_steps.UNTIL`
    """
    if (
        step.assigned
        or not step.condition
        or any(isinstance(inner, Compute) for inner in (*step.condition, *step.body))
    ):
        return None
    loads = [number for number, inner in enumerate(step.condition) if isinstance(inner, Load)]
    if len(loads) != 1:
        return None
    load = step.condition[loads[0]]
    before, behind = step.condition[: loads[0]], step.condition[loads[0] + 1 :]
    assert isinstance(load, Load)
    if (
        load.index
        or load.result != step.holds
        or load.array.dtype != "pred"
        or not are_simple((*before, *behind, *step.body))
    ):
        return None

    def iteration(held: Held) -> _State | None:
        condition = calls_of(frame, before, held, write)
        predicate = held.get(load.array.slot, Given(load.array.slot))
        after = calls_of(frame, behind, held, write)
        if condition is None or predicate is None or after is None or after.chain is not None:
            return None
        ended = dict(held)
        body = calls_of(frame, step.body, held, write)
        return None if body is None else _State(condition, body, predicate, load.array.slot, ended)

    found = states_of(iteration)
    return None if found is None else UntilLoop(frame, step, UntilCode(code), *found)


class UntilLoop:
    """See the file's head: a `Run`.

    states  the first iterations; after the last one, that of number `again` follows
    before  slots and their memory before each of them
    """

    def __init__(
        self,
        frame: Frame,
        step: Loop,
        code: Callable[..., int],
        states: Sequence[_State],
        again: int,
        before: Sequence[Held],
    ) -> None:
        self._frame, self._step, self._code, self._again, self._states = frame, step, code, again, states
        self._before, self._ended = before, [state.ended for state in states]
        self._rows = (ctypes.c_int64 * (UNTIL_ROW * len(states)))()
        words = [each for state in states for calls in (state.condition, state.body) for each in calls.memory]
        for number, state in enumerate(states):
            row = number * UNTIL_ROW
            self._rows[row : row + UNTIL_ROW - 1] = [*state.condition.table, *state.body.table]
            if frame.is_fixed(state.slot):
                self._rows[row + UNTIL_ROW - 1] = pointer(frame.arrays[state.slot])
            else:
                words.append((state.predicate, [(self._rows, row + UNTIL_ROW - 1)]))
        self._memory = LoopMemory(frame, words, [*before, *self._ended])
        self._constant = [
            (index, places)
            for state in states
            for calls in (state.condition, state.body)
            for index, places in calls.constant.items()
        ]
        self._counted = (ctypes.c_int64 * 1)()

    def __call__(self) -> None:
        """raises EndlessLoop for a loop that does not end, as `walk` finds it; DataError for memory that is not there"""
        numbers = self._frame.numbers
        for index, places in self._constant:
            for words, word in places:
                words[word] = numbers[index]
        self._memory.begin()
        try:
            self._run()
        finally:
            self._memory.end()

    def _run(self) -> None:
        step, most, rows = self._step, iteration_limit(), ctypes.addressof(self._rows)
        asked = 0 if step.trips is not None or step.ends is None else asked_after(is_exact=step.ends.is_exact)
        state, trips, at_once, repetition = 0, 0, LONG_LOOP - 1, Repetition()
        while True:
            wanted = min(at_once, most + 1 - trips, asked - 1 - trips if trips < asked - 1 else at_once)
            start = perf_counter()
            state = self._code(rows, self._again, len(self._states), state, wanted, ctypes.addressof(self._counted))
            trips += self._counted[0]
            if state < 0:
                self._memory.show(self._ended[~state])
                return
            self._memory.show(self._before[state])
            if trips > most:
                raise too_long(step.name, most, STAGE)
            if trips + 1 == asked:
                self._refuse_endless(trips, most)
            if step.trips is None and repetition.is_found(self._state_bytes, trips):
                raise repetition.error(step.name, STAGE)
            if perf_counter() - start < SECONDS_AT_ONCE:
                at_once = min(2 * at_once, MOST_AT_ONCE)

    def _refuse_endless(self, trips: int, most: int) -> None:
        step, arrays = self._step, self._frame.arrays
        if step.ends is not None and self._frame.platform.outlasts(
            step.ends, [arrays[slot] for slot in step.ends.state], most - trips
        ):
            raise too_long(step.name, most, STAGE)

    def _state_bytes(self) -> list[bytes]:
        decisive = self._step.carried if self._step.decides is None else self._step.decides
        return list(state_bytes([self._frame.arrays[slot] for slot in decisive]))
