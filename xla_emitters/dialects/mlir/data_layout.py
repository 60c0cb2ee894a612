"""Where LLVM's types lie in memory on a GPU: sizes, alignments, offsets of fields.

A type is aligned to its size; a vector's is rounded up to a power of two. Elements of fewer than 8 bits share bytes in vectors.
Source: LLVM language reference; LLVM's data layout for nvptx64.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerType, VectorType
from xdsl.ir import Attribute

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dtypes import dtype_of


def bits_of(ir_type: Attribute) -> int:
    """The width of a number, a pointer, or a vector of them. raises Unsupported for a type that is none"""
    if isa(ir_type, VectorType):
        return bits_of(ir_type.element_type) * ir_type.element_count()
    if isinstance(ir_type, llvm.LLVMPointerType | IndexType):
        return 64
    return ir_type.width.data if isa(ir_type, IntegerType) else dtype_of(ir_type).bits


def size_and_alignment(ir_type: Attribute) -> tuple[int, int]:
    """Bytes of a value in memory without padding after it, and the alignment in bytes that an access assumes."""
    match ir_type:
        case llvm.LLVMArrayType():
            return stride_of(ir_type.type) * ir_type.size.data, size_and_alignment(ir_type.type)[1]
        case llvm.LLVMStructType():
            fields = [size_and_alignment(field) for field in ir_type.types]
            alignment = max((alignment for _, alignment in fields), default=1)
            end = field_offsets(ir_type)[-1] + fields[-1][0] if fields else 0
            return -(-end // alignment) * alignment, alignment
        case _:
            size = -(-bits_of(ir_type) // 8)
            alignment = 1 << (size - 1).bit_length()
            return size if isinstance(ir_type, VectorType) else alignment, alignment


def stride_of(ir_type: Attribute) -> int:
    """Bytes from one element to the next in an array."""
    size, alignment = size_and_alignment(ir_type)
    return -(-size // alignment) * alignment


def field_offsets(struct: llvm.LLVMStructType) -> list[int]:
    """Byte offset of each field."""
    offsets, end = list[int](), 0
    for field in struct.types:
        size, alignment = size_and_alignment(field)
        offsets.append(-(-end // alignment) * alignment)
        end = offsets[-1] + size
    return offsets
