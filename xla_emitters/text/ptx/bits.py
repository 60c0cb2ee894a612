"""Rows of integers and bits: fields, shifts, permutations, logic, counts; packed conversions.

Source: PTX ISA 8.8, 9.7.1 and 9.7.8.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import BoolAttr, i1, i32
from xdsl.ir import Operation

from xla_emitters.dialects.mlir import llvm
from xla_emitters.text.ptx.arithmetic import (
    INTR,
    LOGIC,
    inputs,
    one_type,
    operands,
    result,
)
from xla_emitters.text.ptx.emitter import TYPES, Emitter, bits_of
from xla_emitters.text.ptx.rows import (
    BITS,
    INTEGERS,
    row,
)
from xla_emitters.text.ptx.syntax import Instruction, Number, Pair, Register


@row("mul24.lo", "mul24.hi", form="ttt", types={"s32", "u32"})
@row("mad24.lo", "mad24.hi", form="tttt", types={"s32", "u32"}, modifiers="sat")
@row("sad", form="tttt", types=INTEGERS)
@row("div", "rem", form="ttt", types=INTEGERS)
@row("bfi", form="tttuu", types={"b32", "b64"})
@row("bfind", form="ut", types=INTEGERS - {"s16", "u16"}, modifiers="shiftamt")
@row("fns", form="ttuu", types={"b32"})
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
    result(e, i, e.intrinsic(i.name, read, i32 if kind == "bfind" else ir_type))


@row("bfe", form="ttuu", types=INTEGERS - {"s16", "u16"})
def bfe(e: Emitter, i: Instruction) -> None:
    word = one_type(e, i)
    _, a, position, length = operands(e, i, 4)
    values = [e.read(a, TYPES[word]), e.read(position, i32), e.read(length, i32)]
    result(e, i, e.intrinsic(i.name, values, TYPES[word]))


@row("szext", "bmsk", form="tuu", needs=("clamp", "wrap"), types={"s32", "u32", "b32"}, modifiers="clamp wrap")
@row("dp4a", "dp2a.lo", "dp2a.hi", form="tuuu", types={"s32", "u32"})
def of_words(e: Emitter, i: Instruction) -> None:
    """Operands and result have 32 bits."""
    result(e, i, e.intrinsic(i.name, [e.read(operand, i32) for operand in i.operands[1:]], i32))


@row("and", "or", "xor", form="ttt", types=BITS | {"pred"})
def logic(e: Emitter, i: Instruction) -> None:
    word = one_type(e, i)
    a, b = inputs(e, i, word, 2)
    result(e, i, e.add(LOGIC[i.parts[0]](a, b)))


@row("not", form="tt", types=BITS | {"pred"})
def complement(e: Emitter, i: Instruction) -> None:
    word = one_type(e, i)
    (a,) = inputs(e, i, word, 1)
    result(e, i, e.add(llvm.XOrOp(a, e.constant(a.type, -1))))


@row("cnot", form="tt", types=BITS)
def is_zero(e: Emitter, i: Instruction) -> None:
    (a,) = inputs(e, i, one_type(e, i), 1)
    result(e, i, e.extend(e.add(llvm.ICmpOp(a, e.constant(a.type, 0), "eq")), bits_of(a.type)))


_SHIFTS: dict[str, Any] = {
    "shl": llvm.ShlOp,
    "shr.u": llvm.LShrOp,
    "shr.b": llvm.LShrOp,
    "shr.s": llvm.AShrOp,
}


@row("shl", form="ttu", types=BITS)
@row("shr", form="ttu", types=INTEGERS | BITS)
def shift(e: Emitter, i: Instruction) -> None:
    """An amount beyond the width shifts everything out; LLVM's op leaves that open, so only a constant amount becomes one."""
    word = one_type(e, i)
    _, a, amount = operands(e, i, 3)
    value, name = e.read(a, TYPES[word]), i.parts[0] if i.parts[0] == "shl" else f"shr.{word[0]}"
    held = e.held(amount) if isinstance(amount, Register) else amount
    if isinstance(held, Number) and 0 <= held.value < bits_of(value.type):
        op: Operation = _SHIFTS[name](value, e.constant(value.type, held.value))
        result(e, i, e.add(op))
    else:
        result(e, i, e.intrinsic(i.name, [value, e.read(amount, i32)], value.type))


@row("shf.l", "shf.r", form="tttt", needs=("clamp", "wrap"), types={"b32"}, modifiers="clamp wrap")
@row("prmt", form="tttt", types={"b32"}, modifiers="f4e b4e rc8 ecl ecr rc16")
def three_words(e: Emitter, i: Instruction) -> None:
    result(e, i, e.intrinsic(i.name, inputs(e, i, "b32", 3), i32))


@row("lop3", types={"b32"}, modifiers="or and")
def lop3(e: Emitter, i: Instruction) -> None:
    found = e.intrinsic("lop3.b32", [e.read(operand, i32) for operand in i.operands[1:5]], i32)
    if isinstance(i.operands[0], Pair):
        is_set = e.add(llvm.ICmpOp(found, e.constant(i32, 0), "ne"))
        e.write(i.operands[0].first, found)
        e.write(i.operands[0].second, e.add(LOGIC[i.parts[1]](is_set, e.read(i.operands[5], i1))))
    else:
        operands(e, i, 5)
        e.write(i.operands[0], found)


@row("popc", "clz", form="ut", types={"b32", "b64"})
@row("brev", form="tt", types={"b32", "b64"})
def count(e: Emitter, i: Instruction) -> None:
    (a,) = inputs(e, i, one_type(e, i), 1)
    name = {"popc": "ctpop", "clz": "ctlz", "brev": "bitreverse"}[i.parts[0]]
    flag = {"is_zero_poison": BoolAttr.from_bool(False)} if name == "ctlz" else {}
    found = e.add(INTR[name].create(operands=[a], result_types=[a.type], properties=flag))
    result(e, i, found if name == "bitreverse" else e.resize(found, 32))
