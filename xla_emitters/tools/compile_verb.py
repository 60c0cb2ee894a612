"""`xla-emitters compile`: prints a program at one stage.

Of a directory, all modules in it and below (`dump_directory`): a row each, and with `-o OUT/` a folder each. Where they are compiled:
`executors`.

    compile module.hlo -o DIR/              DIR/fusion.ptx, DIR/fusion_1.ptx ...       each has one entry and can be loaded alone
    compile module.hlo --stage flat -o DIR/ DIR/fusion.mlir ...

Files and entries have the kernels' names in `compile --json`. At `llvm` and `ptx` all kernels of a program are one text; each file gets
one entry and everything in the text that is not an entry: tables, shared memory and functions, which several kernels may use.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xla_emitters.errors import UsageError, file_errors
from xla_emitters.tools.dump_directory import files_in
from xla_emitters.tools.given import Given, read_given
from xla_emitters.tools.input_output import counted, print_dumps, print_left_out, print_warnings, write_file
from xla_emitters.tools.terminal import coloured, progress
from xla_emitters.tools.verb_options import (
    add_compilation,
    add_dumps,
    add_engine,
    add_input,
    add_keep_going,
    add_mixed_precision,
    check_engine,
    check_trace_format,
    compile_options,
    prints_anything,
    record_wanted,
)

if TYPE_CHECKING:
    from xla_emitters.explore.listing import LeftOut
    from xla_emitters.pipelines.options import CompileOptions
    from xla_emitters.program import Program
    from xla_emitters.tools.file_rows import PrintedRow
    from xla_emitters.trace import Trace

_SUFFIXES = {
    **{"ptx": ".ptx", "llvm": ".ll", "sass": ".sass"},
    **{"json": ".json", "diff": ".diff", "HLO": ".hlo"},
}
"""Kind of a text, a stage for most -> the ending of its file; all others are MLIR."""
_ENTRIES = {
    "ptx": r"^(?:\t// \.globl[^\n]*\n)?\.visible \.entry (?P<name>[\w$.]+)\(.*?^\}\n(?:[^\S\n]*// -- End function\n)?\n?",
    "llvm": r'^define ptx_kernel void @"?(?P<name>[\w$.]+)"?\(.*?^\}\n\n?',
    "sass": r"^//-+ \.text\.(?P<name>[\w$.]+) .*?(?=^//-|\Z)",
}
"""Matches the definition of a kernel's entry in the text of a stage."""


def is_directory(output: str) -> bool:
    """Whether a value of `-o` names a directory: one that exists, or a name that ends in a slash."""
    return output != "-" and (output.endswith("/") or Path(output).is_dir())


def make_directory(directory: Path) -> None:
    """Makes the directory if it does not exist. raises UsageError where it cannot be made."""
    with file_errors(f"cannot write to {directory}", "output"):
        directory.mkdir(parents=True, exist_ok=True)


def write_kernel_files(program: Program, directory: Path, source: object = None) -> list[Path]:
    """Writes the files, and makes the directory; returns their paths. raises UsageError where they cannot be written.

    source  the file that was read, which is not overwritten
    """
    texts = {kernel.name: _text(program, number) for number, kernel in enumerate(program.kernels)}
    suffix, written = _SUFFIXES.get(program.stage, ".mlir"), list[Path]()
    make_directory(directory)
    with file_errors(f"cannot write to {directory}", "output"):
        for name, text in texts.items():
            written.append(_other_than(source, directory / f"{name}{suffix}"))
            written[-1].write_text(text if text.endswith("\n") else text + "\n", "utf-8")
    return written


def file_stem(name: str) -> str:
    """The name of a file without the characters that one may not have."""
    return re.sub(r"\W", "_", name)


def write_whole(text: str, kind: str, directory: Path, name: str, source: object = None) -> None:
    """Writes one text for all that was compiled, and makes the directory. raises UsageError as `write_kernel_files`"""
    make_directory(directory)
    path = _other_than(source, directory / f"{file_stem(name)}{_SUFFIXES.get(kind, '.mlir')}")
    write_file(str(path), text.rstrip("\n") + "\n")


def _other_than(source: object, path: Path) -> Path:
    """`path` itself. raises UsageError where it is the file that was read"""
    if isinstance(source, Path) and path.exists() and path.samefile(source):
        raise UsageError(
            f"{path} is the file that was read: it would be overwritten", stage="output", help="-o another directory"
        )
    return path


def _text(program: Program, number: int) -> str:
    """A kernel's text at the program's stage."""
    kernels = program.kernels
    name = kernels[number].name
    if len(kernels) == 1:
        return program.code
    if (entry := _ENTRIES.get(program.stage)) is not None:
        others = {kernel.name for kernel in kernels} - {name}
        return re.sub(entry, lambda found: "" if found["name"] in others else found[0], program.code, flags=re.M | re.S)
    trace = program.traces[number]
    text = trace[program.stage].ir
    if text is None:
        raise UsageError("the program was compiled without recording its IR", stage="output")
    # In a file of its own the entry gets its original name, without the suffix that kept it apart from others in the module.
    return re.sub(rf"@{re.escape(_entry_in(text))}(?![\w$.])", f"@{name}", text)


