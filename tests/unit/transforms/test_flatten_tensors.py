"""Flat offsets against NumPy, for every element of small tensors in every layout; and what is refused."""

import itertools

import numpy as np
import pytest
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import SSAValue

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import arith, tensor
from xla_emitters.dialects.mlir_printer import print_ir
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
