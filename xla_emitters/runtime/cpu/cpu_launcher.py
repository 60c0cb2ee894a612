"""Runs a program's kernels on the CPU, at any stage whose IR was recorded.

run_program(program, [x], "hlo")      the program's HLO text, instruction by instruction; "graph": after the passes on HLO
run_program(program, [x], "flat")     the IR that the trace recorded at that stage, through the executor in `simt`
run_kernel(module, arguments, arrays) one kernel's module in memory, on the arrays of its arguments
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.collector import collector_at_rest
from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dtypes import Array
from xla_emitters.errors import DataError, UsageError
from xla_emitters.graph.control_computations import called_by
from xla_emitters.graph.entry import entry_of
from xla_emitters.program import Argument, Kernel, LibraryCall, Program
from xla_emitters.program.executable import executable_of
from xla_emitters.program.steps import ArrayPlace, Launch, Recurrence
from xla_emitters.rewrite.kernel_entry import READS_GRANULES
from xla_emitters.runtime.arrays import checked, copy_donated, writable_buffer
from xla_emitters.runtime.layouts import from_buffer
from xla_emitters.runtime.loaded import LoadedProgram
from xla_emitters.runtime.numpy_calls import NumpyCalls
from xla_emitters.runtime.plain_ops import flat_function
from xla_emitters.runtime.scalar_computations import on_elements, outlasts
from xla_emitters.runtime.simt.code import Rules
from xla_emitters.runtime.simt.execute import RULES, Entry, execute, written_elements
from xla_emitters.runtime.simt.follow import followed
from xla_emitters.runtime.simt.memory import Watcher
from xla_emitters.runtime.walk import Frame, HostMemory, Run
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.trace import Trace

T = TypeVar("T")
STAGES = ("xla_gpu", "inlined", "scf", "flat", "vectorized", "unrolled", "llvm-dialect")
"""The stages of a kernel as MLIR. PTX is executed too, but only where it is asked for."""


@collector_at_rest()
def run_program(
    program: Program,
    inputs: Sequence[Any],
    stage: str | None = None,
    watchers: Callable[[Kernel], Sequence[Watcher]] = lambda kernel: (),
    modules: Sequence[ModuleOp] = (),
    *,
    donate: bool = False,
) -> list[Array]:
    """Runs all kernels in order, each as its IR at `stage`; returns one logical array per result.

    stage     None: `llvm-dialect`, or the last one before that was recorded
    watchers  returns the observers of a kernel's memory accesses (see `simt/memory`)
    modules   the kernels' IR at `stage` with source locations; if empty, it is parsed from the trace's text
    donate    as for `Program.run`
    raises    Unsupported for a program whose text left out data; DataError for arrays of another number, shape or type;
              UsageError when the trace does not hold that stage; ExecutionError
    """
    program.refuse_left_out()
    given, stage = buffers_of(program, inputs), stage or last_stage(program)
    if stage in ("hlo", "graph"):
        from xla_emitters.runtime.reference.reference import evaluate  # imported here: threads need no reference

        return evaluate(_computation(program, stage), arguments_of(program, inputs))
    loaded = loaded_at(program, stage, watchers, modules)
    copy_donated(given, loaded.donated, donate=donate)
    results = loaded.run(given)
    return [from_buffer(buffer, spec) for buffer, spec in zip(results, program.results, strict=True)]


_kept: dict[tuple[int, str], Any] = {}
"""(address of a live program, stage) -> what was made of the program's text."""


def _made_once(program: Program, stage: str, make: Callable[[], T]) -> T:
    """What `make` returns: made once for a stage, kept as long as the program."""
    key = id(program), stage
    if (found := _kept.get(key)) is None:
        found = _kept[key] = make()
        weakref.finalize(program, _kept.pop, key, None)  # None: threads may have made it at the same time
    return found


def _computation(program: Program, stage: str) -> ComputationOp:
    """What a program computes, as HLO: at the stage "hlo" or "graph"."""

    def read() -> ComputationOp:
        text = program.hlo if stage == "hlo" else _recorded(program.graph, "graph")
        module = parse_hlo(text, f"<{program.name}>")
        is_whole = stage == "graph" or program.fusion is None
        return entry_of(module) if is_whole else called_by(module, program.fusion or "")

    return _made_once(program, stage, read)


