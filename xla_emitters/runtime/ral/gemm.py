"""Batched matrix products: the implementation of `ral_gemm`.

    gemm = Gemm(["f32", "f32", "f32"])
    gemm(ctx, stream, x, w, y, False, True, False)          y[b] = x[b] w[b]^T

A product of f32 or f64 is NumPy's, into the result's memory; others are computed by `library`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from xla_emitters.errors import DataError
from xla_emitters.library.arguments import Array
from xla_emitters.runtime.ral.context import STAGE, Call, check_result, compute_by_library

PLAIN = {("f32",) * 3: "f32", ("f64",) * 3: "f64"}
"""Element types of products that NumPy computes into the result."""


class Gemm:
    """A product of given element types; see the file's head.

    types  HLO's names of the element types: both factors, the result
    """

    def __init__(self, types: Sequence[str]) -> None:
        self._types = list(types)
        self.plain = PLAIN.get(tuple(types))

    def __call__(
        self,
        ctx: Call | None,
        stream: None,
        lhs: Array,
        rhs: Array,
        out: Array,
        lhs_transposed: bool,
        rhs_transposed: bool,
        _: bool,
    ) -> None:
        """Writes the product into `out`. raises DataError if the sizes do not fit"""
        batch = rhs.ndim - 2
        summed = lhs.ndim - 1 - lhs_transposed, rhs.ndim - 2 + rhs_transposed
        free = [size for dim, size in enumerate(lhs.shape) if dim != summed[0]]
        columns = rhs.shape[-2 if rhs_transposed else -1]
        if lhs.shape[summed[0]] != rhs.shape[summed[1]] or lhs.shape[:batch] != rhs.shape[:batch]:
            raise DataError(
                f"no product of {list(lhs.shape)} and {list(rhs.shape)}: "
                f"dimension {summed[0]} of the one is summed with dimension {summed[1]} of the other",
                stage=STAGE,
            )
        check_result(out, (*free, columns))
        if self.plain is not None and (ctx is None or ctx.is_on_host):
            left, right, result = self.factors(lhs, rhs, out, lhs_transposed, rhs_transposed)
            if np.may_share_memory(left, right):
                right = right.copy()  # for a matrix times itself NumPy computes only one half, which gives other bits
            np.matmul(left, right, out=result)
            return
        config = {**GEMM, "lhs_contracting": [summed[0]], "rhs_contracting": [summed[1]]}
        config["lhs_batch"] = config["rhs_batch"] = list(range(batch))
        compute = compute_by_library if ctx is None else ctx.compute
        compute([out], "gemm", {**config, "types": self._types[:2]}, [lhs, rhs], self._types[2:])

    def factors(
        self, lhs: Array, rhs: Array, out: Array, lhs_transposed: bool, rhs_transposed: bool
    ) -> tuple[Array, Array, Array]:
        """The product as batches of matrices: views, except for a transposed `lhs` with several free dimensions."""
        batch = rhs.ndim - 2
        count = prod(rhs.shape[:batch])
        left = lhs.swapaxes(-1, -2) if lhs_transposed else lhs
        right = rhs.swapaxes(-1, -2) if rhs_transposed else rhs
        rows, terms, columns = prod(left.shape[batch:-1]), left.shape[-1], right.shape[-1]
        shapes = (count, rows, terms), (count, terms, columns), (count, rows, columns)
        return left.reshape(shapes[0]), right.reshape(shapes[1]), out.reshape(shapes[2])


GEMM: Mapping[str, Any] = {
    "operands": ["lhs", "rhs"],
    "outputs": ["d"],
    "alpha": [1, 0],
    "beta": 0,
    "epilogue": "DEFAULT",
    "rounds": None,
}
"""The configuration of a plain product for `library`."""
