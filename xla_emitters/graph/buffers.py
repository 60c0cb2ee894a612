"""The kernel's arguments: the buffer of each, its alignment, its size, and whether the kernel writes it.

    fusion(%p0, %p1, %p0) -> r0            argument   slice   align   bytes      invariant
                                           p0         0       16      25165824   yes
                                           p1         1       16      8192       yes
                                           p0         0       16      25165824   yes      one value is one buffer
                                           r0         2       256     25165824   no

Parameters of the program come from the caller and are aligned to 16 bytes; buffers that the runtime allocates are aligned to 256. Two
arguments with one slice number share memory, and the alignment and size of the first apply to both. A result has the slice of the
parameter that the module's `input_output_alias` or the fusion's `output_to_operand_aliasing` names, and the kernel writes that buffer. This
is allowed only if every element is read only by the thread that writes it: all uses of the parameter are elementwise, or all results are
updates in place or scatters. Otherwise the two get different memory, which `may-alias` allows.
Source: docs/reference/1 1.8 "Slice numbering"; docs/reference/2 4.1 "ABI".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    ParameterOp,
    TupleOp,
)
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp
from xla_emitters.dialects.hlo.rule_ops import TOKEN
from xla_emitters.dialects.hlo.types import (
    ArrayType,
    dims_of,
    element_of,
    minor_to_major,
)
from xla_emitters.graph.in_place_updates import find_in_place_updates
from xla_emitters.graph.scatters import arrays_in_place
from xla_emitters.graph.view import FusionView, once_per_view
from xla_emitters.program import Argument, ArraySpec, Slot
from xla_emitters.program.step_values import ALIGN_ALLOCATED

ALIGN_PARAMETER = 16


@once_per_view
def kernel_arguments(view: FusionView, slots: tuple[Slot, ...] = ()) -> tuple[Argument, ...]:
    """The kernel's arguments: one per parameter of the computation, then one per result. The entry's attributes are made from these.

    slots    the program's array for each argument; (): as if the kernel were the whole program
    """
    inputs, results = len(view.operands), len(view.result_types)
    slots = slots or (*(Slot("parameter", n) for n in range(inputs)), *(Slot("result", n) for n in range(results)))
    aliases = aliases_of(view)
    numbers = dict[object, int]()
    first = dict[int, tuple[int, int]]()
    keys: list[object] = [*view.operands, *(aliases.get(number, ("result", number)) for number in range(results))]
    types = (*view.parameter_types, *view.result_types)
    for key, array_type in zip(keys, types, strict=True):
        number = numbers.setdefault(key, len(numbers))
        is_parameter = isinstance(key, SSAValue) and isinstance(key.owner, ParameterOp)
        first.setdefault(number, (_bytes(array_type), ALIGN_PARAMETER if is_parameter else ALIGN_ALLOCATED))
    written = {numbers[key] for key in keys[inputs:]}
    return tuple(
        Argument(
            slot.kind, slot.index, array_spec(array_type), *first[numbers[key]], numbers[key], numbers[key] in written
        )
        for slot, key, array_type in zip(slots, keys, types, strict=True)
    )


def array_spec(array_type: Attribute) -> ArraySpec:
    """The logical array of a type of the `hlo` dialect; a token is one without elements. raises Unsupported for types without storage."""
    if array_type == TOKEN:
        return ArraySpec("u8", (0,), (0,))
    return ArraySpec(element_of(array_type).name, dims_of(array_type), minor_to_major(array_type))


def _bytes(array_type: ArrayType) -> int:
    return element_of(array_type).size_bytes(math.prod(dims_of(array_type)))


@once_per_view
def aliases_of(view: FusionView) -> Mapping[int, SSAValue]:
    """Number of a result -> the operand whose buffer it is written to."""
    wanted = view.wanted_aliases
    if _are_updates(view, wanted):
        return wanted
    return {result: operand for result, operand in wanted.items() if can_be_in_place(view, operand, result)}


def why_not_in_buffers(view: FusionView, parameters: Sequence[ParameterOp]) -> str | None:
    """None if each result is written to the buffer of its parameter, else the first that is not."""
    aliases = aliases_of(view)
    for number, parameter in enumerate(parameters):
        if aliases.get(number) is not view.operands[parameter.number.value.data]:
            return f"result {number} is not in the buffer of %{parameter.instruction_name.data}"
    return None


def _are_updates(view: FusionView, wanted: Mapping[int, SSAValue]) -> bool:
    """Whether every result is an update of, or a scatter into, the parameter that it aliases, and the call passes that buffer only once."""
    if len(wanted) != len(view.result_types):
        return False
    parameters = _updated_parameters(view)
    given = [view.operands[parameter.number.value.data] for parameter in parameters]
    is_wanted = given == [wanted[result] for result in range(len(given))]
    return bool(given) and is_wanted and all(view.operands.count(operand) == 1 for operand in given)


def _updated_parameters(view: FusionView) -> Sequence[ParameterOp]:
    """For each result, the parameter that it updates in place or scatters into; () if a result does neither."""
    updates = find_in_place_updates(view)
    if not isinstance(updates, str):
        return [update.parameter for update in updates]
    arrays = arrays_in_place(view)
    return () if isinstance(arrays, str) else arrays


def can_be_in_place(view: FusionView, operand: SSAValue, result: int) -> bool:
    """Whether element i of the operand is needed only for element i of results, and they have the layout of this result."""
    root = view.result_types[result]
    for parameter, given in zip(view.parameters, view.operands, strict=True):
        if given is not operand:
            continue
        if parameter.result.type != root:
            return False
        seen: set[HloOp] = {parameter}
        pending: list[HloOp] = [parameter]
        while pending:
            for user in view.users.get(pending.pop(), ()):
                if isinstance(user, TupleOp) or user in seen:
                    continue
                if not isinstance(user, ElementwiseOp) or dims_of(user.result) != dims_of(root):
                    return False
                seen.add(user)
                pending.append(user)
    return True
