"""The values of instructions: from the ISA's text and tables, NumPy, ml_dtypes and exact fractions."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from unit.text.ptx.one_instruction import executed

from xla_emitters.errors import XlaEmittersError

RANDOM = np.random.default_rng(5)
F32, F64, F16, BF16 = np.float32, np.float64, np.float16, ml_dtypes.bfloat16
I32, U32, I64, U64, I16, U16 = np.int32, np.uint32, np.int64, np.uint64, np.int16, np.uint16


def integers(dtype: type, count: int = 256) -> np.ndarray:
    """Random ones, and the least, the greatest, 0, 1 and -1."""
    info = np.iinfo(dtype)
    found = RANDOM.integers(info.min, info.max, count, dtype, endpoint=True)
    edges = [info.min, info.max, 0, 1, info.max if info.min == 0 else -1, info.min + 1]
    found[: len(edges)] = edges
    return RANDOM.permutation(found)


def floats(dtype: type, count: int = 256) -> np.ndarray:
    """Random bits, so of all exponents, NaN and denormals too; and zeros, ones and infinities."""
    size = np.dtype(dtype).itemsize
    found = RANDOM.integers(0, 1 << 8 * size - 1, count, np.uint64).astype(f"u{size}")
    found ^= (RANDOM.integers(0, 2, count).astype(f"u{size}")) << (8 * size - 1)
    found = found.view(dtype)
    found[:8] = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0]).astype(dtype)
    found[8:72] = RANDOM.standard_normal(64).astype(dtype)
    return RANDOM.permutation(found)


def same(got: np.ndarray, wanted: np.ndarray) -> None:
    """The same numbers with the same signs of zero; any NaN is any NaN."""
    wanted = np.asarray(wanted).astype(got.dtype)
    if "float" in got.dtype.name:
        nan = np.isnan(wanted)
        assert (np.isnan(got) == nan).all()
        got, wanted = got[~nan], wanted[~nan]
    size = got.dtype.itemsize
    np.testing.assert_array_equal(got.view(f"u{size}"), wanted.view(f"u{size}"))


def exact(values: np.ndarray) -> list[Fraction]:
    return [Fraction(float(value)) for value in values]


def rounded(value: Fraction, dtype: type, mode: str) -> float:
    """A number rounded once, by stepping from Python's rounding of the fraction."""
    near = np.array(float(value), F64).astype(dtype) if dtype is not F64 else np.array(float(value))
    down, up = near, near
    while Fraction(float(down)) > value:
        down = np.nextafter(down, dtype(-np.inf))
    while Fraction(float(up)) < value:
        up = np.nextafter(up, dtype(np.inf))
    while Fraction(float(np.nextafter(down, dtype(np.inf)))) <= value:
        down = np.nextafter(down, dtype(np.inf))
    while Fraction(float(np.nextafter(up, dtype(-np.inf)))) >= value:
        up = np.nextafter(up, dtype(-np.inf))
    return {"rm": down, "rp": up, "rz": down if value > 0 else up}[mode]


# ---------------------------------------------------------------------------------------------- integers


@pytest.mark.parametrize(
    ("word", "dtype"), [("s16", I16), ("u16", U16), ("s32", I32), ("u32", U32), ("s64", I64), ("u64", U64)]
)
def test_integer_arithmetic_wraps(word: str, dtype: type) -> None:
    a, b = integers(dtype), integers(dtype)
    with np.errstate(over="ignore"):
        same(executed(f"add.{word} %d, %a0, %a1;", a, b, result=dtype), a + b)
        same(executed(f"sub.{word} %d, %a0, %a1;", a, b, result=dtype), a - b)
        same(executed(f"mul.lo.{word} %d, %a0, %a1;", a, b, result=dtype), a * b)
        same(executed(f"mad.lo.{word} %d, %a0, %a1, %a0;", a, b, result=dtype), a * b + a)
    bits = 8 * np.dtype(dtype).itemsize
    high = [(int(x) * int(y)) >> bits for x, y in zip(a, b, strict=True)]
    same(executed(f"mul.hi.{word} %d, %a0, %a1;", a, b, result=dtype), np.array(high, object))
    same(executed(f"min.{word} %d, %a0, %a1;", a, b, result=dtype), np.minimum(a, b))
    same(executed(f"max.{word} %d, %a0, %a1;", a, b, result=dtype), np.maximum(a, b))
    for name, function in (("lt", np.less), ("ge", np.greater_equal), ("eq", np.equal), ("ne", np.not_equal)):
        text = f"setp.{name}.{word} %p1, %a0, %a1; selp.b{bits} %d, 1, 0, %p1;"
        same(executed(text, a, b, result=dtype), function(a, b).astype(dtype))


@pytest.mark.parametrize(
    ("word", "dtype", "wide"), [("s32", I32, I64), ("u32", U32, U64), ("s16", I16, I32), ("u16", U16, U32)]
)
def test_wide_products(word: str, dtype: type, wide: type) -> None:
    a, b = integers(dtype), integers(dtype)
    same(executed(f"mul.wide.{word} %d, %a0, %a1;", a, b, result=wide), a.astype(wide) * b.astype(wide))
    c = integers(wide)
    with np.errstate(over="ignore"):
        want = a.astype(wide) * b.astype(wide) + c
    same(executed(f"mad.wide.{word} %d, %a0, %a1, %a2;", a, b, c, result=wide), want)


@pytest.mark.parametrize(("word", "dtype"), [("s16", I16), ("s32", I32), ("s64", I64), ("u32", U32), ("u64", U64)])
def test_division_truncates(word: str, dtype: type) -> None:
    a, b = integers(dtype), integers(dtype)
    b[b == 0] = 3
    wanted = [abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b, strict=True)]
    left = [int(x) - q * int(y) for x, q, y in zip(a, wanted, b, strict=True)]
    bits = 8 * np.dtype(dtype).itemsize
    wrapped = [(q + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1) if dtype in (I16, I32, I64) else q for q in wanted]
    same(executed(f"div.{word} %d, %a0, %a1;", a, b, result=dtype), np.array(wrapped, object))
    same(executed(f"rem.{word} %d, %a0, %a1;", a, b, result=dtype), np.array(left, object))


