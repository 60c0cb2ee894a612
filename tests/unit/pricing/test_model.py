"""The model: each bound from given figures, worked out by hand; the order of kernels where it is known."""

from dataclasses import replace

import pytest
from unit.pricing.sass_listing import listing

from xla_emitters.device import device
from xla_emitters.lowering.toolchain.machine_code import EntryResources
from xla_emitters.pricing.model import (
    BLOCK_STARTS,
    LOADED,
    MEMORY_SHARE,
    RUN_BYTES,
    START_S,
    TURN_BYTES,
    KernelCost,
    NeededBytes,
    kernel_cost,
)
from xla_emitters.pricing.traffic import Sectors, Traffic
from xla_emitters.program import LaunchDimensions

COPY = """
    LDG.E.128 R4, desc[UR4][R2.64]
    STG.E.128 desc[UR4][R2.64], R4
    EXIT
"""


def cost(
    sass: str = COPY,
    blocks: int = 132 * 8 * 100,
    threads: int = 256,
    chip: str = "h200",
    times_read: float = 1,
    shared_cycles: float = 0,
    spills: int = 0,
) -> KernelCost:
    size = blocks * threads * 16
    read = Sectors(size, size, size * times_read, 0, 0)
    traffic = Traffic(
        (read, Sectors(0, 0, 0, size, size, size)), (size, size), size, blocks * 64, shared_cycles, 0, 0, (), blocks
    )
    return priced(traffic, size, size, blocks, threads, sass, chip, spills=spills)


def priced(
    traffic: Traffic,
    read: int,
    written: int,
    blocks: int,
    threads: int = 128,
    sass: str = COPY,
    chip: str = "h200",
    registers: int = 16,
    spills: int = 0,
) -> KernelCost:
    resources, launch = EntryResources("k", registers, spills, 0), LaunchDimensions((blocks, 1, 1), (threads, 1, 1))
    needed = NeededBytes(read, written, True)
    return kernel_cost("k", device(chip), launch, resources, listing(sass), traffic, needed)


@pytest.mark.tiny
def test_a_large_copy_is_bound_by_memory() -> None:
    """865 MB, half of them written, with 0.16 bytes each for the memory's turns: at 95 % of 4.8 TB/s 205 us."""
    found = cost()
    bytes_ = 2 * 132 * 8 * 100 * 256 * 16
    assert found.bytes_needed == found.bytes_moved == bytes_
    assert found.bound == "memory"
    moved = bytes_ * (1 + TURN_BYTES.expected / 2)
    assert found.bounds["memory"] == pytest.approx(moved / 4.8e12 / MEMORY_SHARE.expected * 1e6)
    assert found.bounds["memory"] < found.time < 1.1 * found.bounds["memory"] + START_S.expected * 1e6
    assert found.time_low < found.time < found.time_high
    assert found.bandwidth == pytest.approx(bytes_ / 4.8e12 / (found.time * 1e-6))


def test_waves_and_bytes_in_flight() -> None:
    """8 blocks of 256 threads fill a multiprocessor of h200: 2048 threads with 16 bytes each."""
    found = cost()
    assert (found.waves, found.last_wave, found.occupancy, found.warps) == (100, 1, 1, 64)
    assert found.bytes_in_flight == 2048 * 16
    # Half of the traffic is read: 2.4 TB/s for 273 ns times LOADED, by 132.
    assert found.bytes_in_flight_needed == round(2.4e12 * 273e-9 * LOADED.expected / 132)
    assert cost(blocks=132 * 8 * 3 + 132).last_wave == pytest.approx(1 / 8)


def test_a_kernel_of_one_block_is_bound_by_its_launch() -> None:
    found = cost(blocks=1)
    assert (found.bound, found.waves < 1) == ("launch", True)
    # One load, from a memory that nothing else uses: 273 ns, and few cycles more.
    assert found.bounds["latency"] == pytest.approx(0.273, rel=0.1)


