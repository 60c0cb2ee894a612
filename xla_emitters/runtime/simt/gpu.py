"""`gpu`: a thread's position in the launch, barriers, and exchange within a warp.

All lanes run in lockstep, so a barrier has nothing to wait for; it checks that all threads of a block reach it together. A warp is 32
consecutive threads; an exchange checks that all the lanes that it names are active.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation

from xla_emitters.dialects.mlir import gpu
from xla_emitters.dialects.mlir.gpu import (
    AllReduceKind,
    AllReduceOp,
    PrintfOp,
    RotateOp,
    ShuffleMode,
    ShuffleOp,
    SubgroupBroadcastOp,
    SubgroupReduceOp,
)
from xla_emitters.dialects.ranges import range_of_value
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.kernels.kernel_entry import DIMENSIONS
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.arith import FLOAT_OPS, INTEGER_OPS
from xla_emitters.runtime.simt.code import Binary, Kernel, Rules, Scope, Step
from xla_emitters.runtime.simt.machine import Frame, Machine, Value
from xla_emitters.runtime.simt.scalars import INDEX, Form, form_of

RULES = Rules()

WARP_SIZE = 32

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
    def position(
        op: gpu.ThreadIdOp | gpu.BlockIdOp | gpu.BlockDimOp | gpu.GridDimOp | gpu.GlobalIdOp, name: str = _name
    ) -> Callable[[Machine], Array]:
        return position_kernel(op, name, op.dimension.data)


def position_kernel(op: Operation, name: str, dimension: str) -> Callable[[Machine], Array]:
    """A kernel that reads POSITIONS[name]. raises ExecutionError where the value is outside the range that `op` promises."""
    read, axis, bounds = POSITIONS[name], DIMENSIONS.index(dimension), range_of_value(op.results[0])

    def run(machine: Machine) -> Array:
        value = read(machine, axis)
        if bounds is not None:
            check_range(machine, op, value, bounds.lower, bounds.upper)
        return value

    return run


def check_range(machine: Machine, op: Operation, value: Array, low: int, high: int) -> None:
    """raises ExecutionError where a value is outside the range that the IR promises and later passes rely on."""
    outside = (value < low) | (value > high)
    machine.refuse(op, outside, f"gives a value outside the range that it promises, {low} to {high}")


def thread_numbers(machine: Machine) -> Array:
    """Each thread's number in its block, x fastest, int64 (1, threads)."""
    return np.arange(machine.launch.threads)[None, :]


def lane_numbers(machine: Machine) -> Array:
    """Each thread's number in its warp, int64 (1, threads)."""
    return thread_numbers(machine) % WARP_SIZE


@RULES.op(gpu.LaneIdOp)
def lane_id(op: gpu.LaneIdOp) -> Callable[[Machine], Array]:
    return lane_numbers


def warp_numbers(machine: Machine) -> Array:
    """The number of each thread's warp in its block, int64 (1, threads)."""
    return thread_numbers(machine) // WARP_SIZE


@RULES.op(gpu.SubgroupIdOp)
def subgroup_id(op: gpu.SubgroupIdOp) -> Callable[[Machine], Array]:
    return warp_numbers


@RULES.op(gpu.SubgroupSizeOp)
def subgroup_size(op: gpu.SubgroupSizeOp) -> Callable[[Machine], Array]:
    return lambda machine: scalars.constant(INDEX, WARP_SIZE)


