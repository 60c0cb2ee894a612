"""`xla-emitters show`: one HTML file with every pass, stage, line and access of a compilation."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from xla_emitters.errors import ToolError
from xla_emitters.settings import Toolchain
from xla_emitters.tools.given import Given, read_given, sizes_given
from xla_emitters.tools.input_output import print_left_out, write_file
from xla_emitters.tools.options import add_compilation, add_input, add_keep_going, add_sizes, compile_options
from xla_emitters.tools.terminal import progress

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from xla_emitters.explore.program_cost import LaunchAt
    from xla_emitters.explore.verdict import Verdict
    from xla_emitters.page.data import Chunks
    from xla_emitters.pipelines.options import CompileOptions

CHECKED_BLOCKS = 4
DEAREST = 4
"""Kernels with the IR after each pass, without --kernels."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    add_compilation(parser)
    add_keep_going(parser)
    add_sizes(parser)
    parser.add_argument(
        "-o", "--output", metavar="PAGE.html", required=True, help="the file to write; '-' is standard output"
    )
    parser.add_argument(
        "--kernels",
        metavar="N",
        type=_number_of_kernels,
        help="the kernels of a program with the IR after each pass: the N that are expected to take longest, or all; "
        f"of the others there are the stages; default {DEAREST}",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help=f"run every stage on the CPU, {CHECKED_BLOCKS} blocks of each kernel, and show whether its numbers are right",
    )


def _number_of_kernels(text: str) -> int:
    if text == "all":
        return sys.maxsize
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is neither a number nor 'all'")
    return int(text)


def run(options: argparse.Namespace) -> int:
    from xla_emitters.dialects.collector import collector_at_rest

    with collector_at_rest():  # listings are kept for all passes of all kernels: a collector finds nothing to free
        return _write(options)


def _write(options: argparse.Namespace) -> int:
    from xla_emitters.page.data import Chunks
    from xla_emitters.page.write import page_html

    given, chunks = read_given(options), Chunks()
    if given.is_program:
        write_page(options.output, page_html(_program_index(options, given, chunks), chunks.texts))
        return 0
    # Imported here, so that a program does not load what compiles modules.
    from xla_emitters.explore.listing import LeftOut, compilable
    from xla_emitters.pipelines.compiler import read_module

    how = replace(
        compile_options(options), stage=last_stage(options.settings.toolchain), record="passes", line_info=True
    )
    module, left_out = read_module(given.source), tuple[LeftOut, ...]()
    if options.keep_going:
        with progress(f"compiling {options.file}"):
            module, left_out = compilable(module, how)
    verdict = None
    if options.check:
        from xla_emitters.explore.check import check

        with progress(f"checking {options.file}"):
            keywords = replace(how, verify=True, record="none", line_info=False).as_keywords()
            verdict = check(given.source, blocks=CHECKED_BLOCKS, keep_going=options.keep_going, **keywords)
    write_page(options.output, page_html(module_index(module, how, options.file, chunks, verdict), chunks.texts))
    return print_left_out(left_out)


def _program_index(options: argparse.Namespace, given: Given, chunks: Chunks) -> dict[str, Any]:
    """The index of a program's page; if sizes are given with its costs and accesses, and with --check its verdict at these sizes."""
    from xla_emitters.page.data import costs_of, dynamic_data
    from xla_emitters.pipelines.program_inputs import drawn_inputs

    how, most = compile_options(options), DEAREST if options.kernels is None else int(options.kernels)
    program = given.compiled(replace(how, record="passes" if most == sys.maxsize else "stages"))
    if len(program.outline.fusions) <= most < sys.maxsize:
        program = given.compiled(replace(how, record="passes"))  # again: it is a small one
    name, sizes, stage = given.name, sizes_given(options.sizes), last_stage(how.toolchain)
    verdict = costs = None
    launches: list[LaunchAt] = []
    if options.check:
        from xla_emitters.explore.program_stages import check_program

        with progress(f"checking {name}"):
            verdict = check_program(program, drawn_inputs(program, sizes, 0))
    if sizes or not program.symbols:
        from xla_emitters.explore.cost import cost
        from xla_emitters.explore.program_cost import launches_of

        with progress(f"running the host of {name}"):
            launches = launches_of(program, drawn_inputs(program, sizes, 0))
        if stage == "sass":
            with progress(f"pricing {name}"):
                priced = cost(program, sizes=sizes, targets=[program.target])
            costs = costs_of(priced)
    with progress(f"compiling the kernels of {name}"):
        return dynamic_data(program, chunks, stage, most=most, verdict=verdict, costs=costs, launches=launches)


def module_index(
    module: ModuleOp, how: CompileOptions, file: str, chunks: Chunks, verdict: Verdict | None = None
) -> dict[str, Any]:
    """The index of a module's page, with cost reports where the installed tools can make machine code; its texts are added to `chunks`.

    how   options with the last stage, recorded IR and `line_info`
    file  the file's name, for the progress line
    """
    from xla_emitters.explore.cost import cost
    from xla_emitters.page.data import costs_of, program_data
    from xla_emitters.pipelines.compiler import compile_module

    with progress(f"compiling {file}"):
        program = compile_module(module, how)
    costs = None
    if how.stage == "sass":
        with progress(f"pricing {file}"):
            priced = cost(module, targets=[how.target], **replace(how, line_info=False, verify=False).as_keywords())
        costs = costs_of(priced)
    return program_data(program, chunks, verdict=verdict, costs=costs)


def last_stage(toolchain: Toolchain) -> str:
    """The last stage that the installed tools can make. raises UsageError where the toolchain names a wrong tool."""
    from xla_emitters.lowering.tools import find_tool
    from xla_emitters.lowering.ways import ptx_reason_missing

    if ptx_reason_missing(toolchain) is not None:
        return "llvm-dialect"
    try:
        for name in ("ptxas", "nvdisasm"):
            find_tool(name, toolchain)
    except ToolError:
        return "ptx"
    return "sass"


def write_page(output: str, page: str) -> None:
    """Writes the page and prints its path. raises UsageError where it cannot be written."""
    write_file(output, page)
    if output != "-":
        print(f"{output}: {len(page) / 1000:.0f} kB")
