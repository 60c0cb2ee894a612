"""Calls of machine code from Python: what the code reads, and several calls as one.

    words of a launch of k:    x  y  n  |  first block, end of the range, memory of a block

A step of machine code gets the address of its words. Those that never change are set once; a run sets the others, the addresses of arrays
that it allocates and numbers of the host, and calls the code. Calls that follow each other are one call from Python (`cpu_steps.CHAIN`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np

from xla_emitters.library.arguments import pointer
from xla_emitters.lowering.cpu.cpu_steps import ADDED_TYPES, CHAIN_ROW
from xla_emitters.program.steps import ArrayPlace, Launch
from xla_emitters.runtime.walk import Frame, Run

SCRATCH_ALIGNMENT = 64
"""Alignment in bytes of a block's memory."""
ChainCode = ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_int64)
"""`cpu_steps.CHAIN`: the address of the table, and how many rows it has."""


Words: TypeAlias = ctypes.Array[ctypes.c_int64]
Places: TypeAlias = list[tuple[Words, int]]
"""The words that hold a value, and the place in each."""
PlacesOf: TypeAlias = dict[int, Places]
"""Those of several values, by the value's number."""


class Changing:
    """The words that change from run to run.

    slots    slot -> those that hold the address of its array
    numbers  number of the host -> those that hold it
    """

    def __init__(self) -> None:
        self.slots, self.numbers = PlacesOf(), PlacesOf()

    def point(self, frame: Frame, slot: int, words: Words, place: int) -> None:
        """Has a word hold the address of a slot's array: now where it is the same in every call, else in each run."""
        if frame.is_fixed(slot):
            words[place] = pointer(frame.arrays[slot])
        else:
            self.slots.setdefault(slot, []).append((words, place))

    def setter(self, frame: Frame) -> Run:
        """Sets them."""
        slots, numbers, arrays, held = [*self.slots.items()], [*self.numbers.items()], frame.arrays, frame.numbers

        def set_words() -> None:
            for slot, places in slots:
                address = pointer(arrays[slot])
                for words, place in places:
                    words[place] = address
            for number, places in numbers:
                value = held[number]
                for words, place in places:
                    words[place] = value

        return set_words

    def add(self, other: Changing) -> None:
        """Those of other words too."""
        for mine, others in ((self.slots, other.slots), (self.numbers, other.numbers)):
            for key, places in others.items():
                mine.setdefault(key, []).extend(places)


class Chain:
    """Calls of machine code, one after the other: a `Run`.

    code      what calls the code of a table, `cpu_steps.CHAIN`
    rows      of the table, whose address is `address`
    changing  of the words of all rows
    """

    def __init__(
        self,
        frame: Frame,
        code: Callable[[int, int], None],
        rows: Sequence[tuple[int, int, int, int]],
        changing: Changing,
    ) -> None:
        self.frame, self.code, self.rows, self.changing = frame, code, rows, changing
        self._table = (ctypes.c_int64 * (CHAIN_ROW * len(rows)))(*chain.from_iterable(rows))
        self.address, self._count = ctypes.addressof(self._table), len(rows)
        self.set_words = changing.setter(frame)

    def __len__(self) -> int:
        return self._count

    def __call__(self) -> None:
        self.set_words()
        self.code(self.address, self._count)

    @staticmethod
    def of(chains: Sequence[Chain]) -> Chain:
        """All their calls, in order."""
        first, changing = chains[0], Changing()
        for each in chains:
            changing.add(each.changing)
        return Chain(first.frame, first.code, [row for each in chains for row in each.rows], changing)


def shared(calls: Chain, parts: int, *, timed: bool) -> Chain:
    """A call that runs the calls of a chain by several threads, in any order; parameters as for `job_of`."""
    from xla_emitters.runtime.cpu.thread_team import job_of  # imported here: most programs have small arrays

    if (job := job_of(calls.address, len(calls), parts, timed=timed)) is None:
        return calls
    calls.frame.kept += [calls, job]
    return Chain(calls.frame, calls.code, [(job.code, job.address, 0, 0)], calls.changing)


class LaunchWords:
    """The words of one launch, for each part of its grid."""

    def __init__(self, frame: Frame, step: Launch, pieces: int) -> None:
        count = len(step.arguments) + len(ADDED_TYPES)
        self._end = len(step.arguments)
        self._arrays = [(ctypes.c_int64 * count)() for _ in range(pieces)]
        self.addresses = [ctypes.addressof(array) for array in self._arrays]
        self.changing = Changing()
        self._scratch = list[object]()
        frame.kept.append(self)  # the code reads them by their addresses
        for place, value in enumerate(step.arguments):
            here = [(words, place) for words in self._arrays]
            if isinstance(value, int):
                self._set(place, value)
            elif not isinstance(value, ArrayPlace):
                self.changing.numbers.setdefault(value.index, []).extend(here)
            elif frame.is_fixed(value.slot):
                self._set(place, pointer(frame.arrays[value.slot]))
            else:
                self.changing.slots.setdefault(value.slot, []).extend(here)

    def _set(self, place: int, value: int) -> None:
        for words in self._arrays:
            words[place] = value

    def set_range(self, piece: int, first: int, last: int, scratch_bytes: int) -> None:
        """The blocks that a part computes, and memory for one of them at a time."""
        words, address = self._arrays[piece], 0
        if scratch_bytes:
            memory = np.empty(scratch_bytes + SCRATCH_ALIGNMENT, np.uint8)
            self._scratch[piece : piece + 1] = [memory]
            address = memory.ctypes.data
            address += -address % SCRATCH_ALIGNMENT
        words[self._end], words[self._end + 1], words[self._end + 2] = first, last, address
