"""Finds faults that a GPU does not report: races, reads of unwritten shared memory, exchanges with inactive lanes.

    execute(module, arrays, watchers=[Sanitizer()])       ExecutionError at the first fault

    tensor.extract in block 0, thread 0 reads bytes 4 to 7 of the shared tensor<8xi32>, which thread 1 of its block wrote: a race
        from transpose.3 (t.hlo:4:8)
        %v = tensor.extract ...
        the other access: tensor.insert from copy.1 (t.hlo:3:8)

A race: two threads access one byte, at least one of them writes, they are not both atomic, and nothing orders them. Atomic are two
accesses to each other if they are of the same bytes, and the scope of each has the other's thread. A barrier orders the
threads of a block. Writing the same value is a race too, but in one instruction of one block: compilers have all threads store one value;
and in PTX's shared memory, where a tile's last row is stored again for each row that is outside.
Sub-byte elements are packed behind pointers: neighbours share a byte, so that only atomic updates of them are free of races.

Each buffer has shadows: for each unit of memory (the greatest size that divides all accesses) the stamp of its last writer, of its
reader and of its atomic updater (`access_stamps`). A stamp stands for all readers since the last barrier; writers need no such mark: a
second writer is an error at once. So every race is found, and no false one is reported.
Lanes that conflict within one access are found by writing all stamps and reading them back: all but one read another lane's.

A barrier of a warp, or of some threads of a block, begins an epoch too, which orders their accesses alone; so does an atomic access
behind a fence, for threads that look at what it updates (`thread_clocks`).

The blocks of a cluster are ordered by its barriers, for those that wait there; threads that arrive at an `mbarrier` are ordered before
those that see its phase. What a relaxed arrival is to release, a fence must have released before. A block must not end before the accesses
of others to its shared memory.

An asynchronous copy to shared memory writes when its thread has waited for its group, or when the phase of its `mbarrier` is seen complete
(`copies_in_flight`); until then every access of what it fills is a race, also of the thread that issued it. So is a write to what a `wgmma`
or a bulk copy to global memory reads, until its thread has waited. A `wgmma` is of a whole warpgroup: a warp that has waited for it knows
what the others did before they began it, which CuTe's attention for Hopper counts on. Of `tcgen05`, products and copies of one thread
happen in their order.

Nothing orders two blocks but a fence and a flag (`fenced_blocks`).

Not modelled: what a bulk copy writes to global memory is there when it is issued.
Private and read-only memory have no shadow. Source: PTX ISA, "Memory Consistency Model".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NoReturn

import numpy as np
from xdsl.ir import Operation

from xla_emitters.dialects.locations import place_of
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.nvvm_async import CpAsyncOp
from xla_emitters.dtypes import Array
from xla_emitters.errors import ExecutionError, Unsupported
from xla_emitters.runtime.simt.access_kinds import (
    FLYING,
    IN_CONFLICT,
    Touch,
    bytes_of_update,
    flight_of,
    is_asynchronous,
    is_in_order,
    is_of_block,
    is_of_copy,
    is_release,
    only_writes,
    touch_of,
)
from xla_emitters.runtime.simt.access_stamps import (
    BLOCK_BITS,
    BLOCK_SHIFT,
    EPOCH_BITS,
    EPOCH_SHIFT,
    OF_WARP,
    OP_BITS,
    OTHER_OP,
    SEVERAL,
    SEVERAL_BLOCKS,
    Lanes,
    Shadow,
    block_and_epoch,
    join,
    of_warp,
    warps_of,
)
from xla_emitters.runtime.simt.copies_in_flight import Barrier, Copies, CopiesInFlight, Flight
from xla_emitters.runtime.simt.fenced_blocks import FencedBlocks
from xla_emitters.runtime.simt.gpu_rules import WARP_SIZE
from xla_emitters.runtime.simt.memory import Access, Buffer, Memory, Named, Space, Watcher
from xla_emitters.runtime.simt.thread_clocks import ThreadClocks


class Sanitizer(Watcher):
    """Watches one launch; raises ExecutionError at the first fault. The end of a kernel orders all accesses: use a new one for the next.

    keeps_unwritten  the first plain read of shared memory that nobody wrote is kept in `unwritten`, and not raised
    """

    def __init__(self, *, keeps_unwritten: bool = False) -> None:
        self.keeps_unwritten = keeps_unwritten
        self.restart()

    def restart(self) -> None:
        """Nothing was accessed yet."""
        self.unwritten: ExecutionError | None = None
        self._arguments: dict[int, Shadow] = {}
        self._shadows: dict[Buffer, Shadow | None] = {}
        self._shared: dict[tuple[int, int], Shadow] = {}
        self._ops: dict[Operation, int] = {}
        self._touches: dict[tuple[Operation, bool], Touch | None] = {}
        # Blocks are numbered from 1 in the order in which they run, so that stamp 0 (no access) is before all others.
        self._blocks: list[int] = [-1]
        self._first_block = 0
        self._epochs: Array = np.zeros(0, np.int64)
        # Epochs of the last barrier of each block, and what else orders its threads.
        self._barriers: Array = np.zeros(0, np.int64)
        self._clocks: ThreadClocks | None = None
        # For each block, and each of its cluster: the epoch before which those that wait for the cluster's last barrier know what it did.
        self._met: Array = np.zeros((0, 1), np.int64)
        self._of_clusters: Array | None = None
        # (owner, visitor), as rows of the chunk -> the last access of shared memory of another block since a barrier of the cluster, when.
        self._visits = dict[tuple[int, int], tuple[Access, int, int]]()
        # `mbarrier` -> for each block of its cluster the epoch before which those that see a phase of it know what it did.
        self._told = dict[Barrier, Array]()
        # Epochs of the last fence.proxy.async of each block.
        self._fences: Array = np.zeros(0, np.int64)
        self._stamps: Array = np.zeros((0, 0), np.int64)
        self._flights = dict[Flight, CopiesInFlight]()
        # The `mbarrier` whose phase ends, and the threads that issued the copies which landed then.
        self._is_landing = False
        self._landings = dict[Barrier, Array]()
        # The products that a wait has found complete: their lanes, and when they were issued.
        self._ended = list[tuple[Array, Array]]()
        self._fenced_blocks = FencedBlocks()

    def begin(self, memory: Memory) -> None:
        self._first_block = len(self._blocks)
        self._blocks += memory.blocks.tolist()
        if len(self._blocks) >= 1 << BLOCK_BITS:
            raise Unsupported(f"race detection over more than {1 << BLOCK_BITS} blocks", stage="simt")
        self._epochs = np.zeros(len(memory.blocks), np.int64)
        self._barriers, self._clocks, self._fences = self._epochs, None, self._epochs
        self._visits, self._told = {}, {}
        self._met = np.zeros((len(memory.blocks), memory.cluster), np.int64)
        self._of_clusters = np.zeros_like(self._met) if memory.cluster > 1 else None
        # Arguments live as long as the launch, other memory as long as its chunk. Two arguments may be one array.
        self._shadows = {}
        for buffer in memory.buffers:
            if buffer.writable:
                self._arguments.setdefault(_address(buffer), Shadow(buffer.data.size))
        for buffer in memory.buffers:
            self._shadows[buffer] = self._arguments.get(_address(buffer))
        self._stamp_lanes(memory)
        self._fenced_blocks.begin(self._first_block, self._stamps.shape)
        self._flights = {flight: CopiesInFlight(self._stamps.shape, partial(self._land, flight)) for flight in Flight}

    def end(self, memory: Memory) -> None:
        """Source: CUDA C++ Programming Guide, "Distributed Shared Memory"."""
        if self._of_clusters is not None:
            for flight in self._flights.values():
                for copies in flight:
                    for block in (copies.block, *(np.full_like(copies.block, row) for row, _ in copies.barriers)):
                        self._visit(copies.access, block, copies.lanes, copies.stamps[:, 0])
        for (owner, visitor), (access, thread, epoch) in self._visits.items():
            if self._of_clusters is not None and epoch < self._of_clusters[owner, visitor % memory.cluster]:
                continue
            name = memory.block_name(int(memory.blocks[owner]))
            what = (
                f"accesses {access.buffer.name} of {name}, which may have ended: no barrier of the cluster comes after"
            )
            memory.fail(access.op, (visitor, thread), what)

    def barrier(self, memory: Memory, active: Array | None) -> None:
        here = self._active_blocks(active)
        self._next_epoch(memory, here)
        self._begins(here, self._epochs)

    def _begins(self, here: Array, known: Array) -> None:
        """All threads of these blocks, bool (blocks,), know what they did before these epochs."""
        self._barriers = np.where(here, known, self._barriers)
        self._fenced_blocks.meet(self._whole(here[:, None]))
        if self._clocks is not None:
            self._clocks.whole(here, known)

    def barrier_of(self, memory: Memory, there: Array, waiting: Array) -> None:
        self._next_epoch(memory, np.logical_or.reduce(there, axis=1))
        self._by_threads().meet(there, waiting, self._epochs)
        self._fenced_blocks.meet(waiting, there)

    def arrive(self, memory: Memory, named: Sequence[Named]) -> None:
        self._next_epoch(memory, _blocks_of(named))
        self._by_threads().arrive(named, self._epochs)
        for lanes, barrier in named if self._of_clusters is not None else ():
            self._tell(memory, barrier, np.logical_or.reduce(lanes, axis=1))

    def _tell(self, memory: Memory, barrier: Barrier, rows: Array) -> None:
        """Those that see a phase of the barrier know what these blocks, bool (blocks,), did and knew; its own block has clocks."""
        assert self._of_clusters is not None
        told = self._told.setdefault(barrier, np.zeros(memory.cluster, np.int64))
        for row in np.flatnonzero(rows).tolist():
            np.maximum(told, self._of_clusters[row], out=told)
            if row != barrier[0]:
                told[row % memory.cluster] = self._epochs[row]

    def see_phase(self, memory: Memory, named: Sequence[Named]) -> None:
        self._next_epoch(memory, _blocks_of(named))
        clocks, threads = self._by_threads(), self._stamps.shape[1]
        landed = {
            barrier: np.isin(np.arange(clocks.warps), lanes % threads // WARP_SIZE)
            for barrier, lanes in self._landings.items()
        }
        clocks.see_phase(named, landed, self._epochs)
        self._landings = {}
        for lanes, barrier in named:
            self._fenced_blocks.meet(lanes)
            if self._of_clusters is not None and (told := self._told.get(barrier)) is not None:
                here = np.logical_or.reduce(lanes, axis=1)
                self._of_clusters[here] = np.maximum(self._of_clusters[here], told)
                # What has come back from another block; and what several warps did is known with what any warp did.
                back = np.where(lanes, told[barrier[0] % memory.cluster], 0)
                clocks.known = np.maximum(clocks.known, back[:, :, None])
                if told.any():
                    clocks.known[lanes, -1] = clocks.known[lanes].max(axis=-1)

    def cluster_barrier(self, memory: Memory, active: Array, relaxed: Array | None = None) -> None:
        here = np.logical_or.reduce(self._whole(active).reshape(-1, memory.cluster, active.shape[1]), axis=(1, 2))
        latest = self._epochs.reshape(-1, memory.cluster).max(axis=1).repeat(memory.cluster)
        here = here.repeat(memory.cluster)
        self._epochs = np.where(here, latest, self._epochs)
        self._next_epoch(memory, here)
        known = self._epochs
        if relaxed is not None and (here & relaxed).any():
            # What was before a fence is known; nothing else that these blocks have done.
            self._by_threads()
            known = np.where(relaxed, np.maximum(self._barriers, self._fenced_blocks.fences), known)
        told = known.reshape(-1, memory.cluster).repeat(memory.cluster, axis=0)
        self._met = np.where(here[:, None], told, self._met)

    def cluster_wait(self, memory: Memory, active: Array) -> None:
        here = self._active_blocks(active)
        self._visits = {rows: visit for rows, visit in self._visits.items() if not here[rows[0]]}
        own = np.arange(len(self._met))
        self._begins(here, np.maximum(self._barriers, self._met[own, own % memory.cluster]))
        if self._of_clusters is not None:
            self._of_clusters = np.where(here[:, None], np.maximum(self._of_clusters, self._met), self._of_clusters)

    def warp_barrier(self, memory: Memory, active: Array | None) -> None:
        self._next_epoch(memory, self._active_blocks(active))
        self._by_threads().meet_in_warps(self._whole(active), self._epochs)

    def proxy_fence(self, memory: Memory, active: Array | None) -> None:
        here = self._active_blocks(active)
        self._next_epoch(memory, here)
        self._fences = np.where(here, self._epochs, self._fences)
        self._by_threads()

    def fence(self, memory: Memory, active: Array | None) -> None:
        self.block_fence(memory, active)
        self._fenced_blocks.fence(self._whole(active), self._epochs, self._by_threads().known)

    def block_fence(self, memory: Memory, active: Array | None) -> None:
        # Where there are more than half of all epochs, those left are for barriers.
        self._next_epoch(memory, self._active_blocks(active) & (self._epochs < 1 << EPOCH_BITS - 1))
        clocks = self._by_threads()
        clocks.fences = np.where(self._whole(active), self._epochs[:, None], clocks.fences)

    def _whole(self, active: Array | None) -> Array:
        """A mask of lanes, bool (blocks, threads)."""
        return np.broadcast_to(np.True_ if active is None else active, self._stamps.shape)

    def _active_blocks(self, active: Array | None) -> Array:
        return np.logical_or.reduce(self._whole(active), axis=1)

    def _by_threads(self) -> ThreadClocks:
        """What orders threads of a block besides its barriers, from here on."""
        self._clocks = self._clocks or ThreadClocks(self._stamps.shape, self._barriers)
        return self._clocks

    def _announce(self, memory: Memory, access: Access, *, is_global: bool) -> None:
        """Before an atomic access: what threads did before their fences is announced to those who see it.

        is_global  the access is one that other blocks may see
        """
        if is_release(access.op):
            (self.block_fence if is_of_block(access.op) else self.fence)(memory, access.active)
        if self._clocks is not None:
            self._clocks.publish(self._whole(access.active))
            if is_global:
                self._fenced_blocks.announce(self._whole(access.active), self._clocks.known)

    def _see(self, lanes: Lanes, before: Array, after: Array, *, is_global: bool) -> None:
        """The lanes know what those have announced that updated the units before them, or with them; so do their blocks."""
        if self._clocks is not None and self._clocks.published is not None:
            for found in (before, np.where((after & SEVERAL) >> OP_BITS >= OF_WARP, after, 0)):
                is_own = (found >> BLOCK_SHIFT == lanes.stamps >> BLOCK_SHIFT) | (found == SEVERAL_BLOCKS)
                threads = ((found & SEVERAL) >> OP_BITS) - 1
                writers = np.where(is_own, np.where(threads < OF_WARP - 1, threads, -1), -2)
                self._clocks.see(lanes.numbers, writers, block_and_epoch(found)[1])
            looking = np.zeros(self._stamps.shape, np.bool_)
            looking.flat[lanes.numbers] = True
            self._fenced_blocks.meet(looking)
        if not (is_global and self._fenced_blocks.announced.any()):
            return
        rows, warps = (lanes.stamps >> BLOCK_SHIFT) - self._first_block, warps_of(lanes.stamps)
        for found in (before, np.where(after == SEVERAL_BLOCKS, after, 0)):
            self._fenced_blocks.see(*np.broadcast_arrays(rows, warps, *block_and_epoch(found)))

    def _next_epoch(self, memory: Memory, here: Array) -> None:
        """Accesses from here on are later than those before, in these blocks."""
        self._epochs = self._epochs + here
        if self._epochs.max() >= 1 << EPOCH_BITS:
            raise Unsupported(f"race detection over more than {1 << EPOCH_BITS} barriers", stage="simt")
        self._stamp_lanes(memory)

    def exchange(self, memory: Memory, op: Operation, absent: Array, active: Array | None) -> None:
        memory.refuse(op, absent, active, "takes a value from a lane of its warp that is not active")

    def access(self, memory: Memory, access: Access) -> None:
        buffer, key = access.buffer, (access.op, access.is_store)
        shadow = self._shadow(buffer)
        if shadow is None:
            return
        if key not in self._touches:
            self._touches[key] = touch_of(*key)
        if (touch := self._touches[key]) is None:
            return
        if touch is Touch.COPY and not buffer.is_of_block:
            touch = Touch.WRITE
        if touch is Touch.USE and not buffer.is_of_block:
            touch = Touch.READ
        shadow.refine(access.unit or access.size)
        # What an `mbarrier` orders is known where a phase of it is seen complete.
        is_flag = touch in (Touch.UPDATE, Touch.LOOK) and not isinstance(access.op, llvm.CallIntrinsicOp)
        is_global = not buffer.is_of_block
        if is_flag:
            self._announce(memory, access, is_global=is_global)
        lanes = self._lanes(memory, shadow, access)
        is_later = touch in (Touch.COPY, Touch.USE) or is_of_copy(access.op)
        if self._of_clusters is not None and access.origin is not None and not is_later:
            numbers = np.flatnonzero(self._whole(access.active))
            owners = np.broadcast_to(access.origin // buffer.stride, self._stamps.shape).reshape(-1)[numbers]
            self._visit(access, owners, numbers, lanes.stamps[:, 0])
        for earlier in IN_CONFLICT[touch]:
            if earlier in shadow.stamps:
                found = lanes.find(shadow.stamps[earlier])
                apart = (lanes.in_flight if earlier in FLYING else lanes.apart)(found)
                if apart is not None and earlier in FLYING and is_in_order(access.op):
                    ordered = [number for op, number in self._ops.items() if is_in_order(op)]
                    apart &= ~(lanes.are_own(found) & np.isin(found & OTHER_OP, ordered))
                if apart is not None and touch is earlier is Touch.WRITE and buffer.is_of_block:
                    apart &= ~self._is_there(access, lanes, found, shadow.unit)
                if apart is not None and apart.any():
                    self._race(memory, access, touch, earlier, shadow.unit, lanes, apart, found)
        is_read = touch not in (Touch.WRITE, Touch.COPY) and not only_writes(access.op)
        if buffer.is_of_block and is_read and not buffer.is_written:
            self._check_written(memory, access, shadow, lanes)
        if buffer.space is Space.SHARED and not access.is_store and is_asynchronous(access.op):
            self._check_fenced(memory, access, shadow, lanes)
        if touch in (Touch.WRITE, Touch.COPY):
            stamps = shadow.of(touch)
            stamps[lanes.units] = lanes.stamps
            found = lanes.find(stamps)
            if (apart := found != lanes.stamps).any():
                together = apart & self._same_in_block(access, lanes, found, shadow.unit)
                if (apart & ~together).any():
                    self._race(memory, access, touch, touch, shadow.unit, lanes, apart & ~together, found)
                of_block = together & (warps_of(found) != warps_of(lanes.stamps))
                stamps[lanes.units[together]] = np.broadcast_to(of_warp(lanes.stamps), together.shape)[together]
                stamps[lanes.units[of_block]] = np.broadcast_to(lanes.stamps | SEVERAL, of_block.shape)[of_block]
            if touch is Touch.COPY:
                self._issue(access, shadow, lanes, touch)
        elif touch is Touch.USE:
            join(shadow.of(Touch.READ), lanes)
            shadow.of(touch)[lanes.units] = lanes.stamps
            self._issue(access, shadow, lanes, touch)
        else:
            is_seen = is_flag and (self._clocks is not None or self._fenced_blocks.announced.any())
            before = lanes.find(shadow.of(Touch.UPDATE)) if is_seen else None
            if is_flag:
                self._check_strength(memory, access, touch, shadow, lanes)
            join(shadow.of(touch), lanes)
            if before is not None:
                self._see(lanes, before, lanes.find(shadow.of(Touch.UPDATE)), is_global=is_global)

    def _visit(self, access: Access, owners: Array, numbers: Array, stamps: Array) -> None:
        """Threads, counted through all blocks, access memory of the blocks `owners`."""
        rows, threads = np.divmod(numbers, self._stamps.shape[1])
        _, epochs = block_and_epoch(stamps)
        for at in np.flatnonzero(owners != rows).tolist():
            key, epoch = (int(owners[at]), int(rows[at])), int(epochs[at])
            if key not in self._visits or self._visits[key][2] <= epoch:
                self._visits[key] = access, int(threads[at]), epoch

    # ------------------------------------------------------------------------------------------ asynchronous accesses

    def _issue(self, access: Access, shadow: Shadow, lanes: Lanes, touch: Touch) -> None:
        flight, starts, op = flight_of(access.op, touch), lanes.units * shadow.unit, access.op
        numbers, block = np.flatnonzero(self._whole(access.active)), starts[:, 0] // access.buffer.stride
        is_bulk = flight is Flight.TENSOR or (flight is Flight.COPY and not isinstance(op, CpAsyncOp))
        where = (access, shadow, starts, shadow.unit, block, numbers, numbers, self._ops[op], lanes.stamps)
        self._flights[flight].issue(Copies(*where, is_bulk, touch is Touch.COPY))

    def _land(self, flight: Flight, copies: Copies) -> None:
        """What is complete has written or read, now."""
        shadow, units, stamps, lanes = self._landed(flight, copies)
        if self._of_clusters is not None:
            self._visit(copies.access, copies.block, lanes, stamps[:, 0])
        if flight is Flight.PRODUCT:
            self._ended.append((lanes, block_and_epoch(copies.stamps[:, 0])[1]))
        flying = shadow.of(Touch.COPY if copies.writes else Touch.USE)
        # What was issued behind it, in order, is in flight still.
        flying[units] = np.where(flying[units] == copies.stamps, 0, flying[units])
        if copies.writes:
            shadow.of(Touch.WRITE)[units] = stamps
        else:
            self._used(shadow, units, stamps)
        if self._is_landing:
            for barrier in copies.barriers:
                before = self._landings.get(barrier, np.zeros(0, np.int64))
                # Those of another block are known by its arrival alone.
                self._landings[barrier] = np.append(before, lanes[lanes // self._stamps.shape[1] == barrier[0]])

    def _used(self, shadow: Shadow, units: Array, stamps: Array) -> None:
        """Units have been read, now; beside another reader since the last barrier, several have."""
        read = shadow.of(Touch.READ)
        before = read[units]
        is_other = (before >> EPOCH_SHIFT == stamps >> EPOCH_SHIFT) & ((before ^ stamps) >> OP_BITS != 0)
        read[units] = np.where(is_other, stamps | SEVERAL, stamps)

    def _landed(self, flight: Flight, copies: Copies) -> tuple[Shadow, Array, Array, Array]:
        """The shadow, the units, the stamps of what is complete, and the lanes whose they are.

        A copy counts as written by the thread of the same number in the block of the barrier that it completes. What a product does in
        another block is known there by the arrival of the thread that issued it, as what this one did before.
        """
        shadow: Shadow = copies.shadow
        units = copies.starts[..., None] // shadow.unit + np.arange(copies.unit // shadow.unit)
        threads = self._stamps.shape[1]
        block = copies.barriers[0][0] if flight is Flight.COPY and copies.barriers else copies.block
        lanes = block * threads + copies.lanes % threads
        stamps = (self._stamps.reshape(-1)[lanes] + copies.op)[:, None]
        if flight is Flight.TENSOR:
            stamps, lanes = np.where((lanes == copies.lanes)[:, None], stamps, copies.stamps), copies.lanes
        return shadow, units.reshape(len(units), -1), stamps, lanes

    def commit_group(self, memory: Memory, lanes: Array, flight: Flight) -> None:
        self._flights[flight].commit(lanes)

    def await_groups(self, memory: Memory, lanes: Array, most: int, flight: Flight) -> None:
        self._ended.clear()
        self._flights[flight].await_groups(lanes, most)
        if self._ended:
            # A product is of a whole warpgroup: none of its warps sees it complete before all have begun it.
            threads, epochs = (np.concatenate(each) for each in zip(*self._ended, strict=True))
            self._by_threads().meet_in_groups(lanes, threads, epochs)
            self._fenced_blocks.meet(lanes)

    def complete_by(
        self, memory: Memory, lanes: Array, barrier: Barrier, flight: Flight, *, is_bulk: bool, of_pair: bool = False
    ) -> None:
        again = flight is Flight.TENSOR
        self._flights[flight].complete_by(lanes, barrier, is_bulk=is_bulk, again=again, of_pair=of_pair)

    def phase_ends(self, memory: Memory, barrier: Barrier) -> None:
        self._is_landing = True
        for flight in (Flight.COPY, Flight.TENSOR):
            self._flights[flight].phase_ends(barrier)
        self._is_landing = False

    def unwaited(self, memory: Memory, op: Operation, active: Array | None, register: str) -> None:
        always = np.ones((1, 1), np.bool_)
        memory.refuse(op, always, active, f"uses {register}, which a wgmma writes, without wgmma.wait_group")

    def copy(self, memory: Memory, access: Access) -> None:
        self.access(memory, access)

    def _parts(self, access: Access, given: Array, unit: int) -> tuple[Array, Array]:
        """The bytes that all lanes write, uint8 (lanes, units of each, bytes), and the active ones among the lanes."""
        shape, values = self._stamps.shape, np.ascontiguousarray(given).view(np.uint8)
        values = np.broadcast_to(values.reshape(*given.shape[:2], -1), (*shape, access.size))
        lane: Array = np.arange(self._stamps.size).reshape(shape)
        own = (lane if access.active is None else lane[np.broadcast_to(access.active, shape)]).reshape(-1)
        return values.reshape(lane.size, access.size // unit, unit), own

    def _is_there(self, access: Access, lanes: Lanes, found: Array, unit: int) -> Array | np.bool_:
        """Mask of the units that already hold what a store of PTX writes, from the lane's block: decision 34."""
        if access.values is None or not isinstance(access.op, llvm.StoreOp):
            return np.False_
        parts, own = self._parts(access, access.values, unit)
        held = access.buffer.data[lanes.units[..., None] * unit + np.arange(unit)]
        return (found >> BLOCK_SHIFT == lanes.stamps >> BLOCK_SHIFT) & (parts[own] == held).all(axis=-1)

    def _same_in_block(self, access: Access, lanes: Lanes, found: Array, unit: int) -> Array:
        """Mask of the units to which the lane of the stamp in `found`, of the same block, writes the same bytes in the same instruction."""
        if access.values is None:
            return np.zeros(found.shape, np.bool_)
        shape, (parts, own) = self._stamps.shape, self._parts(access, access.values, unit)
        block, thread = (found >> BLOCK_SHIFT) - self._first_block, ((found & SEVERAL) >> OP_BITS) - 1
        same_block = found >> BLOCK_SHIFT == lanes.stamps >> BLOCK_SHIFT
        is_lane = same_block & (thread >= 0) & (thread < shape[1])
        other = np.where(is_lane, block * shape[1] + thread, own[:, None])
        row, piece = np.zeros(len(parts), np.int64), np.arange(lanes.units.shape[1], dtype=np.int64)
        row[own] = np.arange(len(own))
        is_same = (parts[own] == parts[other, piece]).all(axis=-1)
        return is_lane & is_same & (lanes.units[row[other], piece] == lanes.units)

    # ------------------------------------------------------------------------------------------ state

    def _stamp_lanes(self, memory: Memory) -> None:
        blocks = np.arange(self._first_block, len(self._blocks), dtype=np.int64)
        starts = (blocks << BLOCK_SHIFT) + (self._epochs << EPOCH_SHIFT)
        threads = np.arange(1, memory.launch.threads + 1, dtype=np.int64)
        self._stamps = starts[:, None] + (threads << OP_BITS)

    def _shadow(self, buffer: Buffer) -> Shadow | None:
        if buffer not in self._shadows:
            has_one = buffer.writable and buffer.space is not Space.PRIVATE
            shadow = Shadow(buffer.data.size) if has_one else None
            if shadow is not None and buffer.is_of_block:
                # The next chunk's blocks use the same memory.
                shadow = self._shared.setdefault((buffer.number, buffer.data.size), shadow)
            self._shadows[buffer] = shadow
        return self._shadows[buffer]

    def _lanes(self, memory: Memory, shadow: Shadow, access: Access) -> Lanes:
        units, unit = access.offsets, shadow.unit
        if (origin := access.buffer.origin if access.origin is None else access.origin) is not None:
            units = units + origin
        # A division takes ten times as long as a shift, and most units are powers of two.
        units = units // unit if unit & (unit - 1) else units >> (unit.bit_length() - 1)
        units = np.broadcast_to(units, self._stamps.shape)
        stamps = self._stamps + self._ops.setdefault(access.op, min(len(self._ops), OTHER_OP))
        active = None if access.active is None else np.broadcast_to(access.active, self._stamps.shape)

        def column(values: Array) -> Array:
            return (values if active is None else values[active]).reshape(-1, 1)

        units, stamps = column(units), column(stamps)
        numbers = column(np.arange(self._stamps.size).reshape(self._stamps.shape)) if self._clocks else stamps
        if access.size > unit:
            units = units + np.arange(access.size // unit)
        if access.pieces is not None:
            units = (units[:, None, :] + (access.pieces // unit)[:, None]).reshape(len(units), -1)
        is_shared = access.buffer.is_of_block
        fenced = None if is_shared else self._fenced_blocks
        return Lanes(
            *(units, stamps, self._clocks, numbers, is_shared, memory.cluster),
            *(self._of_clusters, self._first_block, fenced),
        )

    # ------------------------------------------------------------------------------------------ faults

    def _check_strength(self, memory: Memory, access: Access, touch: Touch, shadow: Shadow, lanes: Lanes) -> None:
        """Two atomic accesses are a race unless the scope of each has the other's thread, and both are of the same bytes.

        Source: PTX ISA 8.8, 8.7.1 "Moral strength".
        """
        is_update, is_own = touch is Touch.UPDATE, is_of_block(access.op)
        others = (Touch.UPDATE, Touch.LOOK) if is_update else (Touch.UPDATE,)
        if is_own:
            for earlier in others:
                self._check_blocks(memory, access, touch, shadow, lanes, earlier)
            if is_update:
                join(shadow.of(Touch.BLOCK_UPDATE), lanes)
        self._check_blocks(memory, access, touch, shadow, lanes, Touch.BLOCK_UPDATE)
        width = bytes_of_update(access.op)
        for earlier in others if width else ():
            if earlier not in shadow.widths:
                continue
            widths = shadow.widths[earlier].take(lanes.units)
            if (differs := (widths != width) & (widths != 0)).any():
                found = lanes.find(shadow.of(earlier))
                if (apart := lanes.apart(found)) is not None and (apart := apart & differs).any():
                    past = f"{earlier.past} {widths.reshape(-1)[int(apart.argmax())]} bytes at a time, not {width}"
                    self._race(memory, access, touch, earlier, shadow.unit, lanes, apart, found, past)
        shadow.widths.setdefault(touch, np.zeros(shadow.of(touch).shape, np.uint8))[lanes.units] = width

    def _check_blocks(
        self, memory: Memory, access: Access, touch: Touch, shadow: Shadow, lanes: Lanes, earlier: Touch
    ) -> None:
        """As `_check_strength`, for threads of other blocks."""
        if earlier not in shadow.stamps:
            return
        found = lanes.find(shadow.stamps[earlier])
        apart = lanes.apart(found)
        if apart is not None and (apart := apart & (found >> BLOCK_SHIFT != lanes.stamps >> BLOCK_SHIFT)).any():
            kind = Touch.BLOCK_UPDATE if touch is Touch.UPDATE and is_of_block(access.op) else touch
            self._race(memory, access, kind, earlier, shadow.unit, lanes, apart, found)

    def _check_written(self, memory: Memory, access: Access, shadow: Shadow, lanes: Lanes) -> None:
        nobody = np.ones(lanes.units.shape, np.bool_)
        for touch in (Touch.WRITE, Touch.UPDATE, Touch.COPY):
            if touch in shadow.stamps:
                nobody &= lanes.find(shadow.stamps[touch]) < lanes.first_of_cluster
        if nobody.any():
            lane, place = _first(self._stamps.shape, access, shadow.unit, nobody)
            try:
                memory.fail(access.op, lane, f"reads {place} of {access.buffer.name}, which no thread wrote")
            except ExecutionError as error:
                if not (
                    self.keeps_unwritten
                    and access.buffer.space is Space.SHARED
                    and touch_of(access.op, False) is Touch.READ
                ):
                    raise
                self.unwritten = self.unwritten or error

    def _check_fenced(self, memory: Memory, access: Access, shadow: Shadow, lanes: Lanes) -> None:
        """Asynchronous reads of what a block has stored need fence.proxy.async in between; of what `cp.async` wrote nothing is asked.

        Source: PTX ISA 8.8, 9.7.9.25.2 "Async proxy".
        """
        if Touch.WRITE not in shadow.stamps:
            return
        found = lanes.find(shadow.stamps[Touch.WRITE])
        fenced = self._fences[(lanes.stamps >> BLOCK_SHIFT) - self._first_block] << EPOCH_SHIFT
        late = (found >= lanes.first_of_block + fenced) & (found >> BLOCK_SHIFT == lanes.stamps >> BLOCK_SHIFT)
        if late.any():
            copies = (llvm.CallIntrinsicOp, CpAsyncOp)
            generic = [number for op, number in self._ops.items() if not isinstance(op, copies)]
            late &= np.isin(found & OTHER_OP, generic)
        if late.any():
            lane, place = _first(self._stamps.shape, access, shadow.unit, late)
            who = self._who(memory, int(found.reshape(-1)[int(late.argmax())]), lane)
            what = f"reads {place} of {access.buffer.name}, which {who} wrote without fence.proxy.async after it"
            memory.fail(access.op, lane, what)

    def _race(
        self,
        memory: Memory,
        access: Access,
        touch: Touch,
        earlier: Touch,
        unit: int,
        lanes: Lanes,
        apart: Array,
        found: Array,
        past: str = "",
    ) -> NoReturn:
        lane, place = _first(self._stamps.shape, access, unit, apart)
        stamp = int(found.reshape(-1)[int(apart.argmax())])
        number = stamp & OTHER_OP
        others = [op for op, known in self._ops.items() if known == number and stamp != SEVERAL_BLOCKS]
        details = [f"the other access: {_named(others[0])}"] if len(others) == 1 else []
        who = self._who(memory, stamp, lane)
        begins, did = touch.value, past or earlier.past
        if access.buffer.space is Space.TENSOR:
            # Products and stores write it, not copies alone.
            begins, did = begins.replace("copy to", "write"), did.replace("copies", "writes")
        what = f"{begins} {place} of {access.buffer.name}, which {who} {did}: a race"
        memory.fail(access.op, lane, what, details)

    def _who(self, memory: Memory, stamp: int, lane: tuple[int, int]) -> str:
        if stamp == SEVERAL_BLOCKS:
            return "threads of several blocks"
        block, thread = stamp >> BLOCK_SHIFT, (stamp & SEVERAL) >> OP_BITS
        name = "threads" if thread >= OF_WARP else memory.thread_name(thread - 1)
        is_own = block == self._first_block + lane[0]
        return f"{name} of {'its block' if is_own else memory.block_name(self._blocks[block])}"


def _blocks_of(named: Sequence[Named]) -> Array:
    """Mask of the blocks whose threads are named."""
    return np.logical_or.reduce([lanes.any(axis=1) for lanes, _ in named])


def _first(shape: tuple[int, ...], access: Access, unit: int, bad: Array) -> tuple[tuple[int, int], str]:
    """The first lane in `bad` (lanes, units of each), and the text that names its bytes."""
    row, column = divmod(int(bad.argmax()), bad.shape[1])
    if access.active is not None:
        row = int(np.flatnonzero(np.broadcast_to(access.active, shape))[row])
    block, thread = divmod(row, shape[1])
    start = int(np.broadcast_to(access.offsets, shape)[block, thread])
    if access.pieces is None:
        start += column * unit
    else:
        piece, rest = divmod(column, max(1, access.size // unit))
        start += int(access.pieces[piece]) + rest * unit
    return (block, thread), access.buffer.place(start, unit)


def _address(buffer: Buffer) -> int:
    return buffer.data.ctypes.data


def _named(op: Operation) -> str:
    place = place_of(op)
    return f"{op.name} from {place}" if place else str(op).splitlines()[0]


class SanitizerOfLaunches(Sanitizer):
    """A sanitizer for each launch of several: the end of one orders all of its accesses before the next."""

    def begin(self, memory: Memory) -> None:
        if memory.blocks[0] == 0:
            self.restart()
        super().begin(memory)
