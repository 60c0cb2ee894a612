"""`nvvm`: special registers, barriers and shuffles: `gpu`'s ops in PTX's form.

    nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32     the thread's x; the range, a promise to the compiler, is checked
    nvvm.shfl.sync down %mask, %v, %d, %clamp              the source lane is chosen by PTX's rule
    nvvm.redux.sync add %v, %mask                          over the lanes of the mask that exist

Source: PTX ISA, "Special Registers", "shfl.sync", "redux.sync", "vote.sync", "match.sync", "cp.async".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from xdsl.ir import Operation

from xla_emitters.dialects.mlir import nvvm
from xla_emitters.dialects.mlir.nvvm_async import (
    FenceMbarrierInitOp,
    FenceProxyOp,
    FenceScClusterOp,
    MemoryBarrierOp,
    NanosleepOp,
    SetMaxRegisterOp,
)
from xla_emitters.dtypes import Array
from xla_emitters.rewrite.kernel_entry import DIMENSIONS
from xla_emitters.runtime.simt.arith_rules import FLOAT_OPS, INTEGER_OPS, OfForm
from xla_emitters.runtime.simt.code import Kernel, Rules, Unary, nothing
from xla_emitters.runtime.simt.gpu_rules import (
    POSITIONS,
    WARP_SIZE,
    block_fence,
    check_sources,
    check_warps,
    exchanged,
    fence,
    lane_numbers,
    promised,
    thread_numbers,
    warp_numbers,
)
from xla_emitters.runtime.simt.machine import Machine, Value
from xla_emitters.runtime.simt.memory import Watcher
from xla_emitters.runtime.simt.scalars import BOOL, Form, form_of

RULES = Rules()


def register(op: nvvm.SpecialRegisterOp, read: Callable[[Machine], Array]) -> Callable[[Machine], Array]:
    """A kernel that reads a register as i32. raises ExecutionError where its value is outside the promised range."""
    bounds = (op.range.lower.value.data, op.range.upper.value.data - 1) if op.range else None
    return promised(op, lambda machine: read(machine).astype(np.int32), bounds)


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


_ORDERS = {"eq": np.equal, "le": np.less_equal, "lt": np.less, "ge": np.greater_equal, "gt": np.greater}


def _lane_mask(order: str) -> Callable[[nvvm.SpecialRegisterOp], Callable[[Machine], Array]]:
    """A mask with one bit per lane of the warp, set where the lane is in `order` (eq, lt, ge ...) to the thread's own."""

    def read(machine: Machine) -> Array:
        lanes = np.arange(WARP_SIZE)[:, None]
        bits = _ORDERS[order](lanes, lane_numbers(machine)).astype(np.uint32) << lanes.astype(np.uint32)
        return np.bitwise_or.reduce(bits, axis=0, keepdims=True).view(np.int32)

    return lambda op: register(op, read)


for _order, _op in nvvm.LANE_MASKS.items():
    RULES.op(_op)(_lane_mask(_order))


# ---------------------------------------------------------------------------------------------- waiting


# All threads run in lockstep.
RULES.kernel(nvvm.GriddepcontrolOp, FenceMbarrierInitOp, FenceScClusterOp, NanosleepOp, SetMaxRegisterOp)(nothing)


@RULES.op(MemoryBarrierOp)
def memory_barrier(op: MemoryBarrierOp) -> Callable[[Machine], None]:
    return block_fence if op.scope.word.data == "cta" else fence


def proxy_fence(machine: Machine) -> None:
    """Tells watchers; the copies and products that it orders are complete when they are issued."""
    machine.memory.tell(Watcher.proxy_fence, machine.active)


@RULES.op(FenceProxyOp)
def fence_proxy(op: Any) -> Callable[[Machine], None]:
    return proxy_fence if op.kind.word.data in ("async", "async.shared") else lambda machine: None


@RULES.kernel(nvvm.SyncWarpOp)
def sync_warp(op: Operation, machine: Machine, members: Array) -> None:
    _check_members(machine, op, members)
    machine.memory.changes += 1
    machine.memory.tell(Watcher.warp_barrier, machine.active)


# ---------------------------------------------------------------------------------------------- exchange


def _is_member(machine: Machine, members: Array) -> Array:
    """Whether each thread is among the lanes of its mask."""
    return (members.view(np.uint32) >> lane_numbers(machine).astype(np.uint32)) & 1 != 0


def _check_members(machine: Machine, op: Operation, members: Array) -> None:
    """As `check_warps`: each thread has a mask of its own, and waits for the threads that it names and that have not ended."""
    awaited = None
    if machine.active is not None:
        named = np.broadcast_to(np.where(machine.active, members.view(np.uint32), np.uint32(0)), machine.shape)
        starts = np.arange(0, machine.launch.threads, WARP_SIZE)
        of_warp = np.bitwise_or.reduceat(named, starts, axis=1).repeat(WARP_SIZE, axis=1)
        awaited = _is_member(machine, of_warp[:, : machine.launch.threads].view(np.int32))
    check_warps(machine, op, _is_member(machine, members), awaited)


