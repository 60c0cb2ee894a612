"""`xla-emitters maps`: the indexing maps of a fusion, from its results to its parameters or back."""

from __future__ import annotations

import argparse
import json
import sys

from xla_emitters.errors import Unsupported
from xla_emitters.tools.given import read_given
from xla_emitters.tools.verb_options import add_input


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--to-output", action="store_true", help="map elements of parameters to elements of results")
    parser.add_argument(
        "--instruction", default="", metavar="NAME", help="print only the maps that start at the instruction NAME"
    )
    parser.add_argument("--json", action="store_true", help="as JSON: see docs/json.md")


def run(options: argparse.Namespace) -> int:
    from xla_emitters.graph.control_computations import kernel_sources
    from xla_emitters.graph.indexing_analysis import OperandRow, indexing_rows, print_rows, rows_as_json
    from xla_emitters.graph.refusals import refuse_unsupported
    from xla_emitters.graph.view import view_of
    from xla_emitters.pipelines.compiler import read_module

    given = read_given(options)
    if given.is_program:
        raise Unsupported(
            f"{given.name} is a program in StableHLO: indexing maps are of the fusions of HLO text",
            stage="maps",
            help=f"run, check, compile, explain and list take programs; with static sizes, optimize {given.name} -o OUT.hlo makes HLO text",
        )
    module = read_module(given.source)
    found = dict[str, list[OperandRow]]()
    for view in map(view_of, kernel_sources(module, options.fusion)):
        refuse_unsupported(view)
        found[view.name] = indexing_rows(view, to_output=options.to_output, instruction=options.instruction)
    if options.json:
        print(json.dumps({"fusions": {name: rows_as_json(rows) for name, rows in found.items()}}, indent=2))
        return 0
    if not found:
        print(f"note: {given.stem} has no fusion: `xla-emitters list` shows what it calls", file=sys.stderr)
    for name, rows in found.items():
        print(f"fusion {name}\n{print_rows(rows)}")
    return 0
