"""Numbers of less than 16 bits, packed ones, 128 bits, and updates of neighbours: values by ml_dtypes, NumPy and enumeration."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from unit.text.ptx.one_instruction import HEAD, executed

from xla_emitters.errors import ExecutionError, ParseError, Unsupported
from xla_emitters.explore.check.any_ptx import PtxKernel, launch_of

TYPES: dict[str, Any] = {
    **{"e4m3x2": ml_dtypes.float8_e4m3fn, "e5m2x2": ml_dtypes.float8_e5m2},
    **{"e2m3x2": ml_dtypes.float6_e2m3fn, "e3m2x2": ml_dtypes.float6_e3m2fn, "e2m1x2": ml_dtypes.float4_e2m1fn},
}
NUMBERS = np.array(
    [0.0, -0.0, 0.3, -0.7, 1.0, 1.0625, -2.5, 3.0, 5.0, 7.25, 30.0, -500.0, 1e5, np.inf, -np.inf, np.nan], np.float32
)


def expected(word: str, numbers: np.ndarray, is_positive: bool) -> np.ndarray:
    """The code of each number: saturated, NaN as the ISA says: 0x7F, or the largest number where the type has no NaN."""
    largest = ml_dtypes.finfo(TYPES[word]).max
    wide = np.maximum(numbers, np.float32(0)) if is_positive else numbers
    codes = np.clip(wide, -np.float32(largest), np.float32(largest)).astype(TYPES[word]).view(np.uint8)
    nan = 0x7F if word in ("e4m3x2", "e5m2x2") else np.array(largest).astype(TYPES[word]).view(np.uint8)
    return np.where(np.isnan(numbers), nan, codes)


@pytest.mark.parametrize("word", TYPES)
@pytest.mark.parametrize("relu", ["", ".relu"])
def test_to_narrow_floats_and_back(word: str, relu: str) -> None:
    high, low = (each.ravel() for each in np.meshgrid(NUMBERS, NUMBERS))
    codes = [expected(word, each, bool(relu)).astype(np.uint16) for each in (high, low)]
    want = codes[0] << (4 if word == "e2m1x2" else 8) | codes[1]
    given = (high.view(np.uint32), low.view(np.uint32))
    if word == "e2m1x2":
        body = f"{{ .reg .b8 %b; cvt.rn.satfinite{relu}.{word}.f32 %b, %a0, %a1; cvt.u32.u8 %d, %b; }}"
        got = executed(body, *given, result=np.uint32)
    else:
        got = executed(f"cvt.rn.satfinite{relu}.{word}.f32 %d, %a0, %a1;", *given, result=np.uint16)
    # The zeros that .relu makes of negative numbers have either sign in NumPy.
    sign = 0x0088 if word == "e2m1x2" else 0x8080 if word in ("e4m3x2", "e5m2x2") else 0x2020
    keep = ~sign & 0xFFFF if relu else 0xFFFF
    np.testing.assert_array_equal(got & keep, want & keep)

    codes_back = np.arange(16 if word == "e2m1x2" else 256 if word[1] in "45" else 64, dtype=np.uint16)
    pairs = codes_back << (4 if word == "e2m1x2" else 8) | codes_back[::-1]
    if word == "e2m1x2":
        body = f"{{ .reg .b8 %b; cvt.u8.u16 %b, %a0; cvt.rn{relu}.f16x2.{word} %d, %b; }}"
    else:
        body = f"cvt.rn{relu}.f16x2.{word} %d, %a0;"
    halves = executed(body, pairs, result=np.uint32).view(np.float16).reshape(-1, 2)
    numbers = codes_back.astype(np.uint8).view(TYPES[word]).astype(np.float16)
    want_halves = np.stack([numbers[::-1], numbers], axis=1)
    np.testing.assert_array_equal(
        halves, np.where(want_halves < 0, np.float16(0), want_halves) if relu else want_halves
    )


@pytest.mark.parametrize(
    ("word", "result", "largest"),
    [("f16", np.uint16, 0x7BFF), ("bf16", np.uint16, 0x7F7F), ("tf32", np.uint32, 0x7F7FE000)],
)
def test_satfinite_ends_at_the_largest_number(word: str, result: type, largest: int) -> None:
    """PTX ISA, "cvt": beyond MAX_NORM of the type the result is that, with the operand's sign; NaN stays."""
    sign = 1 << 8 * np.dtype(result).itemsize - 1
    given = np.array([np.inf, -np.inf, 3.4028235e38, -3.4028235e38, 0.0, -0.0], np.float32)
    for mode in ("rna",) if word == "tf32" else ("rn", "rz"):
        got = executed(f"cvt.{mode}.satfinite.{word}.f32 %d, %a0;", given, result=result)
        np.testing.assert_array_equal(got, np.array([largest, sign | largest] * 2 + [0, sign], result))
        nan = executed(f"cvt.{mode}.satfinite.{word}.f32 %d, %a0;", np.array([np.nan], np.float32), result=result)
        assert (nan & (sign - 1) > largest).all()
    if word != "tf32":
        got = executed(
            f"cvt.rn.relu.satfinite.{word}x2.f32 %d, %a0, %a1;", given[:2], given[1::-1].copy(), result=np.uint32
        )
        np.testing.assert_array_equal(got, [largest << 16, largest])


