"""Whether the operands of an instruction are what its mnemonic takes: how many, and of which types.

An operand must have the type's width, and be of its kind: `.f32` takes registers of `.f32` and of `.b32`, `.s32` those of `.u32` too. A
literal is a float where the type is one. In conversions and in accesses of memory a register may be wider.
Source: PTX ISA 8.8, 9.2 "Type information for instructions and operands".
"""

from __future__ import annotations

from xla_emitters.text.ptx.emitter import Emitter
from xla_emitters.text.ptx.rows import PtxRow, types_of
from xla_emitters.text.ptx.syntax import (
    SIZES,
    Address,
    Group,
    Instruction,
    Negated,
    Number,
    Operand,
    Pair,
    Register,
    Special,
    Symbol,
)

_TWICE = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}
_MIXED = {"ttt": "tst", "tttt": "tsst"}
"""Forms of sums of two types: the first operands are of the narrower one."""
_READ_SPECIAL = ("mov", "cvt", "st")


def kind_of(word: str) -> str:
    """`pred`, `float`, `integer`, or `bits`, which agree with all but `pred`; packed types are bits."""
    if word == "pred":
        return word
    if (word[0] == "b" and word != "bf16") or "x" in word or word[0] == "e":
        return "bits"
    return "integer" if word[0] in "su" else "float"


def agree(one: str, other: str) -> bool:
    """Whether a register of one type may be an operand of the other type, widths aside."""
    kinds = {kind_of(one), kind_of(other)}
    return len(kinds) == 1 or ("bits" in kinds and "pred" not in kinds)


def check_form(e: Emitter, i: Instruction, row: PtxRow) -> None:
    """raises ParseError for operands other than those of the row's form"""
    needed, _, more = row.form.partition("?")
    if not needed:
        return
    if not len(needed) <= len(i.operands) <= len(needed + more):
        raise e.error(f"'{i.name}' takes {len(needed)} operands, not {len(i.operands)}")
    types = types_of(i)
    if not types:
        raise e.error(f"'{i.name}' needs a type")
    if len(types) == 2:
        needed = _MIXED.get(needed, needed)
    words = {"t": types[0], "s": types[-1], "p": "pred", "u": "u32", "w": _TWICE.get(types[0], "")}
    for number, (letter, operand) in enumerate(zip(needed + more, i.operands, strict=False)):
        if letter == "." or (number < row.results and letter == "p" and (operand is None or isinstance(operand, Pair))):
            continue
        if not (word := words[letter]):
            raise e.error(f"'{i.name}' has no result of twice the width")
        check_operand(e, i, operand, word, is_result=number < row.results)


def check_operand(
    e: Emitter,
    i: Instruction,
    operand: Operand | None,
    word: str,
    *,
    is_result: bool = False,
    may_be_wider: bool = False,
) -> None:
    """raises ParseError for an operand that cannot be read, or written, as the type `word`"""
    what = "writes" if is_result else "reads"
    match operand:
        case Register():
            have, want = SIZES[operand.type], SIZES[word]
            is_wide = have >= want if may_be_wider else have == want
            if not (is_wide or word == "pred") or not agree(operand.type, word):
                raise e.error(f"'{i.name}' {what} '{operand.name}', a register of .{operand.type}, as .{word}")
        case Number() if not is_result:
            if kind_of(word) == "float" and (operand.kind == "int" or word not in ("f32", "f64")):
                raise e.error(f"'{i.name}' needs a float such as 0f3F800000")
            if kind_of(word) == "integer" and operand.kind != "int":
                raise e.error(f"'{i.name}' needs an integer")
        case Negated() if not is_result and word == "pred":
            pass
        case Symbol() if not is_result and word != "pred":
            pass
        case Special() if not is_result and i.parts[0] in _READ_SPECIAL:
            pass
        case Special():
            raise e.error(f"'%{operand.name}' is read by 'mov' alone")
        case None | Group() | Address() | Pair() | _:
            raise e.error(f"'{i.name}' {what} a register here")