def test_saturating_sums_and_relu() -> None:
    a, b = integers(I32), integers(I32)
    total = a.astype(I64) + b
    same(executed("add.sat.s32 %d, %a0, %a1;", a, b, result=I32), np.clip(total, -(1 << 31), (1 << 31) - 1))
    same(executed("min.relu.s32 %d, %a0, %a1;", a, b, result=I32), np.maximum(np.minimum(a, b), 0))
    same(executed("max.relu.s32 %d, %a0, %a1;", a, b, result=I32), np.maximum(np.maximum(a, b), 0))


def test_sums_with_carry() -> None:
    a, b = integers(U64), integers(U64)
    halves = [x.view(U32)[part::2].copy() for x in (a, b) for part in (0, 1)]
    text = "add.cc.u32 %t1, %a0, %a2; addc.u32 %t2, %a1, %a3; mov.b64 %d, {%t1, %t2};"
    with np.errstate(over="ignore"):
        same(executed(text, *halves, result=U64), a + b)
        same(executed(text.replace("add", "sub"), *halves, result=U64), a - b)
        x, y, z = halves[0], halves[1], halves[2]
        text = "mad.lo.cc.u32 %t1, %a0, %a1, %a2; madc.hi.u32 %t2, %a0, %a1, 0; mov.b64 %d, {%t1, %t2};"
        same(executed(text, x, y, z, result=U64), x.astype(U64) * y + z)


def test_a_carry_goes_through_the_middle_word() -> None:
    """Of numbers of three words, at all edges: a sum with a carry in has a carry out too, and so has a difference."""
    words = list(zip(*itertools.product([0, 1, 0xFFFFFFFF], repeat=6), strict=True))
    first, second = (
        [low + (middle << 32) + (high << 64) for low, middle, high in zip(*words[part : part + 3], strict=True)]
        for part in (0, 3)
    )
    given = [np.array(word, U32) for word in words]
    text = "add.cc.u32 %t1, %a0, %a3; addc.cc.u32 %t2, %a1, %a4; addc.u32 %t3, %a2, %a5; mov.b64 %d, {%t2, %t3};"
    sums, differences = ([(a + sign * b >> 32) % 2**64 for a, b in zip(first, second, strict=True)] for sign in (1, -1))
    np.testing.assert_array_equal(executed(text, *given, result=U64), np.array(sums, U64))
    np.testing.assert_array_equal(executed(text.replace("add", "sub"), *given, result=U64), np.array(differences, U64))


def test_a_difference_leaves_the_carry_of_an_adder() -> None:
    """As ptxas 12.9 folds these, and as nvcc's division of 128 bits needs it: no borrow is a carry, which `addc` adds."""
    a, b = np.array([7, 5, 5, 0], U32), np.array([5, 7, 5, 1], U32)
    same(executed("sub.cc.u32 %t1, %a0, %a1; addc.u32 %d, 0, 0;", a, b, result=U32), a >= b)
    same(executed("add.cc.u32 %t1, %a0, %a1; subc.u32 %d, 0, 0;", a, b, result=I32), np.full(4, -1))
    same(executed("sub.cc.u32 %t1, %a0, %a1; subc.u32 %d, 0, 0;", a, b, result=I32), -(a < b).astype(I32))


I32_MAX = (1 << 31) - 1


def test_modifiers_that_bound_or_flush_a_part() -> None:
    """`.sat` of a product of 24 bits is of the sum; `.ftz` of slct is of the chooser; `.abs` of three operands leaves no sign."""
    a, b, c = (
        np.array(each, I32) for each in ([0x7FFFFF, -0x800000, 3], [0x7FFFFF, 0x7FFFFF, 4], [I32_MAX, -I32_MAX, 5])
    )
    wanted = np.clip((a.astype(I64) * b >> 16) + c, -(1 << 31), (1 << 31) - 1)
    assert wanted.tolist() == [I32_MAX, -I32_MAX - 1, 5]
    same(executed("mad24.hi.sat.s32 %d, %a0, %a1, %a2;", a, b, c, result=I32), wanted)
    small = np.array([1e-40, -1e-40, -1e-40], F32)
    chooser = np.array([-1, -1e-40, 1], F32)
    same(executed("slct.ftz.f32.f32 %d, %a0, 0f40000000, %a1;", small, chooser, result=F32), np.array([2, *small[1:]]))
    x, y, z = (np.array(each, F32) for each in ([-5, 2, -1], [3, -7, -2], [-4, 1, -3]))
    same(executed("min.abs.f32 %d, %a0, %a1, %a2;", x, y, z, result=F32), np.array([3, 1, 1]))
    same(executed("max.abs.f32 %d, %a0, %a1, %a2;", x, y, z, result=F32), np.array([5, 7, 3]))


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_shifts_beyond_the_width_shift_everything_out(bits: int) -> None:
    a = integers(np.dtype(f"u{bits // 8}").type)
    amount = RANDOM.integers(0, bits * 2, a.size).astype(U32)
    amount[:3] = [0, 0xFFFFFFFF, bits]
    values = [int(x) for x in a]
    left = [(x << int(n)) % (1 << bits) if n < bits else 0 for x, n in zip(values, amount, strict=True)]
    right = [x >> int(n) if n < bits else 0 for x, n in zip(values, amount, strict=True)]
    signed = [
        (x - (1 << bits) if x >> bits - 1 else x) >> min(int(n), bits) for x, n in zip(values, amount, strict=True)
    ]
    same(executed(f"shl.b{bits} %d, %a0, %a1;", a, amount, result=a.dtype), np.array(left, object))
    same(executed(f"shr.u{bits} %d, %a0, %a1;", a, amount, result=a.dtype), np.array(right, object))
    want = np.array([x % (1 << bits) for x in signed], object)
    same(executed(f"shr.s{bits} %d, %a0, %a1;", a, amount, result=a.dtype), want)


def test_funnel_shifts() -> None:
    a, b = integers(U32), integers(U32)
    n = RANDOM.integers(0, 70, a.size).astype(U32)
    both = [(int(y) << 32) | int(x) for x, y in zip(a, b, strict=True)]
    for mode, amounts in (("wrap", [int(x) & 31 for x in n]), ("clamp", [min(int(x), 32) for x in n])):
        left = [(x << k) >> 32 & 0xFFFFFFFF for x, k in zip(both, amounts, strict=True)]
        right = [x >> k & 0xFFFFFFFF for x, k in zip(both, amounts, strict=True)]
        same(executed(f"shf.l.{mode}.b32 %d, %a0, %a1, %a2;", a, b, n, result=U32), np.array(left))
        same(executed(f"shf.r.{mode}.b32 %d, %a0, %a1, %a2;", a, b, n, result=U32), np.array(right))


