"""Updates one element of memory atomically: by one instruction, or by a compare-and-swap loop.

    xla_gpu.atomic_rmw %t[%i] { ^bb0(%current: f32): yield (%current + %x) }
->
    llvm.atomicrmw fadd %address, %x monotonic

    new element                        type                                  lowering
    x                                  8 to 64 bits                          an atomic store
    current + x, and, or, xor, min ..  integers of 8 to 64 bits              atomicrmw; LLVM widens narrow ones to their word
    current + x                        f32, f64; f16; bf16 from sm_90        atomicrmw fadd
                                       complex                               the same for each part
                                       vectors, by GPU                       one instruction of PTX (`dialects/mlir/ptx_atomics.py`)
    either of these two                other vectors, or not aligned         the same for each element
    max(current, x), min               f32, f64                              atomicrmw on the bits, see below
    narrow(wide(current) + wide(x))    f16, bf16                             as current + x: the two roundings equal one
    anything else                      4 to 64 bits                          compare and swap

Compare and swap: the loop reads the word that holds the element, computes the new word, and writes it if memory still holds the word
read before; otherwise it repeats with the word that memory holds now. A word has 32 bits, or 64 for a 64-bit element. A narrow element is
at bit 8 * (its byte offset in the word), plus its bit in the byte if it has fewer than 8 bits.

    scf.while (%old = %first) { %new = ...; %seen, %ok = cmpxchg %word, %old, %new; condition(not %ok) %seen } do { yield %seen }

Maximum of floats, on their bits as integers: positive floats are ordered like their bits, negative floats in reverse order, and as
signed integers all negative floats are below all positive ones. So the maximum with x is a signed maximum for x >= 0 and an unsigned
minimum for x < 0. NaN is written as 0x7fc00000, which is above all numbers and therefore stays; for the minimum as 0xffc00000, which is
below all. A load before the atomic op tests whether the element changes at all.
Source: docs/reference/2 3.4; XLA lower_tensors.cc; PTX ISA "atom".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    ComplexType,
    DenseArrayBase,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerAttr,
    IntegerType,
    VectorType,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.device import Device
from xla_emitters.dialects.build import builder_inside
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import arith, complex, llvm, scf, vector
from xla_emitters.dialects.mlir.llvm.memory_ops import ordering_number
from xla_emitters.dialects.mlir.ptx_atomics import WORD_BITS, add_floats, addition_to
from xla_emitters.dialects.mlir.vector import FromElementsOp
from xla_emitters.dialects.xla_gpu import AtomicRMWOp, YieldOp
from xla_emitters.dtypes import dtype_of
from xla_emitters.lowering.element_storage import Storage, from_memory, to_memory
from xla_emitters.rewrite.constants import literal
from xla_emitters.rewrite.kernel_pass import refusal

UNORDERED = ordering_number("unordered").value.data
MONOTONIC = ordering_number("monotonic").value.data
WORD = 32
"""The narrowest word that the hardware compares and swaps, in bits."""
NATIVE: dict[type[Operation], str] = {
    arith.AddiOp: "add",
    arith.AndIOp: "_and",
    arith.OrIOp: "_or",
    arith.XOrIOp: "_xor",
    arith.MaxSIOp: "max",
    arith.MinSIOp: "min",
    arith.MaxUIOp: "umax",
    arith.MinUIOp: "umin",
    arith.AddfOp: "fadd",
}
"""Op -> the name of the same update in `llvm.atomicrmw`."""


@dataclass(frozen=True)
class FloatExtremum:
    """How the maximum or minimum of two floats is computed on their bits as integers.

    replaces    the predicate under which the value replaces the element; true if either is NaN
    of_positive, of_negative   the atomic operation on the bits, by the sign of the value
    is_negative_nan            the sign bit of the NaN that is written
    """

    replaces: str
    of_positive: str
    of_negative: str
    is_negative_nan: bool


EXTREMA: dict[type[Operation], FloatExtremum] = {
    arith.MaximumfOp: FloatExtremum("ult", "max", "umin", False),
    arith.MinimumfOp: FloatExtremum("ugt", "min", "umax", True),
}


@dataclass(frozen=True)
class ElementAddress:
    """The address of an element.

    address  of the element, or of the byte that holds it
    shift    i8: the element's lowest bit in that byte; None means 0
    is_for_vectors   the address is in global memory, and a vector that starts there is aligned to its size
    """

    address: SSAValue
    storage: Storage
    shift: SSAValue | None = None
    is_for_vectors: bool = False


def lower_atomic_update(op: AtomicRMWOp, place: ElementAddress, device: Device, stage: str) -> None:
    """Inserts the code of `op` before it, and empties its body.

    raises  Unsupported, naming the op, for elements that no instruction compares and swaps
    """
    builder = located_builder(InsertPoint.before(op), op)
    _hoist_what_is_known(op)
    *body, end = op.body.block.ops
    assert isinstance(end, YieldOp)
    (result,) = end.arguments
    if isa(op.current.type, VectorType):
        if not _change_each(builder, op.current.type, place, _operand(op, body, result), device):
            raise refusal(stage, op, f"'{op.name}' updates several elements in a way that no instruction does")
        return
    if not _overwrite(builder, op, place, result) and not _change(builder, op, place, body, result, device):
        if place.storage.bits > 64:
            raise refusal(stage, op, f"'{op.name}' changes {op.current.type} in a way that is not an addition")
        _compare_and_swap(builder, op, place)


def _hoist_what_is_known(op: AtomicRMWOp) -> None:
    """Moves those ops of the body that do not use the old value in front of `op`."""
    depends = set[SSAValue]([op.current])
    for inner in list(op.body.block.ops):
        used = {value for nested in inner.walk() for value in nested.operands}
        if used & depends or isinstance(inner, YieldOp):
            depends.update(inner.results)
        else:
            inner.detach()
            Rewriter.insert_op(inner, InsertPoint.before(op))


# ------------------------------------------------------------------------------------------- one instruction


def _overwrite(builder: Builder, op: AtomicRMWOp, place: ElementAddress, result: SSAValue) -> bool:
    """Inserts an atomic store if the new element does not depend on the old one and the hardware can store it atomically."""
    if not 8 <= place.storage.bits <= 64 or _is_inside(op, result):
        return False
    value = to_memory(builder, result)
    if isinstance(value.type, VectorType):
        value = _bits(builder, value, place.storage.bits)
    builder.insert(llvm.StoreOp(value, place.address, alignment=place.storage.bits // 8, ordering=UNORDERED))
    return True


def _is_inside(op: AtomicRMWOp, value: SSAValue) -> bool:
    owner = value.owner
    return value is op.current or (isinstance(owner, Operation) and op.is_ancestor(owner))


def _change(
    builder: Builder,
    op: AtomicRMWOp,
    place: ElementAddress,
    body: Sequence[Operation],
    result: SSAValue,
    device: Device,
) -> bool:
    """Inserts an instruction that updates the element as the body does, if there is one."""
    found = _operand(op, body, result)
    if found is None:
        return False
    kind, value = found
    current = op.current.type
    if kind in EXTREMA and isinstance(current, Float32Type | Float64Type):
        _extremum(builder, place.address, value, EXTREMA[kind])
    elif kind is complex.AddOp and isa(current, ComplexType[AnyFloat]):
        _add_parts(builder, place.address, value, current.element_type)
    elif kind in NATIVE and _has_instruction(kind, current, device):
        builder.insert(llvm.AtomicRMWOp(NATIVE[kind], place.address, value))
    else:
        return False
    return True


def _change_each(
    builder: Builder,
    vector_type: VectorType,
    place: ElementAddress,
    found: tuple[type[Operation], SSAValue] | None,
    device: Device,
) -> bool:
    """Inserts instructions that update a vector's elements, each atomically, if such instructions exist."""
    if found is None:
        return False
    kind, values = found
    element, (width,) = vector_type.element_type, vector_type.get_shape()
    if kind not in NATIVE or not _has_instruction(kind, element, device):
        return False
    addition = addition_to(vector_type, device) if kind is arith.AddfOp and place.is_for_vectors else None
    if addition is not None and addition.is_packed:
        in_words = VectorType(IntegerType(WORD_BITS), [addition.words])
        values, element = builder.insert(vector.BitcastOp(values, in_words)).result, in_words.element_type
        width = addition.words
    parts = [builder.insert(vector.ExtractOp(values, [k], element)).result for k in range(width)]
    if addition is not None:
        builder.insert(add_floats(addition, place.address, parts))
        return True
    for k, part in enumerate(parts):
        address = llvm.GEPOp(place.address, [k], element, inbounds=True)
        builder.insert(llvm.AtomicRMWOp(NATIVE[kind], builder.insert(address).result, part))
    return True


