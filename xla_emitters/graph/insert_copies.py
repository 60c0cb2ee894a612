"""Copies that HLO leaves out: of arrays that are results as they are, and of those that are updated in place but wanted elsewhere. On HLO.

    ROOT all = tuple(f, p, f)               p and the second f become results of fusions that copy
    u = fusion(p, ...), an update of p      fusion(c, ...), output_to_operand_aliasing={{}: (0, {})}; c is a fusion that copies p

An update goes in place where the result lies in the updated array's buffer, as the module's `input_output_alias` says. Where it does
not, the update goes into a copy; an array that another fusion makes for this one alone needs none.
Source: XLA copy_insertion.cc, and what the real XLA does without any HLO pass: a copy, then the update in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TupleType

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp, ParameterOp, TupleOp
from xla_emitters.fusions.in_place_updates import find_in_place_updates
from xla_emitters.fusions.program_plan import entry_of, producers_of
from xla_emitters.fusions.refusals import supported_view
from xla_emitters.fusions.view import FusionView
from xla_emitters.graph.fusion_parts import aliasing, copying, wrap_entry
from xla_emitters.rewrite.kernel_pass import KernelPass


@dataclass(frozen=True)
class InsertCopiesPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect."""

    name = "xla-insert-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        insert_copies(op)


def insert_copies(module: ModuleOp) -> None:
    """Copies what ENTRY passes through, and what its fusions, or ENTRY itself, update elsewhere."""
    entry = entry_of(module)
    if not any(isinstance(op, FusionOp) for op in entry.instructions):
        view = supported_view(entry)
        if view is None or not _updates_elsewhere(view):
            return
        entry = wrap_entry(entry)
    for user, number in list(_results_of_others(entry)):
        user.operands[number] = copying(module, user.operands[number], user.operands[number].type, user, "copy")
    for fusion in [op for op in entry.instructions if isinstance(op, FusionOp)]:
        view = supported_view(fusion)
        if view is not None and (updated := _updates_elsewhere(view)):
            _update_copies(module, fusion, view, updated)


def _results_of_others(entry: ComputationOp) -> Iterator[tuple[HloOp, int]]:
    """What is in the root, but is a parameter, or another result too: the tuple, and the number of its operand."""
    made = set[tuple[HloOp, int]]()
    pending = [entry.root]
    while pending:
        owner = pending.pop(0).owner
        if not isinstance(owner, TupleOp):
            continue
        for number, operand in enumerate(owner.operands):
            if isinstance(operand.type, TupleType):
                pending.append(operand)
                continue
            (producer,) = producers_of(operand)
            if isinstance(producer[0], ParameterOp) or producer in made:
                yield owner, number
            made.add(producer)


def _updates_elsewhere(view: FusionView) -> tuple[int, ...]:
    """Per result, the number of the parameter that it updates; none where all lie there, or some are no updates in place."""
    updates = find_in_place_updates(view)
    if isinstance(updates, str):
        return ()
    numbers = tuple(update.parameter.number.value.data for update in updates)
    # Of one of them HLO may say that its elements are packed: then they are not one array in memory.
    is_one = all(view.operands[number].type == view.parameters[number].result.type for number in numbers)
    return () if not is_one or all(_in_place(view, numbers)) else numbers


def _in_place(view: FusionView, numbers: tuple[int, ...]) -> list[bool]:
    """Per result, whether it lies in the buffer of that operand, and of no other."""
    wanted = view.wanted_aliases
    operands = [view.operands[number] for number in numbers]
    return [wanted.get(at) is value and view.operands.count(value) == 1 for at, value in enumerate(operands)]


def _update_copies(module: ModuleOp, fusion: FusionOp, view: FusionView, updated: tuple[int, ...]) -> None:
    """Lets results lie where these operands do, which become copies but for those that are in place already or are this fusion's own."""
    for number, is_there in zip(updated, _in_place(view, updated), strict=True):
        operand = fusion.operands[number]
        if not (is_there or (isinstance(operand.owner, FusionOp) and operand.has_one_use())):
            name = f"{fusion.instruction_name.data}.copy"
            fusion.operands[number] = copying(module, operand, operand.type, fusion, name)
    fusion.output_to_operand_aliasing = aliasing(updated, is_tuple=isinstance(fusion.result.type, TupleType))
