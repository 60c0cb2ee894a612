"""Random fusions of 100 to 300 instructions, each with a planted fault of the compiler: how small does `reduce` make them?

    make reductions                                       30 of them
    PYTHONPATH=tests python -m runtime.planted_reductions --count 3

    seed 17  214 instructions  xla-flatten-tensors: arith.subi : i32 -> arith.addi      3 left   41 candidates   12.5 s of one core

A fault changes every op of one name and type in the IR after one pass: another operation, or the opposite predicate (`mutations`). The
rarest kind of op that makes results wrong is chosen, so that the fault affects a small part of the fusion. Parameters
and the call of the fusion are not counted.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from runtime.fusion_fuzzer import Drawing, draw_dims
from runtime.mutations import SWAPS, negate_predicate, swap_operation
from runtime.small_programs import TARGET
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xla_emitters.errors import UsageError
from xla_emitters.explore.check.check import check
from xla_emitters.explore.reduce.reduce import Reduced, reduce
from xla_emitters.explore.reduce.symptoms import Wrong, wrong_in
from xla_emitters.pipelines import recorder
from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.rewrite.kernel_pass import KernelPass, run_pass
from xla_emitters.tools.workers import isolated

PASSES = ("xla-lower-xla-loops-to-scf", "xla-flatten-tensors", "xla-unswitch-loops", "xla-simplify-affine")
COMPARES = ("arith.cmpi", "arith.cmpf")
BLOCKS = 16
BUDGET_SECONDS = 240.0
"""Wall-clock limit, since others may use the machine. The reported time is processor time."""
LONGEST_SECONDS = 60.0
OPTIONS = CompileOptions(target=TARGET)


@dataclass(frozen=True)
class Fault:
    """After the first run of a pass on a kernel, replaces every op of one name and type."""

    pass_name: str
    op: str
    type: str

    def __str__(self) -> str:
        became = "predicate negated" if self.op in COMPARES else f"-> {SWAPS[self.op].name}"
        return f"{self.pass_name}: {self.op} : {self.type} {became}"

    def apply(self, module: ModuleOp) -> None:
        for number, op in enumerate(list(module.walk())):
            if kind_of(op) == (self.op, self.type):
                (negate_predicate if self.op in COMPARES else swap_operation)(op)
                # The new op comes from the same instruction.
                list(module.walk())[number].location = op.location


def kind_of(op: Operation) -> tuple[str, str]:
    return op.name, str(op.operands[0].type) if op.operands else ""


@contextmanager
def planted(fault: Fault) -> Generator[None]:
    """The compiler has the fault while the body runs."""

    def run_wrong(module_pass: KernelPass, context: Context, module: ModuleOp, **given: Any) -> None:
        run_pass(module_pass, context, module, **given)
        if module_pass.name == fault.pass_name:
            fault.apply(module)

    before, recorder.run_pass = recorder.run_pass, run_wrong
    try:
        yield
    finally:
        recorder.run_pass = before


def draw_large(seed: int) -> str:
    """A fusion without a hero of 100 to 300 instructions, parameters among them; all of it reaches the results."""
    rng = random.Random(f"large {seed}")
    wanted = rng.randrange(100, 301)
    drawing = Drawing(rng, unrolled=False)
    dims = [max(1, size) for size in draw_dims(rng, False)]
    drawing.parameter(drawing.draw_type(), dims)
    while len(drawing.lines) < wanted:
        rng.choice(drawing.steps)(drawing)
    unused = [value for value in drawing.values if value.name not in drawing.used and value not in drawing.parameters]
    return drawing.finished(seed, "loop", unused or drawing.choose_roots()).text


@dataclass(frozen=True)
class Case:
    seed: int
    text: str
    fault: Fault


def faults_in(text: str, rng: random.Random) -> list[Fault]:
    """The possible faults for a fusion, the rarest ops first."""
    name, found = rng.choice(PASSES), Counter[tuple[str, str]]()

    def observe(passed: str, stage: str | None, module: ModuleOp) -> None:
        if passed == name:
            found.update(kind_of(op) for op in module.walk() if op.name in SWAPS or op.name in COMPARES)

    compile_module(read_module(text), OPTIONS, observers=lambda planned: observe)
    return [Fault(name, op, type) for (op, type), _ in sorted(found.items(), key=lambda pair: pair[1])]


def draw_faulty(seed: int) -> Case | None:
    """A fusion that is right without the fault, and wrong with it; None if this seed has none."""
    try:
        text = draw_large(seed)
        if not check(text, target=TARGET, stages="llvm-dialect", blocks=BLOCKS).ok:
            return None
        faults = faults_in(text, random.Random(seed))
    except Exception:
        return None  # Refused, say.
    return next((Case(seed, text, fault) for fault in faults[:6] if is_wrong_with(fault, text)), None)


def is_wrong_with(fault: Fault, text: str) -> bool:
    with planted(fault):
        return Wrong(OPTIONS, "llvm-dialect", BLOCKS)(text)


def reduced(case: Case, seconds: float = BUDGET_SECONDS) -> Reduced:
    """What `reduce --keep-wrong` makes of it."""
    with planted(case.fault):
        wrong = isolated(partial(wrong_in, case.text, OPTIONS, blocks=BLOCKS), None)
        assert isinstance(wrong, Wrong)
        return reduce(
            case.text,
            lambda text: bool(isolated(partial(wrong, text), LONGEST_SECONDS)),
            near=wrong.near,
            seconds=seconds,
        )


def cpu_seconds() -> float:
    """Of this process and those that it waited for: what an idle core takes, for one candidate is tried at a time."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="planted_reductions", description="How small reduce makes random fusions.")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    left, seconds, seed, failed = list[int](), list[float](), options.first, 0
    while len(left) + failed < options.count:
        case = isolated(partial(draw_faulty, seed), LONGEST_SECONDS)
        seed += 1
        if not isinstance(case, Case):
            continue
        began = cpu_seconds()
        try:
            found = reduced(case)
        except UsageError as error:
            # On a busy machine the file itself may take longer than a candidate may.
            failed += 1
            print(f"seed {case.seed:<4} not reduced: {error.message}", flush=True)
            continue
        before, after = found.instructions
        left.append(after)
        seconds.append(cpu_seconds() - began)
        print(
            f"seed {case.seed:<4} {before:>4} instructions  {str(case.fault)[:76]:<76}  {after:>3} left"
            f"  {found.asked:>4} candidates  {seconds[-1]:6.1f} s{'' if found.is_finished else '  time over'}",
            flush=True,
        )
    print(
        f"{len(left)} fusions, {failed} not reduced: {statistics.median(left):g} instructions left in the median, {max(left)} at most;"
        f" {statistics.median(seconds):.1f} s in the median, {max(seconds):.1f} s at most"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
