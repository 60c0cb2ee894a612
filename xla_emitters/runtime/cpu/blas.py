"""Matrix products on the CPU by OpenBLAS, through the C pointers of the package scipy-openblas32.

    gemm = gemm_of((8, 4, 128, 16), (8, 4, 16, 128), ...)          [batch, rows, terms] x [batch, terms, columns], by strides
    products = gemm.calls("f32", threads, code.address)            what to call, with offsets from three addresses
    products.point(0, address) ...                                 a row of a chain: products.code, products.address, 0, len(products)

The package's OpenBLAS is a copy of its own, beside NumPy's: here it always computes on one thread, so that a sum's order depends on the
sizes alone, and threads share the calls of a large product (`thread_team`), none of which waits for another.
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
from xla_emitters.lowering.cpu.blas_calls import LEFT, RESULT, RIGHT, ROW, ROW_MAJOR

PLAIN, TRANSPOSED = 111, 112
MOST = 1 << 31
"""BLAS's integers have 32 bits."""
SHARED_WORK = 1 << 19
"""Multiplications from which on threads may share a product: its first runs try whether that is faster."""
PIECES, LEAST_EXTENT = 4, 32
"""Calls per thread of a shared product; rows or columns of the smallest."""
MOST_MATRICES = 4096
"""Of a batch: more calls of small matrices take longer than NumPy's loop."""
Dims: TypeAlias = Sequence[int]
StepOf: TypeAlias = Callable[[str], int]


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


def kernels() -> str:
    """OpenBLAS's name for the CPU whose code it uses: what it finds, or what the variable OPENBLAS_CORETYPE says."""
    named = library().scipy_openblas_get_corename
    named.restype = ctypes.c_char_p
    return named().decode()


class Products:
    """The calls of BLAS that compute a product, as a table: see `lowering/cpu/blas_calls`.

    step_of   returns the address of the code of a loop, by the name of BLAS's function
    operands  the words of left, right and result
    forms     what is the same in all calls

    The addresses of the loop's code and of its words are `code` and `address`.
    """

    def __init__(
        self,
        step_of: StepOf,
        name: str,
        operands: tuple[int, int, int],
        forms: Sequence[int],
        rows: Sequence[Sequence[int]],
    ) -> None:
        self.code, self._operands = step_of(name), operands
        self._table = (ctypes.c_int64 * (ROW * len(rows)))(*(number for row in rows for number in row))
        function = ctypes.cast(_function(name), ctypes.c_void_p).value or 0
        words = [function, 0, 0, 0, ctypes.addressof(self._table), *forms]
        self.words, self._count = (ctypes.c_int64 * len(words))(*words), len(rows)
        self.address = ctypes.addressof(self.words)

    def __len__(self) -> int:
        return self._count

    def word(self, operand: int) -> int:
        """The place of an operand's address in the words: 0 is left, 1 right, 2 the result."""
        return self._operands[operand]

    def point(self, operand: int, address: int) -> None:
        """Sets the address of an operand."""
        self.words[self.word(operand)] = address


