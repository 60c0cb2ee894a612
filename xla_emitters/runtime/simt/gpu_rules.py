"""`gpu`: a thread's position in the launch, barriers, and exchange within a warp.

All lanes run in lockstep, so a barrier has nothing to wait for; it checks that all threads of a block reach it together. A warp is 32
consecutive threads; an exchange checks that all the lanes that it names are active.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from xla_emitters.dialects.mlir import gpu, llvm
from xla_emitters.dialects.mlir.gpu import ShuffleOp
from xla_emitters.dialects.ranges import range_of_value
from xla_emitters.dtypes import Array
from xla_emitters.rewrite.effects import is_pure
from xla_emitters.rewrite.kernel_entry import DIMENSIONS
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.code import Rules
from xla_emitters.runtime.simt.machine import WARP_SIZE, Machine, Value
from xla_emitters.runtime.simt.memory import Watcher
from xla_emitters.runtime.simt.scalars import INDEX, Form, form_of

RULES = Rules()

POSITIONS: dict[str, Callable[[Machine, int], Array]] = {
    "thread_id": Machine.thread_id,
    "block_id": Machine.block_id,
    "block_dim": lambda machine, dimension: scalars.constant(INDEX, machine.launch.block[dimension]),
    "grid_dim": lambda machine, dimension: scalars.constant(INDEX, machine.launch.grid[dimension]),
    "global_id": lambda machine, d: machine.block_id(d) * machine.launch.block[d] + machine.thread_id(d),
}
"""(machine, dimension: 0 for x) -> int64 lanes; `nvvm`'s special registers read the same."""

for _op, _name in {
    gpu.ThreadIdOp: "thread_id",
    gpu.BlockIdOp: "block_id",
    gpu.BlockDimOp: "block_dim",
    gpu.GridDimOp: "grid_dim",
    gpu.GlobalIdOp: "global_id",
}.items():

    @RULES.op(_op)
    def position(op: Any, name: str = _name) -> Callable[[Machine], Array]:
        return position_kernel(op, name, op.dimension.data)


def position_kernel(op: Operation, name: str, dimension: str) -> Callable[[Machine], Array]:
    """A kernel that reads POSITIONS[name]. raises ExecutionError where the value is outside the range that `op` promises."""
    read, axis, bounds = POSITIONS[name], DIMENSIONS.index(dimension), range_of_value(op.results[0])
    return promised(
        op, lambda machine: read(machine, axis), (bounds.lower, bounds.upper) if bounds is not None else None
    )


def promised(
    op: Operation, read: Callable[[Machine], Array], bounds: tuple[int, int] | None
) -> Callable[[Machine], Array]:
    """A kernel that checks the least and the greatest value that the IR promises and later passes rely on."""

    def run(machine: Machine) -> Array:
        value = read(machine)
        if bounds is not None:
            low, high = bounds
            outside = (value < low) | (value > high)
            machine.refuse(op, outside, f"gives a value outside the range that it promises, {low} to {high}")
        return value

    return run


def thread_numbers(machine: Machine) -> Array:
    """Each thread's number in its block, x fastest, int64 (1, threads)."""
    return np.arange(machine.launch.threads)[None, :]


def lane_numbers(machine: Machine) -> Array:
    """Each thread's number in its warp, int64 (1, threads)."""
    return thread_numbers(machine) % WARP_SIZE


def warp_numbers(machine: Machine) -> Array:
    """The number of each thread's warp in its block, int64 (1, threads)."""
    return thread_numbers(machine) // WARP_SIZE


