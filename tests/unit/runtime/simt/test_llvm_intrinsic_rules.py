"""LLVM's intrinsics on bits, classes of floats and vectors, against Python's integers and NumPy."""

import ml_dtypes
import numpy as np
import pytest
from unit.runtime.simt.kernels import per_thread

from xla_emitters.errors import ExecutionError, Unsupported

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


def edges(bits: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of some numbers, among them the least and the greatest."""
    limits = np.iinfo(f"i{bits // 8}")
    some = np.array([limits.min, limits.min + 1, -7, -1, 0, 1, 2, 5, limits.max - 1, limits.max], f"i{bits // 8}")
    one, other = np.meshgrid(some, some)
    return one.reshape(-1), other.reshape(-1)


EXACT = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}


def readings(sign: str, *arrays: np.ndarray) -> list[list[int]]:
    return [[int(n) for n in array] if sign == "s" else unsigned(array) for array in arrays]


def limits_of(sign: str, bits: int) -> tuple[int, int]:
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if sign == "s" else (0, (1 << bits) - 1)


@pytest.mark.parametrize("bits", [8, 32, 64])
@pytest.mark.parametrize("sign", ["s", "u"])
@pytest.mark.parametrize("name", ["add", "sub"])
def test_saturation(name, sign, bits):
    one, other = edges(bits)
    type = f"i{bits}"
    ops = f"%r = llvm.intr.{sign}{name}.sat(%a, %b) : ({type}, {type}) -> {type}"
    got = per_thread(ops, type, a=(type, one), b=(type, other))
    low, high = limits_of(sign, bits)
    pairs = zip(*readings(sign, one, other), strict=True)
    assert readings(sign, got)[0] == [min(max(EXACT[name](a, b), low), high) for a, b in pairs]


@pytest.mark.parametrize("bits", [8, 64])
@pytest.mark.parametrize("sign", ["s", "u"])
def test_saturated_shifts(sign, bits):
    one = edges(bits)[0]
    amount = np.resize(np.array([0, 1, 3, bits - 1], one.dtype), one.size)
    type = f"i{bits}"
    ops = f"%r = llvm.intr.{sign}shl.sat(%a, %b) : ({type}, {type}) -> {type}"
    got = per_thread(ops, type, a=(type, one), b=(type, amount))
    low, high = limits_of(sign, bits)
    pairs = zip(readings(sign, one)[0], amount.tolist(), strict=True)
    assert readings(sign, got)[0] == [min(max(a << n, low), high) for a, n in pairs]


@pytest.mark.parametrize("bits", [8, 32, 64])
@pytest.mark.parametrize("sign", ["s", "u"])
@pytest.mark.parametrize("name", EXACT)
def test_overflow_is_told(name, sign, bits):
    one, other = edges(bits)
    type = f"i{bits}"
    exact = [EXACT[name](a, b) for a, b in zip(*readings(sign, one, other), strict=True)]
    low, high = limits_of(sign, bits)
    given = {"a": (type, one), "b": (type, other)}
    struct = f"!llvm.struct<({type}, i1)>"
    ops = f"""
    %s = "llvm.intr.{sign}{name}.with.overflow"(%a, %b) : ({type}, {type}) -> {struct}
    %r = llvm.extractvalue %s[{{}}] : {struct}"""
    assert unsigned(per_thread(ops.format(0), type, **given)) == [n % (1 << bits) for n in exact]
    assert per_thread(ops.format(1), "i1", **given).tolist() == [not low <= n <= high for n in exact]


@pytest.mark.parametrize("sign", ["s", "u"])
def test_three_way_comparison(sign):
    one, other = edges(32)
    got = per_thread(f"%r = llvm.intr.{sign}cmp(%a, %b) : (i32, i32) -> i8", "i8", a=("i32", one), b=("i32", other))
    pairs = zip(*readings(sign, one, other), strict=True)
    assert got.tolist() == [(a > b) - (a < b) for a, b in pairs]


HALVES = np.array([-2.5, -1.5, -0.5, -0.49999997, 0.0, 0.49999997, 0.5, 1.5, 2.5, 8388609.0, -7.3, 7.8], np.float32)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("lrint", [-2, -2, 0, 0, 0, 0, 0, 2, 2, 8388609, -7, 8]),
        ("llrint", [-2, -2, 0, 0, 0, 0, 0, 2, 2, 8388609, -7, 8]),
        ("lround", [-3, -2, -1, 0, 0, 0, 1, 2, 3, 8388609, -7, 8]),
        ("llround", [-3, -2, -1, 0, 0, 0, 1, 2, 3, 8388609, -7, 8]),
    ],
)
def test_rounding_to_integers(name, wanted):
    assert per_thread(f"%r = llvm.intr.{name}(%x) : (f32) -> i64", "i64", x=("f32", HALVES)).tolist() == wanted


def test_parts_of_floats():
    x, n = np.array([0.0, 1.0, -3.5, 1e-40, 1e30], np.float32), np.array([0, -1, 4, 20, 200], np.int32)
    got = per_thread("%r = llvm.intr.ldexp(%x, %n) : (f32, i32) -> f32", "f32", x=("f32", x), n=("i32", n))
    np.testing.assert_array_equal(got, np.ldexp(x, n))
    struct = "!llvm.struct<(f32, i32)>"
    ops = f"%s = llvm.intr.frexp(%x) : (f32) -> {struct}\n%r = llvm.extractvalue %s[{{}}] : {struct}"
    fraction, exponent = np.frexp(x)
    np.testing.assert_array_equal(per_thread(ops.format(0), "f32", x=("f32", x)), fraction)
    np.testing.assert_array_equal(per_thread(ops.format(1), "i32", x=("f32", x)), exponent)


def test_a_narrow_result_of_ldexp_is_rounded_once():
    """1 + 3/4 ulp of a denormal bf16: by way of a float32 that was rounded already it would go up twice."""
    x = np.array([1.0078125, -1.9921875], np.float32).astype(ml_dtypes.bfloat16)
    n = np.full(2, -132, np.int32)
    got = per_thread("%r = llvm.intr.ldexp(%x, %n) : (bf16, i32) -> bf16", "bf16", x=("bf16", x), n=("i32", n))
    assert got.tobytes() == np.ldexp(x.astype(np.float64), n).astype(ml_dtypes.bfloat16).tobytes()


def test_sine_and_cosine_at_once():
    x = np.linspace(-4, 4, 32, dtype=np.float32)
    struct = "!llvm.struct<(f32, f32)>"
    ops = f"%s = llvm.intr.sincos(%x) : (f32) -> {struct}\n%r = llvm.extractvalue %s[{{}}] : {struct}"
    np.testing.assert_allclose(per_thread(ops.format(0), "f32", x=("f32", x)), np.sin(x), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(per_thread(ops.format(1), "f32", x=("f32", x)), np.cos(x), rtol=1e-6, atol=1e-7)


def test_overflow_of_vectors():
    a = np.array([100, 1, -128, 127], np.int8)
    struct = "!llvm.struct<(vector<2xi8>, vector<2xi1>)>"
    ops = f"""
    %v = vector.from_elements %a, %a : vector<2xi8>
    %s = "llvm.intr.sadd.with.overflow"(%v, %v) : (vector<2xi8>, vector<2xi8>) -> {struct}
    %f = llvm.extractvalue %s[1] : {struct}
    %one = arith.constant 1 : i32
    %r = llvm.extractelement %f[%one : i32] : vector<2xi1>"""
    assert per_thread(ops, "i1", a=("i8", a)).tolist() == [True, False, True, True]


INTEGER_REDUCTIONS = {
    "add": lambda v: v.sum(axis=1, dtype=np.int32),
    "mul": lambda v: v.prod(axis=1, dtype=np.int32),
    "and": lambda v: np.bitwise_and.reduce(v, axis=1),
    "or": lambda v: np.bitwise_or.reduce(v, axis=1),
    "xor": lambda v: np.bitwise_xor.reduce(v, axis=1),
    "smax": lambda v: v.max(axis=1),
    "smin": lambda v: v.min(axis=1),
    "umax": lambda v: v.view(np.uint32).max(axis=1).view(np.int32),
    "umin": lambda v: v.view(np.uint32).min(axis=1).view(np.int32),
}


@pytest.mark.parametrize("name", INTEGER_REDUCTIONS)
def test_integer_vectors_are_reduced(name):
    values = np.random.default_rng(4).integers(-(2**31), 2**31, (32, 3)).astype(np.int32)
    ops = f"""
    %v = vector.from_elements %a, %b, %c : vector<3xi32>
    %r = "llvm.intr.vector.reduce.{name}"(%v) : (vector<3xi32>) -> i32"""
    given = {key: ("i32", column.copy()) for key, column in zip("abc", values.T, strict=True)}
    np.testing.assert_array_equal(per_thread(ops, "i32", **given), INTEGER_REDUCTIONS[name](values))


@pytest.mark.parametrize(
    ("name", "combine"),
    [("fmax", np.fmax), ("fmin", np.fmin), ("fmaximum", np.maximum), ("fminimum", np.minimum)],
)
def test_float_vectors_are_reduced(name, combine):
    values = np.random.default_rng(5).normal(size=(32, 3)).astype(np.float32)
    values[3, 1] = np.nan
    ops = f"""
    %v = vector.from_elements %a, %b, %c : vector<3xf32>
    %r = llvm.intr.vector.reduce.{name}(%v) : (vector<3xf32>) -> f32"""
    given = {key: ("f32", column.copy()) for key, column in zip("abc", values.T, strict=True)}
    np.testing.assert_array_equal(per_thread(ops, "f32", **given), combine.reduce(values, axis=1))


def test_vectors_are_taken_apart_and_put_together():
    """Of (a, b, a+b, a-b): the second half goes in front, then every other one is taken."""
    a, b = np.arange(32, dtype=np.int32), np.arange(100, 132, dtype=np.int32)
    ops = """
    %s = arith.addi %a, %b : i32
    %d = arith.subi %a, %b : i32
    %v = vector.from_elements %a, %b, %s, %d : vector<4xi32>
    %half = llvm.intr.vector.extract %v[2] : vector<2xi32> from vector<4xi32>
    %w = llvm.intr.vector.insert %half, %v[0] : vector<2xi32> into vector<4xi32>
    %parts = "llvm.intr.vector.deinterleave2"(%w) : (vector<4xi32>) -> !llvm.struct<(vector<2xi32>, vector<2xi32>)>
    %even = llvm.extractvalue %parts[0] : !llvm.struct<(vector<2xi32>, vector<2xi32>)>
    %odd = llvm.extractvalue %parts[1] : !llvm.struct<(vector<2xi32>, vector<2xi32>)>
    %turned = "llvm.intr.vector.interleave2"(%odd, %even) : (vector<2xi32>, vector<2xi32>) -> vector<4xi32>
    %number = llvm.intr.stepvector : vector<4xi32>
    %product = llvm.mul %turned, %number : vector<4xi32>
    %k = arith.constant {place} : i32
    %r = llvm.extractelement %product[%k : i32] : vector<4xi32>"""
    for place, wanted in enumerate((0 * a, a + b, 2 * (a - b), 3 * (a + b))):
        got = per_thread(ops.replace("{place}", str(place)), "i32", a=("i32", a), b=("i32", b))
        np.testing.assert_array_equal(got, wanted)


def test_the_mask_of_a_loops_rest():
    base, n = np.array([0, 2, 3, 4, -1, -2], np.int32), np.array([4, 4, 4, 4, -1, 1], np.int32)
    ops = """
    %m = llvm.intr.get.active.lane.mask %a, %b : i32, i32 to vector<4xi1>
    %k = arith.constant {place} : i32
    %r = llvm.extractelement %m[%k : i32] : vector<4xi1>"""
    for place in range(4):
        got = per_thread(ops.replace("{place}", str(place)), "i1", a=("i32", base), b=("i32", n))
        wanted = [x % 2**32 + place < y % 2**32 for x, y in zip(base.tolist(), n.tolist(), strict=True)]
        assert got.tolist() == wanted


def test_hints_are_their_first_operand():
    a, b = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    ops = """
    %e = llvm.intr.expect %a, %b : i32
    %p = llvm.intr.expect.with.probability %e, %b, 5.000000e-01 : i32
    %known = "llvm.intr.is.constant"(%p) : (i32) -> i1
    %c = llvm.intr.ssa.copy %p : i32
    %f = llvm.freeze %c : i32
    %r = llvm.select %known, %b, %f : i1, i32"""
    np.testing.assert_array_equal(per_thread(ops, "i32", a=("i32", a), b=("i32", b)), a)


def test_a_wrong_assumption_and_a_trap_are_errors():
    a = np.arange(32, dtype=np.int32)
    ops = """
    %limit = arith.constant {limit} : i32
    %c = llvm.icmp "slt" %a, %limit : i32
    llvm.intr.assume %c : i1
    %r = arith.addi %a, %limit : i32"""
    np.testing.assert_array_equal(per_thread(ops.replace("{limit}", "32"), "i32", a=("i32", a)), a + 32)
    with pytest.raises(ExecutionError, match=r"llvm\.intr\.assume in block 0, thread 9 does not hold"):
        per_thread(ops.replace("{limit}", "9"), "i32", a=("i32", a))
    with pytest.raises(ExecutionError, match=r"llvm\.intr\.trap in block 0, thread 0 is reached"):
        per_thread("llvm.intr.trap\n%r = arith.addi %a, %a : i32", "i32", a=("i32", a))
