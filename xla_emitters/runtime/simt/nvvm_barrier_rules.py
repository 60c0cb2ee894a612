"""Barriers of some threads of a block, barriers in shared memory (`mbarrier`), and the copies that complete them.

    nvvm.barrier id = %one number_of_threads = %sixty_four        complete when 64 threads are there; threads of whole warps are counted
    llvm.nvvm.mbarrier.arrive(%b, %count) ...                     a word of 64 bits: phase, pending and expected arrivals, bytes to come

Lanes that wait stay behind (`code.Graph`) while others run, in other branches too. A copy moves its bytes when it is issued; when it is
complete the race detector is told.
Source: PTX ISA 8.8, 9.7.13.1 "bar", 9.7.13.15 "mbarrier", 9.7.9.25 "Asynchronous copy".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerType, VectorType, i64
from xdsl.ir import Operation

from xla_emitters.dialects.locations import place_of
from xla_emitters.dialects.mlir import nvvm
from xla_emitters.dialects.mlir.nvvm_async import CpAsyncCommitGroupOp, CpAsyncOp, CpAsyncWaitGroupOp
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt.code import Kernel, Rules
from xla_emitters.runtime.simt.copies_in_flight import Flight
from xla_emitters.runtime.simt.gpu_rules import WARP_SIZE, ended_warps, meet
from xla_emitters.runtime.simt.llvm_rules import check_alignment, load_value, store_value
from xla_emitters.runtime.simt.machine import Machine
from xla_emitters.runtime.simt.memory import WINDOW_BITS, Named, Watcher

RULES = Rules()


def left_behind(machine: Machine, op: Operation, lanes: Array, what: str) -> None:
    """Lanes that wait stay behind. raises ExecutionError (`what`) where nothing else can run, Unsupported where the op cannot leave them"""
    if not lanes.any():
        return
    if machine.gives_up and machine.calls == 1:
        machine.refuse(op, lanes, what)
    if machine.gives_up or not machine.may_stall:
        place = (f"at {place_of(op) or str(op).splitlines()[0]}",)
        raise Unsupported(f"{op.name} in a function, or among other ops, that waits", stage="simt", details=place)
    machine.stalled = lanes


# ---------------------------------------------------------------------------------------------- barriers of a block


class BlockBarrier:
    """One barrier of each block.

    arrived  threads that have arrived in this phase, by whole warps, int64 (blocks,); there, waiting, holds: which, which of them wait,
             and for which a predicate holds, bool (blocks, threads)
    phase    of each block; `ticket`: in which phase each thread arrived last
    found    of the last phase: for how many threads the predicate held, and how many there were, int64 (blocks,)
    """

    def __init__(self, machine: Machine) -> None:
        blocks, _ = machine.shape
        self.arrived, self.phase = np.zeros(blocks, np.int64), np.zeros(blocks, np.int64)
        self.there, self.waiting, self.holds = (np.zeros(machine.shape, np.bool_) for _ in range(3))
        self.ticket = np.zeros(machine.shape, np.int64)
        self.found = np.zeros(blocks, np.int64), np.zeros(blocks, np.int64)

    def arrive(
        self, here: Array, lanes: Array, holds: Array, wanted: int, ended: Array | None, *, waits: bool
    ) -> tuple[Array, Array]:
        """Counts lanes. returns for how many more threads each block that is here waits, and which blocks are complete

        here    blocks of which threads are at the barrier, now or since before, bool (blocks,)
        ended   warps that have ended and that the barrier does not wait for, bool (blocks, warps)
        """
        starts = np.arange(0, int(lanes.shape[1]), WARP_SIZE)
        warps = np.logical_or.reduceat(lanes, starts, axis=1).sum(axis=1)
        self.arrived += warps * WARP_SIZE
        self.ticket = np.where(lanes, self.phase[:, None], self.ticket)
        self.there |= lanes
        self.waiting |= lanes & waits
        self.holds |= lanes & holds
        # The last warp of a block may have fewer threads.
        missing = -(-wanted // WARP_SIZE) * WARP_SIZE - self.arrived
        if ended is not None:
            came = np.logical_or.reduceat(self.there, starts, axis=1)
            missing = missing - (ended & ~came).sum(axis=1) * WARP_SIZE
        missing = np.where(here, missing, 0)
        complete = here & (missing == 0)
        held, counted = self.found
        self.found = (
            np.where(complete, self.holds.sum(axis=1), held),
            np.where(complete, self.there.sum(axis=1), counted),
        )
        return missing, complete

    def begin_phase(self, complete: Array) -> None:
        """The barrier waits for threads anew, in these blocks."""
        self.phase += complete
        self.arrived[complete] = 0
        self.there[complete] = self.waiting[complete] = self.holds[complete] = False


def _arrive(
    machine: Machine,
    op: Operation,
    number: Array | None,
    count: Array | None,
    holds: Array | None = None,
    *,
    waits: bool = True,
) -> list[tuple[Array, BlockBarrier]]:
    """The active threads arrive at barriers, but those that were left behind there have. returns the threads of each barrier"""
    active, found = machine.lanes, list[tuple[Array, BlockBarrier]]()
    numbers = np.broadcast_to(0 if number is None else number, machine.shape)
    counts = np.broadcast_to(machine.launch.threads if count is None else count, machine.shape)
    barriers, ended = machine.memory.barriers, ended_warps(machine) if count is None else None
    for chosen, wanted in np.unique(np.stack([numbers[active], counts[active]]), axis=1).T.tolist():
        named = active & (numbers == chosen) & (counts == wanted)
        if not 0 <= chosen < 16 or wanted < 0 or (wanted % WARP_SIZE and wanted != machine.launch.threads):
            message = (
                f"names barrier {chosen} of {wanted} threads: there are barriers 0 to 15, of multiples of {WARP_SIZE}"
            )
            machine.refuse(op, named, message)
        state = barriers[chosen] = barriers.get(chosen) or BlockBarrier(machine)
        found.append((named, state))
        lanes = named if machine.retried is None else named & ~machine.retried
        if not lanes.any() and ended is None:
            continue
        missing, complete = state.arrive(
            named.any(axis=1), lanes, np.zeros((1, 1), np.bool_) if holds is None else holds, wanted, ended, waits=waits
        )
        many = np.broadcast_to((missing < 0)[:, None], machine.shape)
        machine.refuse(op, many, f"is reached by more than {wanted} threads")
        machine.memory.changes += bool(lanes.any() or complete.any())
        if complete.any():
            whole = np.broadcast_to(complete[:, None], machine.shape)
            there, waiting = state.there & whole, state.waiting & whole
            # Threads that have ended are not there, and what they did is over.
            if wanted >= machine.launch.threads and (there == waiting).all():
                machine.memory.tell(Watcher.barrier, whole)
            else:
                machine.memory.tell(Watcher.barrier_of, there, waiting)
            state.begin_phase(complete)
    return found


@RULES.op(nvvm.Barrier0Op, nvvm.BarrierOp)
def barrier(op: Operation) -> Kernel:
    """Threads wait at a barrier. raises ExecutionError where the others never come"""
    has_number = isinstance(op, nvvm.BarrierOp) and op.barrier_id is not None
    has_count = isinstance(op, nvvm.BarrierOp) and op.number_of_threads is not None
    why = "waits for threads that never come" if has_count else "is not reached with the other threads of the block"
    reduction = op.reductionOp.word.data if isinstance(op, nvvm.BarrierOp) and op.reductionOp is not None else None

    def run(machine: Machine, *operands: Array) -> Array | None:
        given = list(operands)
        number = given.pop(0) if has_number else None
        count = given.pop(0) if has_count else None
        if not machine.may_stall and count is None and not machine.memory.barriers:
            meet(machine, op)
            there = machine.lanes
            holds = there & (given[0] != 0) if given else np.zeros((1, 1), np.bool_)
            held, counted = (lanes.sum(axis=1, keepdims=True) for lanes in (holds, there))
        else:
            held, counted, waits = (np.zeros(machine.shape, kind) for kind in (np.int64, np.int64, np.bool_))
            for lanes, state in _arrive(machine, op, number, count, given[0] != 0 if given else None):
                held, counted = (
                    np.where(lanes, of_phase[:, None], others)
                    for of_phase, others in zip(state.found, (held, counted), strict=True)
                )
                waits |= lanes & (state.ticket >= state.phase[:, None])
            left_behind(machine, op, waits, why)
        match reduction:
            case None:
                return None
            case "popc":
                return held.astype(np.int32)
            case "and":
                return (held == counted).astype(np.int32)
            case _:
                return (held > 0).astype(np.int32)

    return run


class ClusterBarrier:
    """The barrier of each cluster.

    arrived  threads that have arrived in this phase, bool (blocks, threads); phase: of each block's cluster, int64 (blocks,)
    ticket   in which phase each thread arrived last
    relaxed  threads that have arrived in this phase and released nothing
    """

    def __init__(self, machine: Machine) -> None:
        self.arrived, self.relaxed = np.zeros(machine.shape, np.bool_), np.zeros(machine.shape, np.bool_)
        self.phase, self.ticket = np.zeros(machine.shape[0], np.int64), np.full(machine.shape, -1)

    def arrive(self, machine: Machine, lanes: Array, *, is_relaxed: bool = False) -> None:
        """Counts lanes; those that have ended count too."""
        self.ticket = np.where(lanes, self.phase[:, None], self.ticket)
        self.arrived |= lanes
        self.relaxed |= lanes & is_relaxed
        memory = machine.memory
        there = self.arrived if memory.exited is None else self.arrived | memory.exited
        of_clusters = there.reshape(-1, memory.cluster * machine.shape[1]).all(axis=1)
        complete = of_clusters.repeat(memory.cluster) & self.arrived.any(axis=1)
        if complete.any():
            self.phase += complete
            relaxed = self.arrived.any(axis=1) & (self.relaxed == self.arrived).all(axis=1)
            self.arrived[complete] = self.relaxed[complete] = False
            memory.tell(Watcher.cluster_barrier, np.broadcast_to(complete[:, None], machine.shape), relaxed)


_OF_CLUSTER = -1
"""The number of the cluster's barrier among `Memory.barriers`."""


