"""Warm compile time of the fusions of the corpus, ours against the real XLA's, and the share of each of our passes.

    python -m benchmarks.corpus_compile_time                       every file of every kind
    python -m benchmarks.corpus_compile_time loop --every 10       of one kind, every tenth
    python -m benchmarks.corpus_compile_time --against ../before   also beside another tree of this project, in turn

Each file is compiled by both in turn, in one process with the cache off, and the better of the rounds counts. Ours is HLO text to PTX, and
again with our ptxas behind it; XLA's is HLO text to an executable without dumps and includes its own ptxas run. Two clocks: `wall`, and
`CPU`, the processor time of this process and of its children, which other work on the machine disturbs less. Needs the extra [xla].
"""

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import geometric_mean

from benchmarks.compile_time import milliseconds
from benchmarks.table import header, print_table
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.real_xla import XlaGpu
from xla_emitters.lowering.toolchain.machine_code import assemble
from xla_emitters.pipelines.compiler import compile
from xla_emitters.program import Program
from xla_emitters.settings import read_settings

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"
KINDS = ("loop", "reduction", "transpose", "concatenate", "scatter", "dynamic_update_slice", "memcpy")
CLOCKS = ("wall", "CPU")


@dataclass(frozen=True)
class Row:
    """One file: milliseconds (wall, CPU) of our way to PTX, of ptxas on that PTX, of XLA, and of another tree's way to PTX."""

    file: Path
    ours: tuple[float, float]
    ptxas: tuple[float, float]
    xla: tuple[float, float]
    other: tuple[float, float] | None = None

    def ratio(self, clock: int, *, with_ptxas: bool = False) -> float:
        return (self.ours[clock] + with_ptxas * self.ptxas[clock]) / self.xla[clock]


def better(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return min(one[0], other[0]), min(one[1], other[1])


class OtherTree:
    """Another tree of this project, in a process of its own that stays: compiles one file after the other."""

    PROGRAM = """
import json, sys
from functools import partial
from benchmarks.compile_time import milliseconds
from xla_emitters.pipelines.compiler import compile
for path in sys.stdin:
    text = open(json.loads(path)).read()
    print(json.dumps(milliseconds(partial(compile, text, record="none", cache=False))), flush=True)
"""

    def __init__(self, tree: Path) -> None:
        command = [sys.executable, "-c", self.PROGRAM]
        environment = os.environ | {"PYTHONPATH": str(tree)}
        self._process = subprocess.Popen(
            command, cwd=tree, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def milliseconds(self, path: Path) -> tuple[float, float]:
        """Wall time and processor time of compiling a file."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(str(path.resolve())), file=self._process.stdin, flush=True)
        wall, cpu = json.loads(self._process.stdout.readline())
        return wall, cpu


def measured(files: list[Path], rounds: int, shares: dict[str, float], tree: OtherTree | None = None) -> Iterator[Row]:
    """A row for each file that both compile; `shares` counts the milliseconds of our passes."""
    xla, toolchain = XlaGpu(), read_settings().toolchain
    for _ in range(2):  # loads what is loaded on first use
        _compiled(files[0].read_text(), [])
        if tree is not None:
            tree.milliseconds(files[0])
    for path in files:
        text = path.read_text()
        ours = ptxas = theirs = other = (float("inf"), float("inf"))
        made: list[Program] = []
        try:
            for _ in range(rounds):
                theirs = better(theirs, milliseconds(partial(xla.compile, text)))
                ours = better(ours, milliseconds(partial(_compiled, text, made)))
                ptxas = better(ptxas, milliseconds(partial(assemble, made[-1].code, "sm_90", toolchain)))
                other = better(other, tree.milliseconds(path)) if tree is not None else other
        except XlaEmittersError as error:
            print(f"{path.name}: {error.message}", file=sys.stderr)
            continue
        fastest = min(made, key=lambda each: sum(step.seconds for trace in each.traces for step in trace.steps))
        for trace in (fastest.graph, *fastest.traces):
            for step in trace.steps:
                shares[step.name if trace is not fastest.graph else "passes on HLO"] += step.seconds * 1e3
        shares["all"] += ours[0]
        yield Row(path, ours, ptxas, theirs, None if tree is None else other)


def _compiled(text: str, made: list[Program]) -> None:
    made.append(compile(text, record="none", cache=False))


def print_means(rows: list[Row]) -> None:
    """Geometric means of ours over XLA's by kind."""
    titles = ["ours / XLA's", "files", *(f"{clock}{with_}" for with_ in ("", ", our ptxas too") for clock in CLOCKS)]
    table: list[list[str]] = []
    for kind in [*dict.fromkeys(row.file.parent.name for row in rows), "all"]:
        own = [row for row in rows if kind in ("all", row.file.parent.name)]
        cells = [
            f"{geometric_mean(row.ratio(clock, with_ptxas=with_) for row in own):.2f}"
            for with_ in (False, True)
            for clock in (0, 1)
        ]
        worst = max(row.ratio(0) for row in own), max(row.ratio(1) for row in own)
        pairs = [(row.ours, row.other) for row in own if row.other is not None]
        beside = [
            f"{geometric_mean(mine[clock] / other[clock] for mine, other in pairs):.2f}" for clock in (0, 1) if pairs
        ]
        table.append([kind, str(len(own)), *cells, *(f"{ratio:.2f}" for ratio in worst), *beside])
    others = [f"ours / other tree's, {clock}" for clock in CLOCKS if any(row.other for row in rows)]
    print_table([*titles, "worst wall", "worst CPU", *others], table)


def print_shares(shares: dict[str, float]) -> None:
    """The share of our time of each pass; the rest is reading, planning, and the garbage collector."""
    whole = shares.pop("all")
    shares["rest"] = whole - sum(shares.values())
    rows = [
        [name, f"{own:.0f}", f"{100 * own / whole:.1f} %"]
        for name, own in sorted(shares.items(), key=lambda each: -each[1])
    ]
    print_table(["pass", "ms", "share"], rows)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile time over the corpus against the real XLA's.")
    parser.add_argument("kinds", nargs="*", help="folders of the corpus; all without")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--every", type=int, default=1, help="every N-th file of a kind")
    parser.add_argument("--worst", type=int, default=20, help="how many rows to print, the worst first; 0: all")
    parser.add_argument("--against", type=Path, metavar="TREE", help="another tree of this project, to compare with")
    options = parser.parse_args()
    files = [
        path
        for kind in options.kinds or KINDS
        for path in sorted((CORPUS / kind).glob("*.hlo"))[options.every // 2 :: options.every]
    ]
    shares = defaultdict[str, float](float)
    try:
        rows = list(measured(files, options.rounds, shares, OtherTree(options.against) if options.against else None))
    except XlaEmittersError as error:
        print(f"{error.message}; {error.help}", file=sys.stderr)
        return error.exit_code
    print(header(f"{len(rows)} files, better of {options.rounds} rounds interleaved, ms"))
    print_means(rows)
    print()
    shown = sorted(rows, key=lambda row: row.ratio(1), reverse=True)[: options.worst or len(rows)]
    print_table(
        ["", "ours, to PTX", "our ptxas", "XLA, with ptxas", "wall", "CPU"],
        [
            [f"{row.file.parent.name}/{row.file.name}", *(f"{each[0]:.1f}" for each in (row.ours, row.ptxas, row.xla))]
            + [f"{row.ratio(clock):.2f}" for clock in (0, 1)]
            for row in shown
        ],
    )
    print()
    print_shares(shares)
    return 0


if __name__ == "__main__":
    # One line of XLA's log for each compilation is left out.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.exit(main())
