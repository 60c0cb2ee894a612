"""`xla-emitters explain`: the choices made while a fusion was compiled, with their reasons."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from xla_emitters.tools.input_output import read_source
from xla_emitters.tools.options import add_compilation, add_input, compile_options
from xla_emitters.tools.program_verbs import (
    add_mixed_precision,
    add_sizes,
    explain_program,
    program_text,
    refuse_mixed_precision,
    refuse_sizes,
)
from xla_emitters.trace.explain import explained_json, remarks_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    add_compilation(parser)
    add_sizes(parser)
    add_mixed_precision(parser)
    parser.add_argument("--json", action="store_true", help="as JSON: see docs/json.md")


def run(options: argparse.Namespace) -> int:
    from xla_emitters.pipelines.compiler import compile_module, read_module

    source = read_source(options.file)
    if program := program_text(source):
        return explain_program(options, *program)
    refuse_sizes(options)
    refuse_mixed_precision(options)
    module = read_module(source)
    program = compile_module(module, replace(compile_options(options), stage="llvm-dialect", record="none"))
    if options.json:
        kernels = [explained_json(trace) for trace in program.traces]
        data = {
            "target": program.target,
            **program.outline.to_json(),
            "remarks": remarks_json(program.graph),
            "kernels": kernels,
        }
        print(json.dumps(data, indent=2))
    else:
        print(program.explain())
    return 0
