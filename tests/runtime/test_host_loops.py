"""Ops that are loops only on a CPU, against NumPy's reference: windows with gaps and padding, updates that overlap or are out of bounds."""

from typing import Any

import numpy as np
import pytest
from long_lists import every
from runtime.cpu_ways import compiled

from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.graph.scans import commutes
from xla_emitters.text.stablehlo import parse_stablehlo

Array = np.ndarray[Any, Any]


def agree(text: str, calls: list[tuple[Array, ...]]) -> None:
    """Machine code and NumPy give the same, and no op is left to NumPy."""
    ours, reference = (compiled(text, way) for way in ("llvm", "numpy"))
    assert not {"lmhlo.reduce_window", "lmhlo.scatter", "lmhlo.map"} & {
        op.name for op in ours.compilation.loaded.made.ops
    }
    for inputs in calls:
        for _ in range(3):
            np.testing.assert_array_equal(ours(*inputs), reference(*inputs))


WINDOWS = (
    "window_dimensions = array<i64: 2, 3>",
    "window_dimensions = array<i64: 1, 5>, padding = dense<[[0, 0], [4, 0]]> : tensor<2x2xi64>",
    "window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 2, 3>, padding = dense<[[2, 1], [0, 3]]> : tensor<2x2xi64>",
    "window_dimensions = array<i64: 2, 2>, window_dilations = array<i64: 3, 2>, padding = dense<[[1, 2], [2, 2]]> : tensor<2x2xi64>",
    "window_dimensions = array<i64: 3, 2>, base_dilations = array<i64: 2, 3>, padding = dense<[[1, 0], [-1, 2]]> : tensor<2x2xi64>",
    "window_dimensions = array<i64: 2, 2>, padding = dense<[[-1, -2], [5, 5]]> : tensor<2x2xi64>",
)


@pytest.mark.parametrize("window", WINDOWS)
def test_windows_have_the_elements_that_are_inside(window: str) -> None:
    text = f"""module @m {{ func.func public @main(%x: tensor<7x9xi32>) -> tensor<*xi32> {{
      %init = stablehlo.constant dense<5> : tensor<i32>
      %y = "stablehlo.reduce_window"(%x, %init) <{{{window}}}> ({{
        ^bb0(%a: tensor<i32>, %b: tensor<i32>):
          %t = stablehlo.add %a, %a : tensor<i32>
          %s = stablehlo.add %t, %b : tensor<i32>
          stablehlo.return %s : tensor<i32>
      }}) : (tensor<7x9xi32>, tensor<i32>) -> tensor<*xi32>
      return %y : tensor<*xi32> }} }}"""
    x = np.random.default_rng(0).integers(-50, 50, (7, 9), np.int32)
    sizes = _sizes(window)
    agree(text.replace("tensor<*xi32>", f"tensor<{sizes[0]}x{sizes[1]}xi32>"), [(x,)])


