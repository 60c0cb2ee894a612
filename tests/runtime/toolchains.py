"""Do both ways of making PTX give the same text? Each file of the corpus is compiled by mlir-opt and by llvmlite.

    make toolchains                     every file; writes benchmarks/results/2026-11-28-toolchains.txt
    PYTHONPATH=tests python -m runtime.toolchains loop/tr_

    same                                398    the text without comments, line by line
    same but for names of registers       8    ... with registers and labels numbered in the order in which they come
    same but for the order                1    as many instructions of each kind
    other code                            3    instructions by either way, and machine instructions

Of a file whose texts differ it is said whether LLVM's four tools (`steps`), which read LLVM IR as text too, agree with llvmlite.
Ends with 1 where the numbers of instructions differ by more than 2 %.
"""

import argparse
import multiprocessing
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from runtime.corpus import CORPUS, files
from sass_counts import count_instructions
from tools_here import here

from xla_emitters.dialects.context import parse_ir
from xla_emitters.lowering.toolchain.machine_code import assemble, disassemble
from xla_emitters.lowering.toolchain.toolchain import compile_to_ptx
from xla_emitters.lowering.toolchain.tools import PtxWay, find_tool
from xla_emitters.pipelines.compiler import compile, lower_for_tools
from xla_emitters.pipelines.options import CompileOptions

TARGET = "sm_90"
ALLOWED = 0.02
"""Of the instructions, how many may differ."""
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "2026-11-28-toolchains.txt"
VERDICTS = ("same", "same but for names of registers", "same but for the order", "other code")


def lines_of(ptx: str) -> list[str]:
    """PTX without comments and blank lines."""
    lines = (re.sub(r"//.*", "", line).strip() for line in ptx.splitlines())
    return [line for line in lines if line]


def renamed(ptx: str) -> list[str]:
    """`lines_of` without declarations of registers; registers and labels are numbered in the order in which they come."""
    numbers: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return numbers.setdefault(found[0], f"{found[1]}{len(numbers)}")

    lines = [line for line in lines_of(ptx) if not line.startswith(".reg")]
    return [re.sub(r"(%[a-z]+|\$L__BB)[0-9_]+", number, line) for line in lines]


def instructions(ptx: str) -> list[str]:
    """The opcodes of a PTX text, as they come."""
    return list(_opcodes(ptx))


def _opcodes(ptx: str) -> Iterator[str]:
    for line in lines_of(ptx):
        if found := re.match(r"(?:@!?%p\d+\s+)?([a-z][\w.:]*)[\s;]", line):
            yield found[1]


def compare(mlir: str, llvm: str) -> str:
    """One of VERDICTS."""
    if lines_of(mlir) == lines_of(llvm):
        return VERDICTS[0]
    if renamed(mlir) == renamed(llvm):
        return VERDICTS[1]
    return VERDICTS[2] if sorted(instructions(mlir)) == sorted(instructions(llvm)) else VERDICTS[3]


@dataclass(frozen=True)
class Row:
    """One file: verdict, and instructions of PTX by mlir-opt and by llvmlite.

    Where the texts differ: machine instructions, and how the text by LLVM's four tools compares with llvmlite's.
    """

    file: str
    verdict: str
    counts: tuple[int, int]
    sass: tuple[int, int] = (0, 0)
    by_steps: str = ""

    @property
    def is_close(self) -> bool:
        mlir, llvm = self.counts
        return abs(mlir - llvm) <= ALLOWED * mlir


def ptx_by(path: Path, *ways: PtxWay, target: str = TARGET) -> list[str]:
    """The PTX of a file's kernels, by each of the ways."""
    options = CompileOptions(target=target)
    module = parse_ir(compile(path, cache=False, target=target, stage="llvm-dialect", record="none").code)
    lower_for_tools(module, options)
    return [compile_to_ptx(module, options.device.architecture, replace(here(), way=way)) for way in ways]


def examine(name: str, target: str = TARGET) -> Row:
    mlir, ptx = ptx_by(CORPUS / name, PtxWay.MLIR_OPT, PtxWay.LLVMLITE, target=target)
    row = Row(name, compare(mlir, ptx), (len(instructions(mlir)), len(instructions(ptx))))
    if row.verdict != VERDICTS[0]:
        (steps,) = ptx_by(CORPUS / name, PtxWay.STEPS, target=target)
        by_mlir, by_llvmlite = (_machine_instructions(own, target) for own in (mlir, ptx))
        row = replace(row, sass=(by_mlir, by_llvmlite), by_steps=compare(steps, ptx))
    return row


def _machine_instructions(ptx: str, target: str) -> int:
    return count_instructions(disassemble(assemble(ptx, target, here()).cubin, here()))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="toolchains", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("beginnings", nargs="*", help="only files whose names begin so; then nothing is written")
    parser.add_argument("--target", default=TARGET)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth file")
    options = parser.parse_args()
    names = list(files(*options.beginnings))[:: options.every]
    with multiprocessing.get_context("spawn").Pool() as pool:
        rows = list(pool.imap(partial(examine, target=options.target), names, chunksize=4))
    versions = ", ".join(f"{name} {find_tool(name, here()).version}" for name in ("mlir-opt", "llvmlite"))
    lines = [
        f"PTX for {options.target}: {versions}",
        f"command: PYTHONPATH=tests python -m runtime.toolchains --target {options.target} --every {options.every}",
        "",
    ]
    lines += [f"{verdict:<34}{sum(row.verdict == verdict for row in rows):>12}" for verdict in VERDICTS]
    lines.append(f"\n{'file':<58}{'verdict':<34}{'PTX instructions':<20}{'machine instructions':<22}steps and llvmlite")
    for row in rows:
        if row.by_steps:
            counts, sass = (f"{mlir} {llvm}" for mlir, llvm in (row.counts, row.sass))
            lines.append(f"{row.file:<58}{row.verdict:<34}{counts:<20}{sass:<22}{row.by_steps}")
    far = [row.file for row in rows if not row.is_close]
    total = [sum(row.counts[k] for row in rows) for k in (0, 1)]
    lines.append(f"{total[0]} instructions by mlir-opt, {total[1]} by llvmlite")
    lines.append(f"{len(rows) - len(far)} of {len(rows)} texts are within {ALLOWED:.0%}: {' '.join(far) or 'all'}")
    print(*lines, sep="\n")
    if not options.beginnings:
        RESULTS.write_text("\n".join((*lines, "")))
    return int(bool(far))


if __name__ == "__main__":
    sys.exit(main())
