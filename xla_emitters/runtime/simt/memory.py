"""Memory of one chunk of blocks: buffers, addresses that are plain numbers, and checked access for all lanes at once.

    address   0x10000000100 ─┐  0x20000000010 ─┐              one window of 2**40 bytes per buffer, so that an address
    buffer    ├──── arg0 ────┤  ├──── arg1 ────┤  ...         names its buffer, and no wrong offset reaches the next one

    space     kept as                          a lane sees
    global    one array for all blocks         that array
    shared    one instance per block           its block's instance
    tensor    one instance per block           its block's instance: 128 lanes of 512 columns, which only `tcgen05` accesses
    private   one instance per thread          its own

A buffer has exactly the alignment that it promises (argument attribute `llvm.align`), never a greater one, so that an access that
assumes more is caught. Shared buffers lie one behind the other in the lower bits of their addresses, as in hardware: descriptors of
matrices hold 18 bits. Every access names its op; one outside its buffer raises ExecutionError with the op, the thread, the index
and the size. The indices of inactive lanes are garbage and are never used.

All reads and writes use `gather`, `scatter` and `accumulate`. Watchers are called at each access, barrier and exchange: enough to find
races (`sanitizer`), to count bank conflicts (`access_counts`), and to record what a sample of blocks wrote (`execute.written_elements`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeAlias

import numpy as np
from xdsl.ir import Operation

from xla_emitters.dialects.locations import place_of
from xla_emitters.dialects.mlir.gpu import RANK_SHIFTS, ranks_of
from xla_emitters.dtypes import Array
from xla_emitters.errors import ExecutionError, InternalError
from xla_emitters.program import LaunchDimensions

if TYPE_CHECKING:
    from xla_emitters.runtime.simt.copies_in_flight import Flight

P = ParamSpec("P")
WINDOW_BITS = RANK_SHIFTS[64]
HALF_WINDOW = 1 << (WINDOW_BITS - 1)

MOST_BYTES = 1 << 32
"""Limit of the shared or private memory of one chunk for one variable."""

UNWRITTEN = 0xA5
"""Each byte of fresh memory: unlikely as a result."""

SHARED_START = 1024
"""Where shared memory begins for a kernel: hardware keeps the bytes before."""

_SCATTER_UNITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}
"""Row size in bytes -> NumPy type that moves such a row at once; complex128 is only a box of 16 bytes."""


def address_of(number: int, alignment: int) -> int:
    """Where buffer `number` begins, unless it is shared memory."""
    return (number + 1 << WINDOW_BITS) + alignment


TENSOR_LANES, TENSOR_COLUMNS = 128, 512
"""Tensor memory of a block: cells of 32 bits, here column by column."""


class Space(Enum):
    GLOBAL = "global"
    SHARED = "shared"
    PRIVATE = "private"
    TENSOR = "tensor"


OF_BLOCK = (Space.SHARED, Space.TENSOR)


@dataclass(eq=False)
class Buffer:
    """Some bytes that pointers and tensors refer to.

    number      its place in `Memory.buffers`
    data        uint8[instances * stride]
    size        bytes of one instance
    stride      bytes from one instance to the next; in shared memory a multiple of 16, so that accesses of any width divide it
    base        address of the first byte
    origin      int64 (blocks or 1, threads or 1): where a lane's instance starts in `data`, in bytes; None when there is one instance
    writable    False for arguments marked invariant and for constants
    newest      stamp of the newest tensor value in this buffer; see `Machine.check_newest`
    is_written  whether it is shared memory that has a value before a thread writes it
    """

    number: int
    name: str
    space: Space
    data: Array
    size: int
    stride: int
    base: int
    origin: Array | None
    writable: bool
    newest: int = 0
    is_written: bool = False

    @property
    def end(self) -> int:
        return self.base + self.size

    @property
    def is_of_block(self) -> bool:
        """Whether each block has its own instance."""
        return self.space in OF_BLOCK

    def place(self, start: int, unit: int) -> str:
        """The name of some bytes."""
        if self.space is Space.TENSOR:
            return f"lane {start // 4 % TENSOR_LANES}, column {start // 4 // TENSOR_LANES}"
        return f"byte {start}" if unit == 1 else f"bytes {start} to {start + unit - 1}"


@dataclass(frozen=True)
class Access:
    """One load or store, as watchers see it. It is inside the buffer for every active lane.

    is_store  an update (atomic: one op reads and writes) is a store, preceded or not by a read of the same bytes
    offsets   byte offsets into the buffer's instance, (blocks or 1, threads or 1); multiples of `size`
    size      bytes that each lane moves
    active    lanes that take part; None is all
    values    what a store writes, if that is known: (blocks or 1, threads or 1[, elements])
    origin    where each lane's instance starts in the buffer's data, where it is not the lane's own; None: as the buffer says
    pieces    of a copy that one lane issues: further offsets, each of `size` bytes, in place of one; multiples of `unit`
    """

    op: Operation
    buffer: Buffer
    is_store: bool
    offsets: Array
    size: int
    active: Array | None
    values: Array | None = None
    origin: Array | None = None
    pieces: Array | None = None
    unit: int = 0


Named: TypeAlias = tuple[Array, tuple[int, int]]
"""Threads, bool (blocks, threads), that name one `mbarrier`: row of its block, and place in it."""


class Watcher:
    """Base class: called at the accesses, barriers and exchanges of a chunk; its methods do nothing."""

    def restart(self) -> None:
        """The launch begins anew, with the arguments as they were: what was seen does not count."""

    def begin(self, memory: Memory) -> None:
        """A chunk is about to run; its arguments are buffers 0, 1 ... of `memory`."""

    def end(self, memory: Memory) -> None:
        """All threads of the chunk have ended."""

    def access(self, memory: Memory, access: Access) -> None:
        """Active lanes are about to read or write."""

    def copy(self, memory: Memory, access: Access) -> None:
        """Lanes are about to read or write `pieces`; by default, accesses of one after the other, but of tensor memory nothing."""
        assert access.pieces is not None
        for piece in access.pieces.tolist() if access.buffer.space is not Space.TENSOR else ():
            self.access(memory, replace(access, offsets=access.offsets + piece, pieces=None))

    def barrier(self, memory: Memory, active: Array | None) -> None:
        """Whole blocks have reached a barrier."""

    def barrier_of(self, memory: Memory, there: Array, waiting: Array) -> None:
        """Some threads of blocks have met, bool (blocks, threads), of which `waiting` have waited for all of them."""

    def arrive(self, memory: Memory, named: Sequence[Named]) -> None:
        """Threads have arrived at an `mbarrier`, of their block or of another one of its cluster."""

    def see_phase(self, memory: Memory, named: Sequence[Named]) -> None:
        """Threads have seen that a phase of an `mbarrier` of their block is complete; after `phase_ends`."""

    def cluster_barrier(self, memory: Memory, active: Array, relaxed: Array | None = None) -> None:
        """Whole clusters have reached a barrier. relaxed: blocks of which no thread released its accesses there, bool (blocks,)"""

    def cluster_wait(self, memory: Memory, active: Array) -> None:
        """Threads have waited for the last such barrier of their cluster."""
        self.barrier(memory, active)

    def warp_barrier(self, memory: Memory, active: Array | None) -> None:
        """The active threads of each warp have met."""

    def proxy_fence(self, memory: Memory, active: Array | None) -> None:
        """What blocks have written to shared memory may be read asynchronously from here on."""

    def fence(self, memory: Memory, active: Array | None) -> None:
        """The active threads' accesses so far are ordered before the later ones, as all threads see them."""

    def block_fence(self, memory: Memory, active: Array | None) -> None:
        """The same, as threads of their blocks see them."""

    def exchange(self, memory: Memory, op: Operation, absent: Array, active: Array | None) -> None:
        """Active lanes take values of other lanes of their warp; `absent` marks lanes whose source lane is inactive."""

    def commit_group(self, memory: Memory, lanes: Array, flight: Flight) -> None:
        """What these threads, bool (blocks, threads), have issued asynchronously since the last call is a group."""

    def await_groups(self, memory: Memory, lanes: Array, most: int, flight: Flight) -> None:
        """These threads wait until at most so many of their groups are in flight."""

    def complete_by(
        self,
        memory: Memory,
        lanes: Array,
        barrier: tuple[int, int],
        flight: Flight,
        *,
        is_bulk: bool,
        of_pair: bool = False,
    ) -> None:
        """What these threads have issued so far, in bulk or not, completes an `mbarrier`: row of its block, and where.

        of_pair  also what was issued to the other block of the barrier's pair
        """

    def phase_ends(self, memory: Memory, barrier: tuple[int, int]) -> None:
        """A thread has seen a phase of an `mbarrier` complete."""

    def unwaited(self, memory: Memory, op: Operation, active: Array | None, register: str) -> None:
        """Active lanes use a register that a `wgmma` writes without having waited for it."""


