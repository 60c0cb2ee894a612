"""Tensors become pointers: extract is a load, insert is a store in place, and no function returns a tensor any more.

    func.func @k(%in: tensor<64xbf16> {llvm.align = 16 : index, xla.invariant}, %out: tensor<64xbf16>) -> tensor<64xbf16> {
      %v = vector.transfer_read %in[%i], %pad {in_bounds = [true]} : tensor<64xbf16>, vector<4xbf16>       // %i = t * 4
      %t = tensor.insert %x into %out[%j] : tensor<64xbf16>
      return %t : tensor<64xbf16>
    }
->
    func.func @k(%in: !llvm.ptr {llvm.align = 16 : index, xla.invariant}, %out: !llvm.ptr) {
      %0 = arith.index_castui %i : index to i32
      %1 = llvm.getelementptr inbounds %in[%0] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
      %v = llvm.load %1 invariant : !llvm.ptr -> vector<4xbf16>
      ...
      llvm.store %x, %3 : bf16, !llvm.ptr
      return
    }

A tensor is stored in the buffer of the argument that it came from, so loops and branches no longer carry it. A check before the lowering
makes sure that every insert may be in place (`kernels/in_place.py`). How elements are stored:

    i8 ... i64, f16, bf16, f32, f64     themselves
    i1                                  one byte, 0 or 1
    8-bit floats                        a byte, bitcast after the load and before the store
    complex                             a vector of two, loaded by one access: the real part, then the imaginary
    i4, i2, f4                          packed, the first element in the low bits; one is read by shifting, written by atomics
    dense constants                     a private global; a splat or a single element is used as it is

An access has an alignment attribute where the argument's `llvm.align` and the index's divisor prove less than the natural alignment of its
type. Loads of arguments that the kernel never writes are `invariant`. Indices have the width of the module's data layout (64 without one);
they are not negative, and tensors of 2^31 elements or more need 64.
A tensor in shared memory is a private global of address space 3, one for each `allocate_shared`; `sync_threads` is a barrier.
Atomic updates are in `atomic_updates.py`.
Source: seed document, "Conversion to LLVM"; XLA lower_tensors.cc; docs/reference/2 3.3, 4.1 (alignment, invariance).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, complex, func, gpu, scf, tensor, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    FunctionType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    NoneAttr,
    StringAttr,
    TensorType,
    VectorType,
    i1,
    i8,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import SymbolOpInterface
from xdsl.utils.hints import isa

from xla_emitters.device import Device
from xla_emitters.dialects import xla_gpu
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.arith import IndexCastUIOp
from xla_emitters.errors import Unsupported
from xla_emitters.kernels.accesses import accesses_in, argument_attribute, buffer_of, subscript
from xla_emitters.kernels.in_place import find_conflict
from xla_emitters.kernels.kernel_entry import INVARIANT, SHARED
from xla_emitters.lowering.atomic_updates import ElementAddress, lower_atomic_update
from xla_emitters.lowering.element_storage import Storage, from_memory, storage_of, to_memory
from xla_emitters.rewrite.data_layout import index_width
from xla_emitters.rewrite.kernel_pass import DevicePass, refusal
from xla_emitters.rewrite.locations import located_builder, place_of

POINTER = llvm.LLVMPointerType()
GLOBAL_ALIGNMENT = 16
LOWERED = (
    tensor.ExtractOp,
    tensor.InsertOp,
    vector.TransferReadOp,
    vector.TransferWriteOp,
    scf.ForOp,
    scf.IfOp,
    scf.IndexSwitchOp,
    scf.YieldOp,
    func.FuncOp,
    func.CallOp,
    func.ReturnOp,
    arith.ConstantOp,
    xla_gpu.AllocateSharedOp,
    xla_gpu.AtomicRMWOp,
    xla_gpu.SyncThreadsOp,
)
WRITES: frozenset[type[Operation]] = frozenset((tensor.InsertOp, vector.TransferWriteOp, xla_gpu.AtomicRMWOp))
# Ops on tensors that an earlier pass removes.
PASS_BEFORE = {
    "xla_gpu.loop": "xla-lower-xla-loops-to-scf",
    "xla_gpu.yield": "xla-lower-xla-loops-to-scf",
    "xla_gpu.pure_call": "xla-convert-pure-call-ops",
}


@dataclass(frozen=True)
class LowerTensorsPass(DevicePass):
    """See the head of the file. `device`: the GPU; its atomic instructions decide how elements are updated."""

    name = "xla-lower-tensors"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        chip = self.device
        _check(op, self.name)
        functions = [found for found in op.walk() if isinstance(found, func.FuncOp)]
        for function in functions:
            _erase_dead_writes(function)
            _check_updates_in_place(function, self.name)
        lowering = _Lowering(self.name, op, chip)
        for function in functions:
            lowering.function(function)


# --- what can be lowered ---------------------------------------------------------------------------------------------------------


def _erase_dead_writes(function: func.FuncOp) -> None:
    """Erases the writes whose results are not used: as stores they would change the buffer."""
    for op in list(function.body.walk(reverse=True)):
        if type(op) in WRITES and not any(result.first_use for result in op.results):
            Rewriter.erase_op(op)


def _check(module: ModuleOp, stage: str) -> None:
    """raises Unsupported naming the first op or type that has no lowering."""
    width = index_width(module)
    for op in module.walk():
        types = (*op.operand_types, *op.result_types)
        tensors = [type_ for type_ in types if type(type_) is TensorType]
        if not tensors:
            continue
        if not isinstance(op, LOWERED):
            before = PASS_BEFORE.get(op.name)
            raise _refusal(stage, op, "has no lowering on tensors", f"run {before} first" if before else "")
        for type_ in tensors:
            if problem := _type_problem(type_, width):
                raise _refusal(stage, op, f"has a tensor that cannot be stored: {type_}: {problem}")
        match op:
            case vector.TransferReadOp() | vector.TransferWriteOp():
                _check_transfer(op, stage)
            case func.CallOp() if any(isinstance(type_, TensorType) for type_ in op.result_types):
                raise _refusal(stage, op, "returns a tensor")
            case _:
                pass


def _check_updates_in_place(function: func.FuncOp, stage: str) -> None:
    """raises Unsupported naming the op that would read an update too early, or lose one."""
    if (conflict := find_conflict(function)) is None:
        return
    updated = place_of(conflict.update) if conflict.update else ""
    raise refusal(
        stage,
        conflict.op,
        f"tensors of @{function.sym_name.data} cannot be updated in place: '{conflict.op.name}': {conflict.why}",
        notes=((None, f"updated at {updated}"),) if updated else (),
    )


def _type_problem(type_: TensorType[Attribute], width: int) -> str | None:
    if type_.get_num_dims() > 1:
        return "more than one dimension (xla-flatten-tensors makes it one)"
    if not type_.has_static_shape():
        return "its size is not known"
    if not isinstance(type_.encoding, NoneAttr):
        return "it has an encoding"
    if width < 64 and math.prod(type_.get_shape()) >= 1 << width - 1:
        return f"{width}-bit indices do not reach all its elements"
    try:
        storage_of(type_.element_type)
    except Unsupported as error:
        return error.message
    return None


def _check_transfer(op: vector.TransferReadOp | vector.TransferWriteOp, stage: str) -> None:
    moved = op.result.type if isinstance(op, vector.TransferReadOp) else op.vector.type
    assert isa(moved, VectorType)
    if op.mask is not None or not op.permutation_map.data.is_minor_identity() or len(moved.get_shape()) != 1:
        raise _refusal(stage, op, "does not move a row of neighbouring elements")
    if not all(bound.value.data for bound in op.in_bounds):
        raise _refusal(stage, op, "may access elements outside the tensor")
    bits = storage_of(moved.element_type).bits
    if bits < 8 and (subscript(op.indices[0]).divisor() * bits % 8 or moved.get_shape()[0] * bits % 8):
        raise _refusal(stage, op, f"is not known to move whole bytes of {moved.element_type}")


def _refusal(stage: str, op: Operation, why: str, help: str = "") -> Unsupported:
    return refusal(stage, op, f"'{op.name}' {why}", help)


# --- memory ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PointerFacts:
    """What is known of a pointer to a buffer.

    alignment   bytes, or None: that of an element
    invariant   nothing writes the buffer while the kernel runs
    """

    alignment: int | None = None
    invariant: bool = False


def _alignment(memory: PointerFacts, index: SSAValue | None, storage: Storage, accessed: Attribute) -> int | None:
    """The alignment to state on an access, in bytes, if less than the natural alignment of `accessed` is proved; else None."""
    elements = accessed.get_shape()[0] if isa(accessed, VectorType) and accessed != storage.memory else 1
    natural = 1 << max(0, elements * storage.bits // 8 - 1).bit_length()
    base = memory.alignment or storage.addressed_bits // 8
    offset = 0 if index is None else subscript(index).divisor() * storage.bits // 8
    known = math.gcd(base, offset)
    proved = known & -known
    return proved if proved < natural else None


# --- lowering --------------------------------------------------------------------------------------------------------------------


@dataclass
class _Lowering:
    """One module. Ops are lowered in program order, so an op's tensor operands are pointers by then."""

    stage: str
    module: ModuleOp
    device: Device
    memory: dict[SSAValue, PointerFacts] = field(default_factory=dict[SSAValue, PointerFacts])
    constants: dict[Attribute, str] = field(default_factory=dict[Attribute, str])

    def __post_init__(self) -> None:
        self.index_type = IntegerType(index_width(self.module))

    def function(self, function: func.FuncOp) -> None:
        """Lowers the body, then the signature."""
        if function.body.blocks:
            block = function.body.block
            written = {access.buffer for access in accesses_in(function) if access.is_write}
            for argument in block.args:
                if not isinstance(argument.type, TensorType):
                    continue
                align = argument_attribute(argument, "llvm.align")
                invariant = argument_attribute(argument, INVARIANT) and buffer_of(argument) not in written
                pointer = block.insert_arg(POINTER, argument.index, argument.location)
                pointer.name_hint = argument.name_hint
                alignment = align.value.data if isinstance(align, IntegerAttr) else None
                self.memory[pointer] = PointerFacts(alignment, bool(invariant))
                argument.replace_all_uses_with(pointer)
                block.erase_arg(argument)
            for op in tuple(block.ops):
                self.op(op)
        inputs = [POINTER if isinstance(type_, TensorType) else type_ for type_ in function.function_type.inputs]
        outputs = [type_ for type_ in function.function_type.outputs if not isinstance(type_, TensorType)]
        if len(outputs) != len(function.function_type.outputs):
            function.res_attrs = None
        function.function_type = FunctionType.from_lists(inputs, outputs)

    def op(self, op: Operation) -> None:
        match op:
            case _ if op.parent is None:
                pass  # It read a constant and was erased with it.
            case tensor.ExtractOp():
                self.extract(op)
            case tensor.InsertOp():
                self.insert(op)
            case vector.TransferReadOp():
                self.transfer_read(op)
            case vector.TransferWriteOp():
                self.transfer_write(op)
            case xla_gpu.AtomicRMWOp():
                self.atomic_update(op)
            case arith.ConstantOp() if isinstance(op.result.type, TensorType):
                self.constant(op)
            case scf.ForOp():
                self.loop(op)
            case scf.IfOp() | scf.IndexSwitchOp():
                self.branch(op)
            case xla_gpu.AllocateSharedOp():
                self.allocate_shared(op)
            case xla_gpu.SyncThreadsOp():
                located_builder(InsertPoint.before(op), op).insert(gpu.BarrierOp())
                Rewriter.replace_op(op, (), op.arguments)
            case func.ReturnOp():
                op.operands = [value for value in op.operands if value not in self.memory]
            case _:
                self.inside(op)

    def inside(self, op: Operation) -> None:
        """Lowers the ops in the regions of `op`."""
        for inner in [inner for region in op.regions for block in region.blocks for inner in block.ops]:
            self.op(inner)

    # Reads

    def extract(self, op: tensor.ExtractOp) -> None:
        storage = storage_of(op.result.type)
        builder = located_builder(InsertPoint.before(op), op)
        index = op.indices[0] if op.indices else None
        value = self._load(builder, op.tensor, index, storage, storage.addressed)
        if storage.bits < 8:
            value = self._unpack(builder, value, index, storage)
        self._replace(op, from_memory(builder, value, op.result.type))

    def transfer_read(self, op: vector.TransferReadOp) -> None:
        assert isa(op.result.type, VectorType)
        storage = storage_of(op.result.type.element_type)
        builder = located_builder(InsertPoint.before(op), op)
        moved = VectorType(storage.memory, op.result.type.get_shape())
        value = self._load(builder, op.source, op.indices[0] if op.indices else None, storage, moved)
        self._replace(op, from_memory(builder, value, op.result.type))

    def _load(
        self, builder: Builder, pointer: SSAValue, index: SSAValue | None, storage: Storage, loaded: Attribute
    ) -> SSAValue:
        memory = self.memory[pointer]
        address = self._address(builder, pointer, index, storage)
        alignment = _alignment(memory, index, storage, loaded)
        load = llvm.LoadOp(address, loaded, alignment=alignment, invariant=memory.invariant)
        return builder.insert(load).dereferenced_value

    def _unpack(self, builder: Builder, byte: SSAValue, index: SSAValue | None, storage: Storage) -> SSAValue:
        """Extracts the element at `index` from the byte that holds it; None: the only element, in the low bits."""
        if index is not None:
            byte = builder.insert(arith.ShRUIOp(byte, self._shift(builder, index, storage))).result
        return builder.insert(arith.TruncIOp(byte, IntegerType(storage.bits))).result

    def _shift(self, builder: Builder, index: SSAValue, storage: Storage) -> SSAValue:
        """The lowest bit of the element at `index` in its byte."""
        number = builder.insert(IndexCastUIOp(index, self.index_type)).result
        place = builder.insert(arith.AndIOp(number, self._integer(builder, 8 // storage.bits - 1))).result
        shift = builder.insert(arith.MuliOp(place, self._integer(builder, storage.bits))).result
        return builder.insert(arith.TruncIOp(shift, i8)).result

    # Writes

    def insert(self, op: tensor.InsertOp) -> None:
        storage = storage_of(op.scalar.type)
        index = op.indices[0] if op.indices else None
        if storage.bits < 8:
            self._store_part(op, index, storage)
        else:
            self._store(op, op.scalar, op.dest, index, storage)

    def _store_part(self, op: tensor.InsertOp, index: SSAValue | None, storage: Storage) -> None:
        """Clears an element's bits, then sets them: each step is atomic, and no other thread touches these bits in between.

        Both are instructions on words, so no compare-and-swap loop is needed.
        """
        builder = located_builder(InsertPoint.before(op), op)
        address = self._address(builder, op.dest, index, storage)
        own = (1 << storage.bits) - 1
        mask = builder.insert(arith.ConstantOp(IntegerAttr(own, i8))).result
        bits = builder.insert(arith.ExtUIOp(to_memory(builder, op.scalar), i8)).result
        if index is not None:
            shift = self._shift(builder, index, storage)
            mask, bits = (builder.insert(arith.ShLIOp(value, shift)).result for value in (mask, bits))
        others = builder.insert(arith.XOrIOp(mask, builder.insert(arith.ConstantOp(IntegerAttr(-1, i8))).result)).result
        builder.insert(llvm.AtomicRMWOp("_and", address, others))
        builder.insert(llvm.AtomicRMWOp("_or", address, bits))
        self._replace(op, op.dest)

    def transfer_write(self, op: vector.TransferWriteOp) -> None:
        assert isa(op.vector.type, VectorType)
        storage = storage_of(op.vector.type.element_type)
        self._store(op, op.vector, op.source, op.indices[0] if op.indices else None, storage)

    def _store(
        self, op: Operation, value: SSAValue, pointer: SSAValue, index: SSAValue | None, storage: Storage
    ) -> None:
        builder = located_builder(InsertPoint.before(op), op)
        address = self._address(builder, pointer, index, storage)
        stored = to_memory(builder, value)
        alignment = _alignment(self.memory[pointer], index, storage, stored.type)
        builder.insert(llvm.StoreOp(stored, address, alignment=alignment))
        self._replace(op, pointer)

    def atomic_update(self, op: xla_gpu.AtomicRMWOp) -> None:
        self.inside(op)
        builder = located_builder(InsertPoint.before(op), op)
        pointer, index = op.input, op.indices[0] if op.indices else None
        element = op.current.type
        storage = storage_of(element.element_type if isa(element, VectorType) else element)
        shift = None if index is None or storage.bits >= 8 else self._shift(builder, index, storage)
        is_aligned = _alignment(self.memory[pointer], index, storage, element) is None
        is_for_vectors = isinstance(pointer, BlockArgument) and is_aligned
        place = ElementAddress(self._address(builder, pointer, index, storage), storage, shift, is_for_vectors)
        lower_atomic_update(op, place, self.device, self.stage)
        self._replace(op, pointer)

    # Addresses

    def _address(self, builder: Builder, pointer: SSAValue, index: SSAValue | None, storage: Storage) -> SSAValue:
        """The address of the element at `index`, or of the byte that holds it; None: the only element."""
        if index is None:
            return pointer
        number: SSAValue = builder.insert(IndexCastUIOp(index, self.index_type)).result
        if storage.bits < 8:
            per_byte = self._integer(builder, (8 // storage.bits).bit_length() - 1)
            number = builder.insert(arith.ShRUIOp(number, per_byte)).result
        gep = llvm.GEPOp.from_mixed_indices(pointer, [number], storage.addressed, inbounds=True)
        return builder.insert(gep).result

    def _integer(self, builder: Builder, value: int) -> SSAValue:
        return builder.insert(arith.ConstantOp(IntegerAttr(value, self.index_type))).result

    # Shared memory

    def allocate_shared(self, op: xla_gpu.AllocateSharedOp) -> None:
        """A global in the block's shared memory, not initialised. Its address is cast to a generic one: LLVM infers the address space."""
        type_ = op.result.type
        assert isa(type_, TensorType[Attribute])
        storage = storage_of(type_.element_type)
        units = -(-math.prod(type_.get_shape()) * storage.bits // storage.addressed_bits)
        name = self._free_name("shared")
        variable = llvm.LLVMArrayType(units, storage.addressed)
        self._add_global(op, llvm.GlobalOp(variable, name, "private", addr_space=SHARED, alignment=GLOBAL_ALIGNMENT))
        builder = located_builder(InsertPoint.before(op), op)
        address = builder.insert(llvm.AddressOfOp(name, llvm.LLVMPointerType(IntAttr(SHARED)))).result
        pointer = builder.insert(llvm.AddrSpaceCastOp(address, POINTER)).results[0]
        self.memory[pointer] = PointerFacts(GLOBAL_ALIGNMENT)
        self._replace(op, pointer)

    # Constants

    def constant(self, op: arith.ConstantOp) -> None:
        """A global, unless every use reads one known element."""
        value = op.value
        assert isa(value, DenseIntOrFPElementsAttr)
        if value.is_splat() or len(value) == 1:
            for use in tuple(op.result.uses):
                reader = use.operation
                if isinstance(reader, tensor.ExtractOp | vector.TransferReadOp):
                    same = _splat(value, reader.results[0].type)
                    builder = located_builder(InsertPoint.before(reader), reader)
                    self._replace(reader, builder.insert(same).results[0])
        if op.result.first_use is not None:
            builder = located_builder(InsertPoint.before(op), op)
            pointer = builder.insert(llvm.AddressOfOp(self._global(op, value), POINTER)).result
            self.memory[pointer] = PointerFacts(GLOBAL_ALIGNMENT)
            op.result.replace_all_uses_with(pointer)
        Rewriter.erase_op(op)

    def _global(self, op: arith.ConstantOp, value: DenseIntOrFPElementsAttr) -> str:
        """The name of the global that holds `value`, made before the functions; equal values share one."""
        if (name := self.constants.get(value)) is None:
            name = self.constants[value] = self._free_name("global_cst")
            data = _memory_image(value)
            (elements,) = data.type.get_shape() or (1,)
            made = llvm.GlobalOp(
                llvm.LLVMArrayType(elements, data.type.element_type),
                name,
                llvm.LinkageAttr("private"),
                constant=True,
                value=data,
                alignment=GLOBAL_ALIGNMENT,
            )
            self._add_global(op, made)
        return name

    def _free_name(self, stem: str) -> str:
        """`stem` and a number: a name that no symbol of the module has."""
        taken = {symbol.data for found in self.module.ops if (symbol := _symbol(found))}
        return next(name for number in range(len(taken) + 1) if (name := f"{stem}_{number}") not in taken)

    def _add_global(self, op: Operation, made: llvm.GlobalOp) -> None:
        """Puts `made`, which stands for `op`, before the functions."""
        made.location = op.location
        others = (found for found in self.module.ops if not isinstance(found, llvm.GlobalOp))
        Rewriter.insert_op(made, InsertPoint.before(next(others)))

    # Structure

    def loop(self, op: scf.ForOp) -> None:
        block = op.body.block
        carried = [k for k, argument in enumerate(block.args[1:]) if isinstance(argument.type, TensorType)]
        for position in carried:
            block.args[1 + position].replace_all_uses_with(op.iter_args[position])
            op.results[position].replace_all_uses_with(op.iter_args[position])
        self.inside(op)
        if not carried:
            return
        _drop_operands(block, carried)
        for position in reversed(carried):
            block.erase_arg(block.args[1 + position])
        inits = [init for k, init in enumerate(op.iter_args) if k not in carried]
        self._rebuild(op, scf.ForOp(op.lb, op.ub, op.step, inits, op.detach_region(0)), carried)

    def branch(self, op: scf.IfOp | scf.IndexSwitchOp) -> None:
        """All branches yield the same buffers: those of the first replace the results that were tensors."""
        self.inside(op)
        dropped = [k for k, result in enumerate(op.results) if isinstance(result.type, TensorType)]
        if not dropped:
            return
        yielded = op.regions[0].block.last_op
        assert yielded is not None
        for position in dropped:
            op.results[position].replace_all_uses_with(yielded.operands[position])
        for region in op.regions:
            _drop_operands(region.block, dropped)
        types = [result.type for k, result in enumerate(op.results) if k not in dropped]
        first, *others = (op.detach_region(0) for _ in tuple(op.regions))
        if isinstance(op, scf.IndexSwitchOp):
            made = scf.IndexSwitchOp(op.arg, op.cases, first, others, types)
        else:
            (other,) = others
            made = scf.IfOp(op.cond, types, first, Region() if not types and len(other.block.ops) == 1 else other)
        self._rebuild(op, made, dropped)

    def _rebuild(self, old: Operation, new: Operation, dropped: Sequence[int]) -> None:
        """Puts `new` in the place of `old`; it has the results of `old` without those at `dropped`."""
        new.attributes, new.properties, new.location = old.attributes.copy(), old.properties.copy(), old.location
        Rewriter.insert_op(new, InsertPoint.before(old))
        kept = [result for k, result in enumerate(old.results) if k not in dropped]
        for before, after in zip(kept, new.results, strict=True):
            after.name_hint = before.name_hint
            before.replace_all_uses_with(after)
        Rewriter.erase_op(old)

    def _replace(self, op: Operation, value: SSAValue) -> None:
        """Erases `op`, whose result is `value` now."""
        (result,) = op.results
        if result.name_hint and value.name_hint is None:
            value.name_hint = result.name_hint
        result.replace_all_uses_with(value)
        Rewriter.erase_op(op)


def _drop_operands(block: Block, positions: Sequence[int]) -> None:
    """Takes the operands at `positions` from the terminator of `block`."""
    terminator = block.last_op
    assert terminator is not None
    terminator.operands = [value for k, value in enumerate(terminator.operands) if k not in positions]


def _symbol(op: Operation) -> StringAttr | None:
    found = op.get_trait(SymbolOpInterface)
    return found.get_sym_attr_name(op) if found else None


# --- elements in memory ----------------------------------------------------------------------------------------------------------


def _splat(value: DenseIntOrFPElementsAttr, wanted: Attribute) -> arith.ConstantOp | complex.ConstantOp:
    """The only element of `value`, or a vector of it."""
    if isa(wanted, ComplexType[AnyFloat]):
        parts = [FloatAttr(part, wanted.element_type) for part in _parts(value)[:2]]
        return complex.ConstantOp(ArrayAttr(parts), wanted)
    element = next(iter(value.iter_attrs()))
    if isa(wanted, VectorType[IntegerType]) and isa(element, IntegerAttr):
        return arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(wanted, [element.value.data]))
    if isa(wanted, VectorType[AnyFloat]) and isa(element, FloatAttr):
        return arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(wanted, [element.value.data]))
    return arith.ConstantOp(element)


def _parts(value: DenseIntOrFPElementsAttr) -> list[float]:
    """Of complex elements: real part, imaginary part, one element after the other."""
    return [float(part) for pair in value.get_values() if isinstance(pair, tuple) for part in pair]


def _memory_image(value: DenseIntOrFPElementsAttr) -> DenseIntOrFPElementsAttr:
    """`value` as its buffer holds it: bytes for i1 and narrow floats, packed bytes below 8 bits."""
    storage = storage_of(value.get_element_type())
    if isa(storage.memory, VectorType[AnyFloat]):
        parts = _parts(value)
        return DenseIntOrFPElementsAttr.from_list(TensorType(storage.memory.element_type, [len(parts)]), parts)
    if storage.addressed == value.get_element_type():
        return value
    elements = math.prod(value.get_shape() or ())
    codes = list(value.data.data)  # one byte per element; only its low bits are used
    if len(codes) == 1:
        codes *= elements
    mask = 1 if value.get_element_type() == i1 else (1 << storage.bits) - 1
    per_byte = 8 // storage.bits
    packed = [
        sum((code & mask) << storage.bits * k for k, code in enumerate(codes[start : start + per_byte]))
        for start in range(0, elements, per_byte)
    ]
    return DenseIntOrFPElementsAttr.from_list(
        TensorType(i8, [len(packed)]), [byte - (byte >> 7 << 8) for byte in packed]
    )
