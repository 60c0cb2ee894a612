"""Factorizations and triangular systems, of batches of matrices [..., m, n], in LAPACK's forms.

    cholesky              a = l l^H: `lower` says which triangle is read and written; all NaN if there is no factor
    triangular_solve      op(a) x = b, or x op(a) = b: one triangle of `a` is read
    lu                    p a = l u: both in one matrix, pivots counted from 1, info: number of the first zero pivot, or 0
    permutation_of_pivots pivots counted from 0 -> the permutation that they make
    qr                    R and, below it, Householder vectors v (1 first); scales tau: Q is the product of all 1 - tau v v^H
    householder_product   Q from vectors and scales
    tridiagonal_solve     a x = b for a with three diagonals, by elimination with exchanges of neighbouring rows
    eig                   values of any matrix, vectors as columns, of length 1; all NaN, as in eigh, if an element is not finite
    eigh                  ascending values, vectors as columns; of one triangle
    svd                   a = u s v^H: values descending; all NaN, as in eigh, if an element is not finite

Operands behind these, which list the sizes of results in a program with unknown sizes, are not read.
Results that are not unique (signs and phases of vectors) are NumPy's. f32, f64 and complex types only.
Source: LAPACK users' guide, potrf trsm getrf geqrf orgqr gtsv geev syevd gesvd; docs/reference/1 6.8.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from xla_emitters.errors import Unsupported
from xla_emitters.library.arguments import LETTERS, Array, LibraryArguments

PANEL = 32
"""Columns that are eliminated one by one; what they change of the columns right of them is a product of matrices."""


def cholesky(arguments: LibraryArguments) -> list[Array]:
    """`factor`, zero in the other triangle; with `info`, the operand's elements there, and info: 1 for matrices without a factor."""
    matrices, xp, lower = _matrices(arguments, 0), arguments.xp, arguments.config["lower"]
    read = xp.tril(matrices) if lower else xp.conj(xp.swapaxes(xp.triu(matrices), -1, -2))
    below = xp.tril(read, -1)
    whole = below + xp.conj(xp.swapaxes(below, -1, -2)) + read * xp.eye(read.shape[-1], dtype=read.dtype)
    found = _cholesky_of(whole, xp)
    pivots = xp.real(xp.diagonal(found, axis1=-2, axis2=-1))
    fails = ~(pivots > 0).all(axis=-1)
    found = xp.tril(found) if lower else xp.conj(xp.swapaxes(xp.tril(found), -1, -2))
    if "info" in arguments.config["outputs"]:
        found = found + (xp.triu(matrices, 1) if lower else xp.tril(matrices, -1))
    found = xp.where(fails[..., None, None], xp.asarray(np.nan, found.dtype), found)
    return _outputs(arguments, {"factor": found, "info": fails.astype(np.int32)})


def _cholesky_of(matrices: Array, xp: Any) -> Array:
    """Factors; all NaN where there is none. NumPy raises if one of the matrices has none, so each is then tried alone."""
    try:
        return xp.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        if matrices.ndim == 2:
            return xp.full_like(matrices, np.nan)
    return xp.stack([_cholesky_of(matrix, xp) for matrix in matrices])


def triangular_solve(arguments: LibraryArguments) -> list[Array]:
    """`solution`, of the shape of the right-hand sides."""
    config, xp = arguments.config, arguments.xp
    matrices, right = _matrices(arguments, 0), _matrices(arguments, 1)
    lower, transposed = config["lower"], config["transpose_a"]
    if transposed != "NO_TRANSPOSE":
        matrices, lower = xp.swapaxes(matrices, -1, -2), not lower
        matrices = xp.conj(matrices) if transposed == "ADJOINT" else matrices
    if not config["left_side"]:
        # x a = b is a^T x^T = b^T.
        matrices, right, lower = xp.swapaxes(matrices, -1, -2), xp.swapaxes(right, -1, -2), not lower
    found = _substituted(matrices, right, lower=lower, unit=config["unit_diagonal"], xp=xp)
    return _outputs(arguments, {"solution": found if config["left_side"] else xp.swapaxes(found, -1, -2)})


