"""Removes instructions that compute nothing: each is replaced by its operand. On HLO.

    b = (f32[8], f32[8]) opt-barrier(t)                 t
    d = f32[8] domain(x), domain={...}                  x
    a = f32[8] add-dependency(x, token)                 x
    token = token[] after-all()                         erased once it has no users
    n = s32[] get-dimension-size(x), dimensions={0}     s32[] constant(8), where that size is static
    c = f32[8] convert(x)                               x, where its elements are f32 too
    r = f32[8] all-reduce(x), replica_groups={{0},{1}}  x: each device is a group of its own, as in other collectives
    i = u32[] partition-id()                            u32[] constant(0), in a module for one partition
    e = f32[8] get-tuple-element(t), index=0            x, where t = tuple(x, y), which is erased once it has no users
    c = (f32[8], s32[]) copy(t)                         tuple(copy(x), copy(y))
    m = f32[8] custom-call(x), custom_call_target="Sharding"        x: such markers (`custom_calls.MARKERS`) are for XLA's passes

They order effects, or carry information for a partitioner; one stream runs steps in program order anyway. A marker whose result has
another layout than its operand becomes a copy. Tokens of infeeds, outfeeds, sends and receives stay.
Source: docs/reference/1 6.8; XLA's optimization_barrier_expander.cc, and the passes that take out the rest.
"""

from __future__ import annotations

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.collectives import gets_zeros, is_alone
from xla_emitters.dialects.hlo.computation import ComputationOp, GetTupleElementOp, TupleOp
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.custom_calls import is_marker
from xla_emitters.dialects.hlo.device_groups import device_counts
from xla_emitters.dialects.hlo.dynamic_shape_ops import GetDimensionSizeOp
from xla_emitters.dialects.hlo.elementwise import ConvertOp, CopyOp
from xla_emitters.dialects.hlo.library_calls import is_wait
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.shape_ops import BroadcastOp
from xla_emitters.dialects.hlo.types import UNBOUNDED, dims_of, element_of, is_array, same_shape, tuple_type
from xla_emitters.dtypes import dtype
from xla_emitters.graph.control_computations import control_computations
from xla_emitters.graph.inlining import element_of_tuple, insert, laid_out
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.support.late_dataclass import dataclass

_GIVE_THEIR_OPERAND = frozenset({"opt-barrier", "domain", "add-dependency"})
_COLLECTIVES = frozenset(
    {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-broadcast", "collective-permute"}
)
_STARTS = {f"{name}-done": f"{name}-start" for name in ("all-reduce", "all-gather", "collective-permute")}
_IDS = ("replica-id", "partition-id")
_ERASED = frozenset({"after-all", *_STARTS.values()})
"""Opcodes of instructions that are erased if they have no users."""


@dataclass(frozen=True)
class RemoveNoOpsPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect."""

    name = "xla-remove-no-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        remove_no_ops(op)


def remove_no_ops(module: ModuleOp) -> None:
    """See the file's head. In all control computations."""
    for computation in control_computations(module):
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
        if (op.opcode in _ERASED or isinstance(op, TupleOp)) and op.result.first_use is None:
            Rewriter.erase_op(op)


def _instead_of(op: HloOp, names: set[str]) -> SSAValue | None:
    """The value that replaces an instruction; None: it stays."""
    if is_wait(op):
        return None
    if op.opcode in _GIVE_THEIR_OPERAND or is_marker(op) or (isinstance(op, ConvertOp) and _changes_nothing(op)):
        return laid_out(op, op.operands[0], op.result.type, names)
    if (found := _of_one_device(op, names)) is not None:
        return found
    if isinstance(op, GetTupleElementOp):
        return element_of_tuple(op.operands[0], op.index.value.data)
    if isinstance(op, CopyOp) and isinstance(op.result.type, TupleType):
        return laid_out(op, op.operands[0], op.result.type, names, always_copy=True)
    if isinstance(op, GetDimensionSizeOp):
        size = dims_of(op.operands[0])[integers(op.dimensions)[0]]
        return None if size < 0 else _scalar(op, size, "s32", names)
    return None


def _of_one_device(op: HloOp, names: set[str]) -> SSAValue | None:
    """The value of a collective in which each device takes part alone, or of the number of the only device."""
    if op.opcode in _IDS and device_counts(op)[_IDS.index(op.opcode)] == 1:
        return _scalar(op, 0, "u32", names)
    collective = op
    if op.opcode in _STARTS and isinstance(op.operands[0].owner, RuleOp):
        collective = op.operands[0].owner
    if not isinstance(collective, RuleOp) or collective.opcode not in (*_COLLECTIVES, *_STARTS.values()):
        return None
    is_start = collective is op and op.opcode not in _COLLECTIVES
    if is_start or not is_alone(collective):
        return None
    values = collective.operands
    if gets_zeros(collective):
        if any(not is_array(value.type) or UNBOUNDED in dims_of(value) for value in values):
            return None
        values = [_zeros(op, value, names) for value in values]
    value = values[0]
    if isinstance(op.result.type, TupleType):
        whole = tuple_type([value.type for value in values])
        value = insert(TupleOp(values, whole, op.instruction_name.data), op, op, names)
    return laid_out(op, value, op.result.type, names) if same_shape(value.type, op.result.type) else None


def _zeros(op: HloOp, like: SSAValue, names: set[str]) -> SSAValue:
    """Zeros of the type of `like`, before an instruction."""
    zero = _scalar(op, 0, element_of(like).name, names)
    made = BroadcastOp([zero], like.type, op.instruction_name.data, {"dimensions": integer_array([])})
    return insert(made, op, op, names)


def _scalar(op: HloOp, value: int, element: str, names: set[str]) -> SSAValue:
    """A constant in place of an instruction, under its name."""
    found = dtype(element)
    names.discard(name := op.instruction_name.data)
    return insert(ConstantOp.from_array(np.array(value, found.numpy), found, name), op, op, names)


def _changes_nothing(op: ConvertOp) -> bool:
    source, result = op.operands[0], op.result
    return element_of(source) == element_of(result) and dims_of(source) == dims_of(result)
