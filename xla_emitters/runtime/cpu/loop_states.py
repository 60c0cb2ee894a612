"""What the iterations of a loop call, where they only call machine code: the memory of each slot, and the words that hold its address.

    Allocate b f32[8]         state 0    reads a given to the loop, writes b0
    Launch k: a, b            state 1    reads b0, writes b1
    Release a          ->     state 2    reads b1, writes b0; state 1 follows
    Move b -> a

Which memory a slot holds does not depend on data, and after a few iterations it is that of an earlier one. A state is an iteration with
each of its slots in certain memory: it has words of its own, whose addresses a run sets once. Each slot that the loop allocates is given
the same few arrays in turn.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from xla_emitters.library.arguments import Array, numpy_type, pointer
from xla_emitters.program.steps import (
    DIVISIONS,
    Allocate,
    ArrayPlace,
    Call,
    Compute,
    Fill,
    Launch,
    Move,
    NumberSlot,
    Release,
    Step,
    View,
)
from xla_emitters.runtime.cpu.code_chain import Chain, Places, PlacesOf, Prepare
from xla_emitters.runtime.cpu.loop_numbers import Column, LoopNumbers
from xla_emitters.runtime.walk import Frame

MOST_STATES = 8
"""A loop with more runs step by step: each state has words of its own."""
StateT = TypeVar("StateT")
WriteConstant: TypeAlias = Callable[[Frame, ArrayPlace, Array], Chain]
"""(frame, place, elements): a call that writes them to the place's memory."""


class Given(NamedTuple):
    """The memory that a slot has before the loop."""

    slot: int


class Made(NamedTuple):
    """Memory of the loop: one of the arrays that a slot is given in turn, so that what all slots hold soon repeats."""

    place: ArrayPlace
    shape: tuple[int, ...]
    number: int


Memory: TypeAlias = Given | Made
Held: TypeAlias = dict[int, Memory | None]
"""Slot -> its memory, of those that are not as before the loop; None: it has none."""


@dataclass(frozen=True)
class Calls:
    """Steps that run one after the other, ready to run.

    chain    their calls; None: there are none
    memory   the words that hold addresses of memory
    columns  the words of numbers that an iteration assigns
    constant the words of other numbers, by the number
    """

    chain: Chain | None
    memory: Sequence[tuple[Memory, Places]]
    columns: Mapping[Column, Places]
    constant: PlacesOf

    @property
    def table(self) -> tuple[int, int]:
        """The address of the table of the calls, and how many they are."""
        return (0, 0) if self.chain is None else (self.chain.address, len(self.chain))


def are_simple(steps: Sequence[Step]) -> bool:
    """Whether `calls_of` may take the steps."""
    return all(
        isinstance(step, Allocate | Call | Fill | Launch | Move | Release | View)
        or (isinstance(step, Compute) and step.function not in DIVISIONS)
        for step in steps
    )


def states_of(iteration: Callable[[Held], StateT | None]) -> tuple[list[StateT], int, list[Held]] | None:
    """The states of a loop, the number of the one that follows the last, and the memory of slots before each; None: too many, or none.

    iteration  the state of an iteration that begins with slots in this memory, which it changes; None: it has none
    """
    held, seen, states, before = Held(), dict[frozenset[Any], int](), list[StateT](), list[Held]()
    while (key := frozenset(held.items())) not in seen:
        seen[key] = len(states)
        before.append(dict(held))
        state = iteration(held) if len(states) < MOST_STATES else None
        if state is None:
            return None
        states.append(state)
    return states, seen[key], before


def calls_of(
    frame: Frame,
    steps: Sequence[Step],
    held: Held,
    prepare: Prepare,
    write: WriteConstant,
    assigned: AbstractSet[int],
    first: int = 0,
) -> Calls | None:
    """The calls of steps that begin with slots in this memory, which then are as the steps leave them; None where there are other steps.

    prepare   makes their steps ready to run
    write     makes a call that writes a constant
    assigned  numbers of the host that an iteration assigns
    first     the number of the first step in the iteration
    """
    bound, chains, memory = frame.bound, list[Chain](), list[tuple[Memory, Places]]()
    columns, constant = dict[Column, Places](), PlacesOf()
    for number, step in enumerate(steps, first):
        run = None
        match step:
            case Allocate(place):
                if place.slot in bound.offsets:
                    _give_once(frame, step, place.slot)
                elif (shape := _shape_of(frame, place)) is None:
                    return None
                else:
                    held[place.slot] = _free(place, shape, held)
            case Fill(place, data):
                if (shape := _shape_of(frame, place)) is None or frame.is_fixed(place.slot):
                    return None
                held[place.slot] = _free(place, shape, held)
                run = write(frame, place, np.frombuffer(data, numpy_type(place.dtype)))
            case View(source, target):
                if target.slot not in bound.shapes:
                    return None
                if source.slot not in held and frame.is_fixed(source.slot):
                    _give_once(frame, step, target.slot)
                else:
                    held[target.slot] = held.get(source.slot, Given(source.slot))
            case Release(slot):
                if not frame.is_fixed(slot):
                    held[slot] = None
            case Move(pairs):
                found = {target: held.get(source, Given(source)) for source, target in pairs}
                held |= dict.fromkeys((source for source, _ in pairs), None) | found
            case Launch() | Call():
                run = prepare(step)
                if not isinstance(run, Chain):
                    return None
            case _:
                pass
        if run is None:
            continue
        for slot, places in run.changing.slots.items():
            if (own := held.get(slot, Given(slot))) is None:
                return None
            memory.append((own, places))
        for index, places in run.changing.numbers.items():
            if index in assigned:
                columns[Column(number, index)] = places
            else:
                constant.setdefault(index, []).extend(places)
        chains.append(run)
    return Calls(Chain.of(chains) if chains else None, memory, columns, constant)


