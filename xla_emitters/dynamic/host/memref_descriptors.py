"""A buffer as its parts: MLIR's memref descriptor, which the runtime's functions take apart.

    memref<?x4xf32>     !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)>
                        allocated, aligned, offset, sizes, strides (both only from rank 1 on)

`allocated` is the pointer to free, null if the buffer is not to be freed; `aligned` is the address of its first element. Buffers here are
row-major with offset 0. Elements are stored as in NumPy: an i1 in one byte, an index in eight.
Source: MLIR, "Target LLVM IR", ranked memrefs; docs/reference/4 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    UnrealizedConversionCastOp,
    i8,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith, llvm

POINTER = llvm.LLVMPointerType()
HEAD = 3
"""Number of parts before the sizes."""


def memref_type(buffer: SSAValue) -> MemRefType[Attribute]:
    """The type of a buffer."""
    assert isa(buffer.type, MemRefType[Attribute])
    return buffer.type


def descriptor_type(ir_type: Attribute) -> llvm.LLVMStructType:
    """The descriptor of a buffer."""
    assert isa(ir_type, MemRefType[Attribute])
    rank = ir_type.get_num_dims()
    return llvm.LLVMStructType.from_type_list(
        [POINTER, POINTER, i64, *[llvm.LLVMArrayType(rank, i64)] * (2 * bool(rank))]
    )


def part_types(ir_type: Attribute) -> list[Attribute]:
    """The types of a buffer's parts, in order: 3, and two for each dimension."""
    assert isa(ir_type, MemRefType[Attribute])
    return [POINTER, POINTER, i64, *[i64] * (2 * ir_type.get_num_dims())]


def _position(number: int, rank: int) -> list[int]:
    """The position of a part in the descriptor."""
    return [number] if number < HEAD else [HEAD + (number - HEAD) // rank, (number - HEAD) % rank]


def cast(builder: Builder, value: SSAValue, wanted: Attribute) -> SSAValue:
    """A cast of the value to another type; `disc-lower-host-memrefs` removes it."""
    if value.type == wanted:
        return value
    return builder.insert(UnrealizedConversionCastOp.get([value], [wanted])).results[0]


def part(builder: Builder, buffer: SSAValue, number: int) -> SSAValue:
    """One part of a buffer."""
    ir_type = memref_type(buffer)
    descriptor = cast(builder, buffer, descriptor_type(ir_type))
    wanted = part_types(ir_type)[number]
    position = _position(number, ir_type.get_num_dims())
    return builder.insert(llvm.ExtractValueOp(_dense(position), descriptor, wanted)).results[0]


def parts_of(builder: Builder, buffer: SSAValue) -> list[SSAValue]:
    """All parts of a buffer, in order."""
    return [part(builder, buffer, number) for number in range(len(part_types(buffer.type)))]


def sizes_of_buffer(builder: Builder, buffer: SSAValue) -> list[SSAValue]:
    """A buffer's sizes as i64, static ones as constants."""
    ir_type = memref_type(buffer)
    return [
        integer(builder, size) if size >= 0 else part(builder, buffer, HEAD + dim)
        for dim, size in enumerate(ir_type.get_shape())
    ]


def buffer_of(builder: Builder, parts: Sequence[SSAValue], ir_type: Attribute) -> SSAValue:
    """The buffer of that type with these parts."""
    assert isa(ir_type, MemRefType[Attribute])
    kind, rank = descriptor_type(ir_type), ir_type.get_num_dims()
    made: SSAValue = builder.insert(llvm.PoisonOp(kind)).results[0]
    for number, value in enumerate(parts):
        made = builder.insert(llvm.InsertValueOp(_dense(_position(number, rank)), made, value)).results[0]
    return cast(builder, made, ir_type)


def row_major(
    builder: Builder, allocated: SSAValue, aligned: SSAValue, sizes: Sequence[SSAValue], ir_type: Attribute
) -> SSAValue:
    """The buffer of that type at an address.

    sizes   all of them, as i64
    """
    strides, stride = list[SSAValue](), integer(builder, 1)
    for size in reversed(sizes):
        strides.insert(0, stride)
        stride = builder.insert(arith.MuliOp(stride, size)).result
    return buffer_of(builder, [allocated, aligned, integer(builder, 0), *sizes, *strides], ir_type)


def integer(builder: Builder, value: int) -> SSAValue:
    return builder.insert(arith.ConstantOp(IntegerAttr(value, i64))).result


def as_i64(builder: Builder, value: SSAValue) -> SSAValue:
    """An index as i64."""
    return value if value.type == i64 else builder.insert(arith.IndexCastOp(value, i64)).result


def null(builder: Builder) -> SSAValue:
    return builder.insert(llvm.ZeroOp(POINTER)).results[0]


def memory_type(element: Attribute) -> Attribute:
    """The type of an element in memory."""
    if isinstance(element, IndexType):
        return i64
    if isinstance(element, IntegerType):
        return i8 if element.bitwidth < 8 else IntegerType(element.bitwidth)
    return element


def _dense(position: Sequence[int]) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(i64, position)
