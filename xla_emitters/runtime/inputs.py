"""Random inputs for a computation, as `random_arrays` draws them, but numbers that say where a scatter writes are mostly places that exist.

    f32[500,64] scatter(p, rows, u), s32[64] rows          rows drawn from [-126, 624], not from all s32: some windows lie outside
    the same with unique_indices                           64 different ones of [0, 499]

A parameter says where if the scatter's indices are made of it by moving, choosing, adding and clamping integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp, ParameterOp, enclosing_module
from xla_emitters.dialects.hlo.contractions import ScatterOp
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dtypes import Array
from xla_emitters.runtime.arrays import random_arrays
from xla_emitters.runtime.kernel import ArraySpec

OUTSIDE = 4
"""One in so many places is added below the first and above the last."""
_KEEPS_INDICES = frozenset(
    "add bitcast broadcast clamp concatenate convert copy maximum minimum reshape select slice transpose".split()
)


@dataclass(frozen=True)
class Places:
    """Where a scatter's windows may begin.

    last    the greatest start of a window that lies inside
    window  elements that a window covers, in the dimension where it covers most
    unique  whether windows must not overlap
    """

    last: int
    window: int
    unique: bool


def draw_inputs(computation: ComputationOp, specs: Sequence[ArraySpec], seed: int) -> list[Array]:
    """One array per parameter of `computation`, the same on every machine."""
    arrays = random_arrays(specs, seed)
    for number, places in places_said_by(computation).items():
        arrays[number] = _placed(arrays[number], places, np.random.default_rng([seed, number, 1]))
    return arrays


def places_said_by(computation: ComputationOp) -> dict[int, Places]:
    """Number of a parameter -> the places that it says."""
    found = dict[int, Places]()
    module = enclosing_module(computation)
    called = {op.sym_name.data: op for op in module.ops if isinstance(op, ComputationOp)} if module else {}
    for op in computation.instructions:
        match op:
            case ScatterOp() if op.mapped:
                windows = [op.window_sizes[dim] for dim in op.mapped]
                places = Places(min(op.last_starts), max(windows), op.has_unique_indices)
                for number in _parameters_behind(op.indices):
                    found[number] = places
            case FusionOp():
                inside = places_said_by(called[op.calls.root_reference.data])
                for operand, places in inside.items():
                    for number in _parameters_behind(op.operands[operand]):
                        found[number] = places
            case _:
                pass
    return found


def _parameters_behind(value: SSAValue) -> list[int]:
    """Numbers of the integer parameters that `value` is made of."""
    found = list[int]()
    pending, seen = [value], set[SSAValue]()
    while pending:
        current = pending.pop()
        op = current.owner
        if current in seen or not isinstance(op, HloOp):
            continue
        seen.add(current)
        if isinstance(op, ParameterOp):
            if element_of(op.result).is_integer:
                found.append(op.number.value.data)
        elif op.opcode in _KEEPS_INDICES:
            pending += op.operands[1:] if op.opcode == "select" else op.operands
    return found


def _placed(drawn: Array, places: Places, rng: np.random.Generator) -> Array:
    if places.unique:
        starts = rng.permutation(np.arange(0, places.last + 1, places.window))
        outside = np.full(max(0, drawn.size - starts.size), places.last + places.window)
        chosen = np.concatenate([starts, outside])[: drawn.size]
    else:
        margin = places.last // OUTSIDE + 2
        low = -margin if drawn.dtype.kind == "i" else 0
        chosen = rng.integers(low, places.last + margin, drawn.size, endpoint=True)
    info = np.iinfo(drawn.dtype) if drawn.dtype.kind in "iu" else None
    if info is None:
        return drawn
    return np.clip(chosen, info.min, info.max).astype(drawn.dtype).reshape(drawn.shape)
