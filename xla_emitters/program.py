"""What a compilation makes, as plain values: a `Program`, which is a list of steps; a `Kernel` is one kind of step.

    Program "gelu"                          parameters  p0 bf16[6,512,4096]          results  r0 bf16[6,512,4096]
      Kernel "fusion"  grid 24576x1x1  block 128x1x1  shared 0 bytes
        argument 0  parameter 0   bf16[6,512,4096]  25165824 bytes, 16-byte aligned, slice 0, only read
        argument 1  result 0      bf16[6,512,4096]  25165824 bytes, 256-byte aligned, slice 1

The other steps, for programs of more than fusions:

    LibraryCall   a function that a library has: operands, results, and its configuration
    Allocation    from here on a temporary has memory; without one it has memory from the start
    Release       from here on it has none
    Copy          one array to another
    Loop          steps that decide, steps that repeat while the decision is true
    Branch        steps chosen by a number or a predicate

Every launcher (CuPy, the CPU executor, the bundle's script) takes these and nothing else. They are frozen, printable and go to JSON and
back, so that a kernel can be compiled here and launched on a machine that has neither xDSL nor LLVM.
Sizes that are known when the program runs, not when it is compiled, are `Size` values of `shapes`: in the shape of an array, in a kernel's
grid, in its scalar arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from xla_emitters.errors import UsageError
from xla_emitters.shapes import Size, parse_size
from xla_emitters.trace import Trace
from xla_emitters.trace.explain import explained_program


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

    def at(self, sizes: Mapping[str, int]) -> Launch:
        """The launch itself: it depends on no sizes."""
        return self

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.grid))} blocks of {'x'.join(map(str, self.block))} threads"


Extent = int | Size
"""A number, or an expression over sizes that a run knows."""


@dataclass(frozen=True)
class SizedLaunch:
    """A launch whose grid depends on sizes that a run knows; threads of a block are part of the code."""

    grid: tuple[Extent, Extent, Extent]
    block: tuple[int, int, int]

    def at(self, sizes: Mapping[str, int]) -> Launch:
        """The launch for these values of symbols. raises DataError for a symbol without a value, and for a size that is undefined."""
        x, y, z = (extent_at(extent, sizes) for extent in self.grid)
        return Launch((x, y, z), self.block)

    def __str__(self) -> str:
        return f"{' x '.join(map(str, self.grid))} blocks of {'x'.join(map(str, self.block))} threads"


def extent_at(extent: Extent, sizes: Mapping[str, int]) -> int:
    """The number that an extent is for these values of symbols. raises DataError as `Size.evaluate`."""
    return extent if isinstance(extent, int) else extent.evaluate(sizes)


@dataclass(frozen=True)
class Scalar:
    """A number that a kernel takes behind its pointers: a size of the program.

    dtype   HLO's name of its type
    """

    dtype: str
    value: Extent


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
class Slot:
    """One array of a program: `kind` is "parameter", "result" or "temporary", `index` its number among those."""

    kind: str
    index: int

    def __str__(self) -> str:
        return f"{self.kind[0]}{self.index}"


@dataclass(frozen=True)
class Argument:
    """One pointer that a kernel takes.

    kind, index  the program's array, as in `Slot`
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

    @property
    def slot(self) -> Slot:
        return Slot(self.kind, self.index)


