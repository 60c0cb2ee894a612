"""The runtime's functions by name, against NumPy in double precision."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.errors import DataError, Unsupported, UsageError
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.context import Call, Context
from xla_emitters.runtime.ral.functions import function_named

NONE = Constants({})
CALL = Call(Context(), ())
TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def gemm(name: str, lhs: np.ndarray, rhs: np.ndarray, out: np.ndarray, flags: tuple[bool, bool]) -> None:
    codes = "_".join(f"m{array.ndim}d{name}" for array in (lhs, rhs, out))
    function_named(f"ral_gemm___gpu___pvoid_pvoid_{codes}_i1_i1_i1___void", NONE)(
        CALL, None, lhs, rhs, out, *flags, False
    )


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_products_transposed_and_in_batches(name: str, batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((*batch, 4, 5)), rng.standard_normal((*batch, 5, 6))
    for flags in itertools.product((False, True), (False, True)):
        lhs, rhs = (
            np.array(np.swapaxes(array, -1, -2) if flag else array, TYPES[name], order="C")
            for array, flag in zip((a, b), flags, strict=True)
        )
        out = np.empty((*batch, 4, 6), TYPES[name])
        gemm(name, lhs, rhs, out, flags)
        exact = np.matmul(
            *(
                np.swapaxes(x, -1, -2) if f else x
                for x, f in zip((lhs.astype(float), rhs.astype(float)), flags, strict=True)
            )
        )
        unit = 2.0 ** -{"f32": 23, "f64": 52, "f16": 10, "bf16": 7}[name]
        assert np.abs(out.astype(float) - exact).max() <= 8 * unit


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_narrow_products_add_in_f32(name: str) -> None:
    """2048 ones: in f16 a sum stops at 2048 + 1, in bf16 at 256."""
    out = np.empty((1, 1), TYPES[name])
    gemm(name, np.ones((1, 4096), TYPES[name]), np.ones((4096, 1), TYPES[name]), out, (False, False))
    assert float(out[0, 0]) == 4096


def test_rows_in_several_dimensions_are_one_matrix() -> None:
    lhs, rhs = np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.arange(8, dtype=np.float32).reshape(4, 2)
    out = np.empty((2, 3, 2), np.float32)
    gemm("f32", lhs, rhs, out, (False, False))
    np.testing.assert_array_equal(out, lhs @ rhs)


SHAPES = {
    "summed": ((2, 3), (4, 5), (2, 5)),
    "batches": ((1, 2, 3), (5, 3, 4), (5, 2, 4)),
    "result": ((2, 3), (3, 4), (1, 4)),
}


@pytest.mark.parametrize("what", SHAPES)
def test_sizes_that_do_not_fit_are_refused_and_not_broadcast(what: str) -> None:
    lhs, rhs, out = (np.zeros(shape, np.float32) for shape in SHAPES[what])
    with pytest.raises(DataError):
        gemm("f32", lhs, rhs, out, (False, False))


def test_a_convolution_with_padding_and_strides() -> None:
    """Against the sum written out: image [1, 5, 1], kernel [2, 1, 1], stride 2, one zero before."""
    image, kernel = np.arange(1, 6, dtype=np.float32).reshape(1, 5, 1), np.array([10, 1], np.float32).reshape(2, 1, 1)
    out = np.empty((1, 3, 1), np.float32)
    run = function_named("ral_conv___gpu___pvoid_pvoid_m3df32_m3df32_m2di32_m3df32_pvoid___void", NONE)
    run(CALL, None, image, kernel, np.array([[1, 0]], np.int32), out, (0, 2, 1, 1, 2, 0, 0, 2, 1, 2, 1, 0))
    assert out.reshape(-1).tolist() == [0 * 10 + 1, 2 * 10 + 3, 4 * 10 + 5]


def test_the_largest_elements_equal_ones_in_order() -> None:
    values, places = np.empty((1, 3), np.float32), np.empty((1, 3), np.int32)
    run = function_named("topk___gpu___pvoid_pvoid_m2df32_m2df32_m2di32___void", NONE)
    run(CALL, None, np.array([[1, 4, 2, 4]], np.float32), values, places)
    assert (values.tolist(), places.tolist()) == ([[4, 4, 2]], [[1, 3, 2]])


def test_a_copy_is_no_broadcast() -> None:
    run = function_named("h2d___gpu___pvoid_pvoid_m1df32_m1df32___void", NONE)
    target = np.zeros(3, np.float32)
    run(CALL, None, np.arange(3, dtype=np.float32), target)
    assert target.tolist() == [0, 1, 2]
    with pytest.raises(DataError, match="h2d"):
        run(CALL, None, np.zeros(1, np.float32), target)


def test_a_name_that_the_runtime_does_not_have() -> None:
    with pytest.raises(Unsupported, match="no function 'ral_tea'"):
        function_named("ral_tea___gpu___pvoid___void", NONE)
    with pytest.raises(UsageError, match="not the name"):
        function_named("ral_gemm", NONE)
