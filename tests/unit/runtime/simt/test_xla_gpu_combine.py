"""Combining values across a warp, along a tensor, and tiles spread over threads, against NumPy."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch, per_thread

from xla_emitters.dialects.context import parse_ir
from xla_emitters.runtime.simt import execute

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


@pytest.mark.parametrize("dimensions", [[0], [1], [2], [0, 2], [0, 1, 2]])
def test_a_tensor_is_reduced(dimensions):
    values = np.random.default_rng(3).integers(-9, 9, (2, 3, 4), np.int32)
    wanted = 100 + values.sum(axis=tuple(dimensions))
    kept = "".join(f"{n}x" for n in wanted.shape)
    position = ", ".join(f"%i{n}" for n in range(wanted.ndim))
    ids = "\n".join(f"  %i{n} = gpu.thread_id {'xyz'[n]}" for n in range(wanted.ndim))
    block = [*wanted.shape, 1, 1, 1][:3]
    module = parse_ir(f"""
{ADD.format("i32", "arith.addi")}
func.func @main(%in: tensor<2x3x4xi32> {{xla.invariant}}, %out: tensor<{kept}i32>) -> tensor<{kept}i32>
    attributes {{xla.entry, gpu.known_block_size = array<i32: {", ".join(map(str, block))}>,
                gpu.known_grid_size = array<i32: 1, 1, 1>}} {{
{ids}
  %init = arith.constant 100 : i32
  %sums = xla_gpu.reduce(%in) inits(%init) dimensions={dimensions} combiner=@add : tensor<2x3x4xi32> to tensor<{kept}i32>
  %v = tensor.extract %sums[{position}] : tensor<{kept}i32>
  %t = tensor.insert %v into %out[{position}] : tensor<{kept}i32>
  return %t : tensor<{kept}i32>
}}""")
    out = np.zeros(wanted.shape, np.int32)
    execute(module, [values, out])
    np.testing.assert_array_equal(out, wanted)


def test_a_reduction_goes_in_row_major_order():
    """2 * sum + element depends on the order."""
    combine = "%two = arith.constant 2 : i32\n%m = arith.muli %a, %two : i32\n%c = arith.addi %m, %b : i32"
    add = f"func.func private @fold(%a: i32, %b: i32) -> i32 {{\n{combine}\nreturn %c : i32\n}}"
    module = parse_ir(f"""
{add}
func.func @main(%in: tensor<2x3xi32>, %out: tensor<1xi32>) -> tensor<1xi32> attributes {{xla.entry, {launch(1, 1)}}} {{
  %thread = gpu.thread_id x
  %init = arith.constant 1 : i32
  %folded = xla_gpu.reduce(%in) inits(%init) dimensions=[0, 1] combiner=@fold : tensor<2x3xi32> to tensor<i32>
  %v = tensor.extract %folded[] : tensor<i32>
  %t = tensor.insert %v into %out[%thread] : tensor<1xi32>
  return %t : tensor<1xi32>
}}""")
    values, out = np.array([[3, 1, 4], [1, 5, 9]], np.int32), np.zeros(1, np.int32)
    execute(module, [values, out], results=1)
    wanted = 1
    for value in values.flat:
        wanted = 2 * wanted + int(value)
    assert out.tolist() == [wanted]


def test_a_tile_goes_from_one_layout_to_another():
    """Threads hold four columns of a row each, but for those beyond column 9, and put exp2 of them into the transposed place."""
    held = "(th_x)[s] -> (th_x floordiv 4, (th_x mod 4) * 4 + s), domain: th_x in [0, 31], s in [0, 3], (th_x mod 4) * 4 + s in [0, 9]"
    module = parse_ir(f"""
#held = #xla_gpu.indexing_map<"{held}">
#put = #xla_gpu.indexing_map<"(d0, d1) -> (d1, d0), domain: d0 in [0, 7], d1 in [0, 9]">
func.func private @element(%in: tensor<8x10xf32>, %i: index, %j: index) -> f32 {{
  %v = tensor.extract %in[%i, %j] : tensor<8x10xf32>
  %e = math.exp2 %v : f32
  return %e : f32
}}
func.func @main(%in: tensor<8x10xf32>, %out: tensor<10x8xf32>) -> tensor<10x8xf32> attributes {{xla.entry, {launch(32, 1)}}} {{
  %thread = gpu.thread_id x
  %m = xla_gpu.materialize @element(%in) at #held(%thread) : (tensor<8x10xf32>) -> !xla_gpu.indexed_vector<8x10xf32, #held>
  %t = xla_gpu.insert %m(%thread) into %out at #put : !xla_gpu.indexed_vector<8x10xf32, #held> -> tensor<10x8xf32>
  return %t : tensor<10x8xf32>
}}""")
    values, out = np.random.default_rng(4).normal(size=(8, 10)).astype(np.float32), np.zeros((10, 8), np.float32)
    execute(module, [values, out], results=1)
    np.testing.assert_array_equal(out, np.exp2(values).T)
