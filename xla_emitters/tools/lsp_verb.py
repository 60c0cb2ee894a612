"""`xla-emitters lsp`: the editor's server, on standard input and output."""

from __future__ import annotations

import argparse
import os
import signal

from xla_emitters.tools.verb_options import add_compilation, add_limits, module_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compilation(parser)
    add_limits(parser)
    parser.add_argument("--stdio", action="store_true", help="always so; editors ask for it")


def run(options: argparse.Namespace) -> int:
    from xla_emitters.tools.language_server import make_server
    from xla_emitters.tools.served import Answerer

    answerer = Answerer(module_options(options), options.timeout, options.max_memory)

    def stop(number: int, _: object) -> None:
        # A thread reads standard input: an exception would wait until that ends.
        answerer.end()
        os._exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        make_server(answerer).start_io()
    finally:
        answerer.end()
    return 0
