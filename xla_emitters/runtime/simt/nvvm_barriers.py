"""Barriers of some threads of a block, barriers in shared memory (`mbarrier`), and the copies that complete them.

    nvvm.barrier id = %one number_of_threads = %sixty_four        complete when 64 threads are there; threads of whole warps are counted
    llvm.nvvm.mbarrier.arrive(%b, %count) ...                     a word of 64 bits: phase, pending and expected arrivals, bytes to come

Lanes run in lockstep: a barrier whose other threads are in another branch cannot wait for them, and is refused. A copy is complete when
it is issued. The race detector takes each of these barriers as one of the whole block.
Source: PTX ISA 8.8, 9.7.13.1 "bar", 9.7.13.15 "mbarrier", 9.7.9.25 "Asynchronous copy".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerType, VectorType, i64
from xdsl.ir import Operation

from xla_emitters.dialects.mlir import nvvm
from xla_emitters.dialects.mlir.nvvm_async import CpAsyncOp
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.rewrite.locations import place_of
from xla_emitters.runtime.simt.code import Kernel, Rules
from xla_emitters.runtime.simt.gpu import WARP_SIZE, meet
from xla_emitters.runtime.simt.llvm import check_alignment, load_value, store_value
from xla_emitters.runtime.simt.machine import Machine

RULES = Rules()


def active_lanes(machine: Machine) -> Array:
    """The lanes that run, bool (blocks, threads)."""
    return np.broadcast_to(np.True_ if machine.active is None else machine.active, machine.shape)


def elsewhere(op: Operation, what: str) -> Unsupported:
    """The error for a barrier whose other threads are in another branch."""
    place = (f"at {place_of(op) or str(op).splitlines()[0]}",)
    return Unsupported(f"{op.name} that waits for {what}, which are in another branch", stage="simt", details=place)


# ---------------------------------------------------------------------------------------------- barriers of a block


def _arrive(machine: Machine, op: Operation, number: Array | None, count: Array | None) -> Array:
    """Counts the active threads at a barrier. returns for how many more each block that is here waits; 0: complete"""
    chosen = 0 if number is None else machine.uniform(number)
    wanted = machine.launch.threads if count is None else machine.uniform(count)
    if chosen is None or wanted is None:
        raise Unsupported(f"{op.name} of several barriers at once", stage="simt", details=(str(op).splitlines()[0],))
    if not 0 <= chosen < 16 or wanted < 0 or (wanted % WARP_SIZE and wanted != machine.launch.threads):
        message = f"names barrier {chosen} of {wanted} threads: there are barriers 0 to 15, of multiples of {WARP_SIZE}"
        machine.refuse(op, np.ones((1, 1), np.bool_), message)
    lanes = active_lanes(machine)
    warps = np.logical_or.reduceat(lanes, np.arange(0, machine.launch.threads, WARP_SIZE), axis=1).sum(axis=1)
    here = lanes.any(axis=1)
    arrived = machine.memory.arrived.setdefault(chosen, np.zeros(len(machine.blocks), np.int64))
    arrived += np.where(here, warps * WARP_SIZE, 0)
    # The last warp of a block may have fewer threads.
    missing = np.where(here, -(-wanted // WARP_SIZE) * WARP_SIZE - arrived, 0)
    if (missing < 0).any():
        machine.refuse(
            op, np.broadcast_to((missing < 0)[:, None], machine.shape), f"is reached by more than {wanted} threads"
        )
    arrived[here & (missing == 0)] = 0
    machine.memory.changes += 1
    return missing


@RULES.op(nvvm.BarrierOp)
def barrier(op: nvvm.BarrierOp) -> Kernel:
    """raises Unsupported where the other threads of a barrier of some threads are in another branch"""
    has_number, has_count = op.barrier_id is not None, op.number_of_threads is not None
    reduction = None if op.reductionOp is None else op.reductionOp.word.data

    def run(machine: Machine, *operands: Array) -> Array | None:
        given = list(operands)
        number = given.pop(0) if has_number else None
        count = given.pop(0) if has_count else None
        if count is None and not machine.memory.arrived:
            meet(machine, op)
        else:
            missing = _arrive(machine, op, number, count)
            if missing.any():
                raise elsewhere(op, f"{int(missing.max())} threads")
            for watcher in machine.memory.watchers:
                watcher.barrier(machine.memory, machine.active)
        if not given:
            return None
        lanes = active_lanes(machine)
        holds = np.broadcast_to(given[0] != 0, machine.shape) & lanes
        counted = holds.sum(axis=1, keepdims=True)
        match reduction:
            case "popc":
                return counted.astype(np.int32)
            case "and":
                return (counted == lanes.sum(axis=1, keepdims=True)).astype(np.int32)
            case _:
                return (counted > 0).astype(np.int32)

    return run


def arrive(op: Operation) -> Kernel:
    """Arrives at a barrier of some threads without waiting."""

    def run(machine: Machine, number: Array, count: Array) -> None:
        _arrive(machine, op, number, count)

    return run


# ---------------------------------------------------------------------------------------------- barriers in memory

_COUNT = (1 << 20) - 1
_BIAS = 1 << 22


@dataclass
class Barriers:
    """The barriers that active lanes name: a representative lane of each, and its state.

    which      for each active lane, the number of its barrier
    pending    arrivals that the phase waits for; expected: of each phase; bytes_: to come; phase: 0 or 1
    """

    machine: Machine
    op: Operation
    address: Array
    lanes: Array
    first: Array
    which: Array
    pending: Array
    expected: Array
    bytes_: Array
    phase: Array

    @classmethod
    def of(cls, machine: Machine, op: Operation, address: Array, active: Array | None = None) -> Barriers:
        """Loads the states. active: the lanes that take part; by default those that run"""
        lanes = active_lanes(machine) if active is None else active
        check_alignment(machine, op, address, 8)
        address = np.broadcast_to(address, machine.shape)
        block = np.broadcast_to(np.arange(machine.shape[0])[:, None], machine.shape)[lanes]
        _, chosen, which = np.unique(np.stack([block, address[lanes]]), axis=1, return_index=True, return_inverse=True)
        first = np.zeros(machine.shape, np.bool_)
        places = np.flatnonzero(lanes)[chosen]
        first.reshape(-1)[places] = True
        with machine.only(first):
            loaded: Any = load_value(op, i64, 8, machine, address)
        # `first` lists lanes in their order; the states are in that of `chosen`.
        words = np.broadcast_to(loaded, machine.shape).reshape(-1)[places].view(np.uint64)

        def field(shift: int, mask: int) -> Array:
            return (words >> np.uint64(shift) & np.uint64(mask)).astype(np.int64)

        return cls(
            *(machine, op, address, lanes, places, which.reshape(-1)),
            *(field(0, _COUNT), field(20, _COUNT), field(40, 2 * _BIAS - 1) - _BIAS, field(63, 1)),
        )

    def words(self) -> Array:
        """The states as words of memory."""
        parts = ((self.pending, 0), (self.expected, 20), (self.bytes_ + _BIAS, 40), (self.phase, 63))
        total = np.zeros(self.pending.shape, np.uint64)
        for part, shift in parts:
            total |= part.astype(np.uint64) << np.uint64(shift)
        return total.view(np.int64)

    def sums(self, values: Array) -> Array:
        """For each barrier the sum of a value of the lanes that name it."""
        given = np.broadcast_to(values, self.machine.shape)[self.lanes].astype(np.int64)
        return np.bincount(self.which, weights=given, minlength=len(self.pending)).astype(np.int64)

    def spread(self, values: Array) -> Array:
        """A value of each barrier for all lanes that name it."""
        found = np.zeros(self.machine.shape, values.dtype)
        found[self.lanes] = values[self.which]
        return found

    def store(self) -> None:
        """Ends the phases that wait for nothing more, and writes the states."""
        many = (self.pending < 0) | (self.pending > _COUNT)
        if many.any():
            self.machine.refuse(self.op, self.spread(many), "arrives more often than the barrier expects")
        done = (self.pending == 0) & (self.bytes_ == 0)
        self.phase = np.where(done, self.phase ^ 1, self.phase)
        self.pending = np.where(done, self.expected, self.pending)
        first, values = np.zeros(self.machine.shape, np.bool_), np.zeros(self.machine.shape, np.int64)
        first.reshape(-1)[self.first], values.reshape(-1)[self.first] = True, self.words()
        with self.machine.only(first):
            store_value(self.op, i64, 8, self.machine, values, self.address)


def _mbarrier_init(op: Operation) -> Kernel:
    def run(machine: Machine, address: Array, count: Array) -> None:
        machine.refuse(op, (count <= 0) | (count > _COUNT), f"expects no arrival, or more than {_COUNT}")
        check_alignment(machine, op, address, 8)
        wide = count.astype(np.int64)
        store_value(op, i64, 8, machine, wide | wide << 20 | _BIAS << 40, address)

    return run


def _mbarrier_arrive(op: Operation, *, expects_bytes: bool = False, drops: bool = False) -> Kernel:
    def run(machine: Machine, address: Array, count: Array) -> Array:
        found = Barriers.of(machine, op, address)
        token = found.spread(found.words())
        if expects_bytes:
            found.bytes_ = found.bytes_ + found.sums(count)
            arrivals = found.sums(np.ones((1, 1), np.int64))
        else:
            arrivals = found.sums(count)
        found.pending = found.pending - arrivals
        if drops:
            found.expected = found.expected - arrivals
        found.store()
        return token

    return run


def _mbarrier_bytes(op: Operation, sign: int) -> Kernel:
    """Expects more bytes, or says that some have come."""

    def run(machine: Machine, address: Array, count: Array) -> None:
        found = Barriers.of(machine, op, address)
        found.bytes_ = found.bytes_ + sign * found.sums(count)
        found.store()

    return run


def _mbarrier_wait(op: Operation, *, by_parity: bool, may_wait: bool) -> Kernel:
    """Whether the phase is complete. raises Unsupported where it never can be, because the other threads are in another branch"""

    def run(machine: Machine, address: Array, phase: Array) -> Array:
        found = Barriers.of(machine, op, address)
        asked = phase & 1 if by_parity else phase.astype(np.int64).view(np.uint64) >> np.uint64(63)
        done = found.spread(found.phase) != asked.astype(np.int64)
        lanes = active_lanes(machine)
        done &= lanes
        here = lanes.any(axis=1, keepdims=True)
        if may_wait and (lanes & ~done).any() and (here & ~lanes).any():
            raise elsewhere(op, "threads")
        if done.any():
            for watcher in machine.memory.watchers:
                watcher.barrier(machine.memory, done)
        return done

    return run


def _pending(op: Operation) -> Kernel:
    def run(machine: Machine, token: Array) -> Array:
        return (token & _COUNT).astype(np.int32)

    return run


# ---------------------------------------------------------------------------------------------- copies


@RULES.op(CpAsyncOp)
def cp_async(op: Any) -> Kernel:
    size = op.size.value.data
    ir_type = VectorType(IntegerType(8), [size])

    def run(machine: Machine, to: Array, of: Array, count: Array | None = None) -> None:
        values: Any
        if count is None:
            values = load_value(op, ir_type, size, machine, of)
        else:
            check_alignment(machine, op, of, size)
            values = tuple(_byte(machine, op, of + number, count > number) for number in range(size))
        store_value(op, ir_type, size, machine, values, to)

    return run


def _byte(machine: Machine, op: Operation, address: Array, wanted: Array) -> Array:
    """The byte at the address for lanes in `wanted`, else 0."""
    lanes = np.broadcast_to(wanted, machine.shape)
    lanes = lanes if machine.active is None else lanes & machine.active
    zero = np.zeros((1, 1), np.int8)
    if not lanes.any():
        return zero
    with machine.only(lanes):
        found: Any = load_value(op, IntegerType(8), 1, machine, address)
    return np.where(lanes, found, zero)


def _bulk(op: Operation) -> Kernel:
    """Copies multiples of 16 bytes, each lane its own number of them."""
    ir_type = VectorType(IntegerType(32), [4])

    def run(machine: Machine, to: Array, of: Array, size: Array) -> None:
        machine.refuse(op, (size & 15 != 0) | (size < 0), "copies bytes that are no multiple of 16")
        for address in (to, of):
            check_alignment(machine, op, address, 16)
        lanes = active_lanes(machine)
        sizes = np.broadcast_to(size, machine.shape)
        for start in range(0, int(sizes[lanes].max()), 16):
            with machine.only(lanes & (sizes > start)):
                values: Any = load_value(op, ir_type, 16, machine, of + start)
                store_value(op, ir_type, 16, machine, values, to + start)

    return run


OF_OP: dict[str, Callable[[Operation], Kernel]] = {
    "barrier.cta.arrive": arrive,
    "mbarrier.init": _mbarrier_init,
    "mbarrier.arrive": _mbarrier_arrive,
    "mbarrier.arrive.drop": lambda op: _mbarrier_arrive(op, drops=True),
    "mbarrier.arrive.expect_tx": lambda op: _mbarrier_arrive(op, expects_bytes=True),
    "mbarrier.expect_tx": lambda op: _mbarrier_bytes(op, 1),
    "mbarrier.complete_tx": lambda op: _mbarrier_bytes(op, -1),
    "mbarrier.test_wait": lambda op: _mbarrier_wait(op, by_parity=False, may_wait=False),
    "mbarrier.test_wait.parity": lambda op: _mbarrier_wait(op, by_parity=True, may_wait=False),
    "mbarrier.try_wait": lambda op: _mbarrier_wait(op, by_parity=False, may_wait=True),
    "mbarrier.try_wait.parity": lambda op: _mbarrier_wait(op, by_parity=True, may_wait=True),
    "mbarrier.pending_count": _pending,
    "cp.async.bulk": _bulk,
}
"""Intrinsics of this file, without `llvm.nvvm.`."""
