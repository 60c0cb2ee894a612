"""`xla-emitters compile`: prints a program at one stage."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xla_emitters.errors import UsageError
from xla_emitters.tools.input_output import print_dumps, print_left_out, print_warnings, read_source, write_file
from xla_emitters.tools.kernel_files import is_directory, write_kernel_files
from xla_emitters.tools.options import (
    add_compilation,
    add_dumps,
    add_input,
    add_keep_going,
    compile_options,
    prints_anything,
    record_wanted,
)
from xla_emitters.tools.program_verbs import add_mixed_precision, compile_program, program_text, refuse_mixed_precision
from xla_emitters.tools.terminal import coloured, progress
from xla_emitters.trace.annotate import annotated, hlo_definitions

ANNOTATED = ("ptx", "sass")
"""The stages that `--annotate` prints."""

if TYPE_CHECKING:
    from xla_emitters.explore.listing import LeftOut
    from xla_emitters.program import Program
    from xla_emitters.trace import Trace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    add_compilation(parser)
    add_dumps(parser)
    add_keep_going(parser)
    add_mixed_precision(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        default="-",
        help="the file to write, or a directory (DIR/) for a file a kernel; default standard output; "
        "of a program, DIR/ gets the text, and at stage host its constants (.npz) beside it",
    )
    parser.add_argument(
        "--stage",
        help="the stage to print: hlo, graph, partition, xla_gpu, inlined, scf, flat, ... ptx (default), sass; "
        "of a program stablehlo, hlo, graph, placed, lmhlo, fused, loops, kernels, host, llvm-dialect, ptx (default), sass",
    )
    parser.add_argument(
        "--json", action="store_true", help="the program as JSON: kernels with launch, arguments and code"
    )
    parser.add_argument(
        "--diff",
        nargs=2,
        metavar=("BEFORE", "AFTER"),
        help="print the diff of the IR between two points, each a stage, a pass or a step's number",
    )
    parser.add_argument(
        "--annotate",
        action="store_true",
        help="with the stages ptx and sass: print the HLO instruction, or the line of StableHLO, that each line is from beside it",
    )
    parser.add_argument(
        "--line-info",
        action="store_true",
        help="PTX with `.loc`, so that profilers show lines of the HLO or StableHLO text; the code is the same",
    )
    parser.add_argument(
        "-j",
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help="compile the kernels of a module in N processes; default 1",
    )
    parser.add_argument(
        "--keep-intermediates",
        metavar="DIR",
        help="also run mlir-translate, llvm-link, opt and llc, and keep their files in DIR",
    )


def run(options: argparse.Namespace) -> int:
    # The compiler is imported only where the cache has no program: see `kept_programs`.
    from xla_emitters.pipelines.kept_programs import look_up

    source = read_source(options.file)
    options.stage = options.stage or _default_stage(options)
    if options.annotate:
        _refuse_other_than_code(options)
    if found := program_text(source):
        return compile_program(options, *found)
    refuse_mixed_precision(options)
    if options.keep_intermediates and options.stage not in ("llvm-dialect", "llvm", "ptx"):
        raise UsageError(f"--keep-intermediates needs the LLVM dialect, but stage '{options.stage}' comes before it")
    is_ptx = options.stage == "ptx"  # kernels hold their PTX even if the trace records nothing
    is_bare = is_ptx and not (options.keep_intermediates or options.time_passes or options.annotate)
    left_out: Sequence[LeftOut] = ()
    how = replace(
        compile_options(options),
        stage=options.stage,
        record="passes" if options.diff else record_wanted(options, "none" if is_bare else "stages"),
        verify=bool(options.print_ir_after_all or options.print_ir_tree_dir),
        line_info=options.line_info or options.annotate,
        jobs=options.jobs,
    )
    with progress(f"compiling {options.file}"):
        if options.keep_going:
            from xla_emitters.explore.listing import compilable
            from xla_emitters.pipelines.compiler import compile_module, read_module

            module, left_out = compilable(read_module(source), how)
            program = compile_module(module, how)
        else:
            cached = not (prints_anything(options) or options.keep_intermediates or options.diff)
            program = look_up(source, how, cache=cached).program
            if program is None:
                from xla_emitters.pipelines.compiler import compile

                program = compile(source, cache=cached, **how.as_keywords())
    if options.keep_intermediates:
        from xla_emitters.pipelines.compiler import keep_intermediates

        keep_intermediates(program, Path(options.keep_intermediates))
    if is_directory(options.output) and not (options.json or options.diff) and _has_kernels(options.stage):
        write_kernel_files(program, Path(options.output))
        print_dumps(options, program)
        print_warnings(program)
        return print_left_out(left_out)
    if options.json:
        text = json.dumps(as_json(program, options.stage), indent=2) + "\n"
    elif options.diff:
        text = "\n".join(diff(trace, *options.diff) for trace in traces_with(program, options.diff))
    elif options.annotate and program.traces:
        from xla_emitters.hlo_text import parse_hlo
        from xla_emitters.hlo_text.stack_frames import PythonLines

        steps, read = [trace[options.stage] for trace in program.traces], parse_hlo(program.hlo)
        text = annotated(steps, hlo_definitions(program.hlo), PythonLines(read).by_name(read))
    else:
        text = program.code
    kind = "json" if options.json else "diff" if options.diff else options.stage
    write(options.output, text if text.endswith("\n") else text + "\n", kind)
    print_dumps(options, program)
    print_warnings(program)
    return print_left_out(left_out)


def _default_stage(options: argparse.Namespace) -> str:
    """PTX; the LLVM dialect where what is printed needs no PTX and none can be made here, which a note says."""
    is_code_wanted = options.output != "-" or options.json or options.annotate or options.keep_intermediates
    is_ir_wanted = options.diff or record_wanted(options, "") or options.time_passes
    if is_ir_wanted and (options.diff or not is_code_wanted):
        from xla_emitters.lowering.ways import ptx_reason_missing

        if missing := ptx_reason_missing():
            print(f"note: PTX is left out: {missing}", file=sys.stderr)
            return "llvm-dialect"
    return "ptx"


def _refuse_other_than_code(options: argparse.Namespace) -> None:
    """raises UsageError for --annotate with a stage that is not one text of machine code"""
    if options.stage not in ANNOTATED or options.json or options.diff:
        raise UsageError(
            "--annotate prints PTX or SASS as text",
            stage="compile",
            help="--stage ptx or --stage sass, without --json or --diff",
        )
    if is_directory(options.output):
        raise UsageError("--annotate prints one text, and -o names a directory", stage="compile", help="-o a file")


def _has_kernels(stage: str) -> bool:
    """Whether there is a text for each kernel at that stage."""
    from xla_emitters.pipelines.passes import STAGES

    return STAGES.index(stage) > STAGES.index("partition")


def traces_with(program: Program, points: Sequence[str]) -> Sequence[Trace]:
    """The trace of the passes on HLO if it has all the points, else each kernel's trace."""
    names = {name for step in program.graph for name in (step.name, step.stage)}
    return (program.graph,) if names.issuperset(points) else program.traces


def diff(trace: Trace, before: str, after: str) -> str:
    """A unified diff of two points of the trace. raises UsageError for a point that is not in the trace."""
    points = [int(point) if point.isdecimal() else point for point in (before, after)]
    try:
        return trace.diff(*points)
    except KeyError as error:
        raise UsageError(str(error.args[0]), stage="diff") from error


def as_json(program: Program, stage: str) -> dict[str, Any]:
    """The program's JSON plus each kernel's PTX; for a stage before `ptx` also `ir`: each kernel's text at that stage."""
    data = program.to_json()
    for kernel, row in zip(program.kernels, data["kernels"], strict=True):
        row["ptx"] = kernel.ptx
    if stage != "ptx":
        data["ir"] = [program.code] if stage == "graph" else [trace[stage].ir for trace in program.traces]
    return data


def write(output: str, text: str, kind: str) -> None:
    """Writes `text` to a file, or for '-' to standard output, coloured as `kind`. raises UsageError where it cannot be written."""
    if output == "-":
        sys.stdout.write(coloured(text, kind, sys.stdout))
        return
    write_file(output, text)
