"""A loop of known length whose iterations only call machine code, as one call from Python.

    Loop 64:                                   numbers         n1 of each iteration
      n1 = minimum n0, 63
      Launch k: a, b, n1                ->     machine code    for each iteration: write n1 to its words, call k
      n0 = add n0, 1

Numbers of the host follow from those before the loop; they are computed before it runs, and kept. A loop with other steps (branches, loops
inside, ops in NumPy, kernels that threads share, numbers from arrays) runs step by step.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from time import perf_counter

from xla_emitters.dtypes import Array
from xla_emitters.lowering.cpu.cpu_steps import COUNTED_ROW
from xla_emitters.program.bind import STAGE
from xla_emitters.program.steps import Compute, Loop
from xla_emitters.runtime.cpu.code_chain import Prepare, Words
from xla_emitters.runtime.cpu.loop_numbers import MOST_AT_ONCE, SECONDS_AT_ONCE, LoopNumbers
from xla_emitters.runtime.cpu.loop_states import (
    Calls,
    Held,
    LoopMemory,
    WriteConstant,
    are_simple,
    calls_of,
    places_of,
    set_constants,
    states_of,
)
from xla_emitters.runtime.repetition import too_long
from xla_emitters.runtime.walk import Frame
from xla_emitters.support.limits import iteration_limit

FEWEST_TRIPS = 3
"""Setting the words of the states takes as long as this many iterations, step by step."""
FIRST_AT_ONCE = 16
"""Iterations of the first call, which shows how long they take."""
CountedCode = ctypes.CFUNCTYPE(
    ctypes.c_int64, *[ctypes.c_size_t] + [ctypes.c_int64] * 4 + [ctypes.c_size_t, ctypes.c_int64]
)
"""`cpu_steps.COUNTED`."""


def counted_loop(frame: Frame, step: Loop, code: int, prepare: Prepare, write: WriteConstant) -> CountedLoop | None:
    """A loop of known length without condition; None where it has steps that are not calls of machine code on memory of known size.

    code            the address of `cpu_steps.COUNTED`
    prepare, write  as for `calls_of`
    """
    if step.trips is None or step.trips < FEWEST_TRIPS or not are_simple(step.body):
        return None
    assigned = {inner.result.index for inner in step.body if isinstance(inner, Compute)}
    found = states_of(lambda held: calls_of(frame, step.body, held, prepare, write, assigned))
    return None if found is None else CountedLoop(frame, step, CountedCode(code), *found)


class CountedLoop:
    """See the file's head: a `Run`.

    states  the first iterations; after the last one, that of number `again` follows
    before  slots and their memory before each of them
    """

    def __init__(
        self,
        frame: Frame,
        step: Loop,
        code: Callable[..., int],
        states: Sequence[Calls],
        again: int,
        before: Sequence[Held],
    ) -> None:
        assert step.trips is not None
        self._frame, self._step, self._code, self._again, self._states = frame, step, code, again, states
        self._trips, self._left = step.trips, before[self._state_at(step.trips)]
        self._memory = LoopMemory(frame, (words for state in states for words in state.memory), [self._left])
        self._numbers = LoopNumbers(step.body, (column for state in states for column in state.columns))
        self._rows, self._at_once = self._table(states), FIRST_AT_ONCE

    def _state_at(self, trip: int) -> int:
        """The state in which an iteration begins."""
        again, count = self._again, len(self._states)
        return trip if trip < count else again + (trip - again) % (count - again)

    def _table(self, states: Sequence[Calls]) -> Words:
        rows = list[int]()
        for state in states:
            places, count = places_of(self._frame, self._numbers, [state])
            rows += (*state.table, places, count)
        return (ctypes.c_int64 * (COUNTED_ROW * len(states)))(*rows)

    def __call__(self) -> None:
        """raises EndlessLoop for more iterations than `limits.iteration_limit` allows; DataError for memory that is not there"""
        if self._trips > (most := iteration_limit()):
            raise too_long(self._step.name, most, STAGE)
        set_constants(self._frame, self._states)
        self._numbers.begin(self._frame.numbers)
        self._memory.begin()
        try:
            self._run()
        finally:
            self._memory.end()

    def _run(self) -> None:
        state, numbers = 0, self._frame.numbers
        for first in range(0, self._trips, MOST_AT_ONCE):
            table, after = self._numbers.rows(numbers, first, min(MOST_AT_ONCE, self._trips - first))
            for index, value in after.items():
                numbers[index] = value
            done = 0
            while done < len(table):
                part = table[done : done + self._at_once]
                state, done = self._timed(part, state), done + len(part)
        self._memory.show(self._left)

    def _timed(self, table: Array, state: int) -> int:
        """Runs an iteration for each row of a table; returns the state after them. Sets how many the next call runs."""
        start, rows, width = perf_counter(), ctypes.addressof(self._rows), len(self._numbers.columns)
        state = self._code(rows, self._again, len(self._states), state, len(table), table.ctypes.data, width)
        is_short = perf_counter() - start < SECONDS_AT_ONCE
        self._at_once = min(2 * self._at_once, MOST_AT_ONCE) if is_short else max(1, self._at_once // 2)
        return state