@dataclass(frozen=True)
class MatrixOperand:
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
    left: MatrixOperand
    right: MatrixOperand

    @property
    def work(self) -> int:
        """Multiplications."""
        return prod(self.batch) * self.m * self.n * self.k

    def calls(self, element: str, threads: int, step_of: StepOf) -> Products:
        """What computes it: one call a matrix, or PIECES for each thread where there are fewer and the product is large."""
        size, parts = dtype(element).numpy.itemsize, min(threads, self.work // SHARED_WORK + 1)
        places = self._places()
        each, rows = -(-(parts * PIECES if parts > 1 else 1) // len(places)), list[tuple[int, ...]]()

        def add(a: int, b: int, c: int, m: int, n: int) -> None:
            rows.append((a * size, b * size, c * size, m, n))

        for a, b, c in places:
            if each > 1 and self.m >= self.n:
                row = 1 if self.left.is_transposed else self.left.leading
                for first, last in _cut(self.m, each, LEAST_EXTENT):
                    add(a + first * row, b, c + first * self.n, last - first, self.n)
            elif each > 1:
                column = self.right.leading if self.right.is_transposed else 1
                for first, last in _cut(self.n, each, LEAST_EXTENT):
                    add(a, b + first * column, c + first, self.m, last - first)
            else:
                add(a, b, c, self.m, self.n)
        if 1 in (self.m, self.n):
            return self._of_vectors(f"{LETTERS[element]}gemv", rows, step_of)
        forms = (*map(_form, (self.left, self.right)), self.k, self.left.leading, self.right.leading, self.n)
        return Products(step_of, f"{LETTERS[element]}gemm", (LEFT, RIGHT, RESULT), forms, rows)

    def _of_vectors(self, name: str, rows: Sequence[tuple[int, ...]], step_of: StepOf) -> Products:
        """Products of a matrix and a column, or of the right matrix, turned, and a row: the matrix is BLAS's first operand."""
        is_column = self.n == 1
        matrix = self.left if is_column else self.right
        is_turned = matrix.is_transposed is is_column
        if is_column:
            step = 1 if self.right.is_transposed else self.right.leading
        else:
            step = self.left.leading if self.left.is_transposed else 1
        found = list[tuple[int, ...]]()
        for a, b, c, m, n in rows:
            extents = (m, self.k) if is_column else (n, self.k)
            found.append((*((a, b) if is_column else (b, a)), c, *(extents[::-1] if is_turned else extents)))
        forms = (TRANSPOSED if is_turned else PLAIN, matrix.leading, step, 1)
        return Products(step_of, name, (LEFT, RIGHT, RESULT) if is_column else (RIGHT, LEFT, RESULT), forms, found)

    def _places(self) -> list[tuple[int, int, int]]:
        """Where each matrix of the batch begins in left, right and result, in elements."""
        found = [(0, 0, 0)]
        for extent, left, right in zip(self.batch, self.left.strides, self.right.strides, strict=True):
            found = [(a + i * left, b + i * right, c) for a, b, c in found for i in range(extent)]
        return [(a, b, number * self.m * self.n) for number, (a, b, _) in enumerate(found)]


def _form(factor: MatrixOperand) -> int:
    return TRANSPOSED if factor.is_transposed else PLAIN


def multiply(
    element: str,
    are_transposed: Sequence[bool],
    sizes: Sequence[int],
    addresses: Sequence[int],
    leading: Sequence[int],
) -> None:
    """One product: sizes m, n, k; the others are of left, right and, but for the first, result."""
    integer = ctypes.c_int
    forms = [integer(TRANSPOSED if each else PLAIN) for each in are_transposed]
    left, right, result = zip(map(ctypes.c_void_p, addresses), map(integer, leading), strict=True)
    one, zero = _scalar(element, 1), _scalar(element, 0)
    _function(f"{LETTERS[element]}gemm")(
        integer(ROW_MAJOR), *forms, *map(integer, sizes), one, *left, *right, zero, *result
    )


@cache
def _function(name: str) -> Any:
    found = getattr(library(), f"scipy_cblas_{name}")
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


def _factor(shape: Dims, batch: Dims, rows: Dims, columns: Dims) -> MatrixOperand:
    strides = [prod(shape[dim + 1 :]) for dim in range(len(shape))]
    of_batch = tuple(strides[dim] for dim in batch)
    row, column = (_stride(shape, strides, dims) for dims in (rows, columns))
    row_count, column_count = (prod(shape[dim] for dim in dims) for dims in (rows, columns))
    if row is not None and column is not None:
        if (column == 1 or column_count == 1) and (row >= column_count or row_count == 1):
            return MatrixOperand(None, of_batch, max(row if row_count > 1 else 1, column_count), is_transposed=False)
        if (row == 1 or row_count == 1) and (column >= row_count or column_count == 1):
            return MatrixOperand(None, of_batch, max(column if column_count > 1 else 1, row_count), is_transposed=True)
    order = (*batch, *rows, *columns)
    sizes = [shape[dim] for dim in batch]
    copied = tuple(prod(sizes[i + 1 :]) * row_count * column_count for i in range(len(sizes)))
    return MatrixOperand(order, copied, column_count, is_transposed=False)


def _stride(shape: Dims, strides: Sequence[int], dims: Dims) -> int | None:
    """The stride of a group as one dimension; None if its elements are not equally far apart. 1 for a group of one element."""
    counted = [(shape[dim], strides[dim]) for dim in dims if shape[dim] != 1]
    for (_, outer), (extent, inner) in pairwise(counted):
        if outer != extent * inner:
            return None
    return counted[-1][1] if counted else 1
