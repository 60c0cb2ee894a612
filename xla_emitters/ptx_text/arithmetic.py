"""Rows of instructions that compute registers from registers.

Where the llvm dialect has an op of the same meaning it is used; else the value is a call of the intrinsic `llvm.nvvm.<mnemonic>`, whose
NumPy value is a row of the executor (`runtime/simt/nvvm_values.py`). `.ftz` is `llvm.nvvm.ftz` of operands and result, `.sat` of a float
`llvm.nvvm.saturate`.
Source: PTX ISA 8.8, 9.7.1 to 9.7.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import AnyFloat, BoolAttr, IntegerAttr, IntegerType, VectorType, f16, f32, i1, i16, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.ptx_text.emitter import POINTER, TYPES, WINDOWED, Emitter, bits_of, pointer_type
from xla_emitters.ptx_text.rows import (
    ANY,
    BITS,
    CARRY,
    FLOATS,
    INTEGERS,
    SCALAR_FLOATS,
    SIGNED,
    WITH_PAIRS,
    row,
    types_of,
)
from xla_emitters.ptx_text.syntax import Group, Instruction, Number, Operand, Pair, Register, Symbol

INTR = llvm.INTRINSICS
PAIRS = frozenset({"f16x2", "bf16x2"})
PACKED = {"s16x2": "s16", "u16x2": "u16"}


def one_type(e: Emitter, i: Instruction) -> str:
    """The type of an instruction that has one. raises ParseError"""
    if len(types := types_of(i)) != 1:
        raise e.error(f"'{i.name}' needs one type")
    return types[0]


def operands(e: Emitter, i: Instruction, count: int) -> Sequence[Operand | None]:
    """The operands. raises ParseError for another number of them"""
    if len(i.operands) != count:
        raise e.error(f"'{i.name}' takes {count} operands, not {len(i.operands)}")
    return i.operands


def inputs(e: Emitter, i: Instruction, word: str, count: int) -> list[SSAValue]:
    """The operands after the result as values of a type, denormal ones flushed with `.ftz`."""
    values = [e.read(operand, TYPES[word]) for operand in operands(e, i, count + 1)[1:]]
    return [flushed(e, i, value) for value in values]


def flushed(e: Emitter, i: Instruction, value: SSAValue) -> SSAValue:
    """A float with `.ftz`: zero of its sign instead of a denormal number."""
    if (
        "ftz" not in i.parts
        or not _is_float(value.type)
        or value.type in (TYPES["f64"], TYPES["bf16"], TYPES["bf16x2"])
    ):
        return value
    return e.intrinsic(f"ftz.{_word(value.type)}", [value], value.type)


def result(e: Emitter, i: Instruction, value: SSAValue, is_signed: bool = False) -> None:
    """Writes the result, flushed and saturated as the mnemonic says."""
    value = flushed(e, i, value)
    if "sat" in i.parts and _is_float(value.type):
        value = e.intrinsic(f"saturate.{_word(value.type)}", [value], value.type)
    if "relu" in i.parts and _is_float(value.type):
        value = e.intrinsic(f"relu.{_word(value.type)}", [value], value.type)
    e.write(i.operands[0], value, is_signed)


def _is_float(ir_type: Attribute) -> bool:
    return isinstance(ir_type.element_type if isa(ir_type, VectorType) else ir_type, AnyFloat)


def _word(ir_type: Attribute) -> str:
    scalar = ir_type.element_type if isa(ir_type, VectorType) else ir_type
    return str(scalar)


def _rounding(i: Instruction) -> str:
    """`rz`, `rm` or `rp` where the mnemonic names one; else ""."""
    return next((part for part in i.parts if part in ("rz", "rm", "rp", "rna")), "")


def float_function(e: Emitter, name: str, *values: SSAValue) -> SSAValue:
    """`llvm.intr.<name>` of floats of one type."""
    flags = {"fastmathFlags": llvm.FastMathAttr(None)}
    return e.add(INTR[name].create(operands=list(values), result_types=[values[0].type], properties=flags))


def saturating(e: Emitter, i: Instruction, name: str, values: Sequence[SSAValue]) -> SSAValue:
    return e.add(INTR[name].create(operands=list(values), result_types=[values[0].type]))


# ---------------------------------------------------------------------------------------------- sums, products

_INTEGER = {"add": llvm.AddOp, "sub": llvm.SubOp, "mul": llvm.MulOp}
_FLOAT = {"add": llvm.FAddOp, "sub": llvm.FSubOp, "mul": llvm.FMulOp}
_ROUNDINGS = "rn rz rm rp"


@row("add", "sub", types=INTEGERS | WITH_PAIRS | PACKED.keys(), modifiers=f"{_ROUNDINGS} ftz sat cc")
def add(e: Emitter, i: Instruction) -> None:
    if i.parts[-1] in PACKED:
        pair = VectorType(i16, [2])
        a, b = (e.read(operand, pair) for operand in operands(e, i, 3)[1:])
        result(e, i, e.add(_INTEGER[i.parts[0]](a, b)))
        return
    if mixed := types_of(i)[1:]:
        # `add.f32.bf16`: the first operand is extended.
        first, second = operands(e, i, 3)[1:]
        a, b = e.add(llvm.FPExtOp(e.read(first, TYPES[mixed[0]]), f32)), e.read(second, f32)
        result(e, i, float_sum(e, i, i.parts[0], "f32", a, b))
        return
    word = one_type(e, i)
    a, b = inputs(e, i, word, 2)
    if word in WITH_PAIRS:
        result(e, i, float_sum(e, i, i.parts[0], word, a, b))
        return
    if "sat" in i.parts:
        result(e, i, saturating(e, i, f"s{i.parts[0]}.sat", (a, b)))
        return
    total = e.add(_INTEGER[i.parts[0]](a, b))
    if "cc" in i.parts:
        # `add`: the sum is less than a summand. `sub`: the borrow.
        low, high = (total, a) if i.parts[0] == "add" else (a, b)
        e.write(CARRY, e.add(llvm.ICmpOp(low, high, "ult")))
    result(e, i, total)


def float_sum(e: Emitter, i: Instruction, name: str, word: str, a: SSAValue, b: SSAValue) -> SSAValue:
    if rounding := _rounding(i):
        return e.intrinsic(f"{name}.{rounding}.{word.removesuffix('x2')}", [a, b], a.type)
    return e.add(_FLOAT[name](a, b))


@row("addc", "subc", types=INTEGERS, modifiers="cc", carries=True)
def add_carry(e: Emitter, i: Instruction) -> None:
    word = one_type(e, i)
    a, b = inputs(e, i, word, 2)
    carry = e.extend(e.read(CARRY, i1), bits_of(a.type))
    op, is_sum = _INTEGER[i.parts[0][:3]], i.parts[0] == "addc"
    first = e.add(op(a, b))
    total = e.add(op(first, carry))
    if "cc" in i.parts:
        parts = ((first, a), (total, first)) if is_sum else ((a, b), (first, carry))
        flags = [e.add(llvm.ICmpOp(low, high, "ult")) for low, high in parts]
        e.write(CARRY, e.add(llvm.OrOp(flags[0], flags[1])))
    result(e, i, total)


@row("mul", types=WITH_PAIRS, modifiers=f"{_ROUNDINGS} ftz sat")
def mul(e: Emitter, i: Instruction) -> None:
    word = one_type(e, i)
    a, b = inputs(e, i, word, 2)
    result(e, i, float_sum(e, i, "mul", word, a, b))


def product(e: Emitter, i: Instruction, a: SSAValue, b: SSAValue, word: str) -> SSAValue:
    """The part of a product of integers that `.lo`, `.hi` or `.wide` names."""
    if "wide" in i.parts:
        bits = 2 * bits_of(a.type)
        return e.add(llvm.MulOp(e.extend(a, bits, word in SIGNED), e.extend(b, bits, word in SIGNED)))
    if "hi" in i.parts:
        return e.intrinsic(f"mul.hi.{word}", [a, b], a.type)
    return e.add(llvm.MulOp(a, b))


@row("mul.lo", "mul.hi", "mul.wide", types=INTEGERS)
def mul_integers(e: Emitter, i: Instruction) -> None:
    word = one_type(e, i)
    a, b = inputs(e, i, word, 2)
    result(e, i, product(e, i, a, b, word), word in SIGNED)


@row("mad.lo", "mad.hi", "mad.wide", types=INTEGERS, modifiers="cc sat")
def mad(e: Emitter, i: Instruction) -> None:
    word = one_type(e, i)
    _, a, b, c = operands(e, i, 4)
    found = product(e, i, e.read(a, TYPES[word]), e.read(b, TYPES[word]), word)
    added = e.read(c, found.type)
    if "sat" in i.parts:
        result(e, i, saturating(e, i, "sadd.sat", (found, added)))
        return
    total = e.add(llvm.AddOp(found, added))
    if "cc" in i.parts:
        e.write(CARRY, e.add(llvm.ICmpOp(total, found, "ult")))
    result(e, i, total)


@row("madc.lo", "madc.hi", types=INTEGERS, modifiers="cc", carries=True)
def mad_carry(e: Emitter, i: Instruction) -> None:
    word = one_type(e, i)
    a, b, c = inputs(e, i, word, 3)
    found = product(e, i, a, b, word)
    first = e.add(llvm.AddOp(found, c))
    total = e.add(llvm.AddOp(first, e.extend(e.read(CARRY, i1), bits_of(a.type))))
    if "cc" in i.parts:
        flags = [e.add(llvm.ICmpOp(low, high, "ult")) for low, high in ((first, found), (total, first))]
        e.write(CARRY, e.add(llvm.OrOp(flags[0], flags[1])))
    result(e, i, total)


@row("fma", types=WITH_PAIRS, modifiers=f"{_ROUNDINGS} ftz sat relu")
@row("mad", types={"f32", "f64"}, modifiers=f"{_ROUNDINGS} ftz sat")
def fma(e: Emitter, i: Instruction) -> None:
    if mixed := types_of(i)[1:]:
        narrow, *last = operands(e, i, 4)[1:3], operands(e, i, 4)[3]
        values = [e.add(llvm.FPExtOp(e.read(operand, TYPES[mixed[0]]), f32)) for operand in narrow]
        word, values = "f32", [*values, e.read(last[0], f32)]
    else:
        word = one_type(e, i)
        values = inputs(e, i, word, 3)
    if rounding := _rounding(i):
        result(e, i, e.intrinsic(f"fma.{rounding}.{word.removesuffix('x2')}", values, values[0].type))
    else:
        result(e, i, float_function(e, "fma", *values))


@row("mul24.lo", "mul24.hi", "mad24.lo", "mad24.hi", "sad", types=INTEGERS, modifiers="sat")
@row("div", "rem", types=INTEGERS)
@row("bfi", "bfind", "fns", types=INTEGERS | BITS, modifiers="shiftamt")
def by_intrinsic(e: Emitter, i: Instruction) -> None:
    """Operands and result of one type, but for counts and positions, which are u32."""
    word, kind = one_type(e, i), i.parts[0]
    ir_type = TYPES[word]
    if kind == "bfi":
        read = [
            e.read(operand, t) for operand, t in zip(operands(e, i, 5)[1:], (ir_type, ir_type, i32, i32), strict=True)
        ]
    else:
        read = inputs(e, i, word, {"sad": 3, "mad24": 3, "bfind": 1, "fns": 3}.get(kind, 2))
    result(e, i, e.intrinsic(i.name, read, i32 if kind == "bfind" else ir_type), word in SIGNED)


@row("bfe", types=INTEGERS)
def bfe(e: Emitter, i: Instruction) -> None:
    word = one_type(e, i)
    _, a, position, length = operands(e, i, 4)
    values = [e.read(a, TYPES[word]), e.read(position, i32), e.read(length, i32)]
    result(e, i, e.intrinsic(i.name, values, TYPES[word]), word in SIGNED)


@row("szext", "bmsk", types=INTEGERS | BITS, modifiers="clamp wrap")
@row("dp4a", "dp2a", types={"s32", "u32"}, modifiers="lo hi")
def of_words(e: Emitter, i: Instruction) -> None:
    """Operands and result have 32 bits."""
    result(e, i, e.intrinsic(i.name, [e.read(operand, i32) for operand in i.operands[1:]], i32))


# ---------------------------------------------------------------------------------------------- bits

_LOGIC = {"and": llvm.AndOp, "or": llvm.OrOp, "xor": llvm.XOrOp}


@row("and", "or", "xor", types=BITS | {"pred"})
def logic(e: Emitter, i: Instruction) -> None:
    word = one_type(e, i)
    a, b = inputs(e, i, word, 2)
    result(e, i, e.add(_LOGIC[i.parts[0]](a, b)))


@row("not", types=BITS | {"pred"})
def complement(e: Emitter, i: Instruction) -> None:
    word = one_type(e, i)
    (a,) = inputs(e, i, word, 1)
    result(e, i, e.add(llvm.XOrOp(a, e.constant(a.type, -1))))


@row("cnot", types=BITS)
def is_zero(e: Emitter, i: Instruction) -> None:
    (a,) = inputs(e, i, one_type(e, i), 1)
    result(e, i, e.extend(e.add(llvm.ICmpOp(a, e.constant(a.type, 0), "eq")), bits_of(a.type)))


_SHIFTS: dict[str, Any] = {
    "shl": llvm.ShlOp,
    "shr.u": llvm.LShrOp,
    "shr.b": llvm.LShrOp,
    "shr.s": llvm.AShrOp,
}


@row("shl", "shr", types=INTEGERS | BITS)
def shift(e: Emitter, i: Instruction) -> None:
    """An amount beyond the width shifts everything out; LLVM's op leaves that open, so only a constant amount becomes one."""
    word = one_type(e, i)
    _, a, amount = operands(e, i, 3)
    value, name = e.read(a, TYPES[word]), i.parts[0] if i.parts[0] == "shl" else f"shr.{word[0]}"
    held = e.held(amount) if isinstance(amount, Register) else amount
    if isinstance(held, Number) and 0 <= held.value < bits_of(value.type):
        op: Operation = _SHIFTS[name](value, e.constant(value.type, held.value))
        result(e, i, e.add(op), word in SIGNED)
    else:
        result(e, i, e.intrinsic(i.name, [value, e.read(amount, i32)], value.type), word in SIGNED)


