"""Rows of instructions that compute registers from registers.

Where the llvm dialect has an op of the same meaning it is used; else the value is a call of the intrinsic `llvm.nvvm.<mnemonic>`, whose
NumPy value is a row of the executor (`runtime/simt/nvvm_values.py`). `.ftz` is `llvm.nvvm.ftz` of operands and result, `.sat` of a float
`llvm.nvvm.saturate`.
Source: PTX ISA 8.8, 9.7.1 to 9.7.8.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import IntegerAttr, f32, i1, i32
from xdsl.ir import SSAValue

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.data_layout import bits_of
from xla_emitters.text.ptx.op_builder import OpBuilder, is_float, word_of
from xla_emitters.text.ptx.rows import BITS, CARRY, FLOATS, INTEGERS, PACKED, SIGNED, row
from xla_emitters.text.ptx.syntax import Instruction, Operand, Pair, PtxLiteral, Register

LOGIC = {"and": llvm.AndOp, "or": llvm.OrOp, "xor": llvm.XOrOp}
_ROUNDINGS = "rn rz rm rp"
_CARRIES = {**dict.fromkeys(("u16", "s16"), ""), **dict.fromkeys(("u32", "u64", "s64"), "cc"), "s32": "cc sat"}
_BY_CARRY = {**_CARRIES, "s32": "cc"}
_HALVES, _SHORT = ("f16", "f16x2"), ("bf16", "bf16x2")
_ROUNDED = {
    **{"f32": f"{_ROUNDINGS} ftz sat", "f64": _ROUNDINGS, "f32x2": f"{_ROUNDINGS} ftz"},
    **{**dict.fromkeys(_HALVES, "rn ftz sat"), **dict.fromkeys(_SHORT, "rn")},
}
FLUSHED = {"f32": "ftz", "f64": "", **dict.fromkeys(_HALVES, "ftz"), **dict.fromkeys(_SHORT, "")}
"""Type -> modifiers, as the ISA's syntax has them."""
_SUMS = {"add": (llvm.AddOp, llvm.FAddOp), "sub": (llvm.SubOp, llvm.FSubOp), "mul": (llvm.MulOp, llvm.FMulOp)}

row("div rem", "t=tt", INTEGERS)
row("bfe", "t=tuu", INTEGERS - {"s16", "u16"})
row("bfi", "t=ttuu", {"b32", "b64"})
row("bfind", "u=t", INTEGERS - {"s16", "u16"}, "shiftamt")
row("fns", "t=tuu", {"b32"})
row("shf.l shf.r", "t=ttt", {"b32"}, needs="clamp wrap")
row("prmt", "t=ttt", {"b32"})


def rounding(i: Instruction) -> str:
    """`rz`, `rm` or `rp` where the mnemonic names one; else ""."""
    return i.among("rz rm rp rna", "")


def in_direction(e: OpBuilder, name: str, direction: str, *values: SSAValue) -> SSAValue:
    """A function of floats rounded in a direction, or approximated: an intrinsic."""
    return e.intrinsic(f"{name}.{direction}.{word_of(values[0].type)}", values, values[0].type)


# ---------------------------------------------------------------------------------------------- sums, products


def _widened(e: OpBuilder, values: tuple[SSAValue, ...]) -> list[SSAValue]:
    """The operands of a sum of two types: `add.f32.bf16` extends its first one."""
    return [value if value.type == values[-1].type else e.add(llvm.FPExtOp(value, f32)) for value in values]


@row("add", "t=tt", {**_CARRIES, **_ROUNDED, **dict.fromkeys(PACKED, "")})
@row("sub", "t=tt", {**_CARRIES, **_ROUNDED})
@row("mul", "t=tt", _ROUNDED)
def add(e: OpBuilder, i: Instruction, *values: SSAValue) -> SSAValue:
    name, (a, b) = i.stem, _widened(e, values)
    if not is_float(a.type):
        return e.intr(f"s{name}.sat", a, b) if "sat" in i.parts else _sum(e, i, name, a, b)
    if direction := rounding(i):
        return in_direction(e, name, direction, a, b)
    return e.add(_SUMS[name][1](a, b))


@row("addc subc", "t=tt", _BY_CARRY, carries=True)
def add_carry(e: OpBuilder, i: Instruction, a: SSAValue, b: SSAValue) -> SSAValue:
    return _sum(e, i, i.stem[:3], a, b)


