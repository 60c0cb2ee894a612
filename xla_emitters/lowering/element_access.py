"""Accesses to elements behind pointers: loads, stores, atomic updates, and variables in shared memory.

    access.read(op, %p, %i, f32)           %0 = arith.index_castui %i : index to i32
                                           %1 = llvm.getelementptr inbounds %p[%0] : (!llvm.ptr, i32) -> !llvm.ptr, f32
                                           %v = llvm.load %1 invariant : !llvm.ptr -> f32

Accesses one element or a row of neighbours, stored as `element_storage.py` says. An access gets an alignment attribute if the facts about
the pointer and the index's divisor prove less than the natural alignment of its type. Loads from buffers that are not written while the
kernel runs are `invariant`. Indices have the width of the module's data layout (64 without one); they are not negative.
Source: seed document, "Conversion to LLVM"; XLA lower_tensors.cc; docs/reference/2 3.3, 4.1 (alignment, invariance).
"""

from __future__ import annotations

import math
from dataclasses import field, replace

from xdsl.builder import Builder
from xdsl.dialects.builtin import IntAttr, IntegerType, StringAttr, VectorType, i8
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import SymbolOpInterface

from xla_emitters.device import Device
from xla_emitters.dialects.attributes import integer_type, vector_type
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import arith, llvm
from xla_emitters.dialects.mlir.arith import IndexCastUIOp
from xla_emitters.dialects.xla_gpu import AtomicRMWOp
from xla_emitters.errors import Unsupported
from xla_emitters.lowering.element_storage import Storage, from_memory, storage_of, to_memory
from xla_emitters.rewrite.accesses import subscript
from xla_emitters.rewrite.constants import literal
from xla_emitters.rewrite.index_width import index_width
from xla_emitters.rewrite.kernel_entry import SHARED
from xla_emitters.rewrite.kernel_pass import refusal
from xla_emitters.rewrite.symbols import Scope
from xla_emitters.support.late_dataclass import dataclass

POINTER = llvm.LLVMPointerType()
GLOBAL_ALIGNMENT = 16


@dataclass(frozen=True)
class PointerFacts:
    """The known facts about a pointer to a buffer.

    alignment   in bytes; None: that of an element
    invariant   the buffer is not written while the kernel runs
    is_global   it points into global memory
    """

    alignment: int | None = None
    invariant: bool = False
    is_global: bool = False


