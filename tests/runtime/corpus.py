"""The corpus: 410 fusions of JAX programs, what the real XLA did with each (`tests/corpus/xla.json`), and what we do.

    make corpus                                         every file, whole grids, PTX for four architectures; one row a file
    PYTHONPATH=tests python -m runtime.corpus loop/tr_ --blocks 16

    loop/act_gelu_f32.7a8ac9a5.hlo         loop      ok  8 stages: 4194304 of 4194304 elements ...  8192 x 128       18 18 18 18

File, emitter, verdict on the numbers, launch, registers for each architecture.

Ends with 1 if a row is wrong: numbers, emitter, launch, shared memory, or PTX that ptxas refuses. `-j`, `--executor`, `--resume` and
`--timeout` are those of `xla-emitters check`.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from os import cpu_count
from pathlib import Path
from typing import Any

from tools_here import here

from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.check.check import check
from xla_emitters.lowering.toolchain.machine_code import assemble
from xla_emitters.pipelines.compiler import compile
from xla_emitters.program import Program
from xla_emitters.tools.executors import carried_out
from xla_emitters.tools.verb_options import add_engine
from xla_emitters.tools.workers import NamedWork

CORPUS = Path(__file__).parents[1] / "corpus"
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")


@cache
def by_xla() -> dict[str, Any]:
    """File -> what XLA did: emitter, and each kernel's grid, block and bytes of shared memory."""
    return json.loads((CORPUS / "xla.json").read_text())["files"]


def files(*beginnings: str) -> list[str]:
    """The files whose names have one of these prefixes; all files without any."""
    return [name for name in by_xla() if not beginnings or name.startswith(beginnings)]


OTHER_LAUNCH: dict[str, str] = {
    "loop/cumsum_int32.d58010f8.hlo": "a scan reads its rows once (docs/decisions/33): 2.4 us expected on an H200, XLA's kernel 4.5",
}
"""The files with an emitter or a launch other than XLA's, each with the rule and the gain: at most five."""


@dataclass(frozen=True)
class Row:
    """The result for one file; `problems` is empty if everything is right."""

    file: str
    emitter: str = ""
    numbers: str = ""
    launch: str = ""
    registers: tuple[int, ...] = ()
    problems: tuple[str, ...] = ()


def launches(program: Program) -> list[tuple[list[int], list[int], int]]:
    """Grid, block and bytes of shared memory of each kernel, in the format of `by_xla`."""
    return [(list(k.launch.grid), list(k.launch.block), k.shared_bytes) for k in program.kernels]


def other_choices(name: str, program: Program) -> list[str]:
    """Where the emitter, the launches or the shared memory are not XLA's."""
    theirs, found = by_xla()[name], list[str]()
    (emitter,) = (made for made in program.traces[0].decisions if made.topic == "emitter")
    if name in OTHER_LAUNCH:
        return []
    if emitter.data["name"] != theirs["emitter"]:
        found.append(f"XLA's emitter is {theirs['emitter']}")
    wanted = [(k["grid"], k["block"], k["shared_bytes"]) for k in theirs["kernels"]]
    if wanted and launches(program) != wanted:
        found.append(f"XLA launches {wanted}, here it is {launches(program)}")
    return found


def examine(name: str, *, blocks: int = 0, architectures: tuple[str, ...] = ()) -> Row:
    """Compiles a file, runs every stage of it on at most `blocks` blocks (0: all), and compares with the reference and with XLA.

    The verifier after every pass, and the sanitizer, run only with all blocks: the verifier alone takes as long as everything else.
    """
    path = CORPUS / name
    try:
        verdict = check(path, blocks=blocks, verify=not blocks, sanitize=not blocks)
        program = verdict.program
        assert program is not None
        problems = [] if verdict.ok else [verdict.summary, *verdict.details]
        if " 0 of 0 " in verdict.summary:
            problems.append("no element was compared")
        problems += other_choices(name, program)
        registers = tuple(assembled(path, architecture, problems) for architecture in architectures)
    except XlaEmittersError as error:
        return Row(name, problems=tuple(error.render().splitlines()))
    shown = " ".join(f"{k.launch.blocks} x {k.launch.threads}" for k in program.kernels)
    (emitter,) = (made for made in program.traces[0].decisions if made.topic == "emitter")
    return Row(name, emitter.data["name"], verdict.summary, shown, registers, tuple(problems))


def assembled(path: Path, architecture: str, problems: list[str]) -> int:
    """The largest number of registers of a kernel on that architecture; spills are added to `problems`."""
    most = 0
    for entry in assemble(compile(path, target=architecture, record="none").code, architecture, here()).entries:
        most = max(most, entry.registers)
        if entry.spill_bytes:
            problems.append(f"{architecture}: {entry.spill_bytes} bytes spilled")
    return most


def _depends(job: NamedWork) -> bytes:
    return (CORPUS / job.name).read_bytes() + Path(__file__).read_bytes()


def main() -> int:
    parser = argparse.ArgumentParser(description="Every file of the corpus against NumPy and against what XLA did.")
    parser.add_argument("beginnings", nargs="*", help="only files whose names begin so, such as loop/ or loop/tr_")
    parser.add_argument("--blocks", type=int, default=0, help="run at most so many blocks of each grid; 0: all")
    parser.add_argument("--architectures", default=",".join(ARCHITECTURES), help="assemble for these")
    add_engine(parser, "file")
    options = parser.parse_args()
    names = files(*options.beginnings)
    architectures = tuple(name for name in str(options.architectures).split(",") if name)
    wrong = 0
    jobs = [
        NamedWork(name, partial(examine, name, blocks=options.blocks, architectures=architectures)) for name in names
    ]
    for done in carried_out(
        options, jobs, "examining", Row, depends=_depends, apart=("beginnings",), processes=cpu_count() or 1
    ):
        row = done.result or Row(done.name, problems=(done.failure,))
        wrong += bool(row.problems)
        registers = " ".join(map(str, row.registers))
        print(f"{row.file:<58} {row.emitter:<12} {row.numbers:<80} {row.launch:<18} {registers}".rstrip(), flush=True)
        for problem in row.problems:
            print(f"    {problem}", flush=True)
    print(f"{len(names) - wrong} of {len(names)} files are as they must be")
    return 1 if wrong else 0


if __name__ == "__main__":
    # Under its own name, by which an engine's workers import it.
    sys.exit(import_module("runtime.corpus").main())