def _cluster_barrier(op: Operation, machine: Machine, *, waits: bool = False, is_relaxed: bool = False) -> None:
    barriers = machine.memory.barriers
    state = barriers[_OF_CLUSTER] = barriers.get(_OF_CLUSTER) or ClusterBarrier(machine)
    lanes = machine.lanes
    if waits:
        machine.refuse(op, state.ticket < 0, "waits for the cluster without having arrived")
        state.arrive(machine, np.zeros((1, 1), np.bool_))
        why = "waits for threads of its cluster that never arrive"
        left_behind(machine, op, lanes & (state.ticket >= state.phase[:, None]), why)
        machine.memory.tell(Watcher.cluster_wait, machine.lanes)
    else:
        state.arrive(machine, lanes, is_relaxed=is_relaxed)
        machine.memory.changes += 1


def arrive(op: Operation, machine: Machine, number: Array, count: Array) -> None:
    """Arrives at a barrier of some threads without waiting."""
    _arrive(machine, op, number, count, waits=False)


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
        lanes = machine.lanes if active is None else active
        check_alignment(machine, op, address, 8)
        address = np.broadcast_to(address, machine.shape)
        # Threads of several blocks of a cluster may name one barrier.
        block, place = machine.memory.placed(address)
        named = np.stack([block[lanes], place[lanes]])
        _, chosen, which = np.unique(named, axis=1, return_index=True, return_inverse=True)
        first = np.zeros(machine.shape, np.bool_)
        places = np.flatnonzero(lanes)[chosen]
        first.reshape(-1)[places] = True
        # All lanes look at it, so that the race detector finds those that nothing orders behind its initialisation.
        with machine.only(lanes):
            loaded: Any = load_value(op, i64, 8, machine, address)
        # `first` lists lanes in their order; the states are in that of `chosen`.
        words = np.broadcast_to(loaded, machine.shape).reshape(-1)[places].view(np.uint64)

        def field(shift: int, mask: int) -> Array:
            return (words >> np.uint64(shift) & np.uint64(mask)).astype(np.int64)

        return cls(
            *(machine, op, address, lanes, places, which.reshape(-1)),
            *(field(0, _COUNT), field(20, _COUNT), field(40, 2 * _BIAS - 1) - _BIAS, field(63, 1)),
        )

    def named(self, chosen: Array) -> list[Named]:
        """The barriers of lanes in `chosen`, with these lanes."""
        block, place = self.machine.memory.placed(self.address)
        numbers = self.spread(np.arange(len(self.pending)))
        found = list[Named]()
        for number, at in enumerate(self.first):
            lanes = chosen & self.lanes & (numbers == number)
            if lanes.any():
                found.append((lanes, (int(block.reshape(-1)[at]), int(place.reshape(-1)[at]))))
        return found

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


