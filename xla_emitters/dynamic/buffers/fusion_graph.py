"""Dependencies between the ops of a block, and clusters of ops that grow without making a cycle.

    op1 %x -> %a; library %a -> %b; op2 %a, %b -> %c          op1 before library before op2, op1 before op2
                                                              op1 and op2 cannot be fused: the library call would be before and behind

An op runs after the ops that compute its operands; a reader of a buffer after its writers; a write or deallocation after all earlier
uses; and no op before an assertion that preceded it. Clusters are kept in a topological order. To join two, only those between them in that
order that depend on the first are visited and moved: behind both.
Source: Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs" (2006).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue, Use

from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dialects.mlir import memref
from xla_emitters.dynamic.buffers.buffer_uses import frees, leaves_the_block, writes

GAP = 1 << 64
"""Distance of two neighbours' ranks at first: so many clusters can be moved between them."""


class FusionGraph:
    """Clusters of the ops of a block, named by the number of one of their ops: at first one per op, in program order.

    ops      of the block, without the terminator
    """

    def __init__(self, ops: Sequence[Operation]) -> None:
        self.ops = ops
        self._part_of = list(range(len(ops)))
        self._before = _dependencies(ops)
        self._after = [set[int]() for _ in ops]
        for number, found in enumerate(self._before):
            for other in found:
                self._after[other].add(number)
        # The order is a list of links, from the last place to the first one, which is the end's; a rank is larger than those before it.
        count = len(ops)
        self._next, self._previous = [*range(1, count + 1), 0], [count, *range(count)]
        self._rank = [number * GAP for number in range(count)]

    def cluster(self, number: int) -> int:
        """The cluster of an op."""
        part_of = self._part_of
        while part_of[number] != number:
            part_of[number] = number = part_of[part_of[number]]
        return number

    def can_join(self, a: int, b: int) -> bool:
        """Whether no path of dependencies leads from one cluster to the other through a third."""
        first, last = sorted((a, b), key=self._rank.__getitem__)
        return all(last not in self._after[between] for between in self._between(first, last))

    def join(self, a: int, b: int) -> int:
        """Merges two clusters for which `can_join` holds; returns the number of the merged one."""
        first, last = sorted((a, b), key=self._rank.__getitem__)
        behind = sorted(self._between(first, last), key=self._rank.__getitem__)
        small, large = sorted((first, last), key=lambda end: len(self._before[end]) + len(self._after[end]))
        self._unlink(first)
        if large == first:
            self._link(first, last)
            self._rank[first] = self._rank[last]
            self._unlink(last)
        self._move(behind, large)
        for neighbours, back in ((self._before, self._after), (self._after, self._before)):
            for other in neighbours[small]:
                back[other].discard(small)
                back[other].add(large)
            neighbours[large] |= neighbours[small]
            neighbours[large] -= {small, large}
            neighbours[small] = set()
        self._part_of[small] = large
        return large

    def in_order(self) -> Iterator[int]:
        """The clusters in topological order."""
        end = len(self.ops)
        cluster = self._next[end]
        while cluster != end:
            yield cluster
            cluster = self._next[cluster]

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

    def _unlink(self, cluster: int) -> None:
        before, behind = self._previous[cluster], self._next[cluster]
        self._next[before], self._previous[behind] = behind, before

    def _link(self, cluster: int, before: int) -> None:
        """Places a cluster just behind another."""
        behind = self._next[before]
        self._next[before] = self._previous[behind] = cluster
        self._previous[cluster], self._next[cluster] = before, behind

    def _move(self, clusters: Sequence[int], place: int) -> None:
        """Moves clusters behind the one at `place`, in their order."""
        for cluster in clusters:
            self._unlink(cluster)
        end = self._next[place]
        low = self._rank[place]
        step = (self._rank[end] - low if end < len(self.ops) else GAP * (len(clusters) + 1)) // (len(clusters) + 1)
        for cluster in clusters:
            self._link(cluster, place)
            place, low = cluster, low + step
            self._rank[cluster] = low
        if clusters and not step:  # no ranks are left between the two
            for number, cluster in enumerate(self.in_order()):
                self._rank[cluster] = number * GAP

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
