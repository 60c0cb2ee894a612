"""Matrix products on the CPU by OpenBLAS, through the C pointers of the package scipy-openblas32.

    gemm = gemm_of((8, 4, 128, 16), (8, 4, 16, 128), ...)          [batch, rows, terms] x [batch, terms, columns], by strides
    gemm.calls("f32", threads)                                     what to call, with offsets from three addresses

The package's OpenBLAS is a copy of its own, beside NumPy's: here it always computes on one thread, so that a sum's order depends on the
sizes alone, and threads share the calls of a large product (`threads.share`), none of which waits for another.
Operands are row major. Where the dimensions of a group (batch, rows, terms, columns) are not next to each other in memory, batch dimensions
need no copy, and for other groups the operand is copied first.
Source: the BLAS standard, C interface. `cblas_?gemm_batch_strided` of OpenBLAS is not used: docs/decisions/25.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

from xla_emitters.dtypes import dtype
from xla_emitters.library.arguments import LETTERS
from xla_emitters.lowering.cpu.cpu_steps import DATA

ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112
MOST = 1 << 31
"""BLAS's integers have 32 bits."""
SHARED_WORK = 1 << 22
"""Multiplications from which on threads share a product: below, waking a thread takes longer."""
PIECES, LEAST_EXTENT = 4, 32
"""Calls per thread of a shared product; rows or columns of the smallest."""
MOST_MATRICES = 4096
"""Of a batch: more calls of small matrices take longer than NumPy's loop."""
Dims: TypeAlias = Sequence[int]
Offsets: TypeAlias = tuple[int, int, int]
"""Bytes from the addresses of left, right and result."""


@cache
def library() -> Any:
    """OpenBLAS, or None where the package is not installed, or its file is not for this system."""
    found = find_spec("scipy_openblas32")
    folders = found.submodule_search_locations if found else None
    for folder in folders or ():
        for path in sorted((Path(folder) / "lib").glob("libscipy_openblas*")):
            if path.suffix in (".so", ".dylib", ".dll"):
                try:
                    loaded = ctypes.CDLL(str(path))
                except OSError:
                    continue
                loaded.scipy_openblas_set_num_threads(1)
                return loaded
    return None


@dataclass(frozen=True)
class Call:
    """One call of BLAS, whose three addresses are set before it: `function(*arguments)`.

    pointers, offsets   of left, right and result: the arguments that hold their addresses, and bytes to add to the arrays'
    """

    function: Callable[..., None]
    arguments: tuple[Any, ...]
    pointers: tuple[Any, Any, Any]
    offsets: Offsets


@dataclass(frozen=True)
class Factor:
    """An operand as matrices.

    order     of its dimensions as it must be copied first; None: it is read where it is
    strides   in elements, of the batch dimensions
    leading   elements between rows, of a transposed one between columns
    """

    order: tuple[int, ...] | None
    strides: tuple[int, ...]
    leading: int
    is_transposed: bool


