"""The memory traffic of a kernel, counted by the CPU executor on some of its blocks.

    f32[4096,4096] read by columns: a load of a warp touches 32 sectors; 8 loads of a block touch each sector; no further ones of its wave

A sector of 32 bytes that is read is counted once for each request (the traffic of a multiprocessor's first-level cache), once for
each block (the traffic of the second-level cache: the first-level cache keeps a sector for as long as its block runs), and once for
each wave of blocks that are resident together (the traffic of memory: the second-level cache keeps it for that long). A store goes through
the first-level cache, so the second-level cache sees each request's lines. An atomic update reads and writes.

A block that reads a sector again, as a softmax of long rows does, finds it in the second-level cache only if everything that all
resident blocks read and wrote since then fits there. So these reads are counted by the bytes that their block touched in between.

All blocks of small grids run. Of larger grids, SAMPLES runs of neighbouring blocks run, evenly spread, and represent all. Large arrays are
zero: only data that determines the place of another access (indices of a gather or a scatter) affects the counts, and it is random.
Source: CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory" and "Shared Memory and Memory Banks".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dtypes import Array, dtype
from xla_emitters.graph.view import FusionView
from xla_emitters.program import Argument, ArraySpec, LaunchDimensions
from xla_emitters.runtime.arrays import random_array, refuse_beyond_memory
from xla_emitters.runtime.draws import Places
from xla_emitters.runtime.inputs import allowed_starts
from xla_emitters.runtime.layouts import to_buffer
from xla_emitters.runtime.simt.access_counts import NO_THREAD, SECTOR, AccessCount, AccessCounter, by_warps, sectors_of
from xla_emitters.runtime.simt.execute import execute
from xla_emitters.runtime.simt.memory import Access, Memory, Space, Watcher

LINE = 128
SAMPLES = 4
ALL_THREADS = 1 << 18
"""A grid of at most this many threads runs completely."""
SAMPLE_THREADS = 1 << 15
"""The number of threads in each run of neighbouring blocks, but at least one block."""
DRAWN_ELEMENTS = 1 << 20
LEAST_SHARED = 0.9
"""Samples that have fewer sectors in common than a tenth do not tell how many the grid chooses from: a few meet by chance."""


@dataclass(frozen=True)
class Sectors:
    """For one argument, bytes of sectors in the whole grid: read or written, as counted at each memory level.

    write_lines  as write_requests, in whole lines of 128 bytes: that many packets go to the second-level cache
    read_runs    number of runs of neighbouring sectors that a block reads, summed over blocks
    write_runs   as read_runs
    """

    read_requests: float = 0
    read_blocks: float = 0
    read_waves: float = 0
    write_requests: float = 0
    write_waves: float = 0
    write_lines: float = 0
    read_runs: float = 0
    write_runs: float = 0


Rereads = Mapping[int, float]
"""Bytes that a block touched since it last read a sector, rounded down to a power of two -> bytes of such sectors, in the whole grid."""


@dataclass(frozen=True)
class Traffic:
    """The traffic of a kernel's accesses, for the whole grid.

    arguments      by the argument's number
    buffers        bytes of each argument, in whole sectors
    lane_bytes     that active threads load from global memory, summed over threads
    l1_cycles      of one multiprocessor's first-level cache for all requests to global memory: 4 sectors per cycle
    shared_cycles  of its shared memory: one for each part of a request, and one for each further word that it needs from the same bank
    bank_ways      the mean over the parts of requests, 1 without conflicts; 0 without shared memory
    worst_ways     the maximum over all parts
    accesses       of the blocks that ran, a row per op and buffer
    sampled        number of blocks that ran
    rereads        by the argument's number
    footprints     bytes of each argument that the whole grid reads, each sector once: an estimate where not all blocks ran
    """

    arguments: tuple[Sectors, ...]
    buffers: tuple[int, ...]
    lane_bytes: float
    l1_cycles: float
    shared_cycles: float
    bank_ways: float
    worst_ways: int
    accesses: tuple[AccessCount, ...]
    sampled: int
    rereads: tuple[Rereads, ...] = ()
    footprints: tuple[float, ...] = ()

    @property
    def l2_bytes(self) -> float:
        return sum(each.read_blocks + each.write_requests for each in self.arguments)


@dataclass
class _Touched:
    """For one argument and one run of blocks: a list of keys (block, sector) per access, and the sectors summed over requests.

    read_at  for each part of `reads`, the bytes that a block had touched before
    """

    reads: list[Array] = field(default_factory=list[Array])
    read_at: list[float] = field(default_factory=list[float])
    writes: list[Array] = field(default_factory=list[Array])
    read_requests: int = 0
    write_requests: int = 0
    write_lines: int = 0


class TrafficCounter(AccessCounter):
    """Also records the sectors that each block touches."""

    def __init__(self, sectors: Sequence[int]) -> None:
        """sectors: number of sectors of each argument."""
        super().__init__()
        self.sectors = sectors
        self.arguments = [_Touched() for _ in sectors]
        self.lane_bytes = 0
        self.l1_cycles = 0
        self.rereads = [Counter[int]() for _ in sectors]
        self.read_by_runs: list[list[Array]] = [[] for _ in sectors]
        self._touched_bytes = 0.0

    def access(self, memory: Memory, access: Access) -> None:
        super().access(memory, access)
        if access.buffer.space is not Space.GLOBAL or access.buffer.number >= len(self.arguments):
            return
        shape = len(memory.blocks), memory.launch.threads
        warps = by_warps(access, shape)
        rows, found = sectors_of(warps, access.size)
        if not rows.size:
            return
        argument, size = self.arguments[access.buffer.number], self.sectors[access.buffer.number]
        blocks = memory.blocks[rows // (len(warps) // shape[0])]
        keys = distinct(blocks * size + found)
        self._touched_bytes += SECTOR * keys.size / shape[0]
        if is_read := not access.is_store or "atomic" in access.op.name or "cmpxchg" in access.op.name:
            argument.reads.append(keys)
            argument.read_at.append(self._touched_bytes)
            argument.read_requests += found.size
        if access.is_store:
            argument.writes.append(keys)
            argument.write_requests += found.size
        lane_bytes = int((warps != NO_THREAD).sum()) * access.size
        if access.is_store:
            argument.write_lines += _lines(rows, found)
        if is_read:
            self.lane_bytes += lane_bytes
        self.l1_cycles += int(np.ceil(np.bincount(rows) / 4).sum())

    def finished(self) -> tuple[Sectors, ...]:
        """The bytes touched since the last call, which are then reset: runs of neighbouring blocks are counted separately."""
        done = tuple(_bytes(each, size) for each, size in zip(self.arguments, self.sectors, strict=True))
        for count, each in zip(self.rereads, self.arguments, strict=True):
            count.update(_rereads(each))
        for runs, each, size in zip(self.read_by_runs, self.arguments, self.sectors, strict=True):
            if each.reads:
                runs.append(distinct(np.concatenate(each.reads) % size))
        self.arguments = [_Touched() for _ in self.sectors]
        return done


def _bytes(touched: _Touched, size: int) -> Sectors:
    reads, writes = (
        distinct(np.concatenate(keys)) if keys else np.zeros(0, np.int64) for keys in (touched.reads, touched.writes)
    )
    return Sectors(
        SECTOR * touched.read_requests,
        SECTOR * reads.size,
        SECTOR * distinct(reads % size).size,
        SECTOR * touched.write_requests,
        SECTOR * distinct(writes % size).size,
        LINE * touched.write_lines,
        run_count(reads),
        run_count(writes),
    )


def run_count(keys: Array) -> int:
    """How many runs of neighbours there are in sorted keys (block, sector)."""
    return 1 + int((np.diff(keys) != 1).sum()) if keys.size else 0


def footprint(runs: Sequence[Array], share: float) -> float:
    """Bytes that a grid reads of an array, each sector once, from the distinct sectors that some runs of blocks read.

    share  blocks of the grid / blocks that ran

    Runs that read different sectors stand for a grid that does. Runs that share some choose, it is assumed, independently among the same n:
    the part 1 - (1 - s1 / n) * (1 - s2 / n) ... of them is found by runs of s1, s2 ... sectors.
    """
    sizes = np.array([run.size for run in runs], float)
    found = distinct(np.concatenate(runs)).size if runs else 0
    if found > LEAST_SHARED * sizes.sum() or share == 1:
        return SECTOR * found * share

    def union(sectors: float, times: float = 1.0) -> float:
        return sectors * (1 - float(np.prod(1 - sizes / sectors)) ** times)

    least, most = float(found), float(found) * sizes.sum()
    while most - least > 1:
        middle = (least + most) / 2
        least, most = (least, middle) if union(middle) > found else (middle, most)
    return SECTOR * union(least, share)


def _rereads(touched: _Touched) -> dict[int, int]:
    """As `Rereads`, but for the blocks that ran."""
    if len(touched.reads) < 2:
        return {}
    keys = np.concatenate(touched.reads)
    order = np.argsort(keys, kind="stable")
    at = np.repeat(touched.read_at, [part.size for part in touched.reads])[order]
    again = keys[order[1:]] == keys[order[:-1]]
    powers, counts = np.unique(np.log2(np.maximum(np.diff(at)[again], 1)).astype(int), return_counts=True)
    return {1 << int(power): SECTOR * int(count) for power, count in zip(powers, counts, strict=True)}


def distinct(numbers: Array) -> Array:
    """The distinct numbers, sorted. `np.unique` hashes integers, and sectors of strided accesses collide: it is ten times slower."""
    found = np.sort(numbers)
    return found[np.concatenate([[True], found[1:] != found[:-1]])] if found.size else found


def _lines(rows: Array, sectors: Array) -> int:
    """The number of distinct lines of each request, summed; a request's sectors are sorted."""
    lines = sectors // (LINE // SECTOR)
    return 1 + int(((rows[1:] != rows[:-1]) | (lines[1:] != lines[:-1])).sum())


