"""`xla-emitters bundle`: writes a zip of compiled kernels with the recipe of their inputs and the bounds of their results."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from xla_emitters.errors import UsageError
from xla_emitters.tools.common import (
    add_compilation,
    add_input,
    compile_options,
    counted,
    read_source,
    refuse_second_reader,
)
from xla_emitters.tools.terminal import progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser, several=True)
    add_compilation(parser)
    parser.add_argument(
        "-o", "--output", metavar="KERNELS.zip", required=True, help="the zip to write; '-' is standard output"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the random inputs; default 0")


def run(options: argparse.Namespace) -> int:
    from xla_emitters.explore.check import bundle_case
    from xla_emitters.runtime.bundle import write_bundle

    refuse_second_reader("bundle", *options.files)
    with progress(f"compiling {len(options.files)} files"):
        cases = [
            bundle_case(
                read_source(name),
                compile_options(options),
                name=Path(name).stem if name != "-" else "stdin",
                seed=options.seed,
            )
            for name in options.files
        ]
    if options.output == "-":
        archive = io.BytesIO()
        write_bundle(archive, cases)
        sys.stdout.buffer.write(archive.getvalue())
        return 0
    try:
        write_bundle(options.output, cases)
    except OSError as error:
        raise UsageError(f"cannot write {options.output}: {error.strerror}", stage="bundle") from error
    kernels = sum(len(case.program.kernels) for case in cases)
    held = f"{counted(len(cases), 'program')}, {counted(kernels, 'kernel')} for {options.target}"
    print(f"{options.output}: {held}; run it with: python {options.output}")
    return 0
