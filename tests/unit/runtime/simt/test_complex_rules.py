"""Complex numbers: sums and products by parts, rounded as NumPy's floats are; functions as NumPy's in more digits."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import per_thread
from xdsl.dialects.builtin import ComplexType, f32

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.hlo.complex_meaning import from_parts
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt import execute
from xla_emitters.runtime.simt.complex_rules import constant_lanes

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

TYPES = [("f32", np.complex64), ("f64", np.complex128)]


def numbers(numpy_type, count=200, seed=0):
    draw = np.random.default_rng(seed)
    return (draw.normal(size=count) * 3 + 1j * draw.normal(size=count) * 3).astype(numpy_type)


FUNCTIONS = {
    "angle": np.angle,
    "abs": np.abs,
    "cos": np.cos,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "sign": lambda z: z / np.abs(z),
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("part", "numpy_type"), TYPES)
def test_functions(name, part, numpy_type):
    z = numbers(numpy_type)
    is_real = name in ("abs", "angle")
    result_type = part if is_real else f"complex<{part}>"
    got = per_thread(f"%r = complex.{name} %z : complex<{part}>", result_type, z=(f"complex<{part}>", z))
    wanted = FUNCTIONS[name](z.astype(np.complex128))
    np.testing.assert_allclose(got, wanted, rtol=2e-5 if part == "f32" else 1e-12)


@pytest.mark.parametrize(("part", "numpy_type"), TYPES)
def test_arithmetic_is_rounded_part_by_part(part, numpy_type):
    x, y = numbers(numpy_type, seed=1), numbers(numpy_type, seed=2)
    (a, b), (c, d) = (x.real, x.imag), (y.real, y.imag)
    wanted = {
        "add": (a + c, b + d),
        "sub": (a - c, b - d),
        "mul": (a * c - b * d, a * d + b * c),
    }
    for name, (real, imaginary) in wanted.items():
        ops = f"%r = complex.{name} %x, %y : complex<{part}>"
        got = per_thread(ops, f"complex<{part}>", x=(f"complex<{part}>", x), y=(f"complex<{part}>", y))
        np.testing.assert_array_equal(got.real, real)
        np.testing.assert_array_equal(got.imag, imaginary)
    ops = f"%r = complex.div %x, %y : complex<{part}>"
    got = per_thread(ops, f"complex<{part}>", x=(f"complex<{part}>", x), y=(f"complex<{part}>", y))
    np.testing.assert_allclose(got, x.astype(np.complex128) / y.astype(np.complex128), rtol=1e-6)


def test_powers_and_arcs():
    x, y = numbers(np.complex64, seed=3), numbers(np.complex64, seed=4)
    given = {"x": ("complex<f32>", x), "y": ("complex<f32>", y)}
    got = per_thread("%r = complex.pow %x, %y : complex<f32>", "complex<f32>", **given)
    np.testing.assert_allclose(got, x.astype(np.complex128) ** y.astype(np.complex128), rtol=1e-4)
    real = np.array([1, -1, 2, -0.5], np.complex64), np.array([1, 1, -3, -0.25], np.complex64)
    got = per_thread(
        "%r = complex.atan2 %x, %y : complex<f32>",
        "complex<f32>",
        x=("complex<f32>", real[0]),
        y=("complex<f32>", real[1]),
    )
    np.testing.assert_allclose(got.real, np.arctan2(real[0].real, real[1].real), rtol=1e-6)


def test_parts_and_comparisons():
    x = np.array([1 + 2j, np.inf - 1j, complex(np.nan, 0), -0.0 + 0j], np.complex64)
    y = np.array([1 + 2j, np.inf + 1j, complex(np.nan, 0), 0j], np.complex64)
    given = {"x": ("complex<f32>", x), "y": ("complex<f32>", y)}
    assert per_thread("%r = complex.eq %x, %y : complex<f32>", "i1", **given).tolist() == [True, False, False, True]
    assert per_thread("%r = complex.neq %x, %y : complex<f32>", "i1", **given).tolist() == [False, True, True, False]
    ops = """
    %a = complex.re %x : complex<f32>
    %b = complex.im %y : complex<f32>
    %c = complex.create %a, %b : complex<f32>
    %d = complex.neg %c : complex<f32>
    %r = complex.conj %d : complex<f32>"""
    got = per_thread(ops, "complex<f32>", **given)
    np.testing.assert_array_equal(got.real, -x.real)
    np.testing.assert_array_equal(got.imag, y.imag)


def test_the_sign_of_zero_is_zero():
    got = per_thread(
        "%r = complex.sign %z : complex<f32>", "complex<f32>", z=("complex<f32>", np.zeros(1, np.complex64))
    )
    assert got.tolist() == [0]


def test_constants_and_bits():
    ops = """
    %c = complex.constant [1.5 : f32, -2.0 : f32] : complex<f32>
    %s = complex.add %c, %z : complex<f32>
    %r = complex.bitcast %s : complex<f32> to i64"""
    z = numbers(np.complex64)
    got = per_thread(ops, "i64", z=("complex<f32>", z))
    np.testing.assert_array_equal(got.view(np.complex64), z + np.complex64(1.5 - 2j))


def test_a_part_that_is_infinite_leaves_the_other_alone():
    both = from_parts(np.array([[np.inf]], np.float32), np.array([[1.0]], np.float32))
    assert both.tolist() == [[complex(np.inf, 1.0)]]
    with pytest.raises(Unsupported, match="constant"):
        constant_lanes(f32, ComplexType(f32))


def test_complex_tensors_under_a_launch():
    module = parse_ir("""
func.func @main(%x: tensor<4xcomplex<f64>>, %out: tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
    attributes {xla.entry, gpu.known_block_size = array<i32: 4, 1, 1>, gpu.known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %z = tensor.extract %x[%t] : tensor<4xcomplex<f64>>
  %w = complex.mul %z, %z : complex<f64>
  %0 = tensor.insert %w into %out[%t] : tensor<4xcomplex<f64>>
  return %0 : tensor<4xcomplex<f64>>
}""")
    x, out = numbers(np.complex128, 4), np.zeros(4, np.complex128)
    execute(module, [x, out])
    np.testing.assert_array_equal(out.real, x.real * x.real - x.imag * x.imag)


@pytest.mark.parametrize(("part", "numpy_type"), TYPES)
def test_integer_powers(part, numpy_type):
    """Against repeated products in more digits; 0 to the power of 0 is 1."""
    base = np.append(numbers(numpy_type), 0)
    exponent = np.append(np.arange(200) % 9 - 4, 0).astype(np.int32)
    ops = f"""
    %z = complex.create %x, %y : complex<{part}>
    %p = complex.powi %z, %n : complex<{part}>, i32
    %r = complex.@PART@ %p : complex<{part}>"""
    inputs = {"x": (part, base.real), "y": (part, base.imag), "n": ("i32", exponent)}
    got = per_thread(ops.replace("@PART@", "re"), part, **inputs) + 1j * per_thread(
        ops.replace("@PART@", "im"), part, **inputs
    )
    wide = base.astype(np.clongdouble)
    wanted = np.array([np.prod(np.repeat(z, abs(n))) for z, n in zip(wide, exponent, strict=True)])
    wanted = np.where(exponent < 0, 1 / np.where(wanted == 0, 1, wanted), wanted)
    assert np.all(np.abs(got - wanted) <= 16 * np.finfo(numpy_type).eps * np.abs(wanted))
