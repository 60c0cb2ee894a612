"""The model: from the counts of a kernel to an expected time, a range around it, and the bound that determines it.

    GELU on h200:  issue 11.9 us, memory 11.4 us, latency 8.8 us, L2 6.6 us ...  ->  16.4 us (10.5 to 33), bound by issue

Each bound is the time that one resource alone would need. The expected time is the time to start a kernel, plus the 8-norm of four bounds:
the slowest memory level, issue, latency, and block starts. If one of them dominates, the norm is that one; if others are nearly as large,
it is more. The largest bound is reported as the bound. The range is from the largest bound under favourable assumptions to the sum of the
two largest of the four under unfavourable ones.
Every assumption is a constant of this file; docs/cost_model.md gives their sources, and the errors against published times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from xla_emitters.device import Device
from xla_emitters.lowering.toolchain.machine_code import EntryResources
from xla_emitters.pricing.issue import SCHEDULERS, by_class, issue_cycles, operations
from xla_emitters.pricing.latency import Latencies, WarpSimulation, walk
from xla_emitters.pricing.occupancy import Occupancy, occupancy
from xla_emitters.pricing.sass import executed, parse
from xla_emitters.pricing.sass_thread import ThreadRun
from xla_emitters.pricing.traffic import Sectors, Traffic
from xla_emitters.program import LaunchDimensions


@dataclass(frozen=True)
class Assumption:
    """A number that the model assumes: its favourable, expected and unfavourable values."""

    low: float
    expected: float
    high: float


START_S = Assumption(1e-6, 2e-6, 4e-6)
"""From one kernel's end to the first instruction of the next, and from its last instruction to its end."""
MEMORY_SHARE = Assumption(0.97, 0.95, 0.85)
"""The share of the data sheet's bandwidth that reads alone reach if nothing else bounds them."""
TURN_BYTES = Assumption(0.05, 0.16, 0.30)
"""What the memory loses when it turns from reads to writes and back, as bytes for each byte that is written between reads."""
RUN_BYTES = Assumption(0, 16, 32)
"""What each run of neighbouring sectors of a block costs the memory besides its bytes, as bytes: a row of it is opened."""
BLOCK_STARTS = Assumption(1.0, 0.83, 0.7)
"""Blocks that the GPU starts in a clock."""
LOADED = Assumption(1.0, 2.4, 3.0)
"""Latency of a memory that moves as much as it can, relative to an idle one."""
ISSUE_SHARE = Assumption(1.0, 0.8, 0.6)
"""The share of the cycles in which schedulers find an instruction that can be issued, if they are what bounds the kernel."""
PIPE_SHARE = Assumption(1.0, 0.9, 0.7)
"""The same of any other pipe: a full one is kept busy by the instructions that wait for it."""
L2_SHARE = Assumption(1.3, 1.0, 0.8)
"""The share of the second-level cache's bandwidth in `Device.rates` that a kernel reaches."""
L2_PORT_BYTES = 64
"""Bytes per clock from the second-level cache to one multiprocessor."""
LEAST_GAIN = 0.02
"""Smallest relative gain that counts, of expected times and of instructions."""
NORM = 8


@dataclass(frozen=True)
class NeededBytes:
    """The bytes that a kernel must move: each element that its results need, and each result, once.

    is_exact  False if `read` is an upper bound
    """

    read: float
    written: float
    is_exact: bool


@dataclass(frozen=True)
class Moved:
    """Bytes between memory and the second-level cache, and the runs of neighbouring sectors that they are in."""

    read: float
    written: float
    read_runs: float = 0.0
    write_runs: float = 0.0

    @property
    def bytes(self) -> float:
        return self.read + self.written

    def seconds(self, device: Device, level: str) -> float:
        """The time that the memory needs. level: a field of `Assumption`"""
        turned = getattr(TURN_BYTES, level) * min(self.read, self.written)
        opened = getattr(RUN_BYTES, level) * (self.read_runs + self.write_runs)
        return (self.bytes + turned + opened) / (device.bandwidth_bytes_per_s * getattr(MEMORY_SHARE, level))


