"""Rows of comparisons, choices, moves and conversions.

Source: PTX ISA 8.8, 9.7.6 to 9.7.9.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import VectorType, f16, f32, i16, i32, i64
from xdsl.ir import SSAValue

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.data_layout import bits_of
from xla_emitters.text.ptx.arithmetic import FLUSHED, LOGIC
from xla_emitters.text.ptx.memory_rows import registers_of, width_of
from xla_emitters.text.ptx.op_builder import POINTER, TYPES, WINDOWED, OpBuilder, is_float, pointer_type
from xla_emitters.text.ptx.rows import ANY, BITS, BYTES, FLOATS, INTEGERS, ROUNDINGS, row
from xla_emitters.text.ptx.syntax import Instruction, Operand, OperandGroup, Pair, PtxLiteral, Register, SymbolAddress

PAIRS = frozenset({"f16x2", "bf16x2"})

# ---------------------------------------------------------------------------------------------- comparisons, choices

_ORDERS = {
    **{name: name for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"},
}
_FLOAT_ORDERS = {
    **{name: f"o{name}" for name in ("eq", "lt", "le", "gt", "ge")},
    **{"ne": "one", "equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge"},
    **{"num": "ord", "nan": "uno"},
}
_COMPARISONS = " ".join((*_ORDERS, *_FLOAT_ORDERS, "and", "or", "xor"))


def _compared(e: OpBuilder, i: Instruction, a: SSAValue, b: SSAValue) -> SSAValue:
    order, word = i.parts[1], i.types[-1]
    if is_float(a.type):
        if order not in _FLOAT_ORDERS:
            raise e.error(f"floats are not compared by '{order}'")
        return e.add(llvm.FCmpOp(a, b, _FLOAT_ORDERS[order]))
    if order not in _ORDERS or (word in BITS and order not in ("eq", "ne")):
        raise e.error(f"{'bits' if order in _ORDERS else 'integers'} are not compared by '{order}'")
    is_signed = word[0] == "s" and order not in ("lo", "ls", "hi", "hs")
    return e.compare(order if order in ("eq", "ne") else f"{'s' if is_signed else 'u'}{_ORDERS[order]}", a, b)


def _combined(e: OpBuilder, i: Instruction, truth: SSAValue, others: tuple[SSAValue, ...]) -> SSAValue:
    """The result of a comparison, combined with the last operand where the mnemonic says so."""
    combine = next((part for part in i.parts[2:] if part in LOGIC), None)
    if (combine is None) == bool(others):
        raise e.error(f"'{i.name}' takes {3 + (combine is not None)} operands, not {len(i.operands)}")
    return truth if combine is None else e.add(LOGIC[combine](truth, others[0]))


_COMPARED = {**dict.fromkeys(INTEGERS | BITS, ""), **FLUSHED}


@row("setp", "p=tt?p", _COMPARED, _COMPARISONS)
def setp(e: OpBuilder, i: Instruction, a: SSAValue, b: SSAValue, *others: SSAValue) -> SSAValue | tuple[SSAValue, ...]:
    truth = _compared(e, i, a, b)
    is_pair = isinstance(i.operands[0], Pair)
    if isa(truth.type, VectorType):
        if not is_pair:
            raise e.error("a comparison of pairs gives two predicates")
        return tuple(_combined(e, i, e.element(truth, number), others) for number in (0, 1))
    found = _combined(e, i, truth, others)
    return (found, _combined(e, i, e.inverted(truth), others)) if is_pair else found


@row("set", "t=ss?p", _COMPARED, _COMPARISONS)
def set_(e: OpBuilder, i: Instruction, a: SSAValue, b: SSAValue, *others: SSAValue) -> SSAValue:
    truth, word = _combined(e, i, _compared(e, i, a, b), others), i.types[0]
    yes = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "f16x2": 0x3C003C00, "bf16x2": 0x3F803F80}.get(word, -1)
    target = VectorType(i16, [2]) if isa(truth.type, VectorType) and word not in PAIRS else TYPES[word]
    return e.add(llvm.SelectOp(truth, e.constant(target, yes), e.constant(target, 0)))


@row("selp", "t=vvp", ANY)
def selp(e: OpBuilder, i: Instruction, a: SSAValue, b: SSAValue, chooser: SSAValue) -> SSAValue:
    return e.add(llvm.SelectOp(chooser, a, b))


@row("slct", "t=tts", {**dict.fromkeys(ANY, ""), "f32": "ftz"})
def slct(e: OpBuilder, i: Instruction, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
    """`a` where `c` is at least 0; `.ftz` is of `c` alone."""
    if "ftz" in i.parts:
        c = e.intrinsic("ftz.f32", [c], c.type)
    zero = e.constant(c.type, 0)
    test = e.add(llvm.FCmpOp(c, zero, "oge")) if is_float(c.type) else e.compare("sge", c, zero)
    return e.add(llvm.SelectOp(test, a, b))


# ---------------------------------------------------------------------------------------------- moves


@row("mov", ".=.", ANY | {"pred", "b128"}, "v2 v4")
def mov(e: OpBuilder, i: Instruction, source: Operand | None) -> Any:
    target, word = i.operands[0], e.one_type()
    if width_of(i) > 1:
        targets = registers_of(e, i, target)
        e.check_all(targets, word, is_result=True)
        values = [e.read_as(part, word) for part in registers_of(e, i, source)]
        for part, value in zip(targets, values, strict=True):
            e.write(part, value)
        return None
    for operand, is_result in ((target, True), (source, False)):
        if isinstance(operand, OperandGroup):
            part = _part_of(e, i, word, operand)
            given = [each for each in operand.elements if each is not None or not is_result]
            e.check_all(given, part, is_result=is_result)
        else:
            e.check(operand, word, is_result=is_result)
    if isinstance(source, OperandGroup):
        if isinstance(target, OperandGroup):
            raise e.error("one side of a 'mov' has one register")
        parts = [e.read(each, TYPES[_part_of(e, i, word, source)]) for each in source.elements]
        return e.cast(e.vector(parts), TYPES[word])
    if isinstance(target, OperandGroup):
        part = TYPES[_part_of(e, i, word, target)]
        vector = e.cast(e.read(source, TYPES[word]), VectorType(part, [len(target.elements)]))
        for number, each in enumerate(target.elements):
            if each is not None:
                e.write(each, e.element(vector, number))
        return None
    if isinstance(source, PtxLiteral):
        return PtxLiteral(e.number(source, TYPES[word]))
    e.write(target, e.held(source) if isinstance(source, Register) else e.read(source, TYPES[word]))
    return None


def _part_of(e: OpBuilder, i: Instruction, word: str, group: OperandGroup) -> str:
    """The type of each part of a number."""
    if word[0] != "b" or len(group.elements) not in (2, 4):
        raise e.error("a 'mov' of .b16 to .b128 takes two or four parts")
    if (part := f"b{bits_of(TYPES[word]) // len(group.elements)}") not in TYPES:
        raise e.error(f"'{i.name}' has too many parts")
    return part


@row("cvta", "t=.", {"u32", "u64"}, "to global shared local const param shared::cta shared::cluster")
def cvta(e: OpBuilder, i: Instruction, source: Operand | None) -> SSAValue:
    """Between a space's window and generic addresses."""
    space, (word,) = i.space, i.types
    e.check(source, word)
    if isinstance(source, SymbolAddress):
        value = e.address_of(source)
    else:
        value = e.read(source, TYPES[source.type if isinstance(source, Register) else "b64"])
    if space not in WINDOWED:
        return value
    is_inward = "to" in i.parts
    pointer = e.cast(value, POINTER) if is_inward else e.to_window(value, space)
    there = pointer_type(space) if is_inward else POINTER
    if pointer.type != there:
        pointer = e.add(llvm.AddrSpaceCastOp(pointer, there))
    return e.add(llvm.PtrToIntOp(pointer, i32 if is_inward else i64))


