"""Tensors: positions of elements, what happens out of bounds, and that only the newest value of a buffer can be used."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch, per_thread

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError, Unsupported
from xla_emitters.runtime.simt import execute


def run(
    body: str, types: str, *arrays: np.ndarray, threads: int = 4, blocks: int = 1, result: str = ""
) -> list[np.ndarray]:
    """An entry with the given arguments and body, over arrays that are all writable; `result` is its result type."""
    returned = f"-> {result} " if result else ""
    module = parse_ir(f"""
func.func @main({types}) {returned}attributes {{xla.entry, {launch(threads, blocks)}}} {{
  %thread = gpu.thread_id x
  %block = gpu.block_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
{body}
}}""")
    return execute(module, list(arrays))


def test_elements_of_every_rank():
    source = np.arange(24, dtype=np.int32)
    ops = """
    %c4 = arith.constant 4 : index
    %c3 = arith.constant 3 : index
    %i = arith.divui %a, %c12 : index
    %jk = arith.remui %a, %c12 : index
    %j = arith.divui %jk, %c4 : index
    %k = arith.remui %jk, %c4 : index
    %r = tensor.extract %t[%i, %j, %k] : tensor<2x3x4xi32>"""
    table = ", ".join(str([[source[i * 12 + j * 4 + k].item() for k in range(4)] for j in range(3)]) for i in range(2))
    setup = f"""
    %c12 = arith.constant 12 : index
    %t = arith.constant dense<[{table}]> : tensor<2x3x4xi32>"""
    got = per_thread(setup + ops, "i32", a=("index", np.arange(24)))
    np.testing.assert_array_equal(got, source)


def test_rank_zero():
    out = np.zeros((), np.float32)
    run(
        "%v = tensor.extract %in[] : tensor<f32>\n%w = tensor.insert %v into %out[] : tensor<f32>\nreturn %w : tensor<f32>",
        "%in: tensor<f32>, %out: tensor<f32>",
        np.array(2.5, np.float32),
        out,
        result="tensor<f32>",
    )
    assert out == 2.5


def test_a_layout_says_where_elements_lie():
    """tensor<2x3, minor to major 0, 1>: element [i, j] lies at i + 2 * j."""
    source, out = np.arange(6, dtype=np.int32), np.zeros(6, np.int32)
    layout = "tensor<2x3xi32, dense<[0, 1]> : tensor<2xi64>>"
    body = f"""
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %i = arith.divui %thread, %c3 : index
  %j = arith.remui %thread, %c3 : index
  %v = tensor.extract %in[%i, %j] : {layout}
  %w = tensor.insert %v into %out[%thread] : tensor<6xi32>
  return %w : tensor<6xi32>"""
    run(body, f"%in: {layout}, %out: tensor<6xi32>", source, out, threads=6, result="tensor<6xi32>")
    assert out.tolist() == [0, 2, 4, 1, 3, 5]


def test_reading_out_of_bounds_names_op_thread_index_and_size():
    body = """
  %last = arith.constant 7 : index
  %far = arith.addi %thread, %last : index
  %v = tensor.extract %in[%far] : tensor<9xf32> loc("negate_0"("k.hlo":4:3))
  %w = tensor.insert %v into %out[%thread] : tensor<4xf32>
  return %w : tensor<4xf32>"""
    with pytest.raises(ExecutionError) as failure:
        run(
            body,
            "%in: tensor<9xf32>, %out: tensor<4xf32>",
            np.zeros(9, np.float32),
            np.zeros(4, np.float32),
            blocks=2,
            result="tensor<4xf32>",
        )
    assert failure.value.message == (
        "tensor.extract in block 0, thread 2 reads index 9 of argument 0, which has 9 of 4 bytes each"
    )
    assert "from negate_0 (k.hlo:4:3)" in failure.value.details


def test_an_index_may_not_run_into_the_next_row():
    """[1, 5] of a 4x4 tensor lies inside its memory, and is still wrong."""
    body = """
  %c5 = arith.constant 5 : index
  %v = tensor.extract %in[%c1, %c5] : tensor<4x4xf32>
  return"""
    with pytest.raises(ExecutionError, match="outside of dimension 1, 0 to 3"):
        run(body, "%in: tensor<4x4xf32>", np.zeros((4, 4), np.float32))


def test_negative_indices_are_out_of_bounds():
    body = """
  %m = arith.subi %thread, %c1 : index
  %v = tensor.extract %in[%m] : tensor<4xf32>
  return"""
    with pytest.raises(ExecutionError, match="reads index -1 of"):
        run(body, "%in: tensor<4xf32>", np.zeros(4, np.float32))


def test_inactive_threads_may_be_out_of_bounds():
    out = np.zeros(3, np.int32)
    body = """
  %c3 = arith.constant 3 : index
  %inside = arith.cmpi ult, %thread, %c3 : index
  %t = scf.if %inside -> (tensor<3xi32>) {
    %v = tensor.extract %in[%thread] : tensor<3xi32>
    %w = tensor.insert %v into %out[%thread] : tensor<3xi32>
    scf.yield %w : tensor<3xi32>
  } else {
    scf.yield %out : tensor<3xi32>
  }
  return %t : tensor<3xi32>"""
    source = np.array([7, 8, 9], np.int32)
    run(body, "%in: tensor<3xi32>, %out: tensor<3xi32>", source, out, result="tensor<3xi32>")
    assert out.tolist() == [7, 8, 9]


def test_a_value_from_before_an_insert_is_gone():
    body = """
  %zero = arith.constant 0.0 : f32
  %w = tensor.insert %zero into %out[%thread] : tensor<4xf32>
  %old = tensor.extract %out[%thread] : tensor<4xf32>
  return %w : tensor<4xf32>"""
    with pytest.raises(ExecutionError, match="from before a later write"):
        run(body, "%out: tensor<4xf32>", np.ones(4, np.float32), result="tensor<4xf32>")


def test_returning_a_value_from_before_an_insert_loses_the_write():
    body = """
  %zero = arith.constant 0.0 : f32
  %w = tensor.insert %zero into %out[%thread] : tensor<4xf32>
  return %out : tensor<4xf32>"""
    with pytest.raises(ExecutionError, match="a write is lost"):
        run(body, "%out: tensor<4xf32>", np.ones(4, np.float32), result="tensor<4xf32>")


def test_returning_another_tensor_than_the_result_is_an_error():
    with pytest.raises(ExecutionError, match="is not what its inserts into argument 1 made"):
        run(
            "return %in : tensor<4xf32>",
            "%in: tensor<4xf32>, %out: tensor<4xf32>",
            np.ones(4, np.float32),
            np.ones(4, np.float32),
            result="tensor<4xf32>",
        )


IF_WITH_INSERT = """
  %zero = arith.constant 0.0 : f32
  %odd = arith.remui %thread, %c2 : index
  %is_odd = arith.cmpi eq, %odd, %c1 : index
  %t = scf.if %is_odd -> (tensor<4xf32>) {{
    %w = tensor.insert %zero into %out[%thread] : tensor<4xf32>
    scf.yield %w : tensor<4xf32>
  }} else {{
    %before = tensor.extract %out[%thread] : tensor<4xf32>
    scf.yield %out : tensor<4xf32>
  }}
  {behind}
