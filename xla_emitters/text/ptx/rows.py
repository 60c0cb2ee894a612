"""The table of instructions: what each mnemonic accepts, which operands it writes, and the ops that it becomes.

    row("bfi", "t=ttuu", {"b32", "b64"})                             a call of `llvm.nvvm.bfi.<type>` of four operands
    row("mbarrier.init", "=au", {"b64"}, to="mbarrier.{1}")          a call of `llvm.nvvm.mbarrier.init`: {n} is a part of the mnemonic
    row("and", "t=tt", BITS, to=llvm.AndOp)                          this op of two operands
    row("pmevent", "=*", modifiers="mask", to="")                    nothing: it has no meaning for the numbers
    @row("call", "=*", modifiers="uni", pure=False)                  what the function makes of the operands

The files of rows fill the table when they are imported. A mnemonic without a row, and a modifier or type that its row does not name, is
refused by name with its place. The form has a letter for each operand, results before `=`:

    t, s    of the mnemonic's first or second type          p    a predicate        u    32 bits, no float
    w       of twice the width of the first type            b    64 bits            h    16 bits
    v       as t, in the type that the result mostly has    a    an address         n    a literal that is no float, not negative
    .       as it is written                                ?    the next ones may be left out
    *       any number of operands, as they are written

An operand must have the type's width, and be of its kind: `.f32` takes registers of `.f32` and of `.b32`, `.s32` those of `.u32` too. A
literal is a float where the type is one. In conversions and in accesses of memory a register may be wider. `.ftz` flushes operands and
results, `.sat` and `.relu` bound results.
Source: PTX ISA 8.8, 9.2 "Type information for instructions and operands".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import i1, i32
from xdsl.ir import Operation, SSAValue

from xla_emitters.errors import Unsupported
from xla_emitters.support.cursor import nearest
from xla_emitters.support.source import Source
from xla_emitters.text.ptx.op_builder import TYPES, OpBuilder, is_float, word_of
from xla_emitters.text.ptx.syntax import (
    SIZES,
    Instruction,
    Operand,
    Pair,
    PtxLiteral,
    Register,
    fault,
)

Make: TypeAlias = Callable[..., Any]
"""A function of (emitter, instruction, *operands): adds the ops; returns the value of the result, several, or None."""

SIGNED = frozenset({"s16", "s32", "s64"})
UNSIGNED = frozenset({"u16", "u32", "u64"})
BITS = frozenset({"b16", "b32", "b64"})
PACKED = frozenset({"s16x2", "u16x2"})
INTEGERS = SIGNED | UNSIGNED
SCALAR_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
FLOATS = SCALAR_FLOATS | {"f16x2", "bf16x2"}
ANY = INTEGERS | BITS | {"f32", "f64"}
BYTES = frozenset({"s8", "u8", "b8"})
"""Types of memory and of conversions alone."""
ROUNDINGS = ("rn", "rz", "rm", "rp", "rna", "rs", "rni", "rzi", "rmi", "rpi")
_TWICE = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}
_WORDS = {"p": "pred", "u": "u32", "b": "b64", "h": "b16"}
_MIXED = {"add": "st", "sub": "st", "fma": "sst"}
"""Sums that may have two types: the form of their operands then."""

CARRY = Register("%cc", "pred")
"""The carry flag of `.cc` instructions."""
EXITED = Register("%exited", "pred")
"""Whether the function that was called last has ended the thread."""


@dataclass(frozen=True)
class PtxRow:
    """One mnemonic.

    name      its first parts, such as `mul.wide`
    modifiers those of all types; `*`: what there is, `make` decides
    own       modifiers of a type alone, that of letter `s` or else `t`; `ftz!`: it must be there
    needs     modifiers of which it must have one
    is_pure   whether it may be computed where its guard does not hold
    carries   whether it reads the carry flag
    updates   whether it reads its results too
    waits     whether it waits for other threads: a basic block of its own
    """

    name: str
    form: str
    types: frozenset[str]
    own: Mapping[str, frozenset[str]]
    modifiers: frozenset[str]
    make: Make
    needs: tuple[str, ...]
    is_pure: bool
    carries: bool
    updates: bool
    waits: bool

    @property
    def results(self) -> int:
        """How many of the first operands are written."""
        return self.form.index("=")


ROWS: dict[str, PtxRow] = {}


def row(
    names: str,
    form: str,
    types: Collection[str] | Mapping[str, str] = (),
    modifiers: str = "",
    *,
    to: str | Callable[..., Operation] | None = None,
    needs: str = "",
    pure: bool = True,
    carries: bool = False,
    updates: bool = False,
    waits: bool = False,
) -> Callable[[Make], Make]:
    """Adds the mnemonics `names`: they become `to`, by default the intrinsic of their name, or what the decorated function makes.

    types  as a mapping, with the modifiers of each alone
    """

    def plain(e: OpBuilder, i: Instruction, *values: Any) -> SSAValue | None:
        if callable(to):
            op = to(*values)
            e.do(op)
            return op.results[0] if op.results else None
        name = i.name if to is None else to.format(*i.parts)
        given = [e.constant(i32, value) if isinstance(value, int) else value for value in values]
        if form[0] != "=":
            return e.intrinsic(name, given, TYPES[result_word(i, form)])
        if name:
            e.tell(name, *given)
        return None

    by_type = cast(Mapping[str, str], types) if isinstance(types, Mapping) else dict[str, str]()
    of_types = frozenset(cast(Collection[str], types))
    own = {word: frozenset(f"{alone} {alone.replace('!', '')}".split()) for word, alone in by_type.items()}
    words, needed = frozenset(f"{modifiers} {'' if by_type else needs}".split()), tuple(needs.split())
    for name in names.split():
        assert name not in ROWS, name
        ROWS[name] = PtxRow(name, form, of_types, own, words, plain, needed, pure, carries, updates, waits)

    def register(make: Make) -> Make:
        ROWS.update({name: replace(ROWS[name], make=make) for name in names.split()})
        return make

    return register


def op_of(kind: type[Operation]) -> Callable[..., Operation]:
    """Makes an op that has operands alone."""

    def make(*operands: SSAValue) -> Operation:
        return kind.create(operands=operands)

    return make


# ---------------------------------------------------------------------------------------------- mnemonics


@lru_cache(4096)
def _row_of(parts: tuple[str, ...]) -> PtxRow | str:
    """The row of a mnemonic, or why there is none."""
    if parts[0] in ("redux", "shfl", "vote") and "sync" in parts[2:]:
        # CUB writes `vote.ballot.sync.b32`, and ptxas takes it.
        parts = (parts[0], "sync", *(part for part in parts[1:] if part != "sync"))
    for count in range(len(parts), 0, -1):
        if (found := ROWS.get(".".join(parts[:count]))) is not None:
            types = [part for part in parts[1:] if part in SIZES] or [""]
            first = types[-1 if "s" in found.form else 0]
            known = found.types | found.modifiers | found.own.get(first, frozenset())
            wrong = next((part for part in parts[count:] if part not in known), "")
            if wrong and "*" not in known:
                is_of_other = first in found.types and any(wrong in words for words in found.own.values())
                what = f"of type .{first}" if is_of_other else "supported"
                return f"'.{wrong}' of '{'.'.join(parts)}' is not {what}"
            return _fault_of(found, parts) or found
    return f"instruction '{'.'.join(parts)}' is not supported{_likely(parts)}"


def _likely(parts: tuple[str, ...]) -> str:
    """`; did you mean ...?` for a misspelt mnemonic: with the same first word, else the same first letter. "" for one of `WITHOUT_ROW`."""
    if parts[0] in WITHOUT_ROW:
        return ""
    kin = [name for name in ROWS if name.startswith(f"{parts[0]}.")]
    alike = [name for name in (*ROWS, *(name.partition(".")[0] for name in ROWS)) if name[0] == parts[0][0]]
    return nearest(".".join(parts), kin) if kin else nearest(parts[0], alike)


WITHOUT_ROW = frozenset("istypep suld suq sured sust tcgen05 tex tld4 txq".split())
"""Families of the ISA of which some are not read, or all: their names are no misspellings of others."""


def _fault_of(row: PtxRow, parts: tuple[str, ...]) -> str:
    """What is wrong with the modifiers of a mnemonic; "" if nothing is."""
    name, given, types = ".".join(parts), parts[1:], [part for part in parts[1:] if part in SIZES]
    if row.needs and not any(part in row.needs for part in given):
        return f"'{name}' needs one of {', '.join(f'.{word}' for word in row.needs)}"
    if sum(part in ROUNDINGS for part in given) > 1:
        return f"'{name}' has several roundings"
    if "xorsign" in given and "abs" not in given:
        return f"'.xorsign' of '{name}' needs '.abs'"
    spaces = sum(part.partition("::")[0] in ("global", "shared", "local", "const", "param") for part in given)
    if spaces > 1 and parts[0] in ("ld", "ldu", "st", "atom", "red"):
        return f"'{name}' has several state spaces"
    return f"'{name}' needs .ftz" if types and "ftz!" in row.own.get(types[0], ()) and "ftz" not in given else ""


def row_of(source: Source, instruction: Instruction) -> PtxRow:
    """The row of an instruction. raises Unsupported with its place where there is none"""
    found = _row_of(instruction.parts)
    if isinstance(found, str):
        raise fault(Unsupported, source, instruction, found)
    return found


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


def result_word(i: Instruction, form: str) -> str:
    """The type of the first operand of an instruction, of which it is known that it fits the form."""
    words = _words_of(i.parts, form)
    assert not isinstance(words, str), words
    return words[form[0]]


# ---------------------------------------------------------------------------------------------- emission


def emit(e: OpBuilder, i: Instruction) -> None:
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


def _emit(e: OpBuilder, i: Instruction, row: PtxRow) -> None:
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
            e.check(first, words[letter], is_result=True)
    letters = (needed + more).ljust(given, ".")
    values = [_value(e, i, *each, words) for each in zip(letters, i.operands[len(written) :], strict=False)]
    if (found := row.make(e, i, *values)) is not None:
        _write(e, i, found)


def _value(e: OpBuilder, i: Instruction, letter: str, operand: Operand | None, words: Mapping[str, str]) -> Any:
    """An operand as the letter of the form says: a value, the number of a literal, or the operand itself."""
    match letter:
        case ".":
            return operand
        case "a":
            return e.pointer(operand, i.space)
        case "n":
            if not isinstance(operand, PtxLiteral) or operand.kind != "int" or operand.value < 0:
                raise e.error(f"'{i.name}' takes a number here")
            return operand.value
        case _:
            word = words[letter]
            e.check(operand, word)
            target = i.operands[0].first if isinstance(i.operands[0], Pair) else i.operands[0]
            return e.flushed(e.read(operand, e.type_for(target, TYPES[word]) if letter == "v" else TYPES[word]))


def _write(e: OpBuilder, i: Instruction, found: SSAValue | PtxLiteral | tuple[SSAValue, ...]) -> None:
    """Writes the result, flushed and bounded as the mnemonic says; or the results of a pair, of which the last ones may not be wanted."""
    target = i.operands[0]
    if isinstance(found, tuple):
        parts = (target.first, target.second) if isinstance(target, Pair) else (target,)
        for part, value in zip(parts, found, strict=False):
            e.write(part, value)
        return
    if not isinstance(found, PtxLiteral) and is_float(found.type):
        found = e.flushed(found)
        for part, name in (("sat", "saturate"), ("relu", "relu"), ("satfinite", "satfinite")):
            if part in i.parts:
                word = "tf32" if part == "satfinite" and "tf32" in i.parts else word_of(found.type)
                found = e.intrinsic(f"{name}.{word}", [found], found.type)
    e.write(target, found)