# ---------------------------------------------------------------------------------------------- conversions

_WHOLE = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_WHOLES = INTEGERS | BYTES
_EIGHT = frozenset({"e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2", "ue8m0x2"})


@row(
    "cvt", ".=*", INTEGERS | {"s8", "u8"} | FLOATS | _EIGHT | {"tf32"}, f"{' '.join(ROUNDINGS)} ftz sat satfinite relu"
)
def cvt(e: OpBuilder, i: Instruction, *given: Operand | None) -> SSAValue | None:
    if len(types := i.types) != 2:
        raise e.error("'cvt' needs two types")
    to, of = types
    is_pair = to in PAIRS | _EIGHT or of in _EIGHT
    is_random = "rs" in i.parts
    if is_random and not (to in PAIRS and of == "f32"):
        raise e.unsupported(f"'{i.name}'")
    if len(given) != (wanted := 1 + (is_pair and of == "f32") + is_random):
        raise e.error(f"'{i.name}' takes {1 + wanted} operands, not {len(i.operands)}")
    e.check(i.operands[0], to, is_result=True, may_be_wider=not is_pair and to != "bf16")
    bits = [e.read_as(operand, "b32") for operand in given[2:]]
    given = given[:2]
    e.check_all(given, of, may_be_wider=not is_pair and of != "bf16")
    values = [e.flushed(e.read(operand, TYPES[of])) for operand in given]
    if is_pair:
        return _packed(e, i, to, of, values, bits)
    (value,), mode = values, i.among(" ".join(ROUNDINGS), "")
    if to in _WHOLES:
        if of not in _WHOLES and mode not in _WHOLE:
            raise e.error("a float becomes an integer by .rni, .rzi, .rmi or .rpi")
        if of not in _WHOLES or "sat" in i.parts:
            value = e.intrinsic(f"cvt.{mode if of not in _WHOLES else 'sat'}.{to}.{of}", [value], TYPES[to])
        e.write(i.operands[0], e.resize(value, bits_of(TYPES[to]), of[0] == "s"), to[0] == "s")
        return None
    if mode in _WHOLE:
        if to != of:
            raise e.error(".rni, .rzi, .rmi and .rpi keep the type")
        return e.intr(_WHOLE[mode], value)
    if not mode and (of in _WHOLES or bits_of(TYPES[to]) < bits_of(TYPES[of])):
        raise e.error(f"'{i.name}' needs a rounding such as .rn")
    if of in _WHOLES and mode in ("", "rn"):
        return e.add((llvm.SIToFPOp if of[0] == "s" else llvm.UIToFPOp)(value, TYPES[to]))
    return _float_of_float(e, value, to, of, mode)


