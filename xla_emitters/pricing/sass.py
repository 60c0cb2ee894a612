"""Counts the instructions that one thread executes, from basic blocks and trip counts of the machine code; and its accesses by width.

    cubin -disassemble-> text -parse-> [Function] -executed-> Executed(instructions=137, loads={8: 2}, stores={8: 1} ...)

An instruction counts once for every trip of every loop around it. The trip count of a loop is known in two cases: its branch compares a
register that starts as a constant and that one instruction of the loop increments by a constant; or it reads a predicate that is a
constant before the loop and the opposite one after a trip. ptxas writes every loop with known bounds in one of these forms. Other loops
(an exit that depends on data, such as fmod's) count as one trip, and the result has the number of such loops. Both sides of a branch count,
and a subroutine, to which ptxas moves slow paths, counts once per call. So, except for unknown loops, the figures are upper bounds.
Not counted: NOP, a branch to itself (padding after the end), and ACQBULK, which waits for the previous kernel and computes nothing.
"""

from __future__ import annotations

import operator
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

NOT_COUNTED = ("NOP", "ACQBULK")
WORD = 0xFFFFFFFF
# The most trips that are simulated.
_MOST_TRIPS = 1 << 20
_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
_WITHOUT_RESULT = "ST STG STS STL RED REDG BAR BRA BSSY BSYNC CALL EXIT JMP MEMBAR NOP RET WARPSYNC".split()
RELATIONS: Mapping[str, Callable[[int, int], bool]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}
"""Of ISETP."""


@dataclass(frozen=True)
class SassInstruction:
    """`@!P0 LDG.E.64.CONSTANT R2, desc[UR4][R2.64] ;`

    guard     "@!P0", or "" if it always executes
    opcode    with its modifiers, "LDG.E.64.CONSTANT"
    operands  "R2", "desc[UR4][R2.64]"; `.reuse` is dropped
    """

    address: int
    guard: str
    opcode: str
    operands: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.opcode.partition(".")[0]

    @property
    def counted_as(self) -> str:
        """The opcode, or what it stands for: ptxas writes a conversion of f16 as an addition of -0, a constant as 0 * 0 + constant."""
        if self.name == "HFMA2" and self.operands[1:3] == ("-RZ", "RZ"):
            return "HFMA2_MOVE"
        if self.opcode == "HADD2.F32" and any(operand.startswith("-RZ") for operand in self.operands):
            return "HADD2_CONVERT"
        return self.opcode

    @property
    def label(self) -> str | None:
        """The target of a branch or a call."""
        found = re.search(r"`\(([^)]+)\)", " ".join(self.operands))
        return found[1] if found else None

    @property
    def access_bytes(self) -> int:
        """Bytes that a load or store transfers."""
        return next((_BYTES[part] for part in self.opcode.split(".")[1:] if part in _BYTES), 4)

    @property
    def _words(self) -> int:
        """The registers of its result."""
        name, *parts = self.opcode.split(".")
        if "128" in parts:
            return 4
        is_wide = not {"64", "WIDE", "F64"}.isdisjoint(parts) or name in ("DADD", "DMUL", "DFMA")
        return 2 if is_wide or (name == "CS2R" and "32" not in parts) else 1

    @property
    def halves(self) -> int | None:
        """The word that it writes, if ptxas wrote a constant as two f16: -0 * 0 + (high, low)."""
        if self.name != "HFMA2" or self.operands[1:3] != ("-RZ", "RZ") or "BF16" in self.opcode:
            return None
        high, low = map(float, self.operands[3:5])
        return int.from_bytes(struct.pack("<2e", low, high), "little")

    @cached_property
    def split_operands(self) -> tuple[Sequence[str], Sequence[str]]:
        """The registers and predicates that it writes, the words of its result first, and its other operands."""
        operands, targets, flags = list(self.operands), list[str](), list[str]()
        if self.name in _WITHOUT_RESULT:
            return [], operands
        if self.name.endswith(("SETP", "PLOP3")):
            return operands[:2], operands[2:]
        # `LOP3.LUT P0, RZ, R0, ...`: whether the result is not 0. `SHFL.DOWN PT, R5, R4, ...`
        if operands and re.fullmatch(r"U?P(T|\d)", operands[0]):
            flags.append(operands.pop(0))
        if operands and (found := re.fullmatch(r"(U?R)(\d+|Z)", operands[0])):
            del operands[0]
            # The zero register is not written, but is the first result still.
            targets = (
                ["RZ"] if found[2] == "Z" else [f"{found[1]}{int(found[2]) + word}" for word in range(self._words)]
            )
            # A carry that is written is placed between the result and the first source.
            while operands and re.fullmatch(r"U?P\d", operands[0]) and self.name not in ("SEL", "USEL"):
                flags.append(operands.pop(0))
        return targets + flags, operands


