"""`xla-emitters run`: runs a program and compares its results with the NumPy reference."""

from __future__ import annotations

import argparse
import io
import sys
import time
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from xla_emitters.errors import NumbersDiffer, ToolError, UsageError
from xla_emitters.memory_limit import limited_memory
from xla_emitters.tools.input_output import (
    arrays_source,
    print_dumps,
    print_warnings,
    read_source,
    refuse_second_reader,
)
from xla_emitters.tools.options import (
    add_arrays,
    add_compilation,
    add_dumps,
    add_input,
    add_max_iterations,
    add_max_memory,
    compile_options,
    max_iterations,
    record_wanted,
    tune_asked,
)
from xla_emitters.tools.program_verbs import (
    add_mixed_precision,
    add_sizes,
    program_text,
    refuse_mixed_precision,
    refuse_sizes,
    run_program,
)
from xla_emitters.tools.terminal import progress
from xla_emitters.trace.text import stage_table

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from xla_emitters.planning.host_steps import PlannedKernel
    from xla_emitters.program import Kernel, Program
    from xla_emitters.rewrite.recorder import Observer
    from xla_emitters.runtime.simt.access_counts import AccessCounter
    from xla_emitters.runtime.simt.memory import Watcher


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
    parser.add_argument(
        "--json", action="store_true", help="of a program: compiles, kernels, library calls and runs, on one line"
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
    with limited_memory(options.max_memory):
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    refuse_second_reader("run", options.file, *(options.inputs or ()))
    options.no_reference = options.no_reference or options.reference_platform == ""
    options.print_ir_after_all = options.print_ir_after_all or options.v >= 5
    options.platform = {"gpu": "cuda"}.get(options.platform, options.platform)
    source = read_source(options.file)
    if program := program_text(source):
        return run_program(options, *program)
    refuse_sizes(options)
    refuse_mixed_precision(options)
    if options.json:
        raise UsageError("--json is for programs (StableHLO)", stage="run")
    for name in ("inputs", "outputs"):
        if len(given := getattr(options, name) or ()) > 1:
            raise UsageError(
                f"--{name} is given {len(given)} times; several runs are for programs (StableHLO)", stage="run"
            )
        setattr(options, name, given[0] if given else None)
    if options.outputs != "-":
        return run_and_report(options, source, options.outputs)
    results = io.BytesIO()
    try:
        with redirect_stdout(sys.stderr):
            return run_and_report(options, source, results)
    finally:  # also when the results differ from the reference
        sys.stdout.buffer.write(results.getvalue())


def run_and_report(options: argparse.Namespace, source: str | Path, outputs: str | IO[bytes] | None) -> int:
    """Runs the program, prints what was run, and writes the results to `outputs`, a file's name or a stream."""
    from xla_emitters.explore.check import drawn_for, reference_for
    from xla_emitters.pipelines.compiler import read_module
    from xla_emitters.runtime.arrays import load_arrays, save_arrays
    from xla_emitters.runtime.cpu_launcher import run_program
    from xla_emitters.runtime.cupy_launcher import launch_program
    from xla_emitters.runtime.inputs import draw_inputs

    limit = max_iterations(options, "run")
    on_gpu, stage = _runs_on_gpu(options), _executed_stage(options)
    module = read_module(source)
    watch = _Watch(options, stage)
    program = _compiled(options, module, stage, watch, on_gpu=on_gpu)
    program.refuse_left_out()
    given = arrays_source(options.inputs)
    inputs = (
        draw_inputs(drawn_for(module, options.fusion), program.parameters, options.seed)
        if given is None
        else load_arrays(given, "p", program.parameters)
    )
    start = time.perf_counter()
    with progress(f"running {options.file}"):
        if on_gpu:
            results = launch_program(program, inputs, most_iterations=limit)
        else:
            results = run_program(program, inputs, stage, watch.watchers, watch.kept, most_iterations=limit)
    seconds = time.perf_counter() - start
    where = f"the GPU ({program.kernels[0].architecture})" if on_gpu else f"the CPU at stage {stage}"
    for number, spec in enumerate(program.results):
        print(f"r{number} = {spec}")
    print(f"ran on {where} in {seconds:.3f} s")
    watch.report()
    if outputs:
        try:
            save_arrays(outputs, "r", results, program.results)
        except OSError as error:
            raise UsageError(f"cannot write {options.outputs}: {error.strerror}", stage="run") from error
        print(f"results: {options.outputs}")
    if not options.no_reference:
        with progress("evaluating the reference"):
            tune = tune_asked(options)
            reference = reference_for(module, inputs, options.fusion, most_iterations=limit, tune=tune)
            verdict = reference.compare(results)
        if not verdict.ok:
            raise NumbersDiffer(f"{Path(options.file).name}: {verdict.summary}", stage="run", details=verdict.details)
        print(verdict.summary)
    sys.stdout.flush()
    return 0


def _runs_on_gpu(options: argparse.Namespace) -> bool:
    """Whether the options and this machine say so. raises UsageError for options that contradict each other, ToolError without a GPU"""
    from xla_emitters.runtime.cupy_launcher import HELP, cuda_reason_missing

    watched = _watched_by(options)
    if options.platform == "cuda" and options.stage:
        raise UsageError("--stage runs on the CPU: a GPU runs PTX only", stage="run", help="leave out --stage")
    if options.platform == "cuda" and watched:
        raise UsageError(f"{watched} works only on the CPU", stage="run", help="--platform cpu")
    reason = "a stage was asked for" if options.stage or watched else cuda_reason_missing()
    if options.platform == "cuda" and reason:
        raise ToolError(f"--platform cuda: {reason}", stage="run", help=HELP)
    return options.platform != "cpu" and reason is None


def _executed_stage(options: argparse.Namespace) -> str:
    """The stage that the CPU executes. raises UsageError for one that it cannot execute, or not as the options say"""
    from xla_emitters.pipelines.passes import EXECUTABLE_STAGES

    stage = options.stage or "llvm-dialect"
    if stage not in EXECUTABLE_STAGES:
        raise UsageError(
            f"stage '{stage}' cannot be executed", stage="run", help=f"one of: {', '.join(EXECUTABLE_STAGES)}"
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
        from xla_emitters.runtime.simt.access_counts import AccessCounter
        from xla_emitters.runtime.simt.sanitizer import Sanitizer

        found: list[Watcher] = [Sanitizer()] if self._options.sanitize else []
        if self._options.access_report:
            self._counters.append((kernel.name, AccessCounter()))
            found.append(self._counters[-1][1])
        return found

    def report(self) -> None:
        """Prints the accesses that were counted."""
        from xla_emitters.runtime.simt.access_counts import access_table

        for name, counter in self._counters:
            print(f"kernel {name}:\n{access_table(counter.counts())}")


def _compiled(options: argparse.Namespace, module: ModuleOp, stage: str, watch: _Watch, *, on_gpu: bool) -> Program:
    """Compiles as far as is run or shown, and prints what was asked for."""
    from xla_emitters.lowering.ways import ptx_reason_missing
    from xla_emitters.pipelines.compiler import compile_module
    from xla_emitters.pipelines.passes import EXECUTABLE_STAGES
    from xla_emitters.runtime.cupy_launcher import device_architecture

    # A table or a folder shows all stages, up to PTX where it can be made; else compilation stops at the stage to run.
    wanted = stage
    if on_gpu or options.show_stages or options.print_ir_tree_dir:
        wanted = "ptx"
        if not on_gpu and (missing := ptx_reason_missing()):
            wanted = EXECUTABLE_STAGES[-1]
            print(f"note: PTX is left out: {missing}", file=sys.stderr)
    with progress(f"compiling {options.file}"):
        program = compile_module(
            module,
            replace(
                compile_options(options),
                target=device_architecture() if on_gpu else options.target,
                stage=wanted,
                record=record_wanted(options, "stages"),
            ),
            observers=watch.observer if _watched_by(options) else None,
        )
    if options.show_stages:
        for trace in program.traces:
            print(stage_table(trace))
        for kernel in program.kernels:
            print(f"kernel {kernel.name}: {kernel.launch}, {kernel.architecture}")
    print_dumps(options, program)
    print_warnings(program)
    if options.print_ir_tree_dir:
        print(f"IR of every pass{' and the PTX' if wanted == 'ptx' else ''}: {options.print_ir_tree_dir}")
    return program
