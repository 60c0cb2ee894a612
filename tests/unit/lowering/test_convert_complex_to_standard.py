"""Complex arithmetic written out, against NumPy in more digits: c64 against complex128, c128 against long double.

Numbers are pairs of edge values (zeros, tiny, near 1, large, on the axes), and random ones near the points where a careless formula
loses its digits: zeros and poles of the functions, 1 and -1.
"""

import numpy as np
import pytest
from unit.runtime.simt.kernels import THREADS, kernel

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.dtypes import Array
from xla_emitters.lowering.convert_complex_to_standard import ConvertComplexToStandardPass
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.runtime.simt import execute

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

PARTS = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
WIDE = {"f32": np.dtype(np.complex128), "f64": np.dtype(np.clongdouble)}
EPS_OF_MODULUS = 3
"""Units of the modulus that an answer may be off; design: 16."""


def from_parts(real: Array, imaginary: Array, dtype: np.dtype) -> Array:
    made = np.empty(np.broadcast_shapes(real.shape, imaginary.shape), dtype)
    made.real, made.imag = real, imaginary
    return made


def numbers(part: str, *more: float) -> Array:
    """Every pair of edge values, and numbers near some points; `more` are edge values too."""
    info = np.finfo(PARTS[part])
    tiny = float(info.tiny)
    edges = [0, 8 * tiny, 1e-30, 1e-8, 1e-4, 0.25, 0.5, 0.7, 0.9999, 1, 1 + 8 * float(info.eps), 1.5, np.pi / 2]
    edges += [2, 3, 5, 9, 20, 40, 60, 80, 88.5, 1e3, 1e10, 1e30, float(info.max) / 4]
    edges += [300, 700, 709.5, 1e150, 1e300] if part == "f64" else []
    signed = np.array([*edges, *(-edge for edge in edges), *more], PARTS[part])
    complex_type = np.result_type(PARTS[part], np.complex64)
    pairs = from_parts(signed[:, None], signed[None, :], complex_type).reshape(-1)
    draw = np.random.default_rng(0)
    points = (0, 1, -1, 1j, -1j, np.pi / 2, 1j * np.pi / 2, -2, 3 + 4j)
    near = [
        point + distance * (draw.normal(size=60) + 1j * draw.normal(size=60))
        for point in points
        for distance in (1e-6, 1e-3, 0.1, 1)
    ]
    return np.concatenate([pairs, np.concatenate(near).astype(complex_type)])