def loaded_at(
    program: Program,
    stage: str,
    watchers: Callable[[Kernel], Sequence[Watcher]] = lambda kernel: (),
    modules: Sequence[ModuleOp] = (),
) -> LoadedProgram:
    """The program's steps with kernels at a stage; takes the buffers of `buffers_of`. Parameters as `run_program`."""
    if modules:
        kernels = [*map(ExecutableKernel, modules, program.kernels)]
    else:
        kernels = recorded_kernels(program, stage)
    by_name = {kernel.name: code for kernel, code in zip(program.kernels, kernels, strict=True)}
    platform = ExecutorPlatform(program.calls, by_name, watchers)
    arguments = {kernel.name: kernel.arguments for kernel in program.kernels}
    made = executable_of(program.arrays, program.steps, program.calls, arguments)
    return LoadedProgram(made, platform, HostMemory(np.zeros))


def loaded_for(program: Program, inputs: Sequence[Any]) -> tuple[LoadedProgram, list[Array]]:
    """The program as `run_program` runs it without a stage, and its buffers. raises like `run_program`, UsageError at a stage of HLO"""
    program.refuse_left_out()
    stage = last_stage(program)
    if stage not in STAGES:
        raise UsageError(f"{program.name} has no buffers at stage '{stage}'", stage="run")
    loaded, given = loaded_at(program, stage), buffers_of(program, inputs)
    copy_donated(given, loaded.donated, donate=False)
    return loaded, given


def last_stage(program: Program) -> str:
    """`llvm-dialect`, or the last stage before that which all traces hold with its IR; without kernels any will do."""
    held = [{step.stage for step in trace.steps if step.stage and step.ir} for trace in program.traces]
    if not program.kernels and program.steps:
        return STAGES[-1]
    return next((stage for stage in reversed(STAGES) if held and all(stage in each for each in held)), "hlo")


@dataclass(frozen=True)
class ExecutableKernel:
    """A kernel's IR, which no longer changes; the executor's code for it is made once."""

    module: ModuleOp
    kernel: Kernel

    @cached_property
    def entry(self) -> Entry:
        return self._entry(RULES)

    def _entry(self, rules: Rules) -> Entry:
        return Entry.of(self.module, None, results_among(self.kernel.arguments), rules)

    def run(self, arrays: Sequence[Array], watchers: Sequence[Watcher] = ()) -> None:
        """Executes a launch, which writes the arrays of results in place."""
        rules = followed(RULES, watchers)
        entry = self.entry if rules is RULES else self._entry(rules)
        entry.execute(_readable(self.module, self.kernel.arguments, arrays), watchers=watchers)


def recorded_kernels(program: Program, stage: str) -> list[ExecutableKernel]:
    """The kernels as recorded by the traces at `stage`: parsed once, kept as long as the program. raises UsageError without that stage.

    The stage `ptx` is the kernels' own text. For it and `llvm`, raises Unsupported for an instruction that is not read
    """
    return _made_once(program, stage, lambda: [*map(ExecutableKernel, _modules_at(program, stage), program.kernels)])


def _modules_at(program: Program, stage: str) -> list[ModuleOp]:
    if stage == "ptx":
        if program.stage != "ptx":
            raise UsageError(f"the program was compiled to {program.stage} only", stage="run")
        from xla_emitters.runtime.simt.raised_kernels import module_of_ptx  # imported here: other stages need no reader

        return [module_of_ptx(kernel) for kernel in program.kernels]
    if stage == "llvm":
        from xla_emitters.runtime.simt.raised_kernels import module_of_llvm_ir  # as above

        traced = zip(program.traces, program.kernels, strict=True)
        return [module_of_llvm_ir(_recorded(trace, stage), kernel) for trace, kernel in traced]
    # Printed by the compilation itself, whose `verify` option checked it.
    return [parse_ir(_recorded(trace, stage), f"<{stage}>", verify=False) for trace in program.traces]


