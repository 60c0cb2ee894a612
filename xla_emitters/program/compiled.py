"""A compiled program: its arrays, its steps, the record of its compilation, and where it runs, one rule for all of them.

y = p(x)                where its arrays are: on the GPU if one of them is there, else on the CPU
y = p.on("gpu")(x)      there; NumPy arrays in, NumPy arrays out
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from textwrap import indent
from typing import TYPE_CHECKING, Any, Protocol, Self, SupportsIndex

from xla_emitters.errors import Unsupported, UsageError
from xla_emitters.program.callees import Kernel, LibraryCall
from xla_emitters.program.step_values import Arrays, ArraySpec
from xla_emitters.program.steps import Launch, Move, Step, moved_memory, peak_of_temporaries
from xla_emitters.support.late_dataclass import dataclass
from xla_emitters.trace import Trace

if TYPE_CHECKING:
    from xla_emitters.program.bound_program import BoundProgram
    from xla_emitters.program.communication import Communication
    from xla_emitters.program.outline import Outline

PLATFORMS = ("cpu", "gpu")
_CUDA_OF_DLPACK = (2, 13)
"""kDLCUDA and kDLCUDAManaged, dlpack.h"""


class OnPlatform(ABC):
    """A program as a function of arrays on one platform."""

    @abstractmethod
    def run(self, inputs: Sequence[Any], *, donate: bool = False) -> Sequence[Any]:
        """The results. `donate` as for `Program.run`"""
        ...

    @property
    def log(self) -> Mapping[str, str]:
        """Ops that were computed on the host instead so far, and why."""
        return {}

    def __call__(self, *inputs: Any, donate: bool = False, **keywords: Any) -> Any:
        """The result, or a tuple if there are several. Only a program made of a function with keywords takes `keywords`."""
        if keywords:
            raise UsageError(f"no argument is called '{min(keywords)}'", stage="program")
        return one_or_all(self.run(inputs, donate=donate))


@dataclass(frozen=True)
class OnFunction(OnPlatform):
    """One that computes everything there."""

    function: Callable[..., Sequence[Any]]

    def run(self, inputs: Sequence[Any], *, donate: bool = False) -> Sequence[Any]:
        return self.function(inputs, donate=donate)


@dataclass(frozen=True)
class OnArguments(OnPlatform):
    """A program made of a function of another library: called with that function's arguments, it runs on their arrays.

    of_arrays  the program there, as a function of its own arrays
    platform   "cpu" or "gpu"
    """

    of_arrays: OnPlatform
    platform: str

    def run(self, inputs: Sequence[Any], *, donate: bool = False) -> Sequence[Any]:
        return self.of_arrays.run(inputs, donate=donate)

    @property
    def log(self) -> Mapping[str, str]:
        return self.of_arrays.log


def platform_of(arrays: Sequence[Any]) -> str:
    """Where a program with these arguments runs."""
    return "gpu" if any(map(is_on_gpu, arrays)) else "cpu"


def known_platform(platform: str) -> str:
    """`platform` itself. raises UsageError for one that there is not"""
    if platform not in PLATFORMS:
        raise UsageError(f"no platform '{platform}'", stage="program", help=" or ".join(PLATFORMS))
    return platform


def is_on_gpu(array: Any) -> bool:
    """Whether an array is in the memory of a GPU: CuPy's, PyTorch's, JAX's, or of another library with DLPack."""
    if type(array).__module__ == "numpy":
        return False
    if hasattr(array, "__cuda_array_interface__"):
        return True
    device = getattr(array, "__dlpack_device__", None)
    return device is not None and device()[0] in _CUDA_OF_DLPACK