def measure_traffic(
    module: ModuleOp, arguments: Sequence[Argument], arrays: Sequence[Array], launch: LaunchDimensions, wave: int
) -> Traffic:
    """The traffic of a kernel.

    module  at the stage "llvm-dialect"
    arrays  one flat buffer for each argument, as `arrays_for` makes them; results are overwritten
    wave    blocks that are resident at once on the whole GPU
    raises  ExecutionError and Unsupported, as the executor
    """
    results = len({argument.slice_index for argument in arguments if argument.written})

    def run(blocks: range, watcher: Watcher) -> None:
        execute(module, arrays, blocks=blocks, results=results, watchers=[watcher], launch=launch)

    return count_traffic(run, [array.nbytes for array in arrays], launch, wave)


def count_traffic(
    run: Callable[[range, Watcher], None], sizes: Sequence[int], launch: LaunchDimensions, wave: int
) -> Traffic:
    """The traffic of a launch.

    run    runs some blocks and reports their accesses to a watcher
    sizes  bytes of each array, in the order of the kernel's arguments
    wave   blocks that are resident at once on the whole GPU
    """
    counter = TrafficCounter([max(1, -(-size // SECTOR)) for size in sizes])
    runs = _runs(launch, wave)
    sampled = sum(map(len, runs))
    share = launch.blocks / sampled
    found: list[tuple[Sectors, ...]] = []
    for blocks in runs:
        run(blocks, counter)
        found.append(counter.finished())
    counts = counter.counts()
    shared = [count for count in counts if count.space == Space.SHARED.value]
    parts = sum(count.parts for count in shared)
    ways = sum(count.parts * count.bank_ways for count in shared)
    return Traffic(
        tuple(_sum(each, share) for each in zip(*found, strict=True)),
        tuple(size * SECTOR for size in counter.sectors),
        counter.lane_bytes * share,
        counter.l1_cycles * share,
        ways * share,
        ways / parts if parts else 0.0,
        max((count.worst_bank_ways for count in shared), default=0),
        counts,
        sampled,
        tuple({since: bytes_ * share for since, bytes_ in each.items()} for each in counter.rereads),
        tuple(
            min(SECTOR * size, footprint(each, share))
            for each, size in zip(counter.read_by_runs, counter.sectors, strict=True)
        ),
    )


def _sum(of_runs: Sequence[Sectors], share: float) -> Sectors:
    return Sectors(*(share * sum(getattr(each, name) for each in of_runs) for name in Sectors.__dataclass_fields__))


def _runs(launch: LaunchDimensions, wave: int) -> list[range]:
    """The linear numbers of the blocks that run, in runs of neighbours; a run is at most a wave, which shares the second-level cache."""
    if launch.blocks * launch.threads <= ALL_THREADS:
        wave = min(max(wave, 1), launch.blocks)
        return [range(first, min(first + wave, launch.blocks)) for first in range(0, launch.blocks, wave)]
    length = max(1, min(wave, SAMPLE_THREADS // launch.threads, launch.blocks // SAMPLES))
    firsts = np.linspace(0, launch.blocks - length, SAMPLES).astype(int)
    return [range(first, first + length) for first in map(int, firsts)]


def arrays_for(
    view: FusionView, arguments: Sequence[Argument], *, repeat: bool = False, data: Mapping[int, Array] | None = None
) -> list[Array]:
    """A flat buffer for each argument of the kernel: starts of windows are random in range, small arrays random, others zero.

    repeat  whether large arrays repeat a random one instead of being zero
    data    number of a program's parameter -> the array to take for it
    raises  DataError for arrays that do not fit into this machine's memory
    """
    places = allowed_starts(view.computation)
    found: dict[int, Array] = {}
    arrays: list[Array] = []
    for number, argument in enumerate(arguments):
        if argument.kind == "parameter" and argument.index in (data or {}):
            assert data is not None
            found[argument.slice_index] = to_buffer(data[argument.index], argument.array).copy()
        if argument.slice_index not in found:
            refuse_beyond_memory(argument.array.shape, dtype(argument.array.dtype), f"argument {number}")
            found[argument.slice_index] = _array(number, argument.array, places, repeat=repeat)
        arrays.append(found[argument.slice_index])
    return arrays


def _array(number: int, spec: ArraySpec, places: Mapping[int, Places], *, repeat: bool) -> Array:
    if number in places or spec.elements <= DRAWN_ELEMENTS:
        return random_array(replace(spec, shape=(spec.elements,), minor_to_major=(0,)), 0, number, places.get(number))
    if repeat:
        # An odd length, so that the repetitions are not aligned with any power of two.
        few = replace(spec, shape=(DRAWN_ELEMENTS - 1,), minor_to_major=(0,))
        return np.resize(random_array(few, 0, number), spec.elements)
    return np.zeros(spec.elements, dtype(spec.dtype).numpy)
