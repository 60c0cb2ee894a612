"""Kernels of ops that have loops of their own, on the executor at every stage from loops on, against NumPy: sizes that reach each pass."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from long_lists import every

from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.text.stablehlo import parse_stablehlo

Array = np.ndarray[Any, Any]
STAGES = ("loops", "llvm-dialect")
SIZES = (0, 1, 63, 64, 65, 130, 257, 700)
"""Of tiles of 64: less than one, one, more; passes that merge runs of 64, 128, 256 and 512."""


@cache
def compiled(text: str) -> Program:
    program = compile_program(parse_stablehlo(text, "<test>"), CompileOptions(record="none"))
    names = {op.name for op in program.compilation.lowering.at("kernels").walk() if isinstance(op, BufferOp)}
    assert not names & {"lmhlo.sort", "lmhlo.scatter", "lmhlo.reduce_window", "lmhlo.select_and_scatter"}
    return program


def has_values(text: str, inputs: list[Array], wanted: list[Array], tolerance: float = 0.0) -> None:
    program = compiled(text)
    for stage in STAGES:
        for found, want in zip(program.run(inputs, stage), wanted, strict=True):
            assert (found.shape, found.dtype) == (want.shape, want.dtype)
            if tolerance:
                np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance)
            else:
                np.testing.assert_array_equal(found, want)


# ---- sorts ------------------------------------------------------------------------------------------------------------------------------

SORT = """func.func @main(%x: tensor<?x?xi32>, %y: tensor<?x?xi16>) -> (tensor<?x?xi32>, tensor<?x?xi16>) {{
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xi32>) -> tensor<i32>
  %1 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xi32>) -> tensor<i32>
  %2 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
  %3 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
  %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %5 = stablehlo.dynamic_reshape %y, %4 : (tensor<?x?xi16>, tensor<2xi32>) -> tensor<?x?xi16>
  %6:2 = "stablehlo.sort"(%x, %5) <{{dimension = {dim} : i64, is_stable = true}}> ({{
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i16>, %d: tensor<i16>):
      %seven = stablehlo.constant dense<7> : tensor<i32>
      %p = stablehlo.remainder %a, %seven : tensor<i32>
      %q = stablehlo.remainder %b, %seven : tensor<i32>
      %r = stablehlo.compare LT, %p, %q, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %r : tensor<i1>
  }}) : (tensor<?x?xi32>, tensor<?x?xi16>) -> (tensor<?x?xi32>, tensor<?x?xi16>)
  return %6#0, %6#1 : tensor<?x?xi32>, tensor<?x?xi16> }}"""


@pytest.mark.parametrize(("dim", "size"), every(5, [(dim, size) for dim in (0, 1) for size in SIZES]))
def test_a_sort_by_what_no_library_sorts_by_is_stable(dim: int, size: int) -> None:
    """By remainders: many elements are equal."""
    rng = np.random.default_rng(size)
    x = rng.integers(0, 1000, (size, 3) if dim == 0 else (3, size), np.int32)
    y = rng.integers(-9, 10, x.shape).astype(np.int16)
    order = np.argsort(x % 7, axis=dim, kind="stable")
    wanted = [np.take_along_axis(array, order, dim) for array in (x, y)]
    has_values(SORT.format(dim=dim), [x, y], wanted)


# ---- scatters ---------------------------------------------------------------------------------------------------------------------------

SCATTER = """func.func @main(%x: tensor<{array}x{t}>, %i: tensor<?x1xi32>, %u: tensor<?x{window}{t}>) -> tensor<{array}x{t}> {{
  %n = stablehlo.get_dimension_size %i, dim = 0 : (tensor<?x1xi32>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  {sizes}
  %v = stablehlo.dynamic_reshape %u, %s : (tensor<?x{window}{t}>, tensor<{rank}xi32>) -> tensor<?x{window}{t}>
  %0 = "stablehlo.scatter"(%x, %i, %v) <{{scatter_dimension_numbers = #stablehlo.scatter<{dims}>, unique_indices = {unique}}}> ({{
    ^bb0(%a: tensor<{t}>, %b: tensor<{t}>):
      {body}
      stablehlo.return %r : tensor<{t}>
    }}) : (tensor<{array}x{t}>, tensor<?x1xi32>, tensor<?x{window}{t}>) -> tensor<{array}x{t}>
  return %0 : tensor<{array}x{t}> }}"""