@dataclass(frozen=True)
class Executed:
    """Counts for one thread. Loads, stores and atomic updates of global memory, and accesses to shared and local memory: bytes -> count.

    unknown_loops  number of loops with unknown trip count; they count as one trip
    opcodes        opcode with its modifiers -> count, all instructions
    """

    instructions: int
    loads: Counter[int]
    stores: Counter[int]
    atomics: Counter[int]
    shared: Counter[int]
    local: Counter[int]
    unknown_loops: int
    opcodes: Counter[str] = field(default_factory=Counter[str])


# The counter of each opcode. Generic loads and stores count as global memory: accesses to shared memory have their own opcodes.
ACCESSES = {
    "loads": ("LDG", "LD"),
    "stores": ("STG", "ST"),
    "atomics": ("ATOMG", "ATOM", "REDG", "RED"),
    "shared": ("LDS", "STS"),
    "local": ("LDL", "STL"),
}


def executed(sass: str) -> Executed:
    """The counts for `sass`, nvdisasm's text of one kernel and its subroutines."""
    functions = parse(sass)
    unknown = sum(loop.trips is None for function in functions for loop in function.loops)
    opcodes, accesses = summed(counted(functions))
    return Executed(opcodes.total(), **accesses, unknown_loops=unknown, opcodes=opcodes)


def summed(counts: Iterable[tuple[SassInstruction, int]]) -> tuple[Counter[str], dict[str, Counter[int]]]:
    """Counts by opcode, and for each kind of access by bytes."""
    opcodes, accesses = Counter[str](), {kind: Counter[int]() for kind in ACCESSES}
    for instruction, times in counts:
        opcodes[instruction.counted_as] += times
        for kind, names in ACCESSES.items():
            if instruction.name in names:
                accesses[kind][instruction.access_bytes] += times
    return opcodes, accesses


def counted(functions: Sequence[SassFunction]) -> Iterator[tuple[SassInstruction, int]]:
    """The instructions that count, and how often a thread executes each."""
    calls = calls_of(functions)
    for function in functions:
        for instruction in function.instructions:
            if instruction.name in NOT_COUNTED or instruction.label in function.labels_at(instruction.address):
                continue
            yield instruction, calls[function.name] * function.trips_at(instruction)


def counted_by_origin(sass: str, kernel: str, sources: Sequence[Sequence[str]]) -> Counter[str]:
    """HLO instruction -> SASS instructions that a thread executes for it; "" -> those of none, e.g. addresses and loops.

    sass     nvdisasm's text of all kernels
    sources  for each of its lines the HLO instructions that it comes from; several of them are named together
    """
    lines, found, is_own = dict[int, str](), Counter[str](), False
    for number, line in enumerate(sass.split("\n")):
        if section := re.match(r"\s*\.section\s+\.text\.([\w$]+),", line):
            is_own = section[1] == kernel
        if is_own and (address := re.match(r"\s+/\*([0-9a-f]{4,})\*/", line)):
            lines[int(address[1], 16)] = ", ".join(sources[number])
    for instruction, times in counted(parse(kernels_of(sass)[kernel])):
        found[lines.get(instruction.address, "")] += times
    return found


