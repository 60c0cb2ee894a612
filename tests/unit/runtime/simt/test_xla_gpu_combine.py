"""Combining values across a warp, along a tensor, and tiles spread over threads, against NumPy."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import per_thread

ADD = """
func.func private @add(%a: {0}, %b: {0}) -> {0} {{
  %c = {1} %a, %b : {0}
  return %c : {0}
}}"""

ARGMAX = """
func.func private @argmax(%v: f32, %i: i32, %w: f32, %j: i32) -> (f32, i32) {
  %greater = arith.cmpf ogt, %w, %v : f32
  %a = arith.select %greater, %w, %v : f32
  %b = arith.select %greater, %j, %i : i32
  return %a, %b : f32, i32
}"""


@pytest.mark.parametrize("distance", [1, 4, 16])
@pytest.mark.parametrize(
    ("ir_type", "op", "numpy_type"),
    [
        ("i32", "arith.addi", np.int32),
        ("i8", "arith.addi", np.int8),
        ("f64", "arith.addf", np.float64),
        ("complex<f32>", "complex.add", np.complex64),
    ],
)
def test_a_warp_adds_up(distance, ir_type, op, numpy_type):
    """The first lane of each run of twice the distance has the sum of all of them; small integers, so that every order is exact."""
    values = np.random.default_rng(0).integers(-3, 4, 96).astype(numpy_type)
    ops = f"%r = xla_gpu.shuffle_reduce(%a) to {distance} combiner=@add : {ir_type}"
    got = per_thread(ops, ir_type, threads=96, declarations=ADD.format(ir_type, op), a=(ir_type, values))
    run = 2 * distance
    np.testing.assert_array_equal(got[::run], values.reshape(-1, run).sum(axis=1, dtype=numpy_type))


def test_floats_are_added_in_the_order_of_the_distances():
    values = np.random.default_rng(1).normal(size=32).astype(np.float32)
    ops = "%r = xla_gpu.shuffle_reduce(%a) to 16 combiner=@add : f32"
    got = per_thread(ops, "f32", declarations=ADD.format("f32", "arith.addf"), a=("f32", values))
    for distance in (16, 8, 4, 2, 1):
        values = values[:distance] + values[distance : 2 * distance]
    assert got[0] == values[0]


def test_several_values_are_combined_together():
    values = np.random.default_rng(2).permutation(64).astype(np.float32)
    ops = """
    %t = gpu.thread_id x
    %n = arith.index_cast %t : index to i32
    %value, %r = xla_gpu.shuffle_reduce(%a, %n) to 16 combiner=@argmax : f32, i32"""
    got = per_thread(ops, "i32", threads=64, declarations=ARGMAX, a=("f32", values))
    assert got[::32].tolist() == [np.argmax(values[:32]), 32 + np.argmax(values[32:])]
