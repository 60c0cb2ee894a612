"""Factorizations: what the factors give when multiplied, in LAPACK's forms."""

import math
import sys
from typing import Any

import numpy as np
import pytest

from xla_emitters.errors import Unsupported
from xla_emitters.library import call

HLO = {np.float64: "f64", np.float32: "f32", np.complex128: "c128", np.int32: "s32"}


def drawn(*shape: int, kind: Any = np.float64) -> Any:
    random = np.random.default_rng(sum(shape))
    real = random.normal(size=shape)
    return real.astype(kind) if kind is not np.complex128 else real + 1j * random.normal(size=shape)


def factored(
    name: str, matrices: Any, outputs: dict[str, tuple[Any, tuple[int, ...]]], *more: Any, **options: Any
) -> dict[str, Any]:
    config = {"types": [HLO[array.dtype.type] for array in (matrices, *more)], "outputs": list(outputs), **options}
    results = [(HLO[kind], shape) for kind, shape in outputs.values()]
    return dict(zip(outputs, call(name, config, [matrices, *more], results), strict=True))


def rows_exchanged(rows: int, pivots: Any) -> list[int]:
    order = list(range(rows))
    for k, p in enumerate(pivots):
        order[k], order[p - 1] = order[p - 1], order[k]
    return order


@pytest.mark.parametrize("kind", [np.float64, np.complex128])
@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (5, 3), (3, 5), (70, 70), (40, 90), (90, 33)])
def test_lu_with_pivots_counted_from_1(kind: Any, rows: int, columns: int) -> None:
    """The large ones are of several panels."""
    matrices, least = drawn(2, rows, columns, kind=kind), min(rows, columns)
    outputs = {"factors": (kind, matrices.shape), "pivots": (np.int32, (2, least)), "info": (np.int32, (2,))}
    found = factored("lu", matrices, outputs)
    for matrix, factors, pivots in zip(matrices, found["factors"], found["pivots"], strict=True):
        lower = np.tril(factors[:, :least], -1) + np.eye(rows, least)
        order = rows_exchanged(rows, pivots)
        np.testing.assert_allclose(lower @ np.triu(factors[:least]), matrix[order], atol=1e-12)
        # The largest of each column was taken: of complex ones by the sum of the parts' sizes, as LAPACK does.
        assert np.abs(lower).max() <= (1 if kind is np.float64 else math.sqrt(2))
        permutation = call("permutation_of_pivots", {"types": ["s32"]}, [pivots - 1], [("s32", (rows,))])[0]
        assert permutation.tolist() == order
    assert not found["info"].any()


def test_a_pivot_that_is_no_row_exchanges_nothing() -> None:
    pivots = np.array([[2, 7, 2], [-1, 1, 1]], np.int32)
    permutation = call("permutation_of_pivots", {"types": ["s32"]}, [pivots], [("s32", (2, 3))])[0]
    assert permutation.tolist() == [[2, 1, 0], [0, 2, 1]]


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_singular_values_of_a_matrix_with_an_element_that_is_not_finite_are_nan(wrong: float) -> None:
    matrices = drawn(2, 3, 3)
    matrices[1, 2, 0] = wrong
    outputs = {"values": (np.float64, (2, 3)), "left": (np.float64, (2, 3, 3)), "right": (np.float64, (2, 3, 3))}
    found = factored("svd", matrices, outputs, full_matrices=True, adjoint=True)
    assert all(np.isnan(found[name][1]).all() for name in outputs)
    whole = found["left"][0] * found["values"][0] @ found["right"][0]
    assert np.allclose(whole, matrices[0])


def test_lu_of_a_singular_matrix_says_which_pivot_is_zero() -> None:
    outputs = {"factors": (np.float64, (2, 2)), "pivots": (np.int32, (2,)), "info": (np.int32, ())}
    found = factored("lu", np.ones((2, 2)), outputs)
    assert found["info"] == 2
    assert np.isfinite(found["factors"]).all()