def _entry_in(text: str) -> str:
    """The name of the entry of one kernel's module: its first function with a launch."""
    found = re.search(r"^\s*(?:func\.func|llvm\.func)(?: \w+)* @([\w$.]+)", text, re.MULTILINE)
    assert found is not None
    return found[1]


ANNOTATED = ("ptx", "sass")
"""The stages at which kernels have PTX: `--annotate` prints them."""
HLO_STAGES = ("hlo", "graph")
"""The stages at which a module is HLO text."""
_OF_ONE_FILE = ("emit", "diff", "annotate", "keep_intermediates", "print_ir_tree_dir", "trace")


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
        "--emit",
        choices=("text", "bytecode"),
        help="of a program with --stage stablehlo: print StableHLO's own text or a portable artifact, in place of the IR",
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
    add_engine(
        parser, "file", "compile the kernels of a module in N processes; of a directory, N files at once; default 1"
    )
    parser.add_argument(
        "--keep-intermediates",
        metavar="DIR",
        help="also run mlir-translate, llvm-link, opt and llc, and keep their files in DIR",
    )


def run(options: argparse.Namespace) -> int:
    check_trace_format(options)
    options.stage = options.stage or _default_stage(options)
    if options.annotate:
        _refuse_other_than_code(options)
    if len(files := files_in(options.file)) > 1:
        return _compile_all(options, files)
    check_engine(options)
    if options.executor or options.resume or options.timeout:
        raise UsageError("--executor, --resume and --timeout are for directories with several modules", stage="compile")
    return compile_file(options, files[0], None)


def _compile_all(options: argparse.Namespace, files: Sequence[str]) -> int:
    """Compiles each file of a directory."""
    from xla_emitters.tools.file_rows import PrintedRow, rows_of  # imported here: it loads multiprocessing

    if options.output != "-" and not is_directory(options.output):
        raise UsageError(f"{len(files)} files are compiled, each to a folder", stage="compile", help="-o DIR/")
    if given := [name for name in _OF_ONE_FILE if getattr(options, name)]:
        raise UsageError(f"--{given[0].replace('_', '-')} is for one file, not for {len(files)}", stage="compile")
    import_module("xla_emitters.pipelines.compiler")  # before processes are forked, which then share it
    width, rows = max(map(len, files)), list[PrintedRow]()
    output = None if options.output == "-" else partial(_folder_of, options)
    for row in rows_of(options, files, "compiling", PrintedRow, compile_file, output):
        rows.append(row)
        if not options.json:
            print(f"{row.file:<{width}}  {row.text or 'not compiled'}", flush=True)
    failed = sum(row.exit_code > 0 for row in rows)
    if options.json:
        print(json.dumps({"files": [{"file": row.file, **row.data, "error": row.error} for row in rows]}, indent=2))
    else:
        print(f"{len(rows) - failed} of {counted(len(files), 'file')} compiled, {failed} failed")
    return max(row.exit_code for row in rows)


def _folder_of(options: argparse.Namespace, name: str) -> Path:
    """Where the files of a module in the directory are written."""
    return Path(options.output) / Path(name).relative_to(options.file)


def compile_file(options: argparse.Namespace, name: str, row: PrintedRow | None) -> int:
    """Compiles one file; of a directory's fills in its row. raises what the compiler raises"""
    if row is not None:
        output = None if options.output == "-" else f"{_folder_of(options, name)}/"
        options = argparse.Namespace(**{**vars(options), "output": output, "jobs": 1})
    given = read_given(options, name)
    if options.emit:
        return _emit(options, given)
    left_out: Sequence[LeftOut] = ()
    if options.keep_intermediates and options.stage not in ("llvm-dialect", "llvm", "ptx"):
        raise UsageError(f"--keep-intermediates needs the LLVM dialect, but stage '{options.stage}' comes before it")
    folder = Path(options.output) if options.output and is_directory(options.output) else None
    if folder is not None and given.is_program:
        make_directory(folder)  # for the constants
    how = _how(options, given, folder)
    if options.keep_going:
        program, left_out = _what_can_be_compiled(given, how)
    else:
        # The compiler is imported only where the cache has no program: see `kept_programs`.
        cached = not (prints_anything(options) or options.keep_intermediates or options.diff)
        program = given.compiled(how, cache=cached)
    if options.keep_intermediates:
        from xla_emitters.pipelines.compiler import keep_intermediates  # imported here: it loads the compiler

        keep_intermediates(program, Path(options.keep_intermediates), options.settings.toolchain)
    if row is not None:
        kernels, calls = counted(len(program.kernels), "kernel"), counted(len(program.calls), "library call")
        row.text = f"ok  {kernels}, {calls}{f', {len(left_out)} left out' if left_out else ''}"
        row.data = as_json(program) if options.json else {}
        options.json = False
    kind, text = _printed(options, given, program)
    if folder is None:
        if options.output:
            write(options.output, text, kind)
    elif kind == options.stage and not given.is_program and _has_kernels(options.stage):
        write_kernel_files(program, folder, given.source)
    else:
        write_whole(
            text, "HLO" if not given.is_program and kind in HLO_STAGES else kind, folder, given.stem, given.source
        )
    print_dumps(options, program)
    print_warnings(program)
    return print_left_out(left_out)


