"""Conversions of pairs of eight-bit floats: every byte, and what is beyond the formats."""

from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from unit.runtime.simt.kernels import per_thread

from xla_emitters.errors import Unsupported

FORMATS = {"e4m3x2": ml_dtypes.float8_e4m3fn, "e5m2x2": ml_dtypes.float8_e5m2}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("element", [0, 1])
def test_both_bytes_are_widened(name: str, element: int) -> None:
    pairs = np.arange(65536).astype(np.uint16)
    ops = f"""%p = llvm.call_intrinsic "llvm.nvvm.{name}.to.f16x2.rn"(%a) : (i16) -> vector<2xf16>
              %r = vector.extract %p[{element}] : f16 from vector<2xf16>"""
    got = per_thread(ops, "f16", threads=128, a=("i16", pairs.view(np.int16)))
    codes = (pairs >> 8 * element & 255).astype(np.uint8)
    np.testing.assert_array_equal(got, codes.view(FORMATS[name]).astype(np.float16))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "call",
    ['"llvm.nvvm.ff.to.{}.rn"(%a, %b) : (f32, f32) -> i16', '"llvm.nvvm.f16x2.to.{}.rn"(%v) : (vector<2xf16>) -> i16'],
)
def test_two_numbers_are_rounded(name: str, call: str) -> None:
    """The first of two is the upper byte; a vector's first element the lower one. Never infinite, NaN is 0x7F."""
    of_f32 = "f32" in call
    type, numpy = ("f32", np.float32) if of_f32 else ("f16", np.float16)
    a = np.arange(65536).astype(np.uint16).view(np.float16).astype(numpy)
    b = a[::-1].copy()
    ops = f"""%v = vector.from_elements %a, %b : vector<2x{type}>
              %r = llvm.call_intrinsic {call.format(name)}"""
    got = per_thread(ops, "i16", threads=128, a=(type, a), b=(type, b)).view(np.uint16)
    upper, lower = (a, b) if of_f32 else (b, a)
    largest = float(cast("Any", ml_dtypes.finfo(FORMATS[name])).max)

    def code(x: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            nearest = np.clip(x.astype(np.float32), -largest, largest).astype(FORMATS[name]).view(np.uint8)
        return np.where(np.isnan(x), 0x7F, nearest).astype(np.uint16)

    np.testing.assert_array_equal(got, code(upper) << 8 | code(lower))


def test_others_are_refused_by_name() -> None:
    with pytest.raises(Unsupported, match=r"call of the intrinsic 'llvm\.nvvm\.ex2\.approx\.f'"):
        per_thread(
            '%r = llvm.call_intrinsic "llvm.nvvm.ex2.approx.f"(%a) : (f32) -> f32',
            "f32",
            a=("f32", np.ones(32, np.float32)),
        )
