"""`tcgen05`: tensor memory of each block, 128 lanes of 512 columns of 32 bits, and products that one thread issues there.

    "llvm.nvvm.tcgen05.alloc"(%place, %columns)                           writes the address of free columns to shared memory
    "llvm.nvvm.tcgen05.ld.sync.aligned.32x32b.x2.b32"(%t) : (i32) -> struct of 2 i32
    "llvm.nvvm.tcgen05.mma.cta_group::1.kind::f16"(%d, %a, %b, %what, %counts, %divisor)

A register r of thread t of a warp is, with group = t / 4 and within = t % 4, the cell at

    32x32b     lane t                              column r
    16x64b     lane group + 8 * (t % 2)            column 2 * r + within / 2
    16x128b    lane group + 8 * (r % 2)            column 4 * (r / 2) + within
    16x256b    lane group + 8 * (r / 2 % 2)        column 8 * (r / 4) + 2 * within + r % 2
    16x32bx2   lane t % 16                         column r, behind the half's distance for t >= 16

Row r of D is lane r, of 64 rows lane 32 * (r / 16) + r % 16; of A lane r. Of two blocks each has half of the rows; where these are 64, row
r is lane r in the first half of D's columns, and lane 64 + r in the second. Factors of row r are bytes of the cell at lane r % 32 (in all
four quarters alike) and column r / 32. Results are there when they are issued; whether they were waited for, the race detector knows.
Source: PTX ISA 8.8, 9.7.16; CUTLASS's copy_traits_sm100.hpp, mma_sm100_desc.hpp and sm100_blockscaled_layout.hpp for layouts in formulas.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import NoReturn

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Operation

from xla_emitters.dialects.mlir.tcgen05_shapes import TensorAccess, TensorMma, TensorProduct, tensor_copy
from xla_emitters.dtypes import Array
from xla_emitters.runtime.simt.code import Kernel
from xla_emitters.runtime.simt.gpu_rules import WARP_SIZE, lane_numbers, warp_numbers
from xla_emitters.runtime.simt.llvm_rules import store_value
from xla_emitters.runtime.simt.machine import Machine, Value
from xla_emitters.runtime.simt.memory import (
    TENSOR_COLUMNS,
    TENSOR_LANES,
    UNWRITTEN,
    WINDOW_BITS,
    Access,
    Memory,
    Space,
    Watcher,
)
from xla_emitters.runtime.simt.nvvm_barrier_rules import left_behind
from xla_emitters.runtime.simt.nvvm_bulk_copies import Lane, lane_value, lanes_of
from xla_emitters.runtime.simt.nvvm_matrices import elements_of, rounded, scale_factors, whole_warps
from xla_emitters.runtime.simt.nvvm_warpgroups import chunk_places, shared_address, swizzled
from xla_emitters.runtime.simt.scalars import F64

CELL = 4
"""Bytes of a cell."""
_LEAST = 32
"""Columns that are allocated."""


class TensorMemory:
    """Of all blocks of a chunk.

    buffer   the cells, column by column
    owners   first column, plus one, of the allocation that each column belongs to; 0: none; int64 (blocks, columns)
    made     (row of a block, first column) -> the op and the thread that allocated it
    least    columns of the last allocation of each block; closed: blocks that allocate nothing more
    """

    def __init__(self, machine: Machine) -> None:
        blocks, size = len(machine.blocks), TENSOR_LANES * TENSOR_COLUMNS * CELL
        self.buffer = machine.memory.allocate("tensor memory", Space.TENSOR, size, 1 << 20)
        self.owners = np.zeros((blocks, TENSOR_COLUMNS), np.int64)
        self.made = dict[tuple[int, int], tuple[Operation, Lane]]()
        self.least, self.closed = np.full(blocks, TENSOR_COLUMNS), np.zeros(blocks, np.bool_)

    @property
    def cells(self) -> Array:
        """int32 (blocks, columns, lanes): no copy."""
        return self.buffer.data.view(np.int32).reshape(len(self.owners), TENSOR_COLUMNS, TENSOR_LANES)

    def allocate(self, row: int, columns: int) -> int | None:
        """The first column of a free part of a block's memory; None: there is none."""
        for start in range(0, TENSOR_COLUMNS, columns):
            if not (part := self.owners[row, start : start + columns]).any():
                part[:] = start + 1
                self.cells[row, start : start + columns] = np.full(CELL, UNWRITTEN, np.uint8).view(np.int32)
                return start
        return None

    def check(self, machine: Machine, op: Operation, lane: Lane, columns: Array, row: int) -> None:
        """raises ExecutionError for columns that are not allocated to the block of that row"""
        inside = np.clip(columns, 0, TENSOR_COLUMNS - 1)
        if (bad := (inside != columns) | (self.owners[row, inside] == 0)).any():
            column = columns[bad.argmax()]
            machine.memory.fail(op, lane, f"accesses column {column} of tensor memory, which is not allocated")

    def check_deallocated(self, memory: Memory) -> None:
        """raises ExecutionError where a block has ended with tensor memory"""
        for op, lane in self.made.values():
            memory.fail(op, lane, "allocates tensor memory that is never deallocated")