def _operand(op: AtomicRMWOp, body: Sequence[Operation], result: SSAValue) -> tuple[type[Operation], SSAValue] | None:
    """For `current OP x` or `narrow(wide(current) OP wide(x))`: the class of OP, and x."""
    if len(body) == 3:
        widened, changed, narrowed = body
        if not isinstance(widened, arith.ExtFOp) or not isinstance(narrowed, arith.TruncFOp):
            return None
        if narrowed.result is not result or narrowed.input is not changed.results[0]:
            return None
        other = _other(changed, widened.result)
        # f32 has more than twice the digits of f16 and bf16, so rounding to f32 and then to f16 or bf16 equals rounding once.
        if other is None or not isinstance(other.owner, arith.ExtFOp) or not isinstance(other.type, Float32Type):
            return None
        source = other.owner.input
        is_sum = isinstance(changed, arith.AddfOp)
        return (type(changed), source) if is_sum and source.type == op.current.type else None
    if len(body) != 1 or list(body[0].results) != [result]:
        return None
    other = _other(body[0], op.current)
    return None if other is None else (type(body[0]), other)


def _other(op: Operation, one: SSAValue) -> SSAValue | None:
    """The other operand of `op`, if it has two and one of them is `one`."""
    if len(op.operands) != 2 or len(op.results) != 1:
        return None
    others = [operand for operand in op.operands if operand is not one]
    return others[0] if len(others) == 1 else None