def run(ops: str, part: str, *operands: Array, result: str = "") -> Array:
    """%r of `ops` on %a and %b after the pass, element by element."""
    type = f"complex<{part}>"
    size = operands[0].size
    padded = -(-size // THREADS) * THREADS
    names = "ab"[: len(operands)]
    module = kernel(ops, result or type, dict.fromkeys(names, type), size, THREADS)
    ConvertComplexToStandardPass().apply(make_context(), module)
    module.verify()
    text = print_ir(module)
    left = {word for word in text.split() if word.startswith("complex.")}
    assert left <= {"complex.create", "complex.re", "complex.im"}
    out = np.zeros(padded, {"f32": np.float32, "f64": np.float64, "i1": np.bool_}.get(result, operands[0].dtype))
    execute(module, [*(np.resize(operand, padded) for operand in operands), out])
    return out[:size]


def unary(name: str, part: str, z: Array) -> Array:
    is_real = name in ("abs", "angle")
    return run(f"%r = complex.{name} %a : complex<{part}>", part, z, result=part if is_real else "")


# Definitions that lose nothing in the wide type.


def log(z: Array) -> Array:
    x, y = np.abs(z.real), np.abs(z.imag)
    large, small, size = np.maximum(x, y), np.minimum(x, y), np.hypot(x, y)
    near = np.log1p((large - 1) * (large + 1) + small * small) / 2
    return from_parts(np.where((large > 0.5) & (large < 2), near, np.log(size)), np.arctan2(z.imag, z.real), z.dtype)


def log1p(z: Array) -> Array:
    x, y = z.real, z.imag
    size = np.hypot(1 + x, y)
    near = np.log1p(x * (x + 2) + y * y) / 2
    return from_parts(np.where((size > 0.5) & (size < 2), near, np.log(size)), np.arctan2(y, 1 + x), z.dtype)


def expm1(z: Array) -> Array:
    half = np.sin(z.imag / 2)
    real = np.expm1(z.real) * np.cos(z.imag) - 2 * half * half
    return from_parts(real, np.exp(z.real) * np.sin(z.imag), z.dtype)


def rsqrt(z: Array) -> Array:
    root = np.sqrt(z)
    return np.where(z == 0, z, np.conj(root) / np.abs(root) / np.abs(root))


FUNCTIONS = {
    "abs": np.abs,
    "angle": np.angle,
    "conj": np.conj,
    "cos": np.cos,
    "exp": np.exp,
    "expm1": expm1,
    "log": log,
    "log1p": log1p,
    "neg": np.negative,
    "rsqrt": rsqrt,
    "sign": lambda z: np.where(z == 0, z, z / np.abs(z)),
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}


def errors(got: Array, wanted: Array, part: str) -> Array:
    """In eps of the modulus, where the modulus is in range."""
    info = np.finfo(PARTS[part])
    size = np.abs(wanted)
    error = np.abs(got.astype(wanted.dtype) - wanted) / np.maximum(size * info.eps, info.tiny)
    return np.where(size < float(info.max) / 2, np.where(np.isnan(error), np.inf, error), 0)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, part: str) -> None:
    z = numbers(part)
    if name == "rsqrt":
        z = z[z != 0]
    wanted = FUNCTIONS[name](z.astype(WIDE[part]))
    error = errors(unary(name, part, z), wanted, part)
    worst = int(np.argmax(error))
    assert error[worst] <= EPS_OF_MODULUS, f"{name}({z[worst]}) is {error[worst]:.1f} eps of its modulus off"


@pytest.mark.parametrize("part", PARTS)
def test_arithmetic(part: str) -> None:
    z = numbers(part)
    draw = np.random.default_rng(3)
    a, b = draw.choice(z, 5000), draw.choice(z, 5000)
    wide_a, wide_b = a.astype(WIDE[part]), b.astype(WIDE[part])
    (x, y), (u, v) = (a.real, a.imag), (b.real, b.imag)
    exact = {"add": (x + u, y + v), "sub": (x - u, y - v), "mul": (x * u - y * v, x * v + y * u)}
    for name, parts in exact.items():
        got = run(f"%r = complex.{name} %a, %b : complex<{part}>", part, a, b)
        np.testing.assert_array_equal(got, from_parts(*parts, a.dtype), err_msg=name)
    quotient = run(f"%r = complex.div %a, %b : complex<{part}>", part, a, b)
    assert errors(quotient[b != 0], (wide_a / wide_b)[b != 0], part).max() <= EPS_OF_MODULUS


@pytest.mark.parametrize("part", PARTS)
def test_powers(part: str) -> None:
    """The error grows with the logarithm of the power: that many units are lost before exp."""
    draw = np.random.default_rng(4)
    z = numbers(part)
    a, b = draw.choice(z[z != 0], 5000), draw.choice(z, 5000)
    exponent = b.astype(WIDE[part]) * log(a.astype(WIDE[part]))
    wanted = np.exp(exponent)
    got = run(f"%r = complex.pow %a, %b : complex<{part}>", part, a, b)
    known = np.abs(exponent) < 1e3
    assert (errors(got, wanted, part) <= EPS_OF_MODULUS * (1 + np.abs(exponent)))[known].all()


def test_integer_powers() -> None:
    z = np.array([1 + 1j, 2 - 1j, -0.5j, 3, -1], np.complex64)
    ops = "%n = arith.constant -3 : i32\n%r = complex.powi %a, %n : complex<f32>, i32"
    np.testing.assert_allclose(run(ops, "f32", z), z.astype(np.complex128) ** -3, rtol=2e-6)