class ExecutorPlatform(NumpyCalls):
    """The CPU: kernels are executed by `simt`.

    kernels   the code of each kernel, by its name
    watchers  as for `run_program`
    """

    def __init__(
        self,
        calls: Sequence[LibraryCall],
        kernels: Mapping[str, ExecutableKernel],
        watchers: Callable[[Kernel], Sequence[Watcher]],
    ) -> None:
        super().__init__(lambda number: flat_function(calls[number], on_elements=on_elements))
        self._kernels, self._watchers = kernels, watchers

    def outlasts(self, ends: Recurrence, state: Sequence[Any], most: int) -> bool:
        return outlasts(ends, state, most)

    def launch(self, frame: Frame, step: Launch) -> Run:
        code = self._kernels[step.kernel]
        operands = frame.operands([value for value in step.arguments if isinstance(value, ArrayPlace)])
        return lambda: code.run(operands(), self._watchers(code.kernel))


def _recorded(trace: Trace, stage: str) -> str:
    """The text of a stage. raises UsageError when the trace does not hold it."""
    try:
        ir = trace[stage].ir
    except KeyError as error:
        raise UsageError(str(error.args[0]), stage="run") from error
    if ir is None:
        raise UsageError("the program was compiled without recording its IR", stage="run")
    return ir


def arguments_of(program: Program, inputs: Sequence[Any]) -> list[Array]:
    """The arguments as the caller's arrays. raises DataError for arrays that do not fit"""
    if len(inputs) != len(program.parameters):
        raise DataError(f"{program.name} takes {len(program.parameters)} arrays, {len(inputs)} were given", stage="run")
    pairs = enumerate(zip(inputs, program.parameters, strict=True))
    return [checked(value, spec, f"parameter {number}") for number, (value, spec) in pairs]


def buffers_of(program: Program, inputs: Sequence[Any]) -> list[Array]:
    """The parameters' arrays, flat in memory order: views of the caller's where possible. raises DataError for arrays that do not fit"""
    arrays = arguments_of(program, inputs)
    return [writable_buffer(array, spec) for array, spec in zip(arrays, program.parameters, strict=True)]


def run_kernel(
    module: ModuleOp,
    kernel_arguments: Sequence[Argument],
    buffers: Sequence[Array],
    blocks: Sequence[int] | None = None,
    watchers: Sequence[Watcher] = (),
) -> tuple[list[Array], list[Array] | None]:
    """Executes one kernel on the buffers of its arguments, which are not changed.

    blocks   linear numbers of the blocks to run; None: all
    returns  the buffers of its results; with `blocks` a flat bool array for each: which elements were written
    """
    results = results_among(kernel_arguments)
    # Arguments with one number are one buffer: that of the first.
    places = {argument.slice_index: place for place, argument in reversed([*enumerate(kernel_arguments)])}
    given = {number: buffers[place] for number, place in places.items()}
    given |= {
        argument.slice_index: given[argument.slice_index].copy() for argument in kernel_arguments if argument.written
    }
    arrays = [given[argument.slice_index] for argument in kernel_arguments]
    readable, touched = _readable(module, kernel_arguments, arrays), None
    if blocks is None:
        execute(module, readable, results=results, watchers=watchers)
    else:
        touched = written_elements(module, readable, blocks=blocks, results=results, watchers=watchers)
    return arrays[len(arrays) - results :], touched


GRANULE = 16
"""Bytes; see `READS_GRANULES`."""


def _readable(module: ModuleOp, arguments: Sequence[Argument], arrays: Sequence[Array]) -> Sequence[Array]:
    """The arrays of a launch; of a module that reads granules, those that it only reads with zeros behind them."""
    if READS_GRANULES not in module.attributes:
        return arrays
    written = {argument.slice_index for argument in arguments if argument.written}
    return [
        array if argument.slice_index in written else _whole_granules(array)
        for argument, array in zip(arguments, arrays, strict=True)
    ]


def _whole_granules(array: Array) -> Array:
    if array.nbytes % GRANULE == 0:
        return array
    found = np.zeros(-(-array.nbytes // GRANULE) * GRANULE // array.itemsize, array.dtype)
    found[: array.size] = array.reshape(-1)
    return found


def results_among(kernel_arguments: Sequence[Argument]) -> int:
    """How many of the last arguments are results, each with its own buffer. A parameter that shares a result's buffer is `written` too."""
    return len({argument.slice_index for argument in kernel_arguments if argument.written})
