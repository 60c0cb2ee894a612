"""Descriptions of GPUs: the limits and sizes that emission depends on, such as the number of resident threads.

    >>> device("h200").threads_max
    270336
    >>> device("sm_86").name
    'a6000'

A file with a description of a GPU in XLA's text format is a device too; its name is the file's name:

    gpu_device_info {                                device("l40s.txtpb").cores -> 142
      core_count: 142
      threads_per_core_limit: 1536
      cuda_compute_capability { major: 8 minor: 9 }
    }
    platform_name: "CUDA"

A field that the description leaves out is taken from the newest known device whose PTX the GPU runs, and a remark says so.

XLA's heuristics read every one of these fields. Fields for the cost model alone are in two more tables: a multiprocessor's limits and rates
(`Device.multiprocessor`, by architecture), and clocks, latencies and peaks of matrix products (`Device.rates`, by model); their sources are
in docs/cost_model.md.

Source: docs/reference/2 "Device numbers used by heuristics"; NVIDIA's data sheets for t4, a100 and b200; XLA device_description.proto for
the names in descriptions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, fields, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xla_emitters.errors import ParseError, Unsupported, UsageError
from xla_emitters.plugins import load, note, refuse_double
from xla_emitters.support.late_dataclass import dataclass

if TYPE_CHECKING:
    from xla_emitters.support.text_proto import Message


@dataclass(frozen=True)
class Multiprocessor:
    """Limits and rates of one multiprocessor, by architecture. Rates are lanes (threads' instructions) per clock.

    blocks_max            resident blocks
    shared_unit_bytes     a block's shared memory is rounded up to a multiple of it
    shared_reserved_bytes shared memory that the system reserves in each block
    fp32, fp16, fp64      additions and multiplications; fp16 counts instructions, each of which does two
    alu                   additions of integers, comparisons, selections, logic
    heavy                 multiplications of integers, on those of the fp32 lanes that can
    special               reciprocal, exponential, sine ...; also conversions between floating point and integers
    load_store            accesses to memory, and shuffles
    dependent_cycles      from an addition to an instruction that reads its result
    shared_cycles         from a load of shared memory to an instruction that reads it
    fp64_cycles           as dependent_cycles, for f64
    """

    blocks_max: int
    shared_unit_bytes: int
    shared_reserved_bytes: int
    fp32: int
    fp16: int
    fp64: int
    load_store: int
    shared_cycles: int
    fp64_cycles: int
    alu: int = 64
    heavy: int = 64
    special: int = 16
    dependent_cycles: int = 4
    registers: int = 65536
    registers_unit: int = 256
    """A warp's registers are rounded up to a multiple of it."""
    schedulers: int = 4
    """Each has a quarter of the registers and starts one instruction per clock."""


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" and "Throughput of Native Arithmetic Instructions".
_MULTIPROCESSORS = {
    "sm_75": Multiprocessor(16, 256, 0, fp32=64, fp16=64, fp64=2, load_store=16, shared_cycles=23, fp64_cycles=48),
    "sm_80": Multiprocessor(32, 128, 1024, fp32=64, fp16=128, fp64=32, load_store=32, shared_cycles=29, fp64_cycles=8),
    "sm_86": Multiprocessor(16, 128, 1024, fp32=128, fp16=64, fp64=2, load_store=32, shared_cycles=30, fp64_cycles=48),
    "sm_89": Multiprocessor(24, 128, 1024, fp32=128, fp16=64, fp64=2, load_store=32, shared_cycles=30, fp64_cycles=48),
    "sm_90": Multiprocessor(32, 128, 1024, fp32=128, fp16=128, fp64=64, load_store=32, shared_cycles=29, fp64_cycles=8),
    "sm_100": Multiprocessor(
        32, 128, 1024, fp32=128, fp16=128, fp64=64, load_store=32, shared_cycles=29, fp64_cycles=8
    ),
}


@dataclass(frozen=True)
class Rates:
    """Clock, second-level cache, latencies and peaks of one GPU model, for the cost model.

    clock_hz            the highest; kernels bound by memory run at it
    l2_bytes_per_s      bandwidth of cache hits: measured, or three quarters of the cache's width times the clock
    memory_ns           latency of a load from memory on an idle GPU
    tera                10^12 operations a second of dense matrix products, by the type of their factors; f32 on CUDA cores, all
                        other types on tensor cores if the GPU has them for that type
    """

    clock_hz: int
    l2_bytes_per_s: int
    memory_ns: int
    tera: Mapping[str, float] = field(default_factory=dict[str, float])


_HOPPER = {"f64": 66.9, "f32": 66.9, "tf32": 494.7, "f16": 989.4, "bf16": 989.4, "f8": 1978.9, "s8": 1978.9}
_RATES = {
    "t4": Rates(1590 * 10**6, 1270 * 10**9, 350, {"f64": 0.25, "f32": 8.1, "f16": 65, "s8": 130}),
    "a100": Rates(
        1410 * 10**6,
        5400 * 10**9,
        330,
        {"f64": 19.5, "f32": 19.5, "tf32": 156, "f16": 312, "bf16": 312, "s8": 624},
    ),
    "a6000": Rates(
        1800 * 10**6,
        2300 * 10**9,
        300,
        {"f64": 0.6, "f32": 38.7, "tf32": 77.4, "f16": 154.8, "bf16": 154.8, "s8": 309.7},
    ),
    "h100": Rates(1980 * 10**6, 7600 * 10**9, 273, _HOPPER),
    "h200": Rates(1980 * 10**6, 7600 * 10**9, 273, _HOPPER),
    "b200": Rates(
        1965 * 10**6,
        15100 * 10**9,
        330,
        {"f64": 37, "f32": 75, "tf32": 1100, "f16": 2250, "bf16": 2250, "f8": 4500, "s8": 4500},
    ),
}
_INSTEAD = {"f8": "f16", "bf16": "f32", "tf32": "f32"}
"""Type of factors -> the type that multiplies them on a GPU without tensor cores for it."""


@dataclass(frozen=True)
class Device:
    """One GPU model.

    architecture                   ptxas's name, e.g. "sm_90"
    cores                          streaming multiprocessors
    threads_per_core               resident threads per multiprocessor
    threads_per_block_max          most threads of a block
    shared_bytes_per_block         static shared memory of one block, without opting in to more
    grid_max_x, grid_max_y         largest grid
    l2_bytes, bandwidth_bytes_per_s  for explanations only
    assumed                        the fields that a description leaves out and the values used for them, as text; "" for none
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
    assumed: str = ""

    @property
    def threads_max(self) -> int:
        """The number of threads that can be resident on the whole chip."""
        return self.cores * self.threads_per_core

    @property
    def compute_capability(self) -> tuple[int, int]:
        number = int(self.architecture.removeprefix("sm_"))
        return number // 10, number % 10

    @property
    def multiprocessor(self) -> Multiprocessor:
        """The row of its architecture; for an unknown one, that of the newest known architecture that is not newer."""
        found = _MULTIPROCESSORS.get(self.architecture)
        return found or _MULTIPROCESSORS[device_running(self.architecture).architecture]

    @property
    def rates(self) -> Rates:
        """The row of its model; for a GPU described in a file, that of the most similar known device."""
        return _RATES.get(self.name) or _RATES[device_running(self.architecture).name]

    def factors(self, wanted: str) -> str:
        """The type in which "f64", "f32", "tf32", "f16", "bf16", "f8" or "s8" is multiplied: another one without tensor cores for it.

        >>> device("h200").factors("f8"), device("a100").factors("f8"), device("t4").factors("tf32")
        ('f8', 'f16', 'f32')
        """
        return wanted if wanted in self.rates.tera else _INSTEAD[wanted]

    def peak(self, factors: str) -> float:
        """Operations a second of a dense matrix product with such factors.

        For a GPU described in a file: that of the most similar known device, for as many multiprocessors as it has.

        >>> device("h200").peak("bf16") / 1e12
        989.4
        """
        scale = 1.0 if self.name in _RATES else self.cores / device_running(self.architecture).cores
        return 1e12 * scale * self.rates.tera[factors]


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
# An architecture that several devices have, such as sm_90, stands for the last of them.
_BY_NAME = {d.architecture: d for d in DEVICES} | {d.name: d for d in DEVICES}


def device_running(architecture: str) -> Device:
    """The newest known device whose PTX a GPU of `architecture` runs: the driver compiles PTX for newer chips too.

    >>> device_running("sm_89").name
    'a6000'

    raises UsageError for a GPU that is older than all known devices.
    """
    number = int(architecture.removeprefix("sm_"))
    older = [d for d in DEVICES if int(d.architecture.removeprefix("sm_")) <= number]
    if not older:
        raise UsageError(f"no kernels for {architecture}", help=f"the oldest target is {DEVICES[0].architecture}")
    return device(max(older, key=lambda d: d.compute_capability).architecture)


def device(name: str) -> Device:
    """The device called `name`: a model ("h200"), an architecture ("sm_90", which is h200), or a file that describes one.

    raises UsageError naming the known devices; ParseError or Unsupported for the contents of a file.
    """
    if found := _BY_NAME.get(name.lower()):
        return found
    load()
    if found := _ADDED.get(name.lower()):
        return found
    if not (path := Path(name)).is_file():
        known = (*_BY_NAME, *_ADDED)
        near = get_close_matches(name.lower(), known, n=2, cutoff=0.7)
        meant = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        raise UsageError(
            f"unknown target '{name}'", help=f"{meant}one of: {', '.join(known)}; or a file that describes a GPU"
        )
    try:
        return _described(path.read_bytes().decode(), name)
    except UnicodeDecodeError as error:
        raise ParseError(f"{name} is not text: byte {error.start} is not UTF-8", stage="target") from error


_ADDED: dict[str, Device] = {}


def register_device(added: Device) -> None:
    """Makes a GPU from outside the package known by its name.

    raises  UsageError if it is not a device, for numbers or an architecture that no GPU has, and for a name that is taken
    """
    if not isinstance(added, Device):  # pyright: ignore[reportUnnecessaryIsInstance]  (from outside)
        raise UsageError(f"{added!r} is not a Device", stage="plugins", help='replace(device("h200"), name=...)')
    if re.fullmatch(r"sm_\d{2,3}", added.architecture) is None:
        raise UsageError(
            f"device '{added.name}': no architecture '{added.architecture}'", stage="plugins", help="sm_90"
        )
    numbers = {field.name: getattr(added, field.name) for field in fields(added)}
    wrong = [name for name, value in numbers.items() if isinstance(value, int) and value <= 0]
    if wrong:
        raise UsageError(f"device '{added.name}': {', '.join(wrong)} must be positive", stage="plugins")
    refuse_double("device", added.name.lower(), (*_BY_NAME, *_ADDED))
    _ADDED[added.name.lower()] = added
    note("device", added.name)


# Names in XLA's GpuDeviceInfoProto -> ours.
_DESCRIBED = {
    "core_count": "cores",
    "threads_per_core_limit": "threads_per_core",
    "shared_memory_per_core": "shared_bytes_per_core",
    "shared_memory_per_block_optin": "shared_bytes_per_block_optin",
    "l2_cache_size": "l2_bytes",
    "memory_bandwidth": "bandwidth_bytes_per_s",
    "threads_per_warp": "threads_per_warp",
    "threads_per_block_limit": "threads_per_block_max",
    "shared_memory_per_block": "shared_bytes_per_block",
    "block_dim_limit_x": "grid_max_x",
    "block_dim_limit_y": "grid_max_y",
}


@lru_cache
def _described(text: str, name: str) -> Device:
    """The device of a GpuTargetConfigProto, or of the GpuDeviceInfoProto in it, as text."""
    from xla_emitters.support.text_proto import parse_text_proto  # imported here: most targets are names

    whole = parse_text_proto(text, name)
    info = whole.child("gpu_device_info") or whole
    platform = whole.text("platform_name") or "CUDA"
    if platform != "CUDA" or "rocm_compute_capability" in info.fields:
        raise Unsupported(f"{name} does not describe an NVIDIA GPU", stage="target", place=info.place)
    architecture = _architecture(info)
    like = device_running(architecture)
    numbers: dict[str, Any] = {ours: info.number(theirs, least=1) for theirs, ours in _DESCRIBED.items()}
    if numbers["threads_per_warp"] not in (None, like.threads_per_warp):
        raise Unsupported(
            f"warps have {numbers['threads_per_warp']} threads, but NVIDIA GPUs have {like.threads_per_warp}",
            stage="target",
            place=info.place,
        )
    missing = [f"{theirs} ({getattr(like, ours)})" for theirs, ours in _DESCRIBED.items() if numbers[ours] is None]
    assumed = f"{name} leaves out {', '.join(missing)}: values of {like.name} used" if missing else ""
    given = {ours: number for ours, number in numbers.items() if number is not None}
    return replace(like, name=name, architecture=architecture, assumed=assumed, **given)


def _architecture(info: Message) -> str:
    capability = info.child("cuda_compute_capability")
    if capability is None or (major := capability.number("major", least=1)) is None:
        raise ParseError(
            "the description lacks the GPU's compute capability",
            stage="target",
            place=info.place,
            help="cuda_compute_capability { major: 9 minor: 0 }",
        )
    return f"sm_{major}{capability.number('minor', least=0) or 0}"
