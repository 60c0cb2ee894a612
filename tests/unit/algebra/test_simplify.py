"""The simplifier: its normal forms, and that no value and no point of the domain ever changes."""

import itertools

import numpy as np
import pytest
from unit.algebra.enumeration import combined

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.interval import MAX as LARGEST
from xla_emitters.algebra.interval import Interval
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.simplify import (
    Domain,
    Ranges,
    Simplifier,
    merge_mod_constraints,
    settle_constraints,
    simplify_domain,
)

X, Y = Expr.variable(0), Expr.variable(1)
EMPTY = "KNOWN EMPTY"
GRID = "domain: th_x in [0, 127], bl_x in [0, 24575], v in [0, 3]"

# A map and its normal form, in upstream's spelling; "=": it is in normal form as it is read, but for the order of summands. Computed by an
# independent implementation that agrees with XLA's own assertions (docs/reference/1 Appendix A).
NORMAL_FORMS = (
    """
(d0, d1) -> (d0 - d1), domain: d0 in [0, 7], d1 in [0, 7]
> (d0, d1) -> (-d1 + d0), domain: d0 in [0, 7], d1 in [0, 7]
(d0) -> (6 - d0), domain: d0 in [0, 6]
= (d0) -> (-d0 + 6), domain: d0 in [0, 6]
(d0)[s0] -> (s0 + 3 * d0 + 5 - s0), domain: d0 in [0, 9], s0 in [0, 4]
> (d0)[s0] -> (d0 * 3 + 5), domain: d0 in [0, 9], s0 in [0, 4]
(d0) -> ((d0 mod 24) / 6), domain: d0 in [0, 499]
> (d0) -> ((d0 / 6) mod 4), domain: d0 in [0, 499]
(d0) -> ((d0 / 6) / 5), domain: d0 in [0, 499]
> (d0) -> (d0 / 30), domain: d0 in [0, 499]
(d0) -> (d0 mod 40), domain: d0 in [0, 31]
> (d0) -> (d0), domain: d0 in [0, 31]
(d0) -> (d0 mod 40), domain: d0 in [80, 111]
> (d0) -> (d0 - 80), domain: d0 in [80, 111]
(d0) -> ((d0 * 12) mod 36), domain: d0 in [0, 99]
> (d0) -> ((d0 mod 3) * 12), domain: d0 in [0, 99]
(d0, d1) -> ((d0 * 12 + d1) mod 36), domain: d0 in [0, 99], d1 in [0, 11]
> (d0, d1) -> ((d0 mod 3) * 12 + d1), domain: d0 in [0, 99], d1 in [0, 11]
(d0, d1) -> ((d0 * 12 + d1) mod 36), domain: d0 in [0, 99], d1 in [0, 12]
= (d0, d1) -> ((d0 * 12 + d1) mod 36), domain: d0 in [0, 99], d1 in [0, 12]
(d0, d1) -> ((d0 * 12 + d1) / 12), domain: d0 in [0, 99], d1 in [0, 11]
> (d0, d1) -> (d0), domain: d0 in [0, 99], d1 in [0, 11]
(d0, d1) -> ((d0 * 12 + d1) / 18), domain: d0 in [0, 99], d1 in [0, 5]
> (d0, d1) -> ((d0 * 2) / 3), domain: d0 in [0, 99], d1 in [0, 5]
(d0, d1) -> ((d0 * 12 + d1) / 18), domain: d0 in [0, 99], d1 in [0, 6]
= (d0, d1) -> ((d0 * 12 + d1) / 18), domain: d0 in [0, 99], d1 in [0, 6]
(d0) -> ((d0 * 6 + 9) / 15), domain: d0 in [0, 99]
> (d0) -> ((d0 * 2 + 3) / 5), domain: d0 in [0, 99]
(d0) -> ((d0 + 37) / 10), domain: d0 in [0, 99]
> (d0) -> ((d0 + 7) / 10 + 3), domain: d0 in [0, 99]
(d0, d1) -> ((d0 / 3 + d1) / 5), domain: d0 in [0, 99], d1 in [0, 99]
> (d0, d1) -> ((d1 * 3 + d0) / 15), domain: d0 in [0, 99], d1 in [0, 99]
(d0, d1) -> ((d0 / 3 + d1 / 3) / 5), domain: d0 in [0, 99], d1 in [0, 99]
= (d0, d1) -> ((d0 / 3 + d1 / 3) / 5), domain: d0 in [0, 99], d1 in [0, 99]
(d0) -> ((d0 mod 8) + (d0 / 8) * 8), domain: d0 in [0, 99]
> (d0) -> (d0), domain: d0 in [0, 99]
(d0) -> ((d0 mod 8) * 5 + (d0 / 8) * 40), domain: d0 in [0, 99]
> (d0) -> (d0 * 5), domain: d0 in [0, 99]
(d0) -> (d0 - (d0 / 7) * 7), domain: d0 in [0, 99]
> (d0) -> (d0 mod 7), domain: d0 in [0, 99]
(d0) -> ((d0 / 7) * -14), domain: d0 in [0, 99]
= (d0) -> ((d0 / 7) * -14), domain: d0 in [0, 99]
(d0) -> (d0 ceildiv 4), domain: d0 in [0, 99]
> (d0) -> ((d0 + 3) / 4), domain: d0 in [0, 99]
(d0, d1) -> (min(d0, d1 + 50), max(d0, 3)), domain: d0 in [0, 40], d1 in [0, 9]
> (d0, d1) -> (d0, max(d0, 3)), domain: d0 in [0, 40], d1 in [0, 9]
(d0, d1) -> (d0, d1), domain: d0 in [4, 4], d1 in [0, 9]
> (d0, d1) -> (4, d1), domain: d0 in [4, 4], d1 in [0, 9]
(d0) -> (d0), domain: d0 in [0, 999], d0 * 7 + 3 in [10, 52]
> (d0) -> (d0), domain: d0 in [1, 7]
(d0) -> (d0), domain: d0 in [0, 999], d0 / 16 in [2, 3]
> (d0) -> (d0), domain: d0 in [32, 63]
(d0)[s0] -> (d0 * 8 + s0), domain: d0 in [0, 999], s0 in [0, 7], d0 * 8 + s0 in [0, 79]
> (d0)[s0] -> (d0 * 8 + s0), domain: d0 in [0, 9], s0 in [0, 7]
(d0)[s0] -> (d0 * 8 + s0), domain: d0 in [0, 999], s0 in [0, 7], d0 * 8 + s0 in [0, 77]
= (d0)[s0] -> (d0 * 8 + s0), domain: d0 in [0, 999], s0 in [0, 7], d0 * 8 + s0 in [0, 77]
(d0) -> (d0), domain: d0 in [1, 50], d0 mod 4 in [0, 0], d0 mod 6 in [0, 0]
> (d0) -> (d0), domain: d0 in [12, 48], d0 mod 12 in [0, 0]
(d0) -> (d0), domain: d0 in [0, 9], d0 * 2 in [30, 40]
> KNOWN EMPTY
(th_x, bl_x)[v] -> (bl_x / 4096, (bl_x / 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + v), GRID
= (th_x, bl_x)[v] -> (bl_x / 4096, (bl_x / 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + v), GRID
(th_x, bl_x)[v] -> ((bl_x / 4096) * 2097152 + ((bl_x / 8) mod 512) * 4096 + (bl_x mod 8) * 512 + th_x * 4 + v), GRID
> (th_x, bl_x)[v] -> (th_x * 4 + bl_x * 512 + v), GRID
""".replace("GRID", GRID)
    .strip()
    .splitlines()
)


