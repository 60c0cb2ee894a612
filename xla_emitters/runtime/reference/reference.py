"""The NumPy reference: a computation's value, instruction by instruction. The bounds of what kernels may return are in `reference_bounds`.

    evaluate(computation, [x])          -> [y]            each op in its own type, as its class says (`HloOp.evaluate`)

Values are freed after their last use, so a chain of ops over a large array needs memory for a few arrays, not one per op.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from xdsl.ir import Operation, SSAValue

from xla_emitters.dialects.hlo.base import Call, HloOp, written_at
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    ParameterOp,
    enclosing_module,
    find_computation,
)
from xla_emitters.dialects.hlo.constant import ConstantOp, IotaOp
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.shape_ops import MoveOp
from xla_emitters.dialects.hlo.sized import at_sizes
from xla_emitters.dialects.hlo.types import dims_of, element_of, has_dynamic_dims, is_array
from xla_emitters.dtypes import Array
from xla_emitters.runtime.arrays import refuse_beyond_memory
from xla_emitters.runtime.reference.tolerance import Bounds
from xla_emitters.runtime.repetition import Repetition, asked_after, too_long
from xla_emitters.support.limits import iteration_limit

if TYPE_CHECKING:
    from xla_emitters.graph.loop_recurrences import LoopEnd

ValueOf: TypeAlias = Callable[[HloOp, Sequence[Any], Call], Any]


def own_value(op: HloOp, operands: Sequence[Any], call: Call) -> Any:
    """The value of `op` as its class defines it."""
    return op.evaluate(operands, call)


def evaluate(
    computation: ComputationOp,
    inputs: Sequence[Any],
    *,
    value_of: ValueOf = own_value,
) -> list[Array]:
    """One array per leaf of the root, from one value per parameter: an array, or a tuple of values.

    value_of  an instruction's value at the sizes of its operands; by default `own_value`
    raises    ExecutionError for a loop that does not end, or not within `iteration_limit()`
    """
    _, step = _calls_beside(computation, value_of)
    with np.errstate(all="ignore"):
        return leaves_of(Schedule.of(computation).run(inputs, step))


def call_beside(beside: Operation) -> Call:
    """Evaluates computations of the module that contains `beside`, called by name, as `HloOp.evaluate` needs."""
    return _calls_beside(beside, own_value)[0]


def _calls_beside(beside: Operation, value_of: ValueOf) -> tuple[Call, Callable[[HloOp, Sequence[Any]], Any]]:
    """How called computations and single instructions are evaluated."""
    called = dict[str, tuple[Schedule, dict[HloOp, Any]]]()
    is_sized = dict[HloOp, bool]()

    def call(name: str, operands: Sequence[Any]) -> Any:
        if name not in called:  # a reduction calls it for every element of a row
            called[name] = Schedule.of(find_computation(beside, name)), {}
        schedule, kept = called[name]
        return schedule.run(operands, step, kept)

    def step(op: HloOp, operands: Sequence[Any]) -> Any:
        if op not in is_sized:
            is_sized[op] = any(has_dynamic_dims(value.type) for value in (*op.operands, op.result))
        sized = at_sizes(op, operands) if is_sized[op] else op
        if sized is not op and is_array(sized.result.type) and not has_dynamic_dims(sized.result.type):
            refuse_beyond_memory(
                dims_of(sized.result), element_of(sized.result), f"%{op.instruction_name.data} = {op.opcode}"
            )
        return value_of(sized, operands, limited(call, op) if op.opcode == "while" else call)

    return call, step


def limited(call: Call, loop: HloOp) -> Call:
    """`call`, limited to as many calls as `iteration_limit()` of a loop needs; beyond, or when a state repeats, it raises ExecutionError
    naming the loop."""
    most_iterations = iteration_limit()
    left, repetition = 2 * most_iterations + 1, Repetition()
    conditions = loop.symbols("condition") if isinstance(loop, RuleOp) else ()
    condition = conditions[0].root_reference.data if conditions else ""
    watched = not any(
        isinstance(op, HloOp) and op.opcode in UNREPEATABLE for op in (enclosing_module(loop) or loop).walk()
    )

    from xla_emitters.graph.loop_recurrences import (  # imported here: few programs have loops
        deciding_leaves,
        loop_end_of,
    )

    ends, decisive = loop_end_of(loop), deciding_leaves(loop)
    asked = 0 if ends is None else asked_after(is_exact=ends.is_exact)
    foreseen = left - 2 * asked  # at a call of the condition, as `left` is odd

    def counted(name: str, operands: Sequence[Any]) -> Any:
        nonlocal left
        is_too_long = ends is not None and left == foreseen and _outlasts(ends, operands, most_iterations - asked)
        if is_too_long or not left:
            raise too_long(loop.instruction_name.data, most_iterations, "reference", written_at(loop))
        left -= 1
        if watched and name == condition and repetition.is_found(lambda: _bytes_of(operands, decisive)):
            raise repetition.error(loop.instruction_name.data, "reference", written_at(loop))
        return call(name, operands)

    return counted


def _outlasts(ends: LoopEnd, operands: Sequence[Any], most: int) -> bool:
    """Whether a loop in this state runs more than `most` times."""
    leaves = [leaf for value in operands for leaf in leaves_of(value)]
    held = [leaves[leaf] for leaf in ends.leaves]
    if any(isinstance(leaf, Bounds) and not leaf.is_point for leaf in held):
        return False
    return ends.outlasts([leaf.low if isinstance(leaf, Bounds) else leaf for leaf in held], most)


UNREPEATABLE = frozenset(("infeed", "recv", "recv-done", "rng", "rng-get-and-update-state"))
"""Ops whose value is not determined by their operands."""


def _bytes_of(values: Sequence[Any], decisive: Collection[int] | None) -> Iterator[bytes]:
    """The bits of the arrays of a loop's state, small ones first. Of bounds both ends.

    decisive  the numbers of those that count; None: all
    """
    leaves = [leaf for value in values for leaf in leaves_of(value)]
    leaves = [leaf for number, leaf in enumerate(leaves) if decisive is None or number in decisive]
    ends = [end for leaf in leaves for end in (leaf.ends if isinstance(leaf, Bounds) else (leaf,))]
    return (end.tobytes() for end in sorted(ends, key=lambda end: end.nbytes))


MOST_KEPT_BYTES = 1 << 16
"""Of a value that is kept between the runs of a computation."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """A computation as a list of steps.

    parameters  their values, and the inputs' numbers
    steps       an instruction, its operands, and those of them that it is the last to use
    fixed       instructions with the same value in every run, of at most MOST_KEPT_BYTES
    """

    root: SSAValue
    parameters: tuple[tuple[SSAValue, int], ...]
    steps: tuple[tuple[HloOp, tuple[SSAValue, ...], frozenset[SSAValue]], ...]
    fixed: frozenset[HloOp]

    @staticmethod
    def of(computation: ComputationOp) -> Schedule:
        """raises DataError for an instruction whose value exceeds the limit on memory."""
        root, instructions = computation.root, list(computation.instructions)
        last_use: dict[SSAValue, Operation] = {operand: op for op in instructions for operand in op.operands}
        parameters, steps, fixed = list[tuple[SSAValue, int]](), list[Any](), set[HloOp]()
        for op in instructions:
            if isinstance(op, ParameterOp):
                parameters.append((op.result, op.number.value.data))
                continue
            if is_array(op.result.type) and not has_dynamic_dims(op.result.type):
                refuse_beyond_memory(dims_of(op.result), element_of(op.result), f"%{op.instruction_name.data}")
            operands = tuple(op.operands)
            done = frozenset(operand for operand in operands if last_use[operand] is op and operand is not root)
            steps.append((op, operands, done))
            if _is_constant(op) and all(operand.owner in fixed for operand in operands):
                fixed.add(op)
        return Schedule(root, tuple(parameters), tuple(steps), frozenset(fixed))

    def run(
        self,
        inputs: Sequence[Any],
        step: Callable[[HloOp, Sequence[Any]], Any],
        kept: dict[HloOp, Any] | None = None,
    ) -> Any:
        """The root's value. `kept`: the values of `fixed` from earlier runs, which nothing may change; None: they are computed again"""
        values = {value: inputs[number] for value, number in self.parameters}
        for op, operands, done in self.steps:
            if kept and op in kept:
                values[op.result] = kept[op]
            else:
                values[op.result] = step(op, [values[operand] for operand in operands])
                if kept is not None and op in self.fixed:
                    kept[op] = values[op.result]
            for operand in done:
                del values[operand]
        return values[self.root]


def _is_constant(op: HloOp) -> bool:
    """Whether the value of an instruction is the same whenever its operands are, and small."""
    if not isinstance(op, ConstantOp | IotaOp | MoveOp | ElementwiseOp) or not is_array(op.result.type):
        return False
    if has_dynamic_dims(op.result.type):
        return False
    return prod(dims_of(op.result)) * element_of(op.result).bits <= 8 * MOST_KEPT_BYTES


def leaves_of(value: Any) -> list[Any]:
    parts = cast("tuple[Any, ...]", value)
    return [leaf for part in parts for leaf in leaves_of(part)] if isinstance(value, tuple) else [value]
