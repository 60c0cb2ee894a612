"""Merges a fusion with the only fusion that reads it, where no element of it would be computed twice. On HLO.

    a = f32[64,118,112,64] fusion(x), calls=pad_rows             b = f32[64,118,118,64] fusion(x), calls=b.merged
    b = f32[64,118,118,64] fusion(a), calls=pad_columns    ->        b.merged: what a and b compute, in one computation

XLA leaves such a pair where the reader reaches an element by several paths, or where both have a hero; the array between them is then
written and read for nothing. A pair is merged if it becomes one kernel of the reader's emitter, and if the reader needs at most
`REPEATS` times the elements that the first one has: each path counts the elements for which it is taken. Emitters are those whose
kernels compute an element where it is needed: loops, concatenates and transposes. Each element is computed by the same operations. What may
run beside an exchange between devices stays beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import inf, prod

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.algebra.shape_maps import identity_map
from xla_emitters.device import DEFAULT_DEVICE, device
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import CallOp, ComputationOp, FusionOp, enclosing_module
from xla_emitters.dialects.hlo.contractions import ContractingOp
from xla_emitters.dialects.hlo.gather_scatter import ScatterOp
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.emitters.emit import emitter_for
from xla_emitters.errors import XlaEmittersError
from xla_emitters.graph.control_computations import control_computations, fusions_of, loop_bodies
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.in_place_updates import find_in_place_updates
from xla_emitters.graph.indexing_analysis import indexing_of_operands
from xla_emitters.graph.names import Names
from xla_emitters.graph.overwrites import may_overwrite
from xla_emitters.graph.view import FusionView, is_scheduled, view_of
from xla_emitters.pipelines.row_groups import RowGroup, erase_fusion
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.support.late_dataclass import dataclass

REPEATS = 1.1
"""How often the merged kernel may compute an element of the first fusion, in the mean."""
MOST_PARAMETERS, MOST_INSTRUCTIONS = 64, 512
"""Of a merged kernel: more arguments than that have no registers, and longer code takes long to compile."""
LEAST_AT_ONCE, MOST_AT_ONCE = 3, 128
"""Fusions of a chain that are merged at once."""
_OF_ELEMENTS = ("loop", "concatenate", "transpose")
"""Emitters whose kernels compute an element where it is needed."""


@dataclass(frozen=True)
class MergeFusionsPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect in which bitcasts and constants are inside of fusions.

    target      the device that kernels are for
    hero_rules  as in the options of a compilation
    """

    name = "xla-merge-fusions"

    target: str = DEFAULT_DEVICE
    hero_rules: str = "current"

    def apply_to(self, op: ModuleOp) -> None:
        names = Names(op)
        for computation in control_computations(op):
            for reader in reversed(fusions_of(computation)):
                if reader.parent is None:  # it is merged
                    continue
                while (merged := self._chain(names, reader) or self._merged(names, reader)) is not None:
                    reader = merged
        self._emitters.clear()

    def _chain(self, names: Names, reader: FusionOp) -> FusionOp | None:
        """The reader with several fusions that lead to it one after the other, merged at once: each costs what it has, not what all have.

        None for fewer than two, which `_merged` takes. Each link is of loops, and each element is needed once, at the same place.
        """
        members, count = [reader], len(view_of(reader).instructions)
        given = set(reader.operands)
        while len(members) < MOST_AT_ONCE:
            last = members[-1]
            links = (value.owner for value in dict.fromkeys(last.operands))
            first = next((op for op in links if isinstance(op, FusionOp) and _is_read_once(op, last)), None)
            if first is None:
                break
            count += len(view_of(first).instructions)
            given = {value for value in given if value.owner is not first}.union(first.operands)
            if count > MOST_INSTRUCTIONS or len(given) > MOST_PARAMETERS or not self._is_link(first, last):
                break
            members.append(first)
        if len(members) < LEAST_AT_ONCE:
            return None
        group = RowGroup(tuple(reversed(members)), (reader.result,))
        made = group.merged(names, "merged")
        if self._why_not_merged(view_of(made), view_of(members[1]), view_of(reader)) is not None:
            erase_fusion(names, made)
            return None
        for first in members[1:]:
            self.remark(reader, f"it is one kernel with %{first.instruction_name.data}, which only it reads")
        group.replace(names, made)
        return made

    def _is_link(self, first: FusionOp, reader: FusionOp) -> bool:
        why, (repeats, is_same_place) = self._judged(first, reader)
        return why is None and self._emitter(view_of(first)) == "loop" and repeats <= 1 and is_same_place

    def _merged(self, names: Names, reader: FusionOp) -> FusionOp | None:
        """The reader with one of the fusions that it reads inside, in its place; None if there is none to merge."""
        for operand in dict.fromkeys(reader.operands):
            first = operand.owner
            if not isinstance(first, FusionOp) or not _is_read_once(first, reader):
                continue
            if (why := self._judged(first, reader)[0]) is not None:
                self.skip(reader, f"it is not merged with %{first.instruction_name.data}, which only it reads: {why}")
                continue
            group = RowGroup((first, reader), (reader.result,))
            made = group.merged(names, "merged")
            if (why := self._why_not_merged(view_of(made), view_of(first), view_of(reader))) is not None:
                self.skip(reader, f"it is not merged with %{first.instruction_name.data}, which only it reads: {why}")
                erase_fusion(names, made)
                continue
            self.remark(reader, f"it is one kernel with %{first.instruction_name.data}, which only it reads")
            group.replace(names, made)
            return made
        return None

    def _judged(self, first: FusionOp, reader: FusionOp) -> tuple[str | None, tuple[float, bool]]:
        """Why two fusions are not merged, from what each of them is, or None; and what `_reads` says of them."""
        count = len(view_of(first).instructions) + len(view_of(reader).instructions)
        why = f"they have {count} instructions" if count > MOST_INSTRUCTIONS else self._why_not(first, reader)
        if why is not None:
            return why, (inf, False)
        repeats, is_same_place = found = _reads(view_of(reader), reader, first)
        if self._emitter(view_of(first)) == "transpose" and not is_same_place:
            return "an element is needed at another place than the tiles have it", found
        if repeats > REPEATS:
            return f"each of its elements is needed {repeats:.3g} times", found
        return None, found

    def _why_not(self, first: FusionOp, reader: FusionOp) -> str | None:
        """Why two fusions are not merged, wherever the reader needs the elements of the first; or None."""
        for each in (first, reader):
            view = view_of(each)
            if is_scheduled(view):
                return f"%{view.name} has a schedule of programs"
            if view.other_compiler is not None or each.output_to_operand_aliasing is not None:
                return f"%{view.name} is for another compiler, or writes to an operand"
            if any(isinstance(op, FusionOp | CallOp) for op in view.computation.instructions):
                return f"%{view.name} holds other fusions"
            if any(isinstance(op, ReduceOp | ContractingOp | ScatterOp) for op in view.instructions):
                return f"%{view.name} reduces, multiplies matrices or scatters"
        of_first, of_reader = view_of(first), view_of(reader)
        if len(of_first.result_types) > 1:
            return "it has several results"
        if _is_in_place(first, of_first):
            return f"%{of_first.name} updates an array where it is"
        emitters = self._emitter(of_first), self._emitter(of_reader)
        if emitters[1] not in _OF_ELEMENTS or emitters[0] not in (emitters[1], "loop", "memcpy", "transpose"):
            return f"one has a kernel of the {emitters[0]} emitter, the other of the {emitters[1]} emitter"
        around = list(_between(first, reader))
        if waiting := next((op for op in around if _communicates(op)), None):
            return f"%{waiting.instruction_name.data} between them may run beside the first"
        return None

    def _why_not_merged(self, merged: FusionView, first: FusionView, reader: FusionView) -> str | None:
        """Why the merged kernel is no better than two, or None."""
        if len(merged.parameters) > MOST_PARAMETERS or len(merged.instructions) > MOST_INSTRUCTIONS:
            return f"it would have {len(merged.parameters)} arguments and {len(merged.instructions)} instructions"
        wanted = "transpose" if "transpose" in (self._emitter(first), self._emitter(reader)) else self._emitter(reader)
        if (found := self._emitter(merged)) != wanted:
            return f"the {found} emitter would compile it, not the {wanted} emitter"
        return None

    def _emitter(self, view: FusionView) -> str:
        """The name of the fusion's emitter; "no" where it has none."""
        if view.computation not in self._emitters:
            with take_notes():
                try:
                    self._emitters[view.computation] = emitter_for(view, device(self.target), self.hero_rules).name
                except XlaEmittersError:
                    self._emitters[view.computation] = "no"
        return self._emitters[view.computation]

    @cached_property
    def _emitters(self) -> dict[ComputationOp, str]:
        """Those of the module to which the pass is applied, by the fusions' computations."""
        return {}


