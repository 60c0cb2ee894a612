"""Flat offsets against NumPy, for every element of small tensors in every layout; and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FusedLoc, ModuleOp
from xdsl.ir import Operation, SSAValue

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import arith, tensor
from xla_emitters.dialects.printer import print_ir
from xla_emitters.dialects.xla_gpu import ApplyIndexingOp
from xla_emitters.errors import Unsupported
from xla_emitters.transforms.flatten_tensors import FlattenTensorsPass

SHAPES = [(2, 3), (1, 4), (4, 1), (2, 3, 2), (3, 1, 2), (2, 1, 2, 3)]
LAYOUTS = [(shape, order) for shape in SHAPES for order in itertools.permutations(range(len(shape)))]


def flattened(text: str) -> ModuleOp:
    module = parse_ir(text)
    FlattenTensorsPass().apply(make_context(), module)
    module.verify()
    return module


def encoded(shape: tuple[int, ...], order: tuple[int, ...], element: str = "i32") -> str:
    sizes = "x".join(map(str, shape))
    return f"tensor<{sizes}x{element}, dense<{list(order)}> : tensor<{len(order)}xi64>>"


def memory(array: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    """The elements of `array` as they lie in memory; `order` lists dimensions minor first."""
    return array.transpose(tuple(reversed(order))).ravel()


def value_of(value: SSAValue, indices: dict[str, int]) -> int:
    owner = value.owner
    match owner:
        case arith.ConstantOp():
            return owner.value.value.data
        case ApplyIndexingOp():
            [result] = owner.map.evaluate([value_of(operand, indices) for operand in owner.operands])
            return int(result)
        case _:
            assert value.name_hint is not None
            return indices[value.name_hint]


@pytest.mark.parametrize(("shape", "order"), LAYOUTS, ids=str)
def test_every_element_keeps_its_place_in_memory(shape: tuple[int, ...], order: tuple[int, ...]):
    names = [f"i{dim}_" for dim in range(len(shape))]
    arguments = ", ".join(f"%{name}: index" for name in names)
    operands = ", ".join(f"%{name}" for name in names)
    array_type = encoded(shape, order)
    module = flattened(f"""
        func.func @f(%t: {array_type}, {arguments}) -> i32 {{
          %0 = tensor.extract %t[{operands}] : {array_type}
          return %0 : i32
        }}""")
    [access] = [op for op in module.walk() if isinstance(op, tensor.ExtractOp)]
    array = np.arange(np.prod(shape)).reshape(shape)
    in_memory = memory(array, order)
    for index in np.ndindex(*shape):
        offset = value_of(access.indices[0], dict(zip(names, index, strict=True)))
        assert in_memory[offset] == array[index]


@pytest.mark.parametrize(("shape", "order"), LAYOUTS, ids=str)
def test_constants_are_put_into_memory_order(shape: tuple[int, ...], order: tuple[int, ...]):
    array = np.arange(np.prod(shape)).reshape(shape)
    module = flattened(f"""
        func.func @f() -> {encoded(shape, order)} {{
          %0 = arith.constant dense<{array.tolist()}> : {encoded(shape, order)}
          return %0 : {encoded(shape, order)}
        }}""")
    [constant] = [op for op in module.walk() if isinstance(op, arith.ConstantOp)]
    assert isinstance(constant.value, DenseIntOrFPElementsAttr)
    assert list(constant.value.get_values()) == memory(array, order).tolist()
    assert constant.value.get_type() == constant.result.type


@pytest.mark.tiny
def test_an_operand_of_two_producers_is_one_variable_with_the_tighter_bounds():
    """%t is said to be in [0, 9] by one map and in [2, 20] by the other; it is in both."""
    module = flattened("""
        func.func @f(%a: tensor<16x16xi32>, %t: index) -> i32 {
          %i = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(p) -> (p + 1), domain: p in [0, 9]">(%t)
          %j = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(q) -> (q floordiv 2), domain: q in [2, 20]">(%t)
          %0 = tensor.extract %a[%i, %j] : tensor<16x16xi32>
          return %0 : i32
        }""")
    [offset] = [op for op in module.walk() if isinstance(op, ApplyIndexingOp)]
    [dim] = offset.map.dims
    assert (dim.name, dim.bounds.lower, dim.bounds.upper) == ("p", 2, 9)
    assert [offset.map.evaluate([t]) for t in range(2, 10)] == [((t + 1) * 16 + t // 2,) for t in range(2, 10)]


def test_other_maps_depend_on_no_more_than_they_need():
    """The row's number is the same in every column, and what the division by 8 takes apart comes together in the flat offset."""
    module = flattened("""
        func.func @f(%a: tensor<4x8x8xi32>, %t: index, %v: index) -> i32 {
          %row = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(p)[s] -> (p floordiv 8), domain: p in [0, 255], s in [0, 1]">(%t)[%v]
          %i = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(r) -> (r floordiv 8), domain: r in [0, 31]">(%row)
          %j = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(r) -> (r mod 8), domain: r in [0, 31]">(%row)
          %0 = tensor.extract %a[%i, %j, %v] : tensor<4x8x8xi32>
          %1 = arith.index_cast %row : index to i32
          %2 = arith.addi %0, %1 : i32
          return %2 : i32
        }""")
    maps = {str(op.map.results[0]): len(op.operands) for op in module.walk() if isinstance(op, ApplyIndexingOp)}
    assert sorted(maps.values()) == [1, 2]
    assert not any("mod" in text for text in maps)


