"""Loops over indexing maps, against enumeration of the map's domain."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError
from xla_emitters.runtime.simt import execute

MAPS = [
    "(th_x, bl_x)[v] -> (bl_x * 16 + th_x * 4 + v), domain: th_x in [0, 3], bl_x in [0, 1], v in [0, 3]",
    "(th_x, bl_x)[v] -> (bl_x * 16 + th_x * 4 + v), domain: th_x in [0, 2], bl_x in [0, 1], v in [1, 2]",
    "(th_x, bl_x)[v] -> (bl_x * 16 + th_x * 4 + v), domain: th_x in [0, 3], bl_x in [0, 1], v in [0, 3],"
    " bl_x * 16 + th_x * 4 + v in [3, 21]",
    "(th_x, bl_x)[v] -> (bl_x * 16 + th_x * 4 + v), domain: th_x in [0, 3], bl_x in [0, 1], v in [0, 3],"
    " (th_x + v) mod 3 in [1, 1], bl_x + v in [1, 3]",
    "(th_x, bl_x)[i, j] -> (bl_x * 16 + j * 8 + th_x * 2 + i), domain: th_x in [0, 3], bl_x in [1, 1], i in [0, 1], j in [0, 1]",
    "(th_x, bl_x) -> (bl_x * 4 + th_x), domain: th_x in [1, 3], bl_x in [0, 1]",
    "(th_x, bl_x)[v] -> (5), domain: th_x in [0, 0], bl_x in [0, 0], v in [0, 0]",
]


@pytest.mark.parametrize("text", MAPS)
def test_every_point_of_the_domain_is_visited_once(text):
    """Each visit adds one to its element and puts its last symbol there."""
    map = IndexingMap.parse(text)
    names = ", ".join(f"%s{n}" for n in range(map.num_symbols))
    out, last = np.zeros(32, np.int32), np.full(32, -1, np.int64)
    types = "tensor<32xi32>, tensor<32xindex>"
    symbol = f"%s{map.num_symbols - 1}" if map.num_symbols else "%thread"
    module = parse_ir(f"""
func.func @main(%out: tensor<32xi32>, %last: tensor<32xindex>) -> ({types}) attributes {{xla.entry, {launch(4, 2)}}} {{
  %thread = gpu.thread_id x
  %block = gpu.block_id x
  %one = arith.constant 1 : i32
  %loop:2 = xla_gpu.loop (%thread, %block)[{names}] -> (%k) in #xla_gpu.indexing_map<"{text}">
      iter_args(%iter = %out, %l = %last) -> ({types}) {{
    %old = tensor.extract %iter[%k] : tensor<32xi32>
    %new = arith.addi %old, %one : i32
    %a = tensor.insert %new into %iter[%k] : tensor<32xi32>
    %b = tensor.insert {symbol} into %l[%k] : tensor<32xindex>
    xla_gpu.yield %a, %b : {types}
  }}
  return %loop#0, %loop#1 : {types}
}}""")
    execute(module, [out, last])
    wanted, symbols = np.zeros(32, np.int32), np.full(32, -1)
    for dims, values in map.points():
        (k,) = map.evaluate(dims, values)
        wanted[k] += 1
        symbols[k] = values[-1] if values else dims[0]
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(last, symbols)


def test_apply_indexing_with_several_results_and_constants():
    module = parse_ir(f"""
func.func @main(%out: tensor<4x3xindex>) -> tensor<4x3xindex> attributes {{xla.entry, {launch(4, 1)}}} {{
  %thread = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a:3 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0)[s0] -> (7, d0 floordiv 2 - s0, min(d0, 2)), "
    "domain: d0 in [0, 3], s0 in [0, 1]">(%thread)[%c1]
  %0 = tensor.insert %a#0 into %out[%thread, %c0] : tensor<4x3xindex>
  %1 = tensor.insert %a#1 into %0[%thread, %c1] : tensor<4x3xindex>
  %2 = tensor.insert %a#2 into %1[%thread, %c2] : tensor<4x3xindex>
  return %2 : tensor<4x3xindex>
}}""")
    out = np.zeros((4, 3), np.int64)
    execute(module, [out])
    assert out.tolist() == [[7, t // 2 - 1, min(t, 2)] for t in range(4)]


def test_pure_calls_have_frames_of_their_own():
    """The callee calls another function, twice, with its own names for its values."""
    module = parse_ir(f"""
func.func private @square(%x: index) -> index {{
  %y = arith.muli %x, %x : index
  return %y : index
}}
func.func private @sum_of_squares(%x: index, %y: index) -> index {{
  %a = xla_gpu.pure_call @square(%x) : (index) -> index
  %b = xla_gpu.pure_call @square(%y) : (index) -> index
  %c = arith.addi %a, %b : index
  return %c : index
}}
func.func @main(%out: tensor<8xindex>) -> tensor<8xindex> attributes {{xla.entry, {launch(4, 2)}}} {{
  %x = gpu.thread_id x
  %y = gpu.block_id x
  %c4 = arith.constant 4 : index
  %row = arith.muli %y, %c4 : index
  %k = arith.addi %row, %x : index
  %v = xla_gpu.pure_call @sum_of_squares(%x, %y) : (index, index) -> index
  %w = tensor.insert %v into %out[%k] : tensor<8xindex>
  return %w : tensor<8xindex>
}}""")
    out = np.zeros(8, np.int64)
    execute(module, [out])
    assert out.tolist() == [t * t + b * b for b in range(2) for t in range(4)]


def test_upstreams_spelling_runs_too():
    module = parse_ir(f"""
func.func @main(%out: tensor<8xindex>) -> tensor<8xindex> attributes {{xla.entry, {launch(4, 2)}}} {{
  %t = gpu.thread_id x
  %b = gpu.block_id x
  %l = xla.loop (%t, %b)[%i] -> (%k) in #xla.indexing_map<"(d0, d1)[s0] -> (d1 * 4 + d0 + s0), domain: d0 in [0, 3], "
      "d1 in [0, 1], s0 in [0, 0]"> iter_args(%iter = %out) -> (tensor<8xindex>) {{
    %w = tensor.insert %k into %iter[%k] : tensor<8xindex>
    xla.yield %w : tensor<8xindex>
  }}
  return %l : tensor<8xindex>
}}""")
    out = np.zeros(8, np.int64)
    execute(module, [out])
    assert out.tolist() == list(range(8))


def test_a_map_that_leads_out_of_bounds_names_the_op():
    module = parse_ir(f"""
func.func @main(%out: tensor<7xindex>) -> tensor<7xindex> attributes {{xla.entry, {launch(4, 2)}}} {{
  %t = gpu.thread_id x
  %b = gpu.block_id x
  %l = xla_gpu.loop (%t, %b)[%i] -> (%k) in #xla_gpu.indexing_map<"(d0, d1)[s0] -> (d1 * 4 + d0 + s0), domain: d0 in [0, 3], "
      "d1 in [0, 1], s0 in [0, 0]"> iter_args(%iter = %out) -> (tensor<7xindex>) {{
    %w = tensor.insert %k into %iter[%k] : tensor<7xindex>
    xla_gpu.yield %w : tensor<7xindex>
  }}
  return %l : tensor<7xindex>
}}""")
    with pytest.raises(
        ExecutionError, match=r"tensor\.insert in block 1, thread 3 writes index 7 of argument 0, which has 7"
    ):
        execute(module, [np.zeros(7, np.int64)])
