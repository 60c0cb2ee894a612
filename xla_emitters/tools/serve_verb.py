"""`xla-emitters serve`: the page of `show` in a browser, recompiled while a person types or saves."""

from __future__ import annotations

import argparse
import secrets
from pathlib import Path

from xla_emitters.errors import UsageError
from xla_emitters.tools.verb_options import add_compilation, add_limits, module_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="FILE|DIR",
        nargs="?",
        default=".",
        help="HLO text, StableHLO, a kernel's IR at any stage, or a directory with such files; default: this directory",
    )
    add_compilation(parser)
    parser.add_argument("--port", type=int, default=8765, help="0: any that is free; default 8765")
    parser.add_argument(
        "--address",
        default="127.0.0.1",
        help="127.0.0.1 (default): this machine alone; another one needs a token, which is printed",
    )
    add_limits(parser)


def run(options: argparse.Namespace) -> int:
    # Imported here: --help loads none of it.
    from xla_emitters.explore.page.write import served_html
    from xla_emitters.tools.page_server import LOOPBACK, PageServer, files_of
    from xla_emitters.tools.served import Answerer

    source = Path(options.source)
    if not source.exists():
        raise UsageError(f"there is no {source}", stage="serve")
    files, how = files_of(source), module_options(options)
    answerer = Answerer(how, options.timeout, options.max_memory)
    try:
        token = "" if options.address in LOOPBACK else secrets.token_urlsafe(16)
        with PageServer(options.address, options.port, served_html(how.device.name), files, answerer, token) as server:
            print(f"{server.address}   (Ctrl-C ends it)", flush=True)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                print()
            finally:
                server.is_ended = True
    finally:
        answerer.end()
    return 0
