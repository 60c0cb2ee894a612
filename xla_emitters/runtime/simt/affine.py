"""`affine`: maps applied to lanes.

affine.apply affine_map<(d0)[s0] -> (d0 floordiv 4 + s0)>(%i)[%j]     quotients round down, remainders have the divisor's sign
affine.min, affine.max                                                the least or greatest of a map's results

Source: MLIR 22, affine dialect.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
from xdsl.dialects import affine
from xdsl.dialects.builtin import AffineMapAttr

from xla_emitters.dtypes import Array
from xla_emitters.runtime.simt.code import Binary, Kernel, Rules
from xla_emitters.runtime.simt.machine import Machine
from xla_emitters.runtime.simt.scalars import INDEX
from xla_emitters.runtime.simt.xla_gpu import as_lanes

RULES = Rules()


def results_of(map: AffineMapAttr) -> Callable[..., list[Array]]:
    """A function of the map's operands, dims then symbols, that gives its results."""
    dims = map.data.num_dims

    def evaluate(*operands: Array) -> list[Array]:
        # xDSL's evaluation does plain Python arithmetic, which arrays do too.
        given: Any = operands
        return [as_lanes(INDEX, result.eval(given[:dims], given[dims:])) for result in map.data.results]

    return evaluate


@RULES.op(affine.ApplyOp)
def apply(op: affine.ApplyOp) -> Kernel:
    evaluate = results_of(op.map)

    def run(machine: Machine, *operands: Array) -> Array:
        return evaluate(*operands)[0]

    return run


def _chosen(map: AffineMapAttr, choose: Binary, machine: Machine, *operands: Array) -> Array:
    return reduce(choose, results_of(map)(*operands))


@RULES.op(affine.MinOp)
def minimum(op: affine.MinOp) -> Kernel:
    return partial(_chosen, op.map, np.minimum)
