"""Planted wrong passes: does `bisect` name the pass that went wrong?

    make bisect-faults                                            40 plants of 9 rooms
    PYTHONPATH=tests python -m runtime.wrong_passes --count 10 --seed 3

    lowering/lower_affine.py:61 operand order  a - b -> b - a  of fuzz 31: planted in xla-simplify-arith (1), named the same, 0.4 s

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
import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import numpy as np
from runtime.hero_fuzzer import KINDS, draw_case
from runtime.mutants import TREE, sample, sources
from runtime.mutations import Mutation, mutations_of
from runtime.small_programs import EVERY_PASS_ON_HLO, PROGRAMS, TARGET
from runtime.source_mutants import Mutant
from runtime.stablehlo_programs import CASES as STABLEHLO
from runtime.stablehlo_programs import CORPUS, inputs_of
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.printer import print_ir
from xla_emitters.dtypes import Array
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.bisect.bisect import bisect
from xla_emitters.explore.bisect.blame import Search
from xla_emitters.explore.check.check import check
from xla_emitters.explore.check.program_stages import check_program
from xla_emitters.explore.compile import compile_text
from xla_emitters.pipelines import recorder
from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import EXECUTABLE_STAGES, KERNEL
from xla_emitters.pipelines.program_kernels import GpuLowering
from xla_emitters.pipelines.program_passes import PROGRAM_KERNEL
from xla_emitters.pipelines.recorder import Observer, Recorder
from xla_emitters.rewrite.kernel_pass import KernelPass, run_pass
from xla_emitters.text.hlo import print_hlo

ROOMS = (
    "graph",
    "emitters",
    "transforms",
    "rewrite",
    "lowering",
    "dynamic/passes",
    "dynamic/buffers",
    "dynamic/loops",
    "dynamic/host",
)
BLOCKS = 16
LONGEST_SECONDS = 60
"""Of a search's processor time; a loaded machine takes longer."""
LONGEST_PLANTING_SECONDS = 15
"""Of the processor time in which a plant shows its effect: some make the compiler run forever."""
UNKNOWN_SIZES = (
    *("embedding", "loop", "branches", "cumulative", "outer", "padded", "reversed", "scan", "sorted", "gradient"),
    *("update_slice", "masked_softmax", "halves", "narrow", "scatter_add"),
)
"""Programs in StableHLO: of tests/corpus/stablehlo."""
MOST_CANDIDATES = 400
"""Changes of a room's source of which plants are drawn: each is parsed, which takes time."""
MOST_CASES = 3
"""Programs that a plant is tried on."""
FAILS = ("fails",)
"""What is left of a program where a pass fails."""


@dataclass(frozen=True, eq=False)
class Case:
    """A program to be compiled wrong.

    inputs  None: drawn
    sizes   of a program in StableHLO; None: the text is HLO
    """

    name: str
    text: str
    inputs: tuple[Array, ...] | None = None
    sizes: Mapping[str, int] | None = None


@cache
def cases() -> tuple[Case, ...]:
    """Every emitter, every pass on HLO; small enough to run whole."""
    named = [Case(name, text) for name, text in (*PROGRAMS.items(), ("every_pass_on_hlo", EVERY_PASS_ON_HLO))]
    drawn = [(seed, draw_case(seed, [kind])) for seed, kind in enumerate(KINDS)]
    fuzzed = (Case(f"fuzz {seed} ({fusion.kind})", fusion.text, fusion.inputs) for seed, fusion in drawn)
    programs = [
        Case(name, (CORPUS / f"{name}.mlir").read_text(), tuple(inputs_of(name, sizes)), sizes)
        for name in UNKNOWN_SIZES
        for sizes in STABLEHLO[name].sizes[-1:]
    ]
    return (*named, *fuzzed, *programs)


# ---- one op of what a pass leaves -------------------------------------------------------------------------------------------


