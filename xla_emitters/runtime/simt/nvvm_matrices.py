"""Instructions in which a warp holds matrices: `mma`, `wmma`, `ldmatrix`, `stmatrix`, `movmatrix`, as intrinsics of their mnemonics.

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
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import f32, f64, i8, i16, i32
from xdsl.ir import Operation

from xla_emitters.dialects.mlir.mma_shapes import BITS, Fragment, Mma, Wmma
from xla_emitters.dtypes import Array
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.code import Kernel
from xla_emitters.runtime.simt.gpu_rules import WARP_SIZE, check_warps, exchanged
from xla_emitters.runtime.simt.llvm_rules import check_alignment, load_value, store_value
from xla_emitters.runtime.simt.machine import Machine, Value
from xla_emitters.runtime.simt.scalars import F32, F64, INDEX, form_of, integer

LANE = np.arange(WARP_SIZE)
GROUP, WITHIN = LANE // 4, LANE % 4
_FLOATS: dict[str, Any] = {
    **{"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2},
    **{"e3m2": ml_dtypes.float6_e3m2fn, "e2m3": ml_dtypes.float6_e2m3fn, "e2m1": ml_dtypes.float4_e2m1fn},
}
_OF_ROWS = re.compile(
    r"(ld|st)matrix\.sync\.aligned\.m(8|16)n(?:8|16)\.x([124])(\.trans)?\.b(8|16)(?:x16\.b([46])x16_p\d+)?"
)
_MASKS = {"e3m2": 63, "e2m3": 63, "e2m1": 15}
"""Type of less than 8 bits -> those of a byte that it has."""


@cache
def matrix_intrinsic(name: str) -> Kernel | None:
    """The kernel of an intrinsic without its `llvm.nvvm.`, which takes the op in front; None if it is none of these."""
    if (mma := Mma.of(name)) is not None:
        return partial(_mma, mma)
    if (wmma := Wmma.of(name)) is not None:
        return partial({"load": _wmma_load, "store": _wmma_store, "mma": _wmma}[wmma.kind], wmma)
    if (match := _OF_ROWS.fullmatch(name)) is not None:
        rows, count = (int(match[group]) for group in (2, 3))
        bits, is_transposed = int(match[6] or match[5]), match[4] is not None
        if match[1] == "st":
            return partial(_stmatrix, bits, is_transposed)
        if rows == 8 and bits == 16 and not is_transposed:
            return partial(_ldmatrix, count)
        return partial(_ldmatrix_parts, rows, count, bits, is_transposed)
    if name == "movmatrix.sync.aligned.m8n8.trans.b16":
        return _movmatrix
    return None


# ---------------------------------------------------------------------------------------------- mma


def elements_of(word: str, registers: Array, bits: int = 0) -> Array:
    """The numbers in registers (..., registers) as float64 (..., registers, elements of one), the lowest bits first.

    bits  of an element, by default its type's
    """
    if word == "f64":
        return registers[..., None]
    words = registers.view(np.uint32)[..., None]
    if word == "tf32":
        # The lower 13 bits are not used.
        return (words & np.uint32(0xFFFF_E000)).view(F32).astype(F64)
    bits = bits or BITS[word]
    if bits >= 8:
        parts = words.view(f"u{bits // 8}")
    else:
        parts = words >> np.arange(0, 32, bits, dtype=np.uint32) & np.uint32((1 << bits) - 1)
    if word == "f16":
        return parts.view(np.float16).astype(F64)
    if word == "bf16":
        return (parts.astype(np.uint32) << np.uint32(16)).view(F32).astype(F64)
    if word in _FLOATS:
        middle = parts >> parts.dtype.type(2 * (word == "e2m1" and bits == 8))
        return (middle & _MASKS.get(word, 255)).astype(np.uint8).view(_FLOATS[word]).astype(F64)
    numbers = parts.astype(np.int64)
    sign = 1 << bits - 1
    return ((numbers ^ sign) - sign if word[0] == "s" else numbers).astype(F64)


def of_warps(elements: Array, rows: int) -> Array:
    """A, or B's transpose (`rows` 8), float64 (..., rows, depth), from what warps hold (..., 32, registers, elements of one)."""
    order = _order(*elements.shape[-2:], rows)
    return elements.reshape(*elements.shape[:-3], -1).take(order, axis=-1)


