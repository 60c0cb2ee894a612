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
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.lowering.cpu.cpu_steps import COUNTED_ROW
from xla_emitters.program.bind import STAGE
from xla_emitters.program.steps import FUNCTIONS, Compute, Loop, NumberSlot
from xla_emitters.runtime.cpu.code_chain import Words
from xla_emitters.runtime.cpu.loop_states import Calls, Held, LoopMemory, WriteConstant, are_simple, calls_of, states_of
from xla_emitters.runtime.repetition import too_long
from xla_emitters.runtime.walk import Frame
from xla_emitters.support.limits import iteration_limit

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


def counted_loop(frame: Frame, step: Loop, code: int, write: WriteConstant) -> CountedLoop | None:
    """A loop of known length without condition; None where it has steps that are not calls of machine code on memory of known size.

    code  the address of `cpu_steps.COUNTED`
    """
    if step.trips is None or step.trips < FEWEST_TRIPS or not are_simple(step.body):
        return None
    found = states_of(lambda held: calls_of(frame, step.body, held, write))
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
        self._constant = [(index, places) for state in states for index, places in state.constant.items()]
        self._numbers = _HostNumbers(step, [*dict.fromkeys(key for state in states for key in state.columns)])
        self._rows = self._table(states)
        self._kept = list[_Part]()
        self._kept_of = list[int]()

    def _state_at(self, trip: int) -> int:
        """The state in which an iteration begins."""
        again, count = self._again, len(self._states)
        return trip if trip < count else again + (trip - again) % (count - again)

    def _table(self, states: Sequence[Calls]) -> Words:
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
            rows += (*state.table, ctypes.addressof(held), len(places) // 2)
        return (ctypes.c_int64 * (COUNTED_ROW * len(states)))(*rows)

    def __call__(self) -> None:
        """raises EndlessLoop for more iterations than `limits.iteration_limit` allows; DataError for memory that is not there"""
        if self._trips > (most := iteration_limit()):
            raise too_long(self._step.name, most, STAGE)
        self._memory.begin()
        numbers = self._frame.numbers
        for index, places in self._constant:
            for words, word in places:
                words[word] = numbers[index]
        state, rows, width = 0, ctypes.addressof(self._rows), len(self._numbers.columns)
        for table, after in self._parts():
            for index, value in after.items():
                numbers[index] = value
            state = self._code(rows, self._again, len(self._states), state, len(table), table.ctypes.data, width)
        self._memory.show(self._left)
        self._memory.end()

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