def test_scales_are_powers_of_two() -> None:
    """Exponents plus 127, of magnitudes, as NVIDIA's cuda_fp8.hpp computes them without the instruction; 255 is NaN."""
    given = np.array([1.0, 1.5, -3.0, 2.0**-127, 1.5 * 2.0**-127, 2.0**-149, 0.0, 3.0e38, np.inf, np.nan], np.float32)
    cut = [127, 127, 128, 0, 0, 0, 0, 254, 255, 255]
    up = [127, 128, 129, 0, 1, 0, 0, 255, 255, 255]
    for mode, wanted in (("rz", cut), ("rp", up)):
        got = executed(f"cvt.{mode}.ue8m0x2.f32 %d, %a0, %a1;", given, given[::-1].copy(), result=np.uint16)
        np.testing.assert_array_equal(got, [high << 8 | low for high, low in zip(wanted, wanted[::-1], strict=True)])
        finite = [254 if code == 255 and not np.isnan(x) else code for code, x in zip(wanted, given, strict=True)]
        pairs = np.stack([given, given], 1).astype(ml_dtypes.bfloat16)
        exact = pairs[:, 0].astype(np.float32) == given
        got = executed(
            f"cvt.{mode}.satfinite.ue8m0x2.bf16x2 %d, %a0;", pairs.view(np.uint32).reshape(-1), result=np.uint16
        )
        np.testing.assert_array_equal(got[exact], np.array([257 * code for code in finite])[exact])
    back = executed("cvt.rn.bf16x2.ue8m0x2 %d, %a0;", np.array([0x7F00, 0xFEFF], np.uint16), result=np.uint32)
    numbers = back.view(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(numbers, [2.0**-127, 1.0, np.nan, 2.0**127])


@pytest.mark.parametrize("types", ["f16.f32", "bf16.f32", "f32.f64", "f32.s32", "f64.u32"])
def test_a_conversion_that_may_be_inexact_names_its_rounding(types: str) -> None:
    """PTX ISA, "cvt": the rounding is mandatory; ptxas refuses such a text."""
    to, of = types.split(".")
    sizes = {"f16": np.uint16, "bf16": np.uint16, "f64": np.uint64}
    given = np.zeros(4, sizes.get(of, np.uint32))
    with pytest.raises(ParseError, match=f"'cvt.{types}' needs a rounding such as .rn"):
        executed(f"cvt.{types} %d, %a0;", given, result=sizes.get(to, np.uint32))


def test_integers_saturate_to_64_bits() -> None:
    given = np.array([-(1 << 31), -1, 0, 7, (1 << 31) - 1], np.int32)
    np.testing.assert_array_equal(
        executed("cvt.sat.u64.s32 %d, %a0;", given, result=np.uint64), [0, 0, 0, 7, (1 << 31) - 1]
    )


def test_packed_conversions_saturate() -> None:
    dice = np.random.default_rng(0)
    a, b, c = (dice.integers(-300, 300, 64).astype(np.int32) for _ in range(3))
    for to, low, high in (("u8", 0, 255), ("s8", -128, 127)):
        got = executed(f"cvt.pack.sat.{to}.s32.b32 %d, %a0, %a1, %a2;", a, b, c, result=np.uint32)
        first, second = (np.clip(each, low, high).astype(np.uint32) & 0xFF for each in (a, b))
        np.testing.assert_array_equal(got, (c.view(np.uint32) & 0xFFFF) << 16 | first << 8 | second)
    got = executed("cvt.pack.sat.s16.s32 %d, %a0, %a1;", a * 1000, b * 1000, result=np.uint32)
    first, second = (np.clip(each * 1000, -32768, 32767).astype(np.uint32) & 0xFFFF for each in (a, b))
    np.testing.assert_array_equal(got, first << 16 | second)


def nth_set(mask: int, base: int, n: int) -> int:
    """By the ISA's loop."""
    if n == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    place, count, step = base, abs(n) - 1, 1 if n > 0 else -1
    while 0 <= place < 32:
        if mask >> place & 1:
            if count == 0:
                return place
            count -= 1
        place += step
    return 0xFFFFFFFF


def test_the_nth_set_bit() -> None:
    dice = np.random.default_rng(1)
    mask = dice.integers(0, 1 << 32, 300, dtype=np.uint32)
    base, n = dice.integers(0, 32, 300).astype(np.uint32), dice.integers(-9, 10, 300).astype(np.int32)
    got = executed("fns.b32 %d, %a0, %a1, %a2;", mask, base, n, result=np.uint32)
    assert got.tolist() == [nth_set(*map(int, each)) for each in zip(mask, base, n, strict=True)]


def test_pairs_of_words_and_of_halves() -> None:
    a, b = np.array([1, 1 << 63, 77], np.uint64), np.array([9, 3, (1 << 64) - 1], np.uint64)
    body = "{ .reg .b128 %q<3>; mov.b128 %q1, {%a0, %a1}; mov.b128 %q2, %q1; mov.b128 {%w1, %w2}, %q2; sub.u64 %d, %w1, %w2; }"
    np.testing.assert_array_equal(executed(body, a, b, result=np.uint64), a - b)
    x, y = np.array([0x7FFF0001, 0x80000005], np.uint32), np.array([0x00010001, 0xFFFF7FFF], np.uint32)
    halves = x.view(np.int16), y.view(np.int16)
    for name, function in (("add.s16x2", np.add), ("min.s16x2", np.minimum), ("max.s16x2", np.maximum)):
        np.testing.assert_array_equal(
            executed(f"{name} %d, %a0, %a1;", x, y, result=np.uint32).view(np.int16), function(*halves)
        )
    got = executed("max.u16x2 %d, %a0, %a1;", x, y, result=np.uint32)
    np.testing.assert_array_equal(got.view(np.uint16), np.maximum(x.view(np.uint16), y.view(np.uint16)))


UPDATE = """.visible .entry k(.param .u64 p, .param .u64 q) {{
  .reg .b64 %rd<4>; .reg .b32 %r<9>; .reg .b16 %h<9>; .reg .f32 %f<9>;
  ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 16, %rd2; {body} ret; }}"""
UPDATES = {
    "f32 add": (
        np.float32,
        np.add,
        "ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%rd2]; red.global.v4.f32.add [%rd1], {%f1,%f2,%f3,%f4};",
    ),
    "f16 add": (
        np.float16,
        np.add,
        "ld.global.v4.b32 {%r1,%r2,%r3,%r4}, [%rd2]; red.global.v4.f16x2.add.noftz [%rd1], {%r1,%r2,%r3,%r4};",
    ),
    "bf16 max": (
        ml_dtypes.bfloat16,
        np.maximum,
        "ld.global.v4.b16 {%h1,%h2,%h3,%h4}, [%rd2]; ld.global.v4.b16 {%h5,%h6,%h7,%h8}, [%rd2+8];"
        "red.global.v8.bf16.max.noftz [%rd1], {%h1,%h2,%h3,%h4,%h5,%h6,%h7,%h8};",
    ),
    "f16 min": (
        np.float16,
        np.minimum,
        "ld.global.v4.b32 {%r1,%r2,%r3,%r4}, [%rd2]; red.global.v4.f16x2.min.noftz [%rd1], {%r1,%r2,%r3,%r4};",
    ),
}


@pytest.mark.parametrize("name", UPDATES)
def test_updates_of_neighbours(name: str) -> None:
    dtype, function, body = UPDATES[name]
    given = np.random.default_rng(2).integers(-8, 8, (32, 16 // np.dtype(dtype).itemsize)).astype(dtype)
    start = np.ones(given.shape[1], dtype)
    kernel, launch = PtxKernel.read(HEAD + UPDATE.format(body=body), "u.ptx"), launch_of("1x32")[0]
    assert kernel.check([start, given], launch).ok
    want = function.reduce(np.concatenate([start[None], given]).astype(np.float32)).astype(dtype)
    np.testing.assert_array_equal(kernel.run([start, given], launch)[0].astype(np.float32), want.astype(np.float32))
    kernel = PtxKernel.read(HEAD + UPDATE.format(body="add.u64 %rd1, %rd1, 8;" + body), "u.ptx")
    with pytest.raises(ExecutionError, match="not aligned to 16 bytes"):
        kernel.run([np.concatenate([start, start]), given], launch)


def test_old_values_of_neighbours() -> None:
    body = "mov.b32 %r1, 0x40003C00; atom.global.add.noftz.f16x2 %r2, [%rd1], %r1; st.global.b32 [%rd2], %r2;"
    start = np.array([5, 7], np.float16)
    kernel = PtxKernel.read(HEAD + UPDATE.format(body=body), "u.ptx")
    after = kernel.run([start, np.zeros((4, 8), np.float16)], launch_of("1x4")[0])
    assert after[0].tolist() == [9, 15]
    assert after[1][:, :2].tolist() == [[5, 7], [6, 9], [7, 11], [8, 13]]
    with pytest.raises(Unsupported, match="is not supported"):
        PtxKernel.read(HEAD + UPDATE.format(body=body.replace("add", "and")), "u.ptx").run(
            [start, start], launch_of("1x1")[0]
        )
