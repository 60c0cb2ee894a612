"""Cuts an HLO computation into functions, so that no code is emitted twice.

         param                 `log` is read at (d0, d1) by the add and at (d1, d0) by the transpose: emitted together with both,
           |                   its code would be emitted twice, and 2^n times with n such forks. So three functions:
          log
         |   \\                   @f_log(%param, i, j)         SUBGRAPH f_log { ROOT log }
         |  transpose            @f_transpose(%param, i, j)   SUBGRAPH f_transpose { ROOT transpose }
          \\   /                  @f_add(%param, i, j)         SUBGRAPH f_add { param, ROOT add }
           add

An instruction is emitted with its user if it has one user, or if all its users read it at the same index. "The same" is equality of
simplified indexing maps from the subgraph's root, so merging depends on how well maps simplify. An operand that an op reads in its
own branch or loop, or at an index known only at run time, is never merged with another read.
A hero separates subgraphs: each of its operands becomes a function, which the hero's emitter calls to read it. The epilogue, which
computes the root from the hero's element, also becomes one; it takes that element as an argument:

        exp -> transpose -> abs        @f_exp(%param, i, j)                    SUBGRAPH f_exp { param, ROOT exp }
                                       @f__epilogue__abs(%param, i, j, %t)     SUBGRAPH f__epilogue__abs { ROOT abs }

Users are visited before their operands. An instruction that starts a subgraph drops the maps of its users, so the work is linear even
where the number of paths is exponential. A subgraph of 2000 instructions is cut where only one value crosses the cut; elsewhere, both
parts would compute the same values (docs/decisions/07-where-large-subgraphs-are-cut.md).
Source: seed document, "Partitioning"; docs/reference/1 4.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property, lru_cache
from typing import TypeAlias

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import identity_map
from xla_emitters.dialects.hlo.base import HloOp, owner_of
from xla_emitters.dialects.hlo.computation import ComputationOp, ParameterOp, TupleOp
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.types import dims_of, leaf_types, type_text
from xla_emitters.rewrite.kernel_entry import sanitize
from xla_emitters.support.late_dataclass import dataclass
from xla_emitters.text.hlo.hlo_literals import literal_text

SUBGRAPH_LIMIT = 2000
"""The most instructions in one function: later passes and LLVM are worse than linear in the size of a function."""

NESTING_LIMIT = 16
"""The most nested regions around an instruction of a function: a chain of pads nests one in the other."""

_GIVEN = (ParameterOp, ConstantOp)

MOVES_ONLY = frozenset(
    ("bitcast", "broadcast", "constant", "copy", "iota", "parameter", "reshape", "reverse", "slice", "transpose")
)
"""Opcodes that compute nothing: a function of these alone is inlined at no cost."""


@dataclass(frozen=True, eq=False)
class Epilogue:
    """The computation after the heroes: one element of each root, from elements of heroes.

    roots     the function's indices are those of the first root
    heroes    their elements are the function's last arguments
    root_maps per root, the map from an index of the first root to an index of this root
    """

    roots: tuple[HloOp, ...]
    heroes: tuple[HloOp, ...]
    root_maps: tuple[IndexingMap, ...]


@dataclass(frozen=True, eq=False)
class Subgraph:
    """The instructions of one function.

    name          of the function
    root          the function computes one element of it, or of each array in it
    instructions  operands before users; the root is last
    epilogue      its roots and heroes, if the function takes elements of heroes
    """

    name: str
    root: HloOp
    instructions: tuple[HloOp, ...]
    epilogue: Epilogue | None = None

    @cached_property
    def members(self) -> frozenset[HloOp]:
        return frozenset(self.instructions)

    @property
    def roots(self) -> tuple[HloOp, ...]:
        """The instructions that the function computes an element of: several for an epilogue."""
        return self.epilogue.roots if self.epilogue else (self.root,)

    @property
    def injected(self) -> tuple[HloOp, ...]:
        """The instructions whose elements are the function's last arguments."""
        return self.epilogue.heroes if self.epilogue else ()

    @property
    def index_dims(self) -> tuple[int, ...]:
        """Sizes of the dimensions that the function's indices run over: the root's, or those of the first array in it."""
        return dims_of(leaf_types(self.root.result.type)[0])

    @property
    def moves_only(self) -> bool:
        return all(op.opcode in MOVES_ONLY for op in self.instructions)

    def __str__(self) -> str:
        lines = [_line(op, op in self.roots) for op in self.instructions]
        return "\n".join((f"SUBGRAPH {self.name}{' no_compute' if self.moves_only else ''} {{", *lines, "}"))


