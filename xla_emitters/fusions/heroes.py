"""The hero of a result: the instruction whose way of reading decides how the whole fusion is emitted.

    p ── exp ── transpose ── abs ── ROOT        hero of ROOT: transpose. exp is computed on the way into shared memory (prologue),
                                                abs on the way out (epilogue)
    p ── reduce ── log ── add(., c) ── ROOT     hero of ROOT: ROOT itself. Only chains of one operand lead on to a reduce.

From the root towards the operands, through instructions that give element i of their result from element i of their operands,
counted in memory. So whatever the way from a hero to its root, an element of the one is needed for the element of the other at the same
place. A transpose (or a concatenate) that is found is the hero if it is the only one and everything that uses it keeps places too.
Else a reduce at the end of a chain of single operands is; else the root itself.
Source: seed document, "Hero-based codegen"; docs/reference/2 1.2-1.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import TupleOp
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.hlo.shape_ops import BitcastOp, ReshapeOp, TransposeOp, same_place
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array, minor_to_major, type_text
from xla_emitters.fusions.transposes import TransposeDescription, describe_transpose
from xla_emitters.fusions.view import FusionView, once_per_view
from xla_emitters.indexing import ExprKind, IndexingMap
from xla_emitters.indexing.shapes import reshape_map

EPILOGUE_OPERANDS = 3
"""select and clamp are the widest elementwise ops."""


def find_non_trivial_hero(view: FusionView, root: HloOp) -> HloOp:
    """The hero of `root`, one of `view.roots`."""
    return _search(view).hero_of(root)


@once_per_view
def _search(view: FusionView) -> _Search:
    return _Search(view)


class _Search:
    """All that is asked of a fusion's instructions, each once: the work is linear however many roots there are.

    end            where the chain of single operands ends that an instruction begins
    reached        per kind of hero, the heroes that an instruction leads to, two at most
    used_in_place  of heroes: whether all that uses them, and what uses that, keeps places
    """

    def __init__(self, view: FusionView) -> None:
        self.view = view
        self.keeps_places = {op for op in view.instructions if keeps_places(op, EPILOGUE_OPERANDS)}
        self.end: dict[HloOp, HloOp] = {}
        self.reached: tuple[dict[HloOp, tuple[HloOp, ...]], ...] = ({}, {})
        self.used_in_place: dict[HloOp, bool] = {}
        for op in view.instructions:
            operands = [_owner(operand) for operand in op.operands] if op in self.keeps_places else []
            self.end[op] = self.end[operands[0]] if len(operands) == 1 else op
            for is_hero, reached in zip(_HEROES, self.reached, strict=True):
                if is_hero(op):
                    reached[op] = (op,)
                else:
                    reached[op] = tuple(dict.fromkeys(hero for operand in operands for hero in reached[operand]))[:2]

    def hero_of(self, root: HloOp) -> HloOp:
        end = self.end[root]
        for reached in self.reached:
            if len(heroes := reached[end]) == 1 and self._is_used_in_place(heroes[0]):
                return heroes[0]
        return end if end.opcode == "reduce" else root

    def _is_used_in_place(self, hero: HloOp) -> bool:
        if (known := self.used_in_place.get(hero)) is None:
            known = self.used_in_place[hero] = self._users_keep_places(hero)
        return known

    def _users_keep_places(self, hero: HloOp) -> bool:
        pending, seen = [hero], {hero}
        while pending:
            for user in self.view.users[pending.pop()]:
                if isinstance(user, TupleOp) or user in seen:
                    continue
                if user not in self.keeps_places:
                    return False
                seen.add(user)
                pending.append(user)
        return True


def _is_tiled_transpose(op: HloOp) -> bool:
    return isinstance(describe_transpose(op), TransposeDescription)


def _is_concatenate(op: HloOp) -> bool:
    return op.opcode == "concatenate"


_HEROES: tuple[Callable[[HloOp], bool], ...] = (_is_tiled_transpose, _is_concatenate)
"""In the order in which they are looked for."""


def keeps_places(op: HloOp, most_operands: int) -> bool:
    """Whether `op`, of at most so many operands, gives element i of memory from element i of its operands."""
    if not 1 <= len(op.operands) <= most_operands:
        return False
    if is_elementwise(op):
        order = minor_to_major(op.result.type)
        return all(not dims_of(operand) or minor_to_major(operand.type) == order for operand in op.operands)
    return is_bitcast(op)


def is_bitcast(op: HloOp) -> bool:
    """Whether `op` leaves every element where it is: a bitcast, or a reshape or transpose that layouts make one."""
    if not isinstance(op, BitcastOp | ReshapeOp | TransposeOp):
        return False
    if element_of(op.operands[0]).bits != element_of(op.result).bits:
        return False
    return isinstance(op, BitcastOp) or same_place(op.result.type, op.operands[0].type) == op.output_to_input()[0]


def _owner(operand: SSAValue) -> HloOp:
    assert isinstance(operand.owner, HloOp)
    return operand.owner


def place_map(source: HloOp, target: HloOp) -> IndexingMap:
    """From an index of `source`'s result to the index of `target`'s at the same place in memory.

    For a hero and its root, where elements keep their places in between.
    """
    return same_place(source.result.type, target.result.type)


# ------------------------------------------------------------------------------------------- transposes


@dataclass(frozen=True, eq=False)
class TransposeHeroes:
    """The transposes of a fusion that one kernel makes.

    first         their common description
    heroes        root -> its transpose, in the order of the roots
    side_outputs  the other roots: computed from what the transposes read, at the place where they read it
    """

    first: TransposeDescription
    heroes: dict[HloOp, HloOp]
    side_outputs: tuple[HloOp, ...]


@once_per_view
def find_transposes(view: FusionView) -> TransposeHeroes | str:
    """The transposes that are heroes, if they can share a kernel; else why not."""
    described = dict[HloOp, TransposeDescription]()
    heroes = dict[HloOp, HloOp]()
    side_outputs = list[HloOp]()
    reasons = list[str]()
    for root in dict.fromkeys(view.roots):
        hero = find_non_trivial_hero(view, root)
        found = describe_transpose(hero)
        if isinstance(found, TransposeDescription):
            described[hero], heroes[root] = found, hero
        else:
            side_outputs.append(root)
            reasons.append(f"the hero of %{root.instruction_name.data} is %{hero.instruction_name.data}: {found}")
    if not described:
        return reasons[0]
    first, *others = described.values()
    for other in others:
        if not other.is_equivalent(first):
            return f"transposes of two kinds: {first} and {other}"
    for root in side_outputs:
        if not is_array(root.result.type) or not _is_relabeled(root, first.op):
            return f"a result is {type_text(root.result.type)}, and the transpose reads {type_text(first.op.operands[0].type)}"
    return TransposeHeroes(first, heroes, tuple(side_outputs))


def _is_relabeled(root: HloOp, transpose: HloOp) -> bool:
    """Whether `root` has the elements of what `transpose` reads, in the same order in memory, reshaped or with dims renamed."""
    one, other = root.result, transpose.operands[0]
    if prod(dims_of(one)) != prod(dims_of(other)):
        return False
    same = same_place(one.type, other.type)
    renamed = all(index.kind in (ExprKind.VARIABLE, ExprKind.CONSTANT) for index in same.results)
    return renamed or same == reshape_map(dims_of(one), dims_of(other))
