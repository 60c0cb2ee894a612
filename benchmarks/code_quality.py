"""Machine code against the real XLA's, over kinds of the corpus: `make code-quality`, `python -m benchmarks.code_quality loop/tr_`.

    HLO -ours, target h200-> PTX ─┐
    HLO ------------XLA-----> PTX ┴─ ptxas -arch=sm_90a -> nvdisasm -> what one thread executes

Both sides are assembled by the same ptxas (12.9.86, from its wheel, given to XLA as CUDA_HOME: otherwise XLA writes PTX that this ptxas
refuses) and are counted alike. Trip counts are read from the machine code if loop bounds are constants; a loop whose bounds depend on data
counts once, and `?` follows the number of its side. `xla_emitters.pricing.sass.py` documents how branches, calls and loops count, and
what is left out.

Columns: instructions that a thread executes; ratio; loads, stores and atomic updates of global memory, `4x16+1x2` being four of 16 bytes
and one of 2; registers; shared bytes of a block; spilled bytes of a thread; warps that a multiprocessor holds at once, by registers,
shared bytes and threads of a block. One text stands for both sides where they agree, else `ours/XLA`. `!` marks more loads or writes
than XLA's, narrower ones, fewer warps, or spills where XLA has none. XLA's PTX and all machine code are kept in `build/code_quality`.

`--tune price` uses our kernels as the cost model chooses them. A thread then does more or less work than one of XLA's, so the ratio is
that of all threads' instructions: of our launches, and of the launches that we make by XLA's choice, which are XLA's. Files whose
ratio is above 1.02 get the quotient of the expected times too: more instructions on idle multiprocessors may take less time.
"""

import argparse
import hashlib
import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.table import header, print_table
from xla_emitters.device import device
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.cost.cost import cost
from xla_emitters.explore.real_xla import XlaGpu, description
from xla_emitters.lowering.toolchain.machine_code import assemble, disassemble
from xla_emitters.lowering.toolchain.tools import find_tool
from xla_emitters.pipelines.compiler import compile
from xla_emitters.pricing.occupancy import occupancy
from xla_emitters.pricing.sass import Executed, executed, kernels_of
from xla_emitters.program import Kernel
from xla_emitters.settings import read_settings

CORPUS = Path("tests/corpus")
KEPT = Path("build/code_quality")
TARGET = "h200"
ARCHITECTURE = "sm_90a"
WITHOUT_A_REASON = 1.02
"""Ratio of instructions above which docs/decisions/19-kernels-by-price.md gives a reason."""


@dataclass(frozen=True)
class Code:
    """All kernels of one side: sum of executed instructions, maximum of registers and shared bytes, minimum of warps."""

    executed: Executed
    registers: int
    spill_bytes: int
    shared_bytes: int
    warps: int


@dataclass(frozen=True)
class Row:
    """One file: `ours` and `theirs` count what one thread executes.

    of_all_threads  the quotient for whole grids, if they differ
    of_times        the quotient of expected times, of files with more instructions than XLA's
    """

    file: str
    ours: Code
    theirs: Code
    of_all_threads: float | None = None
    of_times: float | None = None

    @property
    def ratio(self) -> float:
        if self.of_all_threads is not None:
            return self.of_all_threads
        return self.ours.executed.instructions / self.theirs.executed.instructions

    @property
    def faults(self) -> list[str]:
        found: list[str] = []
        ours, theirs = self.ours.executed, self.theirs.executed
        accesses = (
            ("loads", ours.loads, theirs.loads),
            ("writes", ours.stores + ours.atomics, theirs.stores + theirs.atomics),
        )
        for name, ours, theirs in accesses:
            if ours.total() > theirs.total():
                found.append(f"more {name}")
            if ours and theirs and min(ours) < min(theirs):
                found.append(f"narrower {name}")
        if self.ours.spill_bytes > 0 and self.theirs.spill_bytes == 0:
            found.append("spills")
        if self.ours.warps < self.theirs.warps:
            found.append("fewer warps")
        return found

    @property
    def remarks(self) -> list[str]:
        times = [] if self.of_times is None else [f"expected time {self.of_times:.2f}"]
        return [*times, *(f"! {fault}" for fault in self.faults)]


