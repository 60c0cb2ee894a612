"""Sizes in MLIR's own dialects: pretty and generic forms, values, what is known of such sizes, and what is refused."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xla_emitters.dynamic.sizes import sizes_of
from xla_emitters.errors import DataError, Unsupported, VerifyError, XlaEmittersError
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.stablehlo import parse_stablehlo, print_stablehlo


def run(text: str, *arguments: Any) -> list[Any]:
    return list(evaluate(entry_of(parse_stablehlo(text, "f.mlir")), [np.asarray(argument) for argument in arguments]))


def unsigned(x: int) -> int:
    return x & 0xFFFFFFFF


BINARY: dict[str, Callable[[int, int], int]] = {
    "addi": lambda x, y: x + y,
    "subi": lambda x, y: x - y,
    "muli": lambda x, y: x * y,
    "divsi": lambda x, y: int(x / y),
    "remsi": lambda x, y: x - y * int(x / y),
    "floordivsi": lambda x, y: x // y,
    "ceildivsi": lambda x, y: -(-x // y),
    "divui": lambda x, y: unsigned(x) // unsigned(y),
    "remui": lambda x, y: unsigned(x) % unsigned(y),
    "ceildivui": lambda x, y: -(-unsigned(x) // unsigned(y)),
    "maxsi": max,
    "minsi": min,
    "maxui": lambda x, y: max(unsigned(x), unsigned(y)),
    "minui": lambda x, y: min(unsigned(x), unsigned(y)),
}


def test_integers_are_computed_with_and_without_a_sign() -> None:
    lines = [f"%{name} = arith.{name} %x, %y : i32" for name in BINARY]
    results = ", ".join(f"%{name}" for name in BINARY)
    types = ", ".join(["i32"] * len(BINARY))
    text = f"func.func @f(%x: i32, %y: i32) -> ({types}) {{\n{chr(10).join(lines)}\nreturn {results} : {types}\n}}"
    for x in (-7, -6, 0, 6, 7):
        for y in (-3, -1, 1, 3):
            found = dict(zip(BINARY, map(int, run(text, np.int32(x), np.int32(y))), strict=True))
            assert found == {name: int(np.uint32(unsigned(f(x, y))).astype(np.int32)) for name, f in BINARY.items()}


def test_comparisons_and_casts() -> None:
    text = """func.func @f(%x: i32, %y: i32) -> (i64, i64, i64, i64, i64) {
      %s = arith.cmpi slt, %x, %y : i32
      %u = "arith.cmpi"(%x, %y) <{predicate = 6 : i64}> : (i32, i32) -> i1
      %0 = arith.extsi %s : i1 to i64
      %1 = arith.extui %u : i1 to i64
      %2 = arith.extsi %x : i32 to i64
      %3 = arith.extui %x : i32 to i64
      %i = arith.select %s, %x, %y : i32
      %4 = arith.index_cast %i : i32 to index
      %5 = arith.index_cast %4 : index to i64
      return %0, %1, %2, %3, %5 : i64, i64, i64, i64, i64
    }"""
    assert [int(value) for value in run(text, np.int32(-2), np.int32(5))] == [-1, 0, -2, 2**32 - 2, -2]


PRETTY = """func.func @main(%x: tensor<?x4xf32>, %y: tensor<4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x4xf32>
  %p = arith.cmpi sgt, %d, %c0 : index
  %n = arith.select %p, %d, %c0 : index
  %a = shape.shape_of %x : tensor<?x4xf32> -> tensor<2xindex>
  %b = shape.shape_of %y : tensor<4xf32> -> tensor<1xindex>
  %w = shape.cstr_broadcastable %a, %b : tensor<2xindex>, tensor<1xindex>
  %r = shape.assuming %w -> (tensor<?x4xf32>) {
    %s = shape.broadcast %a, %b : tensor<2xindex>, tensor<1xindex> -> tensor<2xindex>
    %e = tensor.extract %s[%c0] : tensor<2xindex>
    %m = arith.addi %e, %n overflow<nsw> : index
    %h = shape.const_shape [2] : tensor<1xindex>
    %c = arith.constant dense<4> : tensor<1xindex>
    %q = stablehlo.dynamic_broadcast_in_dim %y, %s, dims = [1] : (tensor<4xf32>, tensor<2xindex>) -> tensor<?x4xf32>
    shape.assuming_yield %q : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}"""
GENERIC = """func.func @main(%x: tensor<?x4xf32>, %y: tensor<4xf32>) -> tensor<?x4xf32> {
  %c0 = "arith.constant"() <{value = 0 : index}> : () -> index
  %d = "tensor.dim"(%x, %c0) : (tensor<?x4xf32>, index) -> index
  %p = "arith.cmpi"(%d, %c0) <{predicate = 4 : i64}> : (index, index) -> i1
  %n = "arith.select"(%p, %d, %c0) : (i1, index, index) -> index
  %a = "shape.shape_of"(%x) : (tensor<?x4xf32>) -> tensor<2xindex>
  %b = "shape.shape_of"(%y) : (tensor<4xf32>) -> tensor<1xindex>
  %w = "shape.cstr_broadcastable"(%a, %b) : (tensor<2xindex>, tensor<1xindex>) -> !shape.witness
  %r = "shape.assuming"(%w) ({
    %s = "shape.broadcast"(%a, %b) : (tensor<2xindex>, tensor<1xindex>) -> tensor<2xindex>
    %e = "tensor.extract"(%s, %c0) : (tensor<2xindex>, index) -> index
    %m = "arith.addi"(%e, %n) <{overflowFlags = #arith.overflow<nsw>}> : (index, index) -> index
    %h = "shape.const_shape"() <{shape = dense<2> : tensor<1xindex>}> : () -> tensor<1xindex>
    %c = "arith.constant"() <{value = dense<4> : tensor<1xindex>}> : () -> tensor<1xindex>
    %q = "stablehlo.dynamic_broadcast_in_dim"(%y, %s) <{broadcast_dimensions = array<i64: 1>}>
      : (tensor<4xf32>, tensor<2xindex>) -> tensor<?x4xf32>
    "shape.assuming_yield"(%q) : (tensor<?x4xf32>) -> ()
  }) : (!shape.witness) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}"""


def test_the_pretty_form_is_the_generic_form() -> None:
    assert print_stablehlo(parse_stablehlo(PRETTY)) == print_stablehlo(parse_stablehlo(GENERIC))


def test_an_op_of_mhlo_is_that_of_stablehlo_or_chlo() -> None:
    text = PRETTY.replace("%q : t", "%k : t").replace(
        "    shape.assuming_yield",
        "    %k = chlo.erf %q : tensor<?x4xf32> -> tensor<?x4xf32>\n    shape.assuming_yield",
    )
    mhlo = text.replace("stablehlo.", "mhlo.").replace("chlo.erf", "mhlo.erf")
    assert mhlo.count("mhlo.") == 2
    assert print_stablehlo(parse_stablehlo(mhlo)) == print_stablehlo(parse_stablehlo(text))


RESHAPED = """func.func @main(%x: tensor<?x?xf32>, %t: tensor<3xi32>) -> tensor<?x?x?xf32> {
  %0 = shape.shape_of %x : tensor<?x?xf32> -> tensor<2xindex>
  %n = shape.num_elements %0 : tensor<2xindex> -> index
  %s = mhlo.compute_reshape_shape %n, %t : (index, tensor<3xi32>) -> tensor<3xi32>
  %r = "mhlo.dynamic_reshape"(%x, %s) : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<?x?x?xf32>
  return %r : tensor<?x?x?xf32>
}"""


@pytest.mark.parametrize("sizes", [(2, -1, 3), (-1, 1, 1), (3, 4, 2)])
def test_a_size_of_minus_one_is_computed(sizes: tuple[int, int, int]) -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(run(RESHAPED, x, np.asarray(sizes, np.int32))[0], x.reshape(sizes))


BIAS = """func.func @main(%x: tensor<?x?xf32>, %b: tensor<?xf32>) -> tensor<?x?xf32> {
  %0 = shape.shape_of %x : tensor<?x?xf32> -> tensor<?xindex>
  %1 = shape.shape_of %b : tensor<?xf32> -> !shape.shape
  %w = shape.cstr_broadcastable %0, %1 : tensor<?xindex>, !shape.shape
  %r = shape.assuming %w -> (tensor<?x?xf32>) {
    %2 = shape.broadcast %0, %1 : tensor<?xindex>, !shape.shape -> tensor<?xindex>
    %3 = tensor.cast %2 : tensor<?xindex> to tensor<2xindex>
    %4 = stablehlo.dynamic_broadcast_in_dim %x, %3, dims = [0, 1] : (tensor<?x?xf32>, tensor<2xindex>) -> tensor<?x?xf32>
    %5 = stablehlo.dynamic_broadcast_in_dim %b, %3, dims = [1] : (tensor<?xf32>, tensor<2xindex>) -> tensor<?x?xf32>
    %6 = stablehlo.add %4, %5 : tensor<?x?xf32>
    shape.assuming_yield %6 : tensor<?x?xf32>
  }
  return %r : tensor<?x?xf32>
}"""
PADDED = """func.func @main(%x: tensor<?x?xf32>) -> tensor<?x2xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %s = shape.shape_of %x : tensor<?x?xf32> -> tensor<2xindex>
  %n = shape.num_elements %s : tensor<2xindex> -> index
  %t = tensor.from_elements %n : tensor<1xindex>
  %y = stablehlo.dynamic_reshape %x, %t : (tensor<?x?xf32>, tensor<1xindex>) -> tensor<?xf32>
  %q = arith.ceildivsi %n, %c8 : index
  %m = arith.muli %q, %c8 : index
  %p = arith.subi %m, %n : index
  %hi = tensor.from_elements %p : tensor<1xindex>
  %lo = arith.constant dense<0> : tensor<1xindex>
  %z = stablehlo.dynamic_pad %y, %zero, %lo, %hi, %lo
    : (tensor<?xf32>, tensor<f32>, tensor<1xindex>, tensor<1xindex>, tensor<1xindex>) -> tensor<?xf32>
  %h = arith.divui %m, %c2 : index
  %h32 = arith.index_cast %h : index to i32
  %two = arith.constant 2 : i32
  %u = tensor.from_elements %h32, %two : tensor<2xi32>
  %r = stablehlo.dynamic_reshape %z, %u : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x2xf32>
  return %r : tensor<?x2xf32>
}"""


def padded(x: np.ndarray) -> np.ndarray:
    return np.pad(x.reshape(-1), (0, -x.size % 8)).reshape(-1, 2)


@pytest.mark.parametrize("shape", [(2, 3), (0, 4), (1, 1), (4, 4)])
def test_padding_to_a_multiple_and_a_reshape_by_division(shape: tuple[int, int]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    np.testing.assert_array_equal(run(PADDED, x)[0], padded(x))


@pytest.mark.parametrize("columns", [(3, 3), (1, 3), (3, 1), (1, 1), (0, 1), (1, 0), (0, 0)])
def test_both_sides_are_broadcast(columns: tuple[int, int]) -> None:
    x, b = np.ones((2, columns[0]), np.float32), np.arange(columns[1], dtype=np.float32)
    np.testing.assert_array_equal(run(BIAS, x, b)[0], x + b)


@pytest.mark.parametrize("text", [BIAS, PADDED])
def test_all_sizes_are_known_before_a_run(text: str) -> None:
    sizes = sizes_of(parse_stablehlo(text))
    assert not sizes.walk.unproved
    assert not sizes.unresolved


def test_shapes_that_do_not_fit_stop_the_program_in_its_words() -> None:
    said = "'shape.cstr_broadcastable': dimension 1 of the shapes is 3 and 4: they must be equal, or one of them 1"
    with pytest.raises(DataError, match=re.escape(said)):
        run(BIAS, np.ones((2, 3), np.float32), np.ones(4, np.float32))
    cast = """func.func @main(%x: tensor<?x?xf32>) -> tensor<?x4xf32> {
      %0 = tensor.cast %x : tensor<?x?xf32> to tensor<?x4xf32>
      return %0 : tensor<?x4xf32>
    }"""
    assert run(cast, np.ones((2, 4), np.float32))[0].shape == (2, 4)
    with pytest.raises(DataError, match="the size of dimension 1 is 2, not 4"):  # not a reshape to 2 x 4
        run(cast, np.ones((4, 2), np.float32))


REFUSED: dict[str, tuple[str, type[XlaEmittersError], str]] = {
    "no dimension": ("%r = tensor.dim %x, %c2 : tensor<?x4xf32>", VerifyError, "takes dimension 2 of tensor<?x4xf32>"),
    "no element": ("%r = tensor.extract %s[%c2] : tensor<2xindex>", VerifyError, "takes element 2 of 2"),
    "no cast": ("%y = tensor.cast %x : tensor<?x4xf32> to tensor<?x5xf32>", VerifyError, "cannot make tensor<?x5xf32>"),
    "one bit": ("%r = arith.trunci %c2 : index to i1", Unsupported, "to i1 is not taken"),
    "predicate": ("%r = arith.cmpi lt, %c2, %c2 : index", XlaEmittersError, "one of eq, ne, slt"),
    "no operand": ('%r = "tensor.extract"() : () -> index', VerifyError, "has operands"),
    "floats": ("%r = arith.addi %x, %x : tensor<?x4xf32>", VerifyError, "takes integers"),
    "no scalars": ("%r = tensor.from_elements %s, %s : tensor<2xindex>", VerifyError, "takes scalars"),
    "a string": ('%r = "arith.constant"() <{value = "a"}> : () -> index', XlaEmittersError, "a value of tensor<i64>"),
    "a tuple": ("%r = arith.cmpi sgt, %x, %x : tuple<tensor<f32>>", XlaEmittersError, "takes arrays and scalars"),
    "unknown rank": ("%r = shape.rank %t : tensor<?xindex> -> index", Unsupported, "unknown rank"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_has_a_place(name: str) -> None:
    line, kind, said = REFUSED[name]
    text = f"""func.func @main(%x: tensor<?x4xf32>, %t: tensor<?xindex>) -> tensor<?x4xf32> {{
      %c2 = arith.constant 2 : index
      %s = shape.shape_of %x : tensor<?x4xf32> -> tensor<2xindex>
      {line}
      return %x : tensor<?x4xf32>
    }}"""
    with pytest.raises(kind, match=re.escape(said)) as found:
        parse_stablehlo(text, "f.mlir")
    assert found.value.place.line == 4
