"""Bounds of reductions in any order: they admit the results of threads, and reject sums that miss an element."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.dtypes import Array, dtype
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference_bounds import evaluate_bounds
from xla_emitters.runtime.reference.tolerance import Bounds
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.text.stablehlo import parse_stablehlo

ROW = 4096


def bounds(body: str, init: str, array: Array, element: str = "f32", before: str = "copy(p)") -> Bounds:
    """Of a reduction of rows of `array`."""
    text = f"""
      combine {{ a = {element}[] parameter(0)
                b = {element}[] parameter(1)
                {body} }}
      ENTRY f {{ p = {element}[{len(array)},{array.shape[1]}] parameter(0)
                q = {element}[{len(array)},{array.shape[1]}] {before}
                z = {element}[] constant({init})
                ROOT r = {element}[{len(array)}] reduce(q, z), dimensions={{1}}, to_apply=combine }}"""
    entry = entry_of(parse_hlo(text, "x.hlo"))
    (found,) = evaluate_bounds(entry, [array])
    return found


def rows(element: str, count: int = 4, length: int = ROW, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, length), dtype=np.float32).astype(dtype(element).numpy)


def pairwise(array: Array, combine: np.ufunc = np.add) -> Array:
    """Sums as threads do them: halves added to each other, each sum rounded."""
    while array.shape[1] > 1:
        half = array.shape[1] // 2
        array = combine(array[:, :half], array[:, half:]).astype(array.dtype)
    return array[:, 0]


@pytest.mark.parametrize("element", ["f32", "f64", "f16", "bf16"])
def test_a_sum_in_another_order_is_admitted(element: str):
    array = rows(element)
    found = bounds(f"ROOT s = {element}[] add(a, b)", "0", array, element)
    assert found.admits(pairwise(array)).all()
    assert found.admits(pairwise(array[:, ::-1])).all()


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_a_sum_without_one_element_is_not(element: str):
    array = rows(element)
    found = bounds(f"ROOT s = {element}[] add(a, b)", "0", array, element)
    at = np.argmax(abs(array), axis=1)
    missing = array.copy()
    missing[np.arange(len(array)), at] = 0
    assert not found.admits(pairwise(missing)).any()


def test_an_initial_value_counts_once():
    array = rows("f32")
    found = bounds("ROOT s = f32[] add(a, b)", "7", array)
    assert found.admits(pairwise(array) + np.float32(7)).all()
    assert not found.admits(pairwise(array)).any()
    assert not found.admits(pairwise(array) + np.float32(14)).any()


def test_what_is_chosen_is_exact():
    array = rows("f32")
    found = bounds("ROOT m = f32[] maximum(a, b)", "-inf", array)
    assert np.array_equal(found.low, array.max(axis=1))
    assert np.array_equal(found.high, array.max(axis=1))


def test_bounds_of_the_elements_go_into_the_sum():
    """tanh may be off by 6 ulp each."""
    array = rows("f32")
    exact = bounds("ROOT s = f32[] add(a, b)", "0", np.tanh(array))
    found = bounds("ROOT s = f32[] add(a, b)", "0", array, before="tanh(p)")
    assert (found.low < exact.low).all()
    assert (found.high > exact.high).all()


def test_a_product_is_relative():
    array = np.where(rows("f32", 4, 64) > 0, np.float32(1.25), np.float32(0.8))
    found = bounds("ROOT s = f32[] multiply(a, b)", "1", array)
    exact = array.astype(np.float64).prod(axis=1)
    assert found.admits(exact.astype(np.float32)).all()
    assert not found.admits((exact * 1.001).astype(np.float32)).any()


@pytest.mark.parametrize("element", ["f32", "c64"])
def test_each_rounding_of_a_tree_of_products_counts(element: str):
    """Equal factors round alike: every multiplication of a level takes the product by the same amount, however few levels there are."""
    factors = np.array([1.0001, 1.00037, 0.9997, 1.00013], np.float32)
    array = np.repeat(factors[:, None], ROW, axis=1).astype(dtype(element).numpy)
    found = bounds(f"ROOT s = {element}[] multiply(a, b)", "(1, 0)" if element == "c64" else "1", array, element)
    assert found.admits(pairwise(array, np.multiply)).all()


def test_infinity_and_nan_stay_what_they_are():
    array = rows("f32", 3)
    array[0, 5], array[1, 7], array[2, 9], array[2, 11] = np.inf, np.nan, np.inf, -np.inf
    found = bounds("ROOT s = f32[] add(a, b)", "0", array)
    assert found.admits(np.array([np.inf, np.nan, np.nan], np.float32)).all()
    assert not found.admits(np.array([1, 1, np.inf], np.float32)).any()


def test_where_a_part_may_overflow_anything_goes():
    array = np.array([[3e38, 3e38, -3e38, -3e38] * 16], np.float32)
    found = bounds("ROOT s = f32[] add(a, b)", "0", array)
    assert found.admits(np.array([np.inf], np.float32)).all()
    assert found.admits(np.array([0], np.float32)).all()


@pytest.mark.parametrize("element", ["f8e4m3fn", "f8e4m3fnuz", "f8e4m3b11fnuz"])
def test_without_an_infinity_what_may_overflow_may_be_nan(element: str):
    """Beyond the last number of these types there is NaN; two threads that share it may meet below."""
    finfo: Any = ml_dtypes.finfo
    largest = float(finfo(dtype(element).numpy).max)
    array = np.array([[largest, largest, -largest, -largest] * 16, [0.125, -0.125, 0, 0] * 16], dtype(element).numpy)
    found = bounds(f"ROOT s = {element}[] add(a, b)", "0", array, element)
    for value, wanted in ((0, [True, True]), (largest, [True, False]), (np.nan, [True, False])):
        assert found.admits(np.array([value, value], array.dtype)).tolist() == wanted


def complex_rows(length: int = 64) -> Array:
    rng = np.random.default_rng(0)
    return np.exp(1j * rng.uniform(0, 2 * np.pi, (4, length))).astype(np.complex64)


def test_a_zero_among_finite_factors_makes_zero():
    """Also where the others are beyond what even twice the precision holds: some orders overflow first, the reference's does not."""
    array = np.full((2, 2000), 12, np.float16)
    found = bounds("ROOT s = f16[] multiply(a, b)", "-0.0", array, "f16")
    assert found.admits(np.array([0.0, -0.0], np.float16)).all()


