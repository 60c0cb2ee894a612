"""`xla-emitters check`: runs every stage of each file and compares it with the NumPy reference; prints one row per file."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from xla_emitters.errors import NumbersDiffer, UsageError
from xla_emitters.tools.common import (
    add_arrays,
    add_compilation,
    add_input,
    arrays_source,
    print_warnings,
    read_source,
    refuse_second_reader,
)
from xla_emitters.tools.failures import INTERRUPTED, reported
from xla_emitters.tools.terminal import progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser, several=True)
    add_compilation(parser)
    parser.add_argument(
        "--stages", default="all", help="all (default), passes (after every pass), or a comma-separated list of stages"
    )
    add_arrays(parser)
    parser.add_argument(
        "--blocks", type=int, default=0, metavar="N", help="run at most N blocks, spread over the grid; 0: all"
    )
    parser.add_argument(
        "--no-sanitize",
        action="store_true",
        help="do not check for races and for reads of unwritten shared memory",
    )
    parser.add_argument(
        "--atol",
        "--abs_error_bound",
        type=float,
        help="allow this absolute difference instead of the error bounds of the ops",
    )
    parser.add_argument("--rtol", "--rel_error_bound", type=float, help="allow this relative difference instead")


def run(options: argparse.Namespace) -> int:
    """Prints one row per file; a file that fails does not stop the others. Returns the highest exit code."""
    if options.inputs and len(options.files) > 1:
        raise UsageError(f"--inputs needs exactly one file, got {len(options.files)}", stage="check")
    refuse_second_reader("check", *options.files, options.inputs)
    width = max(len(name) for name in options.files)
    codes: list[int] = []
    for name in options.files:
        row: list[str] = []
        codes.append(reported(partial(check_one, options, name, row)))
        print(f"{name:<{width}}  {row[0] if row else 'not run'}", flush=True)
        for kernel in row[1:]:
            print(f"{'':<{width}}    {kernel}", flush=True)
        if codes[-1] == INTERRUPTED:
            break
    return max(codes)


def check_one(options: argparse.Namespace, name: str, row: list[str]) -> int:
    """Checks one file; appends its summary to `row` and, if there are several kernels, one summary each. raises what `check` raises."""
    from xla_emitters.explore.check import check

    with progress(f"checking {name}"):
        report = check(
            read_source(name),
            target=options.target,
            fusion=options.fusion,
            hero_rules=options.hero_rules,
            triton=options.triton,
            stages=options.stages,
            seed=options.seed,
            inputs=arrays_source(options.inputs),
            blocks=options.blocks,
            atol=options.atol,
            rtol=options.rtol,
            sanitize=not options.no_sanitize,
        )
    row += [report.summary, *(f"kernel {kernel.name}: {kernel.summary}" for kernel in report.kernels)]
    if report.program is not None:
        print_warnings(report.program)
    for detail in report.details:
        print(f"    {detail}", file=sys.stderr)
    return 0 if report.ok else NumbersDiffer.exit_code
