"""A scatter that cannot update in place becomes two kernels: one writes the array, the other updates it there. On HLO, before planning.

    s = scatter(broadcast(0), rows, u)        arrays:  a = copy or computation of what is updated, here broadcast(0)
                                              rest:    s = scatter(a, rows, u), output_to_operand_aliasing={{}: (0, {})}

In place means: the result lies in the buffer of a parameter that nothing else reads, as the module's `input_output_alias` or the fusion's
`output_to_operand_aliasing` say. An array that another fusion makes for this one alone needs no copy: it says so, and is updated there.
Source: docs/reference/2 2.7.3 "The output buffer is assumed to already contain the operand"; XLA copy_insertion.cc does the like.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TupleType, i64
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp, GetTupleElementOp, ParameterOp
from xla_emitters.dialects.hlo.elementwise import CopyOp
from xla_emitters.dialects.hlo.gather_scatter import ScatterOp
from xla_emitters.dialects.hlo.types import leaf_types, minor_to_major
from xla_emitters.fusions.buffers import aliases_of
from xla_emitters.fusions.program_plan import computation_of, entry_of
from xla_emitters.fusions.refusals import supported_view
from xla_emitters.fusions.scatters import arrays_in_place, scatter_of
from xla_emitters.fusions.view import FusionView
from xla_emitters.graph.fusion_parts import (
    Part,
    aliasing,
    fresh_name,
    new_fusion,
    rename,
    wrap_entry,
)
from xla_emitters.rewrite.kernel_pass import KernelPass

HloOpT = TypeVar("HloOpT", bound=HloOp)


@dataclass(frozen=True)
class SplitScattersPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect."""

    name = "xla-split-scatters"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        split_scatters(op)


def split_scatters(module: ModuleOp) -> None:
    """Splits ENTRY's fusions, or ENTRY itself, where they scatter and cannot do so in place."""
    entry = entry_of(module)
    if not any(isinstance(op, FusionOp) for op in entry.instructions):
        view = supported_view(entry)
        if view is None or not _not_in_place(view):
            return
        entry = wrap_entry(entry)
    for fusion in [op for op in entry.instructions if isinstance(op, FusionOp)]:
        view = supported_view(fusion)
        if view is None or not (numbers := _not_in_place(view)):
            continue
        if not _claim_operands(fusion, view):
            _split(module, fusion, numbers)


def _not_in_place(view: FusionView) -> list[int]:
    """The numbers of the arrays that a scatter cannot update where they are."""
    scatter = scatter_of(view)
    if isinstance(scatter, str):
        return []
    aliases, arrays = aliases_of(view), arrays_in_place(view)
    if isinstance(arrays, str):
        return [number for number in range(len(scatter.arrays)) if number not in aliases]
    given = [view.operands[array.number.value.data] for array in arrays]
    return [number for number, operand in enumerate(given) if aliases.get(number) is not operand]


def _claim_operands(fusion: FusionOp, view: FusionView) -> bool:
    """Says that the results lie in the arrays, and whether it does: only where other fusions make all of these for this one alone."""
    arrays = arrays_in_place(view)
    if isinstance(arrays, str):
        return False
    places = [array.number.value.data for array in arrays]
    if not all(isinstance(fusion.operands[n].owner, FusionOp) and fusion.operands[n].has_one_use() for n in places):
        return False
    fusion.output_to_operand_aliasing = aliasing(places, is_tuple=isinstance(fusion.result.type, TupleType))
    return True


def _split(module: ModuleOp, fusion: FusionOp, numbers: Sequence[int]) -> None:
    """Puts two fusions for the one; the first writes the arrays `numbers`."""
    callee = computation_of(fusion)
    scatter = callee.root.owner
    assert isinstance(scatter, ScatterOp)
    name, count = callee.sym_name.data, len(scatter.arrays)

    first = Part(callee)
    results = list[SSAValue]()
    for number in numbers:
        value, result = first.take(scatter.arrays[number]), leaf_types(scatter.result.type)[number]
        is_laid_out_alike = minor_to_major(value.type) == minor_to_major(result)
        if isinstance(value.owner, ParameterOp) or not is_laid_out_alike:
            assert isinstance(value.owner, HloOp)
            copied = value.type if is_laid_out_alike else result
            value = first.insert(CopyOp([value], copied, f"{value.owner.instruction_name.data}.copy"), scatter)
        results.append(value)
    arrays = _call(module, fusion, first, f"{name}.arrays", results, (), ".arrays")
    leaves = _leaves(fusion, arrays)

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
    made = _call(module, fusion, second, f"{name}.rest", [second.insert(rest, scatter)], leaves, "")
    places = [numbers.index(number) if number in numbers else None for number in range(count)]
    made.output_to_operand_aliasing = aliasing(places, is_tuple=count > 1)
    Rewriter.replace_op(fusion, (), [made.result])
    if not any(isinstance(op, FusionOp) and op.calls.root_reference.data == name for op in module.walk()):
        Rewriter.erase_op(callee)


def _call(
    module: ModuleOp,
    fusion: FusionOp,
    part: Part,
    name: str,
    results: Sequence[SSAValue],
    first: Sequence[SSAValue],
    suffix: str,
) -> FusionOp:
    """Adds the computation of `part` to the module, and before the fusion one that calls it."""
    computations = {op.sym_name.data for op in module.ops if isinstance(op, ComputationOp)}
    callee = part.finish(fresh_name(name, computations), results, fusion)
    Rewriter.insert_op(callee, InsertPoint.before(computation_of(fusion)))
    operands = [*first, *(fusion.operands[number] for number in part.parameters if number >= 0)]
    return _before(fusion, new_fusion(operands, callee, f"{fusion.instruction_name.data}{suffix}"))


def _leaves(fusion: FusionOp, made: FusionOp) -> list[SSAValue]:
    """The arrays that a fusion gives."""
    if not isinstance(made.result.type, TupleType):
        return [made.result]
    name = made.instruction_name.data
    return [
        _before(
            fusion, GetTupleElementOp([made.result], result_type, f"{name}.{n}", {"index": IntegerAttr(n, i64)})
        ).result
        for n, result_type in enumerate(made.result.type.types)
    ]


def _before(fusion: FusionOp, op: HloOpT) -> HloOpT:
    around = fusion.parent_op()
    assert isinstance(around, ComputationOp)
    rename(op, {other.instruction_name.data for other in around.instructions if other is not fusion})
    op.location = fusion.location
    Rewriter.insert_op(op, InsertPoint.before(fusion))
    return op