"""


def test_the_other_way_still_sees_the_value_at_the_fork():
    out = np.ones(4, np.float32)
    body = "%c2 = arith.constant 2 : index\n" + IF_WITH_INSERT.format(behind="return %t : tensor<4xf32>")
    run(body, "%out: tensor<4xf32>", out, result="tensor<4xf32>")
    assert out.tolist() == [1, 0, 1, 0]


def test_behind_the_join_the_value_at_the_fork_is_gone():
    behind = "%old = tensor.extract %out[%thread] : tensor<4xf32>\nreturn %t : tensor<4xf32>"
    body = "%c2 = arith.constant 2 : index\n" + IF_WITH_INSERT.format(behind=behind)
    with pytest.raises(ExecutionError, match="from before a later write"):
        run(body, "%out: tensor<4xf32>", np.ones(4, np.float32), result="tensor<4xf32>")


def test_selecting_between_old_and_new_is_an_error():
    body = """
  %zero = arith.constant 0.0 : f32
  %w = tensor.insert %zero into %out[%thread] : tensor<4xf32>
  %first = arith.cmpi eq, %thread, %c0 : index
  %t = arith.select %first, %w, %out : tensor<4xf32>
  return %t : tensor<4xf32>"""
    with pytest.raises(ExecutionError, match=r"arith\.select uses a value"):
        run(body, "%out: tensor<4xf32>", np.ones(4, np.float32), result="tensor<4xf32>")


def test_a_loop_carries_the_newest_value():
    out = np.zeros(12, np.int32)
    body = """
  %c3 = arith.constant 3 : index
  %t = scf.for %i = %c0 to %c3 step %c1 iter_args(%iter = %out) -> (tensor<12xi32>) {
    %row = arith.muli %thread, %c3 : index
    %k = arith.addi %row, %i : index
    %v = arith.index_cast %k : index to i32
    %w = tensor.insert %v into %iter[%k] : tensor<12xi32>
    scf.yield %w : tensor<12xi32>
  }
  return %t : tensor<12xi32>"""
    run(body, "%out: tensor<12xi32>", out, result="tensor<12xi32>")
    assert out.tolist() == list(range(12))


def test_private_tensors():
    ops = """
    %two = arith.constant 2 : i32
    %b = arith.muli %a, %two : i32
    %t = tensor.from_elements %a, %b : tensor<2xi32>
    %c1 = arith.constant 1 : index
    %x = tensor.extract %t[%c1] : tensor<2xi32>
    %s = tensor.splat %x : tensor<3xi32>
    %r = tensor.extract %s[%c1] : tensor<3xi32>"""
    assert per_thread(ops, "i32", a=("i32", np.arange(64))).tolist() == [2 * n for n in range(64)]


def test_where_threads_meet_the_last_one_wins():
    out = np.zeros(1, np.int32)
    body = """
  %v = arith.index_cast %thread : index to i32
  %w = tensor.insert %v into %out[%c0] : tensor<1xi32>
  return %w : tensor<1xi32>"""
    run(body, "%out: tensor<1xi32>", out, result="tensor<1xi32>")
    assert out.tolist() == [3]


@pytest.mark.parametrize("numpy_name", ["int4", "uint4", "float4_e2m1fn"])
def test_sub_byte_tensors_take_one_byte_an_element(numpy_name):
    import ml_dtypes

    numpy_type = np.dtype(getattr(ml_dtypes, numpy_name))
    ir_type = {"float4_e2m1fn": "f4E2M1FN"}.get(numpy_name, "i4")
    source = np.arange(16, dtype=np.uint8).view(numpy_type)
    out = np.zeros(16, numpy_type)
    body = f"""
  %v = tensor.extract %in[%thread] : tensor<16x{ir_type}>
  %w = tensor.insert %v into %out[%thread] : tensor<16x{ir_type}>
  return %w : tensor<16x{ir_type}>"""
    run(
        body,
        f"%in: tensor<16x{ir_type}>, %out: tensor<16x{ir_type}>",
        source,
        out,
        threads=16,
        result=f"tensor<16x{ir_type}>",
    )
    np.testing.assert_array_equal(out.view(np.uint8), source.view(np.uint8))


# ---- tensors of unknown size ------------------------------------------------------------------------------------------------------------

MATRIX = np.arange(12, dtype=np.int32).reshape(3, 4) * 5 - 9
CONSTANT = f"%t = arith.constant dense<{MATRIX.tolist()}> : tensor<3x4xi32>\n"


def test_tensors_of_unknown_size_are_refused():
    ops = "%n = arith.constant 2 : index\n%v = tensor.empty(%n) : tensor<?xi32>\n%r = arith.constant 0 : i32"
    with pytest.raises(Unsupported, match=r"tensor\.empty of tensor<[?]xi32>: its extents are not constant"):
        per_thread(ops, "i32")
