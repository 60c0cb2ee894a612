"""The table of instructions: what each mnemonic accepts, which operands it writes, and the ops that it becomes.

    row("sad", "t=ttt", INTEGERS)                                   a call of `llvm.nvvm.sad.<type>` of three operands
    row("and or xor", "t=tt", BITS)(logic)                          what `logic` makes of two operands
    @row("call", "=*", modifiers="uni", pure=False)                 operands as they are written, any number of them

The files of rows fill the table when they are imported. A mnemonic without a row, and a modifier or type that its row does not name, is
refused by name with its place. The form has a letter for each operand, results before `=`:

    t, s    of the mnemonic's first or second type          p    a predicate        u    32 bits, no float
    w       of twice the width of the first type            b    64 bits            h    16 bits
    v       as t, in the type that the result mostly has    a    an address         n    a literal that is no float, not negative
    .       as it is written                                ?    the next ones may be left out
    *       any number of operands, as they are written
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

from xla_emitters.errors import Unsupported
from xla_emitters.support.cursor import nearest
from xla_emitters.support.source import Source
from xla_emitters.text.ptx.syntax import SIZES, Address, Group, Instruction, Negated, Operand, Pair, Register

STAGE = "ptx"
Make: TypeAlias = Callable[..., Any]
"""A function of (emitter, instruction, *operands): adds the ops; returns the value of the result, several, or None."""

SIGNED = frozenset({"s16", "s32", "s64"})
UNSIGNED = frozenset({"u16", "u32", "u64"})
BITS = frozenset({"b16", "b32", "b64"})
PACKED = frozenset({"s16x2", "u16x2"})
INTEGERS = SIGNED | UNSIGNED
SCALAR_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
FLOATS = SCALAR_FLOATS | {"f16x2", "bf16x2"}
WITH_PAIRS = FLOATS | {"f32x2"}
ANY = INTEGERS | BITS | {"f32", "f64"}
BYTES = frozenset({"s8", "u8", "b8"})
"""Types of memory and of conversions alone."""
ROUNDINGS = ("rn", "rz", "rm", "rp", "rna", "rs", "rni", "rzi", "rmi", "rpi")
_OF_FLOATS = frozenset({*ROUNDINGS, "ftz", "approx", "NaN", "xorsign", "abs"})

CARRY = Register("%cc", "pred")
"""The carry flag of `.cc` instructions."""


@dataclass(frozen=True)
class PtxRow:
    """One mnemonic.

    name      its first parts, such as `mul.wide`
    make      None: the intrinsic of the mnemonic's name
    needs     modifiers of which it must have one
    is_pure   whether it may be computed where its guard does not hold
    carries   whether it reads the carry flag
    updates   whether it reads its results too
    waits     whether it waits for other threads: a basic block of its own
    """

    name: str
    form: str
    types: frozenset[str]
    modifiers: frozenset[str]
    make: Make | None
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
    types: Collection[str] = (),
    modifiers: str = "",
    *,
    needs: str = "",
    pure: bool = True,
    carries: bool = False,
    updates: bool = False,
    waits: bool = False,
) -> Callable[[Make], Make]:
    """Adds the mnemonics `names`; what is made of them is given to the function that it returns."""

    words, needed = frozenset(f"{modifiers} {needs}".split()), tuple(needs.split())
    for name in names.split():
        assert name not in ROWS, name
        ROWS[name] = PtxRow(name, form, frozenset(types), words, None, needed, pure, carries, updates, waits)

    def register(make: Make) -> Make:
        ROWS.update({name: replace(ROWS[name], make=make) for name in names.split()})
        return make

    return register


@lru_cache(4096)
def _row_of(parts: tuple[str, ...]) -> PtxRow | str:
    """The row of a mnemonic, or why there is none."""
    for count in range(len(parts), 0, -1):
        if (found := ROWS.get(".".join(parts[:count]))) is not None:
            for part in parts[count:]:
                if part not in found.types and part not in found.modifiers:
                    return f"'.{part}' of '{'.'.join(parts)}' is not supported"
            return _fault_of(found, parts) or found
    return f"instruction '{'.'.join(parts)}' is not supported{_likely(parts)}"


def _likely(parts: tuple[str, ...]) -> str:
    """`; did you mean ...?` for a misspelt mnemonic: with the same first word, else the same first letter. "" for one of `WITHOUT_ROW`."""
    if parts[0] in WITHOUT_ROW:
        return ""
    kin = [name for name in ROWS if name.startswith(f"{parts[0]}.")]
    alike = [name for name in (*ROWS, *(name.partition(".")[0] for name in ROWS)) if name[0] == parts[0][0]]
    return nearest(".".join(parts), kin) if kin else nearest(parts[0], alike)


WITHOUT_ROW = frozenset(
    "alloca clusterlaunchcontrol istypep multimem stackrestore stacksave suld suq sured sust tcgen05 tex tld4 txq "
    "vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vset vset2 vset4 "
    "vshl vshr vsub vsub2 vsub4".split()
)
"""Instructions of the ISA that are not read: their names are no misspellings of others."""


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
    if parts[0] not in _ARITHMETIC or not types:
        return ""
    if types[0] in INTEGERS or types[0] in PACKED:
        refused = _OF_FLOATS | (set[str]() if types[0] == "s32" else {"sat"})
    else:
        refused = {"cc", *_refused_of_floats(parts[0], types[0].removesuffix("x2"), "approx" in given)}
    wrong = next((part for part in given if part in refused), None)
    if wrong:
        return f"'.{wrong}' of '{name}' is not of type .{types[0]}"
    is_unflushed = row.name in ("rcp", "ex2") and "ftz" not in given and _is_always_flushed(given)
    return f"'{name}' needs .ftz" if is_unflushed else ""


def _is_always_flushed(given: tuple[str, ...]) -> bool:
    """Whether an approximation has `.ftz` alone: `rcp.approx.ftz.f64`, `ex2.approx.ftz.bf16`."""
    return "approx" in given and not {"f64", "bf16", "bf16x2"}.isdisjoint(given)


def _refused_of_floats(name: str, word: str, is_approximate: bool) -> Collection[str]:
    """Modifiers that `name` has for other types than `word`, and not for this one."""
    if name == "tanh" or (name, word) == ("ex2", "f16"):
        return {"ftz"}
    if (name in ("rcp", "rsqrt") and is_approximate) or name == "ex2":
        return ()
    return _REFUSED.get(word, ())


_REFUSED = {
    "f16": {"rz", "rm", "rp"},
    "bf16": {"rz", "rm", "rp", "ftz", "sat"},
    "f64": {"ftz", "sat", "approx", "full"},
}
_ARITHMETIC = frozenset("abs add sub mul mad fma min max neg div rcp sqrt rsqrt ex2 tanh".split())


def row_of(source: Source, instruction: Instruction) -> PtxRow:
    """The row of an instruction. raises Unsupported with its place where there is none"""
    found = _row_of(instruction.parts)
    if isinstance(found, str):
        raise Unsupported(found, stage=STAGE, place=source.place(instruction.start, instruction.end))
    return found


def types_of(instruction: Instruction) -> list[str]:
    """The types that the mnemonic names, in order."""
    return [part for part in instruction.parts[1:] if part in SIZES]


def registers_in(operand: Operand | None) -> list[Register]:
    """The registers that an operand mentions."""
    match operand:
        case Register():
            return [operand]
        case Negated():
            return [operand.register]
        case Pair():
            return [part for part in (operand.first, operand.second) if part is not None]
        case Group():
            return [register for element in operand.elements for register in registers_in(element)]
        case Address():
            base = [operand.base] if isinstance(operand.base, Register) else []
            return base + registers_in(operand.coordinates)
        case _:
            return []