@dataclass
class Memory:
    """Buffers of one chunk.

    launch     grid and block, to name threads
    blocks     linear numbers of the blocks in the chunk, int64 (blocks,)
    watchers   called at each access
    changes    number of writes and barriers so far: while it is the same, memory is the same
    changeable_reads   number of reads so far of buffers that can be written
    barriers   number of a barrier of blocks -> its state
    launch_shared_bytes   dynamic shared memory of a block, set by the launch: the size of a shared global without elements
    shared_end   the lower bits of the first address behind all shared buffers
    frames       the buffers of the calls that run, those of the innermost last, each with (size, alignment)
    unused       (size, alignment) -> buffers of calls that have ended
    cluster      blocks of a cluster; those of one are neighbours in `blocks`
    exited       lanes that have ended
    tensor       what blocks have of tensor memory, once they have any
    unwritten    what each byte of shared and private memory is that nobody wrote
    """

    launch: LaunchDimensions
    blocks: Array
    watchers: Sequence[Watcher] = ()
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    of_op: dict[Operation, Buffer] = field(default_factory=dict[Operation, Buffer])
    changes: int = 0
    changeable_reads: int = 0
    barriers: dict[int, Any] = field(default_factory=dict[int, Any])
    launch_shared_bytes: int = 0
    shared_end: int = SHARED_START
    frames: list[tuple[tuple[int, int], Buffer]] = field(default_factory=list[tuple[tuple[int, int], Buffer]])
    unused: dict[tuple[int, int], list[Buffer]] = field(default_factory=dict[tuple[int, int], list[Buffer]])
    cluster: int = 1
    exited: Array | None = None
    tensor: Any = None
    unwritten: int = UNWRITTEN

    def tell(self, event: Callable[Concatenate[Any, Memory, P], None], *about: P.args, **how: P.kwargs) -> None:
        """Calls a method of all watchers."""
        for watcher in self.watchers:
            getattr(watcher, event.__name__)(self, *about, **how)

    def add(self, name: str, data: Array, alignment: int, writable: bool = True) -> Buffer:
        """A global buffer over `data` (uint8, flat): no copy."""
        return self._add(name, Space.GLOBAL, data, data.size, alignment, None, writable)

    def allocate(self, name: str, space: Space, size: int, alignment: int) -> Buffer:
        """A fresh shared or private buffer of `size` bytes for each block or thread, filled with `unwritten`."""
        blocks, threads = len(self.blocks), self.launch.threads
        if space in OF_BLOCK:
            stride = -(-size // 16) * 16
            origin = np.arange(blocks, dtype=np.int64)[:, None] * stride
        else:
            stride = size
            origin = np.arange(blocks * threads, dtype=np.int64).reshape(blocks, threads) * stride
        if (total := origin.size * stride) > MOST_BYTES:
            owners = f"{blocks * threads} threads" if space is Space.PRIVATE else f"{blocks} blocks"
            raise ExecutionError(f"{name} takes {total} bytes in {owners}, more than {MOST_BYTES}", stage="simt")
        # Few columns of tensor memory are allocated: the others take no memory.
        data = np.empty(total, np.uint8) if space is Space.TENSOR else np.full(total, self.unwritten, np.uint8)
        return self._add(name, space, data, size, alignment, origin, True, stride)

    def allocate_in_call(self, name: str, size: int, alignment: int) -> Buffer:
        """A private buffer until `end_call`: one of a call before, if there is one of this size and alignment."""
        if unused := self.unused.get((size, alignment)):
            buffer = unused.pop()
            buffer.data.fill(self.unwritten)
        else:
            buffer = self.allocate(name, Space.PRIVATE, size, alignment)
        self.frames.append(((size, alignment), buffer))
        return buffer

    def end_call(self, frames: int) -> None:
        """Frees the buffers of a call that began when there were so many in `frames`."""
        for key, buffer in self.frames[frames:]:
            self.unused.setdefault(key, []).append(buffer)
        del self.frames[frames:]

    def once(self, op: Operation, make: Callable[[], Buffer]) -> Buffer:
        """The buffer of `op`, such as a constant or a global; `make` is called for it once."""
        if op not in self.of_op:
            self.of_op[op] = make()
        return self.of_op[op]

    def _add(
        self,
        name: str,
        space: Space,
        data: Array,
        size: int,
        alignment: int,
        origin: Array | None,
        writable: bool,
        stride: int = 0,
    ) -> Buffer:
        place = alignment
        if space is Space.SHARED:
            # The first odd multiple of the alignment that is free.
            place = (-(-self.shared_end // alignment) | 1) * alignment
            self.shared_end = place + size
        windows = ranks_of(self.cluster) if space in OF_BLOCK else 1
        while (len(self.buffers) + 1) % windows:
            self._add("no memory", Space.GLOBAL, data[:0], 0, 16, None, False)
        base = address_of(len(self.buffers), place)
        buffer = Buffer(len(self.buffers), name, space, data, size, stride or size, base, origin, writable)
        self.buffers += [buffer] * windows
        return buffer

    # ------------------------------------------------------------------------------------------ addresses

    def buffers_at(self, op: Operation, addresses: Array, active: Array | None) -> list[tuple[Buffer, Array | None]]:
        """The buffers that active lanes point into, each with the lanes that do; nearly every access has one.

        raises ExecutionError for an address that belongs to no buffer, such as null.
        """
        low, high = ((address + HALF_WINDOW) >> WINDOW_BITS for address in bounds(addresses, active))
        if low == high and 1 <= low <= len(self.buffers):
            return [(self.buffers[low - 1], active)]
        windows = (addresses + HALF_WINDOW) >> WINDOW_BITS
        nowhere = (windows < 1) | (windows > len(self.buffers))
        if (nowhere if active is None else nowhere & active).any():
            lane = _first(nowhere, active)
            address = int(np.broadcast_to(addresses, self._shape(addresses, active))[lane])
            self.fail(op, lane, f"uses address {address:#x}, which belongs to no buffer")
        found: list[tuple[Buffer, Array | None]] = []
        for window in range(low, high + 1):
            lanes = windows == window if active is None else active & (windows == window)
            if found and found[-1][0] is self.buffers[window - 1]:
                found[-1] = found[-1][0], found[-1][1] | lanes
            elif lanes.any():
                found.append((self.buffers[window - 1], lanes))
        return found if len(found) > 1 else [(found[0][0], active)]

    # ------------------------------------------------------------------------------------------ access

    def gather(
        self,
        op: Operation,
        buffer: Buffer,
        index: Array,
        element: np.dtype[Any],
        active: Array | None,
        count: int | None = None,
    ) -> Array:
        """For each active lane the element, or the row of `count` elements, of its index; the values of other lanes are undefined.

        index   int64 (blocks or 1, threads or 1), in elements, or rows, of the lane's instance
        returns (blocks or 1, threads or 1[, elements of a row])
        """
        rows = self.view(buffer, element, count)
        index = self._checked(op, buffer, index, rows, active, False)
        self.changeable_reads += buffer.writable
        if rows.shape[0] == 0:
            return np.zeros((*index.shape, *rows.shape[1:]), rows.dtype)
        return rows.take(index, axis=0, mode="clip")

    def scatter(self, op: Operation, buffer: Buffer, index: Array, values: Array, active: Array | None) -> None:
        """Each active lane writes its element, or its row; the shapes are those of `gather`, with whole rows in `values`.

        If several lanes have one index the last one wins (block by block, thread by thread).
        """
        _check_writable(op, buffer)
        rows = self._view_as(buffer, values)
        index = self._checked(op, buffer, index, rows, active, True, values)
        self.changes += active is None or bool(active.any())
        if rows.ndim == 2:
            unit = _SCATTER_UNITS.get(rows.itemsize * rows.shape[1])
            if unit is None:
                for element in range(rows.shape[1]):
                    _assign(rows[:, element], index, values[..., element], active)
                return
            rows, values = rows.view(unit)[:, 0], np.ascontiguousarray(values).view(unit)[..., 0]
        _assign(rows, index, values, active)

    def accumulate(
        self, op: Operation, buffer: Buffer, ufunc: np.ufunc, index: Array, values: Array, active: Array | None
    ) -> None:
        """Combines memory with the lanes' values by `ufunc`, one active lane after the other, block by block, thread by thread.

        values  as for `scatter`
        """
        _check_writable(op, buffer)
        rows = self._view_as(buffer, values)
        index = self._checked(op, buffer, index, rows, active, True)
        self.changes += 1
        shape = (len(self.blocks), self.launch.threads)
        index, values = np.broadcast_to(index, shape), np.broadcast_to(values, shape + rows.shape[1:])
        if active is not None:
            active = np.broadcast_to(active, shape)
            index, values = index[active], values[active]
        ufunc.at(rows, index.reshape(-1), values.reshape(-1, *rows.shape[1:]))

    def view(self, buffer: Buffer, element: np.dtype[np.generic], count: int | None = None) -> Array:
        """The buffer's bytes as elements, or as rows of `count` elements; bytes at the end that fill no row are left out.

        raises InternalError when the instances of a shared or private buffer do not consist of whole rows.
        """
        row = element.itemsize * (count or 1)
        if buffer.origin is not None and buffer.stride % row:
            raise InternalError(f"{buffer.size} bytes of {buffer.name} do not divide into rows of {row}", stage="simt")
        whole = buffer.data[: buffer.data.size // row * row].view(element)
        return whole if count is None else whole.reshape(-1, count)

    def _view_as(self, buffer: Buffer, values: Array) -> Array:
        """The view into which lanes write such values: (blocks or 1, threads or 1[, elements of a row])."""
        return self.view(buffer, values.dtype, values.shape[2] if values.ndim == 3 else None)

    def _checked(
        self,
        op: Operation,
        buffer: Buffer,
        index: Array,
        rows: Array,
        active: Array | None,
        is_store: bool,
        values: Array | None = None,
    ) -> Array:
        """`index` into the whole of `rows`, in bounds for every lane. raises ExecutionError if an active lane's is outside its instance."""
        row = rows.itemsize * (rows.shape[1] if rows.ndim == 2 else 1)
        limit, origin = buffer.size // row, buffer.origin
        if active is not None:
            index = np.where(active, index, 0)
        if self.cluster > 1 and buffer.is_of_block:
            blocks, offset = self.placed(index * row)
            index, origin = offset // row, blocks * buffer.stride
        if not all_below(index, limit) and (active is None or active.any()):
            self._out_of_bounds(op, buffer, index, row, limit, active, is_store)
        if self.watchers:
            self.tell(Watcher.access, Access(op, buffer, is_store, index * row, row, active, values, origin))
        return index if origin is None else index + origin // row

    @property
    def own_rank(self) -> Array:
        """What each block's addresses of its memory have beside those of a cluster's first block: int64 (blocks or 1, 1)."""
        if self.cluster == 1:
            return np.zeros((1, 1), np.int64)
        return np.arange(len(self.blocks))[:, None] % self.cluster << WINDOW_BITS

    def start_of(self, buffer: Buffer) -> Array:
        """Where each block has the buffer: int64 (blocks or 1, 1)."""
        return buffer.base + self.own_rank if buffer.is_of_block else np.full((1, 1), buffer.base)

    def of_rank(self, addresses: Array, rank: Array | int) -> Array:
        """The same addresses in the block of that rank."""
        return addresses & ~(ranks_of(self.cluster) - 1 << WINDOW_BITS) | rank << WINDOW_BITS

    def placed(self, addresses: Array) -> tuple[Array, Array]:
        """In whose block's memory addresses or offsets are, as a row of this chunk, and without the bits that say so."""
        own = np.broadcast_to(np.arange(len(self.blocks))[:, None], (len(self.blocks), addresses.shape[1]))
        if self.cluster == 1:
            return own, addresses
        rank = (addresses + HALF_WINDOW) >> WINDOW_BITS & ranks_of(self.cluster) - 1
        is_there = rank < self.cluster
        rows = np.where(is_there, own // self.cluster * self.cluster + rank, own)
        return rows, np.where(is_there, addresses - (rank << WINDOW_BITS), addresses)

    def piece(
        self,
        op: Operation,
        lane: tuple[int, int],
        address: int,
        size: int,
        is_store: bool,
        pieces: Array | None = None,
        each: int = 0,
        unit: int = 16,
    ) -> Array:
        """The bytes at an address of one lane, which it copies: uint8 (size,), no copy.

        pieces  offsets of those that it accesses, `each` bytes, multiples of `unit`; None: all
        raises  ExecutionError where they are not inside one buffer
        """
        window = (address + HALF_WINDOW) >> WINDOW_BITS
        if not 1 <= window <= len(self.buffers):
            self.fail(op, lane, f"uses address {address:#x}, which belongs to no buffer")
        buffer = self.buffers[window - 1]
        offset, row = address - buffer.base, lane[0]
        if self.cluster > 1 and buffer.is_of_block:
            rows, offsets = self.placed(np.full((len(self.blocks), 1), offset))
            row, offset = int(rows[row, 0]), int(offsets[row, 0])
        verb = "writes" if is_store else "reads"
        if not 0 <= offset <= buffer.size - size:
            self.fail(
                op, lane, f"{verb} bytes {offset} to {offset + size - 1} of {buffer.name}, which has {buffer.size}"
            )
        if is_store:
            _check_writable(op, buffer)
        self.changes += is_store
        self.changeable_reads += buffer.writable
        start = 0
        if buffer.origin is not None:
            start = int(np.broadcast_to(buffer.origin, (len(self.blocks), self.launch.threads))[row, lane[1]])
        if self.watchers:
            active = np.zeros((len(self.blocks), self.launch.threads), np.bool_)
            active[lane] = True
            origin = None if buffer.origin is None else np.full((1, 1), start)
            parts = np.zeros(1, np.int64) if pieces is None else pieces
            where = np.full((1, 1), offset)
            copy = Access(op, buffer, is_store, where, each or size, active, None, origin, parts, unit)
            self.tell(Watcher.copy, copy)
        return buffer.data[start + offset : start + offset + size]

    # ------------------------------------------------------------------------------------------ failures

    def _out_of_bounds(
        self, op: Operation, buffer: Buffer, index: Array, row: int, limit: int, active: Array | None, is_store: bool
    ) -> NoReturn:
        lane = _first((index < 0) | (index >= limit), active)
        where = int(np.broadcast_to(index, self._shape(index, active))[lane])
        verb = "writes" if is_store else "reads"
        help = ""
        if buffer.space is Space.SHARED and buffer.size == self.launch_shared_bytes:
            help = f"the launch gives {buffer.size} bytes of dynamic shared memory; 4x128+{max(4096, 2 * buffer.size)} gives more"
        self.fail(op, lane, f"{verb} index {where} of {buffer.name}, which has {limit} of {row} bytes each", help=help)

    def refuse(self, op: Operation, bad: Array, active: Array | None, what: str) -> None:
        """raises ExecutionError naming the first active lane in `bad`, if there is one."""
        if (bad if active is None else bad & active).any():
            self.fail(op, _first(bad, active), what)

    def fail(
        self, op: Operation, lane: tuple[int, int], what: str, details: Sequence[str] = (), help: str = ""
    ) -> NoReturn:
        """raises ExecutionError for the thread at (row, column) of the chunk. `what` is the verb phrase that follows op and thread."""
        raise ExecutionError(
            f"{op.name} in {self.lane_name(lane)} {what}", stage="simt", details=(*_details(op), *details), help=help
        )

    def lane_name(self, lane: tuple[int, int]) -> str:
        """`block 3, thread 17`; coordinates where the grid or the block has more than one dimension."""
        return f"{self.block_name(int(self.blocks[lane[0]]))}, {self.thread_name(lane[1])}"

    def block_name(self, number: int) -> str:
        """`block 3`, from a linear number."""
        return f"block {_coordinates(number, self.launch.grid)}"

    def thread_name(self, number: int) -> str:
        """`thread 17`, from a linear number."""
        return f"thread {_coordinates(number, self.launch.block)}"

    def _shape(self, array: Array, active: Array | None) -> tuple[int, ...]:
        return array.shape if active is None else np.broadcast_shapes(array.shape, active.shape)


SHORT_BITS = RANK_SHIFTS[32]
"""Bits of an offset in an address of 32 bits; the others are the buffer's window."""
MOST_SHORT = (1 << 32 - SHORT_BITS) - 1
"""Limit of buffers whose addresses have 32 bits."""


def has_no_short_address(addresses: Array) -> Array:
    """Which addresses `short_address` has no value for, as far as their buffers are too many."""
    return addresses >= (MOST_SHORT + 1 << WINDOW_BITS) - HALF_WINDOW


def short_address(addresses: Array) -> Array:
    """Addresses as 32 bits, of buffers of less than 8 MiB among the first `MOST_SHORT`: adding to one moves it in its buffer."""
    windows = (addresses + HALF_WINDOW) >> WINDOW_BITS
    return ((windows << SHORT_BITS) + (addresses - (windows << WINDOW_BITS))).astype(np.int32)


def long_address(short: Array) -> Array:
    """The inverse of `short_address`."""
    wide = short.astype(np.int64) & 0xFFFFFFFF
    windows = (wide + (1 << (SHORT_BITS - 1))) >> SHORT_BITS
    return (windows << WINDOW_BITS) + (wide - (windows << SHORT_BITS))


_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def all_below(index: Array, limit: int) -> bool:
    """Whether every signed integer is at least 0 and less than `limit`: read as unsigned, a negative one is larger than any limit."""
    if index.size == 1:
        return 0 <= index.item() < limit
    return index.size == 0 or int(index.view(_UNSIGNED[index.itemsize]).max()) < limit


def bounds(values: Array, active: Array | None) -> tuple[int, int]:
    """The least and the greatest value of the active lanes; there must be at least one."""
    if active is not None:
        values, active = np.broadcast_arrays(values, active)
        values = values[active]
    return int(values.min()), int(values.max())


def _check_writable(op: Operation, buffer: Buffer) -> None:
    if not buffer.writable:
        raise ExecutionError(f"{op.name} writes {buffer.name}, which is read-only", stage="simt", details=_details(op))


def _assign(rows: Array, index: Array, values: Array, active: Array | None) -> None:
    if active is None and values.shape == index.shape:
        rows[index] = values
        return
    shapes = (index.shape, values.shape) if active is None else (index.shape, values.shape, active.shape)
    shape = np.broadcast_shapes(*shapes)
    if active is not None:
        active = np.broadcast_to(active, shape)
        rows[np.broadcast_to(index, shape)[active]] = np.broadcast_to(values, shape)[active]
    else:
        rows[np.broadcast_to(index, shape)] = values


def _first(bad: Array, active: Array | None) -> tuple[int, int]:
    """Row and column of the first bad active lane, in the order of blocks and threads."""
    if active is not None:
        bad = bad & active
    row, column = np.unravel_index(int(bad.argmax()), bad.shape)
    return int(row), int(column)


def _coordinates(number: int, extents: tuple[int, int, int]) -> str:
    if extents[1] == extents[2] == 1:
        return str(number)
    x, rest = number % extents[0], number // extents[0]
    return f"({x}, {rest % extents[1]}, {rest // extents[1]})"


def _details(op: Operation) -> tuple[str, ...]:
    place = place_of(op)
    return (*((f"from {place}",) if place else ()), str(op).splitlines()[0])
