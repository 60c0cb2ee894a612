"""What the blocks of a launch know of each other: a fence and an atomic access order what was before them.

    block 0    store data; barrier; fence; atomic update of a flag
    block 1                                                         atomic access to the flag; barrier; load data        no race

So a sum whose last block adds the results of all, a lock, and a barrier of the whole grid have no race. A release is a fence of its own.
A thread's fence announces what it knows of the warps of its block, and what it did; what another warp's fence comes before is announced
too, if a barrier lies between that fence and the atomic access. What a warp has seen is its own until it meets the rest of its block.
This is for the race detector, and generous where exact rules would cost more than they find: a fence of one thread is its warp's, every
atomic access reads a flag, the reader needs no fence, blocks that update one counter know of all blocks that have announced something,
and a warp that waits for a part of its block knows what any has seen. Fences whose scope is the block order nothing here; what orders
its threads is in `thread_clocks`.
Source: PTX ISA 8.8, chapter 8, "Release and acquire patterns"; CUDA C++ Programming Guide, "Memory Fence Functions".
"""

from __future__ import annotations

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.runtime.simt.gpu_rules import WARP_SIZE
from xla_emitters.runtime.simt.thread_clocks import in_warps


class FencedBlocks:
    """The state of one launch. Blocks have numbers from 1 in the order in which they run. Epochs are of a block; a row of them is for each
    warp of the block, and for accesses by threads of several: accesses before it are known.

    fences     for each block of the chunk the epoch that its last fence began; 0 before the first
    announced  for each block so far: what was before fences that atomic accesses followed; int64 (blocks, warps + 1)
    seen       for each block of the chunk, what all of its threads know of each so far; uint16 (blocks, all blocks, warps + 1);
               None while nobody has seen anything
    fresh      block of the chunk, some of whose warps know more -> what they know, and which they are
    """

    def __init__(self) -> None:
        self.announced: Array = np.zeros((0, 0), np.int64)

    def begin(self, first: int, shape: tuple[int, int]) -> None:
        """A chunk of so many blocks, of so many threads, is about to run, of which `first` is the first."""
        (count, threads), last = shape, first + shape[0]
        self.first, self.fences, self._warp = first, np.zeros(count, np.int64), np.arange(threads) // WARP_SIZE
        warps = int(self._warp[-1]) + 1
        self.announced = np.concatenate(
            (self.announced.reshape(-1, warps + 1), np.zeros((last - len(self.announced), warps + 1), np.int64))
        )
        # What each thread knew at its last fence, when the last fence of each warp was, and the threads that may have more to announce.
        self._knew: Array | None = None
        self._of_warps: Array = np.zeros((count, warps + 1), np.int64)
        self._may_announce: Array = np.zeros(shape, np.bool_)
        self.seen: Array | None = None
        self.fresh = dict[int, tuple[Array, Array]]()

    def fence(self, lanes: Array, epochs: Array, known: Array) -> None:
        """Threads, bool (blocks, threads), fence what comes before these epochs, which have just begun.

        known  what they know of the warps of their blocks, as in `ThreadClocks`
        """
        rows, threads = np.nonzero(lanes)
        warps, before = self._warp[threads], epochs[rows]
        self.fences[rows] = self._of_warps[rows, warps] = self._of_warps[rows, -1] = before
        told = known[rows, threads]
        told[np.arange(len(rows)), warps] = told[:, -1] = before
        self._knew = np.zeros_like(known) if self._knew is None else self._knew
        self._knew[rows, threads] = told
        self._may_announce |= lanes.any(axis=1, keepdims=True)

    def announce(self, lanes: Array, known: Array) -> None:
        """An atomic access of threads, bool (blocks, threads), who know this of their blocks, follows fences."""
        if self._knew is None:
            return
        rows, threads = np.nonzero(lanes & self._may_announce)
        self._may_announce[rows, threads] = False
        of_warps, warps = self._of_warps[rows], self._warp[threads]
        behind_barriers = np.minimum(of_warps, known[rows, threads])
        each = np.arange(len(rows))
        behind_barriers[each, warps], behind_barriers[:, -1] = of_warps[each, warps], of_warps[:, -1]
        np.maximum.at(self.announced, self.first + rows, np.maximum(self._knew[rows, threads], behind_barriers))

    def see(self, rows: Array, warps: Array, blocks: Array, epochs: Array) -> None:
        """Warps of blocks of the chunk, `rows`, have read flags that these blocks updated last, in these epochs.

        All arrays have one shape, and `rows` are in order.
        """
        last = len(self.announced)
        tell = np.append(self.announced.any(axis=1), True)
        tell[0] = False
        is_news = tell[np.minimum(blocks, last)] & (blocks != rows + self.first)
        rows, warps, blocks, epochs = (each[is_news] for each in (rows, warps, blocks, epochs))
        if not rows.size:
            return
        shape = (len(self.fences), last + 1, self.announced.shape[1])
        seen: Array = np.zeros(shape, np.uint16) if self.seen is None else self.seen
        self.seen, nobody = seen, np.zeros(shape[2] - 1, np.bool_)
        found, starts = np.unique(rows, return_index=True)
        for row, at in zip(found.tolist(), np.split(np.arange(len(rows)), starts[1:]), strict=True):
            before: tuple[Array, Array] = self.fresh.get(row, (seen[row], nobody))
            knew, looked = before[0].copy(), before[1].copy()
            looked[warps[at]] = True
            if (blocks[at] >= last).any():
                knew[:last] = np.maximum(knew[:last], self.announced)
            for block, epoch in {*zip(blocks[at].tolist(), epochs[at].tolist(), strict=True)}:
                if block < last:
                    knew[block] = np.maximum(knew[block], np.minimum(self.announced[block], epoch))
                    if (other := block - self.first) >= 0:
                        knew = np.maximum(knew, self.fresh[other][0] if other in self.fresh else seen[other])
            knew[self.first + row] = 0
            # Block 0 is nobody, and a block need not see itself.
            knew[last] = np.count_nonzero(knew[:last].any(axis=1)) >= last - 2
            self._keep(row, knew, looked)

    def _keep(self, row: int, known: Array, looked: Array) -> None:
        """Warps of a block of the chunk, bool (warps,), know this of other blocks."""
        assert self.seen is not None
        if looked.all():
            self.seen[row] = known
            self.fresh.pop(row, None)
        else:
            self.fresh[row] = known, looked

    def meet(self, waiting: Array, there: Array | None = None) -> None:
        """Threads, bool (blocks, threads), have waited for others of their blocks; `there`: which met, if that is known."""
        self._may_announce |= waiting
        for row in np.flatnonzero(waiting.any(axis=1)).tolist() if self.fresh else ():
            if row not in self.fresh:
                continue
            known, looked = self.fresh[row]
            if there is None or (looked & in_warps(there[row])).any():
                self._keep(row, known, looked | in_warps(waiting[row]))

    def is_before(self, rows: Array, readers: Array, blocks: Array, warps: Array, epochs: Array) -> Array:
        """Mask of accesses that were ordered before what warps do now.

        rows, readers          the block of the chunk of each thread, in order, and its warp; (threads, 1)
        blocks, warps, epochs  of the accesses that each has found; (threads, accesses)
        """
        assert self.seen is not None
        last = len(self.announced)
        warps = np.minimum(warps, self.announced.shape[1] - 1)
        blocks, epochs = np.minimum(blocks, last), np.where(blocks >= last, 0, epochs)
        before = epochs < self.seen[rows, blocks, warps]
        present, starts = np.unique(rows[:, 0], return_index=True)
        for row, start, end in zip(present.tolist(), starts.tolist(), [*starts.tolist()[1:], len(rows)], strict=True):
            if row in self.fresh:
                (known, looked), at = self.fresh[row], slice(start, end)
                before[at] |= looked[readers[at]] & (epochs[at] < known[blocks[at], warps[at]])
        return before
