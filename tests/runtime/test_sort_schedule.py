"""Sorts and the k largest as machine code of this CPU, against NumPy's stable sorts: orders, dimensions, sizes near the widths of runs."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from runtime.cpu_ways import compiled, host_ops
from xdsl.dialects.builtin import IntegerAttr

from xla_emitters.dialects.context import make_context
from xla_emitters.dynamic.loops.disc_fuse_single_ops import DiscFuseSingleOpsPass
from xla_emitters.dynamic.loops.sort_schedule import FIRST as FIRST_MARK
from xla_emitters.errors import DataError
from xla_emitters.program import Program

Array = np.ndarray[Any, Any]
SIZES = (0, 1, 2, 3, 4, 5, 15, 16, 17, 63, 65, 257, 1025)
SORT = """module @m {{ func.func public @main(%x: tensor<?x?x{t}>, %y: tensor<?x?x{u}>) -> (tensor<?x?x{t}>, tensor<?x?x{u}>) {{
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?x{t}>) -> tensor<i32>
  %1 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?x{t}>) -> tensor<i32>
  %2 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
  %3 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
  %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %5 = stablehlo.dynamic_reshape %y, %4 : (tensor<?x?x{u}>, tensor<2xi32>) -> tensor<?x?x{u}>
  %6:2 = "stablehlo.sort"(%x, %5) <{{dimension = {dim} : i64, is_stable = true}}> ({{
    ^bb0(%a: tensor<{t}>, %b: tensor<{t}>, %c: tensor<{u}>, %d: tensor<{u}>):
      {body}
      stablehlo.return %r : tensor<i1>
  }}) : (tensor<?x?x{t}>, tensor<?x?x{u}>) -> (tensor<?x?x{t}>, tensor<?x?x{u}>)
  return %6#0, %6#1 : tensor<?x?x{t}>, tensor<?x?x{u}> }} }}"""
ORDER = "%r = stablehlo.compare {direction}, %a, %b, {kind} : (tensor<{t}>, tensor<{t}>) -> tensor<i1>"


def sorted_by(body: str, t: str, u: str, dim: int) -> Program:
    program = compiled(SORT.format(body=body, t=t, u=u, dim=dim))
    assert "lmhlo.sort" not in host_ops(program)
    return program


def keys(x: Array) -> Array:
    """Integers that are in the order of the elements."""
    if x.dtype.kind in "iub":
        return x.astype(object) * 1
    bits = x.view(f"i{x.dtype.itemsize}").astype(object)
    return np.where(bits < 0, -bits - 2 ** (8 * x.dtype.itemsize) // 2 - 1, bits)


def shape_of(dim: int, size: int) -> tuple[int, int]:
    return (size, 3) if dim == 0 else (3, size)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_equal_ones_stay_in_order(direction: str, dim: int) -> None:
    body = ORDER.format(direction=direction, kind="SIGNED", t="i32")
    program = sorted_by(body, "i32", "i16", dim)
    rng = np.random.default_rng(0)
    for size in SIZES:
        x = rng.integers(-5, 6, shape_of(dim, size), np.int32)
        y = rng.integers(-9, 10, x.shape).astype(np.int16)
        order = np.argsort(x if direction == "LT" else -x, axis=dim, kind="stable")
        found = program(x, y)
        for array, result in zip((x, y), found, strict=True):
            np.testing.assert_array_equal(result, np.take_along_axis(array, order, dim))


def test_floats_by_total_order_with_both_zeros_and_nan() -> None:
    program = sorted_by(ORDER.format(direction="LT", kind="TOTALORDER", t="f32"), "f32", "i32", 1)
    rng = np.random.default_rng(0)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45], np.float32)
    for size in SIZES:
        x = np.where(rng.random((3, size)) < 0.5, rng.choice(special, (3, size)), rng.standard_normal((3, size)))
        x = x.astype(np.float32)
        order = np.argsort(keys(x), axis=1, kind="stable")
        y = np.broadcast_to(np.arange(size, dtype=np.int32), x.shape).copy()
        np.testing.assert_array_equal(program(x, y)[1], order)


def test_the_second_key_decides_where_the_first_is_equal() -> None:
    body = """%e = stablehlo.compare EQ, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %f = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %g = stablehlo.compare GT, %c, %d, UNSIGNED : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
      %r = stablehlo.select %e, %g, %f : tensor<i1>, tensor<i1>"""
    program = sorted_by(body, "i32", "ui8", 1)
    rng = np.random.default_rng(1)
    x, y = rng.integers(-3, 3, (3, 257), np.int32), rng.integers(0, 256, (3, 257)).astype(np.uint8)
    order = np.lexsort((-y.astype(int), x), axis=1)
    for array, result in zip((x, y), program(x, y), strict=True):
        np.testing.assert_array_equal(result, np.take_along_axis(array, order, 1))


@pytest.mark.parametrize("constant", ["true", "false"])
def test_what_is_no_order_gives_a_permutation(constant: str) -> None:
    program = sorted_by(f"%r = stablehlo.constant dense<{constant}> : tensor<i1>", "f16", "i32", 1)
    for size in SIZES:
        x = np.zeros((3, size), np.float16)
        y = np.broadcast_to(np.arange(size, dtype=np.int32), x.shape).copy()
        found = program(x, y)[1]
        np.testing.assert_array_equal(np.sort(found, axis=1), y)
        if constant == "false":
            np.testing.assert_array_equal(found, y)


FIRST = """module @m {{ func.func public @main(%x: tensor<3x?x{t}>) -> (tensor<3x{k}x{t}>, tensor<3x{k}xi32>) {{
  %0 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<3x?x{t}>) -> tensor<i32>
  %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
  %three = stablehlo.constant dense<3> : tensor<1xi32>
  %2 = stablehlo.concatenate %three, %1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %3 = stablehlo.dynamic_iota %2, dim = 1 : (tensor<2xi32>) -> tensor<3x?xi32>
  %4:2 = "stablehlo.sort"(%x, %3) <{{dimension = 1 : i64, is_stable = true}}> ({{
    ^bb0(%a: tensor<{t}>, %b: tensor<{t}>, %c: tensor<i32>, %d: tensor<i32>):
      {body}
      stablehlo.return %r : tensor<i1>
  }}) : (tensor<3x?x{t}>, tensor<3x?xi32>) -> (tensor<3x?x{t}>, tensor<3x?xi32>)
  %start = stablehlo.constant dense<[0, {start}]> : tensor<2xi32>
  %limit = stablehlo.constant dense<[3, {limit}]> : tensor<2xi32>
  %stride = stablehlo.constant dense<1> : tensor<2xi32>
  %5 = stablehlo.real_dynamic_slice %4#0, %start, %limit, %stride
      : (tensor<3x?x{t}>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<3x{k}x{t}>
  %6 = stablehlo.real_dynamic_slice %4#1, %start, %limit, %stride
      : (tensor<3x?xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<3x{k}xi32>
  return %5, %6 : tensor<3x{k}x{t}>, tensor<3x{k}xi32> }} }}"""


def first_of(body: str, t: str, k: int, start: int) -> tuple[Program, int | None]:
    """The program, and how many first elements its sort finds; None: it sorts."""
    program = compiled(FIRST.format(body=body, t=t, k=k, start=start, limit=start + k))
    fused = program.compilation.fused.clone()
    DiscFuseSingleOpsPass(target="cpu").apply(make_context(), fused)
    marks = [op.attributes.get(FIRST_MARK) for op in fused.walk() if op.name == "lmhlo.sort"]
    (mark,) = marks
    return program, mark.value.data if isinstance(mark, IntegerAttr) else None


@pytest.mark.parametrize("k", [1, 2, 7, 32])
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_the_first_of_a_sort_are_those_of_the_whole_one(direction: str, k: int) -> None:
    """Rows that are shorter than k have no slice; ascending, descending, and with many equal elements."""
    body = ORDER.format(direction=direction, kind="SIGNED", t="i32")
    program, first = first_of(body, "i32", k, 0)
    assert first == k
    rng = np.random.default_rng(3)
    for size in (k, k + 1, 65, 1025):
        x = np.stack([rng.integers(-4, 5, size), np.arange(size), -np.arange(size)]).astype(np.int32)
        order = np.argsort(x if direction == "LT" else -x, axis=1, kind="stable")[:, :k]
        values, places = program(x)
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))