@pytest.mark.parametrize(("text", "line"), [*zip(NORMAL_FORMS[::2], NORMAL_FORMS[1::2], strict=True)])
def test_normal_forms(text, line):
    m, normal = IndexingMap.parse(text), line[2:]
    simplified = m.simplify()
    if normal == EMPTY:
        assert simplified.is_known_empty
    else:
        assert simplified.to_text("upstream") == normal
    assert (simplified == m) == line.startswith("=")
    assert simplified.simplify() is simplified


# One line per rule: what it does, and beside it the nearest case that it must leave alone.
RULES = {
    "R1": ("d1 / 2 * 20 + d1 mod 2 * 10", "d1 * 10", "d1 / 2 * 21 + d1 mod 2 * 10 + d0 * 20"),
    "R1 of digits": ("d1 mod 2 * 10 + d1 / 2 mod 3 * 20", "(d1 mod 6) * 10", "d1 mod 2 * 10 + d1 / 2 mod 3 * 21"),
    "R1 compares simplified quotients": ("d0 / 30 * 6 + d0 / 5 mod 6", "d0 / 5", "d0 / 31 * 6 + d0 / 5 mod 6"),
    "R2": ("d0 - d0 / 7 * 7", "d0 mod 7", "d0 - d0 / 7 * 6"),
    "M1": ("(d1 + 24) mod 12", "d1", "(d1 + d0) mod 12"),
    "M1 below zero": ("(d1 - 5 * 12) mod 12", "d1", "(d0 - d1) mod 12"),
    "M2": ("d0 * 3 mod 12", "(d0 mod 4) * 3", "d0 * 3 mod 10"),
    "M3": ("(d0 * 24 + d0 / 2 + 14) mod 12", "(d0 / 2 + 2) mod 12", "(d0 * 25 + d0 / 2 + 2) mod 12"),
    "M4": ("(d0 * 12 + d1) mod 36", "(d0 mod 3) * 12 + d1", "(d0 * 11 + d1) mod 33"),
    "M4 without a rest": ("(d0 * 4 + d1 * 6) mod 8", "((d0 * 2 + d1 * 3) mod 4) * 2", "(d0 * 4 + d1 * 5) mod 8"),
    "D1": ("d0 mod 24 / 6", "d0 / 6 mod 4", "d0 mod 25 / 6"),
    "D2": ("d0 / 6 / 5", "d0 / 30", "d0 mod 97 / 5"),
    "D3 multiples leave": ("(d0 * 25 + d1 * 3) / 5", "d0 * 5 + d1 * 3 / 5", "(d0 * 24 + d1 * 3) / 5"),
    "D3 constants leave": ("(d0 + 37) / 10", "(d0 + 7) / 10 + 3", "(d0 + 7) / 10"),
    "D3 a small part goes": ("(d0 * 24 + d1) / 36", "d0 * 2 / 3", "(d0 * 22 + d1) / 33"),
    "D3 a common factor goes": ("(d0 * 6 + 9) / 15", "(d0 * 2 + 3) / 5", "(d0 * 6 + 8) / 15"),
    "D3 one quotient": ("(d0 / 3 + d1) / 5", "(d1 * 3 + d0) / 15", "(d0 / 3 + d0 / 7) / 5"),
    "point": ("d1 / 12 + d0 mod 1", "0", "d0 / 99"),
    "min": ("min(d1, d0 + 11)", "d1", "min(d1, d0 + 10)"),
    "max": ("max(d1, d0 + 11)", "d0 + 11", "max(d1, d0 + 10)"),
    "operands of min": ("min(d0, d1 mod 12 - 2)", "min(d0, d1 - 2)", "min(d0, d1 - 1)"),
}


