"""What the blocks of a launch know of each other: a fence and an atomic access order what was before them.

    block 0    store data; fence; atomic update of a flag
    block 1                                                atomic access to the flag; load data        no race

So a sum whose last block adds the results of all, a lock, and a barrier of the whole grid have no race. A release is a fence of its own.
This is for the race detector, and generous where exact rules would cost more than they find: a fence of one thread is its block's,
every atomic access reads a flag, the reader needs no fence, and blocks that update one counter know of all blocks that have announced
something. So a missing fence is found, a store between it and the flag, and a reader that does not look at the flag; a missing barrier
between a block's stores and its fence is not. Fences whose scope is the block order nothing here; what orders its threads is in
`thread_clocks`.
Source: PTX ISA 8.8, chapter 8, "Release and acquire patterns"; CUDA C++ Programming Guide, "Memory Fence Functions".
"""

from __future__ import annotations

import numpy as np

from xla_emitters.dtypes import Array


class FencedBlocks:
    """The state of one launch. Blocks have numbers from 1 in the order in which they run.

    fences     for each block of the chunk the epoch that its last fence began; 0 before the first
    announced  the same for each block so far, of the last fence that an atomic access followed
    seen       for each block of the chunk and each so far: accesses of the latter before this epoch are ordered before the former;
               the last column is of accesses by several blocks. None while nobody has seen anything
    """

    def __init__(self) -> None:
        self.announced: Array = np.zeros(0, np.int64)
        self.begin(0, 0)

    def begin(self, first: int, count: int) -> None:
        """A chunk of so many blocks is about to run, of which `first` is the first."""
        self.first, self.fences = first, np.zeros(count, np.int64)
        self.announced = np.concatenate((self.announced, np.zeros(first + count - self.announced.size, np.int64)))
        self.seen: Array | None = None

    def announce(self, blocks: Array) -> None:
        """An atomic access of these blocks of the chunk, bool (blocks,), follows their fences."""
        self.announced[self.first :][blocks] = self.fences[blocks]

    def see(self, rows: Array, blocks: Array, epochs: Array) -> None:
        """Blocks of the chunk, `rows`, have read flags that these blocks updated last, in these epochs; all arrays have one shape."""
        last = self.announced.size
        seen = np.zeros((self.fences.size, last + 1), np.int64) if self.seen is None else self.seen
        of_several = blocks >= last
        everyone = np.unique(rows[of_several])
        seen[everyone, :last] = np.maximum(seen[everyone, :last], self.announced)
        rows, blocks, epochs = rows[~of_several], blocks[~of_several], epochs[~of_several]
        np.maximum.at(seen, (rows, blocks), np.minimum(self.announced[blocks], epochs))
        for row, block in {*zip(rows.tolist(), blocks.tolist(), strict=True)}:
            if block >= self.first:
                seen[row] = np.maximum(seen[row], seen[block - self.first])
        own = np.arange(self.fences.size)
        seen[own, self.first + own] = 0
        # Block 0 is nobody, and a block need not see itself.
        seen[:, last] = np.where(np.count_nonzero(seen[:, :last], axis=1) >= last - 2, np.iinfo(np.int64).max, 0)
        self.seen = seen

    def is_before(self, rows: Array, blocks: Array, epochs: Array) -> Array:
        """Mask of accesses that were ordered before what the blocks `rows` of the chunk do now."""
        assert self.seen is not None
        return epochs < self.seen[rows, np.minimum(blocks, self.announced.size)]
