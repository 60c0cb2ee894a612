"""`xla-emitters check`: every stage of every file against the NumPy reference, one row a file."""

from __future__ import annotations

import argparse
import sys

from xla_emitters.errors import NumbersDiffer, UsageError, XlaEmittersError
from xla_emitters.tools.common import add_input, read_source


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser, several=True)
    parser.add_argument(
        "--stages", default="all", help="all (default), 'passes' (after every single pass), or a comma-separated list"
    )
    parser.add_argument("--inputs", metavar="IN.npz", help="arrays p0, p1, ...; default: drawn from --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--blocks", type=int, default=0, metavar="N", help="run at most N blocks, spread over the grid; 0: all")
    parser.add_argument(
        "--atol", "--abs_error_bound", type=float, help="admit this absolute difference instead of the bounds of the ops"
    )
    parser.add_argument("--rtol", "--rel_error_bound", type=float, help="admit this relative difference")


def run(options: argparse.Namespace) -> int:
    from xla_emitters.explore.check import check

    worst = 0
    if options.inputs and len(options.files) > 1:
        raise UsageError("--inputs goes with one file", stage="check")
    width = max(len(name) for name in options.files)
    for name in options.files:
        try:
            report = check(
                read_source(name),
                target=options.target,
                fusion=options.fusion,
                stages=options.stages,
                seed=options.seed,
                inputs=options.inputs,
                blocks=options.blocks,
                atol=options.atol,
                rtol=options.rtol,
            )
        except XlaEmittersError as error:
            # One bad file does not hide the verdict on the others.
            print(f"{name:<{width}}  not run")
            sys.stdout.flush()
            print(error.render(), file=sys.stderr)
            worst = max(worst, error.exit_code)
            continue
        print(f"{name:<{width}}  {report.summary}")
        sys.stdout.flush()
        for detail in report.details:
            print(f"    {detail}", file=sys.stderr)
        if not report.ok:
            worst = max(worst, NumbersDiffer.exit_code)
    return worst
