"""Bounds as values: ulps of the result's own type, the floor, what is admitted, hulls."""

import numpy as np
import pytest

from xla_emitters.dtypes import DTYPES, Kind
from xla_emitters.runtime.bundle import bundle_numbers
from xla_emitters.runtime.reference.tolerance import (
    Bounds,
    everything,
    extremes,
    hull,
    outward,
    point,
    settled,
    ulps_of,
    widen,
)

F32 = np.float32


@pytest.mark.tiny
@pytest.mark.parametrize(
    ("opcode", "bits", "wanted"),
    [
        *(
            (opcode, bits, 0)
            for opcode in ("add", "subtract", "multiply", "negate", "maximum", "select")
            for bits in (16, 32)
        ),
        *((opcode, bits, 2) for opcode in ("divide", "sqrt", "rsqrt") for bits in (16, 32, 64)),
        *((opcode, 32, 6) for opcode in ("tanh", "erf", "exponential", "log", "power")),
        *((opcode, 64, 4) for opcode in ("tanh", "erf", "exponential", "log", "power")),
        *((opcode, bits, 1) for opcode in ("tanh", "erf", "exponential", "log", "power") for bits in (8, 16)),
    ],
)
def test_the_table(opcode: str, bits: int, wanted: int) -> None:
    """Exact ops none; division and roots 2; other real functions 6 in f32, 4 in f64, 1 in narrower types."""
    assert ulps_of(opcode, "float", bits) == wanted
    assert ulps_of(opcode, "signed", bits) == 0


@pytest.mark.parametrize("ulps", [1, 2, 6])
@pytest.mark.parametrize("value", [1.0, -1.0, 0.1, 1e30, 2.0, -3e-5])
def test_an_ulp_is_the_next_number(value: float, ulps: int) -> None:
    up, down = F32(value), F32(value)
    for _ in range(ulps):
        up, down = np.nextafter(up, F32(np.inf)), np.nextafter(down, F32(-np.inf))
    array = np.array([value], F32)
    assert widen(array, ulps, +1)[0] == up
    assert widen(array, ulps, -1)[0] == down


def test_near_zero_the_floor_is_the_smallest_normal_number() -> None:
    """A device may flush what is smaller."""
    tiny = np.finfo(F32).smallest_normal
    array = np.array([0, 1e-44, -1e-44], F32)
    assert (widen(array, 1, +1) >= tiny * F32(0.999)).all()
    assert (widen(array, 1, -1) <= -tiny * F32(0.999)).all()


def test_infinity_and_nan_stay() -> None:
    array = np.array([np.inf, -np.inf, np.nan], F32)
    assert np.array_equal(widen(array, 6, +1), array, equal_nan=True)
    assert np.array_equal(widen(array, 6, -1), array, equal_nan=True)
    largest = np.array([np.finfo(F32).max], F32)
    assert widen(largest, 1, +1)[0] == np.inf
    assert widen(largest, 0, +1) is largest


@pytest.mark.parametrize("row", [row for row in DTYPES if row.kind is Kind.FLOAT], ids=lambda row: row.name)
def test_every_float_type_is_widened_outwards(row: object) -> None:
    """Those without infinities too: never inwards."""
    numpy = row.numpy
    array = np.array([0.5, 1, 2, 4], np.float32).astype(numpy)
    assert (widen(array, 1, +1).astype(np.float64) >= array.astype(np.float64)).all()
    assert (widen(array, 1, -1).astype(np.float64) <= array.astype(np.float64)).all()


def test_what_is_admitted() -> None:
    bounds = Bounds(np.array([1, 1, np.nan, 1], F32), np.array([2, 2, np.nan, np.nan], F32))
    assert bounds.admits(np.array([1.5, 2.5, np.nan, 5], F32)).tolist() == [True, False, True, False]
    assert bounds.admits(np.array([np.nan, 1, 3, np.nan], F32)).tolist() == [False, True, False, True]
    whole = Bounds(np.array([1, 2]), np.array([1, 2]))
    assert whole.admits(np.array([1, 3])).tolist() == [True, False]


def test_parts_are_admitted_apart() -> None:
    bounds = Bounds(np.array([1 + 1j, complex(1, np.nan)]), np.array([2 + 2j, complex(2, np.nan)]))
    assert bounds.admits(np.array([1.5 + 1.5j, complex(1.5, np.nan)])).tolist() == [True, True]
    assert bounds.admits(np.array([1.5 + 3j, complex(3, np.nan)])).tolist() == [False, False]


def test_where_only_one_end_is_nan_nothing_is_known() -> None:
    found = settled(np.array([1, np.nan, np.nan], F32), np.array([2, 3, np.nan], F32))
    assert found.is_unknown.tolist() == [False, True, False]
    for value in (-np.inf, 0, np.nan):
        assert found.admits(np.full(3, value, F32)).tolist() == [False, True, bool(np.isnan(value))]


def test_a_hull_holds_both() -> None:
    one, other = (Bounds(np.array([low, 1], F32), np.array([high, 1], F32)) for low, high in ((1, 2), (4, 5)))
    found = hull(one, Bounds(np.array([4, np.nan], F32), np.array([5, np.nan], F32)))
    assert (found.low[0], found.high[0]) == (1, 5)
    assert found.is_unknown.tolist() == [False, True]
    assert hull(one, other).admits(np.array([3, 1], F32)).all()


def test_of_everything_nothing_is_known() -> None:
    assert everything(np.dtype(np.int8), (2,)).admits(np.array([-128, 127], np.int8)).all()
    assert everything(np.dtype(np.complex64), (1,)).admits(np.array([complex(np.nan, 3)], np.complex64)).all()


def test_outwards_is_to_the_next_number_also_beside_zero() -> None:
    """Where the exact value lies, before it is rounded to nearest: no floor, which is for functions alone."""
    array = np.array([1, 0], F32)
    found = outward(point(array))
    assert np.array_equal(found.high, np.nextafter(array, F32(2)))
    assert np.array_equal(found.low, np.nextafter(array, F32(-2)))


@pytest.mark.parametrize(
    "row", [row for row in DTYPES if row.kind is Kind.FLOAT and row.bits > 4], ids=lambda row: row.name
)
def test_a_bundle_admits_the_same(row: object) -> None:
    """Its script is self-contained, so it has a copy of this rule: every pair of some ends, with each of some values."""
    kind = row.numpy
    with np.errstate(all="ignore"):
        values = np.array([-np.inf, -1e9, -1, 0, 1, 2, 1e9, np.inf, np.nan]).astype(kind)
    least, most = extremes(kind)
    ends = np.concatenate([values, least.reshape(1), most.reshape(1)])
    low, high, got = (part.reshape(-1) for part in np.meshgrid(ends, ends, values))
    assert np.array_equal(Bounds(low, high).admits(got), bundle_numbers.admitted(got, low, high))
    assert bundle_numbers.admitted(values[-1:], least.reshape(1), most.reshape(1)).all()
