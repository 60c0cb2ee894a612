"""`xla-emitters run`: runs a program and compares its results with the NumPy reference."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from xla_emitters.errors import EndlessLoop, NumbersDiffer, ToolError, Unsupported, UsageError, file_errors
from xla_emitters.support.limits import limited_iterations, limited_memory
from xla_emitters.tools.given import (
    Given,
    inputs_of,
    read_given,
    refuse_sizes_with_inputs,
    sizes_given,
    told_if_drawn,
)
from xla_emitters.tools.input_output import arrays_source, print_dumps, print_warnings, refuse_second_reader
from xla_emitters.tools.terminal import progress
from xla_emitters.tools.verb_options import (
    COMMS,
    add_arrays,
    add_compilation,
    add_dumps,
    add_input,
    add_launch,
    add_max_iterations,
    add_max_memory,
    add_mixed_precision,
    add_sizes,
    check_trace_format,
    compile_options,
    is_ptx,
    record_wanted,
)

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from xla_emitters.dtypes import Array
    from xla_emitters.explore.check.verdict import Reference, Verdict
    from xla_emitters.graph.computation_steps import PlannedKernel
    from xla_emitters.pipelines.options import CompileOptions
    from xla_emitters.pipelines.recorder import Observer
    from xla_emitters.program import ArraySpec, Kernel, Program
    from xla_emitters.runtime.arrays import StandardInput
    from xla_emitters.runtime.simt.access_counts import AccessCounter
    from xla_emitters.runtime.simt.memory import Watcher
    from xla_emitters.trace.chrome import Track


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    add_compilation(parser)
    add_dumps(parser)
    parser.add_argument(
        "--platform",
        type=str.lower,
        choices=("auto", "cuda", "gpu", "cpu"),
        default="auto",
        help="auto: the GPU if there is one, else the CPU; programs (StableHLO) run on the CPU then; gpu is cuda",
    )
    parser.add_argument("--stage", help="run the IR of this stage on the CPU; default llvm-dialect")
    add_arrays(parser, several=True)
    add_sizes(parser)
    add_launch(parser)
    add_mixed_precision(parser)
    parser.add_argument(
        "--outputs",
        metavar="OUT.npz",
        action="append",
        help="write the results as r0, r1, ...; '-' is standard output, and all messages then go to standard error",
    )
    parser.add_argument("--show-stages", action="store_true", help="print one row per stage: name, ops, ms")
    parser.add_argument(
        "--sanitize",
        action="store_true",
        help="on the CPU: report races and reads of unwritten shared memory as errors",
    )
    parser.add_argument(
        "--access-report",
        action="store_true",
        help="on the CPU: print bytes, bank conflicts and memory sectors, in total and of each load and store",
    )
    parser.add_argument("--json", action="store_true", help="compiles, kernels, library calls and runs, on one line")
    parser.add_argument(
        "--devices",
        type=int,
        metavar="N",
        help="run a module with collectives on all of its N devices, here on one CPU; needed above 16",
    )
    parser.add_argument(
        "--ranks", metavar="0,3-5", help="run a module with collectives on these of its devices, which need no others"
    )
    parser.add_argument(
        "--comm",
        choices=COMMS,
        default="local",
        help="local: all devices in this process; mpi: this process is one, mpirun starts all of them; nccl: one process a GPU",
    )
    add_max_iterations(parser)
    add_max_memory(parser)
    parser.add_argument("--no-reference", action="store_true", help="do not compare with the NumPy reference")
    add_flags_of_run_hlo_module(parser)


def add_flags_of_run_hlo_module(parser: argparse.ArgumentParser) -> None:
    """Adds flags of XLA's `run_hlo_module`, which the seed document runs: each is one of ours, or says what is always so."""
    parser.add_argument(
        "--reference_platform",
        metavar="NAME",
        help='as run_hlo_module: "" is --no-reference; any other is the NumPy reference',
    )
    parser.add_argument(
        "--v", type=int, metavar="N", default=0, help="as run_hlo_module: from 5 on, --print-ir-after-all"
    )
    parser.add_argument(
        "--xla_disable_all_hlo_passes",
        action="store_true",
        help="as run_hlo_module: always so, a module is compiled as it is; `optimize` runs XLA's passes",
    )