RULES.of_machine(lane_numbers, gpu.LaneIdOp)
RULES.of_machine(warp_numbers, gpu.SubgroupIdOp)
RULES.of_machine(lambda machine: scalars.constant(INDEX, WARP_SIZE), gpu.SubgroupSizeOp)
RULES.of_machine(lambda machine: scalars.constant(INDEX, -(-machine.launch.threads // WARP_SIZE)), gpu.NumSubgroupsOp)


@RULES.kernel(ShuffleOp)
def shuffle(op: ShuffleOp, machine: Machine, value: Value, offset: Array, width: Array) -> list[Value]:
    mode, form = op.mode.word.data, form_of(op.value.type)
    lane = lane_numbers(machine)
    match mode:
        case "xor":
            source = lane ^ offset
        case "up":
            source = lane - offset
        case "down":
            source = lane + offset
        case _:
            source = np.zeros_like(lane) + offset
    valid = (source >= 0) & (source < width)
    check_warps(machine, op, lane < width)
    check_sources(machine, op, source, valid)
    return [exchanged(machine, form, value, source, valid), valid]


def check_warps(machine: Machine, op: Operation, members: Array, awaited: Array | None = None) -> None:
    """raises ExecutionError when a thread outside `members` reaches an exchange of its warp, or an awaited thread does not.

    members   bool lanes: the threads that the op names
    awaited   those that the other threads of their warp wait for; None: `members`
    """
    if machine.active is None:
        machine.refuse(op, ~members, "is run by a lane that the op does not name")
        return
    active, members = np.broadcast_to(machine.active, machine.shape), np.broadcast_to(members, machine.shape)
    starts = np.arange(0, machine.launch.threads, WARP_SIZE)
    here = np.logical_or.reduceat(active, starts, axis=1).repeat(WARP_SIZE, axis=1)[:, : machine.launch.threads]
    machine.memory.refuse(op, active & ~members, None, "is run by a lane that the op does not name")
    awaited = members if awaited is None else awaited
    absent = here & awaited & ~active
    if machine.memory.exited is not None:
        absent &= ~machine.memory.exited
    machine.memory.refuse(op, absent, None, "is not reached with the other threads of the warp")


def _may_be_dropped(value: SSAValue, depth: int = 4) -> bool:
    """Whether every use of a value is one of two values of a select, or arithmetic for such."""
    for use in value.uses:
        user = use.operation
        if isinstance(user, llvm.SelectOp):
            if not use.index:
                return False
        elif not depth or not user.results or not is_pure(user):
            return False
        elif not all(_may_be_dropped(result, depth - 1) for result in user.results):
            return False
    return True


def check_sources(machine: Machine, op: Operation, source: Array, valid: Array) -> None:
    """Tells watchers which active lanes would take a value from an inactive lane.

    Lanes that the block does not have are left out: their values are poison, which reductions over less than a warp drop. So are all where
    a select takes the value: it has the choice to drop it, as reductions of some lanes of a warp do.

    source, valid   as for `exchanged`
    """
    if not machine.memory.watchers or machine.active is None:
        return
    threads = thread_numbers(machine)
    place = np.where(valid, threads - threads % WARP_SIZE + source, threads)
    place = np.where((place < 0) | (place >= machine.launch.threads), threads, place)
    active = np.broadcast_to(machine.active, machine.shape)
    absent = active & ~np.take_along_axis(active, np.broadcast_to(place, machine.shape), axis=1)
    if absent.any() and not all(_may_be_dropped(each) for each in op.results):
        machine.memory.tell(Watcher.exchange, op, absent, machine.active)


def exchanged(machine: Machine, form: Form, value: Value, source: Array, valid: Array) -> Value:
    """The value of lane `source` of each thread's warp: scalars or vectors of `form`.

    The thread's own value where `source` is not `valid`; poison where the block's last warp has no such thread.
    """
    if isinstance(value, tuple):
        return tuple(exchanged(machine, form, element, source, valid) for element in value)
    assert isinstance(value, np.ndarray)
    threads = thread_numbers(machine)
    place = np.where(valid, threads - threads % WARP_SIZE + source, threads)
    missing = (place < 0) | (place >= machine.launch.threads)
    place = np.where(missing, threads, place)
    lanes = np.broadcast_to(value, (value.shape[0], machine.launch.threads))
    if place.shape[0] == 1:
        found = lanes.take(place[0], axis=1)
    else:
        found = np.take_along_axis(np.broadcast_to(lanes, machine.shape), place, axis=1)
    return np.where(missing, scalars.poison(form), found) if missing.any() else found


@RULES.op(gpu.BarrierOp)
def barrier(op: Operation) -> Callable[[Machine], None]:
    return lambda machine: meet(machine, op)


def meet(machine: Machine, op: Operation) -> None:
    """A barrier of whole blocks. raises ExecutionError when only some threads of a block reach it, of the warps that have not ended."""
    if machine.active is not None:
        active = np.broadcast_to(machine.active, machine.shape)
        apart = active.any(axis=1, keepdims=True) & ~active
        if (ended := ended_warps(machine)) is not None:
            apart &= ~ended.repeat(WARP_SIZE, axis=1)[:, : machine.launch.threads]
        if machine.may_hold and apart.any():
            machine.stalled = active & apart.any(axis=1, keepdims=True)
            machine.active = active & ~machine.stalled
            if not machine.active.any():
                return
            apart = np.zeros_like(apart)
        machine.memory.refuse(op, apart, None, "is not reached with the other threads of the block")
    machine.memory.changes += 1
    machine.memory.tell(Watcher.barrier, machine.active)


def ended_warps(machine: Machine) -> Array | None:
    """The warps of which every thread has ended, bool (blocks, warps); None: no thread has.

    A barrier does not wait for them. One of a warp that is still there must come with all of its threads.
    Source: CUDA C++ Programming Guide, "Independent Thread Scheduling"; PTX ISA 8.8, 9.7.13.1, "barrier.aligned".
    """
    exited = machine.memory.exited
    if exited is None:
        return None
    starts = np.arange(0, machine.launch.threads, WARP_SIZE)
    return np.logical_and.reduceat(np.broadcast_to(exited, machine.shape), starts, axis=1)


def fence(machine: Machine) -> None:
    """Tells watchers; lanes run in lockstep."""
    machine.memory.tell(Watcher.fence, machine.active)


def block_fence(machine: Machine) -> None:
    """The same for a fence that threads of the block alone observe."""
    machine.memory.tell(Watcher.block_fence, machine.active)
