"""Expressions: one object per structure, canonical form, and walks that neither recurse nor repeat shared work."""

import copy
import functools
import gc
import itertools
import pickle
import threading

import numpy as np
import pytest
from unit.algebra.enumeration import combined

from xla_emitters.algebra.expression import MOD, MUL, Expr, ExprKind, compare, divided_by_constants, make, postorder

X, Y, Z = (Expr.variable(number) for number in range(3))
C = Expr.constant
POINTS = np.array(list(itertools.product(range(-5, 6), range(-3, 4)))).T


def small_expressions():
    """Every expression with two operators over two variables and these constants; divisors are constants."""
    atoms = [X, Y, *(C(value) for value in (-3, -1, 0, 2, 4))]
    divisors = [C(value) for value in (-3, -1, 2, 4)]
    ones = combined(atoms, atoms, divisors)
    return list(dict.fromkeys([*atoms, *ones, *combined(ones, atoms, divisors), *combined(atoms, ones, divisors)]))


SMALL = small_expressions()


def test_same_structure_is_same_object():
    assert X * 4 + Y is X * 4 + Y
    assert C(7) is C(3) + 4
    assert C(np.int64(7)) is C(7)
    assert X + Y is not Y + X  # equal values, other structure


def test_expressions_are_forgotten_when_nobody_holds_them():
    from xla_emitters.algebra import expression

    gc.freeze()  # nothing that other tests have left is forgotten below
    before = len(expression._nodes)
    held = (X * 1234567 + Y * 7654321) % 1000003
    held.canonicalize()
    held.known_divisor()
    assert len(expression._nodes) > before
    del held
    assert len(expression._nodes) == before


def test_threads_agree_on_the_object():
    made = []
    start = threading.Barrier(4)

    def build():
        start.wait()
        made.append([X * number + Y for number in range(2, 300)])

    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(a is b for other in made[1:] for a, b in zip(made[0], other, strict=True))


def test_an_expression_cannot_be_changed_or_made_by_hand():
    with pytest.raises(AttributeError, match="cannot change"):
        X.value = 3
    with pytest.raises(TypeError, match=r"Expr\.constant"):
        Expr()
    with pytest.raises(AttributeError):
        _ = X.lhs