@row("shf.l", "shf.r", types={"b32"}, modifiers="clamp wrap")
@row("prmt", types={"b32"}, modifiers="f4e b4e rc8 ecl ecr rc16")
def three_words(e: Emitter, i: Instruction) -> None:
    result(e, i, e.intrinsic(i.name, inputs(e, i, "b32", 3), i32))


@row("lop3", types={"b32"}, modifiers="or and")
def lop3(e: Emitter, i: Instruction) -> None:
    found = e.intrinsic("lop3.b32", [e.read(operand, i32) for operand in i.operands[1:5]], i32)
    if isinstance(i.operands[0], Pair):
        is_set = e.add(llvm.ICmpOp(found, e.constant(i32, 0), "ne"))
        e.write(i.operands[0].first, found)
        e.write(i.operands[0].second, e.add(_LOGIC[i.parts[1]](is_set, e.read(i.operands[5], i1))))
    else:
        operands(e, i, 5)
        e.write(i.operands[0], found)


@row("popc", "clz", types=BITS)
@row("brev", types=BITS)
def count(e: Emitter, i: Instruction) -> None:
    (a,) = inputs(e, i, one_type(e, i), 1)
    name = {"popc": "ctpop", "clz": "ctlz", "brev": "bitreverse"}[i.parts[0]]
    flag = {"is_zero_poison": BoolAttr.from_bool(False)} if name == "ctlz" else {}
    found = e.add(INTR[name].create(operands=[a], result_types=[a.type], properties=flag))
    result(e, i, found if name == "bitreverse" else e.resize(found, 32))