@contextmanager
def wrong_op(number: int, choose: Callable[[Sequence[Mutation]], Mutation]) -> Generator[list[str]]:
    """Inside, what row `number` of KERNEL, from 1, leaves of a kernel has one op changed; yields what was done."""
    done, seen = list[str](), list[ModuleOp]()

    def run_wrong(module_pass: KernelPass, context: Context, module: ModuleOp, **given: Any) -> None:
        run_pass(module_pass, context, module, **given)
        change(module_pass.name, module)

    def pass_over_wrongly(self: Recorder, name: str, stage: str | None, module: ModuleOp, seconds: float) -> None:
        change(name, module)
        pass_over(self, name, stage, module, seconds)

    def change(name: str, module: ModuleOp) -> None:
        if any(isinstance(op, ComputationOp) for op in module.ops):
            return
        seen.append(module)
        if sum(other is module for other in seen) == number and (found := mutations_of(module)):
            mutation = choose(found)
            target = list(module.walk())[mutation.number]
            mutation.apply(target)
            # What is there now is from the same instruction.
            list(module.walk())[mutation.number].location = target.location
            done.append(f"{name}: {mutation.what}")

    before, recorder.run_pass = recorder.run_pass, run_wrong
    pass_over, Recorder.pass_over = Recorder.pass_over, pass_over_wrongly
    try:
        yield done
    finally:
        recorder.run_pass, Recorder.pass_over = before, pass_over


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


def plant(tree: Path, mutant: Mutant, *, take_back: bool = False) -> bool:
    """Gives the functions of the file their code in the changed text, or back in the right one. False where none that is loaded changes."""
    path = tree / mutant.file
    source = path.read_bytes()
    old, new = (compile(text, str(path), "exec", dont_inherit=True) for text in (source, mutant.applied(source)))
    old, new = (new, old) if take_back else (old, new)
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


Texts = list[tuple[str, str]]
"""(pass, IR) after every pass."""


def texts_after_passes(case: Case) -> Texts:
    """After every pass over HLO, then after emission and every pass of each kernel; of a program after those over the whole, over all
    kernels together, and over what a CPU runs."""
    found = Texts()
    try:
        if case.sizes is None:
            _compile_module(case, found)
        else:
            _compile_program(case, found)
    except XlaEmittersError:
        found.append((*FAILS, ""))
    return found


def last_texts(case: Case) -> Sequence[str]:
    """What is left in the end, which takes less time to print."""
    try:
        return _compile_module(case, None) if case.sizes is None else _compile_program(case, None)
    except XlaEmittersError:
        return FAILS


def _compile_module(case: Case, found: Texts | None) -> Sequence[str]:
    """What is left of the kernels; `found` gets what every pass leaves."""

    def observe_graph(name: str, stage: str | None, module: ModuleOp) -> None:
        if found is not None:
            found.append((f"{name} ({len(found) + 1} of GRAPH)", print_hlo(module)))

    left = list[str]()

    def observer(_: object) -> Callable[[str, str | None, ModuleOp], None]:
        count = iter(range(1000))

        def observe(name: str, stage: str | None, module: ModuleOp) -> None:
            if found is not None:
                found.append((f"{name} ({next(count)})", print_ir(module)))
            elif stage == EXECUTABLE_STAGES[-1]:
                left.append(print_ir(module))

        return observe

    options = CompileOptions(target=TARGET, stage="llvm-dialect", record="none")
    program = compile_module(
        read_module(case.text), options, observers=observer, graph_observer=observe_graph if found is not None else None
    )
    return (program.hlo, *left)


def _compile_program(case: Case, found: Texts | None) -> Sequence[str]:
    def noted(where: str) -> Observer:
        count = iter(range(1, 1000))

        def observe(name: str, stage: str | None, module: ModuleOp) -> None:
            if name != "read" and found is not None:
                found.append((f"{name} ({next(count)}{where})", print_ir(module)))

        return observe

    options, whole = CompileOptions(record="none"), noted("")
    program = compile_text(case.text, f"{case.name}.mlir", options, whole)
    assert program.compilation.fused is not None
    lowering = GpuLowering(program.name, program.compilation.fused, options, whole)
    if found is None:
        modules = (
            program.compilation.fused,
            program.compilation.module,
            lowering.at("host"),
            lowering.at("llvm-dialect"),
        )
        return tuple(map(print_ir, modules))
    of_kernels = defaultdict[int, Texts](list)
    before = list(found)
    for kernel in lowering.kernels:
        found.clear()
        lowering.lowered(kernel.name, observe=noted(" of a kernel"))
        for number, pair in enumerate(found):
            of_kernels[number].append(pair)
    found[:] = [*before, *((texts[0][0], "".join(text for _, text in texts)) for texts in of_kernels.values())]
    found.append(("code of the CPU", print_ir(program.compilation.module)))
    return ()


