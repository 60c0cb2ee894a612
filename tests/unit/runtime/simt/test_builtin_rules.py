"""Casts between two types of one value, and poison."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch, per_thread

from xla_emitters.dialects.context import parse_ir
from xla_emitters.runtime.simt import execute


def cast(value: str, source: str, target: str) -> str:
    return f"builtin.unrealized_conversion_cast {value} : {source} to {target}"


@pytest.mark.parametrize(("there", "back"), [("i32", "index"), ("i64", "index"), ("f8E4M3FN", "i8"), ("bf16", "i16")])
def test_there_and_back(there, back):
    numbers = np.arange(-32, 32)
    ops = f"%x = {cast('%a', back, there)}\n%r = {cast('%x', there, back)}"
    got = per_thread(ops, back, a=(back, numbers))
    np.testing.assert_array_equal(got, numbers)


def test_complex_numbers_are_structs():
    module = parse_ir(f"""
func.func @main(%in: tensor<4xcomplex<f32>>, %out: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
    attributes {{xla.entry, {launch(4, 1)}}} {{
  %t = gpu.thread_id x
  %z = tensor.extract %in[%t] : tensor<4xcomplex<f32>>
  %s = {cast("%z", "complex<f32>", "!llvm.struct<(f32, f32)>")}
  %re = llvm.extractvalue %s[0] : !llvm.struct<(f32, f32)>
  %im = llvm.extractvalue %s[1] : !llvm.struct<(f32, f32)>
  %swapped = llvm.insertvalue %im, %s[0] : !llvm.struct<(f32, f32)>
  %both = llvm.insertvalue %re, %swapped[1] : !llvm.struct<(f32, f32)>
  %w = {cast("%both", "!llvm.struct<(f32, f32)>", "complex<f32>")}
  %r = tensor.insert %w into %out[%t] : tensor<4xcomplex<f32>>
  return %r : tensor<4xcomplex<f32>>
}}""")
    source = np.array([1 + 2j, complex(np.inf, -0.0), complex(np.nan, 1), -3j], np.complex64)
    (out,) = execute(module, [source, np.zeros_like(source)])
    np.testing.assert_array_equal(out.real, source.imag)
    np.testing.assert_array_equal(out.imag, source.real)


def test_a_tensor_as_another_shape_and_as_a_pointer():
    module = parse_ir(f"""
func.func @main(%in: tensor<2x3xi32>, %out: tensor<6xi32>) -> tensor<6xi32> attributes {{xla.entry, {launch(6, 1)}}} {{
  %t = gpu.thread_id x
  %flat = {cast("%in", "tensor<2x3xi32>", "tensor<6xi32>")}
  %x = tensor.extract %flat[%t] : tensor<6xi32>
  %p = {cast("%in", "tensor<2x3xi32>", "!llvm.ptr")}
  %k = arith.index_cast %t : index to i32
  %q = llvm.getelementptr %p[%k] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  %y = llvm.load %q : !llvm.ptr -> i32
  %s = arith.addi %x, %y : i32
  %w = tensor.insert %s into %out[%t] : tensor<6xi32>
  return %w : tensor<6xi32>
}}""")
    (out,) = execute(module, [np.arange(6, dtype=np.int32).reshape(2, 3), np.zeros(6, np.int32)])
    assert out.tolist() == [0, 2, 4, 6, 8, 10]


def test_poison_is_no_innocent_zero():
    assert per_thread("%r = ub.poison : i32", "i32")[0] == np.uint32(0xA5A5A5A5).view(np.int32)