def test_long_code_is_bound_by_issue() -> None:
    """4,000 independent additions a thread, four schedulers: 1,000 cycles a warp, 800 blocks of 8 warps on each multiprocessor."""
    found = cost("\n".join([COPY.replace("EXIT", ""), *(["FADD R9, R8, R8"] * 4000), "EXIT"]))
    assert found.bound == "issue"
    assert found.bounds["issue"] == pytest.approx(4003 / 4 * 800 * 8 / 1.98e9 / 0.8 * 1e6)
    assert found.operations == 4000 * 132 * 800 * 256


def test_a_chain_in_few_warps_is_bound_by_latency() -> None:
    chain = "\n".join(f"FADD R{n + 10}, R{n + 9}, R{n + 9}" for n in range(200))
    found = cost("\n".join([chain] * 20 + ["EXIT"]), blocks=132, threads=32)
    assert found.bound == "latency"
    assert found.bounds["latency"] == pytest.approx(4000 * 4 / 1.98e3, rel=0.01)


def test_bank_conflicts_are_a_bound() -> None:
    found = cost(shared_cycles=132 * 1e6)
    assert found.bound == "shared memory"
    assert found.bounds["shared memory"] == pytest.approx(1e6 / 1.98e9 * 1e6)


def test_what_waves_fetch_again_moves_again_unless_the_cache_holds_it() -> None:
    assert cost(times_read=2).bytes_ratio == pytest.approx(1.5)
    small = cost(blocks=1000, times_read=2)
    assert small.bytes_moved == small.bytes_needed


def test_many_small_blocks_are_bound_by_their_starts() -> None:
    """131,072 blocks, as of int8 to bf16 on an H200, which took 84.2 us: 0.83 of them start in a clock of 1.98 GHz."""
    size = 1 << 26
    read, written = Sectors(size, size, size), Sectors(0, 0, 0, 2 * size, 2 * size, 2 * size)
    traffic = Traffic((read, written), (size, 2 * size), size, 0, 0, 0, 0, (), 1)
    found = priced(traffic, size, 2 * size, 131_072)
    assert found.bound == "block starts"
    assert found.bounds["block starts"] == pytest.approx(131_072 / 1.98e3 / BLOCK_STARTS.expected)
    assert found.time == pytest.approx(84.2, rel=0.05)


def test_short_runs_of_sectors_cost_more_of_the_memory() -> None:
    """Tiles of 128 bytes a row, read and written: each run costs half a sector more. A transpose on an H200: 1.14 times a copy."""
    size = 1 << 28
    whole = Sectors(size, size, size), Sectors(0, 0, 0, size, size, size)
    tiles = replace(whole[0], read_runs=size / 128), replace(whole[1], write_runs=size / 128)

    def memory(arguments: tuple[Sectors, Sectors]) -> float:
        traffic = Traffic(arguments, (size, size), size, 0, 0, 0, 0, (), 1)
        return priced(traffic, size, size, 65_536, registers=28).bounds["memory"]

    assert memory(tiles) / memory(whole) == pytest.approx(1 + 2 * RUN_BYTES.expected / 128 / (2 + TURN_BYTES.expected))
    assert memory(tiles) / memory(whole) == pytest.approx(1.14, rel=0.03)


def test_loads_wait_less_where_the_memory_is_idle() -> None:
    """A chain of loads that all hit the same few lines: each waits 273 ns, not as long as on a busy memory."""
    chain = "\n".join(["LDG.E R2, desc[UR4][R2.64]"] * 10 + ["EXIT"])
    size = 1 << 20
    traffic = Traffic((Sectors(size, size, size),), (size,), size, 0, 0, 0, 0, (), 1)
    found = priced(traffic, size, 0, 132 * 16, sass=chain)
    assert found.bounds["latency"] == pytest.approx(10 * 0.273, rel=0.15)


