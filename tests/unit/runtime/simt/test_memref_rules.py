"""Memory that ops read and write in place."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch, per_thread

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError, Unsupported
from xla_emitters.runtime.simt import execute

FLOATS = np.arange(64, dtype=np.float32) - 11.5
PLACES = np.arange(64) * 7 % 12

PRIVATE = """
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c12 = arith.constant 12 : index
    %m = memref.alloca() : memref<3x4xf32>
    %flat = memref.collapse_shape %m [[0, 1]] : memref<3x4xf32> into memref<12xf32>
    scf.for %i = %c0 to %c12 step %c1 {
      %number = arith.index_cast %i : index to i32
      %x = arith.sitofp %number : i32 to f32
      %y = arith.mulf %x, %a : f32
      memref.store %y, %flat[%i] : memref<12xf32>
    }
"""


def test_every_thread_has_its_own_private_memory():
    ops = (
        PRIVATE
        + """
    %c4 = arith.constant 4 : index
    %row = arith.divui %p, %c4 : index
    %column = arith.remui %p, %c4 : index
    %r = memref.load %m[%row, %column] : memref<3x4xf32>"""
    )
    got = per_thread(ops, "f32", a=("f32", FLOATS), p=("index", PLACES))
    np.testing.assert_array_equal(got, FLOATS * PLACES.astype(np.float32))


def test_extents_are_known():
    ops = (
        PRIVATE
        + """
    %d = memref.dim %m, %c1 : memref<3x4xf32>
    %k = memref.rank %m : memref<3x4xf32>
    %r = arith.muli %d, %k : index"""
    )
    assert set(per_thread(ops, "index", a=("f32", FLOATS))) == {8}


def test_an_access_outside_is_an_error():
    ops = PRIVATE + "%r = memref.load %flat[%p] : memref<12xf32>"
    with pytest.raises(ExecutionError, match=r"memref\.load in block 0, thread 5 reads index 12"):
        per_thread(ops, "f32", a=("f32", FLOATS), p=("index", np.where(np.arange(64) == 5, 12, 0)))


GLOBAL = 'memref.global "private" constant @g : memref<4xi32> = dense<[10, -20, 30, -40]>'


def test_a_global_has_its_initial_value():
    ops = "%g = memref.get_global @g : memref<4xi32>\n%r = memref.load %g[%p] : memref<4xi32>"
    got = per_thread(ops, "i32", declarations=GLOBAL, p=("index", PLACES % 4))
    np.testing.assert_array_equal(got, np.array([10, -20, 30, -40])[PLACES % 4])


def test_a_constant_global_is_not_written():
    ops = "%g = memref.get_global @g : memref<4xi32>\nmemref.store %r, %g[%p] : memref<4xi32>"
    with pytest.raises(ExecutionError, match="read-only"):
        per_thread(ops, "i32", declarations=GLOBAL, p=("index", PLACES % 4), r=("i32", PLACES))


@pytest.mark.parametrize("space", ["3", "#gpu.address_space<workgroup>"])
def test_threads_of_a_block_share_memory(space: str):
    """Each reads what its neighbour wrote."""
    type = f"memref<32xi32, {space}>"
    ops = f"""
    %m = memref.alloca() : {type}
    memref.store %a, %m[%thread] : {type}
    gpu.barrier
    %one = arith.constant 1 : index
    %next = arith.addi %thread, %one : index
    %size = arith.constant 32 : index
    %neighbour = arith.remui %next, %size : index
    %r = memref.load %m[%neighbour] : {type}"""
    values = np.arange(64, dtype=np.int32) * 3
    got = per_thread(ops, "i32", a=("i32", values))
    np.testing.assert_array_equal(got, np.roll(values.reshape(2, 32), -1, axis=1).reshape(-1))


@pytest.mark.parametrize(
    ("kind", "type", "result"),
    [
        ("addi", "i32", lambda old, new: old + new),
        ("maxs", "i32", max),
        ("assign", "i32", lambda old, new: new),
        ("addf", "f32", lambda old, new: np.float32(old + new)),
        ("minimumf", "f32", min),
    ],
)
def test_atomics_go_thread_by_thread(kind: str, type: str, result):
    """The value before each update shows the order."""
    numpy_type = {"i32": np.int32, "f32": np.float32}[type]
    start = "0" if type == "i32" else "0.0"
    text = f"""
memref.global "private" @g : memref<4x{type}> = dense<{start}>
func.func @main(%in: tensor<32x{type}> {{xla.invariant}}, %out: tensor<32x{type}>) -> tensor<32x{type}>
    attributes {{xla.entry, {launch(32, 1)}}} {{
  %thread = gpu.thread_id x
  %c4 = arith.constant 4 : index
  %place = arith.remui %thread, %c4 : index
  %a = tensor.extract %in[%thread] : tensor<32x{type}>
  %g = memref.get_global @g : memref<4x{type}>
  %old = memref.atomic_rmw {kind} %a, %g[%place] : ({type}, memref<4x{type}>) -> {type}
  %written = tensor.insert %old into %out[%thread] : tensor<32x{type}>
  return %written : tensor<32x{type}>
}}"""
    values = (np.arange(32) * 37 % 23 - 9).astype(numpy_type)
    got = np.zeros(32, numpy_type)
    execute(parse_ir(text), [values, got])
    memory, wanted = [numpy_type(0)] * 4, []
    for thread, value in enumerate(values):
        wanted.append(memory[thread % 4])
        memory[thread % 4] = result(memory[thread % 4], value)
    np.testing.assert_array_equal(got, np.array(wanted, numpy_type))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("memref.subview %m[2] [4] [1] : memref<12xf32> to memref<4xf32, strided<[1], offset: 2>>", "memref.subview"),
        ("memref.alloca() : memref<4xf32, strided<[2]>>", "memref.alloca of memref<4xf32, strided<"),
    ],
)
def test_memory_that_is_not_row_major_from_its_start_is_refused(line: str, message: str):
    ops = f"%m = memref.alloca() : memref<12xf32>\n%v = {line}\n%r = arith.constant 0 : i32"
    with pytest.raises(Unsupported, match=message):
        per_thread(ops, "i32")


def test_an_op_without_a_meaning_is_refused_by_name_and_place():
    ops = """
    %m = memref.alloca() : memref<12xf32>
    %o, %k, %s, %t = memref.extract_strided_metadata %m
      : memref<12xf32> -> memref<f32>, index, index, index loc("meta"("a.hlo":3:5))
    %r = arith.constant 0 : i32"""
    with pytest.raises(Unsupported, match=r"no rule for op 'memref\.extract_strided_metadata'") as refused:
        per_thread(ops, "i32")
    assert refused.value.details == ("at meta (a.hlo:3:5)",)