def over_d0_d1(expression):
    return IndexingMap.parse(f"(d0, d1) -> ({expression}), domain: d0 in [0, 99], d1 in [0, 11]")


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_fires_and_keeps_to_its_condition(rule):
    before, after, untouched = RULES[rule]
    assert over_d0_d1(before).simplify() == over_d0_d1(after).simplify()
    # `after` is written as a reader would; only the order of its summands may differ from the normal form.
    assert over_d0_d1(after).simplify().results[0] is over_d0_d1(after).results[0].canonicalize()
    assert over_d0_d1(untouched).simplify().results[0] is over_d0_d1(untouched).results[0].canonicalize()


def small_expressions():
    """Two operators over two variables, divisors constants, some with one more operator outside."""
    atoms = [X, Y, *(Expr.constant(value) for value in (-3, -1, 2, 4))]
    divisors = [Expr.constant(value) for value in (-3, 2, 4)]
    ones = combined(atoms, atoms, divisors)
    twos = list(dict.fromkeys([*combined(ones, atoms, divisors), *combined(atoms, ones, divisors)]))
    threes = combined(twos[::40], ones[::5], divisors)
    return [*ones, *twos[::4], *threes[::6]]


@pytest.mark.parametrize(
    ("bounds", "replace_points", "every"),
    [(((-3, 5), (0, 2)), True, 1), (((0, 7), (4, 4)), True, 2), (((0, 7), (4, 4)), False, 2)],
)
def test_simplify_keeps_every_value(bounds, replace_points, every):
    """Of all small expressions, or of every second where one variable is a constant."""
    box = [Interval(*ends) for ends in bounds]
    points = np.array(list(itertools.product(*(range(low, high + 1) for low, high in bounds)))).T
    simplifier = Simplifier(Ranges(box, {}), replace_points)
    for e in small_expressions()[::every]:
        before, after = np.broadcast_arrays(e.evaluate(points), simplifier.simplify(e).evaluate(points))
        assert np.array_equal(before, after), (e, simplifier.simplify(e))
        reached = simplifier.ranges.of(e)
        assert reached.contains(int(before.min())), (e, reached)
        assert reached.contains(int(before.max())), (e, reached)


