"""Elementwise ops against definitions that share nothing with them: Python's integers, fractions, and float64 rounded once.

Small types are enumerated whole: all pairs of s4, u4, s8 and u8, all 65536 values of bf16 and f16.
"""

import math
import operator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from unit.dialects.hlo.one_instruction import all_of, integers, wrapped
from xdsl.dialects import test as xdsl_test
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64

from xla_emitters.dialects.hlo import elementwise
from xla_emitters.dialects.hlo.base import HloOp, RuleBroken, no_call
from xla_emitters.dialects.hlo.elementwise import OPS
from xla_emitters.dialects.hlo.types import array_type, dims_of
from xla_emitters.dtypes import Kind, dtype
from xla_emitters.errors import UsageError

CLASSES = {cls.name.removeprefix("hlo.").replace("_", "-"): cls for cls in OPS}


def make(
    opcode: str, operands: list[tuple[str, tuple[int, ...]]], result: tuple[str, tuple[int, ...]], **properties: Any
) -> HloOp:
    """An op whose operands are of unknown origin."""
    types = [array_type(dtype(name).ir_type, dims) for name, dims in operands]
    source = xdsl_test.TestOp(result_types=types)
    for value, hint in zip(source.results, "abc", strict=False):
        value.name_hint = hint
    return CLASSES[opcode](source.results, array_type(dtype(result[0]).ir_type, result[1]), "it", properties)


def evaluate(
    opcode: str, *arrays: np.ndarray, types: str | list[str], result: str | None = None, **properties: Any
) -> np.ndarray:
    names = [types] * len(arrays) if isinstance(types, str) else types
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    op = make(
        opcode, [(n, a.shape) for n, a in zip(names, arrays, strict=True)], (result or names[0], shape), **properties
    )
    op.verify_()
    value = op.evaluate(arrays, no_call)
    assert value.dtype == dtype(result or names[0]).numpy
    assert value.shape == dims_of(op.result)
    return value


# ------------------------------------------------------------------------------------------- there is a row for each


OPCODES = """abs acos acosh asin asinh atanh bitcast-convert cbrt ceil convert copy cosine cosh count-leading-zeros erf
exponential exponential-minus-one floor imag is-finite log log-plus-one logistic negate not popcnt real reduce-precision
round-nearest-afz round-nearest-even rsqrt sign sine sinh sqrt tan tanh add and atan2 compare complex divide maximum minimum mulhi
multiply or power remainder shift-left shift-right-arithmetic shift-right-logical subtract xor clamp select"""


def test_every_elementwise_opcode_has_one_op():
    assert sorted(CLASSES) == sorted(OPCODES.split())
    assert len(CLASSES) == len(OPS)


# ------------------------------------------------------------------------------------------- integers


