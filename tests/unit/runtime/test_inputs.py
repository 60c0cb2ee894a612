"""Inputs that are drawn: numbers that are starts of windows are mostly valid indices."""

import numpy as np
import pytest

from xla_emitters.graph.entry import entry_of
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import ArraySpec
from xla_emitters.runtime.arrays import random_arrays
from xla_emitters.runtime.draws import Places
from xla_emitters.runtime.inputs import TRIPS, allowed_starts, draw_inputs
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.text.stablehlo import parse_stablehlo

PROGRAM = """
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

fused {
  p = f32[500,64] parameter(0)
  u = f32[64,2,64] parameter(1)
  rows = s32[64] parameter(2)
  zero = s32[] constant(0)
  zeros = s32[64] broadcast(zero), dimensions={}
  size = s32[] constant(500)
  sizes = s32[64] broadcast(size), dimensions={}
  below = pred[64] compare(rows, zeros), direction=LT
  from_end = s32[64] add(rows, sizes)
  chosen = s32[64] select(below, from_end, rows)
  starts = s32[64,1] reshape(chosen)
  ROOT s = f32[500,64] scatter(p, starts, u), update_window_dims={1,2},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=addFLAGS
}

ENTRY main {
  rows = s32[64] parameter(0)
  p = f32[500,64] parameter(1)
  u = f32[64,2,64] parameter(2)
  ROOT f = f32[500,64] fusion(p, u, rows), kind=kInput, calls=fused
}
"""
SPECS = (
    ArraySpec("s32", (64,), (0,)),
    ArraySpec("f32", (500, 64), (1, 0)),
    ArraySpec("f32", (64, 2, 64), (2, 1, 0)),
)


def test_a_parameter_says_where_through_fusions_and_choices() -> None:
    entry = entry_of(parse_hlo(PROGRAM.replace("FLAGS", "")))
    assert allowed_starts(entry) == {0: Places(last=498, window=2, unique=False)}


def test_most_places_are_there_and_some_are_not() -> None:
    entry = entry_of(parse_hlo(PROGRAM.replace("FLAGS", "")))
    rows, p, u = draw_inputs(entry, SPECS, 0)
    plain = random_arrays(SPECS, 0)
    assert (p == plain[1]).all()
    assert (u == plain[2]).all()
    assert rows.dtype == np.int32
    inside = ((rows >= 0) & (rows <= 498)).sum()
    assert 20 < inside < 64
    assert (draw_inputs(entry, SPECS, 0)[0] == rows).all()
    assert (draw_inputs(entry, SPECS, 1)[0] != rows).any()


def test_windows_that_must_not_overlap_do_not() -> None:
    entry = entry_of(parse_hlo(PROGRAM.replace("FLAGS", ", unique_indices=true")))
    rows, *_ = draw_inputs(entry, SPECS, 0)
    starts = np.sort(rows)
    assert starts[0] >= 0
    assert starts[-1] <= 498
    assert (np.diff(starts) >= 2).all()


WINDOWS = """
ENTRY fused {
  p = f32[500,64] parameter(0)
  row = s32[] parameter(1)
  column = u8[] parameter(2)
  rows = s64[7,1] parameter(3)
  whole = s32[] parameter(4)
  wide = s32[] convert(column)
  d = f32[8,60] dynamic-slice(p, row, wide), dynamic_slice_sizes={8,60}
  g = f32[7,64] gather(p, rows), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}
  all = f32[8,60] dynamic-slice(d, whole, whole), dynamic_slice_sizes={8,60}
  ROOT t = (f32[8,60], f32[7,64]) tuple(all, g)
}
"""


def test_starts_of_slices_and_gathers_are_places_too() -> None:
    """The window of 8 x 60 may begin in rows 0 to 492, and in columns 0 to 4; one that covers all begins anywhere."""
    computation = entry_of(parse_hlo(WINDOWS))
    wanted = {1: Places(492, 1, unique=False), 2: Places(4, 1, unique=False), 3: Places(499, 1, unique=False)}
    assert allowed_starts(computation) == wanted


LOOPS = """
wrapped {
  i = s32[] parameter(0)
  n = s32[] parameter(1)
  ROOT less = pred[] compare(i, n), direction=LT
}

more {
  s = (s32[], s32[], s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT less = pred[] fusion(i, n), kind=kLoop, calls=wrapped
}

inner_more {
  s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT less = pred[] compare(i, n), direction=LT
}

inner {
  s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT t = (s32[], s32[]) tuple(next, n)
}

body {
  s = (s32[], s32[], s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  m = s32[] get-tuple-element(s), index=2
  x = f32[] get-tuple-element(s), index=3
  zero = s32[] constant(0)
  state = (s32[], s32[]) tuple(zero, m)
  w = (s32[], s32[]) while(state), condition=inner_more, body=inner
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT t = (s32[], s32[], s32[], f32[]) tuple(next, n, m, x)
}

ENTRY main {
  start = s32[] parameter(0)
  outer = s32[] parameter(1)
  nested = s32[] parameter(2)
  x = f32[] parameter(3)
  other = s32[] parameter(4)
  state = (s32[], s32[], s32[], f32[]) tuple(start, outer, nested, x)
  w = (s32[], s32[], s32[], f32[]) while(state), condition=more, body=body
  ROOT r = (s32[], s32[]) tuple(other, outer)
}
"""


def test_what_loops_count_to_is_small() -> None:
    """Through the state of loops in loops, and the computation of a fused condition; what no loop reads is any number."""
    entry = entry_of(parse_hlo(LOOPS))
    assert allowed_starts(entry) == {number: TRIPS for number in (0, 1, 2)}
    specs = [ArraySpec("f32" if number == 3 else "s32", (), ()) for number in range(5)]
    drawn = [[int(array) for array in draw_inputs(entry, specs, seed)] for seed in range(50)]
    counts = np.array(drawn)[:, :3]
    assert counts.min() < 0 < counts.max() <= 12, "some loops do not run at all"
    assert max(abs(row[4]) for row in drawn) > 1e6


@pytest.mark.parametrize(
    ("op", "result", "numbers", "most"),
    [
        ("set_dimension_size %x, %n, dim = 0 : (tensor<5x4xf32>, tensor<i32>)", "?x4", "", 5),
        ("dynamic_iota %n, dim = 0 : (tensor<1xi32>)", "?", "1x", 64),
        (
            "dynamic_pad %x, %c, %n, %n, %n : (tensor<5x4xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>)",
            "?x?",
            "2x",
            8,
        ),
    ],
)
def test_numbers_that_are_sizes_are_small(op: str, result: str, numbers: str, most: int) -> None:
    text = f"""module @m {{ func.func @main(%x: tensor<5x4xf32>, %n: tensor<{numbers}i32>) -> tensor<{result}xf32> {{
      %c = stablehlo.constant dense<0.0> : tensor<f32>
      %y = stablehlo.{op} -> tensor<{result}xf32>
      return %y : tensor<{result}xf32> }} }}"""
    program = compile_program(parse_stablehlo(text, "m.mlir"), CompileOptions(stage="hlo"))
    drawn = [drawn_inputs(program, {}, seed)[1] for seed in range(40)]
    assert all(((0 <= array) & (array <= most)).all() for array in drawn)
    assert len({array.tobytes() for array in drawn}) > 3
    program.run([np.zeros((5, 4), np.float32), drawn[0]])
