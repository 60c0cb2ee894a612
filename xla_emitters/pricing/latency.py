"""The time that one warp alone takes for a kernel, and its bytes of loads in flight: simulates its instructions in order, with latencies.

    LDG R4 ;  LDG R6 ;  FADD R8, R4, R6 ;  STG R8      ->   2 + memory_cycles + 4 ... cycles; 8 bytes in flight

A warp issues one instruction per cycle, in order, and waits for operands that earlier instructions have not yet written. Loads that are
issued before the first one is used are in flight together. A loop is run twice; all further trips take as long as the second. Both
sides of a branch are run, one after the other, and a subroutine at each call, as in `sass.executed`: an upper bound.
Not modelled: other warps that want the same pipe (that is the issue bound), instruction cache misses, operands of a pair of
registers beyond the first.
Source: R. Volkov, "Better performance at lower occupancy" (GTC 2010), for loads in flight instead of warps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from xla_emitters.pricing.issue import class_of
from xla_emitters.pricing.sass import NOT_COUNTED, SassFunction, SassInstruction

_REGISTER = re.compile(r"\b(U?R\d+|U?P\d)\b")
_TRIPS_SIMULATED = 2


@dataclass(frozen=True)
class Latencies:
    """Cycles from an instruction to one that reads its result.

    memory     loads of global memory, and atomic updates that return a value
    shared     loads of shared and of local memory
    barrier    from the last warp's arrival
    """

    memory: int
    shared: int
    fp64: int
    dependent: int
    special: int = 20
    exchange: int = 24
    barrier: int = 20

    def of(self, instruction: SassInstruction) -> int:
        match class_of(instruction.opcode).name:
            case "global" | "atomic":
                return self.memory
            case "shared" | "local":
                # A thread's own arrays stay in the first-level cache.
                return self.shared
            case "f64":
                return self.fp64
            case "special" | "convert":
                return self.special
            case "exchange":
                return self.exchange
            case _:
                # Constant memory and special registers.
                return self.special if instruction.name in ("S2R", "S2UR", "LDC") else self.dependent


@dataclass(frozen=True)
class WarpSimulation:
    """The simulation of one warp.

    cycles           from its first instruction to its last
    bytes_in_flight  per thread: the most bytes of global loads in flight at once
    """

    cycles: float
    bytes_in_flight: int


def walk(functions: Sequence[SassFunction], latencies: Latencies) -> WarpSimulation:
    """functions  the kernel, then its subroutines, as `sass.parse` returns them"""
    walker = _Walker({function.name: function for function in functions}, latencies)
    walker.call(functions[0].name, 0)
    return WarpSimulation(walker.now + walker.added, walker.most_bytes)


class _Walker:
    """now: the cycle; ready: register -> the cycle in which it can be read; added: cycles of trips that were not simulated."""

    def __init__(self, functions: dict[str, SassFunction], latencies: Latencies) -> None:
        self.functions = functions
        self.latencies = latencies
        self.now = 0.0
        self.added = 0.0
        self.ready: dict[str, float] = {}
        self.loads: list[tuple[float, int]] = []
        self.most_bytes = 0

    def call(self, name: str, depth: int) -> None:
        function = self.functions.get(name)
        if function is None or depth > len(self.functions):
            return
        self._blocks(function, frozenset(range(len(function.blocks))), None, depth)

    def _blocks(self, function: SassFunction, blocks: frozenset[int], inside: int | None, depth: int) -> None:
        """Runs `blocks` in address order; blocks of an inner loop once per trip. inside: header of the loop that contains the blocks."""
        inner = [loop for loop in function.loops if loop.blocks <= blocks and loop.header != inside]
        outermost = [loop for loop in inner if not any(loop.blocks < other.blocks for other in inner)]
        done: set[int] = set()
        for number in sorted(blocks):
            if number in done:
                continue
            loop = next((loop for loop in outermost if number in loop.blocks), None)
            if loop is None:
                for instruction in function.blocks[number]:
                    self._step(function, instruction, depth)
                continue
            trips, before = loop.trips or 1, (0.0, 0.0)
            for _ in range(min(trips, _TRIPS_SIMULATED)):
                before = self.now, self.added
                self._blocks(function, loop.blocks, loop.header, depth)
            done |= loop.blocks
            if trips > _TRIPS_SIMULATED:
                of_a_trip = self.now - before[0] + self.added - before[1]
                self.added += of_a_trip * (trips - _TRIPS_SIMULATED)

    def _step(self, function: SassFunction, instruction: SassInstruction, depth: int) -> None:
        if instruction.name in NOT_COUNTED or instruction.label in function.labels_at(instruction.address):
            return
        written, read = _operands(instruction)
        start = max([self.now, *(self.ready.get(name, 0.0) for name in read)])
        kind = class_of(instruction.opcode).name
        self.now = start + 1
        if instruction.name == "BAR":
            self.now = start + self.latencies.barrier
        elif instruction.name == "CALL" and instruction.label:
            self.call(instruction.label, depth + 1)
        done = start + self.latencies.of(instruction)
        for name in written:
            self.ready[name] = done
        if kind == "global" and written:
            self.loads = [load for load in self.loads if load[0] > start] + [(done, instruction.access_bytes)]
            self.most_bytes = max(self.most_bytes, sum(count for _, count in self.loads))


def _operands(instruction: SassInstruction) -> tuple[list[str], list[str]]:
    """The registers and predicates that are written, and those that are read."""
    written, sources = instruction.split_operands
    return list(filter(_REGISTER.fullmatch, written)), _REGISTER.findall(" ".join((instruction.guard, *sources)))
