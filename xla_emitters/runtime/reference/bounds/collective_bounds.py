"""Bounds of a collective's results: every device exchanges the low ends of its bounds, then the high ends.

    moves (gather, permute, all-to-all ...)           the ends, moved
    sums, maxima, minima in the group's order         monotone, each rounded step too: the ends, combined
    other combinations of floats                      unbounded

What is done never depends on the numbers of one device: the others would wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, ParameterOp
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dtypes import Array, Kind
from xla_emitters.runtime.reference.tolerance import everything, settled

_MONOTONE = ("add", "maximum", "minimum", "and", "or")


def bounds_of_collective(
    op: RuleOp,
    operands: Sequence[Any],
    evaluate: Callable[[Sequence[Array]], Any],
    reducer: ComputationOp | None,
) -> Any:
    """The bounds of the op's result, in its structure.

    operands  bounds, or tuples of them
    evaluate  the reference: the op's value on arrays
    reducer   the computation that combines; None for a move
    """
    ends = [evaluate([_end(bounds, end) for bounds in operands]) for end in range(2)]
    return _together(*ends, is_known=reducer is None or _is_monotone(reducer))


def _end(bounds: Any, end: int) -> Any:
    """The low or the high end, in the structure of an operand; a token is ()."""
    if isinstance(bounds, tuple):
        return tuple(_end(part, end) for part in cast("tuple[Any, ...]", bounds))
    return bounds.ends[end]


def _is_monotone(reducer: ComputationOp) -> bool:
    """Whether larger operands give no smaller a result; of whole numbers, which are points, any is."""
    if all(element_of(parameter.result).kind not in (Kind.FLOAT, Kind.COMPLEX) for parameter in reducer.parameters):
        return True
    root = reducer.root.owner
    if not isinstance(root, HloOp) or root.opcode not in _MONOTONE:
        return False
    return all(isinstance(operand.owner, ParameterOp) for operand in root.operands)


def _together(low: Any, high: Any, *, is_known: bool) -> Any:
    if isinstance(low, tuple):
        parts = zip(cast("tuple[Any, ...]", low), cast("tuple[Any, ...]", high), strict=True)
        return tuple(_together(*pair, is_known=is_known) for pair in parts)
    return settled(low, high) if is_known else everything(low.dtype, low.shape)
