"""What a host program asks of a platform: launches of kernels, by name, and products and convolutions by machine code.

    kernels.launch("main_kLoop_add_0", (5, 1, 1), (256, 1, 1), 0, [x, y])

`context` says what a call keeps; the classes that implement `Kernels` are `host_kernels`, `simt_kernels`, `cupy_kernels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple, Protocol, TypeAlias

from xla_emitters.library.arguments import Array
from xla_emitters.program.arrays import Extents

Accesses: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""Which arguments of a kernel are read, and which are written."""


FEWEST_ITEMS, FEWEST_ROWS = 16, 32
"""If threads share a product of fewer items, an item has fewer rows, but not fewer than this."""


class ProductWork(NamedTuple):
    """A batch of matrix products as machine code takes it (`lowering/host_products`).

    arrays    result, left and right factors, each [batch, rows, columns], or [outer batch, batch, rows, columns]: two dimensions, if no
              single stride leads from one matrix to the next
    is_shared whether threads share it

    `across` is the number of columns of an item.
    """

    arrays: tuple[Array, Array, Array]
    is_shared: bool

    def items(self, across: int) -> int:
        """What threads can share."""
        *batches, rows, columns = self.arrays[0].shape
        return prod(batches) * -(-rows // self.rows_at_once(across)) * -(-columns // across)

    def rows_at_once(self, across: int) -> int:
        """Rows of an item: a thread packs the columns once for all of them."""
        *batches, rows, columns = self.arrays[0].shape
        found, blocks = max(1, rows), prod(batches) * -(-columns // across)
        while self.is_shared and found > FEWEST_ROWS and blocks * -(-rows // found) < FEWEST_ITEMS:
            found = -(-found // 16) * 8
        return found

    def words(self, first: int, last: int, across: int) -> tuple[int, ...]:
        """Those of a step behind the addresses, for some of the items."""
        out, left, _ = self.arrays
        strides = (stride for array in self.arrays for stride in (0, *array.strides)[-4:])
        steps = (stride // out.itemsize for stride in strides)
        return first, last, self.rows_at_once(across), across, *out.shape[-3:], left.shape[-1], *steps


class ConvolutionWork(NamedTuple):
    """A convolution as machine code takes it (`lowering/host_convolutions`).

    arrays    result, image, kernel
    features  of the result that are computed at once
    parts     of all features, in all groups
    columns   places of the result, of the whole batch
    is_shared whether threads share it
    sizes     the last words
    rows      of the result, if features are neighbours in all arrays, so that a row is a product (`lowering/host_row_convolutions`); else 0
    """

    arrays: tuple[Array, Array, Array]
    features: int
    parts: int
    columns: int
    is_shared: bool
    sizes: tuple[int, ...]
    rows: int = 0

    def items(self, lanes: int) -> int:
        """What threads can share, where so many places are computed at once."""
        return self.rows or self.parts * -(-self.columns // lanes)

    def words(self, first: int, last: int) -> tuple[int, ...]:
        """Those of a step behind the addresses, for some of the items."""
        return first, last, self.features, *self.sizes


class Kernels(Protocol):
    """The kernels of a program, on a platform: found by name, made ready before the first launch."""

    def launch(
        self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any]
    ) -> int | None:
        """Launches a kernel on arrays and numbers. raises DataError, ExecutionError

        returns  the nanoseconds that its code ran; None where that is not measured
        """
        ...

    def multiply(self, element: str, work: ProductWork) -> bool:
        """Computes products of matrices of f32 or f64. False: the platform has no code for it."""
        return False

    def convolve(self, element: str, work: ConvolutionWork) -> bool:
        """Computes a convolution of f32 or f64. False: the platform has no code for it."""
        return False