@dataclass(frozen=True)
class Kernel:
    """Code of one entry function, what it is launched with, and the arrays that it is given.

    ptx             text of the module that holds the entry, and those of the program's other kernels; "" when the compilation stopped
                    before PTX
    architecture    what it was compiled for, e.g. "sm_90"
    shared_bytes    static shared memory of one block
    arguments       in the order of the entry's parameters
    scalars         what the entry takes behind them
    """

    name: str
    ptx: str = field(repr=False)
    architecture: str
    launch: Launch | SizedLaunch
    shared_bytes: int
    arguments: tuple[Argument, ...]
    scalars: tuple[Scalar, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain data; not the PTX, which all kernels of a program share."""
        return {
            "name": self.name,
            "grid": list(map(_extent_json, self.launch.grid)),
            "block": list(self.launch.block),
            "shared_bytes": self.shared_bytes,
            "architecture": self.architecture,
            "arguments": [asdict(argument) for argument in self.arguments],
            "scalars": [{"dtype": scalar.dtype, "value": _extent_json(scalar.value)} for scalar in self.scalars],
        }

    @staticmethod
    def from_json(data: Mapping[str, Any], ptx: str) -> Kernel:
        """The inverse of `to_json`, with the PTX that is stored beside it."""
        return Kernel(
            name=data["name"],
            ptx=ptx,
            architecture=data["architecture"],
            launch=_launch(data["grid"], _triple(data["block"])),
            shared_bytes=data["shared_bytes"],
            arguments=tuple(_argument(argument) for argument in data["arguments"]),
            scalars=tuple(Scalar(scalar["dtype"], _extent(scalar["value"])) for scalar in data["scalars"]),
        )


@dataclass(frozen=True)
class LibraryCall:
    """A call of a function that a library has.

    name      HLO's: the opcode, or a custom call's target
    operands  arrays that are read
    results   arrays that are written
    config    what the call says besides its operands, as plain data
    """

    name: str
    operands: tuple[Slot, ...]
    results: tuple[Slot, ...]
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Allocation:
    """A temporary has memory from here on; what it holds is not known."""

    slot: Slot


@dataclass(frozen=True)
class Release:
    """A temporary has no memory from here on."""

    slot: Slot


@dataclass(frozen=True)
class Copy:
    """`target` gets the elements of `source`, an array of the same type."""

    source: Slot
    target: Slot


@dataclass(frozen=True)
class Loop:
    """Runs `condition`; while the predicate `proceeds` is true then, `body` and `condition` again.

    trips   how often the body runs, where that is known
    """

    condition: tuple[Step, ...]
    proceeds: Slot
    body: tuple[Step, ...]
    trips: int | None = None


@dataclass(frozen=True)
class Branch:
    """Runs one of `branches`, as `selector` says.

    selector  a predicate: true is the first of two; or an s32: the number of a branch, the last one for all numbers out of range
    """

    selector: Slot
    branches: tuple[tuple[Step, ...], ...]


Step = Kernel | LibraryCall | Allocation | Release | Copy | Loop | Branch


def kernels_in(steps: Sequence[Step]) -> Iterator[Kernel]:
    """The kernels of steps and of the steps inside them, in the order in which they are written down."""
    for step in steps:
        match step:
            case Kernel():
                yield step
            case Loop():
                yield from kernels_in((*step.condition, *step.body))
            case Branch():
                for branch in step.branches:
                    yield from kernels_in(branch)
            case _:
                pass


@dataclass(frozen=True)
class Program:
    """Steps in order, and the arrays that go in, come out, and live in between.

    parameters   one spec per parameter of ENTRY
    results      one spec per leaf of ENTRY's result
    temporaries  buffers that one step writes and a later one reads
    steps        what to do; of a module of fusions, a kernel each
    stage        where the compilation stopped, "ptx" for the whole road
    code         the program at that stage as one text: HLO, a module of MLIR with all kernels, LLVM IR, or PTX
    graph        what passes on HLO did before kernels were planned; not part of what a program is
    traces       what each kernel's compilation did, likewise
    hlo          the module it was compiled from, as text
    fusion       the one fusion instruction that was chosen; None: all that ENTRY computes
    """

    name: str
    target: str
    parameters: tuple[ArraySpec, ...]
    results: tuple[ArraySpec, ...]
    temporaries: tuple[ArraySpec, ...]
    steps: tuple[Step, ...]
    stage: str = "ptx"
    code: str = field(default="", repr=False)
    graph: Trace = field(default_factory=Trace, compare=False, repr=False)
    traces: tuple[Trace, ...] = field(default=(), compare=False, repr=False)
    hlo: str = field(default="", repr=False)
    fusion: str | None = None

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Every kernel among the steps, also those inside loops and branches."""
        return tuple(kernels_in(self.steps))

    def array(self, slot: Slot) -> ArraySpec:
        """What is in a slot."""
        return {"parameter": self.parameters, "result": self.results, "temporary": self.temporaries}[slot.kind][
            slot.index
        ]

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
        """Which fusions were split, then why each kernel is as it is: emitter, launch, partition, accesses, and what passes declined."""
        return explained_program(self.graph, self.traces)

    def __str__(self) -> str:
        arrays = [", ".join(map(str, specs)) for specs in (self.parameters, self.results)]
        kernels = (f"\n  {kernel.name}: {kernel.launch}, {kernel.architecture}" for kernel in self.kernels)
        return f"{self.name}: ({arrays[0]}) -> ({arrays[1]})" + "".join(kernels)

    def _repr_html_(self) -> str:
        """For notebooks: each kernel's HLO and every stage, side by side."""
        from xla_emitters.trace.html import trace_html

        return "".join(map(trace_html, self.traces))

    def to_json(self) -> dict[str, Any]:
        """Plain data, as docs/json.md says; without traces."""
        kernels = self.kernels
        return {
            "name": self.name,
            "target": self.target,
            "parameters": [asdict(spec) for spec in self.parameters],
            "results": [asdict(spec) for spec in self.results],
            "temporaries": [asdict(spec) for spec in self.temporaries],
            "kernels": [kernel.to_json() for kernel in kernels],
            "steps": [_step_json(step, kernels) for step in self.steps],
            "stage": self.stage,
            "code": self.code,
            "hlo": self.hlo,
            "fusion": self.fusion,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any], graph: Trace | None = None, traces: tuple[Trace, ...] = ()) -> Program:
        """The inverse of `to_json`, with the traces that are stored beside it."""
        ptx = data["code"] if data["stage"] == "ptx" else ""
        kernels = [Kernel.from_json(kernel, ptx) for kernel in data["kernels"]]
        return Program(
            name=data["name"],
            target=data["target"],
            parameters=tuple(array_from_json(spec) for spec in data["parameters"]),
            results=tuple(array_from_json(spec) for spec in data["results"]),
            temporaries=tuple(array_from_json(spec) for spec in data["temporaries"]),
            steps=_steps_from_json(data["steps"], kernels),
            stage=data["stage"],
            code=data["code"],
            graph=graph or Trace(),
            traces=traces,
            hlo=data["hlo"],
            fusion=data["fusion"],
        )


