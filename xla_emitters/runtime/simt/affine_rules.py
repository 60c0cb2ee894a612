"""`affine`: maps applied to lanes.

affine.apply affine_map<(d0)[s0] -> (d0 floordiv 4 + s0)>(%i)[%j]     quotients round down, remainders have the divisor's sign
affine.min, affine.max                                                the least or greatest of a map's results
affine.delinearize_index, affine.linearize_index                      the first extent of a basis is not used

Source: MLIR 22, affine dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr

from xla_emitters.dialects.mlir import affine
from xla_emitters.dialects.mlir.affine import DelinearizeIndexOp, LinearizeIndexOp, MaxOp
from xla_emitters.dtypes import Array
from xla_emitters.runtime.simt.code import Binary, Kernel, Rules
from xla_emitters.runtime.simt.machine import Machine
from xla_emitters.runtime.simt.scalars import INDEX
from xla_emitters.runtime.simt.xla_gpu_rules import as_lanes

RULES = Rules()


def results_of(affine_map: AffineMapAttr) -> Callable[..., list[Array]]:
    """A function from the map's operands, dims then symbols, to its results."""
    dims = affine_map.data.num_dims

    def evaluate(*operands: Array) -> list[Array]:
        # xDSL's evaluation does plain Python arithmetic, which arrays do too.
        given: Any = operands
        return [as_lanes(INDEX, result.eval(given[:dims], given[dims:])) for result in affine_map.data.results]

    return evaluate


@RULES.op(affine.ApplyOp)
def apply(op: affine.ApplyOp) -> Kernel:
    evaluate = results_of(op.map)

    def run(machine: Machine, *operands: Array) -> Array:
        return evaluate(*operands)[0]

    return run


def _chosen(affine_map: AffineMapAttr, choose: Binary, machine: Machine, *operands: Array) -> Array:
    return reduce(choose, results_of(affine_map)(*operands))


@RULES.op(affine.MinOp)
def minimum(op: affine.MinOp) -> Kernel:
    return partial(_chosen, op.map, np.minimum)


@RULES.op(MaxOp)
def maximum(op: MaxOp) -> Kernel:
    return partial(_chosen, op.map, np.maximum)


def _inner_extents(
    op: DelinearizeIndexOp | LinearizeIndexOp, coordinates: int, dynamic: Sequence[Array]
) -> list[Array]:
    """The extents of all dimensions but the first, which the ops do not use."""
    left = iter(dynamic)
    extents = [np.full((1, 1), e) if isinstance(e, int) else next(left) for e in op.basis]
    return extents[len(extents) - coordinates + 1 :] if coordinates else []


@RULES.kernel(DelinearizeIndexOp)
def delinearize_index(op: DelinearizeIndexOp, machine: Machine, index: Array, *dynamic: Array) -> list[Array] | Array:
    count = len(op.multi_index)
    coordinates: list[Array] = []
    for extent in reversed(_inner_extents(op, count, dynamic)):
        machine.refuse(op, extent <= 0, "has an extent of zero or less")
        extent = np.where(extent <= 0, 1, extent)
        coordinates.append(index % extent)
        index = index // extent
    coordinates.append(index)
    return coordinates[0] if count == 1 else coordinates[:count][::-1]


@RULES.kernel(LinearizeIndexOp)
def linearize_index(op: LinearizeIndexOp, machine: Machine, *operands: Array) -> Array:
    count = len(op.multi_index)
    number = np.zeros((1, 1), np.int64)
    extents = [np.ones((1, 1), np.int64), *_inner_extents(op, count, operands[count:])]
    for coordinate, extent in zip(operands[:count], extents, strict=False):
        number = number * extent + coordinate
    return number
