"""Functions of complex numbers that NumPy lacks, against identities, more digits and C's special values."""

import numpy as np
import pytest

from xla_emitters.dialects.hlo import complex_meaning as meaning

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def numbers(scale: float) -> np.ndarray:
    draw = np.random.default_rng(0)
    return scale * (draw.normal(size=200) + 1j * draw.normal(size=200))


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e-3, 1, 1e3])
def test_log_plus_one_and_exp_minus_one_keep_small_numbers(scale: float):
    """By their series where it converges at once, by definition elsewhere."""
    z = numbers(scale)
    small = scale < 1e-2
    log = z - z**2 / 2 + z**3 / 3 - z**4 / 4 + z**5 / 5 if small else np.log(1 + z)
    exp = z + z**2 / 2 + z**3 / 6 + z**4 / 24 + z**5 / 120 if small else np.exp(z) - 1
    np.testing.assert_allclose(meaning.log_plus_one(z), log, rtol=1e-12)
    finite = np.isfinite(exp)
    np.testing.assert_allclose(meaning.exp_minus_one(z)[finite], exp[finite], rtol=1e-12)


def test_log_plus_one_knows_on_which_side_of_the_cut_it_is():
    got = meaning.log_plus_one(np.array([complex(-2, 0.0), complex(-2, -0.0)]))
    assert got.imag.tolist() == [np.pi, -np.pi]


def test_power():
    a, b = numbers(1), numbers(2)[::-1]
    np.testing.assert_allclose(meaning.power(a, b), np.exp(b * np.log(a)), rtol=1e-12)
    np.testing.assert_allclose(meaning.power(a, np.full(200, 3 + 0j)), a * a * a, rtol=1e-12)
    special = np.array([0, 0, 0, np.inf, np.inf, 2], complex), np.array([0, 2, -1, 2, -2, 0], complex)
    assert meaning.power(*special).tolist() == [1, 0, np.inf, np.inf, 0, 1]


def test_reciprocal_sqrt():
    z = numbers(5)
    np.testing.assert_allclose(meaning.reciprocal_sqrt(z) ** 2 * z, 1, rtol=1e-14)
    at_zero, at_infinity = meaning.reciprocal_sqrt(np.array([0, complex(-np.inf, 1)]))
    assert np.isposinf(at_zero.real)
    assert np.isnan(at_zero.imag)
    assert at_infinity == 0


def test_sign_of_the_smallest_and_largest_numbers():
    """Moduli that a double does not hold: sqrt(2) times the smallest number, and times the largest."""
    smallest, largest = np.nextafter(0.0, 1.0), np.finfo(np.float64).max
    z = np.array([complex(smallest, smallest), complex(-largest, largest), complex(0, -smallest), complex(3, -4), 0])
    half = np.sqrt(0.5)
    np.testing.assert_allclose(meaning.sign(z), [half + half * 1j, -half + half * 1j, -1j, 0.6 - 0.8j, 0], rtol=1e-15)


def test_what_is_infinite_stays_infinite_over_zero():
    """C 23, G.5.1: any infinity, one part NaN or not, over zero is an infinity."""
    zero = np.zeros(1, np.complex64)
    for parts in ((np.inf, np.nan), (np.inf, 0), (-np.inf, 1), (0, np.inf), (np.nan, -np.inf)):
        assert np.isinf(meaning.quotient(np.array([complex(*parts)], np.complex64), zero)).all(), parts
    assert np.isnan(meaning.quotient(np.array([complex(np.nan, np.nan)], np.complex64), zero)).all()


def test_arc_tangent_of_quotient():
    """Of reals the usual one, in all quadrants; its tangent is the quotient."""
    y, x = np.array([1, 1, -1, -1, 1e200], complex), np.array([1, -1, 1, -1, 1e200], complex)
    np.testing.assert_allclose(meaning.arc_tangent_of_quotient(y, x), np.arctan2(y.real, x.real), rtol=1e-14)
    y, x = numbers(1), numbers(1)[::-1]
    np.testing.assert_allclose(np.tan(meaning.arc_tangent_of_quotient(y, x)), y / x, rtol=1e-10)


@pytest.mark.parametrize("type", [np.complex64, np.complex128])
def test_products_are_rounded_by_parts(type: type):
    a, b = numbers(3).astype(type), numbers(2)[::-1].astype(type)
    got = meaning.product(a, b)
    assert got.dtype == type
    assert np.array_equal(got.real, a.real * b.real - a.imag * b.imag)
    assert np.array_equal(got.imag, a.real * b.imag + a.imag * b.real)


def test_numbers_are_ordered_by_the_real_part_first():
    """As pairs are in Python; NaN is in no order to anything."""
    values = [complex(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)]
    one, other = (np.array(side) for side in zip(*((a, b) for a in values for b in values), strict=True))
    wanted = [(a.real, a.imag) <= (b.real, b.imag) for a in values for b in values]
    assert meaning.stands(np.less, np.less_equal, one, other).tolist() == wanted
    nan = np.array([complex(np.nan, 0), complex(0, np.nan)])
    assert not meaning.stands(np.less, np.less_equal, nan, nan).any()


def test_the_arc_of_a_quotient_takes_one_number_for_all() -> None:
    """The executor holds what is the same for all threads once."""
    one, many = np.array([1.0 + 0j]), np.array([1, -2, 3], np.complex128)
    np.testing.assert_allclose(meaning.arc_tangent_of_quotient(one, many).real, np.arctan2(1, many.real))
    np.testing.assert_allclose(meaning.arc_tangent_of_quotient(many, one).real, np.arctan2(many.real, 1))


def test_an_arc_tangent_of_the_smallest_numbers() -> None:
    """The smallest positive number over itself is 1; NumPy's complex division of it by a real number overflows."""
    smallest = np.array([5e-324], np.complex128)
    np.testing.assert_allclose(meaning.arc_tangent_of_quotient(smallest, smallest), [np.pi / 4])
