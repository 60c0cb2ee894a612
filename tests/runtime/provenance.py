"""Measures how much of the corpus's PTX and SASS has an HLO instruction as source, and whether line information changes the code.

    make provenance                              all 410 files
    make provenance PROVENANCE="--every 10"      one file in ten

Instructions are counted outside the prologue (before the first instruction with a line, and for SASS the code made from
that), without returns and, for SASS, without the padding after the last one. Ends with 1 if code differs, or if less than 90 %
of a file's instructions have a source.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runtime.digests import CORPUS, KINDS

from xla_emitters.lowering.toolchain import machine_code
from xla_emitters.lowering.toolchain.ptx_lines import instruction_at
from xla_emitters.pipelines.compiler import compile
from xla_emitters.trace.records import Line, Trace

WANTED = 0.9
_ENDS = ("ret", "exit", "trap")
_PADDING = re.compile(r"(?:NOP|EXIT|RET|BRA `\((\.L\w+)\))\b")


@dataclass(frozen=True)
class Row:
    """One file: whether the code is the same, and how many of its instructions have a source."""

    name: str
    same_ptx: bool
    same_sass: bool
    counts: Counter[str]


def measured(name: str) -> Row:
    """A corpus file, for the default device."""
    path = CORPUS / name
    with_lines = compile(path, cache=False, stage="sass", line_info=True)
    without = compile(path, cache=False, stage="sass")
    counts = Counter[str]()
    for trace in with_lines.traces:
        counts.update(counted(trace))
    same_ptx = all(
        trace["ptx"].ir == other["ptx"].ir for trace, other in zip(with_lines.traces, without.traces, strict=True)
    )
    return Row(name, same_ptx, with_lines.code == without.code, counts)


def counted(trace: Trace) -> Iterator[str]:
    """For each instruction of one kernel that counts: "ptx" or "sass", and once more with " known" where it has a source."""
    ptx, sass = trace.lines("ptx"), trace.lines("sass")
    body = {line.number for line in _body(ptx)}
    for stage, lines in (("ptx", _body(ptx)), ("sass", [line for line in sass if _counts(line) and line.ptx in body])):
        for line in lines:
            yield stage
            if line.sources:
                yield f"{stage} known"


def _body(lines: Sequence[Line]) -> list[Line]:
    """PTX of functions that have lines, from the first instruction with one, without returns."""
    found, is_inside = list[Line](), False
    for line in lines:
        is_inside = (is_inside or line.op > 0) and line.text != "}"
        if is_inside and (instruction := instruction_at(line.text)) and instruction.opcode not in _ENDS:
            found.append(line)
    return found


def _counts(line: Line) -> bool:
    text = line.text.partition("*/")[2].strip()
    return machine_code.is_instruction(line.text) and not _PADDING.match(text)


def table(rows: Sequence[Row]) -> str:
    lines = [
        f"{'kind':<22}{'files':>7}{'same PTX':>10}{'same SASS':>11}{'PTX':>9}{'source':>9}{'SASS':>9}{'source':>9}"
    ]
    for kind in (*KINDS, ""):
        own = [row for row in rows if row.name.startswith(kind)]
        sums = sum((row.counts for row in own), Counter[str]())
        same = sum(row.same_ptx for row in own), sum(row.same_sass for row in own)
        shares = [f"{sums[stage]:>9}{_share(sums, stage):>9.2%}" for stage in ("ptx", "sass")]
        lines.append(f"{kind or 'all':<22}{len(own):>7}{same[0]:>10}{same[1]:>11}{''.join(shares)}")
    return "\n".join(lines)


def _share(sums: Counter[str], stage: str) -> float:
    return sums[f"{stage} known"] / sums[stage] if sums[stage] else 1.0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="provenance", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--every", type=int, default=1, metavar="N", help="one file in N; default all")
    parser.add_argument("--jobs", type=int, default=None, metavar="N", help="processes; default one a core")
    options = parser.parse_args()
    names = [str(path.relative_to(CORPUS)) for kind in KINDS for path in sorted((CORPUS / kind).glob("*.hlo"))]
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        rows = list(pool.imap(measured, names[:: options.every], chunksize=4))
    print(table(rows))
    different = [row.name for row in rows if not (row.same_ptx and row.same_sass)]
    poor = [row.name for row in rows if min(_share(row.counts, stage) for stage in ("ptx", "sass")) < WANTED]
    print(*(f"code differs: {name}" for name in different), *(f"under {WANTED:.0%}: {name}" for name in poor), sep="\n")
    return int(bool(different or poor))


if __name__ == "__main__":
    sys.exit(main())
