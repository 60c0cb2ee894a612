"""Facts: never wrong over all assignments that satisfy them; contradictions name both sides and their sources."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from repeatable import repeatable
from unit.algebra.random_sizes import NAMES, Tape, build, value

from xla_emitters.algebra.facts import AT_LEAST, AT_MOST, EQUAL, Fact, Facts
from xla_emitters.algebra.interval import Interval
from xla_emitters.algebra.size import Size, as_size, maximum, minimum
from xla_emitters.algebra.size_text import parse_size
from xla_emitters.errors import Place, VerifyError

A, B, C, S, T = (Size.symbol(name) for name in "abcst")
BOX = [dict(zip(NAMES, point, strict=True)) for point in itertools.product((-2, -1, 0, 1, 2, 3, 4, 6, 8), repeat=3)]
HOLDS = {EQUAL: lambda x, y: x == y, AT_LEAST: lambda x, y: x >= y, AT_MOST: lambda x, y: x <= y}
POSITIVE = Facts.of_symbols(("a", "b", "c", "s", "t"), 1, "jax.export")


def value_or_none(tree, point):
    try:
        return value(tree, point)
    except ZeroDivisionError:
        return None


def add_random_fact(tape, facts, points):
    """(facts with one more, the points that satisfy it); None where it contradicts the others, as all points then do."""
    relation = tape.choose((EQUAL, EQUAL, AT_LEAST, AT_MOST))
    left = tape.tree(tape.choose((0, 1, 1, 2)))
    right = tape.tree(tape.choose((0, 0, 1)))
    kept = []
    for point in points:
        x, y = value_or_none(left, point), value_or_none(right, point)
        if x is not None and y is not None and HOLDS[relation](x, y):
            kept.append(point)
    fact = Fact(relation, as_size(build(left)), as_size(build(right)), f"fact {len(facts.stated)}")
    try:
        return facts.with_fact(fact), kept
    except VerifyError:
        is_contradiction = not kept
    assert is_contradiction, (facts.stated, fact, kept[0])
    return None


@given(st.lists(st.binary(min_size=120, max_size=120), min_size=8, max_size=8))
@repeatable(12)
def test_answers_hold_at_every_point_that_satisfies_the_facts(batch):
    for data in batch:
        tape = Tape(data)
        least = tape.choose((None, 0, 1))
        facts = Facts() if least is None else Facts.of_symbols(NAMES, least, "the start")
        points = [point for point in BOX if least is None or min(point.values()) >= least]
        for _ in range(tape.choose((1, 2, 3))):
            more = add_random_fact(tape, facts, points)
            if more is None:
                break
            facts, points = more
        else:
            check_random_questions(tape, facts, points[:: max(1, len(points) // 40)])


def check_random_questions(tape, facts, points):
    for _ in range(3):
        left, right, divisor = tape.tree(3), tape.tree(1), tape.choose((2, 3, 4))
        x, y = as_size(build(left)), as_size(build(right))
        answers = [facts.equal(x, y), facts.at_least(x, y), facts.equal(x % divisor, 0)]
        simple, bounds = facts.simplify(x), facts.bounds(x)
        for point in points:
            a, b = value_or_none(left, point), value_or_none(right, point)
            if a is None:
                continue
            context = (facts.stated, x, y, point)
            assert simple.evaluate(point) == a, context
            assert bounds.contains(a), context
            assert answers[2] in (None, a % divisor == 0), context
            if b is not None:
                assert answers[0] in (None, a == b), context
                assert answers[1] in (None, a >= b), context


@pytest.mark.parametrize(
    ("left", "right", "answer"),
    [
        ("b*s", "s*b", True),
        ("mod(s, 2) + 2*floordiv(s, 2)", "s", True),
        ("s + 1", "s", False),
        ("2*s", "2*t + 1", False),
        ("floordiv(b*s, s)", "b", True),
        ("floordiv(b*s + s, b + 1)", "s", True),
        ("mod(b*s + 3*s, s)", "0", True),
        ("max(s, 1)", "s", True),
        ("max(s + b, s)", "s + b", True),
        ("min(max(s, 4), 2)", "2", True),
        ("mod(mod(s, 4), 8)", "mod(s, 4)", True),
        ("floordiv(mod(s, 4), 4)", "0", True),
        ("floordiv(s, s + 1)", "0", True),
        ("floordiv(s, s)", "1", True),
        ("s", "t", None),
        ("b*s", "0", False),
        ("s - floordiv(s, 2)", "floordiv(s + 1, 2)", True),
        ("floordiv(s, 3)", "floordiv(t, 3)", None),
    ],
)
def test_equal_where_symbols_are_at_least_one(left, right, answer):
    assert POSITIVE.equal(parse_size(left), parse_size(right)) is answer


@pytest.mark.parametrize(
    ("left", "right", "answer"),
    [
        ("b*s", "s", True),
        ("b*s - s - b + 1", "0", True),
        ("s - floordiv(s, 2)", "1", True),
        ("floordiv(s, 2)*2", "s + 1", False),
        ("max(s, t)", "t", True),
        ("s - max(floordiv(s, 2), 1)", "0", True),
        ("min(s, t)", "s + 1", False),
        ("b^2 + 3", "4", True),
        ("s", "2", None),
        ("s", "t", None),
        ("10", "3", True),
    ],
)
def test_at_least_where_symbols_are_at_least_one(left, right, answer):
    assert POSITIVE.at_least(parse_size(left), parse_size(right)) is answer


def test_nothing_is_assumed():
    assert Facts().at_least(S, 0) is None
    assert Facts().equal(B * S // S, B) is None
    assert str(Facts().simplify(maximum(S, 0))) == "max(0, s)"
    assert Facts().bounds(S) == Interval()


def test_equalities_are_followed():
    facts = POSITIVE.with_equal(B, C, "x").with_equal(C, A, "y").with_equal(S, 2 * A, "z")
    assert facts.equal(A, B)
    assert facts.equal(S * C, 2 * A * B)
    assert facts.at_least(S, 2)
    assert facts.equal(S % 2, 0)
    assert facts.equal(S, 7) is False
    assert facts.simplify(S // 2 + C) == 2 * facts.simplify(B)
    facts = facts.with_equal(C, 4, "w")
    assert [facts.simplify(size) for size in (A, B, C, S)] == [4, 4, 4, 8]


def test_the_order_of_facts_does_not_matter():
    facts = [
        Fact(EQUAL, S, 2 * B, "1"),
        Fact(EQUAL, T, S, "2"),
        Fact(AT_LEAST, T, Size.constant(3), "3"),
        Fact(EQUAL, B % 4, Size.constant(0), "4"),
        Fact(AT_MOST, B, Size.constant(7), "5"),
    ]
    for order in itertools.permutations(facts):
        known = Facts()
        for fact in order:
            known = known.with_fact(fact)
        assert known.simplify(B) == 4
        assert known.simplify(T + 1) == 9


def test_products_that_are_equal():
    facts = Facts().with_equal(B * S, 12, "a reshape").with_equal(A * B, C * T, "a reshape")
    assert facts.equal(2 * B * S, 24)
    assert facts.equal((B * S + 3) // 5, 3)
    assert facts.equal(A * B * T, C * T**2)
    assert facts.equal(B, 3) is None


def test_divisibility():
    facts = POSITIVE.with_equal(S % 8, 0, "the caller")
    assert facts.equal(S % 4, 0)
    assert facts.equal((B * S * 2) % 16, 0)
    assert facts.equal((S + 1) % 2, 0) is False
    assert facts.equal(S % 16, 0) is None
    assert facts.equal(8 * (S // 8), S)
    assert facts.simplify((S + 3) % 8) == 3
    assert facts.at_least(S, 8)
    assert facts.equal((B * S) % B, 0)
    assert Facts().equal((B * S) % B, 0) is None  # b may be 0
    # What jax.export writes for the constraint mod(a, 2) == 0:
    assert Facts().with_equal(2 * (A // 2) - A, 0, "jax.export").equal(A % 2, 0)
    assert Facts().with_equal(A % 4, 3, "x").simplify((A + 1) % 4) == 0


def test_quotients_and_extremes_bound_their_operands():
    facts = (
        Facts().with_at_least(S // 4, 3, "x").with_at_most(maximum(A, B), 5, "y").with_at_least(minimum(C, T), 2, "z")
    )
    assert facts.bounds(S) == Interval(12)
    assert facts.bounds(A) == Interval(upper=5)
    assert facts.bounds(T) == Interval(2)
    assert Facts().with_equal(S // 4, 3, "x").bounds(S) == Interval(12, 15)
    facts = Facts().with_at_least(maximum(A, B), 5, "x").with_at_most(minimum(C, T), 2, "y")
    assert facts.bounds(A) == facts.bounds(T) == Interval()


def test_inequalities_between_symbols():
    facts = Facts().with_at_least(B, 3, "x").with_at_least(S, B, "y").with_at_most(T, S, "z")
    assert facts.at_least(S, 3)
    assert facts.at_least(S - B + 4, 4)
    assert facts.at_least(T, B) is None


def test_facts_do_not_change():
    before = Facts().with_at_least(S, 1, "x")
    after = before.with_equal(S, 4, "y")
    assert before.equal(S, 4) is None
    assert after.equal(S, 4)
    assert before.with_at_least(S, 0, "again") is before


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        (lambda f: f.with_equal(B, 3, "here").with_equal(B, 4, "there"), ["b == 3", "b == 4"]),
        (
            lambda f: f.with_equal(B, S, "one").with_equal(S, T, "two").with_equal(B, T + 1, "three"),
            ["b == s", "s == t"],
        ),
        (lambda f: f.with_at_least(B, 5, "one").with_at_most(B, 4, "two"), ["b >= 5", "b <= 4"]),
        (lambda f: f.with_equal(B % 4, 0, "one").with_equal(B, 6, "two"), ["mod(b, 4) == 0", "b == 6"]),
        (
            lambda f: f.with_equal(B % 4, 0, "one").with_at_least(B, 1, "two").with_at_most(B, 3, "three"),
            ["b >= 1", "b <= 3"],
        ),
        (lambda f: f.with_equal(2 * B, 2 * S + 1, "one"), ["2*b == 2*s + 1"]),
        (lambda f: f.with_equal(B * S, 12, "one").with_equal(2 * B * S, 26, "two"), ["b*s == 12", "2*b*s == 26"]),
        (lambda f: f.with_equal(B % 4, 4, "one"), ["mod(b, 4) == 4"]),
    ],
)
def test_contradictions_name_what_cannot_hold_together(facts, named):
    start = Facts().with_equal(A, C, "not to blame").with_at_least(T, -100, "nor this")
    with pytest.raises(VerifyError) as caught:
        facts(start)
    text = caught.value.render()
    assert all(name in text for name in named)
    assert "blame" not in text
    assert "nor this" not in text


def test_a_contradiction_shows_its_places():
    first, second = Place("f.mlir", 3, 5, 9, "  %0 = add"), Place("f.mlir", 7, 5, 9, "  %4 = mul")
    with pytest.raises(VerifyError) as caught:
        Facts().with_equal(B, 3, first).with_equal(B, 4, second)
    assert caught.value.place == second
    assert caught.value.notes == ((first, "b == 3"), (second, "b == 4"))


def test_hundreds_of_facts():
    facts = Facts()
    for number in range(150):
        x, y = Size.symbol(f"x{number}"), Size.symbol(f"y{number}")
        facts = facts.with_at_least(x, 1, "x").with_equal(y, 2 * x, f"op {number}")
    assert facts.at_least(Size.symbol("y149"), 2)
    with pytest.raises(VerifyError, match="y7 == 3 contradicts y7 == 2"):
        facts.with_equal(Size.symbol("y7"), 3, "late")
