"""Loops that do not end: a limit of their iterations, and states that come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import numpy as np

from xla_emitters.errors import EndlessLoop, ExecutionError, Place

MOST_ITERATIONS = 100_000
"""Most iterations of one loop; a longer loop is taken to be endless."""

LARGER_LIMIT = "a larger limit can be set: --max-iterations, in Python most_iterations; where the bound was drawn, --inputs sets it"
MOST_COUNTED = 1_000_000
"""The largest limit up to which a counter is followed: a few milliseconds."""
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {"EQ": eq, "NE": ne, "GE": ge, "GT": gt, "LE": le, "LT": lt}


def outlasts(start: int, bound: int, step: int, direction: str, dtype: str, most: int) -> bool:
    """Whether a loop that counts from `start` in steps of `step` while that compares as `direction` to `bound` runs more than `most` times.

    dtype    the counter's, in HLO's words: what is beyond it wraps around
    returns  False too if `most` is above MOST_COUNTED

    >>> outlasts(0, 10, 1, "LT", "s32", 9), outlasts(0, 10, 1, "LT", "s32", 10), outlasts(120, 0, 1, "GT", "s8", 8)
    (True, False, False)
    """
    if most > MOST_COUNTED:
        return False
    bits = int(dtype[1:])
    counted = np.arange(most + 1, dtype=np.uint64) * np.uint64(step % 2**64) + np.uint64(start % 2**64)
    numbers = counted.astype(f"uint{bits}").view(f"{'u' if dtype[0] == 'u' else ''}int{bits}")
    return bool(np.all(_COMPARISONS[direction](numbers, numbers.dtype.type(bound))))


def too_long(loop: str, most_iterations: int, stage: str, place: Place | None = None) -> ExecutionError:
    """The error for a loop beyond the limit."""
    message = f"loop %{loop} does not end within {most_iterations} iterations"
    return ExecutionError(message, stage=stage, place=place, help=LARGER_LIMIT)


class Repetition:
    """Finds out that a loop is in a state in which it was before: then it never ends.

    The state of an iteration whose number is a power of two is compared with those of the following ones, until the next power: so the loop
    runs at most about three times as long as it takes to come back to a state. Source: R. P. Brent, "An improved Monte Carlo factorization
    algorithm" (1980).

    count  iterations so far; since: the one whose state is kept
    """

    def __init__(self, count: int = 0) -> None:
        self.count, self.since = count, 0
        self._kept = list[bytes]()

    def is_found(self, state: Callable[[], Iterable[bytes]]) -> bool:
        """Called once in each iteration. `state`: the parts of the state, small ones first; read until one differs"""
        self.count += 1
        if self._kept and all(kept == part for kept, part in zip(self._kept, state(), strict=True)):
            return True
        if self.count & (self.count - 1) == 0:
            self._kept, self.since = list(state()), self.count
        return False

    def error(self, loop: str, stage: str, place: Place | None = None) -> EndlessLoop:
        """The error for a loop that is back in the state of iteration `since`."""
        same = f"the state after {self.count - 1} iterations is the one after {self.since - 1}"
        return EndlessLoop(f"loop %{loop} does not end: {same}", stage=stage, place=place)