ROWS = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
POINTS = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
OVERLAP = "update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
BODIES = {
    "add": "%r = stablehlo.add %a, %b : tensor<{t}>",
    "maximum": "%r = stablehlo.maximum %a, %b : tensor<{t}>",
    "replace": "%r = stablehlo.add %b, %z : tensor<{t}>",
    "halve": "%h = stablehlo.divide %a, %two : tensor<{t}>\n %r = stablehlo.add %h, %b : tensor<{t}>",
}


def scatter(dims: str, array: str, window: str, t: str, body: str, *, unique: bool = False) -> str:
    rank = 1 if not window else 2
    sizes = "%s = stablehlo.reshape %n1 : (tensor<1xi32>) -> tensor<1xi32>"
    if window:
        sizes = f"""%w = stablehlo.constant dense<{window[:-1]}> : tensor<1xi32>
  %s = stablehlo.concatenate %n1, %w, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>"""
    zero = f"%z = stablehlo.constant dense<0> : tensor<{t}>\n" if t[0] == "i" else ""
    zero = (
        zero
        or f"%z = stablehlo.constant dense<0.0> : tensor<{t}>\n %two = stablehlo.constant dense<2.0> : tensor<{t}>\n"
    )
    return SCATTER.format(
        dims=dims,
        array=array,
        window=window,
        t=t,
        rank=rank,
        sizes=sizes,
        body=zero + BODIES[body].format(t=t),
        unique=str(unique).lower(),
    )


def one_by_one(array: Array, starts: Array, updates: Array, body: str, *, is_rows: bool) -> Array:
    """Update by update, as NumPy: for rows of a matrix, or windows of a vector."""
    found = array.copy()
    for start, update in zip(starts[:, 0], updates, strict=True):
        extent = 1 if is_rows or np.ndim(update) == 0 else len(update)
        if not 0 <= start <= len(array) - extent:
            continue
        at = start if is_rows or np.ndim(update) == 0 else slice(start, start + extent)
        old = found[at]
        match body:
            case "add":
                found[at] = old + update
            case "maximum":
                found[at] = np.maximum(old, update)
            case "replace":
                found[at] = update
            case _:
                found[at] = old / np.float32(2) + update
    return found


FORMS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...]]] = {
    "rows": (ROWS, (8, 5), (5,)),
    "points": (POINTS, (8,), ()),
    "overlap": (OVERLAP, (8,), (3,)),
}
"""Dimension numbers, sizes of the array and of one update."""


@pytest.mark.parametrize(("form", "body"), every(5, [(form, body) for form in FORMS for body in BODIES]))
def test_updates_of_one_element_are_in_their_order(form: str, body: str) -> None:
    """Bit by bit, also where the order decides; indices before and behind the array are left out."""
    dims, sizes, window = FORMS[form]
    text = scatter(dims, "x".join(map(str, sizes)), "".join(f"{size}x" for size in window), "f32", body)
    for count in (0, 1, 65, 300):
        rng = np.random.default_rng(count)
        starts = rng.integers(-2, 10, (count, 1)).astype(np.int32)
        array, updates = (rng.normal(size=shape).astype(np.float32) for shape in (sizes, (count, *window)))
        has_values(text, [array, starts, updates], [one_by_one(array, starts, updates, body, is_rows=form == "rows")])


@pytest.mark.parametrize("element", ["i32", "i64", "i8"])
def test_counts_in_any_order(element: str) -> None:
    """s32 and s64 by an atomic instruction, s8 in the order of the indices."""
    rng = np.random.default_rng(0)
    starts, kind = rng.integers(-2, 10, (300, 1)).astype(np.int32), np.dtype(element.replace("i", "int"))
    array, updates = np.zeros(8, kind), np.ones(300, kind)
    wanted = one_by_one(array, starts, updates, "add", is_rows=False)
    has_values(scatter(POINTS, "8", "", element, "add"), [array, starts, updates], [wanted])
    names = [kernel.name for kernel in compiled(scatter(POINTS, "8", "", element, "add")).compilation.lowering.kernels]
    assert (len(names) > 2) == (element == "i8")


