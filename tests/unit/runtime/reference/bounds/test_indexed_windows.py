"""Bounds of elements that are read or written at uncertain indices."""

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference_bounds import evaluate_bounds
from xla_emitters.runtime.reference.tolerance import Bounds
from xla_emitters.text.hlo import parse_hlo

PLACE = """
  one = f32[] constant(1)
  e = f32[] exponential(x)
  n = s32[] convert(e)
"""


def bounds(body: str, *inputs: Array) -> Bounds:
    (found,) = evaluate_bounds(entry_of(parse_hlo(f"ENTRY f {{\n{body}\n}}\n", "x.hlo")), inputs)
    return found


ARRAY = np.array([1, 4, 2, 8, 3, 9], np.float32)


def test_a_slice_begins_at_either_place_where_the_index_is_open() -> None:
    """exp(log 2) is 2 but for some ulps, so it is 1 or 2 as an integer; exp(1) is 2 for certain."""
    body = (
        f"a = f32[6] parameter(0)\nx = f32[] parameter(1)\n{PLACE}"
        "ROOT r = f32[2] dynamic-slice(a, n), dynamic_slice_sizes={2}"
    )
    found = bounds(body, ARRAY, np.array(np.log(2), np.float32))
    assert (found.low.tolist(), found.high.tolist()) == ([2, 2], [4, 8])
    found = bounds(body, ARRAY, np.array(1, np.float32))
    assert (found.low.tolist(), found.high.tolist()) == ([2, 8], [2, 8])


def test_an_update_may_go_to_either_place() -> None:
    body = (
        f"a = f32[6] parameter(0)\nx = f32[] parameter(1)\nu = f32[1] parameter(2)\n{PLACE}"
        "ROOT r = f32[6] dynamic-update-slice(a, u, n)"
    )
    found = bounds(body, ARRAY, np.array(np.log(2), np.float32), np.array([100], np.float32))
    assert found.low.tolist() == ARRAY.tolist()
    assert found.high.tolist() == [1, 100, 100, 8, 3, 9]


def test_a_gather_reads_either_row() -> None:
    body = """
      a = f32[6] parameter(0)
      x = f32[3,1] parameter(1)
      e = f32[3,1] exponential(x)
      n = s32[3,1] convert(e)
      ROOT r = f32[3] gather(a, n), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
    """
    found = bounds(body, ARRAY, np.array([[np.log(2)], [1], [50]], np.float32))
    assert (found.low.tolist(), found.high.tolist()) == ([2, 2, 9], [4, 2, 9])
    everywhere = bounds(
        body.replace("exponential(x)", "power(x, x)"), ARRAY, np.array([[np.nan], [1], [-0.5]], np.float32)
    )
    assert everywhere.low[0] == everywhere.high[0] == 1  # NaN is 0 as an integer


def test_of_a_scatter_at_open_places_nothing_is_known() -> None:
    text = """
    add { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT r = f32[] add(a, b) }
    ENTRY f {
      p = f32[6] parameter(0)
      x = f32[2] parameter(1)
      e = f32[2] exponential(x)
      n = s32[2] convert(e)
      u = f32[2] parameter(2)
      ROOT s = f32[6] scatter(p, n, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
        index_vector_dim=1, to_apply=add
    }"""
    inputs = [ARRAY, np.array([np.log(2), 1], np.float32), np.ones(2, np.float32)]
    (found,) = evaluate_bounds(entry_of(parse_hlo(text, "x.hlo")), inputs)
    assert found.is_unknown.all()