def _sum(e: OpBuilder, i: Instruction, name: str, a: SSAValue, b: SSAValue) -> SSAValue:
    """A sum or difference of integers; with the carry flag where the mnemonic says so, in which `.cc` leaves the new one.

    a - b is a + ~b + 1, as ptxas has it: a difference that needs no borrow leaves a carry, which `addc` adds.
    """
    total, others, flags, is_sum = a, [b], list[SSAValue](), name == "add"
    if i.stem in ("addc", "subc", "madc"):
        carry = e.read(CARRY, i1)
        others.append(e.extend(carry if is_sum else e.inverted(carry), bits_of(a.type)))
    for other in others:
        before, total = total, e.add(_SUMS[name][0](total, other))
        if "cc" in i.parts:
            # A sum that wraps is less than a summand; a difference wraps where more is taken away than is there.
            flags.append(e.compare("ult", total, before) if is_sum else e.compare("uge", before, other))
    if flags:
        both = llvm.OrOp if is_sum else llvm.AndOp
        e.write(CARRY, flags[0] if len(flags) == 1 else e.add(both(flags[0], flags[1])))
    return total


@row("mul.lo mul.hi", "t=tt", INTEGERS)
@row("mul.wide", "w=tt", INTEGERS)
def product(e: OpBuilder, i: Instruction, a: SSAValue, b: SSAValue) -> SSAValue:
    """The part of a product of integers that `.lo`, `.hi` or `.wide` names."""
    (word,) = i.types
    if "hi" in i.parts:
        return e.intrinsic(f"mul.hi.{word}", [a, b], a.type)
    if "wide" in i.parts:
        a, b = (e.extend(factor, 2 * bits_of(factor.type), word[0] == "s") for factor in (a, b))
    return e.add(llvm.MulOp(a, b))