def test_indices_that_are_said_to_be_unique_need_no_order() -> None:
    rng = np.random.default_rng(0)
    starts = rng.permutation(12)[:8, None].astype(np.int32) - 2
    array, updates = (rng.normal(size=8).astype(np.float32) for _ in range(2))
    text = scatter(POINTS, "8", "", "f32", "halve", unique=True)
    has_values(text, [array, starts, updates], [one_by_one(array, starts, updates, "halve", is_rows=False)])
    assert len(compiled(text).compilation.lowering.kernels) == 2


def test_several_arrays_are_updated_together() -> None:
    """The larger of two keys, with its value."""
    t, v = "tensor<6xf32>", "tensor<6xi32>"
    text = f"""func.func @main(%x: {t}, %y: {v}, %i: tensor<90x1xi32>, %u: tensor<90xf32>, %w: tensor<90xi32>) -> ({t}, {v}) {{
      %0:2 = "stablehlo.scatter"(%x, %y, %i, %u, %w) <{{scatter_dimension_numbers = #stablehlo.scatter<{POINTS}>}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
          %p = stablehlo.compare GE, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %k = stablehlo.select %p, %a, %c : tensor<i1>, tensor<f32>
          %l = stablehlo.select %p, %b, %d : tensor<i1>, tensor<i32>
          stablehlo.return %k, %l : tensor<f32>, tensor<i32>
        }}) : ({t}, {v}, tensor<90x1xi32>, tensor<90xf32>, tensor<90xi32>) -> ({t}, {v})
      return %0#0, %0#1 : {t}, {v} }}"""
    rng = np.random.default_rng(0)
    x, y = np.zeros(6, np.float32), np.full(6, -1, np.int32)
    starts = rng.integers(-1, 7, (90, 1)).astype(np.int32)
    u, w = rng.normal(size=90).astype(np.float32), np.arange(90, dtype=np.int32)
    keys, values = x.copy(), y.copy()
    for start, key, value in zip(starts[:, 0], u, w, strict=True):
        if 0 <= start < 6 and not keys[start] >= key:
            keys[start], values[start] = key, value
    has_values(text, [x, y, starts, u, w], [keys, values])


# ---- windows ----------------------------------------------------------------------------------------------------------------------------

CUMULATIVE = """func.func @main(%x: tensor<{rows}x{columns}xf32>) -> tensor<{rows}x{columns}xf32> {{
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %z) <{{window_dimensions = array<i64: {window}>, padding = dense<{padding}> : tensor<2x2xi64>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %r = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %r : tensor<f32>
  }}) : (tensor<{rows}x{columns}xf32>, tensor<f32>) -> tensor<{rows}x{columns}xf32>
  return %0 : tensor<{rows}x{columns}xf32> }}"""


CUMULATIONS = [(axis, size, way) for size in (2, 255, 1024, 1025, 2500) for axis in (0, 1) for way in (False, True)]


@pytest.mark.parametrize(("axis", "size", "is_reversed"), every(3, CUMULATIONS))
def test_cumulative_sums(axis: int, size: int, is_reversed: bool) -> None:
    """A thread a column, or a block a row, which takes 1024 elements at a time. Of integers, whose sums are exact in any order."""
    pair, none = (f"[0, {size - 1}]" if is_reversed else f"[{size - 1}, 0]"), "[0, 0]"
    rows, columns = (size, 3) if axis == 0 else (3, size)
    text = CUMULATIVE.format(
        rows=rows,
        columns=columns,
        window=f"{size}, 1" if axis == 0 else f"1, {size}",
        padding=f"[{pair}, {none}]" if axis == 0 else f"[{none}, {pair}]",
    )
    x = np.random.default_rng(0).integers(-9, 10, (rows, columns)).astype(np.float32)
    wanted = np.flip(np.cumsum(np.flip(x, axis), axis), axis) if is_reversed else np.cumsum(x, axis)
    has_values(text, [x], [wanted.astype(np.float32)])


