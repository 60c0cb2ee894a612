"""Bounds: ulps of the result's own type, the floor, and the corners of an op whose operands are intervals."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import BFloat16Type, ComplexType, Float32Type, IntegerType

from xla_emitters.dtypes import DTYPES, Kind
from xla_emitters.runtime.tolerance import Bounds, bounds_after, ulps_of, widen

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
    numpy = row.numpy  # pyright: ignore
    array = np.array([0.5, 1, 2, 4], np.float32).astype(numpy)
    assert (widen(array, 1, +1).astype(np.float64) >= array.astype(np.float64)).all()
    assert (widen(array, 1, -1).astype(np.float64) <= array.astype(np.float64)).all()


def interval(low: Sequence[float], high: Sequence[float], dtype: type = np.float32) -> Bounds:
    return Bounds(np.array(low, dtype), np.array(high, dtype))


def test_products_over_all_corners() -> None:
    """Enumerated: signs of either operand may flip which corner is least."""
    ends = [(-3.0, -1.0), (-2.0, 1.0), (0.5, 2.0)]
    for (a, b), (c, d) in itertools.product(ends, ends):
        found = bounds_after(
            "multiply", Float32Type(), [interval([a], [b]), interval([c], [d])], lambda pair: pair[0] * pair[1]
        )
        products = [x * y for x in (a, b) for y in (c, d)]
        assert (found.low[0], found.high[0]) == (min(products), max(products))


def test_one_value_twice_is_one_value() -> None:
    """x * x over [-1, 2] has corners 1 and 4, not -2."""
    x = interval([-1], [2])
    found = bounds_after("multiply", Float32Type(), [x, x], lambda pair: pair[0] * pair[1])
    assert (found.low[0], found.high[0]) == (1, 4)


def test_a_rounding_op_widens_what_its_operands_allow() -> None:
    x = np.array([2.0], F32)
    found = bounds_after("sqrt", Float32Type(), [Bounds(x, x)], lambda one: np.sqrt(one[0]))
    root = np.sqrt(x)
    up = np.nextafter(np.nextafter(root, F32(np.inf)), F32(np.inf))
    assert found.high[0] == up[0]
    narrow = Bounds(x.astype(ml_dtypes.bfloat16), x.astype(ml_dtypes.bfloat16))
    found = bounds_after("tanh", BFloat16Type(), [narrow], lambda one: np.tanh(one[0].astype(F32)).astype(one[0].dtype))
    assert [float(found.low[0]), float(found.high[0])] == [0.9609375, 0.96875]


def test_integers_have_one_value() -> None:
    x = np.arange(4, dtype=np.int32)
    found = bounds_after("divide", IntegerType(32), [Bounds(x, x)], lambda one: one[0])
    assert found.is_point or np.array_equal(found.low, found.high)


def test_what_is_admitted() -> None:
    bounds = interval([1, 1, np.nan, 1], [2, 2, np.nan, np.nan])
    assert bounds.admits(np.array([1.5, 2.5, np.nan, 5], F32)).tolist() == [True, False, True, False]
    assert bounds.admits(np.array([np.nan, 1, 3, np.nan], F32)).tolist() == [False, True, False, True]
    whole = Bounds(np.array([1, 2]), np.array([1, 2]))
    assert whole.admits(np.array([1, 3])).tolist() == [True, False]


# ------------------------------------------------------------------------------------------- complex numbers

C64 = ComplexType(Float32Type())


def number(*values: complex) -> Bounds:
    array = np.array(values, np.complex64)
    return Bounds(array, array)


def test_a_complex_function_is_off_by_units_of_the_modulus_in_both_parts() -> None:
    """A part that is small beside the other is as far off as that one."""
    found = bounds_after("sqrt", C64, [number(3 + 4j)], lambda one: np.full(1, 1024 + 1e-6j, np.complex64))
    unit = 16 * 1024 * np.finfo(F32).eps
    np.testing.assert_allclose(found.high - found.low, 2 * unit * (1 + 1j), rtol=1e-2)
    assert found.admits(np.array([1024 + 1e-6j + 0.9 * unit * 1j], np.complex64)).all()
    assert not found.admits(np.array([1024 + 1.1 * unit * 1j], np.complex64)).any()


def test_a_quotient_is_anything_where_its_numerators_parts_add_to_too_much() -> None:
    """(2e38 + 2e38 i) / (1 + i) is 2e38, but 2e38 * 1 + 2e38 is not a number of f32."""
    numerators = number(2e38 + 2e38j, 1e38 + 2e38j)
    right = np.array([2e38, 1.5e38 + 5e37j], np.complex64)
    found = bounds_after("divide", C64, [numerators, number(1 + 1j, 1 + 1j)], lambda _: right)
    assert found.admits(right).tolist() == [True, True]
    assert found.admits(np.full(2, np.inf, np.complex64)).tolist() == [True, False]


def test_the_modulus_itself_may_be_off_but_not_a_part() -> None:
    found = bounds_after("abs", Float32Type(), [number(3 + 4j)], lambda one: np.abs(one[0]))
    assert found.low[0] < 5 < found.high[0]
    for opcode in ("real", "add", "multiply", "select", "compare"):
        assert bounds_after(opcode, Float32Type(), [number(3 + 4j)], lambda one: np.real(one[0])).low[0] == 3


def test_a_rectangle_has_four_corners() -> None:
    """1 / z over the square from 1 - i to 2 + i: enumerated."""
    low, high = np.array([1 - 1j], np.complex64), np.array([2 + 1j], np.complex64)
    found = bounds_after("negate", C64, [Bounds(low, high)], lambda one: (1 / one[0]).astype(np.complex64))
    values = [1 / complex(x, y) for x in (1, 2) for y in (-1, 1)]
    np.testing.assert_allclose(found.low.real, min(value.real for value in values), rtol=1e-6)
    np.testing.assert_allclose(found.high.imag, max(value.imag for value in values), rtol=1e-6)


def test_powers_are_off_by_more_where_their_logarithm_is_large() -> None:
    def width(exponent: complex) -> float:
        found = bounds_after("power", C64, [number(2), number(exponent)], lambda pair: pair[0] ** pair[1])
        return float((np.real(found.high) - np.real(found.low))[0] / abs(2**exponent))

    assert 10 < width(30) / width(0.5) < 20  # 1 + 30 log 2 and 1 + 0.5 log 2


def test_an_infinite_power_points_either_way_beside_an_axis() -> None:
    """(1e-30 i)^-2 is -1e60 and a part that is 0; (2e30 + 1e30 i)^2 is infinite in both without doubt."""
    right = np.array([complex(-np.inf, -np.inf), complex(np.inf, np.inf)], np.complex64)
    found = bounds_after("power", C64, [number(1e-30j, 2e30 + 1e30j), number(-2, 2)], lambda _: right)
    for real, imaginary, admitted in ((-1, 1, [True, False]), (1, 1, [False, True]), (1, -1, [False, False])):
        value = np.full(2, complex(real * np.inf, imaginary * np.inf), np.complex64)
        assert found.admits(value).tolist() == admitted


def test_a_logistic_is_off_by_what_its_divisor_cancels() -> None:
    """Near i pi the exponential is almost -1, and a rounding of it moves the quotient by as much as that is large; elsewhere not."""
    z = np.array([1e-6 - 3.1337j, 1e-4 + 3.15j, 0.7 + 0.1j], np.complex64)
    right = (1 / (1 + np.exp(-z.astype(np.complex128)))).astype(np.complex64)
    found = bounds_after("logistic", C64, [number(*z)], lambda _: right)
    eps = np.finfo(F32).eps
    rounded = np.exp(-z) * F32(1 + 2 * eps)
    assert found.admits(np.complex64(1) / (np.complex64(1) + rounded)).all()
    off = np.abs(right) * 100 * eps
    assert found.admits(right + off.astype(np.complex64)).tolist() == [True, True, False]


def test_parts_are_admitted_apart() -> None:
    bounds = Bounds(np.array([1 + 1j, complex(1, np.nan)]), np.array([2 + 2j, complex(2, np.nan)]))
    assert bounds.admits(np.array([1.5 + 1.5j, complex(1.5, np.nan)])).tolist() == [True, True]
    assert bounds.admits(np.array([1.5 + 3j, complex(3, np.nan)])).tolist() == [False, False]


@pytest.mark.parametrize("opcode", ["abs", "exponential"])
def test_beside_an_overflow_the_largest_number_will_do(opcode: str) -> None:
    """What the reference rounds up to infinity a kernel may round down, unless the operand was infinite or a zero made it."""
    most, infinity = np.finfo(F32).max, np.array([np.inf], F32)

    def admits_most(operand: Bounds) -> bool:
        return bool(bounds_after(opcode, Float32Type(), [operand], lambda _: infinity).admits(np.full(1, most)).all())

    assert admits_most(number(3e38 + 3e38j))
    assert not admits_most(number(complex(np.inf, 1)))
    assert not admits_most(Bounds(np.zeros(1, F32), np.zeros(1, F32)))


def test_an_arc_tangent_beside_a_cut_is_any_angle() -> None:
    """i b over 0: x^2 + y^2 is -b^2, and a rounding says which of its roots is meant. 1 over 2 is far from any cut."""
    y, x = np.array([2j, 1], np.complex64), np.array([0, 2], np.complex64)
    right = np.array([1.5j, np.arctan2(1, 2)], np.complex64)
    bounds = bounds_after("atan2", ComplexType(Float32Type()), [Bounds(y, y), Bounds(x, x)], lambda _: right)
    turned = (right + np.float32(np.pi)).astype(np.complex64)
    assert bounds.admits(right).tolist() == [True, True]
    assert bounds.admits(turned).tolist() == [True, False]
    assert bounds.admits((right + 4).astype(np.complex64)).tolist() == [False, False]


def test_a_small_arc_tangent_is_off_as_one_of_1_is() -> None:
    """Of (x + i y) / sqrt(x^2 + y^2) what is left of y is what the larger x leaves of it."""
    y, x = np.array([1e-20], np.complex64), np.array([1], np.complex64)
    bounds = bounds_after("atan2", ComplexType(Float32Type()), [Bounds(y, y), Bounds(x, x)], lambda _: y)
    assert bounds.admits(np.array([0], np.complex64)).all()
    assert not bounds.admits(np.array([1e-4], np.complex64)).any()