def test_bits() -> None:
    a, b, c = integers(U32), integers(U32), integers(U32)
    same(executed("popc.b32 %d, %a0;", a, result=U32), np.array([bin(x).count("1") for x in a]))
    same(executed("clz.b32 %d, %a0;", a, result=U32), np.array([32 - int(x).bit_length() for x in a]))
    same(executed("brev.b32 %d, %a0;", a, result=U32), np.array([int(f"{x:032b}"[::-1], 2) for x in a]))
    for table, function in ((0x96, lambda x, y, z: x ^ y ^ z), (0xE8, lambda x, y, z: (x & y) | (y & z) | (x & z))):
        same(executed(f"lop3.b32 %d, %a0, %a1, %a2, {table};", a, b, c, result=U32), function(a, b, c))
    # Table 0x40 is a & b & ~c: the ISA's example of how a table is made of 0xF0, 0xCC and 0xAA.
    same(executed(f"lop3.b32 %d, %a0, %a1, %a2, {0xF0 & 0xCC & ~0xAA};", a, b, c, result=U32), a & b & ~c)
    wide = integers(U64)
    same(executed("popc.b64 %d, %a0;", wide, result=U32), np.array([bin(int(x)).count("1") for x in wide]))
    same(executed("clz.b64 %d, %a0;", wide, result=U32), np.array([64 - int(x).bit_length() for x in wide]))
    same(executed("bfind.u32 %d, %a0;", a, result=U32), np.array([(int(x).bit_length() - 1) % (1 << 32) for x in a]))
    low, count = RANDOM.integers(0, 40, a.size).astype(U32), RANDOM.integers(0, 40, a.size).astype(U32)
    fields = [int(x) >> min(int(s), 32) & ((1 << int(n)) - 1) for x, s, n in zip(a, low, count, strict=True)]
    same(executed("bfe.u32 %d, %a0, %a1, %a2;", a, low, count, result=U32), np.array(fields))
    mask = [((1 << int(n)) - 1) << int(s) & 0xFFFFFFFF for s, n in zip(low, np.minimum(count, 32), strict=True)]
    put = [(int(y) & ~m) | ((int(x) << int(s)) & m) for x, y, s, m in zip(a, b, low, mask, strict=True)]
    same(executed("bfi.b32 %d, %a0, %a1, %a2, %a3;", a, b, low, count, result=U32), np.array(put))


@pytest.mark.parametrize("word", ["f32", "f64"])
def test_classes_of_numbers(word: str) -> None:
    """PTX ISA 8.8, 9.7.3.1 "testp": positive and negative zero are considered normal numbers."""
    given = np.array(
        [0, -0.0, 1, -np.inf, np.inf, np.nan, 1e-40 if word == "f32" else 1e-310],
        np.float32 if word == "f32" else np.float64,
    )
    wanted = {
        **{"finite": [1, 1, 1, 0, 0, 0, 1], "infinite": [0, 0, 0, 1, 1, 0, 0], "number": [1, 1, 1, 1, 1, 0, 1]},
        **{"notanumber": [0, 0, 0, 0, 0, 1, 0], "normal": [1, 1, 1, 0, 0, 0, 0], "subnormal": [0, 0, 0, 0, 0, 0, 1]},
    }
    for name, truth in wanted.items():
        body = f"testp.{name}.{word} %p1, %a0; selp.u32 %d, 1, 0, %p1;"
        same(executed(body, given, result=U32), np.array(truth))


def isa_bfe_s32(a: int, position: int, length: int) -> int:
    """The ISA's pseudo-code of bfe, bit by bit."""
    msb, position, length = 31, position & 0xFF, length & 0xFF
    sign = 0 if length == 0 else a >> min(position + length - 1, msb) & 1
    found = 0
    for place in range(msb + 1):
        inside = place < length and position + place <= msb
        found |= (a >> (position + place) & 1 if inside else sign) << place
    return found


def test_signed_bit_fields_follow_the_isa_s_pseudo_code() -> None:
    a = integers(U32)
    low, count = RANDOM.integers(0, 40, a.size).astype(U32), RANDOM.integers(0, 40, a.size).astype(U32)
    want = [isa_bfe_s32(int(x), int(s), int(n)) for x, s, n in zip(a, low, count, strict=True)]
    same(executed("bfe.s32 %d, %a0, %a1, %a2;", a, low, count, result=U32), np.array(want))


def test_bytes_are_permuted() -> None:
    a, b = np.array([0x33221180, 0x03020100] * 64, U32), np.array([0x77665544, 0x07060504] * 64, U32)
    selector = RANDOM.integers(0, 1 << 16, a.size).astype(U32)
    want = []
    for x, y, s in zip(a, b, selector, strict=True):
        bytes_ = [*int(x).to_bytes(4, "little"), *int(y).to_bytes(4, "little")]
        picked = [bytes_[s >> 4 * n & 7] for n in range(4)]
        picked = [(0xFF if p & 0x80 else 0) if s >> 4 * n & 8 else p for n, p in enumerate(picked)]
        want.append(int.from_bytes(bytes(picked), "little"))
    same(executed("prmt.b32 %d, %a0, %a1, %a2;", a, b, selector, result=U32), np.array(want))
    # Table 33 of the ISA: which bytes f4e, b4e, rc8, ecl, ecr and rc16 select, for selector bits 1:0.
    table = {
        "f4e": ("3210", "4321", "5432", "6543"),
        "b4e": ("5670", "6701", "7012", "0123"),
        "rc8": ("0000", "1111", "2222", "3333"),
        "ecl": ("3210", "3211", "3222", "3333"),
        "ecr": ("0000", "1110", "2210", "3210"),
        "rc16": ("1010", "3232", "1010", "3232"),
    }
    for mode, rows in table.items():
        number = np.arange(4, dtype=U32)
        got = executed(f"prmt.b32.{mode} %d, %a0, %a1, %a2;", a[1:2].repeat(4), b[1:2].repeat(4), number, result=U32)
        same(got, np.array([int("".join(f"0{digit}" for digit in row), 16) for row in rows]))


