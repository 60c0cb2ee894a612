"""Vectors: elements by constant and by dynamic position, rows of tensors, bits, reductions."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch, per_thread

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError
from xla_emitters.runtime.simt import execute

VECTOR = "%v = arith.constant dense<[10, 20, 30, 40]> : vector<4xi32>\n"


def test_positions_that_differ_between_threads():
    positions = np.arange(64) % 4
    got = per_thread(VECTOR + "%r = vector.extract %v[%a] : i32 from vector<4xi32>", "i32", a=("index", positions))
    assert got.tolist() == [(p + 1) * 10 for p in positions]
    ops = """
    %c1 = arith.constant 1 : i32
    %w = vector.insert %c1, %v [%a] : i32 into vector<4xi32>
    %r = vector.extract %w[2] : i32 from vector<4xi32>"""
    got = per_thread(VECTOR + ops, "i32", a=("index", positions))
    assert got.tolist() == [1 if p == 2 else 30 for p in positions]


def test_a_position_outside_is_an_error():
    with pytest.raises(ExecutionError, match=r"vector\.extract in block 0, thread 4 has a position outside"):
        per_thread(VECTOR + "%r = vector.extract %v[%a] : i32 from vector<4xi32>", "i32", a=("index", np.arange(32)))


def test_vectors_of_vectors():
    ops = """
    %m = arith.constant dense<[[1, 2, 3], [4, 5, 6]]> : vector<2x3xi32>
    %row = vector.extract %m[%a] : vector<3xi32> from vector<2x3xi32>
    %x = vector.extract %row[2] : i32 from vector<3xi32>
    %swapped = vector.insert %row, %m [0] : vector<3xi32> into vector<2x3xi32>
    %y = vector.extract %swapped[0, 1] : i32 from vector<2x3xi32>
    %ten = arith.constant 10 : i32
    %z = arith.muli %y, %ten : i32
    %r = arith.addi %x, %z : i32"""
    assert per_thread(ops, "i32", a=("index", np.array([0, 1] * 16))).tolist() == [23, 56] * 16


def test_elementwise_ops_take_vectors():
    ops = """
    %x = vector.broadcast %a : i32 to vector<4xi32>
    %s = arith.addi %v, %x : vector<4xi32>
    %limit = arith.constant dense<35> : vector<4xi32>
    %c = llvm.icmp "slt" %s, %limit : vector<4xi32>
    %t = llvm.select %c, %s, %limit : vector<4xi1>, vector<4xi32>
    %r = vector.reduction <add>, %t : vector<4xi32> into i32"""
    values = np.arange(32)
    got = per_thread(VECTOR + ops, "i32", a=("i32", values))
    assert got.tolist() == [sum(min(35, e + a) for e in (10, 20, 30, 40)) for a in values.tolist()]


def test_shuffle_from_and_to_elements():
    ops = """
    %w = vector.from_elements %a, %a, %a, %a : vector<4xi32>
    %s = vector.shuffle %v, %w [3, 4, 0, 7] : vector<4xi32>, vector<4xi32>
    %e:4 = vector.to_elements %s : vector<4xi32>
    %x = arith.subi %e#0, %e#1 : i32
    %y = arith.subi %e#2, %e#3 : i32
    %r = arith.muli %x, %y : i32"""
    got = per_thread(VECTOR + ops, "i32", a=("i32", np.arange(32)))
    assert got.tolist() == [(40 - a) * (10 - a) for a in range(32)]


def test_bits_of_a_vector():
    patterns = np.array([0x3F803F80, 0x40004000, -1], np.int64).astype(np.int32)
    ops = """
    %x = vector.broadcast %a : i32 to vector<1xi32>
    %h = vector.bitcast %x : vector<1xi32> to vector<2xbf16>
    %back = vector.bitcast %h : vector<2xbf16> to vector<1xi32>
    %r = vector.extract %back[0] : i32 from vector<1xi32>"""
    assert per_thread(ops, "i32", a=("i32", patterns)).tolist() == patterns.tolist()
    first = ops.splitlines()[1:3]
    got = per_thread(
        "\n".join([*first, "%r = vector.extract %h[1] : bf16 from vector<2xbf16>"]), "bf16", a=("i32", patterns[:2])
    )
    assert got.tolist() == [1.0, 2.0]


def transfer(index: str, elements: int = 16, threads: int = 4) -> np.ndarray:
    """Each thread reads 4 elements from `index`, a value over %thread, and writes them at 4 * thread."""
    source, out = np.arange(elements, dtype=np.float32), np.zeros(4 * threads, np.float32)
    module = parse_ir(f"""
func.func @main(%in: tensor<{elements}xf32>, %out: tensor<{4 * threads}xf32>) -> tensor<{4 * threads}xf32>
    attributes {{xla.entry, {launch(threads, 1)}}} {{
  %thread = gpu.thread_id x
  %c4 = arith.constant 4 : index
  %pad = arith.constant 0.0 : f32
  %line = arith.muli %thread, %c4 : index
{index}
  %v = vector.transfer_read %in[%k], %pad {{in_bounds = [true]}} : tensor<{elements}xf32>, vector<4xf32>
  %w = vector.transfer_write %v, %out[%line] {{in_bounds = [true]}} : vector<4xf32>, tensor<{4 * threads}xf32>
  return %w : tensor<{4 * threads}xf32>
}}""")
    return execute(module, [source, out])[0]


def test_transfers_move_whole_rows():
    got = transfer("%c12 = arith.constant 12 : index\n%k = arith.subi %c12, %line : index")
    assert got.reshape(4, 4).tolist() == np.arange(16).reshape(4, 4)[::-1].tolist()


def test_a_misaligned_row_is_an_error():
    with pytest.raises(
        ExecutionError, match=r"vector\.transfer_read in block 0, thread 0 accesses 4 elements from an index that is no"
    ):
        transfer("%c1 = arith.constant 1 : index\n%k = arith.addi %line, %c1 : index", elements=20)


def test_a_row_that_leaves_the_tensor_is_out_of_bounds():
    with pytest.raises(ExecutionError, match="reads index 3 of argument 0, which has 3 of 16 bytes each"):
        transfer("%c0 = arith.constant 0 : index\n%k = arith.addi %line, %c0 : index", elements=14)


def test_masks():
    ops = """
    %c2 = arith.constant 2 : index
    %m = vector.create_mask %a, %c2 : vector<3x4xi1>
    %v = vector.extract %m[1, 1] : i1 from vector<3x4xi1>
    %w = vector.extract %m[1, 2] : i1 from vector<3x4xi1>
    %i = arith.extui %v : i1 to i32
    %j = arith.extui %w : i1 to i32
    %two = arith.constant 2 : i32
    %d = arith.muli %j, %two : i32
    %r = arith.addi %i, %d : i32"""
    got = per_thread(ops, "i32", a=("index", np.array([-1, 0, 1, 2, 3, 9])))
    assert got.tolist() == [0, 0, 0, 1, 1, 1]
