"""A wrong pass of the compiler, for as long as a test runs it.

    with wrong_op(2, lambda found: found[0]) as done: ...     one op of what row 2 leaves of a kernel is changed
    with planted(Fault("xla-flatten-tensors", "arith.subi", "i32")): ...     all ops of one name and type after that pass are

The changes are those of `mutations`.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from runtime.mutations import SWAPS, Mutation, mutations_of, negate_predicate, swap_operation
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.pipelines import recorder
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import KERNEL
from xla_emitters.pipelines.recorder import Recorder
from xla_emitters.rewrite.kernel_pass import KernelPass, run_pass

COMPARES = ("arith.cmpi", "arith.cmpf")


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