@RULES.op(gpu.NumSubgroupsOp)
def num_subgroups(op: gpu.NumSubgroupsOp) -> Callable[[Machine], Array]:
    return lambda machine: scalars.constant(INDEX, -(-machine.launch.threads // WARP_SIZE))


@RULES.op(ShuffleOp)
def shuffle(op: ShuffleOp) -> Kernel:
    mode, form = op.mode.data, form_of(op.value.type)

    def run(machine: Machine, value: Value, offset: Array, width: Array) -> list[Value]:
        lane = lane_numbers(machine)
        match mode:
            case ShuffleMode.Xor:
                source = lane ^ offset
            case ShuffleMode.Up:
                source = lane - offset
            case ShuffleMode.Down:
                source = lane + offset
            case _:
                source = np.zeros_like(lane) + offset
        valid = (source >= 0) & (source < width)
        check_warps(machine, op, lane < width)
        check_sources(machine, op, source, valid)
        return [exchanged(machine, form, value, source, valid), valid]

    return run


@RULES.op(RotateOp)
def rotate(op: Any) -> Kernel:
    form, offset, width = form_of(op.value.type), op.offset.value.data, op.width.value.data

    def run(machine: Machine, value: Value) -> list[Value]:
        lane = lane_numbers(machine)
        check_warps(machine, op, np.ones((1, 1), np.bool_))
        source = lane - lane % width + (lane + offset) % width
        valid = np.ones_like(source, np.bool_)
        check_sources(machine, op, source, valid)
        return [exchanged(machine, form, value, source, valid), valid]

    return run


@RULES.op(SubgroupBroadcastOp)
def subgroup_broadcast(op: Any) -> Kernel:
    form = form_of(op.src.type)

    def run(machine: Machine, value: Value, lane: Array | None = None) -> Value:
        if lane is None:
            source = first_active_lanes(machine)
        else:
            check_warps(machine, op, np.ones((1, 1), np.bool_))
            machine.refuse(op, (lane < 0) | (lane >= WARP_SIZE), f"names a lane that is not in 0 to {WARP_SIZE - 1}")
            source = lane.astype(np.int64)
        source = np.broadcast_to(source, np.broadcast_shapes(source.shape, thread_numbers(machine).shape))
        valid = np.ones_like(source, np.bool_)
        check_sources(machine, op, source, valid)
        return exchanged(machine, form, value, source, valid)

    return run


def first_active_lanes(machine: Machine) -> Array:
    """For each thread the first active lane of its warp; 31 if no lane of the warp is active."""
    lane = lane_numbers(machine)
    if machine.active is None:
        return np.zeros_like(lane)
    active = np.broadcast_to(machine.active, machine.shape)
    numbers = np.where(active, lane, WARP_SIZE - 1)
    starts = np.arange(0, machine.launch.threads, WARP_SIZE)
    first = np.minimum.reduceat(numbers, starts, axis=1)
    return first.repeat(WARP_SIZE, axis=1)[:, : machine.launch.threads]


_KINDS = {
    AllReduceKind.Add: ("add", "add"),
    AllReduceKind.Mul: ("mul", "mul"),
    AllReduceKind.MinUI: ("minu", ""),
    AllReduceKind.MinSI: ("mins", ""),
    AllReduceKind.MaxUI: ("maxu", ""),
    AllReduceKind.MaxSI: ("maxs", ""),
    AllReduceKind.And: ("and", ""),
    AllReduceKind.Or: ("or", ""),
    AllReduceKind.Xor: ("xor", ""),
    AllReduceKind.MinNumF: ("", "minnum"),
    AllReduceKind.MaxNumF: ("", "maxnum"),
    AllReduceKind.MinimumF: ("", "minimum"),
    AllReduceKind.MaximumF: ("", "maximum"),
}
"""Kind of a reduction -> its integer op, its float op."""


def _combine(kind: AllReduceKind, form: Form) -> Binary:
    integer, float_ = _KINDS[kind]
    return FLOAT_OPS[float_](form) if form.is_float else INTEGER_OPS[integer](form)


@RULES.op(SubgroupReduceOp)
def subgroup_reduce(op: SubgroupReduceOp) -> Kernel:
    """Exchanges with the lanes at distance 1, 2, 4 ..., as MLIR expands it: every lane combines in the same order."""
    form = form_of(op.value.type)
    one = _combine(op.op.data, form)
    is_vector = isinstance(op.value.type, VectorType)
    size = op.cluster_size.value.data if op.cluster_size else WARP_SIZE
    stride = op.cluster_stride.value.data

    def run(machine: Machine, value: Any) -> Value:
        check_warps(machine, op, np.ones((1, 1), np.bool_))
        lane = lane_numbers(machine)
        all_lanes = np.ones_like(lane, np.bool_)
        step = stride
        while step < size * stride:
            check_sources(machine, op, lane ^ step, all_lanes)
            other: Any = exchanged(machine, form, value, lane ^ step, all_lanes)
            value = tuple(map(one, value, other)) if is_vector else one(value, other)
            step *= 2
        return value

    return run


@RULES.control(AllReduceOp)
def all_reduce(op: AllReduceOp, scope: Scope) -> Step:
    """Combines the threads of a block in order."""
    operand, result = scope.slot(op.operand), scope.slot(op.result)
    form = form_of(op.operand.type)
    if isinstance(op.operand.type, VectorType):
        raise Unsupported("gpu.all_reduce of vectors", stage="simt", details=(str(op).splitlines()[0],))
    body = scope.region(op.body) if op.op is None else None
    named = _combine(AllReduceKind.Add if op.op is None else op.op.data, form)

    def run(machine: Machine, frame: Frame) -> None:
        meet(machine, op)
        values = np.broadcast_to(frame[operand], machine.shape)
        total = values[:, :1]
        for thread in range(1, machine.launch.threads):
            other = values[:, thread : thread + 1]
            found: Any = body.run(machine, frame, [total, other])[0] if body else named(total, other)
            total = found
        frame[result] = total

    return run


def check_warps(machine: Machine, op: Operation, members: Array) -> None:
    """raises ExecutionError when a thread outside `members` reaches an exchange of its warp, or a thread of `members` does not.

    members   bool lanes: the threads that the op names
    """
    if machine.active is None:
        machine.refuse(op, ~members, "is run by a lane that the op does not name")
        return
    active, members = np.broadcast_to(machine.active, machine.shape), np.broadcast_to(members, machine.shape)
    starts = np.arange(0, machine.launch.threads, WARP_SIZE)
    here = np.logical_or.reduceat(active, starts, axis=1).repeat(WARP_SIZE, axis=1)[:, : machine.launch.threads]
    machine.memory.refuse(op, active & ~members, None, "is run by a lane that the op does not name")
    machine.memory.refuse(op, here & members & ~active, None, "is not reached with the other threads of the warp")


def check_sources(machine: Machine, op: Operation, source: Array, valid: Array) -> None:
    """Tells watchers which active lanes would take a value from an inactive lane.

    Lanes that the block does not have are left out: their values are poison, which reductions over less than a warp drop.

    source, valid   as for `exchanged`
    """
    if not machine.memory.watchers or machine.active is None:
        return
    threads = thread_numbers(machine)
    place = np.where(valid, threads - threads % WARP_SIZE + source, threads)
    place = np.where((place < 0) | (place >= machine.launch.threads), threads, place)
    active = np.broadcast_to(machine.active, machine.shape)
    absent = active & ~np.take_along_axis(active, np.broadcast_to(place, machine.shape), axis=1)
    for watcher in machine.memory.watchers:
        watcher.exchange(machine.memory, op, absent, machine.active)


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


@RULES.op(PrintfOp)
def printf(op: Any) -> Callable[..., None]:
    """Prints nothing: a kernel's output is not one of its results."""

    def run(machine: Machine, *values: Value) -> None:
        return None

    return run


@RULES.op(gpu.BarrierOp)
def barrier(op: gpu.BarrierOp) -> Callable[[Machine], None]:
    return lambda machine: meet(machine, op)


def meet(machine: Machine, op: Operation) -> None:
    """A barrier of whole blocks. raises ExecutionError when only some threads of a block reach it."""
    if machine.active is not None:
        active = np.broadcast_to(machine.active, machine.shape)
        apart = active.any(axis=1, keepdims=True) & ~active
        machine.memory.refuse(op, apart, None, "is not reached with the other threads of the block")
    machine.memory.changes += 1
    for watcher in machine.memory.watchers:
        watcher.barrier(machine.memory, machine.active)