def test_the_first_by_total_order() -> None:
    program, first = first_of(ORDER.format(direction="GT", kind="TOTALORDER", t="f32"), "f32", 5, 0)
    assert first == 5
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0], np.float32)
    x = np.random.default_rng(4).choice(special, (3, 300))
    order = np.argsort(-keys(x), axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(program(x)[1], order)


@pytest.mark.parametrize(("kind", "k", "start"), [("FLOAT", 2, 0), ("TOTALORDER", 33, 0), ("TOTALORDER", 2, 1)])
def test_what_is_sorted_whole(kind: str, k: int, start: int) -> None:
    """NaN has no place in FLOAT's order; too many elements; a slice that is not at the start."""
    body = ORDER.format(direction="LT", kind=kind, t="f32")
    program, first = first_of(body, "f32", k, start)
    assert first is None
    x = np.random.default_rng(5).standard_normal((3, 100)).astype(np.float32)
    np.testing.assert_array_equal(program(x)[0], np.sort(x, axis=1)[:, start : start + k])


# ---------------------------------------------------------------------------------------------------------- the k largest

UNKNOWN = """module @m {{ func.func public @main(%x: tensor<?x?x{t}>, %y: tensor<?xf32>) -> (tensor<?x?x{t}>, tensor<?x?xi32>) {{
  %k = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k)
      : (tensor<?x?x{t}>, tensor<i32>) -> (tensor<?x?x{t}>, tensor<?x?xi32>)
  return %0#0, %0#1 : tensor<?x?x{t}>, tensor<?x?xi32> }} }}"""
KNOWN = """module @m {{ func.func public @main(%x: tensor<?x?xf32>) -> (tensor<?x3xf32>, tensor<?x3xi32>) {{
  %0:2 = stablehlo.custom_call @mhlo.topk(%x) {{mhlo.attributes = {{k = 3 : i64, largest = {largest}}}}}
      : (tensor<?x?xf32>) -> (tensor<?x3xf32>, tensor<?x3xi32>)
  return %0#0, %0#1 : tensor<?x3xf32>, tensor<?x3xi32> }} }}"""
TYPES: dict[str, Any] = {
    **{"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64},
    **{"i8": np.int8, "i32": np.int32, "ui8": np.uint8, "ui64": np.uint64, "i1": np.bool_},
}


def of_kernels(text: str) -> Program:
    """The program: no op of it is left to the runtime."""
    program = compiled(text)
    assert not {"lmhlo.topk", "lmhlo.dynamic_top_k"} & host_ops(program)
    return program


def drawn(name: str, shape: tuple[int, int]) -> Array:
    """Few values, so that many are equal; of floats both zeros, infinities, and NaN with both signs too."""
    rng = np.random.default_rng(shape[1])
    if name in ("f16", "bf16", "f32", "f64"):
        return rng.choice([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, -np.nan, 3.0], shape).astype(TYPES[name])
    return rng.integers(-2 if name in ("i8", "i32") else 0, 3, shape).astype(TYPES[name])


@pytest.mark.parametrize("name", TYPES)
def test_an_unknown_number_of_the_largest(name: str) -> None:
    program = of_kernels(UNKNOWN.format(t=name))
    for rows, size, k in ((1, 1, 1), (3, 5, 2), (2, 17, 17), (2, 70, 9), (0, 4, 2), (2, 4, 0), (2, 0, 0)):
        x = drawn(name, (rows, size))
        values, places = program(x, np.zeros(k, np.float32))
        order = [sorted(range(size), key=lambda i, row=row: -row[i])[:k] for row in keys(x)]  # type: ignore[misc]
        wanted = np.array(order, np.int32).reshape(rows, k)
        np.testing.assert_array_equal(places, wanted)
        assert values.tobytes() == np.take_along_axis(x, wanted.astype(np.int64), 1).tobytes()


def test_more_than_there_are_stop_the_run() -> None:
    program = of_kernels(UNKNOWN.format(t="f32"))
    with pytest.raises(DataError, match="not inside an axis of size 3"):
        program(np.zeros((2, 3), np.float32), np.zeros(4, np.float32))


@pytest.mark.parametrize("largest", [True, False])
def test_a_known_number_of_the_largest_or_smallest(largest: bool) -> None:
    program = of_kernels(KNOWN.format(largest=str(largest).lower()))
    x = np.random.default_rng(0).integers(0, 9, (4, 50)).astype(np.float32)
    values, places = program(x)
    order = np.argsort(-x if largest else x, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
