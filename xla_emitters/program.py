"""What a compilation makes, as plain values: one `Program` of one or more `Kernel`s.

    Program "gelu"                          parameters  p0 bf16[6,512,4096]          results  r0 bf16[6,512,4096]
      Kernel "fusion"  grid 24576x1x1  block 128x1x1  shared 0 bytes
        argument 0  parameter 0   bf16[6,512,4096]  25165824 bytes, 16-byte aligned, slice 0, only read
        argument 1  result 0      bf16[6,512,4096]  25165824 bytes, 256-byte aligned, slice 1

Every launcher (CuPy, the CPU executor, the bundle's script) takes these and nothing else. They are frozen, printable and go to JSON and
back, so that a kernel can be compiled here and launched on a machine that has neither xDSL nor LLVM.
Source: design.md 4 "Program"; spec/2 4.1 "ABI".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from xla_emitters.errors import UsageError
from xla_emitters.trace import Trace
from xla_emitters.trace.explain import explained


@dataclass(frozen=True)
class Launch:
    """Blocks of the grid and threads of a block, in x, y, z."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    @property
    def blocks(self) -> int:
        """Blocks of the whole grid."""
        return math.prod(self.grid)

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return math.prod(self.block)

    @property
    def ids(self) -> tuple[tuple[str, int], ...]:
        """(name, extent) of the thread and block ids that take more than one value, in the order of maps over them."""
        axes = [(f"th_{axis}", extent) for axis, extent in zip("xyz", self.block, strict=True)]
        axes += [(f"bl_{axis}", extent) for axis, extent in zip("xyz", self.grid, strict=True)]
        return tuple((name, extent) for name, extent in axes if extent > 1)

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.grid))} blocks of {'x'.join(map(str, self.block))} threads"