def tensor_memory(machine: Machine) -> TensorMemory:
    memory = machine.memory
    memory.tensor = memory.tensor or TensorMemory(machine)
    return memory.tensor


def _leaders(machine: Machine, op: Operation, *alike: Array) -> list[Lane]:
    """The first thread of each warp that is here. raises ExecutionError unless all of a warp are, with the same operands"""
    whole_warps(machine, op)
    for value in alike:
        lanes = np.broadcast_to(value, machine.shape).reshape(machine.shape[0], -1, WARP_SIZE)
        machine.refuse(op, (lanes != lanes[..., :1]).reshape(machine.shape), "has other operands than its warp")
    first = machine.lanes & (lane_numbers(machine) == 0)
    return [(int(row), int(column)) for row, column in np.argwhere(first)]


def _check_columns(machine: Machine, op: Operation, columns: Array) -> None:
    is_power = (columns >= _LEAST) & (columns <= TENSOR_COLUMNS) & (columns & columns - 1 == 0)
    machine.refuse(op, ~is_power, "names columns of tensor memory that are no power of two from 32 to 512")


def allocate(op: Operation, machine: Machine, place: Array, columns: Array) -> None:
    tensor = tensor_memory(machine)
    _check_columns(machine, op, columns)
    found, late = np.zeros(machine.shape, np.int32), np.zeros(machine.shape, np.bool_)
    done = np.zeros(machine.shape, np.bool_)
    for lane in _leaders(machine, op, columns, place):
        row, count = lane[0], lane_value(machine, columns, lane)
        if tensor.closed[row]:
            machine.memory.fail(op, lane, "allocates tensor memory after tcgen05.relinquish_alloc_permit")
        if count > tensor.least[row]:
            machine.memory.fail(op, lane, f"allocates {count} columns after an allocation of {tensor.least[row]}")
        start = tensor.allocate(row, count)
        if start is None:
            late[row, lane[1] : lane[1] + WARP_SIZE] = True
            continue
        found[lane], done[lane], tensor.least[row] = start, True, count
        tensor.made[row, start] = op, lane
    if done.any():
        with machine.only(done):
            store_value(op, i32, 4, machine, found, place)
    left_behind(machine, op, late, "waits for tensor memory, which nobody deallocates: all columns are in use")


def deallocate(op: Operation, machine: Machine, place: Array, columns: Array) -> None:
    tensor = tensor_memory(machine)
    _check_columns(machine, op, columns)
    for lane in _leaders(machine, op, columns, place):
        row, start, count = lane[0], lane_value(machine, place, lane), lane_value(machine, columns, lane)
        if (row, start) not in tensor.made:
            machine.memory.fail(op, lane, f"deallocates {start:#x}, where no allocation of tensor memory begins")
        mine = tensor.owners[row] == start + 1
        if mine.sum() != count:
            machine.memory.fail(op, lane, f"deallocates {count} columns of an allocation of {mine.sum()}")
        tensor.owners[row, mine] = 0
        del tensor.made[row, start]
        machine.memory.changes += 1