def _emit(options: argparse.Namespace, given: Given) -> int:
    """Writes a program as StableHLO."""
    if not given.is_program or options.stage != "stablehlo" or options.json or options.diff:
        raise UsageError("--emit is for programs with --stage stablehlo, without --json or --diff", stage="compile")
    from xla_emitters.pipelines.lowerings import lowerings_of
    from xla_emitters.text.binary.reading import written
    from xla_emitters.text.stablehlo import print_stablehlo

    text = print_stablehlo(lowerings_of(given.compiled(_how(options, given, None))).source)
    write_file(options.output, written(text, "bytecode", given.name) if options.emit == "bytecode" else text)
    return 0


def _how(options: argparse.Namespace, given: Given, folder: Path | None) -> CompileOptions:
    is_ptx = options.stage == "ptx"  # PTX is made and kept even if the trace records nothing
    is_bare = is_ptx and not (options.keep_intermediates or options.annotate or prints_anything(options))
    is_text = not (options.json or options.diff)
    return replace(
        compile_options(options),
        stage=options.stage,
        record="passes" if options.diff else record_wanted(options, "none" if is_bare else "stages"),
        verify=bool(options.print_ir_after_all or options.print_ir_tree_dir) and not given.is_program,
        line_info=options.line_info or options.annotate,
        jobs=options.jobs or 1,
        constants=str(folder / f"{file_stem(given.stem)}.npz") if folder and given.is_program and is_text else "",
    )


def _what_can_be_compiled(given: Given, how: CompileOptions) -> tuple[Program, tuple[LeftOut, ...]]:
    from xla_emitters.explore.listing import compilable
    from xla_emitters.pipelines.compiler import compile_module, read_module

    with progress(f"compiling {given.name}"):
        module, left_out = compilable(read_module(given.source), how)
        return compile_module(module, how), left_out


def _printed(options: argparse.Namespace, given: Given, program: Program) -> tuple[str, str]:
    """The kind of text that was asked for, and the text."""
    if options.json:
        return "json", json.dumps(as_json(program), indent=2)
    if options.diff:
        return "diff", "\n".join(diff(trace, *options.diff) for trace in traces_with(program, options.diff))
    if options.annotate and (text := _annotated(given, program, options.stage)):
        return options.stage, text
    return options.stage, program.code


def as_json(program: Any) -> dict[str, Any]:
    """The program's JSON plus each kernel's PTX; for a stage before `ptx` also `ir`: each kernel's text at that stage, or the whole."""
    data, stage = program.to_json(), program.stage
    for kernel, row in zip(program.kernels if data["kernels"] else (), data["kernels"], strict=True):
        row["ptx"] = kernel.ptx if stage in ANNOTATED else ""
    if stage != "ptx":
        by_kernel = [trace[stage].ir for trace in program.traces if stage in trace.stages]
        data["ir"] = by_kernel if stage != "graph" and len(by_kernel) == len(program.traces) else [program.code]
    return data


def _annotated(given: Given, program: Any, stage: str) -> str:
    """The code with what each line is from beside it; "" where there are no kernels. `program.code` would lower all kernels once more."""
    from xla_emitters.text.hlo import parse_hlo
    from xla_emitters.text.hlo.stack_frames import PythonLines
    from xla_emitters.trace.annotate import annotated, hlo_definitions, stablehlo_definitions

    if given.is_program:
        from xla_emitters.pipelines.lowerings import lowerings_of

        made = lowerings_of(program)
        traces, read = made.lowering.kernel_traces(stage, ()), made.source
        definitions = stablehlo_definitions(given.text, made.lines)
    else:
        traces, read, definitions = program.traces, parse_hlo(program.hlo), hlo_definitions(program.hlo)
    return annotated([trace[stage] for trace in traces], definitions, PythonLines(read).by_name(read)) if traces else ""


def _default_stage(options: argparse.Namespace) -> str:
    """PTX; the LLVM dialect where what is printed needs no PTX and none can be made here, which a note says."""
    is_code_wanted = options.output != "-" or options.json or options.annotate or options.keep_intermediates
    is_ir_wanted = options.diff or record_wanted(options, "") or options.time_passes
    if is_ir_wanted and (options.diff or not is_code_wanted):
        from xla_emitters.lowering.toolchain.tools import ptx_reason_missing

        if missing := ptx_reason_missing(options.settings.toolchain):
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
    """Whether a module has a text for each kernel at that stage."""
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


def write(output: str, text: str, kind: str) -> None:
    """Writes `text` to a file, or for '-' to standard output, coloured as `kind`. raises UsageError where it cannot be written."""
    text = text if text.endswith("\n") else text + "\n"
    write_file(output, coloured(text, kind, sys.stdout) if output == "-" else text)
