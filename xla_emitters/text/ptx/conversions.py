"""Rows of comparisons, choices, moves and conversions.

Source: PTX ISA 8.8, 9.7.6 to 9.7.9.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, VectorType, f16, f32, i1, i16, i32, i64
from xdsl.ir import SSAValue

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.text.ptx.arithmetic import (
    LOGIC,
    PAIRS,
    float_function,
    flushed,
    one_type,
    operands,
    result,
    rounding,
    vector_of,
)
from xla_emitters.text.ptx.emitter import POINTER, TYPES, WINDOWED, Emitter, bits_of, pointer_type
from xla_emitters.text.ptx.forms import check_operand
from xla_emitters.text.ptx.rows import (
    ANY,
    BITS,
    BYTES,
    FLOATS,
    INTEGERS,
    row,
    types_of,
)
from xla_emitters.text.ptx.syntax import Group, Instruction, Number, Pair, Register, Symbol

# ---------------------------------------------------------------------------------------------- comparisons, choices

_ORDERS = {
    "eq": "eq",
    "ne": "ne",
    "lt": "lt",
    "le": "le",
    "gt": "gt",
    "ge": "ge",
    "lo": "lt",
    "ls": "le",
    "hi": "gt",
    "hs": "ge",
}
_FLOAT_ORDERS = {
    **{name: f"o{name}" for name in ("eq", "lt", "le", "gt", "ge")},
    **{"ne": "one", "equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge"},
    **{"num": "ord", "nan": "uno"},
}
_COMPARISONS = " ".join((*_ORDERS, *_FLOAT_ORDERS, "ftz", "and", "or", "xor"))


def comparison(e: Emitter, i: Instruction, word: str) -> SSAValue:
    """Operand 1 compared with operand 2, then combined with operand 3 if there is one."""
    a, b = (flushed(e, i, e.read(operand, TYPES[word])) for operand in i.operands[1:3])
    order = i.parts[1]
    if word in FLOATS:
        if order not in _FLOAT_ORDERS:
            raise e.error(f"floats are not compared by '{order}'")
        return e.add(llvm.FCmpOp(a, b, _FLOAT_ORDERS[order]))
    if order not in _ORDERS:
        raise e.error(f"integers are not compared by '{order}'")
    if word in BITS and order not in ("eq", "ne"):
        raise e.error(f"bits are not compared by '{order}'")
    is_signed = word[0] == "s" and order not in ("lo", "ls", "hi", "hs")
    name = order if order in ("eq", "ne") else f"{'s' if is_signed else 'u'}{_ORDERS[order]}"
    return e.add(llvm.ICmpOp(a, b, name))


def _combined(e: Emitter, i: Instruction, truth: SSAValue) -> SSAValue:
    if (combine := next((part for part in i.parts[2:] if part in LOGIC), None)) is None:
        operands(e, i, 3)
        return truth
    operands(e, i, 4)
    return e.add(LOGIC[combine](truth, e.read(i.operands[3], i1)))


@row("setp", form="ptt?p", types=INTEGERS | BITS | FLOATS, modifiers=_COMPARISONS)
def setp(e: Emitter, i: Instruction) -> None:
    word, target = one_type(e, i), i.operands[0]
    truth = comparison(e, i, word)
    if word in PAIRS:
        if not isinstance(target, Pair):
            raise e.error("a comparison of pairs gives two predicates")
        for number, register in enumerate((target.first, target.second)):
            half = e.add(llvm.ExtractElementOp(truth, e.constant(i32, number)))
            e.write(register, _combined(e, i, half))
    elif isinstance(target, Pair):
        e.write(target.first, _combined(e, i, truth))
        e.write(target.second, _combined(e, i, e.add(llvm.XOrOp(truth, e.constant(i1, 1)))))
    else:
        e.write(target, _combined(e, i, truth))


@row("set", form="tss?p", types=INTEGERS | BITS | FLOATS, modifiers=_COMPARISONS)
def set_(e: Emitter, i: Instruction) -> None:
    if len(types := types_of(i)) != 2:
        raise e.error("'set' needs two types")
    truth, target = _combined(e, i, comparison(e, i, types[1])), TYPES[types[0]]
    yes = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "f16x2": 0x3C003C00, "bf16x2": 0x3F803F80}.get(
        types[0], -1
    )
    if isa(truth.type, VectorType):
        target = VectorType(TYPES[types[0].removesuffix("x2")], [2]) if types[0] in PAIRS else VectorType(i16, [2])
    result(e, i, e.add(llvm.SelectOp(truth, e.constant(target, yes), e.constant(target, 0))))


@row("selp", form="tttp", types=ANY)
def selp(e: Emitter, i: Instruction) -> None:
    target, a, b, chooser = operands(e, i, 4)
    ir_type = e.type_for(target, TYPES[one_type(e, i)])
    result(e, i, e.add(llvm.SelectOp(e.read(chooser, i1), e.read(a, ir_type), e.read(b, ir_type))))


@row("slct", form="ttts", types=ANY, modifiers="ftz")
def slct(e: Emitter, i: Instruction) -> None:
    """`a` where `c` is at least 0."""
    _, a, b, c = operands(e, i, 4)
    value, chosen = types_of(i)
    test = flushed(e, i, e.read(c, TYPES[chosen]))
    zero = e.constant(test.type, 0)
    op = llvm.FCmpOp(test, zero, "oge") if chosen == "f32" else llvm.ICmpOp(test, zero, "sge")
    e.write(i.operands[0], e.add(llvm.SelectOp(e.add(op), e.read(a, TYPES[value]), e.read(b, TYPES[value]))))


# ---------------------------------------------------------------------------------------------- moves


@row("mov", types=ANY | {"pred", "b128"})
def mov(e: Emitter, i: Instruction) -> None:
    target, source = operands(e, i, 2)
    word = one_type(e, i)
    for operand, is_result in ((target, True), (source, False)):
        if not isinstance(operand, Group):
            check_operand(e, i, operand, word, is_result=is_result)
            continue
        if word[0] != "b" or len(operand.elements) not in (2, 4):
            raise e.error("a 'mov' of .b16 to .b128 takes two or four parts")
        if (part := f"b{bits_of(TYPES[word]) // len(operand.elements)}") not in TYPES:
            raise e.error(f"'{i.name}' has too many parts")
        for element in operand.elements:
            if element is not None or not is_result:
                check_operand(e, i, element, part, is_result=is_result)
    if isinstance(source, Group):
        parts = [e.read(each, IntegerType(bits_of(TYPES[word]) // len(source.elements))) for each in source.elements]
        vector = vector_of(e, parts)
        whole = e.cast(vector, TYPES[word])
        if isinstance(target, Group):
            raise e.error("one side of a 'mov' has one register")
        e.write(target, whole)
    elif isinstance(target, Group):
        width = bits_of(TYPES[word]) // len(target.elements)
        vector = e.cast(e.read(source, TYPES[word]), VectorType(IntegerType(width), [len(target.elements)]))
        for number, each in enumerate(target.elements):
            if each is not None:
                e.write(each, e.add(llvm.ExtractElementOp(vector, e.constant(i32, number))))
    elif isinstance(source, Register):
        e.write(target, e.held(source))
    elif isinstance(source, Number):
        e.write(target, Number(e.number(source, TYPES[word])))
    else:
        is_function = isinstance(source, Symbol) and source.name in e.module.functions
        if is_function:
            raise e.unsupported("the address of a function")
        e.write(target, e.read(source, TYPES[word]))


@row(
    "cvta", form="tt", types={"u32", "u64"}, modifiers="to global shared local const param shared::cta shared::cluster"
)
def cvta(e: Emitter, i: Instruction) -> None:
    """Between a space's window and generic addresses."""
    target, source = operands(e, i, 2)
    space = next((part.partition("::")[0] for part in i.parts[1:] if part not in ("to", "u64", "u32")), "generic")
    if isinstance(source, Symbol):
        value = e.address_of(source)
    else:
        value = e.read(source, TYPES[source.type if isinstance(source, Register) else "b64"])
    if space not in WINDOWED:
        e.write(target, value)
    elif "to" in i.parts:
        pointer = e.cast(value, POINTER)
        there = e.add(llvm.AddrSpaceCastOp(pointer, pointer_type(space)))
        e.write(target, e.add(llvm.PtrToIntOp(there, i32)))
    else:
        here = e.add(llvm.AddrSpaceCastOp(e.to_window(value, space), POINTER))
        e.write(target, e.add(llvm.PtrToIntOp(here, i64)))


