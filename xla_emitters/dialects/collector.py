"""Python's cyclic garbage collector while IR is read or compiled: it runs once for many objects, instead of every 700.

    with collector_at_rest():        gc.get_threshold()  (700, 10, 10)  ->  (200000, 10, 10), and back at the end
        ...

Ops, blocks and values refer to each other, so that IR is cyclic; nearly all of it lives until the kernel is done. The collector would walk
all that there is again and again and find nothing to free. It is not switched off: 200,000 objects are a few tens of megabytes, and a
module of hundreds of kernels has to give back what the first of them left.

The threshold belongs to the process. Compilations may be nested or run in several threads: the first to begin raises it, the last to end
restores it. A collector that the caller switched off stays off, and a threshold that is higher already stays.
Source: Python's documentation of `gc`.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

OBJECTS = 200_000
"""How many more objects are made than freed before the collector looks at them."""


@dataclass
class _AtRest:
    """How many compilations are running, and the thresholds to go back to."""

    lock: Lock = field(default_factory=Lock)
    running: int = 0
    before: tuple[int, int, int] = (0, 0, 0)


_STATE = _AtRest()


@contextmanager
def collector_at_rest() -> Generator[None]:
    """Raises the collector's threshold until the `with` ends, also by an error."""
    with _STATE.lock:
        if not _STATE.running:
            _STATE.before = gc.get_threshold()
            first, *others = _STATE.before
            # 0 is never.
            gc.set_threshold(first and max(first, OBJECTS), *others)
        _STATE.running += 1
    try:
        yield
    finally:
        with _STATE.lock:
            _STATE.running -= 1
            if not _STATE.running:
                gc.set_threshold(*_STATE.before)
