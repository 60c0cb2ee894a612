"""`nvvm`: special registers, barriers and shuffles: `gpu`'s, as the hardware spells them.

    nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32     the thread's x; the range is what the compiler was promised, and is checked
    nvvm.shfl.sync down %mask, %v, %d, %clamp              PTX's rule for which lane's value comes

Source: PTX ISA, "Special Registers" and "shfl.sync".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xla_emitters.analysis.kernel_entry import DIMENSIONS
from xla_emitters.dialects import nvvm
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt.code import Kernel, Rules
from xla_emitters.runtime.simt.gpu import (
    POSITIONS,
    WARP_SIZE,
    check_range,
    check_warps,
    exchanged,
    lane_numbers,
    meet,
    warp_numbers,
)
from xla_emitters.runtime.simt.machine import Machine, Value
from xla_emitters.runtime.simt.scalars import form_of

RULES = Rules()


def register(op: nvvm.SpecialRegisterOp, read: Callable[[Machine], Array]) -> Callable[[Machine], Array]:
    """A kernel that reads a register as i32. raises ExecutionError where its value leaves the promised range."""
    bounds = (op.range.lower.value.data, op.range.upper.value.data - 1) if op.range else None

    def run(machine: Machine) -> Array:
        value = read(machine).astype(np.int32)
        if bounds is not None:
            check_range(machine, op, value, *bounds)
        return value

    return run


def _of_family(name: str, dimension: int) -> Callable[[nvvm.SpecialRegisterOp], Callable[[Machine], Array]]:
    read = POSITIONS[name]
    return lambda op: register(op, lambda machine: read(machine, dimension))


for _name, _family in {
    "thread_id": nvvm.THREAD_ID,
    "block_id": nvvm.BLOCK_ID,
    "block_dim": nvvm.BLOCK_DIM,
    "grid_dim": nvvm.GRID_DIM,
}.items():
    for _dimension, _op in _family.items():
        RULES.op(_op)(_of_family(_name, DIMENSIONS.index(_dimension)))

RULES.op(nvvm.LaneIdOp)(lambda op: register(op, lane_numbers))
RULES.op(nvvm.WarpIdOp)(lambda op: register(op, warp_numbers))
RULES.op(nvvm.WarpSizeOp)(lambda op: register(op, lambda machine: np.full((1, 1), WARP_SIZE)))


@RULES.op(nvvm.Barrier0Op, nvvm.BarrierOp)
def barrier(op: nvvm.Barrier0Op | nvvm.BarrierOp) -> Callable[[Machine], None]:
    if op.operands or op.results:
        raise Unsupported(f"{op.name} that is not for all threads of the block", stage="simt")
    return lambda machine: meet(machine, op)


@RULES.op(nvvm.GriddepcontrolOp)
def griddepcontrol(op: nvvm.GriddepcontrolOp) -> Callable[[Machine], None]:
    return lambda machine: None


@RULES.op(nvvm.ShflOp)
def shuffle(op: nvvm.ShflOp) -> Kernel:
    kind, form = op.kind.data, form_of(op.val.type)

    def run(machine: Machine, members: Array, value: Array, offset: Array, clamp: Array) -> Value:
        lane = lane_numbers(machine)
        segment, limit, offset = (clamp >> 8) & 31, clamp & 31, offset & 31
        first = lane & segment
        last = first | (limit & ~segment)
        match kind:
            case nvvm.ShflKind.BFLY:
                source = lane ^ offset
            case nvvm.ShflKind.UP:
                source = lane - offset
            case nvvm.ShflKind.DOWN:
                source = lane + offset
            case _:
                source = first | (offset & ~segment)
        valid = source >= last if kind is nvvm.ShflKind.UP else source <= last
        check_warps(machine, op, (members.view(np.uint32) >> lane.astype(np.uint32)) & 1 != 0)
        found = exchanged(machine, form, value, source, valid)
        return (found, valid) if op.return_value_and_is_valid else found

    return run
