"""Real functions: within a few units of the exact value, the same in every spelling, the same for one lane and for many."""

import math

import ml_dtypes
import numpy as np
import pytest
from unit.runtime.simt.kernels import per_thread
from xdsl.dialects.builtin import f32, f64

from xla_emitters.runtime.simt.math_rules import FUNCTIONS, erf, erfc, function, libdevice
from xla_emitters.runtime.simt.scalars import form_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# math op, libdevice's stem, the exact function, an interval of its domain
UNARY = [
    ("acos", "acos", math.acos, (-1, 1)),
    ("acosh", "acosh", math.acosh, (1, 50)),
    ("asin", "asin", math.asin, (-1, 1)),
    ("asinh", "asinh", math.asinh, (-50, 50)),
    ("atan", "atan", math.atan, (-50, 50)),
    ("atanh", "atanh", math.atanh, (-0.999, 0.999)),
    ("cbrt", "cbrt", math.cbrt, (-50, 50)),
    ("ceil", "ceil", math.ceil, (-50, 50)),
    ("cos", "cos", math.cos, (-3, 3)),
    ("cosh", "cosh", math.cosh, (-20, 20)),
    ("erf", "erf", math.erf, (-7, 7)),
    ("exp", "exp", math.exp, (-80, 80)),
    ("exp2", "exp2", math.exp2, (-100, 100)),
    ("expm1", "expm1", math.expm1, (-10, 10)),
    ("floor", "floor", math.floor, (-50, 50)),
    ("log", "log", math.log, (1e-3, 50)),
    ("log10", "log10", math.log10, (1e-3, 50)),
    ("log1p", "log1p", math.log1p, (-0.9, 50)),
    ("log2", "log2", math.log2, (1e-3, 50)),
    ("round", "round", lambda x: math.copysign(math.floor(abs(x) + 0.5), x), (-50, 50)),
    ("roundeven", "rint", round, (-50, 50)),
    ("rsqrt", "rsqrt", lambda x: 1 / math.sqrt(x), (1e-3, 50)),
    ("sin", "sin", math.sin, (-3, 3)),
    ("sinh", "sinh", math.sinh, (-20, 20)),
    ("sqrt", "sqrt", math.sqrt, (0, 50)),
    ("tan", "tan", math.tan, (-1.5, 1.5)),
    ("tanh", "tanh", math.tanh, (-10, 10)),
    ("trunc", "trunc", math.trunc, (-50, 50)),
    ("absf", "fabs", abs, (-50, 50)),
]


