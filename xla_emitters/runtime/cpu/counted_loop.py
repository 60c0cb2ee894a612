"""A loop of known length whose iterations only call machine code, as one call from Python.

    Loop 64:                                                  state 0    reads a given to the loop, writes b0
      n1 = minimum n0, 63                                     state 1    reads b0, writes b1
      Allocate b f32[8]                                       state 2    reads b1, writes b0; state 1 follows
      Launch k: a, b, n1                               ->
      Release a                                               numbers    n1 of each iteration
      n0 = add n0, 1
      Move b -> a                                             machine code: for each iteration, write n1 to its words, call k

Which memory a slot holds does not depend on data, and after a few iterations it is that of an earlier one. A state is an iteration with
each of its slots in certain memory: it has words of its own, whose addresses a run sets once. The loop's own memory is as many arrays as
are alive at a time. Numbers of the host follow from those before the loop, and are computed before it runs, and kept.

A loop with other steps (branches, loops inside, ops in NumPy, kernels that threads share, numbers from arrays) runs step by step.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from xla_emitters.library.arguments import Array, numpy_type, pointer
from xla_emitters.lowering.cpu.cpu_steps import COUNTED_ROW
from xla_emitters.program.bind import STAGE
from xla_emitters.program.steps import (
    DIVISIONS,
    FUNCTIONS,
    Allocate,
    ArrayPlace,
    Call,
    Compute,
    Launch,
    Loop,
    Move,
    NumberSlot,
    Release,
    Step,
    View,
)
from xla_emitters.runtime.cpu.code_chain import Chain, Places, PlacesOf, Words
from xla_emitters.runtime.repetition import too_long
from xla_emitters.runtime.walk import Frame
from xla_emitters.support.limits import iteration_limit

MOST_STATES = 8
FEWEST_TRIPS = 3
"""Setting the words of the states takes as long as this many iterations, step by step."""
AT_ONCE = 1 << 12
"""Iterations of one call: Python handles signals between two calls."""
MOST_KEPT = 1 << 16
"""Numbers of the host that are kept from run to run."""
CountedCode = ctypes.CFUNCTYPE(
    ctypes.c_int64, *[ctypes.c_size_t] + [ctypes.c_int64] * 4 + [ctypes.c_size_t, ctypes.c_int64]
)
"""`cpu_steps.COUNTED`."""


class _Given(NamedTuple):
    """The memory that a slot has before the loop."""

    slot: int


class _Made(NamedTuple):
    """Memory of the loop: the `number`-th array of this type and shape."""

    dtype: str
    shape: tuple[int, ...]
    number: int


_Memory: TypeAlias = _Given | _Made
_Held: TypeAlias = dict[int, _Memory | None]
"""Slot -> its memory, of those that are not as before the loop; None: it has none."""


@dataclass(frozen=True)
class _State:
    """One iteration, ready to run.

    chain    its calls
    memory   the words that hold addresses of memory
    columns  the words of numbers that the loop assigns: (number of the step that reads it, number) -> words
    constant the words of other numbers, by the number
    """

    chain: Chain
    memory: Sequence[tuple[_Memory, Places]]
    columns: Mapping[tuple[int, int], Places]
    constant: PlacesOf


def counted_loop(frame: Frame, step: Loop, code: int) -> CountedLoop | None:
    """A loop of known length without condition; None where it has steps that are not calls of machine code on memory of known size.

    code  the address of `cpu_steps.COUNTED`
    """
    if step.trips is None or step.trips < FEWEST_TRIPS or not _is_simple(step.body):
        return None
    held, seen, states, left = _Held(), dict[frozenset[Any], int](), list[_State](), list[_Held]()
    while (key := frozenset(held.items())) not in seen:
        if len(states) == MOST_STATES:
            return None
        seen[key] = len(states)
        left.append(dict(held))
        state = _state(frame, step.body, held)
        if state is None:
            return None
        states.append(state)
    return CountedLoop(frame, step, CountedCode(code), states, seen[key], left)


def _is_simple(steps: Sequence[Step]) -> bool:
    return all(
        isinstance(step, Allocate | Call | Launch | Move | Release | View)
        or (isinstance(step, Compute) and step.function not in DIVISIONS)
        for step in steps
    )


def _state(frame: Frame, steps: Sequence[Step], held: _Held) -> _State | None:
    """An iteration that begins with slots in this memory, which then are as it leaves them; None where it has other steps."""
    bound, chains, memory = frame.bound, list[Chain](), list[tuple[_Memory, Places]]()
    assigned = {step.result.index for step in steps if isinstance(step, Compute)}
    columns, constant = dict[tuple[int, int], Places](), PlacesOf()
    for number, step in enumerate(steps):
        match step:
            case Allocate(place):
                if place.slot in bound.offsets:
                    _give_once(frame, step, place.slot)
                elif (shape := bound.shapes.get(place.slot)) is None or any(map(_is_open, place.shape)):
                    return None
                else:
                    held[place.slot] = _free(place.dtype, shape, held)
            case View(source, target):
                if target.slot not in bound.shapes:
                    return None
                if source.slot not in held and frame.is_fixed(source.slot):
                    _give_once(frame, step, target.slot)
                else:
                    held[target.slot] = held.get(source.slot, _Given(source.slot))
            case Release(slot):
                if not frame.is_fixed(slot):
                    held[slot] = None
            case Move(pairs):
                found = {target: held.get(source, _Given(source)) for source, target in pairs}
                held |= dict.fromkeys((source for source, _ in pairs), None) | found
            case Launch() | Call():
                run = frame.prepare(step)
                if not isinstance(run, Chain):
                    return None
                for slot, places in run.changing.slots.items():
                    if (own := held.get(slot, _Given(slot))) is None:
                        return None
                    memory.append((own, places))
                for index, places in run.changing.numbers.items():
                    if index in assigned:
                        columns[number, index] = places
                    else:
                        constant.setdefault(index, []).extend(places)
                chains.append(run)
            case _:
                pass
    return _State(Chain.of(chains), memory, columns, constant) if chains else None


def _give_once(frame: Frame, step: Step, slot: int) -> None:
    """Gives a slot the memory that it has in all calls: words hold its address from then on."""
    if not frame.is_fixed(slot) or frame.arrays[slot] is None:
        frame.prepare(step)


def _is_open(extent: int | NumberSlot) -> bool:
    return isinstance(extent, NumberSlot)


def _free(dtype: str, shape: tuple[int, ...], held: _Held) -> _Made:
    """The first memory of the loop of this type and shape that no slot holds."""
    number, taken = 0, set(held.values())
    while (found := _Made(dtype, shape, number)) in taken:
        number += 1
    return found


class CountedLoop:
    """See the file's head: a `Run`.

    states  the first iterations; after the last one, that of number `again` follows
    left    slots and their memory before each of them
    """

    def __init__(
        self,
        frame: Frame,
        step: Loop,
        code: Callable[..., int],
        states: Sequence[_State],
        again: int,
        left: Sequence[_Held],
    ) -> None:
        assert step.trips is not None
        self._frame, self._step, self._code, self._again, self._states = frame, step, code, again, states
        self._trips = step.trips
        memory = dict.fromkeys(memory for state in states for memory, _ in state.memory)
        last = left[self._state_at(self._trips)]
        memory |= dict.fromkeys(each for each in last.values() if each is not None)
        self._memory = list(memory)
        numbers = {each: number for number, each in enumerate(self._memory)}
        self._words = list[Places]([] for _ in self._memory)
        for state in states:
            for each, places in state.memory:
                self._words[numbers[each]] += places
        self._addresses = list[int]()
        self._made = [_place_of(each) for each in self._memory]
        self._left = [(slot, None if each is None else numbers[each]) for slot, each in last.items()]
        frame.varying.extend(last)
        self._constant = [(index, places) for state in states for index, places in state.constant.items()]
        self._numbers = _HostNumbers(step, [*dict.fromkeys(key for state in states for key in state.columns)])
        self._rows = self._table(states)
        self._kept = list[_Part]()
        self._kept_of = list[int]()

    def _state_at(self, trip: int) -> int:
        """The state in which an iteration begins."""
        again, count = self._again, len(self._states)
        return trip if trip < count else again + (trip - again) % (count - again)

    def _table(self, states: Sequence[_State]) -> Words:
        rows = list[int]()
        for state in states:
            places = [
                number
                for key, words in state.columns.items()
                for held, word in words
                for number in (
                    ctypes.addressof(held) + word * ctypes.sizeof(ctypes.c_int64),
                    self._numbers.columns.index(key),
                )
            ]
            held = (ctypes.c_int64 * len(places))(*places)
            self._frame.kept.append(held)
            rows += (state.chain.address, len(state.chain), ctypes.addressof(held), len(places) // 2)
        return (ctypes.c_int64 * (COUNTED_ROW * len(states)))(*rows)

    def __call__(self) -> None:
        """raises ExecutionError for more iterations than `limits.iteration_limit` allows; DataError for memory that is not there"""
        if self._trips > (most := iteration_limit()):
            raise too_long(self._step.name, most, STAGE)
        frame = self._frame
        arrays, numbers = frame.arrays, frame.numbers
        held = [
            arrays[each.slot] if isinstance(each, _Given) else frame.fresh(place, each.shape, count)
            for each, (place, count) in zip(self._memory, self._made, strict=True)
        ]
        addresses = list(map(pointer, held))
        if addresses != self._addresses:
            self._addresses = addresses
            for address, places in zip(addresses, self._words, strict=True):
                for words, word in places:
                    words[word] = address
        for index, places in self._constant:
            for words, word in places:
                words[word] = numbers[index]
        state, rows, width = 0, ctypes.addressof(self._rows), len(self._numbers.columns)
        for table, after in self._parts():
            for index, value in after.items():
                numbers[index] = value
            state = self._code(rows, self._again, len(self._states), state, len(table), table.ctypes.data, width)
        for slot, memory in self._left:
            arrays[slot] = None if memory is None else _in_shape(held[memory], frame.bound.shapes.get(slot))

    def _parts(self) -> Iterable[_Part]:
        """The numbers of all iterations, AT_ONCE at a time; those of a loop that needs few are kept from run to run."""
        numbers, before = self._frame.numbers, [self._frame.numbers[index] for index in self._numbers.read]
        if self._kept and self._kept_of == before:
            return self._kept
        counts = (min(AT_ONCE, self._trips - first) for first in range(0, self._trips, AT_ONCE))
        if self._trips * max(1, len(self._numbers.columns)) > MOST_KEPT:
            return (self._numbers.part(numbers, trips) for trips in counts)
        values = list(numbers)
        self._kept, self._kept_of = list[_Part](), before
        for trips in counts:
            self._kept.append(self._numbers.part(values, trips))
            for index, value in self._kept[-1][1].items():
                values[index] = value
        return self._kept


_Part: TypeAlias = tuple[Array, Mapping[int, int]]
"""Numbers of iterations, a row each; the values of the numbers that the loop assigns, after the last one."""


class _HostNumbers:
    """The numbers of the host in a loop.

    columns  (number of the step that reads it, number) of what iterations read
    read     those that decide all others: their values before the loop
    """

    def __init__(self, step: Loop, columns: Sequence[tuple[int, int]]) -> None:
        self._steps, self.columns = step.body, columns
        self.read = sorted(
            {
                operand.index
                for inner in step.body
                if isinstance(inner, Compute)
                for operand in inner.operands
                if isinstance(operand, NumberSlot)
            }
        )

    def part(self, numbers: Sequence[int], trips: int) -> _Part:
        """The numbers of so many iterations, from these values on."""
        values, readers = dict(enumerate(numbers)), dict[int, list[tuple[int, int]]]()
        for column, (reader, index) in enumerate(self.columns):
            readers.setdefault(reader, []).append((column, index))
        work = [
            (step if isinstance(step, Compute) else None, readers.get(number, ()))
            for number, step in enumerate(self._steps)
            if isinstance(step, Compute) or number in readers
        ]
        rows = np.zeros((trips, len(self.columns)), np.int64)
        for row in range(trips if work else 0):
            for step, read in work:
                if step is not None:
                    operands = [values[each.index] if isinstance(each, NumberSlot) else each for each in step.operands]
                    values[step.result.index] = FUNCTIONS[step.function](*operands)
                for column, index in read:
                    rows[row, column] = values[index]
        return rows, {step.result.index: values[step.result.index] for step, _ in work if step is not None}


def _place_of(memory: _Memory) -> tuple[ArrayPlace, int]:
    """The memory as a step would allocate it, and its bytes; of memory that is given, none."""
    if isinstance(memory, _Given):
        return ArrayPlace(memory.slot, "", (), on_device=True), 0
    place = ArrayPlace(-1, memory.dtype, memory.shape, on_device=True)
    return place, prod(memory.shape) * numpy_type(memory.dtype).itemsize


def _in_shape(array: Array, shape: tuple[int, ...] | None) -> Array:
    return array if shape is None or array.shape == shape else array.reshape(shape)
