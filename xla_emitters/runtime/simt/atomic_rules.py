"""Atomic updates: lanes that update one element take turns, block by block, thread by thread.

    xla_gpu.atomic_rmw %t[%i] : tensor<8xf32> { ^bb0(%old: f32): ... }

    lane     0  1  2  3  4  5             element    3: lane 0, then 2, then 5
    element  3  7  3  1  7  3                        7: lane 1, then 4

Round k runs the k-th lane of every element, so the number of rounds is the most lanes of one element. On a GPU the order is undefined;
here it is always this one, which is possible on a GPU too, so that sums of floats can be compared bit by bit.
A body of one op that NumPy accumulates in the same order by itself, as `np.add.at` does, needs no rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from xla_emitters.dialects import xla_gpu
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith
from xla_emitters.dtypes import Array
from xla_emitters.runtime.simt.code import BlockCode, FrameSlots, Rules, Step
from xla_emitters.runtime.simt.machine import Frame, Machine, Tensor, Value
from xla_emitters.runtime.simt.memory import Buffer
from xla_emitters.runtime.simt.scalars import F32, F64, Form, form_of, from_bits, to_bits
from xla_emitters.runtime.simt.tensor_rules import element_index
from xla_emitters.runtime.simt.vector_rules import columns, count_of, elements_of, row_index, rows_of

RULES = Rules()


def take_turns(machine: Machine, keys: Array, update: Callable[[], None]) -> None:
    """Runs `update` for groups of the active lanes: the lanes of a group have different keys, and lanes of one key run in order.

    keys   int64 lanes
    """
    lanes = np.broadcast_to(keys, machine.shape).reshape(-1)
    numbers = np.arange(lanes.size)
    if machine.active is not None:
        numbers = np.flatnonzero(np.broadcast_to(machine.active, machine.shape))
    order = numbers[np.argsort(lanes[numbers], kind="stable")]
    first = np.ones(order.size, np.bool_)
    first[1:] = lanes[order[1:]] != lanes[order[:-1]]
    place = np.arange(order.size)
    rounds = place - np.maximum.accumulate(np.where(first, place, 0))
    count = int(rounds.max()) + 1
    if count == 1:
        return update()
    turn = np.full(lanes.size, -1)
    turn[order] = rounds
    turn = turn.reshape(machine.shape)
    for number in range(count):
        with machine.only(turn == number):
            update()


def instances(buffer: Buffer, index: Array, size: int) -> Array:
    """A different number for each element of `size` bytes: its index in the whole buffer, whose instances follow one another."""
    return index if buffer.origin is None else index + buffer.origin // size


# ---------------------------------------------------------------------------------------------- one op


ACCUMULATE: dict[str, tuple[np.ufunc, str]] = {
    arith.AddiOp.name: (np.add, "u"),
    arith.AndIOp.name: (np.bitwise_and, "u"),
    arith.OrIOp.name: (np.bitwise_or, "u"),
    arith.XOrIOp.name: (np.bitwise_xor, "u"),
    arith.MinSIOp.name: (np.minimum, "i"),
    arith.MaxSIOp.name: (np.maximum, "i"),
    arith.MinUIOp.name: (np.minimum, "u"),
    arith.MaxUIOp.name: (np.maximum, "u"),
    arith.AddfOp.name: (np.add, "f"),
}
"""Op -> NumPy's function, and the kind of NumPy type as which memory is viewed. Only the floats that NumPy adds unwidened: f32, f64."""


def accumulated(form: Form, name: str) -> tuple[np.ufunc, np.dtype[Any]] | None:
    """How NumPy accumulates with the op `name` in memory of `form`; None where it cannot, or not with the same bits."""
    ufunc, kind = ACCUMULATE.get(name, (None, ""))
    whole = form.rounded in (F32, F64) if kind == "f" else form.is_integer and form.bits in (8, 16, 32, 64)
    return (ufunc, np.dtype(f"{kind}{form.size}")) if ufunc and whole else None


def _added_to(op: xla_gpu.AtomicRMWOp) -> tuple[str, SSAValue] | None:
    """For a body `yield (old OP x)` with x from outside: the op and x."""
    *ops, last = op.body.block.ops
    if len(ops) != 1 or list(ops[0].results) != list(last.operands) or len(ops[0].operands) != 2:
        return None
    others = [operand for operand in ops[0].operands if operand is not op.current]
    return (ops[0].name, others[0]) if len(others) == 1 else None


# ---------------------------------------------------------------------------------------------- tensors


@RULES.control(xla_gpu.AtomicRMWOp)
def atomic_rmw(op: xla_gpu.AtomicRMWOp, scope: FrameSlots) -> Step:
    target, indices, result = scope.slot(op.input), scope.slots(op.indices), scope.slot(op.result)
    assert isa(op.input.type, TensorType[Attribute])
    form = form_of(op.input.type)
    old = op.current.type
    count = count_of(old) if isa(old, VectorType[Attribute]) else None
    body = scope.body(op.body.block)
    found = _added_to(op)
    quick = accumulated(form, found[0]) if found else None
    addend = scope.slot(found[1]) if found else None

    def run(machine: Machine, frame: Frame) -> None:
        tensor: Tensor = frame[target]
        machine.check_newest(op, tensor)
        position: list[Array] = [frame[slot] for slot in indices]
        if count is not None:
            index = row_index(machine, op, tensor, count, position)
        else:
            index = element_index(machine, op, tensor, position)
        if quick and addend is not None:
            ufunc, seen_as = quick
            value: Value = frame[addend]
            bits = to_bits(form, elements_of(value)[0]) if count is None else rows_of(form, elements_of(value))
            values = bits.view(seen_as)
            machine.memory.accumulate(op, tensor.buffer, ufunc, index, values, machine.active)
        else:
            keys = instances(tensor.buffer, index, form.size * (count or 1))
            take_turns(machine, keys, partial(_replace, machine, op, tensor, count, index, body, frame))
        frame[result] = machine.updated(tensor)

    return run


def _replace(
    machine: Machine, op: Operation, tensor: Tensor, count: int | None, index: Array, body: BlockCode, frame: Frame
) -> None:
    """Each active lane replaces its element, or its row of `count` elements, by the body's result for it."""
    memory, form, buffer = machine.memory, tensor.element, tensor.buffer
    old = memory.gather(op, buffer, index, form.storage, machine.active, count)
    current: Value = from_bits(form, old) if count is None else columns(form, old)
    (new,) = body.run(machine, frame, [current])
    bits = to_bits(form, elements_of(new)[0]) if count is None else rows_of(form, elements_of(new))
    memory.scatter(op, buffer, index, bits, machine.active)
