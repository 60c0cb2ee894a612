"""The hero of a result: the instruction whose access pattern decides how the whole fusion is emitted.

    p ── exp ── transpose ── abs ── ROOT        hero of ROOT: transpose. exp is computed on the way into shared memory (prologue),
                                                abs on the way out (epilogue)
    p ── reduce ── log ── add(., c) ── ROOT     hero of ROOT: ROOT itself. A reduce is only found through ops of one operand.

The search goes from the root to the operands, through instructions that keep places: element i of the result, in memory order, is computed
from element i of the operands. So on every path from a hero to its root, an element of the root needs the hero's element at the same place.
A transpose (or a concatenate) is the hero if it is the only one found and all its users keep places, too. Otherwise the hero is a reduce at
the end of a chain of single operands, if there is one; otherwise the root itself.
Source: seed document, "Hero-based codegen"; docs/reference/2 1.2-1.5.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from xla_emitters.algebra.expression import ExprKind
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import reshape_map
from xla_emitters.dialects.hlo.base import HloOp, owner_of
from xla_emitters.dialects.hlo.computation import TupleOp
from xla_emitters.dialects.hlo.elementwise import is_elementwise_or_map
from xla_emitters.dialects.hlo.shape_ops import BitcastOp, ReshapeOp, TransposeOp, same_place
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array, minor_to_major, type_text
from xla_emitters.graph.transposes import TransposeDescription, describe_transpose
from xla_emitters.graph.view import FusionView, once_per_view
from xla_emitters.support.late_dataclass import dataclass

EPILOGUE_OPERANDS = 3
"""The largest number of operands of an elementwise op: select and clamp have three."""


def find_non_trivial_hero(view: FusionView, root: HloOp) -> HloOp:
    """The hero of `root`, one of `view.roots`."""
    return _search(view).hero_of(root)


@once_per_view
def _search(view: FusionView) -> _Search:
    return _Search(view)


class _Search:
    """The results of searching a fusion. Each instruction is visited once, so the work is linear, however many roots there are.

    end            instruction -> the end of the chain of single operands that starts there
    reached        per kind of hero: instruction -> the heroes found from it, two at most
    used_in_place  hero -> whether all its direct and indirect users keep places
    """

    def __init__(self, view: FusionView) -> None:
        self.view = view
        self.keeps_places = {op for op in view.instructions if keeps_places(op, EPILOGUE_OPERANDS)}
        self.end: dict[HloOp, HloOp] = {}
        self.reached: tuple[dict[HloOp, tuple[HloOp, ...]], ...] = ({}, {})
        self.used_in_place: dict[HloOp, bool] = {}
        for op in view.instructions:
            operands = [owner_of(operand) for operand in op.operands] if op in self.keeps_places else []
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
"""In search order."""


def keeps_places(op: HloOp, most_operands: int) -> bool:
    """Whether `op` has at most `most_operands` operands and computes element i, in memory order, from element i of its operands."""
    if not 1 <= len(op.operands) <= most_operands:
        return False
    if is_elementwise_or_map(op):
        order = minor_to_major(op.result.type)
        return all(not dims_of(operand) or minor_to_major(operand.type) == order for operand in op.operands)
    return is_bitcast(op)


def is_bitcast(op: HloOp) -> bool:
    """Whether `op` keeps every element's place in memory: a bitcast, or a reshape or transpose whose layouts make it one."""
    if not isinstance(op, BitcastOp | ReshapeOp | TransposeOp):
        return False
    if element_of(op.operands[0]).bits != element_of(op.result).bits:
        return False
    return isinstance(op, BitcastOp) or same_place(op.result.type, op.operands[0].type) == op.output_to_input()[0]


def place_map(source: HloOp, target: HloOp) -> IndexingMap:
    """The map from an index of `source`'s result to the index of `target`'s result at the same place in memory.

    For a hero and its root: the instructions between them keep places.
    """
    return same_place(source.result.type, target.result.type)


# ------------------------------------------------------------------------------------------- transposes


@dataclass(frozen=True, eq=False)
class TransposeHeroes:
    """The transposes that one kernel of a fusion computes.

    first         their common description
    heroes        root -> its transpose, in the order of the roots
    side_outputs  the other roots: computed from the elements that the transposes read, at the same index
    """

    first: TransposeDescription
    heroes: dict[HloOp, HloOp]
    side_outputs: tuple[HloOp, ...]


@once_per_view
def find_transposes(view: FusionView) -> TransposeHeroes | str:
    """The transposes that are heroes, if they can share a kernel; otherwise why not."""
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
    """Whether `root` has the elements of the operand of `transpose`, in the same memory order, reshaped or with dims renamed."""
    one, other = root.result, transpose.operands[0]
    if prod(dims_of(one)) != prod(dims_of(other)):
        return False
    same = same_place(one.type, other.type)
    renamed = all(index.kind in (ExprKind.VARIABLE, ExprKind.CONSTANT) for index in same.results)
    return renamed or same == reshape_map(dims_of(one), dims_of(other))