@dataclass
class ElementAccess:
    """Writes accesses to elements in the functions of one module.

    stage    the pass, for messages
    device   the GPU, whose instructions decide how elements are updated
    memory   the facts about each pointer that elements are accessed through
    """

    stage: str
    module: Scope
    device: Device
    memory: dict[SSAValue, PointerFacts] = field(default_factory=dict[SSAValue, PointerFacts])

    def __post_init__(self) -> None:
        self.index_type = integer_type(index_width(self.module))

    def _storage(self, op: Operation, moved: Attribute) -> Storage:
        """How the element, or each one of the row of elements, that `op` moves is stored. raises Unsupported at `op`"""
        element = moved.element_type if isa(moved, VectorType[Attribute]) else moved
        try:
            storage = storage_of(element)
        except Unsupported as error:
            raise refusal(self.stage, op, error.message) from None
        if element is not moved and isinstance(storage.memory, VectorType):
            raise refusal(self.stage, op, f"'{op.name}' of several {element}")
        return storage

    # Reads

    def read(
        self, op: Operation, pointer: SSAValue, index: SSAValue | None, wanted: Attribute, is_aligned: bool = False
    ) -> SSAValue:
        """The element of type `wanted` at `index`, or a vector of neighbours that starts there, loaded before `op`. None: the only element.

        is_aligned  whether the vector's address is known to be a multiple of its bytes
        """
        builder = located_builder(InsertPoint.before(op), op)
        storage = self._storage(op, wanted)
        if isa(wanted, VectorType[Attribute]):
            row = vector_type(storage.memory, wanted.get_shape())
            value = self._load(builder, pointer, index, storage, row, is_aligned)
            return from_memory(builder, value, wanted)
        value = self._load(builder, pointer, index, storage, storage.addressed)
        if storage.bits < 8:
            value = self._unpack(builder, value, index, storage)
        return from_memory(builder, value, wanted)

    def _load(
        self,
        builder: Builder,
        pointer: SSAValue,
        index: SSAValue | None,
        storage: Storage,
        loaded: Attribute,
        is_aligned: bool = False,
    ) -> SSAValue:
        address = self._address(builder, pointer, index, storage)
        alignment = None if is_aligned else self._alignment(pointer, index, storage, loaded)
        load = llvm.LoadOp(address, loaded, alignment=alignment, invariant=self.memory[pointer].invariant)
        return builder.insert(load).dereferenced_value

    def _unpack(self, builder: Builder, byte: SSAValue, index: SSAValue | None, storage: Storage) -> SSAValue:
        """Extracts the element at `index` from the byte that holds it; None: the only element, in the low bits."""
        if index is not None:
            byte = builder.insert(arith.ShRUIOp(byte, self._shift(builder, index, storage))).result
        return builder.insert(arith.TruncIOp(byte, IntegerType(storage.bits))).result

    def _shift(self, builder: Builder, index: SSAValue, storage: Storage) -> SSAValue:
        """The lowest bit of the element at `index` in its byte."""
        number = builder.insert(IndexCastUIOp(index, self.index_type)).result
        place = builder.insert(arith.AndIOp(number, literal(builder, 8 // storage.bits - 1, self.index_type))).result
        which = builder.insert(arith.TruncIOp(place, i8)).result
        bits = literal(builder, storage.bits, i8)
        return builder.insert(arith.MuliOp(which, bits)).result

    # Writes

    def write(
        self, op: Operation, value: SSAValue, pointer: SSAValue, index: SSAValue | None, is_aligned: bool = False
    ) -> None:
        """Stores an element, or a vector of neighbours, before `op`; `is_aligned` as in `read`."""
        storage = self._storage(op, value.type)
        builder = located_builder(InsertPoint.before(op), op)
        if storage.bits < 8 and not isinstance(value.type, VectorType):
            return self._store_part(builder, value, pointer, index, storage)
        address = self._address(builder, pointer, index, storage)
        stored = to_memory(builder, value)
        alignment = None if is_aligned else self._alignment(pointer, index, storage, stored.type)
        builder.insert(llvm.StoreOp(stored, address, alignment=alignment))
        return None

    def _store_part(
        self, builder: Builder, value: SSAValue, pointer: SSAValue, index: SSAValue | None, storage: Storage
    ) -> None:
        """Clears an element's bits, then sets them: each step is atomic, and no other thread changes these bits in between.

        Both steps are instructions on words, so no compare-and-swap loop is needed.
        """
        address = self._address(builder, pointer, index, storage)
        own = (1 << storage.bits) - 1
        mask = literal(builder, own, i8)
        bits = builder.insert(arith.ExtUIOp(to_memory(builder, value), i8)).result
        if index is not None:
            shift = self._shift(builder, index, storage)
            mask, bits = (builder.insert(arith.ShLIOp(part, shift)).result for part in (mask, bits))
        others = builder.insert(arith.XOrIOp(mask, literal(builder, -1, i8))).result
        builder.insert(llvm.AtomicRMWOp("_and", address, others))
        builder.insert(llvm.AtomicRMWOp("_or", address, bits))

    def update(self, op: AtomicRMWOp, pointer: SSAValue, index: SSAValue | None) -> None:
        """Inserts the atomic update that the body of `op` describes before it, and empties the body. raises as `lower_atomic_update`."""
        from xla_emitters.lowering.atomic_updates import ElementAddress, lower_atomic_update  # few kernels have one

        builder = located_builder(InsertPoint.before(op), op)
        element = op.current.type
        storage = storage_of(element.element_type if isa(element, VectorType) else element)
        shift = None if index is None or storage.bits >= 8 else self._shift(builder, index, storage)
        is_aligned = self._alignment(pointer, index, storage, element) is None
        is_for_vectors = self.memory[pointer].is_global and is_aligned
        place = ElementAddress(self._address(builder, pointer, index, storage), storage, shift, is_for_vectors)
        lower_atomic_update(op, place, self.device, self.stage)

    # Addresses

    def _address(self, builder: Builder, pointer: SSAValue, index: SSAValue | None, storage: Storage) -> SSAValue:
        """The address of the element at `index`, or of the byte that holds it; None: the only element."""
        if index is None:
            return pointer
        number: SSAValue = builder.insert(IndexCastUIOp(index, self.index_type)).result
        if storage.bits < 8:
            per_byte = literal(builder, (8 // storage.bits).bit_length() - 1, self.index_type)
            number = builder.insert(arith.ShRUIOp(number, per_byte)).result
        gep = llvm.GEPOp(pointer, [number], storage.addressed, inbounds=True)
        return builder.insert(gep).result

    def element_pointer(self, builder: Builder, pointer: SSAValue, index: SSAValue, storage: Storage) -> SSAValue:
        """A pointer to the element at `index`, with the facts known about `pointer`, except the alignment: that of an element."""
        found = self._address(builder, pointer, index, storage)
        self.memory[found] = replace(self.memory[pointer], alignment=None)
        return found

    def _alignment(
        self, pointer: SSAValue, index: SSAValue | None, storage: Storage, accessed: Attribute
    ) -> int | None:
        """The alignment to state on an access, in bytes, if the proven one is less than the natural alignment of `accessed`; else None."""
        elements = accessed.get_shape()[0] if isa(accessed, VectorType) and accessed != storage.memory else 1
        natural = 1 << max(0, elements * storage.bits // 8 - 1).bit_length()
        base = self.memory[pointer].alignment or storage.addressed_bits // 8
        offset = 0 if index is None else subscript(index).divisor() * storage.bits // 8
        known = math.gcd(base, offset)
        proved = known & -known
        return proved if proved < natural else None

    # Variables

    def shared_variable(self, op: Operation, element: Attribute, elements: int) -> SSAValue:
        """A pointer to an uninitialised global in the block's shared memory, inserted before `op`.

        Its address is cast to a generic one: LLVM infers the address space. Elements that share a byte take whole words, since LLVM makes
        an atomic update of a byte one of its word.
        """
        storage = storage_of(element)
        unit = storage.addressed_bits if storage.bits == storage.addressed_bits else 32
        units = -(-elements * storage.bits // unit) * (unit // storage.addressed_bits)
        pointer = self._shared_memory(op, "shared", llvm.LLVMArrayType(units, storage.addressed), "private")
        self.memory[pointer] = PointerFacts(GLOBAL_ALIGNMENT)
        return pointer

    def private_array(self, op: Operation, element: Attribute, elements: int) -> SSAValue:
        """A pointer to an uninitialised array of the thread, inserted before `op`."""
        storage = storage_of(element)
        units = -(-elements * storage.bits // storage.addressed_bits)
        builder = located_builder(InsertPoint.before(op), op)
        one = literal(builder, 1, self.index_type)
        variable = llvm.LLVMArrayType(units, storage.addressed)
        pointer = builder.insert(llvm.AllocaOp(one, variable, GLOBAL_ALIGNMENT)).results[0]
        self.memory[pointer] = PointerFacts(GLOBAL_ALIGNMENT)
        return pointer

    def launch_memory(self, op: Operation) -> SSAValue:
        """A pointer to the dynamic shared memory, whose size the launch sets, inserted before `op`."""
        return self._shared_memory(op, "launch_shared", llvm.LLVMArrayType(0, i8), "external")

    def _shared_memory(self, op: Operation, stem: str, variable: llvm.LLVMArrayType, linkage: str) -> SSAValue:
        """A generic pointer to a new global in shared memory, inserted before `op`."""
        name = self.free_name(stem)
        self.add_global(op, llvm.GlobalOp(variable, name, linkage, addr_space=SHARED, alignment=GLOBAL_ALIGNMENT))
        builder = located_builder(InsertPoint.before(op), op)
        address = builder.insert(llvm.AddressOfOp(name, llvm.LLVMPointerType(IntAttr(SHARED)))).result
        return builder.insert(llvm.AddrSpaceCastOp(address, POINTER)).results[0]

    def part_of(self, op: Operation, base: SSAValue, start: SSAValue | None) -> SSAValue:
        """A pointer to the part that starts `start` bytes after `base`, a multiple of GLOBAL_ALIGNMENT; None: at `base`."""
        pointer = base
        if start is not None:
            builder = located_builder(InsertPoint.before(op), op)
            number = builder.insert(IndexCastUIOp(start, self.index_type)).result
            pointer = builder.insert(llvm.GEPOp(base, [number], i8, inbounds=True)).result
        self.memory[pointer] = PointerFacts(GLOBAL_ALIGNMENT)
        return pointer

    def rounded_end(self, op: Operation, start: SSAValue | None, elements: SSAValue, bytes_: int) -> SSAValue:
        """The start of the next part, as an `index`: after so many elements from `start`, rounded up to GLOBAL_ALIGNMENT."""
        builder = located_builder(InsertPoint.before(op), op)
        size = builder.insert(arith.MuliOp(elements, literal(builder, bytes_))).result
        reach = builder.insert(arith.AddiOp(size, literal(builder, GLOBAL_ALIGNMENT - 1))).result
        parts = builder.insert(arith.DivUIOp(reach, literal(builder, GLOBAL_ALIGNMENT))).result
        rounded = builder.insert(arith.MuliOp(parts, literal(builder, GLOBAL_ALIGNMENT))).result
        return rounded if start is None else builder.insert(arith.AddiOp(start, rounded)).result

    def free_name(self, stem: str) -> str:
        """`stem` and a number: a name that no symbol of the module has."""
        taken = {symbol.data for found in self.module.body.ops if (symbol := _symbol(found))}
        return next(name for number in range(len(taken) + 1) if (name := f"{stem}_{number}") not in taken)

    def add_global(self, op: Operation, made: llvm.GlobalOp) -> None:
        """Inserts the global `made` in front of the functions, with the location of `op`."""
        made.location = op.location
        others = (found for found in self.module.body.ops if not isinstance(found, llvm.GlobalOp))
        Rewriter.insert_op(made, InsertPoint.before(next(others)))


def _symbol(op: Operation) -> StringAttr | None:
    found = op.get_trait(SymbolOpInterface)
    return found.get_sym_attr_name(op) if found else None
