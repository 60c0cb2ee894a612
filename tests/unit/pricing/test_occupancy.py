"""Resident blocks, against a multiprocessor that is filled block by block and against occupancies that NVIDIA publishes."""

import itertools
from dataclasses import replace

import pytest

from xla_emitters.device import DEVICES, Device, device
from xla_emitters.pricing.occupancy import occupancy

# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": resident blocks, warps and shared memory in KB.
PUBLISHED = {
    "t4": (16, 32, 64),
    "a100": (32, 64, 164),
    "a6000": (16, 48, 100),
    "h200": (32, 64, 228),
    "b200": (32, 64, 228),
}


def filled(chip: Device, threads: int, registers: int, shared_bytes: int) -> int:
    """Blocks that fit, by putting one after the other onto a multiprocessor: each warp into the emptiest of four register files."""
    blocks_max, warps_max, shared_kb = PUBLISHED[chip.name]
    kept_for_system = 0 if chip.name == "t4" else 1024
    unit = 256 if chip.name == "t4" else 128
    files, shared_left, warps_left, blocks = [16384] * 4, shared_kb * 1024, warps_max, 0
    of_warp = -(-registers * 32 // 256) * 256
    of_block = -(-(shared_bytes + kept_for_system) // unit) * unit
    while blocks < blocks_max and of_block <= shared_left:
        for _ in range(-(-threads // 32)):
            emptiest = max(range(4), key=lambda number: files[number])
            if files[emptiest] < of_warp or not warps_left:
                return blocks
            files[emptiest] -= of_warp
            warps_left -= 1
        shared_left -= of_block
        blocks += 1
    return blocks


@pytest.mark.parametrize("chip", [device(name) for name in PUBLISHED], ids=list(PUBLISHED))
def test_as_many_blocks_as_fit_one_after_the_other(chip: Device) -> None:
    cases = itertools.product(
        (32, 64, 96, 128, 256, 512, 1000, 1024), (8, 16, 23, 32, 33, 40, 64, 96, 128, 255), (0, 64, 4224, 33 * 1024)
    )
    for threads, registers, shared_bytes in cases:
        found = occupancy(chip, threads, registers, shared_bytes)
        assert found.blocks == filled(chip, threads, registers, shared_bytes), (threads, registers, shared_bytes)
        assert found.warps == found.blocks * -(-threads // 32)


@pytest.mark.tiny
def test_the_examples_of_the_best_practices_guide() -> None:
    """Compute capability 7.0 (64 warps, 32 blocks): 37 registers allow 12 blocks of 128 threads, 75 %, and 4 of 320, 63 %."""
    volta = replace(device("a100"), architecture="sm_80")
    assert (occupancy(volta, 128, 37, 0).blocks, occupancy(volta, 128, 37, 0).share) == (12, 0.75)
    assert (occupancy(volta, 320, 37, 0).blocks, occupancy(volta, 320, 37, 0).share) == (4, 0.625)


@pytest.mark.parametrize(
    ("threads", "registers", "shared_bytes", "limits"),
    [
        (128, 23, 0, ("warps",)),
        (32, 16, 0, ("blocks",)),
        (128, 64, 0, ("registers",)),
        (128, 16, 48 * 1024, ("shared memory",)),
        (128, 32, 0, ("warps", "registers")),
    ],
)
def test_the_limit_is_named(threads: int, registers: int, shared_bytes: int, limits: tuple[str, ...]) -> None:
    assert occupancy(device("h200"), threads, registers, shared_bytes).limits == limits


def test_every_device_has_limits_and_rates() -> None:
    for chip in DEVICES:
        assert occupancy(chip, chip.threads_per_block_max, 32, 0).blocks >= 1
        assert chip.rates.l2_bytes_per_s > chip.bandwidth_bytes_per_s


def test_a_device_from_a_file_has_those_of_the_one_that_is_most_like_it() -> None:
    described = replace(device("a6000"), name="l40s.txtpb", architecture="sm_89")
    assert described.multiprocessor.blocks_max == 24
    assert described.rates == device("a6000").rates
