"""Steps on the CPU that follow each other: how they are called; their values are those of tests/runtime/test_cpu_programs."""

import numpy as np

import xla_emitters as xe
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.runtime.cpu.cpu_platform import Chain

PROGRAM = """
func.func public @main(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %0 = stablehlo.exponential %x : tensor<?x8xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %2 = stablehlo.tanh %1 : tensor<?x8xf32>
  %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}
"""


def test_kernels_and_products_that_follow_each_other_are_called_once() -> None:
    program, draw = xe.compile(PROGRAM, record="none"), np.random.default_rng(0)
    x, w = (draw.standard_normal(shape, np.float32) / 4 for shape in ((3, 8), (8, 8)))
    made = lowerings_of(program).loaded
    frame = made.frame(made.bind([x.shape, w.shape]))
    chains = [run for run in frame.code if isinstance(run, Chain)]
    # The result's memory is allocated before the last product.
    assert [len(chain) for chain in chains] == [3, 1]
    for turn in (x, 2 * x):
        np.testing.assert_allclose(frame.run([turn, w])[0], np.tanh(np.exp(turn) @ w) @ w, rtol=1e-5, atol=1e-5)
