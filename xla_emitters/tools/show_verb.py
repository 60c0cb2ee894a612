"""`xla-emitters show`: one HTML file with every pass, stage, line and access of a compilation."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from xla_emitters.tools.given import read_given, sizes_given
from xla_emitters.tools.input_output import print_left_out, write_file
from xla_emitters.tools.page_index import CHECKED_BLOCKS, DEAREST, module_index, module_verdict, program_index
from xla_emitters.tools.terminal import progress
from xla_emitters.tools.verb_options import add_compilation, add_input, add_keep_going, add_sizes, compile_options


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
    parser.add_argument(
        "--rewrites",
        action="store_true",
        help="with each single rewrite that a pass made, to step through; of a program, of the kernels with each pass",
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
    from xla_emitters.explore.page.data import Chunks
    from xla_emitters.explore.page.write import page_html

    given, chunks, how = read_given(options), Chunks(), compile_options(options)
    if options.rewrites:
        how = replace(how, record="rewrites")
    if given.is_program:
        most, sizes = DEAREST if options.kernels is None else int(options.kernels), sizes_given(options.sizes)
        index = program_index(given.compiled, given.name, how, sizes, chunks, most=most, checked=options.check)
        write_page(options.output, page_html(index, chunks.texts))
        return 0
    # Imported here, so that a program does not load what compiles modules.
    from xla_emitters.explore.listing import LeftOut, compilable
    from xla_emitters.pipelines.compiler import read_module

    module, left_out = read_module(given.source), tuple[LeftOut, ...]()
    if options.keep_going:
        with progress(f"compiling {options.file}"):
            module, left_out = compilable(module, how)
    verdict = module_verdict(module, how, options.file, keep_going=options.keep_going) if options.check else None
    write_page(options.output, page_html(module_index(module, how, options.file, chunks, verdict), chunks.texts))
    return print_left_out(left_out)


def write_page(output: str, page: str) -> None:
    """Writes the page and prints its path. raises UsageError where it cannot be written."""
    write_file(output, page)
    if output != "-":
        print(f"{output}: {len(page) / 1000:.0f} kB")
