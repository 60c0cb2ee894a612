"""What each thread of a block knows of its warps, where barriers of the whole block are not all that orders them.

    warp 0    store data; bar.arrive 1, 64                         store data; fence; atomic update of a flag
    warp 1                bar.sync 1, 64; load data                              atomic access to the flag; load data       no race

Epochs are those of the sanitizer, counted in each block. A thread's clock says for each warp from which epoch on it knows nothing of it:
accesses before that are ordered before what the thread does now. Threads that meet at a barrier know what all of them knew, and what
their warps did; a thread that looks at a flag knows what those knew that updated it after a fence. One that sees a phase of an
`mbarrier` complete knows what those knew that arrived, and the copies that completed it.

Generous where exact rules would cost more than they find: the accesses of a thread are those of its warp, every atomic access reads a
flag, the reader needs no fence, a flag that several threads updated tells of all fences of the block, and accesses of threads of several
warps are known with any of them.
Source: PTX ISA 8.8, chapter 8, "Release and acquire patterns", 9.7.13.1 "bar"; Lamport, "Time, clocks" (1978); Mattern (1988).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.runtime.simt.gpu_rules import WARP_SIZE
from xla_emitters.runtime.simt.memory import Named

WARPS_OF_GROUP = 4
"""Warps that execute a `wgmma` together."""


class ThreadClocks:
    """The clocks of the threads of a chunk.

    known      int64 (blocks, threads, warps + 1); the last column is for accesses by threads of several warps
    published  what each thread knew, with its own warp, at its last atomic access behind a fence; None before the first
    barriers   `mbarrier`, by row of its block and place in it -> what those knew that arrived, with their warps
    fences     epoch that each thread's last fence began, if no atomic access has followed it yet; else 0; int64 (blocks, threads)
    """

    def __init__(self, shape: tuple[int, int], barriers: Array) -> None:
        """barriers: the epoch of the last barrier of each block"""
        blocks, threads = shape
        self.warps = -(-threads // WARP_SIZE)
        self.known = np.repeat(barriers, threads * (self.warps + 1)).reshape(blocks, threads, self.warps + 1)
        self.published: Array | None = None
        self.barriers = dict[tuple[int, int], Array]()
        self.fences = np.zeros(shape, np.int64)
        self._warp = np.arange(threads) // WARP_SIZE

    def of(self, threads: Array, warps: Array) -> Array:
        """What threads, counted through all blocks, know of these warps: the epochs."""
        return self.known.reshape(-1, self.warps + 1)[threads, np.minimum(warps, self.warps)]

    def whole(self, blocks: Array, epochs: Array) -> None:
        """All threads of blocks, bool (blocks,), have met; what they did before these epochs is known."""
        self.known = np.where(blocks[:, None, None], np.maximum(self.known, epochs[:, None, None]), self.known)

    def meet(self, there: Array, waiting: Array, epochs: Array) -> None:
        """Threads have met, of which those that waited go on knowing what all did; bool (blocks, threads)."""
        joined = np.where(there[:, :, None], self.known, 0).max(axis=1)
        came = in_warps(there)
        several = came.sum(axis=1, keepdims=True) > 1
        joined = np.where(np.concatenate((came, several), axis=1), epochs[:, None], joined)
        self.known = np.where(waiting[:, :, None], np.maximum(self.known, joined[:, None, :]), self.known)

    def meet_in_warps(self, lanes: Array, epochs: Array) -> None:
        """These threads of each warp have met."""
        starts = np.arange(0, int(lanes.shape[1]), WARP_SIZE)
        joined = np.maximum.reduceat(np.where(lanes[:, :, None], self.known, 0), starts, axis=1)[:, self._warp]
        own = self._warp[:, None] == np.arange(self.warps + 1)
        joined = np.where(own, epochs[:, None, None], joined)
        self.known = np.where(lanes[:, :, None], joined, self.known)

    def meet_in_groups(self, waiting: Array, threads: Array, epochs: Array) -> None:
        """Threads, bool (blocks, threads), know what their warpgroups did before epochs at which `threads`, counted through all blocks, had
        met the others of their group.
        """
        of_group, of_warp = self._warp // WARPS_OF_GROUP, np.arange(self.warps) // WARPS_OF_GROUP
        rows, columns = np.divmod(threads, self.known.shape[1])
        met = np.zeros((len(self.known), int(of_group[-1]) + 1), np.int64)
        np.maximum.at(met, (rows, of_group[columns]), epochs)
        is_own = waiting[:, :, None] & (of_group[:, None] == of_warp)
        known = self.known[:, :, : self.warps]
        np.maximum(known, np.where(is_own, met[:, of_group, None], 0), out=known)

    def arrive(self, named: Sequence[Named], epochs: Array) -> None:
        """Threads have arrived at barriers in memory; their epochs have just begun.

        One thread of four warps may arrive for all of them, as where they share the products of `wgmma`.
        """
        for lanes, barrier in named:
            row = barrier[0]
            here = lanes[row]
            if not here.any():
                continue  # all are of other blocks of its cluster
            groups = np.unique(self._warp[here] // WARPS_OF_GROUP)
            came = np.isin(np.arange(self.warps) // WARPS_OF_GROUP, groups)
            self._tell(barrier, self.known[row][here].max(axis=0), came, epochs)

    def see_phase(self, named: Sequence[Named], landed: Mapping[tuple[int, int], Array], epochs: Array) -> None:
        """Threads have seen phases of barriers in memory complete.

        landed  barrier -> the warps whose copies were complete then, and complete it, bool (warps,); also of barriers that nobody has seen
        """
        for barrier, warps in landed.items():
            self._tell(barrier, np.zeros(self.warps + 1, np.int64), warps, epochs)
        for lanes, barrier in named:
            if (told := self.barriers.get(barrier)) is not None:
                self.known = np.where(lanes[:, :, None], np.maximum(self.known, told), self.known)

    def _tell(self, barrier: tuple[int, int], knew: Array, came: Array, epochs: Array) -> None:
        """Those that wait at the barrier will know what was known, and what these warps did, bool (warps,)."""
        who = np.append(came, came.sum() > 1)
        told = np.where(who, epochs[barrier[0]], knew)
        self.barriers[barrier] = np.maximum(self.barriers.get(barrier, 0), told)

    def publish(self, active: Array) -> None:
        """Threads, bool (blocks, threads), are about to access something atomically: what was before their fences is told."""
        rows, threads = np.nonzero((self.fences > 0) & active)
        if not rows.size:
            return
        if self.published is None:
            self.published = np.zeros_like(self.known)
        self.published[rows, threads] = self.known[rows, threads]
        before = self.fences[rows, threads]
        self.published[rows, threads, self._warp[threads]] = self.published[rows, threads, -1] = before
        self.fences[rows, threads] = 0

    def see(self, readers: Array, writers: Array, epochs: Array) -> None:
        """Threads have looked at flags.

        readers   counted through all blocks; (lanes, 1)
        writers   thread of the same block that updated the flag last; -1: several; less: nobody; (lanes, flags)
        epochs    when; (lanes, flags)
        """
        assert self.published is not None
        rows, columns = np.nonzero(writers >= -1)
        readers, writers, epochs = readers[rows, 0], writers[rows, columns], epochs[rows, columns]
        blocks, threads = readers // self.known.shape[1], np.maximum(writers, 0)
        told, of_several = self.published[blocks, threads], writers == -1
        if of_several.any():
            found, at = np.unique(blocks[of_several], return_inverse=True)
            told[of_several] = self.published[found].max(axis=1)[at]
        known = self.known.reshape(-1, self.warps + 1)
        np.maximum.at(known, readers, np.minimum(told, epochs[:, None]))


def in_warps(lanes: Array) -> Array:
    """Threads, bool (..., threads) -> the warps of which any is there, bool (..., warps)."""
    return np.logical_or.reduceat(lanes, np.arange(0, int(lanes.shape[-1]), WARP_SIZE), axis=-1)