def _substituted(matrices: Array, right: Array, *, lower: bool, unit: bool, xp: Any) -> Array:
    """Substitution row by row, each with the rows before it."""
    count = matrices.shape[-1]
    if xp is not np:
        return _solved_on_gpu(matrices, right, lower=lower, unit=unit, xp=xp)
    found = np.zeros_like(right)
    for step in range(count):
        row = step if lower else count - 1 - step
        known = slice(0, row) if lower else slice(row + 1, count)
        value = right[..., row, :] - (matrices[..., row : row + 1, known] @ found[..., known, :])[..., 0, :]
        found[..., row, :] = value if unit else value / matrices[..., row, row][..., None]
    return found


def _solved_on_gpu(matrices: Array, right: Array, *, lower: bool, unit: bool, xp: Any) -> Array:
    linalg: Any = import_module("cupyx.scipy.linalg")
    found = xp.empty_like(right)
    for index in np.ndindex(*matrices.shape[:-2]):
        found[index] = linalg.solve_triangular(matrices[index], right[index], lower=lower, unit_diagonal=unit)
    return found


def lu(arguments: LibraryArguments) -> list[Array]:
    """`factors`, `pivots`, `info`."""
    matrices = _matrices(arguments, 0)
    if arguments.on_gpu:
        return _lu_on_gpu(arguments, matrices)
    found = matrices.copy()
    rows, columns = found.shape[-2:]
    pivots = np.zeros((*found.shape[:-2], min(rows, columns)), np.int32)
    count = math.prod(found.shape[:-2])
    _eliminate(found.reshape(count, rows, columns), pivots.reshape(count, min(rows, columns)))
    info = _first_zero(np.diagonal(found, axis1=-2, axis2=-1), np)
    return _outputs(arguments, {"factors": found, "pivots": pivots, "info": info})