def test_dot_products_of_bytes() -> None:
    a, b, c = integers(I32), integers(I32), integers(I32)
    x, y = a.view(np.int8).reshape(-1, 4).astype(I64), b.view(np.int8).reshape(-1, 4).astype(I64)
    same(executed("dp4a.s32.s32 %d, %a0, %a1, %a2;", a, b, c, result=I32), ((x * y).sum(1) + c).astype(I32))
    y = b.view(np.uint8).reshape(-1, 4).astype(I64)
    same(executed("dp4a.s32.u32 %d, %a0, %a1, %a2;", a, b, c, result=I32), ((x * y).sum(1) + c).astype(I32))


# ---------------------------------------------------------------------------------------------- floats


@pytest.mark.parametrize(("word", "dtype"), [("f32", F32), ("f64", F64), ("f16", F16), ("bf16", BF16)])
def test_float_arithmetic_is_ieee_s(word: str, dtype: type) -> None:
    a, b = floats(dtype), floats(dtype)
    wide = F64 if dtype is F64 else F32
    x, y = a.astype(wide), b.astype(wide)
    with np.errstate(all="ignore"):
        same(executed(f"add.rn.{word} %d, %a0, %a1;", a, b, result=dtype), x + y)
        same(executed(f"sub.rn.{word} %d, %a0, %a1;", a, b, result=dtype), x - y)
        same(executed(f"mul.rn.{word} %d, %a0, %a1;", a, b, result=dtype), x * y)
        same(executed(f"neg.{word} %d, %a0;", a, result=dtype), -x)
        same(executed(f"abs.{word} %d, %a0;", a, result=dtype), np.abs(x))
        low, high = np.where(x == y, x, np.fmin(x, y)), np.where(x == y, x, np.fmax(x, y))
        zero = (x == 0) & (y == 0)
        low = np.where(zero, np.where(np.signbit(x) | np.signbit(y), -0.0, 0.0), low)
        high = np.where(zero, np.where(np.signbit(x) & np.signbit(y), -0.0, 0.0), high)
        nan = np.isnan(x) | np.isnan(y)
        same(executed(f"min.{word} %d, %a0, %a1;", a, b, result=dtype), low)
        same(executed(f"max.{word} %d, %a0, %a1;", a, b, result=dtype), high)
        if word != "f64":
            same(executed(f"min.NaN.{word} %d, %a0, %a1;", a, b, result=dtype), np.where(nan, np.nan, low))
            same(executed(f"max.NaN.{word} %d, %a0, %a1;", a, b, result=dtype), np.where(nan, np.nan, high))


ORDERS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "eq": np.equal,
    "ne": lambda x, y: (x < y) | (x > y),
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "equ": lambda x, y: ~((x < y) | (x > y)),
    "neu": np.not_equal,
    "ltu": lambda x, y: ~(x >= y),
    "leu": lambda x, y: ~(x > y),
    "gtu": lambda x, y: ~(x <= y),
    "geu": lambda x, y: ~(x < y),
    "num": lambda x, y: ~(np.isnan(x) | np.isnan(y)),
    "nan": lambda x, y: np.isnan(x) | np.isnan(y),
}


@pytest.mark.parametrize("order", ORDERS)
def test_comparisons_of_floats(order: str) -> None:
    a, b = floats(F32), floats(F32)
    b[:20] = a[:20]
    text = f"setp.{order}.f32 %p1, %a0, %a1; selp.b32 %d, 1, 0, %p1;"
    same(executed(text, a, b, result=I32), ORDERS[order](a, b).astype(I32))
    text = f"setp.{order}.and.f32 %p1|%p2, %a0, %a1, %p0; selp.b32 %d, 1, 0, %p2;"
    same(executed(f"setp.eq.u32 %p0, 0, 0; {text}", a, b, result=I32), (~ORDERS[order](a, b)).astype(I32))


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@pytest.mark.parametrize(("word", "dtype"), [("f32", F32), ("f64", F64)])
def test_directed_rounding_by_exact_fractions(word: str, dtype: type, mode: str) -> None:
    a, b, c = ((RANDOM.standard_normal(48) * 2.0 ** RANDOM.integers(-20, 20, 48)).astype(dtype) for _ in range(3))
    a[0], b[0] = b[0], -b[0]
    pairs = list(zip(exact(a), exact(b), exact(c), strict=True))
    sums = [rounded(x + y, dtype, mode) if x + y else (-0.0 if mode == "rm" else 0.0) for x, y, _ in pairs]
    same(executed(f"add.{mode}.{word} %d, %a0, %a1;", a, b, result=dtype), np.array(sums))
    products = [rounded(x * y, dtype, mode) for x, y, _ in pairs]
    same(executed(f"mul.{mode}.{word} %d, %a0, %a1;", a, b, result=dtype), np.array(products))
    fused = [rounded(x * y + z, dtype, mode) for x, y, z in pairs]
    same(executed(f"fma.{mode}.{word} %d, %a0, %a1, %a2;", a, b, c, result=dtype), np.array(fused))
    quotients = [rounded(x / y, dtype, mode) for x, y, _ in pairs]
    same(executed(f"div.{mode}.{word} %d, %a0, %a1;", a, b, result=dtype), np.array(quotients))


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@pytest.mark.parametrize(("word", "dtype"), [("f32", F32), ("f64", F64)])
def test_directed_rounding_near_the_largest_and_the_smallest_numbers(word: str, dtype: type, mode: str) -> None:
    """Beyond the largest number it is that number or an infinity; what is left of a small quotient or square is not lost."""
    of, small = np.finfo(dtype), RANDOM.uniform(1, 2, 40).astype(dtype)
    a = np.concatenate([small * of.tiny * 8, small[:8] * of.smallest_subnormal * 9, np.array([of.max, -of.max] * 6)])
    b = np.concatenate(
        [small[::-1] + 1, [3, 7, 1.5, -3, 5, -7, 11, 13], [0.25, -0.25, of.max, 1, -of.max, 0.75] * 2]
    ).astype(dtype)
    a = a.astype(dtype)
    pairs = list(zip(exact(a), exact(b), strict=True))

    def towards(number: Fraction) -> float:
        if abs(number) == Fraction(float(of.max)):
            return float(number)
        if abs(number) < Fraction(float(of.max)):
            return float(rounded(number, dtype, mode))
        stays = mode == "rz" or (mode == "rm") == (number > 0)
        return (1 if number > 0 else -1) * (float(of.max) if stays else math.inf)

    for op, function in {
        "div": lambda x, y: x / y,
        "mul": lambda x, y: x * y,
        "add": lambda x, y: x + y,
    }.items():
        wanted = [towards(function(x, y)) for x, y in pairs]
        if mode == "rm":
            wanted = [
                -0.0 if op == "add" and x + y == 0 else number for number, (x, y) in zip(wanted, pairs, strict=True)
            ]
        same(executed(f"{op}.{mode}.{word} %d, %a0, %a1;", a, b, result=dtype), np.array(wanted, dtype))
    inverses = [towards(1 / x) for x in exact(a)]
    same(executed(f"rcp.{mode}.{word} %d, %a0;", a, result=dtype), np.array(inverses, dtype))
    roots = executed(f"sqrt.{mode}.{word} %d, %a0;", np.abs(a), result=dtype)
    for x, root in zip(exact(np.abs(a)), roots, strict=True):
        below, above = (Fraction(float(np.nextafter(root, dtype(way)))) for way in (0, math.inf))
        assert (
            (below**2 < x <= Fraction(float(root)) ** 2)
            if mode == "rp"
            else (Fraction(float(root)) ** 2 <= x < above**2)
        )
    same(executed(f"div.{mode}.{word} %d, %a0, %a1;", small, small * 0, result=dtype), np.full(40, np.inf))