def points(interval, numpy_type, count=500):
    low, high = interval
    grid = np.linspace(low, high, count // 2)
    near_zero = np.geomspace(1e-6, 1, count // 2 - 1) * min(1, max(abs(low), abs(high)))
    values = np.concatenate([grid, near_zero[(near_zero >= low) & (near_zero <= high)], [low]])
    return np.clip(values.astype(numpy_type), numpy_type(low), numpy_type(high))


@pytest.mark.parametrize(("name", "stem", "exact", "interval"), UNARY, ids=[row[0] for row in UNARY])
@pytest.mark.parametrize(("ir_type", "numpy_type"), [("f32", np.float32), ("f64", np.float64)])
def test_unary_functions_are_close_and_equal_libdevice(name, stem, exact, interval, ir_type, numpy_type):
    x = points(interval, numpy_type)
    got = per_thread(f"%r = math.{name} %a : {ir_type}", ir_type, a=(ir_type, x))
    wanted = np.array([exact(float(value)) for value in x])
    ulp = np.spacing(np.abs(wanted).astype(numpy_type)).astype(np.float64)
    # The tolerances of the HLO ops: 6 ulp in f32, 4 in f64.
    assert np.max(np.abs(got.astype(np.float64) - wanted) / ulp) <= (6 if ir_type == "f32" else 4)
    callee = f"__nv_{stem}{'f' if ir_type == 'f32' else ''}"
    called = per_thread(
        f"%r = llvm.call @{callee}(%a) : ({ir_type}) -> {ir_type}",
        ir_type,
        declarations=f"llvm.func @{callee}({ir_type}) -> {ir_type}",
        a=(ir_type, x),
    )
    np.testing.assert_array_equal(called.view(np.uint8), got.view(np.uint8))


@pytest.mark.parametrize("name", ["tanh", "exp", "log1p", "sqrt", "erf"])
@pytest.mark.parametrize("ir_type", ["bf16", "f16"])
def test_narrow_floats_go_through_f32_as_libdevice_does(name, ir_type):
    x = points((0, 10), np.float32)
    got = per_thread(f"%r = math.{name} %a : {ir_type}", ir_type, a=(ir_type, x))
    called = per_thread(
        f"""
        %w = llvm.fpext %a : {ir_type} to f32
        %c = llvm.call @__nv_{name}f(%w) : (f32) -> f32
        %r = llvm.fptrunc %c : f32 to {ir_type}""",
        ir_type,
        declarations=f"llvm.func @__nv_{name}f(f32) -> f32",
        a=(ir_type, x),
    )
    np.testing.assert_array_equal(called.view(np.uint16), got.view(np.uint16))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@pytest.mark.parametrize(
    ("form", "numpy_type"), [(form_of(f32), np.float32), (form_of(f64), np.float64)], ids=["f32", "f64"]
)
def test_one_lane_and_many_give_the_same_bits(name, form, numpy_type):
    """A value that is the same for all threads is computed once; it must not differ from computing it for each."""
    rng = np.random.default_rng(5)
    x = rng.uniform(0.1, 0.9, (7, 37)).astype(numpy_type)
    operands = {"atan2": 2, "copysign": 2, "fmax": 2, "fmin": 2, "fmod": 2, "pow": 2, "powi": 2}.get(name, 1)
    if name == "acosh":
        x = x + numpy_type(1)
    run = function(form, name)
    whole = run(*[x] * operands)
    strided = run(*[np.repeat(x, 3, axis=1)[:, ::3]] * operands)
    np.testing.assert_array_equal(strided, whole)
    for row in range(0, 7, 3):
        for column in range(37):
            np.testing.assert_array_equal(
                run(*[x[row : row + 1, column : column + 1]] * operands)[0, 0], whole[row, column]
            )


@pytest.mark.parametrize("numpy_type", [np.float32, np.float64])
def test_erf_everywhere(numpy_type):
    x = np.concatenate([np.geomspace(1e-30, 7, 4001), np.linspace(0, 6.5, 4001), [0.0, 1e30, np.inf]]).astype(
        numpy_type
    )
    x = np.concatenate([x, -x]).reshape(1, -1)
    wanted = np.array([math.erf(float(value)) for value in x[0]])
    got = erf(x)[0].astype(np.float64)
    assert np.max(np.abs(got - wanted) / np.spacing(np.abs(wanted).astype(numpy_type)).astype(np.float64)) <= 2
    assert np.isnan(erf(np.array([[np.nan]], numpy_type))[0, 0])
    assert np.signbit(erf(np.array([[-0.0]], numpy_type))[0, 0])


@pytest.mark.parametrize(("numpy_type", "last", "ulps"), [(np.float32, 9.0, 2), (np.float64, 26.0, 6)])
def test_erfc_everywhere(numpy_type, last, ulps):
    """Down to where results stop being normal numbers."""
    x = np.concatenate([-np.geomspace(1e-30, 7, 4001), np.linspace(0, last, 8001), [-np.inf, -0.0]]).astype(numpy_type)
    wanted = np.array([math.erfc(float(value)) for value in x])
    got = erfc(x.reshape(1, -1))[0].astype(np.float64)
    assert np.max(np.abs(got - wanted) / np.spacing(wanted.astype(numpy_type)).astype(np.float64)) <= ulps
    assert erfc(np.array([[30.0, np.inf]], numpy_type)).tolist() == [[0.0, 0.0]]
    assert np.isnan(erfc(np.array([[np.nan]], numpy_type))[0, 0])


def test_rounding_halves():
    x = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, -0.49999997, 8388609.0, -0.0, 4503599627370497.0], np.float32)
    away = per_thread("%r = math.round %a : f32", "f32", a=("f32", x))
    assert away.tolist() == [1, -1, 2, 3, -3, 0, 0, 8388609, 0, 4503599627370496]
    assert np.signbit(away).tolist() == np.signbit(x).tolist()
    even = per_thread("%r = math.roundeven %a : f32", "f32", a=("f32", x))
    assert even.tolist() == [0, 0, 2, 2, -2, 0, 0, 8388609, 0, 4503599627370496]


