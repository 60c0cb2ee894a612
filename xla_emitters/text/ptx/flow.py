"""The control flow of a function: basic blocks, and which registers each takes as arguments (standard SSA construction).

    entry ─┬─ cond %p1 ──> ^then(%r3) ──> ^join(%r3)          a register is a block's argument where several definitions meet,
           └───────────────────────────────^                and it is still read

An instruction under a guard that may not be computed elsewhere (an access, a barrier, a call) is a block of its own. So is each that waits
for other threads, where a kernel has one beside barriers of the whole block, or may wait for other blocks: threads wait at the start of a
block.
Source: Cytron et al., "Efficiently computing static single assignment form and the control dependence graph" (1991), pruned by liveness.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from xla_emitters.errors import ParseError
from xla_emitters.support.dominance import immediate_dominators, reverse_postorder
from xla_emitters.support.source import Source
from xla_emitters.text.ptx.rows import EXITED, row_of
from xla_emitters.text.ptx.syntax import (
    Instruction,
    Label,
    Operand,
    PtxFunction,
    PtxLiteral,
    Register,
    SymbolAddress,
    call_parts,
    fault,
    is_trap,
)


@dataclass(eq=False)
class PtxBlock:
    """A basic block. It ends in a return where it has no ways.

    guard     it goes to ways[0] where the guard holds, else to ways[1]
    selector  it goes to one of several ways by this number
    end       the instruction that ends it, if there is one
    exits     whether its return ends the thread
    children  the nodes that it dominates immediately
    """

    instructions: list[Instruction] = field(default_factory=list[Instruction])
    ways: list[PtxBlock] = field(default_factory=list["PtxBlock"])
    guard: tuple[Register, bool] | None = None
    selector: Operand | None = None
    end: Instruction | None = None
    exits: bool = False
    arguments: list[Register] = field(default_factory=list[Register])
    children: list[PtxBlock] = field(default_factory=list["PtxBlock"])


ENDS = ("bra", "brx", "ret", "exit")


def _polls(item: Instruction) -> bool:
    """Whether a loop around it may wait for what another block writes."""
    return item.stem == "atom" or (item.stem == "ld" and not {"acquire", "relaxed", "volatile"}.isdisjoint(item.parts))


class Flow:
    """The nodes of a function that can be reached, the entry first.

    touched   (instruction) -> the registers that it writes, and those that it reads
    exiting   the functions behind whose call a thread may be at its end
    """

    def __init__(
        self,
        source: Source,
        function: PtxFunction,
        touched: Callable[[Instruction], tuple[list[Register], list[Register]]],
        at_return: Sequence[Register] = (),
        exiting: Collection[str] = (),
    ) -> None:
        self.source, self.function, self.touched, self.at_return = source, function, touched, at_return
        self.exiting = exiting
        entry, ways = self._split(), attrgetter("ways")
        self.nodes = reverse_postorder(entry, ways)
        self.predecessors: dict[PtxBlock, list[PtxBlock]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            for way in dict.fromkeys(node.ways):
                self.predecessors[way].append(node)
        self.parents = immediate_dominators(entry, ways)
        for node in self.nodes[1:]:
            self.parents[node].children.append(node)
        self._place_arguments()

    # ------------------------------------------------------------------------------------------ blocks

    def _has_waits(self) -> bool:
        items = [each for each in self.function.body or () if isinstance(each, Instruction) and each.stem not in ENDS]
        return any(
            _polls(item) or (row_of(self.source, item).waits and item.operands != (PtxLiteral(0),)) for item in items
        )

    def _split(self) -> PtxBlock:
        # A branch to the first label goes to the node after the entry, which nothing branches to.
        entry = current = PtxBlock()
        labels: dict[str, PtxBlock] = {}
        jumps: list[tuple[PtxBlock, Sequence[str], Instruction]] = []
        is_open, waits = True, self._has_waits()
        for item in self.function.body or ():
            if isinstance(item, Label):
                if item.name in labels:
                    raise fault(ParseError, self.source, item, f"label '{item.name}' is defined twice")
                following = labels[item.name] = PtxBlock()
                if is_open:
                    current.ways = [following]
                current, is_open = following, True
                continue
            is_end = item.stem in ENDS
            may_exit = item.stem == "call" and self._may_exit(item)
            if not is_end:
                row = row_of(self.source, item)
                if not (waits and row.waits) and (item.guard is None or row.is_pure) and not may_exit:
                    current.instructions.append(item)
                    continue
            target, after = PtxBlock(), PtxBlock()
            if not is_end:
                target.instructions, target.ways = [item], [after]
                if may_exit:
                    target.guard, target.ways, target.end = (EXITED, True), [PtxBlock(exits=True), after], item
            else:
                target.end, target.exits = item, item.stem == "exit"
                is_reached = not (current.instructions and is_trap(current.instructions[-1]))
                jumps.append((target, self._labels(item) if is_reached else (), item))
            current.guard, current.end = item.guard, item
            current.ways = [target] if item.guard is None else [target, after]
            current, is_open = after, item.guard is not None or not is_end
        for node, names, item in jumps:
            for name in names:
                if name not in labels:
                    raise fault(ParseError, self.source, item, f"label '{name}' is not defined")
            node.ways = [labels[name] for name in names]
            node.selector = item.operands[0] if item.stem == "brx" else None
        return entry

    def _may_exit(self, call: Instruction) -> bool:
        callee = call_parts(call)[1]
        return isinstance(callee, SymbolAddress) and callee.name in self.exiting

    def _labels(self, item: Instruction) -> Sequence[str]:
        """The labels that a branch may go to; none for a return. raises ParseError, Unsupported"""
        if item.stem in ("ret", "exit"):
            if item.operands:
                raise fault(ParseError, self.source, item, f"'{item.name}' has no operands")
            return ()
        target = item.operands[-1] if item.operands else None
        if not isinstance(target, SymbolAddress) or len(item.operands) != (1 if item.stem == "bra" else 2):
            raise fault(ParseError, self.source, item, "a branch needs a label")
        if item.stem == "bra":
            return (target.name,)
        if (table := self.function.tables.get(target.name)) is None:
            raise fault(ParseError, self.source, item, f"'{target.name}' is no list of branch targets")
        return table

    # ------------------------------------------------------------------------------------------ arguments

    def _place_arguments(self) -> None:
        writes: dict[PtxBlock, set[Register]] = {}
        live: dict[PtxBlock, set[Register]] = {}
        defined: dict[Register, list[PtxBlock]] = {}
        for node in self.nodes:
            written, read = set[Register](), set[Register]()
            for instruction in node.instructions:
                results, operands = self.touched(instruction)
                read.update(register for register in operands if register not in written)
                written.update(results)
            ending = [node.guard[0]] if node.guard else list(() if node.ways else self.at_return)
            if isinstance(node.selector, Register):
                ending = [node.selector]
            read.update(register for register in ending if register not in written)
            writes[node], live[node] = written, read
            for register in written:
                defined.setdefault(register, []).append(node)
        # Liveness at the start of each node, by a worklist.
        pending = dict.fromkeys(self.nodes)
        while pending:
            node, _ = pending.popitem()
            for before in self.predecessors[node]:
                if added := live[node] - writes[before] - live[before]:
                    live[before] |= added
                    pending[before] = None
        frontiers: dict[PtxBlock, list[PtxBlock]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            before = self.predecessors[node]
            for runner in before if len(before) > 1 else ():
                while runner is not self.parents[node]:
                    frontiers[runner].append(node)
                    runner = self.parents[runner]
        for register, nodes in defined.items():
            work, seen = [*nodes, self.nodes[0]], set[PtxBlock]()
            while work:
                for node in frontiers[work.pop()]:
                    if register in live[node] and node not in seen:
                        seen.add(node)
                        node.arguments.append(register)
                        work.append(node)
        for node in self.nodes:
            node.arguments.sort(key=attrgetter("name"))