def one_or_all(results: Sequence[Any]) -> Any:
    """The only result, or a tuple of all."""
    return results[0] if len(results) == 1 else tuple(results)


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
    """Steps in order, with the arrays for inputs, results and temporaries, and what the steps name: of a fusion, a module, a program in
    StableHLO.

    parameters   one spec per parameter of ENTRY
    results      one spec per leaf of ENTRY's result
    compilation  the steps, what they name, and the record of their making
    stage        where the compilation stopped; "ptx" if it did not stop early
    hlo          the module it was compiled from, as text; "" for StableHLO
    fusion       the one fusion instruction that was chosen; None: all that ENTRY computes
    left_out     constants whose data the text left out (`constant({...})`): compiled as zeros; the program refuses to run
    symbols      names of the unknown sizes; () if all are known
    guards       the conditions that a run checks, as text
    names        of the parameters in the text, where it has some
    devices      how many it runs on at once. `parameters` and `results` are what each of them has
    shardings    how each parameter, then each result, is a part of a whole array, in HLO's words; "" where the text does not say
    """

    name: str
    target: str
    parameters: tuple[ArraySpec, ...]
    results: tuple[ArraySpec, ...]
    compilation: Compilation
    stage: str = "ptx"
    hlo: str = ""
    fusion: str | None = None
    left_out: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    devices: int = 1
    shardings: tuple[str, ...] = ()

    @property
    def temporaries(self) -> tuple[ArraySpec, ...]:
        """Arrays that one step writes and a later one reads. raises like `compilation`"""
        return self.compilation.temporaries

    @property
    def constants(self) -> tuple[int, ...]:
        """The temporaries, by number, with memory before the first step and elements that no step changes. raises like `compilation`"""
        return self.compilation.constants

    @property
    def steps(self) -> tuple[Step, ...]:
        """In order. raises like `compilation`"""
        return self.compilation.steps

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """By whose names steps launch, in the order of their first launches. raises like `compilation`"""
        return self.compilation.kernels

    @property
    def calls(self) -> tuple[LibraryCall, ...]:
        """Calls of library functions, by the numbers of steps. raises like `compilation`"""
        return self.compilation.calls

    @property
    def code(self) -> str:
        """The program at `stage` as one text: HLO, a module of MLIR with all kernels, LLVM IR, PTX or SASS. raises like `compilation`"""
        return self.compilation.code

    @property
    def graph(self) -> Trace:
        """Record of the passes on HLO before kernels were planned."""
        return self.compilation.graph

    @property
    def traces(self) -> tuple[Trace, ...]:
        """Record of each kernel's compilation; of StableHLO one of the whole program."""
        return self.compilation.traces

    @property
    def arrays(self) -> Arrays:
        """Which array is in which slot."""
        return Arrays(self.parameters, self.results, self.temporaries)

    @property
    def trace(self) -> Trace:
        """The trace of a program of one kernel, or in StableHLO. raises UsageError when there are several: see `traces`."""
        if len(self.traces) != 1:
            raise UsageError(f"{self.name} has {len(self.traces)} traces; use .traces[i]", stage="program")
        return self.traces[0]

    def __call__(self, *inputs: Any, donate: bool = False, max_memory: int | str | None = None) -> Any:
        """Runs the program, at any sizes that fit it, where its arrays are: on the GPU if one of them is there, else on the CPU.

        inputs   NumPy arrays; arrays of a GPU (CuPy's, or others with DLPack). Of a program for several devices: whole arrays, which are
                 cut as `shardings` say; results are put together again, else they are lists of what each device has
        donate   as in `run`
        max_memory  as in `run`, on the CPU
        returns  the result, or a tuple of them when there are several: NumPy arrays from the CPU, CuPy arrays from a GPU
        raises   like `run`, ToolError on a GPU without CuPy
        """
        if platform_of(inputs) == "cpu":
            return one_or_all(Program.run(self, inputs, donate=donate, max_memory=max_memory))
        return one_or_all(self.on("gpu").run(inputs, donate=donate))

    def on(self, platform: str) -> OnPlatform:
        """The program as a function of arrays on a platform, "cpu" or "gpu": NumPy arrays in, NumPy arrays out.

        raises  UsageError for another platform, and as `run`; on a GPU ToolError without CuPy or a device
        """
        return self.compilation.on_gpu(self) if known_platform(platform) == "gpu" else OnFunction(self.run)

    def run(
        self,
        inputs: Sequence[Any],
        stage: str | None = None,
        *,
        donate: bool = False,
        max_memory: int | str | None = None,
    ) -> Sequence[Any]:
        """The results on the CPU for these arguments: NumPy arrays, or values that convert to them.

        stage   the stage to execute; None: as a call does
        donate  allows the program to write into the arguments that the text declares donated, and to return them: the caller must not use
                them afterwards. Otherwise the program gets copies of them
        max_memory  bytes, or a text such as "2G", that its arrays may take at a time; None: three quarters of what is free
        raises  DataError for arguments that do not fit the program, and for arrays beyond that limit; UsageError for a stage whose IR was
                not recorded; ExecutionError for a fault of a kernel that a GPU would not report; Unsupported where the text left out data
        """
        if max_memory is None:
            return self.compilation.run(self, inputs, stage, donate=donate)
        from xla_emitters.support.limits import limited_memory  # imported here, as few calls need it

        with limited_memory(max_memory):
            return self.compilation.run(self, inputs, stage, donate=donate)

    def run_cpu(self, *inputs: Any, stage: str | None = None, max_memory: int | str | None = None) -> Any:
        """Runs the IR of a stage on the CPU, on NumPy arrays; results as `__call__`. raises like `run`"""
        return one_or_all(self.run(inputs, stage, max_memory=max_memory))

    def bind(self, **sizes: int) -> BoundProgram:
        """The program at these sizes of its symbols: guards checked, launches and memory laid out, and kept for the calls that follow.

        >>> p.bind(b=4, s=128).launches                                                        # doctest: +SKIP

        raises  DataError for a symbol without a size, a name that is not a symbol, and sizes that the program refuses; UsageError for
                sizes of a program without symbols, and at a stage without steps
        """
        return self.compilation.bind(self, sizes)

    def memory(self, inputs: Sequence[Any]) -> Any:
        """What happens to the buffers during a run on these arguments, on the CPU: a `runtime.memory_history.Memory`.

        raises  like `run`; UsageError at a stage without buffers
        """
        return self.compilation.memory(self, inputs)

    def dispatches(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """What a run on these arguments launches, calls and copies, in order: `runtime.loaded.Dispatch`. raises like `memory`"""
        return self.compilation.dispatches(self, inputs)

    @property
    def peak_bytes(self) -> int:
        """Bytes of device memory needed at once: parameters, results, and the temporaries that are allocated at the same time."""
        return self.argument_bytes + peak_of_temporaries(
            self.steps, lambda number: self.arrays.spec(self.arrays.slot(number)).bytes
        )

    @property
    def argument_bytes(self) -> int:
        """Bytes of the parameters and the results; those in the memory of a donated parameter need none."""
        results, moved = self.arrays.places("result", len(self.results)), moved_memory(self.steps)
        own = (spec for place, spec in zip(results, self.results, strict=True) if place.slot not in moved)
        return sum(spec.bytes for spec in (*self.parameters, *own))

    def refuse_left_out(self) -> None:
        """raises Unsupported where the program was compiled from a text that leaves out data of constants."""
        refuse_left_out(self.name, self.left_out)

    @cached_property
    def outline(self) -> Outline:
        """What `repr` and notebooks show: kernels and calls, dearest first, at assumed sizes. Nothing is compiled or run for it."""
        return self.outlined()

    def outlined(self, **sizes: int) -> Outline:
        """The outline at these sizes of symbols; without, at assumed ones. raises UsageError for sizes of a program without symbols"""
        from xla_emitters.program.outline import no_kernels  # imported here: to run a program needs none

        made = self.compilation.contents(self, sizes)
        chips = f"{self.devices} {self.target}" if self.devices > 1 else self.target
        facts = [f"does not run: its text leaves out the data of {', '.join(self.left_out)}"] if self.left_out else []
        return replace(
            made,
            head=f"{self.name} for {chips}: {made.head or no_kernels(self.stage)}",
            facts=(*facts, *made.facts),
            more=("print(p.explain())", *made.more),
            arrays=(list(map(str, self.parameters)), list(map(str, self.results))),
        )

    @property
    def is_one_kernel(self) -> bool:
        """Whether its only step is a kernel, but for moves of donated memory."""
        steps = [step for step in self.steps if not isinstance(step, Move)]
        return len(steps) == 1 and isinstance(steps[0], Launch)

    def __copy__(self) -> Self:
        """Itself: nothing of a program changes."""
        return self

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Self:
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> str:
        """raises UsageError: a program holds its IR, and what was loaded for this machine"""
        raise UsageError(
            f"{self.name}: a program is not pickled",
            stage="program",
            help="send its text, and compile that there; `xla-emitters bundle` writes a program with its kernels as a file",
        )

    def __str__(self) -> str:
        """Name, device, and the types of parameters and results."""
        arrays = (", ".join(map(str, of)) for of in (self.parameters, self.results))
        return f"{self.name} for {self.target}: ({') -> ('.join(arrays)})"

    def explain(self, **sizes: int) -> str:
        """A summary; symbols and what a run checks; the steps; for each kernel its emitter, launch, accesses ... with the reasons.

        sizes   of symbols; with them also the memory of a run
        raises  UsageError or DataError for names that are not symbols, or sizes that the program refuses
        """
        return "\n".join([*self.outlined(**sizes).summary(), *self.compilation.explain(self, sizes)])

    def explained(self, **sizes: int) -> dict[str, Any]:
        """The same as plain data: see docs/json.md, "explain --json"."""
        return {
            "name": self.name,
            "target": self.target,
            **self.outlined(**sizes).to_json(),
            **{"symbols": [], "guards": list(self.guards), "unresolved": 0, "ops": [], "fusions": [], "donated": []},
            **{"cpu": None, "memory": None, "mixed_precision": None},
            **self.compilation.explained(self, sizes),
        }

    def __repr__(self) -> str:
        return self.outline.text()

    def _repr_html_(self) -> str:
        """For notebooks: a card; the stages of a kernel are shown by its trace."""
        return self.outline.html()

    def to_json(self) -> dict[str, Any]:
        """Plain data, as docs/json.md says; without traces. raises like `compilation`"""
        from xla_emitters.program.as_json import array_json, call_json, kernel_json, value_json

        named = [{"name": name} for name in self.names] or [dict[str, str]()] * len(self.parameters)
        return {
            "name": self.name,
            "target": self.target,
            "parameters": [{**array_json(spec), **name} for spec, name in zip(self.parameters, named, strict=True)],
            "results": list(map(array_json, self.results)),
            "temporaries": list(map(array_json, self.temporaries)),
            "constants": list(self.constants),
            "symbols": list(self.symbols),
            "guards": list(self.guards),
            "kernels": list(map(kernel_json, self.kernels)),
            "calls": list(map(call_json, self.calls)),
            "steps": [value_json(step) for step in self.steps],
            "stage": self.stage,
            "code": self.code,
            **({"ptx": self.kernels[0].ptx} if self.stage == "sass" and self.kernels else {}),
            "hlo": self.hlo,
            "fusion": self.fusion,
            "left_out": list(self.left_out),
            **({"devices": self.devices, "shardings": list(self.shardings)} if self.devices > 1 else {}),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any], graph: Trace | None = None, traces: tuple[Trace, ...] = ()) -> Program:
        """The inverse of `to_json`, with the traces that are stored beside it."""
        from xla_emitters.program.as_json import array_from_json, call_from_json, kernel_from_json, value_from_json

        ptx = data["code"] if data["stage"] == "ptx" else data.get("ptx", "")
        compilation = Compiled(
            temporaries=tuple(map(array_from_json, data["temporaries"])),
            constants=tuple(data["constants"]),
            steps=value_from_json(data["steps"]),
            kernels=tuple(kernel_from_json(kernel, ptx) for kernel in data["kernels"]),
            calls=tuple(map(call_from_json, data["calls"])),
            code=data["code"],
            graph=graph or Trace(),
            traces=traces,
        )
        return Program(
            name=data["name"],
            target=data["target"],
            parameters=tuple(map(array_from_json, data["parameters"])),
            results=tuple(map(array_from_json, data["results"])),
            compilation=compilation,
            stage=data["stage"],
            hlo=data["hlo"],
            fusion=data["fusion"],
            left_out=tuple(data.get("left_out", ())),
            devices=data.get("devices", 1),
            shardings=tuple(data.get("shardings", ())),
            symbols=tuple(data["symbols"]),
            guards=tuple(data["guards"]),
            names=tuple(spec["name"] for spec in data["parameters"] if "name" in spec),
        )


