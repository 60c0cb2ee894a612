"""`xla-emitters list`: every fusion and library call of a module or a program, with its emitter and launch, or why it is not supported."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from xla_emitters.errors import UsageError
from xla_emitters.support.columns import aligned
from xla_emitters.tools.dump_directory import files_in
from xla_emitters.tools.file_rows import PrintedRow, rows_of
from xla_emitters.tools.given import read_given
from xla_emitters.tools.input_output import counted
from xla_emitters.tools.terminal import progress
from xla_emitters.tools.verb_options import add_compilation, add_engine, add_file, compile_options

if TYPE_CHECKING:
    from xla_emitters.explore.listing import ListedCall, ListedKernel, Listing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    add_compilation(parser)
    parser.add_argument(
        "--format",
        choices=("dot", "model-explorer"),
        help="print the steps (kernels, library calls, copies) as a graph: for Graphviz, or JSON for Model Explorer",
    )
    parser.add_argument(
        "--fusion", metavar="NAME", help="of a module, with --format: the instructions inside of this fusion"
    )
    add_engine(parser, "file")
    parser.add_argument("--json", action="store_true", help="as JSON: see docs/json.md")


def run(options: argparse.Namespace) -> int:
    if options.format:
        return _graph(options)
    if options.fusion:
        raise UsageError("--fusion is for --format", stage="list")
    files = files_in(options.file)
    import_module("xla_emitters.explore.listing")  # before processes are forked, which then share it
    rows = list[PrintedRow]()
    for row in rows_of(options, files, "listing", PrintedRow, list_file):
        rows.append(row)
        if not options.json:
            print(f"{row.file}:\n{row.text}" if len(files) > 1 else row.text, end="", flush=True)
    if options.json and len(files) > 1:
        print(json.dumps({"files": [{"file": row.file, **row.data} for row in rows]}, indent=2))
    elif options.json and not rows[0].exit_code:
        print(json.dumps(rows[0].data, indent=2))
    return max(row.exit_code for row in rows)


def _graph(options: argparse.Namespace) -> int:
    """Prints the steps of a module or a program as a graph, or the instructions of a fusion."""
    from xla_emitters.trace.graph import dot, model_explorer

    given, how = read_given(options), compile_options(options)
    with progress(f"reading {given.name}"):
        if options.fusion:
            from xla_emitters.explore.instruction_graph import kernel_graph
            from xla_emitters.pipelines.compiler import read_module

            graph = kernel_graph(read_module(given.source), how)
        else:
            from xla_emitters.program.step_graph import graph_of_steps

            graph = graph_of_steps(
                given.compiled(replace(how, stage="kernels" if given.is_program else "xla_gpu", record="none"))
            )
    print(dot(graph) if options.format == "dot" else json.dumps(model_explorer(graph), indent=1))
    return 0


def list_file(options: argparse.Namespace, file: str, row: PrintedRow) -> int:
    """Fills in the row of one module."""
    from xla_emitters.explore.listing import listing_of

    given, how = read_given(options, file), compile_options(options)
    with progress(f"listing {given.name}"):
        listing = listing_of(given.checked_source(options), how)
    row.data = listing.to_json()
    rows = [kernel_row(kernel, with_types=given.is_program) for kernel in listing.kernels]
    rows += [call_row(call, with_types=given.is_program) for call in (*listing.library_calls, *listing.other_calls)]
    row.text = "\n".join((*aligned(rows), ", ".join(_counts(listing, is_program=given.is_program)), ""))
    return 0


def _counts(listing: Listing, *, is_program: bool) -> Iterator[str]:
    """The parts of the last line."""
    why = f" ({listing.no_kernels})" if listing.no_kernels else ""
    yield f"{counted(len(listing.kernels), 'fusion')}{why}"
    calls, others = len(listing.library_calls), len(listing.other_calls)
    calls += sum(len(kernel.calls) for kernel in listing.kernels)
    yield counted(calls if is_program else calls + others, "library call")
    if is_program:
        yield counted(others, "other op")
        yield f"{listing.of_sizes} of sizes"
    refused = sum(not row.supported for row in (*listing.kernels, *listing.library_calls, *listing.other_calls))
    yield f"{refused} not supported"


def kernel_row(kernel: ListedKernel, *, with_types: bool) -> tuple[str, str, str, str, str]:
    """Name, computation, emitter, types of results, and launches or the reason why it is not supported."""
    emitter = kernel.emitter or ("call" if kernel.calls else "-")
    made = " ".join(filter(None, [emitter, kernel.hero and f"({kernel.hero})"]))
    row = kernel.name, kernel.computation, made, ", ".join(kernel.results) if with_types else ""
    if not kernel.supported:
        return *row, f"not supported: {kernel.reason}"
    said = [_launch(each["grid"], each["block"]) for each in kernel.launch]
    if with_types:  # of a program: the host launches one of them
        said = [f"{launch} ({count} kernels)" if count > 1 else launch for launch, count in Counter(said).items()]
    split = f"; XLA: {kernel.other_compiler}" if kernel.other_compiler else ""
    return *row, ", ".join([*said, *(f"call {call}" for call in kernel.calls)]) + split


def _launch(grid: list[int | None], block: list[int]) -> str:
    threads = "x".join(map(str, block))
    return f"blocks of {threads}" if None in grid else f"{'x'.join(map(str, grid))} of {threads}"


def call_row(call: ListedCall, *, with_types: bool) -> tuple[str, str, str, str, str]:
    """Name, computation, call target, types of results, and the library function or how else it runs, or why it does not."""
    how = f"call {call.function}" if call.function and with_types else call.function or call.reason
    return (
        *(call.name, call.computation, call.target, ", ".join(call.results) if with_types else ""),
        how if call.supported else f"not supported: {call.reason}",
    )
