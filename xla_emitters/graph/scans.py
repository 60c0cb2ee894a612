"""Windows that are scans: each element of the result combines all elements of its row up to it.

    prefix    y[i] = body(... body(init, x[0]) ..., x[i])    a window as large as the row; all but its last place is padding before it
    suffix    y[i] = body of x[i], ... x[n - 1] and init     all but its first place is padding behind the row

Source: StableHLO specification, "reduce_window".
"""

from __future__ import annotations

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, ParameterOp
from xla_emitters.dialects.hlo.reductions import ReduceWindowOp
from xla_emitters.dialects.hlo.types import dims_of

PREFIX, SUFFIX = "prefix", "suffix"
COMMUTING = frozenset(f"hlo.{name}" for name in ("add", "and", "maximum", "minimum", "multiply", "or", "xor"))
"""Bodies that may combine their elements in any order."""


def commutes(computation: ComputationOp) -> bool:
    """Whether a body is one op that may combine its elements in any order."""
    root = computation.root.owner
    if not isinstance(root, HloOp) or root.name not in COMMUTING:
        return False
    numbers = [operand.owner.number.value.data for operand in root.operands if isinstance(operand.owner, ParameterOp)]
    return sorted(numbers) == [0, 1]


def scan_along(hero: ReduceWindowOp, dim: int) -> str | None:
    """PREFIX or SUFFIX for a window that scans a dimension of known size; None for any other."""
    size, window = dims_of(hero.operands[0])[dim], hero.window.data.dims
    if size < 2 or len(hero.operands) != 2 or any(along.steps != (1, 1, 1) or along.reversed for along in window):
        return None
    others = [other for at, other in enumerate(window) if at != dim]
    if any((other.size, other.low, other.high) != (1, 0, 0) for other in others) or window[dim].size < size:
        return None
    rest = window[dim].size - 1
    return {(rest, 0): PREFIX, (0, rest): SUFFIX}.get((window[dim].low, window[dim].high))
