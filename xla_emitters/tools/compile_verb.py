"""`xla-emitters compile`: prints a program at one stage."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xla_emitters.errors import UsageError
from xla_emitters.tools.common import add_dumps, add_input, print_dumps, read_source, record_wanted

if TYPE_CHECKING:
    from xla_emitters.runtime.kernel import Program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    add_dumps(parser)
    parser.add_argument("-o", "--output", metavar="OUT", default="-", help="where to; default standard output")
    parser.add_argument("--stage", default="ptx", help="hlo, partition, xla_gpu, inlined, scf, flat, ... ptx (default)")
    parser.add_argument(
        "--json", action="store_true", help="the program as JSON: kernels with launch, arguments and code"
    )
    parser.add_argument(
        "--keep-intermediates",
        metavar="DIR",
        help="also go by mlir-translate, llvm-link, opt and llc, and keep their files",
    )


def run(options: argparse.Namespace) -> int:
    from xla_emitters.pipeline import compile, keep_intermediates

    if options.keep_intermediates and options.stage not in ("llvm-dialect", "llvm", "ptx"):
        raise UsageError(f"--keep-intermediates needs the LLVM dialect, which stage '{options.stage}' is before")
    is_ptx = options.stage == "ptx"  # which the kernels hold, recorded or not
    is_bare = is_ptx and not (options.keep_intermediates or options.time_passes)
    program = compile(
        read_source(options.file),
        target=options.target,
        fusion=options.fusion,
        stage=options.stage,
        record=record_wanted(options, "none" if is_bare else "stages"),
        verify=bool(options.print_ir_after_all or options.print_ir_tree_dir),
    )
    if options.keep_intermediates:
        keep_intermediates(program, Path(options.keep_intermediates))
    if options.json:
        text = json.dumps(as_json(program, options.stage), indent=2) + "\n"
    elif options.stage == "hlo":
        text = program.hlo
    elif is_ptx:
        text = "\n".join(kernel.ptx for kernel in program.kernels)
    else:
        text = "\n".join(trace[options.stage].ir or "" for trace in program.traces)
    write(options.output, text if text.endswith("\n") else text + "\n")
    print_dumps(options, program.traces)
    return 0


def as_json(program: Program, stage: str) -> dict[str, Any]:
    """The program's own JSON; for a stage before `ptx` also `stage`, and `ir`: the text of each kernel there."""
    data = program.to_json()
    if stage != "ptx":
        data |= {"stage": stage, "ir": [trace[stage].ir for trace in program.traces]}
    return data


def write(output: str, text: str) -> None:
    """To a file, or to standard output for '-'. raises UsageError where it cannot be written."""
    if output == "-":
        sys.stdout.write(text)
        return
    try:
        Path(output).write_text(text)
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}", stage="output") from error
