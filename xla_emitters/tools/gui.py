"""`xla-emitters-gui`: xDSL's terminal program for building pipelines, with our dialects and passes and HLO text as input.

    xla-emitters-gui examples/gelu.hlo                                    # the `hlo` dialect; choose passes in the tree
    xla-emitters-gui kernel.mlir -p xla-flatten-tensors,canonicalize      # starts with these passes chosen

Stock `xdsl-gui` is installed by the same extra, `[notebook]`, but lists only xDSL's own passes: it does not read the entry points by which
other packages add theirs. This program lists the passes of `xla-emitters-opt`. xDSL prints the IR and runs the passes, without our printer
and without remarks; for those, use `xla-emitters-opt`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xdsl.passes import ModulePass, PassPipeline

from xla_emitters.dialects.context import DIALECTS, parse_ir
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.support.extras import installed
from xla_emitters.text.binary import reading
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.tools.failures import reported
from xla_emitters.tools.pass_list import available, parse_passes, passes_of


def make_app(file: str | None, passes: str = "") -> Any:
    """The Textual application, not yet running. raises ToolError without the extra; ParseError or VerifyError for a wrong input."""
    with installed("the extra [notebook]", "gui", extras="notebook"):
        from xdsl.interactive.app import InputApp
    factories = available()
    # The tree of passes takes classes, not functions that load them.
    kinds: list[tuple[str, type[ModulePass]]] = sorted((name, factory()) for name, factory in factories.items())
    chosen = PassPipeline(passes_of(parse_passes(passes), factories)).passes
    text = None if file is None else text_of(file)
    return InputApp(tuple(DIALECTS.items()), tuple(kinds), file, text, tuple(chosen))


def text_of(file: str) -> str:
    """MLIR text of the file, verified; HLO text is converted to the `hlo` dialect."""
    path = Path(file)
    read = parse_hlo if path.suffix in (".hlo", ".pb") else parse_ir
    return print_ir(read(*reading.text_of(path.read_bytes(), file)))


def main(args: Sequence[str] | None = None) -> int:
    """Runs until the key `q`; returns the exit code of docs/reference/contracts."""
    parser = argparse.ArgumentParser(prog="xla-emitters-gui", description="Build a pipeline of passes in the terminal.")
    parser.add_argument("file", nargs="?", help="MLIR text, or HLO text in a file with the ending .hlo")
    parser.add_argument("-p", "--passes", default="", help="comma-separated passes that are chosen at the start")
    options = parser.parse_args(args)

    def run() -> int:
        make_app(options.file, options.passes).run()
        return 0

    return reported(run)


if __name__ == "__main__":
    sys.exit(main())
