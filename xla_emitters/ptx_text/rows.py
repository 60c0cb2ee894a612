"""The table of instructions: what each mnemonic accepts, which operands it writes, and the ops that it becomes.

    @row("add", types=INTEGERS | FLOATS, modifiers="rn rz rm rp ftz sat cc")
    def add(e: Emitter, i: Instruction) -> None: ...

`arithmetic.py`, `memory.py` and `threads.py` fill the table when they are imported. A mnemonic without a row, and a modifier or type
that its row does not name, is refused by name with its place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from xla_emitters.errors import Unsupported
from xla_emitters.ptx_text.syntax import SIZES, Address, Group, Instruction, Negated, Operand, Pair, Register
from xla_emitters.texts.cursor import nearest
from xla_emitters.texts.source import Source

STAGE = "ptx"
Emit: TypeAlias = Callable[[Any, Instruction], None]
"""(emitter, instruction): adds the ops."""

SIGNED = frozenset({"s8", "s16", "s32", "s64"})
UNSIGNED = frozenset({"u8", "u16", "u32", "u64"})
BITS = frozenset({"b8", "b16", "b32", "b64"})
INTEGERS = SIGNED | UNSIGNED
SCALAR_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
FLOATS = SCALAR_FLOATS | {"f16x2", "bf16x2"}
WITH_PAIRS = FLOATS | {"f32x2"}
ANY = INTEGERS | BITS | SCALAR_FLOATS

CARRY = Register("%cc", "pred")
"""The carry flag of `.cc` instructions."""


@dataclass(frozen=True)
class PtxRow:
    """One mnemonic.

    name      its first parts, such as `mul.wide`
    results   how many of the first operands are written
    is_pure   whether it may be computed where its guard does not hold
    carries   whether it reads the carry flag
    """

    name: str
    emit: Emit
    types: frozenset[str]
    modifiers: frozenset[str]
    results: int
    is_pure: bool
    carries: bool


ROWS: dict[str, PtxRow] = {}


def row(
    *names: str,
    types: Collection[str] = (),
    modifiers: str = "",
    results: int = 1,
    pure: bool = True,
    carries: bool = False,
) -> Callable[[Emit], Emit]:
    """Registers the function as the meaning of the mnemonics `names`."""

    def register(emit: Emit) -> Emit:
        for name in names:
            assert name not in ROWS, name
            ROWS[name] = PtxRow(name, emit, frozenset(types), frozenset(modifiers.split()), results, pure, carries)
        return emit

    return register


@lru_cache(4096)
def _row_of(parts: tuple[str, ...]) -> PtxRow | str:
    """The row of a mnemonic, or why there is none."""
    for count in range(len(parts), 0, -1):
        if (found := ROWS.get(".".join(parts[:count]))) is not None:
            for part in parts[count:]:
                if part not in found.types and part not in found.modifiers:
                    return f"'.{part}' of '{'.'.join(parts)}' is not supported"
            return found
    return f"instruction '{'.'.join(parts)}' is not supported{nearest(parts[0], ROWS)}"


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