def run(options: argparse.Namespace) -> int:
    with limited_memory(options.max_memory), limited_iterations(options.max_iterations):
        if is_ptx(options.file):
            from xla_emitters.tools.ptx_files import run_ptx  # imported here: most files are modules

            return run_ptx(options)
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    """Compiles once, then runs each pair of --inputs and --outputs in order; a bad pair ends the run."""
    refuse_second_reader("run", options.file, *(options.inputs or ()))
    check_trace_format(options)
    options.no_reference = options.no_reference or options.reference_platform == ""
    options.print_ir_after_all = options.print_ir_after_all or options.v >= 5
    options.platform = {"gpu": "cuda"}.get(options.platform, options.platform)
    if options.comm != "local":
        options.platform = {"mpi": "cpu", "nccl": "cuda"}[options.comm]
    given = read_given(options)
    inputs: list[str] = options.inputs or []
    outputs: list[str] = options.outputs or []
    if len(inputs) != len(outputs) and max(len(inputs), len(outputs)) > 1:
        raise UsageError(
            f"--inputs is given {len(inputs)} times and --outputs {len(outputs)} times: they are pairs", stage="run"
        )
    if outputs.count("-") > 1:
        raise UsageError("'-' is given more than once: standard output takes one file", stage="run")
    if options.json and "-" in outputs:
        raise UsageError("--json and '--outputs -' both write to standard output", stage="run")
    runner = _Runner(options, given)
    if given.is_program and ((options.devices or 1) != 1 or options.ranks):
        raise UsageError(
            "--devices and --ranks are for modules of parts; this program of whole arrays is still to be partitioned",
            stage="run",
            help=f"xla-emitters optimize FILE --devices {options.devices or 'N'}",
        )
    if options.comm != "local":
        if given.is_program or options.json or max(len(inputs), len(outputs)) > 1 or "-" in outputs:
            raise UsageError(f"--comm {options.comm} runs a module once, with files, and prints no JSON", stage="run")
        if options.ranks:
            raise UsageError(f"--ranks is for --comm local; by {options.comm} each process is a rank", stage="run")
        from xla_emitters.tools.run_ranks import run_as_rank  # imported here: most programs are for one device

        return run_as_rank(options, runner, *(names[0] if names else None for names in (inputs, outputs)))
    results, standard = BytesIO(), sys.stdout
    with redirect_stdout(sys.stderr) if "-" in outputs else nullcontext():
        try:
            return _compile_and_run(options, runner, inputs, outputs, results)
        finally:  # also when the results differ from the reference
            if written := results.getvalue():
                standard.buffer.write(written)


def _compile_and_run(
    options: argparse.Namespace,
    runner: _Runner,
    inputs: Sequence[str],
    outputs: Sequence[str],
    stream: IO[bytes],
) -> int:
    program = runner.compile()
    if options.show_stages and not options.json:
        runner.show_stages()
    if options.trace_format == "json":
        print_dumps(options, program)
    print_warnings(program)
    if options.print_ir_tree_dir and not options.json:
        has_code = program.stage == "ptx" and not runner.given.is_program
        print(f"IR of every pass{' and the PTX' if has_code else ''}: {options.print_ir_tree_dir}")
    rows: list[dict[str, Any]] = []
    tracks: list[Track] = []
    try:
        for number in range(max(1, len(inputs))):
            source, target = (names[number] if names else None for names in (inputs, outputs))
            arrays = runner.arrays(source)
            with told_if_drawn(runner.given.is_program and not (source or runner.given.inputs)):
                rows.append(_run_once(options, runner, arrays, target, stream))
            rows[-1] |= {"inputs": source, "outputs": target}
            tracks += runner.step_tracks(arrays) if options.trace_format == "chrome" else []
        if options.trace_format == "chrome":
            print_dumps(options, program, tracks)
    finally:
        if options.json:
            print(json.dumps({**runner.counts(), "runs": rows}), flush=True)
    sys.stdout.flush()
    return 0


