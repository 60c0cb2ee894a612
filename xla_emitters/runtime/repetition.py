"""Loops that do not end: those that exceed the limit of iterations, and states that come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from xla_emitters.errors import EndlessLoop, Place
from xla_emitters.program.steps import Compute, Extent, Number, Recurrence

LARGER_LIMIT = (
    "a larger limit can be set: --max-iterations N, in Python xla_emitters.limited_iterations(N);"
    " where the bound was drawn, --inputs sets it"
)

LONG_LOOP = 64
"""So many iterations a loop runs before it is asked whether it will end, and watched for a state that comes back."""
CLEARLY_LONG_LOOP = 4096
"""So many iterations a loop runs before it is asked whether it ends within many more, where machines round differently what ends it."""
MOST_FORESEEN = 1 << 33
"""Elements: the most work for which what ends a loop is computed alone, which takes less than ten seconds."""
_ROW = 256
"""Elements that take as long as the call of a row."""


def asked_after(ends: Recurrence) -> int:
    """After how many iterations `outlasts` is asked."""
    from xla_emitters.program.array_forms import is_exact  # imported here: most programs have no loop

    return LONG_LOOP if is_exact(ends) else CLEARLY_LONG_LOOP


def outlasts(ends: Recurrence, state: Sequence[Any], most: int) -> bool:
    """Whether a loop in this state runs more than `most` times; False too where to know it takes more work than MOST_FORESEEN."""
    from xla_emitters.library.arguments import NUMPY_TYPES  # imported here: most loops end
    from xla_emitters.program.array_forms import ARRAY_FUNCTIONS

    arrays: list[Any] = [
        np.asarray(array, NUMPY_TYPES[kind]).reshape(sizes)[()]
        for array, (kind, sizes) in zip(state, ends.arrays, strict=True)
    ]
    arrays += [None] * len(ends.code)

    def value(extent: Extent) -> Any:
        return extent if isinstance(extent, int) else arrays[extent.index]

    def run(rows: Sequence[Compute]) -> None:
        for row in rows:
            arrays[row.result.index] = ARRAY_FUNCTIONS[row.function](*map(value, row.operands))

    fixed, rows = _split(ends)
    with np.errstate(all="ignore"):
        run((*fixed, *rows))
        work = sum(_ROW + np.size(arrays[row.result.index]) for row in rows)
        if work * most > MOST_FORESEEN:
            return False
        steps = [(row.result.index, ARRAY_FUNCTIONS[row.function], row.operands) for row in rows]
        for _ in range(most):
            if not value(ends.holds):
                return False
            arrays[: len(state)] = map(value, ends.after)
            for result, function, operands in steps:
                arrays[result] = function(*map(value, operands))
    return bool(value(ends.holds))


def _split(ends: Recurrence) -> tuple[list[Compute], list[Compute]]:
    """The rows that are the same in each iteration, and the others."""
    changing = {number for number, extent in enumerate(ends.after) if extent != Number(number)}
    fixed, rows = list[Compute](), list[Compute]()
    for row in ends.code:
        if any(isinstance(operand, Number) and operand.index in changing for operand in row.operands):
            changing.add(row.result.index)
            rows.append(row)
        else:
            fixed.append(row)
    return fixed, rows


def too_long(loop: str, most_iterations: int, stage: str, place: Place | None = None) -> EndlessLoop:
    """The error for a loop beyond the limit."""
    return _endless(loop, f" within {most_iterations} iterations", stage, place, LARGER_LIMIT)


def _endless(loop: str, how: str, stage: str, place: Place | None, help: str = "") -> EndlessLoop:
    error = EndlessLoop(f"loop %{loop} does not end{how}", stage=stage, place=place, help=help)
    error.loop = loop
    return error


class Repetition:
    """Finds out that a loop is in a state in which it was before: then it never ends.

    The state of an iteration whose number is a power of two is compared with those of the following ones, until the next power: so the loop
    runs at most about three times as long as it takes to come back to a state. Source: R. P. Brent, "An improved Monte Carlo factorization
    algorithm" (1980).

    count  iterations so far; since: the one whose state is kept
    """

    def __init__(self, count: int = 0) -> None:
        self.count, self.since = count, 0
        self._kept: list[bytes] | None = None

    def is_found(self, state: Callable[[], Iterable[bytes]]) -> bool:
        """Called once in each iteration. `state`: the parts of the state, small ones first; read until one differs"""
        self.count += 1
        if self._kept is not None and all(kept == part for kept, part in zip(self._kept, state(), strict=True)):
            return True
        if self.count & (self.count - 1) == 0:
            self._kept, self.since = list(state()), self.count
        return False

    def error(self, loop: str, stage: str, place: Place | None = None) -> EndlessLoop:
        """The error for a loop that is back in the state of iteration `since`."""
        same = f": the state after {self.count - 1} iterations is the one after {self.since - 1}"
        return _endless(loop, same, stage, place)
