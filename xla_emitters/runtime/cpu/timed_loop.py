"""A loop whose launches several threads might share: step by step until they are timed, then as machine code where one thread is as fast.

How much of its arrays a launch touches is not known before it runs: an iteration of a scan reads one row of each. The first runs of
`block_threads` decide it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xla_emitters.runtime.block_threads import Shared
from xla_emitters.runtime.walk import Run


class TimedLoop:
    """See the file's head: a `Run`.

    run       what it is now
    by_steps  the loop, step by step
    shared    its launches that threads share, and those of loops inside it
    in_code   makes the loop whose launches run in one thread; None: it has other steps
    """

    def __init__(self, by_steps: Run, shared: Sequence[Shared], in_code: Callable[[], Run | None]) -> None:
        self.run, self.shared, self._in_code = by_steps, shared, in_code

    def __call__(self) -> None:
        self.run()

    def is_decided(self) -> bool:
        """Asked between calls, when slots hold no array of a call: whether all launches are timed."""
        if not all(launch.is_timed for launch in self.shared):
            return False
        if all(launch.is_alone for launch in self.shared):
            self.run = self._in_code() or self.run
        return True
