"""Runs the steps of a program with the NumPy reference in place of every kernel: gives the arrays that reach each kernel.

    reaching(plan.steps, computations, program, inputs)     {0: Reaching(buffers of kernel 0's arguments, its results), 1: ...}

Kernels are named by number, as `planning` leaves them; each is evaluated as the computation that it is compiled from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation

from xla_emitters.dialects.hlo.base import Call, HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp
from xla_emitters.dtypes import Array
from xla_emitters.program import Kernel, Program, Step
from xla_emitters.runtime.arrays import from_buffer, writable_buffer
from xla_emitters.runtime.cpu_launcher import Executor, allocate, buffer_in
from xla_emitters.runtime.reference import evaluate, leaves_of
from xla_emitters.runtime.steps import MOST_ITERATIONS, run_steps


@dataclass(frozen=True)
class Reaching:
    """Inputs and expected results of a kernel.

    buffers  of its arguments
    results  logical arrays
    """

    buffers: Sequence[Array]
    results: Sequence[Array]


@dataclass(frozen=True)
class FirstCalls:
    """What was computed for ENTRY and in the first call of each fusion, so that kernels made of them are not evaluated a second time.

    entry  the computation that is evaluated
    found  name of a computation -> its operands and results
    """

    entry: ComputationOp
    found: dict[str, tuple[Sequence[Array], list[Array]]] = field(
        default_factory=dict[str, tuple[Sequence[Array], list[Array]]]
    )
    _compared: dict[Operation, bool] = field(default_factory=dict[Operation, bool])

    def evaluate(self, inputs: Sequence[Array], most_iterations: int) -> list[Array]:
        """The results of `entry`; its calls are recorded."""
        results = evaluate(self.entry, inputs, most_iterations=most_iterations, value_of=self._value_of)
        self.found[self.entry.sym_name.data] = (inputs, results)
        return results

    def results_of(self, computation: ComputationOp, operands: Sequence[Array]) -> list[Array] | None:
        """The results of a computation where they are known: it has the same text, and its operands have the same bits."""
        if (known := self.found.get(computation.sym_name.data)) is None:
            return None
        is_same = self._is_same_module(computation) and all(
            _has_same_bits(a, b) for a, b in zip(known[0], operands, strict=True)
        )
        return known[1] if is_same else None

    def _value_of(self, op: HloOp, operands: Sequence[Any], call: Call) -> Any:
        value = op.evaluate(operands, call)
        if isinstance(op, FusionOp):
            self.found.setdefault(op.calls.root_reference.data, (operands, leaves_of(value)))
        return value

    def _is_same_module(self, computation: ComputationOp) -> bool:
        ours, theirs = self.entry.parent_op(), computation.parent_op()
        if ours is None or theirs is None:
            return False
        if theirs not in self._compared:
            self._compared[theirs] = ours.is_structurally_equivalent(theirs)
        return self._compared[theirs]


def _has_same_bits(known: object, operand: Array) -> bool:
    """Whether what is known of is an array of the operand's type, shape and bits; it may be a tuple."""
    if not isinstance(known, np.ndarray):
        return False
    array = cast("Array", known)
    if array.dtype != operand.dtype or array.shape != operand.shape:
        return False
    return array.__array_interface__ == operand.__array_interface__ or array.tobytes() == operand.tobytes()


def reaching(
    steps: Sequence[Step],
    computations: Sequence[ComputationOp],
    program: Program,
    inputs: Sequence[Array],
    *,
    most_iterations: int = MOST_ITERATIONS,
    calls: FirstCalls | None = None,
) -> dict[int, Reaching]:
    """Number of a kernel -> its first launch; a kernel that is not reached is left out.

    steps         as planned, kernels named by number
    computations  what each kernel computes
    program       the arrays of all slots
    most_iterations  the limit of every single loop
    calls         what is known of the computations
    raises        what `run_steps` and library functions raise
    """
    platform = ReferenceRun(program, allocate(program, inputs), {}, lambda kernel: (), computations, calls)
    run_steps(steps, platform, most_iterations=most_iterations)
    return platform.given


@dataclass(frozen=True)
class ReferenceRun(Executor):
    """The CPU platform with the reference in place of every kernel.

    given, calls  see `reaching`
    """

    computations: Sequence[ComputationOp] = ()
    calls: FirstCalls | None = None
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
        known = self.calls.results_of(computation, operands) if self.calls is not None else None
        results = evaluate(computation, operands) if known is None else known
        self.given.setdefault(number, Reaching(buffers, results))
        for argument, made in zip(kernel.arguments[count:], results, strict=True):
            self.slots[argument.kind, argument.index] = writable_buffer(made, argument.array)