_WHOLE = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_WHOLES = INTEGERS | BYTES
_EIGHT = frozenset({"e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2"})


@row(
    "cvt",
    types=INTEGERS | {"s8", "u8"} | FLOATS | _EIGHT | {"tf32"},
    modifiers="rn rz rm rp rna rni rzi rmi rpi ftz sat satfinite relu",
)
def cvt(e: Emitter, i: Instruction) -> None:
    if len(types := types_of(i)) != 2:
        raise e.error("'cvt' needs two types")
    to, of = types
    if to in PAIRS | _EIGHT or of in _EIGHT:
        packed(e, i, to, of)
        return
    _, source = operands(e, i, 2)
    check_operand(e, i, i.operands[0], to, is_result=True, may_be_wider=to != "bf16")
    check_operand(e, i, source, of, may_be_wider=of != "bf16")
    value = flushed(e, i, e.read(source, TYPES[of]))
    mode = next((part for part in i.parts if part in ("rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi")), "")
    if of in _WHOLES and to in _WHOLES:
        if "sat" in i.parts:
            value = e.intrinsic(f"cvt.sat.{to}.{of}", [value], TYPES[to])
        e.write(i.operands[0], e.resize(value, bits_of(TYPES[to]), of[0] == "s"), to[0] == "s")
    elif to in _WHOLES:
        if mode not in _WHOLE:
            raise e.error("a float becomes an integer by .rni, .rzi, .rmi or .rpi")
        e.write(i.operands[0], e.intrinsic(f"cvt.{mode}.{to}.{of}", [value], TYPES[to]), to[0] == "s")
    elif of in _WHOLES:
        if mode in ("", "rn"):
            result(e, i, e.add((llvm.SIToFPOp if of[0] == "s" else llvm.UIToFPOp)(value, TYPES[to])))
        else:
            result(e, i, e.intrinsic(f"cvt.{mode}.{to}.{of}", [value], TYPES[to]))
    elif mode in _WHOLE:
        if to != of:
            raise e.error(".rni, .rzi, .rmi and .rpi keep the type")
        result(e, i, float_function(e, _WHOLE[mode], value))
    else:
        result(e, i, float_of_float(e, value, to, of, mode))