def truncating_divide(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def reference(opcode: str, x: int, y: int, bits: int, signed: bool) -> int:
    """HLO's definition of a binary integer op in Python's unbounded integers, not yet wrapped."""
    amount = y & (1 << bits) - 1
    pattern = x & (1 << bits) - 1
    match opcode:
        case "add" | "subtract" | "multiply" | "and" | "or" | "xor":
            names = {"subtract": "sub", "multiply": "mul", "and": "and_", "or": "or_"}
            return getattr(operator, names.get(opcode, opcode))(x, y)
        case "maximum":
            return max(x, y)
        case "minimum":
            return min(x, y)
        case "divide":
            return -1 if y == 0 else truncating_divide(x, y)
        case "remainder":
            return x if y == 0 else x - y * truncating_divide(x, y)
        case "shift-left":
            return pattern << amount if amount < bits else 0
        case "shift-right-logical":
            return pattern >> amount if amount < bits else 0
        case "shift-right-arithmetic":
            return wrapped(x, bits, True) >> min(amount, bits - 1)
        case "mulhi":
            return x * y >> bits
        case "power":
            if y >= 0:
                return pow(x, y)
            return {1: 1, -1: 1 if y % 2 == 0 else -1}.get(x, 0)
        case _:
            raise AssertionError(opcode)


BINARY = """add subtract multiply and or xor maximum minimum divide remainder shift-left shift-right-logical shift-right-arithmetic
mulhi power""".split()


@pytest.mark.parametrize("opcode", BINARY)
@pytest.mark.parametrize("type", ["s2", "u2", "s4", "u4", "s8", "u8"])
def test_binary_integer_ops_on_all_pairs(opcode: str, type: str):
    dt = dtype(type)
    signed = dt.kind is Kind.SIGNED
    values = [wrapped(v, dt.bits, signed) for v in range(1 << dt.bits)]
    if opcode == "power":
        values = [v for v in values if abs(v) < 24 or v in (-128, 127, 255)]
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    got = evaluate(opcode, x.astype(dt.numpy), y.astype(dt.numpy), types=type)
    want = [
        wrapped(reference(opcode, int(a), int(b), dt.bits, signed), dt.bits, signed) for a, b in zip(x, y, strict=True)
    ]
    assert got.astype(np.int64).tolist() == want


EDGES = {
    bits: [
        0,
        1,
        2,
        3,
        5,
        bits - 1,
        bits,
        bits + 1,
        63,
        64,
        65,
        (1 << bits - 1) - 1,
        1 << bits - 1,
        (1 << bits) - 1,
        (1 << bits) - 7,
    ]
    for bits in (16, 32, 64)
}


@pytest.mark.parametrize("opcode", BINARY)
@pytest.mark.parametrize("type", ["s16", "u16", "s32", "u32", "s64", "u64"])
def test_binary_integer_ops_at_the_edges(opcode: str, type: str):
    dt = dtype(type)
    signed = dt.kind is Kind.SIGNED
    pairs = [(wrapped(a, dt.bits, signed), wrapped(b, dt.bits, signed)) for a in EDGES[dt.bits] for b in EDGES[dt.bits]]
    if opcode == "power":
        pairs = [(a, b) for a, b in pairs if b <= 70]
    x, y = (np.array(side, dt.numpy) for side in zip(*pairs, strict=True))
    got = evaluate(opcode, x, y, types=type)
    assert got.tolist() == [wrapped(reference(opcode, a, b, dt.bits, signed), dt.bits, signed) for a, b in pairs]


@pytest.mark.parametrize("opcode", BINARY)
@pytest.mark.parametrize("type", ["s4", "u8", "s64", "u64"])
def test_binary_integer_ops_take_arrays_without_dimensions(opcode: str, type: str):
    """NumPy makes plain numbers of those, which have no types that wrap."""
    dt = dtype(type)
    signed = dt.kind is Kind.SIGNED
    x, y = (np.array(value).astype(dt.numpy) for value in (7, 5))
    got = evaluate(opcode, x, y, types=type)
    assert int(got) == wrapped(reference(opcode, 7, 5, dt.bits, signed), dt.bits, signed)


UNARY = {
    "negate": lambda v, bits: -v,
    "abs": lambda v, bits: abs(v),
    "not": lambda v, bits: ~v,
    "sign": lambda v, bits: (v > 0) - (v < 0),
    "popcnt": lambda v, bits: bin(v & (1 << bits) - 1).count("1"),
    "count-leading-zeros": lambda v, bits: bits - (v & (1 << bits) - 1).bit_length(),
}


@pytest.mark.parametrize("opcode", UNARY)
@pytest.mark.parametrize("type", ["s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"])
def test_unary_integer_ops(opcode: str, type: str):
    dt = dtype(type)
    signed = dt.kind is Kind.SIGNED
    if opcode in ("abs", "sign") and not signed:  # as XLA's verifier has it
        with pytest.raises(RuleBroken, match=f"'{opcode}' does not take {type}"):
            evaluate(opcode, integers([1], type), types=type)
        return
    raw = range(1 << dt.bits) if dt.bits <= 8 else [*EDGES[dt.bits], 1 << 31, 0x00FF_0000, 1 << dt.bits - 2]
    values = [wrapped(v, dt.bits, signed) for v in raw]
    got = evaluate(opcode, integers(values, type), types=type)
    assert got.astype(object).tolist() == [wrapped(UNARY[opcode](v, dt.bits), dt.bits, signed) for v in values]


def test_pred_is_a_truth_value():
    x, y = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    for opcode in ("and", "multiply", "minimum"):
        assert evaluate(opcode, x, y, types="pred").tolist() == [False, False, False, True]
    for opcode in ("or", "add", "maximum"):
        assert evaluate(opcode, x, y, types="pred").tolist() == [False, True, True, True]
    assert evaluate("xor", x, y, types="pred").tolist() == [False, True, True, False]
    assert evaluate("not", x, types="pred").tolist() == [True, True, False, False]
    assert evaluate("compare", x, y, types="pred", result="pred", direction=StringAttr("LT")).tolist() == [
        False,
        True,
        False,
        False,
    ]


# ------------------------------------------------------------------------------------------- floats


def rounded(exact: np.ndarray, type: str) -> np.ndarray:
    """float64 values as `type`, by the nearer of two neighbours in exact arithmetic."""
    dt = dtype(type)
    candidates = exact.astype(np.float32).astype(dt.numpy)
    bits = candidates.view(np.dtype(f"i{dt.bits // 8}"))
    best, error = candidates.copy(), None
    for step in (0, 1, -1):
        neighbour = (bits + bits.dtype.type(step)).view(dt.numpy)
        off = np.abs(neighbour.astype(np.float64) - exact)
        even = ((bits + bits.dtype.type(step)) & 1) == 0
        if error is None:
            error, is_even = off, even
            continue
        better = (off < error) | ((off == error) & even & ~is_even)
        best, error, is_even = (
            np.where(better, neighbour, best),
            np.where(better, off, error),
            np.where(better, even, is_even),
        )
    return best


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Bit for bit, any NaN equal to any NaN."""
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    with np.errstate(all="ignore"):
        both_nan = np.isnan(a) & np.isnan(b)
    return bool(np.all(both_nan | (a.view(unsigned) == b.view(unsigned))))


EXACT = {
    "negate": lambda x: -x,
    "abs": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "round-nearest-even": np.rint,
    "round-nearest-afz": lambda x: np.copysign(np.where(np.abs(x) < 2**53, np.floor(np.abs(x) + 0.5), np.abs(x)), x),
    "sign": lambda x: np.where((x == 0) | np.isnan(x), x, np.copysign(1.0, x)),
    "sqrt": np.sqrt,
    "copy": lambda x: x,
}


@pytest.mark.parametrize("opcode", EXACT)
@pytest.mark.parametrize("type", ["bf16", "f16"])
def test_exact_unary_float_ops_on_all_values(opcode: str, type: str):
    x = all_of(type)
    with np.errstate(all="ignore"):
        want = EXACT[opcode](x.astype(np.float64)).astype(np.float32).astype(dtype(type).numpy)
    assert same(evaluate(opcode, x, types=type), want)


FUNCTIONS = {
    "exponential": np.exp,
    "exponential-minus-one": np.expm1,
    "log": np.log,
    "log-plus-one": np.log1p,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "erf": np.vectorize(math.erf),
    "sine": np.sin,
    "cosine": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}


@pytest.mark.parametrize("opcode", FUNCTIONS)
@pytest.mark.parametrize("type", ["bf16", "f16"])
def test_functions_of_16_bit_floats_are_within_one_unit(opcode: str, type: str):
    x = all_of(type)
    got = evaluate(opcode, x, types=type)
    with np.errstate(all="ignore"):
        want = FUNCTIONS[opcode](x.astype(np.float64)).astype(np.float32).astype(dtype(type).numpy)
    assert np.array_equal(np.isnan(got), np.isnan(want))
    # 1 / (1 + exp(-x)) is 0 where exp overflows: below the smallest normal number nothing is promised.
    with np.errstate(all="ignore"):
        numbers = ~np.isnan(want) & (np.abs(want) >= ml_dtypes.finfo(dtype(type).numpy).smallest_normal)
    distance = ordered(got[numbers]) - ordered(want[numbers])
    assert np.abs(distance).max() <= 1


def ordered(x: np.ndarray) -> np.ndarray:
    """Floats as integers in their order, so that neighbours differ by one; both zeros are 0."""
    bits = x.view(np.dtype(f"i{x.dtype.itemsize}")).astype(np.int64)
    return np.where(bits < 0, -(bits & (1 << x.dtype.itemsize * 8 - 1) - 1), bits)


@pytest.mark.parametrize("opcode", FUNCTIONS)
@pytest.mark.parametrize(("type", "units"), [("f32", 6), ("f64", 4)])
def test_functions_of_wide_floats(opcode: str, type: str, units: int):
    """f32 against float64; f64 against longdouble where NumPy has it wider, else itself."""
    x = np.concatenate([np.linspace(-3, 3, 4001), np.geomspace(1e-30, 80, 2000), [np.inf, -np.inf, np.nan, 0.0, -0.0]])
    x = x.astype(dtype(type).numpy)
    got = evaluate(opcode, x, types=type)
    with np.errstate(all="ignore"):
        wider = x.astype(np.float64 if type == "f32" else np.longdouble)
        exact = FUNCTIONS[opcode](wider if opcode != "erf" else x.astype(np.float64))
        want = exact.astype(dtype(type).numpy)
    assert np.array_equal(np.isnan(got), np.isnan(want))
    distance = ordered(got[~np.isnan(want)]) - ordered(want[~np.isnan(want)])
    assert np.abs(distance).max() <= units


@pytest.mark.parametrize("type", ["bf16", "f16", "f8e4m3fn", "f8e5m2", "f32"])
@pytest.mark.parametrize("opcode", ["add", "subtract", "multiply", "divide"])
def test_float_arithmetic_rounds_once(opcode: str, type: str):
    dt = dtype(type)
    rng = np.random.default_rng(0)
    raw = rng.integers(0, 1 << min(dt.bits, 31), (2, 20000)).astype(np.dtype(f"u{dt.bits // 8}"))
    x, y = raw.view(dt.numpy)
    with np.errstate(all="ignore"):
        finite = np.isfinite(x.astype(np.float64)) & np.isfinite(y.astype(np.float64))
        x, y = x[finite], y[finite]
        function = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}[opcode]
        exact = function(x.astype(np.float64), y.astype(np.float64))
        got = evaluate(opcode, x, y, types=type)
        inside = np.isfinite(got.astype(np.float64)) & (np.abs(exact) < float(ml_dtypes.finfo(dt.numpy).max))
    assert inside.sum() > 5000
    assert same(got[inside], rounded(exact[inside], type) if dt.bits < 32 else exact[inside].astype(np.float32))


def test_maximum_and_minimum_know_nan_and_the_sign_of_zero():
    x = np.array([-0.0, 0.0, np.nan, 1.0, -0.0, 2.0], np.float32)
    y = np.array([0.0, -0.0, 1.0, np.nan, -0.0, -np.inf], np.float32)
    assert str(evaluate("maximum", x, y, types="f32")) == "[ 0.  0. nan nan -0.  2.]"
    assert str(evaluate("minimum", x, y, types="f32")) == "[ -0.  -0.  nan  nan  -0. -inf]"


def test_clamp_takes_scalar_bounds():
    x = np.array([-5, 0, 3, 9, np.nan], np.float32)
    got = evaluate("clamp", np.float32(-1).reshape(()), x, np.float32(4).reshape(()), types="f32")
    assert str(got) == "[-1.  0.  3.  4. nan]"


def test_select_takes_a_scalar_predicate():
    a, b = np.arange(4, dtype=np.int32), -np.arange(4, dtype=np.int32)
    assert evaluate("select", np.array(True), a, b, types=["pred", "s32", "s32"], result="s32").tolist() == [0, 1, 2, 3]
    some = np.array([True, False, True, False])
    assert evaluate("select", some, a, b, types=["pred", "s32", "s32"], result="s32").tolist() == [0, -1, 2, -3]


@pytest.mark.parametrize(
    ("direction", "want"),
    [("EQ", "ft ff"), ("NE", "tf tt"), ("LT", "tf ff"), ("LE", "tt ff"), ("GT", "ff ff"), ("GE", "ft ff")],
)
def test_compare_is_ordered_but_for_ne(direction: str, want: str):
    x = np.array([1, -0.0, np.nan, 1], np.float32)
    y = np.array([2, 0.0, np.nan, np.nan], np.float32)
    got = evaluate("compare", x, y, types="f32", result="pred", direction=StringAttr(direction))
    assert "".join("t" if v else "f" for v in got) == want.replace(" ", "")


def test_total_order_compares_every_bit_pattern():
    x = all_of("f8e5m2")
    a, b = (side.ravel() for side in np.meshgrid(x, x))
    got = evaluate(
        "compare", a, b, types="f8e5m2", result="pred", direction=StringAttr("LT"), type=StringAttr("TOTALORDER")
    )
    # IEEE 754 totalOrder of numbers: by value, -0 below +0; NaNs outermost by their sign.
    value, sign = a.astype(np.float32), np.signbit(a)
    other, other_sign = b.astype(np.float32), np.signbit(b)
    rank = np.where(np.isnan(value), np.inf, np.abs(value))
    both = ~np.isnan(value) & ~np.isnan(other)
    numbers = np.where(sign != other_sign, sign, value < other)
    assert rank.size == 65536
    assert np.array_equal(got[both], numbers[both])
    one_nan = np.isnan(value) != np.isnan(other)
    assert np.array_equal(got[one_nan], np.where(np.isnan(value), sign, ~other_sign)[one_nan])


def test_is_finite():
    x = np.array([0, -1, np.inf, -np.inf, np.nan], np.float32)
    assert evaluate("is-finite", x, types="f32", result="pred").tolist() == [True, True, False, False, False]


def test_remainder_of_floats_has_the_sign_of_the_dividend():
    x, y = np.array([5.5, -5.5, 5.5, np.inf, 1], np.float32), np.array([2, 2, -2, 1, 0], np.float32)
    assert str(evaluate("remainder", x, y, types="f32")) == "[ 1.5 -1.5  1.5  nan  nan]"


def test_complex_parts():
    x, y = np.array([1, np.inf], np.float32), np.array([2, np.nan], np.float32)
    z = evaluate("complex", x, y, types="f32", result="c64")
    assert same(evaluate("real", z, types="c64", result="f32"), x)
    assert same(evaluate("imag", z, types="c64", result="f32"), y)
    assert evaluate("abs", np.array([3 + 4j], np.complex64), types="c64", result="f32").tolist() == [5]
    assert evaluate("imag", x, types="f32").tolist() == [0, 0]


@pytest.mark.parametrize(
    ("opcode", "function"),
    [("exponential", np.exp), ("log", np.log), ("sqrt", np.sqrt), ("sine", np.sin), ("tanh", np.tanh), ("tan", np.tan)],
)
def test_c64_is_computed_in_complex128_and_rounded_once(opcode: str, function: np.ufunc):
    draw = np.random.default_rng(0)
    z = (draw.normal(size=500) + 1j * draw.normal(size=500)).astype(np.complex64)
    assert same(evaluate(opcode, z, types="c64"), function(z.astype(np.complex128)).astype(np.complex64))


def test_complex_products_are_rounded_by_parts_and_ordered_by_the_real_part():
    x, y = np.array([1 + 3j, 1 + 3j, 2 - 1j], np.complex64), np.array([1 + 2j, 3 - 1j, 2 - 1j], np.complex64)
    assert evaluate("multiply", x, y, types="c64").tolist() == [-5 + 5j, 6 + 8j, 3 - 4j]
    assert evaluate("maximum", x, y, types="c64").tolist() == [1 + 3j, 3 - 1j, 2 - 1j]
    assert evaluate("minimum", x, y, types="c64").tolist() == [1 + 2j, 1 + 3j, 2 - 1j]


def test_reduce_precision_to_bfloat16_is_rounding_to_it():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32)
    got = evaluate(
        "reduce-precision", x, types="f32", exponent_bits=IntegerAttr(8, i64), mantissa_bits=IntegerAttr(7, i64)
    )
    with np.errstate(all="ignore"):
        assert same(got, x.astype(ml_dtypes.bfloat16).astype(np.float32))


NARROW = """f8e5m2 f8e4m3 f8e4m3fn f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz f8e8m0fnu""".split()


@pytest.mark.parametrize("type", NARROW)
@pytest.mark.parametrize("mantissa_bits", [0, 1])
def test_reduce_precision_of_every_narrow_float(type: str, mantissa_bits: int):
    """Three exponent bits: 2 to the power of -2 to 3. What the type lacks becomes what it makes of 0 or infinity."""
    x = np.arange(256, dtype=np.uint8).view(dtype(type).numpy)
    bits = {"exponent_bits": IntegerAttr(3, i64), "mantissa_bits": IntegerAttr(mantissa_bits, i64)}
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        unit = np.exp2(np.floor(np.log2(np.abs(wide))) - mantissa_bits)
        # A tie goes to the even exponent where there is no mantissa, as of IEEE's floats: 1.5 to 2, and 3 to 2.
        whole = (
            np.rint(wide / unit) if mantissa_bits else np.copysign(np.where(_to_next(wide / unit, unit), 2, 1), wide)
        )
        rounded = np.where(np.isfinite(wide) & (wide != 0), whole * unit, wide)
        flushed = np.where(np.abs(rounded) < 0.25, np.copysign(0.0, wide), rounded)
        wanted = np.where(np.abs(flushed) >= 16, np.copysign(np.inf, wide), flushed)
        assert same(evaluate("reduce-precision", x, types=type, **bits), wanted.astype(x.dtype))


@pytest.mark.parametrize(
    ("bits", "wanted"), [((2, 0), [0, 0, 1, 2, 2, 2, 6, 6]), ((1, 1), [0, 0, 0, 0, 6, 6, 6, 6]), ((3, 1), None)]
)
def test_reduce_precision_of_four_bits(bits: tuple[int, int], wanted: list[float] | None):
    """What is too large becomes 6. Values: XLA:CPU."""
    x = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6]).astype(dtype("f4e2m1fn").numpy)
    exponent, mantissa = (IntegerAttr(count, i64) for count in bits)
    got = evaluate("reduce-precision", x, types="f4e2m1fn", exponent_bits=exponent, mantissa_bits=mantissa)
    assert got.astype(float).tolist() == (wanted or x.astype(float).tolist())


def _to_next(quotient: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Whether a number between 1 and 2 times `unit` is nearer to the second, or between both, and `unit` an even power of two."""
    size = np.abs(quotient)
    return (size > 1.5) | ((size == 1.5) & (np.log2(unit) % 2 == 0))


@pytest.mark.parametrize(("exponent_bits", "mantissa_bits"), [(0, 10), (-1, 10), (5, -1)])
def test_reduce_precision_to_no_float_is_refused(exponent_bits: int, mantissa_bits: int):
    bits = {"exponent_bits": IntegerAttr(exponent_bits, i64), "mantissa_bits": IntegerAttr(mantissa_bits, i64)}
    with pytest.raises(RuleBroken, match=f"no float has {exponent_bits} exponent and {mantissa_bits} mantissa bits"):
        make("reduce-precision", [("f32", (2,))], ("f32", (2,)), **bits).verify_()


def test_reduce_precision_to_half_flushes_what_half_holds_as_denormal():
    rng = np.random.default_rng(2)
    x = (rng.standard_normal(50_000) * np.exp2(rng.integers(-30, 20, 50_000))).astype(np.float32)
    got = evaluate(
        "reduce-precision", x, types="f32", exponent_bits=IntegerAttr(5, i64), mantissa_bits=IntegerAttr(10, i64)
    )
    with np.errstate(all="ignore"):
        half = x.astype(np.float16)
    # Near the smallest normal number a half rounds its mantissa coarser: compare from there up.
    normal = np.abs(x) >= 2.0**-14
    assert same(got[normal], half[normal].astype(np.float32))
    small = np.abs(x) < 2.0**-14 * (1 - 2.0**-12)
    assert same(got[small], np.copysign(np.float32(0), x[small]))


# ------------------------------------------------------------------------------------------- bits


def test_bitcast_convert_keeps_bits():
    x = np.array([1.0, -0.0], np.float32)
    assert evaluate("bitcast-convert", x, types="f32", result="u32").tolist() == [0x3F800000, 0x80000000]
    assert evaluate("bitcast-convert", np.array(1, np.float32), types="f32", result="u32") == 0x3F800000
    s4 = np.array([-1, 7, -8]).astype(ml_dtypes.int4)
    assert evaluate("bitcast-convert", s4, types="s4", result="u4").astype(int).tolist() == [15, 7, 8]


def test_bitcast_convert_between_widths_moves_parts_into_the_minor_dimension():
    op = make("bitcast-convert", [("u32", (2,))], ("u16", (2, 2)))
    op.verify_()
    assert op.evaluate([np.array([0x00010002, 5], np.uint32)], no_call).tolist() == [[2, 1], [5, 0]]
    back = make("bitcast-convert", [("u16", (2, 2))], ("u32", (2,)))
    back.verify_()
    assert back.evaluate([np.array([[2, 1], [5, 0]], np.uint16)], no_call).tolist() == [0x00010002, 5]


# ------------------------------------------------------------------------------------------- rules


def broken(op: HloOp) -> RuleBroken:
    with pytest.raises(RuleBroken) as caught:
        op.verify_()
    return caught.value


def test_operands_of_two_shapes_are_named_with_a_way_out():
    rule = broken(make("add", [("f32", (64, 4096)), ("f32", (4096,))], ("f32", (64, 4096))))
    assert rule.message == "elementwise operands differ in shape"
    assert rule.operand == 1
    assert rule.details == ("operand 1 is f32[4096]; 'add' needs f32[64,4096]",)
    assert rule.help == "f32[64,4096] broadcast(%b), dimensions={1}"


def test_the_operand_that_is_not_like_the_result_is_at_fault():
    assert broken(make("add", [("f32", (4096,)), ("f32", (64, 4096))], ("f32", (64, 4096)))).operand == 0


def test_a_result_of_another_shape_is_named():
    rule = broken(make("tanh", [("f32", (8,))], ("f32", (9,))))
    assert rule.details == ("it is f32[9]; its operands have [8]",)


def test_operands_of_two_types_are_named():
    rule = broken(make("multiply", [("f32", (8,)), ("bf16", (8,))], ("f32", (8,))))
    assert (rule.message, rule.operand) == ("elementwise operands differ in type", 1)
    assert rule.details == ("operand 1 is bf16[8]; 'multiply' needs f32 here",)


@pytest.mark.parametrize(
    ("opcode", "type"),
    [("tanh", "s32"), ("subtract", "pred"), ("and", "f32"), ("popcnt", "pred"), ("remainder", "c64")],
)
def test_a_type_that_the_op_does_not_take_is_refused(opcode: str, type: str):
    count = len(getattr(CLASSES[opcode], "ROW").operands)  # noqa: B009
    rule = broken(make(opcode, [(type, (8,))] * count, (type, (8,))))
    assert rule.message == f"'{opcode}' does not take {type}"


def test_the_result_type_follows_the_op():
    assert "it must be pred[8]" in broken(make("is-finite", [("f32", (8,))], ("f32", (8,)))).details[0]
    assert "it must be f32[8]" in broken(make("abs", [("c64", (8,))], ("c64", (8,)))).details[0]


def test_compare_checks_direction_and_type():
    two = [("s32", (8,)), ("s32", (8,))]
    assert "no comparison 'XX'" in str(broken(make("compare", two, ("pred", (8,)), direction=StringAttr("XX"))))
    rule = broken(make("compare", two, ("pred", (8,)), direction=StringAttr("EQ"), type=StringAttr("TOTALORDER")))
    assert rule.details == ("for s32 it is SIGNED",)


def test_the_number_of_operands_is_checked():
    assert "it has 1; 'add' takes 2" in str(broken(make("add", [("f32", (8,))], ("f32", (8,)))))


def test_scalar_operands_of_clamp_get_a_map_without_results():
    maps = make("clamp", [("f32", ()), ("f32", (3, 5)), ("f32", ())], ("f32", (3, 5))).output_to_input()
    assert [m.num_results for m in maps] == [0, 2, 0]
    assert [m.num_dims for m in maps] == [2, 2, 2]


def test_a_row_without_a_function_of_its_opcode_is_refused_by_name() -> None:
    """Where the table is made: at import, and for plugins when they register."""
    with pytest.raises(
        UsageError, match=r"HLO op 'hypot' has a row in ROWS .*, but no real function has this opcode"
    ) as found:
        elementwise._function("hypot")  # pyright: ignore[reportPrivateUsage]
    assert 'RealFunction("hypot", ...) to FUNCTIONS' in str(found.value)