def machine_code(texts: Sequence[str]) -> Code:
    """Counts over the kernels in PTX texts, each a module of one kernel."""
    found = [_assembled(text) for text in texts]
    parts = [executed(str(one["sass"])) for one in found]
    counters: dict[str, Counter[int]] = {
        name: sum((getattr(part, name) for part in parts), Counter[int]())
        for name in ("loads", "stores", "atomics", "shared", "local")
    }
    return Code(
        Executed(
            instructions=sum(part.instructions for part in parts),
            loads=counters["loads"],
            stores=counters["stores"],
            atomics=counters["atomics"],
            shared=counters["shared"],
            local=counters["local"],
            unknown_loops=sum(part.unknown_loops for part in parts),
        ),
        max(int(one["registers"]) for one in found),
        sum(int(one["spill_bytes"]) for one in found),
        max(int(one["shared_bytes"]) for one in found),
        min(
            occupancy(device(TARGET), threads_per_block(text), int(one["registers"]), int(one["shared_bytes"])).warps
            for text, one in zip(texts, found, strict=True)
        ),
    )


def threads_per_block(ptx: str) -> int:
    """
    >>> threads_per_block(".visible .entry f()\\n.reqntid 32, 4, 1\\n{")
    128
    """
    sizes = re.search(r"^\.(?:reqntid|maxntid) ([\d, ]+)$", ptx, re.M)
    assert sizes is not None
    return math.prod(int(size) for size in sizes[1].split(","))


def _assembled(ptx: str) -> dict[str, int | str]:
    path = KEPT / f"{_digest(ptx, find_tool('ptxas', read_settings().toolchain).version)}.sass.json"
    if path.exists():
        return json.loads(path.read_text())
    assembly = assemble(ptx, ARCHITECTURE, read_settings().toolchain)
    found: dict[str, int | str] = {
        "sass": disassemble(assembly.cubin, read_settings().toolchain),
        "registers": assembly.registers,
        "spill_bytes": assembly.spill_bytes,
        "shared_bytes": assembly.shared_bytes,
    }
    _keep(path, json.dumps(found))
    return found


def ptx_of_xla(text: str) -> list[str]:
    """XLA's PTX, one text per kernel, in the order in which it was written."""
    key = _digest(text, description(device(TARGET)), *(version(name) for name in ("jaxlib", "jax-cuda13-pjrt")))
    path = KEPT / f"{key}.xla.json"
    if path.exists():
        return json.loads(path.read_text())
    with TemporaryDirectory() as directory:
        _xla().compile(text, Path(directory))
        found = [written.read_text() for written in sorted(Path(directory).glob("*.ptx")) if written.stat().st_size]
    _keep(path, json.dumps(found))
    return found


@cache
def _xla() -> XlaGpu:
    os.environ["CUDA_HOME"] = str(Path(find_tool("ptxas", read_settings().toolchain).path).parents[1])
    return XlaGpu(device(TARGET))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]


def _keep(path: Path, text: str) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    partial_file = path.with_suffix(f".{os.getpid()}")
    partial_file.write_text(text)
    partial_file.replace(path)


def of_all_threads(kernels: Sequence[Kernel], codes: Sequence[str]) -> int:
    """Instructions that the threads of these launches execute, each kernel with a text of machine code."""
    launches = [kernel.launch for kernel in kernels]
    return sum(
        executed(code).instructions * launch.blocks * launch.threads
        for code, launch in zip(codes, launches, strict=True)
    )


def measure(file: str, tune: str = "xla") -> Row | str:
    """The row of a file of the corpus, or why there is none."""
    path = CORPUS / file
    try:
        theirs = ptx_of_xla(path.read_text())
        if not theirs:
            return f"{file}: XLA makes no kernel of it"
        program = compile(path, target=TARGET, record="none", tune=tune)
        row = Row(file, machine_code([program.code]), machine_code(theirs))
        if tune == "xla":
            return row
        as_xla = compile(path, target=TARGET, record="none")
        if len(as_xla.kernels) != len(theirs):
            return f"{file}: {len(theirs)} kernels of XLA's, {len(as_xla.kernels)} are made here by its choice"
        by_name = kernels_of(str(_assembled(program.code)["sass"]))
        ours = of_all_threads(program.kernels, [by_name[kernel.name] for kernel in program.kernels])
        quotient = ours / of_all_threads(as_xla.kernels, [str(_assembled(text)["sass"]) for text in theirs])
        return replace(row, of_all_threads=quotient, of_times=_expected(path) if quotient > WITHOUT_A_REASON else None)
    except XlaEmittersError as error:
        return f"{file}: {error.message}"