def _mbarrier_init(op: Operation, machine: Machine, address: Array, count: Array) -> None:
    machine.refuse(op, (count <= 0) | (count > _COUNT), f"expects no arrival, or more than {_COUNT}")
    check_alignment(machine, op, address, 8)
    wide = count.astype(np.int64)
    store_value(op, i64, 8, machine, wide | wide << 20 | _BIAS << 40, address)


def _mbarrier_arrive(
    op: Operation, machine: Machine, address: Array, count: Array, *, expects_bytes: bool = False, drops: bool = False
) -> Array:
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
    _tell_of_arrivals(machine, found)
    return token


def _mbarrier_bytes(
    sign: int,
    op: Operation,
    machine: Machine,
    address: Array,
    count: Array,
    *,
    are_stored: bool = False,
    of_pair: bool = False,
) -> None:
    """Expects more bytes, or says that some have come.

    are_stored  by `st.async` and its kin, which those that see the phase know
    of_pair     to any block of the barrier's pair
    """
    found = Barriers.of(machine, op, address)
    found.bytes_ = found.bytes_ + sign * found.sums(count)
    found.store()
    if sign < 0 and machine.memory.watchers:
        _tell_of_copies(machine, found, Flight.COPY, is_bulk=True, of_pair=of_pair)
    if are_stored:
        _tell_of_arrivals(machine, found)


