"""Where to cut a computation that cannot be one kernel: at its contractions and reductions, and before operands of contractions.

A contraction here is any instruction that a library computes: `dot` and `convolution`, but also `sort` and similar ones.

    p ── reduce(max) ── broadcast ──┐                          reduce   max          level 0
    p ─────────────────── subtract ─┴ exp ── reduce(add) ──┐   reduce   add          level 1: needs max
                                       └──────────── divide ── ROOT     epilogue     level 2: needs max and add

    s8 p ── convert ── dot(., x) ── add(., b) ── ROOT          prologue convert · dot · epilogue add

A *cut* is an instruction whose result is written to memory. Reductions and contractions are computed once; the parts that need their
results read them. All other instructions are computed again in each part that needs them: they are elementwise or move elements, and a
kernel's time depends on the bytes that it reads and writes. Of these others, only results are written, and operands of contractions that
are not yet in memory.

- A reduction with too little work for a warp is not a cut if each of its elements is used once, in one part: there it is a loop.
- After a reduction, the cut is at the end of a chain of unary ops whose elements are no wider: `log(reduce(..))` is one kernel.
- An instruction that keeps every element's place in memory (`is_bitcast`) is not a cut: the cut is before it.

Cuts of one level do not depend on each other. Cuts of one level that one kernel can compute are one part: reductions of the same shape,
together with results as large as the reductions' operands; and results of one shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp, owner_of
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp, GetTupleElementOp, ParameterOp, TupleOp
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.hlo.library_calls import is_library_call
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array, leaf_types
from xla_emitters.graph.heroes import is_bitcast, keeps_places
from xla_emitters.graph.reduction_kinds import Reduction, narrowest_bits, shared_reduction
from xla_emitters.graph.refusals import is_splittable_kind
from xla_emitters.graph.view import FusionView, once_per_view, view_of
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True)
class CutPart:
    """Cuts that one kernel, or one library call, makes.

    role   "reduce", "prologue", "epilogue", or a contraction's opcode
    cuts   instructions whose results are written; a contraction is the only one of its part
    reads  the values that the part reads: results of cuts at lower levels; for a reduction of several arrays, its elements
    """

    role: str
    cuts: tuple[HloOp, ...]
    reads: tuple[SSAValue, ...]


@once_per_view
def find_cuts(view: FusionView) -> tuple[CutPart, ...]:
    """The parts, each after those that it reads. A computation whose results are all parameters has no parts."""
    return tuple(_Cuts(view).parts())


def cut_bodies(module: ModuleOp) -> frozenset[ComputationOp]:
    """The computations inside fusions that are cut here: those that fusions for Triton and cuDNN call, and those nested in them."""
    views = (view_of(op) for op in module.walk() if isinstance(op, FusionOp))
    cut = [view for view in views if is_splittable_kind(view.other_compiler)]
    return frozenset(computation for view in cut for computation in (view.computation, *view.called))


def chains_of_cuts(body: ComputationOp) -> dict[ReduceOp, int]:
    """As `chains_of_heroes`, for a computation that is cut: each reduction that pays becomes the hero of its own kernel.

    The arrays that its part reads and writes are arrays of the body: the narrowest of the body's gives the longest chain.
    """
    reductions = [op for op in body.instructions if isinstance(op, ReduceOp)]
    bits = narrowest_bits([op.result.type for op in body.instructions if is_array(op.result.type)])
    return {op: shape.longest_chain(bits) for op in reductions if (shape := shared_reduction(op)) is not None}


def cut_before(value: SSAValue) -> SSAValue:
    """The value before instructions that change neither the places of elements in memory nor their type."""
    while is_bitcast(op := owner_of(value)) and element_of(op.operands[0]) == element_of(op.result):
        value = op.operands[0]
    return value


def _maker(value: SSAValue) -> HloOp:
    """The instruction that writes an array; for an element of a reduction of several arrays, the reduction."""
    op = owner_of(value)
    return owner_of(op.operands[0]) if isinstance(op, GetTupleElementOp) else op


@dataclass(eq=False)
class _Cuts:
    """The cuts of a computation, while they are collected.

    roles  cut -> its role
    """

    view: FusionView
    roles: dict[HloOp, str] = field(default_factory=dict[HloOp, str])

    def __post_init__(self) -> None:
        contractions = [op for op in self.view.instructions if is_library_call(op)]
        self.roles |= {op: op.opcode for op in contractions}
        for op in contractions:
            for operand in op.operands:
                self._add(operand, "prologue")
        for root in self.view.roots:
            self._add(root.result, "epilogue")
        # Users first: whether a reduction is a cut depends on the cuts after it.
        for op in reversed(self.view.instructions):
            if isinstance(op, ReduceOp) and not self._is_inside(op):
                self.roles[self._end_of_chain(op)] = "reduce"

    def _add(self, value: SSAValue, role: str) -> None:
        made = _maker(cut_before(value))
        if not isinstance(made, ParameterOp):
            self.roles.setdefault(made, role)

    def _users(self, op: HloOp) -> list[HloOp]:
        return [user for user in self.view.users[op] if not isinstance(user, TupleOp)]

    # ------------------------------------------------------------------------------------------- reductions

    def _is_inside(self, op: ReduceOp) -> bool:
        """Whether a reduction is computed as a loop inside a part with another hero."""
        if op in self.roles or shared_reduction(op) is not None or len(leaf_types(op.result.type)) > 1:
            return False
        return len(self._cuts_after(op)) == 1 and self._is_used_once(op)

    def _is_read(self, op: HloOp) -> bool:
        """Whether parts that need an instruction read its result instead of computing it again."""
        return is_library_call(op) or self.roles.get(op) == "reduce"

    def _cuts_after(self, op: HloOp) -> set[HloOp]:
        """The cuts that need an instruction."""
        found, pending, seen = set[HloOp](), [op], {op}
        while pending:
            for user in self._users(pending.pop()):
                if user in self.roles:
                    found.add(user)
                if not self._is_read(user) and user not in seen:
                    seen.add(user)
                    pending.append(user)
        return found

    def _is_used_once(self, op: HloOp) -> bool:
        """Whether every path from an instruction to a cut reads each of its elements at most once."""
        pending, seen = [op], {op}
        while pending:
            op = pending.pop()
            for user in self._users(op):
                if not _reads_once(user, op.result):
                    return False
                if not self._is_read(user) and user not in seen:
                    seen.add(user)
                    pending.append(user)
        return True

    def _end_of_chain(self, op: HloOp) -> HloOp:
        """The last of the unary ops after a reduction that keep elements in place and do not widen them."""
        end = op
        while op not in self.roles and len(users := self._users(op)) == 1:
            (user,) = users
            if not keeps_places(user, 1) or element_of(user.result).bits > element_of(end.result).bits:
                break
            op = user
            if op in self.roles or not is_bitcast(op):
                end = op
        return end

    # ------------------------------------------------------------------------------------------------ parts

    def parts(self) -> Iterator[CutPart]:
        """The parts, each after those that it reads."""
        levels = dict[HloOp, int]()
        reads = dict[HloOp, tuple[SSAValue, ...]]()
        for op in self.view.instructions:
            if op in self.roles:
                reads[op] = self._reads(op)
                levels[op] = 1 + max((levels[_maker(value)] for value in reads[op]), default=-1)
        groups = dict[object, list[HloOp]]()
        for op in sorted(levels, key=levels.__getitem__):
            alike = [other for other in levels if levels[other] == levels[op]]
            groups.setdefault((levels[op], self._kernel(op, alike)), []).append(op)
        for ops in groups.values():
            roles = [self.roles[op] for op in ops]
            together = tuple(dict.fromkeys(value for op in ops for value in reads[op]))
            yield CutPart("reduce" if "reduce" in roles else roles[0], tuple(ops), together)

    def _reads(self, cut: HloOp) -> tuple[SSAValue, ...]:
        """The results of other cuts that this cut is computed from."""
        if is_library_call(cut):
            in_memory = map(cut_before, cut.operands)
            return tuple(dict.fromkeys(value for value in in_memory if _maker(value) in self.roles))
        found, pending, seen = dict[SSAValue, None](), [*cut.operands], set[SSAValue]()
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            if self._is_read(_maker(value)):
                found[value] = None
            else:
                pending += owner_of(value).operands
        return tuple(found)

    def _kernel(self, cut: HloOp, level: Sequence[HloOp]) -> object:
        """A key that is equal for those cuts of one level that one kernel can compute."""
        if is_library_call(cut):
            return cut
        shapes = [shape for op in level if (shape := self._reduction(op)) is not None]
        read = {math.prod(shape.dims): shape for shape in reversed(shapes)}
        dims = dims_of(leaf_types(cut.result.type)[0])
        return self._reduction(cut) or read.get(math.prod(dims)) or dims

    def _reduction(self, cut: HloOp) -> Reduction | None:
        """The shared reduction whose chain ends at a cut; None if there is none."""
        if self.roles[cut] != "reduce":
            return None
        while not isinstance(cut, ReduceOp):
            cut = owner_of(cut.operands[0])
        return shared_reduction(cut)


def _reads_once(user: HloOp, value: SSAValue) -> bool:
    """Whether an instruction reads each element of a value at most once."""
    if is_elementwise(user):
        return dims_of(value) == dims_of(user.result)
    return user.READS_ONCE
