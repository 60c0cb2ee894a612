"""Lowers a kernel on one-dimensional buffers to a kernel on pointers.

    gpu.module @k {
      gpu.func @k(%x: memref<?xf32, "gpu"> {llvm.noalias}, %y: memref<?xf32, "gpu"> {llvm.noalias}, %n: index)
          workgroup(%s: memref<32xf32, 3>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
        %v = memref.load %x[%i] : memref<?xf32, "gpu">
        memref.store %v, %s[%t] : memref<32xf32, 3>
        ...
->
    llvm.mlir.global private @shared_0() {addr_space = 3 : i32} : !llvm.array<32 x f32>
    func.func @k(%x: !llvm.ptr {llvm.align = 16, llvm.noalias, xla.invariant}, %y: !llvm.ptr {...}, %n: index) attributes {
        xla.entry, gpu.known_block_size = array<i32: 256, 1, 1>} {
      %0 = arith.index_castui %i : index to i32
      %1 = llvm.getelementptr inbounds %x[%0] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %v = llvm.load %1 invariant : !llvm.ptr -> f32
      ...

Accesses are emitted by `element_access.py`, which lower-tensors shares: storage of elements, atomic updates, alignments. The address of a
buffer is a multiple of 16 bytes: the runtime's allocators align to 64 bytes or more (a context allocates whole buffers, never parts), and
unaligned arguments are copied before a launch. A load is `invariant` if the kernel writes no buffer that may be the loaded one; only
arguments marked `llvm.noalias` are written. A signed or unsigned integer is stored as a signless one, and casts between them are erased.
In an index `x + constant`, x gets an address of its own and the constant is an offset from it: then LLVM sees that neighbouring elements
are neighbours, and accesses that differ only in the constant share all other arithmetic. Shared memory of a size known only at the launch
is part of the launch's dynamic shared memory, a shared global without elements: allocations follow one another, each aligned to 16 bytes.
An update of one element (`memref.atomic_rmw`) whose old value is used is refused: no kernel needs it.
Source: seed document, "Conversion to LLVM"; docs/reference/4 3.7 (arguments); docs/reference/2 3.3, 4.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    UnitAttr,
    UnrealizedConversionCastOp,
    VectorType,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import arith, func, memref, vector
from xla_emitters.dialects.mlir.gpu import FuncOp, ReturnOp
from xla_emitters.dialects.mlir.gpu import ModuleOp as GpuModuleOp
from xla_emitters.dialects.mlir.memref import ATOMIC_KINDS
from xla_emitters.dialects.xla_gpu import AtomicRMWOp, YieldOp
from xla_emitters.lowering.element_access import POINTER, ElementAccess, PointerFacts
from xla_emitters.lowering.element_storage import storage_of
from xla_emitters.rewrite.captures import written_buffer
from xla_emitters.rewrite.constants import literal
from xla_emitters.rewrite.kernel_entry import BLOCK, ENTRY, INVARIANT
from xla_emitters.rewrite.kernel_pass import DevicePass

ALIGNMENT = 16
"""The alignment of every buffer, in bytes."""
NO_ALIAS = "llvm.noalias"
COMBINED: dict[str, Callable[[SSAValue, SSAValue], Operation]] = {
    "addf": arith.AddfOp,
    "addi": arith.AddiOp,
    "andi": arith.AndIOp,
    "maximumf": arith.MaximumfOp,
    "maxnumf": arith.MaxnumfOp,
    "maxs": arith.MaxSIOp,
    "maxu": arith.MaxUIOp,
    "minimumf": arith.MinimumfOp,
    "minnumf": arith.MinnumfOp,
    "mins": arith.MinSIOp,
    "minu": arith.MinUIOp,
    "mulf": arith.MulfOp,
    "muli": arith.MuliOp,
    "ori": arith.OrIOp,
    "xori": arith.XOrIOp,
}
"""Kind of an atomic update -> the op that combines the old value with the new one; `assign` takes the new one."""
Access: TypeAlias = memref.LoadOp | memref.StoreOp | memref.AtomicRMWOp | vector.LoadOp | vector.StoreOp


class DiscLowerMemrefsPass(DevicePass):
    """See the file's head. `device`: the GPU; its atomic instructions decide how elements are updated."""

    name = "disc-lower-memrefs"

    def apply_to(self, op: ModuleOp) -> None:
        for module in [found for found in op.ops if isinstance(found, GpuModuleOp)]:
            for inner in list(module.body.ops):
                inner.detach()
                Rewriter.insert_op(inner, InsertPoint.before(module))
            Rewriter.erase_op(module)
        access = ElementAccess(self.name, op, self.device)
        for function in [found for found in op.ops if isinstance(found, FuncOp)]:
            self.function(access, function)

    def function(self, access: ElementAccess, function: FuncOp) -> None:
        """Lowers the body, then the signature."""
        _erase_signs(function)
        block, count = function.body.block, len(function.function_type.inputs)
        written = {target for op in function.walk() if (target := written_buffer(op)) is not None}
        given: list[dict[str, Attribute]] = [{} for _ in range(count)]
        for number, said in enumerate(function.arg_attrs or ()):
            given[number] |= said.data
        is_apart = all(NO_ALIAS in given[value.index] for value in block.args[:count] if value in written)
        attributes, accesses = list[DictionaryAttr](), [op for op in function.walk() if isinstance(op, Access)]
        for number, facts in enumerate(given):
            argument = block.args[number]
            if isinstance(argument.type, MemRefType):
                is_invariant = is_apart and argument not in written
                facts["llvm.align"] = IntegerAttr(ALIGNMENT, IndexType())
                if is_invariant:
                    facts[INVARIANT] = UnitAttr()
                access.memory[self.pointer(block, argument)] = PointerFacts(ALIGNMENT, is_invariant, is_global=True)
            attributes.append(DictionaryAttr(facts))
        for buffer in list(block.args[count:]):
            self.shared(access, block, buffer)
        self.private_memory(access, function)
        self.launch_memory(access, function)
        for op in accesses:
            self.access(access, op)
        for op in function.walk():
            if written_buffer(op) is not None or any(isinstance(value.type, MemRefType) for value in op.operands):
                raise self.refuse(op, f"'{op.name}' has no lowering")
        self.signature(function, attributes)

    def pointer(self, block: Block, argument: BlockArgument) -> SSAValue:
        """The argument as a pointer: replaces it by an argument of pointer type."""
        made = block.insert_arg(POINTER, argument.index)
        made.name_hint = argument.name_hint
        argument.replace_all_uses_with(made)
        block.erase_arg(argument)
        return made

    def shared(self, access: ElementAccess, block: Block, buffer: BlockArgument) -> None:
        """Replaces a workgroup buffer by a variable in shared memory."""
        assert isa(buffer.type, MemRefType[Attribute])
        first = block.first_op
        assert first is not None
        elements = math.prod(buffer.type.get_shape())
        variable = access.shared_variable(first, signless(buffer.type.element_type), elements)
        variable.name_hint = buffer.name_hint
        buffer.replace_all_uses_with(variable)
        block.erase_arg(buffer)

    def private_memory(self, access: ElementAccess, function: FuncOp) -> None:
        """Lowers arrays of a thread: allocations of a known size in no memory space."""
        for op in [found for found in function.walk() if isinstance(found, memref.AllocaOp)]:
            assert isa(op.memref.type, MemRefType[Attribute])
            if op.dynamic_sizes or not isinstance(op.memref.type.memory_space, NoneAttr):
                continue
            elements = math.prod(op.memref.type.get_shape())
            pointer = access.private_array(op, signless(op.memref.type.element_type), elements)
            pointer.name_hint = op.memref.name_hint
            op.memref.replace_all_uses_with(pointer)
            Rewriter.erase_op(op)

    def launch_memory(self, access: ElementAccess, function: FuncOp) -> None:
        """Replaces allocations of unknown size in shared memory by parts of the dynamic shared memory."""
        allocations = [op for op in function.walk() if isinstance(op, memref.AllocOp | memref.AllocaOp)]
        if not allocations:
            return
        start: SSAValue | None = None
        base = access.launch_memory(allocations[0])
        for op in allocations:
            assert isa(op.memref.type, MemRefType[Attribute])
            if len(op.dynamic_sizes) != 1 or op.memref.type.get_num_dims() != 1 or op.parent is not function.body.block:
                raise self.refuse(op, f"'{op.name}' of {op.memref.type} in a kernel")
            pointer = access.part_of(op, base, start)
            pointer.name_hint = op.memref.name_hint
            bytes_ = storage_of(signless(op.memref.type.element_type)).bits // 8
            start = access.rounded_end(op, start, op.dynamic_sizes[0], bytes_)
            op.memref.replace_all_uses_with(pointer)
            Rewriter.erase_op(op)

    def access(self, access: ElementAccess, op: Access) -> None:
        match op:
            case memref.LoadOp() | vector.LoadOp():
                pointer, index = self.place(access, op)
                value = access.read(op, pointer, index, signless(op.results[0].type), _is_aligned(op))
                value.name_hint = value.name_hint or op.results[0].name_hint
                Rewriter.replace_op(op, [], [value])
            case memref.StoreOp() | vector.StoreOp():
                value = op.value if isinstance(op, memref.StoreOp) else op.vector
                access.write(op, value, *self.place(access, op), _is_aligned(op))
                Rewriter.erase_op(op)
            case memref.AtomicRMWOp():
                self.update(access, op)

    def place(self, access: ElementAccess, op: Access) -> tuple[SSAValue, SSAValue | None]:
        """The pointer and the index of an access; a constant added to the index becomes the index from a pointer to the rest."""
        index, buffer = self.index(op), op.base if isinstance(op, vector.LoadOp | vector.StoreOp) else op.memref
        storage = storage_of(signless(_element(op)))
        if index is None or storage.bits < 8:
            return buffer, index
        builder = located_builder(InsertPoint.before(op), op)
        rest, offset = _split(builder, index)
        if rest is None or offset <= 0:
            return buffer, index
        start = access.element_pointer(builder, buffer, rest, storage)
        return start, literal(builder, offset)

    def index(self, op: Access) -> SSAValue | None:
        """The index of an access; None: a buffer of a single element. raises Unsupported for several"""
        indices = op.indices
        if len(indices) > 1:
            raise self.refuse(op, f"'{op.name}' of several dimensions", "run disc-flatten-memref first")
        return indices[0] if indices else None

    def update(self, access: ElementAccess, op: memref.AtomicRMWOp) -> None:
        if op.result.first_use is not None:
            raise self.refuse(op, "the old value of an atomic update is used")
        kind = ATOMIC_KINDS[op.kind.value.data]
        body = Block(arg_types=[op.value.type])
        new = op.value
        if kind != "assign":
            combined = COMBINED[kind](body.args[0], op.value)
            body.add_op(combined)
            new = combined.results[0]
        body.add_op(YieldOp(new))
        index = self.index(op)
        made = AtomicRMWOp.create(
            operands=[op.memref, *([] if index is None else [index])],
            result_types=[POINTER],
            regions=[Region(body)],
            location=op.location,
        )
        Rewriter.insert_op(made, InsertPoint.before(op))
        access.update(made, op.memref, index)
        Rewriter.erase_op(made)
        Rewriter.erase_op(op)

    def signature(self, function: FuncOp, attributes: list[DictionaryAttr]) -> None:
        """Replaces the function by an entry function on pointers."""
        for op in list(function.walk()):
            if isinstance(op, ReturnOp):
                Rewriter.replace_op(op, func.ReturnOp(), [])
        types = function.body.block.arg_types
        made = func.FuncOp(function.sym_name.data, FunctionType.from_lists(types, []), function.detach_region(0))
        made.arg_attrs = ArrayAttr(attributes)
        made.attributes[ENTRY] = UnitAttr()
        if function.known_block_size is not None:
            made.attributes[BLOCK] = function.known_block_size
        made.location = function.location
        Rewriter.replace_op(function, made, [])


