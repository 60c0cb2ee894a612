"""Intervals against enumeration: every answer holds all values, and holds no more where the operation is exact."""

import itertools
import operator

import pytest

from xla_emitters.algebra.interval import MAX, MIN, Interval, Variable

SMALL = [Interval(lower, upper) for lower in range(-4, 5) for upper in range(lower, 5)]
PAIRS = list(itertools.product(SMALL, SMALL))
EMPTY = Interval(3, 2)


def values(interval):
    return range(interval.lower, interval.upper + 1)


def hull(numbers):
    numbers = list(numbers)
    return Interval(min(numbers), max(numbers))


@pytest.mark.parametrize(
    ("of_intervals", "of_values"),
    [
        (operator.add, operator.add),
        (operator.sub, operator.sub),
        (operator.mul, operator.mul),
        (Interval.minimum, min),
        (Interval.maximum, max),
        (Interval.union, lambda a, b: a),
    ],
)
def test_exact_operations_give_the_hull(of_intervals, of_values):
    for a, b in PAIRS:
        wanted = hull(of_values(x, y) for x in values(a) for y in values(b))
        if of_intervals is Interval.union:
            wanted = hull([*values(a), *values(b)])
        assert of_intervals(a, b) == wanted, (a, b)


def test_negation_and_plain_numbers():
    assert -Interval(-3, 5) == Interval(-5, 3)
    assert Interval(1, 2) + 3 == 3 + Interval(1, 2) == Interval(4, 5)
    assert 10 - Interval(1, 2) == Interval(8, 9)
    assert Interval(1, 2) * -4 == -4 * Interval(1, 2) == Interval(-8, -4)