def _is_read_once(first: FusionOp, reader: FusionOp) -> bool:
    """Whether a fusion is read by this one alone."""
    return all(use.operation is reader for use in first.result.uses)


def _is_in_place(fusion: FusionOp, view: FusionView) -> bool:
    """Whether a fusion writes a part of an array that it may overwrite: a merged kernel would write the rest too."""
    if isinstance(updates := find_in_place_updates(view), str):
        return False
    module = enclosing_module(fusion)
    assert module is not None
    bodies = loop_bodies(entry_of(module))
    updated = (view.operands[update.parameter.number.value.data] for update in updates)
    return all(may_overwrite(value, fusion, bodies) for value in updated)


def _between(first: FusionOp, reader: FusionOp) -> Iterator[HloOp]:
    """The instructions between two of one computation."""
    op = first.next_op
    while op is not None and op is not reader:
        if isinstance(op, HloOp):
            yield op
        op = op.next_op


def _communicates(op: HloOp) -> bool:
    """Whether other work runs beside an instruction: an exchange between devices, or the wait for one (`graph/unwrap_async`)."""
    return op.opcode.endswith(("-start", "-done", "-update")) or op.opcode in ("opt-barrier", "send", "recv")


def _reads(view: FusionView, reader: FusionOp, first: FusionOp) -> tuple[float, bool]:
    """How often a fusion needs each element of the first one in the mean, at most; whether only at its own index."""
    (result,) = first.results
    parameters = [view.parameters[n].result for n, operand in enumerate(reader.operands) if operand is result]
    points, is_same_place = 0, True
    for root in view.roots:
        found = indexing_of_operands(view, root)
        for parameter in parameters:
            indexings = found.get(parameter, ())
            if indexings is None or any(each.origins for each in indexings):
                return inf, False
            for each in indexings:
                points += each.map.points_of_box
                is_same_place &= each.map.results == identity_map(dims_of(root.result)).results
    return points / max(1, prod(dims_of(first.result))), is_same_place