def _run_once(
    options: argparse.Namespace,
    runner: _Runner,
    given: Sequence[Array],
    target: str | None,
    stream: IO[bytes],
) -> dict[str, Any]:
    """Runs once, writes the results to `target`, and returns the JSON row. raises NumbersDiffer after the results are written."""
    from xla_emitters.program.as_json import array_json
    from xla_emitters.runtime.arrays import save_named

    ran = runner.run(given)
    sizes = ", ".join(f"{name} = {value}" for name, value in ran.sizes.items())
    names = ran.names or [f"r{number}" for number in range(len(ran.specs))]
    said = [f"{name} = {spec}" for name, spec in zip(names, ran.specs, strict=True)]
    said.append(f"ran on {ran.where}{f' with {sizes}' if sizes else ''} in {ran.seconds:.3f} s")
    said += ran.said
    if target:
        with file_errors(f"cannot write {target}", "run"):
            save_named(stream if target == "-" else target, names, ran.results, ran.specs)
        said.append(f"results: {target}")
    row = {"sizes": ran.sizes, "results": [array_json(spec) for spec in ran.specs], "seconds": ran.seconds, **ran.row}
    verdict = None if options.no_reference else runner.verdict(given, ran.results)
    if verdict is not None:
        row |= {"ok": verdict.ok, "summary": verdict.summary}
        said += [verdict.summary] if verdict.ok else []
    if not options.json:
        print("\n".join(said), flush=True)
    if verdict is not None and not verdict.ok:
        raise NumbersDiffer(f"{Path(runner.given.name).name}: {verdict.summary}", stage="run", details=verdict.details)
    return row


@dataclass(frozen=True)
class _Ran:
    """What one run gave.

    where  it ran: "the CPU at stage flat"
    sizes  values of the program's symbols
    names  of the results, if they are not r0, r1 ...
    said   further lines, and `row` the same as JSON
    """

    results: Sequence[Array]
    specs: Sequence[ArraySpec]
    where: str
    seconds: float
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    said: tuple[str, ...] = ()
    row: dict[str, Any] = field(default_factory=dict[str, Any])
    names: Sequence[str] = ()


