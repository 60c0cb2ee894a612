"""LLVM's intrinsics on bits, classes of floats and vectors, against Python's integers and NumPy."""

import ml_dtypes
import numpy as np
import pytest
from unit.runtime.simt.kernels import per_thread

from xla_emitters.errors import Unsupported

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def draw(bits: int, count: int = 64, seed: int = 0) -> np.ndarray:
    limits = np.iinfo(f"i{bits // 8}")
    return np.random.default_rng(seed).integers(limits.min, limits.max, count, f"i{bits // 8}", endpoint=True)


def unsigned(values: np.ndarray) -> list[int]:
    return [int(value) % (1 << 8 * values.itemsize) for value in values]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_bits_are_moved_about(bits):
    a = draw(bits)
    got = per_thread(f"%r = llvm.intr.bitreverse(%a) : (i{bits}) -> i{bits}", f"i{bits}", a=(f"i{bits}", a))
    assert unsigned(got) == [int(f"{number:0{bits}b}"[::-1], 2) for number in unsigned(a)]
    if bits > 8:
        got = per_thread(f"%r = llvm.intr.bswap(%a) : (i{bits}) -> i{bits}", f"i{bits}", a=(f"i{bits}", a))
        assert got.tolist() == a.byteswap().tolist()


@pytest.mark.parametrize("bits", [8, 32, 64])
def test_funnel_shifts(bits):
    a, b = draw(bits, seed=1), draw(bits, seed=2)
    amount = np.array([0, 1, bits - 1, bits, bits + 3, -1, 5, 7] * 8).astype(a.dtype)
    given = {"a": (f"i{bits}", a), "b": (f"i{bits}", b), "n": (f"i{bits}", amount)}
    type = f"i{bits}"
    left = per_thread(f"%r = llvm.intr.fshl(%a, %b, %n) : ({type}, {type}, {type}) -> {type}", type, **given)
    right = per_thread(f"%r = llvm.intr.fshr(%a, %b, %n) : ({type}, {type}, {type}) -> {type}", type, **given)
    both = [(x << bits) + y for x, y in zip(unsigned(a), unsigned(b), strict=True)]
    shifts = [n % bits for n in unsigned(amount)]
    assert unsigned(left) == [(x << n >> bits) % (1 << bits) for x, n in zip(both, shifts, strict=True)]
    assert unsigned(right) == [(x >> n) % (1 << bits) for x, n in zip(both, shifts, strict=True)]


CLASSES = {"f32": (np.float32, 23), "f64": (np.float64, 52), "f16": (np.float16, 10), "bf16": (ml_dtypes.bfloat16, 7)}


@pytest.mark.parametrize("ir_type", CLASSES)
def test_classes_of_floats(ir_type):
    numpy_type, fraction_bits = CLASSES[ir_type]
    bits = 8 * np.dtype(numpy_type).itemsize
    inf = ((1 << bits - 1 - fraction_bits) - 1) << fraction_bits
    sign = 1 << bits - 1
    patterns = [inf + 1, inf + (1 << fraction_bits - 1), sign + inf, sign + inf - 1, sign + 1, sign, 0, 1, inf - 1, inf]
    values = np.array(patterns, f"u{bits // 8}").view(numpy_type)
    for number in range(10):
        ops = f'%r = "llvm.intr.is.fpclass"(%x) <{{bit = {1 << number} : i32}}> : ({ir_type}) -> i1'
        got = per_thread(ops, "i1", x=(ir_type, values))
        assert np.flatnonzero(got).tolist() == [number], f"class {number}"
    ops = f'%r = "llvm.intr.is.fpclass"(%x) <{{bit = 3 : i32}}> : ({ir_type}) -> i1'
    assert per_thread(ops, "i1", x=(ir_type, values)).tolist() == np.isnan(values).tolist()


def test_classes_of_a_type_without_infinities_are_refused():
    ops = '%r = "llvm.intr.is.fpclass"(%x) <{bit = 3 : i32}> : (f8E4M3FN) -> i1'
    with pytest.raises(Unsupported, match="has no infinities"):
        per_thread(ops, "i1", x=("f8E4M3FN", np.zeros(4, ml_dtypes.float8_e4m3fn)))


def test_powers_with_integer_exponents():
    x, n = np.linspace(-3, 3, 32, dtype=np.float32), np.arange(-16, 16, dtype=np.int32)
    got = per_thread('%r = "llvm.intr.powi"(%x, %n) : (f32, i32) -> f32', "f32", x=("f32", x), n=("i32", n))
    np.testing.assert_allclose(got, x.astype(np.float64) ** n, rtol=1e-5)


@pytest.mark.parametrize(("name", "combine"), [("fadd", np.add), ("fmul", np.multiply)])
def test_vectors_are_combined_in_order(name, combine):
    x = np.random.default_rng(3).normal(size=(32, 3)).astype(np.float32)
    ops = f"""
    %v = vector.from_elements %a, %b, %a : vector<3xf32>
    %r = "llvm.intr.vector.reduce.{name}"(%c, %v) : (f32, vector<3xf32>) -> f32"""
    a, b, c = (column.copy() for column in x.T)
    got = per_thread(ops, "f32", a=("f32", a), b=("f32", b), c=("f32", c))
    np.testing.assert_array_equal(got, combine(combine(combine(c, a), b), a))
