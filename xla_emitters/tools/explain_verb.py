"""`xla-emitters explain`: the choices made while a fusion, a module or a program was compiled, with their reasons."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from xla_emitters.tools.given import read_given, sizes_given
from xla_emitters.tools.verb_options import add_compilation, add_input, add_mixed_precision, add_sizes, compile_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    add_compilation(parser)
    add_sizes(parser)
    add_mixed_precision(parser)
    parser.add_argument("--json", action="store_true", help="as JSON: see docs/json.md")


def run(options: argparse.Namespace) -> int:
    given, how = read_given(options), compile_options(options)
    sizes = sizes_given(options.sizes)
    # What is explained of a module is in its decisions, of a program also in its stages on tensors.
    program = given.compiled(how if given.is_program else replace(how, stage="llvm-dialect", record="none"))
    if options.json:
        print(json.dumps(program.explained(**sizes), indent=2))
        return 0
    print(program.explain(**sizes))
    if not given.is_program and not how.tune and len(program.kernels) == 1:
        by_rule = given.compiled(replace(how, stage="xla_gpu", record="none", tune="auto"))
        for found in by_rule.traces[0].decisions:
            if found.topic == "tune":
                print(f"  --tune auto takes {found.text}")
    return 0
