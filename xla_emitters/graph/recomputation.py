"""Counts the steps of one kernel for a fusion, compared to computing each element of each instruction once.

    s = f32[512] reduce(e, z), dimensions={1}       with e = f32[512,512]: each element of s needs 512 of e
    b = f32[512,512] broadcast(s), dimensions={0}   each element needs one of s: 262,144 are computed instead of 512
    d = f32[512,512] divide(e, b)                   so 262,144 * 512 elements of e are computed, and as many are added

A step computes one element; in a reduction or a product, it combines one element.

A kernel computes an element where it is needed, that is, backwards from the results: the number of elements that a user reads for one of
its elements, times the number of computed elements of the user. The maps give the former. Of several users the largest count is taken,
because the others may share it: the count is a lower bound. Parameters, constants and tuples are not computed. The operands of an
instruction without a map count as read once.
Source: docs/reference/1 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import GetTupleElementOp, ParameterOp, TupleOp
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.dynamic_slices import DynamicUpdateSliceOp
from xla_emitters.dialects.hlo.shape_ops import PadOp
from xla_emitters.dialects.hlo.types import elements_of
from xla_emitters.errors import Unsupported
from xla_emitters.graph.view import FusionView

_NOT_COMPUTED = (ParameterOp, ConstantOp, TupleOp, GetTupleElementOp)
_READ_EACH_ONCE = (PadOp, DynamicUpdateSliceOp)
"""Ops that place their operands in the result: they read no element twice, although their maps lead out of the operand."""


@dataclass(frozen=True)
class Recomputation:
    """The steps of a kernel.

    steps  of all instructions together
    once   the number of steps if each element were computed once
    worst  the instruction that repeats the most steps
    """

    steps: int
    once: int
    worst: HloOp

    @property
    def times(self) -> int:
        return self.steps // self.once


def recomputation_of(view: FusionView) -> Recomputation | None:
    """The steps of the kernel of a fusion; None if it computes nothing."""
    found: dict[HloOp, int] = {root: elements_of(root) for root in view.roots}
    once = dict[HloOp, int]()
    for op in reversed(view.instructions):
        all_reads = _reads(op)
        once[op] = max(elements_of(op), *all_reads, 1)
        for operand, reads in zip(op.operands, all_reads, strict=True):
            if isinstance(operand.owner, HloOp):
                needed = max(1, found.get(op, elements_of(op)) * reads // max(1, elements_of(op)))
                found[operand.owner] = max(found.get(operand.owner, 0), needed)
    steps = {
        op: once[op] * found[op] // max(1, elements_of(op))
        for op in view.instructions
        if op in found and not isinstance(op, _NOT_COMPUTED)
    }
    if not steps:
        return None
    worst = max(steps, key=lambda op: steps[op] - once[op])
    return Recomputation(sum(steps.values()), sum(once[op] for op in steps), worst)


def _reads(op: HloOp) -> list[int]:
    """Per operand, the number of its elements that are read, with repetitions, for all elements of the result."""
    sizes = [elements_of(operand.owner) if isinstance(operand.owner, HloOp) else 0 for operand in op.operands]
    if isinstance(op, TupleOp):
        return sizes
    try:
        maps = op.output_to_input()
    except Unsupported:
        return sizes
    points = [index_map.points_of_box for index_map in maps]
    return [min(pair) for pair in zip(points, sizes, strict=True)] if isinstance(op, _READ_EACH_ONCE) else points
