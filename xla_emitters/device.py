"""The GPUs that decisions depend on: how many threads fill the chip, what a block may hold.

    >>> device("h200").threads_max
    270336
    >>> device("sm_86").name
    'a6000'

Every field is one that XLA's heuristics read. Source: spec "Device numbers used by heuristics"; NVIDIA's data sheets for
t4, a100 and b200.
"""

from __future__ import annotations

from dataclasses import dataclass

from xla_emitters.errors import UsageError


@dataclass(frozen=True)
class Device:
    """One GPU model.

    architecture                   what ptxas calls it, e.g. "sm_90"
    cores                          streaming multiprocessors
    threads_per_core               resident threads of one of them
    threads_per_block_max          limit of one block
    shared_bytes_per_block         static shared memory of one block, without opting in
    grid_max_x, grid_max_y         largest grid
    l2_bytes, bandwidth_bytes_per_s  for explanations only
    """

    name: str
    architecture: str
    cores: int
    threads_per_core: int
    shared_bytes_per_core: int
    shared_bytes_per_block_optin: int
    l2_bytes: int
    bandwidth_bytes_per_s: int
    threads_per_warp: int = 32
    threads_per_block_max: int = 1024
    shared_bytes_per_block: int = 48 * 1024
    grid_max_x: int = 2**31 - 1
    grid_max_y: int = 65535

    @property
    def threads_max(self) -> int:
        """Threads that are resident on the whole chip at once."""
        return self.cores * self.threads_per_core

    @property
    def compute_capability(self) -> tuple[int, int]:
        number = int(self.architecture.removeprefix("sm_"))
        return number // 10, number % 10


_K = 1024
DEVICES: tuple[Device, ...] = (
    Device("t4", "sm_75", 40, 1024, 64 * _K, 64 * _K, 4 * _K * _K, 320 * 10**9),
    Device("a100", "sm_80", 108, 2048, 164 * _K, 163 * _K, 40 * _K * _K, 1555 * 10**9),
    Device("a6000", "sm_86", 84, 1536, 100 * _K, 99 * _K, 6 * _K * _K, 768 * 10**9),
    Device("h100", "sm_90", 132, 2048, 228 * _K, 227 * _K, 50 * _K * _K, 3352 * 10**9),
    Device("h200", "sm_90", 132, 2048, 228 * _K, 227 * _K, 50 * _K * _K, 4800 * 10**9),
    Device("b200", "sm_100", 148, 2048, 228 * _K, 227 * _K, 126 * _K * _K, 8000 * 10**9),
)
DEFAULT_DEVICE = "h200"
# sm_90 stands for the device that is the default everywhere.
_BY_NAME = {d.architecture: d for d in DEVICES} | {d.name: d for d in DEVICES}


def device_running(architecture: str) -> Device:
    """The newest known device whose PTX a GPU of `architecture` runs: PTX is compiled again for every newer chip.

    >>> device_running("sm_89").name
    'a6000'

    raises UsageError for a GPU that is older than all that are known.
    """
    number = int(architecture.removeprefix("sm_"))
    older = [d for d in DEVICES if int(d.architecture.removeprefix("sm_")) <= number]
    if not older:
        raise UsageError(f"no kernels for {architecture}", help=f"the oldest target is {DEVICES[0].architecture}")
    return device(max(older, key=lambda d: d.compute_capability).architecture)


def device(name: str) -> Device:
    """The device called `name`: a model ("h200") or an architecture ("sm_90", which is h200).

    raises UsageError naming the known ones.
    """
    if found := _BY_NAME.get(name.lower()):
        return found
    raise UsageError(f"unknown target '{name}'", help=f"one of: {', '.join(_BY_NAME)}")
