"""Memory of one chunk of blocks: buffers, addresses that are plain numbers, and checked access for all lanes at once.

    address   0x10000000100 ─┐  0x20000000010 ─┐              one window of 2**40 bytes per buffer, so that an address
    buffer    ├──── arg0 ────┤  ├──── arg1 ────┤  ...         names its buffer, and no wrong offset reaches the next one

    space     kept as                          a lane sees
    global    one array for all blocks         that array
    shared    one instance per block           its block's instance
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
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NoReturn

import numpy as np
from xdsl.ir import Operation

from xla_emitters.dtypes import Array
from xla_emitters.errors import ExecutionError, InternalError
from xla_emitters.program import Launch
from xla_emitters.rewrite.locations import place_of

WINDOW_BITS = 40
HALF_WINDOW = 1 << (WINDOW_BITS - 1)

MOST_BYTES = 1 << 32
"""Limit of the shared or private memory of one chunk for one variable."""

SHARED_START = 1024
"""Where shared memory begins for a kernel: hardware keeps the bytes before."""

_SCATTER_UNITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}
"""Row size in bytes -> NumPy type that moves such a row at once; complex128 is only a box of 16 bytes."""


class Space(Enum):
    GLOBAL = "global"
    SHARED = "shared"
    PRIVATE = "private"


@dataclass(eq=False)
class Buffer:
    """Some bytes that pointers and tensors refer to.

    number      its place in `Memory.buffers`
    data        uint8[instances * size]
    size        bytes of one instance
    base        address of the first byte
    origin      int64 (blocks or 1, threads or 1): where a lane's instance starts in `data`, in bytes; None when there is one instance
    writable    False for arguments marked invariant and for constants
    newest      stamp of the newest tensor value in this buffer; see `Machine.check_newest`
    """

    number: int
    name: str
    space: Space
    data: Array
    size: int
    base: int
    origin: Array | None
    writable: bool
    newest: int = 0

    @property
    def end(self) -> int:
        return self.base + self.size


@dataclass(frozen=True)
class Access:
    """One load or store, as watchers see it. It is inside the buffer for every active lane.

    is_store  an update (atomic: one op reads and writes) is a store, preceded or not by a read of the same bytes
    offsets   byte offsets into the buffer's instance, (blocks or 1, threads or 1); multiples of `size`
    size      bytes that each lane moves
    active    lanes that take part; None is all
    values    what a store writes, if that is known: (blocks or 1, threads or 1[, elements])
    """

    op: Operation
    buffer: Buffer
    is_store: bool
    offsets: Array
    size: int
    active: Array | None
    values: Array | None = None


class Watcher:
    """Base class: called at the accesses, barriers and exchanges of a chunk; its methods do nothing."""

    def begin(self, memory: Memory) -> None:
        """A chunk is about to run; its arguments are buffers 0, 1 ... of `memory`."""

    def access(self, memory: Memory, access: Access) -> None:
        """Active lanes are about to read or write."""

    def barrier(self, memory: Memory, active: Array | None) -> None:
        """Whole blocks have reached a barrier."""

    def warp_barrier(self, memory: Memory, active: Array | None) -> None:
        """The active threads of each warp have met."""

    def exchange(self, memory: Memory, op: Operation, absent: Array, active: Array | None) -> None:
        """Active lanes take values of other lanes of their warp; `absent` marks lanes whose source lane is inactive."""


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
    """

    launch: Launch
    blocks: Array
    watchers: Sequence[Watcher] = ()
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    of_op: dict[Operation, Buffer] = field(default_factory=dict[Operation, Buffer])
    changes: int = 0
    changeable_reads: int = 0
    barriers: dict[int, Any] = field(default_factory=dict[int, Any])
    launch_shared_bytes: int = 0
    shared_end: int = SHARED_START

    def add(self, name: str, data: Array, alignment: int, writable: bool = True) -> Buffer:
        """A global buffer over `data` (uint8, flat): no copy."""
        return self._add(name, Space.GLOBAL, data, data.size, alignment, None, writable)

    def allocate(self, name: str, space: Space, size: int, alignment: int) -> Buffer:
        """A fresh shared or private buffer of `size` bytes for each block or thread, filled with 0xA5: unlikely as a result."""
        blocks, threads = len(self.blocks), self.launch.threads
        if space is Space.SHARED:
            origin = np.arange(blocks, dtype=np.int64)[:, None] * size
        else:
            origin = np.arange(blocks * threads, dtype=np.int64).reshape(blocks, threads) * size
        if (total := origin.size * size) > MOST_BYTES:
            owners = f"{blocks} blocks" if space is Space.SHARED else f"{blocks * threads} threads"
            raise ExecutionError(f"{name} takes {total} bytes in {owners}, more than {MOST_BYTES}", stage="simt")
        data = np.full(total, 0xA5, dtype=np.uint8)
        return self._add(name, space, data, size, alignment, origin, True)

    def once(self, op: Operation, make: Callable[[], Buffer]) -> Buffer:
        """The buffer of `op`, such as a constant or a global; `make` is called for it once."""
        if op not in self.of_op:
            self.of_op[op] = make()
        return self.of_op[op]

    def _add(
        self, name: str, space: Space, data: Array, size: int, alignment: int, origin: Array | None, writable: bool
    ) -> Buffer:
        place = alignment
        if space is Space.SHARED:
            # The first odd multiple of the alignment that is free.
            place = (-(-self.shared_end // alignment) | 1) * alignment
            self.shared_end = place + size
        base = (len(self.buffers) + 1 << WINDOW_BITS) + place
        buffer = Buffer(len(self.buffers), name, space, data, size, base, origin, writable)
        self.buffers.append(buffer)
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
            if lanes.any():
                found.append((self.buffers[window - 1], lanes))
        return found

    # ------------------------------------------------------------------------------------------ access

    def gather(self, op: Operation, buffer: Buffer, index: Array, rows: Array, active: Array | None) -> Array:
        """rows[index] for each active lane; the values of other lanes are undefined.

        rows    a view of `buffer.data` by `view`: (elements,) or (rows, elements of a row)
        index   int64 (blocks or 1, threads or 1), in rows of the lane's instance
        returns (blocks or 1, threads or 1[, elements of a row])
        """
        index = self._checked(op, buffer, index, rows, active, False)
        self.changeable_reads += buffer.writable
        if rows.shape[0] == 0:
            return np.zeros((*index.shape, *rows.shape[1:]), rows.dtype)
        return rows.take(index, axis=0, mode="clip")

    def scatter(
        self, op: Operation, buffer: Buffer, index: Array, rows: Array, values: Array, active: Array | None
    ) -> None:
        """rows[index] = values for each active lane; the shapes are those of `gather`, with whole rows in `values`.

        If several lanes have one index the last one wins (block by block, thread by thread).
        """
        _check_writable(op, buffer)
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
        self,
        op: Operation,
        buffer: Buffer,
        ufunc: np.ufunc,
        index: Array,
        rows: Array,
        values: Array,
        active: Array | None,
    ) -> None:
        """rows[index] = ufunc(rows[index], values) for one active lane after the other, block by block, thread by thread.

        rows    a view of `buffer.data` by `view`: (elements,) or (rows, elements of a row)
        values  (blocks or 1, threads or 1[, elements of a row])
        """
        _check_writable(op, buffer)
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
        if buffer.origin is not None and buffer.size % row:
            raise InternalError(f"{buffer.size} bytes of {buffer.name} do not divide into rows of {row}", stage="simt")
        whole = buffer.data[: buffer.data.size // row * row].view(element)
        return whole if count is None else whole.reshape(-1, count)

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
        limit = buffer.size // row
        if active is not None:
            index = np.where(active, index, 0)
        if not all_below(index, limit) and (active is None or active.any()):
            self._out_of_bounds(op, buffer, index, row, limit, active, is_store)
        for watcher in self.watchers:
            watcher.access(self, Access(op, buffer, is_store, index * row, row, active, values))
        return index if buffer.origin is None else index + buffer.origin // row

    # ------------------------------------------------------------------------------------------ failures

    def _out_of_bounds(
        self, op: Operation, buffer: Buffer, index: Array, row: int, limit: int, active: Array | None, is_store: bool
    ) -> NoReturn:
        lane = _first((index < 0) | (index >= limit), active)
        where = int(np.broadcast_to(index, self._shape(index, active))[lane])
        verb = "writes" if is_store else "reads"
        self.fail(op, lane, f"{verb} index {where} of {buffer.name}, which has {limit} of {row} bytes each")

    def refuse(self, op: Operation, bad: Array, active: Array | None, what: str) -> None:
        """raises ExecutionError naming the first active lane in `bad`, if there is one."""
        if (bad if active is None else bad & active).any():
            self.fail(op, _first(bad, active), what)

    def fail(self, op: Operation, lane: tuple[int, int], what: str, details: Sequence[str] = ()) -> NoReturn:
        """raises ExecutionError for the thread at (row, column) of the chunk. `what` is the verb phrase that follows op and thread."""
        raise ExecutionError(
            f"{op.name} in {self.lane_name(lane)} {what}", stage="simt", details=(*_details(op), *details)
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


SHORT_BITS = 24
"""Bits of an offset in an address of 32 bits; the others are the buffer's window."""


def short_address(addresses: Array) -> Array:
    """Addresses as 32 bits, of buffers of less than 8 MiB among the first 127: adding to one moves it in its buffer."""
    windows = (addresses + HALF_WINDOW) >> WINDOW_BITS
    return ((windows << SHORT_BITS) + (addresses - (windows << WINDOW_BITS))).astype(np.int32)


def long_address(short: Array) -> Array:
    """The inverse of `short_address`."""
    wide = short.astype(np.int64)
    windows = (wide + (1 << (SHORT_BITS - 1))) >> SHORT_BITS
    return (windows << WINDOW_BITS) + (wide - (windows << SHORT_BITS))


def row_major_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Elements between neighbours along each dimension when the last dimension varies fastest.

    >>> row_major_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides)) if shape else ()


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
