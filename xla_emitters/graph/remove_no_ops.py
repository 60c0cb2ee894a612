"""Removes instructions that compute nothing: each is replaced by its operand. On HLO.

    b = (f32[8], f32[8]) opt-barrier(t)                 t
    d = f32[8] domain(x), domain={...}                  x
    a = f32[8] add-dependency(x, token)                 x
    token = token[] after-all()                         erased once it has no users
    n = s32[] get-dimension-size(x), dimensions={0}     s32[] constant(8), where that size is static
    c = f32[8] convert(x)                               x, where its elements are f32 too
    e = f32[8] get-tuple-element(t), index=0            x, where t = tuple(x, y), which is erased once it has no users
    c = (f32[8], s32[]) copy(t)                         tuple(copy(x), copy(y))
    m = f32[8] custom-call(x), custom_call_target="Sharding"        x: such markers (`custom_calls.MARKERS`) are for XLA's passes

They order effects, or carry information for a partitioner; one stream runs steps in program order anyway. A marker whose result has
another layout than its operand becomes a copy. Tokens of infeeds, outfeeds, sends and receives stay.
Source: docs/reference/1 6.8; XLA's optimization_barrier_expander.cc, and the passes that take out the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.computation import ComputationOp, GetTupleElementOp, TupleOp
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.custom_calls import is_marker
from xla_emitters.dialects.hlo.dynamic_shape_ops import GetDimensionSizeOp
from xla_emitters.dialects.hlo.elementwise import ConvertOp, CopyOp
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.types import dims_of, element_of
from xla_emitters.dtypes import dtype
from xla_emitters.fusions.host import host_computations
from xla_emitters.graph.inlining import element_of_tuple, insert, laid_out
from xla_emitters.rewrite.kernel_pass import KernelPass

_GIVE_THEIR_OPERAND = frozenset({"opt-barrier", "domain", "add-dependency"})


@dataclass(frozen=True)
class RemoveNoOpsPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect."""

    name = "xla-remove-no-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        remove_no_ops(op)


def remove_no_ops(module: ModuleOp) -> None:
    """See the file's head. In all host computations."""
    for computation in host_computations(module):
        _remove_from(computation)


def _remove_from(computation: ComputationOp) -> None:
    found = [
        op
        for op in computation.instructions
        if isinstance(op, RuleOp | GetDimensionSizeOp | ConvertOp | GetTupleElementOp | CopyOp)
    ]
    names = {op.instruction_name.data for op in computation.instructions} if found else set[str]()
    for op in found:
        if (value := _instead_of(op, names)) is not None:
            Rewriter.replace_op(op, (), [value])
    for op in reversed(list(computation.instructions)):
        if (op.opcode == "after-all" or isinstance(op, TupleOp)) and op.result.first_use is None:
            Rewriter.erase_op(op)


def _instead_of(op: HloOp, names: set[str]) -> SSAValue | None:
    """The value that replaces an instruction; None: it stays."""
    if op.opcode in _GIVE_THEIR_OPERAND or is_marker(op) or (isinstance(op, ConvertOp) and _changes_nothing(op)):
        return laid_out(op, op.operands[0], op.result.type, names)
    if isinstance(op, GetTupleElementOp):
        return element_of_tuple(op.operands[0], op.index.value.data)
    if isinstance(op, CopyOp) and isinstance(op.result.type, TupleType):
        return laid_out(op, op.operands[0], op.result.type, names, always_copy=True)
    if isinstance(op, GetDimensionSizeOp):
        size = dims_of(op.operands[0])[integers(op.dimensions)[0]]
        if size < 0:
            return None
        s32 = dtype("s32")
        names.discard(name := op.instruction_name.data)
        return insert(ConstantOp.from_array(np.array(size, s32.numpy), s32, name), op, op, names)
    return None


def _changes_nothing(op: ConvertOp) -> bool:
    source, result = op.operands[0], op.result
    return element_of(source) == element_of(result) and dims_of(source) == dims_of(result)
