"""Notes of emission and passes: remarks (what they declined) and decisions (what they chose).

    with take_notes() as notes:
        run_pass(...)
    notes.remarks     Remark("xla-vectorize-loads-stores", "skipped scf.for: its step is not 1", "tanh_0 (gelu.hlo:19:3)")
    notes.decisions   Decision("launch", "24576x1x1 blocks of 128x1x1 threads", {"grid": [24576, 1, 1], ...})

Notes are collected only inside `take_notes`; outside it a note costs one look-up.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import field
from typing import Any

from xla_emitters.support.late_dataclass import dataclass
from xla_emitters.trace import Decision, Remark


@dataclass
class Notes:
    """Remarks and decisions in order; of equal remarks only the first is kept."""

    remarks: list[Remark] = field(default_factory=list[Remark])
    decisions: list[Decision] = field(default_factory=list[Decision])
    _added: set[Remark] = field(default_factory=set[Remark], repr=False)

    def add(self, remark: Remark) -> None:
        if remark not in self._added:
            self._added.add(remark)
            self.remarks.append(remark)


_TAKING: ContextVar[Notes | None] = ContextVar("taking", default=None)


class _Taking:
    """A context manager; one made of a generator costs more than what most passes note."""

    def __enter__(self) -> Notes:
        notes = Notes()
        self._token = _TAKING.set(notes)
        return notes

    def __exit__(self, *_: object) -> None:
        _TAKING.reset(self._token)


def take_notes() -> AbstractContextManager[Notes]:
    """Collects the notes made inside the `with`. A nested `take_notes` collects its own."""
    return _Taking()


def notes_wanted() -> Notes | None:
    """The current collection of notes; None outside `take_notes`, where a caller need not make any."""
    return _TAKING.get()


def remark(topic: str, text: str) -> None:
    """Records a remark that is about no op."""
    if (notes := _TAKING.get()) is not None:
        notes.add(Remark(topic, text))


def decide(topic: str, text: str, **data: Any) -> None:
    """Records a decision: its topic, a line of text, and `data` that JSON can hold."""
    if (notes := _TAKING.get()) is not None:
        notes.decisions.append(Decision(topic, text, data))
