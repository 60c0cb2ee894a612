"""What one thread computes, op by op."""

import numpy as np
import pytest
from unit.runtime.simt.watched_kernels import tensors

from xla_emitters.dialects.context import parse_ir
from xla_emitters.runtime.simt import execute
from xla_emitters.runtime.simt.follow import LaneValues


@pytest.mark.parametrize("wide", ["i64", "i128", "index"])
def test_values_of_one_thread_are_numbers_at_any_width(wide: str) -> None:
    # The high half of a 64-bit product is computed in 128 bits; NumPy has no such integers.
    cast = "arith.index_cast %k : index to i64" if wide != "index" else "arith.addi %k, %c0 : index"
    widened = "%w = arith.extsi %n : i64 to i128" if wide == "i128" else f"%w = arith.addi %n, %n : {wide}"
    body = f"""
  %n = {cast}
  {widened}
  %s = arith.muli %w, %w : {wide}
  %done = tensor.insert %v into %out[%k] : tensor<128xi32>"""
    module = parse_ir(tensors(body, blocks=2))
    lane = LaneValues(block=1, thread=17)
    execute(module, [np.zeros(128, np.int32)], watchers=[lane])
    squares = [numbers for op, numbers in lane.computed if op.name == "arith.muli" and str(op.results[0].type) == wide]
    k = 64 + 17
    assert squares[-1] == (k**2 if wide == "i128" else (2 * k) ** 2,)
