"""Sizes: one normal form per polynomial, the value of the expression as it was written, and limits on growth."""

import copy
import functools
import itertools
import pickle
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from repeatable import repeatable
from unit.algebra.random_sizes import NAMES, Tape, build, value

from xla_emitters.algebra.interval import Interval
from xla_emitters.algebra.size import (
    Size,
    TooLarge,
    as_size,
    ceildiv,
    divide,
    floordiv,
    maximum,
    minimum,
    mod,
    numbered,
)
from xla_emitters.algebra.size_text import parse_size
from xla_emitters.errors import DataError, VerifyError

A, B, S = (Size.symbol(name) for name in "abs")
DOMAIN = [dict(zip(NAMES, point, strict=True)) for point in itertools.product((-4, -1, 0, 1, 2, 5), repeat=len(NAMES))]


def points_with_values(tree, domain=DOMAIN):
    """The assignments at which the tree has a value, with it."""
    for point in domain:
        try:
            yield point, value(tree, point)
        except ZeroDivisionError:
            continue


def atoms():
    return (*NAMES[:2], 0, 1, -1, 2, 3, -4)


def small_trees():
    """Every tree of one operation, and many of two."""
    kinds = ("+", "-", "*", "floordiv", "mod", "ceildiv", "max", "min")
    ones = [(kind, x, y) for kind in kinds for x in atoms() for y in atoms()]
    yield from ones
    yield from ((kind, inner, ("a", -4)[number % 2]) for kind in kinds for number, inner in enumerate(ones))
    yield from ((kind, 3, inner) for kind in kinds for inner in ones)


def test_small_sizes_keep_their_values_and_read_back():
    domain = [{"a": a, "b": b} for a, b in ((-5, 1), (-1, -3), (0, 4), (1, 0), (2, 3), (6, 4), (7, -2))]
    for tree in small_trees():
        size = as_size(build(tree))
        assert parse_size(str(size)) == size, tree
        for point, expected in points_with_values(tree, domain):
            assert size.evaluate(point) == expected, (tree, point)


@given(st.lists(st.binary(min_size=48, max_size=48), min_size=20, max_size=20))
@repeatable(25)
def test_random_sizes_keep_their_values(batch):
    bounds = {name: Interval(-4, 5) for name in NAMES}
    for data in batch:
        tree = Tape(data).tree(4)
        size = as_size(build(tree))
        again = parse_size(str(size))
        assert again == size
        assert hash(again) == hash(size)
        within = size.bounds(bounds)
        for point, expected in points_with_values(tree, DOMAIN[::7]):
            assert size.evaluate(point) == expected, (tree, point)
            assert within.contains(expected), (tree, point)


@given(st.binary(min_size=90, max_size=90))
@repeatable(150)
def test_sizes_are_a_commutative_ring(data):
    tape = Tape(data)
    x, y, z = (as_size(build(tape.tree(2))) for _ in range(3))
    assert (x + y) + z == x + (y + z)
    assert (x + y) - y == x
    assert x * y == y * x
    assert x * (y + z) == x * y + x * z
    assert (x * y) * z == x * (y * z)
    assert x - x == 0
    assert hash(x * y + z) == hash(z + y * x)


