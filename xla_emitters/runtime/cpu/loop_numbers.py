"""Numbers of the host in the iterations of a loop that data do not decide: computed before the iterations run, as rows of a table.

    Loop 64:                          before    0   1   2  ...          n0 before each iteration
      n1 = minimum n0, 9              k         0   1   2  ...  9  9    n1, which a launch reads
      Launch k: a, n1
      n0 = add n0, 1

The machine code of a loop writes a row to the words of an iteration's calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.program.steps import FUNCTIONS, Compute, NumberSlot, Step

MOST_AT_ONCE, SECONDS_AT_ONCE = 1 << 12, 0.02
"""Iterations of one call, which become more while a call takes less time: between two calls Python handles signals, and watches a loop."""
MOST_KEPT = 1 << 16
"""Numbers of a loop that are kept from run to run."""
BEFORE = -1
"""The reader of numbers as they are before an iteration."""


class Column(NamedTuple):
    """What iterations read.

    reader  the number of the step that reads it, or BEFORE
    slot    index of the number of the host
    """

    reader: int
    slot: int


class Rows(NamedTuple):
    """Numbers of iterations that follow each other.

    table  a row of all columns for each
    after  the numbers that an iteration assigns, after the last one
    """

    table: Array
    after: Mapping[int, int]


class LoopNumbers:
    """The numbers of a loop.

    steps    of an iteration; None: a step that reads columns, but whose result data decide
    columns  what iterations read
    """

    def __init__(self, steps: Sequence[Step | None], columns: Iterable[Column]) -> None:
        self.columns = list(dict.fromkeys(columns))
        self._number = {column: number for number, column in enumerate(self.columns)}
        readers = dict[int, list[tuple[int, int]]]()
        for column, number in self._number.items():
            readers.setdefault(column.reader, []).append((number, column.slot))
        self._before = readers.get(BEFORE, [])
        self._work = [
            (step if isinstance(step, Compute) else None, readers.get(number, []))
            for number, step in enumerate(steps)
            if isinstance(step, Compute) or number in readers
        ]
        self._given, assigned = [index for _, index in self._before], set[int]()
        for step, read in self._work:
            wanted = {index for _, index in read}
            if step is not None:
                wanted |= {operand.index for operand in step.operands if isinstance(operand, NumberSlot)}
            self._given += sorted(wanted - assigned)
            if step is not None:
                assigned.add(step.result.index)
        self._kept, self._kept_of = dict[tuple[int, int], Rows](), list[int]()

    def column(self, column: Column) -> int:
        """The place of a column in a row."""
        return self._number[column]

    def begin(self, numbers: Sequence[int]) -> None:
        """Before each run: what was kept is used if it follows from these numbers too."""
        before = [numbers[index] for index in self._given]
        if before != self._kept_of:
            self._kept, self._kept_of = {}, before

    def rows(self, numbers: Sequence[int], first: int, count: int) -> Rows:
        """The numbers of `count` iterations from the one of number `first` on, before which the numbers of the host are these."""
        if (kept := self._kept.get((first, count))) is not None:
            return kept
        values, table = dict(enumerate(numbers)), np.zeros((count, len(self.columns)), np.int64)
        for row in range(count if self._work or self._before else 0):
            for number, index in self._before:
                table[row, number] = values[index]
            for step, read in self._work:
                for number, index in read:
                    table[row, number] = values[index]
                if step is not None:
                    operands = [values[each.index] if isinstance(each, NumberSlot) else each for each in step.operands]
                    values[step.result.index] = FUNCTIONS[step.function](*operands)
        found = Rows(
            table, {step.result.index: values[step.result.index] for step, _ in self._work if step is not None}
        )
        if (sum(len(rows.table) for rows in self._kept.values()) + count) * max(1, len(self.columns)) <= MOST_KEPT:
            self._kept[first, count] = found
        return found
