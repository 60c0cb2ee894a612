"""Products by gemmStridedBatchedEx, on the stand-in for CuPy, against NumPy."""

from typing import Any

import numpy as np
import pytest
from unit.runtime.fake_gpu import fake_cupy

from xla_emitters.library.cublas import RepeatedProduct, product

ORDERS = {"rows": (0, 1, 2), "columns": (0, 2, 1), "batch inside": (1, 0, 2)}
"""In which order a batch of matrices lies in memory: the last one is copied first."""


@pytest.mark.parametrize("left_order", ORDERS)
@pytest.mark.parametrize("right_order", ORDERS)
def test_addresses_are_read_in_each_call(left_order: str, right_order: str) -> None:
    """Three products of other arrays, whose matrices lie as those of the first one."""
    draw = np.random.default_rng(0)

    def drawn(cupy: Any, shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[Any, Any]:
        there = draw.standard_normal([shape[dim] for dim in order], np.float32)
        back = np.argsort(order)
        return cupy.asarray(there).transpose(*(int(dim) for dim in back)), there.transpose(back)

    with fake_cupy() as cupy:
        multiply = RepeatedProduct(cupy)
        for _ in range(3):
            left, one = drawn(cupy, (2, 3, 5), ORDERS[left_order])
            right, other = drawn(cupy, (2, 5, 4), ORDERS[right_order])
            out = cupy.zeros((2, 3, 4), np.float32)
            multiply(left, right, out)
            np.testing.assert_allclose(out.host, one @ other, rtol=1e-5, atol=1e-5)
            once: Any = product(left, right, ("f32", "f32"), cupy)
            np.testing.assert_allclose(once.host, one @ other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shapes", [((2, 0, 5), (2, 5, 4)), ((2, 3, 0), (2, 0, 4))])
def test_no_elements(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    with fake_cupy() as cupy:
        multiply, (left, right) = RepeatedProduct(cupy), (cupy.zeros(shape, np.float32) for shape in shapes)
        for _ in range(2):
            out = cupy.full((2, shapes[0][1], 4), 7, np.float32)
            multiply(left, right, out)
            assert not out.host.any()


def test_a_factor_that_a_reshape_copies_is_in_device_memory() -> None:
    """Where elements are in no order that the shape could have, CuPy's reshape copies, as NumPy's does."""
    with fake_cupy() as cupy:
        there = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        left, right = cupy.asarray(there).transpose(2, 0, 1).reshape(4, 6), cupy.asarray(there).reshape(6, 4)
        found: Any = product(left, right, ("f32", "f32"), cupy)
        np.testing.assert_array_equal(found.host, there.transpose(2, 0, 1).reshape(4, 6) @ there.reshape(6, 4))