@dataclass(frozen=True)
class Gemm:
    """Products of a batch of matrices: [m, k] x [k, n]."""

    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    left: Factor
    right: Factor

    @property
    def work(self) -> int:
        """Multiplications."""
        return prod(self.batch) * self.m * self.n * self.k

    def calls(self, element: str, threads: int) -> list[Call]:
        """What computes it: one call a matrix, or PIECES for each thread where there are fewer and the product is large."""
        size, parts = dtype(element).numpy.itemsize, min(threads, self.work // SHARED_WORK + 1)
        places = self._places()
        each, found = -(-(parts * PIECES if parts > 1 else 1) // len(places)), list[Call]()
        for a, b, c in places:
            if each > 1 and self.m >= self.n:
                row = 1 if self.left.is_transposed else self.left.leading
                for first, last in _cut(self.m, each, LEAST_EXTENT):
                    at = a + first * row, b, c + first * self.n
                    found.append(self._call(element, size, at, last - first, self.n))
            elif each > 1:
                column = self.right.leading if self.right.is_transposed else 1
                for first, last in _cut(self.n, each, LEAST_EXTENT):
                    found.append(self._call(element, size, (a, b + first * column, c + first), self.m, last - first))
            else:
                found.append(self._call(element, size, (a, b, c), self.m, self.n))
        return found

    def _places(self) -> list[tuple[int, int, int]]:
        """Where each matrix of the batch begins in left, right and result, in elements."""
        found = [(0, 0, 0)]
        for extent, left, right in zip(self.batch, self.left.strides, self.right.strides, strict=True):
            found = [(a + i * left, b + i * right, c) for a, b, c in found for i in range(extent)]
        return [(a, b, number * self.m * self.n) for number, (a, b, _) in enumerate(found)]

    def _call(self, element: str, size: int, at: Sequence[int], m: int, n: int) -> Call:
        pointers = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        offsets = at[0] * size, at[1] * size, at[2] * size
        if m == 1 or n == 1:
            return Call(_function(element, "gemv"), self._of_vector(element, pointers, m, n), pointers, offsets)
        leading = self.left.leading, self.right.leading, self.n
        arguments = _arguments(
            element, (self.left.is_transposed, self.right.is_transposed), (m, n, self.k), pointers, leading
        )
        return Call(_function(element, "gemm"), arguments, pointers, offsets)

    def _of_vector(self, element: str, pointers: Sequence[ctypes.c_void_p], m: int, n: int) -> tuple[Any, ...]:
        """The arguments of a product of a matrix by a vector: of the left one by a column, or of the right one, turned, by a row."""
        integer = ctypes.c_int
        left, right, result = pointers
        if n == 1:
            matrix, shape, is_turned, at = self.left, (m, self.k), self.left.is_transposed, left
            vector, step, result_step = right, 1 if self.right.is_transposed else self.right.leading, self.n
        else:
            matrix, shape, is_turned, at = self.right, (n, self.k), not self.right.is_transposed, right
            vector, step, result_step = left, self.left.leading if self.left.is_transposed else 1, 1
        stored = shape[::-1] if is_turned else shape
        sizes = (*map(integer, stored), _scalar(element, 1), at, integer(matrix.leading), vector, integer(step))
        form = integer(TRANSPOSED if is_turned else PLAIN)
        return (integer(ROW_MAJOR), form, *sizes, _scalar(element, 0), result, integer(result_step))


def _arguments(
    element: str,
    are_transposed: Sequence[bool],
    sizes: Sequence[int],
    pointers: Sequence[ctypes.c_void_p],
    leading: Sequence[int],
) -> tuple[Any, ...]:
    """Of one call of BLAS: sizes m, n, k; the others are of left, right and, but for the first, result."""
    integer = ctypes.c_int
    forms = [integer(TRANSPOSED if each else PLAIN) for each in are_transposed]
    left, right, result = zip(pointers, map(integer, leading), strict=True)
    one, zero = _scalar(element, 1), _scalar(element, 0)
    return (integer(ROW_MAJOR), *forms, *map(integer, sizes), one, *left, *right, zero, *result)


def multiply(
    element: str,
    are_transposed: Sequence[bool],
    sizes: Sequence[int],
    addresses: Sequence[int],
    leading: Sequence[int],
) -> None:
    """One product: as `_arguments`, at addresses."""
    _function(element, "gemm")(
        *_arguments(element, are_transposed, sizes, list(map(ctypes.c_void_p, addresses)), leading)
    )


def pointer(array: object) -> int:
    """The address of a NumPy array's elements: the first field behind the head of an array object."""
    return ctypes.c_size_t.from_address(id(array) + DATA).value


@cache
def _function(element: str, name: str) -> Callable[..., None]:
    found = getattr(library(), f"scipy_cblas_{LETTERS[element]}{name}")
    found.restype = None
    return found


@cache
def _scalar(element: str, value: int) -> Any:
    """A factor as BLAS takes it: a real number itself, a complex one by its address."""
    match element:
        case "f32":
            return ctypes.c_float(value)
        case "f64":
            return ctypes.c_double(value)
        case "c64":
            return (ctypes.c_float * 2)(value, 0)
        case _:
            return (ctypes.c_double * 2)(value, 0)


def _cut(extent: int, pieces: int, least: int) -> list[tuple[int, int]]:
    pieces = max(1, min(pieces, extent // least))
    ends = [extent * piece // pieces for piece in range(pieces + 1)]
    return list(pairwise(ends))


def gemm_of(left: Dims, right: Dims, batch: tuple[Dims, Dims], summed: tuple[Dims, Dims]) -> Gemm | None:
    """The product of row-major operands of these sizes; None for sizes that do not fit, too many matrices or elements, or none.

    batch, summed   the dimensions of each operand that are paired
    """
    shapes, free = (left, right), list[list[int]]()
    for shape, kept, gone in zip(shapes, batch, summed, strict=True):
        free.append([dim for dim in range(len(shape)) if dim not in (*kept, *gone)])
    for group in (batch, summed):
        if [left[dim] for dim in group[0]] != [right[dim] for dim in group[1]]:
            return None
    m, n = (prod(shape[dim] for dim in dims) for shape, dims in zip(shapes, free, strict=True))
    k = prod(left[dim] for dim in summed[0])
    count = prod(left[dim] for dim in batch[0])
    if not (m and n and k and count) or max(m, n, k) >= MOST or count > MOST_MATRICES:
        return None
    first, second = _factor(left, batch[0], free[0], summed[0]), _factor(right, batch[1], summed[1], free[1])
    if max(first.leading, second.leading) >= MOST:
        return None
    return Gemm(tuple(left[dim] for dim in batch[0]), m, n, k, first, second)


def _factor(shape: Dims, batch: Dims, rows: Dims, columns: Dims) -> Factor:
    strides = [prod(shape[dim + 1 :]) for dim in range(len(shape))]
    of_batch = tuple(strides[dim] for dim in batch)
    row, column = (_stride(shape, strides, dims) for dims in (rows, columns))
    row_count, column_count = (prod(shape[dim] for dim in dims) for dims in (rows, columns))
    if row is not None and column is not None:
        if (column == 1 or column_count == 1) and (row >= column_count or row_count == 1):
            return Factor(None, of_batch, max(row if row_count > 1 else 1, column_count), is_transposed=False)
        if (row == 1 or row_count == 1) and (column >= row_count or column_count == 1):
            return Factor(None, of_batch, max(column if column_count > 1 else 1, row_count), is_transposed=True)
    order = (*batch, *rows, *columns)
    sizes = [shape[dim] for dim in batch]
    copied = tuple(prod(sizes[i + 1 :]) * row_count * column_count for i in range(len(sizes)))
    return Factor(order, copied, column_count, is_transposed=False)


def _stride(shape: Dims, strides: Sequence[int], dims: Dims) -> int | None:
    """The stride of a group as one dimension; None if its elements are not equally far apart. 1 for a group of one element."""
    counted = [(shape[dim], strides[dim]) for dim in dims if shape[dim] != 1]
    for (_, outer), (extent, inner) in pairwise(counted):
        if outer != extent * inner:
            return None
    return counted[-1][1] if counted else 1
