"""Rows of instructions that compute registers from registers.

Where the llvm dialect has an op of the same meaning it is used; else the value is a call of the intrinsic `llvm.nvvm.<mnemonic>`, whose
NumPy value is a row of the executor (`runtime/simt/nvvm_values.py`). `.ftz` is `llvm.nvvm.ftz` of operands and result, `.sat` of a float
`llvm.nvvm.saturate`.
Source: PTX ISA 8.8, 9.7.1 to 9.7.8.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AnyFloat, BoolAttr, IntegerAttr, VectorType, f32, i1, i16, i32
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.text.ptx.emitter import TYPES, Emitter, bits_of
from xla_emitters.text.ptx.rows import (
    CARRY,
    FLOATS,
    INTEGERS,
    SIGNED,
    WITH_PAIRS,
    row,
    types_of,
)
from xla_emitters.text.ptx.syntax import Instruction, Operand

INTR = llvm.INTRINSICS
PAIRS = frozenset({"f16x2", "bf16x2"})
PACKED = {"s16x2": "s16", "u16x2": "u16"}


def one_type(e: Emitter, i: Instruction) -> str:
    """The type of an instruction that has one. raises ParseError"""
    if len(types := types_of(i)) != 1:
        raise e.error(f"'{i.name}' needs one type")
    return types[0]


def mixed_types(e: Emitter, i: Instruction) -> str:
    """The second type of a sum of two types; "" for one type. raises ParseError for other types"""
    first, *others = types_of(i) or [""]
    if others and (first != "f32" or others not in (["f16"], ["bf16"])):
        raise e.error(f"'{i.name}' has types that are not added")
    return others[0] if others else ""


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
    return e.intrinsic(f"ftz.{word_of(value.type)}", [value], value.type)


def result(e: Emitter, i: Instruction, value: SSAValue) -> None:
    """Writes the result, flushed and saturated as the mnemonic says."""
    value = flushed(e, i, value)
    if "sat" in i.parts and _is_float(value.type):
        value = e.intrinsic(f"saturate.{word_of(value.type)}", [value], value.type)
    if "relu" in i.parts and _is_float(value.type):
        value = e.intrinsic(f"relu.{word_of(value.type)}", [value], value.type)
    e.write(i.operands[0], value)


def _is_float(ir_type: Attribute) -> bool:
    return isinstance(ir_type.element_type if isa(ir_type, VectorType) else ir_type, AnyFloat)


def word_of(ir_type: Attribute) -> str:
    scalar = ir_type.element_type if isa(ir_type, VectorType) else ir_type
    return str(scalar)


def rounding(i: Instruction) -> str:
    """`rz`, `rm` or `rp` where the mnemonic names one; else ""."""
    return next((part for part in i.parts if part in ("rz", "rm", "rp", "rna")), "")


def float_function(e: Emitter, name: str, *values: SSAValue) -> SSAValue:
    """`llvm.intr.<name>` of floats of one type."""
    flags = {"fastmathFlags": llvm.FastMathAttr(None)}
    return e.add(INTR[name].create(operands=list(values), result_types=[values[0].type], properties=flags))


def saturating(e: Emitter, i: Instruction, name: str, values: Sequence[SSAValue]) -> SSAValue:
    return e.add(INTR[name].create(operands=list(values), result_types=[values[0].type]))


LOGIC = {"and": llvm.AndOp, "or": llvm.OrOp, "xor": llvm.XOrOp}


def vector_of(e: Emitter, parts: Sequence[SSAValue]) -> SSAValue:
    """A vector of values of one type."""
    vector = e.add(llvm.PoisonOp(VectorType(parts[0].type, [len(parts)])))
    for number, part in enumerate(parts):
        vector = e.add(llvm.InsertElementOp(vector, part, e.constant(i32, number)))
    return vector


# ---------------------------------------------------------------------------------------------- sums, products

_INTEGER = {"add": llvm.AddOp, "sub": llvm.SubOp, "mul": llvm.MulOp}
_FLOAT = {"add": llvm.FAddOp, "sub": llvm.FSubOp, "mul": llvm.FMulOp}
_ROUNDINGS = "rn rz rm rp"


@row("add", "sub", form="ttt", types=INTEGERS | WITH_PAIRS | PACKED.keys(), modifiers=f"{_ROUNDINGS} ftz sat cc")
def add(e: Emitter, i: Instruction) -> None:
    if i.parts[-1] in PACKED:
        pair = VectorType(i16, [2])
        a, b = (e.read(operand, pair) for operand in operands(e, i, 3)[1:])
        result(e, i, e.add(_INTEGER[i.parts[0]](a, b)))
        return
    if mixed := mixed_types(e, i):
        # `add.f32.bf16`: the first operand is extended.
        first, second = operands(e, i, 3)[1:]
        a, b = e.add(llvm.FPExtOp(e.read(first, TYPES[mixed]), f32)), e.read(second, f32)
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
    if direction := rounding(i):
        return e.intrinsic(f"{name}.{direction}.{word.removesuffix('x2')}", [a, b], a.type)
    return e.add(_FLOAT[name](a, b))


@row("addc", "subc", form="ttt", types=INTEGERS, modifiers="cc", carries=True)
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


@row("mul", form="ttt", types=WITH_PAIRS, modifiers=f"{_ROUNDINGS} ftz sat")
def mul(e: Emitter, i: Instruction) -> None:
    word = one_type(e, i)
    a, b = inputs(e, i, word, 2)
    result(e, i, float_sum(e, i, "mul", word, a, b))


def product(e: Emitter, i: Instruction, a: SSAValue, b: SSAValue, word: str) -> SSAValue:
    """The part of a product of integers that `.lo`, `.hi` or `.wide` names."""
    if "wide" in i.parts:
        bits = 2 * bits_of(a.type)
        return e.add(llvm.MulOp(e.extend(a, bits, word[0] == "s"), e.extend(b, bits, word[0] == "s")))
    if "hi" in i.parts:
        return e.intrinsic(f"mul.hi.{word}", [a, b], a.type)
    return e.add(llvm.MulOp(a, b))


@row("mul.lo", "mul.hi", form="ttt", types=INTEGERS)
@row("mul.wide", form="wtt", types=INTEGERS)
def mul_integers(e: Emitter, i: Instruction) -> None:
    word = one_type(e, i)
    a, b = inputs(e, i, word, 2)
    result(e, i, product(e, i, a, b, word))


@row("mad.lo", "mad.hi", form="tttt", types=INTEGERS, modifiers="cc sat")
@row("mad.wide", form="wttw", types=INTEGERS)
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


@row("madc.lo", "madc.hi", form="tttt", types=INTEGERS, modifiers="cc", carries=True)
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


@row("fma", form="tttt", needs=_ROUNDINGS.split(), types=WITH_PAIRS, modifiers=f"{_ROUNDINGS} ftz sat relu")
@row("mad", form="tttt", needs=_ROUNDINGS.split(), types={"f32", "f64"}, modifiers=f"{_ROUNDINGS} ftz sat")
def fma(e: Emitter, i: Instruction) -> None:
    if mixed := mixed_types(e, i):
        narrow, *last = operands(e, i, 4)[1:3], operands(e, i, 4)[3]
        values = [e.add(llvm.FPExtOp(e.read(operand, TYPES[mixed]), f32)) for operand in narrow]
        word, values = "f32", [*values, e.read(last[0], f32)]
    else:
        word = one_type(e, i)
        values = inputs(e, i, word, 3)
    if direction := rounding(i):
        result(e, i, e.intrinsic(f"fma.{direction}.{word.removesuffix('x2')}", values, values[0].type))
    else:
        result(e, i, float_function(e, "fma", *values))


# ---------------------------------------------------------------------------------------------- signs, extrema, functions


@row("neg", "abs", form="tt", types=SIGNED | FLOATS, modifiers="ftz")
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


@row("copysign", form="ttt", types={"f32", "f64"})
def copysign(e: Emitter, i: Instruction) -> None:
    """PTX's first operand has the sign, LLVM's second."""
    sign_, magnitude = inputs(e, i, one_type(e, i), 2)
    result(e, i, float_function(e, "copysign", magnitude, sign_))


@row("min", "max", form="ttt?t", types=INTEGERS | FLOATS | PACKED.keys(), modifiers="ftz NaN xorsign abs relu")
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
        found = saturating(e, i, f"{word[0]}{i.parts[0]}", values)
        if "relu" in i.parts:
            found = saturating(e, i, "smax", (found, e.constant(found.type, 0)))
    else:
        name = ".".join([i.parts[0], *(part for part in i.parts[1:] if part in ("NaN", "xorsign", "abs"))])
        found = values[0]
        for value in values[1:]:
            found = e.intrinsic(f"{name}.{word_of(value.type)}", [found, value], value.type)
    result(e, i, found)


@row(
    "rcp",
    "sqrt",
    form="tt",
    needs=(*_ROUNDINGS.split(), "approx"),
    types={"f32", "f64"},
    modifiers=f"{_ROUNDINGS} ftz approx",
)
@row("rsqrt", form="tt", needs=("approx",), types={"f32", "f64"}, modifiers="ftz approx")
@row("sin", "cos", "lg2", form="tt", needs=("approx",), types={"f32"}, modifiers="ftz approx")
@row("ex2", "tanh", form="tt", needs=("approx",), types=FLOATS - {"f64"}, modifiers="ftz approx")
def function(e: Emitter, i: Instruction) -> None:
    """Approximations are computed right; how far hardware may be off is in `docs/ptx.md`."""
    word, name = one_type(e, i), i.parts[0]
    (a,) = inputs(e, i, word, 1)
    if "approx" not in i.parts and not rounding(i):
        if name == "sqrt":
            result(e, i, float_function(e, "sqrt", a))
        else:
            one = e.constant(a.type, {"f32": 0x3F800000, "f64": 0x3FF0 << 48}[word])
            result(e, i, e.add(llvm.FDivOp(one, a)))
        return
    kind = "approx" if "approx" in i.parts else rounding(i)
    result(e, i, e.intrinsic(f"{name}.{kind}.{word_of(a.type)}", [a], a.type))


@row(
    "div.rn", "div.rz", "div.rm", "div.rp", "div.full", "div.approx", form="ttt", types={"f32", "f64"}, modifiers="ftz"
)
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


@row("testp", form="pt", needs=_CLASSES, types={"f32", "f64"}, modifiers=" ".join(_CLASSES))
def testp(e: Emitter, i: Instruction) -> None:
    (a,) = inputs(e, i, one_type(e, i), 1)
    wanted = next(_CLASSES[part] for part in i.parts if part in _CLASSES)
    test = INTR["is.fpclass"].create(operands=[a], result_types=[i1], properties={"bit": IntegerAttr(wanted, i32)})
    result(e, i, e.add(test))