def test_a_complex_product_in_another_order_is_admitted():
    array = complex_rows()
    found = bounds("ROOT s = c64[] multiply(a, b)", "(1, 0)", array, "c64")
    halves = array
    while halves.shape[1] > 1:
        halves = halves[:, ::2] * halves[:, 1::2]
    assert found.admits(halves[:, 0]).all()
    assert not found.admits(halves[:, 0] * np.complex64(1 + 1e-3j)).any()
    array[0, 3], array[1, 3] = np.inf, 1e38
    array[1, 4] = 1e38
    found = bounds("ROOT s = c64[] multiply(a, b)", "(1, 0)", array, "c64")
    assert found.admits(np.full(4, np.nan, np.complex64)).tolist() == [True, True, False, False]


def test_a_complex_body_of_its_own_is_known_to_some_ulps():
    array = 0.01 * np.abs(np.real(complex_rows())).astype(np.complex64) * np.complex64(1 + 0.1j)
    found = bounds("c = c64[] multiply(a, b)\n t = c64[] add(a, b)\n ROOT s = c64[] add(c, t)", "(0, 0)", array, "c64")
    value = np.zeros(4, np.complex64)
    for column in array.T:
        value = value * column + (value + column)
    assert found.admits(value).all()
    assert not found.admits(value * np.complex64(1 + 1e-3j)).any()


def test_each_result_of_several_has_its_own_rule():
    """A sum beside a maximum; element by element, in the reference's order, it would be exact."""
    text = """
      combine { a = f32[] parameter(0)
                c = f32[] parameter(1)
                b = f32[] parameter(2)
                d = f32[] parameter(3)
                s = f32[] add(a, b)
                m = f32[] maximum(c, d)
                ROOT t = (f32[], f32[]) tuple(s, m) }
      ENTRY f { p = f32[4,LENGTH] parameter(0)
                z = f32[] constant(0)
                l = f32[] constant(-inf)
                ROOT r = (f32[4], f32[4]) reduce(p, p, z, l), dimensions={1}, to_apply=combine }"""
    for length, is_shared in ((64, True), (7, False)):
        module = parse_hlo(text.replace("LENGTH", str(length)), "x.hlo")
        entry = entry_of(module)
        array = rows("f32", 4, length)
        total, most = evaluate_bounds(entry, [array])
        assert bool((total.low < total.high).all()) == is_shared
        assert np.array_equal(most.low, array.max(axis=1))
        assert np.array_equal(most.high, array.max(axis=1))