class _Runner:
    """A program that is compiled once: on the GPU; on the CPU the IR of a stage, of HLO under watchers; or StableHLO as a call runs it.

    raises  UsageError or ToolError for options that do not fit
    """

    def __init__(self, options: argparse.Namespace, given: Given) -> None:
        self.options, self.given = options, given
        self.on_gpu, self.stage = _runs_on_gpu(options, given), _executed_stage(options, given)
        refuse_sizes_with_inputs(options)
        self.sizes, self.watch = sizes_given(options.sizes), _Watch(options, self.stage)

    def compile(self) -> Program:
        options, is_program = self.options, self.given.is_program
        wanted, record = self.stage, "stages"
        if is_program:
            from xla_emitters.pipelines.programs import COMPILATIONS

            self.before = COMPILATIONS.made
            wanted, record = wanted or "ptx", "stages" if wanted or options.show_stages else "none"
        elif self.on_gpu or options.show_stages or options.print_ir_tree_dir:
            wanted = self._last_stage()
        how = replace(compile_options(options), stage=wanted, record=record_wanted(options, record))
        if self.on_gpu:
            from xla_emitters.runtime.cuda.cupy_launcher import device_architecture

            how = replace(how, target=device_architecture())
        self.program = self.given.compiled(how) if is_program else self._compiled(how)
        self.devices = 1 if is_program else self._devices()
        return self.program

    def _last_stage(self) -> str:
        """For a GPU, a table or a folder of all stages: PTX where it can be made."""
        from xla_emitters.lowering.toolchain.tools import ptx_reason_missing
        from xla_emitters.pipelines.passes import EXECUTABLE_STAGES

        if self.on_gpu or not (missing := ptx_reason_missing(self.options.settings.toolchain)):
            return "ptx"
        print(f"note: PTX is left out: {missing}", file=sys.stderr)
        return EXECUTABLE_STAGES[-1]

    def _compiled(self, how: CompileOptions) -> Program:
        """A module of HLO, whose kernels are kept at the stage where they are watched."""
        from xla_emitters.pipelines.compiler import compile_module, read_module

        with progress(f"compiling {self.given.name}"):
            observers = self.watch.observer if _watched_by(self.options) else None
            return compile_module(read_module(self.given.source), how, observers=observers)

    def _devices(self) -> int:
        """How many devices the run has. raises UsageError for another number than the module's, and for options that are for one"""
        from xla_emitters.pipelines.compiler import source_of
        from xla_emitters.runtime.device_threads import devices_wanted, ranks_named

        self.module, devices = source_of(self.program), self.program.devices
        if self.options.ranks:
            self.ranks: Sequence[int] = ranks_named(self.options.ranks, devices)
        else:
            self.ranks = range(devices_wanted(devices, self.options.devices, "run"))
        if devices > 1 and self.on_gpu and self.options.comm == "local":
            raise Unsupported(
                f"a module for {devices} devices runs here on the CPU",
                stage="run",
                help=f"--platform cpu; or mpirun -n {devices} xla-emitters run FILE --comm nccl, one process a GPU",
            )
        if devices > 1 and (watched := _watched_by(self.options)):
            raise UsageError(f"{watched} is for one device; this module is for {devices}", stage="run")
        return devices

    def show_stages(self) -> None:
        from xla_emitters.trace.dumps import stage_table

        for trace in self.program.traces:
            print(stage_table(trace))
        for kernel in () if self.given.is_program else self.program.kernels:
            print(f"kernel {kernel}")

    def arrays(self, file: str | StandardInput | None) -> Sequence[Array]:
        """The arguments in a file of --inputs or in a snapshot, or random ones."""
        file = file or self.given.inputs
        self.program.refuse_left_out()
        if self.devices > 1:
            return self._arrays_of_devices(file)
        return inputs_of(self.options, self.program, self.sizes, file)

    def _arrays_of_devices(self, file: str | StandardInput | None) -> Sequence[Array]:
        """The arguments of the first device that is run, then those of the next, ..."""
        from xla_emitters.graph.entry import entry_of
        from xla_emitters.runtime.device_arrays import draw_for_devices, load_for_devices

        if (source := arrays_source(file)) is not None:
            given = load_for_devices(source, self.program, self.ranks)
        else:
            given = draw_for_devices(self.program, entry_of(self.module), self.options.seed, self.ranks)
        return [array for of_device in given for array in of_device]

    def _by_device(self, arrays: Sequence[Array]) -> dict[int, Sequence[Array]]:
        count = len(self.program.parameters)
        return {device: arrays[at * count : (at + 1) * count] for at, device in enumerate(self.ranks)}

    def _run_on_devices(self, arrays: Sequence[Array]) -> _Ran:
        from xla_emitters.runtime.cpu.cpu_launcher import run_program
        from xla_emitters.runtime.device_arrays import named_results
        from xla_emitters.runtime.device_threads import run_on_devices

        start, program, given = time.perf_counter(), self.program, self._by_device(arrays)

        def run(device: int) -> Sequence[Array]:
            return run_program(program, given[device], self.stage)

        with progress(f"running {self.given.name}"):
            self.of_devices = run_on_devices(self.ranks, run)
        names, results, specs = named_results(program, self.of_devices, self.ranks)
        said = "" if len(self.ranks) == self.devices else f" of {self.devices}"
        where = f"{len(self.ranks)}{said} devices on the CPU at stage {self.stage}"
        return _Ran(results, specs, where, time.perf_counter() - start, row={"devices": len(self.ranks)}, names=names)

    def run(self, arrays: Sequence[Array]) -> _Ran:
        if self.given.is_program:
            from xla_emitters.pipelines.lowerings import lowerings_of  # imported here: modules of HLO have none

            module = lowerings_of(self.program).source
        else:
            module = self.module
        with _loops_located(module):
            return self._run(arrays)

    def _run(self, arrays: Sequence[Array]) -> _Ran:
        if self.given.is_program:
            return self._run_program(arrays)
        if self.devices > 1:
            return self._run_on_devices(arrays)
        from xla_emitters.runtime.cpu.cpu_launcher import run_program

        start, program, watch = time.perf_counter(), self.program, self.watch
        with progress(f"running {self.given.name}"):
            if self.on_gpu:
                from xla_emitters.runtime.cuda.cupy_launcher import launch_program

                results = launch_program(program, arrays)
            else:
                results = run_program(program, arrays, self.stage, watch.watchers, watch.kept)
        seconds = time.perf_counter() - start
        where = f"the GPU ({program.kernels[0].architecture})" if self.on_gpu else f"the CPU at stage {self.stage}"
        return _Ran(results, program.results, where, seconds, said=watch.report())

    def step_tracks(self, arrays: Sequence[Array]) -> list[Track]:
        """The times of the steps of a further run on the CPU, in which each is watched; none for a run on several devices."""
        from xla_emitters.trace.chrome import Span, Track

        if self.devices > 1:
            return []
        steps = self.program.dispatches(arrays)
        spans = [
            Span(each.name, each.start * 1e6, each.seconds * 1e6, {"what": each.call, "arrays": " ".join(each.arrays)})
            for each in steps
        ]
        return [Track(f"run: {self.program.name}", spans)]

    def _run_program(self, arrays: Sequence[Array]) -> _Ran:
        from xla_emitters.pipelines.lowerings import lowerings_of
        from xla_emitters.pipelines.program_inputs import result_specs
        from xla_emitters.pipelines.programs import deviations_of

        program, options = self.program, self.options
        made = lowerings_of(program)
        arrays, sizes = made.checked_with_sizes(arrays)
        start = time.perf_counter()
        with progress(f"running {program.name}"):
            results = program.on("gpu").run(arrays) if self.on_gpu else program.run(arrays)
        seconds, row = time.perf_counter() - start, dict[str, Any]()
        on_host = program.on("gpu").log if self.on_gpu else dict[str, str]()
        said = [f"on the host: {name}: {reason}" for name, reason in on_host.items()]
        if deviations := deviations_of(program, arrays, results):
            said += [f"mixed precision ({made.options.mixed_precision}): {deviation}" for deviation in deviations]
            row["deviations"] = [asdict(deviation) for deviation in deviations]
        where = "the GPU"
        if self.on_gpu:
            row["on_host"] = dict(on_host)
        elif options.stage is None:
            # The fusions run by LLVM or NumPy, not as the code for a GPU.
            where, row["cpu"] = f"the CPU by {made.cpu.name}", made.cpu.name
        else:
            where = f"the CPU at stage {program.stage}"
        return _Ran(results, result_specs(program, results), where, seconds, sizes, tuple(said), row)

    def _reference(self, arrays: Sequence[Array]) -> Reference:
        from xla_emitters.explore.check.verdict import reference_of

        options = None if self.given.is_program else compile_options(self.options)
        with progress("evaluating the reference"):
            return reference_of(self.program, arrays, options=options, tf32=self.on_gpu)

    def verdict(self, arrays: Sequence[Array], results: Sequence[Array]) -> Verdict:
        """The comparison with the NumPy reference."""
        if self.devices > 1:
            return self._verdict_of_devices(arrays)
        return self._reference(arrays).compare(results)

    def _verdict_of_devices(self, arrays: Sequence[Array]) -> Verdict:
        """The comparison of each device's results, in the last run, with the NumPy reference of all."""
        from xla_emitters.explore.check.on_devices import references_on_devices, verdict_of_devices

        with progress("evaluating the reference"):
            references = references_on_devices(self.module, self._by_device(arrays))
            verdicts = [reference.compare(of) for reference, of in zip(references, self.of_devices, strict=True)]
        return verdict_of_devices(verdicts, self.ranks, len(self.ranks))

    def counts(self) -> dict[str, int]:
        from xla_emitters.pipelines.lowerings import lowerings_of
        from xla_emitters.pipelines.program_listing import list_program
        from xla_emitters.pipelines.programs import COMPILATIONS

        if not self.given.is_program:
            return {"compiles": 1, "kernels": len(self.program.kernels), "library_calls": len(self.program.calls)}
        made = lowerings_of(self.program)
        try:
            kernels = len(made.lowering.kernels)
        except Unsupported:  # of an op that no kernel of ours computes
            kernels = 0
        calls = len(list_program(made.source).library_calls)
        return {"compiles": COMPILATIONS.made - self.before, "kernels": kernels, "library_calls": calls}