@given(st.binary(min_size=40, max_size=40))
@repeatable(150)
def test_substitution_is_evaluation_in_steps(data):
    tape = Tape(data)
    trees = [tape.tree(2), tape.tree(2)]
    size, by = (as_size(build(tree)) for tree in trees)
    result = size.substitute({"a": by})
    for point, inner in points_with_values(trees[1], DOMAIN[::5]):
        for _, expected in points_with_values(trees[0], [{**point, "a": inner}]):
            assert result.evaluate(point) == expected


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (B * S + S * B, "2*b*s"),
        ((2 * B) // 2, "b"),
        ((S + 1) - 1, "s"),
        ((2 * B + 5) // 2, "b + 2"),
        (mod(mod(S, 3), 2), "mod(mod(s, 3), 2)"),
        (S % -B, "-mod(-s, b)"),
        ((4 * B + 8) % 4, "0"),
        (maximum(B, B), "b"),
        (maximum(2, 3, 1), "3"),
        (minimum(B + 2, B - 1), "b - 1"),
        (maximum(A, maximum(S, B)), "max(a, max(b, s))"),
        (B * S // S, "floordiv(b*s, s)"),
        (S % S, "mod(s, s)"),
        (0 // S, "floordiv(0, s)"),
        ((B + 1) ** 2, "b^2 + 2*b + 1"),
        (-S + B, "b - s"),
        (-S, "-s"),
        (-S * B - 2, "-b*s - 2"),
        (floordiv(S, -2), "floordiv(-s, 2)"),
        (mod(S, -2), "-mod(s, 2)"),
        (floordiv(floordiv(S, 2), 3), "floordiv(s, 6)"),
        ((2 * S) // (2 * B), "floordiv(s, b)"),
        ((2 * S) % (2 * B), "2*mod(s, b)"),
        (S // -B, "floordiv(-s, b)"),
        (ceildiv(S + 1, 256), "floordiv(s, 256) + 1"),
        (ceildiv(S, -256), "-floordiv(s, 256)"),
        (Size.constant(10**400) * B, f"1{'0' * 400}*b"),
        (Size.constant(0), "0"),
    ],
)
def test_normal_forms(size, text):
    assert str(size) == text
    assert parse_size(text) == size


def test_a_division_by_zero_does_not_vanish():
    for size in (B * S // S, (B * S) % S, 0 // S, S // S, B // (S - S)):
        with pytest.raises(DataError, match="division by zero"):
            size.evaluate({"b": 3, "s": 0})
    with pytest.raises(DataError, match=r"division by zero in floordiv\(b, s\)\n    where b = 3, s = 0"):
        (B // S + 1).evaluate({"b": 3, "s": 0})


def test_a_constant_is_its_int():
    assert Size.constant(4) == 4
    assert {Size.constant(4): "x"}[4] == "x"
    assert Size.constant(4).value == 4
    assert (B - B + 3).value == 3
    assert B.value is None
    assert B != 4
    assert B != "b"
    assert (B == 0) is False


def test_a_size_has_no_truth_value_and_no_order():
    with pytest.raises(TypeError, match="the size b has no truth value"):
        bool(B)
    with pytest.raises(TypeError):
        sorted([B, S])
    with pytest.raises(TypeError):
        B + 1.5


@pytest.mark.parametrize("name", ["", "2b", "b c", "max", "floordiv", "_", "é", "b-"])
def test_names_that_text_could_not_hold_are_refused(name):
    with pytest.raises(VerifyError, match="cannot name a size"):
        Size.symbol(name)


def test_a_missing_value_is_named():
    with pytest.raises(DataError, match=r"'s' has no value\n    in the size b \+ s"):
        (B + S).evaluate({"b": 1})


def test_huge_numbers_are_exact():
    n = 3**2000
    assert (n * B + 1).evaluate({"b": n}) == n * n + 1
    assert parse_size(str(n * B)) == n * B
    assert ((n * B) // n) == B


def test_long_division():
    for x, y in itertools.product([B * S + S, B**2 - 1, S**3 + B * S + 2, 4 * B * S, S], [B + 1, S, 2 * B, B - S]):
        quotient, remainder = divide(x, y)
        assert quotient * y + remainder == x
    assert divide(B * S + S, B + 1) == (S, 0)
    assert divide(B**2 - 1, B - 1) == (B + 1, 0)


@pytest.mark.parametrize(
    "grow", [lambda x: x * (x + B), lambda x: x**3 + 1, lambda x: maximum(x + A, x * B), lambda x: (x // 2) * (x % 3)]
)
def test_growth_ends_in_an_error(grow):
    start = time.process_time()
    with pytest.raises(TooLarge, match="a size with more than"):
        functools.reduce(lambda size, _: grow(size), range(10_000), S)
    assert time.process_time() - start < 5


def test_depth_ends_in_an_error_or_in_one_division():
    with pytest.raises(TooLarge, match="50 operations within each other"):
        functools.reduce(lambda size, number: (size + B) // (B + number), range(10_000), S)
    # a thousand convolutions of stride 2
    assert functools.reduce(lambda size, _: (size + 1) // 2, range(1_000), S) == (S + 2**1000 - 1) // 2**1000


def test_a_maximum_of_many_sizes_has_bounds_and_a_value():
    """None of the walks goes one operand deeper for each."""
    names = [f"n{i}" for i in range(500)]
    size = maximum(*map(Size.symbol, names))
    assert size.bounds(dict.fromkeys(names, Interval(3, 7))) == Interval(3, 7)
    assert size.evaluate({name: i for i, name in enumerate(names)}) == 499
    (numbered_size,) = numbered([size], names)
    assert numbered_size.evaluate(range(500)) == 499


def test_ten_thousand_sizes_in_a_second():
    def work(count):
        for i in range(1, count // 4 + 1):
            _ = (B * S + S * B + i, (B * S * 64 + i) // 64, (A * B + 3 * S) % (i + 1), maximum(S // i + 1, B, i))

    work(40)
    start = time.process_time()
    work(10_000)
    assert time.process_time() - start < 5  # 0.26 s on a calm machine; what is quadratic takes minutes


def test_copies_and_pickles_are_equal():
    size = (B * S) // 7 + maximum(S, 3)
    assert copy.deepcopy(size) == size
    assert pickle.loads(pickle.dumps(size)) == size


def test_a_pickle_hashes_alike_in_another_process():
    code = (
        "import pickle, sys; from xla_emitters.algebra.size_text import parse_size;"
        f"print({{parse_size('b*s + floordiv(b, 2)'): 1}}[pickle.loads(bytes.fromhex('{pickle.dumps(B * S + B // 2).hex()}'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
