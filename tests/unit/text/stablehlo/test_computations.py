"""Functions and regions as computations: captured values, names, attributes, locations, the order of computations."""

import numpy as np
import pytest
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, NameLoc, StringAttr

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.types import tuple_types
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.stablehlo import parse_stablehlo


def computations(module: ModuleOp) -> dict[str, ComputationOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, ComputationOp)}


def instructions(module: ModuleOp, opcode: str) -> list[HloOp]:
    return [op for op in module.walk() if isinstance(op, HloOp) and op.opcode == opcode]


CAPTURING = """
func.func @main(%x: tensor<3xf32>, %n: tensor<i32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<3xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %p = stablehlo.compare EQ, %i, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1 = "stablehlo.if"(%p) ({
      %2 = stablehlo.add %y, %x : tensor<3xf32>
      stablehlo.return %2 : tensor<3xf32>
    }, {
      stablehlo.return %y : tensor<3xf32>
    }) : (tensor<i1>) -> tensor<3xf32>
    stablehlo.return %i, %1 : tensor<i32>, tensor<3xf32>
  }
  return %0#1 : tensor<3xf32>
}
"""


def test_a_loop_carries_what_its_regions_capture_and_a_branch_is_given_it() -> None:
    module = parse_stablehlo(CAPTURING)
    (loop,) = instructions(module, "while")
    assert [str(part) for part in tuple_types(loop.result.type)] == [
        "tensor<i32>", "tensor<3xf32>", "tensor<i32>", "tensor<3xf32>",  # i, y; and n, x from outside
    ]  # fmt: skip
    (branch,) = instructions(module, "conditional")
    assert [len(tuple_types(value.type)) for value in branch.operands[1:]] == [2, 1]
    # The constant is repeated where it is used.
    assert len(instructions(module, "constant")) == 2


def test_computations_come_before_those_that_call_them() -> None:
    module = parse_stablehlo(CAPTURING)
    names = list(computations(module))
    for position, computation in enumerate(computations(module).values()):
        for op in computation.instructions:
            called = [
                str(attr.root_reference.data) for attr in op.properties.values() if hasattr(attr, "root_reference")
            ]
            assert all(names.index(name) < position for name in called)


EXPORTED = """
#loc1 = loc("x")
module @jit_f attributes {jax.uses_shape_polymorphism = true} {
  func.func public @main(%arg0: tensor<?xf32> {tf.aliasing_output = 0 : i32} loc(unknown)) -> (tensor<?xf32> {jax.result_info = "y"}) {
    %0 = call @inner(%arg0) : (tensor<?xf32>) -> tensor<?xf32> loc(#loc4)
    return %0 : tensor<?xf32>
  }
  func.func private @inner(%arg0: tensor<?xf32> loc("x")) -> tensor<?xf32> {
    %cst = stablehlo.negate %arg0 : tensor<?xf32> loc(#loc4)
    return %cst : tensor<?xf32>
  }
}
#loc2 = loc("f.py":3:4 to :9)
#loc3 = loc(callsite("f"(#loc2) at #loc1))
#loc4 = loc("jit(f)/neg"(#loc3))
"""


def test_what_the_text_says_of_arguments_results_and_places_is_kept() -> None:
    module = parse_stablehlo(EXPORTED, "f.mlir")
    entry = computations(module)["main"]
    (parameter,) = entry.parameters
    assert parameter.instruction_name.data == "p0"
    assert parameter.attributes["tf.aliasing_output"] == StringAttr("0 : i32")
    assert parameter.attributes["jax.arg_name"] == StringAttr("x")
    assert "jax.result_info" in str(entry.attributes["result_attributes"])
    assert module.attributes["jax.uses_shape_polymorphism"] == StringAttr("true")
    (negate,) = instructions(module, "negate")
    assert negate.attributes["metadata"] == StringAttr(
        '{op_name="jit(f)/neg" source_file="f.py" source_line=3 stack_frame_id=1}'
    )
    assert isinstance(negate.location, NameLoc)
    place = negate.location.location
    assert isinstance(place, FileLineColLoc)
    assert (place.filename.data, place.line.data, place.column.data) == ("f.mlir", 9, 12)


def test_a_broadcast_that_repeats_a_size_1_drops_it_first() -> None:
    text = """func.func @main(%x: tensor<1x3xf32>) -> tensor<2x3x4xf32> {
      %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<2x3x4xf32>
      return %0 : tensor<2x3x4xf32>
    }"""
    entry = computations(parse_stablehlo(text))["main"]
    assert [op.opcode for op in entry.instructions] == ["parameter", "reshape", "broadcast"]
    x = np.arange(3, dtype=np.float32).reshape(1, 3)
    np.testing.assert_array_equal(evaluate(entry, [x])[0], np.broadcast_to(x[0, None, :, None], (2, 3, 4)))


REDUCER_WITH_SIZES = """
func.func public @main(%n: tensor<i32>, %x: tensor<2x3xf32>) -> tensor<2xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %zero) across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
   reducer(%a: tensor<f32>, %b: tensor<f32>) {
    %c = func.call @outer(%n, %a, %b) : (tensor<i32>, tensor<f32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %c : tensor<f32>
  }
  return %r : tensor<2xf32>
}
func.func private @outer(%n: tensor<i32>, %a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = call @inner(%n, %a, %b) : (tensor<i32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @inner(%n: tensor<i32>, %a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.maximum %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
"""


def test_a_reducer_may_pass_a_value_from_outside_to_a_function_that_does_not_read_it() -> None:
    """jax.export passes the unknown sizes to all functions, also to `jnp.where` of two scalars."""
    entry = computations(parse_stablehlo(REDUCER_WITH_SIZES))["main"]
    x = np.array([[1, 5, 2], [-1, -2, -3]], np.float32)
    assert evaluate(entry, [np.array(7, np.int32), x])[0].tolist() == [5, 0]


def test_functions_that_do_not_read_it_are_searched_once() -> None:
    """Each of 40 functions calls the next one twice: 2^40 calls."""
    name = "func.func private @inner"
    twice = """(%n: tensor<i32>, %a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = call @NEXT(%n, %a, %b) : (tensor<i32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %1 = call @NEXT(%n, %a, %0) : (tensor<i32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
"""
    between = [f"{name}{i}{twice.replace('NEXT', f'inner{i + 1}' if i < 39 else 'inner')}" for i in range(40)]
    text = REDUCER_WITH_SIZES.replace("call @inner", "call @inner0") + "".join(between)
    assert len(computations(parse_stablehlo(text))) == 4 + 40


def test_a_reducer_may_not_pass_it_to_a_function_that_reads_it() -> None:
    reading = "%f = stablehlo.convert %n : (tensor<i32>) -> tensor<f32>\n  %0 = stablehlo.maximum %a, %f : tensor<f32>"
    text = REDUCER_WITH_SIZES.replace("%0 = stablehlo.maximum %a, %b : tensor<f32>", reading)
    with pytest.raises(Unsupported, match="uses %n from outside"):
        parse_stablehlo(text)
