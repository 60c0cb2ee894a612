"""Dependencies between the ops of a block, and clusters of ops that grow without making a cycle.

    op1 %x -> %a; library %a -> %b; op2 %a, %b -> %c          op1 before library before op2, op1 before op2
                                                              op1 and op2 cannot be fused: the library call would be before and behind

An op runs after the ops that compute its operands; a reader of a buffer after its writers; a write or deallocation after all earlier
uses; and no op before an assertion that preceded it. Clusters are kept in a topological order. To
join two, only those between them in that order are visited and moved: those that depend on the first go behind both.
Source: Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs" (2006).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue, Use

from xla_emitters.buffers.buffer_uses import frees, leaves_the_block, writes
from xla_emitters.dialects.lmhlo import BufferOp


class FusionGraph:
    """Clusters of the ops of a block, named by the number of one of their ops: at first one per op, in program order.

    ops      of the block, without the terminator
    members  cluster -> numbers of its ops, ascending
    """

    def __init__(self, ops: Sequence[Operation]) -> None:
        self.ops = ops
        self.members = {number: [number] for number in range(len(ops))}
        self._cluster = list(range(len(ops)))
        self._before = _dependencies(ops)
        self._after = [set[int]() for _ in ops]
        for number, found in enumerate(self._before):
            for other in found:
                self._after[other].add(number)
        self._order: list[int | None] = list(range(len(ops)))
        self._rank = list(range(len(ops)))

    def cluster(self, number: int) -> int:
        """The cluster of an op."""
        return self._cluster[number]

    def can_join(self, a: int, b: int) -> bool:
        """Whether no path of dependencies leads from one cluster to the other through a third."""
        first, last = sorted((a, b), key=self._rank.__getitem__)
        return all(last not in self._after[between] for between in self._between(first, last))

    def join(self, a: int, b: int) -> int:
        """Merges two clusters for which `can_join` holds; returns the number of the merged one."""
        first, last = sorted((a, b), key=self._rank.__getitem__)
        start, end = self._rank[first], self._rank[last]
        behind = self._between(first, last)
        region = [other for other in self._order[start + 1 : end] if other is not None]
        moved = [other for other in region if other not in behind]
        self._place(start, [*moved, last, *(other for other in region if other in behind)], end)
        for neighbours, back in ((self._before, self._after), (self._after, self._before)):
            for other in neighbours[first]:
                back[other].discard(first)
                back[other].add(last)
            neighbours[last] |= neighbours[first]
            neighbours[last] -= {first, last}
            neighbours[first] = set()
        members = sorted((*self.members[last], *self.members.pop(first)))
        self.members[last] = members
        for number in members:
            self._cluster[number] = last
        return last

    def in_order(self) -> Iterator[int]:
        """The clusters in topological order."""
        return (cluster for cluster in self._order if cluster is not None)

    def in_late_order(self, late: Collection[int]) -> Iterator[int]:
        """As `in_order`, but each of `late` (independent of each other) is just before the first cluster that depends on it.

        One whose buffers are only freed keeps its place: no op in the block needs it.
        """
        waiting = dict[int, list[int]]()
        for cluster in self.in_order():
            after = self._after[cluster]
            if cluster in late and not all(isinstance(self.ops[other], memref.DeallocOp) for other in after):
                waiting.setdefault(min(after, key=self._rank.__getitem__), []).append(cluster)
            else:
                yield from waiting.pop(cluster, ())
                yield cluster

    def _place(self, start: int, clusters: Sequence[int], end: int) -> None:
        """Sets the order from `start` to `end`; unused places are empty."""
        empty = [None] * (end - start + 1 - len(clusters))
        self._order[start : end + 1] = [*empty, *clusters]
        for rank, cluster in enumerate(clusters, start + len(empty)):
            self._rank[cluster] = rank

    def _between(self, first: int, last: int) -> set[int]:
        """The clusters between two that depend on the first."""
        found, pending = set[int](), [first]
        while pending:
            for other in self._after[pending.pop()]:
                if other not in found and self._rank[other] < self._rank[last]:
                    found.add(other)
                    pending.append(other)
        return found


def _dependencies(ops: Sequence[Operation]) -> list[set[int]]:
    """For each op of a block, the numbers of the ops that must run before it."""
    numbers = {op: number for number, op in enumerate(ops)}
    before = [set[int]() for _ in ops]
    writers = dict[SSAValue, int]()
    readers = dict[SSAValue, list[int]]()
    barrier: int | None = None
    for number, op in enumerate(ops):
        found = before[number]
        if barrier is not None:
            found.add(barrier)
        for use in _uses_inside(op):
            value = use.operation.operands[use.index]
            if isinstance(value.owner, Operation) and value.owner in numbers:
                found.add(numbers[value.owner])
            if not isinstance(value.type, MemRefType):
                continue
            if value in writers:
                found.add(writers[value])
            if writes(use) or frees(use) or leaves_the_block(use):
                found.update(readers.pop(value, ()))
                writers[value] = number
            else:
                readers.setdefault(value, []).append(number)
        found.discard(number)
        if isinstance(op, BufferOp) and not op.outputs:
            barrier = number
    return before


def _uses_inside(op: Operation) -> Iterator[Use]:
    """The operands of an op and of all ops inside of it."""
    for inner in op.walk():
        yield from (Use(inner, index) for index in range(len(inner.operands)))