def is_wrong(case: Case) -> bool:
    """Whether `check` sees it. raises what that raises"""
    if case.sizes is None:
        return not check(case.text, target=TARGET, stages="llvm-dialect", inputs=case.inputs).ok
    program = compile_text(case.text, f"{case.name}.mlir")
    return not check_program(program, case.inputs or (), ["llvm-dialect", "fused"]).ok


def searched(case: Case) -> tuple[Search, str]:
    """What bisect says, and the culprit's pass as `texts_after_passes` names it."""
    if case.sizes is None:
        search = bisect(case.text, target=TARGET, inputs=case.inputs, blocks=BLOCKS)
        where = "" if search.culprit is not None and search.culprit.kernel else " of GRAPH"
    else:
        program = compile_text(case.text, f"{case.name}.mlir", CompileOptions(record="none"))
        search = bisect(program, inputs=case.inputs or ())
        is_of_kernel = search.culprit is not None and search.culprit.passes == len(PROGRAM_KERNEL)
        where = " of a kernel" if is_of_kernel else ""
    if (culprit := search.culprit) is None:
        return search, ""
    return search, f"{culprit.name} ({culprit.number}{where})"


@dataclass(frozen=True)
class Outcome:
    """What bisect said of a plant.

    planted, named  positions among all passes over the program, and their names
    op              that is named, in one line; "" for none
    shown           what else is: "element", "thread", "instruction"
    seconds         of one core
    """

    mutant: Mutant
    case: str
    planted: tuple[int, str]
    named: tuple[int, str] | None = None
    op: str = ""
    shown: tuple[str, ...] = ()
    seconds: float = LONGEST_SECONDS
    executed: int = 0

    @property
    def passes_off(self) -> int | None:
        return None if self.named is None else self.named[0] - self.planted[0]


@dataclass(frozen=True)
class Planted:
    """A plant that has an effect.

    case    position of the program that it makes wrong
    passes  names of all passes over it
    place   the first of them whose IR is another
    """

    case: int
    passes: tuple[str, ...]
    place: int


def planted_in(tree: Path, mutant: Mutant, right: Mapping[Case, Sequence[str]], some: Sequence[Case]) -> Planted | None:
    """Plants it here; None where no program becomes wrong.

    right  `last_texts` of the compiler as it is
    """
    if not plant(tree, mutant):
        return None
    for case in some:
        left = last_texts(case)
        if left == right[case]:
            continue
        if left == FAILS:
            # A pass that fails names itself; this is about those that do not.
            return None
        with suppress(Exception):  # Its code cannot be run: that is wrong too.
            if not is_wrong(case):
                continue
        # The right IR, from a process in which nothing is planted.
        wanted: Texts | None = in_a_process(lambda case=case: unplanted(tree, mutant, case), LONGEST_PLANTING_SECONDS)
        texts = texts_after_passes(case)
        if wanted is None:
            return None
        place = next((n for n, pair in enumerate(texts) if n >= len(wanted) or pair != wanted[n]), None)
        return None if place is None else Planted(cases().index(case), tuple(name for name, _ in texts), place)
    return None


def outcome_of(tree: Path, mutant: Mutant, found: Planted) -> Outcome:
    """Plants it here and searches."""
    plant(tree, mutant)
    case = cases()[found.case]
    began = time.process_time()
    try:
        search, label = searched(case)
    except Exception as error:
        return replace(not_found(mutant, found), op=f"bisect fails: {type(error).__name__}: {error}".partition("\n")[0])
    outcome = replace(not_found(mutant, found), seconds=time.process_time() - began, executed=search.executed)
    if (culprit := search.culprit) is None:
        return outcome
    # Of kernels with equal passes the one that is nearest to the plant.
    places = [n for n, name in enumerate(found.passes) if name == label]
    named = (min(places, key=lambda n: abs(n - found.place)), label) if places else (10_000, label)
    said = {"element": culprit.element, "thread": culprit.thread, "instruction": culprit.blame.instructions}
    shown = tuple(name for name, value in said.items() if value)
    return replace(outcome, named=named, op=culprit.blame.op, shown=shown)


def not_found(mutant: Mutant, found: Planted) -> Outcome:
    """Of a search that dies, or takes too long."""
    return Outcome(mutant, cases()[found.case].name, (found.place, found.passes[found.place]))


def unplanted(tree: Path, mutant: Mutant, case: Case) -> Texts:
    """`texts_after_passes` where `mutant` was planted, and is taken back."""
    assert plant(tree, mutant, take_back=True)
    return texts_after_passes(case)