@dataclass(frozen=True)
class KernelCost:
    """The cost of one launch of a kernel on one device. Counts are per thread, bytes for the whole grid, times in microseconds.

    spills             bytes of registers that ptxas spills to memory, stores and loads
    stack              bytes of a thread's arrays in memory, e.g. a vector that is indexed by a variable
    occupancy          resident warps as a share of the warps that a multiprocessor can hold
    occupancy_limit    the resource that limits it
    instructions       SASS instructions that a thread executes: an upper bound, see `sass`
    classes            the same by class
    unknown_loops      loops whose trip count depends on data; each is counted as one trip
    operations         floating-point operations, of the whole grid
    bytes_needed       that must move: see `footprint`
    bytes_needed_exact False if bytes_needed is a bound, or is of the run's data, in whole sectors
    bytes_moved        between memory and the second-level cache, in sectors of 32 bytes
    bytes_ratio        bytes_moved / bytes_needed
    l2_bytes           between the second-level cache and the multiprocessors
    intensity          operations / bytes_moved
    bytes_in_flight    the most bytes of loads in flight on one multiprocessor
    bytes_in_flight_needed  to read at the device's full bandwidth
    bank_ways          mean number of words that a shared-memory request needs from one bank: 1 is conflict-free, 0 no shared memory
    waves              grid / blocks that the GPU holds at once
    last_wave          how full the last wave is, from 0 to 1
    bounds             resource -> the time that it alone would need
    bound              the largest of them, or "launch"
    time               expected; it is believed to be between time_low and time_high
    bandwidth          bytes_needed / time, as a share of the device's
    compute            operations / time, as a share of what the f32 pipes do in fused multiplications and additions; of the f64 pipes, if
                       most instructions on floats are f64
    multiprocessors    those that have a block
    launches           number of launches in one run of the program
    """

    name: str
    target: str
    blocks: int
    threads: int
    registers: int
    spills: int
    stack: int
    shared_bytes: int
    occupancy: float
    occupancy_limit: str
    warps: int
    instructions: int
    classes: dict[str, int]
    unknown_loops: int
    operations: int
    bytes_needed: int
    bytes_needed_exact: bool
    bytes_moved: int
    bytes_ratio: float
    l2_bytes: int
    intensity: float
    bytes_in_flight: int
    bytes_in_flight_needed: int
    bank_ways: float
    worst_bank_ways: int
    waves: float
    last_wave: float
    bounds: dict[str, float]
    bound: str
    time: float
    time_low: float
    time_high: float
    bandwidth: float
    compute: float = 0.0
    multiprocessors: int = 0
    launches: int = 1
    traffic: Traffic | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Plain data; see docs/json.md."""
        data = asdict(self)
        del data["traffic"]
        return data


def kernel_cost(
    name: str,
    device: Device,
    launch: LaunchDimensions,
    resources: EntryResources,
    sass: str,
    traffic: Traffic,
    needed: NeededBytes,
    run: ThreadRun | None = None,
) -> KernelCost:
    """The cost of a kernel from its counts.

    resources  by ptxas; shared_bytes includes dynamic ones
    sass       nvdisasm's text of the kernel and its subroutines
    run        what threads of the launch execute, if arguments decide it; None: derived from the code by `sass.executed`
    """
    counts = run.executed if run else executed(sass)
    held = occupancy(device, launch.threads, resources.registers, resources.shared_bytes)
    busiest = -(-launch.blocks // device.cores)
    waves = launch.blocks / (device.cores * max(held.blocks, 1))
    resident = min(launch.blocks, device.cores * max(held.blocks, 1))
    levels: dict[str, Moved] = {
        level: _moved(traffic, device.l2_bytes, resident, level) for level in ("low", "expected", "high")
    }
    moved = levels["expected"]

    functions, clock = run.functions if run else parse(sass), device.rates.clock_hz
    idle = walk(functions, _latencies(device, 1.0))
    walks = {level: walk(functions, _latencies(device, getattr(LOADED, level))) for level in levels}
    pipes = issue_cycles(counts.opcodes, device.multiprocessor)
    warps_of_busiest = busiest * -(-launch.threads // device.threads_per_warp)
    share_of_busiest = busiest / launch.blocks / clock
    first_level = device.shared_bytes_per_core - min(held.blocks, busiest) * resources.shared_bytes
    again = _read_again(traffic, device.l2_bytes, resident)
    read_l2 = again + sum(
        _from_l2(each, size, first_level, min(launch.blocks, device.cores))
        for each, size in zip(traffic.arguments, traffic.buffers, strict=True)
    )
    # A request sends a packet per line, which takes as long as a whole line.
    l2_work, l2_bytes = (
        read_l2 + sum(each.write_lines for each in traffic.arguments),
        read_l2 + sum(each.write_requests for each in traffic.arguments),
    )
    l2_s = max(l2_work / device.rates.l2_bytes_per_s, l2_bytes * share_of_busiest / L2_PORT_BYTES)

    def bounds(level: str) -> dict[str, float]:
        memory = levels[level].seconds(device, level)
        return {
            "memory": memory,
            "L2": l2_s / getattr(L2_SHARE, level),
            "L1": traffic.l1_cycles * share_of_busiest,
            "shared memory": traffic.shared_cycles * share_of_busiest,
            "issue": max(
                cycles / getattr(ISSUE_SHARE if pipe == SCHEDULERS else PIPE_SHARE, level)
                for pipe, cycles in pipes.items()
            )
            * warps_of_busiest
            / clock,
            "latency": _latency(max(1.0, waves) / clock, idle.cycles, walks[level].cycles, memory),
            "block starts": launch.blocks / clock / getattr(BLOCK_STARTS, level),
        }

    classes = by_class(counts.opcodes)
    total_operations = operations(counts.opcodes) * launch.blocks * launch.threads
    unit = device.multiprocessor
    lanes = unit.fp64 if classes.get("f64", 0) > classes.get("f32", 0) else unit.fp32
    expected = bounds("expected")
    largest = max(expected, key=lambda each: expected[each])
    time = START_S.expected + sum(seconds**NORM for seconds in _apart(expected)) ** (1 / NORM)
    total_needed = needed.read + needed.written
    return KernelCost(
        name=name,
        target=device.name,
        blocks=launch.blocks,
        threads=launch.threads,
        registers=resources.registers,
        spills=resources.spill_bytes,
        stack=resources.stack_bytes,
        shared_bytes=resources.shared_bytes,
        occupancy=held.share,
        occupancy_limit=" and ".join(held.limits),
        warps=held.warps,
        instructions=counts.instructions,
        classes=classes,
        unknown_loops=counts.unknown_loops,
        operations=total_operations,
        bytes_needed=round(total_needed),
        bytes_needed_exact=needed.is_exact,
        bytes_moved=round(moved.bytes),
        bytes_ratio=moved.bytes / total_needed if total_needed else 0.0,
        l2_bytes=round(l2_bytes),
        intensity=total_operations / max(moved.bytes, 1),
        bytes_in_flight=round(_in_flight(walks["expected"], held, busiest, launch, traffic)),
        bytes_in_flight_needed=round(
            device.bandwidth_bytes_per_s
            * (moved.read / moved.bytes if moved.bytes else 0.0)
            * device.rates.memory_ns
            * LOADED.expected
            / 1e9
            / device.cores
        ),
        bank_ways=traffic.bank_ways,
        worst_bank_ways=traffic.worst_ways,
        waves=waves,
        last_wave=waves % 1 or 1.0,
        bounds={each: seconds * 1e6 for each, seconds in expected.items()},
        bound=largest if expected[largest] >= START_S.expected else "launch",
        time=time * 1e6,
        time_low=max(bounds("low").values(), default=0.0) * 1e6 + START_S.low * 1e6,
        time_high=(START_S.high + sum(sorted(_apart(bounds("high")))[-2:])) * 1e6,
        bandwidth=total_needed / time / device.bandwidth_bytes_per_s,
        compute=total_operations / time / (2 * lanes * device.cores * clock),
        multiprocessors=min(launch.blocks, device.cores),
        traffic=traffic,
    )


def least_time(bytes_needed: int, device: Device) -> float:
    """The expected time, in microseconds, of a kernel that moves this many bytes and has no other bound."""
    return 1e6 * (START_S.expected + Moved(bytes_needed, 0).seconds(device, "expected"))


def with_code(cost: KernelCost, device: Device, resources: EntryResources, sass: str) -> KernelCost:
    """The cost of other machine code with the same launch and the same accesses, e.g. another compiler's for the same fusion."""
    assert cost.traffic is not None
    launch = LaunchDimensions((cost.blocks, 1, 1), (cost.threads, 1, 1))
    needed = NeededBytes(cost.bytes_needed, 0, cost.bytes_needed_exact)
    return kernel_cost(cost.name, device, launch, resources, sass, cost.traffic, needed)


