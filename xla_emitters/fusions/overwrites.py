"""May a fusion write its result over an array that it reads? Only where nothing else needs what was there.

    body {  %s = (s32[], f32[8]) parameter(0)                        state of the loop: the body's own
            %x = f32[8] get-tuple-element(%s), index=1
            %r = f32[] fusion(%x), calls=read                        before in program order: may read it
            %u = f32[8] fusion(%x, ...), calls=update                may write over %x
            ROOT %t = (s32[], f32[8]) tuple(%i, %u) }                %x is not a result: else it may not

The array must be one that the program makes: a result of a fusion or of a library call, or the state that a loop's body is given. A
parameter of ENTRY is the caller's; those of a loop's condition or of a branch are what others may read later; a constant has no buffer; and
what a loop or a conditional gives may be an array that it was given. One array may have several names: tuples, their elements and
bitcasts share memory.
Source: XLA copy_insertion.cc, which asks the same of live ranges.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import TupleType
from xdsl.ir import Attribute, Operation, SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.dialects.hlo.types import leaf_types

_MAY_PASS_ON = ("while", "conditional", "call", "async-start")
"""Opcodes of instructions whose results may be arrays that they were given."""


def may_overwrite(value: SSAValue, fusion: FusionOp, bodies: AbstractSet[ComputationOp]) -> bool:
    """Whether `fusion` may write its result over the array `value`, one of its operands; see the file's head.

    bodies  those computations that only loops run, as their bodies (`host.loop_bodies`)
    """
    op, _ = _source(value)
    if isinstance(op, ParameterOp):
        is_own = op.parent_op() in bodies
    else:
        is_own = not isinstance(op, ConstantOp) and op.opcode not in _MAY_PASS_ON
    return is_own and is_last_use(value, fusion)


def next_values(body: ComputationOp) -> dict[tuple[HloOp, int], list[int]]:
    """What makes the next values of a loop's state: instruction and leaf of its result -> the numbers of the state's leaves."""
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
    """Which leaf of its computation's parameter an array is; None for what an instruction makes."""
    op, leaf = _source(value)
    return leaf if isinstance(op, ParameterOp) and op.number.value.data == 0 else None


def is_callers(value: SSAValue) -> bool:
    """Whether an array is a parameter of ENTRY: what is said to be written there goes into a copy, or the caller gave it away."""
    around = value.owner.parent_op()
    return isinstance(value.owner, ParameterOp) and isinstance(around, ComputationOp) and around.is_entry


def is_last_use(value: SSAValue, fusion: FusionOp) -> bool:
    """Whether `fusion` reads the array once, nothing reads it later under any of its names, and it is no result of the computation."""
    readers = list[Operation]()
    pending = [_source(value)]
    while pending:
        op, leaf = pending.pop()
        for use in op.result.uses:
            user = use.operation
            match user:
                case GetTupleElementOp():
                    first, count = _leaves_before(op.result.type, user.index.value.data)
                    if first <= leaf < first + count:
                        pending.append((user, leaf - first))
                case TupleOp():
                    pending.append((user, _leaves_before(user.result.type, use.index)[0] + leaf))
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
    """The instruction that makes an array, and which leaf of its result the array is."""
    path = list[int]()
    while True:
        op = value.owner
        assert isinstance(op, HloOp)
        match op:
            case GetTupleElementOp():
                path.insert(0, op.index.value.data)
                value = op.operands[0]
            case TupleOp() if path:
                value = op.operands[path.pop(0)]
            case BitcastOp():
                value = op.operands[0]
            case _:
                return op, _leaf_at(op.result.type, path)


def _leaf_at(ir_type: Attribute, path: list[int]) -> int:
    """The number of the first leaf of the element that `path` leads to."""
    number = 0
    for index in path:
        assert isinstance(ir_type, TupleType)
        number += _leaves_before(ir_type, index)[0]
        ir_type = ir_type.types.data[index]
    return number


def _leaves_before(ir_type: Attribute, index: int) -> tuple[int, int]:
    """How many leaves of a tuple are before its element `index`, and how many that has."""
    assert isinstance(ir_type, TupleType)
    before = sum(len(leaf_types(part)) for part in ir_type.types.data[:index])
    return before, len(leaf_types(ir_type.types.data[index]))