def test_a_weighted_mean_cancels():
    """Half of the elements are near 1, half near -1: a rounding is an ulp of these, not of the mean."""
    text = """
      combine { a = f32[] parameter(0)
                n = f32[] parameter(1)
                b = f32[] parameter(2)
                m = f32[] parameter(3)
                c = f32[] add(n, m)
                x = f32[] multiply(a, n)
                y = f32[] multiply(b, m)
                s = f32[] add(x, y)
                q = f32[] divide(s, c)
                ROOT t = (f32[], f32[]) tuple(q, c) }
      ENTRY f { p = f32[4,64] parameter(0)
                w = f32[4,64] parameter(1)
                z = f32[] constant(0)
                ROOT r = (f32[4], f32[4]) reduce(p, w, z, z), dimensions={1}, to_apply=combine }"""
    entry = entry_of(parse_hlo(text, "x.hlo"))
    array = rows("f32", 4, 64) / 64 + np.where(np.arange(64) % 2, 1, -1).astype(np.float32)
    mean, _ = evaluate_bounds(entry, [array, np.ones_like(array)])
    means = pairwise(array) / np.float32(64)
    assert mean.admits(means).all()
    assert not mean.admits(means + np.float32(1e-4)).any()


def test_what_overflows_on_the_way_may_be_nan_in_another_order():
    """inf + (-3e38 - 3e38) is inf from left to right; where two threads share it, inf - inf. Where nothing overflows, it is inf."""
    some = np.array([[np.inf, 1, -3e38, -3e38], [np.inf, 1, -3e38, 3], [np.nan, 1, 3e38, 3e38]], np.float32)
    array = np.tile(some, (1, 64))
    array[:, 4:] = 0
    found = bounds("ROOT s = f32[] add(a, b)", "0", array)
    assert found.admits(np.array([np.nan, np.nan, np.nan], np.float32)).tolist() == [True, False, True]
    assert found.admits(np.array([np.inf, np.inf, np.inf], np.float32)).tolist() == [True, True, False]


def test_what_vanishes_on_the_way_may_be_nan_in_another_order():
    """inf * (1e-30 * 1e-30) is inf from left to right, and inf * 0 where two threads share it."""
    array = np.ones((2, 256), np.float32)
    array[:, 0] = np.inf
    array[0, 1:3] = 1e-30
    found = bounds("ROOT s = f32[] multiply(a, b)", "1", array)
    assert found.admits(np.array([np.nan, np.nan], np.float32)).tolist() == [True, False]
    assert found.admits(np.array([np.inf, np.inf], np.float32)).tolist() == [True, True]


def test_windows_of_holes_only_hold_the_initial_value():
    text = """
      combine { a = f32[] parameter(0)
                b = f32[] parameter(1)
                ROOT s = f32[] add(a, b) }
      ENTRY f { p = f32[2,4] parameter(0)
                z = f32[] constant(0.5)
                ROOT r = f32[1,2] reduce-window(p, z), to_apply=combine,
                  window={size=2x2 stride=1x2 pad=0_0x-1_0 lhs_dilate=1x2 rhs_dilate=1x2} }"""
    entry = entry_of(parse_hlo(text, "x.hlo"))
    (found,) = evaluate_bounds(entry, [np.ones((2, 4), np.float32)])
    assert [end.tolist() for end in found.ends] == [[[0.5, 0.5]]] * 2


def test_a_body_whose_functions_have_errors_of_their_own_has_no_single_value() -> None:
    """A cumulative log-sum-exp of known numbers, with functions that are wrong by 2 ulp, as libdevice's `expf` and `log1pf` may be."""
    text = """HloModule m
body { p = f32[] parameter(0)
  q = f32[] parameter(1)
  m = f32[] maximum(p, q)
  s = f32[] subtract(p, q)
  a = f32[] abs(s)
  n = f32[] negate(a)
  e = f32[] exponential(n)
  l = f32[] log-plus-one(e)
  ROOT r = f32[] add(m, l) }
ENTRY e { x = f32[8,16] parameter(0)
  z = f32[] constant(-inf)
  ROOT w = f32[8,16] reduce-window(x, z), window={size=1x16 pad=0_0x15_0}, to_apply=body }"""
    x = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
    (bounds,) = evaluate_bounds(entry_of(parse_hlo(text, "m")), [x])

    def off(value: Any, ulps: int) -> Any:
        return (value + ulps * np.spacing(value)).astype(np.float32)

    for ulps in (-2, 0, 2):
        carried = x[:, :1]
        for column in range(16):
            if column:
                of_exp = off(np.exp(-np.abs(carried - x[:, column : column + 1])), ulps)
                carried = np.maximum(carried, x[:, column : column + 1]) + off(np.log1p(of_exp), ulps)
            assert (bounds.low[:, column : column + 1] <= carried).all()
            assert (carried <= bounds.high[:, column : column + 1]).all()
    assert bounds.low[0, 15] < bounds.high[0, 15]