# ---------------------------------------------------------------------------------------------- signs, extrema, functions


@row("neg", "abs", types=SIGNED | FLOATS, modifiers="ftz")
def sign(e: Emitter, i: Instruction) -> None:
    word = one_type(e, i)
    (a,) = inputs(e, i, word, 1)
    if word in FLOATS:
        result(e, i, e.add(llvm.FNegOp(a)) if i.parts[0] == "neg" else float_function(e, "fabs", a))
    elif i.parts[0] == "neg":
        result(e, i, e.add(llvm.SubOp(e.constant(a.type, 0), a)))
    else:
        flag = {"is_int_min_poison": BoolAttr.from_bool(False)}
        result(e, i, e.add(INTR["abs"].create(operands=[a], result_types=[a.type], properties=flag)))


@row("copysign", types=SCALAR_FLOATS)
def copysign(e: Emitter, i: Instruction) -> None:
    """PTX's first operand has the sign, LLVM's second."""
    sign_, magnitude = inputs(e, i, one_type(e, i), 2)
    result(e, i, float_function(e, "copysign", magnitude, sign_))


@row("min", "max", types=INTEGERS | FLOATS | PACKED.keys(), modifiers="ftz NaN xorsign abs relu")
def extremum(e: Emitter, i: Instruction) -> None:
    if i.parts[-1] in PACKED:
        word, ir_type = PACKED[i.parts[-1]], VectorType(i16, [2])
        values = [e.read(operand, ir_type) for operand in operands(e, i, 3)[1:]]
    else:
        word = one_type(e, i)
        values = inputs(e, i, word, len(i.operands) - 1)
    if len(values) not in ((2, 3) if word == "f32" else (2,)):
        raise e.error(f"'{i.name}' takes 3 operands, not {len(i.operands)}")
    if word in INTEGERS:
        found = saturating(e, i, f"{'s' if word in SIGNED else 'u'}{i.parts[0]}", values)
        if "relu" in i.parts:
            found = saturating(e, i, "smax", (found, e.constant(found.type, 0)))
    else:
        name = ".".join([i.parts[0], *(part for part in i.parts[1:] if part in ("NaN", "xorsign", "abs"))])
        found = values[0]
        for value in values[1:]:
            found = e.intrinsic(f"{name}.{_word(value.type)}", [found, value], value.type)
    result(e, i, found, word in SIGNED)


