"""A loop whose iterations only call machine code, with branches and loops inside, run by machine code: Python is asked now and then.

    rows of the loop (`loop_rows`)   ->   `loop_interpreter` runs them   ->   stops:   the end
                                                                                       memory of a slot is wanted
                                                                                       a while is over: signals are handled
                                                                                       does this loop end at all?  (`repetition`)
                                                                                       a division by zero

A loop with other steps (ops in NumPy, sizes that data decide) runs step by step.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from time import perf_counter

from xla_emitters.dtypes import Array
from xla_emitters.errors import DataError, InternalError
from xla_emitters.library.arguments import pointer
from xla_emitters.program.bind import STAGE
from xla_emitters.program.steps import Loop
from xla_emitters.runtime.cpu.code_chain import Places
from xla_emitters.runtime.cpu.loop_rows import LoopRows, Pool, Turns, WriteConstant, rows_of
from xla_emitters.runtime.repetition import LONG_LOOP, Repetition, asked_after, too_long
from xla_emitters.runtime.walk import Frame, state_bytes
from xla_emitters.support.limits import iteration_limit

FIRST_AT_ONCE, SECONDS_AT_ONCE = 16, 0.02
"""Iterations of the first call, and how long a call may take: then the next one has half as many, else twice as many."""
NEVER = -1
"""The number of an iteration that is not reached."""
InterpreterCode = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_size_t, ctypes.c_int64, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t
)
"""`loop_interpreter.INTERPRETER`."""


def interpreted_loop(frame: Frame, step: Loop, code: int, write: WriteConstant) -> InterpretedLoop | None:
    """The loop as one step; None where it has steps that are not calls of machine code on memory of known size.

    code   the address of `loop_interpreter.INTERPRETER`
    write  as for `rows_of`
    """
    made = rows_of(frame, step, write)
    return None if made is None else InterpretedLoop(frame, made, InterpreterCode(code))


class _Watch:
    """Whether a loop ends: asked after so many iterations, which become more while they take little time."""

    def __init__(self, step: Loop) -> None:
        self.repetition, self.at_once, self.since = Repetition(), LONG_LOOP - 1, perf_counter()
        self.asked = NEVER if step.ends is None else asked_after(is_exact=step.ends.is_exact) - 1

    def next(self, trips: int, most: int) -> int:
        """The iteration before which it is asked next."""
        now = perf_counter()
        if now - self.since < SECONDS_AT_ONCE:
            self.at_once *= 2
        self.since = now
        return min(most, trips + self.at_once, self.asked if self.asked > trips else most)


class InterpretedLoop:
    """See the file's head: a `Run`."""

    def __init__(self, frame: Frame, made: LoopRows, code: Callable[..., int]) -> None:
        self._frame, self._made, self._code = frame, made, code
        self._rows = (ctypes.c_int64 * sum(map(len, made.rows)))(*chain.from_iterable(made.rows))
        self._slots = (ctypes.c_int64 * len(made.slots))()
        self._numbers, self._fuel = (ctypes.c_int64 * made.count)(), (ctypes.c_int64 * 1)()
        for number, value in made.constants.items():
            self._numbers[number] = value
        self._assigned = [(index, made.numbers[index]) for index in made.assigned]
        self._changed = {slot: number for slot, number in made.slots.items() if number < made.changed and slot >= 0}
        frame.varying.extend(self._changed)
        self._set = dict[tuple[str, int], int]()
        self._wanted = dict.fromkeys(made.takes, 0)
        self._own_slots = [(slot, number) for slot, number in made.slots.items() if slot >= 0]
        # An array without elements may begin where another one does.
        self._known, self._live = dict[tuple[int, bool], Array](), list[Array]()
        self._watches = dict[int, _Watch]()
        self._at_once = FIRST_AT_ONCE

    def __call__(self) -> None:
        """raises EndlessLoop for a loop that does not end, as `walk` finds it; DataError for lack of memory or a division by 0"""
        most = iteration_limit()
        try:
            self._begin(most)
            self._run(most)
        finally:
            self._known.clear()
            self._live.clear()

    def _begin(self, most: int) -> None:
        arrays, numbers, made = self._frame.arrays, self._frame.numbers, self._made
        self._numbers[: len(made.numbers)] = [numbers[index] for index in made.numbers]
        for turns in made.turns.values():
            self._numbers[turns.first] = _first(turns.step, most)
        for slot, number in self._own_slots:
            if (array := arrays[slot]) is None:
                self._slots[number] = 0
            else:
                self._slots[number] = address = pointer(array)
                self._known.setdefault((address, array.size == 0), array)  # slots that the loop changes come first
        for slot, places in made.given.items():
            self._tell(("slot", slot), self._slots[made.slots[slot]], places)
        for index, places in made.told.items():
            self._tell(("number", index), numbers[index], places)
        for pool in made.takes.values():
            pool.table[0] = 0
        with suppress(DataError):  # a run may need less than an earlier one: it asks for what it does need
            for row, pool in made.takes.items():
                for _ in range(self._wanted[row]):
                    self._add(row, pool)

    def _tell(self, key: tuple[str, int], value: int, places: Places) -> None:
        """Sets words that are the same in all iterations, where they are not as they were in the last run."""
        if self._set.get(key) != value:
            self._set.pop(key, None)  # until all words are set: a signal may interrupt this
            for words, place in places:
                words[place] = value
            self._set[key] = value

    def _add(self, row: int, pool: Pool) -> None:
        """Gives a place of the loop one more array."""
        try:
            array = self._frame.fresh(pool.place, pool.shape, pool.bytes, self._live)
        except DataError:
            self._free()
            array = self._frame.fresh(pool.place, pool.shape, pool.bytes, self._live)
        self._live.append(array)
        number, address = pool.table[0] + 1, pointer(array)
        pool.table[number], pool.table[0], self._known[address, array.size == 0] = address, number, array
        self._wanted[row] = max(self._wanted[row], number)

    def _free(self) -> None:
        """Frees the memory that no slot holds: that of pools, and what slots held before the loop."""
        arrays, held = self._frame.arrays, {self._slots[number] for _, number in self._own_slots}
        self._live += [array for slot in self._changed if (array := arrays[slot]) is not None]
        for slot in self._changed:
            arrays[slot] = None
        self._live = [array for array in self._live if pointer(array) in held]
        self._known = {key: array for key, array in self._known.items() if key[0] in held}
        for pool in self._made.takes.values():
            left = [address for address in pool.table[1 : 1 + pool.table[0]] if address in held]
            pool.table[1 : 1 + len(left)], pool.table[0] = left, len(left)

    def _run(self, most: int) -> None:
        rows, slots, numbers, fuel = map(ctypes.addressof, (self._rows, self._slots, self._numbers, self._fuel))
        row, start, self._fuel[0] = 0, perf_counter(), self._at_once
        while (row := self._code(rows, row, slots, numbers, fuel)) != len(self._made.rows) - 1:
            if (pool := self._made.takes.get(row)) is not None:
                self._add(row, pool)
            elif (turns := self._made.turns.get(row)) is None:
                self._raise_of(row)
            elif self._numbers[turns.trips] == self._numbers[turns.wake]:
                self._numbers[turns.wake] = self._ask(row, turns, most)
            else:
                is_short = perf_counter() - start < SECONDS_AT_ONCE
                self._at_once = 2 * self._at_once if is_short else max(1, self._at_once // 2)
                start, self._fuel[0] = perf_counter(), self._at_once
        self._show_numbers()
        for slot, array in self._arrays_of(self._changed).items():
            self._frame.arrays[slot] = array

    def _raise_of(self, row: int) -> None:
        """A division by zero stopped."""
        self._show_numbers()
        step = self._made.divisions[row]
        if (run := self._frame.prepare(step)) is not None:
            run()
        raise InternalError(f"{step.function} stopped a loop", stage=STAGE)

    def _show_numbers(self) -> None:
        for index, number in self._assigned:
            self._frame.numbers[index] = self._numbers[number]

    def _arrays_of(self, slots: Mapping[int, int]) -> dict[int, Array | None]:
        """Slot -> the array that it holds now, for slots and their numbers."""
        shapes, found = self._frame.bound.shapes, dict[int, Array | None]()
        for slot, number in slots.items():
            address, shape = self._slots[number], shapes.get(slot)
            array = self._known.get((address, is_empty := shape is not None and 0 in shape))
            if array is None and shape is None:
                array = self._known.get((address, not is_empty))
            found[slot] = array if array is None or shape is None or array.shape == shape else array.reshape(shape)
        return found

    # ------------------------------------------------------------------------------------------------- does a loop end

    def _ask(self, row: int, turns: Turns, most: int) -> int:
        """Before an iteration: the one before which it is asked next. raises EndlessLoop"""
        step, trips = turns.step, self._numbers[turns.trips]
        if trips >= most or step.trips is not None:
            raise too_long(step.name, most, STAGE)
        if trips == self._numbers[turns.first]:
            self._watches[row] = _Watch(step)  # it has begun anew
        watch = self._watches[row]
        if step.ends is not None and trips == watch.asked:
            state = [array for array in self._state(step.ends.state) if array is not None]
            if self._frame.platform.outlasts(step.ends, state, most - trips):
                raise too_long(step.name, most, STAGE)
        if watch.repetition.is_found(lambda: self._state_bytes(step), trips):
            raise watch.repetition.error(step.name, STAGE)
        return watch.next(trips, most)

    def _state(self, slots: Sequence[int]) -> list[Array | None]:
        held = self._arrays_of({slot: number for slot, number in self._changed.items() if slot in slots})
        return [held[slot] if slot in held else self._frame.arrays[slot] for slot in slots]

    def _state_bytes(self, step: Loop) -> list[bytes]:
        decisive = step.carried if step.decides is None else step.decides
        assigned = [self._numbers[self._made.numbers[index]] for index in step.assigned if index in self._made.numbers]
        return [repr(assigned).encode(), *state_bytes([array for array in self._state(decisive) if array is not None])]


def _first(step: Loop, most: int) -> int:
    """The first iteration of a loop before which Python is asked."""
    if step.trips is None:
        return min(most, LONG_LOOP - 1)
    if step.condition:
        return most
    return NEVER if step.trips <= most else 0
