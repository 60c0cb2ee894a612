"""`xla-emitters bundle`: writes a zip of compiled programs with the recipe of their inputs and the bounds of their results.

With `--abi c` it writes a directory for each program with unknown sizes: an object file for this CPU, constants, a header, sources.
"""

from __future__ import annotations

import argparse
import io
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from xla_emitters.errors import Unsupported, UsageError, file_errors
from xla_emitters.tools.given import Given, read_given, sizes_of
from xla_emitters.tools.input_output import counted, print_left_out, refuse_second_reader
from xla_emitters.tools.terminal import progress
from xla_emitters.tools.verb_options import add_compilation, add_input, add_keep_going, add_seed, compile_options

if TYPE_CHECKING:
    from xla_emitters.runtime.bundle.bundle import ProgramCase


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser, several=True)
    add_compilation(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="KERNELS.zip",
        required=True,
        help="the zip to write, '-' is standard output; with --abi c the directory",
    )
    parser.add_argument(
        "--abi",
        choices=("python", "c"),
        default="python",
        help="who calls it: Python and CuPy on a GPU (default), or C on this machine's CPU, a program with unknown sizes",
    )
    add_keep_going(parser)
    parser.add_argument(
        "--sizes",
        metavar="b=2,s=16",
        action="append",
        help="of programs: sizes at which the bundle runs them; may be given several times. Of several files, each takes those that it has",
    )
    add_seed(parser)


def run(options: argparse.Namespace) -> int:
    from xla_emitters.dialects.hlo.device_groups import devices_of
    from xla_emitters.explore.bundle_cases import bundle_case
    from xla_emitters.explore.listing import LeftOut, compilable, kernels_of_one_device
    from xla_emitters.pipelines.compiler import read_module
    from xla_emitters.runtime.bundle.bundle import Case, ProgramCase, refused_on_gpu, write_bundle

    refuse_second_reader("bundle", *options.files)
    if options.abi == "c":
        return _for_c(options)
    cases, programs, left_out = list[Case](), list[ProgramCase](), list[LeftOut]()
    with progress(f"compiling {len(options.files)} files"):
        for name in options.files:
            given, chosen = read_given(options, name), compile_options(options)
            if given.is_program:
                programs.append(_program_case(options, given))
                continue
            module = read_module(given.source)
            if chosen.fusion is None and (devices := devices_of(module)) > 1:
                module, left = kernels_of_one_device(module, chosen)
                left_out += left
                print(
                    f"note: {given.stem} is for {devices} devices: the bundle has its kernels, each on inputs of its own,"
                    " and no collectives",
                    file=sys.stderr,
                )
            elif options.keep_going:
                module, left = compilable(module, chosen)
                left_out += left
            cases.append(bundle_case(module, chosen, name=given.stem, seed=options.seed))
    for made in cases:
        if reason := refused_on_gpu(made.program):
            print(f"note: {made.name} will be refused where it is run: {reason}", file=sys.stderr)
    for program in programs:
        if reason := program.program.rows["refused"]:
            print(f"note: {program.name} will be refused where it is run: {reason}", file=sys.stderr)
    if options.output == "-":
        archive = io.BytesIO()
        write_bundle(archive, cases, programs)
        sys.stdout.buffer.write(archive.getvalue())
        return print_left_out(left_out)
    with file_errors(f"cannot write {options.output}", "bundle"):
        write_bundle(options.output, cases, programs)
    kernels = sum(len(case.program.kernels) for case in cases)
    kernels += sum(len(program.program.rows["kernels"]) for program in programs)
    held = f"{counted(len(cases) + len(programs), 'program')}, {counted(kernels, 'kernel')} for {options.target}"
    print(f"{options.output}: {held}; run it with: python {options.output}")
    return print_left_out(left_out)


def _program_case(options: argparse.Namespace, given: Given) -> ProgramCase:
    """The case of a program with unknown sizes, at each of the given sizes; without any, a case of a program whose sizes are known."""
    from xla_emitters.explore.bundle_cases import bundle_program

    program = given.compiled(replace(compile_options(options), record="none"))
    sizes = [sizes_of(program, each, options.files) for each in options.sizes or [None]]
    return bundle_program(program, given.text, sizes, name=given.stem, seed=options.seed)


def _for_c(options: argparse.Namespace) -> int:
    """Writes the files of each program into the directory."""
    from xla_emitters.pipelines.c_bundle import c_bundle, c_name

    directory, files = Path(options.output), dict[str, str]()
    if options.output == "-":
        raise UsageError("--abi c writes several files", stage="bundle", help="-o DIR")
    for name in options.files:
        if not (given := read_given(options, name)).is_program:
            raise Unsupported(
                f"{name} is HLO text: --abi c takes programs in StableHLO",
                stage="bundle",
                help="without --abi, a bundle holds its kernels for a GPU",
            )
        program = given.compiled(replace(compile_options(options), record="none"))
        with progress(f"compiling {given.name} to a library for C"):
            called = c_name(given.stem if name != "-" else program.name)
            if (other := files.setdefault(called, name)) != name:
                raise UsageError(
                    f"{other} and {name} would both be {called}.o", stage="bundle", help="a directory for each"
                )
            made = c_bundle(program, called)
        with file_errors(f"cannot write {directory}", "bundle"):
            directory.mkdir(parents=True, exist_ok=True)
            for each, data in made.items():
                (directory / each).write_bytes(data)
        sources = (str(directory / each) for each in (f"{called}.c", f"{called}.o", "ral.c"))
        command = shlex.join(["cc", "-I", str(directory), "main.c", *sources, "-lm"])
        print(f"{directory}: {', '.join(made)}; include {called}.h, and compile with: {command}")
    return 0
