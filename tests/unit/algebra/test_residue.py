"""Remainders: every value of an operation has its remainder, by enumeration."""

import itertools
import operator

import pytest

from xla_emitters.algebra.interval import Interval
from xla_emitters.algebra.residue import Residue

ENDS = (None, -5, -2, -1, 0, 1, 3, 6)
NUMBERS = range(-8, 9)
INTERVALS = [
    Interval(**{end: value for end, value in (("lower", low), ("upper", high)) if value is not None})
    for low in ENDS
    for high in ENDS
    if None in (low, high) or low <= high
]
RESIDUES = [Residue(r, m) for m in (1, 2, 3, 4, 6) for r in range(m)] + [Residue(v, 0) for v in (-3, 0, 1, 4)]


def inside(known):
    return [number for number in NUMBERS if known.contains(number)]


@pytest.mark.parametrize("name", ["add", "mul"])
def test_remainders_of_sums_and_products(name):
    python = getattr(operator, name)
    for a, b in itertools.product(RESIDUES, RESIDUES):
        result = python(a, b)
        assert all(result.contains(python(x, y)) for x in inside(a) for y in inside(b)), (a, b)


def test_remainders_of_divisions():
    for a, b in itertools.product(RESIDUES, RESIDUES):
        for x, y in itertools.product(inside(a), inside(b)):
            if y:
                assert (a // b).contains(x // y), (a, b, x, y)
                assert (a % b).contains(x % y), (a, b, x, y)
    assert Residue(5, 12) % Residue.point(4) == Residue.point(1)
    assert Residue(8, 24) // Residue.point(4) == Residue(2, 6)


def test_both_remainders():
    for a, b in itertools.product(RESIDUES, RESIDUES):
        both = [x for x in range(-40, 41) if a.contains(x) and b.contains(x)]
        result = a.intersect(b)
        assert both == ([] if result is None else [x for x in range(-40, 41) if result.contains(x)]), (a, b)
        assert all(a.union(b).contains(x) for x in inside(a) + inside(b))


def test_bounds_are_tightened_to_a_remainder():
    for a, bounds in itertools.product(RESIDUES, INTERVALS):
        kept = [x for x in NUMBERS if a.contains(x) and bounds.contains(x)]
        assert kept == [x for x in inside(a) if a.tighten(bounds).contains(x)], (a, bounds)
    assert not Residue(0, 8).tighten(Interval(1, 7)).is_feasible
