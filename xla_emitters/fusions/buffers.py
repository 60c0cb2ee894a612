"""The kernel's arguments: which buffer each is, how it is aligned, how large it is, and whether the kernel writes it.

    fusion(%p0, %p1, %p0) -> r0            argument   slice   align   bytes      invariant
                                           p0         0       16      25165824   yes
                                           p1         1       16      8192       yes
                                           p0         0       16      25165824   yes      the same value is the same buffer
                                           r0         2       256     25165824   no

Parameters of the program come from the caller and promise 16 bytes; what the runtime allocates promises 256. Two arguments with one slice
number share memory; the first one's promises hold for both. A result takes the slice of the parameter that the module's
`input_output_alias`, or the fusion's `output_to_operand_aliasing`, gives it, and the kernel then writes that; but only where an element is
read by the thread that writes it, and nowhere else: where every use of the parameter is elementwise, or where all results are updates in
place or scatters. Otherwise the two are different memory, which `may-alias` allows.
Source: docs/reference/1 1.8 "Slice numbering"; docs/reference/2 4.1 "ABI".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    aliased_operands,
    enclosing_module,
)
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp
from xla_emitters.dialects.hlo.types import (
    AliasAttr,
    ArrayType,
    dims_of,
    element_of,
    leaf_types,
    minor_to_major,
    tuple_types,
)
from xla_emitters.fusions.in_place_updates import find_in_place_updates
from xla_emitters.fusions.scatters import arrays_in_place
from xla_emitters.fusions.view import FusionView, once_per_view
from xla_emitters.program import Argument, ArraySpec, Slot

ALIGN_PARAMETER = 16
ALIGN_ALLOCATED = 256


@once_per_view
def kernel_arguments(view: FusionView, slots: tuple[Slot, ...] = ()) -> tuple[Argument, ...]:
    """The kernel's arguments: one per parameter of the computation, then one per result. The entry's attributes say the same.

    slots    which array of the program each is; (): as if the kernel were the whole program
    """
    inputs, results = len(view.operands), len(view.result_types)
    slots = slots or (*(Slot("parameter", n) for n in range(inputs)), *(Slot("result", n) for n in range(results)))
    aliases = aliases_of(view)
    numbers = dict[object, int]()
    first = dict[int, tuple[int, int]]()
    keys: list[object] = [*view.operands, *(aliases.get(number, ("result", number)) for number in range(results))]
    types = (*view.parameter_types, *view.result_types)
    for key, type in zip(keys, types, strict=True):
        number = numbers.setdefault(key, len(numbers))
        is_parameter = isinstance(key, SSAValue) and isinstance(key.owner, ParameterOp)
        first.setdefault(number, (_bytes(type), ALIGN_PARAMETER if is_parameter else ALIGN_ALLOCATED))
    written = {numbers[key] for key in keys[inputs:]}
    return tuple(
        Argument(slot.kind, slot.index, array_spec(type), *first[numbers[key]], numbers[key], numbers[key] in written)
        for slot, key, type in zip(slots, keys, types, strict=True)
    )


def array_spec(type: Attribute) -> ArraySpec:
    """The logical array of a tensor type of the `hlo` dialect. raises Unsupported for types that nothing stores."""
    return ArraySpec(element_of(type).name, dims_of(type), minor_to_major(type))


def _bytes(type: ArrayType) -> int:
    return element_of(type).size_bytes(math.prod(dims_of(type)))


@once_per_view
def aliases_of(view: FusionView) -> dict[int, SSAValue]:
    """Number of a result -> the operand whose buffer it is written to."""
    wanted = wanted_aliases(view)
    if _are_updates(view, wanted):
        return wanted
    return {result: operand for result, operand in wanted.items() if _can_be_in_place(view, operand, result)}


@once_per_view
def wanted_aliases(view: FusionView) -> dict[int, SSAValue]:
    """Number of a result -> the operand whose buffer it may be written to, if the kernel can: what module and call say."""
    if view.call is None:
        return {}
    return _wanted_by_module(view, view.call) | _wanted_by_call(view, view.call)


def _wanted_by_module(view: FusionView, call: FusionOp) -> dict[int, SSAValue]:
    """What `input_output_alias` says of the fusion's results and operands."""
    module, entry = enclosing_module(call), call.parent_op()
    aliases = module and module.attributes.get("hlo.input_output_alias")
    if aliases is None or not isa(aliases, ArrayAttr[AliasAttr]):
        return {}
    assert isinstance(entry, ComputationOp)
    wanted = dict[int, SSAValue]()
    for alias in aliases:
        if alias.index:
            continue
        result = _leaf_at(entry.root, alias.output, call)
        operand = entry.parameters[alias.parameter].result
        if result is not None and operand in view.operands and _is_as_the_fusion_has_it(view, operand):
            wanted[result] = operand
    return wanted


