"""Makes a command start and end sooner than Python alone would: for a process that runs one verb, not for a library.

    begin()        first thing in a console script

Loading the compiler makes half a million objects that live until the end, and a compilation leaves almost no cyclic garbage: a collection
every 700 objects costs a fifth of the time. At exit Python would scan all objects once more, which takes as long as compiling a small
kernel; it does not scan frozen objects, and the system frees their memory.
"""

from __future__ import annotations

import atexit
import gc

OBJECTS = 1_000_000
"""New objects, minus freed ones, before the collector runs."""


def begin() -> None:
    """Prepares the process for one command. A second call does nothing."""
    if gc.get_threshold()[0] == OBJECTS:
        return
    gc.set_threshold(OBJECTS, 50, 50)
    atexit.register(gc.freeze)
