"""Reductions of dimensions in the middle of an array, as machine code of this CPU, against NumPy: one pass, without a transpose."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from runtime.cpu_ways import compiled

from xla_emitters.program import Program

Array = np.ndarray[Any, Any]
SHAPES = ((3, 5, 7), (2, 700, 300), (2, 0, 3), (0, 4, 3), (1, 1, 1), (4, 257, 1))
TEXT = """module @m {{ func.func public @main(%x: tensor<?x?x?x{t}>) -> {results} {{
  %start = stablehlo.constant dense<{start}> : tensor<{t}>
  {body}
}} }}"""
REDUCE = (
    "stablehlo.reduce(%{of} init: %start) applies stablehlo.{op} across dimensions = [1]"
    " : (tensor<?x?x?x{t}>, tensor<{t}>) -> tensor<?x?x{t}>"
)


def reducing(body: str, results: str, t: str = "f32", start: str = "0.0") -> Program:
    return compiled(TEXT.format(body=body, results=results, t=t, start=start))


def kernels(program: Program) -> list[str]:
    return list(program.compilation.cpu.lowering.parameters)


CASES: tuple[tuple[str, str, str, Callable[[Array], Array]], ...] = (
    ("add", "i32", "5", lambda x: x.sum(1, dtype=np.int32) + 5),
    ("maximum", "f32", "-1.0", lambda x: x.max(1, initial=-1.0)),
    ("minimum", "i32", "3", lambda x: x.min(1, initial=3)),
)


@pytest.mark.parametrize(("op", "t", "start", "wanted"), CASES)
def test_every_element_and_the_initial_value_count_once(
    op: str, t: str, start: str, wanted: Callable[[Array], Array]
) -> None:
    program = reducing(
        f"%y = {REDUCE.format(of='x', op=op, t=t)}\n return %y : tensor<?x?x{t}>", f"tensor<?x?x{t}>", t, start
    )
    assert kernels(program) == ["main_kRowReduction_reduce_1_middle"]
    for shape in SHAPES:
        x = np.random.default_rng(0).integers(-1000, 1000, shape).astype(np.int32 if t == "i32" else np.float32)
        np.testing.assert_array_equal(program(x), wanted(x))


def test_long_sums_of_floats_are_by_blocks() -> None:
    program = reducing(
        f"%y = {REDUCE.format(of='x', op='add', t='f32')}\n return %y : tensor<?x?xf32>", "tensor<?x?xf32>"
    )
    x = np.full((1, 200_000, 2), np.float32(0.1))
    np.testing.assert_allclose(program(x), x.astype(np.float64).sum(1), rtol=1e-5)  # one after the other: 3e-3


def test_what_is_before_and_behind_the_reduction() -> None:
    """The negation is computed in the loops of the sum; its reader behind is a loop of its own."""
    program = reducing(
        f"""%n = stablehlo.negate %x : tensor<?x?x?xf32>
  %s = {REDUCE.format(of="n", op="add", t="f32")}
  %y = stablehlo.multiply %s, %s : tensor<?x?xf32>
  return %y : tensor<?x?xf32>""",
        "tensor<?x?xf32>",
    )
    assert kernels(program)[0].endswith("_middle")
    assert not any("transpose" in name or "negate" in name for name in kernels(program))
    for shape in SHAPES:
        x = np.random.default_rng(1).integers(-9, 9, shape).astype(np.float32)
        np.testing.assert_array_equal(program(x), x.sum(1) ** 2)


def test_what_others_read_too_is_kept() -> None:
    program = reducing(
        f"""%n = stablehlo.negate %x : tensor<?x?x?xf32>
  %s = {REDUCE.format(of="n", op="add", t="f32")}
  return %s, %n : tensor<?x?xf32>, tensor<?x?x?xf32>""",
        "(tensor<?x?xf32>, tensor<?x?x?xf32>)",
    )
    x = np.random.default_rng(2).integers(-9, 9, (3, 6, 5)).astype(np.float32)
    found, negated = program(x)
    np.testing.assert_array_equal(found, -x.sum(1))
    np.testing.assert_array_equal(negated, -x)


WEIGHTS = """module @weights { func.func public @main(%x: tensor<?x2x?x?xf32>) -> (tensor<?x?x?xf32>, tensor<?x?x?xf32>) {
  %start = stablehlo.constant dense<0.0> : tensor<f32>
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %2 = stablehlo.constant dense<2> : tensor<1xi32>
  %b = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2x?x?xf32>) -> tensor<i32>
  %s = stablehlo.get_dimension_size %x, dim = 2 : (tensor<?x2x?x?xf32>) -> tensor<i32>
  %t = stablehlo.get_dimension_size %x, dim = 3 : (tensor<?x2x?x?xf32>) -> tensor<i32>
  %b1 = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
  %s1 = stablehlo.reshape %s : (tensor<i32>) -> tensor<1xi32>
  %t1 = stablehlo.reshape %t : (tensor<i32>) -> tensor<1xi32>
  %h1 = stablehlo.multiply %b1, %2 : tensor<1xi32>
  %flat = stablehlo.concatenate %h1, %s1, %t1, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
  %rows = stablehlo.concatenate %h1, %s1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %less = stablehlo.concatenate %b1, %s1, %t1, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
  %whole = stablehlo.concatenate %b1, %2, %s1, %t1, dim = 0
    : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
  %y = stablehlo.dynamic_reshape %x, %flat : (tensor<?x2x?x?xf32>, tensor<3xi32>) -> tensor<?x?x?xf32>
  %all = stablehlo.reduce(%y init: %start) applies stablehlo.add across dimensions = [2]
    : (tensor<?x?x?xf32>, tensor<f32>) -> tensor<?x?xf32>
  %spread = stablehlo.dynamic_broadcast_in_dim %all, %flat, dims = [0, 1] : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<?x?x?xf32>
  %weights = stablehlo.divide %y, %spread : tensor<?x?x?xf32>
  %heads = stablehlo.dynamic_reshape %weights, %whole : (tensor<?x?x?xf32>, tensor<4xi32>) -> tensor<?x2x?x?xf32>
  %sum = stablehlo.reduce(%heads init: %start) applies stablehlo.add across dimensions = [1]
    : (tensor<?x2x?x?xf32>, tensor<f32>) -> tensor<?x?x?xf32>
  %twos = stablehlo.dynamic_broadcast_in_dim %two, %less, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x?x?xf32>
  %mean = stablehlo.divide %sum, %twos : tensor<?x?x?xf32>
  return %mean, %weights : tensor<?x?x?xf32>, tensor<?x?x?xf32>
} }"""


def test_an_array_that_others_read_too_is_not_computed_with_its_sums() -> None:
    """The weights of attention, which are a result, and their mean over the heads."""
    program = compiled(WEIGHTS)
    for shape in ((3, 2, 7, 5), (1, 2, 4, 9)):
        x = np.random.default_rng(0).integers(1, 9, shape).astype(np.float32)
        wanted = x / x.sum(3, keepdims=True)
        mean, weights = program(x)
        np.testing.assert_allclose(weights, wanted.reshape(-1, *shape[2:]), rtol=1e-6)
        np.testing.assert_allclose(mean, wanted.mean(1), rtol=1e-6)
