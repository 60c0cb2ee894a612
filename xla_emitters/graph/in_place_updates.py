"""Finds the dynamic-update-slices that write into their operand's buffer, without a copy.

    p ── dynamic-update-slice(p, update, starts) ── ROOT          in place: the threads write the update, the rest of p is unchanged
    p ── negate ── dynamic-update-slice ── ROOT                   not: all elements of negate(p) are new
    p ── dynamic-slice(p, starts) ── add ── update                in place: each element is read by the thread that writes it
    p ── dynamic-slice(p, others) ── update                       in place if the update is one element, so there is one thread
    p ── slice(p) ── update                                       not: another thread may already have written the element
                                                                  nor if p is read at all and elements share bytes

The result must be in the parameter's buffer (`input_output_alias`), which holds the elements that are not updated; `buffers.py` checks it.
Source: seed document, "In-place dynamic-update-slice emitter"; docs/reference/2 1.7.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, TypeGuard

from xla_emitters.dialects.hlo.base import HloOp, owner_of
from xla_emitters.dialects.hlo.computation import ParameterOp, TupleOp
from xla_emitters.dialects.hlo.elementwise import is_elementwise_or_map
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.dialects.hlo.types import as_array, dims_of, element_of, minor_to_major, same_shape, type_text
from xla_emitters.graph.view import FusionView, once_per_view
from xla_emitters.support.late_dataclass import dataclass

if TYPE_CHECKING:  # asked for by opcode: most fusions have none
    from xla_emitters.dialects.hlo.dynamic_slices import DynamicUpdateSliceOp


@dataclass(frozen=True, eq=False)
class InPlaceUpdate:
    """A result that is an update of a parameter.

    root       the result: the update, or a bitcast of it
    op         the update
    parameter  the parameter whose buffer is written
    """

    root: HloOp
    op: DynamicUpdateSliceOp
    parameter: ParameterOp


@once_per_view
def find_in_place_updates(view: FusionView) -> tuple[InPlaceUpdate, ...] | str:
    """One update per result, in order, if all results are updates that can be done in place; otherwise why not."""
    found = list[InPlaceUpdate]()
    for root in view.roots:
        update = _update_of(view, root)
        if isinstance(update, str):
            return update
        found.append(update)
    first, *others = found
    window = as_array(first.op.operands[1].type)
    for other in others:
        if not same_shape(other.op.operands[1].type, window):
            return f"updates of {type_text(window)} and of {type_text(other.op.operands[1].type)}"
    updated = [update.parameter for update in found]
    for update in found:
        if updated.count(update.parameter) > 1:
            return f"several results update %{update.parameter.instruction_name.data}, which has one buffer"
        if (reason := _why_not_in_place(view, update)) is not None:
            return reason
    return tuple(found)


def _update_of(view: FusionView, root: HloOp) -> InPlaceUpdate | str:
    op = root
    if isinstance(root, BitcastOp):
        operand = owner_of(root.operands[0])
        op = operand
    name = f"%{op.instruction_name.data}"
    if not _is_update(op):
        return f"{name} is not a dynamic-update-slice"
    if minor_to_major(op.result.type) != minor_to_major(op.operands[0].type):
        return f"{name} has another layout than the array that it updates"
    users = [user for user in view.users[op] if not isinstance(user, TupleOp)]
    if users != ([root] if op is not root else []):
        return f"{name} is used inside the fusion"
    target = op.operands[0].owner
    if isinstance(target, BitcastOp):
        target = target.operands[0].owner
    if not isinstance(target, ParameterOp):
        return f"the array that {name} updates is not a parameter"
    return InPlaceUpdate(root, op, target)


def _is_update(op: HloOp) -> TypeGuard[DynamicUpdateSliceOp]:
    return op.opcode == "dynamic-update-slice"


def why_no_update(view: FusionView, root: HloOp) -> str | None:
    """None if `root` alone is an update that can be done in place; otherwise the reason."""
    update = _update_of(view, root)
    return update if isinstance(update, str) else _why_not_in_place(view, update)


def _why_not_in_place(view: FusionView, update: InPlaceUpdate) -> str | None:
    """None if no thread reads elements that another one writes; otherwise the reason, which names the op that reads."""
    pending: list[HloOp] = [update.parameter]
    seen = set(pending)
    while pending:
        for user in view.users[pending.pop()]:
            if user is update.op or user in seen or isinstance(user, TupleOp):
                continue
            is_same_place = (
                is_elementwise_or_map(user) or isinstance(user, BitcastOp) or _reads_the_window(user, update.op)
            )
            name, read = user.instruction_name.data, update.parameter.instruction_name.data
            if element_of(update.parameter.result).bits < 8:
                return f"%{name} ('{user.opcode}') reads bytes of %{read} that other threads update"
            if not is_same_place:
                return f"%{name} ('{user.opcode}') reads %{read} at other indices than those updated"
            seen.add(user)
            pending.append(user)
    return None


def _reads_the_window(user: HloOp, update: DynamicUpdateSliceOp) -> bool:
    """Whether `user` reads exactly the window that the update replaces, or one as large if there is only one thread."""
    if user.opcode != "dynamic-slice":
        return False
    whole, window = update.operands[0], update.operands[1]
    if dims_of(user.operands[0]) != dims_of(whole) or dims_of(user.result) != dims_of(window):
        return False
    if minor_to_major(user.operands[0].type) != minor_to_major(whole.type):
        return False
    return prod(dims_of(window)) == 1 or list(user.operands[1:]) == list(update.operands[2:])
