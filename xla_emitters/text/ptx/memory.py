"""Rows of instructions that access memory: loads, stores, atomic updates, hints.

An address in a space's window becomes a pointer of that space; the executor knows which buffer it belongs to. Cache hints and eviction
priorities are accepted and mean nothing here. Source: PTX ISA 8.8, 9.7.9 and 9.7.13.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    IntegerType,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.text.ptx.arithmetic import one_type, operands, vector_of
from xla_emitters.text.ptx.emitter import POINTER, SPACES, TYPES, Emitter, bits_of
from xla_emitters.text.ptx.forms import check_operand
from xla_emitters.text.ptx.rows import ANY, BYTES, row
from xla_emitters.text.ptx.syntax import Address, Group, Instruction, Number, Operand, Register, Symbol

HINTS = (
    "ca cg cs lu cv wb wt nc weak volatile relaxed acquire release mmio cta cluster gpu sys L1::evict_normal L1::evict_unchanged "
    "L1::evict_first L1::evict_last L1::no_allocate L2::evict_first L2::evict_last L2::evict_normal L2::evict_unchanged L2::cache_hint "
    "L2::64B L2::128B L2::256B unified"
)
SPACES_OF_NAMES = "global shared local const param shared::cta shared::cluster param::entry param::func"
_MONOTONIC, _ACQUIRE, _RELEASE = 2, 4, 5


def space_of(i: Instruction) -> str:
    """The space that the mnemonic names; `generic` if none."""
    named = (part.partition("::")[0] for part in i.parts[1:])
    return next((part for part in named if part in SPACES or part == "param"), "generic")


def ordering_of(i: Instruction, ordered: int) -> int:
    if "relaxed" in i.parts or "mmio" in i.parts:
        return _MONOTONIC
    return ordered if "acquire" in i.parts or "release" in i.parts else 0


def width_of(i: Instruction) -> int:
    return next((int(part[1:]) for part in i.parts if part in ("v2", "v4", "v8")), 1)


def check_alike(e: Emitter, i: Instruction, registers: Sequence[Operand | None]) -> None:
    """raises ParseError for registers of a vector that have several widths"""
    if len({bits_of(TYPES[each.type]) for each in registers if isinstance(each, Register)}) > 1:
        raise e.error(f"'{i.name}' has registers of several widths")


def slot_of(e: Emitter, i: Instruction, operand: Operand | None) -> Register | None:
    """The register for a scalar `.param` variable, if `[operand]` is one."""
    if isinstance(operand, Address) and isinstance(operand.base, Symbol):
        return e.slots.get(operand.base.name)
    return None


@row("ld", "ldu", types=ANY | BYTES | {"b128"}, modifiers=f"v2 v4 v8 {HINTS} {SPACES_OF_NAMES}", pure=False)
def ld(e: Emitter, i: Instruction) -> None:
    word, address, width, space = one_type(e, i), i.operands[1], width_of(i), space_of(i)
    targets = i.operands[0].elements if isinstance(i.operands[0], Group) else (i.operands[0],)
    if "nc" in i.parts and space != "global":
        raise e.error("'.nc' is of .global")
    if len(targets) != width:
        raise e.error(f"'{i.name}' loads {width} values into {len(targets)} registers")
    for target in targets:
        if target is not None or width == 1:
            check_operand(e, i, target, word, is_result=True, may_be_wider=True)
    check_alike(e, i, targets)
    ir_type = TYPES[word]
    if (slot := slot_of(e, i, address)) is not None:
        e.write(targets[0], e.read(slot, ir_type), word[0] == "s")
        return
    if isinstance(address, Address) and isinstance(address.base, Symbol) and width == 1:
        if (found := e.parameters.get(address.base.name)) is not None and found[0].count is None:
            e.write(targets[0], part_of(e, found[1], ir_type, address.offset), word[0] == "s")
            return
    naturals = {e.type_for(target, ir_type) for target in targets}
    if len(naturals) == 1:
        (ir_type,) = naturals
    # LLVM widens a load where alignment allows it; bytes that are not used may be beyond the array.
    each = bits_of(ir_type) // 8
    count = width if i.used is None else max(1, min(width, -(-i.used.bit_length() // each)))
    loaded = ir_type if width == 1 else VectorType(ir_type, [count])
    pointer = e.pointer(address, space)
    value = e.add(
        llvm.LoadOp(
            pointer,
            loaded,
            each * width,
            ordering=ordering_of(i, _ACQUIRE) if width == 1 else 0,
            invariant="nc" in i.parts or space == "const",
            volatile="volatile" in i.parts,
        )
    )
    for number, target in enumerate(targets):
        if target is not None:
            if width == 1:
                part = value
            elif number < count:
                part = e.add(llvm.ExtractElementOp(value, e.constant(i32, number)))
            else:
                part = e.add(llvm.PoisonOp(ir_type))
            e.write(target, part, word[0] == "s")


def part_of(e: Emitter, value: SSAValue, ir_type: Attribute, offset: int) -> SSAValue:
    """Some bytes of a scalar parameter."""
    if not 0 <= 8 * offset <= bits_of(value.type) - bits_of(ir_type):
        raise e.error("reads beyond the parameter")
    if offset:
        whole = e.cast(value, IntegerType(bits_of(value.type)))
        value = e.add(llvm.LShrOp(whole, e.constant(whole.type, 8 * offset)))
    return e.cast(value, ir_type)


@row("st", types=ANY | BYTES | {"b128"}, modifiers=f"v2 v4 v8 {HINTS} {SPACES_OF_NAMES}", results=0, pure=False)
def st(e: Emitter, i: Instruction) -> None:
    word, address, width = one_type(e, i), i.operands[0], width_of(i)
    sources = i.operands[1].elements if isinstance(i.operands[1], Group) else (i.operands[1],)
    if len(sources) != width:
        raise e.error(f"'{i.name}' stores {width} values from {len(sources)} registers")
    for source in sources:
        check_operand(e, i, source, word, may_be_wider=True)
    check_alike(e, i, sources)
    if "nc" in i.parts:
        raise e.error("a store has no '.nc'")
    ir_type = TYPES[word]
    if (slot := slot_of(e, i, address)) is not None:
        if bits_of(TYPES[slot.type]) != bits_of(ir_type):
            raise e.unsupported(
                f"a store of {bits_of(ir_type)} bits to the {bits_of(TYPES[slot.type])} of '{slot.name}'"
            )
        e.write(slot, e.read(sources[0], ir_type))
        return
    held = {type_held(e, source, ir_type) for source in sources}
    if len(held) == 1 and (width == 1 or not any(isa(each, VectorType) for each in held)):
        (ir_type,) = held
    parts = [e.read(source, ir_type) for source in sources]
    value = parts[0]
    if width > 1:
        value = vector_of(e, parts)
    pointer = e.pointer(address, space_of(i))
    ordering = ordering_of(i, _RELEASE) if width == 1 else 0
    e.do(llvm.StoreOp(value, pointer, bits_of(value.type) // 8, ordering=ordering, volatile="volatile" in i.parts))


def type_held(e: Emitter, operand: Operand | None, ir_type: Attribute) -> Attribute:
    """The type of the value that a register holds now, if it has the width of `ir_type`."""
    held = e.held(operand) if isinstance(operand, Register) else None
    if held is None or isinstance(held, Number) or bits_of(held.type) != bits_of(ir_type):
        return ir_type
    return held.type


# ---------------------------------------------------------------------------------------------- atomic updates

_UPDATES = {
    **{"exch": "xchg", "and": "_and", "or": "_or", "xor": "_xor", "inc": "uinc_wrap", "dec": "udec_wrap"},
    **{"add.f": "fadd", "add": "add", "min.s": "min", "max.s": "max", "min.u": "umin", "max.u": "umax"},
    **{"min.f": "fmin", "max.f": "fmax", "min.b": "fmin", "max.b": "fmax"},
}
_UPDATE_TYPES = ANY - {"s16", "u16"} | {"f16", "bf16", "f16x2", "bf16x2"}
_UPDATE_HINTS = f"exch add inc dec min max and or xor cas noftz acq_rel v2 v4 v8 {HINTS} {SPACES_OF_NAMES}"


@row("atom", types=_UPDATE_TYPES, modifiers=_UPDATE_HINTS, pure=False)
def atom(e: Emitter, i: Instruction) -> None:
    update(e, i, i.operands[0], i.operands[1:])


@row(
    "red", types=_UPDATE_TYPES, modifiers=_UPDATE_HINTS.replace(" cas", "").replace("exch ", ""), results=0, pure=False
)
def red(e: Emitter, i: Instruction) -> None:
    update(e, i, None, i.operands)


def update(e: Emitter, i: Instruction, target: Operand | None, given: tuple[Operand | None, ...]) -> None:
    word = one_type(e, i)
    kind = next(
        (part for part in i.parts if part in ("exch", "cas", "add", "inc", "dec", "min", "max", "and", "or", "xor")), ""
    )
    if not kind or len(given) < 2 + (kind == "cas"):
        raise e.error(f"'{i.name}' has no operation or too few operands")
    pointer = e.pointer(given[0], space_of(i))
    if width_of(i) > 1 or word.endswith("x2"):
        update_neighbours(e, i, word, kind, pointer, target, given[1])
        return
    ir_type = TYPES[word]
    for operand in given[1 : 3 if kind == "cas" else 2]:
        check_operand(e, i, operand, word)
    if target is not None:
        check_operand(e, i, target, word, is_result=True)
    if kind == "cas":
        expected, new = (e.read(operand, ir_type) for operand in given[1:3])
        pair = e.add(llvm.AtomicCmpXchgOp(pointer, expected, new))
        e.write(target, e.add(llvm.ExtractValueOp(DenseArrayBase.from_list(i64, [0]), pair, ir_type)))
        return
    is_float = word in ("f16", "bf16", "f32", "f64")
    if word in ("f16", "bf16") and kind != "add":
        raise e.unsupported(f"'{i.name}'")
    family = f"{kind}.{'f' if is_float else word[0]}"
    operation = _UPDATES.get(family) or _UPDATES.get(kind)
    if operation is None:
        raise e.error(f"'{i.name}' is no atomic update")
    e.write(target, e.add(llvm.AtomicRMWOp(operation, pointer, e.read(given[1], ir_type))), word[0] == "s")


_OF_NEIGHBOURS = {"add": "fadd", "min": "fmin", "max": "fmax"}


def update_neighbours(
    e: Emitter, i: Instruction, word: str, kind: str, pointer: SSAValue, target: Operand | None, given: Operand | None
) -> None:
    """Updates of neighbouring floats, each atomic by itself: `v4.f32`, `f16x2`, `v2.bf16x2`."""
    sources = given.elements if isinstance(given, Group) else (given,)
    targets = target.elements if isinstance(target, Group) else (target,) * len(sources)
    element = TYPES[word.removesuffix("x2")]
    if kind not in _OF_NEIGHBOURS or not isinstance(element, AnyFloat) or (word == "f32" and kind != "add"):
        raise e.unsupported(f"'{i.name}'")
    if not len(sources) == len(targets) == width_of(i):
        raise e.error(f"'{i.name}' takes {width_of(i)} registers, not {len(sources)}")
    bits = bits_of(TYPES[word])
    part = IntegerType(bits)
    for operand in sources:
        check_operand(e, i, operand, word)
    value = vector_of(e, [e.read(source, part) for source in sources])
    floats = e.cast(value, VectorType(element, [len(sources) * bits // element.bitwidth]))
    old = e.cast(e.add(llvm.AtomicRMWOp(_OF_NEIGHBOURS[kind], pointer, floats)), VectorType(part, [len(sources)]))
    for number, register in enumerate(targets):
        if register is not None:
            check_operand(e, i, register, word, is_result=True)
            e.write(register, e.add(llvm.ExtractElementOp(old, e.constant(i32, number))))


# ---------------------------------------------------------------------------------------------- hints


@row(
    "prefetch",
    "prefetchu",
    "applypriority",
    "discard",
    modifiers=f"L1 L2 tensormap {HINTS} {SPACES_OF_NAMES}",
    results=0,
    pure=False,
)
def hint(e: Emitter, i: Instruction) -> None:
    """Means nothing for the numbers."""


@row("createpolicy", types={"b64"}, modifiers=f"fractional range {HINTS} {SPACES_OF_NAMES}")
def createpolicy(e: Emitter, i: Instruction) -> None:
    e.write(i.operands[0], Number(0))


@row("isspacep", modifiers=SPACES_OF_NAMES)
def isspacep(e: Emitter, i: Instruction) -> None:
    pointer = e.cast(e.read(operands(e, i, 2)[1], i64), POINTER)
    e.write(i.operands[0], e.intrinsic(f"isspacep.{space_of(i)}", [pointer], i1))
