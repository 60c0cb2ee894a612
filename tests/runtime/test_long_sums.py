"""Sums of many elements as machine code: their errors do not grow with the number of elements. Right values: `math.fsum`."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from long_lists import but_long
from runtime.cpu_ways import at_level, compiled

from xla_emitters.lowering.cpu.cpu_target import cpu_target
from xla_emitters.program import Program


def text_of(body: str, parameter: str, result: str) -> str:
    return f"module @m {{ func.func public @main(%x: {parameter}) -> {result} {{\n{body}\n  return %y : {result} }} }}"


SUM = """  %zero = stablehlo.constant dense<{start}> : tensor<{t}>
  %y = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [{dims}]
    : (tensor<?x?x{t}>, tensor<{t}>) -> tensor<{left}{t}>"""


def text_of_sum(t: str, dims: str, start: str = "0.0") -> str:
    left = "" if "," in dims else "?x"
    return text_of(SUM.format(t=t, dims=dims, left=left, start=start), f"tensor<?x?x{t}>", f"tensor<{left}{t}>")


def summed(t: str, dims: str, start: str = "0.0") -> Program:
    return compiled(text_of_sum(t, dims, start))


def columns_of(x: Any, dims: str) -> list[Any]:
    """The elements of each result."""
    return [x.reshape(-1)] if "," in dims else list(x if dims == "1" else x.T)


UNITS: dict[str, tuple[Any, float]] = {"f32": (np.float32, 2.0**-24), "f64": (np.float64, 2.0**-53)}
MOST = 8
"""Most error, in units of the last place of a result of positive numbers; 16 partial sums of a row of 3,000,000 were off by 18."""


@pytest.mark.parametrize("t", UNITS)
@pytest.mark.parametrize("dims", ["1", "0", "0, 1"])
@pytest.mark.parametrize("long", but_long([4097, 300_000, 3_000_001], [3_000_001]))
def test_a_long_sum_is_as_good_as_a_short_one(t: str, dims: str, long: int) -> None:
    held, unit = UNITS[t]
    x = np.random.default_rng(long).random((2, long)).astype(held)
    if dims == "0":
        x = np.ascontiguousarray(x.T)
    found = np.atleast_1d(summed(t, dims)(x))
    for value, elements in zip(found, columns_of(x, dims), strict=True):
        exact = math.fsum(elements.tolist())
        assert abs(float(value) - exact) <= MOST * unit * exact


@pytest.mark.parametrize("dims", ["1", "0", "0, 1"])
def test_the_size_alone_decides_the_order(dims: str) -> None:
    """Equal elements in any row, column, run or program have equal sums, whatever thread adds them."""
    x = np.random.default_rng(0).standard_normal(50_021).astype(np.float32)
    x = np.tile(x, (16, 1)) if dims != "0" else np.ascontiguousarray(np.tile(x, (16, 1)).T)
    bits = {np.atleast_1d(compiled.__wrapped__(text_of_sum("f32", dims))(x)).tobytes() for _ in range(2)}
    assert len(bits) == 1
    if dims != "0, 1":
        assert len(set(np.frombuffer(bits.pop(), np.uint32))) == 1


@pytest.mark.parametrize("dims", ["1", "0", "0, 1"])
@pytest.mark.parametrize("long", [0, 1, 255, 256, 257, 4095, 4096, 4097, 262_143, 262_144, 262_145, 266_241])
def test_each_element_and_the_initial_value_count_once(dims: str, long: int) -> None:
    """Powers of two and a sum below 2^24: each order is exact."""
    x = np.random.default_rng(long).integers(0, 16, (3, long)).astype(np.float32)
    if dims == "0":
        x = np.ascontiguousarray(x.T)
    found = np.atleast_1d(summed("f32", dims, start="7.0")(x))
    np.testing.assert_array_equal(found, [elements.sum(dtype=np.float64) + 7 for elements in columns_of(x, dims)])


@pytest.mark.parametrize("dims", ["1", "0"])
def test_infinity_nan_and_negative_zero_are_kept_in_any_block(dims: str) -> None:
    x = np.full((4, 10_000), -0.0, np.float32)
    x[1, 9_000], x[2, 5], x[3, 20], x[3, 9_999] = np.inf, np.nan, np.inf, -np.inf
    x = x if dims == "1" else np.ascontiguousarray(x.T)
    zero, infinite, *nans = summed("f32", dims, start="-0.0")(x)
    assert zero == 0
    assert np.signbit(zero)
    assert infinite == np.inf
    assert all(map(np.isnan, nans))


@pytest.mark.parametrize("t", ["f16", "bf16"])
@pytest.mark.parametrize("dims", ["1", "0"])
def test_long_sums_of_halves_are_rounded_once(t: str, dims: str) -> None:
    held = np.float16 if t == "f16" else ml_dtypes.bfloat16
    x = (np.random.default_rng(1).random((2, 100_001)) / 8).astype(held)
    x = x if dims == "1" else np.ascontiguousarray(x.T)
    found = summed(t, dims)(x)
    for value, elements in zip(found, columns_of(x, dims), strict=True):
        exact = math.fsum(elements.astype(np.float64).tolist())
        near = np.array([exact * (1 - MOST * 2.0**-24), exact * (1 + MOST * 2.0**-24)]).astype(held)
        assert near[0] <= value <= near[1]


# The mean of the squares' differences from the mean, of the numbers along a row: several sums in one kernel.
VARIANCE = """  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
  %count = stablehlo.convert %n : (tensor<i32>) -> tensor<f32>
  %b = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
  %b1 = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %both = stablehlo.concatenate %b1, %n1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  %counts = stablehlo.dynamic_broadcast_in_dim %count, %b1, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
  %mean = stablehlo.divide %s, %counts : tensor<?xf32>
  %means = stablehlo.dynamic_broadcast_in_dim %mean, %both, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %d = stablehlo.subtract %x, %means : tensor<?x?xf32>
  %q = stablehlo.multiply %d, %d : tensor<?x?xf32>
  %v = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  %y = stablehlo.divide %v, %counts : tensor<?xf32>"""


def test_a_variance_of_many_numbers() -> None:
    x = np.random.default_rng(2).random((2, 300_001)).astype(np.float32)
    found = compiled(text_of(VARIANCE, "tensor<?x?xf32>", "tensor<?xf32>"))(x)
    for value, row in zip(found, x.astype(np.float64), strict=True):
        mean = math.fsum(row) / len(row)
        exact = math.fsum((row - mean) ** 2) / len(row)
        assert abs(float(value) - exact) <= 2 * MOST * 2.0**-24 * exact


def test_complex_numbers_are_added_by_blocks_too() -> None:
    x = (np.random.default_rng(3).random((2, 100_001)) * (1 + 2j)).astype(np.complex64)
    found = summed("complex<f32>", "1", start="(0.0, 0.0)")(x)
    for value, row in zip(found, x, strict=True):
        for got, parts in ((value.real, row.real), (value.imag, row.imag)):
            exact = math.fsum(parts.tolist())
            # One chain in a block of 4096: LLVM does not divide it.
            assert abs(float(got) - exact) <= 128 * 2.0**-24 * exact


def test_a_long_sum_at_a_lower_level() -> None:
    """Fewer partial sums are side by side in a vector of 16 bytes."""
    if not cpu_target().triple.startswith("x86_64"):
        pytest.skip("levels are of x86-64")
    x = np.random.default_rng(4).random((1, 3_000_000)).astype(np.float32)
    program = at_level(summed("f32", "1"), "x86-64-v2")
    exact = math.fsum(x[0].tolist())
    assert abs(float(program(x)[0]) - exact) <= 2 * MOST * 2.0**-24 * exact