def relinquish(op: Operation, machine: Machine) -> None:
    for row, _ in _leaders(machine, op):
        tensor_memory(machine).closed[row] = True


# ---------------------------------------------------------------------------------------------- loads and stores


def _fragment(access: TensorAccess, half: int) -> tuple[Array, Array, Array, Array]:
    """Lane and column of each thread of a warp, and how far from there the cells of each register are."""
    thread, register, none = np.arange(WARP_SIZE), np.arange(access.registers), np.zeros(access.registers, np.int64)
    group, within = thread // 4, thread % 4
    match access.shape:
        case "32x32b":
            return thread, 0 * thread, none, register
        case "16x64b":
            return group + 8 * (thread % 2), within // 2, none, 2 * register
        case "16x128b":
            return group, within, 8 * (register % 2), 4 * (register // 2)
        case "16x256b":
            return group, 2 * within, 8 * (register // 2 % 2), 8 * (register // 4) + register % 2
        case _:
            return thread % 16, thread // 16 * half, none, register


def _cells_of(
    access: TensorAccess, op: Operation, machine: Machine, place: Array, half: Array | None
) -> tuple[TensorMemory, Array]:
    """The cells of a load or a store, as numbers in the buffer: (blocks, threads, cells). raises ExecutionError for those of others"""
    leaders, tensor = _leaders(machine, op, place), tensor_memory(machine)
    lane, column, lanes, columns = _fragment(access, 0 if half is None else int(half[0, 0]))
    if access.is_packed:
        scale = 1 if half is not None else 2
        column, columns = scale * column, (2 * columns[:, None] + np.arange(2)).reshape(-1)
        lanes = lanes.repeat(2)
    lane, column = (np.tile(each, machine.launch.threads // WARP_SIZE) for each in (lane, column))
    quarter, first = 32 * (warp_numbers(machine) % 4), place >> 16 & 0xFFFF
    # Lanes below 32 are counted from the warp's own first one: decision 34.
    lane, column = lane + first + np.where(first < 32, quarter, 0), column + (place & 0xFFFF)
    is_other = (lane < quarter) | (lane + int(lanes.max()) >= quarter + 32)
    machine.refuse(op, is_other, "accesses lanes of tensor memory that are another warp's")
    for row, thread in leaders:
        of_warp = np.unique(column[min(row, len(column) - 1), thread : thread + WARP_SIZE])
        tensor.check(machine, op, (row, thread), (of_warp[:, None] + columns).reshape(-1), row)
    first = np.broadcast_to(column * TENSOR_LANES + lane, machine.shape).astype(np.int64)
    pieces = (columns * TENSOR_LANES + lanes).astype(np.int64)
    machine.memory.changes += access.is_store
    if machine.memory.watchers:
        how = Access(
            op, tensor.buffer, access.is_store, first * CELL, CELL, machine.active, pieces=pieces * CELL, unit=CELL
        )
        machine.memory.tell(Watcher.copy, how)
    blocks = np.arange(machine.shape[0])[:, None] * (TENSOR_LANES * TENSOR_COLUMNS)
    cells = np.where(machine.lanes, first + blocks, 0)[..., None] + np.where(machine.lanes[..., None], pieces, 0)
    return tensor, cells


def load(access: TensorAccess, op: Operation, machine: Machine, place: Array, half: Array | None = None) -> Value:
    tensor, cells = _cells_of(access, op, machine, place, half)
    found = tensor.buffer.data.view(np.int32)[cells]
    if access.is_packed:
        low, high = (found[..., at::2].view(np.uint32) & np.uint32(0xFFFF) for at in (0, 1))
        found = (low | high << np.uint32(16)).view(np.int32)
    return found[..., 0] if access.registers == 1 else tuple(found[..., number] for number in range(access.registers))


def store(access: TensorAccess, op: Operation, machine: Machine, place: Array, *values: Array) -> None:
    half, values = (values[0], values[1:]) if len(values) > access.registers else (None, values)
    tensor, cells = _cells_of(access, op, machine, place, half)
    given = np.stack([np.broadcast_to(value, machine.shape) for value in values], axis=-1)
    if access.is_packed:
        words = given.view(np.uint32)[..., None] >> np.array([0, 16], np.uint32) & np.uint32(0xFFFF)
        given = words.reshape(*given.shape[:-1], -1).view(np.int32)
    tensor.buffer.data.view(np.int32)[cells[machine.lanes]] = given[machine.lanes]


# ---------------------------------------------------------------------------------------------- copies and products


@dataclass(frozen=True)
class Part:
    """What one thread does in the memory of one block, of its rank.

    number, blocks  which block it is of how many that work together
    """

    machine: Machine
    op: Operation
    lane: Lane
    rank: int
    number: int
    blocks: int

    def fail(self, what: str) -> NoReturn:
        self.machine.memory.fail(self.op, self.lane, what)

    @property
    def row(self) -> int:
        """The block, as a row of the chunk."""
        cluster = self.machine.memory.cluster
        return self.lane[0] // cluster * cluster + self.rank

    def address(self, of_first: int) -> int:
        """An address in this block, for the one in the first block of the cluster."""
        return of_first + (self.rank << WINDOW_BITS)


def _parts(machine: Machine, op: Operation, blocks: int) -> Iterator[list[Part]]:
    """For each active lane, which runs alone meanwhile, what it does in each block. raises ExecutionError where a pair is no pair"""
    cluster = machine.memory.cluster
    for lane in lanes_of(machine):
        alone = np.zeros(machine.shape, np.bool_)
        alone[lane] = True
        first = lane[0] % cluster // blocks * blocks
        if first + blocks > cluster:
            machine.memory.fail(
                op, lane, "is of two blocks, and its block is not one of a pair: the cluster has no other"
            )
        with machine.only(alone):
            yield [Part(machine, op, lane, first + number, number, blocks) for number in range(blocks)]


def _cells(part: Part, place: int, lanes: Sequence[int] | Array, columns: int, is_store: bool) -> tuple[Array, Array]:
    """Cells that one thread accesses in a block: int32 (columns, lanes), no copy, and which lanes of them."""
    machine, op, lane = part.machine, part.op, part.lane
    tensor, first = tensor_memory(machine), place & 0xFFFF
    chosen = np.asarray(lanes) + (place >> 16 & 0xFFFF)
    if chosen.max(initial=0) >= TENSOR_LANES:
        part.fail(f"accesses lane {chosen.max()} of tensor memory")
    tensor.check(machine, op, lane, first + np.arange(columns), part.row)
    pieces = (np.arange(columns)[:, None] * TENSOR_LANES + chosen).reshape(-1) * CELL
    address = part.address(tensor.buffer.base + first * TENSOR_LANES * CELL)
    size = columns * TENSOR_LANES * CELL
    view = machine.memory.piece(op, lane, address, size, is_store, pieces, CELL, CELL)
    return view.view(np.int32).reshape(columns, TENSOR_LANES), chosen


_WIDTHS = {0: (16, 4), 1: (128, 5), 2: (128, 4), 4: (64, 4), 6: (32, 4)}
"""Swizzle in a descriptor -> bytes, 16 for none, and the logarithm of the bytes that are moved at once."""


def _chunks(part: Part, descriptor: int, numbers: Array, across: int, *, is_along_rows: bool) -> Array:
    """Chunks of 16 bytes of a matrix in a block's shared memory, uint8 (chunks, 16)."""
    leading, stride = ((descriptor >> at & 0x3FFF) << 4 for at in (16, 32))
    swizzle = descriptor >> 61 & 7
    if swizzle not in _WIDTHS or (swizzle == 1 and not is_along_rows):
        part.fail(f"has a descriptor of a swizzle of code {swizzle}")
    if descriptor >> 49 & 15:
        part.fail("has a descriptor with a base offset or an absolute stride, which is not supported")
    if descriptor >> 46 & 7 != 1:
        part.fail("has a descriptor whose bits 46 to 48 are not 1")
    width, atom = _WIDTHS[swizzle]
    start = part.address(int(shared_address(part.machine, part.op, np.full((1, 1), (descriptor & 0x3FFF) << 4))[0, 0]))
    lines = 4 if swizzle == 1 else 8
    places = start + chunk_places(numbers, across, width, leading, stride, is_along_rows=is_along_rows, lines=lines)
    places = swizzled(places, width) if atom == 4 else places ^ (places >> 7 & 3) << 5
    low = int(places.min())
    size, pieces = int(places.max()) + 16 - low, places - low
    view = part.machine.memory.piece(part.op, part.lane, low, size, False, pieces, 16, 16)
    return view[(places - low)[:, None] + np.arange(16)]


def _numbers(chunks: Array, word: str, bits: int, each: int) -> Array:
    """The first `each` numbers in chunks of 16 bytes, float64 (chunks, each)."""
    if bits < 8:
        parts = np.unpackbits(chunks, axis=1, bitorder="little")[:, : each * bits].reshape(-1, bits)
        # In a byte, e2m1 has the middle four bits.
        chunks = np.packbits(parts, axis=1, bitorder="little") << np.uint8(2 * (word == "e2m1"))
    return elements_of(word, np.ascontiguousarray(chunks).reshape(-1).view(np.uint32)).reshape(-1, each)


def _from_shared(part: Part, product: TensorProduct, descriptor: int, which: int) -> Array:
    """A block's part of A, or of the transpose of B, that a descriptor names: float64 (rows, depth)."""
    word, rows = (product.a, product.rows) if which == 0 else (product.b, product.columns)
    rows //= part.blocks
    bits, is_along_rows = product.bits(word), product.along[which]
    each = 128 // bits if is_along_rows else product.depth // 2
    numbers = np.arange(rows * product.depth // each)
    chunks = _chunks(part, descriptor, numbers, -(-rows // each), is_along_rows=is_along_rows)
    found = _numbers(chunks, word, bits, each)
    return found.reshape(product.depth, rows).T if is_along_rows else found.reshape(rows, product.depth)


def _from_tensor(part: Part, product: TensorProduct, place: int) -> Array:
    """A block's part of A in tensor memory: float64 (128, depth)."""
    bits, rows = product.bits(product.a), product.rows // part.blocks
    if rows != TENSOR_LANES or bits < 8:
        part.fail(f"has A of {rows} rows of {product.a} in tensor memory, which is not supported")
    cells, _ = _cells(part, place, range(TENSOR_LANES), product.depth * bits // 32, False)
    return elements_of(product.a, np.ascontiguousarray(cells.T)).reshape(TENSOR_LANES, product.depth)


def _factors(part: Part, product: TensorProduct, place: int, which: int, count: int) -> Array:
    """The factor of each element of a block's part of A, or of all of B's transpose: float64 (rows, depth).

    In the highest two bits of the address CUTLASS keeps the byte that the instruction descriptor names.
    """
    rows = (product.rows // part.blocks, product.columns)[which]
    cells, _ = _cells(part, place & ~(3 << 30), range(TENSOR_LANES), -(-rows // 32), False)
    quarters = cells.reshape(len(cells), 4, 32)
    if (quarters != quarters[:, :1]).any():
        part.fail("has factors that are not alike in the four quarters of the lanes")
    words = np.ascontiguousarray(quarters[:, 0]).reshape(-1)[:rows].view(np.uint32)
    shifts = 8 * (product.scale_bytes[which] + np.arange(count))
    codes = words[:, None] >> shifts.astype(np.uint32) & np.uint32(255)
    return scale_factors(product.scale, codes).repeat(product.depth // count, axis=1)


def multiply(mma: TensorMma, op: Operation, machine: Machine, *operands: Array) -> None:
    in_memory = operands[1].dtype.itemsize == 8
    for parts in _parts(machine, op, mma.blocks):
        d, a, b, what, counts, divisor, *others = (lane_value(machine, each, parts[0].lane) for each in operands)
        product = TensorProduct.of(mma, what & 0xFFFFFFFF)
        if isinstance(product, str):
            parts[0].fail(f"has an instruction descriptor {product}")
        whole = np.concatenate([_from_shared(part, product, b, 1) for part in parts])
        for part in parts:
            left, right = _from_shared(part, product, a, 0) if in_memory else _from_tensor(part, product, a), whole
            if mma.scales:
                left = left * _factors(part, product, others[0], 0, mma.scales)
                right = right * _factors(part, product, others[1], 1, mma.scales)
            with np.errstate(all="ignore"):
                sums = (-1 if product.negates[0] != product.negates[1] else 1) * (left @ right.T)
            masks = [] if mma.scales else others[4 * part.number : 4 * part.number + 4]
            for lanes, columns in _lanes_of(product):
                _add(part, product, d, lanes, sums[:, columns], 2.0**-divisor if counts else None, masks)


def _lanes_of(product: TensorProduct) -> list[tuple[Array, slice]]:
    """The lanes of the rows of a block's part of D, and which columns are there."""
    rows, half = np.arange(product.rows // product.blocks), product.columns // 2
    if len(rows) == TENSOR_LANES:
        return [(rows, slice(None))]
    if product.blocks == 1:
        return [(rows // 16 * 32 + rows % 16, slice(None))]
    return [(rows, slice(half)), (rows + 64, slice(half, None))]


def _add(
    part: Part,
    product: TensorProduct,
    place: int,
    lanes: Array,
    sums: Array,
    scale: float | None,
    masks: Sequence[int],
) -> None:
    """Writes D: the sums, and what was there times `scale`. masks: words of 32 bits that name lanes which keep what they have"""
    with np.errstate(all="ignore"):
        if scale is not None:
            cells, chosen = _cells(part, place, lanes, sums.shape[1], False)
            sums = sums + _sums_of(product.to, cells[:, chosen].T) * scale
        found = rounded(product.to, product.saturates, sums)
    words = found.view(np.uint16).astype(np.int32) if product.to == "f16" else found.view(np.int32)
    kept = ~_is_masked(lanes, masks or [0] * 4)
    cells, chosen = _cells(part, place, lanes[kept], sums.shape[1], True)
    cells[:, chosen] = words[kept].T


def _sums_of(to: str, cells: Array) -> Array:
    """What D holds; f16 in the lower halves of cells."""
    if to == "f16":
        return (cells & 0xFFFF).astype(np.uint16).view(np.float16).astype(F64)
    return cells.astype(F64) if to == "s32" else np.ascontiguousarray(cells).view(np.float32).astype(F64)


def _is_masked(lanes: Array, masks: Sequence[int]) -> Array:
    """Which lanes four words of 32 bits name."""
    words = np.array([mask & 0xFFFFFFFF for mask in masks], np.int64)
    return words[lanes // 32] >> lanes % 32 & 1 != 0


def copy(
    blocks: int,
    chunks: int,
    copies: Sequence[Sequence[int]],
    op: Operation,
    machine: Machine,
    place: Array,
    of: Array,
) -> None:
    """Rows of 16 or 32 bytes, laid out as matrices along k are: in each block from its own shared memory."""
    numbers = np.arange(2 * len(copies[0])).reshape(-1, 2)[:, :chunks].reshape(-1)
    for part in chain.from_iterable(_parts(machine, op, blocks)):
        found = _chunks(part, lane_value(machine, of, part.lane), numbers, 1, is_along_rows=False)
        words = found.reshape(-1, 16 * chunks).view(np.int32)
        for lanes in copies:
            cells, chosen = _cells(part, lane_value(machine, place, part.lane), lanes, 4 * chunks, True)
            cells[:, chosen] = words.T


_KERNELS: dict[str, Kernel] = {
    **{"tcgen05.alloc": allocate, "tcgen05.dealloc": deallocate, "tcgen05.relinquish_alloc_permit": relinquish},
}


def tensor_intrinsic(name: str) -> Kernel | None:
    """The kernel of an intrinsic without its `llvm.nvvm.`, which takes the op in front; None if it is none of these."""
    if (access := TensorAccess.of(name)) is not None:
        return partial(store if access.is_store else load, access)
    if (shape := tensor_copy(name)) is not None:
        return partial(copy, *shape)
    if (mma := TensorMma.of(name)) is not None:
        return partial(multiply, mma)
    return _KERNELS.get(name)