TREE = """HloModule m
body {{ p = {t}[] parameter(0)
  q = {t}[] parameter(1)
  ROOT r = {t}[] {op}(p, q) }}
f {{ x = {t}[4,256] parameter(0)
  z = {t}[] constant({z})
  b = {t}[4,16,16] bitcast(x)
  w = {t}[4,16,16] reduce-window(b, z), window={{size=1x1x16 pad=0_0x0_0x15_0}}, to_apply=body
  l = {t}[4,16,1] slice(w), slice={{[0:4], [0:16], [15:16]}}
  m = {t}[4,16] bitcast(l)
  u = {t}[4,17] reduce-window(m, z), window={{size=1x16 pad=0_0x16_0}}, to_apply=body
  e = {t}[4,16] slice(u), slice={{[0:4], [0:16]}}
  c = {t}[4,16,16] broadcast(e), dimensions={{0,1}}
  s = {t}[4,16,16] {op}(w, c)
  ROOT r = {t}[4,256] bitcast(s) }}
ENTRY g {{ x = {t}[4,256] parameter(0)
  ROOT r = {t}[4,256] fusion(x), kind=kLoop, calls=f }}"""


def doubling(array: Array, combine: np.ufunc) -> Array:
    """A scan in log2(n) steps, each rounded: D. Hillis, G. Steele, "Data parallel algorithms"."""
    found, apart = array.copy(), 1
    while apart < array.shape[1]:
        found[:, apart:] = combine(found[:, :-apart], found[:, apart:]).astype(array.dtype)
        apart *= 2
    return found


@pytest.mark.parametrize(
    ("element", "op", "combine", "z"),
    [("f32", "add", np.add, "0"), ("bf16", "add", np.add, "0"), ("f32", "multiply", np.multiply, "1")],
)
def test_a_tree_that_a_kernel_scans_admits_its_order_and_no_missing_element(
    element: str, op: str, combine: np.ufunc, z: str
) -> None:
    x = rows(element, length=256)
    x = (1 + x / 64).astype(x.dtype) if op == "multiply" else x
    x[0, 100] = 64.0  # more than sixteen roundings of bf16 are of the row's sum
    entry = entry_of(parse_hlo(TREE.format(t=element, op=op, z=z), "m"))
    scanned = doubling(x, combine)
    (found,) = evaluate_bounds(entry, [x], row_chains={"f": 10})
    assert found.admits(scanned).all()
    (in_order,) = evaluate_bounds(entry, [x])
    assert not in_order.admits(scanned).all()
    less = x.copy()
    less[0, 100] = float(z)
    assert not found.admits(doubling(less, combine))[0, 100:].any()
    late = np.concatenate([scanned[:, :1], scanned[:, :-1]], 1)
    assert not found.admits(late).all()


RUNNING = """
func.func @combine(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {{
  %r = stablehlo.{op} %a, %b : tensor<f32>
  return %r : tensor<f32> }}
func.func public @main(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {{
  %z = stablehlo.constant dense<{z}.0> : tensor<f32>
  %size = stablehlo.constant dense<[1, 16]> : tensor<2xi32>
  %one = stablehlo.constant dense<1> : tensor<2xi32>
  %pad = stablehlo.constant dense<[[0, 0], [15, 0]]> : tensor<2x2xi32>
  %r = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %z, %size, %one, %one, %one, %pad)
    {{api_version = 2 : i32, called_computations = [@combine]}} :
    (tensor<4x16xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2x2xi32>) -> tensor<4x16xf32>
  return %r : tensor<4x16xf32> }}"""


@pytest.mark.parametrize(("op", "combine", "z"), [("add", np.add, 0), ("multiply", np.multiply, 1)])
def test_a_window_that_data_hold_has_the_bounds_of_a_static_one(op: str, combine: np.ufunc, z: int) -> None:
    """A running sum of a program: its kernel scans a row by lanes, a warp or a block."""
    entry = entry_of(parse_stablehlo(RUNNING.format(op=op, z=z), "running.mlir"))
    x = rows("f32", length=16)
    scanned = doubling(x, combine)
    (found,) = evaluate_bounds(entry, [x], any_order=True)
    (in_order,) = evaluate_bounds(entry, [x])
    assert (in_order.low == combine.accumulate(x, 1)).all()
    assert not in_order.admits(scanned).all()
    assert found.admits(scanned).all()
    assert not found.admits(doubling(np.where(np.arange(16) == 3, np.float32(z), x), combine)).all()