def test_quotient_of_numbers_as_atan2() -> None:
    """Of real numbers the usual one; else -i log((x + i y) / sqrt(x^2 + y^2)), also where squares are out of range."""
    y = np.array([1, -1, 2, -0.5, 1e30, 1 + 2j, 0.5j], np.complex64)
    x = np.array([1, 1, -3, -0.25, 1e30, 2 - 1j, 1 + 1j], np.complex64)
    got = run("%r = complex.atan2 %a, %b : complex<f32>", "f32", y, x)
    wide_y, wide_x = y.astype(np.complex128), x.astype(np.complex128)
    wanted = -1j * np.log((wide_x + 1j * wide_y) / np.sqrt(wide_x**2 + wide_y**2))
    finite = np.isfinite(wanted) & (np.abs(wide_x**2 + wide_y**2) > 1e-3)
    np.testing.assert_allclose(got[finite], wanted[finite], atol=2e-6)
    np.testing.assert_allclose(got[:5].real, np.arctan2(y[:5].real, x[:5].real), rtol=1e-6)


def test_comparisons() -> None:
    a = np.array([1 + 2j, 1 + 2j, complex(np.nan, 0), -0.0 + 0j, complex(1, np.nan)], np.complex64)
    b = np.array([1 + 2j, 1 - 2j, complex(np.nan, 0), 0j, complex(1, np.nan)], np.complex64)
    equal = run("%r = complex.eq %a, %b : complex<f32>", "f32", a, b, result="i1")
    unequal = run("%r = complex.neq %a, %b : complex<f32>", "f32", a, b, result="i1")
    assert equal.tolist() == [True, False, False, True, False]
    assert unequal.tolist() == [False, True, True, False, True]


# ------------------------------------------------------------------------------------------- special values


def same_kind(got: Array, wanted: Array) -> Array:
    """Both NaN, the same infinity, or nearly the same number."""
    near = np.isfinite(got) & np.isfinite(wanted) & (np.abs(got - wanted) <= 1e-5 * np.abs(wanted))
    return near | (got == wanted) | (np.isnan(got) & np.isnan(wanted))


@pytest.mark.parametrize("name", ["abs", "cos", "exp", "log", "sin", "sqrt", "tan", "tanh"])
def test_infinities_and_nans_are_c_s(name: str) -> None:
    """As C's Annex G says, which NumPy follows; the sign of an infinity that has none is not looked at."""
    z = numbers("f32", np.inf, -np.inf, np.nan)
    z = z[~np.isfinite(z)]
    got = unary(name, "f32", z)
    wanted = FUNCTIONS[name](z.astype(np.complex128)).astype(got.dtype) if name != "log" else np.log(z)
    for part in (np.real, np.imag):
        ok = same_kind(part(got), part(wanted)) | (np.isinf(part(got)) & np.isinf(part(wanted)))
        assert ok.all(), [(z[k], got[k], wanted[k]) for k in np.flatnonzero(~ok)[:5]]


INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    ("name", "z", "wanted"),
    [
        ("rsqrt", 0, complex(INF, NAN)),
        ("rsqrt", complex(INF, 3), 0),
        ("rsqrt", complex(-3, INF), 0),
        ("log1p", -1, complex(-INF, 0)),
        ("log1p", complex(INF, 0), complex(INF, 0)),
        ("log1p", complex(NAN, INF), complex(INF, NAN)),
        ("expm1", complex(-INF, 0), complex(-1, 0)),
        ("expm1", complex(INF, 0), complex(INF, 0)),
        ("expm1", complex(90, np.pi / 4), complex(INF, INF)),
        ("exp", complex(89, 0.7), np.exp(89 + 0.7j)),
        ("sign", complex(INF, 1), 1),
        ("sign", complex(1, -INF), -1j),
        ("sign", complex(INF, INF), complex(NAN, NAN)),
        ("sign", complex(3e38, 3e38), complex(0.5**0.5, 0.5**0.5)),
        ("abs", complex(3e38, 0), 3e38),
        ("abs", complex(2e38, 2e38), 2**0.5 * 2e38),
        ("sqrt", complex(3e38, 3e38), np.sqrt(3e38 + 3e38j)),
        ("sqrt", complex(-4, -0.0), -2j),
        ("log", complex(3e38, 3e38), np.log(3e38 + 3e38j)),
    ],
)
def test_special_values(name: str, z: complex, wanted: complex) -> None:
    with np.errstate(all="ignore"):
        (got,) = unary(name, "f32", np.array([z], np.complex64))
        for part in (np.real, np.imag):
            assert same_kind(part(got), np.float32(part(wanted))), (got, wanted)


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        (1 + 1j, 0, complex(INF, INF)),
        (complex(-1, 0), 0, complex(-INF, NAN)),
        (0, 0, complex(NAN, NAN)),
        (complex(INF, 1), 2 + 1j, complex(INF, -INF)),
        (1 + 1j, complex(INF, 5), 0),
        (1 + 1j, complex(INF, INF), 0),
        (complex(INF, INF), complex(INF, INF), complex(NAN, NAN)),
        (complex(1e38, 1e38), complex(1e38, 1e38), 1),
        (complex(1e-38, 1e-38), complex(1e-38, 1e-38), 1),
    ],
)
def test_quotients_with_zeros_and_infinities(a: complex, b: complex, wanted: complex) -> None:
    """C 23, Annex G.5.1: infinity by number is infinite, number by infinity zero, number by zero infinite."""
    operands = (np.array([value], np.complex64) for value in (a, b))
    (got,) = run("%r = complex.div %a, %b : complex<f32>", "f32", *operands)
    for part in (np.real, np.imag):
        assert same_kind(part(got), np.float32(part(wanted))), (got, wanted)


@pytest.mark.parametrize(
    ("a", "b", "wanted"), [(0, 0, 1), (0, 2, 0), (3 + 4j, 0, 1), (complex(INF, 0), 2, INF), (complex(INF, 0), -2, 0)]
)
def test_powers_of_zero_and_infinity(a: complex, b: complex, wanted: complex) -> None:
    operands = (np.array([value], np.complex64) for value in (a, b))
    (got,) = run("%r = complex.pow %a, %b : complex<f32>", "f32", *operands)
    assert got == wanted


# ------------------------------------------------------------------------------------------- the pass


def test_what_has_no_expansion_is_left_with_a_remark() -> None:
    text = (
        "func.func @f(%z: complex<f32>) -> i64 { %r = complex.bitcast %z : complex<f32> to i64\n func.return %r : i64 }"
    )
    module = parse_ir(text)
    with take_notes() as notes:
        ConvertComplexToStandardPass().apply(make_context(), module)
    assert [remark.text for remark in notes.remarks] == ["skipped complex.bitcast: it has no expansion"]


def test_every_op_has_the_location_of_the_one_it_was_made_from() -> None:
    module = parse_ir("""
        func.func @f(%z: complex<f32>) -> f32 {
          %0 = complex.sqrt %z : complex<f32> loc("root"("a.hlo":3:4))
          %1 = complex.abs %0 : complex<f32> loc("size"("a.hlo":4:4))
          func.return %1 : f32
        }""")
    ConvertComplexToStandardPass().apply(make_context(), module)
    found = {str(op.location) for op in module.walk() if op.name.startswith(("arith.", "math.", "complex."))}
    assert len(found) == 2
    assert all("root" in location or "size" in location for location in found)


def test_an_angle_is_reduced_once_for_its_sine_and_once_for_its_cosine() -> None:
    """exp and expm1: libdevice reduces large angles by a table in memory, so a third function of the angle is six more loads."""
    for name in ("exp", "expm1"):
        module = parse_ir(f"""
            func.func @f(%z: complex<f32>) -> complex<f32> {{
              %r = complex.{name} %z : complex<f32>
              func.return %r : complex<f32>
            }}""")
        ConvertComplexToStandardPass().apply(make_context(), module)
        names = [op.name for op in module.walk()]
        assert (names.count("math.sin"), names.count("math.cos")) == (1, 1)