@row("rcp", "sqrt", types={"f32", "f64"}, modifiers=f"{_ROUNDINGS} ftz approx")
@row("rsqrt", types={"f32", "f64"}, modifiers="ftz approx")
@row("sin", "cos", "lg2", types={"f32"}, modifiers="ftz approx")
@row("ex2", "tanh", types=FLOATS - {"f64"}, modifiers="ftz approx")
def function(e: Emitter, i: Instruction) -> None:
    """Approximations are computed right; how far hardware may be off is in `docs/ptx.md`."""
    word, name = one_type(e, i), i.parts[0]
    (a,) = inputs(e, i, word, 1)
    if "approx" not in i.parts and not _rounding(i):
        if name == "sqrt":
            result(e, i, float_function(e, "sqrt", a))
        else:
            one = e.constant(a.type, {"f32": 0x3F800000, "f64": 0x3FF0 << 48}[word])
            result(e, i, e.add(llvm.FDivOp(one, a)))
        return
    kind = "approx" if "approx" in i.parts else _rounding(i)
    result(e, i, e.intrinsic(f"{name}.{kind}.{_word(a.type)}", [a], a.type))


@row("div.rn", "div.rz", "div.rm", "div.rp", "div.full", "div.approx", types={"f32", "f64"}, modifiers="ftz")
def divide(e: Emitter, i: Instruction) -> None:
    word = one_type(e, i)
    a, b = inputs(e, i, word, 2)
    if i.parts[1] == "rn":
        result(e, i, e.add(llvm.FDivOp(a, b)))
    else:
        result(e, i, e.intrinsic(f"div.{i.parts[1]}.{word}", [a, b], a.type))


