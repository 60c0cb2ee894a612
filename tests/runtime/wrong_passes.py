"""Planted wrong passes: does `bisect` name the pass that went wrong?

    make bisect-faults                                            40 plants of 5 rooms
    PYTHONPATH=tests python -m runtime.wrong_passes --count 10 --seed 3

    rewrite     folders.py:254 operand order  a - b -> b - a    of fuzz 31: planted xla-simplify-arith (1), named the same, 0.4 s, 12 runs

A plant is one change of the compiler's source (`source_mutants`) that makes the results of some program wrong, or its kernel fail.
It is drawn from the functions of a room, and put into the running process by giving the function the code of the changed text, in a process
of its own. Which pass is wrong is found without `bisect`: it is the first whose printed IR is not that of the unchanged compiler. The
difference between the two, in passes, is what the table counts; where the first changed IR still computes the right numbers (it carries a
wrong range, say, that a later pass believes), bisect names that later pass.

Quick plants for tests are changes of one op in what a pass leaves (`mutations`): see `wrong_op`.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import numpy as np
from runtime.hero_fuzzer import KINDS, draw_case
from runtime.mutants import TREE, sample, sources
from runtime.mutations import Mutation, mutations_of
from runtime.small_programs import EVERY_PASS_ON_HLO, PROGRAMS, TARGET
from runtime.source_mutants import Mutant
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.printer import print_ir
from xla_emitters.dtypes import Array
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.bisect import bisect
from xla_emitters.explore.check import check
from xla_emitters.hlo_text import print_hlo
from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import KERNEL
from xla_emitters.rewrite import recorder
from xla_emitters.rewrite.kernel_pass import KernelPass, run_pass

ROOMS = ("graph", "emitters", "transforms", "rewrite", "lowering")
BLOCKS = 16
LONGEST_SECONDS = 60
MOST_CASES = 3
"""Programs that a plant is tried on."""


@dataclass(frozen=True)
class Case:
    """A program to be compiled wrong; `inputs` None: drawn."""

    name: str
    text: str
    inputs: tuple[Array, ...] | None = None


@cache
def cases() -> tuple[Case, ...]:
    """Every emitter, every pass on HLO; small enough to run whole."""
    named = [Case(name, text) for name, text in (*PROGRAMS.items(), ("every_pass_on_hlo", EVERY_PASS_ON_HLO))]
    drawn = [(seed, draw_case(seed, [kind])) for seed, kind in enumerate(KINDS)]
    return (*named, *(Case(f"fuzz {seed} ({fusion.kind})", fusion.text, fusion.inputs) for seed, fusion in drawn))


# ---- one op of what a pass leaves -------------------------------------------------------------------------------------------


@contextmanager
def wrong_op(number: int, choose: Callable[[Sequence[Mutation]], Mutation]) -> Generator[list[str]]:
    """Inside, what row `number` of KERNEL, from 1, leaves of a kernel has one op changed; yields what was done."""
    done, seen = list[str](), list[ModuleOp]()

    def run_wrong(module_pass: KernelPass, context: Context, module: ModuleOp, **given: Any) -> None:
        run_pass(module_pass, context, module, **given)
        if any(isinstance(op, ComputationOp) for op in module.ops):
            return
        seen.append(module)
        if sum(other is module for other in seen) == number and (found := mutations_of(module)):
            mutation = choose(found)
            target = list(module.walk())[mutation.number]
            mutation.apply(target)
            # What is there now is from the same instruction.
            list(module.walk())[mutation.number].location = target.location
            done.append(f"{module_pass.name}: {mutation.what}")

    before, recorder.run_pass = recorder.run_pass, run_wrong
    try:
        yield done
    finally:
        recorder.run_pass = before


def row_name(number: int) -> str:
    return KERNEL[number - 1].make(CompileOptions()).name


# ---- one change of the source -----------------------------------------------------------------------------------------------


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """The functions in a module's code, those inside others left out."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            if "<locals>" not in constant.co_qualname:
                yield from codes_of(constant)


