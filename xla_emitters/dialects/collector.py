"""Python's cyclic garbage collector while IR is read or compiled: runs once per 200,000 new objects, instead of every 700.

    with collector_at_rest():        gc.get_threshold()  (700, 10, 10)  ->  (200000, 10, 10), and back at the end
        ...

Ops, blocks and values refer to each other, so that IR is cyclic; nearly all of it lives until the kernel is done. The collector would visit
all objects again and again and find none to free. It is not switched off: 200,000 objects are a few tens of megabytes, and memory of
the first kernels of a module must be freed while hundreds of others are compiled.

The threshold belongs to the process. Compilations may be nested or run in several threads: the first to begin raises it, the last to end
restores it. A collector that the caller switched off stays off, and a threshold that is higher already stays.
Source: Python's documentation of `gc`.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import field
from threading import Lock

from xla_emitters.support.late_dataclass import dataclass

OBJECTS = 200_000
"""New objects, minus freed ones, before the collector runs."""


@dataclass
class _AtRest:
    """Number of running compilations, and the thresholds to restore."""

    lock: Lock = field(default_factory=Lock)
    running: int = 0
    before: tuple[int, int, int] = (0, 0, 0)


_STATE = _AtRest()


@contextmanager
def collector_at_rest() -> Generator[None]:
    """Raises the collector's threshold until the `with` ends, also after an error."""
    with _STATE.lock:
        if not _STATE.running:
            _STATE.before = gc.get_threshold()
            first, *others = _STATE.before
            # 0 means never.
            gc.set_threshold(first and max(first, OBJECTS), *others)
        _STATE.running += 1
    try:
        yield
    finally:
        with _STATE.lock:
            _STATE.running -= 1
            if not _STATE.running:
                gc.set_threshold(*_STATE.before)
