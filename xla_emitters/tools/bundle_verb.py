"""`xla-emitters bundle`: writes a zip of compiled programs with the recipe of their inputs and the bounds of their results."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from xla_emitters.errors import UsageError
from xla_emitters.tools.common import (
    add_compilation,
    add_input,
    add_keep_going,
    compile_options,
    counted,
    print_left_out,
    read_source,
    refuse_second_reader,
)
from xla_emitters.tools.program_verbs import refuse_programs
from xla_emitters.tools.terminal import progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser, several=True)
    add_compilation(parser)
    parser.add_argument(
        "-o", "--output", metavar="KERNELS.zip", required=True, help="the zip to write; '-' is standard output"
    )
    add_keep_going(parser)
    parser.add_argument("--seed", type=int, default=0, help="seed of the random inputs; default 0")


def run(options: argparse.Namespace) -> int:
    from xla_emitters.explore.check import bundle_case
    from xla_emitters.explore.listing import LeftOut, compilable
    from xla_emitters.pipelines.compiler import read_module
    from xla_emitters.runtime.bundle import Case, refused_on_gpu, write_bundle

    refuse_second_reader("bundle", *options.files)
    cases, left_out = list[Case](), list[LeftOut]()
    with progress(f"compiling {len(options.files)} files"):
        for name in options.files:
            source = read_source(name)
            refuse_programs(source, "bundle", "a bundle holds kernels, and it has none of its own yet")
            module, chosen = read_module(source), compile_options(options)
            if options.keep_going:
                module, left = compilable(module, chosen)
                left_out += left
            case = Path(name).stem if name != "-" else "stdin"
            cases.append(bundle_case(module, chosen, name=case, seed=options.seed))
    for made in cases:
        if reason := refused_on_gpu(made.program):
            print(f"note: {made.name} will be refused where it is run: {reason}", file=sys.stderr)
    if options.output == "-":
        archive = io.BytesIO()
        write_bundle(archive, cases)
        sys.stdout.buffer.write(archive.getvalue())
        return print_left_out(left_out)
    try:
        write_bundle(options.output, cases)
    except OSError as error:
        raise UsageError(f"cannot write {options.output}: {error.strerror}", stage="bundle") from error
    kernels = sum(len(case.program.kernels) for case in cases)
    held = f"{counted(len(cases), 'program')}, {counted(kernels, 'kernel')} for {options.target}"
    print(f"{options.output}: {held}; run it with: python {options.output}")
    return print_left_out(left_out)
