"""`xla-emitters lsp`: the editor's server, on standard input and output."""

from __future__ import annotations

import argparse

from xla_emitters.tools.options import add_compilation, add_max_memory, module_options

SECONDS = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compilation(parser)
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        default=SECONDS,
        help=f"of one compilation, of its own time; default {SECONDS:g}",
    )
    add_max_memory(parser)
    parser.add_argument("--stdio", action="store_true", help="always so; editors ask for it")


def run(options: argparse.Namespace) -> int:
    from xla_emitters.tools.language_server import make_server
    from xla_emitters.tools.served import Answerer

    answerer = Answerer(module_options(options), options.timeout, options.max_memory)
    try:
        make_server(answerer).start_io()
    finally:
        answerer.end()
    return 0