def _give_once(frame: Frame, step: Step, slot: int) -> None:
    """Gives a slot the memory that it has in all calls: words hold its address from then on."""
    if frame.arrays[slot] is None:
        frame.prepare(step)


def _shape_of(frame: Frame, place: ArrayPlace) -> tuple[int, ...] | None:
    """The sizes of an array that is allocated; None where data decide them."""
    is_open = any(isinstance(extent, NumberSlot) for extent in place.shape)
    return None if is_open else frame.bound.shapes.get(place.slot)


def _free(place: ArrayPlace, shape: tuple[int, ...], held: Held) -> Made:
    """The first of the place's arrays that no slot holds."""
    number, taken = 0, set(held.values())
    while (found := Made(place, shape, number)) in taken:
        number += 1
    return found


def places_of(frame: Frame, numbers: LoopNumbers, calls: Iterable[Calls]) -> tuple[int, int]:
    """The address of the places where an iteration's calls read numbers, for machine code, and how many they are."""
    size = ctypes.sizeof(ctypes.c_int64)
    rows = [
        (ctypes.addressof(words) + word * size, numbers.column(column))
        for each in calls
        for column, places in each.columns.items()
        for words, word in places
    ]
    held = (ctypes.c_int64 * (2 * len(rows)))(*chain.from_iterable(rows))
    frame.kept.append(held)
    return ctypes.addressof(held), len(rows)


def set_constants(frame: Frame, calls: Iterable[Calls]) -> None:
    """Sets the words of numbers that the loop does not assign."""
    for each in calls:
        for index, places in each.constant.items():
            for words, word in places:
                words[word] = frame.numbers[index]


class LoopMemory:
    """The memory of a loop in one run.

    words  the words that hold addresses of memory
    left   slots and their memory as an iteration may leave them
    """

    def __init__(self, frame: Frame, words: Iterable[tuple[Memory, Places]], left: Sequence[Held]) -> None:
        self._frame, of = frame, dict[Memory, Places]()
        for memory, places in words:
            of.setdefault(memory, []).extend(places)
        for held in left:
            frame.varying.extend(held)
            for memory in held.values():
                if memory is not None:
                    of.setdefault(memory, [])
        self._words, self._addresses = list(of.values()), list[int]()
        self._numbers = {memory: number for number, memory in enumerate(of)}
        self._bytes = list(map(_bytes_of, of))
        self._held = list[Array]()

    def begin(self) -> None:
        """Gives the loop its memory. raises DataError for memory that is not there"""
        arrays, fresh, held = self._frame.arrays, self._frame.fresh, list[Array]()
        for memory, count in zip(self._numbers, self._bytes, strict=True):
            given = isinstance(memory, Given)
            held.append(arrays[memory.slot] if given else fresh(memory.place, memory.shape, count, held))
        self._held, addresses = held, list(map(pointer, held))
        if addresses != self._addresses:
            self._addresses = []  # until all words are set: a signal may interrupt this
            for address, places in zip(addresses, self._words, strict=True):
                for words, word in places:
                    words[word] = address
            self._addresses = addresses

    def show(self, left: Held) -> None:
        """Gives slots the arrays that they hold after an iteration."""
        arrays, shapes = self._frame.arrays, self._frame.bound.shapes
        for slot, memory in left.items():
            array = None if memory is None else self._held[self._numbers[memory]]
            shape = shapes.get(slot)
            arrays[slot] = array if array is None or shape is None or array.shape == shape else array.reshape(shape)

    def end(self) -> None:
        """The frame keeps nothing of it."""
        self._held = []


def _bytes_of(memory: Memory) -> int:
    """Of the memory that a loop is given, none."""
    return 0 if isinstance(memory, Given) else prod(memory.shape) * numpy_type(memory.place.dtype).itemsize
