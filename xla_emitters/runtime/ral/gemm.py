"""Batched matrix products: the implementation of `ral_gemm`.

    gemm = Gemm(["f32", "f32", "f32"])
    gemm(ctx, stream, x, w, y, False, True, False)          y[b] = x[b] w[b]^T

A product of f32 or f64 is computed by the machine code of `ctx`'s kernels (`lowering/host_products`), if it has any; otherwise by NumPy.
(`disc-widen-half-products` makes f32 of f16 and bf16 where machine code is used.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from xla_emitters.errors import DataError
from xla_emitters.library.arguments import Array
from xla_emitters.library.gemm import arranged
from xla_emitters.runtime.ral.context import STAGE, Call, check_result, compute_by_library
from xla_emitters.runtime.ral.kernels import Kernels, ProductWork

SHARED, READ = 1 << 24, 8
"""Scalar multiplications from which on threads share a product; reading an element of a factor takes as long as so many."""
FEW_COLUMNS = 16
"""If a product has fewer columns than this, and more rows than columns, its rows fill vectors better."""
PLAIN = {("f32",) * 3: "f32", ("f64",) * 3: "f64"}
"""Element types of products for which there is machine code."""


class Factors(NamedTuple):
    """A product as three batches of matrices, in the shapes of `ProductWork`."""

    left: Array
    right: Array
    out: Array

    @property
    def is_turned(self) -> bool:
        """Whether the transposed product is computed."""
        return self.right.shape[-1] < min(FEW_COLUMNS, self.left.shape[-2])

    @property
    def work(self) -> ProductWork:
        """The product as machine code takes it."""
        left, right, out = self
        if self.is_turned:
            left, right, out = right.swapaxes(-1, -2), left.swapaxes(-1, -2), out.swapaxes(-1, -2)
        multiplications = out.size * left.shape[-1] + READ * (left.size + right.size)
        return ProductWork((out, left, right), multiplications > SHARED)


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
            factors = self.factors(lhs, rhs, out, lhs_transposed, rhs_transposed)
            kernels = ctx.context.kernels if ctx is not None else None
            if kernels is not None and kernels.multiply(self.plain, factors.work):
                return
            left, right, result = factors
            if np.may_share_memory(left, right):
                right = right.copy()  # for a matrix times itself NumPy computes only one half, which gives other bits
            np.matmul(left, right, out=result)
            return
        config = {**GEMM, "lhs_contracting": [summed[0]], "rhs_contracting": [summed[1]]}
        config["lhs_batch"] = config["rhs_batch"] = list(range(batch))
        compute = compute_by_library if ctx is None else ctx.compute
        compute([out], "gemm", {**config, "types": self._types[:2]}, [lhs, rhs], self._types[2:])

    def factors(self, lhs: Array, rhs: Array, out: Array, lhs_transposed: bool, rhs_transposed: bool) -> Factors:
        """The product as batches of matrices: views, except for a transposed `lhs` with several free dimensions."""
        batch = rhs.ndim - 2
        count = prod(rhs.shape[:batch])
        left = lhs.swapaxes(-1, -2) if lhs_transposed else lhs
        right = rhs.swapaxes(-1, -2) if rhs_transposed else rhs
        rows, terms, columns = prod(left.shape[batch:-1]), left.shape[-1], right.shape[-1]
        return Factors(
            left.reshape(count, rows, terms), right.reshape(count, terms, columns), out.reshape(count, rows, columns)
        )


class Contraction:
    """A product of arrays of f32 or f64 with any dimension numbers, as a batch of matrix products.

    dimensions  of both arrays: batch dimensions of the left and the right one; contracted dimensions likewise
    element     HLO's name of the element type
    kernels     compute the product
    otherwise   computes it without machine code, and reports operands that do not fit
    """

    def __init__(
        self,
        dimensions: tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]],
        element: str,
        kernels: Kernels,
        otherwise: Callable[..., None],
    ) -> None:
        self._left_batch, self._right_batch, self._left_summed, self._right_summed = dimensions
        self.element = element
        self._kernels = kernels
        self._otherwise = otherwise

    def __call__(self, left: Array, right: Array, out: Array) -> None:
        factors = self.factors(left, right, out)
        if factors is None or not self._kernels.multiply(self.element, factors.work):
            self._otherwise(left, right, out)

    def factors(self, left: Array, right: Array, out: Array) -> Factors | None:
        """The product as batches of matrices; None where the sizes do not fit.

        Batch and heads of attention are two dimensions: heads are nearer in memory than places, and would have to be copied.
        """
        lefts, rights = (*self._left_batch, *self._left_summed), (*self._right_batch, *self._right_summed)
        fits = [left.shape[dim] for dim in lefts] == [right.shape[dim] for dim in rights]
        free = [size for dim, size in enumerate(left.shape) if dim not in lefts]
        columns = [size for dim, size in enumerate(right.shape) if dim not in rights]
        batch = [left.shape[dim] for dim in self._left_batch]
        if not fits or list(out.shape) != [*batch, *free, *columns]:
            return None
        outer = self._outer(left, right)
        lefts, rights = ((dims[:outer], dims[outer:]) for dims in (self._left_batch, self._right_batch))
        return Factors(
            arranged(left, *lefts, contracting=self._left_summed, contracting_last=True),
            arranged(right, *rights, contracting=self._right_summed, contracting_last=False),
            out.reshape(prod(batch[:outer]), prod(batch[outer:]), prod(free), prod(columns)),
        )

    def _outer(self, left: Array, right: Array) -> int:
        """The number of batch dimensions up to the first that does not lead to the next by a single stride."""
        for number in range(1, len(self._left_batch)):
            for array, dims in ((left, self._left_batch), (right, self._right_batch)):
                one, other = dims[number - 1 : number + 1]
                if array.strides[one] != array.strides[other] * array.shape[other]:
                    return number
        return 0


GEMM: Mapping[str, Any] = {
    "operands": ["lhs", "rhs"],
    "outputs": ["d"],
    "alpha": [1, 0],
    "beta": 0,
    "epilogue": "DEFAULT",
    "rounds": None,
}
"""The configuration of a plain product for `library`."""