def _sizes(window: str) -> list[int]:
    """The sizes of the result for an array of 7 x 9, as the specification has them."""
    lists = {"window_strides": [1, 1], "window_dilations": [1, 1], "base_dilations": [1, 1], "padding": [0, 0, 0, 0]}
    for part in window.replace(" : tensor<2x2xi64>", "").split(">"):
        if "=" in part:
            name, _, numbers = part.strip(" ,").partition(" = ")
            digits = "".join(c if c.isdigit() or c == "-" else " " for c in numbers.replace("i64", ""))
            lists[name] = [int(number) for number in digits.split()]
    found = list[int]()
    for dim, size in enumerate((7, 9)):
        padded = (size - 1) * lists["base_dilations"][dim] + 1 + sum(lists["padding"][2 * dim : 2 * dim + 2])
        reach = (lists["window_dimensions"][dim] - 1) * lists["window_dilations"][dim] + 1
        found.append((padded - reach) // lists["window_strides"][dim] + 1)
    return found


SCATTERS = (
    # rows: indices out of bounds, negative, and equal ones
    (
        "?x4",
        "?x1",
        "?x4",
        "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1",
    ),
    # windows of two dimensions, which may begin where they do not fit
    (
        "5x6",
        "?x2",
        "?x2x3",
        "update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1",
    ),
    # single elements, the row of indices along the first dimension
    ("?x6", "2x?", "?", "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 0"),
    # no dimension of rows at all
    ("4x6", "2", "2x2", "update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 0"),
)


@pytest.mark.parametrize("element", ["i32", "ui8"])
@pytest.mark.parametrize(("array", "rows", "updates", "numbers"), SCATTERS)
def test_updates_are_applied_in_order_where_they_are_inside(
    array: str, rows: str, updates: str, numbers: str, element: str
) -> None:
    types = f"tensor<{array}xi64>", f"tensor<{rows}x{element}>", f"tensor<{updates}xi64>"
    text = f"""module @m {{ func.func public @main(%x: {types[0]}, %i: {types[1]}, %u: {types[2]}) -> {types[0]} {{
      %y = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}> ({{
        ^bb0(%a: tensor<i64>, %b: tensor<i64>):
          %t = stablehlo.add %a, %a : tensor<i64>
          %s = stablehlo.add %t, %b : tensor<i64>
          stablehlo.return %s : tensor<i64>
      }}) : ({", ".join(types)}) -> {types[0]}
      return %y : {types[0]} }} }}"""
    rng, calls = np.random.default_rng(1), list[tuple[Array, ...]]()
    for size, count in ((5, 8), (3, 1), (1, 4), (4, 0)):
        shapes = [
            tuple(
                size if part == "?" and which == 0 else count if part == "?" else int(part) for part in text_.split("x")
            )
            for which, text_ in enumerate((array, rows, updates))
        ]
        low = 0 if element == "ui8" else -2
        indices = rng.integers(low, size + 2, shapes[1]).astype(np.uint8 if element == "ui8" else np.int32)
        calls.append((rng.integers(0, 9, shapes[0]), indices, rng.integers(0, 9, shapes[2])))
    agree(text, calls)


def test_windows_select_one_element_each() -> None:
    text = """module @m { func.func public @main(%x: tensor<8x7xi32>, %s: tensor<4x4xi32>) -> tensor<8x7xi32> {
      %init = stablehlo.constant dense<3> : tensor<i32>
      %y = "stablehlo.select_and_scatter"(%x, %s, %init) <{window_dimensions = array<i64: 3, 2>,
            window_strides = array<i64: 2, 2>, padding = dense<[[1, 0], [0, 1]]> : tensor<2x2xi64>}> ({
        ^bb0(%a: tensor<i32>, %b: tensor<i32>):
          %c = stablehlo.compare GE, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
      }, {
        ^bb0(%a: tensor<i32>, %b: tensor<i32>):
          %c = stablehlo.add %a, %b : tensor<i32>
          stablehlo.return %c : tensor<i32>
      }) : (tensor<8x7xi32>, tensor<4x4xi32>, tensor<i32>) -> tensor<8x7xi32>
      return %y : tensor<8x7xi32> } }"""
    rng = np.random.default_rng(2)
    agree(text, [(rng.integers(-5, 5, (8, 7), np.int32), rng.integers(0, 9, (4, 4), np.int32)) for _ in range(3)])


# -------------------------------------------------------------------------------------------------------------- products

PRODUCT = """module @m {{ func.func public @main(%x: tensor<?x?x?x{t}>, %y: tensor<?x?x?x{t}>) -> tensor<?x?x?x{t}> {{
  %z = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [{l}] x [{r}]
    : (tensor<?x?x?x{t}>, tensor<?x?x?x{t}>) -> tensor<?x?x?x{t}>
  return %z : tensor<?x?x?x{t}> }} }}"""


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize(("left", "right"), [(2, 1), (2, 2), (1, 1), (1, 2)])
def test_products_of_any_size_are_those_of_numpy(left: int, right: int, element: str) -> None:
    program = compiled(PRODUCT.format(t=element, l=left, r=right))
    rng, held = np.random.default_rng(3), np.float32 if element == "f32" else np.float64
    for count, rows, terms, columns in (
        (1, 1, 1, 1),
        (2, 4, 3, 16),
        (3, 5, 7, 17),
        (1, 9, 40, 33),
        (2, 3, 0, 5),
        (2, 0, 3, 5),
        (1, 70, 70, 70),
        # Larger than the limit of unpacked products: with few rows, with few columns, shared by threads.
        (2, 3, 300, 401),
        (2, 101, 2100, 2),
        (1, 260, 190, 330),
    ):
        x = rng.integers(-9, 9, (count, rows, terms) if left == 2 else (count, terms, rows)).astype(held)
        y = rng.integers(-9, 9, (count, terms, columns) if right == 1 else (count, columns, terms)).astype(held)
        wanted = (x if left == 2 else x.swapaxes(1, 2)) @ (y if right == 1 else y.swapaxes(1, 2))
        for _ in range(3):
            np.testing.assert_array_equal(program(x, y), wanted)


# ------------------------------------------------------------------------------------------------------------------ scans

CUMULATIVE = """module @m {{ func.func public @main(%x: tensor<?x?x{t}>) -> tensor<?x?x{t}> {{
  %init = stablehlo.constant dense<{init}> : tensor<{t}>
  %ones = stablehlo.constant dense<1> : tensor<2xi32>
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %zero = stablehlo.constant dense<0> : tensor<1xi32>
  %more = stablehlo.constant dense<{more}> : tensor<1xi32>
  %d = stablehlo.get_dimension_size %x, dim = {dim} : (tensor<?x?x{t}>) -> tensor<i32>
  %n = stablehlo.reshape %d : (tensor<i32>) -> tensor<1xi32>
  %w = stablehlo.add %n, %more : tensor<1xi32>
  %last = stablehlo.subtract %w, %one : tensor<1xi32>
  %size = stablehlo.concatenate {size}, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %flat = stablehlo.concatenate {pads}, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
  %pads = stablehlo.reshape %flat : (tensor<4xi32>) -> tensor<2x2xi32>
  %y = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %init, %size, %ones, %ones, %ones, %pads)
    {{called_computations = [@body]}}
    : (tensor<?x?x{t}>, tensor<{t}>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2x2xi32>) -> tensor<?x?x{t}>
  return %y : tensor<?x?x{t}> }}
  func.func private @body(%a: tensor<{t}>, %b: tensor<{t}>) -> tensor<{t}> {{
    %r = stablehlo.{op} %a, %b : tensor<{t}>
    return %r : tensor<{t}> }} }}"""


@pytest.mark.parametrize(
    ("dim", "op", "t", "init", "is_reversed", "more"),
    [
        (0, "add", "i32", 7, False, 0),
        (1, "add", "f32", "0.5", True, 0),
        (1, "subtract", "i32", 0, False, 2),
        (1, "subtract", "i32", 0, True, 0),
        (0, "add", "f32", "0.5", True, 2),
        (0, "add", "i32", 7, False, -1),
        (1, "add", "i32", 7, True, -1),
    ],
)
def test_cumulative_windows_have_the_values_of_their_definition(
    dim: int, op: str, t: str, init: Any, is_reversed: bool, more: int
) -> None:
    """Prefixes and suffixes, windows that reach beyond, and ones that miss an element. Sums of eighths are exact in any order."""
    along = ("%zero", "%last") if is_reversed else ("%last", "%zero")
    pads, size = (("%zero", "%zero"), along), ("%one", "%w")
    text = CUMULATIVE.format(
        op=op,
        t=t,
        init=init,
        dim=dim,
        more=more,
        size=", ".join(size if dim else size[::-1]),
        pads=", ".join(name for pair in (pads if dim else pads[::-1]) for name in pair),
    )
    ours, reference = (compiled(text, way) for way in ("llvm", "numpy"))
    assert "lmhlo.dynamic_reduce_window" not in {op.name for op in ours.compilation.loaded.made.ops}
    for shape in ((5, 8), (2, 6), (6, 2), (64, 3), (3, 70)):
        x = np.random.default_rng(0).integers(-9, 10, shape)
        given = x.astype(np.int32) if t == "i32" else (x / 8).astype(np.float32)
        np.testing.assert_array_equal(ours(given), reference(given))


@pytest.mark.parametrize(
    ("dim", "is_reversed"), every(2, [(0, False), (0, True), (1, True), (1, False), (2, False), (2, True)])
)
def test_cumulative_sums_of_arrays_with_three_dimensions(dim: int, is_reversed: bool) -> None:
    """A prefix scan leaves the loop of the suffix without trips, and the other way round, where rows have two coordinates."""
    sizes, pads = ["%one"] * 3, ["%zero"] * 6
    sizes[dim], pads[2 * dim + is_reversed] = "%n", "%last"
    text = f"""module @m {{ func.func public @main(%x: tensor<?x?x?xi32>) -> tensor<?x?x?xi32> {{
      %init = stablehlo.constant dense<0> : tensor<i32>
      %ones = stablehlo.constant dense<1> : tensor<3xi32>
      %one = stablehlo.constant dense<1> : tensor<1xi32>
      %zero = stablehlo.constant dense<0> : tensor<1xi32>
      %d = stablehlo.get_dimension_size %x, dim = {dim} : (tensor<?x?x?xi32>) -> tensor<i32>
      %n = stablehlo.reshape %d : (tensor<i32>) -> tensor<1xi32>
      %last = stablehlo.subtract %n, %one : tensor<1xi32>
      %size = stablehlo.concatenate {", ".join(sizes)}, dim = 0
        : ({", ".join(["tensor<1xi32>"] * 3)}) -> tensor<3xi32>
      %flat = stablehlo.concatenate {", ".join(pads)}, dim = 0
        : ({", ".join(["tensor<1xi32>"] * 6)}) -> tensor<6xi32>
      %pads = stablehlo.reshape %flat : (tensor<6xi32>) -> tensor<3x2xi32>
      %y = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %init, %size, %ones, %ones, %ones, %pads)
        {{called_computations = [@body]}} : (tensor<?x?x?xi32>, tensor<i32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>,
          tensor<3xi32>, tensor<3x2xi32>) -> tensor<?x?x?xi32>
      return %y : tensor<?x?x?xi32> }}
      func.func private @body(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {{
        %r = stablehlo.add %a, %b : tensor<i32>
        return %r : tensor<i32> }} }}"""
    program = compiled(text)
    for shape in ((7, 3, 4), (1, 5, 2), (3, 1, 1), (2, 6, 33)):
        x = np.random.default_rng(0).integers(-9, 10, shape).astype(np.int32)
        wanted = np.flip(np.cumsum(np.flip(x, dim), dim), dim) if is_reversed else np.cumsum(x, dim)
        np.testing.assert_array_equal(program(x), wanted)


def test_only_bodies_that_commute_are_scanned_from_the_end() -> None:
    def body(op: str, operands: str) -> ComputationOp:
        text = f"""module @m {{ func.func public @main(%x: tensor<4xi32>, %i: tensor<i32>) -> tensor<4xi32> {{
          %y = "stablehlo.reduce_window"(%x, %i) <{{window_dimensions = array<i64: 1>}}> ({{
            ^bb0(%a: tensor<i32>, %b: tensor<i32>):
              %r = stablehlo.{op} {operands} : tensor<i32>
              stablehlo.return %r : tensor<i32>
          }}) : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
          return %y : tensor<4xi32> }} }}"""
        module = parse_stablehlo(text, "<test>")
        (found,) = (op for op in module.walk() if isinstance(op, ComputationOp) and "main" not in op.sym_name.data)
        return found

    assert commutes(body("add", "%a, %b"))
    assert commutes(body("maximum", "%b, %a"))
    assert not commutes(body("subtract", "%a, %b"))
    assert not commutes(body("add", "%b, %b"))