def plant(tree: Path, mutant: Mutant) -> bool:
    """Gives the functions of the file their code in the changed text. False where none that is loaded changes."""
    path = tree / mutant.file
    source = path.read_bytes()
    old, new = (compile(text, str(path), "exec", dont_inherit=True) for text in (source, mutant.applied(source)))
    changed = dict[CodeType, CodeType]()
    by_name = [defaultdict[str, list[CodeType]](list) for _ in (old, new)]
    for found, code in zip(by_name, (old, new), strict=True):
        for inner in codes_of(code):
            found[inner.co_qualname].append(inner)
    for name, codes in by_name[0].items():
        if len(codes) == len(by_name[1][name]):
            changed |= {a: b for a, b in zip(codes, by_name[1][name], strict=True) if a != b}
    planted = False
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__ in changed:
            if function.__code__.co_filename == str(path):
                function.__code__ = changed[function.__code__]
                planted = True
    return planted


def texts_after_passes(case: Case) -> list[tuple[str, str]]:
    """(pass, IR) after every pass of GRAPH, then after emission and every pass of each kernel."""
    found = list[tuple[str, str]]()

    def observe_graph(name: str, stage: str | None, module: ModuleOp) -> None:
        found.append((f"{name} ({len(found) + 1} of GRAPH)", print_hlo(module)))

    def observer(_: object) -> Callable[[str, str | None, ModuleOp], None]:
        count = iter(range(1000))
        return lambda name, stage, module: found.append((f"{name} ({next(count)})", print_ir(module)))

    options = CompileOptions(target=TARGET, stage="llvm-dialect", record="none")
    try:
        compile_module(read_module(case.text), options, observers=observer, graph_observer=observe_graph)
    except XlaEmittersError:
        found.append(("fails", ""))
    return found


@dataclass(frozen=True)
class Outcome:
    """What bisect said of a plant.

    planted, named  positions among all passes over the program, and their names
    seconds         of one core
    """

    mutant: Mutant
    case: str
    planted: tuple[int, str]
    named: tuple[int, str] | None
    seconds: float
    executed: int

    @property
    def passes_off(self) -> int | None:
        return None if self.named is None else self.named[0] - self.planted[0]


def try_plant(
    tree: Path, mutant: Mutant, right: dict[str, list[tuple[str, str]]], some: Sequence[Case]
) -> Outcome | None:
    """Plants it here and searches; None where no program becomes wrong."""
    if not plant(tree, mutant):
        return None
    for case in some:
        if texts_after_passes(case) == right[case.name]:
            continue
        try:
            verdict = check(case.text, target=TARGET, stages="llvm-dialect", inputs=case.inputs)
        except Exception:
            # A pass that fails names itself; this is about those that do not.
            return None
        if verdict.ok:
            continue
        texts, wanted = texts_after_passes(case), right[case.name]
        place = next((n for n, pair in enumerate(texts) if n >= len(wanted) or pair != wanted[n]), None)
        if place is None:
            return None
        began = time.process_time()
        search = bisect(case.text, target=TARGET, inputs=case.inputs, blocks=BLOCKS)
        seconds, culprit = time.process_time() - began, search.culprit
        named = None
        if culprit is not None:
            label = f"{culprit.name} ({culprit.number}{'' if culprit.kernel else ' of GRAPH'})"
            # Of kernels with equal passes the one that is nearest to the plant.
            places = [n for n, (name, _) in enumerate(texts) if name == label]
            named = (min(places, key=lambda n: abs(n - place)), label) if places else (10_000, label)
        return Outcome(mutant, case.name, (place, texts[place][0]), named, seconds, search.executed)
    return None


