"""Decides whether a fusion may write its result over an array that it reads: only if no later instruction needs the old elements.

    body {  %s = (s32[], f32[8]) parameter(0)                        state of the loop: owned by the body
            %x = f32[8] get-tuple-element(%s), index=1
            %r = f32[] fusion(%x), calls=read                        before in program order: may read it
            %u = f32[8] fusion(%x, ...), calls=update                may write over %x
            ROOT %t = (s32[], f32[8]) tuple(%i, %u) }                %x is not a result; if it were, %u might not

The program must have made the array: a result of a fusion or of a library call, or the state that a loop's body gets. A
parameter of ENTRY belongs to the caller, unless the module's `input_output_alias` donates it; parameters of a loop's condition or of a
branch may be read later by others; a constant has no buffer; and a result of a loop or a conditional may be one of its operands. One array
may have several names: tuples, their elements and bitcasts share memory.
Source: XLA copy_insertion.cc, which checks the same for live ranges.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Operation, SSAValue

from xla_emitters.dialects.hlo.base import HloOp, owner_of
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    enclosing_module,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.dialects.hlo.types import AliasAttr, leaf_types
from xla_emitters.dialects.isa import isa
from xla_emitters.graph.entry import leaf_at, leaves_before

_MAY_PASS_ON = ("while", "conditional", "call", "async-start")
"""Opcodes of instructions whose results may be one of their operands."""


def may_overwrite(value: SSAValue, fusion: FusionOp, bodies: AbstractSet[ComputationOp]) -> bool:
    """Whether `fusion` may write its result over the array `value`, one of its operands; see the file's head.

    bodies  the computations that run only as loop bodies (`host.loop_bodies`)
    """
    op, _ = _source(value)
    if isinstance(op, ParameterOp):
        is_own = op.parent_op() in bodies or is_donated(op)
    else:
        is_own = not isinstance(op, ConstantOp) and op.opcode not in _MAY_PASS_ON
    return is_own and is_last_use(value, fusion)


def next_values(body: ComputationOp) -> dict[tuple[HloOp, int], list[int]]:
    """The makers of the next values of a loop's state: (instruction, leaf of its result) -> the numbers of the state's leaves."""
    found, pending, number = dict[tuple[HloOp, int], list[int]](), [body.root], 0
    while pending:
        value = pending.pop()
        if isinstance(value.owner, TupleOp):
            pending += reversed(value.owner.operands)
            continue
        op, first = _source(value)
        for leaf in range(first, first + len(leaf_types(value.type))):
            found.setdefault((op, leaf), []).append(number)
            number += 1
    return found


def state_leaf(value: SSAValue) -> int | None:
    """The number of the leaf of its computation's parameter that an array is; None if an instruction makes the array."""
    op, leaf = _source(value)
    return leaf if isinstance(op, ParameterOp) and op.number.value.data == 0 else None


def is_callers(value: SSAValue) -> bool:
    """Whether an array is a parameter of ENTRY: writes to it go into a copy, unless the caller donated it."""
    around = value.owner.parent_op()
    return isinstance(value.owner, ParameterOp) and isinstance(around, ComputationOp) and around.is_entry


def is_donated(parameter: ParameterOp) -> bool:
    """Whether the module's `input_output_alias` gives the memory of a parameter of ENTRY to the program: to which result, it may choose."""
    entry, module = parameter.parent_op(), enclosing_module(parameter)
    aliases = module and module.attributes.get("hlo.input_output_alias")
    if not (isinstance(entry, ComputationOp) and entry.is_entry) or not isa(aliases, ArrayAttr[AliasAttr]):
        return False
    return any(
        alias.parameter == parameter.number.value.data and not alias.inside for alias in (each.data for each in aliases)
    )


def is_last_use(value: SSAValue, fusion: FusionOp) -> bool:
    """Whether `fusion` reads the array once, no later instruction reads it under any name, and it is not a result of the computation."""
    readers = list[Operation]()
    pending = [_source(value)]
    while pending:
        op, leaf = pending.pop()
        for use in op.result.uses:
            user = use.operation
            match user:
                case GetTupleElementOp():
                    first, count = leaves_before(op.result.type, user.index.value.data)
                    if first <= leaf < first + count:
                        pending.append((user, leaf - first))
                case TupleOp():
                    pending.append((user, leaves_before(user.result.type, use.index)[0] + leaf))
                case BitcastOp():
                    pending.append((user, leaf))
                case HloOp() if user.opcode not in _MAY_PASS_ON:
                    readers.append(user)
                case _:
                    return False
    if readers.count(fusion) != 1:
        return False
    later = {reader for reader in readers if reader is not fusion}
    before = fusion.prev_op
    while later and before is not None:
        later.discard(before)
        before = before.prev_op
    return not later


def _source(value: SSAValue) -> tuple[HloOp, int]:
    """The instruction that makes an array, and the number of the array among the leaves of its result."""
    path = list[int]()
    while True:
        op = owner_of(value)
        match op:
            case GetTupleElementOp():
                path.insert(0, op.index.value.data)
                value = op.operands[0]
            case TupleOp() if path:
                value = op.operands[path.pop(0)]
            case BitcastOp():
                value = op.operands[0]
            case _:
                return op, leaf_at(op.result.type, path)
