"""The stamps of a race detector (`sanitizer`): which thread accessed a unit of memory last, when, and by which op.

    stamp = block 24 bits | epoch 16 bits | thread 11 bits | op 12 bits          epoch: barriers before it

A stamp does not conflict with a lane if it is the lane's own, or from the lane's block in an earlier epoch, or 0 (no access yet). Several
readers in one epoch are recorded as `SEVERAL`, readers of one warp as `OF_WARP`, readers in several blocks as `SEVERAL_BLOCKS`: any later
writer conflicts with at least one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.runtime.simt.access_kinds import Touch
from xla_emitters.runtime.simt.fenced_blocks import FencedBlocks
from xla_emitters.runtime.simt.gpu_rules import WARP_SIZE
from xla_emitters.runtime.simt.thread_clocks import ThreadClocks

OP_BITS, THREAD_BITS, EPOCH_BITS, BLOCK_BITS = 12, 11, 16, 24
EPOCH_SHIFT = OP_BITS + THREAD_BITS
BLOCK_SHIFT = EPOCH_SHIFT + EPOCH_BITS
OTHER_OP = (1 << OP_BITS) - 1
SEVERAL = ((1 << THREAD_BITS) - 1) << OP_BITS
"""In the thread bits of a stamp (threads count from 1): several threads of the block."""
OF_WARP = 1025
"""In the thread bits, this and the number of a warp: several threads of it."""
_WARPS = np.append((np.arange(OF_WARP) - 1) // WARP_SIZE, np.arange((1 << THREAD_BITS) - OF_WARP))
"""What the thread bits of a stamp say -> the warp of these threads."""
SEVERAL_BLOCKS = (1 << BLOCK_SHIFT + BLOCK_BITS) - 1
"""The stamp for threads of several blocks: it conflicts with every lane."""
_WHO = ((1 << BLOCK_BITS) - 1 << BLOCK_SHIFT) | SEVERAL
"""The bits of a stamp that say whose it is."""


@dataclass
class Shadow:
    """The threads that accessed the units of a buffer, in all its instances.

    unit     bytes; it divides the offset and the size of every access so far; 0 before the first
    stamps   int64 per unit, by kind of access; a kind is missing until its first access
    widths   uint8 per unit, by kind of atomic access: bytes of the last one, 0 where they are not known
    """

    size: int
    unit: int = 0
    stamps: dict[Touch, Array] = field(default_factory=dict[Touch, Array])
    widths: dict[Touch, Array] = field(default_factory=dict[Touch, Array])

    def refine(self, size: int) -> None:
        """Makes the unit small enough for an access of `size` bytes."""
        unit = gcd(self.unit, size)
        if self.unit not in (0, unit):
            pieces = self.unit // unit
            self.stamps = {touch: stamps.repeat(pieces) for touch, stamps in self.stamps.items()}
            self.widths = {touch: widths.repeat(pieces) for touch, widths in self.widths.items()}
        self.unit = unit

    def of(self, touch: Touch) -> Array:
        """The stamps of a kind, made when they are first needed."""
        if touch not in self.stamps:
            # Rounded up: the last bytes of a buffer may be less than a unit.
            self.stamps[touch] = np.zeros(-(-self.size // self.unit), np.int64)
        return self.stamps[touch]


@dataclass
class Lanes:
    """The active lanes of an access, and the units that they access.

    units      int64: numbers of units; (lanes, units of each)
    stamps     int64: the lanes' own stamps; (lanes, 1)
    clocks     what threads of a block know of each other, where barriers of the whole block are not all that orders them; else None
    numbers    of the lanes, through all blocks of the chunk; (lanes, 1)
    is_shared  whether the memory belongs to a block. Stamps of earlier blocks, which have lower numbers, then belong to blocks that
               used the same memory before, and do not conflict
    cluster    blocks of a cluster, which have neighbouring numbers
    since      for each block of the chunk, of which `first` is the first: what each block of its cluster did before this epoch it knows;
               int64 (blocks, cluster)
    fenced     what blocks know of each other, if they know anything
    """

    units: Array
    stamps: Array
    clocks: ThreadClocks | None
    numbers: Array
    is_shared: bool
    cluster: int = 1
    since: Array | None = None
    first: int = 0
    fenced: FencedBlocks | None = None

    def find(self, stamps: Array) -> Array:
        """The entries of a shadow for the units."""
        return stamps.take(self.units)

    def apart(self, found: Array) -> Array | None:
        """Mask of the stamps in `found` that belong to other threads and are not ordered before the lane's; None if there are none."""
        if not self.is_shared and not found.any():
            return None
        other = (found ^ self.stamps) & _WHO != 0
        if not other.any():
            return None
        late = found >= self._unknown_from(found)
        if not self.is_shared:
            late |= (found < self.first_of_block) & (found != 0)
        if self.since is not None:
            epochs = found >> EPOCH_SHIFT & (1 << EPOCH_BITS) - 1
            rows = (self.stamps >> BLOCK_SHIFT) - self.first
            known = self.since[rows, ((found >> BLOCK_SHIFT) - 1) % self.cluster]
            late = np.where(self.of_neighbours(found), epochs >= known, late)
        other &= late & ~self.is_announced(found)
        return other if other.any() else None

    def _unknown_from(self, found: Array) -> Array:
        """The least stamps of the lanes' blocks that are not ordered before what the lanes do."""
        if self.clocks is None:
            # The epoch began at the last barrier.
            return self.stamps >> EPOCH_SHIFT << EPOCH_SHIFT
        return self.first_of_block + (self.clocks.of(self.numbers, warps_of(found)) << EPOCH_SHIFT)

    def is_announced(self, found: Array) -> Array | np.bool_:
        """Mask of the stamps that other blocks have announced to the lanes' blocks."""
        if self.fenced is None or self.fenced.seen is None:
            return np.False_
        rows, (blocks, epochs) = (self.stamps >> BLOCK_SHIFT) - self.fenced.first, block_and_epoch(found)
        return self.fenced.is_before(rows, warps_of(self.stamps), blocks, warps_of(found), epochs)

    def in_flight(self, found: Array) -> Array | None:
        """Mask of the stamps in `found` of copies to the lanes' memory that are not complete; None if there are none."""
        flying = found >= self.first_of_cluster
        return flying if flying.any() else None

    def are_own(self, found: Array) -> Array:
        """Mask of the stamps that the lanes themselves have left."""
        return (found ^ self.stamps) & _WHO == 0

    @property
    def first_of_block(self) -> Array:
        """A lower bound of the stamps of each lane's block."""
        return self.stamps >> BLOCK_SHIFT << BLOCK_SHIFT

    @property
    def first_of_cluster(self) -> Array:
        return self._clusters(self.stamps) * self.cluster + 1 << BLOCK_SHIFT

    def _clusters(self, stamps: Array) -> Array:
        return ((stamps >> BLOCK_SHIFT) - 1) // self.cluster

    def of_neighbours(self, found: Array) -> Array:
        """Mask of the stamps that other blocks of the lane's cluster left."""
        return (self._clusters(found) == self._clusters(self.stamps)) & (
            found >> BLOCK_SHIFT != self.stamps >> BLOCK_SHIFT
        )


