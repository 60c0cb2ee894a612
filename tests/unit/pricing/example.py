"""A cost with figures that are easy to compare."""

from __future__ import annotations

from xla_emitters.pricing.model import KernelCost

EXAMPLE = KernelCost(
    name="fusion",
    target="h200",
    blocks=1000,
    threads=128,
    registers=24,
    spills=0,
    stack=0,
    shared_bytes=0,
    occupancy=0.75,
    occupancy_limit="registers",
    warps=48,
    instructions=60,
    classes={"f32": 40, "global": 2, "other": 18},
    unknown_loops=0,
    operations=4_000_000,
    bytes_needed=1_000_000,
    bytes_needed_exact=True,
    bytes_moved=1_200_000,
    bytes_ratio=1.2,
    l2_bytes=1_300_000,
    intensity=3.3,
    bytes_in_flight=12_000,
    bytes_in_flight_needed=16_000,
    bank_ways=0.0,
    worst_bank_ways=0,
    waves=1.5,
    last_wave=0.5,
    bounds={"memory": 12.0, "issue": 3.0, "latency": 5.0},
    bound="memory",
    time=14.0,
    time_low=11.0,
    time_high=25.0,
    bandwidth=0.4,
    launches=1,
)