def test_points_are_kept_on_request():
    m = IndexingMap.parse("(d0, d1) -> (d0 * 4 + d1, d1 * d0), domain: d0 in [0, 7], d1 in [3, 3]")
    assert str(m.simplify()) == "(d0, d1) -> (d0 * 4 + 3, d0 * 3), domain: d0 in [0, 7], d1 in [3, 3]"
    kept = m.simplify(replace_points=False)
    assert str(kept) == "(d0, d1) -> (d0 * 4 + d1, d0 * 3), domain: d0 in [0, 7], d1 in [3, 3]"


def test_a_range_that_overflowed_is_not_taken_for_a_value():
    """2**62 * 4 saturates to one number; the expression is not that number, nor larger than another such one."""
    box = [Interval(2**62, 2**62 + 1), Interval(2**62, LARGEST)]
    simplifier = Simplifier(Ranges(box, {}), True)
    for e in (X * 4, X * 4 + 1, (X * 4) % 3, Expr.minimum(X * 8, X * 4 * Y), Expr.maximum(Y, X * 4), (Y + 1) % 16):
        for x, y in ((2**62, 2**62), (2**62 + 1, 2**62 + 5)):
            assert simplifier.simplify(e).evaluate([x, y]) == e.evaluate([x, y])


# ---- Domains


def box_of(*bounds):
    return tuple(Interval(low, high) for low, high in bounds)


def points_of(domain, box):
    """The points of `box` that lie in the domain, as a mask over the box."""
    shape = [b.trip_count for b in box]
    if domain is None:
        return np.zeros(shape, bool)
    point = [axis + b.lower for axis, b in zip(np.indices(shape), box, strict=True)]
    limits = [*zip(point, domain.bounds, strict=True), *((e.evaluate(point), b) for e, b in domain.constraints)]
    return np.logical_and.reduce([np.broadcast_to((v >= b.lower) & (v <= b.upper), shape) for v, b in limits])


