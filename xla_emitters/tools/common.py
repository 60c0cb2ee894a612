"""Arguments and output that several verbs share."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xla_emitters.device import DEFAULT_DEVICE
from xla_emitters.errors import ParseError, UsageError
from xla_emitters.trace.text import dumps, stage_table, write_tree

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from xla_emitters.explore.listing import LeftOut
    from xla_emitters.pipelines.options import CompileOptions
    from xla_emitters.pipelines.programs import DynamicProgram
    from xla_emitters.program import Program
    from xla_emitters.runtime.arrays import StandardInput


def add_file(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    parser.add_argument(
        "files" if several else "file",
        metavar="FILE.hlo",
        nargs="+" if several else None,
        help="HLO text, or a program in StableHLO; '-' is standard input",
    )


def add_input(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    add_file(parser, several=several)
    parser.add_argument("--fusion", metavar="NAME", help="use only the fusion instruction of this name")


def add_compilation(parser: argparse.ArgumentParser) -> None:
    """Adds the options that choose the device and the rules by which a fusion gets its emitter."""
    parser.add_argument(
        "--target",
        default=DEFAULT_DEVICE,
        metavar="DEVICE",
        help=f"device (h200, a6000 ...), architecture (sm_90), or a file with XLA's description of a GPU; default {DEFAULT_DEVICE}",
    )
    parser.add_argument(
        "--hero-rules",
        default="current",
        choices=("current", "seed"),
        help="how a fusion's emitter is chosen: as in today's XLA (current, default) or as in the seed document",
    )
    parser.add_argument(
        "--triton",
        default="split",
        choices=("split", "refuse"),
        help="fusions that XLA gives to Triton or cuDNN: split into fusions and dots (default), or refused",
    )
    parser.add_argument(
        "--tune",
        choices=("xla", "price"),
        help="how a thread's work is chosen: as XLA does (default), or by the cost model's price among candidates (needs ptxas)",
    )
    parser.add_argument(
        "--pipeline",
        "--pass-pipeline",
        metavar="PASSES",
        help="run these passes, or those that a file of this name lists, from stage xla_gpu on: 'builtin.module(xla-cse,...)'",
    )


def compile_options(options: argparse.Namespace) -> CompileOptions:
    """The `CompileOptions` given by the arguments of `add_input` and `add_compilation`."""
    from dataclasses import replace

    return replace(module_options(options), fusion=options.fusion)


def module_options(options: argparse.Namespace) -> CompileOptions:
    """The `CompileOptions` given by `add_compilation`, for the whole module even if one fusion was selected."""
    from xla_emitters.pipelines.options import CompileOptions

    return CompileOptions(
        target=options.target,
        hero_rules=options.hero_rules,
        triton=options.triton,
        pipeline=pipeline_asked(options),
        tune=tune_asked(options),
    )


def tune_asked(options: argparse.Namespace) -> str:
    """The value of `--tune`; programs refuse the option if it was given."""
    return options.tune or "xla"


def pipeline_asked(options: argparse.Namespace) -> tuple[ModulePass, ...] | None:
    """The passes of `--pipeline`; None where it was not given. raises UsageError, ParseError"""
    if options.pipeline is None:
        return None
    from xla_emitters.tools.pass_list import pipeline_of

    text = options.pipeline
    # A text this long is no file name; asking the system about it would raise an error.
    if len(text) < 256 and Path(text).is_file():
        text = decoded(Path(text).read_bytes(), text)
    return pipeline_of(text)


def add_keep_going(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep-going",
        action="store_true",
        help="where the whole cannot be compiled, take the fusions that can be, and say at the end what was left out",
    )


def add_max_iterations(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-iterations",
        type=int,
        metavar="N",
        help="a loop of the program that runs longer is an error; default 100000",
    )


def max_iterations(options: argparse.Namespace, stage: str) -> int:
    """The value of `--max-iterations`. raises UsageError for a negative one."""
    from xla_emitters.explore.check import refuse_limit
    from xla_emitters.runtime.steps import MOST_ITERATIONS

    limit = MOST_ITERATIONS if options.max_iterations is None else options.max_iterations
    refuse_limit(limit, stage)
    return limit


def print_left_out(left_out: Sequence[LeftOut]) -> int:
    """Prints what was not compiled to standard error; returns the exit code: 1 if there is any."""
    for each in left_out:
        print(each, file=sys.stderr)
    return 1 if left_out else 0


def add_arrays(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Adds the options that choose the parameters' arrays; see `arrays_source`."""
    parser.add_argument(
        "--inputs",
        metavar="IN.npz",
        action="append" if several else "store",
        help="arrays p0, p1, ...; '-' is standard input; default: drawn from --seed"
        + ("; of a program several, each with its --outputs" if several else ""),
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the random inputs; default 0")


def add_dumps(parser: argparse.ArgumentParser) -> None:
    """Adds the options that print what the pipeline did."""
    parser.add_argument(
        "--print-ir-after-all",
        "--mlir-print-ir-after-all",
        action="store_true",
        help="print the IR after every pass to stderr",
    )
    parser.add_argument(
        "--print-ir-after-change",
        "--mlir-print-ir-after-change",
        action="store_true",
        help="print the IR after every pass that changed it to stderr",
    )
    parser.add_argument(
        "--print-ir-tree-dir",
        "--xla_dump_to",
        metavar="DIR",
        help="write the IR after every pass to numbered files in DIR",
    )
    parser.add_argument("--time-passes", action="store_true", help="print each pass's time in milliseconds to stderr")
    parser.add_argument("--trace", metavar="OUT.json", help="write the whole trace to one JSON file: see docs/trace.md")
    parser.add_argument("--remarks", action="store_true", help="print to stderr what passes declined, and why")


def read_source(name: str) -> str | Path:
    """A file argument as `compile` takes it: a path, or for '-' the text of standard input. raises ParseError if that is not UTF-8."""
    if name != "-":
        return Path(name)
    text = decoded(standard_input(), "standard input")
    return text if "\n" in text else text + "\n"


def arrays_source(name: str | None) -> str | StandardInput | None:
    """The value of `--inputs` as `load_arrays` takes it; None where it was not given."""
    if name != "-":
        return name
    from xla_emitters.runtime.arrays import StandardInput

    return StandardInput(standard_input())


def standard_input() -> bytes:
    """All bytes of standard input. raises UsageError where it is closed."""
    if sys.stdin is None:
        raise UsageError("standard input is closed", stage="read")
    return sys.stdin.buffer.read()


def refuse_second_reader(stage: str, *names: str | None) -> None:
    """raises UsageError where more than one of the names is '-'."""
    if names.count("-") > 1:
        raise UsageError("'-' is given more than once, but standard input can be read only once", stage=stage)


def decoded(data: bytes, name: str) -> str:
    """`data` as UTF-8 text. raises ParseError naming the first bad byte."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ParseError(
            f"{name} is not text: byte {error.start} is 0x{data[error.start]:02x}", stage="read"
        ) from error


def record_wanted(options: argparse.Namespace, otherwise: str) -> str:
    """How much IR the trace must record: all passes if a dump of the IR was asked for, else `otherwise`."""
    dumps_wanted = (
        options.print_ir_after_all,
        options.print_ir_after_change,
        options.print_ir_tree_dir,
        options.trace,
    )
    return "passes" if any(dumps_wanted) else otherwise


def prints_anything(options: argparse.Namespace) -> bool:
    """Whether a dump was asked for. The program is then compiled without the cache, so that the dump is of this run."""
    return record_wanted(options, "") != "" or options.time_passes or options.remarks


def print_dumps(options: argparse.Namespace, program: Program | DynamicProgram) -> None:
    """Prints and writes the dumps of `add_dumps`: first the passes on HLO, if they changed anything, then each kernel.

    Remarks are printed last: those of all passes on HLO, then kernel by kernel. Files of passes on HLO are written to the directory itself,
    a kernel's files to a subdirectory with its name, or to the directory itself if there is only one trace.
    raises UsageError where the directory cannot be made.
    """
    graph = [program.graph] if sum(program.graph.changed()) > 1 else []
    traces = (*graph, *program.traces)
    for trace in traces:
        if options.print_ir_after_all or options.print_ir_after_change:
            for dump in dumps(trace, changed_only=not options.print_ir_after_all):
                print(dump, file=sys.stderr)
        if options.print_ir_tree_dir:
            is_of_graph = trace is program.graph
            folder = "" if is_of_graph or len(traces) == 1 else trace.name
            write_tree(trace, Path(options.print_ir_tree_dir) / folder, suffix="hlo" if is_of_graph else "mlir")
        if options.time_passes:
            print(stage_table(trace, every_pass=True), file=sys.stderr)
    if options.remarks:
        for trace in (program.graph, *program.traces):
            for remark in trace.remarks:
                if not remark.help:  # a remark with help is a warning: `print_warnings` always prints it
                    print(remark, file=sys.stderr)
    if options.trace:
        write_file(options.trace, json.dumps([trace.to_json() for trace in traces]) + "\n")


def print_warnings(program: Program | DynamicProgram) -> None:
    """Prints the warnings of the passes, and what the HLO text left out, to standard error."""
    if program.left_out:
        names = ", ".join(program.left_out)
        print(
            f"warning: the text leaves out the data of {names}; the code has zeros for it, and does not run",
            file=sys.stderr,
        )
    for remark in program.graph.remarks:
        if remark.help:
            place = f" at {remark.place}" if remark.place else ""
            print(f"warning: {remark.text}{place}\n  help: {remark.help}", file=sys.stderr)


def counted(number: int, noun: str) -> str:
    """The number with its noun, in the plural unless the number is 1.

    >>> counted(1, "kernel"), counted(2, "kernel")
    ('1 kernel', '2 kernels')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def write_file(path: str, text: str) -> None:
    """Writes `text` to a file, or for '-' to standard output. raises UsageError where it cannot be written."""
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", stage="output") from error
