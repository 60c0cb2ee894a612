"""`memref`: memory that ops read and write in place. A memref is held as a `Tensor`; all its values refer to the current memory.

    memref.alloca() : memref<4xf32>                                a private buffer of each thread; alloc too
    memref.alloca() : memref<4xf32, #gpu.address_space<workgroup>> one of each block; also memory space 3, and of a size known at run time
    memref.get_global @g                                           one for all

Only row-major memrefs without an offset: a view with an offset or other strides raises Unsupported.
Source: MLIR 22, memref dialect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    MemRefType,
    NoneAttr,
)
from xdsl.ir import Attribute, Operation
from xdsl.traits import SymbolTable

from xla_emitters.algebra.shape_maps import row_major_strides
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import memref
from xla_emitters.dialects.mlir.memref import ATOMIC_KINDS
from xla_emitters.dtypes import Array
from xla_emitters.errors import ExecutionError, Unsupported
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.arith_rules import FLOAT_OPS, INTEGER_OPS, OfForm, dense_values
from xla_emitters.runtime.simt.atomic_rules import instances, take_turns
from xla_emitters.runtime.simt.code import Kernel, Rules, first, nothing
from xla_emitters.runtime.simt.machine import Machine, Tensor, Value
from xla_emitters.runtime.simt.memory import Buffer, Space
from xla_emitters.runtime.simt.scalars import INDEX, Form, form_of
from xla_emitters.runtime.simt.tensor_rules import dim, element_index, extract, store

RULES = Rules()

SHARED_SPACE = 3
"""The number of shared memory in LLVM's NVPTX target."""


def _type_of(op: Operation, memref_type: Attribute) -> tuple[Form, tuple[int, ...]]:
    """Form and extents. raises Unsupported for a memref that is not row major from its first element on, or of unknown size."""
    if (
        not isa(memref_type, MemRefType)
        or not isinstance(memref_type.layout, NoneAttr)
        or any(n < 0 for n in memref_type.get_shape())
    ):
        raise Unsupported(f"{op.name} of {memref_type}", stage="simt", details=(str(op).splitlines()[0],))
    return form_of(memref_type.element_type), memref_type.get_shape()


def _space_of(memref_type: MemRefType) -> Space:
    space = memref_type.memory_space
    is_shared = isa(space, IntegerAttr) and space.value.data == SHARED_SPACE
    return Space.SHARED if is_shared or "workgroup" in str(space) else Space.PRIVATE


@RULES.op(memref.AllocOp, memref.AllocaOp)
def allocate(op: memref.AllocOp | memref.AllocaOp) -> Kernel:
    assert isa(op.memref.type, MemRefType)
    space = _space_of(op.memref.type)
    if space is Space.SHARED and isinstance(op.memref.type.layout, NoneAttr):
        form, shape = form_of(op.memref.type.element_type), op.memref.type.get_shape()
    else:
        form, shape = _type_of(op, op.memref.type)
    alignment = op.alignment.value.data if isa(op.alignment, IntegerAttr) else form.size

    def run(machine: Machine, *sizes: Array) -> Tensor:
        left = iter(sizes)
        extents = [extent if extent >= 0 else one_size(machine, next(left)) for extent in shape]

        def fresh() -> Buffer:
            return machine.memory.allocate(op.name, space, prod(extents) * form.size, alignment)

        # Shared memory is allocated once for all threads of a block.
        buffer = machine.memory.once(op, fresh) if space is Space.SHARED else fresh()
        return machine.tensor(buffer, form, tuple(extents), row_major_strides(extents))

    def one_size(machine: Machine, size: Array) -> int:
        found = machine.uniform(size)
        if found is None:
            raise ExecutionError(f"{op.name} allocates shared memory of another size in each thread", stage="simt")
        return found

    return run


RULES.kernel(memref.DeallocOp)(nothing)


