"""What emission and passes say about themselves: what they declined (remarks) and what they chose (decisions).

    with take_notes() as notes:
        run_pass(...)
    notes.remarks     Remark("xla-vectorize-loads-stores", "skipped scf.for: its step is not 1", "tanh_0 (gelu.hlo:19:3)")
    notes.decisions   Decision("launch", "24576x1x1 blocks of 128x1x1 threads", {"grid": [24576, 1, 1], ...})

Notes go to whoever takes them and nowhere otherwise: a pass pays one look-up for a note that nobody reads.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from xla_emitters.trace import Decision, Remark


@dataclass
class Notes:
    """What was said, in order; a remark that was made before is not made again."""

    remarks: list[Remark] = field(default_factory=list[Remark])
    decisions: list[Decision] = field(default_factory=list[Decision])
    _said: set[Remark] = field(default_factory=set[Remark], repr=False)

    def add(self, remark: Remark) -> None:
        if remark not in self._said:
            self._said.add(remark)
            self.remarks.append(remark)


_TAKING: ContextVar[Notes | None] = ContextVar("taking", default=None)


@contextmanager
def take_notes() -> Generator[Notes]:
    """The notes of what runs inside the `with`. Nested uses take their own."""
    notes = Notes()
    token = _TAKING.set(notes)
    try:
        yield notes
    finally:
        _TAKING.reset(token)


def notes_wanted() -> Notes | None:
    """Where notes go now; None when nobody takes them, so that none need be made."""
    return _TAKING.get()


def decide(topic: str, text: str, **data: Any) -> None:
    """Notes a choice: its topic, a line for a person, and `data` that JSON can hold."""
    if (notes := _TAKING.get()) is not None:
        notes.decisions.append(Decision(topic, text, data))
