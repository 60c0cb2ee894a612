"""The op of each PTX instruction, by the `.loc` that the tools wrote; and the text without `.loc`.

    .loc  1 13 20  // gelu.hlo:13:20          mul.rn.bf16  %rs5, %rs3, %rs3;      line 20 of the kernel's `llvm-dialect`
    mul.rn.bf16  %rs5, %rs3, %rs3;       ->   mov.b16      %rs7, 0x3D37;          line of the first instruction that reads %rs7
    .loc  1 0 20                              mul.rn.bf16  %rs8, %rs6, %rs7;      line 22
    mov.b16      %rs7, 0x3D37;
    .loc  1 14 22
    mul.rn.bf16  %rs8, %rs6, %rs7;

`read_lines` removes everything that line information added: `.loc`, `.file`, empty debug sections, and the labels that they need. The
result is, byte by byte, the PTX of a compilation without line information (tested).

LLVM gives no line to constants loaded into registers, to the moves that pass block arguments from one block to the next, and
to instructions made of several ops without a common line. Such an instruction gets the line of the next instruction that reads its
result; a branch gets the line of the instruction that computes its condition; any other gets the line of the next instruction. The loads
of parameters before the first instruction with a line are the prologue and have no line; neither have returns.
Source: PTX ISA 8.6, "Debugging Directives"; LLVM 22, NVPTXAsmPrinter.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LOC = re.compile(r"\t\.loc\t\d+ (\d+) (\d+)")
_FUNCTION = re.compile(r"^\s*(?:\.visible |\.weak |\.extern )*\.(?:entry|func)\b.*?([\w$.]+)\($")
_DEBUG_LABEL = re.compile(r"\$L__(?:tmp|func_begin|func_end)\d+:$")
_DEBUG_SECTION = re.compile(r"\t\.section\t\.debug_\w+|\t\.file\t")
_INSTRUCTION = re.compile(r"\t(?:@!?(?P<guard>%\w+) )?\s*\{?\s*(?P<opcode>[a-z][\w.:]*)\b")
_REGISTER = re.compile(r"%[a-z]+\d+")
# Instructions whose first operand is read, not written.
_WRITES_NOTHING = ("st", "bra", "red", "bar", "barrier", "ret", "membar", "fence", "call", "exit", "trap", "brx")
_ENDS = ("ret", "exit", "trap")


@dataclass(frozen=True)
class PtxLine:
    """The origin of one instruction.

    function  the PTX function that contains it
    hlo_line  line of its HLO instruction in the source, from 1; 0: unknown
    op_line   line, from 1, of its op in the kernel's text at the stage `llvm-dialect`; 0: unknown
    """

    function: str
    hlo_line: int
    op_line: int

    @property
    def is_known(self) -> bool:
        return self.op_line > 0 or self.hlo_line > 0


@dataclass(frozen=True)
class PtxLines:
    """PTX without line information, and the origin of the instruction on each of its lines.

    text    the PTX, as it is compiled without line information
    lines   one entry per line of `text`; None for a line without an instruction, an instruction of the prologue or an end
    """

    text: str
    lines: tuple[PtxLine | None, ...]


def read_lines(ptx: str) -> PtxLines:
    """Splits PTX that was compiled with line information into the PTX without it, and the information."""
    kept, places = list[str](), list[PtxLine | None]()
    function, now = "", PtxLine("", 0, 0)
    for line in ptx.split("\n"):
        if found := _LOC.match(line):
            now = PtxLine(function, int(found[1]), int(found[2]) if int(found[1]) else 0)
            continue
        if _DEBUG_LABEL.match(line) or _DEBUG_SECTION.match(line):
            continue
        if entered := _FUNCTION.match(line):
            function = entered[1]
            now = PtxLine(function, 0, 0)
        kept.append(line)
        places.append(now if _INSTRUCTION.match(line) and function else None)
    return PtxLines("\n".join(kept), tuple(_completed(kept, places)))


def _completed(text: Sequence[str], places: Sequence[PtxLine | None]) -> list[PtxLine | None]:
    """The places, including those that LLVM left out (see the file's head). Later lines first: a place may depend on a later one."""
    found = list(places)
    readers: dict[tuple[str, str], PtxLine] = {}
    after: PtxLine | None = None
    writers = dict(_writers(text, places))
    seen_known = dict[str, int]()
    for number, place in enumerate(places):
        if place is not None and place.is_known:
            seen_known.setdefault(place.function, number)
    for number in reversed(range(len(text))):
        place = found[number]
        if place is None:
            continue
        instruction = instruction_at(text[number])
        assert instruction is not None
        opcode, written, read = instruction.opcode, instruction.written, instruction.read
        if opcode in _ENDS:
            place = found[number] = None
        elif not place.is_known:
            source = next(
                (readers[place.function, name] for name in written if (place.function, name) in readers), None
            )
            if source is None and opcode == "bra" and (guard := next(iter(read), None)) is not None:
                at = writers.get((place.function, guard))
                source = places[at] if at is not None else None
            if source is None and after is not None and after.function == place.function and not written:
                source = after
            in_prologue = number < seen_known.get(place.function, len(text))
            known = source is not None and source.is_known and not in_prologue
            place = found[number] = source if known else None
        if place is not None:
            after = place
            for name in read:
                readers[place.function, name] = place
    return found


def _writers(text: Sequence[str], places: Sequence[PtxLine | None]) -> Iterator[tuple[tuple[str, str], int]]:
    """(function, register) -> the number of the last line with its own place that writes the register."""
    for number, place in enumerate(places):
        if place is not None and place.is_known:
            instruction = instruction_at(text[number])
            for name in instruction.written if instruction else ():
                yield (place.function, name), number


@dataclass(frozen=True)
class RegisterUse:
    """An instruction of PTX: its opcode up to the first point, the registers that it writes, and those that it reads, its guard first."""

    opcode: str
    written: tuple[str, ...]
    read: tuple[str, ...]


def instruction_at(line: str) -> RegisterUse | None:
    """The instruction on a line of PTX; None for a directive, a label or a comment."""
    found = _INSTRUCTION.match(line)
    if found is None:
        return None
    opcode = found["opcode"].partition(".")[0]
    operands = line[found.end() :].partition("//")[0].lstrip()
    guard = (found["guard"],) if found["guard"] else ()
    if opcode in _WRITES_NOTHING:
        return RegisterUse(opcode, (), (*guard, *_REGISTER.findall(operands)))
    end = operands.find("}") if operands.startswith("{") else operands.find(",")
    first, rest = (operands[: end + 1], operands[end + 1 :]) if end >= 0 else (operands, "")
    return RegisterUse(opcode, tuple(_REGISTER.findall(first)), (*guard, *_REGISTER.findall(rest)))
