"""Matrix products of any dimension numbers by NumPy's BLAS, into the result's own memory.

    multiply = product_of(dot)          of f32, f64 and complex numbers; None for other types, and for an algorithm of its own
    multiply(left, right, out)

Each group of dimensions becomes one: [batch, rows, terms] @ [batch, terms, columns]. Batch dimensions stay apart, so that heads of
attention, which are nearer in memory than places, are not copied. BLAS adds in an order of its own, on as many threads as it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from xla_emitters.dialects.hlo.base import fault
from xla_emitters.dialects.hlo.contractions import DotOp
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dtypes import Array
from xla_emitters.runtime.blas import LETTERS

Product: TypeAlias = Callable[[Array, Array, Array], None]
"""(left, right, out)"""
MOST_SHAPES = 64
"""Shapes of a product whose matrices are kept."""


def is_of_blas(dot: DotOp) -> bool:
    """Whether BLAS has its element type, and its algorithm is left open."""
    types = {element_of(value).name for value in (*dot.operands, dot.result)}
    return len(types) == 1 and types <= LETTERS.keys() and dot.algorithm is None


def product_of(dot: DotOp) -> Product | None:
    """See the file's head."""
    if not is_of_blas(dot):
        return None
    pairing = dot.pairing
    left_of = _Arranged(pairing.lhs_batch, pairing.lhs_contracting, terms_last=True)
    right_of = _Arranged(pairing.rhs_batch, pairing.rhs_contracting, terms_last=False)

    matrices = dict[tuple[tuple[int, ...], ...], list[tuple[int, ...]]]()  # of the shapes of (left, right, out)

    def matrices_of(left: Array, right: Array, out: Array) -> list[tuple[int, ...]]:
        (batch, rows, terms), (other_batch, columns, other_terms) = left_of.sizes(left), right_of.sizes(right)
        if batch != other_batch or terms != other_terms or out.shape != (*batch, *rows, *columns):
            raise fault(
                dot, f"the sizes differ: no product of {list(left.shape)} and {list(right.shape)} is {list(out.shape)}"
            )
        m, k, n = prod(rows), prod(terms), prod(columns)
        return [(*batch, m, k), (*batch, k, n), (*batch, m, n)]

    def multiply(left: Array, right: Array, out: Array) -> None:
        key = left.shape, right.shape, out.shape
        if (found := matrices.get(key)) is None:
            if len(matrices) >= MOST_SHAPES:
                matrices.clear()
            found = matrices[key] = matrices_of(left, right, out)
        first, second = left_of(left, found[0]), right_of(right, found[1])
        if np.may_share_memory(first, second):
            second = second.copy("K")  # of a matrix times itself NumPy computes only one half, which gives other bits
        np.matmul(first, second, out=out.reshape(found[2]))

    return multiply


class _Arranged:
    """A factor as a batch of matrices."""

    def __init__(self, batch: Sequence[int], summed: Sequence[int], *, terms_last: bool) -> None:
        self._batch, self._summed, self._terms_last = tuple(batch), tuple(summed), terms_last
        self._orders = dict[int, tuple[list[int], list[int]]]()

    def _order(self, rank: int) -> tuple[list[int], list[int]]:
        """The free dimensions, and all in the order of the matrices."""
        if rank not in self._orders:
            free = [dim for dim in range(rank) if dim not in (*self._batch, *self._summed)]
            groups = (self._batch, free, self._summed) if self._terms_last else (self._batch, self._summed, free)
            self._orders[rank] = free, [dim for group in groups for dim in group]
        return self._orders[rank]

    def sizes(self, array: Array) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Sizes of the batch, the free and the summed dimensions."""
        shape, free = array.shape, self._order(array.ndim)[0]
        batch, summed = tuple([shape[dim] for dim in self._batch]), tuple([shape[dim] for dim in self._summed])
        return batch, tuple([shape[dim] for dim in free]), summed

    def __call__(self, array: Array, matrices: tuple[int, ...]) -> Any:
        return array.transpose(self._order(array.ndim)[1]).reshape(matrices)