def test_binary_and_ternary_functions():
    a = np.array([1.0, -1.0, 2.0, 0.0, 3.5], np.float32)
    b = np.array([2.0, 0.5, -1.5, -0.0, 2.0], np.float32)
    for name, exact in {"atan2": np.arctan2, "powf": np.power, "copysign": np.copysign}.items():
        got = per_thread(f"%r = math.{name} %a, %b : f32", "f32", a=("f32", a), b=("f32", b))
        np.testing.assert_allclose(got, exact(a.astype(np.float64), b.astype(np.float64)).astype(np.float32), rtol=3e-7)
    third = -(a * b) + np.float32(2**-30)
    got = per_thread("%r = math.fma %a, %b, %c : f32", "f32", a=("f32", a), b=("f32", b), c=("f32", third))
    exact = a.astype(np.float64) * b.astype(np.float64) + third.astype(np.float64)
    np.testing.assert_array_equal(got, exact.astype(np.float32))


def test_integer_functions_of_math():
    values = np.array([0, 1, -1, 2**31 - 1, -(2**31), 4096], np.int32)
    digits = [format(int(v) % 2**32, "032b") for v in values]
    assert per_thread("%r = math.ctlz %a : i32", "i32", a=("i32", values)).tolist() == [
        len(d) - len(d.lstrip("0")) for d in digits
    ]
    assert per_thread("%r = math.ctpop %a : i32", "i32", a=("i32", values)).tolist() == [d.count("1") for d in digits]
    assert per_thread("%r = math.absi %a : i32", "i32", a=("i32", values)).tolist() == [
        0,
        1,
        1,
        2**31 - 1,
        -(2**31),
        4096,
    ]


def test_only_libdevice_names_are_libdevice():
    assert libdevice("tanhf") is None
    assert libdevice("__nv_nothing") is None
    assert libdevice("__nv_fast_expf") is not None


FLOAT_TYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64}


@pytest.mark.parametrize("ir_type", FLOAT_TYPES)
def test_kinds_of_floats(ir_type: str):
    """Every kind of number; bit patterns say what is normal."""
    numpy_type = np.dtype(FLOAT_TYPES[ir_type])
    info = ml_dtypes.finfo(numpy_type)
    values = np.array(
        [0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, info.smallest_normal, info.smallest_subnormal, -info.max],
        numpy_type,
    )
    wanted = {
        "isnan": [6],
        "isinf": [4, 5],
        "isfinite": [0, 1, 2, 3, 7, 8, 9],
        "isnormal": [2, 3, 7, 9],
    }
    for name, places in wanted.items():
        got = per_thread(f"%r = math.{name} %a : {ir_type}", "i1", a=(ir_type, values))
        assert np.flatnonzero(got).tolist() == places, name


def test_clamp_keeps_nan():
    values = np.array([-3, -1, 0.5, 2, np.inf, -np.inf, np.nan], np.float32)
    ops = """
    %low = arith.constant -1.0 : f32
    %high = arith.constant 1.0 : f32
    %r = math.clampf %a to [%low, %high] : f32"""
    np.testing.assert_array_equal(per_thread(ops, "f32", a=("f32", values)), np.clip(values, -1, 1))


def test_sine_and_cosine_at_once():
    values = np.linspace(-20, 20, 200, dtype=np.float32)
    for line in ("%r, %c = math.sincos %a : f32", "%s, %r = math.sincos %a : f32"):
        name = "sin" if line.startswith("%r") else "cos"
        alone = per_thread(f"%r = math.{name} %a : f32", "f32", a=("f32", values))
        np.testing.assert_array_equal(per_thread(line, "f32", a=("f32", values)), alone)
    ops = """
    %v = vector.from_elements %a, %b : vector<2xf32>
    %s, %c = math.sincos %v : vector<2xf32>
    %r = vector.extract %c[1] : f32 from vector<2xf32>"""
    got = per_thread(ops, "f32", a=("f32", -values), b=("f32", values))
    np.testing.assert_array_equal(got, per_thread("%r = math.cos %a : f32", "f32", a=("f32", values)))


def test_the_complementary_error_function():
    values = np.linspace(-5, 9, 300, dtype=np.float32)
    got = per_thread("%r = math.erfc %a : f32", "f32", a=("f32", values))
    wanted = np.array([math.erfc(float(x)) for x in values])
    assert np.all(np.abs(got - wanted) <= np.maximum(wanted * 2.0**-24 * 1.01, np.finfo(np.float32).smallest_subnormal))
