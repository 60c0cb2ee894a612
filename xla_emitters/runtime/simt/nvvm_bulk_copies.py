"""Bulk copies, which one thread issues: plain ones, boxes of tensor maps, and those that add to what is there.

    "llvm.nvvm.cp.async.bulk.tensor.load"(%to, %map, %c0, %c1) : ... -> i32          the bytes that it completes
    "llvm.nvvm.cp.reduce.async.bulk.add.f32"(%to, %of, %size)

A copy moves its bytes when it is issued, and its accesses are those of the thread that issued it. In shared memory a box is row-major,
under the map's swizzle. Source: PTX ISA 8.8, 9.7.9.25 to 9.7.9.27.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from xdsl.ir import Operation

from xla_emitters.dialects.mlir.tensor_maps import ELEMENTS, MAGIC, MAP, MOST_SHARED, SWIZZLES, bits_of
from xla_emitters.dtypes import Array
from xla_emitters.runtime.simt.code import Kernel
from xla_emitters.runtime.simt.gpu_rules import WARP_SIZE
from xla_emitters.runtime.simt.llvm_atomic_rules import UPDATES
from xla_emitters.runtime.simt.machine import Machine
from xla_emitters.runtime.simt.nvvm_barrier_rules import multicast
from xla_emitters.runtime.simt.nvvm_values import form
from xla_emitters.runtime.simt.nvvm_warpgroups import swizzled
from xla_emitters.runtime.simt.scalars import Form, constant, from_bits, to_bits

Lane = tuple[int, int]
_LINE = 128
"""Bytes to which a box in shared memory is aligned."""


def lanes_of(machine: Machine) -> Iterator[Lane]:
    """Row and column of each active lane."""
    yield from ((int(row), int(column)) for row, column in np.argwhere(machine.lanes))


def lane_value(machine: Machine, value: Array, lane: Lane) -> int:
    """What a value is in a lane."""
    return int(np.broadcast_to(value, machine.shape)[lane])


# ---------------------------------------------------------------------------------------------- updates

_OPERATIONS = {
    **{"and": "_and", "or": "_or", "xor": "_xor", "inc": "uinc_wrap", "dec": "udec_wrap", "add": "add"},
    **{"add.f": "fadd", "min.f": "fmin", "max.f": "fmax"},
    **{"min.s": "min", "max.s": "max", "min.u": "umin", "max.u": "umax"},
}
"""Update, with a letter of its type -> LLVM's operation."""


def _number(element: str) -> Form:
    return form(element.removesuffix(".ftz").removeprefix("t"))


def _write(target: Array, source: Array, update: str, element: str) -> None:
    """Writes bytes, or updates numbers of a type."""
    if not update:
        target[...] = source
        return
    of = _number(element)
    operation = _OPERATIONS.get(f"{update}.{'f' if of.is_float else element[0]}") or _OPERATIONS[update]
    old, new = (from_bits(of, np.ascontiguousarray(each).view(of.storage)) for each in (target, source))
    with np.errstate(all="ignore"):
        target[...] = to_bits(of, UPDATES[operation](of)(old, new)).view(np.uint8)


def bulk(
    op: Operation, machine: Machine, to: Array, of: Array, size: Array, update: str = "", element: str = ""
) -> None:
    """Copies multiples of 16 bytes, each lane its own number of them."""
    machine.refuse(op, (size & 15 != 0) | (size < 0), "copies bytes that are no multiple of 16")
    for address in (to, of):
        machine.refuse(op, address & 15 != 0, "uses an address that is not aligned to 16 bytes")
    for lane in lanes_of(machine):
        if count := lane_value(machine, size, lane):
            source = machine.memory.piece(op, lane, lane_value(machine, of, lane), count, False)
            _write(machine.memory.piece(op, lane, lane_value(machine, to, lane), count, True), source, update, element)


def by_first_lane(op: Operation, machine: Machine, to: Array, of: Array, size: Array) -> None:
    """A copy by the first active thread of each warp."""
    active = machine.lanes
    starts = np.arange(0, machine.launch.threads, WARP_SIZE)
    counts = np.cumsum(active, axis=1)
    before = (counts - active)[:, starts].repeat(WARP_SIZE, axis=1)[:, : machine.launch.threads]
    with machine.only(active & (counts - before == 1)):
        bulk(op, machine, to, of, size)


# ---------------------------------------------------------------------------------------------- boxes