def _step_json(step: Step, kernels: Sequence[Kernel]) -> dict[str, Any]:
    """A step as plain data; a kernel is its number in `kernels`."""
    match step:
        case Kernel():
            number = next(number for number, kernel in enumerate(kernels) if kernel is step)
            return {"step": "launch", "kernel": number}
        case LibraryCall():
            slots = {"operands": list(map(asdict, step.operands)), "results": list(map(asdict, step.results))}
            return {"step": "library call", "name": step.name, **slots, "config": dict(step.config)}
        case Allocation():
            return {"step": "allocation", "slot": asdict(step.slot)}
        case Release():
            return {"step": "release", "slot": asdict(step.slot)}
        case Copy():
            return {"step": "copy", "source": asdict(step.source), "target": asdict(step.target)}
        case Loop():
            parts = {
                "condition": [_step_json(inner, kernels) for inner in step.condition],
                "body": [_step_json(inner, kernels) for inner in step.body],
            }
            return {"step": "loop", **parts, "proceeds": asdict(step.proceeds), "trips": step.trips}
        case Branch():
            branches = [[_step_json(inner, kernels) for inner in branch] for branch in step.branches]
            return {"step": "branch", "selector": asdict(step.selector), "branches": branches}


def _steps_from_json(steps: Sequence[Mapping[str, Any]], kernels: Sequence[Kernel]) -> tuple[Step, ...]:
    return tuple(_step_from_json(step, kernels) for step in steps)


def _step_from_json(data: Mapping[str, Any], kernels: Sequence[Kernel]) -> Step:
    match data["step"]:
        case "launch":
            return kernels[int(data["kernel"])]
        case "library call":
            operands, results = (tuple(Slot(**slot) for slot in data[name]) for name in ("operands", "results"))
            return LibraryCall(data["name"], operands, results, dict(data["config"]))
        case "allocation":
            return Allocation(Slot(**data["slot"]))
        case "release":
            return Release(Slot(**data["slot"]))
        case "copy":
            return Copy(Slot(**data["source"]), Slot(**data["target"]))
        case "loop":
            condition, body = (_steps_from_json(data[name], kernels) for name in ("condition", "body"))
            return Loop(condition, Slot(**data["proceeds"]), body, data["trips"])
        case "branch":
            branches = tuple(_steps_from_json(branch, kernels) for branch in data["branches"])
            return Branch(Slot(**data["selector"]), branches)
        case other:
            raise ValueError(f"no step is called {other!r}")


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


def _extent_json(extent: Extent) -> int | str:
    return extent if isinstance(extent, int) else str(extent)


def _extent(value: int | str) -> Extent:
    return value if isinstance(value, int) else parse_size(value)


def _launch(grid: Sequence[int | str], block: tuple[int, int, int]) -> Launch | SizedLaunch:
    x, y, z = map(_extent, grid)
    if isinstance(x, int) and isinstance(y, int) and isinstance(z, int):
        return Launch((x, y, z), block)
    return SizedLaunch((x, y, z), block)


def _triple(values: list[int]) -> tuple[int, int, int]:
    x, y, z = values
    return x, y, z
