"""`nvvm`: special registers, barriers and shuffles: `gpu`'s, as the hardware spells them.

    nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32     the thread's x; the range is what the compiler was promised, and is checked
    nvvm.shfl.sync down %mask, %v, %d, %clamp              PTX's rule for which lane's value comes

Source: PTX ISA, "Special Registers" and "shfl.sync".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xla_emitters.dialects import nvvm
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt.code import Kernel, Rules
from xla_emitters.runtime.simt.gpu import DIMENSIONS, POSITIONS, WARP_SIZE, exchanged, lane_numbers, meet
from xla_emitters.runtime.simt.machine import Machine, Value

RULES = Rules()


def register(op: nvvm.SpecialRegisterOp, read: Callable[[Machine], Array]) -> Kernel:
    """A kernel that reads a register as i32. raises ExecutionError where its value leaves the promised range."""

    def run(machine: Machine) -> Array:
        value = read(machine).astype(np.int32)
        if op.range is not None:
            low, high = op.range.lower.value.data, op.range.upper.value.data
            machine.refuse(
                op, (value < low) | (value >= high), f"reads a value outside of its range, {low} to {high - 1}"
            )
        return value

    return run


for _family, _name in {
    "thread_id": nvvm.THREAD_ID,
    "block_id": nvvm.BLOCK_ID,
    "block_dim": nvvm.BLOCK_DIM,
    "grid_dim": nvvm.GRID_DIM,
}.items():
    for _dimension, _op in _name.items():
        _read = POSITIONS[_family]
        _number = DIMENSIONS.index(_dimension)
        RULES.op(_op)(lambda op, read=_read, number=_number: register(op, lambda machine: read(machine, number)))

RULES.op(nvvm.LaneIdOp)(lambda op: register(op, lane_numbers))
RULES.op(nvvm.WarpIdOp)(
    lambda op: register(op, lambda machine: np.arange(machine.launch.threads)[None, :] // WARP_SIZE)
)
RULES.op(nvvm.WarpSizeOp)(lambda op: register(op, lambda machine: np.full((1, 1), WARP_SIZE)))


@RULES.op(nvvm.Barrier0Op, nvvm.BarrierOp)
def barrier(op: nvvm.Barrier0Op | nvvm.BarrierOp) -> Kernel:
    if op.operands or op.results:
        raise Unsupported(f"{op.name} that is not for all threads of the block", stage="simt")
    return lambda machine: meet(machine, op)


@RULES.op(nvvm.GriddepcontrolOp)
def griddepcontrol(op: nvvm.GriddepcontrolOp) -> Kernel:
    return lambda machine: None


@RULES.op(nvvm.ShflOp)
def shuffle(op: nvvm.ShflOp) -> Kernel:
    kind = op.kind.data.value

    def run(machine: Machine, members: Array, value: Array, offset: Array, clamp: Array) -> Value:
        lane = lane_numbers(machine)
        segment, limit, offset = (clamp >> 8) & 31, clamp & 31, offset & 31
        first = lane & segment
        last = first | (limit & ~segment)
        source = {"bfly": lane ^ offset, "up": lane - offset, "down": lane + offset}.get(
            kind, first | (offset & ~segment)
        )
        valid = source >= last if kind == "up" else source <= last
        found = exchanged(machine, value, source, valid)
        return (found, valid) if op.return_value_and_is_valid else found

    return run
