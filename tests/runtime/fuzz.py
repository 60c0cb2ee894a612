"""Thousands of random fusions: numbers at every stage, and PTX that ptxas accepts.

    make fuzz                                               2,000 cases, seeds from 0 on
    PYTHONPATH=tests python -m runtime.fuzz --first 5000 --cases 100 --kinds scatter,reduction

    seed 5017 (reduction): xla_gpu: differs from the NumPy reference: r0: 1 of 70 elements
        r0[3] is 0.25, wanted 0.5
        build/fuzz/5017.hlo

A case is determined by its seed: `hero_fuzzer.draw_case(5017)` returns the same text and inputs on every machine. Every tenth is executed
after each single pass. A case fails by wrong numbers, by any error, by PTX that ptxas refuses, and by taking longer than `LONGEST_SECONDS`.
Ends with 1 if a case failed. `-j`, `--executor`, `--resume` and `--timeout` are those of `xla-emitters check`.
"""

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from os import cpu_count
from pathlib import Path

from runtime.fusion_fuzzer import Fusion
from runtime.hero_fuzzer import KINDS, draw_case
from tools_here import here

from xla_emitters.explore.check.check import check
from xla_emitters.lowering.toolchain.machine_code import assemble
from xla_emitters.pipelines.compiler import compile
from xla_emitters.tools.executors import carried_out
from xla_emitters.tools.verb_options import add_engine
from xla_emitters.tools.workers import NamedWork

TARGET = "t4"
ARCHITECTURES = ("sm_75", "sm_90")
FAILURES = Path("build") / "fuzz"
LONGEST_SECONDS = 180
DRAWN_BY = ("fusion_fuzzer", "hero_fuzzer", "fuzz")


@dataclass(frozen=True)
class Outcome:
    """The result of one case; `problems` is empty if everything is right."""

    seed: int
    kind: str
    seconds: float
    problems: tuple[str, ...] = ()


def stages_of(seed: int) -> str:
    return "passes" if seed % 10 == 9 else "all"


def problems_of(fusion: Fusion, stages: str, architectures: Sequence[str], verify: bool = True) -> list[str]:
    """What is wrong with a fusion's numbers, at those stages, and its PTX. raises what `check` and `compile` raise.

    verify  run the IR verifier after every pass
    """
    verdict = check(fusion.text, target=TARGET, stages=stages, inputs=fusion.inputs, verify=verify)
    problems = [] if verdict.ok else [verdict.summary, *verdict.details]
    for architecture in architectures:
        program = compile(fusion.text, target=architecture, record="none")
        kernels = sorted(kernel.name for kernel in program.kernels)
        assembled = assemble(program.code, architecture, here()).entries if kernels else ()  # a copy alone has none
        entries = sorted(entry.name for entry in assembled)
        if entries != kernels:
            problems.append(f"{architecture}: the entries are {entries}, and the kernels {kernels}")
    return problems


def examine(seed: int, kinds: Sequence[str], architectures: Sequence[str]) -> Outcome:
    """Draws a case, judges it, and writes its text if it fails."""
    began = time.monotonic()
    fusion = draw_case(seed, kinds)
    problems = list[str]()
    try:
        problems = problems_of(fusion, stages_of(seed), architectures)
    except Exception as error:  # Whatever it is, it is a finding.
        problems = [f"{type(error).__name__}: {error}", *traceback.format_exc().splitlines()[-12:]]
    if problems:
        FAILURES.mkdir(parents=True, exist_ok=True)
        (FAILURES / f"{seed}.hlo").write_text(fusion.text)
    return Outcome(seed, fusion.kind, time.monotonic() - began, tuple(problems))


def main() -> int:
    parser = argparse.ArgumentParser(description="Random fusions at every stage against NumPy, and through ptxas.")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--cases", type=int, default=2000, help="how many seeds")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"which kinds to draw, of {', '.join(KINDS)}")
    parser.add_argument("--architectures", default=",".join(ARCHITECTURES), help="assemble for these; '' for none")
    add_engine(parser, "case")
    options = parser.parse_args()
    kinds = [name for name in str(options.kinds).split(",") if name]
    architectures = [name for name in str(options.architectures).split(",") if name]
    seeds = range(options.first, options.first + options.cases)
    failed, drawn = Counter[str](), Counter[str]()
    jobs = [NamedWork(f"seed {seed}", partial(examine, seed, kinds, architectures)) for seed in seeds]
    drawing = b"".join((Path(__file__).parent / f"{name}.py").read_bytes() for name in DRAWN_BY)
    outcomes = carried_out(
        options,
        jobs,
        "judging",
        Outcome,
        depends=lambda job: drawing,
        apart=("first", "cases"),
        processes=cpu_count() or 1,
        timeout_seconds=LONGEST_SECONDS,
    )
    for seed, done in zip(seeds, outcomes, strict=True):
        outcome = done.result or Outcome(seed, "no result", 0.0, (done.failure,))
        drawn[outcome.kind] += 1
        if sum(drawn.values()) % 50 == 0:
            print(f"{sum(drawn.values())} cases", file=sys.stderr, flush=True)
        if outcome.problems:
            failed[outcome.kind] += 1
            print(f"seed {outcome.seed} ({outcome.kind}): {outcome.problems[0]}", flush=True)
            for problem in outcome.problems[1:]:
                print(f"    {problem}", flush=True)
            print(f"    {FAILURES / f'{outcome.seed}.hlo'}", flush=True)
    for kind, count in sorted(drawn.items()):
        print(f"{kind:<16} {count:>5} cases  {failed[kind]:>3} wrong")
    print(f"{sum(drawn.values())} cases, {sum(failed.values())} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    # Under its own name, by which an engine's workers import it.
    sys.exit(import_module("runtime.fuzz").main())
