"""Lowers buffers of the host program to descriptors, ops on them to code on pointers, and the context to a pointer.

    func.func @main(%ctx: !disc_ral.context) {                func.func @main(%ctx: !llvm.ptr) {
      %d = memref.dim %x, %c0 : memref<?x4xf32>                 %d = llvm.extractvalue %x[3, 0]
      %s = memref.alloca() : memref<2xi32, "cpu">       ->      %s = llvm.alloca 2 x i32, in a descriptor
      memref.store %n, %s[%c1]                                  llvm.store %n, %s.aligned[%c1]
    ^bb1(%y: memref<?xf32>):                                  ^bb1(%y: !llvm.struct<(ptr, ptr, i64, array<1 x i64>, ...)>):

Computations that ops applied have been erased with those ops, and casts between buffers and descriptors with the buffers. Stack buffers
are allocated once, at the beginning of the function: none is in a loop (`disc-localize-small-cpu-buffer`). Allocations are calls of the
runtime by now, on the host too (`disc-convert-memory-marker` with `cpu-too`).
Source: MLIR, "Target LLVM IR" (finalize-memref-to-llvm); docs/reference/4 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.builder import Builder
from xdsl.dialects.builtin import FunctionType, IndexType, IntegerAttr, MemRefType, ModuleOp, i1, i8, i32
from xdsl.dialects.builtin import UnrealizedConversionCastOp as CastOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.disc_ral import ContextType, StreamOp, StreamType
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.locations import located_builder, replace_by
from xla_emitters.dialects.mlir import arith, func, llvm, memref
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.dynamic.host.memref_descriptors import (
    HEAD,
    POINTER,
    as_i64,
    cast,
    descriptor_type,
    integer,
    memory_type,
    memref_type,
    null,
    part,
    row_major,
    sizes_of_buffer,
)
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscLowerHostMemrefsPass(KernelPass):
    name = "disc-lower-host-memrefs"

    def apply_to(self, op: ModuleOp) -> None:
        for function in [found for found in op.ops if isinstance(found, func.FuncOp) and not found.is_declaration]:
            self.function(function)
        for computation in [found for found in op.ops if isinstance(found, ComputationOp)]:
            Rewriter.erase_op(computation)

    def function(self, function: func.FuncOp) -> None:
        for block in function.body.blocks:
            _retype_arguments(block)
        for op in list(function.walk()):
            if (lower := LOWERINGS.get(type(op))) is not None:
                values = lower(located_builder(InsertPoint.before(op), op), op, function.body.blocks[0])
                replace_by(op, values)
            elif op.successors or isinstance(op, func.CallOp):
                _retype_operands(op)
        _erase_casts(function)
        for op in function.walk():
            if any(lowered(value.type) != value.type for value in (*op.operands, *op.results)):
                raise self.refuse(op, f"'{op.name}' has no lowering on the host")
        inputs = [argument.type for argument in function.args]
        function.properties["function_type"] = FunctionType.from_lists(inputs, list(function.function_type.outputs))


def lowered(ir_type: Attribute) -> Attribute:
    """The type that a value of this type gets."""
    match ir_type:
        case MemRefType():
            return descriptor_type(ir_type)
        case ContextType() | StreamType():
            return POINTER
        case _:
            return ir_type


def _retype_arguments(block: Block) -> None:
    builder = QuickBuilder(InsertPoint.at_start(block))
    for argument in block.args:
        before = argument.type
        if (wanted := lowered(before)) == before:
            continue
        made = block.insert_arg(wanted, argument.index)
        made.name_hint = argument.name_hint
        argument.replace_all_uses_with(cast(builder, made, before))
        block.erase_arg(argument)


def _retype_operands(op: Operation) -> None:
    builder = located_builder(InsertPoint.before(op), op)
    for number, value in enumerate(op.operands):
        op.operands[number] = cast(builder, value, lowered(value.type))


def _erase_casts(function: func.FuncOp) -> None:
    """Replaces a cast back to the original type by the original value, and erases the casts, then unused."""
    casts = [op for op in function.walk() if isinstance(op, CastOp)]
    for op in casts:
        maker = op.inputs[0].owner
        if isinstance(maker, CastOp) and maker.inputs[0].type == op.outputs[0].type:
            op.outputs[0].replace_all_uses_with(maker.inputs[0])
    for op in reversed(casts):
        if op.outputs[0].first_use is None:
            Rewriter.erase_op(op)


# -------------------------------------------------------------------------------------------------------------------- ops

Lowering = Callable[[Builder, Any, Block], Sequence[SSAValue]]
"""(builder before the op, op, the function's first block) -> its results"""


def _dim(builder: Builder, op: memref.DimOp, entry: Block) -> Sequence[SSAValue]:
    dimension = constant_of(op.index)
    assert dimension is not None
    size = part(builder, op.source, HEAD + dimension)
    return [builder.insert(arith.IndexCastOp(size, IndexType())).result]


def _address(builder: Builder, buffer: SSAValue, indices: Sequence[SSAValue]) -> tuple[SSAValue, Attribute]:
    """The address of an element, and its type in memory."""
    ir_type = memref_type(buffer)
    memory, base = memory_type(ir_type.element_type), part(builder, buffer, 1)
    number: SSAValue | None = None
    for index, size in zip(indices, sizes_of_buffer(builder, buffer), strict=True):
        if number is not None:
            number = builder.insert(arith.MuliOp(number, size)).result
        index = as_i64(builder, index)
        number = index if number is None else builder.insert(arith.AddiOp(number, index)).result
    if number is None:
        return base, memory
    return builder.insert(llvm.GEPOp(base, [number], memory)).result, memory


def _load(builder: Builder, op: memref.LoadOp, entry: Block) -> Sequence[SSAValue]:
    address, memory = _address(builder, op.memref, op.indices)
    value: SSAValue = builder.insert(llvm.LoadOp(address, memory)).dereferenced_value
    element = memref_type(op.memref).element_type
    if isinstance(element, IndexType):
        return [builder.insert(arith.IndexCastOp(value, element)).result]
    if element == i1:
        return [builder.insert(arith.TruncIOp(value, i1)).result]
    return [cast(builder, value, element)]


def _store(builder: Builder, op: memref.StoreOp, entry: Block) -> Sequence[SSAValue]:
    address, memory = _address(builder, op.memref, op.indices)
    value, element = op.value, memref_type(op.memref).element_type
    if isinstance(element, IndexType):
        value = as_i64(builder, value)
    elif element == i1:
        value = builder.insert(arith.ExtUIOp(value, i8)).result
    builder.insert(llvm.StoreOp(cast(builder, value, memory), address))
    return []


def _alloca(builder: Builder, op: memref.AllocaOp, entry: Block) -> Sequence[SSAValue]:
    ir_type = memref_type(op.memref)
    count = 1
    for size in ir_type.get_shape():
        count *= size
    number = llvm.ConstantOp(IntegerAttr(max(count, 1), i32), i32)
    memory = llvm.AllocaOp(number.result, memory_type(ir_type.element_type), 16)
    number.location = memory.location = op.location
    Rewriter.insert_op([number, memory], InsertPoint.at_start(entry))
    sizes = [integer(builder, size) for size in ir_type.get_shape()]
    return [row_major(builder, null(builder), memory.res, sizes, ir_type)]


def _collapse(builder: Builder, op: memref.CollapseShapeOp, entry: Block) -> Sequence[SSAValue]:
    """memref.collapse_shape of a row-major buffer: multiplies the sizes of each group."""
    sizes, wanted = sizes_of_buffer(builder, op.src), list[SSAValue]()
    for group in op.reassociation:
        product = integer(builder, 1)
        for dim in group:
            product = builder.insert(arith.MuliOp(product, sizes[dim.value.data])).result
        wanted.append(product)
    return [row_major(builder, part(builder, op.src, 0), part(builder, op.src, 1), wanted, op.result.type)]


def _stream(builder: Builder, op: Operation, entry: Block) -> Sequence[SSAValue]:
    """A null pointer: a host has no streams."""
    return [cast(builder, null(builder), op.results[0].type)]


LOWERINGS: Mapping[type[Operation], Lowering] = {
    StreamOp: _stream,
    memref.AllocaOp: _alloca,
    memref.CollapseShapeOp: _collapse,
    memref.DimOp: _dim,
    memref.LoadOp: _load,
    memref.StoreOp: _store,
}
"""Op -> the function that replaces it by code."""
