"""A loop that an array of the device ends, and whose iterations only call machine code: many iterations in one call from Python.

    Loop:                                     machine code, so many times:
      Launch less: a, p                         call less, copy p to q
      Call d2h: p -> q                    ->    end where q is 0, or n2
      n1 = Load q
      n2 = lt n0, 500; n3 = and n1, n2; while n3
      Launch k: a, b                            call k
      n0 = add n0, 1
      Move b -> a

Other numbers of the host do not depend on data (`loop_numbers`). Between two calls Python asks and watches, as `walk` does after each
iteration, whether the loop ends at all. A loop with other steps runs step by step.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple

from xla_emitters.library.arguments import pointer
from xla_emitters.lowering.cpu.cpu_steps import UNTIL_ROW
from xla_emitters.program.bind import STAGE
from xla_emitters.program.steps import Compute, Load, Loop, NumberSlot, Step, parts_of
from xla_emitters.runtime.cpu.code_chain import Prepare, Words
from xla_emitters.runtime.cpu.loop_numbers import BEFORE, MOST_AT_ONCE, SECONDS_AT_ONCE, Column, LoopNumbers
from xla_emitters.runtime.cpu.loop_states import (
    Calls,
    Given,
    Held,
    LoopMemory,
    Memory,
    WriteConstant,
    are_simple,
    calls_of,
    places_of,
    set_constants,
    states_of,
)
from xla_emitters.runtime.repetition import LONG_LOOP, Repetition, asked_after, too_long
from xla_emitters.runtime.walk import Frame, state_bytes
from xla_emitters.support.limits import iteration_limit

UntilCode = ctypes.CFUNCTYPE(
    ctypes.c_int64,
    *[ctypes.c_size_t] + [ctypes.c_int64] * 4 + [ctypes.c_size_t] * 2 + [ctypes.c_int64] * 2,
)
"""`cpu_steps.UNTIL`."""
_PREDICATE = UNTIL_ROW - 1
"""The place of the predicate's address in a row."""


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


class _Ending(NamedTuple):
    """What ends a loop.

    steps  of an iteration, with None for those whose numbers data decide
    load   the place of the step that reads the predicate
    other  the number that ends it too, as a column; None: there is none
    """

    steps: Sequence[Step | None]
    load: int
    other: Column | None


def _ending(step: Loop) -> _Ending | None:
    """None where more than one predicate and one number decide, or something else reads the predicate."""
    steps = (*step.condition, *step.body)
    loads = [number for number, inner in enumerate(steps) if isinstance(inner, Load)]
    if len(loads) != 1 or loads[0] >= len(step.condition):
        return None
    load = steps[loads[0]]
    if not isinstance(load, Load) or load.index or load.array.dtype != "pred":
        return None
    readers = [number for number, inner in enumerate(steps) if load.result in parts_of(inner)]
    left: list[Step | None] = [*steps]
    left[loads[0]] = None
    if step.holds == load.result:
        return None if readers else _Ending(left, loads[0], None)
    if len(readers) != 1 or not loads[0] < readers[0] < len(step.condition):
        return None
    match steps[readers[0]]:
        case Compute(result, "and", (NumberSlot() as one, NumberSlot() as two)) if result == step.holds and one != two:
            if any(result in parts_of(inner) for inner in steps):
                return None
            left[readers[0]] = None
            return _Ending(left, loads[0], Column(readers[0], (two if one == load.result else one).index))
        case _:
            return None


