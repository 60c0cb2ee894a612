"""Executes the integer part of a thread's machine code for one launch, to count the trips of loops whose bounds are sizes.

    run_threads(sass, "sm_90", LaunchDimensions((512, 1, 1), (256, 1, 1)), [x, y, 4096, 1024], [8, 8, 4, 4]).executed.instructions  ->  107

`sass.executed` uses trip counts that the code itself states. In a kernel of a program with unknown sizes they are arguments: here registers
hold numbers, computed from the arguments and the thread's ids, as far as integer instructions go. All other values - loaded ones,
floating point except for integer division, exchanges within a warp - are unknown, and a branch on an unknown value is not taken:
ptxas places slow paths (of divisions, of functions beyond their usual range) behind such branches, and the common path before them.

A warp executes an instruction once for all of its lanes. The first lane of each warp of one block runs, the block in the middle of the
grid, and the result is the mean over the warps: a warp whose first lane skips code that other lanes run is counted as if all skipped it.
Source: CUDA Binary Utilities, "Instruction Set Reference"; the layout of constant bank 0 as ptxas 12.9 writes it.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from xla_emitters.errors import Unsupported
from xla_emitters.pricing.sass import (
    NOT_COUNTED,
    RELATIONS,
    WORD,
    Executed,
    SassFunction,
    SassInstruction,
    parse,
    signed,
    summed,
)
from xla_emitters.program import LaunchDimensions

MOST_STEPS = 1 << 20
PARAMETERS = {"sm_75": 0x160, "sm_80": 0x160, "sm_86": 0x160, "sm_89": 0x160, "sm_90": 0x210, "sm_100": 0x380}
"""The offset of a kernel's parameters in constant bank 0."""
WARP = 32
ADDRESS = 0x1000_0000_0000
"""An assumed array address; only arithmetic on it is executed."""
Number = int | None
"""A 32-bit register, or a predicate; None if unknown."""


@dataclass(frozen=True)
class ThreadRun:
    """The execution of the threads of a launch.

    executed   counts of the mean thread, rounded
    warp_instructions  by all warps of a block, each instruction once
    functions  the code; its loops have the trip counts of the first lanes
    """

    executed: Executed
    warp_instructions: int
    functions: Sequence[SassFunction]