def _has_instruction(kind: type[Operation], value_type: Attribute, device: Device) -> bool:
    match value_type:
        case IntegerType():
            return kind is not arith.AddfOp and value_type.bitwidth in (8, 16, 32, 64)
        case Float32Type() | Float64Type() | Float16Type():
            return True
        case BFloat16Type():
            return device.compute_capability >= (9, 0)
        case _:
            return False


def _add_parts(builder: Builder, address: SSAValue, value: SSAValue, part: AnyFloat) -> None:
    """Adds the two parts separately: no thread reads the sum before all threads have added."""
    imaginary = llvm.GEPOp(address, [1], part, inbounds=True)
    builder.insert(llvm.AtomicRMWOp("fadd", address, builder.insert(complex.ReOp(value)).result))
    builder.insert(
        llvm.AtomicRMWOp("fadd", builder.insert(imaginary).result, builder.insert(complex.ImOp(value)).result)
    )


def _extremum(builder: Builder, address: SSAValue, value: SSAValue, way: FloatExtremum) -> None:
    value_type = value.type
    assert isinstance(value_type, Float32Type | Float64Type)
    integer = IntegerType(value_type.bitwidth)
    old = builder.insert(
        llvm.LoadOp(address, value_type, alignment=value_type.bitwidth // 8, ordering=MONOTONIC)
    ).dereferenced_value
    form = dtype_of(value_type).float_format
    lasting = literal(builder, form.nan - (form.sign if way.is_negative_nan else 0), integer)
    nan = builder.insert(arith.BitcastOp(lasting, value_type)).result
    is_nan = builder.insert(arith.CmpfOp(value, value, "uno")).result
    value = builder.insert(arith.SelectOp(is_nan, nan, value)).result
    # An old NaN stays as it is.
    is_number = builder.insert(arith.CmpfOp(old, old, "ord")).result
    is_replaced = builder.insert(arith.CmpfOp(old, value, way.replaces)).result
    is_changed = builder.insert(arith.AndIOp(is_number, is_replaced)).result
    change = Block()
    builder.insert(scf.IfOp(is_changed, [], Region(change)))
    inner = builder_inside(builder, change)
    bits = inner.insert(arith.BitcastOp(value, integer)).result
    zero = literal(inner, 0, integer)
    is_positive = inner.insert(arith.CmpiOp(bits, zero, "sge")).result
    positive, negative = Block(), Block()
    inner.insert(scf.IfOp(is_positive, [], Region(positive), Region(negative)))
    inner.insert(scf.YieldOp())
    for block, operation in ((positive, way.of_positive), (negative, way.of_negative)):
        innermost = builder_inside(builder, block)
        innermost.insert(llvm.AtomicRMWOp(operation, address, bits))
        innermost.insert(scf.YieldOp())


# ------------------------------------------------------------------------------------------- compare and swap


def _compare_and_swap(builder: Builder, op: AtomicRMWOp, place: ElementAddress) -> None:
    bits = place.storage.bits
    word = IntegerType(max(WORD, bits))
    address, shift = _word_of(builder, place) if bits < WORD else (place.address, None)
    first = builder.insert(
        llvm.LoadOp(address, word, alignment=word.bitwidth // 8, ordering=MONOTONIC)
    ).dereferenced_value
    before, after = Block(arg_types=[word]), Block(arg_types=[word])
    (old,), (seen,) = before.args, after.args
    old.name_hint = seen.name_hint = "old"
    builder.insert(scf.WhileOp([first], [word], Region(before), Region(after)))

    inner = builder_inside(builder, before)
    element = _from_bits(inner, _part_of(inner, old, shift, bits), place.storage)
    current = from_memory(inner, element, op.current.type)
    op.current.replace_all_uses_with(current)
    for moved in list(op.body.block.ops):
        moved.detach()
        if not isinstance(moved, YieldOp):
            inner.insert(moved)
            continue
        (result,) = moved.arguments
        # The old body must not use values whose ops have moved away.
        moved.operands = [op.current]
        op.body.block.add_op(moved)
        part = _bits(inner, to_memory(inner, result), bits)
        replaced = _with_part(inner, old, part, shift, bits)
        swap = inner.insert(llvm.AtomicCmpXchgOp(address, old, replaced)).res
        found = inner.insert(llvm.ExtractValueOp(_position(0), swap, word)).res
        is_done = inner.insert(llvm.ExtractValueOp(_position(1), swap, i1)).res
        true = inner.insert(arith.ConstantOp(IntegerAttr.from_bool(True))).result
        is_taken = inner.insert(arith.XOrIOp(is_done, true)).result
        inner.insert(scf.ConditionOp(is_taken, found))
    builder_inside(builder, after).insert(scf.YieldOp(seen))


def _word_of(builder: Builder, place: ElementAddress) -> tuple[SSAValue, SSAValue]:
    """The address of the word that holds a narrow element, and the element's lowest bit in it, as i32."""
    number = builder.insert(llvm.PtrToIntOp(place.address, i64)).output
    behind = builder.insert(arith.AndIOp(number, literal(builder, WORD // 8 - 1, i64))).result
    back = builder.insert(arith.SubiOp(literal(builder, 0, i64), behind)).result
    address = builder.insert(llvm.GEPOp(place.address, [back], i8)).result
    bytes_behind = builder.insert(arith.TruncIOp(behind, i32)).result
    shift = builder.insert(arith.ShLIOp(bytes_behind, literal(builder, 3, i32))).result
    if place.shift is not None:
        own = builder.insert(arith.ExtUIOp(place.shift, i32)).result
        shift = builder.insert(arith.AddiOp(shift, own)).result
    return address, shift


def _part_of(builder: Builder, word: SSAValue, shift: SSAValue | None, bits: int) -> SSAValue:
    """The element's bits as an integer."""
    if shift is None:
        return word
    low = builder.insert(arith.ShRUIOp(word, shift)).result
    return builder.insert(arith.TruncIOp(low, IntegerType(bits))).result


def _with_part(builder: Builder, word: SSAValue, part: SSAValue, shift: SSAValue | None, bits: int) -> SSAValue:
    """The word after replacing the element's bits."""
    if shift is None:
        return part
    own = builder.insert(arith.ShLIOp(literal(builder, (1 << bits) - 1, i32), shift)).result
    others = builder.insert(arith.XOrIOp(own, literal(builder, -1, i32))).result
    kept = builder.insert(arith.AndIOp(word, others)).result
    wide = builder.insert(arith.ExtUIOp(part, i32)).result
    placed = builder.insert(arith.ShLIOp(wide, shift)).result
    return builder.insert(arith.OrIOp(kept, placed)).result


def _bits(builder: Builder, value: SSAValue, bits: int) -> SSAValue:
    """The bits that memory holds for an element, as an integer."""
    integer = IntegerType(bits)
    if value.type == integer:
        return value
    if isa(value.type, VectorType):
        lone = builder.insert(vector.BitcastOp(value, VectorType(integer, [1]))).result
        return builder.insert(vector.ExtractOp(lone, [0], integer)).result
    return builder.insert(arith.BitcastOp(value, integer)).result


def _from_bits(builder: Builder, value: SSAValue, storage: Storage) -> SSAValue:
    """The inverse of `_bits`."""
    if value.type == storage.memory:
        return value
    if isinstance(storage.memory, VectorType):
        lone = builder.insert(FromElementsOp([value], VectorType(value.type, [1]))).results[0]
        return builder.insert(vector.BitcastOp(lone, storage.memory)).result
    return builder.insert(arith.BitcastOp(value, storage.memory)).result


def _position(number: int) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(i64, [number])
