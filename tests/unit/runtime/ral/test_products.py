"""Products of matrices by machine code: exact on small integers, in any layout, and with the same bits however the work is divided."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from xla_emitters.lowering.host_cpu import host_cpu
from xla_emitters.lowering.host_products import MOST_TERMS, WORDS
from xla_emitters.pipelines.program_host import product_code
from xla_emitters.runtime.ral.gemm import Factors
from xla_emitters.runtime.ral.host_kernels import HostKernels
from xla_emitters.runtime.ral.kernels import ProductWork

pytest.importorskip("llvmlite", reason="llvmlite is not installed")

Array = np.ndarray[Any, Any]
CODE = HostKernels({}, {}, lambda name: 0, partial(product_code, cpu=host_cpu()))
TYPES = {"f32": np.float32, "f64": np.float64}
SIZES = (
    (1, 1, 5, 1),
    (1, 1, MOST_TERMS + 1, 128),  # a single row takes more columns at once
    (2, 1, 3, 300),
    (2, 3, 7, 33),
    (1, 8, MOST_TERMS + 1, 32),
    (1, 17, MOST_TERMS, 64),  # too many rows to read the right factor in place
    (2, 19, MOST_TERMS + 3, 45),
    (1, 17, 0, 40),
    (3, 0, 4, 5),
    (3, 40, 16, 16),
    (1, 100, 40, 3),  # few columns: the transposed product
    (1, 31, 1, 31),
)


def layouts(shape: tuple[int, ...], rng: np.random.Generator, element: str) -> list[Array]:
    """An array of small integers: row by row, column by column, and every second column of another one."""
    batch, rows, columns = shape
    values = rng.integers(-4, 5, shape).astype(TYPES[element])
    turned = np.ascontiguousarray(values.swapaxes(1, 2)).swapaxes(1, 2)
    spread = np.full((batch, rows, 2 * columns), np.nan, TYPES[element])[:, :, ::2]
    spread[...] = values
    return [values, turned, spread]


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_layout_is_exact(sizes: tuple[int, ...], element: str) -> None:
    batch, rows, terms, columns = sizes
    rng = np.random.default_rng(0)
    lefts, rights = (layouts(shape, rng, element) for shape in ((batch, rows, terms), (batch, terms, columns)))
    wanted = np.einsum("bik,bkj->bij", lefts[0], rights[0])
    for left, right, shared, is_turned in product(lefts, rights, (False, True), (False, True)):
        # Nothing is written beside the result.
        memory = np.full(batch * rows * columns + 16, np.nan, TYPES[element])
        out = memory[8:-8].reshape((batch, columns, rows) if is_turned else (batch, rows, columns))
        out = out.swapaxes(1, 2) if is_turned else out
        assert CODE.multiply(element, Factors(left, right, out).work._replace(is_shared=shared))
        np.testing.assert_array_equal(out, wanted)
        assert np.isnan(memory[:8]).all()
        assert np.isnan(memory[-8:]).all()


def test_the_bits_do_not_depend_on_how_it_is_divided() -> None:
    rng = np.random.default_rng(1)
    left, right = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 70, 600), (1, 600, 200)))
    whole, shared, rows = (np.full((1, 70, 200), np.nan, np.float32) for _ in range(3))
    for out, is_shared in ((whole, False), (shared, True)):
        assert CODE.multiply("f32", ProductWork((out, left, right), is_shared))
    for row in range(70):
        assert CODE.multiply("f32", ProductWork((rows[:, row : row + 1], left[:, row : row + 1], right), False))
    np.testing.assert_array_equal(whole, shared)
    np.testing.assert_array_equal(whole, rows)
    assert np.abs(whole - left.astype(np.float64) @ right).max() < 1e-3


@pytest.mark.parametrize("is_shared", [False, True])
def test_two_dimensions_of_a_batch_have_the_bits_of_one(is_shared: bool) -> None:
    rng = np.random.default_rng(2)
    shapes = (3, 1, 4, 7), (3, 7, 4, 40)
    left, right = (rng.standard_normal(shape).astype(np.float32).swapaxes(1, 2) for shape in shapes)
    found, wanted = (np.full((3, 4, 1, 40), np.nan, np.float32) for _ in range(2))
    assert CODE.multiply("f32", ProductWork((found, left, right), is_shared))
    whole = (array.reshape(12, *array.shape[2:]) for array in (wanted, left, right))
    assert CODE.multiply("f32", ProductWork(tuple(whole), False))  # pyright: ignore[reportArgumentType]
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_allclose(found, left.astype(np.float64) @ right, atol=1e-5)


def test_there_are_as_many_words_as_the_step_reads() -> None:
    work = ProductWork((np.ones((1, 2, 3)), np.ones((1, 2, 4)), np.ones((1, 4, 3))), False)
    assert len((0, 0, 0, *work.words(0, 1, 32))) == len(WORDS)


def test_threads_get_fewer_rows_where_columns_are_few() -> None:
    out, left, right = (np.empty(shape, np.float32) for shape in ((1, 4000, 32), (1, 4000, 8), (1, 8, 32)))
    alone, shared = (ProductWork((out, left, right), is_shared) for is_shared in (False, True))
    assert alone.items(32) == 1
    assert shared.items(32) >= 16
