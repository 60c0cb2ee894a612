"""A compiled program: its arrays, its steps, and the record of its compilation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from textwrap import indent
from typing import TYPE_CHECKING, Any

from xla_emitters.errors import Unsupported, UsageError
from xla_emitters.program.arrays import Arrays, ArraySpec
from xla_emitters.program.as_json import (
    array_from_json,
    call_from_json,
    call_json,
    kernel_from_json,
    kernel_json,
)
from xla_emitters.program.callees import Kernel, LibraryCall
from xla_emitters.program.memory import peak_of_temporaries
from xla_emitters.program.platforms import OnFunction, OnPlatform, known_platform, one_or_all, platform_of
from xla_emitters.program.steps import Launch, Step
from xla_emitters.program.steps_json import value_from_json, value_json
from xla_emitters.trace import Trace
from xla_emitters.trace.explain import explained, explained_json, remarks_json

if TYPE_CHECKING:
    from xla_emitters.program.outline import Outline


def refuse_left_out(name: str, left_out: Sequence[str]) -> None:
    """raises Unsupported for a program whose text leaves out the data of these constants"""
    if left_out:
        raise Unsupported(
            f"{name} does not run: its text leaves out the data of {', '.join(left_out)}",
            stage="run",
            help="dump HLO with XLA_FLAGS=--xla_dump_large_constants, or print it with print_large_constants; "
            "print MLIR without large_elements_limit and --mlir-elide-elementsattrs-if-larger",
        )


@dataclass(frozen=True)
class Program:
    """Steps in order, with the arrays for inputs, results and temporaries, and what the steps name.

    parameters   one spec per parameter of ENTRY
    results      one spec per leaf of ENTRY's result
    temporaries  buffers that one step writes and a later one reads
    steps        in order; for a module of fusions, one launch each. Results have memory from the beginning
    kernels      by whose names steps launch, in the order of their first launches
    calls        of library functions, by the numbers of steps
    stage        where the compilation stopped; "ptx" if it did not stop early
    code         the program at that stage as one text: HLO, a module of MLIR with all kernels, LLVM IR, or PTX
    graph        record of the passes on HLO before kernels were planned; not compared
    traces       record of each kernel's compilation; not compared
    hlo          the module it was compiled from, as text
    fusion       the one fusion instruction that was chosen; None: all that ENTRY computes
    left_out     instructions whose data the text left out (`constant({...})`): compiled as zeros; the program refuses to run
    """

    name: str
    target: str
    parameters: tuple[ArraySpec, ...]
    results: tuple[ArraySpec, ...]
    temporaries: tuple[ArraySpec, ...]
    steps: tuple[Step, ...]
    kernels: tuple[Kernel, ...] = ()
    calls: tuple[LibraryCall, ...] = ()
    stage: str = "ptx"
    code: str = field(default="", repr=False)
    graph: Trace = field(default_factory=Trace, compare=False, repr=False)
    traces: tuple[Trace, ...] = field(default=(), compare=False, repr=False)
    hlo: str = field(default="", repr=False)
    fusion: str | None = None
    left_out: tuple[str, ...] = ()

    @property
    def arrays(self) -> Arrays:
        """Which array is in which slot."""
        return Arrays(self.parameters, self.results, self.temporaries)

    @property
    def trace(self) -> Trace:
        """The trace of a program of one kernel. raises UsageError when there are several: see `traces`."""
        if len(self.traces) != 1:
            raise UsageError(f"{self.name} has {len(self.traces)} traces; use .traces[i]", stage="program")
        return self.traces[0]

    def __call__(self, *inputs: Any) -> Any:
        """Runs the program where its arrays are: on the GPU if one of them is there, else on the CPU.

        inputs   NumPy arrays; arrays of a GPU (CuPy's, or others with DLPack)
        returns  the result, or a tuple of them when there are several: NumPy arrays from the CPU, CuPy arrays from a GPU
        raises   DataError for arrays that do not fit, ToolError on a GPU without CuPy
        """
        return self.on(platform_of(inputs))(*inputs)

    def on(self, platform: str) -> OnPlatform:
        """The program as a function of arrays on a platform, "cpu" or "gpu": NumPy arrays in, NumPy arrays out.

        On the CPU it is executed at `llvm-dialect`, or at the last stage before that was recorded.
        raises  UsageError for another platform, and as `run_cpu`; a call on a GPU ToolError without CuPy or a device
        """
        launcher = _launcher(known_platform(platform))
        return OnFunction(lambda inputs: launcher(self, inputs))

    def run_cpu(self, *inputs: Any, stage: str | None = None) -> Any:
        """Runs the IR of a stage on the CPU, on NumPy arrays; results as `__call__`.

        stage    None: as `on` chooses it
        raises   DataError for arrays that do not fit, UsageError when the trace does not hold the stage's IR,
                 ExecutionError where the kernel has a fault that a GPU would not report
        """
        return one_or_all(_launcher("cpu")(self, inputs, stage))

    @property
    def peak_bytes(self) -> int:
        """Bytes of device memory needed at once: parameters, results, and the temporaries that are allocated at the same time."""
        arguments = sum(map(_bytes, (*self.parameters, *self.results)))
        return arguments + peak_of_temporaries(
            self.steps, lambda number: _bytes(self.arrays.spec(self.arrays.slot(number)))
        )

    def refuse_left_out(self) -> None:
        """raises Unsupported where the program was compiled from a text that leaves out data of constants."""
        refuse_left_out(self.name, self.left_out)

    @cached_property
    def outline(self) -> Outline:
        """What `repr` and notebooks show: kernels and calls, dearest first. Nothing is compiled or run for it."""
        from xla_emitters.program.outline_of_steps import (
            outline_of,  # imported here: to run or print a program needs none
        )

        return outline_of(self)

    @property
    def is_one_kernel(self) -> bool:
        """Whether its only step is a kernel."""
        return len(self.steps) == 1 and isinstance(self.steps[0], Launch)

    def explain(self, **sizes: int) -> str:
        """A summary; the order of steps, if there are several; and for each kernel its emitter, launch, accesses ... with the reasons.

        raises  UsageError for sizes: all are known
        """
        _refuse_sizes(sizes)
        parts = self.outline.summary()
        parts += [explained(self.graph)] if self.graph.remarks else []
        if not self.is_one_kernel:
            from xla_emitters.program.text import StepsText  # imported here, as the outline

            arguments = {kernel.name: kernel.arguments for kernel in self.kernels}
            lines = StepsText(self.arrays, self.calls, arguments).of(self.steps) or "none"
            parts.append(f"steps\n{indent(lines, '  ')}")
        return "\n".join([*parts, *map(explained, self.traces)])

    def explained(self, **sizes: int) -> dict[str, Any]:
        """The same as plain data: see docs/json.md, "explain --json"."""
        _refuse_sizes(sizes)
        return {
            "name": self.name,
            "target": self.target,
            **self.outline.to_json(),
            **{"symbols": [], "guards": [], "unresolved": 0, "ops": [], "fusions": [], "donated": []},
            **{"cpu": None, "memory": None, "mixed_precision": None},
            "remarks": remarks_json(self.graph),
            "kernels": [explained_json(trace) for trace in self.traces],
        }

    def __repr__(self) -> str:
        return self.outline.text()

    def _repr_html_(self) -> str:
        """For notebooks: a card; the stages of a kernel are shown by its trace."""
        return self.outline.html()

    def to_json(self) -> dict[str, Any]:
        """Plain data, as docs/json.md says; without traces."""
        return {
            "name": self.name,
            "target": self.target,
            "parameters": [asdict(spec) for spec in self.parameters],
            "results": [asdict(spec) for spec in self.results],
            "temporaries": [asdict(spec) for spec in self.temporaries],
            "symbols": [],
            "guards": [],
            "kernels": [kernel_json(kernel) for kernel in self.kernels],
            "calls": [call_json(call) for call in self.calls],
            "steps": [value_json(step) for step in self.steps],
            "stage": self.stage,
            "code": self.code,
            **({"ptx": self.kernels[0].ptx} if self.stage == "sass" and self.kernels else {}),
            "hlo": self.hlo,
            "fusion": self.fusion,
            "left_out": list(self.left_out),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any], graph: Trace | None = None, traces: tuple[Trace, ...] = ()) -> Program:
        """The inverse of `to_json`, with the traces that are stored beside it."""
        ptx = data["code"] if data["stage"] == "ptx" else data.get("ptx", "")
        return Program(
            name=data["name"],
            target=data["target"],
            parameters=tuple(array_from_json(spec) for spec in data["parameters"]),
            results=tuple(array_from_json(spec) for spec in data["results"]),
            temporaries=tuple(array_from_json(spec) for spec in data["temporaries"]),
            steps=value_from_json(data["steps"]),
            kernels=tuple(kernel_from_json(kernel, ptx) for kernel in data["kernels"]),
            calls=tuple(map(call_from_json, data["calls"])),
            stage=data["stage"],
            code=data["code"],
            graph=graph or Trace(),
            traces=traces,
            hlo=data["hlo"],
            fusion=data["fusion"],
            left_out=tuple(data.get("left_out", ())),
        )


def _refuse_sizes(sizes: Mapping[str, int]) -> None:
    if sizes:
        raise UsageError("sizes are for programs (StableHLO); those of HLO text are known", stage="explain")


def _bytes(spec: ArraySpec) -> int:
    from xla_emitters.dtypes import (
        dtype,  # imported here: it loads NumPy, and a program that is only printed needs none
    )

    return dtype(spec.dtype).size_bytes(spec.elements)


LAUNCHERS: dict[str, Callable[..., Sequence[Any]]] = {}
"""Platform -> function that runs a program: "gpu" takes (program, inputs), "cpu" (program, inputs, stage=None). `runtime` sets both."""


def _launcher(platform: str) -> Callable[..., Sequence[Any]]:
    if platform not in LAUNCHERS:
        raise UsageError(f"no launcher for {platform}", stage="program", help="import xla_emitters.runtime")
    return LAUNCHERS[platform]