def test_a_small_array_stays_in_the_first_level_caches() -> None:
    """A bias of 16 KiB that 100,000 blocks read: once for each of 132 multiprocessors, not for each block."""
    small, blocks = 1 << 14, 100_000
    traffic = Traffic((Sectors(blocks * small, blocks * small, small),), (small,), 1, 0, 0, 0, 0, (), 1)
    assert priced(traffic, small, 0, blocks).l2_bytes == 132 * small


def test_spills_and_json() -> None:
    found = cost(spills=48)
    assert (found.spills, found.to_json()["spills"], "traffic" in found.to_json()) == (48, 48, False)


def test_published_bandwidth_of_a_naive_transpose() -> None:
    """f32 on H100, coalesced reads, each lane writes into a line of its own: 475 GB/s of bytes that must move, within a quarter.

    Source: yencal.github.io/gpu-matrix-transpose-optimization, "Naive Transpose".
    """
    size = 4 * 16384 * 16384
    read, written = Sectors(size, size, size, 0, 0), Sectors(0, 0, 0, 8 * size, size, 32 * size)
    traffic = Traffic((read, written), (size, size), size, size * 9 / 128, 0, 0, 0, (), 1)
    found = priced(traffic, size, size, 16384 * 64, 256, COPY.replace(".128", ""), "h100")
    assert found.bound == "L2"
    assert 2 * size / found.time / 1e3 == pytest.approx(475, rel=0.25)


@pytest.mark.parametrize(("since", "loads"), [(4 * 131_072, 2), (4 * 2_048, 1)])
def test_published_throughput_of_a_softmax_that_reads_its_rows_twice(since: int, loads: int) -> None:
    """f32[16384,131072] on H100: 2.0 TB/s of input and result with two loads of each row; rows of 8 kB are in a cache: 3.0 TB/s.

    Source: github.com/Dao-AILab/quack, media/2025-07-10-membound-sol.md, "Torch compile" and "Memory throughput".
    """
    size = 4 * 16_384 * 131_072
    read, written = Sectors(2 * size, size, size, 0, 0), Sectors(0, 0, 0, size, size, size)
    traffic = Traffic((read, written), (size, size), size, 0, 0, 0, 0, (), 16_384, ({since: size}, {}))
    found = priced(traffic, size, size, 16_384, 256, chip="h100", registers=32)
    assert found.bytes_ratio == (loads + 1) / 2
    assert 2 * size / found.time / 1e6 == pytest.approx({1: 3.0, 2: 2.0}[loads], rel=0.05)


# H200, f32 vector addition, 48 x 12,000 x 1,536 elements, by Nsight Compute: 2.41 ms in Triton, 2.64 ms with one element a thread and
# trip. Source: github.com/XAheli/Kernel-Profiling, data_dashboard/data.js, "Config G".
ELEMENTS = 48 * 12_000 * 1_536


@pytest.mark.parametrize(
    ("width", "words", "milliseconds"),
    [(".128", 4, 2.41), ("", 1, 2.64)],
)
def test_published_times_of_a_vector_addition(width: str, words: int, milliseconds: float) -> None:
    """The expected time is within a tenth of the measured one, which is inside the range."""
    additions = "\n".join(f"FADD R{16 + n}, R{8 + n}, R{12 + n}" for n in range(words))
    sass = f"LDG.E{width} R8, desc[UR4][R2.64]\nLDG.E{width} R12, desc[UR4][R4.64]\n{additions}\nSTG.E{width} desc[UR4][R6.64], R16\nEXIT"
    blocks, size = ELEMENTS // words // 256, 4 * ELEMENTS
    read, written = Sectors(size, size, size, 0, 0), Sectors(0, 0, 0, size, size, size)
    traffic = Traffic((read, read, written), (size, size, size), 2 * size, size * 3 / 128, 0, 0, 0, (), blocks)
    found = priced(traffic, 2 * size, size, blocks, 256, sass, registers=24)
    assert found.time == pytest.approx(milliseconds * 1000, rel=0.1)
    assert found.time_low < milliseconds * 1000 < found.time_high
