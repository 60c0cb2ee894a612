"""For a crash of ours, writes a small input: the reproducer's directory gets the original file and a reduced one.

    xla-emitters-bug-x1/reproducer.txt     the command line and the traceback
    xla-emitters-bug-x1/original.hlo       the unchanged file; .mlir for StableHLO
    xla-emitters-bug-x1/reduced.hlo        a smaller file that fails by the same bug

Reducing stops after `BUDGET_SECONDS`. No reduced file is written for standard input, nor for a failure outside of compilation: for
example a failure that depends on the arrays.
"""

from __future__ import annotations

import argparse
import multiprocessing
from functools import partial
from pathlib import Path

from xla_emitters.errors import XlaEmittersError
from xla_emitters.tools.verb_options import module_options
from xla_emitters.tools.workers import isolated

BUDGET_SECONDS = 20.0


def reduced_crash(name: str, options: argparse.Namespace, directory: Path) -> str:
    """Writes both files to `directory`; returns the lines that name them, or "" where nothing can be reduced.

    name     the file that was compiled
    options  the options of a verb that uses `add_compilation`
    """
    from xla_emitters.explore.reduce.reduce import reduce
    from xla_emitters.explore.reduce.symptoms import Crash, crash_of
    from xla_emitters.pipelines.kept_programs import read_text
    from xla_emitters.text.stablehlo import is_stablehlo

    if name == "-" or multiprocessing.current_process().daemon:
        return ""
    try:
        text, _ = read_text(Path(name))
        suffix = "mlir" if is_stablehlo(text) else "hlo"
        compiling = module_options(options)
        (directory / f"original.{suffix}").write_text(text, "utf-8")
        signature = isolated(partial(crash_of, text, compiling), BUDGET_SECONDS)
        if not isinstance(signature, str):
            return ""
        crash = Crash(compiling, signature)
        found = reduce(
            text, lambda candidate: bool(isolated(partial(crash, candidate), BUDGET_SECONDS)), seconds=BUDGET_SECONDS
        )
    except (XlaEmittersError, OSError):
        return ""
    path, (before, after) = directory / f"reduced.{suffix}", found.instructions
    path.write_text(found.text, "utf-8")
    end = (
        ""
        if found.is_finished
        else f", after {BUDGET_SECONDS:g} s not yet finished: xla-emitters reduce {name} --keep-crash"
    )
    return f"    {path} is the input reduced from {before} to {after} instructions{end}"