@RULES.op(memref.GetGlobalOp)
def get_global(op: memref.GetGlobalOp) -> Callable[[Machine], Tensor]:
    form, shape = _type_of(op, op.memref.type)
    found = SymbolTable.lookup_symbol(op, op.name_)
    if not isinstance(found, memref.GlobalOp):
        raise Unsupported(f"{op.name} of {op.name_}, which the module does not define", stage="simt")
    assert isa(found.type, MemRefType)
    space, size = _space_of(found.type), int(np.prod(shape)) * form.size
    initial, alignment = found.properties.get("initial_value"), 256
    if isa(found.alignment, IntegerAttr):
        alignment = found.alignment.value.data

    def make(machine: Machine) -> Buffer:
        name = f"@{found.sym_name.data}"
        if space is Space.SHARED:
            return machine.memory.allocate(name, space, size, alignment)
        data = np.full(size, 0xA5, np.uint8)
        if isa(initial, DenseIntOrFPElementsAttr):
            data = scalars.to_bits(form, dense_values(form, initial)).reshape(-1).view(np.uint8)
        return machine.memory.add(name, data, alignment, writable=found.constant is None)

    def run(machine: Machine) -> Tensor:
        buffer = machine.memory.once(found, partial(make, machine))
        return machine.tensor(buffer, form, shape, row_major_strides(shape))

    return run


RULES.kernel(memref.LoadOp)(extract)


@RULES.kernel(memref.StoreOp)
def store_element(op: memref.StoreOp, machine: Machine, value: Array, target: Tensor, *indices: Array) -> None:
    store(machine, op, target, element_index(machine, op, target, indices), value)


def _combination(kind: str) -> OfForm | None:
    """The op of a kind of atomic updates: an integer op's name, or an op's name with `i` or `f` behind it. None for `assign`."""
    if kind == "assign":
        return None
    if kind in INTEGER_OPS:
        return INTEGER_OPS[kind]
    return (INTEGER_OPS if kind.endswith("i") else FLOAT_OPS)[kind[:-1]]


@RULES.op(memref.AtomicRMWOp)
def atomic_rmw(op: memref.AtomicRMWOp) -> Kernel:
    """Lanes that update one element take turns; each gets the value before its update."""
    form, combination = form_of(op.value.type), _combination(ATOMIC_KINDS[op.kind.value.data])
    combine = combination(form) if combination is not None else None

    def run(machine: Machine, value: Array, target: Tensor, *indices: Array) -> Array:
        index = element_index(machine, op, target, indices)
        memory, buffer = machine.memory, target.buffer
        before = np.zeros(machine.shape, form.lanes)

        def update() -> None:
            old = scalars.from_bits(form, memory.gather(op, buffer, index, form.storage, machine.active))
            np.copyto(before, old, where=machine.lanes)
            store(machine, op, target, index, value if combine is None else combine(old, value))

        take_turns(machine, instances(buffer, index, form.size), update)
        return before

    return run


RULES.kernel(memref.CastOp, memref.MemorySpaceCastOp, memref.AssumeAlignmentOp)(first)


@RULES.op(memref.CollapseShapeOp, memref.ExpandShapeOp)
def reshape(op: memref.CollapseShapeOp | memref.ExpandShapeOp) -> Kernel:
    _type_of(op, op.src.type)
    _, shape = _type_of(op, op.result.type)

    def run(machine: Machine, source: Tensor, *extents: Value) -> Tensor:
        return replace(source, shape=shape, strides=row_major_strides(shape))

    return run


RULES.kernel(memref.DimOp)(dim)


@RULES.op(memref.RankOp)
def rank(op: Operation) -> Callable[[Machine, Tensor], Array]:
    return lambda machine, source: scalars.constant(INDEX, len(source.shape))


@RULES.op(memref.ExtractAlignedPointerAsIndexOp)
def pointer(op: Operation) -> Callable[[Machine, Tensor], Array]:
    return lambda machine, source: scalars.constant(INDEX, source.buffer.base)
