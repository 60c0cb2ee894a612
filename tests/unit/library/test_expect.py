"""Distances between floats, against NumPy's neighbours."""

import ml_dtypes
import numpy as np
import pytest
from unit.library.other_numpy import called_elsewhere

from xla_emitters.errors import NumbersDiffer
from xla_emitters.library import call
from xla_emitters.library.expect import ulps_apart

CLOSE = {"check": "check.expect_close", "values": ["%a", "%b"], "kind": "close", "least_ulps": 0, "most_ulps": 3}


@pytest.mark.parametrize(
    "kind", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float4_e2m1fn]
)
def test_neighbours_are_one_apart(kind: type) -> None:
    """From three below zero to three above: the zeros are one value."""
    line = [np.asarray(0, kind)[()]]
    for _ in range(3):
        line.append(np.nextafter(line[-1], np.asarray(2, kind)[()]))
    line = [*(-value for value in line[:0:-1]), *line]
    for i, x in enumerate(line):
        for k, y in enumerate(line):
            assert ulps_apart(np.asarray(x, kind), np.asarray(y, kind)) == abs(i - k)
    assert ulps_apart(np.asarray(-0.0, kind), np.asarray(0.0, kind)) == 0


def test_bits_of_both_zeros_differ() -> None:
    zeros = [np.zeros(1, np.float32), -np.zeros(1, np.float32)]
    call("expect", CLOSE | {"types": ["f32"] * 2}, zeros, [])
    with pytest.raises(NumbersDiffer, match="elements must be equal; 1 of 1 elements are not"):
        call("expect", CLOSE | {"types": ["f32"] * 2, "kind": "eq"}, zeros, [])


def test_complex_numbers_part_by_part() -> None:
    x, y = np.asarray([1 + 2j], np.complex64), np.asarray([1 + 2.001j], np.complex64)
    call("expect", CLOSE | {"types": ["c64"] * 2}, [x, x], [])
    with pytest.raises(NumbersDiffer, match=r"%a is \(1\+2j\)"):
        call("expect", CLOSE | {"types": ["c64"] * 2}, [x, y], [])


def test_patterns_of_a_gpu_are_values() -> None:
    x = np.asarray([1.0, np.nan], ml_dtypes.bfloat16)
    assert called_elsewhere("expect", CLOSE | {"types": ["bf16"] * 2}, [x, x], []) == []