def run_threads(
    sass: str, architecture: str, launch: LaunchDimensions, values: Sequence[object], widths: Sequence[int]
) -> ThreadRun:
    """Runs the first lane of each warp of one block.

    values  the kernel's arguments: Python numbers, or anything for a pointer
    widths  bytes of each argument
    raises  Unsupported if a thread does not end, or for an architecture with an unknown parameter layout
    """
    functions, constants = parse(sass), _constants(architecture, launch, values, widths)
    warps, block = -(-launch.threads // WARP), launch.blocks // 2
    times = Counter[tuple[str, int]]()
    for warp in range(warps):
        times.update(_Thread(functions, constants, launch, block, warp * WARP).run())
    counts = [(each, times[function.name, each.address]) for function in functions for each in function.instructions]
    opcodes, accesses = summed((each, count) for each, count in counts if count and each.name not in NOT_COUNTED)
    for function in functions:
        function.measure({address: count for (name, address), count in times.items() if name == function.name})
    kinds = {kind: Counter({size: round(n / warps) for size, n in found.items()}) for kind, found in accesses.items()}
    mean = Counter({opcode: round(count / warps) for opcode, count in opcodes.items()})
    found = Executed(round(opcodes.total() / warps), **kinds, unknown_loops=0, opcodes=mean)
    return ThreadRun(found, opcodes.total(), functions)


def _constants(
    architecture: str, launch: LaunchDimensions, values: Sequence[object], widths: Sequence[int]
) -> dict[int, int]:
    """Offset -> the known words of constant bank 0."""
    base = PARAMETERS.get(re.sub(r"[af]$", "", architecture))
    if base is None:
        raise Unsupported(f"no layout of parameters is known for {architecture}", stage="cost")
    found = dict(zip(range(0, 24, 4), (*launch.block, *launch.grid), strict=True))
    at = base
    for number, (value, width) in enumerate(zip(values, widths, strict=True)):
        at = -(-at // width) * width
        word = value if isinstance(value, int) else ADDRESS * (number + 1)
        for part in range(0, max(width, 4), 4):
            found[at + part] = word >> (8 * part) & WORD
        at += width
    return found


@dataclass
class _Thread:
    """One thread: registers and predicates by name."""

    functions: Sequence[SassFunction]
    constants: Mapping[int, int]
    launch: LaunchDimensions
    block: int
    thread: int
    registers: dict[str, Number] = field(default_factory=dict[str, Number])

    def run(self) -> Counter[tuple[str, int]]:
        times, steps = Counter[tuple[str, int]](), 0
        function = self.functions[0]
        position, returns = 0, list[tuple[SassFunction, int]]()
        places = {f.name: {i.address: n for n, i in enumerate(f.instructions)} for f in self.functions}
        while position < len(function.instructions):
            instruction = function.instructions[position]
            times[function.name, instruction.address] += 1
            steps += 1
            if steps > MOST_STEPS:
                raise Unsupported("a thread of the kernel does not end", stage="cost")
            position += 1
            condition = self._guard(instruction)
            match instruction.name:
                case "BRA" | "JMP" if condition and self._branch_condition(instruction):
                    label = instruction.label
                    if label in function.labels:
                        position = places[function.name][function.labels[label]]
                case "CALL" if condition:
                    callee = next((f for f in self.functions if f.name == instruction.label), None)
                    if callee is not None:
                        returns.append((function, position))
                        function, position = callee, 0
                case "RET" if condition:
                    if not returns:
                        break
                    function, position = returns.pop()
                case "EXIT" if condition:
                    break
                case _:
                    self._execute(instruction, condition)
        return times

    # --- operands ---------------------------------------------------------------------------------------------------

    def _guard(self, instruction: SassInstruction) -> Number:
        """Whether the instruction has an effect: 1, 0, or None if unknown."""
        return self._predicate(instruction.guard[1:]) if instruction.guard else 1

    def _branch_condition(self, instruction: SassInstruction) -> Number:
        """The condition among the operands, as in `BRA.U UP0, ...` and `@P0 BRA P1, ...`."""
        found: Number = 1
        for operand in instruction.operands[:-1]:
            if re.fullmatch(r"!?U?P(T|\d)", operand):
                found = _and(found, self._predicate(operand))
        return found

    def _predicate(self, operand: str) -> Number:
        name = operand.lstrip("!")
        value: Number = 1 if name in ("PT", "UPT") else self.registers.get(name)
        return value if value is None or not operand.startswith("!") else 1 - value

    def _value(self, operand: str) -> Number:
        """The value of a 32-bit source, including `-` and `~` in front of it."""
        if operand.startswith("-") and not re.fullmatch(r"-0x[0-9a-f]+|-\d+", operand):
            value = self._value(operand[1:])
            return None if value is None else -value & WORD
        if operand.startswith("~"):
            value = self._value(operand[1:])
            return None if value is None else ~value & WORD
        if operand in ("RZ", "URZ", "SRZ"):
            return 0
        if re.fullmatch(r"-?(0x[0-9a-f]+|\d+)", operand):
            return int(operand, 0) & WORD
        if found := re.fullmatch(r"c\[0x0\]\[(0x[0-9a-f]+)\]", operand):
            return self.constants.get(int(found[1], 16))
        if re.fullmatch(r"U?R\d+", operand):
            return self.registers.get(operand)
        return None

    def _special(self, operand: str) -> Number:
        axis = "XYZ".find(operand[-1])
        if operand.startswith("SR_TID"):
            x, y, _ = self.launch.block
            return (self.thread % x, self.thread // x % y, self.thread // x // y)[axis]
        if operand.startswith("SR_CTAID"):
            x, y, _ = self.launch.grid
            return (self.block % x, self.block // x % y, self.block // x // y)[axis]
        return self.thread % WARP if operand == "SR_LANEID" else None

    # --- execution --------------------------------------------------------------------------------------------------

    def _execute(self, instruction: SassInstruction, condition: Number) -> None:
        if condition == 0:
            return
        targets, sources = instruction.split_operands
        results = self._results(instruction, sources)
        for number, target in enumerate(targets):
            found = results[number] if number < len(results) and condition == 1 else None
            self.registers[target] = found

    def _results(self, instruction: SassInstruction, sources: Sequence[str]) -> list[Number]:
        """The value for each target, in order; shorter if the remaining ones are unknown."""
        name, parts = instruction.name, instruction.opcode.split(".")[1:]
        base = name.removeprefix("U")
        match base:
            case "S2R" | "S2UR" | "CS2R":
                return [self._special(sources[0])] if sources and sources[0] != "SRZ" else [0, 0]
            case "LDC":
                found = re.fullmatch(r"c\[0x0\]\[(0x[0-9a-f]+)\]", sources[0]) if sources else None
                return [self.constants.get(int(found[1], 16) + 4 * n) for n in range(2)] if found else []
            case "MOV" | "R2UR":
                return [self._value(sources[0])]
            case "ISETP":
                return self._compared(parts, sources)
            case "PLOP3":
                return self._looked_up_predicate(sources)
            case "HFMA2":
                return [instruction.halves]
            case "SEL":
                chosen = self._predicate(sources[2])
                return [None if chosen is None else self._value(sources[0 if chosen else 1])]
            case "IMAD" if "HI" in parts:
                # The addend has 64 bits: a register and the next one.
                added = sources[2], _after(sources[2])
                a, b, low, high = map(self._value, (*sources[:2], *added))
                if a is None or b is None or low is None or high is None:
                    return []
                a, b = (a, b) if "U32" in parts else (signed(a), signed(b))
                return [(a * b + (high << 32 | low)) >> 32 & WORD]
            case _:
                values = [self._value(source) for source in sources if not re.fullmatch(r"!?U?P(T|\d)", source)]
                rule = _RULES.get(base)
                known = [value for value in values if value is not None]
                if base in ("IMNMX", "VIMNMX", "VIADDMNMX"):
                    is_least = self._predicate(sources[-1])
                    return [_extreme(base, parts, known, is_least)] if len(known) == len(values) else []
                if rule is None or len(known) < len(values):
                    return []
                return rule(parts, known)

    def _compared(self, parts: Sequence[str], sources: Sequence[str]) -> list[Number]:
        a, b, last = self._value(sources[0]), self._value(sources[1]), self._predicate(sources[2])
        if "EX" in parts or a is None or b is None:
            return [None, None]
        if "U32" not in parts:
            a, b = signed(a), signed(b)
        holds = int(RELATIONS[parts[0]](a, b))
        joined = _and(holds, last) if "AND" in parts else _or(holds, last)
        return [joined, None]

    def _looked_up_predicate(self, sources: Sequence[str]) -> list[Number]:
        found = [self._predicate(source) for source in sources[:3]]
        table = int(sources[3], 0)
        possible = [index for index in range(8) if all(p in (None, index >> (2 - n) & 1) for n, p in enumerate(found))]
        results = {table >> index & 1 for index in possible}
        return [results.pop() if len(results) == 1 else None, None]


def _and(a: Number, b: Number) -> Number:
    return 0 if 0 in (a, b) else None if None in (a, b) else 1


def _or(a: Number, b: Number) -> Number:
    return 1 if 1 in (a, b) else None if None in (a, b) else 0


def _extreme(base: str, parts: Sequence[str], values: Sequence[int], is_least: Number) -> Number:
    if is_least is None:
        return None
    first, *rest = values
    if base == "VIADDMNMX":
        first, rest = first + rest[0] & WORD, rest[1:]
    numbers = [first, *rest] if "U32" in parts else [signed(value) for value in (first, *rest)]
    return (min if is_least else max)(numbers) & WORD


def _imad(parts: Sequence[str], values: Sequence[int]) -> list[Number]:
    a, b = (value if "U32" in parts else signed(value) for value in values[:2])
    return [a * b + values[2] & WORD]  # of a wide one, the high word is part of an address


def _after(operand: str) -> str:
    """The register after another one; the zero register is followed by itself."""
    found = re.fullmatch(r"(U?R)(\d+)", operand)
    return f"{found[1]}{int(found[2]) + 1}" if found else operand


def _lea(parts: Sequence[str], values: Sequence[int]) -> list[Number]:
    shift = values[-1]
    if "HI" in parts:
        low, added, high = values[0], values[1], values[2] if len(values) > 3 else 0
        return [((high << 32 | low) >> (32 - shift)) + added & WORD]
    return [(values[0] << shift) + values[1] & WORD]


def _shf(parts: Sequence[str], values: Sequence[int]) -> list[Number]:
    low, by, high = values
    is_high = "HI" in parts
    by = by & 31 if "W" in parts else min(by, 32)
    if parts[0] == "L":
        return [(low << by) & WORD] if not is_high else [((high << 32 | low) << by) >> 32 & WORD]
    if is_high:
        number = signed(high) if "S32" in parts else high
        return [number >> by & WORD]
    return [(high << 32 | low) >> by & WORD]


def _lop3(parts: Sequence[str], values: Sequence[int]) -> list[Number]:
    a, b, c, table = values
    found = 0
    for index in range(8):
        if table >> index & 1:
            found |= (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c)
    return [found & WORD, int(found & WORD != 0)]


def _prmt(parts: Sequence[str], values: Sequence[int]) -> list[Number]:
    """Selects four bytes from two words: each digit of the selector names one of eight bytes, or with 8 added, its sign in all bits."""
    a, selector, b = values
    pool, found = b << 32 | a, 0
    for place in range(4):
        digit = selector >> 4 * place & 15
        byte = pool >> 8 * (digit & 7) & 255
        found |= ((255 if byte & 128 else 0) if digit & 8 else byte) << 8 * place
    return [found]


def _i2f(parts: Sequence[str], values: Sequence[int]) -> list[Number]:
    """Converts an unsigned integer, rounded up, as code for integer division does."""
    found = np.float32(values[0])
    if int(found) < values[0]:
        found = np.nextafter(found, np.float32(np.inf))
    return [struct.unpack("<I", struct.pack("<f", found))[0]]


def _reciprocal(parts: Sequence[str], values: Sequence[int]) -> list[Number]:
    number = struct.unpack("<f", struct.pack("<I", values[0]))[0]
    if parts[:1] != ["RCP"] or not number:
        return []
    return [struct.unpack("<I", struct.pack("<f", 1.0 / number))[0]]


def _f2i(parts: Sequence[str], values: Sequence[int]) -> list[Number]:
    number = struct.unpack("<f", struct.pack("<I", values[0]))[0]
    return [min(max(int(number), 0), WORD)] if "U32" in parts and np.isfinite(number) else []


_RULES: Mapping[str, Callable[[Sequence[str], Sequence[int]], list[Number]]] = {
    "F2I": _f2i,
    "I2F": _i2f,
    "IADD": lambda parts, values: [sum(values) & WORD],
    "IADD3": lambda parts, values: [] if "X" in parts else [sum(values) & WORD],
    "VIADD": lambda parts, values: [sum(values) & WORD],
    "IMAD": _imad,
    "LEA": _lea,
    "LOP3": _lop3,
    "PRMT": _prmt,
    "MUFU": _reciprocal,
    "SHF": _shf,
}
"""Opcode without U -> the function from (its parts, known sources) to the words of the result."""