def test_several_arrays_in_one_window() -> None:
    """The largest of three, and its place."""
    t, v = "tensor<?xf32>", "tensor<?xi32>"
    text = f"""func.func @main(%x: {t}) -> ({t}, {v}) {{
      %m = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %n = stablehlo.constant dense<-1> : tensor<i32>
      %d = stablehlo.get_dimension_size %x, dim = 0 : ({t}) -> tensor<i32>
      %s = stablehlo.reshape %d : (tensor<i32>) -> tensor<1xi32>
      %i = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> {v}
      %0:2 = "stablehlo.reduce_window"(%x, %i, %m, %n) <{{
          window_dimensions = array<i64: 3>, padding = dense<[[1, 1]]> : tensor<1x2xi64>}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %e: tensor<i32>):
          %p = stablehlo.compare GE, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %k = stablehlo.select %p, %a, %c : tensor<i1>, tensor<f32>
          %l = stablehlo.select %p, %b, %e : tensor<i1>, tensor<i32>
          stablehlo.return %k, %l : tensor<f32>, tensor<i32>
        }}) : ({t}, {v}, tensor<f32>, tensor<i32>) -> ({t}, {v})
      return %0#0, %0#1 : {t}, {v} }}"""
    for size in (1, 2, 300):
        x = np.random.default_rng(size).normal(size=size).astype(np.float32)
        padded = np.pad(x, 1, constant_values=-np.inf)
        seen = np.stack([padded[:-2], padded[1:-1], padded[2:]])
        wanted = seen.max(0), (np.arange(size) - 1 + seen.argmax(0)).astype(np.int32)
        has_values(text, [x], list(wanted))


@pytest.mark.parametrize(("size", "stride", "low", "high"), [(2, 2, 0, 0), (3, 1, 1, 1), (3, 2, 2, 1), (2, 3, 0, 1)])
def test_the_gradient_of_a_pooling(size: int, stride: int, low: int, high: int) -> None:
    """Windows that overlap, that leave elements out, that reach beyond the array."""
    count = (13 + low + high - size) // stride + 1
    text = f"""func.func @main(%x: tensor<?x13xf32>, %s: tensor<?x{count}xf32>) -> tensor<?x13xf32> {{
      %z = stablehlo.constant dense<1.0> : tensor<f32>
      %0 = "stablehlo.select_and_scatter"(%x, %s, %z) <{{window_dimensions = array<i64: 1, {size}>,
          window_strides = array<i64: 1, {stride}>, padding = dense<[[0, 0], [{low}, {high}]]> : tensor<2x2xi64>}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        }}, {{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %t = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %t : tensor<f32>
        }}) : (tensor<?x13xf32>, tensor<?x{count}xf32>, tensor<f32>) -> tensor<?x13xf32>
      return %0 : tensor<?x13xf32> }}"""
    rng = np.random.default_rng(0)
    x, s = rng.integers(0, 4, (3, 13)).astype(np.float32), rng.normal(size=(3, count)).astype(np.float32)
    wanted = np.ones_like(x)
    for row in range(3):
        for number in range(count):
            inside = [p for p in range(number * stride - low, number * stride - low + size) if 0 <= p < 13]
            if inside:
                wanted[row, inside[int(np.argmax(x[row, inside]))]] += s[row, number]
    has_values(text, [x, s], [wanted])


IN_PLACE = """module @m { func.func public @main(%i: tensor<?x1xi64>, %u: tensor<?x{t}>) -> tensor<?x{t}> {
  %z = stablehlo.constant dense<{zero}> : tensor<{t}>
  %n = stablehlo.get_dimension_size %u, dim = 0 : (tensor<?x{t}>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %b = stablehlo.dynamic_broadcast_in_dim %z, %n1, dims = [] : (tensor<{t}>, tensor<1xi32>) -> tensor<?x{t}>
  %r = "stablehlo.scatter"(%b, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<{points}>}> ({
    ^bb0(%x: tensor<{t}>, %y: tensor<{t}>):
      %s = stablehlo.add %x, %y : tensor<{t}>
      stablehlo.return %s : tensor<{t}>
    }) : (tensor<?x{t}>, tensor<?x1xi64>, tensor<?x{t}>) -> tensor<?x{t}>
  return %r : tensor<?x{t}>
} }"""


@pytest.mark.parametrize("t", every(3, ["i32", "i64", "f32"]))
def test_updates_of_an_array_of_the_program_itself_are_in_place(t: str) -> None:
    """Integers by atomic instructions, which are the only readers of the array that they update."""
    text = IN_PLACE.replace("{points}", POINTS).replace("{zero}", "0.0" if t == "f32" else "0").replace("{t}", t)
    for count in (1, 65, 300):
        starts = np.random.default_rng(count).integers(0, count, (count, 1))
        updates = np.arange(count).astype({"i32": np.int32, "i64": np.int64, "f32": np.float32}[t])
        wanted = np.zeros_like(updates)
        np.add.at(wanted, starts[:, 0], updates)
        has_values(text, [starts, updates], [wanted])
