"""Constants keep their bits, which xDSL alone loses."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    VectorType,
    f32,
)

from xla_emitters.dialects.xdsl_patches.floats import FLOATS
from xla_emitters.dialects.xdsl_patches.patch import XDSLS_OWN

NANS: dict[str, tuple[Any, int]] = {
    "Float32Type": (Float32Type(), 0x7F800001),
    "Float16Type": (Float16Type(), 0x7E01),
    "BFloat16Type": (BFloat16Type(), 0x7F81),
    "ReducedPrecisionFloatType": (Float8E5M2Type(), 0xFF),
}
"""By class that is patched: a type, and a NaN whose sign or payload is not that of the usual one."""


def bits_by(type: Any, bits: int, method: str) -> bytes:
    """The NaN, read and written again; `method` is one of the two functions that do so."""
    data = bits.to_bytes(type.compile_time_size, "little")
    values = tuple(type.iter_unpack(data)) if method == "iter_unpack" else type.unpack(data, 1)
    if method != "pack_into":
        return type.pack(values)
    written = bytearray(len(data))
    type.pack_into(written, 0, values[0])
    return bytes(written)


@pytest.mark.parametrize("row", FLOATS[1:], ids=lambda row: f"{row.holder.__name__}-{row.name}")
def test_a_nan_keeps_its_bits_and_xdsl_alone_loses_them(row: Any, monkeypatch: pytest.MonkeyPatch):
    """When the last line fails, xDSL has caught up: take the row out."""
    type, bits = NANS[row.holder.__name__]
    data = bits.to_bytes(type.compile_time_size, "little")
    assert bits_by(type, bits, row.name) == data
    own = XDSLS_OWN[row.holder, row.name]
    if own is None:
        monkeypatch.delattr(row.holder, row.name)
    else:
        monkeypatch.setattr(row.holder, row.name, own)
    assert bits_by(type, bits, row.name) != data


def test_zeros_of_two_signs_are_no_splat_and_xdsl_alone_says_so(monkeypatch: pytest.MonkeyPatch):
    zeros = DenseIntOrFPElementsAttr.from_list(VectorType(f32, [2]), [0.0, -0.0])
    assert not zeros.is_splat()
    monkeypatch.setattr(DenseIntOrFPElementsAttr, "is_splat", XDSLS_OWN[DenseIntOrFPElementsAttr, "is_splat"])
    assert zeros.is_splat()