def _lu_on_gpu(arguments: LibraryArguments, matrices: Array) -> list[Array]:
    linalg: Any = import_module("cupyx.scipy.linalg")
    xp, batch, count = arguments.xp, matrices.shape[:-2], min(matrices.shape[-2:])
    factors, pivots = xp.empty_like(matrices), xp.zeros((*batch, count), np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a zero pivot, which `info` says
        for index in np.ndindex(*batch if count else (0,)):
            factors[index], places = linalg.lu_factor(matrices[index], check_finite=False)
            pivots[index] = places + 1
    info = _first_zero(xp.diagonal(factors, axis1=-2, axis2=-1), xp)
    return _outputs(arguments, {"factors": factors, "pivots": pivots, "info": info})


def _first_zero(pivots: Array, xp: Any) -> Array:
    """For each matrix the number, from 1, of its first pivot that is zero, or 0."""
    is_zero = pivots == 0
    first = xp.argmax(is_zero, axis=-1) + 1 if pivots.shape[-1] else xp.zeros(pivots.shape[:-1], np.int32)
    return xp.where(is_zero.any(axis=-1), first, 0).astype(np.int32)


def _eliminate(matrices: Array, pivots: Array) -> None:
    """Gaussian elimination in place with partial pivoting, of all matrices at a time: PANEL columns, then what is right of them."""
    every, (count, columns) = np.arange(len(matrices)), (pivots.shape[-1], matrices.shape[-1])
    for first in range(0, count, PANEL):
        last = min(first + PANEL, count)
        for k in range(first, last):
            column = matrices[:, k:, k]
            chosen = k + np.argmax(np.abs(np.real(column)) + np.abs(np.imag(column)), axis=1)
            pivots[:, k] = chosen + 1
            matrices[every, chosen], matrices[:, k] = matrices[:, k].copy(), matrices[every, chosen]
            pivot, below = matrices[:, k, k, None], matrices[:, k + 1 :, k]
            below /= np.where(pivot == 0, 1, pivot)  # below a zero pivot all elements are zero
            matrices[:, k + 1 :, k + 1 : last] -= below[..., None] * matrices[:, k, None, k + 1 : last]
        if last < columns:
            panel, right = matrices[:, first:last, first:last], matrices[:, first:last, last:]
            right[...] = _substituted(panel, right, lower=True, unit=True, xp=np)
            matrices[:, last:, last:] -= matrices[:, last:, first:last] @ right


def permutation_of_pivots(arguments: LibraryArguments) -> list[Array]:
    """The permutation of rows after all exchanges. A pivot that is not a row exchanges nothing."""
    xp, count = arguments.xp, arguments.results[0][1][-1]
    pivots = arguments.operands[0].reshape(-1, arguments.operands[0].shape[-1])
    rows = xp.arange(len(pivots))
    found = xp.broadcast_to(xp.arange(count, dtype=np.int32), (len(pivots), count)).copy()
    for k in range(min(pivots.shape[-1], count)):
        p = pivots[:, k]
        p = xp.where((p >= 0) & (p < count), p, k)
        own, other = found[rows, k], found[rows, p]
        found[rows, k] = other
        found[rows, p] = own
    return [found.reshape(arguments.results[0][1])]


def qr(arguments: LibraryArguments) -> list[Array]:
    """`factors`, `scales`."""
    matrices, xp = _matrices(arguments, 0), arguments.xp
    count = min(matrices.shape[-2:])
    factors, scales = xp.empty_like(matrices), xp.empty((*matrices.shape[:-2], count), matrices.dtype)
    for index in np.ndindex(*matrices.shape[:-2]) if arguments.on_gpu else [...]:  # NumPy factors a batch at once
        transposed, scales[index] = xp.linalg.qr(matrices[index], mode="raw")
        factors[index] = xp.swapaxes(transposed, -1, -2)
    return _outputs(arguments, {"factors": factors, "scales": scales})


def householder_product(arguments: LibraryArguments) -> list[Array]:
    """`product`: the first columns of Q, as many as the matrix of vectors has."""
    vectors, scales, xp = _matrices(arguments, 0), arguments.operands[1], arguments.xp
    rows, columns = vectors.shape[-2:]
    found = xp.broadcast_to(xp.eye(rows, columns, dtype=vectors.dtype), vectors.shape).copy()
    for k in reversed(range(scales.shape[-1])):
        v = vectors[..., k:, k : k + 1].copy()
        v[..., 0, :] = 1
        seen = found[..., k:, :]
        found[..., k:, :] = seen - scales[..., k, None, None] * v @ (xp.conj(xp.swapaxes(v, -1, -2)) @ seen)
    return _outputs(arguments, {"product": found})


def _of_finite(matrices: Array, xp: Any, decomposed: Callable[[Array], Sequence[Array]]) -> list[Array]:
    """What `decomposed` gives; all NaN for a matrix with an element that is not finite: NumPy raises for it, JAX returns NaN."""
    finite = xp.isfinite(matrices).all(axis=(-1, -2)) if matrices.size else xp.ones(matrices.shape[:-2], np.bool_)
    found = decomposed(xp.where(finite[..., None, None], matrices, matrices.dtype.type(0)))
    kept = [finite.reshape(finite.shape + (1,) * (array.ndim - finite.ndim)) for array in found]
    return [xp.where(at, array, xp.asarray(np.nan, array.dtype)) for at, array in zip(kept, found, strict=True)]


def eigh(arguments: LibraryArguments) -> list[Array]:
    """`vectors`, `values`, `info` (0)."""
    matrices, xp, triangle = _matrices(arguments, 0), arguments.xp, "L" if arguments.config["lower"] else "U"
    values, vectors = _of_finite(matrices, xp, lambda safe: xp.linalg.eigh(safe, UPLO=triangle))
    info = xp.zeros(matrices.shape[:-2], np.int32)
    return _outputs(arguments, {"vectors": vectors, "values": values, "info": info})


def svd(arguments: LibraryArguments) -> list[Array]:
    """`values`, `left`, `right`: v, or its adjoint if the configuration says so; `overwritten` (the operand), `info` (0).

    Without `left` and `right` among the results it takes half the time.
    """
    config, xp = arguments.config, arguments.xp
    matrices, full = _matrices(arguments, 0), config["full_matrices"]
    found = {"overwritten": matrices, "info": xp.zeros(matrices.shape[:-2], np.int32)}
    if "left" not in config["outputs"]:
        (values,) = _of_finite(matrices, xp, lambda safe: [xp.linalg.svd(safe, compute_uv=False)])
        return _outputs(arguments, found | {"values": values})
    left, values, right = _of_finite(matrices, xp, lambda safe: xp.linalg.svd(safe, full_matrices=full))
    if not config["adjoint"]:
        right = xp.conj(xp.swapaxes(right, -1, -2))
    return _outputs(arguments, found | {"values": values, "left": left, "right": right})


def tridiagonal_solve(arguments: LibraryArguments) -> list[Array]:
    """`solution`, of the shape of the right-hand sides; `info`: number, from 1, of the first pivot that is zero, or 0.

    All diagonals have the length of the middle one: the first element of the lower one and the last of the upper one are not read.
    """
    xp = arguments.xp
    below, diagonal, above, right = (_matrices(arguments, number).copy() for number in range(4))
    count = diagonal.shape[-1]
    second = xp.zeros_like(above)  # the diagonal above the upper one, which exchanges fill
    with np.errstate(all="ignore"):  # of a zero pivot, which `info` says
        for row in range(count - 1):
            _eliminate_below(row, below, diagonal, above, second, right, xp)
        found = xp.zeros_like(right)
        for row in reversed(range(count)):
            value = right[..., row, :]
            for diagonals, column in ((above, row + 1), (second, row + 2)):
                if column < count:
                    value = value - diagonals[..., row, None] * found[..., column, :]
            found[..., row, :] = value / diagonal[..., row, None]
    return _outputs(arguments, {"solution": found, "info": _first_zero(diagonal, xp)})


def _eliminate_below(
    row: int, below: Array, diagonal: Array, above: Array, second: Array, right: Array, xp: Any
) -> None:
    """One step, in place: of row `row` and the next one, that with the larger element in the column is the pivot."""
    under = below[..., row + 1]
    size, other = (abs(xp.real(v)) + abs(xp.imag(v)) for v in (diagonal[..., row], under))
    swaps, next_above = other > size, above[..., row + 1] if row + 2 < diagonal.shape[-1] else xp.zeros_like(under)
    own = (diagonal[..., row], above[..., row], xp.zeros_like(under))
    rest = (under, diagonal[..., row + 1], next_above)
    pivot = [xp.where(swaps, b, a) for a, b in zip(own, rest, strict=True)]
    left = [xp.where(swaps, a, b) for a, b in zip(own, rest, strict=True)]
    factor = xp.where(left[0] == 0, left[0], left[0] / pivot[0])
    diagonal[..., row], above[..., row], second[..., row] = pivot
    diagonal[..., row + 1] = left[1] - factor * pivot[1]
    above[..., row + 1] = left[2] - factor * pivot[2]
    first, next_right = right[..., row, :].copy(), right[..., row + 1, :].copy()
    chosen = xp.where(swaps[..., None], next_right, first)
    right[..., row, :] = chosen
    right[..., row + 1, :] = xp.where(swaps[..., None], first, next_right) - factor[..., None] * chosen


def eig(arguments: LibraryArguments) -> list[Array]:
    """`values`, or their parts `real` and `imaginary`; `vectors`; `info` (0)."""
    matrices, xp = _matrices(arguments, 0), arguments.xp
    values, vectors = _of_finite(matrices, xp, xp.linalg.eig)
    found = {"values": values, "real": xp.real(values), "imaginary": xp.imag(values), "vectors": vectors}
    return _outputs(arguments, found | {"info": xp.zeros(matrices.shape[:-2], np.int32)})


def _matrices(arguments: LibraryArguments, operand: int) -> Array:
    """An operand, of a type that LAPACK supports. raises Unsupported for others."""
    if arguments.types[operand] not in LETTERS:
        raise Unsupported(f"no linear algebra of {arguments.types[operand]} matrices", stage="library")
    return arguments.operands[operand]


def _outputs(arguments: LibraryArguments, found: Mapping[str, Array]) -> list[Array]:
    names: Sequence[str] = arguments.config["outputs"]
    return [arguments.result(i, found[name]) if name in found else arguments.zeros(i) for i, name in enumerate(names)]
