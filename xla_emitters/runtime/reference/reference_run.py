"""Runs the steps of a plan with the NumPy reference in place of every kernel: gives the arrays that reach each kernel.

    reaching(plan, inputs)      {0: Reaching(buffers of kernel 0's arguments, its results), 1: ...}

Kernels are named by number, as `graph/plan` leaves them; each is evaluated as the computation that it is compiled from.
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
from xla_emitters.graph.plan import ProgramPlan
from xla_emitters.program.executable import executable_of
from xla_emitters.program.step_values import Argument
from xla_emitters.program.steps import ArrayPlace, Launch, Recurrence
from xla_emitters.runtime.arrays import copy_donated, writable_buffer
from xla_emitters.runtime.layouts import from_buffer, to_buffer
from xla_emitters.runtime.loaded import LoadedProgram
from xla_emitters.runtime.numpy_calls import NumpyCalls
from xla_emitters.runtime.plain_ops import flat_function
from xla_emitters.runtime.reference.reference import evaluate, leaves_of
from xla_emitters.runtime.scalar_computations import on_elements, outlasts
from xla_emitters.runtime.walk import Frame, HostMemory, Run


@dataclass(frozen=True)
class Reaching:
    """Inputs and expected results of a kernel.

    buffers  of its arguments
    results  logical arrays; none where they were not to be computed
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

    def evaluate(self, inputs: Sequence[Array]) -> list[Array]:
        """The results of `entry`; its calls are recorded."""
        results = evaluate(self.entry, inputs, value_of=self._value_of)
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
    plan: ProgramPlan,
    inputs: Sequence[Array],
    *,
    calls: FirstCalls | None = None,
    is_computed: bool = True,
) -> dict[int, Reaching]:
    """Number of a kernel -> its first launch; a kernel that is not reached is left out.

    inputs  logical arrays that fit the plan's parameters
    calls   what is known of the computations
    is_computed  whether the kernels' results are computed; without them only the first step has its arrays
    raises  what a run and library functions raise
    """
    platform = ReferencePlatform(plan, calls, is_computed=is_computed)
    made = executable_of(plan.arrays, plan.steps, plan.calls, arguments_of(plan))
    loaded = LoadedProgram(made, platform, HostMemory(np.zeros))
    given = [writable_buffer(array, spec) for array, spec in zip(inputs, plan.arrays.parameters, strict=True)]
    copy_donated(given, loaded.donated, donate=False)
    loaded.run(given)
    return platform.given


def arguments_of(plan: ProgramPlan) -> dict[str, Sequence[Argument]]:
    """The arguments of a kernel, by the name that its launches have in the plan: its number."""
    return {str(number): kernel.arguments for number, kernel in enumerate(plan.kernels)}


class ReferencePlatform(NumpyCalls):
    """The reference in place of every kernel.

    plan   its launches name kernels by number
    calls, is_computed  as for `reaching`
    given  number of a kernel -> its first launch so far
    """

    def __init__(self, plan: ProgramPlan, calls: FirstCalls | None = None, *, is_computed: bool = True) -> None:
        super().__init__(lambda number: flat_function(plan.calls[number], on_elements=on_elements))
        self.given = dict[int, Reaching]()
        self._kernels, self._first_calls, self._is_computed = plan.kernels, calls, is_computed

    def outlasts(self, ends: Recurrence, state: Sequence[Any], most: int) -> bool:
        return outlasts(ends, state, most)

    def launch(self, frame: Frame, step: Launch) -> Run:
        number = int(step.kernel)
        planned = self._kernels[number]
        computation, arguments = planned.view.computation, planned.arguments
        operands = frame.operands([value for value in step.arguments if isinstance(value, ArrayPlace)])
        count = len(computation.parameters)

        def run() -> None:
            buffers = operands()
            given = [from_buffer(buffer, each.array) for buffer, each in zip(buffers[:count], arguments, strict=False)]
            known = self._first_calls.results_of(computation, given) if self._first_calls is not None else None
            results = (evaluate(computation, given) if self._is_computed else []) if known is None else known
            if number not in self.given:
                # An array that two arguments share is one array after it is copied, too. What a kernel only writes begins as zeros.
                kept = {id(buffer): buffer.copy() for buffer in buffers[:count]}
                for buffer in buffers[count:]:
                    kept.setdefault(id(buffer), np.zeros_like(buffer))
                self.given[number] = Reaching([kept[id(buffer)] for buffer in buffers], results)
            for buffer, made, argument in zip(buffers[count:], results, arguments[count:], strict=self._is_computed):
                buffer[...] = to_buffer(made, argument.array)

        return run