def _tell_of_arrivals(machine: Machine, barriers: Barriers) -> None:
    if machine.memory.watchers:
        machine.memory.tell(Watcher.arrive, barriers.named(machine.lanes))


def _tell_of_copies(machine: Machine, barriers: Barriers, flight: Flight, **how: bool) -> None:
    for lanes, barrier in barriers.named(machine.lanes):
        machine.memory.tell(Watcher.complete_by, lanes, barrier, flight, **how)


def _copies_arrive(op: Operation, machine: Machine, address: Array) -> None:
    """The copies of a thread complete a barrier; the arrival itself is another op."""
    if machine.memory.watchers:
        _tell_of_copies(machine, Barriers.of(machine, op, address), Flight.COPY, is_bulk=False)


def _commit_tensor(op: Operation, machine: Machine, address: Array) -> None:
    """The products and copies that a thread has issued complete a barrier, at which it arrives."""
    if machine.memory.watchers:
        _tell_of_copies(machine, Barriers.of(machine, op, address), Flight.TENSOR, is_bulk=True)
    _mbarrier_arrive(op, machine, address, np.ones((1, 1), np.int64))


def _loaded(flight: Flight, op: Operation, machine: Machine) -> None:
    """The loads, or stores, of tensor memory that threads have issued are complete: the next op uses a register of a load."""
    _commit_group(flight, op, machine)
    _wait_group(flight, op, machine, np.zeros((1, 1), np.int64))


def _await_tensor(flight: Flight, op: Operation, machine: Machine) -> None:
    """A warp waits for all of its loads, or stores, of tensor memory: together, as it has issued them."""
    _loaded(flight, op, machine)
    machine.memory.tell(Watcher.warp_barrier, machine.active)


def _await_products(op: Operation, machine: Machine, most: Array) -> None:
    """A warp waits for groups of its products: what these read for one lane they read for all."""
    _wait_group(Flight.PRODUCT, op, machine, most)
    machine.memory.tell(Watcher.warp_barrier, machine.active)


def _mbarrier_wait(by_parity: bool, op: Operation, machine: Machine, address: Array, phase: Array) -> Array:
    """Whether the phase is complete. Lanes for which it is not stay behind; only where nothing else can run they get the answer no."""
    found = Barriers.of(machine, op, address)
    asked = phase & 1 if by_parity else phase.astype(np.int64).view(np.uint64) >> np.uint64(63)
    done = found.spread(found.phase) != asked.astype(np.int64)
    lanes = machine.lanes
    done &= lanes
    if machine.may_stall and (machine.calls > 1 or not machine.gives_up):
        left_behind(machine, op, lanes & ~done, "")
    if machine.memory.watchers and done.any():
        named = found.named(done)
        for _, barrier in named:
            machine.memory.tell(Watcher.phase_ends, barrier)
        machine.memory.tell(Watcher.see_phase, named)
    return done


def _pending(op: Operation, machine: Machine, token: Array) -> Array:
    return (token & _COUNT).astype(np.int32)


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


def _commit_group(flight: Flight, op: Operation, machine: Machine) -> None:
    machine.memory.tell(Watcher.commit_group, machine.lanes, flight)