@row("mad.lo", "t=ttt", _BY_CARRY)
@row("mad.hi", "t=ttt", _CARRIES)
@row("madc.lo madc.hi", "t=ttt", _BY_CARRY, carries=True)
@row("mad.wide", "w=ttw", INTEGERS)
def mad(e: OpBuilder, i: Instruction, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
    found = product(e, i, a, b)
    return e.intr("sadd.sat", found, c) if "sat" in i.parts else _sum(e, i, "add", found, c)


@row(
    "fma",
    "t=ttt",
    {**_ROUNDED, **dict.fromkeys(_HALVES, "rn ftz sat relu"), **dict.fromkeys(_SHORT, "rn relu")},
    needs=_ROUNDINGS,
)
@row("mad", "t=ttt", {word: _ROUNDED[word] for word in ("f32", "f64")}, needs=_ROUNDINGS)
def fma(e: OpBuilder, i: Instruction, *values: SSAValue) -> SSAValue:
    direction, values = rounding(i), tuple(_widened(e, values))
    return in_direction(e, "fma", direction, *values) if direction else e.intr("fma", *values)


# ---------------------------------------------------------------------------------------------- signs, extrema, functions


@row("neg abs", "t=t", {**dict.fromkeys(SIGNED, ""), **FLUSHED})
def sign(e: OpBuilder, i: Instruction, a: SSAValue) -> SSAValue:
    is_negated = i.stem == "neg"
    if is_float(a.type):
        return e.add(llvm.FNegOp(a)) if is_negated else e.intr("fabs", a)
    return e.add(llvm.SubOp(e.constant(a.type, 0), a)) if is_negated else e.intr("abs", a, is_int_min_poison=False)


@row("copysign", "t=tt", {"f32", "f64"})
def copysign(e: OpBuilder, i: Instruction, of: SSAValue, magnitude: SSAValue) -> SSAValue:
    """PTX's first operand has the sign, LLVM's second."""
    return e.intr("copysign", magnitude, of)


_EXTREMA = {word: f"{own} NaN xorsign abs" * (word != "f64") for word, own in FLUSHED.items()}


@row(
    "min max", "t=tt?t", {**dict.fromkeys(INTEGERS | PACKED, ""), **dict.fromkeys(("s32", "s16x2"), "relu"), **_EXTREMA}
)
def extremum(e: OpBuilder, i: Instruction, found: SSAValue, *others: SSAValue) -> SSAValue:
    name, word = i.stem, i.types[0]
    if len(others) > 1 and word != "f32":
        raise e.error(f"'{i.name}' takes 3 operands, not {len(i.operands)}")
    if not is_float(found.type):
        found = e.intr(f"{word[0]}{name}", found, *others)
        return e.intr("smax", found, e.constant(found.type, 0)) if "relu" in i.parts else found
    name = ".".join([name, *(part for part in i.parts[1:] if part in ("NaN", "xorsign", "abs")), word_of(found.type)])
    for other in others:
        found = e.intrinsic(name, [found, other], found.type)
    return found


@row("rcp sqrt", "t=t", {"f32": f"{_ROUNDINGS} approx ftz", "f64": _ROUNDINGS}, needs=f"{_ROUNDINGS} approx")
@row("rcp.approx", "t=t", {"f32": "ftz", "f64": "ftz!"})
@row("rsqrt", "t=t", {"f32", "f64"}, "ftz", needs="approx")
@row("sin cos lg2", "t=t", {"f32"}, "ftz", needs="approx")
@row(
    "ex2",
    "t=t",
    {"f32": "ftz", **dict.fromkeys(_HALVES, ""), **dict.fromkeys(_SHORT, "ftz!")},
    "approx",
    needs="approx",
)
@row("tanh", "t=t", FLOATS - {"f64"}, needs="approx")
def function(e: OpBuilder, i: Instruction, a: SSAValue) -> SSAValue:
    """Approximations are computed right, and those of f64 with `.ftz` from upper word to upper word; see `docs/ptx.md`."""
    kind = "approx" if "approx" in i.parts else rounding(i)
    if kind == "approx" and "ftz" in i.parts and word_of(a.type) == "f64":
        kind = "approx.ftz"
    if kind:
        return in_direction(e, i.stem, kind, a)
    if i.stem == "sqrt":
        return e.intr("sqrt", a)
    return e.add(llvm.FDivOp(e.constant(a.type, {32: 0x3F800000, 64: 0x3FF0 << 48}[bits_of(a.type)]), a))


@row("div.rn div.rz div.rm div.rp", "t=tt", {"f32": "ftz", "f64": ""})
@row("div.full div.approx", "t=tt", {"f32"}, "ftz")
def divide(e: OpBuilder, i: Instruction, a: SSAValue, b: SSAValue) -> SSAValue:
    return e.add(llvm.FDivOp(a, b)) if i.parts[1] == "rn" else in_direction(e, "div", i.parts[1], a, b)


_CLASSES = {
    "finite": 0x1F8,
    "infinite": 0x204,
    "number": 0x3FC,
    "notanumber": 0x003,
    "normal": 0x168,
    "subnormal": 0x090,
}
"""The classes of `testp` in LLVM's bits; zeros are normal numbers."""


@row("testp", "p=t", {"f32", "f64"}, needs=" ".join(_CLASSES))
def testp(e: OpBuilder, i: Instruction, a: SSAValue) -> SSAValue:
    wanted = IntegerAttr(next(_CLASSES[part] for part in i.parts if part in _CLASSES), i32)
    test = llvm.INTRINSICS["is.fpclass"]
    return e.add(test.create(operands=[a], result_types=[i1], properties={"bit": wanted}))


# ---------------------------------------------------------------------------------------------- bits


for _name, _op in LOGIC.items():
    row(_name, "t=tt", BITS | {"pred"}, to=_op)


@row("not", "t=t", BITS | {"pred"})
def complement(e: OpBuilder, i: Instruction, a: SSAValue) -> SSAValue:
    return e.add(llvm.XOrOp(a, e.constant(a.type, -1)))


@row("cnot", "t=t", BITS)
def is_zero(e: OpBuilder, i: Instruction, a: SSAValue) -> SSAValue:
    return e.extend(e.compare("eq", a, e.constant(a.type, 0)), bits_of(a.type))


_SHIFTS: dict[str, Any] = {"shl": llvm.ShlOp, "u": llvm.LShrOp, "b": llvm.LShrOp, "s": llvm.AShrOp}


@row("shl", "t=t.", BITS)
@row("shr", "t=t.", INTEGERS | BITS)
def shift(e: OpBuilder, i: Instruction, value: SSAValue, amount: Operand | None) -> SSAValue:
    """An amount beyond the width shifts everything out; LLVM's op leaves that open, so only a constant amount becomes one."""
    e.check(amount, "u32")
    held = e.held(amount) if isinstance(amount, Register) else amount
    if isinstance(held, PtxLiteral) and 0 <= held.value < bits_of(value.type):
        kind = _SHIFTS["shl" if i.stem == "shl" else i.parts[1][0]]
        return e.add(kind(value, e.constant(value.type, held.value)))
    return e.intrinsic(i.name, [value, e.read(amount, i32)], value.type)


@row("lop3", ".=tttt?p", {"b32"}, "or and")
def lop3(e: OpBuilder, i: Instruction, *values: SSAValue) -> SSAValue | tuple[SSAValue, SSAValue]:
    *words, condition = values if len(values) == 5 else (*values, None)
    if isinstance(i.operands[0], Pair) != (condition is not None):
        raise e.error(f"'{i.name}' takes a predicate where it gives one")
    found = e.intrinsic("lop3.b32", [word for word in words if word], i32)
    if condition is None:
        return found
    return found, e.add(LOGIC[i.parts[1]](e.compare("ne", found, e.constant(i32, 0)), condition))


@row("popc clz", "u=t", {"b32", "b64"})
def count(e: OpBuilder, i: Instruction, a: SSAValue) -> SSAValue:
    return e.resize(e.intr("ctpop", a) if i.stem == "popc" else e.intr("ctlz", a, is_zero_poison=False), 32)


@row("brev", "t=t", {"b32", "b64"})
def reverse(e: OpBuilder, i: Instruction, a: SSAValue) -> SSAValue:
    return e.intr("bitreverse", a)
