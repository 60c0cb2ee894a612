"""Instructions in which a warp holds matrices: `mma`, `ldmatrix`, `stmatrix`, `movmatrix`, as intrinsics of their mnemonics.

    "llvm.nvvm.mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"(%a0 ... %a3, %b0, %b1, %c0 ... %c3) : (i32 ...) -> struct of 4 f32

A register of 32 bits holds `e` neighbouring elements of a row of A, or of a column of B (a row of B's transpose). With group = lane / 4 and
within = lane % 4, for all shapes of `mma` (8 or 16 rows, 8 columns):

    register r of A    row group + 8 * (r % 2), columns within * e + 4 * e * (r // 2) and after it      (8 rows: row group, r // 1)
    register r of B    column group, rows within * e + 4 * e * r and after it
    number i of C, D   row group + 8 * (i // 2), column within * 2 + i % 2

A row of a matrix of `ldmatrix` is 16 bytes, whose address a lane of its own has. Products and sums are computed in float64 and rounded
once: the ISA leaves their order open; f64 is a chain of fused products. Source: PTX ISA 8.8, 9.7.14 "Warp level matrix instructions".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import IntegerType, f64
from xdsl.ir import Operation

from xla_emitters.dialects.mlir.mma_shapes import BITS, Mma
from xla_emitters.dtypes import Array
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.code import Kernel
from xla_emitters.runtime.simt.gpu import WARP_SIZE, check_warps, exchanged
from xla_emitters.runtime.simt.llvm import check_alignment, load_value, store_value
from xla_emitters.runtime.simt.machine import Machine, Value
from xla_emitters.runtime.simt.scalars import F32, F64, INDEX, form_of, integer

LANE = np.arange(WARP_SIZE)
GROUP, WITHIN = LANE // 4, LANE % 4
_EIGHTS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


@cache
def matrix_intrinsic(name: str) -> Callable[[Operation], Kernel] | None:
    """The rule of an intrinsic without its `llvm.nvvm.`; None if it is none of these."""
    if (mma := Mma.of(name)) is not None:
        return lambda op: _mma(op, mma)
    match = re.fullmatch(r"(ld|st)matrix\.sync\.aligned\.m8n8\.x([124])(\.trans)?\.b16", name)
    if match is not None:
        make = _ldmatrix if match[1] == "ld" else _stmatrix
        return lambda op: make(op, int(match[2]), match[3] is not None)
    if name == "movmatrix.sync.aligned.m8n8.trans.b16":
        return _movmatrix
    return None


# ---------------------------------------------------------------------------------------------- mma


def elements_of(word: str, registers: Array) -> Array:
    """The numbers in registers (..., registers) as float64 (..., registers, elements of one), the lowest bits first."""
    if word == "f64":
        return registers[..., None]
    words = registers.view(np.uint32)[..., None]
    if word == "tf32":
        # The lower 13 bits are not used.
        return (words & np.uint32(0xFFFF_E000)).view(F32).astype(F64)
    bits = BITS[word]
    parts = words >> np.arange(0, 32, bits, dtype=np.uint32) & np.uint32((1 << bits) - 1)
    if word == "f16":
        return parts.astype(np.uint16).view(np.float16).astype(F64)
    if word == "bf16":
        return (parts << np.uint32(16)).view(F32).astype(F64)
    if word in _EIGHTS:
        return parts.astype(np.uint8).view(_EIGHTS[word]).astype(F64)
    numbers = parts.astype(np.int64)
    sign = 1 << bits - 1
    return ((numbers ^ sign) - sign if word[0] == "s" else numbers).astype(F64)


def places(count: int, each: int, rows: int) -> tuple[Array, Array]:
    """Row and column of each element of A: (lanes, registers, elements of one). For B's transpose, `rows` is 8."""
    register = np.arange(count)[None, :, None]
    high, along = (register % 2, register // 2) if rows == 16 else (np.zeros_like(register), register)
    element = np.arange(each)[None, None, :]
    row = GROUP[:, None, None] + 8 * high + 0 * element
    return row, WITHIN[:, None, None] * each + 4 * each * along + element


def _by_warps(machine: Machine, values: Sequence[Array]) -> Array:
    """Registers of all lanes: (blocks, warps, 32, registers)."""
    blocks, threads = machine.shape
    lanes = np.stack([np.broadcast_to(value, machine.shape) for value in values], axis=-1)
    return lanes.reshape(blocks, threads // WARP_SIZE, WARP_SIZE, len(values))


def whole_warps(machine: Machine, op: Operation) -> None:
    """raises ExecutionError unless all 32 lanes of each warp that is here are"""
    if machine.launch.threads % WARP_SIZE:
        lanes = np.arange(machine.launch.threads)[None, :] >= machine.launch.threads // WARP_SIZE * WARP_SIZE
        machine.refuse(op, lanes, "is run by a warp of less than 32 threads")
    check_warps(machine, op, np.ones((1, 1), np.bool_))


def _mma(op: Operation, mma: Mma) -> Kernel:
    of_a, of_b, of_c = mma.registers

    def matrix(machine: Machine, word: str, values: Sequence[Array], rows: int) -> Array:
        elements = elements_of(word, _by_warps(machine, values))
        row, column = places(len(values), elements.shape[-1], rows)
        found = np.zeros((*elements.shape[:2], rows, mma.depth))
        found[:, :, row, column] = elements
        return found

    def run(machine: Machine, *operands: Any) -> Value:
        whole_warps(machine, op)
        a = matrix(machine, mma.a, operands[:of_a], mma.rows)
        b = matrix(machine, mma.b, operands[of_a : of_a + of_b], 8)
        numbers = mma.rows * 8 // WARP_SIZE
        number = np.arange(numbers)
        row, column = GROUP[:, None] + 8 * (number // 2), WITHIN[:, None] * 2 + number % 2
        given = _by_warps(machine, operands[of_a + of_b :])
        if mma.to == "f16":
            given = elements_of("f16", given).reshape(*given.shape[:3], numbers)
        found = _product(mma, a, b, row, column, given)
        if mma.to == "f16":
            found = np.ascontiguousarray(found).view(np.int32)
        return tuple(found[..., n].reshape(machine.shape) for n in range(of_c))

    return run


def _product(mma: Mma, a: Array, b: Array, row: Array, column: Array, c: Array) -> Array:
    """The numbers of D that each lane holds: (blocks, warps, 32, numbers)."""
    if mma.to == "f64":
        total = c
        for k in range(mma.depth):
            total = scalars.fused_multiply_add(form_of(f64), a[:, :, row, k], b[:, :, column, k], total)
        return total
    with np.errstate(all="ignore"):
        sums = (a @ b.swapaxes(-1, -2))[:, :, row, column] + c.astype(F64)
        return rounded(mma.to, mma.saturates, sums)


def rounded(to: str, saturates: bool, sums: Array) -> Array:
    """Sums as numbers of the result's type."""
    if to != "s32":
        return sums.astype(np.float16 if to == "f16" else F32)
    if saturates:
        sums = np.clip(sums, -(2.0**31), 2.0**31 - 1)
    return sums.astype(np.int64).astype(np.int32)


# ---------------------------------------------------------------------------------------------- ldmatrix, stmatrix, movmatrix


def _row_address(machine: Machine, op: Operation, address: Array, number: int, row: Array) -> Array:
    """The address of a row of matrix `number`, of each lane's choice: that of lane 8 * number + row."""
    found = exchanged(machine, INDEX, address.astype(np.int64), row + 8 * number, np.ones_like(row, np.bool_))
    assert isinstance(found, np.ndarray)
    return found


def _lanes(machine: Machine, numbers: Array) -> Array:
    """A number of each lane of a warp, for all threads of a block."""
    return np.tile(numbers, machine.launch.threads // WARP_SIZE)[None, :].astype(np.int64)


def _check_rows(machine: Machine, op: Operation, address: Array, count: int) -> None:
    """raises ExecutionError for a row that is misaligned; only the first 8 * count lanes have one"""
    whole_warps(machine, op)
    check_alignment(machine, op, np.where(_lanes(machine, LANE) < 8 * count, address, 0), 16)


def _ldmatrix(op: Operation, count: int, is_transposed: bool) -> Kernel:
    def run(machine: Machine, address: Array) -> Value:
        _check_rows(machine, op, address, count)
        group, within = _lanes(machine, GROUP), _lanes(machine, WITHIN)
        found = list[Array]()
        for number in range(count):
            if not is_transposed:
                word: Any = load_value(
                    op, IntegerType(32), 4, machine, _row_address(machine, op, address, number, group) + 4 * within
                )
                found.append(word)
                continue
            halves = list[Array]()
            for half in (0, 1):
                start = _row_address(machine, op, address, number, 2 * within + half)
                part: Any = load_value(op, IntegerType(16), 2, machine, start + 2 * group)
                halves.append(part.view(np.uint16).astype(np.uint32))
            found.append((halves[0] | halves[1] << np.uint32(16)).view(np.int32))
        return found[0] if count == 1 else tuple(found)

    return run


def _stmatrix(op: Operation, count: int, is_transposed: bool) -> Kernel:
    def run(machine: Machine, address: Array, *values: Any) -> None:
        _check_rows(machine, op, address, count)
        group, within = _lanes(machine, GROUP), _lanes(machine, WITHIN)
        for number, value in enumerate(values):
            if not is_transposed:
                start = _row_address(machine, op, address, number, group)
                store_value(op, IntegerType(32), 4, machine, value, start + 4 * within)
                continue
            for half in (0, 1):
                start = _row_address(machine, op, address, number, 2 * within + half)
                part = (value.view(np.uint32) >> np.uint32(16 * half)).astype(np.uint16).view(np.int16)
                store_value(op, IntegerType(16), 2, machine, part, start + 2 * group)

    return run


def _movmatrix(op: Operation) -> Kernel:
    """The transpose: number (row, column) comes from the lane that holds (column, row)."""
    word = integer(32)

    def run(machine: Machine, value: Array) -> Array:
        whole_warps(machine, op)
        group, within = _lanes(machine, GROUP), _lanes(machine, WITHIN)
        total = np.zeros((1, 1), np.uint32)
        for half in (0, 1):
            source = 4 * (2 * within + half) + group // 2
            found = exchanged(machine, word, value, source, np.ones_like(source, np.bool_))
            assert isinstance(found, np.ndarray)
            part = found.view(np.uint32) >> (16 * (group % 2)).astype(np.uint32) & np.uint32(0xFFFF)
            total = total | part << np.uint32(16 * half)
        return total.view(np.int32)

    return run
