"""Warm compile time of every fusion of one kind in the corpus, ours against the real XLA's.

    python -m benchmarks.corpus_compile_time loop

Each file is compiled by both in turn, in one process with the cache off, and the better of the rounds counts. Ours is HLO text to PTX;
XLA's is HLO text to an executable without dumps and includes its own ptxas run. Needs the extra [xla]. The geometric mean of the ratios
stands last.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean

from benchmarks.table import header, print_table
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.xla import XlaGpu
from xla_emitters.pipelines.compiler import compile

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"


def milliseconds(function: Callable[[], object]) -> float:
    begin = time.perf_counter()
    function()
    return (time.perf_counter() - begin) * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile time over the corpus against the real XLA's.")
    parser.add_argument("kinds", nargs="*", default=["loop"], help="folders of the corpus")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worst", type=int, default=20, help="how many rows to print, the worst first; 0: all")
    options = parser.parse_args()
    files = [path for kind in options.kinds for path in sorted((CORPUS / kind).glob("*.hlo"))]
    try:
        xla = XlaGpu()
    except XlaEmittersError as error:
        print(f"{error.message}; {error.help}", file=sys.stderr)
        return error.exit_code
    rows = list[tuple[float, str, float, float]]()
    for path in files:
        text = path.read_text()
        ours = theirs = float("inf")
        try:
            for _ in range(options.rounds):
                theirs = min(theirs, milliseconds(lambda text=text: xla.compile(text)))
                ours = min(ours, milliseconds(lambda text=text: compile(text, record="none", cache=False)))
        except XlaEmittersError as error:
            print(f"{path.name}: {error.message}", file=sys.stderr)
            continue
        rows.append((ours / theirs, f"{path.parent.name}/{path.name}", ours, theirs))
    print(header(f"{len(rows)} files, better of {options.rounds} rounds interleaved, ms"))
    shown = sorted(rows, reverse=True)[: options.worst or len(rows)]
    print_table(
        ["", "ours, to PTX", "XLA, with ptxas", "ratio"],
        [[name, f"{ours:.1f}", f"{theirs:.1f}", f"{ratio:.2f}"] for ratio, name, ours, theirs in shown],
    )
    print(f"geometric mean {geometric_mean(ratio for ratio, *_ in rows):.2f}, worst {max(rows)[0]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
