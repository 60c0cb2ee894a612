"""The control flow of a function: basic blocks, and which registers each takes as arguments (standard SSA construction).

    entry ─┬─ cond %p1 ──> ^then(%r3) ──> ^join(%r3)          a register is a block's argument where several definitions meet,
           └───────────────────────────────^                and it is still read

An instruction under a guard that may not be computed elsewhere (an access, a barrier, a call) is a block of its own. So is each that waits
for other threads, where a kernel has one beside barriers of the whole block: threads wait at the start of a block.
Source: Cytron et al., "Efficiently computing static single assignment form and the control dependence graph" (1991), pruned by liveness;
Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from xla_emitters.errors import ParseError, Unsupported
from xla_emitters.support.source import Source
from xla_emitters.text.ptx.rows import STAGE, row_of
from xla_emitters.text.ptx.syntax import Function, Instruction, Label, Number, Operand, Register, Symbol


@dataclass(eq=False)
class Node:
    """A basic block.

    kind      of its end: "branch" to ways[0]; "choose": ways[0] where `guard` holds, else ways[1]; "switch" on `selector`; "return"
    end       the instruction that ends it, if there is one
    """

    number: int
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    kind: str = "return"
    ways: list[Node] = field(default_factory=list["Node"])
    guard: tuple[Register, bool] | None = None
    selector: Operand | None = None
    end: Instruction | None = None
    arguments: list[Register] = field(default_factory=list[Register])
    children: list[Node] = field(default_factory=list["Node"])


ENDS = ("bra", "brx", "ret", "exit")


class Flow:
    """The nodes of a function that can be reached, the entry first.

    touched   (instruction) -> the registers that it writes, and those that it reads
    """

    def __init__(
        self,
        source: Source,
        function: Function,
        touched: Callable[[Instruction], tuple[list[Register], list[Register]]],
        at_return: Sequence[Register] = (),
    ) -> None:
        self.source, self.function, self.touched, self.at_return = source, function, touched, at_return
        self.nodes = _reverse_postorder(self._split())
        for number, node in enumerate(self.nodes):
            node.number = number
        self.predecessors: dict[Node, list[Node]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            for way in dict.fromkeys(node.ways):
                self.predecessors[way].append(node)
        self.parents = self._dominators()
        for node in self.nodes[1:]:
            self.parents[node].children.append(node)
        self._place_arguments()

    # ------------------------------------------------------------------------------------------ blocks

    def _has_waits(self) -> bool:
        items = [
            item for item in self.function.body or () if isinstance(item, Instruction) and item.parts[0] not in ENDS
        ]
        return any(row_of(self.source, item).waits and item.operands != (Number(0),) for item in items)

    def _split(self) -> Node:
        # A branch to the first label goes to the node after the entry, which nothing branches to.
        entry = current = Node(0)
        labels: dict[str, Node] = {}
        jumps: list[tuple[Node, Sequence[str], Instruction]] = []
        open_end, waits = True, self._has_waits()
        for item in self.function.body or ():
            if isinstance(item, Label):
                if item.name in labels:
                    raise self._error(f"label '{item.name}' is defined twice", item.start, item.start + len(item.name))
                following = labels[item.name] = Node(0)
                if open_end:
                    current.kind, current.ways = "branch", [following]
                current, open_end = following, True
                continue
            if not open_end:
                current, open_end = Node(0), True
            stem = item.parts[0]
            if stem not in ENDS:
                row = row_of(self.source, item)
                is_wait = waits and row.waits
                if not is_wait and (item.guard is None or row.is_pure):
                    current.instructions.append(item)
                    continue
                inside, after = Node(0, [item]), Node(0)
                inside.kind, inside.ways = "branch", [after]
                current.kind, current.ways, current.end = "branch", [inside], item
                if item.guard is not None:
                    current.kind, current.guard, current.ways = "choose", item.guard, [inside, after]
                current = after
                continue
            target = Node(0)
            if stem in ("ret", "exit"):
                if item.operands:
                    raise self._error(f"'{item.name}' has no operands", item.start, item.end)
                # After `trap`, which LLVM writes before it, it is not reached.
                is_reached = not (current.instructions and current.instructions[-1].parts == ("trap",))
                if stem == "exit" and not self.function.is_entry and is_reached:
                    place = self.source.place(item.start, item.end)
                    raise Unsupported("'exit' in a function that is called", stage=STAGE, place=place)
                target.kind, target.end = "return", item
            else:
                target.end = item
                jumps.append((target, self._labels(item), item))
            if item.guard is None:
                current.kind, current.ways, current.end, open_end = "branch", [target], item, False
            else:
                after = Node(0)
                current.kind, current.guard, current.ways, current.end = "choose", item.guard, [target, after], item
                current = after
        for node, names, item in jumps:
            for name in names:
                if name not in labels:
                    raise self._error(f"label '{name}' is not defined", item.start, item.end)
            node.ways = [labels[name] for name in names]
            node.kind = "branch" if item.parts[0] == "bra" else "switch"
            node.selector = None if item.parts[0] == "bra" else item.operands[0]
        return entry

    def _labels(self, item: Instruction) -> Sequence[str]:
        target = item.operands[-1] if item.operands else None
        if not isinstance(target, Symbol) or len(item.operands) != (1 if item.parts[0] == "bra" else 2):
            raise self._error("a branch needs a label", item.start, item.end)
        if item.parts[0] == "bra":
            return (target.name,)
        if (table := self.function.tables.get(target.name)) is None:
            raise self._error(f"'{target.name}' is no list of branch targets", item.start, item.end)
        return table

    def _error(self, message: str, start: int, end: int) -> ParseError:
        return ParseError(message, stage=STAGE, place=self.source.place(start, end))

    # ------------------------------------------------------------------------------------------ dominators

    def _dominators(self) -> dict[Node, Node]:
        entry = self.nodes[0]
        parents = {entry: entry}
        changed = True
        while changed:
            changed = False
            for node in self.nodes[1:]:
                found: Node | None = None
                for other in self.predecessors[node]:
                    if other not in parents:
                        continue
                    if found is None:
                        found = other
                        continue
                    while found is not other:
                        if found.number > other.number:
                            found = parents[found]
                        else:
                            other = parents[other]
                assert found is not None
                if parents.get(node) is not found:
                    parents[node], changed = found, True
        return parents

    # ------------------------------------------------------------------------------------------ arguments

    def _place_arguments(self) -> None:
        writes: dict[Node, set[Register]] = {}
        live: dict[Node, set[Register]] = {}
        defined: dict[Register, list[Node]] = {}
        for node in self.nodes:
            written, read = set[Register](), dict[Register, None]()
            for instruction in node.instructions:
                results, operands = self.touched(instruction)
                read.update((register, None) for register in operands if register not in written)
                written.update(results)
            ending: Iterable[Register] = [node.guard[0]] if node.guard and node.kind == "choose" else []
            if isinstance(node.selector, Register):
                ending = [node.selector]
            if node.kind == "return":
                ending = self.at_return
            read.update((register, None) for register in ending if register not in written)
            writes[node], live[node] = written, set(read)
            for register in written:
                defined.setdefault(register, []).append(node)
        # Liveness at the start of each node, by a worklist.
        pending = list(self.nodes)
        waiting = set(pending)
        while pending:
            node = pending.pop()
            waiting.discard(node)
            for before in self.predecessors[node]:
                added = live[node] - writes[before] - live[before]
                if added:
                    live[before] |= added
                    if before not in waiting:
                        waiting.add(before)
                        pending.append(before)
        frontiers: dict[Node, list[Node]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            before = self.predecessors[node]
            for runner in before if len(before) > 1 else ():
                while runner is not self.parents[node]:
                    frontiers[runner].append(node)
                    runner = self.parents[runner]
        placed: dict[Node, dict[Register, None]] = {node: {} for node in self.nodes}
        for register, nodes in defined.items():
            work = [*nodes, self.nodes[0]]
            seen = set(work)
            while work:
                for node in frontiers[work.pop()]:
                    if register in live[node] and register not in placed[node]:
                        placed[node][register] = None
                        if node not in seen:
                            seen.add(node)
                            work.append(node)
        for node, registers in placed.items():
            node.arguments = sorted(registers, key=lambda register: register.name)


def _reverse_postorder(entry: Node) -> list[Node]:
    order, seen, stack = list[Node](), {entry}, [(entry, iter(entry.ways))]
    while stack:
        node, ways = stack[-1]
        for way in ways:
            if way not in seen:
                seen.add(way)
                stack.append((way, iter(way.ways)))
                break
        else:
            order.append(node)
            stack.pop()
    return order[::-1]
