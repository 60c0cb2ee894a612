"""What a `while` counts: a loop that will run too long is then known before it begins.

    condition: compare(fusion(i), n), direction=LT       ->       LoopCounter(leaf=0, bound=2, is_leaf=True, step=1, "LT", s32)
    body:      tuple(add(i, 1), f(x), n)

The counter is an integer of the state that the body changes by a constant and that the condition compares, and nothing else decides: with a
constant, or with a number of the state that the body hands on. Fusions, calls and copies between are followed. What wraps around
does so here as in the loop. Not found: several conditions, steps that are data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

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
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import CompareOp, CopyOp
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array, leaf_types

_SWAPPED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}


@dataclass(frozen=True)
class LoopCounter:
    """leaf: number of the counter among the arrays of the loop's state; bound: a number, or, if `is_leaf`, the number of such an array."""

    leaf: int
    bound: int
    is_leaf: bool
    step: int
    direction: str
    dtype: str


_Affine = tuple[int | None, int]
"""(leaf of the state, or None; what is added to it)."""
_Value = _Affine | list["_Value | None"] | None
"""Of an instruction: an integer, the values of a tuple, or None: not known."""


def counter_of(loop: HloOp) -> LoopCounter | None:
    """The counter of a `while`; None where none is found."""
    if not isinstance(loop, RuleOp) or len(loop.operands) != 1:
        return None
    types = leaf_types(loop.operands[0].type)
    state: list[_Value] = [(number, 0) for number in range(len(types))]
    condition, body = (find_computation(loop, loop.symbols(name)[0]) for name in ("condition", "body"))
    compared = _Followed(condition, [state]).compared(condition.root)
    after = _Followed(body, [state]).of(body.root)
    if compared is None or not isinstance(after, list) or len(after) != len(types):
        return None
    direction, one, other = compared
    for (leaf, added), (bound, offset), way in (
        (one, other, direction),
        (other, one, _SWAPPED.get(direction, direction)),
    ):
        steps = None if leaf is None else after[leaf]
        if leaf is None or added or not isinstance(steps, tuple) or steps[0] != leaf:
            continue
        if not _is_counted(types[leaf]) or not steps[1]:
            continue
        if bound is None or (offset == 0 and bound != leaf and after[bound] == (bound, 0)):
            number, is_leaf = (offset, False) if bound is None else (bound, True)
            return LoopCounter(leaf, number, is_leaf, steps[1], way, element_of(types[leaf]).name)
    return None


def _is_counted(ir_type: Attribute) -> bool:
    """Integers of whole bytes."""
    return (
        is_array(ir_type) and not dims_of(ir_type) and element_of(ir_type).is_integer and element_of(ir_type).bits >= 8
    )


class _Followed:
    """The integers of a computation, as sums of its arguments and constants. From the root on: other instructions are not looked at."""

    def __init__(self, computation: ComputationOp, arguments: Sequence[_Value]) -> None:
        self.computation, self.arguments = computation, arguments

    def of(self, value: SSAValue) -> _Value:
        op = value.owner
        match op:
            case ParameterOp():
                return self.arguments[op.number.value.data]
            case TupleOp():
                return [self.of(operand) for operand in op.operands]
            case GetTupleElementOp():
                whole = self.of(op.operands[0])
                return whole[op.index.value.data] if isinstance(whole, list) else None
            case CopyOp():
                return self.of(op.operands[0])
            case FusionOp() | CallOp():
                inner = self._inner(op)
                return inner.of(inner.computation.root)
            case ConstantOp() if is_array(op.result.type) and not dims_of(op.result) and not op.is_elided:
                return (None, int(op.array())) if element_of(op.result).is_integer else None
            case HloOp(opcode="add" | "subtract"):
                x, y = (self.of(operand) for operand in op.operands)
                if not isinstance(x, tuple) or not isinstance(y, tuple):
                    return None
                if op.opcode == "subtract":
                    return (x[0], x[1] - y[1]) if y[0] is None else None
                return (x[0] if y[0] is None else y[0], x[1] + y[1]) if None in (x[0], y[0]) else None
            case _:
                return None

    def compared(self, value: SSAValue) -> tuple[str, _Affine, _Affine] | None:
        """Direction and sides of the comparison that a predicate is."""
        op = value.owner
        match op:
            case FusionOp() | CallOp():
                inner = self._inner(op)
                return inner.compared(inner.computation.root)
            case CompareOp():
                one, other = (self.of(operand) for operand in op.operands)
                if not isinstance(one, tuple) or not isinstance(other, tuple):
                    return None
                return op.direction.data, one, other
            case _:
                return None

    def _inner(self, op: FusionOp | CallOp) -> _Followed:
        return _Followed(find_computation(op, op.callees()[0].symbol), [self.of(operand) for operand in op.operands])
