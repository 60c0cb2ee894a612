"""The k largest of rows as machine code of this CPU, k unknown: NumPy's stable sort by the total order of floats."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from runtime.cpu_ways import compiled, host_ops

from xla_emitters.errors import DataError
from xla_emitters.program import Program

Array = np.ndarray[Any, Any]
UNKNOWN = """module @m {{ func.func public @main(%x: tensor<?x?x{t}>, %y: tensor<?xf32>) -> (tensor<?x?x{t}>, tensor<?x?xi32>) {{
  %k = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k)
      : (tensor<?x?x{t}>, tensor<i32>) -> (tensor<?x?x{t}>, tensor<?x?xi32>)
  return %0#0, %0#1 : tensor<?x?x{t}>, tensor<?x?xi32> }} }}"""
KNOWN = """module @m {{ func.func public @main(%x: tensor<?x?xf32>) -> (tensor<?x3xf32>, tensor<?x3xi32>) {{
  %0:2 = stablehlo.custom_call @mhlo.topk(%x) {{mhlo.attributes = {{k = 3 : i64, largest = {largest}}}}}
      : (tensor<?x?xf32>) -> (tensor<?x3xf32>, tensor<?x3xi32>)
  return %0#0, %0#1 : tensor<?x3xf32>, tensor<?x3xi32> }} }}"""
TYPES: dict[str, Any] = {
    **{"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64},
    **{"i8": np.int8, "i32": np.int32, "ui8": np.uint8, "ui64": np.uint64, "i1": np.bool_},
}


def of_kernels(text: str) -> Program:
    """The program: no op of it is left to the runtime."""
    program = compiled(text)
    assert not {"lmhlo.topk", "lmhlo.dynamic_top_k"} & host_ops(program)
    return program


def drawn(name: str, shape: tuple[int, int]) -> Array:
    """Few values, so that many are equal; of floats both zeros, infinities, and NaN with both signs too."""
    rng = np.random.default_rng(shape[1])
    if name in ("f16", "bf16", "f32", "f64"):
        return rng.choice([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, -np.nan, 3.0], shape).astype(TYPES[name])
    return rng.integers(-2 if name in ("i8", "i32") else 0, 3, shape).astype(TYPES[name])


def keys(x: Array) -> Array:
    """Integers that are in the order of the elements."""
    if x.dtype.kind in "iub":
        return x.astype(object) * 1
    bits = x.view(f"i{x.dtype.itemsize}").astype(object)
    return np.where(bits < 0, -bits - 2 ** (8 * x.dtype.itemsize) // 2 - 1, bits)


@pytest.mark.parametrize("name", TYPES)
def test_an_unknown_number_of_the_largest(name: str) -> None:
    program = of_kernels(UNKNOWN.format(t=name))
    for rows, size, k in ((1, 1, 1), (3, 5, 2), (2, 17, 17), (2, 70, 9), (0, 4, 2), (2, 4, 0), (2, 0, 0)):
        x = drawn(name, (rows, size))
        values, places = program(x, np.zeros(k, np.float32))
        order = [sorted(range(size), key=lambda i, row=row: -row[i])[:k] for row in keys(x)]  # type: ignore[misc]
        wanted = np.array(order, np.int32).reshape(rows, k)
        np.testing.assert_array_equal(places, wanted)
        assert values.tobytes() == np.take_along_axis(x, wanted.astype(np.int64), 1).tobytes()


def test_more_than_there_are_stop_the_run() -> None:
    program = of_kernels(UNKNOWN.format(t="f32"))
    with pytest.raises(DataError, match="not inside an axis of size 3"):
        program(np.zeros((2, 3), np.float32), np.zeros(4, np.float32))


@pytest.mark.parametrize("largest", [True, False])
def test_a_known_number_of_the_largest_or_smallest(largest: bool) -> None:
    program = of_kernels(KNOWN.format(largest=str(largest).lower()))
    x = np.random.default_rng(0).integers(0, 9, (4, 50)).astype(np.float32)
    values, places = program(x)
    order = np.argsort(-x if largest else x, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