def test_floordiv_gives_the_hull_of_the_quotients_that_exist():
    for a, b in PAIRS:
        quotients = [x // y for x in values(a) for y in values(b) if y]
        assert a // b == (hull(quotients) if quotients else Interval(0, -1)), (a, b)


@pytest.mark.parametrize("power", [1, 2, 3, 4])
def test_powers_give_the_hull(power):
    for a in SMALL:
        assert a**power == hull(x**power for x in values(a)), a


@pytest.mark.parametrize("number", [-7, -3, -1, 1, 2, 5])
def test_what_was_multiplied_or_divided(number):
    for a in SMALL:
        assert set(values(a.divided_by(number))) == {x for x in range(-9, 10) if a.contains(x * number)}, a
        assert set(values(a.of_dividend(number))) == {x for x in range(-60, 61) if a.contains(x // number)}, a


def test_mod_holds_every_remainder():
    for a, b in PAIRS:
        remainders = [x % y for x in values(a) for y in values(b) if y]
        if remainders:
            assert (a % b).contains(hull(remainders)), (a, b)


def test_mod_by_one_number_is_exact_where_nothing_wraps():
    assert Interval(9, 11) % 8 == Interval(1, 3)
    assert Interval(-7, -5) % 8 == Interval(1, 3)
    assert Interval(7, 8) % 8 == Interval(0, 7)
    assert Interval(0, 100) % -8 == Interval(-7, 0)


def test_nothing_is_known_of_values_that_do_not_exist():
    assert EMPTY == Interval(3, 2)  # structural
    for a, b in ((EMPTY, Interval(1, 2)), (Interval(1, 2), EMPTY), (EMPTY, EMPTY)):
        assert a // b == a % b == Interval(0, -1)  # empty, as [l, l - 1]


def test_intersection_and_containment():
    for a, b in PAIRS:
        common = a.intersect(b)
        assert set(values(common)) == set(values(a)) & set(values(b))
        assert a.contains(b) == (set(values(b)) <= set(values(a)))
    assert Interval(0, 3).intersect(Interval(7, 9)) == Interval(7, 6)  # empty is written [l, l - 1]
    assert Interval(0, 3).contains(EMPTY)
    assert EMPTY.union(Interval(1, 2)) == Interval(1, 2).union(EMPTY) == Interval(1, 2)


def test_size():
    assert (Interval(2, 5).trip_count, Interval(2, 2).trip_count, EMPTY.trip_count) == (4, 1, 0)
    assert (Interval(2, 2).is_point, Interval(2, 3).is_point, EMPTY.is_feasible) == (True, False, False)
    assert str(Interval(-1, 4)) == "[-1, 4]"


@pytest.mark.parametrize(
    ("got", "wanted"),
    [
        (Interval(0, MAX) + 1, Interval(1, MAX)),  # no bound stays no bound
        (Interval(MIN, 0) - 1, Interval(MIN, -1)),
        (Interval(0, MAX - 1) + 5, Interval(5, MAX)),  # out through the top
        (Interval(MAX - 1, MAX - 1) + 5, Interval(MAX, MAX)),
        (Interval(MIN + 1, MIN + 1) - 5, Interval(MIN, MIN)),
        (-Interval(MIN, MAX), Interval(MIN, MAX)),
        (-Interval(MIN, 7), Interval(-7, MAX)),
        (Interval(1, MAX) * -2, Interval(MIN, -2)),
        (Interval(2**62, 2**62) * 4, Interval(MAX, MAX)),
        (Interval(2**62, 2**62) * -4, Interval(MIN, MIN)),
        (Interval(MIN, MAX) * 0, Interval(0, 0)),
        (Interval(0, 5) * Interval(3, MAX), Interval(0, MAX)),
        (Interval(-2, 5) * Interval(3, MAX), Interval(MIN, MAX)),
        (Interval(0, MAX) // 4, Interval(0, MAX)),
        (Interval(0, MAX) // -4, Interval(MIN, 0)),
        (Interval(-5, 10) // Interval(2, MAX), Interval(-3, 5)),
        (Interval(0, MAX) % 8, Interval(0, 7)),
        (Interval(3, 5) % Interval(8, MAX), Interval(3, 5)),
        (Interval(3, 5) % Interval(1, MAX), Interval(0, 5)),
        (Interval(1, 5) // Interval(upper=-1), Interval(-5, -1)),
        (Interval(upper=-2) ** 2, Interval(4)),
        (Interval(MAX, MAX) // 4, Interval(MAX // 4)),
    ],
)
def test_saturation(got, wanted):
    assert got == wanted


FAR = [Interval(a, b) for a, b in itertools.combinations((MIN, -3, -1, 0, 1, 2, MAX), 2)] + [Interval(2, 2)]


@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul, operator.floordiv])
def test_no_bound_is_what_a_far_bound_tends_to(operation):
    """An end of the answer that grows with the bound is without one; the others do not depend on it."""

    def ends(a: Interval, b: Interval, bound: int) -> Interval:
        corners = [[{MIN: -bound, MAX: bound}.get(end, end) for end in (i.lower, i.upper)] for i in (a, b)]
        return hull(operation(x, y) for x, y in itertools.product(*corners))

    for a, b in itertools.product(FAR, FAR):
        if operation is operator.floordiv and b.contains(0):
            continue  # corners of no quotient
        near, far = ends(a, b, 10**6), ends(a, b, 10**7)
        lower = near.lower if near.lower == far.lower else MIN
        upper = near.upper if near.upper == far.upper else MAX
        assert operation(a, b) == Interval(lower, upper), (a, b)


ENDS = (MIN, -3, -1, 0, 2, MAX)
BEYOND = [Interval(a, b) for a, b in itertools.combinations_with_replacement(ENDS, 2)]
NUMBERS = (-(2**70), MIN - 1, MIN, MIN + 1, -4, -3, -1, 0, 1, 2, 3, MAX - 1, MAX, MAX + 1, 2**70)


@pytest.mark.parametrize(
    "operation",
    [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, Interval.minimum, Interval.maximum],
)
def test_numbers_of_any_magnitude_lie_inside(operation):
    of_values = {Interval.minimum: min, Interval.maximum: max}.get(operation, operation)
    for a, b in itertools.product(BEYOND, BEYOND):
        answer = operation(a, b)
        for x, y in itertools.product(filter(a.contains, NUMBERS), filter(b.contains, NUMBERS)):
            if y or operation not in (operator.floordiv, operator.mod):
                assert answer.contains(of_values(x, y)), (a, b, x, y)


def test_numbers_of_any_magnitude_lie_inside_of_one_operand():
    for a, x in itertools.product(BEYOND, NUMBERS):
        if a.contains(x):
            assert all((a**power).contains(x**power) for power in (1, 2, 3)), (a, x)
            assert (-a).contains(-x), (a, x)
        for number in (-(2**65), -3, 1, 4, 2**65):
            assert not a.contains(x * number) or a.divided_by(number).contains(x), (a, x, number)
            assert not a.contains(x // number) or a.of_dividend(number).contains(x), (a, x, number)


def test_a_point_beyond_64_bits():
    assert Interval.point(2**70) == Interval(MAX, MAX)
    assert not Interval.point(2**70).is_point
    assert Interval.point(-(2**70)).contains(-(2**70))


def test_text_with_and_without_infinities():
    assert (Interval(-3).to_text(), Interval(upper=4).to_text(), Interval(1, 2).to_text()) == (
        "[-3, ∞)",
        "(-∞, 4]",
        "[1, 2]",
    )
    assert str(Interval(0)) == f"[0, {MAX}]"


def test_is_saturated():
    assert Interval(0, MAX).is_saturated
    assert Interval(MAX, MAX).is_saturated
    assert not Interval(MIN + 1, MAX - 1).is_saturated


def test_a_name_is_not_part_of_a_variable():
    assert Variable(Interval(0, 3), "th_x") == Variable(Interval(0, 3))
    assert hash(Variable(Interval(0, 3), "th_x")) == hash(Variable(Interval(0, 3)))
    assert Variable(Interval(0, 3)) != Variable(Interval(0, 4))
