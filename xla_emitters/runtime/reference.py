"""The NumPy reference: a computation's value, instruction by instruction, and the bounds of what any correct kernel may give.

    evaluate(computation, [x])          -> [y]            each op in its own type, as its class says (`HloOp.evaluate`)
    evaluate_bounds(computation, [x])   -> [Bounds]       the same with every op's tolerance carried along (`tolerance`)

Values are freed after their last use, so a chain of ops over a large array needs a few arrays and not one per op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation, SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    CallOp,
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    find_computation,
)
from xla_emitters.dialects.hlo.gather_scatter import ScatterOp
from xla_emitters.dialects.hlo.reductions import ReduceOp, ReducingOp
from xla_emitters.dialects.hlo.types import as_array, dims_of, element_of, is_array
from xla_emitters.dtypes import Array
from xla_emitters.errors import InternalError
from xla_emitters.fusions.reductions import chains_of_heroes
from xla_emitters.runtime.arrays import refuse_beyond_memory
from xla_emitters.runtime.reduction_bounds import bounds_in_any_order, corners_of_each
from xla_emitters.runtime.scatter_bounds import bounds_of_scatter
from xla_emitters.runtime.tolerance import Bounds, bounds_after


def evaluate(computation: ComputationOp, inputs: Sequence[Array]) -> list[Array]:
    """One array per leaf of the root, from one array per parameter."""

    called = dict[str, _Schedule]()

    def call(name: str, operands: Sequence[Any]) -> Any:
        if name not in called:  # a reduction calls it for every element of a row
            called[name] = _Schedule.of(find_computation(computation, name))
        return called[name].run(operands, step)

    def step(op: HloOp, operands: Sequence[Any]) -> Any:
        return op.evaluate(operands, call)

    with np.errstate(all="ignore"):
        return _leaves(_Schedule.of(computation).run(inputs, step))


def evaluate_bounds(computation: ComputationOp, inputs: Sequence[Array]) -> list[Bounds]:
    """What is admissible for each leaf of the root, given exact inputs."""
    chains: dict[ComputationOp, dict[ReduceOp, int]] = {}

    def chain_of(op: ReduceOp) -> int | None:
        """How many combinations in a row, where threads share the reduction; else it goes in the reference's order."""
        around = op.parent_op()
        assert isinstance(around, ComputationOp)
        if around not in chains:
            chains[around] = chains_of_heroes(around)
        return chains[around].get(op)

    def step(op: HloOp, operands: Sequence[Any]) -> Any:
        match op:
            case FusionOp() | CallOp():
                return _Schedule.of(find_computation(computation, op.callees()[0].symbol)).run(operands, step)
            case TupleOp() | GetTupleElementOp():
                return op.evaluate(operands, _no_call)
            case ReduceOp() if (chain := chain_of(op)) is not None:
                with np.errstate(all="ignore"):
                    return bounds_in_any_order(op, operands, chain, corner(op))
            case ScatterOp():
                body = find_computation(computation, op.to_apply)
                return bounds_of_scatter(op, body, operands, corner(op))
            case ReducingOp() if len(op.arrays) > 1:
                return tuple(corners_of_each(operands, corner(op)))
            case _:
                return bounds_after(op.opcode, as_array(op.result.type).element_type, operands, corner(op))

    def corner(op: HloOp) -> Callable[[Sequence[Array]], Array]:
        def evaluate_once(operands: Sequence[Array]) -> Array:
            with np.errstate(all="ignore"):
                return op.evaluate(operands, call)

        return evaluate_once

    def call(name: str, operands: Sequence[Any]) -> Any:
        leaves = evaluate(find_computation(computation, name), operands)
        return leaves[0] if len(leaves) == 1 else tuple(leaves)

    return _leaves(_Schedule.of(computation).run([Bounds(array, array) for array in inputs], step))


@dataclass(frozen=True, eq=False)
class _Schedule:
    """A computation as steps.

    parameters  their values, and the inputs' numbers
    steps       an instruction, its operands, and those of them that no later one needs
    """

    root: SSAValue
    parameters: tuple[tuple[SSAValue, int], ...]
    steps: tuple[tuple[HloOp, tuple[SSAValue, ...], frozenset[SSAValue]], ...]

    @staticmethod
    def of(computation: ComputationOp) -> _Schedule:
        """raises DataError for an instruction whose value is beyond the memory here."""
        root, instructions = computation.root, list(computation.instructions)
        last_use: dict[SSAValue, Operation] = {operand: op for op in instructions for operand in op.operands}
        parameters, steps = list[tuple[SSAValue, int]](), list[Any]()
        for op in instructions:
            if isinstance(op, ParameterOp):
                parameters.append((op.result, op.number.value.data))
                continue
            if is_array(op.result.type):
                refuse_beyond_memory(dims_of(op.result), element_of(op.result), f"%{op.instruction_name.data}")
            operands = tuple(op.operands)
            done = frozenset(operand for operand in operands if last_use[operand] is op and operand is not root)
            steps.append((op, operands, done))
        return _Schedule(root, tuple(parameters), tuple(steps))

    def run(self, inputs: Sequence[Any], step: Callable[[HloOp, Sequence[Any]], Any]) -> Any:
        values = {value: inputs[number] for value, number in self.parameters}
        for op, operands, done in self.steps:
            values[op.result] = step(op, [values[operand] for operand in operands])
            for operand in done:
                del values[operand]
        return values[self.root]


def _leaves(value: Any) -> list[Any]:
    parts = cast("tuple[Any, ...]", value)
    return [leaf for part in parts for leaf in _leaves(part)] if isinstance(value, tuple) else [value]


def _no_call(name: str, operands: Sequence[Any]) -> Any:
    raise InternalError(f"a tuple calls '{name}'", stage="reference")