def _line(op: HloOp, is_root: bool) -> str:
    match op:
        case ParameterOp():
            inside = str(op.number.value.data)
        case ConstantOp():
            inside = "{...}" if op.value is None else literal_text(op.value)
        case _:
            owners = (operand.owner for operand in op.operands)
            inside = ", ".join(f"%{owner.instruction_name.data}" for owner in owners if isinstance(owner, HloOp))
    shape = type_text(op.result.type, True)
    return f"  {'ROOT ' if is_root else ''}%{op.instruction_name.data} = {shape} {op.opcode}({inside})"


@dataclass(frozen=True, eq=False)
class PartitionedComputation:
    """A computation and its subgraphs; the subgraph of the computation's root is the first.

    epilogues  functions that compute roots from elements of heroes; their instructions may be in other subgraphs too
    """

    computation: ComputationOp
    subgraphs: tuple[Subgraph, ...]
    subgraph_of: dict[HloOp, Subgraph]
    epilogues: tuple[Subgraph, ...] = ()

    @property
    def root(self) -> Subgraph:
        return self.subgraphs[0]

    @property
    def sizes(self) -> dict[str, int]:
        """The number of instructions of each function."""
        return {subgraph.name: len(subgraph.instructions) for subgraph in (*self.subgraphs, *self.epilogues)}

    @property
    def summary(self) -> str:
        """`2 functions: gelu_multiply_0 (12 instructions), gelu_log_0 (1 instruction)`"""
        shown = [f"{name} ({count} instruction{'' if count == 1 else 's'})" for name, count in self.sizes.items()]
        return f"{len(shown)} function{'' if len(shown) == 1 else 's'}: {', '.join(shown)}"

    def __str__(self) -> str:
        """The dump printed by `--stage partition`."""
        head = f"PartitionedComputation {self.computation.sym_name.data}:"
        return "\n".join((head, *map(str, self.subgraphs), *map(str, self.epilogues)))


_Reading: TypeAlias = tuple[IndexingMap, tuple[tuple[HloOp, int], ...]]
"""A read of an instruction: its index as a map from the subgraph's root, and the operands on the path that are read in their own region."""


@dataclass
class _State:
    """The facts about an instruction that its users, which are visited first, have recorded."""

    indexings: set[_Reading] = field(default_factory=set["_Reading"])
    user_subgraphs: set[int] = field(default_factory=set[int])
    subgraph: int = -1


def partition(
    computation: ComputationOp,
    starts: Callable[[HloOp], bool] = lambda _: False,
    epilogues: Sequence[Epilogue] = (),
) -> PartitionedComputation:
    """The subgraphs of `computation`; an instruction for which `starts` is true is the root of its own subgraph.

    epilogues  become functions of their own; their heroes, and the operands of these, are roots of subgraphs
    raises     Unsupported for an instruction that has no indexing map
    """
    heroes = {hero for epilogue in epilogues for hero in epilogue.heroes}
    apart = heroes | {operand.owner for hero in heroes for operand in hero.operands}
    order = list(post_order(computation))
    uses = Counter(operand.owner for op in order for operand in op.operands)
    states = {op: _State() for op in order}
    roots = list[HloOp]()
    sizes = list[int]()

    def start(op: HloOp, state: _State) -> None:
        state.subgraph = len(roots)
        state.indexings = set()
        roots.append(op)
        sizes.append(1)

    awaited = set[HloOp]()  # not yet visited instructions that compute something and that a visited instruction uses
    for op in reversed(order):
        state = states[op]
        awaited.discard(op)
        is_deep = any(len(nested) > NESTING_LIMIT for _, nested in state.indexings)
        if op in apart or starts(op) or is_deep or len(state.user_subgraphs) != 1 or len(state.indexings) > 1:
            start(op, state)
        else:
            (state.subgraph,) = state.user_subgraphs
            if sizes[state.subgraph] >= SUBGRAPH_LIMIT and uses[op] == 1 and not awaited:
                start(op, state)
            else:
                sizes[state.subgraph] += 1
        if op in heroes:
            # An operand of a hero is a function of its own wherever it is read, so it must not have a map.
            for operand in op.operands:
                states[owner_of(operand)].user_subgraphs.add(state.subgraph)
        else:
            _record_operands(op, state, roots[state.subgraph] is op, states)
        for operand in op.operands:
            if isinstance(operand.owner, HloOp) and not isinstance(operand.owner, _GIVEN):
                awaited.add(operand.owner)

    members: list[list[HloOp]] = [[] for _ in roots]
    for op in order:
        members[states[op].subgraph].append(op)
    name = computation.sym_name.data
    subgraphs = tuple(
        Subgraph(sanitize(f"{name}_{root.instruction_name.data}"), root, tuple(ops))
        for root, ops in zip(roots, members, strict=True)
    )
    subgraph_of = {op: subgraphs[states[op].subgraph] for op in order}
    ends = tuple(_epilogue_subgraph(name, epilogue, order, subgraph_of) for epilogue in epilogues)
    return PartitionedComputation(computation, subgraphs, subgraph_of, ends)


