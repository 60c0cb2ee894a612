"""Asynchronous accesses of shared memory that are not complete yet, for the race detector (`sanitizer`).

    cp.async [s], [g], 16;  cp.async.commit_group;  cp.async.wait_group 0;       in flight from the first to the last
    cp.async.bulk ... [s], [g], size, [b];  mbarrier.try_wait [b]                until a thread has seen the phase of b complete
    wgmma.mma_async ..., s;  wgmma.commit_group;  wgmma.wait_group 0;            reads s until the last; so do bulk copies to global memory
    tcgen05.mma [d], s ...;  tcgen05.commit [b];  mbarrier.try_wait [b]          reads s and writes d until a thread has seen the phase
    tcgen05.ld r, [d];  tcgen05.wait::ld                                         reads d until the last; `tcgen05.st` writes it

A copy is counted among the groups of the thread that issued it, or, once it is said to complete an `mbarrier`, among the copies of that
barrier. Source: PTX ISA 8.8, 9.7.9.25 "Asynchronous copy", 9.7.13.15 "mbarrier".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from xla_emitters.dtypes import Array


class Flight(Enum):
    """What accesses shared memory, by the groups that it is counted in."""

    COPY = "cp.async"
    PRODUCT = "wgmma"
    STORE = "cp.async.bulk to global memory"
    TENSOR = "tcgen05.mma, tcgen05.cp"
    TENSOR_LOAD = "tcgen05.ld"
    TENSOR_STORE = "tcgen05.st"


Barrier = tuple[int, int]
"""An `mbarrier`: in whose block's shared memory, as a row of the chunk, and where."""


@dataclass(frozen=True, eq=False)
class Copies:
    """What several lanes access by one instruction.

    access   the access
    shadow   of the memory
    starts   bytes from which on each lane accesses pieces of `unit` bytes, int64 (lanes, pieces)
    block    in whose memory, as a row of the chunk, int64 (lanes,)
    lanes    their numbers in the chunk, int64 (lanes,)
    groups   number of the group of each, int64 (lanes,); of bulk copies 0
    stamps   of the accesses, int64 (lanes, 1)
    writes   whether they write
    barriers   that they complete, as far as is known
    """

    access: Any
    shadow: Any
    starts: Array
    unit: int
    block: Array
    lanes: Array
    groups: Array
    op: int
    stamps: Array
    is_bulk: bool
    writes: bool
    barriers: tuple[Barrier, ...] = ()

    def those(self, chosen: Array, **changes: Any) -> Copies:
        """Those of the lanes in `chosen`."""
        parts = {name: getattr(self, name)[chosen] for name in ("starts", "block", "lanes", "groups", "stamps")}
        return replace(self, **parts, **changes)


class CopiesInFlight:
    """The copies of one chunk.

    lands   is called with copies that are complete
    """

    def __init__(self, shape: tuple[int, ...], lands: Callable[[Copies], None]) -> None:
        self._lands, self._groups = lands, np.zeros(shape, np.int64)
        self._flying = list[Copies]()

    def issue(self, copies: Copies) -> None:
        """Copies begin, in the open group of their threads."""
        groups = np.zeros(len(copies.lanes), np.int64) if copies.is_bulk else self._groups.reshape(-1)[copies.lanes] + 1
        self._flying.append(replace(copies, groups=groups))

    def commit(self, lanes: Array) -> None:
        """The open group of these threads, bool (blocks, threads), is closed."""
        self._groups = self._groups + lanes

    def await_groups(self, lanes: Array, most: int) -> None:
        """These threads wait until at most so many of their closed groups are in flight."""
        last = np.where(lanes, self._groups - most, -1).reshape(-1)
        self._land(lambda copies: copies.groups <= last[copies.lanes] if not copies.is_bulk else None)

    def complete_by(
        self, lanes: Array, barrier: Barrier, *, is_bulk: bool, again: bool = False, of_pair: bool = False
    ) -> None:
        """The copies that these threads have issued so far, to the block of a barrier, complete it.

        again    those that complete another one too, and those of any block: what `tcgen05.commit` is for
        of_pair  also those to the other block of its pair
        """
        here, blocks = lanes.reshape(-1), 2 if of_pair else 1

        def tied(copies: Copies) -> Iterator[Copies]:
            if (copies.barriers and not again) or copies.is_bulk != is_bulk:
                yield copies
                return
            chosen = here[copies.lanes] & (again | (copies.block // blocks == barrier[0] // blocks))
            if not chosen.all():
                yield copies.those(~chosen)
            if chosen.any():
                yield copies.those(chosen, barriers=(*copies.barriers, barrier))

        self._flying = [part for copies in self._flying for part in tied(copies)]

    def phase_ends(self, barrier: Barrier) -> None:
        """A thread has seen a phase of a barrier complete."""
        self._land(lambda copies: np.full(len(copies.lanes), barrier in copies.barriers))

    def __iter__(self) -> Iterator[Copies]:
        return iter(self._flying)

    def _land(self, are_complete: Callable[[Copies], Array | None]) -> None:
        left = list[Copies]()
        for copies in self._flying:
            chosen = are_complete(copies)
            if chosen is None or not chosen.any():
                left.append(copies)
                continue
            self._lands(copies.those(chosen))
            if not chosen.all():
                left.append(copies.those(~chosen))
        self._flying = left