def _apart(bounds: Mapping[str, float]) -> tuple[float, float, float, float]:
    """(memory, issue, latency, block starts). Memory levels are in series on one path, so only the slowest counts."""
    path = max(bounds["memory"], bounds["L2"], bounds["L1"] + bounds["shared memory"])
    return path, bounds["issue"], bounds["latency"], bounds["block starts"]


def _latencies(device: Device, loaded: float) -> Latencies:
    unit = device.multiprocessor
    memory = device.rates.memory_ns * device.rates.clock_hz // 10**9
    return Latencies(round(memory * loaded), unit.shared_cycles, unit.fp64_cycles, unit.dependent_cycles)


def _latency(waves_s: float, idle: float, loaded: float, memory: float) -> float:
    """Seconds for all waves, whose loads wait the longer the busier the memory is.

    waves_s  waves / clock
    idle     cycles of a wave on an idle memory; loaded: on one that moves as much as it can
    memory   seconds in which the memory can move the kernel's bytes

    The memory is busy for memory / t of a kernel's time t, so t = alone + more * memory / t.
    """
    alone, more = waves_s * idle, waves_s * (loaded - idle)
    if alone + more <= memory:
        return alone + more
    return (alone + math.sqrt(alone * alone + 4 * more * memory)) / 2


def _from_l2(each: Sectors, buffer: int, l1_bytes: int, multiprocessors: int) -> float:
    """Bytes of an array that come from the second-level cache: each block reads it, unless it stays in the first-level caches."""
    return min(each.read_blocks, multiprocessors * buffer) if buffer <= l1_bytes else each.read_blocks