_CLASSES = {
    "finite": 0x1F8,
    "infinite": 0x204,
    "number": 0x3FC,
    "notanumber": 0x003,
    "normal": 0x108,
    "subnormal": 0x090,
}
"""The classes of `testp` in LLVM's bits."""


@row("testp", types={"f32", "f64"}, modifiers=" ".join(_CLASSES))
def testp(e: Emitter, i: Instruction) -> None:
    (a,) = inputs(e, i, one_type(e, i), 1)
    wanted = next(_CLASSES[part] for part in i.parts if part in _CLASSES)
    test = INTR["is.fpclass"].create(operands=[a], result_types=[i1], properties={"bit": IntegerAttr(wanted, i32)})
    result(e, i, e.add(test))


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
    is_signed = word in SIGNED and order not in ("lo", "ls", "hi", "hs")
    name = order if order in ("eq", "ne") else f"{'s' if is_signed else 'u'}{_ORDERS[order]}"
    return e.add(llvm.ICmpOp(a, b, name))


def _combined(e: Emitter, i: Instruction, truth: SSAValue) -> SSAValue:
    if (combine := next((part for part in i.parts[2:] if part in _LOGIC), None)) is None:
        operands(e, i, 3)
        return truth
    operands(e, i, 4)
    return e.add(_LOGIC[combine](truth, e.read(i.operands[3], i1)))


