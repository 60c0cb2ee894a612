"""Reductions that were cut into two steps.

    t = f32[64,128,256] bitcast(x)                    x: f32[64,32768]
    a = f32[64,128] reduce(t, z), dimensions={2}
    s = f32[64] reduce(a, z), dimensions={1}          s = reduce(x, z), dimensions={1}

XLA:GPU cuts reductions of more elements than a block sums up at once (its TreeReductionRewriter). A kernel that has a row reduces it in
one step: the body is associative and commutative by the reductions' rule of HLO, and both steps begin with its identity.
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.computation import find_computation
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.shape_ops import BitcastOp, ReshapeOp
from xla_emitters.dialects.hlo.types import dims_of, element_of
from xla_emitters.graph.scan_ranges import computes_alike


class TwoSteps(NamedTuple):
    """`array` has the rows that the first and the second step reduce together."""

    array: SSAValue
    first: ReduceOp

    @property
    def columns(self) -> int:
        return dims_of(self.array)[-1]


def two_steps_of(second: ReduceOp) -> TwoSteps | None:
    """The steps of a reduction of whole rows; None for any other."""
    first = second.operands[0].owner
    if len(second.operands) != 2 or not isinstance(first, ReduceOp) or len(first.operands) != 2:
        return None
    shaped, rows = first.operands[0].owner, dims_of(second.result)
    if not isinstance(shaped, BitcastOp | ReshapeOp) or element_of(shaped.operands[0]) != element_of(shaped.result):
        return None
    array: SSAValue = shaped.operands[0]
    cut = dims_of(first.operands[0])
    is_cut = dims_of(array)[:-1] == rows and len(cut) == len(rows) + 2 and cut[:-2] == rows
    lasts = (integers(first.dimensions), integers(second.dimensions)) == ((len(cut) - 1,), (len(cut) - 2,))
    one, other = find_computation(first, first.to_apply), find_computation(second, second.to_apply)
    if not is_cut or not lasts or not computes_alike(one, other, element_of(array)) or not _begin_alike(first, second):
        return None
    return TwoSteps(array, first)


def _begin_alike(first: ReduceOp, second: ReduceOp) -> bool:
    one, other = (op.operands[1].owner for op in (first, second))
    return one is other or (isinstance(one, ConstantOp) and isinstance(other, ConstantOp) and one.value == other.value)