def _from_memory(of_waves: float, whole: float, l2_bytes: int) -> float:
    """Bytes of an array that come from memory: each wave fetches what it reads, unless all that the grid reads stays in a cache.

    whole  bytes that the grid reads of it, each once
    """
    return min(of_waves, whole) if whole <= l2_bytes else of_waves


def _read_again(traffic: Traffic, l2_bytes: int, resident: int) -> float:
    """Bytes that a block reads again after all resident blocks together touched more than the second-level cache holds."""
    found = zip(traffic.rereads, traffic.buffers, strict=False)
    return sum(
        bytes_
        for rereads, size in found
        if size > l2_bytes
        for since, bytes_ in rereads.items()
        if since * resident > l2_bytes
    )


def _moved(traffic: Traffic, l2_bytes: int, resident: int, level: str) -> Moved:
    """Bytes between memory and the second-level cache: at best each sector once, at worst as often as blocks request it.

    resident  number of blocks that run at once
    """
    if level == "low" and sum(traffic.buffers) <= l2_bytes:
        # The previous kernel left it in the cache.
        return Moved(0.0, 0.0)
    read = 0.0 if level == "low" else _read_again(traffic, l2_bytes, resident)
    written = read_runs = write_runs = 0.0
    wholes = traffic.footprints or traffic.buffers
    for each, size, whole in zip(traffic.arguments, traffic.buffers, wholes, strict=True):
        match level:
            case "low":
                loaded = min(each.read_waves, size)
            case "expected":
                loaded = _from_memory(each.read_waves, whole, l2_bytes)
            case _:
                loaded = _from_memory(each.read_blocks, whole, l2_bytes)
        read += loaded
        written += min(each.write_waves, size) if level == "low" else _from_memory(each.write_waves, size, l2_bytes)
        # What several blocks read is fetched once, and its rows are opened once.
        read_runs += each.read_runs * loaded / each.read_blocks if each.read_blocks else 0.0
        write_runs += each.write_runs
    return Moved(read, written, read_runs, write_runs)


def _in_flight(
    found: WarpSimulation, held: Occupancy, busiest: int, launch: LaunchDimensions, traffic: Traffic
) -> float:
    """Bytes in flight on one multiprocessor. A load that several lanes share, as a broadcast, counts once."""
    loaded = sum(each.read_blocks for each in traffic.arguments)
    once = min(1.0, loaded / traffic.lane_bytes) if traffic.lane_bytes else 1.0
    return found.bytes_in_flight * min(held.blocks, busiest) * launch.threads * once
