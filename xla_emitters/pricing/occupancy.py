"""The number of blocks and warps of a kernel that a multiprocessor holds at once, and the resource that limits it.

    occupancy(device("h200"), threads=1024, registers=40, shared_bytes=0)
        ->  Occupancy(blocks=1, warps=32, share=0.5, limits=('registers',))

Registers are allocated to whole warps, in multiples of 256, from the quarter of the register file that belongs to the warp's scheduler; so
the number of warps that fit is a multiple of four. Shared memory is allocated to blocks, in multiples of the architecture's unit, plus a
part that the system reserves from sm_80 on. The multiprocessor is assumed to be configured for its maximum of shared memory.
Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; Best Practices Guide, "Calculating Occupancy".
"""

from __future__ import annotations

from dataclasses import dataclass

from xla_emitters.device import Device


@dataclass(frozen=True)
class Occupancy:
    """The blocks and warps that one multiprocessor holds at once.

    blocks, warps  of the kernel; 0 if not even one block fits
    share          warps / the most warps that a multiprocessor can hold
    limits         the resources that allow no more blocks: "warps", "blocks", "registers", "shared memory"
    """

    blocks: int
    warps: int
    share: float
    limits: tuple[str, ...]


def occupancy(device: Device, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """The occupancy of a kernel.

    threads, shared_bytes  per block; shared_bytes is static plus dynamic
    registers              per thread

    >>> from xla_emitters.device import device
    >>> [occupancy(device("h200"), 128, registers, 0).warps for registers in (32, 40, 42)]
    [64, 48, 40]
    """
    unit = device.multiprocessor
    warps = ceil_to(threads, device.threads_per_warp) // device.threads_per_warp
    registers_of_warp = ceil_to(max(registers, 1) * device.threads_per_warp, unit.registers_unit)
    warps_by_registers = unit.registers // unit.schedulers // registers_of_warp * unit.schedulers
    shared = ceil_to(shared_bytes + unit.shared_reserved_bytes, unit.shared_unit_bytes)
    warps_max = device.threads_per_core // device.threads_per_warp
    blocks_by = {
        "warps": warps_max // warps,
        "blocks": unit.blocks_max,
        "registers": warps_by_registers // warps,
        "shared memory": device.shared_bytes_per_core // shared if shared else unit.blocks_max,
    }
    blocks = min(blocks_by.values())
    limits = tuple(name for name, number in blocks_by.items() if number == blocks)
    return Occupancy(blocks, blocks * warps, blocks * warps / warps_max, limits)


def ceil_to(number: int, unit: int) -> int:
    """The smallest multiple of `unit` that is not less than `number`."""
    return -(-number // unit) * unit