class Compilation(Protocol):
    """What a program was compiled to: all of it is there (`Compiled`), or, of a program in StableHLO, made on demand.

    The properties are those of `Program`; a part that is made on demand raises what its making raises.
    recorded   those of `traces` that are made already
    run, memory, dispatches   on the CPU; `on_gpu` the program on a GPU; `bind` at these sizes
    contents, explain, explained  at these sizes of its symbols; without what `contents` says, an outline but for name and arrays
    """

    @property
    def temporaries(self) -> tuple[ArraySpec, ...]: ...
    @property
    def constants(self) -> tuple[int, ...]: ...
    @property
    def steps(self) -> tuple[Step, ...]: ...
    @property
    def kernels(self) -> tuple[Kernel, ...]: ...
    @property
    def calls(self) -> tuple[LibraryCall, ...]: ...
    @property
    def code(self) -> str: ...
    @property
    def graph(self) -> Trace: ...
    @property
    def traces(self) -> tuple[Trace, ...]: ...
    @property
    def recorded(self) -> tuple[Trace, ...]: ...
    def run(self, program: Program, inputs: Sequence[Any], stage: str | None, *, donate: bool) -> Sequence[Any]: ...
    def on_gpu(self, program: Program) -> OnPlatform: ...
    def bind(self, program: Program, sizes: Mapping[str, int]) -> BoundProgram: ...
    def memory(self, program: Program, inputs: Sequence[Any]) -> Any: ...
    def dispatches(self, program: Program, inputs: Sequence[Any]) -> Sequence[Any]: ...
    def contents(self, program: Program, sizes: Mapping[str, int]) -> Outline: ...
    def explain(self, program: Program, sizes: Mapping[str, int]) -> list[str]: ...
    def explained(self, program: Program, sizes: Mapping[str, int]) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Compiled:
    """All of a compilation, as values.

    source  the module of HLO that was compiled, where it is in memory
    """

    temporaries: tuple[ArraySpec, ...] = ()
    constants: tuple[int, ...] = field(default=(), kw_only=True)
    steps: tuple[Step, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    calls: tuple[LibraryCall, ...] = ()
    code: str = field(default="", repr=False)
    graph: Trace = field(default_factory=Trace, compare=False, repr=False)
    traces: tuple[Trace, ...] = field(default=(), compare=False, repr=False)
    source: Any = field(default=None, compare=False, repr=False)

    @property
    def recorded(self) -> tuple[Trace, ...]:
        return self.traces

    def run(self, program: Program, inputs: Sequence[Any], stage: str | None, *, donate: bool) -> Sequence[Any]:
        """Without `stage` at `llvm-dialect`, or at the last stage before that was recorded."""
        return _launcher("cpu", program)(program, inputs, stage, donate=donate)

    def on_gpu(self, program: Program) -> OnPlatform:
        return OnFunction(partial(_launcher("gpu", program), program))

    def bind(self, program: Program, sizes: Mapping[str, int]) -> BoundProgram:
        from xla_emitters.program.bind import BoundSteps  # imported here: it loads NumPy
        from xla_emitters.program.bound_program import BoundProgram

        refuse_sizes(sizes)
        _launcher("cpu", program)
        arena_bytes = program.peak_bytes - program.argument_bytes
        return BoundProgram(
            program, {}, program.parameters, lambda: BoundSteps(self.steps, {}, {}, {}, arena_bytes, ())
        )

    def memory(self, program: Program, inputs: Sequence[Any]) -> Any:
        return _launcher("memory", program)(program, inputs)

    def dispatches(self, program: Program, inputs: Sequence[Any]) -> Sequence[Any]:
        return _launcher("dispatches", program)(program, inputs)

    def contents(self, program: Program, sizes: Mapping[str, int]) -> Outline:
        from xla_emitters.device import device
        from xla_emitters.program.outline_of_steps import contents_of  # imported here: to run a program needs none
        from xla_emitters.support.units import bytes_text

        refuse_sizes(sizes)
        made = contents_of(self.steps, self.kernels, self.calls, self.traces, program.arrays, device(program.target))
        facts = tuple[str, ...]()
        if self.steps and not program.is_one_kernel:
            arguments = program.argument_bytes
            temporaries = bytes_text(program.peak_bytes - arguments)
            facts = (
                f"memory: {bytes_text(arguments)} of parameters and results, {temporaries} of temporaries at once",
            )
        remarks = [remark.text for trace in (self.graph, *self.traces) for remark in trace.remarks if remark.help]
        trace = "p.trace" if len(self.traces) == 1 else "p.traces[0]"
        more = (f'{trace}["{program.stage}"].ir', "xe.cost(p)", "xla-emitters show FILE -o page.html")
        kind = ("one kernel" if program.is_one_kernel else made.head) if self.steps else ""
        said = (*dict.fromkeys(remarks), *made.remarks)
        return replace(made, head=kind, remarks=said, facts=facts, more=more if self.traces else ())

    def explain(self, program: Program, sizes: Mapping[str, int]) -> list[str]:
        from xla_emitters.trace.explain import explained

        parts = [explained(self.graph)] if self.graph.remarks else []
        if not program.is_one_kernel:
            from xla_emitters.program.steps_text import StepsText  # imported here, as the outline

            arguments = {kernel.name: kernel.arguments for kernel in self.kernels}
            lines = StepsText(program.arrays, self.calls, arguments).of(self.steps) or "none"
            parts.append(f"steps\n{indent(lines, '  ')}")
        if donated := self.donated:
            parts.append("\n".join(["donated arguments", *(f"  argument {n} (p{n}): written into" for n in donated)]))
        if program.devices > 1 and (moved := self.communications()):
            lines = "\n".join(map(str, moved))
            parts.append(f"collectives\n{indent(lines, '  ')}")
        return [*parts, *map(explained, self.traces)]

    def explained(self, program: Program, sizes: Mapping[str, int]) -> dict[str, Any]:
        from xla_emitters.trace.explain import explained_json, remarks_json

        moved = [each.to_json() for each in self.communications()] if program.devices > 1 else []
        return {
            "remarks": remarks_json(self.graph),
            "kernels": [explained_json(trace) for trace in self.traces],
            "donated": [{"argument": number, "is_overwritten": True} for number in self.donated],
            **({"collectives": moved} if moved else {}),
        }

    @property
    def donated(self) -> list[int]:
        """Numbers of the parameters that the module donates, and whose memory is overwritten."""
        return sorted(moved_memory(self.steps).values())

    def communications(self) -> list[Communication]:
        """The collectives, with what they move and what runs beside them."""
        from xla_emitters.program.communication import communications  # imported here, as the outline

        sizes = {
            number: (sum(spec.bytes for spec in call.operands), sum(spec.bytes for spec in call.results))
            for number, call in enumerate(self.calls)
        }
        return list(communications(self.steps, self.calls, sizes))


def refuse_sizes(sizes: Mapping[str, int]) -> None:
    """raises UsageError for sizes of a program whose sizes are all known"""
    if sizes:
        raise UsageError("sizes are for programs (StableHLO); those of HLO text are known", stage="program")


LAUNCHERS: dict[str, Callable[..., Any]] = {}
"""What is done with a `Compiled` program -> the function of (program, inputs): "gpu" and "cpu", which also takes a stage, run it; "memory"
and "dispatches" say what a run on the CPU does. `runtime` sets all."""


def _launcher(name: str, program: Program) -> Callable[..., Any]:
    """raises UsageError for a program with unknown sizes, whose steps were read from JSON: their guards and functions are in its text"""
    if program.symbols:
        raise UsageError(
            f"{program.name} was read from JSON, which describes a program with unknown sizes and does not hold what runs it",
            stage="run",
            help="compile its text",
        )
    if name not in LAUNCHERS:
        raise UsageError(f"no launcher for {name}", stage="program", help="import xla_emitters.runtime")
    return LAUNCHERS[name]