def _element(op: Access) -> Attribute:
    """The type of an element that an access reads or writes."""
    match op:
        case memref.LoadOp():
            return op.res.type
        case vector.LoadOp() | vector.StoreOp():
            row = op.result.type if isinstance(op, vector.LoadOp) else op.vector.type
            assert isa(row, VectorType[Attribute])
            return row.element_type
        case _:
            return op.value.type


def _is_aligned(op: Operation) -> bool:
    """Whether an access to several elements promises alignment to their total size."""
    return "alignment" in op.properties


def _split(builder: Builder, index: SSAValue) -> tuple[SSAValue | None, int]:
    """Splits a sum into its non-constant part (None if there is none) and the constant added to it."""
    match index.owner:
        case arith.ConstantOp(value=IntegerAttr() as known):
            return None, known.value.data
        case arith.AddiOp() as added:
            parts = [_split(builder, part) for part in added.operands]
            if not any(offset for _, offset in parts):
                return index, 0
            rests = [rest for rest, _ in parts if rest is not None]
            offset = sum(offset for _, offset in parts)
            if len(rests) < 2:
                return (rests[0] if rests else None), offset
            return builder.insert(arith.AddiOp(rests[0], rests[1])).result, offset
        case _:
            return index, 0


def signless(ir_type: Attribute) -> Attribute:
    """An integer type without its signedness; other types unchanged."""
    return IntegerType(ir_type.width.data) if isa(ir_type, IntegerType) else ir_type


def _erase_signs(function: FuncOp) -> None:
    """Erases the signedness of arguments, and casts between integers of one width: arithmetic is on signless integers."""
    for argument in list(function.body.block.args):
        if argument.type != signless(argument.type):
            Rewriter.replace_value_with_new_type(argument, signless(argument.type))
    for op in list(function.walk()):
        if (
            isinstance(op, UnrealizedConversionCastOp)
            and len(op.inputs) == len(op.outputs) == 1
            and signless(op.inputs[0].type) == signless(op.outputs[0].type)
        ):
            Rewriter.replace_op(op, [], [op.inputs[0]])
