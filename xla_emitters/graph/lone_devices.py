"""Values of collectives in which each device takes part alone, and of the number of the only device. On HLO.

    r = f32[8] all-reduce(x), replica_groups={{0},{1}}  x: each device is a group of its own, as in other collectives
    i = u32[] partition-id()                            u32[] constant(0), in a module for one partition

A part of `remove_no_ops`, for the few modules that have such ops.
"""

from __future__ import annotations

from xdsl.dialects.builtin import TupleType
from xdsl.ir import SSAValue

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.collectives import gets_zeros, is_alone
from xla_emitters.dialects.hlo.computation import TupleOp
from xla_emitters.dialects.hlo.device_groups import device_counts
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.shape_ops import BroadcastOp
from xla_emitters.dialects.hlo.types import UNBOUNDED, dims_of, element_of, is_array, same_shape, tuple_type
from xla_emitters.graph.inlining import constant_instead, insert, laid_out

_IDS = ("replica-id", "partition-id")


def value_of_one_device(op: HloOp, names: set[str]) -> SSAValue | None:
    """The value that replaces a collective, its done, or a device's number; None: it stays."""
    if op.opcode in _IDS:
        return constant_instead(op, 0, "u32", names) if device_counts(op)[_IDS.index(op.opcode)] == 1 else None
    is_done = op.opcode.endswith("-done")
    collective = op.operands[0].owner if is_done else op
    if not isinstance(collective, RuleOp) or (is_done and collective.opcode != op.opcode.replace("-done", "-start")):
        return None
    if not is_alone(collective):
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
    zero = constant_instead(op, 0, element_of(like).name, names)
    made = BroadcastOp([zero], like.type, op.instruction_name.data, {"dimensions": integer_array([])})
    return insert(made, op, op, names)
