"""Lanes that wait at blocks of a graph for what other lanes do: who runs next, and who may say that it waited in vain.

a node whose lanes were left behind runs again when memory has changed, or when other lanes have come to it
where nothing else can run, one node after the other runs all the same: its op must not leave lanes behind then (`Machine.gives_up`)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xla_emitters.dtypes import Array


@dataclass
class Stalls:
    """Of one graph that is running.

    polls   for each node, whether its op may answer that it waited in vain, or knows best what is missing
    lanes   node -> its lanes that were left behind
    known   node -> `Memory.changes` then
    tried   nodes that have run in vain since memory changed last, in their order; `changes`: of memory then
    """

    polls: Sequence[bool]
    lanes: dict[int, Array] = field(default_factory=dict[int, Array])
    known: dict[int, int] = field(default_factory=dict[int, int])
    tried: list[int] = field(default_factory=list[int])
    changes: int = -1

    def next(self, waiting: Sequence[Array | None], changes: int) -> tuple[int | None, bool]:
        """The node to run, the first that is not known to wait in vain; and whether nothing else can run.

        waiting  for each node the lanes that wait to run it
        """
        for number in self._able(waiting, changes):
            return number, False
        if not self.known:
            return None, False
        if self.changes != changes:
            self.changes, self.tried = changes, []
        choices = [number for number in self.known if self.polls[number]] or [*self.known]
        chosen = min(choices, key=lambda number: self.tried.index(number) if number in self.tried else -1)
        self.tried = [*(number for number in self.tried if number != chosen), chosen]
        return chosen, True

    def _able(self, waiting: Sequence[Array | None], changes: int) -> Iterator[int]:
        """The nodes that are not known to wait in vain."""
        return (
            number for number, lanes in enumerate(waiting) if lanes is not None and self.known.get(number) != changes
        )

    def can_run(self, waiting: Sequence[Array | None], changes: int) -> bool:
        """Whether there is such a node."""
        return next(self._able(waiting, changes), None) is not None

    def leave(self, number: int, lanes: Array, changes: int) -> None:
        """Lanes were left behind at a node."""
        self.lanes[number], self.known[number] = lanes, changes

    def take(self, number: int) -> Array | None:
        """The lanes that were left behind at a node which runs now."""
        self.known.pop(number, None)
        return self.lanes.pop(number, None)

    def come(self, number: int) -> None:
        """Other lanes have come to a node."""
        if number in self.known:
            self.known[number] = -1
