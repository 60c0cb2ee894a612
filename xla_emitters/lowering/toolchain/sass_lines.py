"""The PTX instruction of each line of SASS, as ptxas records it, corrected where ptxas merged several instructions into one.

    LDG.E.64.CONSTANT R4, desc[UR4][R4.64]         34: ld.global.nc.v2.b32 {%r14, %r15}, [%rd6];
    HMUL2.BF16_V2 R2, R4, R4                       37: mul.rn.bf16 %rs5, %rs3, %rs3;           ptxas says 34
    HMUL2.BF16_V2 R2, R4, R2                       38: mul.rn.bf16 %rs6, %rs3, %rs5;           ptxas says 34

ptxas packs two halves into one instruction, which then has no line of its own and shows the line of the instruction before it. Arithmetic
with the line of a load, a store, a move or a branch is such an instruction; a move with such a line belongs to the value that it moves. The
PTX instruction is found by its operation (multiply, add, ...) and by the values that it reads. A value is the set of lines that may
have computed it: PTX is followed through moves, SASS register by register in text order. If several match, as for
the elements of a vector, the first is taken. If none matches, ptxas's line stays.

This is a heuristic: it follows the text, not the paths through it. It corrects only the lines described above.
Source: nvdisasm --help, `--print-line-info-ptx`; PTX ISA 8.6, half precision instructions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xla_emitters.lowering.toolchain.machine_code import disassemble_with_lines
from xla_emitters.lowering.toolchain.ptx_lines import RegisterUse, instruction_at
from xla_emitters.settings import Toolchain

_SASS = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([\w.]+)\s*(.*?)\s*;")
_REGISTER = re.compile(r"\bR(\d+)\b")
_NO_ARITHMETIC = ("ld", "st", "mov", "bra", "cvta")
_ARITHMETIC = re.compile(r"[HFD](?:ADD2?|MUL2?|FMA2?|MNMX2?|SETP?2?)$")
_MOVES = ("PRMT", "MOV", "IMAD.MOV.U32")
_FAMILIES = {
    "add": ("add", "sub"),
    "mul": ("mul",),
    "fma": ("fma", "mad"),
    "mnmx": ("min", "max"),
    "set": ("setp", "set"),
}


@dataclass(frozen=True)
class SassLines:
    """SASS, and for each of its lines the line of PTX, from 1; 0 if it has none."""

    text: str
    lines: tuple[int, ...]


def read_sass(cubin: bytes, ptx: str, toolchain: Toolchain) -> SassLines:
    """SASS of a cubin that was assembled from `ptx` with `line_info`. raises ToolError."""
    text, lines = disassemble_with_lines(cubin, toolchain)
    return SassLines(text, tuple(_corrected(text.split("\n"), lines, ptx.split("\n"))))


def _corrected(sass: Sequence[str], lines: Sequence[int], ptx: Sequence[str]) -> list[int]:
    found, values = list(lines), dict[int, frozenset[int]]()
    source = _Ptx(ptx)
    for number, (text, line) in enumerate(zip(sass, lines, strict=True)):
        if text.startswith("//-"):  # another function
            values = {}
        if not line or (match := _SASS.match(text)) is None:
            continue
        opcode, operands = match[1], [part.strip() for part in match[2].split(",")]
        name = opcode.partition(".")[0]
        read = [values.get(int(register), frozenset[int]()) for register in _registers(operands[1:])]
        value = frozenset((line,))
        if source.is_no_arithmetic(line):
            if _ARITHMETIC.match(name):
                value = source.matching(_kind(name, operands), read) or value
            elif opcode in _MOVES and len(known := [each for each in read if each]) == 1:
                (value,) = known
        found[number] = min(value)
        if written := _REGISTER.fullmatch(operands[0]):
            for word in range(4 if ".128" in opcode else 2 if ".64" in opcode or "WIDE" in opcode else 1):
                values[int(written[1]) + word] = value
    return found


def _registers(operands: Sequence[str]) -> list[str]:
    """The distinct registers that are read."""
    return list(dict.fromkeys(found for operand in operands for found in _REGISTER.findall(operand)))


def _kind(name: str, operands: Sequence[str]) -> str:
    """The operation of a SASS instruction, as a key of `_FAMILIES`: a fused multiply-add of zero multiplies, one by 1 adds."""
    kind = name[1:].rstrip("2P").lower()
    if kind == "fma" and operands[-1] in ("RZ", "-RZ"):
        return "mul"
    if kind == "fma" and "1" in operands[2:4]:
        return "add"
    return kind


class _Ptx:
    """The PTX instructions by line, and for each the lines that computed the values that it reads."""

    def __init__(self, text: Sequence[str]) -> None:
        self._instructions: dict[int, RegisterUse] = {}
        self._read: dict[int, frozenset[int]] = {}
        makers: dict[str, frozenset[int]] = {}
        for line, row in enumerate(text, 1):
            if ".entry " in row or ".func " in row:
                makers = {}
            if (instruction := instruction_at(row)) is None:
                continue
            read = frozenset[int]().union(*(makers.get(name, ()) for name in instruction.read))
            self._instructions[line], self._read[line] = instruction, read
            is_move = instruction.opcode == "mov"
            makers |= dict.fromkeys(instruction.written, read if is_move else frozenset((line,)))

    def is_no_arithmetic(self, line: int) -> bool:
        found = self._instructions.get(line)
        return found is None or found.opcode in _NO_ARITHMETIC

    def matching(self, kind: str, read: Sequence[frozenset[int]]) -> frozenset[int]:
        """The lines of PTX that do this operation on these values."""
        known: Mapping[int, RegisterUse] = self._instructions
        values = [value for value in read if value]
        if not values:
            return frozenset()
        wanted, every = _FAMILIES[kind], frozenset[int]().union(*values)
        return frozenset(
            line
            for line, instruction in known.items()
            if instruction.opcode in wanted
            and (made := self._read[line]) <= every
            and all(made & value for value in values)
        )