@cache
def _order(count: int, each: int, rows: int) -> Array:
    """For each element of a matrix its place among those that a warp holds; int64 (rows, depth)."""
    register, element = np.arange(count)[None, :, None], np.arange(each)[None, None, :]
    high, along = (register % 2, register // 2) if rows == 16 else (np.zeros_like(register), register)
    row = GROUP[:, None, None] + 8 * high + 0 * element
    column = WITHIN[:, None, None] * each + 4 * each * along + element
    found = np.zeros((rows, WARP_SIZE * count * each // rows), np.int64)
    found[row, column] = np.arange(found.size).reshape(row.shape)
    return found


def by_groups(machine: Machine, values: Sequence[Array], threads: int = WARP_SIZE) -> Array:
    """Registers of all lanes: (blocks, warps or other groups of threads, threads of each, registers)."""
    lanes = np.stack([np.broadcast_to(value, machine.shape) for value in values], axis=-1)
    return lanes.reshape(machine.shape[0], -1, threads, len(values))


def whole_warps(machine: Machine, op: Operation) -> None:
    """raises ExecutionError unless all 32 lanes of each warp that is here are"""
    if machine.launch.threads % WARP_SIZE:
        lanes = np.arange(machine.launch.threads)[None, :] >= machine.launch.threads // WARP_SIZE * WARP_SIZE
        machine.refuse(op, lanes, "is run by a warp of less than 32 threads")
    check_warps(machine, op, np.ones((1, 1), np.bool_))


def _mma(mma: Mma, op: Operation, machine: Machine, *operands: Any) -> Value:
    of_a, of_b, of_c = mma.registers
    whole_warps(machine, op)
    a = of_warps(elements_of(mma.a, by_groups(machine, operands[:of_a]), mma.bits), mma.rows)
    b = of_warps(elements_of(mma.b, by_groups(machine, operands[of_a : of_a + of_b]), mma.bits), 8)
    if mma.scales:
        of_factors = operands[-6:]
        operands = operands[:-6]
        a = a * _factors(machine, op, mma, 16, *of_factors[:3])
        b = b * _factors(machine, op, mma, 8, *of_factors[3:])
    if mma.is_sparse:
        metadata, selector = operands[-2:]
        operands = operands[:-2]
        a = with_zeros(machine, op, mma, a, by_groups(machine, [metadata])[..., 0], selector)
    numbers = mma.rows * 8 // WARP_SIZE
    number = np.arange(numbers)
    row, column = GROUP[:, None] + 8 * (number // 2), WITHIN[:, None] * 2 + number % 2
    given = by_groups(machine, operands[of_a + of_b :])
    if mma.to == "f16":
        given = elements_of("f16", given).reshape(*given.shape[:3], numbers)
    found = _product(mma, a, b, row, column, given)
    if mma.to == "f16":
        found = np.ascontiguousarray(found).view(np.int32)
    return tuple(found[..., n].reshape(machine.shape) for n in range(of_c))


def _factors(machine: Machine, op: Operation, mma: Mma, rows: int, data: Array, byte: Array, thread: Array) -> Array:
    """The factor of each element of A, or of B's transpose: (blocks, warps, rows, depth).

    Bytes from `byte` on of some threads of each four: for A those of two threads, of rows group and group + 8; for B those of one.
    Source: PTX ISA 8.8, 9.7.14.3 "Block scaling"; CUTLASS's SFALayout and SFBLayout, include/cute/atom/mma_traits_sm120.hpp.
    """
    first, chosen = machine.uniform(byte), machine.uniform(thread)
    of_threads = 2 if rows == 16 else 4
    if first is None or chosen is None or first % mma.scales or not 0 <= first < 4 or not 0 <= chosen < of_threads:
        machine.refuse(op, np.ones((1, 1), np.bool_), f"takes scales from byte {first} of threads {chosen}")
    row, start = np.arange(rows), int(first or 0)
    lane = row % 8 * 4 + (2 * int(chosen or 0) + row // 8 if rows == 16 else int(chosen or 0))
    words = by_groups(machine, [data]).view(np.uint32)[:, :, lane]
    codes = words >> np.arange(8 * start, 8 * (start + mma.scales), 8, dtype=np.uint32) & np.uint32(255)
    return scale_factors(mma.scale or "", codes).repeat(mma.depth // mma.scales, axis=-1)


def scale_factors(word: str, codes: Array) -> Array:
    """The numbers, float64, of codes of `ue4m3` or of `ue8m0`."""
    if word == "ue4m3":
        return elements_of("e4m3", codes & np.uint32(127))[..., 0]
    return np.where(codes == 255, np.nan, np.ldexp(1.0, codes.astype(np.int64) - 127))


def with_zeros(machine: Machine, op: Operation, mma: Mma, a: Array, metadata: Array, selector: Array) -> Array:
    """A with its zeros: (blocks, warps, 16, depth) from (blocks, warps, 16, depth / 2).

    Four bits say where two of four neighbours are (tf32: one of two). Of each four threads some give theirs: 16 bits of rows group and
    group + 8, for 16-bit types and tf32; for others 32 bits of row group (even threads) or group + 8. Source: 9.7.14.6.1; whose bits are
    where, as `reorder_meta` of CUTLASS's tools/util/include/cutlass/util/host_reorder.h arranges them for `ldmatrix`.
    """
    width = 2 if mma.a == "tf32" else 4
    row, chunk = np.arange(16)[:, None], np.arange(mma.depth // width)[None, :]
    has_halves, threads = mma.bits > 8, mma.depth // width // 4
    first = machine.uniform(selector)
    if first is None or not 0 <= first < 4 // threads:
        machine.refuse(op, np.ones((1, 1), np.bool_), f"takes metadata of threads {first}, of {4 // threads} choices")
    start = 4 * (row % 8) + (first or 0) * threads
    if has_halves:
        lane, shift = start + chunk // 4, 16 * (row // 8) + 4 * (chunk % 4)
    else:
        lane, shift = start + row // 8 + 2 * (chunk // 8), 4 * (chunk % 8)
    bits = metadata.view(np.uint32)[:, :, lane] >> shift.astype(np.uint32) & np.uint32(15)
    places = np.stack([bits & 3, bits >> 2], axis=-1).astype(np.int64)
    wrong = places[..., 0] >= places[..., 1]
    if mma.a == "tf32":
        wrong = (bits != 0b0100) & (bits != 0b1110)
        places = places[..., :1] // 2
    bad = wrong.any(axis=(-1, -2)).repeat(WARP_SIZE, axis=1)
    machine.refuse(op, bad, "has metadata that names no neighbours in order")
    found = np.zeros((*a.shape[:-1], mma.depth))
    where = (places + width * chunk[..., None]).reshape(*places.shape[:-2], -1)
    np.put_along_axis(found, where, a, axis=-1)
    return found


def _product(mma: Mma, a: Array, b: Array, row: Array, column: Array, c: Array) -> Array:
    """The numbers of D that each lane holds: (blocks, warps, 32, numbers)."""
    if mma.to == "f64":
        total = c
        for k in range(mma.depth):
            total = scalars.fused_multiply_add(form_of(f64), a[:, :, row, k], b[:, :, column, k], total)
        return total
    with np.errstate(all="ignore"):
        sums = a @ b.swapaxes(-1, -2)
        if mma.combine == "xor":
            sums = a.sum(axis=-1)[..., :, None] + b.sum(axis=-1)[..., None, :] - 2 * sums
        return rounded(mma.to, mma.saturates, sums[:, :, row, column] + c.astype(F64))


def rounded(to: str, saturates: bool, sums: Array) -> Array:
    """Sums as numbers of the result's type."""
    if to != "s32":
        return sums.astype(np.float16 if to == "f16" else F32)
    if saturates:
        sums = np.clip(sums, -(2.0**31), 2.0**31 - 1)
    return sums.astype(np.int64).astype(np.int32)


# ---------------------------------------------------------------------------------------------- wmma

_IN_MEMORY = {"f16": i16, "bf16": i16, "tf32": i32, "f32": f32, "s32": i32, "f64": f64, "s8": i8, "u8": i8}


def _elements(machine: Machine, fragment: Fragment) -> list[tuple[Array, Array]]:
    """Row and column of each element that a thread holds, for all threads of a block."""
    numbers = (_lanes(machine, LANE) * fragment.count + n for n in range(fragment.count))
    return [np.divmod(number % (fragment.rows * fragment.columns), fragment.columns) for number in numbers]


def _places(machine: Machine, wmma: Wmma, address: Array, stride: Array) -> list[Array]:
    """The addresses of a thread's elements."""
    (fragment,) = wmma.fragments
    size = form_of(_IN_MEMORY[fragment.element]).size
    at = [(row, column) if wmma.is_row else (column, row) for row, column in _elements(machine, fragment)]
    return [address + (outer * stride.astype(np.int64) + inner) * size for outer, inner in at]


def _wmma_load(wmma: Wmma, op: Operation, machine: Machine, address: Array, stride: Array) -> Value:
    (fragment,) = wmma.fragments
    ir_type = _IN_MEMORY[fragment.element]
    size = form_of(ir_type).size
    whole_warps(machine, op)
    loaded: list[Any] = [
        load_value(op, ir_type, size, machine, place) for place in _places(machine, wmma, address, stride)
    ]
    if size >= 4:
        return loaded[0] if len(loaded) == 1 else tuple(loaded)
    values = np.stack([np.broadcast_to(value, machine.shape) for value in loaded], axis=-1)
    words = np.ascontiguousarray(values).view(np.int32)
    return words[..., 0] if words.shape[-1] == 1 else tuple(words[..., n] for n in range(words.shape[-1]))


def _wmma_store(wmma: Wmma, op: Operation, machine: Machine, address: Array, stride: Array, *registers: Array) -> None:
    (fragment,) = wmma.fragments
    ir_type = _IN_MEMORY[fragment.element]
    form = form_of(ir_type)
    whole_warps(machine, op)
    values = np.stack([np.broadcast_to(register, machine.shape) for register in registers], axis=-1)
    if form.size < 4:
        values = np.ascontiguousarray(values).view(form.storage)
    for number, place in enumerate(_places(machine, wmma, address, stride)):
        store_value(op, ir_type, form.size, machine, values[..., number], place)


def _wmma(wmma: Wmma, op: Operation, machine: Machine, *operands: Any) -> Value:
    whole_warps(machine, op)
    left, matrices = list(operands), list[Array]()
    for fragment in wmma.fragments[:3]:
        values = by_groups(machine, [left.pop(0) for _ in range(fragment.registers)])
        if fragment.element not in ("f32", "s32"):
            values = elements_of(fragment.element, values)
        flat = values.astype(F64).reshape(*values.shape[:2], -1)[..., : fragment.rows * fragment.columns]
        matrices.append(flat.reshape(*values.shape[:2], fragment.rows, fragment.columns))
    result = wmma.fragments[3]
    with np.errstate(all="ignore"):
        found = _wmma_product(result.element, wmma.saturates, *matrices)
    found = np.ascontiguousarray(found.reshape(*found.shape[:2], WARP_SIZE, -1))
    words = found.view(np.int32) if result.element == "f16" else found
    return tuple(words[..., n].reshape(machine.shape) for n in range(result.registers))


def _wmma_product(to: str, saturates: bool, a: Array, b: Array, c: Array) -> Array:
    if to == "f64":
        for k in range(a.shape[-1]):
            c = scalars.fused_multiply_add(form_of(f64), a[..., k, None], b[..., None, k, :], c)
        return c
    return rounded(to, saturates, a @ b + c)


# ---------------------------------------------------------------------------------------------- ldmatrix, stmatrix, movmatrix


def _row_address(machine: Machine, op: Operation, address: Array, number: int, row: Array, rows: int = 8) -> Array:
    """The address of a row of matrix `number`, of each lane's choice: that of lane rows * number + row."""
    found = exchanged(machine, INDEX, address.astype(np.int64), row + rows * number, np.ones_like(row, np.bool_))
    assert isinstance(found, np.ndarray)
    return found


def _lanes(machine: Machine, numbers: Array) -> Array:
    """A number of each lane of a warp, for all threads of a block."""
    return np.tile(numbers, machine.launch.threads // WARP_SIZE)[None, :].astype(np.int64)


def _check_rows(machine: Machine, op: Operation, address: Array, count: int) -> None:
    """raises ExecutionError for a row that is misaligned; only the first `count` lanes have one"""
    whole_warps(machine, op)
    check_alignment(machine, op, np.where(_lanes(machine, LANE) < count, address, 0), 16)


def _ldmatrix(count: int, op: Operation, machine: Machine, address: Array) -> Value:
    """A lane has two neighbours of a row, of 16 bits each."""
    _check_rows(machine, op, address, 8 * count)
    group, within = _lanes(machine, GROUP), _lanes(machine, WITHIN)
    starts = (_row_address(machine, op, address, number, group) for number in range(count))
    found: list[Any] = [load_value(op, i32, 4, machine, start + 4 * within) for start in starts]
    return found[0] if count == 1 else tuple(found)


def _ldmatrix_parts(
    rows: int, count: int, bits: int, is_transposed: bool, op: Operation, machine: Machine, address: Array
) -> Value:
    """A lane has neighbours of a row, or of a column and, where there are 16 rows, of the 8th column after it.

    bits  of an element in memory; those of 6 and 4 become bytes
    """
    _check_rows(machine, op, address, rows * count)
    group, within, each = _lanes(machine, GROUP), _lanes(machine, WITHIN), max(8, bits)
    unit, size = (i16, 2) if bits == 16 else (i8, 1)

    def element(number: int, row: Array, column: Array) -> Array:
        start = _row_address(machine, op, address, number, row, rows)
        places = [column * bits // each * size, (column * bits + bits - 1) // each * size]
        loaded: list[Any] = [
            load_value(op, unit, size, machine, start + place) for place in places[: 2 if bits == 6 else 1]
        ]
        low, high = (part.view(f"u{size}").astype(np.uint32) for part in (loaded[0], loaded[-1]))
        both = low | high << np.uint32(8) if bits == 6 else low
        return both >> (column * bits % each).astype(np.uint32) & np.uint32((1 << bits) - 1)

    found, parts = list[Array](), 32 // each
    for number in range(count):
        for half in range(rows // 8):
            word = np.zeros((1, 1), np.uint32)
            for place in range(parts):
                along, across = parts * within + place, group + 8 * half
                row, column = (along, across) if is_transposed else (across, along)
                word = word | element(number, row, column) << np.uint32(each * place)
            found.append(word.view(np.int32))
    return found[0] if len(found) == 1 else tuple(found)


def _stmatrix(bits: int, is_transposed: bool, op: Operation, machine: Machine, address: Array, *values: Any) -> None:
    """A lane has two neighbours of a row; in bytes, those of the 8th row after it too, and the matrix is stored by columns."""
    _check_rows(machine, op, address, 8 * len(values))
    group, within = _lanes(machine, GROUP), _lanes(machine, WITHIN)
    unit, size = (i16, 2) if bits == 16 else (i8, 1)
    for number, value in enumerate(values):
        if not is_transposed:
            start = _row_address(machine, op, address, number, group)
            store_value(op, i32, 4, machine, value, start + 4 * within)
            continue
        for place in range(32 // bits):
            start = _row_address(machine, op, address, number, 2 * within + place % 2)
            part = (value.view(np.uint32) >> np.uint32(bits * place)).astype(f"u{size}").view(f"i{size}")
            store_value(op, unit, size, machine, part, start + (group + 8 * (place // 2)) * size)


def _movmatrix(op: Operation, machine: Machine, value: Array) -> Array:
    """The transpose: number (row, column) comes from the lane that holds (column, row)."""
    word = integer(32)
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
