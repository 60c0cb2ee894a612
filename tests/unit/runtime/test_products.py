"""Products by BLAS in any dimension numbers, against NumPy's einsum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xla_emitters.dialects.hlo.contractions import DotOp
from xla_emitters.errors import DataError
from xla_emitters.runtime.products import product_of
from xla_emitters.stablehlo_text import parse_stablehlo


def dot(dimensions: tuple[Any, Any, Any, Any], ranks: tuple[int, int, int], element: str = "f32") -> DotOp:
    """A dot of unknown sizes: batch dimensions of the left and the right factor, summed ones likewise."""
    left_batch, right_batch, left_summed, right_summed = map(list, dimensions)
    left, right, result = (f"tensor<{'?x' * rank}{element}>" for rank in ranks)
    module = parse_stablehlo(
        f"""module @m {{ func.func public @main(%x: {left}, %y: {right}) -> {result} {{
          %z = stablehlo.dot_general %x, %y, batching_dims = {left_batch} x {right_batch},
            contracting_dims = {left_summed} x {right_summed} : ({left}, {right}) -> {result}
          return %z : {result} }} }}""",
        "<test>",
    )
    (found,) = (op for op in module.walk() if isinstance(op, DotOp))
    return found


CASES = [
    (((0, 2), (0, 2), (3,), (3,)), (2, 5, 3, 4), (2, 6, 3, 4), "bqhd,bkhd->bhqk"),
    (((1,), (2,), (2, 3), (0, 1)), (5, 2, 3, 4), (3, 4, 2, 7), "abcd,cdbe->bae"),
    (((), (), (0, 1), (1, 0)), (3, 4), (4, 3), "ij,ji->"),
    (((), (), (), ()), (3,), (5,), "i,j->ij"),
    (((0,), (0,), (1,), (1,)), (2, 0, 3), (2, 0, 3), "bki,bkj->bij"),
    (((), (), (1,), (0,)), (1, 700), (700, 3), "ij,jk->ik"),
]


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize(("dimensions", "left", "right", "letters"), CASES)
def test_products_in_any_dimensions(dimensions: Any, left: Any, right: Any, letters: str, element: str) -> None:
    held = {"f32": np.float32, "f64": np.float64}[element]
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-9, 10, shape).astype(held) for shape in (left, right))  # sums are exact in any order
    wanted = np.einsum(letters, x, y)
    multiply = product_of(dot(dimensions, (x.ndim, y.ndim, wanted.ndim), element))
    assert multiply is not None
    out = np.full(wanted.shape, np.nan, held)
    multiply(x, y, out)
    np.testing.assert_array_equal(out, wanted)


def test_a_matrix_times_itself_has_the_bits_of_a_copy() -> None:
    multiply = product_of(dot(((), (), (1,), (1,)), (2, 2, 2)))
    assert multiply is not None
    x = np.random.default_rng(1).standard_normal((65, 33), np.float32)
    one, other = np.empty((65, 65), np.float32), np.empty((65, 65), np.float32)
    multiply(x, x, one)
    multiply(x, x.copy(), other)
    np.testing.assert_array_equal(one, other)


def test_sizes_that_do_not_fit_are_refused() -> None:
    multiply = product_of(dot(((), (), (1,), (0,)), (2, 2, 2)))
    assert multiply is not None
    with pytest.raises(DataError, match="no product of"):
        multiply(np.ones((2, 3), np.float32), np.ones((4, 5), np.float32), np.ones((2, 5), np.float32))


def test_integers_and_narrow_floats_are_left_to_the_library() -> None:
    assert product_of(dot(((), (), (1,), (0,)), (2, 2, 2), "i32")) is None
    assert product_of(dot(((), (), (1,), (0,)), (2, 2, 2), "bf16")) is None
