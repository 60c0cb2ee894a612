"""Bounds and remainders: every value of an operation lies inside, by enumeration; ends are exact where both are known."""

import itertools
import operator

import pytest

from xla_emitters.algebra.bounds import Bounds, Residue

ENDS = (None, -5, -2, -1, 0, 1, 3, 6)
NUMBERS = range(-8, 9)
BOUNDS = [Bounds(low, high) for low in ENDS for high in ENDS if None in (low, high) or low <= high]
RESIDUES = [Residue(r, m) for m in (1, 2, 3, 4, 6) for r in range(m)] + [Residue(v, 0) for v in (-3, 0, 1, 4)]


def inside(known):
    return [number for number in NUMBERS if known.contains(number)]


@pytest.mark.parametrize("name", ["add", "mul", "floordiv", "mod", "minimum", "maximum"])
def test_values_lie_inside(name):
    python = {"minimum": min, "maximum": max}.get(name) or getattr(operator, name)
    for a, b in itertools.product(BOUNDS, BOUNDS):
        result = getattr(a, name)(b) if name.endswith("imum") else python(a, b)
        for x, y in itertools.product(inside(a), inside(b)):
            if y or name not in ("floordiv", "mod"):
                assert result.contains(python(x, y)), (a, b, x, y, result)


@pytest.mark.parametrize("name", ["add", "mul", "floordiv", "minimum", "maximum"])
def test_ends_are_taken(name):
    """Finite operands: the ends are the smallest and largest value (by a divisor that is not 0)."""
    python = {"minimum": min, "maximum": max}.get(name) or getattr(operator, name)
    finite = [bounds for bounds in BOUNDS if None not in (bounds.lower, bounds.upper)]
    for a, b in itertools.product(finite, finite):
        pairs = [(x, y) for x in inside(a) for y in inside(b) if y or name != "floordiv"]
        if pairs:
            values = [python(x, y) for x, y in pairs]
            result = getattr(a, name)(b) if name.endswith("imum") else python(a, b)
            assert result == Bounds(min(values), max(values)), (a, b)


@pytest.mark.parametrize(
    ("dividend", "divisor", "quotient"),
    [
        (Bounds(-5, -1), Bounds(1), Bounds(-5, -1)),
        (Bounds(1, 5), Bounds(None, -1), Bounds(-5, -1)),
        (Bounds(1), Bounds(2), Bounds(0)),
        (Bounds(None, -4), Bounds(2, 2), Bounds(None, -2)),
        (Bounds(0, 9), Bounds(0, 3), Bounds(0, 9)),
        (Bounds(0, 9), Bounds(0, 0), Bounds(1, 0)),
    ],
)
def test_quotients_by_divisors_without_an_end(dividend, divisor, quotient):
    """A divisor of 0 has no quotient, so it adds nothing."""
    assert dividend // divisor == quotient


def test_powers():
    for bounds, power in itertools.product(BOUNDS, (1, 2, 3, 4)):
        assert all((bounds**power).contains(x**power) for x in inside(bounds)), (bounds, power)
    assert Bounds(-3, 2) ** 2 == Bounds(0, 9)
    assert Bounds(None, -2) ** 2 == Bounds(4, None)


def test_intersection_and_union():
    for a, b in itertools.product(BOUNDS, BOUNDS):
        both = {x for x in NUMBERS if a.contains(x) and b.contains(x)}
        assert {x for x in NUMBERS if a.intersect(b).contains(x)} == both
        assert all(a.union(b).contains(x) for x in inside(a) + inside(b))
        assert not (both and a.intersect(b).is_empty)


def test_huge_ends_are_exact():
    huge = 10**400
    assert Bounds(huge, huge + 1) * Bounds(huge, huge) == Bounds(huge**2, huge**2 + huge)
    assert Bounds(huge) // Bounds(7, 7) == Bounds(huge // 7)


@pytest.mark.parametrize("name", ["add", "mul"])
def test_remainders_of_sums_and_products(name):
    python = getattr(operator, name)
    for a, b in itertools.product(RESIDUES, RESIDUES):
        result = python(a, b)
        assert all(result.contains(python(x, y)) for x in inside(a) for y in inside(b)), (a, b)


@pytest.mark.parametrize("divisor", [1, 2, 3, 4, 6, 12])
def test_remainders_of_divisions(divisor):
    for a in RESIDUES:
        for x in inside(a):
            assert (a // divisor).contains(x // divisor), (a, x)
            assert (a % divisor).contains(x % divisor), (a, x)


def test_both_remainders():
    for a, b in itertools.product(RESIDUES, RESIDUES):
        both = [x for x in range(-40, 41) if a.contains(x) and b.contains(x)]
        result = a.intersect(b)
        assert both == ([] if result is None else [x for x in range(-40, 41) if result.contains(x)]), (a, b)
        assert all(a.union(b).contains(x) for x in inside(a) + inside(b))


def test_bounds_are_tightened_to_a_remainder():
    for a, bounds in itertools.product(RESIDUES, BOUNDS):
        kept = [x for x in NUMBERS if a.contains(x) and bounds.contains(x)]
        assert kept == [x for x in inside(a) if a.tighten(bounds).contains(x)], (a, bounds)
    assert Residue(0, 8).tighten(Bounds(1, 7)).is_empty