@row("setp", types=INTEGERS | BITS | FLOATS, modifiers=_COMPARISONS)
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


@row("set", types=INTEGERS | BITS | FLOATS, modifiers=_COMPARISONS)
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


@row("selp", types=ANY)
def selp(e: Emitter, i: Instruction) -> None:
    target, a, b, chooser = operands(e, i, 4)
    ir_type = e.type_for(target, TYPES[one_type(e, i)])
    result(e, i, e.add(llvm.SelectOp(e.read(chooser, i1), e.read(a, ir_type), e.read(b, ir_type))))


@row("slct", types=ANY, modifiers="ftz")
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
    if isinstance(source, Group):
        parts = [e.read(part, IntegerType(bits_of(TYPES[word]) // len(source.elements))) for part in source.elements]
        vector = _vector(e, parts)
        e.write(target, e.cast(vector, TYPES[word]) if word != "b128" else e.add(llvm.BitcastOp(vector, TYPES[word])))
    elif isinstance(target, Group):
        width = bits_of(TYPES[word]) // len(target.elements)
        vector = e.cast(e.read(source, TYPES[word]), VectorType(IntegerType(width), [len(target.elements)]))
        for number, part in enumerate(target.elements):
            if part is not None:
                e.write(part, e.add(llvm.ExtractElementOp(vector, e.constant(i32, number))))
    elif isinstance(source, Register) and isinstance(target, Register) and source.type[-2:] == target.type[-2:]:
        e.write(target, e.held(source))
    elif isinstance(source, Number):
        e.write(target, Number(e.number(source, TYPES[word])))
    else:
        is_function = isinstance(source, Symbol) and source.name in e.module.functions
        if is_function:
            raise e.unsupported("the address of a function")
        e.write(target, e.read(source, TYPES[word]))


def _vector(e: Emitter, parts: Sequence[SSAValue]) -> SSAValue:
    vector = e.add(llvm.PoisonOp(VectorType(parts[0].type, [len(parts)])))
    for number, part in enumerate(parts):
        vector = e.add(llvm.InsertElementOp(vector, part, e.constant(i32, number)))
    return vector


@row("cvta", types={"u32", "u64"}, modifiers="to global shared local const param shared::cta")
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
_EIGHT = frozenset({"e4m3x2", "e5m2x2"})


@row(
    "cvt",
    types=INTEGERS | FLOATS | _EIGHT | {"tf32"},
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
    value = flushed(e, i, e.read(source, TYPES[of]))
    mode = next((part for part in i.parts if part in ("rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi")), "")
    if of in INTEGERS and to in INTEGERS:
        if "sat" in i.parts:
            value = e.intrinsic(f"cvt.sat.{to}.{of}", [value], TYPES[to])
        e.write(i.operands[0], e.resize(value, bits_of(TYPES[to]), of in SIGNED), to in SIGNED)
    elif to in INTEGERS:
        if mode not in _WHOLE:
            raise e.error("a float becomes an integer by .rni, .rzi, .rmi or .rpi")
        e.write(i.operands[0], e.intrinsic(f"cvt.{mode}.{to}.{of}", [value], TYPES[to]), to in SIGNED)
    elif of in INTEGERS:
        if mode in ("", "rn"):
            result(e, i, e.add((llvm.SIToFPOp if of in SIGNED else llvm.UIToFPOp)(value, TYPES[to])))
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
    if of in _EIGHT:
        pair = e.intrinsic(f"{of}.to.f16x2.rn{relu}", [e.read(operands(e, i, 2)[1], i16)], VectorType(f16, [2]))
        e.write(i.operands[0], pair)
    elif to in _EIGHT and of == "f16x2":
        found = e.intrinsic(f"f16x2.to.{to}.rn{relu}", [e.read(operands(e, i, 2)[1], TYPES[of])], i16)
        e.write(i.operands[0], found)
    elif to in _EIGHT:
        upper, lower = (e.read(operand, f32) for operand in operands(e, i, 3)[1:])
        e.write(i.operands[0], e.intrinsic(f"ff.to.{to}.rn{relu}", [upper, lower], i16))
    else:
        element, mode = to.removesuffix("x2"), _rounding(i)
        upper, lower = (e.read(operand, f32) for operand in operands(e, i, 3)[1:])
        result(e, i, _vector(e, [float_of_float(e, value, element, "f32", mode) for value in (lower, upper)]))
