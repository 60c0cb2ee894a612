"""Rows of instructions that access memory: loads, stores, atomic updates, hints.

An address in a space's window becomes a pointer of that space; the executor knows which buffer it belongs to. Cache hints and eviction
priorities are accepted and mean nothing here. Source: PTX ISA 8.8, 9.7.9 and 9.7.13.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import AnyFloat, IntegerType, VectorType, i1, i8, i32
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.data_layout import bits_of
from xla_emitters.text.ptx.op_builder import POINTER, TYPES, OpBuilder, pointer_type
from xla_emitters.text.ptx.rows import ANY, BITS, BYTES, FLOATS, INTEGERS, SCALAR_FLOATS, row
from xla_emitters.text.ptx.syntax import SIZES, Address, Instruction, Operand, OperandGroup, PtxLiteral, Register

HINTS = (
    "ca cg cs lu cv wb wt nc weak volatile relaxed acquire release mmio cta cluster gpu sys L1::evict_normal L1::evict_unchanged "
    "L1::evict_first L1::evict_last L1::no_allocate L2::evict_first L2::evict_last L2::evict_normal L2::evict_unchanged L2::cache_hint "
    "L2::64B L2::128B L2::256B unified"
)
SPACES_OF_NAMES = "global shared local const param shared::cta shared::cluster param::entry param::func"
_ACCESS = f"v2 v4 v8 {HINTS} {SPACES_OF_NAMES}"
_MOST_ALIGNMENT = 1 << 23
_MANY = ANY | FLOATS
"""Types of accesses of several devices' memory."""
_MONOTONIC, _ACQUIRE, _RELEASE = 2, 4, 5


def _strength_of(i: Instruction, ordered: int) -> dict[str, Any]:
    """LLVM's ordering and scope of a load or a store. One of several elements is as many accesses, which LLVM has as volatile."""
    is_strong = not {"relaxed", "mmio", "acquire", "release"}.isdisjoint(i.parts)
    if not is_strong or "v1" != i.among("v2 v4 v8 b128", "v1"):
        return {"volatile": is_strong or "volatile" in i.parts}
    ordering = ordered if "acquire" in i.parts or "release" in i.parts else _MONOTONIC
    return {"ordering": ordering, "syncscope": _scope_of(i)}


def width_of(i: Instruction) -> int:
    return int(i.among("v2 v4 v8", "v1")[1:])


def registers_of(e: OpBuilder, i: Instruction, operand: Operand | None, count: int = 0) -> Sequence[Operand | None]:
    """`{%r1, %r2}`: `count` registers of one width, or as many as the mnemonic says. raises ParseError for others"""
    registers, count = operand.elements if isinstance(operand, OperandGroup) else (operand,), count or width_of(i)
    if len(registers) != count:
        raise e.error(f"'{i.name}' takes {count} registers here, not {len(registers)}")
    if len({bits_of(TYPES[each.type]) for each in registers if isinstance(each, Register)}) > 1:
        raise e.error(f"'{i.name}' has registers of several widths")
    return registers


def scalar_at(address: Operand | None) -> Register | None:
    """The scalar in `.param` whose address an operand is."""
    base = address.base if isinstance(address, Address) else None
    return base if isinstance(base, Register) and base.is_param else None