def _each_member(machine: Machine, form: Form, value: Value, members: Array) -> Iterator[tuple[int, Array, Array]]:
    """For each lane of a warp: its number, the threads whose mask names it and whose warp has it (if it has not ended), and its value."""
    starts, exited = thread_numbers(machine) - lane_numbers(machine), machine.memory.exited
    for lane in range(WARP_SIZE):
        is_there = (members.view(np.uint32) >> np.uint32(lane) & 1 != 0) & (starts + lane < machine.launch.threads)
        if exited is not None:
            column = np.minimum(starts + lane, machine.launch.threads - 1)
            is_there = is_there & ~np.take_along_axis(np.broadcast_to(exited, machine.shape), column, axis=1)
        if is_there.any():
            source = np.full_like(starts, lane)
            found = exchanged(machine, form, value, source, np.ones_like(source, np.bool_))
            assert isinstance(found, np.ndarray)
            yield lane, is_there, found


_REDUX: dict[str, OfForm] = {
    **{name: INTEGER_OPS[name] for name in ("add", "and", "or", "xor")},
    "max": INTEGER_OPS["maxs"],
    "min": INTEGER_OPS["mins"],
    "umax": INTEGER_OPS["maxu"],
    "umin": INTEGER_OPS["minu"],
    "fmax": FLOAT_OPS["maxnum"],
    "fmin": FLOAT_OPS["minnum"],
}
_PROPAGATING = {"fmax": FLOAT_OPS["maximum"], "fmin": FLOAT_OPS["minimum"]}
"""The float operations for `nan`: a NaN operand gives NaN."""


@RULES.op(nvvm.ReduxOp)
def redux(op: Any) -> Kernel:
    form, kind = form_of(op.val.type), op.kind.word.data
    combine = (_PROPAGATING if op.nan.value.data else _REDUX)[kind](form)
    takes_magnitudes = bool(op.abs.value.data)

    def run(machine: Machine, value: Array, members: Array) -> Array:
        _check_members(machine, op, members)
        value = np.abs(value) if takes_magnitudes else value
        total, has_one = value, np.zeros((1, 1), np.bool_)
        for _, is_there, found in _each_member(machine, form, value, members):
            total = np.where(is_there, np.where(has_one, combine(total, found), found), total)
            has_one = has_one | is_there
        return total

    return run


def _masks(
    machine: Machine, form: Form, value: Value, members: Array, holds: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """Two masks for each thread, of the lanes of its warp: those whose value `holds` is true for, and those that are there."""
    yes, there = np.zeros((1, 1), np.uint32), np.zeros((1, 1), np.uint32)
    for lane, is_there, found in _each_member(machine, form, value, members):
        yes = yes | (is_there & holds(found)).astype(np.uint32) << np.uint32(lane)
        there = there | is_there.astype(np.uint32) << np.uint32(lane)
    return yes, there


def active_lanes(machine: Machine) -> Array:
    """For each thread the mask of the lanes of its warp that run now."""
    return _masks(machine, BOOL, machine.lanes, np.full((1, 1), -1, np.int32), np.asarray)[0].view(np.int32)


@RULES.kernel(nvvm.VoteOp)
def vote(op: Any, machine: Machine, members: Array, predicate: Array) -> Array:
    kind = op.kind.word.data
    _check_members(machine, op, members)
    yes, there = _masks(machine, BOOL, predicate, members, np.asarray)
    match kind:
        case "ballot":
            return yes.view(np.int32)
        case "all":
            return yes == there
        case "any":
            return yes != 0
        case _:
            return (yes == there) | (yes == 0)


@RULES.kernel(nvvm.MatchOp)
def match_lanes(op: Any, machine: Machine, members: Array, value: Array) -> Value:
    form, kind = form_of(op.val.type), op.kind.word.data
    _check_members(machine, op, members)
    same, there = _masks(machine, form, value, members, lambda found: found == value)
    if kind == "any":
        return same.view(np.int32)
    all_same = same == there
    return np.where(all_same, same, np.uint32(0)).view(np.int32), all_same


@RULES.kernel(nvvm.ElectSyncOp)
def elect(op: Operation, machine: Machine, members: Array | None = None) -> Array:
    """Chooses the first lane of the mask; PTX leaves the choice open."""
    if members is None:
        members = np.full((1, 1), -1, np.int32)
    _check_members(machine, op, members)
    mask = members.view(np.uint32)
    lowest = mask & (~mask + np.uint32(1))
    return lowest == np.uint32(1) << lane_numbers(machine).astype(np.uint32)


@RULES.elementwise(nvvm.RcpApproxFtzOp)
def rcp(op: Operation) -> Unary:
    """The correctly rounded reciprocal; the hardware's error is at most one ulp."""
    least = np.finfo(np.float32).tiny

    def flushed(values: Array) -> Array:
        return np.where(np.abs(values) < least, np.copysign(np.float32(0), values), values)

    return lambda values: flushed(np.float32(1) / flushed(values))


@RULES.kernel(nvvm.ShflOp)
def shuffle(op: nvvm.ShflOp, machine: Machine, members: Array, value: Array, offset: Array, clamp: Array) -> Value:
    kind, form = op.kind.word.data, form_of(op.val.type)
    lane = lane_numbers(machine)
    segment, limit, offset = (clamp >> 8) & 31, clamp & 31, offset & 31
    first = lane & segment
    last = first | (limit & ~segment)
    match kind:
        case "bfly":
            source = lane ^ offset
        case "up":
            source = lane - offset
        case "down":
            source = lane + offset
        case _:
            source = first | (offset & ~segment)
    valid = source >= last if kind == "up" else source <= last
    _check_members(machine, op, members)
    check_sources(machine, op, source, valid)
    found = exchanged(machine, form, value, source, valid)
    return (found, valid) if op.return_value_and_is_valid else found
