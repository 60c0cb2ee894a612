"""Gives each element of two or four bits a byte of its own: in the arrays of a CPU, which are NumPy's, elements do not share bytes.

    %v = memref.load %x[%i] : memref<?xi4>         %b = memref.load %x[%i] : memref<?xi8>
                                             ->    %v = arith.trunci %b : i8 to i4
    memref.store %v, %y[%i] : memref<?xi4>         %c = arith.extui %v : i4 to i8
                                                   memref.store %c, %y[%i] : memref<?xi8>

The upper bits of a byte are written as zeros, as NumPy writes them, and not read. Kernels of a GPU do not run this pass: their elements
share bytes (`element_storage`).
"""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    FixedBitwidthType,
    FunctionType,
    IntegerType,
    MemRefType,
    ModuleOp,
    UnrealizedConversionCastOp,
    i8,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import arith, memref
from xla_emitters.dialects.mlir.gpu import FuncOp
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscUnpackNarrowBuffersPass(KernelPass):
    name = "disc-unpack-narrow-buffers"

    def apply_to(self, op: ModuleOp) -> None:
        for function in [found for found in op.walk() if isinstance(found, FuncOp)]:
            made = [result for found in function.walk() for result in found.results]
            buffers = [value for value in (*function.body.block.args, *made) if _is_narrow(value.type)]
            for buffer in buffers:
                self.unpack(buffer)
            if buffers:
                types = function.body.block.arg_types[: len(function.function_type.inputs)]
                function.properties["function_type"] = FunctionType.from_lists(
                    types, function.function_type.outputs.data
                )

    def unpack(self, buffer: SSAValue) -> None:
        assert isa(buffer.type, MemRefType[Attribute])
        element, old = buffer.type.element_type, buffer.type
        number = IntegerType(_bits(element))
        wide = MemRefType(i8, old.get_shape(), old.layout, old.memory_space)
        buffer = Rewriter.replace_value_with_new_type(buffer, wide)
        for op in [use.operation for use in buffer.uses]:
            builder = located_builder(InsertPoint.before(op), op)
            match op:
                case memref.LoadOp():
                    byte = builder.insert(memref.LoadOp.get(buffer, op.indices)).res
                    value = builder.insert(arith.TruncIOp(byte, number)).result
                    Rewriter.replace_op(op, [], [_cast(builder, value, element)])
                case memref.StoreOp():
                    value = _cast(builder, op.value, number)
                    op.operands[0] = builder.insert(arith.ExtUIOp(value, i8)).result
                case _:
                    raise self.refuse(op, f"'{op.name}' of a buffer of {element}")


def _is_narrow(ir_type: Attribute) -> bool:
    """Whether it is the type of a buffer of elements that share bytes on a GPU."""
    return isa(ir_type, MemRefType[Attribute]) and _bits(ir_type.element_type) in (2, 4)


def _bits(element: Attribute) -> int:
    return element.bitwidth if isinstance(element, FixedBitwidthType) else 0


def _cast(builder: Builder, value: SSAValue, wanted: Attribute) -> SSAValue:
    """The same bits as another type of as many: an integer with or without a sign, or a float."""
    if value.type == wanted:
        return value
    if isinstance(value.type, IntegerType) and isa(wanted, IntegerType):
        return builder.insert(UnrealizedConversionCastOp.get([value], [wanted])).results[0]
    return builder.insert(arith.BitcastOp(value, wanted)).result