def _float_of_float(e: OpBuilder, value: SSAValue, to: str, of: str, mode: str, *random: SSAValue) -> SSAValue:
    if to == of:
        return value
    if bits_of(TYPES[to]) > bits_of(TYPES[of]):
        return e.add(llvm.FPExtOp(value, TYPES[to]))
    if to == "tf32" or mode not in ("", "rn"):
        return e.intrinsic(f"cvt.{mode}.{to}.{of}", [value, *random], TYPES[to])
    if bits_of(TYPES[to]) == bits_of(TYPES[of]):
        value = e.add(llvm.FPExtOp(value, f32))
    return e.add(llvm.FPTruncOp(value, TYPES[to]))


def _packed(e: OpBuilder, i: Instruction, to: str, of: str, values: list[SSAValue], random: list[SSAValue]) -> SSAValue:
    """Two numbers of one word: the first operand is the upper one, and has the upper one of the random bits."""
    ending = ".rn.relu" if "relu" in i.parts else ".rn"
    if of == "ue8m0x2" and to == "bf16x2":
        return e.intrinsic("ue8m0x2.to.bf16x2", values, TYPES[to])
    if to == "ue8m0x2" and of in ("bf16x2", "f32") and (mode := i.among("rz rp", "")):
        finite = ".satfinite" * ("satfinite" in i.parts)
        return e.intrinsic(f"{'ff' if of == 'f32' else of}.to.ue8m0x2.{mode}{finite}", values, TYPES[to])
    if "ue8m0x2" in (to, of):
        raise e.unsupported(f"'{i.name}'")
    if of in _EIGHT and to == "f16x2":
        name = f"{of}.to.f16x2"
    elif to in _EIGHT and of in ("f16x2", "f32"):
        name = f"{'ff' if of == 'f32' else of}.to.{to}"
    elif to in PAIRS and of == "f32":
        element, mode = to.removesuffix("x2"), i.among("rz rm rp rna rs", "")
        halves = [[bits, e.add(llvm.LShrOp(bits, e.constant(i32, 16)))] for bits in random]
        each = zip(reversed(values), *halves, strict=True)
        return e.vector([_float_of_float(e, value, element, "f32", mode, *more) for value, *more in each])
    else:
        raise e.unsupported(f"'{i.name}'")
    return e.intrinsic(f"{name}{ending}", values, VectorType(f16, [2]) if to == "f16x2" else TYPES[to])
