"""Equal instructions on small arrays of integers become one, and equal calls of functions that compute only such. On HLO.

    n = get-dimension-size(x)              n = get-dimension-size(x)
    q = call(n, two), to_apply=divmod      q = call(n, two), to_apply=divmod
    m = get-dimension-size(x)         ->   (m is n, r is q)
    r = call(m, two), to_apply=divmod

JAX computes the sizes again for every op, each division of sizes by a call of twenty instructions: a ResNet of unknown height has 464
calls, a dozen of them different. Inlined they are 9,000 instructions, which five passes and four walks over all sizes (`sizes`) would
see. `disc-shape-optimization` finds sizes that are equal although they are computed differently.
Values of data are not merged: to compute them twice may be cheaper than to keep them. Nor is anything with an instruction that stands
before an assertion: what the assertion says of sizes holds for the instructions behind it.
Correctness: an instruction of these kinds depends on its operands and attributes alone.
Source: XLA, HloCSE; BladeDISC runs MLIR's CSE before its own passes.
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    CallOp,
    ComputationOp,
    GetTupleElementOp,
    TupleOp,
    callees_of,
)
from xla_emitters.dialects.hlo.constant import ConstantOp, IotaOp
from xla_emitters.dialects.hlo.dynamic_shape_ops import GetDimensionSizeOp, ShapeAssertionOp
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.hlo.shape_ops import BroadcastOp, ConcatenateOp, ReshapeOp, SliceOp
from xla_emitters.dialects.hlo.types import leaf_types
from xla_emitters.dynamic.sizes.numbers import small_count
from xla_emitters.dynamic.sizes.size_walk import is_arithmetic
from xla_emitters.graph.names import Names
from xla_emitters.rewrite.kernel_pass import KernelPass

MERGED = (
    ConstantOp,
    IotaOp,
    GetDimensionSizeOp,
    ReshapeOp,
    BroadcastOp,
    ConcatenateOp,
    SliceOp,
    TupleOp,
    GetTupleElementOp,
)


class DiscSizeCsePass(KernelPass):
    name = "disc-size-cse"

    def apply_to(self, op: ModuleOp) -> None:
        names, arithmetic = Names(op), dict[ComputationOp, bool]()
        asserting = _asserting(op)
        for computation in op.ops:
            if isinstance(computation, ComputationOp):
                first = dict[Hashable, HloOp]()
                for instruction in list(computation.instructions):
                    if isinstance(instruction, ShapeAssertionOp) or _calls(instruction, asserting):
                        first.clear()
                    if _is_merged(instruction, arithmetic):
                        kept = first.setdefault(_key(instruction), instruction)
                        if kept is not instruction and instruction.result is not computation.root:
                            names.replace(instruction, kept.result)


def _asserting(module: ModuleOp) -> set[Operation | None]:
    """The computations that assert something about sizes, themselves or by calls."""
    found = {op.parent_op() for op in module.walk() if isinstance(op, ShapeAssertionOp)}
    calls = [op for op in module.walk() if isinstance(op, CallOp)] if found else []
    while more := {op.parent_op() for op in calls if _calls(op, found)} - found:
        found |= more
    return found


def _calls(op: Operation, computations: set[Operation | None]) -> bool:
    return isinstance(op, CallOp) and callees_of(op)[0] in computations


def _key(op: HloOp) -> Hashable:
    said = tuple((key, value) for key, value in op.properties.items() if key != "name")
    return op.name, op.result.type, tuple(op.operands), said, tuple(op.attributes.items())


def _is_merged(op: HloOp, arithmetic: dict[ComputationOp, bool]) -> bool:
    """Whether an instruction is of a kind that is merged. `arithmetic`: see `is_arithmetic`."""
    if any(small_count(leaf) is None for leaf in leaf_types(op.result.type)):
        return False
    if isinstance(op, CallOp):
        return is_arithmetic(callees_of(op)[0], arithmetic)
    return is_elementwise(op) or (isinstance(op, MERGED) and not (isinstance(op, ConstantOp) and op.is_elided))