def _wait_group(flight: Flight, op: Operation, machine: Machine, most: Array) -> None:
    machine.memory.tell(Watcher.await_groups, machine.lanes, machine.uniform(most) or 0, flight)


RULES.kernel(CpAsyncCommitGroupOp)(partial(_commit_group, Flight.COPY))


@RULES.kernel(CpAsyncWaitGroupOp)
def await_copies(op: Any, machine: Machine) -> None:
    _wait_group(Flight.COPY, op, machine, np.full((1, 1), op.n.value.data))


def _byte(machine: Machine, op: Operation, address: Array, wanted: Array) -> Array:
    """The byte at the address for lanes in `wanted`, else 0."""
    lanes = wanted & machine.lanes
    zero = np.zeros((1, 1), np.int8)
    if not lanes.any():
        return zero
    with machine.only(lanes):
        found: Any = load_value(op, IntegerType(8), 1, machine, address)
    return np.where(lanes, found, zero)


def multicast(
    run: Kernel, op: Operation, machine: Machine, address: Array, *operands: Array, is_paired: bool = False
) -> Any:
    """The op once for each block in a mask, its last operand; its first one is an address in that block.

    is_paired  or, if it is in the first or the second block of a pair, in the first or second of that block's pair
    """
    *others, mask = operands
    cluster, total = machine.memory.cluster, np.zeros((1, 1), np.int32)
    for rank in range(cluster):
        wanted = (mask >> rank & 1 != 0) & machine.lanes
        if wanted.any():
            of_pair = rank & ~1 | address >> WINDOW_BITS & 1 if is_paired else rank
            there = machine.memory.of_rank(address, of_pair)
            with machine.only(wanted):
                found = run(op, machine, there, *others)
            total = total if found is None else np.maximum(total, found)
    return total


OF_OP: dict[str, Kernel] = {
    "barrier.cta.arrive": arrive,
    "barrier.cluster.arrive": _cluster_barrier,
    "barrier.cluster.arrive.relaxed": partial(_cluster_barrier, is_relaxed=True),
    "barrier.cluster.wait": partial(_cluster_barrier, waits=True),
    "cp.async.bulk.commit.group": partial(_commit_group, Flight.STORE),
    "cp.async.bulk.wait.group": partial(_wait_group, Flight.STORE),
    "cp.async.mbarrier.arrive": _copies_arrive,
    "mbarrier.init": _mbarrier_init,
    "mbarrier.arrive": _mbarrier_arrive,
    "mbarrier.arrive.drop": partial(_mbarrier_arrive, drops=True),
    "mbarrier.arrive.drop.expect_tx": partial(_mbarrier_arrive, drops=True, expects_bytes=True),
    "mbarrier.arrive.expect_tx": partial(_mbarrier_arrive, expects_bytes=True),
    "mbarrier.expect_tx": partial(_mbarrier_bytes, 1),
    "mbarrier.complete_tx": partial(_mbarrier_bytes, -1),
    "mbarrier.complete_tx.stored": partial(_mbarrier_bytes, -1, are_stored=True),
    "mbarrier.complete_tx.multicast": partial(multicast, partial(_mbarrier_bytes, -1)),
    "mbarrier.complete_tx.pair": partial(_mbarrier_bytes, -1, of_pair=True),
    "mbarrier.complete_tx.pair.multicast": partial(
        multicast, partial(_mbarrier_bytes, -1, of_pair=True), is_paired=True
    ),
    **{
        f"mbarrier.{word}_wait{'.parity' * by_parity}": partial(_mbarrier_wait, by_parity)
        for word in ("test", "try")
        for by_parity in (False, True)
    },
    "mbarrier.pending_count": _pending,
    "tcgen05.commit": _commit_tensor,
    "tcgen05.commit.multicast": partial(multicast, _commit_tensor),
    "tcgen05.loaded": partial(_loaded, Flight.TENSOR_LOAD),
    "tcgen05.wait::ld": partial(_await_tensor, Flight.TENSOR_LOAD),
    "tcgen05.wait::st": partial(_await_tensor, Flight.TENSOR_STORE),
    "wgmma.commit_group.sync.aligned": partial(_commit_group, Flight.PRODUCT),
    "wgmma.wait_group.sync.aligned": _await_products,
}
"""Intrinsics of this file, without `llvm.nvvm.` -> the kernel, which takes the op in front."""