def float_of_float(e: Emitter, value: SSAValue, to: str, of: str, mode: str) -> SSAValue:
    if to == of:
        return value
    if to == "tf32" or mode not in ("", "rn"):
        return e.intrinsic(f"cvt.{mode}.{to}.{of}", [value], TYPES[to])
    if bits_of(TYPES[to]) > bits_of(TYPES[of]):
        return e.add(llvm.FPExtOp(value, TYPES[to]))
    if bits_of(TYPES[to]) == bits_of(TYPES[of]):
        return e.add(llvm.FPTruncOp(e.add(llvm.FPExtOp(value, f32)), TYPES[to]))
    return e.add(llvm.FPTruncOp(value, TYPES[to]))


def packed(e: Emitter, i: Instruction, to: str, of: str) -> None:
    """Two numbers of one word: the first operand is the upper one."""
    relu = ".relu" if "relu" in i.parts else ""
    count = 3 if of == "f32" else 2
    check_operand(e, i, i.operands[0], to, is_result=True)
    for operand in operands(e, i, count)[1:]:
        check_operand(e, i, operand, of)
    if of in _EIGHT and to == "f16x2":
        pair = e.intrinsic(f"{of}.to.f16x2.rn{relu}", [e.read(i.operands[1], TYPES[of])], VectorType(f16, [2]))
        e.write(i.operands[0], pair)
    elif to in _EIGHT and of == "f16x2":
        e.write(i.operands[0], e.intrinsic(f"f16x2.to.{to}.rn{relu}", [e.read(i.operands[1], TYPES[of])], TYPES[to]))
    elif to in _EIGHT and of == "f32":
        upper, lower = (e.read(operand, f32) for operand in i.operands[1:])
        e.write(i.operands[0], e.intrinsic(f"ff.to.{to}.rn{relu}", [upper, lower], TYPES[to]))
    elif of != "f32" or to not in PAIRS:
        raise e.unsupported(f"'{i.name}'")
    else:
        element, mode = to.removesuffix("x2"), rounding(i)
        upper, lower = (e.read(operand, f32) for operand in operands(e, i, 3)[1:])
        result(e, i, vector_of(e, [float_of_float(e, value, element, "f32", mode) for value in (lower, upper)]))


@row("cvt.pack.sat", types=INTEGERS | BYTES | {"b32"}, modifiers="u4 s4 u2 s2")
def cvt_pack(e: Emitter, i: Instruction) -> None:
    """The first operand saturated, above the second; of less than 16 bits, the third operand's lowest bits above both."""
    to = i.parts[3]
    bits = int(to[1:])
    if i.parts[4] != "s32" or bits > 16 or i.parts[5:] != (("b32",) if bits < 16 else ()):
        raise e.unsupported(f"'{i.name}'")
    given = operands(e, i, 3 + (bits < 16))
    check_operand(e, i, given[0], "u32", is_result=True)
    for operand in given[1:]:
        check_operand(e, i, operand, "u32")
    values = [e.read(operand, i32) for operand in given[1:]]
    parts = [e.extend(e.intrinsic(f"cvt.sat.{to}.s32", [value], IntegerType(bits)), 32) for value in values[:2]]
    word = e.add(llvm.OrOp(e.add(llvm.ShlOp(parts[0], e.constant(i32, bits))), parts[1]))
    if bits < 16:
        word = e.add(llvm.OrOp(word, e.add(llvm.ShlOp(values[2], e.constant(i32, 2 * bits)))))
    e.write(given[0], word)
