"""Lowers tensors to pointers: extract becomes a load, insert an in-place store; functions no longer return tensors.

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

A tensor is stored in the buffer of the argument that it comes from, so loops and branches no longer carry it. Before the lowering, a check
makes sure that every insert may be done in place (`rewrite/in_place.py`). How elements are stored:

    i8 ... i64, f16, bf16, f32, f64     themselves
    i1                                  one byte, 0 or 1
    8-bit floats                        a byte, bitcast after the load and before the store
    complex                             a vector of two, loaded by one access: the real part, then the imaginary
    i4, i2, f4                          packed, the first element in the low bits; read by shifting, written by atomics
    dense constants                     a private global; a splat or a single element is used directly

An access has an alignment attribute if the argument's `llvm.align` and the index's divisor prove less than the natural alignment of its
type. Loads of arguments that the kernel never writes are `invariant`. Indices have the width of the module's data layout (64 without one);
they are not negative, and tensors of 2^31 elements or more need 64.
A tensor in shared memory is a private global of address space 3, one per `allocate_shared`; `sync_threads` is a barrier.
Atomic updates are in `atomic_updates.py`.
Source: seed document, "Conversion to LLVM"; XLA lower_tensors.cc; docs/reference/2 3.3, 4.1 (alignment, invariance).
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    NoneAttr,
    TensorType,
    VectorType,
    i1,
    i8,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects import xla_gpu
from xla_emitters.dialects.attributes import function_type
from xla_emitters.dialects.float_bits import dense_of, float_attr, is_splat, values_of
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import located_builder, place_of, replace_by
from xla_emitters.dialects.mlir import arith, func, gpu, llvm, scf, tensor, vector
from xla_emitters.dialects.quick_op import walk
from xla_emitters.errors import Unsupported
from xla_emitters.lowering.element_access import GLOBAL_ALIGNMENT, POINTER, ElementAccess, PointerFacts
from xla_emitters.lowering.element_storage import storage_of
from xla_emitters.rewrite.accesses import accesses_in, argument_attribute, buffer_of, subscript
from xla_emitters.rewrite.in_place import find_conflict
from xla_emitters.rewrite.index_width import index_width
from xla_emitters.rewrite.kernel_entry import INVARIANT
from xla_emitters.rewrite.kernel_pass import DevicePass, refusal
from xla_emitters.rewrite.scf_patterns import replace_branch, replace_for, yielded
from xla_emitters.rewrite.symbols import functions, scopes
from xla_emitters.support.late_dataclass import dataclass

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
# Ops on tensors -> the earlier pass that removes them.
PASS_BEFORE = {
    "xla_gpu.loop": "xla-lower-xla-loops-to-scf",
    "xla_gpu.yield": "xla-lower-xla-loops-to-scf",
    "xla_gpu.pure_call": "xla-convert-pure-call-ops",
}


class LowerTensorsPass(DevicePass):
    """See the head of the file. `device`: the GPU; its atomic instructions decide how elements are updated."""

    name = "xla-lower-tensors"

    def apply_to(self, op: ModuleOp) -> None:
        chip = self.device
        _check(op, self.name)
        by_module = [(module, functions(module).values()) for module in scopes(op)]
        for function in (function for _, own in by_module for function in own):
            _erase_dead_writes(function)
            _check_updates_in_place(function, self.name)
        for module, own in by_module:
            lowering = _Lowering(ElementAccess(self.name, module, chip))
            for function in own:
                lowering.function(function)


# --- checks ----------------------------------------------------------------------------------------------------------------------


def _erase_dead_writes(function: func.FuncOp) -> None:
    """Erases writes without uses: as stores they would change the buffer."""
    for op in list(walk(function, reverse=True)):
        if type(op) in WRITES and not any(result.first_use for result in op.results):
            Rewriter.erase_op(op)


def _check(module: ModuleOp, stage: str) -> None:
    """raises Unsupported, naming the first op or type that has no lowering."""
    width = index_width(module)
    for op in walk(module):
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
    """raises Unsupported, naming the op that would read an update too early, or lose one."""
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


# --- lowering --------------------------------------------------------------------------------------------------------------------


WITHOUT_REGIONS: frozenset[type[Operation]] = frozenset(
    (
        *(tensor.ExtractOp, tensor.InsertOp, vector.TransferReadOp, vector.TransferWriteOp, arith.ConstantOp),
        *(xla_gpu.AllocateSharedOp, xla_gpu.SyncThreadsOp, func.ReturnOp),
    )
)
"""Ops without regions that are lowered; others have no tensors."""


@dataclass
class _Lowering:
    """Lowers one module. Ops are lowered in program order, so an op's tensor operands have already become pointers."""

    access: ElementAccess
    constants: dict[Attribute, str] = field(default_factory=dict[Attribute, str])

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
                self.access.memory[pointer] = PointerFacts(alignment, bool(invariant), is_global=True)
                argument.replace_all_uses_with(pointer)
                block.erase_arg(argument)
            for op in tuple(block.ops):
                self.op(op)
        inputs = [POINTER if isinstance(type_, TensorType) else type_ for type_ in function.function_type.inputs]
        outputs = [type_ for type_ in function.function_type.outputs if not isinstance(type_, TensorType)]
        if len(outputs) != len(function.function_type.outputs):
            function.res_attrs = None
        function.function_type = function_type(inputs, outputs)

    def op(self, op: Operation) -> None:
        if op.parent is None:
            return  # It reads a constant and was erased with it.
        if not op.regions and type(op) not in WITHOUT_REGIONS:
            return
        match op:
            case tensor.ExtractOp() | vector.TransferReadOp():
                pointer = op.tensor if isinstance(op, tensor.ExtractOp) else op.source
                replace_by(op, [self.access.read(op, pointer, _index(op), op.result.type)])
            case tensor.InsertOp() | vector.TransferWriteOp():
                value, pointer = (op.scalar, op.dest) if isinstance(op, tensor.InsertOp) else (op.vector, op.source)
                self.access.write(op, value, pointer, _index(op))
                replace_by(op, [pointer])
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
                op.operands = [value for value in op.operands if value not in self.access.memory]
            case _:
                self.inside(op)

    def inside(self, op: Operation) -> None:
        """Lowers the ops in the regions of `op`."""
        for inner in [inner for region in op.regions for block in region.blocks for inner in block.ops]:
            self.op(inner)

    # Accesses

    def atomic_update(self, op: xla_gpu.AtomicRMWOp) -> None:
        self.inside(op)
        self.access.update(op, op.input, _index(op))
        replace_by(op, [op.input])

    # Shared memory

    def allocate_shared(self, op: xla_gpu.AllocateSharedOp) -> None:
        type_ = op.result.type
        assert isa(type_, TensorType[Attribute])
        replace_by(op, [self.access.shared_variable(op, type_.element_type, math.prod(type_.get_shape()))])

    # Constants

    def constant(self, op: arith.ConstantOp) -> None:
        """Lowers a constant to a global, unless every use reads one known element."""
        value = op.value
        assert isa(value, DenseIntOrFPElementsAttr)
        if is_splat(value) or len(value) == 1:
            for use in tuple(op.result.uses):
                reader = use.operation
                if isinstance(reader, tensor.ExtractOp | vector.TransferReadOp):
                    same = _splat(value, reader.results[0].type)
                    builder = located_builder(InsertPoint.before(reader), reader)
                    replace_by(reader, [builder.insert(same).results[0]])
        if op.result.first_use is not None:
            builder = located_builder(InsertPoint.before(op), op)
            pointer = builder.insert(llvm.AddressOfOp(self._global(op, value), POINTER)).result
            self.access.memory[pointer] = PointerFacts(GLOBAL_ALIGNMENT)
            op.result.replace_all_uses_with(pointer)
        Rewriter.erase_op(op)

    def _global(self, op: arith.ConstantOp, value: DenseIntOrFPElementsAttr) -> str:
        """The name of the global that holds `value`, inserted before the functions; equal values share one."""
        if (name := self.constants.get(value)) is None:
            name = self.constants[value] = self.access.free_name("global_cst")
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
            self.access.add_global(op, made)
        return name

    # Structure

    def loop(self, op: scf.ForOp) -> None:
        block = op.body.block
        carried = [k for k, argument in enumerate(block.args[1:]) if isinstance(argument.type, TensorType)]
        for position in carried:
            block.args[1 + position].replace_all_uses_with(op.iter_args[position])
            op.results[position].replace_all_uses_with(op.iter_args[position])
        self.inside(op)
        if carried:
            kept = [k for k in range(len(op.iter_args)) if k not in carried]
            replace_for(PatternRewriter(op), op, kept)

    def branch(self, op: scf.IfOp | scf.IndexSwitchOp) -> None:
        """All branches yield the same buffers: those of the first branch replace the results that were tensors."""
        self.inside(op)
        dropped = [k for k, result in enumerate(op.results) if isinstance(result.type, TensorType)]
        if not dropped:
            return
        first = yielded(op.regions[0].block)
        for position in dropped:
            op.results[position].replace_all_uses_with(first[position])
        replace_branch(PatternRewriter(op), op, [k for k in range(len(op.results)) if k not in dropped])


