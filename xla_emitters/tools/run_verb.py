"""`xla-emitters run`: runs a program and compares its results with the NumPy reference."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from xla_emitters.errors import NumbersDiffer, ToolError, UsageError
from xla_emitters.tools.common import add_dumps, add_input, print_dumps, read_source, record_wanted
from xla_emitters.tools.terminal import progress
from xla_emitters.trace.text import stage_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    add_dumps(parser)
    parser.add_argument(
        "--platform",
        choices=("auto", "cuda", "cpu"),
        default="auto",
        help="auto: the GPU if there is one, else the CPU",
    )
    parser.add_argument("--stage", help="run the IR of this stage on the CPU; default llvm-dialect")
    parser.add_argument("--inputs", metavar="IN.npz", help="arrays p0, p1, ...; default: drawn from --seed")
    parser.add_argument("--outputs", metavar="OUT.npz", help="write the results as r0, r1, ...")
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs; default 0")
    parser.add_argument("--show-stages", action="store_true", help="print one row per stage: name, ops, ms")
    parser.add_argument("--no-reference", action="store_true", help="do not compare with the NumPy reference")


def run(options: argparse.Namespace) -> int:
    from xla_emitters.explore.check import reference_for
    from xla_emitters.pipeline import EXECUTABLE_STAGES, compile_module, read_module
    from xla_emitters.runtime.arrays import load_arrays, random_arrays, save_arrays
    from xla_emitters.runtime.cpu_launcher import run_program
    from xla_emitters.runtime.cupy_launcher import cuda_reason_missing, device_architecture, launch_program

    if options.platform == "cuda" and options.stage:
        raise UsageError("a GPU runs the whole road's PTX, not a stage", stage="run", help="leave out --stage")
    reason = "a stage was asked for" if options.stage else cuda_reason_missing()
    if options.platform == "cuda" and reason:
        raise ToolError(
            f"--platform cuda: {reason}", stage="run", help="--platform cpu runs the same kernel on the CPU"
        )
    on_gpu = options.platform != "cpu" and reason is None
    stage = options.stage or "llvm-dialect"
    if stage not in EXECUTABLE_STAGES:
        raise UsageError(
            f"stage '{stage}' cannot be executed", stage="run", help=f"one of: {', '.join(EXECUTABLE_STAGES)}"
        )
    module = read_module(read_source(options.file))
    # With a table or a folder the whole road is shown, to PTX; else the compilation stops at what will be run.
    all_stages = bool(options.show_stages or options.print_ir_tree_dir or on_gpu)
    with progress(f"compiling {options.file}"):
        program = compile_module(
            module,
            target=device_architecture() if on_gpu else options.target,
            fusion=options.fusion,
            stage="ptx" if all_stages else stage,
            record=record_wanted(options, "stages"),
        )
    if options.show_stages:
        for trace in program.traces:
            print(stage_table(trace))
        for kernel in program.kernels:
            print(f"kernel {kernel.name}: {kernel.launch}, {kernel.architecture}")
    print_dumps(options, program.traces)
    if options.print_ir_tree_dir:
        print(f"IR of every pass and the PTX: {options.print_ir_tree_dir}")
    inputs = (
        load_arrays(options.inputs, "p", program.parameters)
        if options.inputs
        else random_arrays(program.parameters, options.seed)
    )
    start = time.perf_counter()
    with progress(f"running {options.file}"):
        results = launch_program(program, inputs) if on_gpu else run_program(program, inputs, stage)
    seconds = time.perf_counter() - start
    where = f"the GPU ({program.kernels[0].architecture})" if on_gpu else f"the CPU at stage {stage}"
    for number, spec in enumerate(program.results):
        print(f"r{number} = {spec}")
    print(f"ran on {where} in {seconds:.3f} s")
    if options.outputs:
        try:
            save_arrays(options.outputs, "r", results, program.results)
        except OSError as error:
            raise UsageError(f"cannot write {options.outputs}: {error.strerror}", stage="run") from error
        print(f"results: {options.outputs}")
    if not options.no_reference:
        with progress("evaluating the reference"):
            verdict = reference_for(module, inputs, options.fusion).compare(results)
        print(verdict.summary)
        if not verdict.ok:
            raise NumbersDiffer(f"{Path(options.file).name}: {verdict.summary}", stage="run", details=verdict.details)
    sys.stdout.flush()
    return 0
