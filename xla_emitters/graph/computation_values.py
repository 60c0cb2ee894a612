"""The arrays of a control computation: the instruction that makes each, its last read, and which arrays share memory.

    %w = (s32[], f32[8]) while(%s)              leaves of %w: (while, 0), (while, 1)
    %x = f32[8] get-tuple-element(%w), index=1  leaf of %x: (while, 1)         tuples and bitcasts only name existing leaves
    %u = f32[8] fusion(%x, ...), an update      leaf of %u: (u, 0), in the memory of (while, 1) if no later instruction reads that leaf

A *leaf* is an instruction and the number of an array in its result. Leaves that share memory are a *buffer*, named by its first leaf:
an update in place has the buffer of its operand, a loop's result has the buffer of the loop's initial value. Both hold only if no
instruction reads the old value afterwards; otherwise the new value has its own buffer, which starts as a copy.
A state leaf that a loop does not change is not made by the loop: its result is the initial value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    callees_of,
)
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.dialects.hlo.types import leaf_types
from xla_emitters.graph.buffers import aliases_of
from xla_emitters.graph.entry import is_same_memory, leaves_of_element
from xla_emitters.graph.view import FusionView
from xla_emitters.support.late_dataclass import dataclass

Leaf = tuple[HloOp, int]


@dataclass(frozen=True, eq=False)
class ComputationValues:
    """The arrays of one control computation; see the file's head.

    instructions  in program order, including those that only name existing leaves
    root          the leaves of the computation's result
    reads         leaf -> position of the last instruction that reads it, `end` for leaves of the root; unread leaves have no entry
    buffers       leaf -> the first leaf in the same memory
    starts        leaf that starts as a copy -> the leaf that is copied
    """

    computation: ComputationOp
    instructions: tuple[HloOp, ...]
    leaves: dict[SSAValue, tuple[Leaf, ...]]
    reads: dict[Leaf, int]
    buffers: dict[Leaf, Leaf] = field(default_factory=dict[Leaf, Leaf])
    starts: dict[Leaf, Leaf] = field(default_factory=dict[Leaf, Leaf])

    @property
    def end(self) -> int:
        """The position of the root: after the last instruction."""
        return len(self.instructions)

    @property
    def root(self) -> tuple[Leaf, ...]:
        return self.leaves[self.computation.root]

    def last_reads(self) -> dict[Leaf, int]:
        """Buffer -> position of the last instruction that reads or makes a leaf in it."""
        places = {op: place for place, op in enumerate(self.instructions)}
        last = dict[Leaf, int]()
        for leaf, buffer in self.buffers.items():
            last[buffer] = max(last.get(buffer, 0), self.reads.get(leaf, places[leaf[0]]))
        return last

    @property
    def unchanged_leaves(self) -> frozenset[int]:
        """For a loop's body: the numbers of the leaves of its parameter that it returns unchanged."""
        return frozenset(
            number
            for number, (op, at) in enumerate(self.root)
            if isinstance(op, ParameterOp) and (op.number.value.data, at) == (0, number)
        )


@dataclass(frozen=True, eq=False)
class ModuleValues:
    """Finds the values of a module's control computations, once for each computation.

    view   returns the view of a fusion
    """

    view: Callable[[FusionOp], FusionView]
    _found: dict[tuple[ComputationOp, bool], ComputationValues] = field(
        default_factory=dict[tuple[ComputationOp, bool], ComputationValues]
    )

    def of(self, computation: ComputationOp, *, is_state: bool = False) -> ComputationValues:
        """The values of a computation. `is_state`: it owns the memory of its parameters, as a loop's body does."""
        key = computation, is_state
        if key not in self._found:
            self._found[key] = self._values(computation, is_state)
        return self._found[key]

    def _values(self, computation: ComputationOp, is_state: bool) -> ComputationValues:
        instructions = tuple(computation.instructions)
        leaves, reads = dict[SSAValue, tuple[Leaf, ...]](), dict[Leaf, int]()
        for place, op in enumerate(instructions):
            leaves[op.result] = self._leaves(op, leaves)
            if not is_name(op):
                reads.update((leaf, place) for operand in op.operands for leaf in leaves[operand])
        reads.update((leaf, len(instructions)) for leaf in leaves[computation.root])
        values = ComputationValues(computation, instructions, leaves, reads)
        self._share_memory(values, is_state)
        return values

    def _leaves(self, op: HloOp, known: dict[SSAValue, tuple[Leaf, ...]]) -> tuple[Leaf, ...]:
        match op:
            case TupleOp():
                return tuple(leaf for operand in op.operands for leaf in known[operand])
            case GetTupleElementOp():
                first, count = leaves_of_element(op)
                return known[op.operands[0]][first : first + count]
            case BitcastOp() if is_same_memory(op):
                return known[op.operands[0]]
            case _ if op.opcode == "opt-barrier":  # it names its operand, and reads it where it is
                return known[op.operands[0]]
            case _:
                made = [(op, number) for number in range(len(leaf_types(op.result.type)))]
                if op.opcode == "while":
                    for number in self.of(callees_of(op)[1], is_state=True).unchanged_leaves:
                        made[number] = known[op.operands[0]][number]
                return tuple(made)

    def _share_memory(self, values: ComputationValues, is_state: bool) -> None:
        """Fills in `buffers` and `starts`."""
        last = dict[Leaf, int]()
        for place, op in enumerate(values.instructions):
            if is_name(op):
                continue
            taken = set[Leaf]()
            for leaf in dict.fromkeys(leaf for leaf in values.leaves[op.result] if leaf[0] is op):
                old, buffer = self._memory_of(leaf, values), leaf
                if old is not None:
                    shared = values.buffers[old]
                    is_own = is_state or not isinstance(shared[0], ParameterOp)
                    if is_own and last[shared] <= place and shared not in taken:
                        buffer = shared
                    else:
                        values.starts[leaf] = old
                taken.add(buffer)
                values.buffers[leaf] = buffer
                last[buffer] = max(last.get(buffer, place), values.reads.get(leaf, place))

    def _memory_of(self, leaf: Leaf, values: ComputationValues) -> Leaf | None:
        """The array whose memory a leaf should have: the updated operand, or a loop's initial value."""
        op, number = leaf
        if isinstance(op, FusionOp):
            updated = aliases_of(self.view(op)).get(number)
            return None if updated is None else values.leaves[updated][0]
        return values.leaves[op.operands[0]][number] if op.opcode == "while" else None


def is_name(op: HloOp) -> bool:
    """Whether an instruction makes no array and only names existing ones."""
    return isinstance(op, TupleOp | GetTupleElementOp) or (isinstance(op, BitcastOp) and is_same_memory(op))