def in_a_process(work: Callable[[], Any], seconds: float) -> Any:
    """What `work` returns in a forked process; None where that dies or takes too long."""
    receiving, sending = multiprocessing.Pipe(duplex=False)
    process = os.fork()
    if process == 0:
        try:
            np.seterr(all="ignore")
            sending.send(work())
        except BaseException:  # Whatever it is: this process ends here.
            sending.send(None)
        finally:
            os._exit(0)
    sending.close()
    try:
        return receiving.recv() if receiving.poll(seconds) else None
    except EOFError:
        return None
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)


def lines_run(tree: Path) -> dict[tuple[str, int], list[Case]]:
    """(file, line) of the package -> the cases whose compilation runs it: in no other can a change of it have an effect."""
    run, folder = set[tuple[str, int]](), str(tree / "xla_emitters")
    found = defaultdict[tuple[str, int], list[Case]](list)

    def in_function(frame: FrameType, event: str, argument: object) -> Any:
        run.add((frame.f_code.co_filename, frame.f_lineno))
        return in_function

    def follow(frame: FrameType, event: str, argument: object) -> Any:
        return in_function(frame, event, argument) if frame.f_code.co_filename.startswith(folder) else None

    for case in cases():
        run.clear()
        sys.settrace(follow)
        try:
            texts_after_passes(case)
        finally:
            sys.settrace(None)
        for line in run:
            found[line].append(case)
    return found


def drawn(
    tree: Path,
    room: str,
    count: int,
    seed: int,
    right: dict[str, list[tuple[str, str]]],
    run: dict[tuple[str, int], list[Case]],
) -> Iterator[Outcome]:
    """`count` plants of a room that make something wrong."""
    files = [file for file in sources(tree, [room]) if "/disc_" not in file]
    candidates = sample(tree, files, 10_000, seed)
    random.Random(seed).shuffle(candidates)
    found = 0
    for mutant in candidates:
        reached = run.get((str(tree / mutant.file), mutant.line), [])
        if mutant.function == "<module>" or not reached:
            continue
        some = (
            reached if len(reached) <= MOST_CASES else random.Random(str(mutant.identity)).sample(reached, MOST_CASES)
        )
        outcome = in_a_process(lambda mutant=mutant, some=some: try_plant(tree, mutant, right, some), LONGEST_SECONDS)
        if isinstance(outcome, Outcome):
            yield outcome
            found += 1
            if found == count:
                return


def line_of(outcome: Outcome) -> str:
    mutant = outcome.mutant
    off = outcome.passes_off
    said = (
        "NOT FOUND"
        if off is None
        else "exact"
        if off == 0
        else f"{off:+d} passes: {outcome.named and outcome.named[1]}"
    )
    place = f"{mutant.file.removeprefix('xla_emitters/')}:{mutant.line}"
    return (
        f"{place:<46} {mutant.kind:<17} {outcome.case:<30} {outcome.planted[1]:<44} {said:<40}"
        f" {outcome.seconds:5.1f} s {outcome.executed:4d} runs"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="wrong_passes", description="Planted wrong passes, and what bisect says.")
    parser.add_argument("--count", type=int, default=40, help="how many plants, the same number of each room")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", default=",".join(ROOMS))
    options = parser.parse_args()
    rooms = options.rooms.split(",")
    right = {case.name: texts_after_passes(case) for case in cases()}
    run, outcomes = lines_run(TREE), list[Outcome]()
    for room in rooms:
        for outcome in drawn(TREE, room, options.count // len(rooms), options.seed, right, run):
            outcomes.append(outcome)
            print(line_of(outcome), flush=True)
    off = Counter(outcome.passes_off for outcome in outcomes)
    slowest = max((outcome.seconds for outcome in outcomes), default=0)
    missed = off[None]
    print(
        f"{len(outcomes)} wrong passes: {len(outcomes) - missed} found, {off[0]} named exactly, "
        f"{sum(off[n] for n in (-1, 1))} one pass off, {sum(c for n, c in off.items() if n is not None and abs(n) > 1)} further;"
        f" slowest {slowest:.1f} s at {BLOCKS} blocks"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