def _is_as_the_fusion_has_it(view: FusionView, operand: SSAValue) -> bool:
    """Whether ENTRY's array and the fusion's are one in memory: HLO may say of one of them that its elements are packed."""
    given = zip(view.operands, view.parameters, strict=True)
    return all(parameter.result.type == operand.type for value, parameter in given if value is operand)


def _wanted_by_call(view: FusionView, call: FusionOp) -> dict[int, SSAValue]:
    """What the fusion's own `output_to_operand_aliasing` says."""
    if call.output_to_operand_aliasing is None:
        return {}
    wanted = dict[int, SSAValue]()
    for output, operand, inside in aliased_operands(call.output_to_operand_aliasing):
        result, value = _leaf_at(call.result, output, call), view.operands[operand]
        # A parameter is the caller's, and kept for others; what a fusion makes is gone when another one goes on with it.
        if result is not None and not inside and (isinstance(value.owner, ParameterOp) or value.has_one_use()):
            wanted[result] = value
    return wanted


def _are_updates(view: FusionView, wanted: dict[int, SSAValue]) -> bool:
    """Whether every result is an update of, or a scatter into, the parameter that it is to lie in, and of nothing else at the call."""
    if len(wanted) != len(view.result_types):
        return False
    parameters = _updated_parameters(view)
    given = [view.operands[parameter.number.value.data] for parameter in parameters]
    is_wanted = given == [wanted[result] for result in range(len(given))]
    return bool(given) and is_wanted and all(view.operands.count(operand) == 1 for operand in given)


def _updated_parameters(view: FusionView) -> Sequence[ParameterOp]:
    """Per result the parameter that it is after an update in place, or after a scatter; () where some result is neither."""
    updates = find_in_place_updates(view)
    if not isinstance(updates, str):
        return [update.parameter for update in updates]
    arrays = arrays_in_place(view)
    return () if isinstance(arrays, str) else arrays


def _leaf_at(value: SSAValue, path: Sequence[int], call: FusionOp) -> int | None:
    """The number of `call`'s result that stands at `path` in the value of ENTRY; None if another instruction makes it."""
    path = list(path)
    while not isinstance(value.owner, FusionOp):
        match value.owner:
            case TupleOp() if path:
                value = value.owner.operands[path.pop(0)]
            case GetTupleElementOp():
                path.insert(0, value.owner.index.value.data)
                value = value.owner.operands[0]
            case _:
                return None
    leaf, type = 0, value.type
    for number in path:
        before = tuple_types(type)[:number]
        leaf, type = leaf + sum(len(leaf_types(part)) for part in before), tuple_types(type)[number]
    return leaf if value.owner is call else None


def _can_be_in_place(view: FusionView, operand: SSAValue, result: int) -> bool:
    """Whether element i of the operand is needed for no other element than i of results that lie as this one does."""
    root = view.result_types[result]
    for parameter, given in zip(view.parameters, view.operands, strict=True):
        if given is not operand:
            continue
        if parameter.result.type != root:
            return False
        pending: list[HloOp] = [parameter]
        while pending:
            for user in view.users.get(pending.pop(), ()):
                if isinstance(user, TupleOp):
                    continue
                if not isinstance(user, ElementwiseOp) or dims_of(user.result) != dims_of(root):
                    return False
                pending.append(user)
    return True