def _expected(path: Path) -> float:
    """The expected time of the kernels by price, relative to that of XLA's choice."""
    by_rule, by_price = (
        sum(kernel.time for kernel in cost(path, targets=(TARGET,), tune=tune).costs[0].kernels)
        for tune in ("xla", "price")
    )
    return by_price / by_rule


def files(beginnings: Sequence[str]) -> list[str]:
    """Files of the corpus whose names have one of these prefixes; a kind alone selects all of its files."""
    every = sorted(str(path.relative_to(CORPUS)) for path in CORPUS.glob("*/*.hlo"))
    starts = tuple(start if "/" in start else f"{start}/" for start in beginnings)
    return [file for file in every if file.startswith(starts)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Machine code against the real XLA's.")
    parser.add_argument("beginnings", nargs="*", default=["loop"], help="kinds, or beginnings of names: loop/tr_")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--tune", choices=("xla", "price"), default="xla", help="how our kernels are chosen")
    parser.add_argument("--every", type=int, default=1, help="only one file of so many")
    options = parser.parse_args()
    names = files(options.beginnings)[:: options.every]
    # A process of its own for each worker: a failed check inside XLA aborts the process that it is in.
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        found = list(pool.map(partial(measure, tune=options.tune), names))
    rows = sorted((row for row in found if isinstance(row, Row)), key=lambda row: -row.ratio)
    whose = "per thread" if options.tune == "xla" else "with kernels by price, ratios of all threads"
    print(header(f"Executed SASS instructions {whose}, {ARCHITECTURE}: {' '.join(options.beginnings)}"))
    if rows:
        print_table(TITLES, [cells(row) for row in rows])
        mean = math.exp(sum(math.log(row.ratio) for row in rows) / len(rows))
        faults = sum(bool(row.faults) for row in rows)
        print(
            f"{len(rows)} files, geometric mean of ratios {mean:.3f}, files with more or narrower accesses, fewer warps or spills: {faults}"
        )
    missing = [row for row in found if isinstance(row, str)]
    for reason in missing:
        print(f"not measured: {reason}")
    return 1 if missing else 0


TITLES = ("file", "ours", "XLA", "ratio", "loads", "stores", "atomics", "registers", "shared", "spilled", "warps", "")


def cells(row: Row) -> list[str]:
    ours, theirs = row.ours, row.theirs
    return [
        row.file.removesuffix(".hlo"),
        *(f"{code.executed.instructions}{'?' if code.executed.unknown_loops else ''}" for code in (ours, theirs)),
        f"{row.ratio:.2f}",
        _both(accesses(ours.executed.loads), accesses(theirs.executed.loads)),
        _both(accesses(ours.executed.stores), accesses(theirs.executed.stores)),
        _both(accesses(ours.executed.atomics), accesses(theirs.executed.atomics)),
        _both(str(ours.registers), str(theirs.registers)),
        _both(str(ours.shared_bytes), str(theirs.shared_bytes)),
        _both(str(ours.spill_bytes), str(theirs.spill_bytes)),
        _both(str(ours.warps), str(theirs.warps)),
        " ".join(row.remarks),
    ]


def accesses(counts: Counter[int]) -> str:
    """
    >>> accesses(Counter({16: 4, 2: 1}))
    '4x16+1x2'
    """
    return "+".join(f"{counts[width]}x{width}" for width in sorted(counts, reverse=True)) or "-"


def _both(ours: str, theirs: str) -> str:
    return ours if ours == theirs else f"{ours}/{theirs}"


if __name__ == "__main__":
    sys.exit(main())