def kernels_of(sass: str) -> dict[str, str]:
    """nvdisasm's text of several kernels, split by kernel name; a subroutine is in the text of the kernel that uses it."""
    parts = re.split(r"^\s*\.section\s+\.text\.([\w$]+),.*$", sass, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def calls_of(functions: Sequence[SassFunction]) -> Counter[str]:
    """The number of calls of each function by one thread; 1 for the kernel itself."""
    entry = functions[0].name
    calls: Counter[str] = Counter()

    def visit(name: str, times: int) -> None:
        calls[name] += times
        function = next(function for function in functions if function.name == name)
        for instruction in function.instructions:
            if instruction.name == "CALL" and (callee := instruction.label) and callee != name:
                visit(callee, times * function.trips_at(instruction))

    visit(entry, 1)
    return calls


def parse(sass: str) -> list[SassFunction]:
    """The kernel and the subroutines after it, in the order of the text."""
    functions: list[SassFunction] = []
    for line in sass.splitlines():
        if label := re.match(r"([.$\w]+):", line):
            name = label[1]
            if name.startswith(".text.") or name.startswith("$"):
                functions.append(SassFunction(name, [], {}))
            elif functions:
                functions[-1].pending.append(name)
        elif found := re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?([\w.]+)\s*(.*?)\s*;", line):
            operands = tuple(part.strip().replace(".reuse", "") for part in found[4].split(",") if part.strip())
            # A call to a label inside the function, by which ptxas leaves some loops, is a branch: nothing returns from it.
            opcode = "BRA" if found[3].startswith("CALL") and "`(.L_" in found[4] else found[3]
            functions[-1].add(SassInstruction(int(found[1], 16), (found[2] or "").strip(), opcode, operands))
    return [function for function in functions if function.instructions]


@dataclass(frozen=True)
class SassLoop:
    """A natural loop: the numbers of its blocks, the number of its header, and its trip count (None if unknown)."""

    header: int
    blocks: frozenset[int]
    trips: int | None


class SassFunction:
    """One function: its instructions in address order, its blocks and its loops."""

    def __init__(self, name: str, instructions: list[SassInstruction], labels: dict[str, int]) -> None:
        self.name = name
        self.instructions = instructions
        self.labels = labels
        self.pending: list[str] = []

    def add(self, instruction: SassInstruction) -> None:
        self.instructions.append(instruction)
        self.labels |= dict.fromkeys(self.pending, instruction.address)
        self.pending = []

    def labels_at(self, address: int) -> set[str]:
        return {label for label, place in self.labels.items() if place == address}

    def trips_at(self, instruction: SassInstruction) -> int:
        """How often one call executes the instruction, if both sides of every branch were executed."""
        times = 1
        for loop in self.loops:
            if self._block_of[instruction.address] in loop.blocks:
                times *= loop.trips or 1
        return times

    @cached_property
    def blocks(self) -> list[list[SassInstruction]]:
        """Basic blocks in address order."""
        starts = {self.labels[i.label] for i in self.instructions if _is_branch(i) and i.label in self.labels}
        blocks: list[list[SassInstruction]] = [[]]
        for instruction in self.instructions:
            if instruction.address in starts and blocks[-1]:
                blocks.append([])
            blocks[-1].append(instruction)
            if _is_branch(instruction) or _is_end(instruction):
                blocks.append([])
        return [block for block in blocks if block]

    @cached_property
    def _block_of(self) -> dict[int, int]:
        return {i.address: number for number, block in enumerate(self.blocks) for i in block}

    @cached_property
    def successors(self) -> list[list[int]]:
        found: list[list[int]] = []
        for number, block in enumerate(self.blocks):
            last = block[-1]
            after: list[int] = []
            if _is_branch(last) and last.label in self.labels:
                after.append(self._block_of[self.labels[last.label]])
            if not (_is_unconditional(last) and (_is_branch(last) or _is_end(last))) and number + 1 < len(self.blocks):
                after.append(number + 1)
            found.append(after)
        return found

    @cached_property
    def predecessors(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.blocks]
        for number, after in enumerate(self.successors):
            for successor in after:
                found[successor].append(number)
        return found

    @cached_property
    def dominators(self) -> list[set[int]]:
        """For each block, the blocks that are on every path to it, itself included."""
        everything = set(range(len(self.blocks)))
        found = [{0}] + [set(everything) for _ in self.blocks[1:]]
        changed = True
        while changed:
            changed = False
            for number in range(1, len(self.blocks)):
                before = [found[one] for one in self.predecessors[number]]
                new = (set[int].intersection(*before) if before else set[int]()) | {number}
                changed |= new != found[number]
                found[number] = new
        return found

    def measure(self, times: Mapping[int, int]) -> None:
        """Sets the loops' trip counts from a run: address -> how often its instruction was executed."""

        def of(number: int) -> int:
            return times.get(self.blocks[number][0].address, 0)

        found = list[SassLoop]()
        for loop in self.loops:
            inside = sum(
                of(last) for last in loop.blocks if loop.header in self.successors[last] and last != loop.header
            )
            # The header runs once per entry and once per back edge taken.
            back = inside if loop.header not in self.successors[loop.header] else 0
            entries = sum(
                min(of(one), of(loop.header)) for one in self.predecessors[loop.header] if one not in loop.blocks
            )
            entries = entries or max(1, of(loop.header) - back)
            found.append(replace(loop, trips=max(1, round(of(loop.header) / max(1, entries)))))
        self.loops = found

    @cached_property
    def loops(self) -> list[SassLoop]:
        bodies: dict[int, set[int]] = {}
        for number, after in enumerate(self.successors):
            for header in after:
                if header in self.dominators[number] and not self._is_padding(number, header):
                    body = bodies.setdefault(header, {header})
                    waiting = [number]
                    while waiting:
                        if (block := waiting.pop()) not in body:
                            body.add(block)
                            waiting += self.predecessors[block]
        return [SassLoop(header, frozenset(body), self._trips(header, body)) for header, body in bodies.items()]

    def _is_padding(self, number: int, header: int) -> bool:
        return number == header and len(self.blocks[number]) == 1

    def _trips(self, header: int, body: set[int]) -> int | None:
        """The smallest trip count over the loop's exits; None if no exit gives one."""
        found = [self._trips_until_exit(header, body, number) for number in body]
        return min((trips for trips in found if trips is not None), default=None)

    def _trips_until_exit(self, header: int, body: set[int], number: int) -> int | None:
        """The trip count if the branch at the end of block `number` leaves the loop; None if it is unknown."""
        branch = self.blocks[number][-1]
        inside = [after in body for after in self.successors[number]]
        # `@P0 BRA ...` or, for a uniform predicate, `BRA.U UP0, ...`; `@P0 BRA P1, ...` has two conditions.
        conditions = [part for part in (branch.guard.lstrip("@"), *branch.operands[:-1]) if part]
        if len(conditions) != 1 or len(inside) != 2 or inside[0] == inside[1]:
            return None
        predicate = conditions[0].lstrip("!")
        # The branch jumps to its label if the condition holds.
        leaves_when = (not inside[0]) != conditions[0].startswith("!")
        place = self._definition(self.blocks[number][:-1], predicate)
        while place is not None and (copied := _copied(self.blocks[number][place])):
            predicate, place = copied, self._definition(self.blocks[number][:place], copied)
        if place is None:
            return self._trips_of_flag(header, body, predicate, leaves_when)
        compare = self.blocks[number][place]
        test = re.fullmatch(r"U?ISETP\.(EQ|NE|LT|LE|GT|GE)(\.U32)?\.AND", compare.opcode)
        if not test or compare.guard or compare.operands[0] != predicate or compare.operands[-1] not in ("PT", "UPT"):
            return None
        register, bound = compare.operands[2], self._constant_before(header, body, compare.operands[3])
        start = self._constant_before(header, body, register)
        step = self._step(body, register)
        if bound is None or start is None or step is None:
            return None
        by, at = step
        counts_first = at < compare.address
        value = start
        for trip in range(1, _MOST_TRIPS):
            tested = value + by if counts_first else value
            if (
                RELATIONS[test[1]](*((each & WORD) if test[2] else signed(each & WORD) for each in (tested, bound)))
                == leaves_when
            ):
                return trip if header in self.successors[number] else max(trip - 1, 1)
            value += by
        return None

    def _trips_of_flag(self, header: int, body: set[int], predicate: str, leaves_when: bool) -> int | None:
        """2 if the predicate is a constant before the loop, and every trip sets it to the opposite after the exit reads it; else None."""
        before = self._constant_before(header, body, predicate)
        writes = [i for number in body for i in self.blocks[number] if predicate in i.split_operands[0]]
        after = {_constant_of(write, predicate) for write in writes}
        return 2 if (before, after) == (not leaves_when, {leaves_when}) else None

    @staticmethod
    def _definition(block: Sequence[SassInstruction], name: str) -> int | None:
        """Position of the last instruction of `block` that writes the register or predicate."""
        return next((at for at in range(len(block) - 1, -1, -1) if name in block[at].split_operands[0]), None)

    def _step(self, body: set[int], register: str) -> tuple[int, int] | None:
        """(the constant that the loop adds to the register once per trip, the address of that instruction)."""
        writes = [i for number in body for i in self.blocks[number] if register in i.split_operands[0]]
        if len(writes) != 1 or writes[0].guard or writes[0].name not in ("VIADD", "IADD3", "UIADD3"):
            return None
        sources = [part for part in writes[0].operands[1:] if not re.fullmatch(r"!?U?P(T|\d)", part)]
        numbers = [_number(part) for part in sources if part != register]
        if len(numbers) != len(sources) - 1 or None in numbers:
            return None
        return sum(number or 0 for number in numbers), writes[0].address

    def _constant_before(self, header: int, body: set[int], operand: str) -> int | None:
        """The value of `operand` at the loop's entry, if it is one constant on every path there; a register must not change in a loop."""
        if (number := _number(operand)) is not None:
            return number
        found: set[int | None] = set()
        seen: set[int] = set()
        waiting = [one for one in self.predecessors[header] if one not in body]
        while waiting:
            block = waiting.pop()
            if block in seen:
                continue
            seen.add(block)
            place = self._definition(self.blocks[block], operand)
            if place is not None:
                found.add(_constant_of(self.blocks[block][place], operand))
            elif self.predecessors[block]:
                waiting += self.predecessors[block]
            else:
                found.add(None)
        return found.pop() if len(found) == 1 else None


def _is_branch(instruction: SassInstruction) -> bool:
    return instruction.name in ("BRA", "JMP")


def _is_end(instruction: SassInstruction) -> bool:
    return instruction.name in ("EXIT", "RET", "BRX")


def _is_unconditional(instruction: SassInstruction) -> bool:
    return not instruction.guard and not (_is_branch(instruction) and len(instruction.operands) > 1)


def _constant_of(instruction: SassInstruction, register: str) -> int | None:
    """The constant that the instruction writes to `register`."""
    operands = instruction.operands
    if instruction.guard:
        return None
    if instruction.name == "CS2R" and operands[1] == "SRZ":
        return 0
    if instruction.name in ("MOV", "UMOV") and operands[0] == register:
        return _number(operands[1])
    if instruction.opcode.startswith("IMAD.MOV") and operands[1:3] == ("RZ", "RZ"):
        return _number(operands[3])
    if (
        instruction.name in ("PLOP3", "UPLOP3")
        and operands[0] == register
        and not any(map(_is_predicate, operands[2:5]))
    ):
        return _looked_up(operands, "")
    return instruction.halves


def _is_predicate(operand: str) -> bool:
    return re.fullmatch(r"!?U?P\d", operand) is not None


def _copied(instruction: SassInstruction) -> str | None:
    """The predicate that the instruction copies, here UP0: `PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0`."""
    operands = instruction.operands
    if instruction.name not in ("PLOP3", "UPLOP3") or instruction.guard:
        return None
    read = [operand for operand in operands[2:5] if _is_predicate(operand)]
    if len(read) != 1 or read[0].startswith("!"):
        return None
    return read[0] if (_looked_up(operands, ""), _looked_up(operands, read[0])) == (0, 1) else None


def _looked_up(operands: Sequence[str], true: str) -> int:
    """PLOP3's result for three predicates: a bit of its table. Among the non-constant operands, only `true` is set."""
    number = sum(
        (operand in ("PT", "UPT", true)) << place for place, operand in zip((2, 1, 0), operands[2:5], strict=True)
    )
    return int(operands[5], 0) >> number & 1


def _number(operand: str) -> int | None:
    """The value of an immediate, or of the zero register; None for other operands."""
    if operand in ("RZ", "URZ"):
        return 0
    return int(operand, 0) if re.fullmatch(r"-?0x[0-9a-f]+|-?\d+", operand) else None


def signed(value: int) -> int:
    """A word as a signed integer."""
    return value - (1 << 32) if value >> 31 else value