@pytest.mark.parametrize(
    "e",
    [
        X + 5,
        X - 5,
        X * 3,
        X * -3,
        X * 7 + 3,
        -X + 6,
        X // 4,
        X // -4,
        (X * 2 + 1) // 3,
        X * 8 + Y,
        X * 8 - Y,
        X * -8 + Y,
        X * 8 + Y * 4,
        X * 2 + Y,
        X % 4,
        (X % 4) * 3 + 1,
        (X * 3 + 1) % 4,
        X * Y,
        Expr.minimum(X, Y * 2),
        (X + Y) // 3 * 2,
    ],
    ids=str,
)
@pytest.mark.parametrize("bounds", [((-9, 20), (0, 7)), ((0, 12), (-3, 4)), ((0, 12), (8, 15))])
def test_simplifying_a_domain_keeps_exactly_its_points(e, bounds):
    box = box_of(*bounds)
    for lower, upper in itertools.product((-13, -1, 0, 2, 8), (-9, 0, 4, 7, 30)):
        domain = Domain(box, ((e, Interval(lower, upper)),))
        assert np.array_equal(points_of(simplify_domain(domain), box), points_of(domain, box)), (lower, upper)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("d0 * 7 + 3 in [10, 52]", "d0 in [1, 7]"),
        ("d0 / 16 in [1, 2]", "d0 in [16, 47]"),
        ("d0 / -16 in [-2, -2]", "d0 in [17, 32]"),
        ("d0 * -3 in [-30, -10]", "d0 in [4, 10]"),
        ("60 - d0 in [0, 20]", "d0 in [40, 60]"),
        ("d0 * 8 + s0 in [0, 79]", "d0 in [0, 9]"),
        ("d0 in [5, 200]", "d0 in [5, 99]"),
        ("d0 in [5, 20], d0 in [15, 30]", "d0 in [15, 20]"),
        ("d0 mod 7 in [0, 6]", "d0 in [0, 99]"),
        ("d0 mod 4 in [0, 0], d0 mod 6 in [0, 0], d0 in [1, 50]", "d0 in [12, 48], d0 mod 12 in [0, 0]"),
        ("d0 mod 40 in [7, 7], d0 in [0, 50]", "d0 in [7, 47], d0 mod 40 in [7, 7]"),
        ("d0 mod 60 in [7, 7], d0 in [0, 50]", "d0 in [7, 7]"),
        ("d0 * 2 in [-9223372036854775808, 9]", "d0 in [0, 4]"),
        ("d0 * -2 + 5 in [-9223372036854775808, -4]", "d0 in [5, 99]"),
        ("d0 * 8 + s0 * 20 in [0, 239]", "d0 * 2 + s0 * 5 in [0, 59]"),
        ("d0 * 16 + s0 * 2 in [0, 159]", "d0 in [0, 9]"),
    ],
)
def test_what_a_constraint_says_goes_to_the_variables(before, after):
    def map_of(items):
        text = f"(d0)[s0] -> (d0, s0), domain: d0 in [0, 99], s0 in [0, 7], {items}"
        return IndexingMap.parse(text)

    simplified = map_of(before).simplify()
    wanted = map_of(after)
    assert simplified.domain == wanted.domain


@pytest.mark.parametrize(
    "constraint",
    [
        "d0 * 8 + s0 in [0, 77]",
        "d0 + s0 in [0, 50]",
        "d0 mod 7 in [0, 3]",
        "d0 * 8 + s0 in [4, 79]",
        "d0 * s0 in [0, 9]",
    ],
)
def test_what_a_lone_variable_cannot_say_stays_a_constraint(constraint):
    text = f"(d0)[s0] -> (d0, s0), domain: d0 in [0, 99], s0 in [0, 7], {constraint}"
    assert str(IndexingMap.parse(text).simplify()) == text


@pytest.mark.parametrize(
    "items",
    [
        "d0 * 2 in [30, 40]",
        "d0 mod 4 in [5, 9]",
        "d0 mod 4 in [1, 1], d0 * 4 in [0, 3]",
        "d0 * 4 in [1, 3]",
        "d0 in [3, 1]",
        "d0 mod 20 in [15, 15]",
        "d0 + d0 * 2 mod 3 in [50, 60]",
    ],
)
def test_a_domain_without_points_is_known_empty(items):
    assert IndexingMap.parse(f"(d0) -> (d0), domain: d0 in [0, 9], {items}").simplify().is_known_empty


def test_no_bound_stays_no_bound():
    text = "(d0) -> (d0), domain: d0 in [0, 99], {}"
    doubled = IndexingMap.parse(text.format("(d0 mod 7) * -2 + 1 in [-9, 9223372036854775807]"))
    assert str(doubled.simplify()) == text.format("d0 mod 7 in [-9223372036854775808, 5]")


def test_constraints_do_not_prove_each_other_away():
    """Each of the two implies the other; dropping both would let all points in."""
    text = "(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d0 + d1 in [3, 5], d1 + d0 in [3, 5]"
    [(e, interval)] = IndexingMap.parse(text).simplify().constraints
    assert (str(e), interval) == ("v0 + v1", Interval(3, 5))


def test_results_use_the_constraints():
    text = "(d0, d1) -> ((d0 + d1) mod 8, min(d0 + d1, 9)), domain: d0 in [0, 9], d1 in [0, 9], d0 + d1 in [0, 7]"
    assert [str(e) for e in IndexingMap.parse(text).simplify().results] == ["v0 + v1", "v0 + v1"]