@pytest.mark.parametrize("kind", [np.float64, np.complex128])
@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (6, 3), (3, 5)])
def test_householder_vectors_multiply_to_q(kind: Any, rows: int, columns: int) -> None:
    matrices, least = drawn(2, rows, columns, kind=kind), min(rows, columns)
    outputs = {"factors": (kind, matrices.shape), "scales": (kind, (2, least))}
    found = factored("qr", matrices, outputs)
    vectors = np.ascontiguousarray(found["factors"][..., :least])
    q = factored("householder_product", vectors, {"product": (kind, vectors.shape)}, found["scales"])["product"]
    assert np.allclose(q @ np.triu(found["factors"])[:, :least], matrices)
    assert np.allclose(np.conj(q.swapaxes(-1, -2)) @ q, np.eye(least))


@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_reads_one_triangle_and_keeps_the_other_where_lapack_does(lower: bool) -> None:
    half = drawn(3, 4, 4, kind=np.complex128)
    whole = half @ np.conj(half.swapaxes(-1, -2)) + np.eye(4)
    given = (
        np.tril(whole) + np.triu(np.full((4, 4), 7), 1) if lower else np.triu(whole) + np.tril(np.full((4, 4), 7), -1)
    )
    given[1] = -given[1]
    outputs = {"factor": (np.complex128, (3, 4, 4)), "info": (np.int32, (3,))}
    found = factored("cholesky", given, outputs, lower=lower)
    assert found["info"].tolist() == [0, 1, 0]
    for i in (0, 2):
        factor = found["factor"][i]
        own = np.tril(factor) if lower else np.conj(np.triu(factor).T)
        assert np.allclose(own @ np.conj(own.T), whole[i])
        assert (factor[np.triu_indices(4, 1) if lower else np.tril_indices(4, -1)] == 7).all()


def test_adjoint_triangular_systems() -> None:
    matrices, right = np.tril(drawn(2, 3, 3, kind=np.complex128)), drawn(2, 3, 2, kind=np.complex128)
    options = {"left_side": True, "lower": True, "unit_diagonal": False, "transpose_a": "ADJOINT"}
    found = factored("triangular_solve", matrices, {"solution": (np.complex128, right.shape)}, right, **options)
    assert np.allclose(np.conj(matrices.swapaxes(-1, -2)) @ found["solution"], right)


def test_eigenvectors_of_one_triangle() -> None:
    matrices = drawn(2, 4, 4)
    outputs = {"vectors": (np.float64, (2, 4, 4)), "values": (np.float64, (2, 4)), "info": (np.int32, (2,))}
    for lower in (True, False):
        half = np.tril(matrices, -1) if lower else np.triu(matrices, 1)
        whole = half + half.swapaxes(-1, -2) + matrices * np.eye(4)
        found = factored("eigh", matrices, outputs, lower=lower)
        assert np.allclose(whole @ found["vectors"], found["vectors"] * found["values"][:, None])
        assert (np.diff(found["values"]) >= 0).all()


