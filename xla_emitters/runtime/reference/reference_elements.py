"""Some elements of a computation's results, without the others: where a few blocks of a kernel run, only these are compared.

    evaluate_elements(computation, [x], [mask])  ->  [y[mask]]      the bits of `evaluate`

The places of the elements are followed from the results to the parameters by the ops' own index maps; then each op computes its value at
these places. That is possible where each element of a result depends on single elements at known places: through elementwise ops and moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, ParameterOp, TupleOp
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import BitcastConvertOp, ElementwiseOp
from xla_emitters.dialects.hlo.shape_ops import MoveOp
from xla_emitters.dialects.hlo.types import has_dynamic_dims, is_array
from xla_emitters.dtypes import Array
from xla_emitters.runtime.reference.reference import call_beside

Places: TypeAlias = tuple[Any, ...]
"""An index of each dimension of an array: integers, and arrays of one shape."""
Key: TypeAlias = tuple[SSAValue, tuple[int, ...]]

MOST_VALUES = 4
"""Most values per instruction: one that is read at many different places is cheaper to compute as a whole."""


def evaluate_elements(computation: ComputationOp, inputs: Sequence[Any], wanted: Sequence[Array]) -> list[Array] | None:
    """Of each result the elements where its mask holds, in order; None where they depend on others than single elements.

    inputs  one array per parameter
    wanted  one mask per result, of its shape
    """
    instructions = [op for op in computation.instructions if not isinstance(op, TupleOp)]
    needed = dict[SSAValue, dict[Key, Places]]()

    def need(value: SSAValue, at: Places) -> Key:
        key = value, tuple(map(id, at))
        needed.setdefault(value, {})[key] = at
        return key

    if len(computation.roots) != len(wanted):
        return None  # several arrays are the results of one op
    # A number has one place, whether it is wanted or not.
    places = [np.nonzero(mask) if mask.ndim else () for mask in wanted]
    roots = [need(*pair) for pair in zip(computation.roots, places, strict=True)]
    steps = list[tuple[HloOp, Key, Places, list[Key]]]()
    for op in reversed(instructions):
        found = needed.get(op.result, {})
        if (found and not _reads_single_elements(op)) or len(steps) > MOST_VALUES * len(instructions):
            return None
        for key, at in found.items():
            maps = () if isinstance(op, ParameterOp | ConstantOp) else op.output_to_input()
            reads = [need(operand, each.evaluate(at)) for operand, each in zip(op.operands, maps, strict=True)]
            steps.append((op, key, at, reads))
    values, call = dict[Key, Any](), call_beside(computation)
    with np.errstate(all="ignore"):
        for op, key, at, reads in reversed(steps):
            match op:
                case ParameterOp():
                    values[key] = np.asarray(inputs[op.number.value.data])[at]
                case ConstantOp():
                    values[key] = np.asarray(op.evaluate([], call))[at]
                case MoveOp():
                    values[key] = np.broadcast_to(values[reads[0]], np.broadcast(*at).shape if at else ())
                case _:
                    values[key] = op.evaluate([values[read] for read in reads], call)
    flat = [np.reshape(values[key], -1) for key in roots]
    return [made if mask.ndim else made[mask.reshape(-1)] for made, mask in zip(flat, wanted, strict=True)]


def _reads_single_elements(op: HloOp) -> bool:
    if isinstance(op, ParameterOp | ConstantOp):
        return is_array(op.result.type)
    if not is_array(op.result.type) or any(has_dynamic_dims(value.type) for value in (*op.operands, op.result)):
        return False
    return isinstance(op, MoveOp) or (isinstance(op, ElementwiseOp) and not _has_parts(op))


def _has_parts(op: ElementwiseOp) -> bool:
    """Whether several elements of one array have the bits of one of the other."""
    return isinstance(op, BitcastConvertOp) and op.parts != 1
