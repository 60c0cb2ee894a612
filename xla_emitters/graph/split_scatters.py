"""A scatter that cannot update in place becomes two kernels: one writes the array, the other updates it there. On HLO, before planning.

    s = scatter(broadcast(0), rows, u)        arrays:  a = copy or computation of what is updated, here broadcast(0)
                                              rest:    s = scatter(a, rows, u), output_to_operand_aliasing={{}: (0, {})}

In place means: the result is in the buffer of a parameter that has no other reader, as the module's `input_output_alias` or the fusion's
`output_to_operand_aliasing` say. A temporary of the program that is not needed any more (`overwrites.py`) needs no copy: the fusion is
marked to update it in place. The same holds for the state of a loop in the loop's body.
Source: docs/reference/2 2.7.3 "The output buffer is assumed to already contain the operand"; similar: XLA copy_insertion.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import owner_of
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp, ParameterOp
from xla_emitters.dialects.hlo.elementwise import CopyOp
from xla_emitters.dialects.hlo.gather_scatter import ScatterOp
from xla_emitters.dialects.hlo.types import leaf_types, minor_to_major
from xla_emitters.graph.buffers import aliases_of
from xla_emitters.graph.control_computations import fusions_run_by, is_one_kernel, loop_bodies
from xla_emitters.graph.entry import computation_of, entry_of
from xla_emitters.graph.fusion_parts import Part, Parting, aliasing, may_write, wrap_entry
from xla_emitters.graph.names import Names
from xla_emitters.graph.overwrites import may_overwrite
from xla_emitters.graph.refusals import supported_view
from xla_emitters.graph.scatters import arrays_in_place, scatter_of
from xla_emitters.graph.view import FusionView
from xla_emitters.rewrite.kernel_pass import KernelPass


class SplitScattersPass(KernelPass):
    name = "xla-split-scatters"

    def apply_to(self, op: ModuleOp) -> None:
        entry = entry_of(op)
        if is_one_kernel(entry):
            view = supported_view(entry)
            if view is None or not _not_in_place(view, frozenset()):
                return
            entry = wrap_entry(entry)
        bodies, names = loop_bodies(entry), Names(op)
        for fusion in fusions_run_by(entry):
            view = supported_view(fusion)
            if view is None or not (numbers := _not_in_place(view, bodies)):
                continue
            if not _claim_operands(fusion, view, bodies):
                _split(Parting(names, fusion, computation_of(fusion)), numbers)


def _not_in_place(view: FusionView, bodies: AbstractSet[ComputationOp]) -> list[int]:
    """The numbers of the arrays that a scatter cannot update in place."""
    scatter = scatter_of(view)
    if isinstance(scatter, str):
        return []
    said, arrays = may_write(view, bodies), arrays_in_place(view)
    aliases = {number: value for number, value in aliases_of(view).items() if number in said}
    if isinstance(arrays, str):
        return [number for number in range(len(scatter.arrays)) if number not in aliases]
    given = [view.operands[array.number.value.data] for array in arrays]
    return [number for number, operand in enumerate(given) if aliases.get(number) is not operand]


def _claim_operands(fusion: FusionOp, view: FusionView, bodies: AbstractSet[ComputationOp]) -> bool:
    """Marks the results as aliases of the arrays, if the fusion may overwrite all of them; returns whether it did."""
    arrays = arrays_in_place(view)
    if isinstance(arrays, str):
        return False
    places = [array.number.value.data for array in arrays]
    if not all(may_overwrite(fusion.operands[n], fusion, bodies) for n in places):
        return False
    fusion.output_to_operand_aliasing = aliasing(places, is_tuple=isinstance(fusion.result.type, TupleType))
    return True


def _split(parting: Parting, numbers: Sequence[int]) -> None:
    """Replaces the fusion by two; the first writes the arrays `numbers`."""
    callee = parting.callee
    scatter = callee.root.owner
    assert isinstance(scatter, ScatterOp)
    name, count = callee.sym_name.data, len(scatter.arrays)

    first = Part(callee)
    results = list[SSAValue]()
    for number in numbers:
        value, result = first.take(scatter.arrays[number]), leaf_types(scatter.result.type)[number]
        is_laid_out_alike = minor_to_major(value.type) == minor_to_major(result)
        if isinstance(value.owner, ParameterOp) or not is_laid_out_alike:
            copied = value.type if is_laid_out_alike else result
            value = first.insert(CopyOp([value], copied, f"{owner_of(value).instruction_name.data}.copy"), scatter)
        results.append(value)
    leaves = parting.elements(parting.call(first, f"{name}.arrays", results, (), ".arrays").result)

    second = Part(callee)
    given = [
        second.insert(ParameterOp(number, value.type, f"array.{number}"), callee) for number, value in enumerate(leaves)
    ]
    second.parameters.extend(len(given) * [-1])
    rest = scatter.clone()
    rest.operands = [
        given[numbers.index(number)] if number in numbers else second.take(value)
        for number, value in enumerate(scatter.operands)
    ]
    second.names.discard(scatter.instruction_name.data)
    made = parting.call(second, f"{name}.rest", [second.insert(rest, scatter)], leaves, "")
    places = [numbers.index(number) if number in numbers else None for number in range(count)]
    made.output_to_operand_aliasing = aliasing(places, is_tuple=count > 1)
    parting.names.replace(parting.fusion, made.result)
    parting.names.erase_uncalled(callee)
