"""Some elements of a computation: the bits that the whole evaluation has there."""

import numpy as np
import pytest
from runtime.small_programs import GELU, PROGRAMS

from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp
from xla_emitters.dtypes import Array
from xla_emitters.graph.entry import computation_of, entry_of
from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.runtime.arrays import random_arrays, same_bits
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.runtime.reference.reference_elements import evaluate_elements

MOVES = """
ENTRY e {
  x = f32[6,10] parameter(0)
  s = f32[] parameter(1)
  k = f32[10] constant({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
  t = f32[10,6] transpose(x), dimensions={1,0}
  c = f32[4,3] slice(t), slice={[1:9:2], [0:6:2]}
  v = f32[12] reshape(c)
  r = f32[12] reverse(v), dimensions={0}
  b = f32[5,12] broadcast(r), dimensions={1}
  w = f32[5,12] broadcast(s), dimensions={}
  p = pred[5,12] compare(b, w), direction=LT
  n = f32[5,12] select(p, b, w)
  m = f32[6,10] broadcast(k), dimensions={1}
  a = f32[6,10] add(x, m)
  i = s32[6,10] bitcast-convert(a)
  z = c64[5,12] complex(n, w)
  ROOT o = (c64[5,12], s32[6,10], f32[]) tuple(z, i, s)
}
"""


def fused(text: str) -> ComputationOp:
    """The computation of the fusion in ENTRY, or ENTRY itself."""
    entry = entry_of(read_module(text))
    return computation_of(next((op for op in entry.instructions if isinstance(op, FusionOp)), entry))


def masks_of(arrays: list[Array], share: float) -> list[Array]:
    draws = np.random.default_rng(0)
    return [draws.random(array.shape) < share if array.ndim else np.array(share > 0.5) for array in arrays]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.6])
def test_moves(share: float) -> None:
    """Against NumPy's own slices: each element is one of the arguments', or a function of such."""
    x, s = np.arange(60, dtype=np.float32).reshape(6, 10) - 30, np.array(1.5, np.float32)
    reversed_ones = x.T[1:9:2, 0:6:2].reshape(-1)[::-1]
    wide = np.broadcast_to(reversed_ones, (5, 12))
    whole = [
        np.where(wide < s, wide, s) + 1j * s,
        (x + np.arange(10, dtype=np.float32)).view(np.int32),
        s,
    ]
    masks = masks_of(whole, share)
    found = evaluate_elements(entry_of(read_module(MOVES)), [x, s], masks)
    assert found is not None
    for made, array, mask in zip(found, whole, masks, strict=True):
        assert np.array_equal(made, array[mask])


@pytest.mark.parametrize("name", ["gelu", "bytes", "ragged", "two_results"])
def test_the_bits_of_the_whole(name: str) -> None:
    text = GELU if name == "gelu" else PROGRAMS[name]
    entry, specs = entry_of(read_module(text)), compile_module(read_module(text), CompileOptions(stage="hlo"))
    inputs = random_arrays(specs.parameters, 0)
    whole = evaluate(entry, inputs)
    masks = masks_of(whole, 0.1)
    found = evaluate_elements(fused(text), inputs, masks)
    assert found is not None
    for made, array, mask in zip(found, whole, masks, strict=True):
        assert made.dtype == array.dtype
        assert same_bits(np.ascontiguousarray(made), array[mask])


def test_sums_need_the_others() -> None:
    text = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[4,8] parameter(0)
  z = f32[] constant(0)
  r = f32[4] reduce(x, z), dimensions={1}, to_apply=add
  ROOT n = f32[4] negate(r) }
"""
    assert evaluate_elements(entry_of(read_module(text)), [np.ones((4, 8), np.float32)], [np.ones(4, np.bool_)]) is None


def test_results_of_one_op_need_the_others() -> None:
    text = """
order { a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT c = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[8] parameter(0)
  i = s32[8] iota(), iota_dimension=0
  ROOT s = (f32[8], s32[8]) sort(x, i), dimensions={0}, to_apply=order }
"""
    wanted = [np.ones(8, np.bool_)] * 2
    assert evaluate_elements(entry_of(read_module(text)), [np.ones(8, np.float32)], wanted) is None


def test_a_value_at_many_places_is_no_longer_cheap() -> None:
    """x + reverse(x), ten times: x is read at two places of each, which double."""
    lines = [f"r{i} = f32[8] reverse(x{i}), dimensions={{0}}\n x{i + 1} = f32[8] add(x{i}, r{i})" for i in range(12)]
    text = "ENTRY e {\n x0 = f32[8] parameter(0)\n" + "\n".join(lines) + "\n ROOT o = f32[8] negate(x12)\n}\n"
    assert evaluate_elements(entry_of(read_module(text)), [np.ones(8, np.float32)], [np.ones(8, np.bool_)]) is None
