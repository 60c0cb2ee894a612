"""Conversions of complex numbers, and what conversions are made of. All pairs of other types: tests/runtime/test_conversions.py."""

import math

import numpy as np
import pytest
from unit.dialects.hlo.one_instruction import all_of, integers, wrapped

from xla_emitters.dialects.hlo.convert import convert_array, round_once, widen, wrap
from xla_emitters.dialects.hlo.convert import nearest as nearest_bound
from xla_emitters.dtypes import Array, Kind, dtype


def convert(x: Array, source: str, target: str) -> Array:
    value = convert_array(x, dtype(source), dtype(target))
    assert value.dtype == dtype(target).numpy
    assert value.shape == x.shape
    return value


def test_convert_complex_by_parts_and_to_real_by_the_real_part():
    z = np.array([1.5 - 2j, -0.0 + 1j], np.complex64)
    assert convert(z, "c64", "c128").tolist() == [1.5 - 2j, 1j]
    assert convert(z, "c64", "s32").tolist() == [1, 0]
    assert convert(np.array([0, 1j, 2]), "c128", "pred").tolist() == [False, False, True]
    assert convert(np.array([3], np.int8), "s8", "c64").tolist() == [3]


def test_widen_wrap_and_round_keep_every_value_that_fits():
    for type in ("s2", "s4", "u2", "u4", "s8", "u8"):
        dt = dtype(type)
        values = [wrapped(v, dt.bits, dt.kind is Kind.SIGNED) for v in range(1 << dt.bits)]
        x = integers(values, type)
        assert widen(x).dtype.itemsize == 1
        assert wrap(widen(x), dt).astype(int).tolist() == values
    for type in ("bf16", "f16", "f8e4m3fn", "f8e5m2", "f8e4m3b11fnuz"):
        x = all_of(type)
        number = ~np.isnan(widen(x))
        with np.errstate(all="ignore"):
            rounded = round_once(widen(x), x.dtype)
        assert rounded[number].tobytes() == x[number].tobytes()


@pytest.mark.parametrize(
    ("value", "type", "bound"),
    [(127, "bf16", 127.0), (2**31 - 1, "f32", 2.0**31), (2**31 - 1, "f64", 2.0**31 - 1), (2**31 - 1, "f16", math.inf)],
)
def test_bounds_of_integers_in_float_types(value: int, type: str, bound: float):
    assert nearest_bound(value, dtype(type).storage_type) == bound