def partition_called(computations: Iterable[ComputationOp]) -> dict[str, PartitionedComputation]:
    """Partitions the computations that instructions call for each element; keyed by name."""
    return {computation.sym_name.data: partition(computation) for computation in computations}


def _epilogue_subgraph(
    computation: str, epilogue: Epilogue, order: Sequence[HloOp], subgraph_of: Mapping[HloOp, Subgraph]
) -> Subgraph:
    """The function of `epilogue`: the instructions between its heroes and its roots, and those that have no other users."""
    heroes = frozenset(epilogue.heroes)
    depends = set(heroes)
    for op in order:
        if any(operand.owner in depends for operand in op.operands):
            depends.add(op)
    members = set[HloOp]()
    pending = list(epilogue.roots)
    while pending:
        op = pending.pop()
        if op in members or op in heroes:
            continue
        members.add(op)
        for operand in op.operands:
            owner = owner_of(operand)
            if owner in depends or subgraph_of[owner].root is not owner:
                pending.append(owner)
    names = "_".join(root.instruction_name.data for root in epilogue.roots)
    name = sanitize(f"{computation}__epilogue__{names}")
    return Subgraph(name, epilogue.roots[0], tuple(op for op in order if op in members), epilogue)


def _record_operands(op: HloOp, state: _State, is_root: bool, states: dict[HloOp, _State]) -> None:
    """Records for each operand of `op` which subgraph reads it, and the map from that subgraph's root to the operand's index."""
    for number, (operand, step) in enumerate(zip(op.operands, operand_maps(op), strict=True)):
        known = states[owner_of(operand)]
        known.user_subgraphs.add(state.subgraph)
        if is_root:
            reached, apart = _through(None, step), ()
        elif state.indexings:
            ((own, apart),) = state.indexings
            reached = _through(own, step)
        else:
            continue
        if isinstance(operand.owner, _GIVEN):
            apart = ()
        elif op.reads_apart(number):
            apart = (*apart, (op, number))
        # An operand that is never read, such as an operand of a concatenate that a slice cuts off, does not count as a reader.
        if not reached.is_known_empty:
            known.indexings.add((reached, apart))


@lru_cache(maxsize=4096)
def _through(own: IndexingMap | None, step: IndexingMap) -> IndexingMap:
    """`step` composed with `own`, simplified, so that equal maps compare equal. Cached: chains of ops repeat the same pair."""
    reached = step if own is None else own.compose(step)
    return reached.simplify().remove_unused_symbols()[0]


def operand_maps(op: HloOp) -> tuple[IndexingMap, ...]:
    """For each operand, the map from an element of the result to the operand's elements that it needs; for a tuple, per element."""
    if isinstance(op, TupleOp):
        return tuple(identity_map(dims_of(leaf_types(operand.type)[0])) for operand in op.operands)
    return op.output_to_input()


def post_order(computation: ComputationOp) -> Iterator[HloOp]:
    """The instructions that the root needs, operands before users and in operand order. Not recursive."""
    root = owner_of(computation.root)
    seen = {root}
    pending = [(root, iter(root.operands))]
    while pending:
        op, operands = pending[-1]
        for operand in operands:
            if isinstance(operand.owner, HloOp) and operand.owner not in seen:
                seen.add(operand.owner)
                pending.append((operand.owner, iter(operand.owner.operands)))
                break
        else:
            pending.pop()
            yield op