def test_fma_rounds_once() -> None:
    a = np.array([1 + 2.0**-12, 1 + 2.0**-23], F32)
    c = -np.array([1 + 2.0**-11, 1 + 2.0**-22], F32)
    same(executed("fma.rn.f32 %d, %a0, %a0, %a1;", a, c, result=F32), np.array([2.0**-24, 2.0**-46]))
    x, y, z = (RANDOM.standard_normal(64) for _ in range(3))
    want = [float(p * q + r) for p, q, r in zip(exact(x), exact(y), exact(z), strict=True)]
    same(executed("fma.rn.f64 %d, %a0, %a1, %a2;", x, y, z, result=F64), np.array(want))


def test_ftz_flushes_operands_and_results() -> None:
    tiny = np.array([1e-40, -1e-40, 2.0**-126, 2.0**-100, np.nan], F32)
    same(executed("add.ftz.f32 %d, %a0, %a0;", tiny, result=F32), np.array([0.0, -0.0, 2.0**-125, 2.0**-99, np.nan]))
    small = np.array([2.0**-100], F32)
    same(executed("mul.rn.ftz.f32 %d, %a0, %a0;", small, result=F32), np.array([0.0]))
    same(executed("mul.rn.f32 %d, %a0, %a1;", small, np.array([2.0**-30], F32), result=F32), np.array([2.0**-130]))


def test_saturation_clamps_to_one_and_nan_to_zero() -> None:
    a = np.array([-1, 0.25, 7, np.nan, np.inf, -0.0], F32)
    same(executed("add.sat.f32 %d, %a0, 0f00000000;", a, result=F32), np.array([0, 0.25, 1, 0, 1, 0.0]))
    same(executed("cvt.sat.f32.f32 %d, %a0;", a, result=F32), np.array([0, 0.25, 1, 0, 1, 0.0]))


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("ex2.approx.f32", np.exp2),
        ("lg2.approx.f32", np.log2),
        ("rcp.approx.f32", lambda x: 1 / x),
        ("rcp.rn.f32", lambda x: 1 / x),
        ("sqrt.approx.f32", np.sqrt),
        ("sqrt.rn.f32", np.sqrt),
        ("rsqrt.approx.f32", lambda x: 1 / np.sqrt(x)),
        ("sin.approx.f32", np.sin),
        ("cos.approx.f32", np.cos),
        ("tanh.approx.f32", np.tanh),
    ],
)
def test_functions_are_rounded_once(text: str, function: Callable[[np.ndarray], np.ndarray]) -> None:
    a = floats(F32)
    with np.errstate(all="ignore"):
        same(executed(f"{text} %d, %a0;", a, result=F32), function(a.astype(F64)).astype(F32))


def test_the_root_s_reciprocal_of_f64_is_rounded_once_and_of_its_upper_word_with_ftz() -> None:
    """ptxas refines rsqrt.approx.f64 (MUFU.RSQ64H, two Newton steps, denormals scaled); with .ftz it is the upper word alone."""
    a = np.array([0.1, 0.65, 2.0, 1e-310, np.inf, 0.0, -1.0])
    with np.errstate(all="ignore"):
        want = 1 / np.sqrt(a)
    same(executed("rsqrt.approx.f64 %d, %a0;", a, result=F64), want)
    quarter = np.array([4.0, np.nextafter(4.0, 5.0), 1e-310])
    same(executed("rsqrt.approx.ftz.f64 %d, %a0;", quarter, result=F64), np.array([0.5, 0.5, np.inf]))
    same(executed("rcp.approx.ftz.f64 %d, %a0;", quarter, result=F64), np.array([0.25, 0.25, np.inf]))


def test_special_values_of_approximations_are_the_isa_s() -> None:
    """The ISA's tables for ex2, lg2, rcp, rsqrt, and div.approx with a divisor above 2**126."""
    a = np.array([-np.inf, -0.0, 0.0, np.inf, np.nan], F32)
    same(executed("ex2.approx.ftz.f32 %d, %a0;", a, result=F32), np.array([0.0, 1, 1, np.inf, np.nan]))
    same(executed("lg2.approx.ftz.f32 %d, %a0;", a, result=F32), np.array([np.nan, -np.inf, -np.inf, np.inf, np.nan]))
    same(executed("rcp.approx.ftz.f32 %d, %a0;", a, result=F32), np.array([-0.0, -np.inf, np.inf, 0.0, np.nan]))
    same(executed("rsqrt.approx.ftz.f32 %d, %a0;", a, result=F32), np.array([np.nan, -np.inf, np.inf, 0.0, np.nan]))
    top = np.array([1.0, np.inf], F32)
    big = np.array([2.0**127, 2.0**127], F32)
    same(executed("div.approx.f32 %d, %a0, %a1;", top, big, result=F32), np.array([0.0, np.nan]))
    same(executed("div.full.f32 %d, %a0, %a1;", top, big, result=F32), np.array([2.0**-127, np.inf]))