@dataclass(frozen=True)
class ArraySpec:
    """A logical array of the caller: HLO's name of its element type, its shape, its physical layout.

    minor_to_major   HLO's layout: the fastest varying dimension first; row-major is (rank-1, ..., 0)
    """

    dtype: str
    shape: tuple[int, ...]
    minor_to_major: tuple[int, ...]

    @property
    def elements(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def is_row_major(self) -> bool:
        return self.minor_to_major == tuple(reversed(range(len(self.shape))))

    def __str__(self) -> str:
        layout = "" if self.is_row_major else "{" + ",".join(map(str, self.minor_to_major)) + "}"
        return f"{self.dtype}[{','.join(map(str, self.shape))}]{layout}"


@dataclass(frozen=True)
class Argument:
    """One pointer that a kernel takes.

    kind         "parameter", "result" or "temporary" of the program
    index        which of them
    bytes        size of the buffer slice; sub-byte types are packed
    alignment    bytes that the kernel promises the compiler
    slice_index  arguments with equal numbers are the same memory
    written      whether the kernel writes it
    """

    kind: str
    index: int
    array: ArraySpec
    bytes: int
    alignment: int
    slice_index: int
    written: bool


@dataclass(frozen=True)
class Kernel:
    """PTX and everything a launcher needs to know about it.

    ptx             text of the whole module, or "" when the compilation stopped before PTX
    architecture    what it was compiled for, e.g. "sm_90"
    shared_bytes    static shared memory of one block
    arguments       in the order of the entry's parameters
    """

    name: str
    ptx: str
    architecture: str
    launch: Launch
    shared_bytes: int
    arguments: tuple[Argument, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data with the keys that `compile --json` documents: name, grid, block, shared_bytes, architecture, arguments, ptx."""
        return {
            "name": self.name,
            "grid": list(self.launch.grid),
            "block": list(self.launch.block),
            "shared_bytes": self.shared_bytes,
            "architecture": self.architecture,
            "arguments": [asdict(argument) for argument in self.arguments],
            "ptx": self.ptx,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Kernel:
        """The inverse of `to_json`."""
        return Kernel(
            name=data["name"],
            ptx=data["ptx"],
            architecture=data["architecture"],
            launch=Launch(_triple(data["grid"]), _triple(data["block"])),
            shared_bytes=data["shared_bytes"],
            arguments=tuple(_argument(argument) for argument in data["arguments"]),
        )


@dataclass(frozen=True)
class Program:
    """Kernels in launch order, and the arrays that go in, come out, and live in between.

    parameters   one spec per parameter of ENTRY
    results      one spec per leaf of ENTRY's result
    temporaries  buffers that one kernel writes and a later one reads
    traces       what each kernel's compilation did; not part of what a program is
    hlo          the module it was compiled from, as text
    fusion       the one fusion instruction of ENTRY that was chosen; None: all that ENTRY computes
    """

    name: str
    target: str
    parameters: tuple[ArraySpec, ...]
    results: tuple[ArraySpec, ...]
    temporaries: tuple[ArraySpec, ...]
    kernels: tuple[Kernel, ...]
    traces: tuple[Trace, ...] = field(default=(), compare=False, repr=False)
    hlo: str = field(default="", repr=False)
    fusion: str | None = None

    @property
    def trace(self) -> Trace:
        """The trace of a program of one kernel. raises UsageError when there are several: see `traces`."""
        if len(self.traces) != 1:
            raise UsageError(f"{self.name} has {len(self.traces)} traces; use .traces[i]", stage="program")
        return self.traces[0]

    def __call__(self, *inputs: Any) -> Any:
        """Runs the program on the GPU: NumPy arrays in, NumPy arrays out; CuPy or DLPack arrays in, CuPy arrays out.

        returns  the result, or a tuple of them when there are several
        raises   DataError for arrays that do not fit, ToolError without CuPy or a device
        """
        return _one_or_all(_launcher("cuda")(self, inputs))

    def run_cpu(self, *inputs: Any, stage: str = "llvm-dialect") -> Any:
        """Runs the IR of a stage on the CPU, on NumPy arrays; results as `__call__`.

        raises   DataError for arrays that do not fit, UsageError when the trace does not hold the stage's IR,
                 ExecutionError where the kernel does what a GPU would silently do wrong
        """
        return _one_or_all(_launcher("cpu")(self, inputs, stage))

    def explain(self) -> str:
        """Why each kernel is as it is: emitter, launch, partition, accesses, and what passes declined."""
        return "\n".join(map(explained, self.traces))

    def _repr_html_(self) -> str:
        """For notebooks: each kernel's HLO and every stage, side by side."""
        from xla_emitters.trace.html import trace_html

        return "".join(map(trace_html, self.traces))

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "target": self.target,
            "parameters": [asdict(spec) for spec in self.parameters],
            "results": [asdict(spec) for spec in self.results],
            "temporaries": [asdict(spec) for spec in self.temporaries],
            "kernels": [kernel.to_json() for kernel in self.kernels],
            "hlo": self.hlo,
            "fusion": self.fusion,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any], traces: tuple[Trace, ...] = ()) -> Program:
        """The inverse of `to_json`, with the traces that are stored beside it."""
        return Program(
            name=data["name"],
            target=data["target"],
            parameters=tuple(array_from_json(spec) for spec in data["parameters"]),
            results=tuple(array_from_json(spec) for spec in data["results"]),
            temporaries=tuple(array_from_json(spec) for spec in data["temporaries"]),
            kernels=tuple(Kernel.from_json(kernel) for kernel in data["kernels"]),
            traces=traces,
            hlo=data["hlo"],
            fusion=data["fusion"],
        )


LAUNCHERS: dict[str, Callable[..., Sequence[Any]]] = {}
"""What runs a program, by platform: "cuda" takes (program, inputs), "cpu" (program, inputs, stage). `runtime` registers both."""


def _launcher(platform: str) -> Callable[..., Sequence[Any]]:
    if platform not in LAUNCHERS:
        raise UsageError(f"no launcher for {platform}", stage="program", help="import xla_emitters.runtime")
    return LAUNCHERS[platform]


def _one_or_all(results: Sequence[Any]) -> Any:
    return results[0] if len(results) == 1 else tuple(results)


def array_from_json(data: Mapping[str, Any]) -> ArraySpec:
    """The `ArraySpec` whose `asdict` went through JSON."""
    return ArraySpec(data["dtype"], tuple(data["shape"]), tuple(data["minor_to_major"]))


def _argument(data: Mapping[str, Any]) -> Argument:
    fields = dict(data)
    array = array_from_json(fields.pop("array"))
    return Argument(array=array, **fields)


def _triple(values: list[int]) -> tuple[int, int, int]:
    x, y, z = values
    return x, y, z
