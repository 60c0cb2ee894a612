"""Each schedule of reductions, forced: NumPy's values for any start value, at odd sizes, without an error of the sanitizer."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from long_lists import long_case
from runtime.fusion_loops import run, scheduled
from runtime.reduction_schedules import (
    SCHEDULES,
    by,
    check_sums,
    computation,
    loops_of,
    reduced,
    reduction,
    whole_numbers,
)
from xdsl.dialects.builtin import IntegerAttr, UnitAttr

from xla_emitters.dtypes import dtype
from xla_emitters.dynamic.buffers import fusion_rules
from xla_emitters.dynamic.loops.column_reduction_schedule import ATOMICS, emit_column_reduction_schedule
from xla_emitters.dynamic.loops.schedule import FusionLoops

SIZES = [(0, 5), (5, 0), (0, 0), (1, 1), (1, 513), (7, 31), (8, 32), (9, 33), (33, 511), (257, 3), (300, 8)]


@pytest.mark.parametrize("name", SCHEDULES)
def test_sums_from_a_start_that_is_no_identity(name: str) -> None:
    for rows, columns in SIZES:
        check_sums(name, rows, columns)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("columns", [1, 3, 32, 40])
def test_a_known_number_of_columns(name: str, columns: int) -> None:
    x = whole_numbers(300, columns)
    found = reduced(name, "f32", by("add", "f32"), x, -7, str(columns))
    np.testing.assert_array_equal(found, -7 + x.sum(SCHEDULES[name][0]))


def test_more_rows_than_a_tile_has() -> None:
    """Over 1024 tiles of 256 rows, tiles become higher."""
    x = np.ones((1024 * 256 + 77, 1), np.float32)
    np.testing.assert_array_equal(reduced("column", "f32", by("add", "f32"), x, 5), [5 + len(x)])


def emit_columns_of_vectors(fusion: FusionLoops) -> None:
    fusion.op.attributes[fusion_rules.VECTOR] = IntegerAttr(4, 64)
    emit_column_reduction_schedule(fusion)


@pytest.mark.parametrize("rows", [0, 1, 15, 511, 512, 513, 1024, 1041])
def test_tiles_of_512_rows_whole_or_not(rows: int) -> None:
    """With four columns a thread; one tile gives the results, several give parts."""
    module = loops_of(reduction("f32", 0, by("add", "f32")), emit_columns_of_vectors)
    for columns in (4, 64, 72):
        x, y = whole_numbers(rows, columns), np.full(columns, np.nan, np.float32)
        run(module, x=x, i=np.asarray(5, np.float32), y=y)
        np.testing.assert_array_equal(y, 5 + x.sum(0), f"{rows} x {columns}")


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_narrow_sums_are_rounded_once(name: str, element: str) -> None:
    """Each step rounded to bf16, a sum of ones ends at 256."""
    kind = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}[element]
    x = np.random.default_rng(3).uniform(0.5, 1, (600, 40) if SCHEDULES[name][0] == 0 else (40, 600)).astype(kind)
    wanted = (x.astype(np.float64).sum(SCHEDULES[name][0]) + 3).astype(kind)
    found = reduced(name, element, by("add", element), x, 3)
    # f32 sums of 600 elements are off by less than 2^-14: at most the neighbour, where that crosses a tie.
    off = np.abs(found.view(np.int16).astype(int) - wanted.view(np.int16))
    assert off.max() <= 1
    assert (off == 0).mean() >= 0.9


REAL = np.array(
    [[1, -2, np.nan, 0.5], [-0.0, 0.0, -0.0, -0.0], [-0.0, -0.0, -0.0, -0.0], [3, np.inf, -np.inf, 4]], np.float32
)


# In the suite every two of schedule, op and start meet; the whole product is long.
NAN_AND_ZERO = [
    case if (i + j + k) % 4 == 0 else long_case(case)
    for i, name in enumerate(SCHEDULES)
    for j, opcode in enumerate(("maximum", "minimum", "add", "multiply"))
    for k, init in enumerate((-0.0, 0.0, 2.0, np.nan))
    for case in [(name, opcode, init)]
]


@pytest.mark.parametrize(("name", "opcode", "init"), NAN_AND_ZERO)
def test_nan_and_the_sign_of_zero(name: str, opcode: str, init: float) -> None:
    x = REAL if SCHEDULES[name][0] else np.ascontiguousarray(REAL.T)
    found = reduced(name, "f32", by(opcode, "f32"), x, init)
    for row, value in zip(REAL, found, strict=True):
        wanted = np.float32(init)
        for element in row:
            wanted = step(opcode, wanted, element)
        assert value.view(np.int32) == wanted.view(np.int32) or (np.isnan(value) and np.isnan(wanted)), (opcode, row)


def step(opcode: str, a: np.float32, b: np.float32) -> np.float32:
    """As HLO has it: NaN wins, and +0 is more than -0."""
    if opcode in ("add", "multiply"):
        with np.errstate(all="ignore"):
            return np.float32(a + b if opcode == "add" else a * b)
    if np.isnan(a) or np.isnan(b):
        return np.float32(np.nan)

    def key(value: np.float32) -> tuple[Any, bool]:
        return (value, not np.signbit(value))

    return (max if opcode == "maximum" else min)(a, b, key=key)


INTEGERS: list[tuple[str, str, Any]] = [
    ("s32", "add", np.int32),
    ("s64", "multiply", np.int64),
    ("u32", "maximum", np.uint32),
    ("u32", "minimum", np.uint32),
    ("s8", "add", np.int8),
    ("u16", "xor", np.uint16),
    ("s32", "and", np.int32),
    ("s64", "or", np.int64),
    ("s64", "add", np.int64),
]
FUNCTIONS: dict[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(("element", "opcode", "kind"), INTEGERS)
def test_integers_wrap_and_keep_their_sign(name: str, element: str, opcode: str, kind: Any) -> None:
    limits = np.iinfo(kind)
    x = np.random.default_rng(5).integers(limits.min, limits.max, (37, 37), kind, endpoint=True)
    init, dim = kind(limits.max - 3), SCHEDULES[name][0]
    with np.errstate(over="ignore"):
        wanted = FUNCTIONS[opcode](init, FUNCTIONS[opcode].reduce(x, axis=dim, dtype=kind))
    found = reduced(name, element, by(opcode, str(dtype(element).ir_type)), x, init)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("opcode", ["and", "or"])
@pytest.mark.parametrize("init", [False, True])
def test_truth_values(name: str, opcode: str, init: bool) -> None:
    x = np.random.default_rng(6).random((40, 40)) < (0.02 if opcode == "or" else 0.98)
    dim = SCHEDULES[name][0]
    wanted = (x.any(dim) | init) if opcode == "or" else (x.all(dim) & init)
    np.testing.assert_array_equal(reduced(name, "pred", by(opcode, "i1"), x, init), wanted)


ONE_MORE = computation(
    "body",
    "i32",
    '%s = hlo.add %a, %b {name = "s"} : tensor<i32>',
    '%c = hlo.constant {name = "c"} dense<1> : tensor<i32>',
    '%r = hlo.add %s, %c {name = "r"} : tensor<i32>',
)
"""a + b + 1 is associative, and its identity -1 is not known."""


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_computation_without_a_known_identity(name: str) -> None:
    for rows, columns in ((0, 3), (3, 0), (1, 1), (33, 300), (300, 33), (600, 2)):
        x, dim = whole_numbers(rows, columns, np.int32), SCHEDULES[name][0]
        found = reduced(name, "s32", ONE_MORE, x, 100)
        np.testing.assert_array_equal(found, 100 + x.sum(dim) + x.shape[dim], f"{rows} x {columns}")


@pytest.mark.parametrize("name", ["row1", "row2", "row3", "column"])
def test_the_place_of_the_first_largest(name: str) -> None:
    """Two arrays at once: values and their places, as argmax has them; the start is below all."""
    dim, schedule = SCHEDULES[name]
    text = ARGMAX.replace("DIM", str(dim))
    for rows, columns in ((5, 0), (3, 1), (70, 300), (300, 70)):
        x = whole_numbers(rows, columns)
        places = np.broadcast_to(np.arange(columns)[None] if dim else np.arange(rows)[:, None], x.shape).astype(
            np.int32
        )
        y, at = np.zeros(x.shape[1 - dim], np.float32), np.zeros(x.shape[1 - dim], np.int32)
        low, zero = np.float32(-np.inf), np.int32(0)
        run(loops_of(text, schedule), x=x, p=places.copy(), low=np.asarray(low), zero=np.asarray(zero), y=y, at=at)
        np.testing.assert_array_equal(y, x.max(dim, initial=-np.inf))
        np.testing.assert_array_equal(at, x.argmax(dim) if x.shape[dim] else np.zeros_like(at))


ARGMAX = """
hlo.computation @body {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %i = hlo.parameter 1 {name = "i"} : tensor<i32>
  %b = hlo.parameter 2 {name = "b"} : tensor<f32>
  %j = hlo.parameter 3 {name = "j"} : tensor<i32>
  %more = hlo.compare %a, %b {direction = "GT", name = "more"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %same = hlo.compare %a, %b {direction = "EQ", name = "same"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %before = hlo.compare %i, %j {direction = "LT", name = "before"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %first = hlo.and %same, %before {name = "first"} : tensor<i1>
  %one = hlo.or %more, %first {name = "one"} : tensor<i1>
  %value = hlo.select %one, %a, %b {name = "value"} : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %place = hlo.select %one, %i, %j {name = "place"} : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
  %r = hlo.tuple %value, %place {name = "r"} : (tensor<f32>, tensor<i32>) -> tuple<tensor<f32>, tensor<i32>>
  hlo.return %r : tuple<tensor<f32>, tensor<i32>>
}
func.func @main(%x: memref<?x?xf32, "gpu">, %p: memref<?x?xi32, "gpu">, %low: memref<f32, "gpu">, %zero: memref<i32, "gpu">,
                %y: memref<?xf32, "gpu">, %at: memref<?xi32, "gpu">) {
  "lmhlo.fusion"() ({
    lmhlo.reduce %x, %p, %low, %zero -> %y, %at {dimensions = array<i64: DIM>, name = "r", to_apply = @body}
      : (memref<?x?xf32, "gpu">, memref<?x?xi32, "gpu">, memref<f32, "gpu">, memref<i32, "gpu">)
      -> (memref<?xf32, "gpu">, memref<?xi32, "gpu">)
    lmhlo.terminator
  }) {fusion_name = "f"} : () -> ()
  func.return
}"""


@pytest.mark.parametrize("name", ["row1", "row2", "row3", "column"])
def test_a_vector_is_one_column(name: str) -> None:
    text = f"""
{by("add", "f32")}
func.func @main(%x: memref<?xf32, "gpu">, %i: memref<f32, "gpu">, %y: memref<f32, "gpu">) {{
  "lmhlo.fusion"() ({{
    lmhlo.reduce %x, %i -> %y {{dimensions = array<i64: 0>, name = "r", to_apply = @body}}
      : (memref<?xf32, "gpu">, memref<f32, "gpu">) -> memref<f32, "gpu">
    lmhlo.terminator
  }}) {{fusion_name = "f"}} : () -> ()
  func.return
}}"""
    module = scheduled(text, SCHEDULES[name][1])
    for size in (0, 1, 255, 9000):
        x, y = whole_numbers(size, 1)[:, 0], np.full((), np.nan, np.float32)
        run(module, x=x, i=np.asarray(5, np.float32), y=y)
        assert y == 5 + x.sum()


@pytest.mark.parametrize("name", ["row1", "row2", "row3", "atomic columns"])
def test_rows_columns_and_results_of_the_matrix_in_one_fusion(name: str) -> None:
    def schedule(fusion: FusionLoops) -> None:
        if name == "atomic columns":
            fusion.op.attributes[ATOMICS] = UnitAttr()
        SCHEDULES[name if name in SCHEDULES else "row1"][1](fusion)

    module = scheduled(BOTH.replace("BODY", by("add", "f32")), schedule)
    for rows, columns in ((0, 3), (3, 0), (9, 70), (300, 33)):
        x = whole_numbers(rows, columns)
        y, z = np.zeros(rows, np.float32), np.zeros(columns, np.float32)
        n = np.zeros_like(x)
        run(module, x=x, i=np.asarray(5, np.float32), y=y, z=z, n=n)
        np.testing.assert_array_equal(y, 5 + x.sum(1))
        np.testing.assert_array_equal(z, 5 + x.sum(0))
        np.testing.assert_array_equal(n, -x)


MATRIX, VECTOR = 'memref<?x?xf32, "gpu">', 'memref<?xf32, "gpu">'
BOTH = f"""
BODY
func.func @main(%x: {MATRIX}, %i: memref<f32, "gpu">, %y: {VECTOR}, %z: {VECTOR}, %n: {MATRIX}) {{
  "lmhlo.fusion"() ({{
    lmhlo.reduce %x, %i -> %y {{dimensions = array<i64: 1>, name = "y", to_apply = @body}} : ({MATRIX}, memref<f32, "gpu">) -> {VECTOR}
    lmhlo.reduce %x, %i -> %z {{dimensions = array<i64: 0>, name = "z", to_apply = @body}} : ({MATRIX}, memref<f32, "gpu">) -> {VECTOR}
    lmhlo.negate %x -> %n {{name = "n"}} : ({MATRIX}) -> {MATRIX}
    lmhlo.terminator
  }}) {{fusion_name = "f"}} : () -> ()
  func.return
}}"""


@pytest.mark.parametrize("shape", ["2x3x32", "3x64", "192"])
@pytest.mark.parametrize("name", ["row1", "row2", "row3", "column"])
def test_a_result_of_another_shape_has_its_elements_in_order(name: str, shape: str) -> None:
    dim, schedule = SCHEDULES[name]
    result, other = f'memref<{6 if dim else 32}xf32, "gpu">', f'memref<{shape}xf32, "gpu">'
    text = f"""
{by("add", "f32")}
func.func @main(%x: memref<6x32xf32, "gpu">, %i: memref<f32, "gpu">, %y: {result}, %z: {other}) {{
  "lmhlo.fusion"() ({{
    lmhlo.reduce %x, %i -> %y {{dimensions = array<i64: {dim}>, name = "y", to_apply = @body}}
      : (memref<6x32xf32, "gpu">, memref<f32, "gpu">) -> {result}
    lmhlo.reshape %x -> %z {{name = "z"}} : (memref<6x32xf32, "gpu">) -> {other}
    lmhlo.terminator
  }}) {{fusion_name = "f"}} : () -> ()
  func.return
}}"""
    x = whole_numbers(6, 32)
    y, z = np.zeros(x.shape[1 - dim], np.float32), np.zeros([int(size) for size in shape.split("x")], np.float32)
    run(scheduled(text, schedule), x=x, i=np.asarray(5, np.float32), y=y, z=z)
    np.testing.assert_array_equal(y, 5 + x.sum(dim))
    np.testing.assert_array_equal(z, x.reshape(z.shape))


def test_a_sum_by_atomic_updates_beside_a_product_in_order() -> None:
    """Products have no instruction: the partial results of tiles are combined, those of the sum are not."""
    reduce = 'lmhlo.reduce %x, %i -> %{0} {{dimensions = array<i64: 0>, name = "{0}", to_apply = @{1}}} : ({2}, memref<f32, "gpu">) -> {3}'
    text = f"""
{by("add", "f32")}
{computation("product", "f32", '%r = hlo.multiply %a, %b {name = "r"} : tensor<f32>')}
func.func @main(%x: {MATRIX}, %i: memref<f32, "gpu">, %y: {VECTOR}, %z: {VECTOR}) {{
  "lmhlo.fusion"() ({{
    {reduce.format("y", "product", MATRIX, VECTOR)}
    {reduce.format("z", "body", MATRIX, VECTOR)}
    lmhlo.terminator
  }}) {{fusion_name = "f"}} : () -> ()
  func.return
}}"""
    module = scheduled(text, SCHEDULES["atomics"][1])
    for rows, columns in ((0, 3), (9, 70), (300, 33), (600, 2)):
        x, y, z = (
            np.sign(whole_numbers(rows, columns) - 0.5),
            np.zeros(columns, np.float32),
            np.zeros(columns, np.float32),
        )
        run(module, x=x, i=np.asarray(5, np.float32), y=y, z=z)
        np.testing.assert_array_equal(y, 5 * x.prod(0))
        np.testing.assert_array_equal(z, 5 + x.sum(0))
