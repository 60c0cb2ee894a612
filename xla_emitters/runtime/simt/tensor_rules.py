"""`tensor`: elements of buffers. An insert writes in place and returns the buffer's newest value.

    tensor.extract %t[%i, %j] : tensor<8x16xf32>     each index is checked against its own dimension, then element i * 16 + j is read

A tensor whose encoding is a dense minor-to-major order is stored in that order, the same memory that flattened indices address.
Small tensors that a thread creates (`tensor.from_elements`, `splat`, `empty`) are private buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, NoneAttr, TensorType
from xdsl.ir import Attribute, Operation

from xla_emitters.algebra.shape_maps import row_major_strides
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import tensor
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.code import Kernel, Rules, first
from xla_emitters.runtime.simt.machine import Machine, Tensor
from xla_emitters.runtime.simt.memory import Space, all_below
from xla_emitters.runtime.simt.scalars import form_of

RULES = Rules()


def tensor_strides(tensor_type: TensorType[Attribute]) -> tuple[int, ...]:
    """Elements between neighbours along each dimension. raises Unsupported for an encoding other than a minor-to-major order."""
    shape = tensor_type.get_shape()
    if isinstance(encoding := tensor_type.encoding, NoneAttr):
        return row_major_strides(shape)
    if not isinstance(encoding, DenseIntOrFPElementsAttr):
        raise Unsupported(f"tensor encoding {encoding}", stage="simt")
    strides, step = [0] * len(shape), 1
    for dimension in encoding.get_values():
        strides[int(dimension)] = step
        step *= shape[int(dimension)]
    return tuple(strides)


def element_index(machine: Machine, op: Operation, source: Tensor, indices: Sequence[Array]) -> Array:
    """Offset of an element in its buffer, in elements. raises ExecutionError naming the dimension whose index is out of bounds."""
    index = np.zeros((1, 1), np.int64)
    for dimension, (number, extent, stride) in enumerate(zip(indices, source.shape, source.strides, strict=True)):
        if len(indices) > 1 and not all_below(number, extent):
            outside = (number < 0) | (number >= extent)
            machine.refuse(
                op,
                outside,
                f"has an index outside of dimension {dimension}, 0 to {extent - 1}, of {source.buffer.name}",
            )
        index = index + (number if stride == 1 else number * stride)
    return index


@RULES.kernel(tensor.ExtractOp)
def extract(op: Operation, machine: Machine, source: Tensor, *indices: Array) -> Array:
    return element_of(machine, op, source, indices)


def element_of(machine: Machine, op: Operation, source: Tensor, indices: Sequence[Array]) -> Array:
    """One element per active lane. raises ExecutionError for an overwritten tensor or an index out of bounds."""
    machine.check_newest(op, source)
    memory, form = machine.memory, source.element
    index = element_index(machine, op, source, indices)
    return scalars.from_bits(form, memory.gather(op, source.buffer, index, form.storage, machine.active))


@RULES.kernel(tensor.InsertOp)
def insert(op: tensor.InsertOp, machine: Machine, scalar: Array, target: Tensor, *indices: Array) -> Tensor:
    return with_element(machine, op, target, indices, scalar)


def with_element(machine: Machine, op: Operation, target: Tensor, indices: Sequence[Array], scalar: Array) -> Tensor:
    """The tensor after each active lane has replaced one element. raises as `element_of`."""
    machine.check_newest(op, target)
    index = element_index(machine, op, target, indices)
    store(machine, op, target, index, scalar)
    return machine.updated(target)


def store(machine: Machine, op: Operation, target: Tensor, index: Array, scalar: Array) -> None:
    """Writes one element per active lane."""
    bits = scalars.to_bits(target.element, scalar)
    machine.memory.scatter(op, target.buffer, index, bits, machine.active)


def static_shape(op: Operation, tensor_type: Attribute) -> tuple[int, ...]:
    """The extents of a tensor type. raises Unsupported if one is dynamic."""
    assert isa(tensor_type, TensorType[Attribute])
    shape = tensor_type.get_shape()
    if any(extent < 0 for extent in shape):
        raise Unsupported(f"{op.name} of {tensor_type}: its extents are not constant", stage="simt")
    return shape


def private(op: Operation) -> Callable[[Machine, Sequence[Array]], Tensor]:
    """(machine, elements) -> a tensor of the type of `op`'s result in a private buffer; `elements` are row major, none: left unset."""
    result_type = op.results[0].type
    assert isa(result_type, TensorType[Attribute])
    shape, strides, form = static_shape(op, result_type), tensor_strides(result_type), form_of(result_type)
    offsets = [int(np.dot(position, strides)) if shape else 0 for position in np.ndindex(*shape)]

    def run(machine: Machine, elements: Sequence[Array]) -> Tensor:
        buffer = machine.memory.allocate(op.name, Space.PRIVATE, len(offsets) * form.size, alignment=16)
        made = machine.tensor(buffer, form, shape, strides)
        for offset, value in zip(offsets, elements, strict=False):
            # One index per lane: each lane has its own instance of the buffer.
            store(machine, op, made, np.full(machine.shape, offset, np.int64), value)
        return made

    return run


@RULES.op(tensor.EmptyOp, tensor.SplatOp, tensor.FromElementsOp)
def make(op: tensor.EmptyOp | tensor.SplatOp | tensor.FromElementsOp) -> Kernel:
    new, count = private(op), int(np.prod(static_shape(op, op.results[0].type)))

    def run(machine: Machine, *elements: Array) -> Tensor:
        return new(machine, elements * count if isinstance(op, tensor.SplatOp) else elements)

    return run


RULES.kernel(tensor.CastOp)(first)


@RULES.kernel(tensor.DimOp)
def dim(op: Operation, machine: Machine, source: Tensor, dimension: Array) -> Array:
    outside = (dimension < 0) | (dimension >= len(source.shape))
    machine.refuse(op, outside, "asks for a dimension that does not exist")
    return np.array(source.shape, np.int64)[dimension.clip(0, len(source.shape) - 1)]
