"""What a caller may give a program for an argument beside arrays: numbers, sequences, other buffers, on either platform."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from unit.runtime.fake_gpu import fake_cupy

import xla_emitters as xe
from xla_emitters.errors import DataError

MODULE = """HloModule scale
ENTRY main {
  x = f32[3] parameter(0)
  s = f32[] parameter(1)
  n = s8[] parameter(2)
  c = f32[] convert(n)
  t = f32[] add(s, c)
  b = f32[3] broadcast(t), dimensions={}
  ROOT y = f32[3] multiply(x, b)
}"""
PROGRAM = """
func.func @main(%x: tensor<?xf32>, %s: tensor<f32>, %n: tensor<i8>) -> tensor<?xf32> {
  %c = stablehlo.convert %n : (tensor<i8>) -> tensor<f32>
  %t = stablehlo.add %s, %c : tensor<f32>
  %size = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %shape = stablehlo.reshape %size : (tensor<i32>) -> tensor<1xi32>
  %b = stablehlo.dynamic_broadcast_in_dim %t, %shape, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
  %y = stablehlo.multiply %x, %b : tensor<?xf32>
  return %y : tensor<?xf32>
}"""
X = np.array([1, -2, 3], np.float32)
Called = Callable[..., Any]


@pytest.fixture(scope="module", params=["cpu", "gpu"])
def platform(request: pytest.FixtureRequest) -> Iterator[str]:
    with fake_cupy():
        yield request.param


@pytest.fixture(scope="module", params=[MODULE, PROGRAM], ids=["module", "program"])
def called(request: pytest.FixtureRequest, platform: str) -> Called:
    return xe.compile(request.param, target="t4").on(platform)


@pytest.mark.parametrize("two", [2, 2.0, np.float32(2), np.array(2, np.float32), memoryview(np.array(2, np.float32))])
@pytest.mark.parametrize("one", [1, np.int8(1), np.array(1, np.int8)])
def test_numbers_of_python_and_of_numpy(called: Called, two: Any, one: Any) -> None:
    assert called(X, two, one).tolist() == [3.0, -6.0, 9.0]


@pytest.mark.parametrize("x", [list(X), tuple(X), memoryview(X)], ids=["list", "tuple", "memoryview"])
def test_sequences_and_buffers(called: Called, x: Any) -> None:
    assert called(x, 2, 1).tolist() == [3.0, -6.0, 9.0]


@pytest.mark.parametrize(
    ("x", "s", "n"),
    [(X, 2, 1.5), (X, 2, 128), (X, 2, -129), (X, 2j, 1), (X, None, 1), (X, "2", 1), (None, 2, 1), (X.tolist(), 2, 1)],
)
def test_what_the_type_does_not_hold_is_refused(called: Called, x: Any, s: Any, n: Any) -> None:
    """A float for an integer is not truncated, and 128 is not -128."""
    with pytest.raises(DataError):
        called(x, s, n)


def test_sequences_of_unequal_lengths_are_no_array(called: Called) -> None:
    with pytest.raises(DataError, match="is no array"):
        called([[1.0], [2.0, 3.0]], 2, 1)


@pytest.mark.parametrize("text", [MODULE, PROGRAM], ids=["module", "program"])
def test_numbers_beside_arrays_of_a_gpu(text: str) -> None:
    with fake_cupy() as cupy:
        y = xe.compile(text, target="t4")(cupy.asarray(X), 2.0, np.int8(1))
        assert cupy.asnumpy(y).tolist() == [3.0, -6.0, 9.0]


@pytest.mark.parametrize("stage", ["hlo", "ptx"])
@pytest.mark.parametrize("text", [MODULE, PROGRAM], ids=["module", "program"])
def test_numbers_at_a_stage(text: str, stage: str) -> None:
    assert xe.compile(text, target="t4").run_cpu(X, 2.0, 1, stage=stage).tolist() == [3.0, -6.0, 9.0]