def test_copies_and_pickles_are_the_same_object():
    e = (X * 4 + Y) % 8
    assert copy.deepcopy(e) is e
    assert pickle.loads(pickle.dumps(e)) is e


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (3 + X, "v0 + 3"),
        (3 * X, "v0 * 3"),
        (Expr.minimum(3, X), "min(v0, 3)"),
        (Expr.maximum(3, X), "max(v0, 3)"),
        (X + 0, "v0"),
        (X * 1, "v0"),
        (X * 0, "0"),
        ((X * 3) * 4, "v0 * 12"),
        ((X * -1) * -1, "v0"),
        (C(-7) // 2, "-4"),
        (C(-7) % 2, "1"),
        (C(7).ceildiv(2), "4"),
        (X % 1, "0"),
        (X % -1, "0"),
        (X // 1, "v0"),
        (X.ceildiv(1), "v0"),
        (-(X + 2), "-v0 - 2"),
        (X - Y, "v0 - v1"),
        (X - 3, "v0 - 3"),
        (3 - X, "-v0 + 3"),
        (7 // X, "7 floordiv v0"),
        (7 % X, "7 mod v0"),
    ],
)
def test_what_building_a_node_folds(made, text):
    assert str(made) == text


def test_a_division_by_zero_stays_and_has_no_value():
    e = (X // 0 + 1).canonicalize()
    assert str(e) == "v0 floordiv 0 + 1"
    with pytest.raises(ZeroDivisionError):
        e.evaluate([5])


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (X - Y, "-v1 + v0"),
        (X // 4 + X % 3 + X * 2 + Y + 7 + X * 0, "v0 * 2 + v0 mod 3 + v0 floordiv 4 + v1 + 7"),
        (Y * 3 + X - Y * 3, "v0"),
        ((X + Y) * 3 + 2, "v0 * 3 + v1 * 3 + 2"),
        ((X + Y) * Z, "v0 * v2 + v1 * v2"),
        (X // 8 * 8 + X % 8, "v0"),
        (X // 8 * 40 + X % 8 * 5, "v0 * 5"),
        (X // 8 * 40 + X % 8 * 4, "(v0 mod 8) * 4 + (v0 floordiv 8) * 40"),
        ((X * 12) // 18, "(v0 * 2) floordiv 3"),
        ((X * 4 + 11) // 8, "v0 floordiv 2 + 1"),  # 3 is below gcd(4, 8), so it never matters
        ((X * 4 + 12) // 8, "(v0 * 4 + 12) floordiv 8"),
        ((X * 8 + Y) // 4, "v0 * 2 + v1 floordiv 4"),
        (X // -1, "-v0"),
        (X.ceildiv(4), "(v0 + 3) floordiv 4"),
        (X.ceildiv(-4), "-(v0 floordiv 4)"),
        (X.ceildiv(Y), "-((-v0) floordiv v1)"),
        (X * 12 % 36, "(v0 mod 3) * 12"),
        (X % 24 % 6, "v0 mod 6"),
        (X % 6 % 24, "v0 mod 6 mod 24"),
        ((X * 6 + Y) % 3, "v1 mod 3"),
        (X * 6 % 3, "0"),
        (X % X, "0"),
        (Expr.minimum(X + 3, X + 5), "v0 + 3"),
        (Expr.maximum(X + 3, X + 5), "v0 + 5"),
        (Expr.minimum(Y, X), "min(v0, v1)"),
    ],
)
def test_canonical_form(e, text):
    assert str(e.canonicalize()) == text


def test_canonicalize_keeps_every_value_and_is_stable():
    for e in SMALL:
        canonical = e.canonicalize()
        assert canonical.canonicalize() is canonical
        assert np.array_equal(*np.broadcast_arrays(e.evaluate(POINTS), canonical.evaluate(POINTS))), e


def test_known_divisor_divides_every_value():
    for e in SMALL:
        divisor, values = e.known_divisor(), np.asarray(e.evaluate(POINTS))
        assert not np.any(values % divisor if divisor else values), e


def test_the_order_of_summands():
    """Products, then mod, then floordiv, then ceildiv, max, min, bare variables, constants."""
    ordered = [
        X + Y,
        X * 2,
        X * 3,
        Y * 2,
        X % 3,
        X // 4,
        X.ceildiv(4),
        Expr.maximum(X, Y),
        Expr.minimum(X, Y),
        X,
        Y,
        C(1),
    ]
    for (i, a), (j, b) in itertools.product(enumerate(ordered), enumerate(ordered)):
        assert (compare(a, b) > 0) - (compare(a, b) < 0) == (i > j) - (i < j)
    assert [kind.name for kind in ExprKind][:4] == ["ADD", "MUL", "MOD", "FLOORDIV"]


def test_evaluate_takes_arrays():
    rows, columns = np.arange(-6, 7)[:, None], np.arange(5)[None, :]
    e = Expr.minimum((X * 4 + Y) // 3, (X % 5).ceildiv(2)) - Expr.maximum(Y, 2)
    wanted = np.minimum((rows * 4 + columns) // 3, -(-(rows % 5) // 2)) - np.maximum(columns, 2)
    assert np.array_equal(e.evaluate([rows, columns]), wanted)
    assert e.evaluate([-6, 3]) == wanted[0, 3]
    assert Expr.minimum(X, 2).evaluate([np.int64(7)]) == 2
    assert C(7).evaluate([]) == 7


def test_substitute_replaces_all_at_once():
    e = X * 4 + Y % 3
    assert e.substitute([Y, X]) is Y * 4 + X % 3
    assert e.substitute([X, Y]) is e
    assert e.substitute([C(2), C(5)]) is C(10)
    assert e.variables() == {0, 1}


def test_a_sum_of_ten_thousand_terms():
    total = functools.reduce(lambda sum_, number: sum_ + Expr.variable(number % 50) * 3, range(10_000), X)
    canonical = total.canonicalize()
    assert len(postorder([canonical])) < 200
    assert canonical.evaluate([1] * 50) == total.evaluate([1] * 50) == 30_001
    assert total.substitute([C(1)] * 50) is C(30_001)
    assert str(total).count("+") == 10_000
    del total  # and it can be forgotten without deep recursion


@pytest.mark.parametrize(
    "step",
    [
        lambda e: e + e,
        lambda e: e * e,
        lambda e: e + e % 7,
        lambda e: e * Y + e,
        lambda e: e // 2 + e,
        lambda e: (e % 5) * Y + e // 3,
        lambda e: Expr.minimum(e + Y, e * 2),
        lambda e: (e * 2 + Y) % 1001,
        lambda e: (e * 3 + 1).ceildiv(4) - e,
    ],
)
def test_sharing_costs_nothing(step):
    """Thirty levels of doubling would be a billion steps to anything that walks paths."""
    e = functools.reduce(lambda below, _: step(below), range(30), X + Y * 2)
    e.canonicalize()
    e.known_divisor()
    e.substitute([Y, X])


def test_text_keeps_the_structure():
    """Printing is one to one: parentheses wherever reading left to right would build another node."""
    assert str(X + (Y + Z)) == "v0 + (v1 + v2)"
    assert str(make(MUL, X, make(MUL, Y, Z))) == "v0 * (v1 * v2)"
    assert str(make(MUL, make(MUL, X, Y), C(-1))) == "-(v0 * v1)"
    assert str(X % 4 % 2) == "v0 mod 4 mod 2"
    assert str(make(MOD, X, Y % 2)) == "v0 mod (v1 mod 2)"
    assert str(X + Y * -3) == "v0 - v1 * 3"
    assert str((X // 8) * 2) == "(v0 floordiv 8) * 2"
    assert (X // 8).to_text("ab".__getitem__, "/") == "a / 8"


def test_summands_with_constant_divisors_come_in_one_order():
    """The order of two and of three is that of `compare`, not that in which they were added; other kinds are left out."""
    ordered = [X % 3, X % 5, Y % 3]
    for count in (2, 3):
        for bases in itertools.permutations(ordered[:count]):
            assert divided_by_constants([X // 2, *bases, X % Y, Y % -4], MOD) == ordered[:count]
