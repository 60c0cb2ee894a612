"""How a kernel's buffers store elements, and the conversions between stored and computed types.

    i8 ... i64, f16, bf16, f32, f64     themselves
    i1                                  one byte, 0 or 1
    8-bit floats                        a byte, bitcast after the load and before the store
    complex                             a vector of two, loaded by one access: the real part, then the imaginary
    i4, i2, f4                          packed, the first element in the low bits of its byte

Source: XLA lower_tensors.cc; docs/reference/2 3.3.
"""

from __future__ import annotations

from functools import cache

from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    AnyFloat,
    ComplexType,
    DenseIntOrFPElementsAttr,
    FixedBitwidthType,
    IntegerAttr,
    IntegerType,
    Signedness,
    VectorType,
    i1,
    i8,
)
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.attributes import vector_type
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith, vector
from xla_emitters.dialects.mlir.vector import FromElementsOp
from xla_emitters.dtypes import dtype_of
from xla_emitters.errors import Unsupported
from xla_emitters.rewrite.constants import literal
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True)
class Storage:
    """How a buffer holds elements of one type.

    memory   the type that a load returns: the element's own, an integer of the same width, or a vector of a complex number's parts
    bits     of one element in the buffer; elements of fewer than 8 bits share a byte
    """

    memory: IntegerType | AnyFloat | VectorType
    bits: int

    @property
    def addressed(self) -> Attribute:
        """The unit that addresses count: an element, or a byte of several elements."""
        return i8 if self.bits < 8 else self.memory

    @property
    def addressed_bits(self) -> int:
        return max(8, self.bits)


@cache
def storage_of(element: Attribute) -> Storage:
    """How elements of a type are stored. raises Unsupported for types that kernels do not store."""
    row = dtype_of(element)
    if element == i1:
        return Storage(i8, 8)
    if isa(element, ComplexType[AnyFloat]):
        return Storage(VectorType(element.element_type, [2]), row.bits)
    signed = isa(element, IntegerType) and element.signedness.data is not Signedness.SIGNLESS
    if signed or not isinstance(element, FixedBitwidthType) or element.bitwidth != row.bits:
        raise Unsupported(f"kernels do not store elements of type {element}")
    if row.bits <= 8:
        return Storage(IntegerType(row.bits), row.bits)
    assert isa(element, IntegerType | AnyFloat)
    return Storage(element, row.bits)


def from_memory(builder: Builder, value: SSAValue, wanted: Attribute) -> SSAValue:
    """Converts `value`, as loaded, to the type that the program computes with."""
    if value.type == wanted:
        return value
    if isa(wanted, ComplexType[AnyFloat]):
        from xla_emitters.dialects.mlir import complex  # imported here: few kernels have complex numbers

        real, imaginary = (builder.insert(vector.ExtractOp(value, [k], wanted.element_type)).result for k in range(2))
        return builder.insert(complex.CreateOp(real, imaginary, wanted)).complex
    if wanted == i1:
        zero = literal(builder, 0, i8)
        return builder.insert(arith.CmpiOp(value, zero, "ne")).result
    if isa(wanted, VectorType) and wanted.element_type == i1:
        return _each(builder, value, wanted)
    return builder.insert(arith.BitcastOp(value, wanted)).result


def to_memory(builder: Builder, value: SSAValue) -> SSAValue:
    """Converts `value` to its stored form."""
    if isa(value.type, VectorType):
        element, stored = (
            value.type.element_type,
            vector_type(storage_of(value.type.element_type).memory, value.type.get_shape()),
        )
        if element == i1:
            return _each(builder, value, stored)
    else:
        element, stored = value.type, storage_of(value.type).memory
        if isa(stored, VectorType):
            from xla_emitters.dialects.mlir import complex  # imported here: few kernels have complex numbers

            real, imaginary = builder.insert(complex.ReOp(value)), builder.insert(complex.ImOp(value))
            return builder.insert(FromElementsOp([real.result, imaginary.result], stored)).results[0]
        if element == i1:
            return builder.insert(arith.ExtUIOp(value, i8)).result
    return value if stored == value.type else builder.insert(arith.BitcastOp(value, stored)).result


def _each(builder: Builder, value: SSAValue, wanted: VectorType) -> SSAValue:
    """`value` with each element converted from i1 to a byte, or back. One by one, because xDSL's cmpi and extui take no vectors."""
    assert isa(value.type, VectorType)
    zero = IntegerAttr(0, i1 if wanted.element_type == i1 else i8)
    zeros = DenseIntOrFPElementsAttr.from_list(VectorType(zero.type, wanted.get_shape()), [0])
    result: SSAValue = builder.insert(arith.ConstantOp(zeros)).result
    for position in range(wanted.get_shape()[0]):
        element = builder.insert(vector.ExtractOp(value, [position], value.type.element_type)).result
        converted = from_memory(builder, element, i1) if zero.type == i1 else to_memory(builder, element)
        result = builder.insert(vector.InsertOp(converted, result, [position])).result
    return result
