"""Runs the steps of a program with the NumPy reference in place of every kernel: gives the arrays that reach each kernel.

    reaching(plan.steps, computations, program, inputs)     {0: Reaching(buffers of kernel 0's arguments, its results), 1: ...}

Kernels are named by number, as `planning` leaves them; each is evaluated as the computation that it is compiled from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dtypes import Array
from xla_emitters.program import Kernel, Program, Step
from xla_emitters.runtime.arrays import from_buffer, writable_buffer
from xla_emitters.runtime.cpu_launcher import Executor, allocate, buffer_in
from xla_emitters.runtime.reference import evaluate
from xla_emitters.runtime.steps import MOST_ITERATIONS, run_steps


@dataclass(frozen=True)
class Reaching:
    """Inputs and expected results of a kernel.

    buffers  of its arguments
    results  logical arrays
    """

    buffers: Sequence[Array]
    results: Sequence[Array]


def reaching(
    steps: Sequence[Step],
    computations: Sequence[ComputationOp],
    program: Program,
    inputs: Sequence[Array],
    *,
    most_iterations: int = MOST_ITERATIONS,
) -> dict[int, Reaching]:
    """Number of a kernel -> its first launch; a kernel that is not reached is left out.

    steps         as planned, kernels named by number
    computations  what each kernel computes
    program       the arrays of all slots
    most_iterations  the limit of every single loop
    raises        what `run_steps` and library functions raise
    """
    platform = ReferenceRun(program, allocate(program, inputs), {}, lambda kernel: (), computations)
    run_steps(steps, platform, most_iterations=most_iterations)
    return platform.given


@dataclass(frozen=True)
class ReferenceRun(Executor):
    """The CPU platform with the reference in place of every kernel.

    given  see `reaching`
    """

    computations: Sequence[ComputationOp] = ()
    given: dict[int, Reaching] = field(default_factory=dict[int, Reaching])

    def launch(self, kernel: Kernel) -> None:
        number = int(kernel.name)
        buffers = [buffer_in(self.slots, argument.slot) for argument in kernel.arguments]
        computation = self.computations[number]
        count = len(computation.parameters)
        operands = [
            from_buffer(buffer, argument.array)
            for buffer, argument in zip(buffers[:count], kernel.arguments[:count], strict=True)
        ]
        results = evaluate(computation, operands)
        self.given.setdefault(number, Reaching(buffers, results))
        for argument, made in zip(kernel.arguments[count:], results, strict=True):
            self.slots[argument.kind, argument.index] = writable_buffer(made, argument.array)
