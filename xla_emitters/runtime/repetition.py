"""Loops that do not end: those that exceed the limit of iterations, and states that come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xla_emitters.errors import EndlessLoop, Place

LARGER_LIMIT = (
    "a larger limit can be set: --max-iterations N, in Python xla_emitters.limited_iterations(N);"
    " where the bound was drawn, --inputs sets it"
)

LONG_LOOP = 64
"""So many iterations a loop runs before it is asked whether it will end, and watched for a state that comes back."""
CLEARLY_LONG_LOOP = 4096
"""So many iterations a loop runs before it is asked whether it ends within many more, where machines round differently what ends it."""


def asked_after(*, is_exact: bool) -> int:
    """After how many iterations a loop is asked. is_exact: whether it ends after as many on every machine"""
    return LONG_LOOP if is_exact else CLEARLY_LONG_LOOP


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

    count  states so far; of an iteration each, unless `is_found` says after which
    """

    def __init__(self, count: int = 0) -> None:
        self.count, self._after, self._since = count, 0, 0
        self._kept: list[bytes] | None = None

    def is_found(self, state: Callable[[], Iterable[bytes]], after: int | None = None) -> bool:
        """Called once in each iteration, or after some.

        state  the parts of the state, small ones first; read until one differs
        after  so many iterations; None: the number of calls before this one
        """
        self._after = self.count if after is None else after
        self.count += 1
        if self._kept is not None and all(kept == part for kept, part in zip(self._kept, state(), strict=True)):
            return True
        if self.count & (self.count - 1) == 0:
            self._kept, self._since = list(state()), self._after
        return False

    def error(self, loop: str, stage: str, place: Place | None = None) -> EndlessLoop:
        """The error for a loop that is back in a state."""
        same = f": the state after {self._after} iterations is the one after {self._since}"
        return _endless(loop, same, stage, place)