@row("multimem.ld_reduce", ".=.", _MANY, f"add min max and or xor acc::f32 {_ACCESS}", pure=False)
@row("ld ldu", ".=.*", ANY | BYTES | {"b128"}, _ACCESS, pure=False)
def ld(e: OpBuilder, i: Instruction, address: Operand | None, *_: Operand | None) -> None:
    """`multimem` is of one device here: a reduction of what it has is a load."""
    word, width, space, targets = _word_in_memory(e), width_of(i), i.space, registers_of(e, i, i.operands[0])
    if "nc" in i.parts and space != "global":
        raise e.error("'.nc' is of .global")
    wanted = [target for target in targets if target is not None or width == 1]
    e.check_all(wanted, word, is_result=True, may_be_wider=True)
    ir_type, is_signed = TYPES[word], word[0] == "s"
    if isinstance(address, Address) and (scalar := scalar_at(address)) is not None and width == 1:
        e.write(targets[0], _bytes_of(e, scalar, ir_type, address.offset), is_signed)
        return
    if len(naturals := {e.type_for(target, ir_type) for target in targets}) == 1:
        (ir_type,) = naturals
    # LLVM widens a load where alignment allows it; bytes that are not used may be beyond the array.
    each = bits_of(ir_type) // 8
    count = width if i.used is None else max(1, min(width, -(-i.used.bit_length() // each)))
    loaded = llvm.LoadOp(
        e.pointer(address, space),
        ir_type if width == 1 else VectorType(ir_type, [count]),
        each * width,
        invariant="nc" in i.parts or space == "const",
        **_strength_of(i, _ACQUIRE),
    )
    value = e.add(loaded)
    for number, target in enumerate(targets):
        if target is not None:
            part = value if width == 1 else None
            part = part or (e.element(value, number) if number < count else e.add(llvm.PoisonOp(ir_type)))
            e.write(target, part, is_signed)


def _bytes_of(e: OpBuilder, scalar: Register, ir_type: Attribute, offset: int) -> SSAValue:
    """Some bytes of a scalar in `.param`."""
    bits = SIZES[scalar.type] * 8
    if not 0 <= 8 * offset <= bits - bits_of(ir_type):
        raise e.error("reads beyond the parameter")
    if not offset:
        return e.read(scalar, ir_type)
    whole = e.read(scalar, IntegerType(bits))
    return e.cast(e.add(llvm.LShrOp(whole, e.constant(whole.type, 8 * offset))), ir_type)


def _word_in_memory(e: OpBuilder) -> str:
    """The type of an access; the bits of a pair."""
    return "b32" if (word := e.one_type()).endswith("x2") else word


@row("multimem.st", "=..", _MANY, _ACCESS, pure=False)
@row("st.async.release st.async.mmio.release", "=..", ANY | BYTES, "gpu sys global", pure=False)
@row("st", "=..*", ANY | BYTES | {"b128"}, _ACCESS, pure=False)
def st(e: OpBuilder, i: Instruction, address: Operand | None, source: Operand | None, *_: Operand | None) -> None:
    word, width, sources = _word_in_memory(e), width_of(i), registers_of(e, i, source)
    e.check_all(sources, word, may_be_wider=True)
    if "nc" in i.parts:
        raise e.error("a store has no '.nc'")
    ir_type = TYPES[word]
    if (scalar := scalar_at(address)) is not None:
        if (have := bits_of(TYPES[scalar.type])) != (given := bits_of(ir_type)):
            raise e.unsupported(f"a store of {given} bits to the {have} of '{scalar.name}'")
        e.write(scalar, e.read(sources[0], ir_type))
        return
    held = {_type_held(e, source, ir_type) for source in sources}
    if len(held) == 1 and (width == 1 or not any(isa(each, VectorType) for each in held)):
        (ir_type,) = held
    parts = [e.read(source, ir_type) for source in sources]
    value = parts[0] if width == 1 else e.vector(parts)
    store(e, i, value, e.pointer(address, i.space))


def store(e: OpBuilder, i: Instruction, value: SSAValue, pointer: SSAValue) -> None:
    """A store as the mnemonic says, aligned to its size."""
    strength = _strength_of(i, _RELEASE)
    if "release" in i.parts and "volatile" in strength:
        e.do(llvm.FenceOp("release", _scope_of(i)))
    e.do(llvm.StoreOp(value, pointer, bits_of(value.type) // 8, **strength))


def _type_held(e: OpBuilder, operand: Operand | None, ir_type: Attribute) -> Attribute:
    """The type of the value that a register holds now, if it has the width of `ir_type`."""
    held = e.held(operand) if isinstance(operand, Register) else None
    if held is None or isinstance(held, PtxLiteral) or bits_of(held.type) != bits_of(ir_type):
        return ir_type
    return held.type


# ---------------------------------------------------------------------------------------------- atomic updates

_UPDATES = {
    **{"exch": "xchg", "and": "_and", "or": "_or", "xor": "_xor", "inc": "uinc_wrap", "dec": "udec_wrap"},
    **{"add.f": "fadd", "add": "add", "min.s": "min", "max.s": "max", "min.u": "umin", "max.u": "umax"},
    **{"min.f": "fmin", "max.f": "fmax", "min.b": "fmin", "max.b": "fmax"},
}
_OF_FLOATS = {"add": "fadd", "min": "fmin", "max": "fmax"}
_UPDATE_TYPES = ANY - {"s16", "u16"} | {"f16", "bf16", "f16x2", "bf16x2", "b128"}
_REDUCTIONS = "add inc dec min max and or xor"
_UPDATE_HINTS = f"noftz acq_rel {_ACCESS}"


@row("multimem.red", "=..", _UPDATE_TYPES, f"{_REDUCTIONS} {_UPDATE_HINTS}", pure=False)
@row("red.async.release red.async.mmio.release", "=..", INTEGERS | BITS, f"{_REDUCTIONS} gpu sys global", pure=False)
@row("red", "=.*", _UPDATE_TYPES, f"{_REDUCTIONS} {_UPDATE_HINTS}", pure=False)
@row("atom", ".=.*", _UPDATE_TYPES, f"{_REDUCTIONS} exch cas {_UPDATE_HINTS}", pure=False)
def update(e: OpBuilder, i: Instruction, address: Operand | None, *given: Operand | None) -> None:
    """An atomic update of what is at an address by the operands after it; the first operand of `atom` gets what was there."""
    target = i.operands[0] if i.stem == "atom" else None
    word, kind = e.one_type(), i.among(f"{_REDUCTIONS} exch cas", "")
    if not kind or len(given) < (count := 2 if kind == "cas" else 1):
        raise e.error(f"'{i.name}' has no operation or too few operands")
    pointer = e.pointer(address, i.space)
    if width_of(i) > 1 or word.endswith("x2"):
        _update_neighbours(e, i, word, kind, pointer, target, given[0])
        return
    values, order, scope = [e.read_as(operand, word) for operand in given[:count]], _order_of(i), _scope_of(i)
    if target is not None:
        e.check(target, word, is_result=True)
    if kind == "cas":
        swap = llvm.AtomicCmpXchgOp(pointer, values[0], values[1], order, syncscope=scope)
        e.write(target, e.field(e.add(swap), 0))
        return
    if (word in ("f16", "bf16") and kind != "add") or (word == "b128" and kind != "exch"):
        raise e.unsupported(f"'{i.name}'")
    family = f"{kind}.{'f' if word in SCALAR_FLOATS else word[0]}"
    if (operation := _UPDATES.get(family) or _UPDATES.get(kind)) is None:
        raise e.error(f"'{i.name}' is no atomic update")
    e.write(target, e.add(llvm.AtomicRMWOp(operation, pointer, values[0], order, scope)), word[0] == "s")


def _order_of(i: Instruction) -> str:
    """LLVM's word for the ordering of an update."""
    return i.among("acquire release acq_rel", "monotonic")


def _scope_of(i: Instruction) -> str | None:
    """LLVM's word for the threads that observe the ordering of an access, where they are those of a block."""
    return llvm.OF_BLOCK if "cta" in i.parts else None


def _update_neighbours(
    e: OpBuilder, i: Instruction, word: str, kind: str, pointer: SSAValue, target: Operand | None, given: Operand | None
) -> None:
    """Updates of neighbouring floats, each atomic by itself: `v4.f32`, `f16x2`, `v2.bf16x2`."""
    element = TYPES[word.removesuffix("x2")]
    if kind not in _OF_FLOATS or not isinstance(element, AnyFloat) or (word == "f32" and kind != "add"):
        raise e.unsupported(f"'{i.name}'")
    sources = registers_of(e, i, given)
    targets = [None] * len(sources) if target is None else registers_of(e, i, target)
    bits = bits_of(TYPES[word])
    e.check_all(sources, word)
    e.check_all([each for each in targets if each is not None], word, is_result=True)
    value = e.vector([e.read(source, IntegerType(bits)) for source in sources])
    floats = e.cast(value, VectorType(element, [len(sources) * bits // element.bitwidth]))
    old = e.cast(e.add(llvm.AtomicRMWOp(_OF_FLOATS[kind], pointer, floats, _order_of(i), _scope_of(i))), value.type)
    for number, register in enumerate(targets):
        if register is not None:
            e.write(register, e.element(old, number))


# ---------------------------------------------------------------------------------------------- the stack


@row("alloca", ".=t?n", {"u32", "u64"}, pure=False)
def alloca(e: OpBuilder, i: Instruction, size: SSAValue, alignment: int = 8) -> SSAValue:
    """Memory of the thread until the function ends, as an offset in the window of .local."""
    if alignment & (alignment - 1) or not 1 <= alignment <= _MOST_ALIGNMENT:
        raise e.error(f"{alignment} is no alignment: a power of two up to {_MOST_ALIGNMENT}")
    e.check(i.operands[0], i.types[0], is_result=True)
    made = e.add(llvm.AllocaOp(size, i8, alignment, pointer_type("local")))
    return e.add(llvm.PtrToIntOp(made, i32))


@row("stacksave", ".=", {"u32", "u64"}, pure=False)
def stacksave(e: OpBuilder, i: Instruction) -> PtxLiteral:
    e.check(i.operands[0], i.types[0], is_result=True)
    return PtxLiteral(0)


row("stackrestore", "=t", {"u32", "u64"}, to="", pure=False)


# ---------------------------------------------------------------------------------------------- hints


row(
    "prefetch prefetchu applypriority discard",
    *("=*", (), f"L1 L2 tensormap {HINTS} {SPACES_OF_NAMES}"),
    to="",
    pure=False,
)


@row("createpolicy", ".=*", {"b64"}, f"fractional range cvt L2 {HINTS} {SPACES_OF_NAMES}")
def createpolicy(e: OpBuilder, i: Instruction, *_: Operand | None) -> PtxLiteral:
    return PtxLiteral(0)


@row("isspacep", "p=b", (), SPACES_OF_NAMES)
def isspacep(e: OpBuilder, i: Instruction, address: SSAValue) -> SSAValue:
    if i.space in ("const", "param"):
        # Those of kernels are given as global memory.
        return e.constant(i1, 0)
    return e.intrinsic(f"isspacep.{i.space}", [e.cast(address, POINTER)], i1)