def in_a_process(work: Callable[[], Any], seconds: float) -> Any:
    """What `work` returns in a forked process; None where that dies or takes more processor time."""
    receiving, sending = multiprocessing.Pipe(duplex=False)
    process = os.fork()
    if process == 0:
        try:
            limit = int(sum(os.times()[:2]) + seconds)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            np.seterr(all="ignore")
            sending.send(work())
        except BaseException:  # Whatever it is: this process ends here.
            sending.send(None)
        finally:
            os._exit(0)
    sending.close()
    try:
        return receiving.recv() if receiving.poll(30 * seconds) else None
    except EOFError:
        return None
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)


def lines_run(tree: Path) -> tuple[dict[tuple[str, int], list[Case]], dict[Case, Sequence[str]]]:
    """(file, line) of the package -> the cases whose compilation runs it: in no other can a change of it have an effect.

    The second is what is left of each case.
    """
    run, folder = set[tuple[str, int]](), str(tree / "xla_emitters")
    found, left = defaultdict[tuple[str, int], list[Case]](list), dict[Case, Sequence[str]]()

    def in_function(frame: FrameType, event: str, argument: object) -> Any:
        run.add((frame.f_code.co_filename, frame.f_lineno))
        return in_function

    def follow(frame: FrameType, event: str, argument: object) -> Any:
        return in_function(frame, event, argument) if frame.f_code.co_filename.startswith(folder) else None

    for case in cases():
        run.clear()
        sys.settrace(follow)
        try:
            left[case] = last_texts(case)
        finally:
            sys.settrace(None)
        for line in run:
            found[line].append(case)
    return found, left


def drawn(
    tree: Path,
    room: str,
    count: int,
    seed: int,
    right: Mapping[Case, Sequence[str]],
    run: dict[tuple[str, int], list[Case]],
) -> Iterator[Outcome]:
    """`count` plants of a room that make something wrong."""
    files = sources(tree, [room])
    candidates = sample(tree, files, MOST_CANDIDATES, seed)
    # The order depends on each change alone: one more candidate does not move the others.
    candidates.sort(key=lambda mutant: random.Random(f"{seed} {mutant.identity} {mutant.text}").random())
    found = 0
    for mutant in candidates:
        reached = run.get((str(tree / mutant.file), mutant.line), [])
        if mutant.function == "<module>" or not reached:
            continue
        some = (
            reached if len(reached) <= MOST_CASES else random.Random(str(mutant.identity)).sample(reached, MOST_CASES)
        )
        planted = in_a_process(
            lambda mutant=mutant, some=some: planted_in(tree, mutant, right, some), LONGEST_PLANTING_SECONDS
        )
        if isinstance(planted, Planted):
            outcome = in_a_process(
                lambda mutant=mutant, planted=planted: outcome_of(tree, mutant, planted), LONGEST_SECONDS
            )
            yield outcome if isinstance(outcome, Outcome) else not_found(mutant, planted)
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
        f" {outcome.seconds:5.1f} s {outcome.executed:4d} runs  {outcome.op[:60]}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="wrong_passes", description="Planted wrong passes, and what bisect says.")
    parser.add_argument("--count", type=int, default=40, help="how many plants, the same number of each room")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", default=",".join(ROOMS))
    options = parser.parse_args()
    rooms = options.rooms.split(",")
    run, right = lines_run(TREE)
    outcomes = list[Outcome]()
    searches = [drawn(TREE, room, options.count // len(rooms), options.seed, right, run) for room in rooms]
    # One of each room in turn, so that a run that is ended early has seen all of them.
    for outcome in (each for row in zip_longest(*searches) for each in row if each is not None):
        outcomes.append(outcome)
        print(line_of(outcome), flush=True)
    off = Counter(outcome.passes_off for outcome in outcomes)
    slowest = max((outcome.seconds for outcome in outcomes), default=0)
    missed = off[None]
    shown = Counter(name for outcome in outcomes for name in (*outcome.shown, *(["op"] if outcome.op else [])))
    print(
        "of these with", ", ".join(f"the {name} {shown[name]}" for name in ("op", "element", "thread", "instruction"))
    )
    print(
        f"{len(outcomes)} wrong passes: {len(outcomes) - missed} found, {off[0]} named exactly, "
        f"{sum(off[n] for n in (-1, 1))} one pass off, {sum(c for n, c in off.items() if n is not None and abs(n) > 1)} further;"
        f" slowest {slowest:.1f} s at {BLOCKS} blocks"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
