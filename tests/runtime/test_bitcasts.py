"""Bitcasts between widths in programs, as kernels of this CPU: NumPy's views of the same bytes."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from runtime.cpu_ways import compiled, host_ops

from xla_emitters.errors import VerifyError
from xla_emitters.text.stablehlo import parse_stablehlo

PARTS = """module @m {{ func.func public @main(%x: tensor<{source}>) -> tensor<{target}> {{
  %0 = stablehlo.bitcast_convert %x : (tensor<{source}>) -> tensor<{target}>
  return %0 : tensor<{target}> }} }}"""
TYPES: dict[str, Any] = {
    **{"i8": np.int8, "ui8": np.uint8, "i16": np.int16, "ui16": np.uint16, "i32": np.int32, "ui32": np.uint32},
    **{"i64": np.int64, "ui64": np.uint64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32},
    **{"f64": np.float64},
}
NARROWER = [
    ("f32", "ui8"),
    ("f32", "bf16"),
    ("f64", "i32"),
    ("ui64", "ui8"),
    ("i32", "f16"),
    ("ui16", "i8"),
    ("f64", "f32"),
]


@pytest.mark.parametrize(("wide", "narrow"), NARROWER)
def test_parts_of_elements_and_back(wide: str, narrow: str) -> None:
    """The first part has the lowest bits."""
    ratio = np.dtype(TYPES[wide]).itemsize // np.dtype(TYPES[narrow]).itemsize
    whole, cut = f"3x?x{wide}", f"3x?x{ratio}x{narrow}"
    apart, together = (compiled(PARTS.format(source=a, target=b)) for a, b in ((whole, cut), (cut, whole)))
    assert "lmhlo.bitcast_convert" not in host_ops(apart) | host_ops(together)
    for size in (0, 1, 5):
        bits = np.random.default_rng(0).integers(0, 256, (3, size, np.dtype(TYPES[wide]).itemsize)).astype(np.uint8)
        x = bits.view(TYPES[wide])[..., 0]
        parts = apart(x)
        assert (parts.shape, parts.dtype, parts.tobytes()) == ((3, size, ratio), np.dtype(TYPES[narrow]), x.tobytes())
        assert together(parts).tobytes() == x.tobytes()


def test_a_last_dimension_of_another_size_is_refused() -> None:
    with pytest.raises(VerifyError, match=r"operand 0 is tensor<3x\?x3xui8>; its last dimension must be 4"):
        parse_stablehlo(PARTS.format(source="3x?x3xui8", target="3x?xui32"), "<test>")
