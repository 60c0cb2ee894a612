"""Reads the operands of an instruction as the form of its row says, and writes its results.

An operand must have the type's width, and be of its kind: `.f32` takes registers of `.f32` and of `.b32`, `.s32` those of `.u32` too. A
literal is a float where the type is one. In conversions and in accesses of memory a register may be wider. `.ftz` flushes operands and
results, `.sat` and `.relu` bound results.
Source: PTX ISA 8.8, 9.2 "Type information for instructions and operands".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from xla_emitters.text.ptx.emitter import TYPES, Emitter, is_float, space_of, word_of
from xla_emitters.text.ptx.rows import PtxRow, row_of, types_of
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
_WORDS = {"p": "pred", "u": "u32", "b": "b64", "h": "b16"}
_MIXED = {"add": "st", "sub": "st", "fma": "sst"}
"""Sums that may have two types: the form of their operands then."""
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


@lru_cache
def _parts_of(form: str) -> tuple[str, str, str, bool]:
    """The letters of a form: of results, of operands, of those that may be left out; and whether any number of operands may follow."""
    written, _, read = form.partition("=")
    needed, _, more = read.rstrip("*").partition("?")
    return written, needed, more, read.endswith("*")


@lru_cache(4096)
def _words_of(parts: tuple[str, ...], form: str) -> Mapping[str, str] | str:
    """What the letters of the row's form mean for a mnemonic, or why they mean nothing."""
    types = [part for part in parts[1:] if part in SIZES]
    if len(types) == 2 and parts[0] in _MIXED:
        if types not in (["f32", "f16"], ["f32", "bf16"]):
            return "has types that are not added"
    elif not {*"tsvw"}.isdisjoint(form) and len(types) != 1 + ("s" in form):
        return f"needs {'two types' if 's' in form else 'one type'}"
    words = {**_WORDS, "t": types[0], "s": types[-1], "v": types[0], "w": _TWICE.get(types[0], "")} if types else _WORDS
    return words if "w" not in form or words["w"] else "has no result of twice the width"


def emit(e: Emitter, i: Instruction) -> None:
    """Adds the ops of an instruction. raises ParseError for operands other than those of its row's form"""
    row = row_of(e.module.source, i)
    if i.guard is not None and row.is_pure:
        register, wanted = i.guard
        e.guard = e.read(register, i1)
        if not wanted:
            e.guard = e.inverted(e.guard)
    try:
        _emit(e, i, row)
    except (IndexError, StopIteration):
        raise e.error(f"'{i.name}' has too few operands or modifiers") from None
    finally:
        e.guard = None


def _emit(e: Emitter, i: Instruction, row: PtxRow) -> None:
    written, needed, more, takes_more = _parts_of(row.form)
    least, given = len(written) + len(needed), len(i.operands)
    if given < least or (given > least + len(more) and not takes_more):
        raise e.error(f"'{i.name}' takes {least} operands, not {given}")
    words = _words_of(i.parts, row.form)
    if isinstance(words, str):
        raise e.error(f"'{i.name}' {words}")
    if row.name in _MIXED and words["s"] != words["t"]:
        needed = _MIXED[row.name]
    for letter, operand in zip(written, i.operands, strict=False):
        first = operand.first if isinstance(operand, Pair) and letter == "v" else operand
        if not (letter == "." or (letter == "p" and (first is None or isinstance(first, Pair)))):
            check_operand(e, i, first, words[letter], is_result=True)
    letters = (needed + more).ljust(given, ".")
    values = [_read(e, i, *each, words) for each in zip(letters, i.operands[len(written) :], strict=False)]
    if row.make is None and written:
        result(e, i, e.intrinsic(i.name, values, TYPES[words[written]]))
    elif row.make is None:
        e.tell(i.name, *values)
    elif (found := row.make(e, i, *values)) is not None:
        result(e, i, found)


def _read(e: Emitter, i: Instruction, letter: str, operand: Operand | None, words: Mapping[str, str]) -> Any:
    """An operand as the letter of the form says: a value, the number of a literal, or the operand itself."""
    match letter:
        case ".":
            return operand
        case "a":
            return e.pointer(operand, space_of(i))
        case "n":
            if not isinstance(operand, Number) or operand.kind != "int" or operand.value < 0:
                raise e.error(f"'{i.name}' takes a number here")
            return operand.value
        case _:
            word = words[letter]
            check_operand(e, i, operand, word)
            target = i.operands[0].first if isinstance(i.operands[0], Pair) else i.operands[0]
            return flushed(e, i, e.read(operand, e.type_for(target, TYPES[word]) if letter == "v" else TYPES[word]))


def one_type(e: Emitter, i: Instruction) -> str:
    """The type of an instruction that has one. raises ParseError"""
    if len(types := types_of(i)) != 1:
        raise e.error(f"'{i.name}' needs one type")
    return types[0]


def flushed(e: Emitter, i: Instruction, value: SSAValue) -> SSAValue:
    """A float with `.ftz`: zero of its sign instead of a denormal number."""
    if "ftz" not in i.parts or word_of(value.type) not in ("f32", "f16"):
        return value
    return e.intrinsic(f"ftz.{word_of(value.type)}", [value], value.type)


def result(e: Emitter, i: Instruction, found: SSAValue | Number | tuple[SSAValue, ...]) -> None:
    """Writes the result, flushed and bounded as the mnemonic says; or the results of a pair, of which the last ones may not be wanted."""
    target = i.operands[0]
    if isinstance(found, tuple):
        parts = (target.first, target.second) if isinstance(target, Pair) else (target,)
        for part, value in zip(parts, found, strict=False):
            e.write(part, value)
        return
    if not isinstance(found, Number) and is_float(found.type):
        found = flushed(e, i, found)
        for part, name in (("sat", "saturate"), ("relu", "relu")):
            if part in i.parts:
                found = e.intrinsic(f"{name}.{word_of(found.type)}", [found], found.type)
    e.write(target, found)


def check_operands(e: Emitter, i: Instruction, operands: Sequence[Operand | None], word: str, **how: bool) -> None:
    """As `check_operand`, for each of several."""
    for operand in operands:
        check_operand(e, i, operand, word, **how)


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
        case Register(is_param=True) if not is_result:
            raise e.unsupported(f"the address of the parameter '{operand.name}'")
        case Register() if not operand.is_param:
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
