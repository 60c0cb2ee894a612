"""Element types: every row agrees with itself, and with NumPy and ml_dtypes on sizes."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType

from xla_emitters.dtypes import DTYPES, Kind, dtype, dtype_of
from xla_emitters.errors import Unsupported

NAMES = [row.name for row in DTYPES]


@pytest.mark.tiny
def test_names_and_ir_types_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert len({row.ir_type for row in DTYPES}) == len(DTYPES)


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_found_both_ways(name: str) -> None:
    row = dtype(name)
    assert row.name == name
    assert dtype_of(row.ir_type) is row


@pytest.mark.parametrize("name", NAMES)
def test_sizes(name: str) -> None:
    """NumPy's item is a whole byte or more; in memory sub-byte elements share one."""
    row = dtype(name)
    assert row.numpy.itemsize == row.bytes
    assert row.size_bytes(0) == 0
    assert row.size_bytes(7) == -(-7 * row.bits // 8)
    assert row.bits >= 8 or 8 % row.bits == 0


@pytest.mark.parametrize("name", NAMES)
def test_what_kernels_store_is_signless_and_as_wide(name: str) -> None:
    storage = dtype(name).storage_type
    if isinstance(storage, IntegerType):
        assert storage.signedness.data.name == "SIGNLESS"
        assert storage.width.data == dtype(name).bits


def test_kinds() -> None:
    assert {row.name for row in DTYPES if row.kind is Kind.PRED} == {"pred"}
    assert {row.name for row in DTYPES if row.kind is Kind.COMPLEX} == {"c64", "c128"}
    assert [row.name for row in DTYPES if row.is_integer and row.bits == 32] == ["s32", "u32"]
    for row in DTYPES:
        assert (row.kind is Kind.UNSIGNED) == (row.name.startswith("u"))


def test_values_survive_numpy() -> None:
    """Each NumPy type holds small numbers of its HLO type."""
    for row in DTYPES:
        numbers = np.array([0, 1], dtype=row.numpy) if row.name not in ("f8e8m0fnu", "s1") else None
        if numbers is not None:
            assert [complex(number) for number in numbers] == [0, 1], row.name


def test_unknown_types() -> None:
    with pytest.raises(Unsupported, match="no storage for element type 'token'") as raised:
        dtype("token")
    assert "bf16" in raised.value.help
    with pytest.raises(Unsupported, match="no storage for element type 'i7'"):
        dtype_of(IntegerType(7))