@contextmanager
def _loops_located(module: ModuleOp) -> Generator[None]:
    """Gives the error of a loop that does not end the place where the loop was written."""
    from xla_emitters.dialects.hlo.base import HloOp, written_at

    try:
        yield
    except EndlessLoop as error:
        loops = (op for op in module.walk() if isinstance(op, HloOp) and op.opcode == "while")
        found = next((op for op in loops if op.instruction_name.data == error.loop), None)
        error.place = error.place or (None if found is None else written_at(found))
        raise


def _runs_on_gpu(options: argparse.Namespace, given: Given) -> bool:
    """Whether the options and this machine say so. raises UsageError for options that contradict each other, ToolError without a GPU"""
    watched = _watched_by(options)
    if options.platform == "cpu" or (options.platform != "cuda" and given.is_program):
        return False
    from xla_emitters.runtime.cuda.cupy_launcher import HELP, cuda_reason_missing

    if options.platform == "cuda" and options.stage:
        raise UsageError("--stage runs on the CPU: a GPU runs PTX only", stage="run", help="leave out --stage")
    if options.platform == "cuda" and watched:
        raise UsageError(f"{watched} works only on the CPU", stage="run", help="--platform cpu")
    reason = "a stage was asked for" if options.stage or watched else cuda_reason_missing()
    if options.platform == "cuda" and reason:
        raise ToolError(f"--platform cuda: {reason}", stage="run", help=HELP)
    return reason is None