def until_loop(frame: Frame, step: Loop, code: int, prepare: Prepare, write: WriteConstant) -> UntilLoop | None:
    """A loop that ends where a predicate, which the condition reads, is false; None for other loops.

    code            the address of `cpu_steps.UNTIL`
    prepare, write  as for `calls_of`
    """
    if (ending := _ending(step)) is None:
        return None
    before, behind = step.condition[: ending.load], step.condition[ending.load + 1 :]
    load = step.condition[ending.load]
    if not are_simple((*before, *behind, *step.body)) or not isinstance(load, Load):
        return None
    assigned = {inner.result.index for inner in ending.steps if isinstance(inner, Compute)}

    def iteration(held: Held) -> _State | None:
        condition = calls_of(frame, before, held, prepare, write, assigned)
        predicate = held.get(load.array.slot, Given(load.array.slot))
        after = calls_of(frame, behind, held, prepare, write, assigned)
        if condition is None or predicate is None or after is None or after.chain is not None:
            return None
        ended = dict(held)
        body = calls_of(frame, step.body, held, prepare, write, assigned, len(step.condition))
        return None if body is None else _State(condition, body, predicate, load.array.slot, ended)

    found = states_of(iteration)
    return None if found is None else UntilLoop(frame, step, UntilCode(code), ending, *found)


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
        ending: _Ending,
        states: Sequence[_State],
        again: int,
        before: Sequence[Held],
    ) -> None:
        self._frame, self._step, self._code, self._again, self._states = frame, step, code, again, states
        self._before, self._ended = before, [state.ended for state in states]
        calls = [each for state in states for each in (state.condition, state.body)]
        self._calls, self._other = calls, ending.other
        columns = [column for each in calls for column in each.columns]
        columns += (Column(BEFORE, index) for index in step.assigned)
        self._numbers = LoopNumbers(ending.steps, columns if ending.other is None else [*columns, ending.other])
        self._rows, words = self._table(states), [each for own in calls for each in own.memory]
        for number, state in enumerate(states):
            place = number * UNTIL_ROW + _PREDICATE
            if frame.is_fixed(state.slot):
                self._rows[place] = pointer(frame.arrays[state.slot])
            else:
                words.append((state.predicate, [(self._rows, place)]))
        self._memory = LoopMemory(frame, words, [*before, *self._ended])
        self._counted = (ctypes.c_int64 * 1)()

    def _table(self, states: Sequence[_State]) -> Words:
        rows = list[int]()
        for state in states:
            places = places_of(self._frame, self._numbers, (state.condition, state.body))
            rows += (*state.condition.table, *state.body.table, *places, 0)
        return (ctypes.c_int64 * (UNTIL_ROW * len(states)))(*rows)

    def __call__(self) -> None:
        """raises EndlessLoop for a loop that does not end, as `walk` finds it; DataError for memory that is not there"""
        set_constants(self._frame, self._calls)
        self._numbers.begin(self._frame.numbers)
        self._memory.begin()
        try:
            self._run()
        finally:
            self._memory.end()

    def _run(self) -> None:
        step, most, rows, numbers = self._step, iteration_limit(), ctypes.addressof(self._rows), self._frame.numbers
        other = -1 if self._other is None else self._numbers.column(self._other)
        asked = 0 if step.trips is not None or step.ends is None else asked_after(is_exact=step.ends.is_exact)
        state, trips, at_once, repetition = 0, 0, LONG_LOOP - 1, Repetition()
        while True:
            wanted = min(at_once, most + 1 - trips, asked - 1 - trips if trips < asked - 1 else at_once)
            start = perf_counter()
            table, after = self._numbers.rows(numbers, trips, wanted)
            state = self._code(
                *(rows, self._again, len(self._states), state, wanted, ctypes.addressof(self._counted)),
                *(table.ctypes.data, len(self._numbers.columns), other),
            )
            trips += self._counted[0]
            if state < 0:
                for index in step.assigned:
                    numbers[index] = int(table[self._counted[0], self._numbers.column(Column(BEFORE, index))])
                self._memory.show(self._ended[~state])
                return
            for index, value in after.items():
                numbers[index] = value
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
        numbers = repr([self._frame.numbers[index] for index in self._step.assigned]).encode()
        return [numbers, *state_bytes([self._frame.arrays[slot] for slot in decisive])]
