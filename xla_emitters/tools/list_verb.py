"""`xla-emitters list`: every fusion and library call of a module, with its emitter and launch, or why it is not supported."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from xla_emitters.tools.input_output import counted, read_source
from xla_emitters.tools.options import add_compilation, add_file, compile_options
from xla_emitters.tools.program_verbs import list_program, program_text
from xla_emitters.tools.terminal import progress

if TYPE_CHECKING:
    from xla_emitters.explore.listing import ListedCall, ListedKernel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    add_compilation(parser)
    parser.set_defaults(fusion=None)
    parser.add_argument("--json", action="store_true", help="as JSON: see docs/json.md")


def run(options: argparse.Namespace) -> int:
    from xla_emitters.explore.listing import list_module
    from xla_emitters.pipelines.compiler import read_module

    source = read_source(options.file)
    if program := program_text(source):
        return list_program(options, *program)
    module = read_module(source)
    with progress(f"listing {options.file}"):
        listing = list_module(module, compile_options(options))
    if options.json:
        print(json.dumps(listing.to_json(), indent=2))
        return 0
    rows = [kernel_row(kernel) for kernel in listing.kernels]
    rows += [call_row(call) for call in (*listing.library_calls, *listing.other_calls)]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        print("  ".join([*cells, row[3]]).rstrip())
    calls = len(listing.library_calls) + len(listing.other_calls) + sum(len(kernel.calls) for kernel in listing.kernels)
    refused = sum(not row.supported for row in (*listing.kernels, *listing.library_calls, *listing.other_calls))
    print(f"{counted(len(listing.kernels), 'fusion')}, {counted(calls, 'library call')}, {refused} not supported")
    return 0


def kernel_row(kernel: ListedKernel) -> tuple[str, str, str, str]:
    """Name, computation, emitter, and launches or the reason why it is not supported."""
    emitter = kernel.emitter or ("call" if kernel.calls else "-")
    made = " ".join(filter(None, [emitter, kernel.hero and f"({kernel.hero})"]))
    if not kernel.supported:
        return kernel.name, kernel.computation, made, f"not supported: {kernel.reason}"
    launches = [f"{'x'.join(map(str, each['grid']))} of {'x'.join(map(str, each['block']))}" for each in kernel.launch]
    split = f"; XLA: {kernel.other_compiler}" if kernel.other_compiler else ""
    return (
        kernel.name,
        kernel.computation,
        made,
        ", ".join([*launches, *(f"call {call}" for call in kernel.calls)]) + split,
    )


def call_row(call: ListedCall) -> tuple[str, str, str, str]:
    """Name, computation, call target, and the library function or the reason why it is not supported."""
    return call.name, call.computation, call.target, call.function or f"not supported: {call.reason}"