def _executed_stage(options: argparse.Namespace, given: Given) -> str:
    """The stage that the CPU executes; "" for StableHLO as a call runs it.

    raises  UsageError for one that it cannot execute, or not as the options say
    """
    if given.is_program:
        from xla_emitters.pipelines.programs import executable_stage

        return executable_stage(options.stage, "run") if options.stage is not None else ""
    from xla_emitters.pipelines.passes import RUNNABLE_STAGES

    stage = options.stage or "llvm-dialect"
    if stage not in RUNNABLE_STAGES:
        raise UsageError(
            f"stage '{stage}' cannot be executed", stage="run", help=f"one of: {', '.join(RUNNABLE_STAGES)}"
        )
    if (watched := _watched_by(options)) and stage in ("hlo", "graph"):
        raise UsageError(
            f"{watched} needs threads, and stage {stage} has none", stage="run", help="choose a later --stage"
        )
    return stage


def _watched_by(options: argparse.Namespace) -> str:
    """The option that watches the threads' accesses; "" without one."""
    return ("--sanitize" if options.sanitize else "") or ("--access-report" if options.access_report else "")


class _Watch:
    """What `--sanitize` and `--access-report` observe.

    kept  the compiler's modules of the stage, whose ops have their source locations; the trace has only text, without them
    """

    def __init__(self, options: argparse.Namespace, stage: str) -> None:
        self.kept: list[ModuleOp] = []
        self._options, self._stage = options, stage
        self._counters: list[tuple[str, AccessCounter]] = []

    def observer(self, planned: PlannedKernel) -> Observer:
        """Keeps the module of the stage."""
        return lambda name, at, kernel: self.kept.append(kernel.clone()) if at == self._stage else None

    def watchers(self, kernel: Kernel) -> list[Watcher]:
        """The watchers of a kernel's accesses."""
        found = list[Any]()
        if self._options.sanitize:
            from xla_emitters.runtime.simt.sanitizer import Sanitizer

            found.append(Sanitizer())
        if self._options.access_report:
            from xla_emitters.runtime.simt.access_counts import AccessCounter

            self._counters.append((kernel.name, AccessCounter()))
            found.append(self._counters[-1][1])
        return found

    def report(self) -> tuple[str, ...]:
        """The accesses of the last run."""
        if not self._counters:
            return ()
        from xla_emitters.runtime.simt.access_counts import access_table

        counters, self._counters = self._counters, []
        return tuple(f"kernel {name}:\n{access_table(counter.counts())}" for name, counter in counters)