def join(stamps: Array, lanes: Lanes) -> None:
    """Adds the lanes to the recorded readers, or updaters, of their units."""
    before = lanes.find(stamps)
    stamps[lanes.units] = lanes.stamps
    winners = lanes.find(stamps)
    together, was_apart = winners != lanes.stamps, lanes.apart(before)
    if was_apart is not None:
        together |= was_apart
    if not together.any():
        return
    own = warps_of(lanes.stamps)
    stamps[lanes.units[together]] = np.broadcast_to(of_warp(lanes.stamps), together.shape)[together]
    mixed = together & (warps_of(winners) != own)
    if was_apart is not None:
        mixed |= was_apart & (warps_of(before) != own)
    stamps[lanes.units[mixed]] = np.broadcast_to(lanes.stamps | SEVERAL, mixed.shape)[mixed]
    if lanes.is_shared:
        return
    block = lanes.stamps >> BLOCK_SHIFT
    across = ((before != 0) & (before >> BLOCK_SHIFT != block)) | (winners >> BLOCK_SHIFT != block)
    if lanes.since is not None:
        # One of several readers in a cluster stands for all: a race with another one of them is not found.
        across &= ~lanes.of_neighbours(before) & ~lanes.of_neighbours(winners)
    across &= ~lanes.is_announced(before) | (winners >> BLOCK_SHIFT != block)
    stamps[lanes.units[across]] = SEVERAL_BLOCKS


def block_and_epoch(stamps: Array) -> tuple[Array, Array]:
    return stamps >> BLOCK_SHIFT, stamps >> EPOCH_SHIFT & (1 << EPOCH_BITS) - 1


def warps_of(stamps: Array) -> Array:
    """The warp of a stamp's thread or threads; another number for threads of several warps."""
    return _WARPS[(stamps & SEVERAL) >> OP_BITS]


def of_warp(stamps: Array) -> Array:
    """The stamps of several threads of each lane's warp."""
    return (stamps & ~SEVERAL) | (warps_of(stamps) + OF_WARP) << OP_BITS
