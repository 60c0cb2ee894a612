"""`llvm.intr.*` for memory: masked accesses of vectors, copies, and hints, which do nothing here.

    llvm.intr.masked.load %p, %mask, %other      element by element, each for the lanes in which its mask holds

A copy reads all of its bytes before it writes any, so that `memcpy` and `memmove` are the same.
Source: LLVM language reference, "Masked Vector Load and Store", "llvm.memcpy", "llvm.memset".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.ir import Attribute, Operation

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.data_layout import stride_of
from xla_emitters.dtypes import Array
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.code import Binary, Rules, first, nothing
from xla_emitters.runtime.simt.llvm_rules import load_value, store_value
from xla_emitters.runtime.simt.machine import Machine, Value, merge
from xla_emitters.runtime.simt.memory import bounds
from xla_emitters.runtime.simt.scalars import form_of, unsigned
from xla_emitters.runtime.simt.vector_rules import Elements, count_of

RULES = Rules()


def _lanes(machine: Machine, wanted: Array) -> Array | None:
    """The active lanes among `wanted`; None if there are none."""
    lanes = wanted if machine.active is None else wanted & machine.active
    return lanes if lanes.any() else None


def _element_type(ir_type: Attribute) -> Attribute:
    assert isa(ir_type, VectorType[Attribute])
    return ir_type.element_type


def _side_by_side(address: Array, ir_type: Attribute) -> list[Array]:
    """The address of each element of a vector in memory."""
    stride = stride_of(_element_type(ir_type))
    return [address + number * stride for number in range(count_of(ir_type))]


def _read(
    machine: Machine,
    op: Operation,
    ir_type: Attribute,
    alignment: int,
    addresses: Sequence[Array],
    mask: Elements,
    rest: Elements | None,
) -> Value:
    element = _element_type(ir_type)
    poison = scalars.poison(form_of(element))
    found: list[Value] = []
    for number, (address, wanted) in enumerate(zip(addresses, mask, strict=True)):
        other: Any = poison if rest is None else rest[number]
        lanes = _lanes(machine, wanted)
        if lanes is not None:
            with machine.only(lanes):
                other = merge(lanes, load_value(op, element, alignment, machine, address), other)
        found.append(other)
    return tuple(found)


def _write(
    machine: Machine,
    op: Operation,
    ir_type: Attribute,
    alignment: int,
    addresses: Sequence[Array],
    mask: Elements,
    values: Elements,
) -> None:
    element = _element_type(ir_type)
    for address, wanted, value in zip(addresses, mask, values, strict=True):
        if (lanes := _lanes(machine, wanted)) is not None:
            with machine.only(lanes):
                store_value(op, element, alignment, machine, value, address)


def _of_one(alignment: int, ir_type: Attribute) -> int:
    """The alignment in bytes of any element of a vector that starts at a multiple of `alignment`."""
    stride = stride_of(_element_type(ir_type))
    return min(alignment, stride & -stride)


@RULES.kernel(llvm.INTRINSICS["masked.load"])
def masked_load(op: Any, machine: Machine, address: Array, mask: Elements, rest: Elements | None = None) -> Value:
    ir_type = op.res.type
    alignment = _of_one(op.alignment.value.data, ir_type)
    return _read(machine, op, ir_type, alignment, _side_by_side(address, ir_type), mask, rest)


@RULES.kernel(llvm.INTRINSICS["masked.gather"])
def masked_gather(
    op: Any, machine: Machine, addresses: Elements, mask: Elements, rest: Elements | None = None
) -> Value:
    ir_type, alignment = op.res.type, op.alignment.value.data
    return _read(machine, op, ir_type, alignment, addresses, mask, rest)


@RULES.kernel(llvm.INTRINSICS["masked.store"])
def masked_store(op: Any, machine: Machine, values: Elements, address: Array, mask: Elements) -> None:
    ir_type = op.value.type
    alignment = _of_one(op.alignment.value.data, ir_type)
    _write(machine, op, ir_type, alignment, _side_by_side(address, ir_type), mask, values)


@RULES.kernel(llvm.INTRINSICS["masked.scatter"])
def masked_scatter(op: Any, machine: Machine, values: Elements, addresses: Elements, mask: Elements) -> None:
    ir_type, alignment = op.value.type, op.alignment.value.data
    _write(machine, op, ir_type, alignment, addresses, mask, values)


# ---------------------------------------------------------------------------------------------- copies


def _pieces(machine: Machine, size: Array, *addresses: Array) -> tuple[int, list[tuple[int, Array]]]:
    """The bytes that can be moved at once, and for each piece of that size its offset and the lanes that move it."""
    together = size
    for address in addresses:
        together = together | address
    if machine.active is not None:
        together = np.where(machine.active, together, 0)
    bits = int(np.bitwise_or.reduce(together, axis=None))
    unit = min(8, bits & -bits) if bits else 8
    _, most = bounds(size, machine.active)
    pieces: list[tuple[int, Array]] = []
    for offset in range(0, most, unit):
        lanes = _lanes(machine, size > offset)
        assert lanes is not None, "some lane moves the most bytes"
        pieces.append((offset, lanes))
    return unit, pieces


@RULES.kernel(llvm.INTRINSICS["memcpy"], llvm.INTRINSICS["memmove"])
def copy(op: Any, machine: Machine, to: Array, of: Array, size: Array) -> None:
    form = form_of(op.len.type)
    unit, pieces = _pieces(machine, unsigned(form, size).astype(np.int64), to, of)
    ir_type = IntegerType(8 * unit)
    read: list[Value] = []
    for offset, lanes in pieces:
        with machine.only(lanes):
            read.append(load_value(op, ir_type, unit, machine, of + offset))
    for (offset, lanes), value in zip(pieces, read, strict=True):
        with machine.only(lanes):
            store_value(op, ir_type, unit, machine, value, to + offset)


@RULES.kernel(llvm.INTRINSICS["memset"])
def fill(op: Any, machine: Machine, to: Array, byte: Array, size: Array) -> None:
    form = form_of(op.len.type)
    unit, pieces = _pieces(machine, unsigned(form, size).astype(np.int64), to)
    ir_type = IntegerType(8 * unit)
    repeated = np.repeat(np.ascontiguousarray(byte).view(np.uint8)[..., None], unit, axis=-1)
    value = scalars.from_bits(form_of(ir_type), repeated.view(f"u{unit}")[..., 0])
    for offset, lanes in pieces:
        with machine.only(lanes):
            store_value(op, ir_type, unit, machine, value, to + offset)


# ---------------------------------------------------------------------------------------------- hints


_HINTS = (llvm.INTRINSICS[name] for name in ("lifetime.start", "lifetime.end", "prefetch"))
RULES.kernel(*_HINTS, llvm.NoAliasScopeDeclOp)(nothing)
RULES.kernel(llvm.INTRINSICS["launder.invariant.group"], llvm.INTRINSICS["strip.invariant.group"])(first)


@RULES.elementwise(llvm.INTRINSICS["ptrmask"])
def ptrmask(op: Any) -> Binary:
    return np.bitwise_and