def test_a_shared_offset_takes_both_locations():
    module = flattened("""
        func.func @f(%a: tensor<4x4xi32>, %b: tensor<4x4xi32>, %i: index, %j: index) -> (i32, i32) {
          %0 = tensor.extract %a[%i, %j] : tensor<4x4xi32> loc("one")
          %1 = tensor.extract %b[%i, %j] : tensor<4x4xi32> loc("other")
          return %0, %1 : i32, i32
        }""")
    [offset] = [op for op in module.walk() if isinstance(op, ApplyIndexingOp)]
    assert isinstance(offset.location, FusedLoc)


REFUSED = {
    "a dynamic dimension": "func.func private @f(tensor<?x4xf32>)",
    "not a plain order": 'func.func private @f(tensor<4x4xf32, #hlo.layout<[1, 0], "E(4)">>)',
    "no rule": """func.func @f(%t: tensor<4x4xf32>) -> tensor<16xf32> {
        %0 = tensor.collapse_shape %t [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>
        return %0 : tensor<16xf32>
      }""",
    "minor dimension": """func.func @f(%t: tensor<4x4xf32, dense<[0, 1]> : tensor<2xi64>>, %i: index, %x: f32) -> vector<4xf32> {
        %0 = vector.transfer_read %t[%i, %i], %x {in_bounds = [true]}
          : tensor<4x4xf32, dense<[0, 1]> : tensor<2xi64>>, vector<4xf32>
        return %0 : vector<4xf32>
      }""",
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_not_covered_is_refused_and_left_as_it_was(reason: str):
    module = parse_ir(REFUSED[reason])
    before = print_ir(module)
    with pytest.raises(Unsupported, match=reason):
        FlattenTensorsPass().apply(make_context(), module)
    assert print_ir(module) == before


def test_vectors_and_flat_tensors_are_left_alone():
    text = """
        func.func @f(%t: tensor<8xf32>, %v: vector<2x2xf32>, %i: index) -> f32 {
          %0 = tensor.extract %t[%i] : tensor<8xf32>
          return %0 : f32
        }"""
    ops: list[Operation] = list(flattened(text).walk())
    assert [op.name for op in ops] == ["builtin.module", "func.func", "tensor.extract", "func.return"]


def test_what_replaces_an_access_keeps_its_attributes_and_location():
    module = flattened("""
        func.func @f(%t: tensor<4x8xf32>, %v: vector<2x2xf32>, %i: index, %x: f32) -> (f32, tensor<4x8xf32>, vector<2x2xf32>) {
          %0 = vector.transfer_read %t[%i, %i], %x {in_bounds = [true], mark = 0 : i8} : tensor<4x8xf32>, vector<4xf32> loc("0")
          %1 = vector.transfer_write %0, %t[%i, %i] {in_bounds = [true], mark = 1 : i8} : vector<4xf32>, tensor<4x8xf32> loc("1")
          %2 = vector.insert %x, %v[0, 1] {mark = 2 : i8} : f32 into vector<2x2xf32> loc("2")
          %3 = vector.extract %2[1, 0] {mark = 3 : i8} : f32 from vector<2x2xf32> loc("3")
          return %3, %1, %2 : f32, tensor<4x8xf32>, vector<2x2xf32>
        }""")
    marked = [op for op in module.walk() if "mark" in op.attributes]
    assert [str(op.attributes["mark"]) for op in marked] == ["0 : i8", "1 : i8", "2 : i8", "3 : i8"]
    assert [str(op.location) for op in marked] == [f'loc("{number}")' for number in range(4)]


def test_a_constant_of_one_value_stays_one_value():
    """Whatever the order in memory: its elements are not written out."""
    array = encoded((3, 4), (0, 1))
    module = flattened(f"""
        func.func @f() -> {array} {{
          %0 = arith.constant dense<7> : {array}
          return %0 : {array}
        }}""")
    [constant] = [op for op in module.walk() if isinstance(op, arith.ConstantOp)]
    assert str(constant.value) == "dense<7> : tensor<12xi32>"
    assert constant.value.is_splat()


def test_maps_that_only_indices_of_size_one_needed_go():
    """The row is 0 whatever %i is: %i goes, and so does %k, which only %i read."""
    module = flattened("""
        func.func @f(%a: tensor<1x16xi32>, %t: index) -> i32 {
          %k = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(p) -> (p + 1), domain: p in [0, 9]">(%t)
          %i = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(p) -> (p floordiv 20), domain: p in [1, 10]">(%k)
          %0 = tensor.extract %a[%i, %t] : tensor<1x16xi32>
          return %0 : i32
        }""")
    assert [op.name for op in module.walk()] == ["builtin.module", "func.func", "tensor.extract", "func.return"]