def test_congruences_with_negative_bounds():
    """-5 is 3 modulo 4: rounding the bound toward 0 would lose it."""
    domain = Domain(box_of((-5, 6)), ((X % 4, Interval(3, 3)),))
    assert merge_mod_constraints(domain).bounds == (Interval(-5, 3),)


def test_different_remainders_are_not_merged():
    domain = Domain(box_of((0, 50)), ((X % 4, Interval(1, 1)), (X % 6, Interval(3, 3))))
    assert [str(e) for e, _ in merge_mod_constraints(domain).constraints] == ["v0 mod 4", "v0 mod 6"]


def test_an_impossible_remainder_is_not_merged():
    """x mod 4 is never 5; x mod 12 can be."""
    constraints = ((X % 4, Interval(5, 5)), (X % 6, Interval(5, 5)))
    assert merge_mod_constraints(Domain(box_of((0, 50)), constraints)).constraints == constraints


def test_settling_finds_contradictions():
    ten = Interval(0, 10)
    assert settle_constraints(Domain((ten,), ((X, Interval(11, 20)),))) is None
    assert settle_constraints(Domain((ten,), ((Expr.constant(3), Interval(0, 2)),))) is None
    assert settle_constraints(Domain((ten,), ((X % 4, Interval(0, 1)), (X % 4, Interval(2, 3))))) is None
    assert settle_constraints(Domain((Interval(0, -1),), ())) is None


# ---- Ranges


def test_ranges_use_constraints_on_the_very_expression():
    ranges = Ranges(box_of((0, 9), (0, 9)), {X + Y: Interval(3, 5)})
    assert ranges.of((X + Y) * 2) == Interval(6, 10)
    assert ranges.of(Y + X) == Interval(0, 18)


def test_a_divisor_that_varies_is_bounded_too():
    ranges = Ranges(box_of((0, 9), (1, 3)), {})
    assert ranges.of(X // Y) == Interval(0, 9)
    assert ranges.of(X % Y) == Interval(0, 2)
    assert ranges.of(X.ceildiv(Y)) == Interval(0, 9)


def test_a_long_sum_and_a_deep_nest():
    """Each a thousand nodes deep, more than recursion would survive."""
    total = X
    for number in range(1, 500):
        total = total + (X % 7) * number + Y // number
    Simplifier(Ranges(box_of((0, 99), (0, 99)), {}), True).simplify(total)
    nest = X
    for number in range(350):
        nest = (nest * 2 + Y) % (1000 + number)
    Simplifier(Ranges(box_of((0, 99), (0, 99)), {}), True).simplify(nest)


@pytest.mark.parametrize(
    "step",
    [
        lambda e: e + e % 7,
        lambda e: e // 2 + e,
        lambda e: (e % 5) * Y + e // 3,
        lambda e: Expr.minimum(e + Y, e * 2),
        lambda e: (e + e // 3 + Y) % 1000,
        lambda e: (e // 3 + e % 4 * 3) // 5 + e * 2,
    ],
)
def test_sharing_costs_nothing(step):
    e = X + Y * 2
    for _ in range(30):
        e = step(e)
    Simplifier(Ranges(box_of((0, 9), (0, 9)), {}), True).simplify(e)


def test_a_quotient_that_cancels_while_another_is_turned_is_gone():
    """-3 * (x floordiv 3) becomes x mod 3 - x, and that x has the sum's other quotient in it."""
    m = IndexingMap.parse(
        "(d0, d1) -> ((d0 / 4) * 2 - ((d0 / 4 * 2 + d1) / 3) * 3), domain: d0 in [0, 30], d1 in [0, 9]"
    )
    simplified = m.simplify()
    assert str(simplified.results[0]) == "-v1 + ((v0 floordiv 4) * 2 + v1) mod 3"
    assert [simplified.evaluate(*p) for p in m.points()] == [m.evaluate(*p) for p in m.points()]


def test_a_remainder_without_a_common_divisor_stays_one():
    """3 and 5 have none: a variable of one value is not taken out of the mod (M4), as no other one would be."""
    domain = "domain: d0 in [0, 99], d1 in [0, 99], d2 in [0, 0]"
    m = IndexingMap.parse(f"(d0, d1, d2) -> ((d0 * 3 + d1 * 5 + d2) mod 8), {domain}")
    assert m.simplify(replace_points=False).results == m.results