def _index(
    op: tensor.ExtractOp | tensor.InsertOp | vector.TransferReadOp | vector.TransferWriteOp | xla_gpu.AtomicRMWOp,
) -> SSAValue | None:
    """The index of an access; None: the only element."""
    return op.indices[0] if op.indices else None


# --- elements in memory ----------------------------------------------------------------------------------------------------------


def _splat(value: DenseIntOrFPElementsAttr, wanted: Attribute) -> Operation:
    """A constant: the only element of `value`, or a vector of it."""
    if isa(wanted, ComplexType[AnyFloat]):
        from xla_emitters.dialects.mlir import complex  # imported here: few kernels have complex numbers

        parts = [float_attr(part, wanted.element_type) for part in _parts(value)[:2]]
        return complex.ConstantOp(ArrayAttr(parts), wanted)
    number, kind = values_of(value)[0], cast(Any, value.get_element_type())
    if isa(wanted, VectorType[IntegerType] | VectorType[AnyFloat]):
        return arith.ConstantOp(dense_of(wanted, [number]))
    return arith.ConstantOp(float_attr(number, kind) if isinstance(kind, AnyFloat) else IntegerAttr(number, kind))


def _parts(value: DenseIntOrFPElementsAttr) -> list[float]:
    """The parts of complex elements: real, imaginary, one element after the other."""
    return [
        float(part)
        for pair in values_of(value)
        if isinstance(pair, tuple)
        for part in cast("tuple[float, float]", pair)
    ]


def _memory_image(value: DenseIntOrFPElementsAttr) -> DenseIntOrFPElementsAttr:
    """`value` as it is stored in a buffer: bytes for i1 and narrow floats, packed bytes below 8 bits."""
    storage = storage_of(value.get_element_type())
    if isa(storage.memory, VectorType[AnyFloat]):
        parts = _parts(value)
        return dense_of(TensorType(storage.memory.element_type, [len(parts)]), parts)
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
