"""Programs with unknown sizes as machine code of this CPU: JAX's recorded values, NumPy's values at boundaries, and what computes them."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from runtime.cpu_ways import compiled
from runtime.programs_table import programs

from xla_emitters.errors import UsageError
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.settings import CPU
from xla_emitters.text.stablehlo import parse_stablehlo

Array = np.ndarray[Any, Any]


# All others: `make programs`.
@pytest.mark.parametrize("name", ["layer", "half_norm", "gather_rows", "loop"])
def test_it_has_the_values_that_jax_gave(name: str) -> None:
    program = programs()[name]
    found = program.compiled()
    assert max(program.differences(found)) <= program.case.tolerance
    assert found.compilation.cpu.name == "llvm"


# ----------------------------------------------------------------------------------------------------- rows with branches

PADDED = """module @m { func.func public @main(%x: tensor<?x3x?x?xf32>) -> tensor<?x3x?x?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.pad %x, %zero, low = [0, 0, -1, 1], high = [0, 0, 2, -1], interior = [0, 0, 0, 0]
    : (tensor<?x3x?x?xf32>, tensor<f32>) -> tensor<?x3x?x?xf32>
  return %y : tensor<?x3x?x?xf32> } }"""


def test_a_row_whose_first_element_is_padding_reads_its_own_row() -> None:
    # The row of the argument is a quotient that is only needed in the branch that reads.
    program = compiled(PADDED)
    for columns in (1, 4, 7, 33):
        x = np.random.default_rng(0).standard_normal((2, 3, 5, columns)).astype(np.float32)
        wanted = np.zeros((2, 3, 6, columns), np.float32)
        wanted[:, :, :4, 1:] = x[:, :, 1:, :-1]
        np.testing.assert_array_equal(program(x), wanted)


# ------------------------------------------------------------------------------------------------------------ reductions

REDUCE = """module @m {{ func.func public @main(%x: tensor<?x?x{t}>) -> tensor<?x{t}> {{
  %zero = stablehlo.constant dense<{start}> : tensor<{t}>
  %y = stablehlo.reduce(%x init: %zero) applies stablehlo.{op} across dimensions = [{dim}] : (tensor<?x?x{t}>, tensor<{t}>) -> tensor<?x{t}>
  return %y : tensor<?x{t}> }} }}"""
SHAPES = ((0, 3), (3, 0), (1, 1), (5, 31), (7, 256), (3, 257), (1025, 4), (2049, 300), (2, 70001))


@pytest.mark.parametrize("dim", [0, 1])
def test_sums_of_integers_count_each_element_and_the_initial_value_once(dim: int) -> None:
    program = compiled(REDUCE.format(t="i32", op="add", start=5, dim=dim))
    for shape in SHAPES:
        x = np.random.default_rng(0).integers(-1000, 1000, shape, np.int32)
        np.testing.assert_array_equal(program(x), x.sum(dim, dtype=np.int32) + 5)


ARGMAX = """module @m { func.func public @main(%x: tensor<?x?xf32>, %at: tensor<?x?xi32>) -> (tensor<?xf32>, tensor<?xi32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %y:2 = stablehlo.reduce(%x init: %low), (%at init: %none) across dimensions = [1]
    : (tensor<?x?xf32>, tensor<?x?xi32>, tensor<f32>, tensor<i32>) -> (tensor<?xf32>, tensor<?xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %larger = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %nan = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %first = stablehlo.or %larger, %nan : tensor<i1>
      %equal = stablehlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %before = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %tie = stablehlo.and %equal, %before : tensor<i1>
      %keeps = stablehlo.or %first, %tie : tensor<i1>
      %v = stablehlo.select %first, %a, %b : tensor<i1>, tensor<f32>
      %k = stablehlo.select %keeps, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %v, %k : tensor<f32>, tensor<i32>
    }
  return %y#0, %y#1 : tensor<?xf32>, tensor<?xi32> } }"""


def test_the_largest_element_and_the_first_of_its_places() -> None:
    program = compiled(ARGMAX)
    for columns in (1, 63, 64, 65, 1000):
        # Equal elements are in many lanes.
        x = np.random.default_rng(0).integers(-5, 5, (4, columns)).astype(np.float32)
        x[1, columns // 2] = np.nan
        at = np.broadcast_to(np.arange(columns, dtype=np.int32), x.shape).copy()
        found, places = program(x, at)
        np.testing.assert_array_equal(found, x.max(1))
        np.testing.assert_array_equal(places, x.argmax(1))


@pytest.mark.parametrize("dim", [0, 1])
def test_sums_of_f16_are_held_in_f32(dim: int) -> None:
    program = compiled(REDUCE.format(t="f16", op="add", start="0.0", dim=dim))
    x = np.ones((4100, 64) if dim == 0 else (64, 4100), np.float16)
    np.testing.assert_array_equal(program(x), np.full(64, 4100, np.float16))


@pytest.mark.parametrize("dim", [0, 1])
def test_a_maximum_keeps_nan_and_is_the_initial_value_of_nothing(dim: int) -> None:
    program = compiled(REDUCE.format(t="f32", op="maximum", start="0xFF800000", dim=dim))
    x = np.random.default_rng(0).standard_normal((70, 600)).astype(np.float32)
    x[3, 5] = np.nan
    np.testing.assert_array_equal(program(x), x.max(dim))
    empty = np.zeros((0, 4) if dim == 0 else (4, 0), np.float32)
    np.testing.assert_array_equal(program(empty), np.full(4, -np.inf, np.float32))


# ------------------------------------------------------------------------------------------ products of 16-bit floats

HALF_PRODUCTS = {
    "dot": """module @m {{ func.func public @main(%x: tensor<?x?x{t}>, %w: tensor<?x5x{t}>) -> tensor<?x5x{t}> {{
      %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x?x{t}>, tensor<?x5x{t}>) -> tensor<?x5x{t}>
      return %y : tensor<?x5x{t}> }} }}""",
    "dot to f32": """module @m {{ func.func public @main(%x: tensor<?x?x{t}>, %w: tensor<?x5x{t}>) -> tensor<?x5xf32> {{
      %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x?x{t}>, tensor<?x5x{t}>) -> tensor<?x5xf32>
      return %y : tensor<?x5xf32> }} }}""",
    "convolution": """module @m {{ func.func public @main(%x: tensor<?x?x{t}>, %w: tensor<?x5x{t}>) -> tensor<?x5x{t}> {{
      %b = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?x{t}>) -> tensor<i32>
      %k = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?x{t}>) -> tensor<i32>
      %r = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
      %s = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>
      %one = stablehlo.constant dense<1> : tensor<1xi32>
      %five = stablehlo.constant dense<5> : tensor<1xi32>
      %of_x = stablehlo.concatenate %r, %one, %s, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
      %of_w = stablehlo.concatenate %one, %s, %five, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
      %of_y = stablehlo.concatenate %r, %five, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %i = stablehlo.dynamic_reshape %x, %of_x : (tensor<?x?x{t}>, tensor<3xi32>) -> tensor<?x1x?x{t}>
      %f = stablehlo.dynamic_reshape %w, %of_w : (tensor<?x5x{t}>, tensor<3xi32>) -> tensor<1x?x5x{t}>
      %c = stablehlo.convolution(%i, %f) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : (tensor<?x1x?x{t}>, tensor<1x?x5x{t}>) -> tensor<?x1x5x{t}>
      %y = stablehlo.dynamic_reshape %c, %of_y : (tensor<?x1x5x{t}>, tensor<2xi32>) -> tensor<?x5x{t}>
      return %y : tensor<?x5x{t}> }} }}""",
}


@pytest.mark.parametrize("kind", HALF_PRODUCTS)
@pytest.mark.parametrize("name", ["bf16", "f16"])
def test_products_of_16_bits_are_summed_in_f32_and_rounded_once_without_python(kind: str, name: str) -> None:
    """The numbers are small integers: each order of the additions gives the same sum, which f32 holds exactly."""
    program, half = compiled(HALF_PRODUCTS[kind].format(t=name)), ml_dtypes.bfloat16 if name == "bf16" else np.float16
    rng = np.random.default_rng(0)
    for rows, terms in ((3, 700), (1, 1), (4, 0), (0, 3)):
        x, w = (rng.integers(-9, 10, shape).astype(half) for shape in ((rows, terms), (terms, 5)))
        exact = x.astype(np.float32) @ w.astype(np.float32)
        for _ in range(3):
            found = program(x, w)
            assert found.dtype == (np.float32 if kind == "dot to f32" else half)
            assert found.tobytes() == exact.astype(found.dtype).tobytes()


# -------------------------------------------------------------------------------------------------------------- elements

ELEMENT = """module @m {{ func.func public @main(%x: tensor<?x{t}>) -> tensor<?x{to}> {{
  %y = stablehlo.{op} %x : {types}
  return %y : tensor<?x{to}> }} }}"""


def unary(op: str, element: str = "f32") -> Program:
    return compiled(ELEMENT.format(op=op, t=element, to=element, types=f"tensor<?x{element}>"))


@pytest.mark.parametrize(
    ("op", "exact"),
    [("exponential", np.exp), ("log", np.log), ("exponential_minus_one", np.expm1), ("log_plus_one", np.log1p)],
)
def test_exp_and_log_are_within_two_units_of_the_last_place(op: str, exact: Any) -> None:
    x = np.arange(0, 1 << 32, 4099, dtype=np.uint64).astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        wanted = exact(x.astype(np.float64))
        rounded = wanted.astype(np.float32)
        unit = np.spacing(np.abs(rounded)).astype(np.float64)
    found = unary(op)(x)
    special = ~np.isfinite(rounded)
    if op == "exponential":  # subnormal values are zero: a CPU takes a hundred times as long with them
        below = rounded < np.finfo(np.float32).smallest_normal
        assert not found[below].any()
        special |= below
        rounded[below] = 0
    np.testing.assert_array_equal(found[special], rounded[special])
    assert (np.abs(found[~special] - wanted[~special]) / unit[~special]).max() <= 2


@pytest.mark.parametrize("element", ["bf16", "f16"])
def test_tanh_of_halves(element: str) -> None:
    """Of all values: it is computed in f32, whose error is far below half a unit of theirs."""
    held = np.dtype(ml_dtypes.bfloat16 if element == "bf16" else np.float16)
    x = np.arange(1 << 16, dtype=np.uint16).view(held)
    with np.errstate(invalid="ignore"):
        wanted = np.tanh(x.astype(np.float64)).astype(np.float32).astype(held)
    np.testing.assert_array_equal(unary("tanh", element)(x).astype(np.float32), wanted.astype(np.float32))


EXTREMA = [("bf16", "maximum", 0), ("f16", "maximum", 1), ("f16", "minimum", 0), ("bf16", "minimum", 1)]


@pytest.mark.parametrize(("element", "op", "axis"), EXTREMA)
def test_extrema_of_halves(element: str, op: str, axis: int) -> None:
    """Of all values, in rows and columns with NaN and without; partial results are f32."""
    start = "0xFF80" if element == "bf16" else "0xFC00"
    start = start if op == "maximum" else start.replace("F", "7", 1)
    text = f"""module @m {{ func.func public @main(%x: tensor<?x?x{element}>) -> tensor<?x{element}> {{
      %c = stablehlo.constant dense<{start}> : tensor<{element}>
      %y = stablehlo.reduce(%x init: %c) applies stablehlo.{op} across dimensions = [{axis}]
        : (tensor<?x?x{element}>, tensor<{element}>) -> tensor<?x{element}>
      return %y : tensor<?x{element}> }} }}"""
    program, held = compiled(text), np.dtype(ml_dtypes.bfloat16 if element == "bf16" else np.float16)
    for x in (
        np.arange(1 << 16, dtype=np.uint16),
        np.random.default_rng(0).permutation(1 << 16)[:6144].astype(np.uint16),
    ):
        array = x.view(held).reshape(-1, 96 if x.size == 6144 else 256)
        wide = array.astype(np.float32)
        np.testing.assert_array_equal(program(array).astype(np.float32), getattr(wide, op[:3])(axis=axis))


# --------------------------------------------------------------------------------------------------------------- choices


def by_environment() -> Program:
    text = ELEMENT.format(op="negate", t="f32", to="f32", types="tensor<?xf32>")
    return compile_program(parse_stablehlo(text, "<test>"), CompileOptions(record="none"))


def test_numpy_computes_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CPU, "numpy")
    program = by_environment()
    assert program(np.ones(3, np.float32)).tolist() == [-1, -1, -1]
    assert program.compilation.cpu.name == "numpy"


def test_numpy_computes_where_llvmlite_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CPU, "auto")
    monkeypatch.setattr("xla_emitters.pipelines.cpu_lowering.is_installed", lambda: False)
    program = by_environment()
    with pytest.warns(UserWarning, match=r"llvmlite is not installed: NumPy computes .* pip install"):
        assert program(np.ones(3, np.float32)).tolist() == [-1, -1, -1]
    assert (program.compilation.cpu.name, program.compilation.cpu.reason) == ("numpy", "llvmlite is not installed")


def test_another_way_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CPU, "gcc")
    with pytest.raises(UsageError, match="XLA_EMITTERS_CPU is 'gcc'"):
        by_environment()(np.ones(3, np.float32))