def test_copysign_takes_the_sign_of_the_first_operand() -> None:
    a, b = np.array([-1.0, 2.0], F32), np.array([3.0, -4.0], F32)
    same(executed("copysign.f32 %d, %a0, %a1;", a, b, result=F32), np.array([-3.0, 4.0]))


def test_pairs_of_halves() -> None:
    a, b = floats(F16), floats(F16)
    with np.errstate(all="ignore"):
        want = (a.astype(F32) + b.astype(F32)).astype(F16)
    got = executed("add.rn.f16x2 %d, %a0, %a1;", a.view(U32), b.view(U32), result=U32)
    same(got.view(F16), want)
    x, y = floats(F32), floats(F32)
    with np.errstate(all="ignore"):
        low, high = y.astype(BF16), x.astype(BF16)
    got = executed("cvt.rn.bf16x2.f32 %d, %a0, %a1;", x, y, result=U32).view(BF16)
    same(got[0::2].copy(), low)
    same(got[1::2].copy(), high)


def test_pairs_of_f32_and_sums_of_two_types() -> None:
    """Of sm_100: both halves of a 64-bit register; a narrow operand is extended before the sum is rounded once."""
    a, b = floats(F32), floats(F32)
    with np.errstate(all="ignore"):
        for name, want in (("add", a + b), ("mul", a * b), ("fma", None)):
            if want is None:
                got = executed("fma.rn.f32x2 %d, %a0, %a1, %a0;", a.view(U64), b.view(U64), result=U64)
                same(got.view(F32), executed("fma.rn.f32 %d, %a0, %a1, %a0;", a, b, result=F32))
            else:
                same(executed(f"{name}.rn.f32x2 %d, %a0, %a1;", a.view(U64), b.view(U64), result=U64).view(F32), want)
        narrow = floats(BF16)
        got = executed("add.rn.f32.bf16 %d, %a0, %a1;", narrow, a, result=F32)
        same(got, narrow.astype(F32) + a)
        got = executed("sub.rn.f32.bf16 %d, %a0, %a1;", narrow, a, result=F32)
        same(got, narrow.astype(F32) - a)


# ---------------------------------------------------------------------------------------------- conversions


