"""`wgmma.mma_async`: four warps multiply a matrix of 64 rows, in registers or in shared memory, by one in shared memory.

    "llvm.nvvm.wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"(%d0 ..., %a, %b, %scale_d, %scale_a, %scale_b, %trans_a, %trans_b)

A warp holds 16 rows, in the fragments of `mma` (`nvvm_matrices`). A descriptor of 64 bits says where a matrix is: address, leading and
stride offset in units of 16 bytes, swizzle. Its chunks of 16 bytes lie, under a swizzle of W bytes, at

    along k       row // 8 * stride + row % 8 * W + half * 16                                        half: of the 32 bytes of a row
    along rows    chunk % (W / 16) * 16 + chunk // (W / 16) * leading + k % 8 * W + k // 8 * stride

    along k       row // 8 * stride + row % 8 * 16 + half * leading                                  without a swizzle
    along rows    chunk * stride + k % 8 * 16 + k // 8 * leading

and a swizzle exchanges bits of the address: 4 to 6 by those of 7 to 9 (128 bytes; fewer for 64 and 32). The product is there when it is
issued; a use before `wgmma.wait_group` is found in the text (`text/ptx/products_in_flight`).
Source: PTX ISA 8.8, 9.7.15.5; cute/arch/mma_sm90_desc.hpp of CUTLASS for the layouts in one formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.ir import Operation

from xla_emitters.dialects.mlir.mma_shapes import BITS, Wgmma
from xla_emitters.dtypes import Array
from xla_emitters.runtime.simt.gpu_rules import WARP_SIZE, thread_numbers
from xla_emitters.runtime.simt.llvm_rules import load_value
from xla_emitters.runtime.simt.machine import Machine, Value
from xla_emitters.runtime.simt.memory import WINDOW_BITS, Space, Watcher
from xla_emitters.runtime.simt.nvvm_matrices import GROUP, WITHIN, by_groups, elements_of, of_warps, rounded
from xla_emitters.runtime.simt.scalars import F64

WARPGROUP = 128
_SWIZZLES = {0: 16, 1: 128, 2: 64, 3: 32}
"""Code in a descriptor -> bytes; 16: none."""
_LOW = (1 << 18) - 1


def swizzled(address: Array, width: int | Array) -> Array:
    """Addresses under a swizzle of 16 (none), 32, 64 or 128 bytes."""
    return address ^ ((address >> 7 & width // 16 - 1) << 4)


def chunk_places(
    chunk: Array,
    across: int,
    width: int,
    leading: Array | int,
    stride: Array | int,
    *,
    is_along_rows: bool,
    lines: int = 8,
) -> Array:
    """Where chunks of 16 bytes of a matrix lie behind its start, without the swizzle, by the formulas above.

    chunk   their numbers: along k, two of each row; along rows, `across` of each k
    width   of the swizzle: 16 (none), 32, 64, 128
    lines   how many k an atom has
    """
    if not is_along_rows:
        row, half = np.divmod(chunk, 2)
        return row // 8 * stride + row % 8 * width + half * (leading if width == 16 else 16)
    k, part = np.divmod(chunk, across)
    atom, line = np.divmod(k, lines)
    if width == 16:
        return line * width + part * stride + atom * leading
    return line * width + part % (width // 16) * 16 + part // (width // 16) * leading + atom * stride


UNWAITED = "wgmma.unwaited."
"""How the intrinsic begins that ends with the name of a register: the next op uses it before its product is complete."""


def unwaited(register: str, op: Operation, machine: Machine) -> None:
    """Tells the race detector; does nothing else."""
    machine.memory.tell(Watcher.unwaited, op, machine.active, register)


def wgmma(shape: Wgmma, op: Operation, machine: Machine, *operands: Any) -> Value:
    numbers = shape.columns // 2
    of_d = numbers // 2 if shape.to == "f16" else numbers
    number = np.arange(numbers)
    row = (GROUP[:, None] + 8 * (number // 2 % 2))[None] + 16 * np.arange(4)[:, None, None]
    row, column = row.reshape(WARPGROUP, -1), np.tile(number // 4 * 8 + WITHIN[:, None] * 2 + number % 2, (4, 1))
    lanes = _whole_warpgroups(machine, op)
    groups = lanes.reshape(machine.shape[0], -1, WARPGROUP)[..., 0]
    of_a, (scale_d, scale_a, scale_b, trans_a, trans_b) = operands[of_d:-6], operands[-5:]
    if len(of_a) == 1:
        a = _from_memory(machine, op, shape.a, of_a[0], 64, shape.depth, machine.uniform(trans_a))[groups]
    else:
        a = _from_registers(machine, shape, of_a)[groups]
    b = _from_memory(machine, op, shape.b, operands[-6], shape.columns, shape.depth, machine.uniform(trans_b))[groups]
    given = by_groups(machine, operands[:of_d], WARPGROUP)[groups]
    c = elements_of("f16", given).reshape(*given.shape[:2], numbers) if shape.to == "f16" else given.astype(F64)
    with np.errstate(all="ignore"):
        sign = _sign(machine, scale_a) * _sign(machine, scale_b)
        sums = sign * (a @ b.swapaxes(-1, -2))[:, row, column]
        keeps = np.broadcast_to(scale_d, machine.shape).reshape(*groups.shape, WARPGROUP)[groups]
        found = rounded(shape.to, shape.saturates, sums + np.where(keeps[..., None], c, 0))
    if shape.to == "f16":
        found = np.ascontiguousarray(found).view(np.int32)
    whole = np.zeros((*groups.shape, WARPGROUP, of_d), found.dtype)
    whole[groups] = found
    return tuple(whole[..., n].reshape(machine.shape) for n in range(of_d))


def _sign(machine: Machine, scale: Array) -> int:
    return -1 if machine.uniform(scale) == -1 else 1


def _whole_warpgroups(machine: Machine, op: Operation) -> Array:
    """The active lanes. raises ExecutionError unless all 128 threads of each group that is here are"""
    lanes = machine.lanes
    if machine.launch.threads % WARPGROUP:
        machine.refuse(op, lanes, f"is run by a block whose threads are no multiple of {WARPGROUP}")
    groups = lanes.reshape(machine.shape[0], -1, WARPGROUP)
    apart = groups.any(axis=-1, keepdims=True) & ~groups
    machine.memory.refuse(
        op, apart.reshape(machine.shape), None, "is not reached with the other threads of the warpgroup"
    )
    return lanes


def _from_registers(machine: Machine, shape: Wgmma, registers: Sequence[Array]) -> Array:
    """A, float64 (blocks, groups, 64, depth)."""
    elements = elements_of(shape.a, by_groups(machine, registers, WARPGROUP))
    found = of_warps(elements.reshape(*elements.shape[:2], 4, WARP_SIZE, *elements.shape[3:]), 16)
    return found.reshape(*elements.shape[:2], 64, shape.depth)


def _from_memory(
    machine: Machine, op: Operation, word: str, descriptor: Array, rows: int, depth: int, is_along_rows: int | None
) -> Array:
    """A matrix that descriptors name, float64 (blocks, groups, rows, depth). Each lane loads 16 bytes at a time."""
    each = 128 // BITS[word]
    bits = descriptor.view(np.uint64)
    leading, stride = ((bits >> np.uint64(at) & np.uint64(0x3FFF)).astype(np.int64) << 4 for at in (16, 32))
    machine.refuse(
        op, bits >> np.uint64(49) & np.uint64(7) != 0, "has a descriptor with a base offset, which is not supported"
    )
    swizzle = machine.uniform((bits >> np.uint64(62)).astype(np.int64))
    machine.refuse(
        op, np.full((1, 1), swizzle is None), "has descriptors of several swizzles at once, which are not supported"
    )
    width = _SWIZZLES[swizzle or 0]
    start = shared_address(machine, op, (bits & np.uint64(0x3FFF)).astype(np.int64) << 4) + machine.memory.own_rank
    count, parts = rows * depth // each, list[Array]()
    for first in range(0, count, WARPGROUP):
        chunk = first + thread_numbers(machine) % WARPGROUP
        offset = chunk_places(chunk, rows // each, width, leading, stride, is_along_rows=bool(is_along_rows))
        with machine.only(machine.lanes & (chunk < count)):
            loaded: Any = load_value(op, _SIXTEEN_BYTES, 16, machine, swizzled(start + offset, width))
        parts.append(np.stack([np.broadcast_to(part, machine.shape) for part in loaded], axis=-1))
    words = np.stack(parts, axis=1).reshape(machine.shape[0], len(parts), -1, WARPGROUP, 4).swapaxes(1, 2)
    words = words.reshape(*words.shape[:2], -1, 4)[:, :, :count]
    numbers = elements_of(word, np.ascontiguousarray(words)).reshape(*words.shape[:2], -1)
    if is_along_rows:
        return numbers.reshape(*words.shape[:2], depth, rows).swapaxes(-1, -2)
    return numbers.reshape(*words.shape[:2], rows, depth)


_SIXTEEN_BYTES = VectorType(IntegerType(32), [4])


def shared_address(machine: Machine, op: Operation, low: Array) -> Array:
    """The address for its lower bits, in a cluster's first block. raises ExecutionError where no shared memory is there"""
    found = np.zeros(low.shape, np.int64)
    for buffer in machine.memory.buffers:
        if buffer.space is Space.SHARED:
            start = buffer.base & _LOW
            is_inside = (low >= start) & (low < start + buffer.size)
            found = np.where(is_inside, low + (buffer.number + 1 << WINDOW_BITS), found)
    machine.refuse(op, found == 0, "has a descriptor of an address outside shared memory")
    return found
