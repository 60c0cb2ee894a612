"""Evaluates HLO with buffers: an operand that a fusion declares to overwrite is lost, and later readers of it get the new values.

    s = fusion(a, ...), output_to_operand_aliasing={{}: (0, {})}
    r = add(a, s)                                                   add(s, s): the array a is overwritten

HLO's semantics has no buffers, so if a pass lets a fusion overwrite an array that is still needed, the module and each kernel are right by
themselves; only the whole program is wrong. Here its values are wrong too. Tuples, their elements and bitcasts share their operand's
memory; the state of a loop or a branch is copied, so overwriting inside is not visible outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp, aliased_operands
from xla_emitters.dtypes import Array
from xla_emitters.runtime.reference.reference import Call, evaluate, own_value

_SHARE = frozenset({"bitcast", "tuple", "get-tuple-element"})
_RUN_OTHERS = frozenset({"while", "conditional", "call", "async-start"})


def declares_overwrites(computation: ComputationOp) -> bool:
    """Whether an instruction declares to overwrite an operand."""
    return any(
        isinstance(op, FusionOp) and op.output_to_operand_aliasing is not None for op in computation.instructions
    )


def evaluate_overwriting(computation: ComputationOp, inputs: Sequence[Any]) -> list[Array]:
    """Like `reference.evaluate`, but with arrays that are overwritten. The inputs are not changed."""
    return evaluate(computation, _own(tuple(inputs)), value_of=_value)


def _value(op: Any, operands: Sequence[Any], call: Call) -> Any:
    if op.opcode in _SHARE:
        return own_value(op, operands, call)
    given = [_own(operand) for operand in operands] if op.opcode in _RUN_OTHERS else operands
    value = _own(own_value(op, given, call))
    if not isinstance(op, FusionOp) or op.output_to_operand_aliasing is None:
        return value
    for output, number, inside in aliased_operands(op.output_to_operand_aliasing):
        value = _written(value, output, _leaf(operands[number], inside))
    return value


def _written(value: Any, index: Sequence[int], over: Array) -> Any:
    """The value with the leaf at `index` copied to the memory of `over`."""
    if not index:
        over[...] = value
        return over
    first, *rest = index
    return tuple(_written(each, rest, over) if n == first else each for n, each in enumerate(value))


def _leaf(value: Any, index: Sequence[int]) -> Array:
    for number in index:
        value = value[number]
    return value


def _own(value: Any) -> Any:
    """A copy that shares no memory; tokens and scalars are returned unchanged."""
    if isinstance(value, tuple):
        return tuple(_own(each) for each in cast(tuple[Any, ...], value))
    return cast(Array, value).copy() if isinstance(value, np.ndarray) else value