@pytest.mark.parametrize(
    ("mode", "function"), [("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)]
)
@pytest.mark.parametrize(("word", "dtype"), [("s32", I32), ("u32", U32), ("s64", I64), ("u64", U64), ("s16", I16)])
def test_floats_to_integers_saturate(mode: str, function: Callable[..., np.ndarray], word: str, dtype: type) -> None:
    info = np.iinfo(dtype)
    for of, source in (("f32", F32), ("f64", F64)):
        a = floats(source)
        a[:6] = [2.5, -2.5, 1e30, -1e30, 0.5, 3.5]
        want = []
        with np.errstate(invalid="ignore"):
            wide = function(a.astype(F64))
        for value in wide:
            if np.isnan(value):
                # ISA: 0 where the source is not f64 and the result not of 64 bits, else only the top bit is set.
                top = -(1 << info.bits - 1) if info.min else 1 << (info.bits - 1)
                want.append(top if of == "f64" or info.bits == 64 else 0)
            else:
                want.append(
                    int(min(max(value, info.min), info.max))
                    if np.isfinite(value)
                    else (info.max if value > 0 else info.min)
                )
        want = [min(max(number, info.min), info.max) for number in want]
        same(executed(f"cvt.{mode}.{word}.{of} %d, %a0;", a, result=dtype), np.array(want, object))


def test_integers_to_floats_and_to_integers() -> None:
    a = integers(I32)
    same(executed("cvt.rn.f32.s32 %d, %a0;", a, result=F32), a.astype(F64).astype(F32))
    same(executed("cvt.rn.f32.u32 %d, %a0;", a, result=F32), a.view(U32).astype(F64).astype(F32))
    for mode in ("rz", "rm", "rp"):
        want = [rounded(Fraction(int(x)), F32, mode) if x else 0.0 for x in a]
        same(executed(f"cvt.{mode}.f32.s32 %d, %a0;", a, result=F32), np.array(want))
    same(executed("cvt.s64.s32 %d, %a0;", a, result=I64), a.astype(I64))
    same(executed("cvt.u64.u32 %d, %a0;", a, result=U64), a.view(U32).astype(U64))
    same(executed("cvt.s32.s8 %d, %a0;", a, result=I32), a.astype(np.int8))
    short = integers(U16)
    same(executed("cvt.u32.u16 %d, %a0;", short, result=U32), short.astype(U32))
    same(executed("cvt.sat.s16.s32 %d, %a0;", a, result=I16), np.clip(a, -(1 << 15), (1 << 15) - 1))
    same(executed("cvt.sat.u8.s32 %d, %a0;", a, result=U16), np.clip(a, 0, 255))


def test_floats_to_narrower_floats() -> None:
    a = floats(F32)
    with np.errstate(all="ignore"):
        same(executed("cvt.rn.f16.f32 %d, %a0;", a, result=F16), a.astype(F16))
        same(executed("cvt.rn.bf16.f32 %d, %a0;", a, result=BF16), a.astype(BF16))
        wide = floats(F64)
        same(executed("cvt.rn.f32.f64 %d, %a0;", wide, result=F32), wide.astype(F32))
        same(executed("cvt.f64.f32 %d, %a0;", a, result=F64), a.astype(F64))
        same(executed("cvt.rni.f32.f32 %d, %a0;", a, result=F32), np.rint(a))
    cut = (a.view(U32) & U32(0xFFFF0000)).view(F32)
    finite = np.isfinite(a)
    got = executed("cvt.rz.bf16.f32 %d, %a0;", a, result=BF16)
    same(got[finite], cut[finite].astype(BF16))
    tf32 = ((a.view(U32) + U32(0x1000)) & U32(0xFFFFE000)).view(F32)
    same(executed("cvt.rna.tf32.f32 %d, %a0;", a, result=F32)[finite], tf32[finite])


# ---------------------------------------------------------------------------------------------- parts of words

OF_PARTS = {
    "vadd": lambda x, y: x + y,
    "vsub": lambda x, y: x - y,
    "vavrg": lambda x, y: (x + y + 1) >> 1 if x + y >= 0 else (x + y) >> 1,
    "vabsdiff": lambda x, y: abs(x - y),
    "vmin": min,
    "vmax": max,
}


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", OF_PARTS)
@pytest.mark.parametrize("types", ["u32.u32.u32", "s32.s32.s32", "s32.u32.s32"])
def test_arithmetic_of_halves_and_bytes(name: str, count: int, types: str) -> None:
    """As the ISA's text has it, in Python's integers: each part extended, bounded by the result's type, or summed with `c`."""
    a, b, c = integers(U32), integers(U32), integers(U32)
    bits, (of_result, *of_operands) = 32 // count, types.split(".")
    kinds = [np.dtype(f"{word[0].replace('s', 'i')}{bits // 8}") for word in of_operands]
    pairs = list(
        zip(*(of.view(kind).reshape(-1, count).tolist() for of, kind in zip((a, b), kinds, strict=True)), strict=True)
    )
    parts = [[OF_PARTS[name](x, y) for x, y in zip(*pair, strict=True)] for pair in pairs]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if of_result == "s32" else (0, (1 << bits) - 1)

    def packed(row: list[int]) -> int:
        return sum((part & (1 << bits) - 1) << bits * n for n, part in enumerate(row))

    operands = "%d, %a0, %a1, %a2;"
    same(
        executed(f"{name}{count}.{types} {operands}", a, b, c, result=U32),
        np.array([packed(row) for row in parts], U32),
    )
    bounded = [packed([min(max(part, low), high) for part in row]) for row in parts]
    same(executed(f"{name}{count}.{types}.sat {operands}", a, b, c, result=U32), np.array(bounded, U32))
    sums = [(sum(row) + int(start)) % (1 << 32) for row, start in zip(parts, c, strict=True)]
    same(executed(f"{name}{count}.{types}.add {operands}", a, b, c, result=U32), np.array(sums, U32))


@pytest.mark.parametrize(("name", "function"), [("lt", np.less), ("ge", np.greater_equal), ("eq", np.equal)])
def test_comparisons_of_halves_and_bytes(name: str, function: Callable[..., np.ndarray]) -> None:
    a, b, c = integers(U32), integers(U32), integers(U32)
    b[::2] = a[::2]
    for count, of in ((2, np.int16), (4, np.int8)):
        wanted = function(a.view(of), b.view(of)).astype(of)
        operands = "%d, %a0, %a1, %a2;"
        same(executed(f"vset{count}.s32.s32.{name} {operands}", a, b, c, result=U32), wanted.view(U32))
        sums = wanted.reshape(-1, count).astype(np.int64).sum(1) + c
        same(executed(f"vset{count}.s32.s32.{name}.add {operands}", a, b, c, result=U32), sums.astype(U32))


def part_of(value: int, word: str, parts: str) -> int:
    """The ISA's partSelectSignExtend."""
    bits = {"b": 8, "h": 16}.get(parts[:1], 32)
    found = value >> bits * int(parts[1:] or 0) & (1 << bits) - 1
    return found - (1 << bits) if word == "s32" and found >> bits - 1 else found


@pytest.mark.parametrize("name", [name for name in OF_PARTS if name != "vavrg"])
@pytest.mark.parametrize("types", ["u32.u32.s32", "s32.s32.u32", "u32.s32.s32"])
@pytest.mark.parametrize(
    ("of_d", "of_a", "of_b"), [("", "", ""), ("", "b3", "h0"), ("b2", "", "h1"), ("h1", "b0", "b1")]
)
def test_arithmetic_of_a_word(name: str, types: str, of_d: str, of_a: str, of_b: str) -> None:
    """By the ISA's semantics: 9.7.17.1 to 9.7.17.5 in Python's integers, the second operation and the merge too."""
    a, b, c = integers(U32), integers(U32), integers(U32)
    result, first, second = types.split(".")
    bits, start = {"b": 8, "h": 16}.get(of_d[:1], 32), 0
    start = bits * int(of_d[1:] or 0)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if result == "s32" else (0, (1 << bits) - 1)
    found = [
        OF_PARTS[name](part_of(int(x), first, of_a), part_of(int(y), second, of_b)) for x, y in zip(a, b, strict=True)
    ]
    bounded = [min(max(value, low), high) for value in found]
    operands = f"%d{'.' * bool(of_d)}{of_d}, %a0{'.' * bool(of_a)}{of_a}, %a1{'.' * bool(of_b)}{of_b}"
    for sat, values in (("", found), (".sat", bounded)):
        if of_d:
            mask = (1 << bits) - 1 << start
            wanted = [int(z) & ~mask | value << start & mask for value, z in zip(values, c, strict=True)]
            same(executed(f"{name}.{types}{sat} {operands}, %a2;", a, b, c, result=U32), np.array(wanted, U32))
            continue
        same(
            executed(f"{name}.{types}{sat} {operands};", a, b, result=U32),
            np.array([v % (1 << 32) for v in values], U32),
        )
        for update, merge in (("add", lambda x, y: x + y), ("min", min), ("max", max)):
            wanted = [
                merge(part_of(value % (1 << 32), result, ""), part_of(int(z), result, "")) % (1 << 32)
                for value, z in zip(values, c, strict=True)
            ]
            same(executed(f"{name}.{types}{sat}.{update} {operands}, %a2;", a, b, c, result=U32), np.array(wanted, U32))


def test_comparisons_of_a_word() -> None:
    a, b, c = integers(U32), integers(U32), integers(U32)
    truth = np.array([part_of(int(x), "s32", "h1") < part_of(int(y), "u32", "b0") for x, y in zip(a, b, strict=True)])
    same(executed("vset.s32.u32.lt %d, %a0.h1, %a1.b0;", a, b, result=U32), truth)
    with np.errstate(over="ignore"):
        same(executed("vset.s32.u32.lt.add %d, %a0.h1, %a1.b0, %a2;", a, b, c, result=U32), c + truth.astype(U32))
    same(executed("vset.s32.u32.lt.max %d, %a0.h1, %a1.b0, %a2;", a, b, c, result=U32), np.maximum(c, truth))


@pytest.mark.parametrize("types", ["u32.u32.u32", "s32.s32.u32", "s32.u32.u32", "u32.s32.u32"])
def test_shifts_of_a_word(types: str) -> None:
    """9.7.17.6: the amount is cut to 5 bits, or 32 where it is more; `.sat` is into the range of the result's type."""
    a, b, c = integers(U32), RANDOM.integers(0, 70, 256).astype(U32), integers(U32)
    result, first, _ = types.split(".")
    low, high = (-(1 << 31), (1 << 31) - 1) if result == "s32" else (0, (1 << 32) - 1)
    for mode, amounts in (("wrap", [int(n) & 31 for n in b]), ("clamp", [min(int(n), 32) for n in b])):
        for name, function in (("vshl", lambda x, n: x << n), ("vshr", lambda x, n: x >> n)):
            found = [function(part_of(int(x), first, "h1"), n) for x, n in zip(a, amounts, strict=True)]
            wrapped, bounded = [x % (1 << 32) for x in found], [min(max(x, low), high) % (1 << 32) for x in found]
            same(executed(f"{name}.{types}.{mode} %d, %a0.h1, %a1;", a, b, result=U32), np.array(wrapped, U32))
            same(executed(f"{name}.{types}.sat.{mode} %d, %a0.h1, %a1;", a, b, result=U32), np.array(bounded, U32))
            whole = [
                min(max(function(part_of(int(x), first, ""), n), low), high) for x, n in zip(a, amounts, strict=True)
            ]
            got = executed(f"{name}.{types}.sat.{mode}.add %d, %a0, %a1, %a2;", a, b, c, result=U32)
            same(got, np.array([(x + int(z)) % (1 << 32) for x, z in zip(whole, c, strict=True)], U32))


@pytest.mark.parametrize("types", ["u32.u32.u32", "s32.s32.u32", "s32.u32.s32", "s32.s32.s32"])
@pytest.mark.parametrize("scale", [0, 7, 15])
def test_products_of_a_word(types: str, scale: int) -> None:
    """9.7.17.7: the result has a sign where one of the factors has."""
    a, b, c = integers(U32), integers(U32), integers(U32)
    _, first, second = types.split(".")
    final = "s32" if "s32" in (first, second) else "u32"
    low, high = (-(1 << 31), (1 << 31) - 1) if final == "s32" else (0, (1 << 32) - 1)
    ending = f".shr{scale}" if scale else ""
    for one, part in (("", ""), (".po", "b2")):
        found = [
            part_of(int(x), first, part) * part_of(int(y), second, "") + part_of(int(z), final, "") + (one == ".po")
            >> scale
            for x, y, z in zip(a, b, c, strict=True)
        ]
        operands = f"%d, %a0{'.' * bool(part)}{part}, %a1, %a2;"
        got = executed(f"vmad.{types}{one}{ending} {operands}", a, b, c, result=U32)
        same(got, np.array([x % (1 << 32) for x in found], U32))
        got = executed(f"vmad.{types}{one}.sat{ending} {operands}", a, b, c, result=U32)
        same(got, np.array([min(max(x, low), high) % (1 << 32) for x in found], U32))


def test_chosen_halves_and_bytes() -> None:
    """Parts of both operands, numbered from the first one's lowest; those that are not written are of `c`."""
    a, b, c = (integers(U32) for _ in range(3))
    halves = np.stack([a.view(U16)[::2], a.view(U16)[1::2], b.view(U16)[::2], b.view(U16)[1::2]])
    low, high = halves[3] + halves[0], halves[1] - halves[2]
    got = executed("vadd2.u32.u32.u32 %d.h0, %a0.h03, %a1.h20, %a2;", a, b, c, result=U32)
    same(got, low.astype(U32) | c & U32(0xFFFF0000))
    got = executed("vsub2.u32.u32.u32 %d.h1, %a0.h13, %a1.h20, %a2;", a, b, c, result=U32)
    same(got, high.astype(U32) << U32(16) | c & U32(0xFFFF))
    octets = np.concatenate([a.view(np.uint8).reshape(-1, 4), b.view(np.uint8).reshape(-1, 4)], axis=1)
    wanted = np.maximum(octets[:, [7, 0, 5, 2]], octets[:, [4, 4, 3, 3]])
    wanted[:, [0, 2]] = c.view(np.uint8).reshape(-1, 4)[:, [0, 2]]
    got = executed("vmax4.u32.u32.u32 %d.b31, %a0.b2507, %a1.b3344, %a2;", a, b, c, result=U32)
    same(got, np.ascontiguousarray(wanted).view(U32)[:, 0])
    got = executed("vadd4.s32.s32.s32.add %d.b21, %a0.b2507, %a1.b4444, %a2;", a, np.zeros_like(b), c, result=U32)
    octets[:, 4:] = 0
    signed = octets[:, [7, 0, 5, 2]].view(np.int8).astype(I64)[:, 1:3].sum(axis=1)
    same(got, (c + signed).astype(U32))


@pytest.mark.parametrize(
    "text",
    [
        *("vadd.u32.u32.u32 %d, %a0.b4, %a0", "vadd.u32.u32.u32 %d, %a0.h2, %a0", "vadd.u32.u32.u32 %d.b0, %a0, %a0"),
        *("vadd.u32.u32.u32.min %d, %a0, %a0", "vadd.u32.u32.u32 %d, %a0.h10, %a0", "vadd2.u32.u32.u32 %d, %a0, %a0"),
        *("vadd2.u32.u32.u32 %d, %a0.h1, %a0, %a0", "vadd4.u32.u32.u32 %d.h1, %a0, %a0, %a0"),
        *("vadd4.u32.u32.u32 %d.b7, %a0, %a0, %a0", "add.u32 %d, %a0.b0, %a0"),
    ],
)
def test_parts_that_there_are_not(text: str) -> None:
    """ptxas 12.9 refuses them too."""
    with pytest.raises(XlaEmittersError, match=r"has no parts|takes \d operands|reads a register"):
        executed(f"{text};", np.zeros(1, U32), result=U32)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("vadd4.u32.u32", "needs 3 types"),
        ("vset4.u32.u32.u32.lt", "needs 2 types"),
        ("vadd4.u32.u32.u32.sat.add", r"has \.sat or \.add, not both"),
        ("vset2.u32.u32", "needs"),
    ],
)
def test_wrong_arithmetic_of_parts(name: str, message: str) -> None:
    a = integers(U32)
    with pytest.raises(XlaEmittersError, match=message):
        executed(f"{name} %d, %a0, %a0, %a0;", a, result=U32)
