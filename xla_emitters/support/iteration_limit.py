"""How often a loop may run. Needs Python alone, as bundles do.

with limited_iterations(1_000_000): program(x)      a loop that runs longer is an EndlessLoop
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from xla_emitters.errors import UsageError

MOST_ITERATIONS = 100_000
"""Most iterations of one loop; a longer loop is taken to be endless."""

_limit: ContextVar[int] = ContextVar("most iterations", default=MOST_ITERATIONS)


@contextmanager
def limited_iterations(most: int | None) -> Generator[None]:
    """Limits every single loop of runs inside the block to so many iterations; None leaves the limit as it is.

    raises  UsageError for a negative limit
    """
    if most is not None and most < 0:
        raise UsageError(f"{most} iterations are no limit", stage="usage", help=f"the default is {MOST_ITERATIONS}")
    token = _limit.set(_limit.get() if most is None else most)
    try:
        yield
    finally:
        _limit.reset(token)


def iteration_limit() -> int:
    """Most iterations of one loop; a longer loop raises EndlessLoop."""
    return _limit.get()