@pytest.mark.parametrize("kind", [np.float64, np.complex128])
@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_tridiagonal_systems_exchange_rows(kind: Any, count: int) -> None:
    """What lies outside of the matrix is not read; a pivot of 0 is exchanged, not divided by."""
    below, diagonal, above = (drawn(4, count, kind=kind) * factor for factor in (3, 0.1, 1))
    diagonal[1, : count // 2] = 0
    whole = np.zeros((4, count, count), kind)
    rows = np.arange(count)
    whole[:, rows, rows] = diagonal
    whole[:, rows[1:], rows[:-1]] = below[:, 1:]
    whole[:, rows[:-1], rows[1:]] = above[:, :-1]
    below[:, 0] = above[:, -1] = np.nan
    right = drawn(4, count, 2, kind=kind)
    outputs = {"solution": (kind, right.shape), "info": (np.int32, (4,))}
    found = factored("tridiagonal_solve", below, outputs, diagonal, above, right)
    assert not found["info"].any()
    assert np.allclose(found["solution"], np.linalg.solve(whole, right))


def test_a_tridiagonal_system_without_a_solution_says_which_pivot_is_zero() -> None:
    ones, outputs = np.ones((2, 2)), {"solution": (np.float64, (2, 2, 1)), "info": (np.int32, (2,))}
    found = factored("tridiagonal_solve", np.array([[0.0, 1], [0, 0.5]]), outputs, ones, ones, np.ones((2, 2, 1)))
    assert found["info"].tolist() == [2, 0]
    assert found["solution"][1].ravel().tolist() == [0, 1]


@pytest.mark.parametrize("kind", [np.float64, np.complex128])
def test_eigenvectors_of_any_matrix(kind: Any) -> None:
    matrices = drawn(3, 4, 4, kind=kind)
    matrices[2, 1, 1] = np.inf
    outputs = {"values": (np.complex128, (3, 4)), "vectors": (np.complex128, (3, 4, 4)), "info": (np.int32, (3,))}
    outputs |= {"real": (np.float64, (3, 4)), "imaginary": (np.float64, (3, 4))}
    found = factored("eig", matrices, outputs)
    assert np.allclose(matrices[:2] @ found["vectors"][:2], found["vectors"][:2] * found["values"][:2, None])
    assert np.allclose(np.linalg.norm(found["vectors"][:2], axis=1), 1)
    assert np.allclose(found["real"][:2] + 1j * found["imaginary"][:2], found["values"][:2])
    assert np.isnan(found["values"][2]).all()


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_singular_vectors(full: bool, adjoint: bool) -> None:
    matrix, count = drawn(5, 3), 5 if full else 3
    outputs = {"overwritten": (np.float64, (5, 3)), "values": (np.float64, (3,)), "left": (np.float64, (5, count))}
    outputs |= {"right": (np.float64, (3, 3)), "info": (np.int32, ())}
    found = factored("svd", matrix, outputs, full_matrices=full, adjoint=adjoint)
    right = found["right"] if adjoint else found["right"].T
    assert np.allclose(found["left"][:, :3] * found["values"] @ right, matrix)


def test_half_precision_is_refused() -> None:
    with pytest.raises(Unsupported, match="no linear algebra of f16 matrices"):
        call(
            "cholesky",
            {"types": ["f16"], "lower": True, "outputs": ["factor"]},
            [np.eye(2, dtype=np.float16)],
            [("f16", (2, 2))],
        )


def test_a_batch_is_factored_at_once() -> None:
    """The calls of Python are as many for 300 matrices as for 3: one matrix after the other took 130 microseconds each."""

    def calls(batch: int, name: str, outputs: dict[str, tuple[Any, tuple[int, ...]]]) -> int:
        matrices, seen = drawn(batch, 6, 6), list[str]()
        matrices = matrices @ matrices.swapaxes(1, 2) + np.eye(6)
        sys.setprofile(lambda frame, event, argument: seen.append(event))
        try:
            factored(
                name, matrices, {key: (kind, (batch, *shape)) for key, (kind, shape) in outputs.items()}, lower=True
            )
        finally:
            sys.setprofile(None)
        return len(seen)

    for name, outputs in {
        "lu": {"factors": (np.float64, (6, 6)), "pivots": (np.int32, (6,)), "info": (np.int32, ())},
        "cholesky": {"factor": (np.float64, (6, 6))},
        "qr": {"factors": (np.float64, (6, 6)), "scales": (np.float64, (6,))},
    }.items():
        assert calls(300, name, outputs) < calls(3, name, outputs) + 50, name


def test_only_the_matrix_without_a_factor_is_nan() -> None:
    matrices = np.stack([[np.eye(3), -np.eye(3)], [4 * np.eye(3), np.diag([1.0, 0.0, 1.0])]])
    outputs = {"factor": (np.float64, matrices.shape), "info": (np.int32, (2, 2))}
    found = factored("cholesky", matrices, outputs, lower=True)
    assert found["info"].tolist() == [[0, 1], [0, 1]]
    np.testing.assert_array_equal(found["factor"][:, 0], [np.eye(3), 2 * np.eye(3)])
    assert np.isnan(found["factor"][:, 1]).all()


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0), (2, 0, 3), (0, 0, 0)])
def test_factors_of_nothing(shape: tuple[int, ...]) -> None:
    matrices, (batch, rows, columns) = np.zeros(shape), shape
    least = (batch, min(rows, columns))
    outputs = {"factors": (np.float64, shape), "pivots": (np.int32, least), "info": (np.int32, (batch,))}
    assert not factored("lu", matrices, outputs)["info"].any()
    factored("qr", matrices, {"factors": (np.float64, shape), "scales": (np.float64, least)})
    if rows == columns:
        found = factored("cholesky", matrices, {"info": (np.int32, (batch,))}, lower=True)
        assert not found["info"].any()