class Box:
    """The part of an array that one copy moves, and its bytes in shared memory.

    size      bytes of an element
    counts    elements along each dimension, innermost first, also those outside the array; first, last: which of them are inside
    """

    def __init__(self, machine: Machine, op: Operation, address: int, coordinates: list[int], lane: Lane) -> None:
        memory = machine.memory
        self.found: Any = memory.piece(op, lane, address, MAP.itemsize, False).view(MAP)[0]
        if self.found["magic"] != MAGIC:
            memory.fail(op, lane, "takes something else than a tensor map: give one by --tensor-map")
        rank = int(self.found["rank"]) + 1
        if rank != len(coordinates):
            memory.fail(op, lane, f"has {len(coordinates)} coordinates, but the tensor map has {rank}")
        if self.found["interleave_layout"]:
            memory.fail(op, lane, "takes an interleaved tensor map, which is not supported")
        codes = ((len(ELEMENTS), "elemtype"), (len(SWIZZLES), "swizzle_mode"), (2, "fill_mode"))
        if any(int(self.found[name]) >= count for count, name in codes):
            memory.fail(op, lane, "takes a tensor map with a code that there is not")
        self.element = ELEMENTS[int(self.found["elemtype"])]
        bits, self.swizzle = bits_of(self.element), SWIZZLES[int(self.found["swizzle_mode"])]
        self.size = max(1, bits // 8)
        extents, boxes, steps = (
            [int(number) for number in self.found[name][:rank]] for name in ("global_dim", "box_dim", "element_stride")
        )
        if bits < 8:  # moved by bytes
            halved = coordinates[0], extents[0], boxes[0]
            if any(number % 2 for number in halved) or steps[0] != 1 or self.found["fill_mode"]:
                memory.fail(op, lane, f"copies half a byte, {boxes[0]} elements from {coordinates[0]} of {extents[0]}")
            coordinates = [coordinates[0] // 2, *coordinates[1:]]
            extents[0], boxes[0] = extents[0] // 2, boxes[0] // 2
        strides = [self.size, *(int(number) for number in self.found["global_stride"][: rank - 1])]
        if not all(1 <= box <= 256 and 1 <= step <= 8 for box, step in zip(boxes, steps, strict=True)):
            memory.fail(op, lane, f"takes a tensor map with boxes of {boxes} and steps of {steps}")
        self.counts = [-(-box // step) for box, step in zip(boxes, steps, strict=True)]
        at = list(zip(coordinates, steps, extents, self.counts, strict=True))
        first = [min(count, max(0, -(start // step))) for start, step, _, count in at]
        last = [max(0, min(count, -((start - extent) // step))) for start, step, extent, count in at]
        self.inside = tuple(slice(low, high) for low, high in zip(reversed(first), reversed(last), strict=True))
        self.is_empty = any(low >= high for low, high in zip(first, last, strict=True))
        self.strides = [step * stride for step, stride in zip(steps, strides, strict=True)]
        if self.bytes > MOST_SHARED or self.bytes % 16:
            memory.fail(op, lane, f"copies a box of {self.bytes} bytes")
        starts = [start + low * step for low, (start, step, _, _) in zip(first, at, strict=True)]
        self.start = int(self.found["global_address"]) + sum(a * b for a, b in zip(starts, strides, strict=True))
        self.shape = [high - low for low, high in zip(first, last, strict=True)]

    @property
    def bytes(self) -> int:
        return int(np.prod(self.counts)) * self.size

    def array(self, machine: Machine, op: Operation, lane: Lane, is_store: bool) -> Array:
        """The part inside the array, uint8, outermost dimension first, then the bytes of an element: no copy."""
        span = sum((count - 1) * stride for count, stride in zip(self.shape, self.strides, strict=True)) + self.size
        is_whole = self.strides[0] == self.size
        pieces = np.zeros(1, np.int64)
        for count, stride in list(zip(self.shape, self.strides, strict=True))[is_whole:]:
            pieces = (np.arange(count)[:, None] * stride + pieces).reshape(-1)
        each = self.size * self.shape[0] if is_whole else self.size
        view = machine.memory.piece(op, lane, self.start, span, is_store, pieces, each, self.size)
        shape, strides = (*reversed(self.shape), self.size), (*reversed(self.strides), 1)
        return np.lib.stride_tricks.as_strided(view, shape, strides)

    def loaded(self, machine: Machine, op: Operation, lane: Lane) -> Array:
        """The elements, outermost dimension first, then their bytes; filled outside the array."""
        values = np.zeros((*reversed(self.counts), self.size), np.uint8)
        if self.found["fill_mode"] and (kind := _number(self.element)).is_float:
            values[...] = to_bits(kind, constant(kind, np.nan)).reshape(-1).view(np.uint8)
        if not self.is_empty:
            values[self.inside] = self.array(machine, op, lane, False)
        return values

    def shared(
        self, machine: Machine, op: Operation, lane: Lane, address: int, count: int, is_store: bool
    ) -> tuple[Array, Array]:
        """`count` such boxes in shared memory, one behind the other, and where each 16 bytes of them lie."""
        if address % _LINE:
            machine.memory.fail(op, lane, f"uses an address of shared memory that is not aligned to {_LINE} bytes")
        view = machine.memory.piece(op, lane, address, count * self.bytes, is_store)
        places = address + np.arange(0, count * self.bytes, 16)
        return view, (swizzled(places, self.swizzle or 16) - address) // 16


def _boxes(
    machine: Machine, op: Operation, address: Array, given: tuple[Array, ...], lane: Lane, rows: int
) -> list[Box]:
    """The boxes of one copy: several, each of one row, for a column and the numbers of the rows."""
    numbers = [lane_value(machine, each, lane) for each in given]
    coordinates = [[numbers[0], row] for row in numbers[1:]] if rows > 1 else [numbers]
    boxes = [Box(machine, op, lane_value(machine, address, lane), each, lane) for each in coordinates]
    if rows > 1 and boxes[0].counts[1] != 1:
        machine.memory.fail(op, lane, "copies rows one by one, but the tensor map's box has several")
    return boxes


def tensor_load(op: Operation, machine: Machine, to: Array, of: Array, *coordinates: Array, rows: int = 1) -> Array:
    """Returns how many bytes it completes."""
    total = np.zeros(machine.shape, np.int32)
    for lane in lanes_of(machine):
        boxes = _boxes(machine, op, of, coordinates, lane, rows)
        values = np.concatenate([box.loaded(machine, op, lane) for box in boxes])
        view, places = boxes[0].shared(machine, op, lane, lane_value(machine, to, lane), rows, True)
        view.reshape(-1, 16)[places] = values.reshape(-1, 16)
        total[lane] = rows * boxes[0].bytes
    return total


def tensor_store(
    op: Operation, machine: Machine, to: Array, of: Array, *coordinates: Array, update: str = "", rows: int = 1
) -> None:
    """Threads of a warp that store the same box to the same place store it once: CuTe has whole warps do that."""
    stored = set[tuple[int, ...]]()
    for lane in lanes_of(machine):
        what = (lane[0], lane[1] // WARP_SIZE, *(lane_value(machine, each, lane) for each in (to, of, *coordinates)))
        if what in stored and not update:
            continue
        stored.add(what)
        boxes = _boxes(machine, op, to, coordinates, lane, rows)
        view, places = boxes[0].shared(machine, op, lane, lane_value(machine, of, lane), rows, False)
        for box, values in zip(boxes, view.reshape(-1, 16)[places].reshape(rows, -1), strict=True):
            if not box.is_empty:
                elements = values.reshape(*reversed(box.counts), box.size)
                _write(box.array(machine, op, lane, True), elements[box.inside], update, box.element)


_KERNELS: dict[str, Kernel] = {
    **{"cp.async.bulk": bulk, "cp.async.bulk.store": bulk, "cp.async.bulk.warp": by_first_lane},
    **{"cp.async.bulk.tensor.load": tensor_load, "cp.async.bulk.tensor.store": tensor_store},
    "cp.async.bulk.tensor.load.gather4": partial(tensor_load, rows=4),
    "cp.async.bulk.tensor.store.scatter4": partial(tensor_store, rows=4),
}


def copy_intrinsic(name: str) -> Kernel | None:
    """The kernel of an intrinsic without its `llvm.nvvm.`, which takes the op in front; None if it is none of these."""
    stem = name.removesuffix(".multicast")
    parts = stem.split(".")
    if stem.startswith("cp.reduce.async.bulk.tensor."):
        return partial(tensor_store, update=parts[-1])
    if stem.startswith("cp.reduce.async.bulk."):
        return partial(bulk, update=parts[-2], element=parts[-1])
    kernel = _KERNELS.get(stem)
    return partial(multicast, kernel) if kernel and stem != name else kernel
