"""The lines of PTX: which op each instruction was made of, by the `.loc` that the tools wrote; and the text without them.

    .loc  1 13 20  // gelu.hlo:13:20          mul.rn.bf16  %rs5, %rs3, %rs3;      line 20 of the kernel's `llvm-dialect`
    mul.rn.bf16  %rs5, %rs3, %rs3;       ->   mov.b16      %rs7, 0x3D37;          that of the first instruction that reads %rs7
    .loc  1 0 20                              mul.rn.bf16  %rs8, %rs6, %rs7;      line 22
    mov.b16      %rs7, 0x3D37;
    .loc  1 14 22
    mul.rn.bf16  %rs8, %rs6, %rs7;

`read_lines` takes out what line information added: `.loc`, `.file`, empty debug sections, and the labels that they need. What is
left is, byte by byte, the PTX of a compilation without line information (a test says so).

LLVM gives no line to constants that it loads into registers, to the moves that take blocks' arguments from one block to the next, and
to what it makes of several ops without a common line. Such an instruction gets the line of the first one after it that reads its
result; a branch gets that of the instruction that makes its condition; any other that of the next instruction. The parameters' loads
before the first instruction with a line are the prologue, and have none; neither have returns.
Source: PTX ISA 8.6, "Debugging Directives"; LLVM 22, NVPTXAsmPrinter.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

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
    """Where one instruction is from.

    function    the function of PTX that it is in
    hlo_line    line of its HLO instruction in the source, from 1; 0: unknown
    op_line     line, from 1, of its op in the kernel's text at the stage `llvm-dialect`; 0: unknown
    is_derived  whether the line is that of an instruction which reads its result or comes next, and not the tools' own
    """

    function: str
    hlo_line: int
    op_line: int
    is_derived: bool = False

    @property
    def is_known(self) -> bool:
        return self.op_line > 0 or self.hlo_line > 0


@dataclass(frozen=True)
class PtxLines:
    """PTX without line information, and for each of its lines where the instruction on it is from.

    text    the PTX, as it is compiled without line information
    lines   one entry a line of `text`; None for a line without an instruction, an instruction of the prologue or an end
    """

    text: str
    lines: tuple[PtxLine | None, ...]


def read_lines(ptx: str) -> PtxLines:
    """PTX that was compiled with line information, without it; and the information."""
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
    """The places, with those that LLVM left out as the file's head says. Later lines first: an answer may depend on one of them."""
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
            place = found[number] = replace(source, is_derived=True) if known and source is not None else None
        if place is not None:
            after = place
            for name in read:
                readers[place.function, name] = place
    return found


def _writers(text: Sequence[str], places: Sequence[PtxLine | None]) -> Iterator[tuple[tuple[str, str], int]]:
    """(function, register), and the number of the last line with a place of its own that writes it."""
    for number, place in enumerate(places):
        if place is not None and place.is_known:
            instruction = instruction_at(text[number])
            for name in instruction.written if instruction else ():
                yield (place.function, name), number


@dataclass(frozen=True)
class Instruction:
    """An instruction of PTX: its opcode up to the first point, the registers that it writes, and those that it reads, its guard first."""

    opcode: str
    written: tuple[str, ...]
    read: tuple[str, ...]


def instruction_at(line: str) -> Instruction | None:
    """The instruction on a line of PTX; None for a directive, a label or a comment."""
    found = _INSTRUCTION.match(line)
    if found is None:
        return None
    opcode = found["opcode"].partition(".")[0]
    operands = line[found.end() :].partition("//")[0].lstrip()
    guard = (found["guard"],) if found["guard"] else ()
    if opcode in _WRITES_NOTHING:
        return Instruction(opcode, (), (*guard, *_REGISTER.findall(operands)))
    end = operands.find("}") if operands.startswith("{") else operands.find(",")
    first, rest = (operands[: end + 1], operands[end + 1 :]) if end >= 0 else (operands, "")
    return Instruction(opcode, tuple(_REGISTER.findall(first)), (*guard, *_REGISTER.findall(rest)))
