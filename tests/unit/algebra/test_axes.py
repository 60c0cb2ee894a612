"""Classes of axes: what is joined has one size, and conflicts name both places."""

import random

import pytest

from xla_emitters.algebra.axes import Axes
from xla_emitters.algebra.facts import Facts
from xla_emitters.algebra.size import Size
from xla_emitters.errors import Place, VerifyError

B, S = Size.symbol("b"), Size.symbol("s")


def test_joins_are_transitive():
    axes = Axes(Facts())
    for a, b in (("x", "y"), ("z", "w"), ("y", "z")):
        axes.join(a, b, f"{a}-{b}")
    axes.tie("w", B, "argument 0")
    assert axes.same("x", "w")
    assert axes.size_of("x") == B
    assert axes.same("x", "other") is None
    assert axes.size_of("other") is None


def test_sizes_that_meet_become_facts():
    axes = Axes(Facts.of_symbols(("b", "s"), 1, "jax.export"))
    axes.tie("x", B, "argument 0")
    axes.tie("y", 2 * S, "argument 1")
    assert axes.same("x", "y") is None
    axes.join("x", "y", "add")
    assert axes.facts.equal(B, 2 * S)
    assert axes.facts.equal(B % 2, 0)
    axes.tie("z", 7, "argument 2")
    assert axes.same("z", "x") is False


def test_axes_of_one_size_are_the_same_without_a_join():
    axes = Axes(Facts())
    axes.tie("x", B * S, "a")
    axes.tie("y", S * B, "b")
    assert axes.same("x", "y")


def test_against_a_search_in_the_graph():
    rng = random.Random(7)
    for _ in range(30):
        axes = Axes(Facts())
        neighbours = {key: {key} for key in range(12)}
        for _ in range(rng.randrange(12)):
            a, b = rng.randrange(12), rng.randrange(12)
            axes.join(a, b, "join")
            union = neighbours[a] | neighbours[b]
            for key in union:
                neighbours[key] = union
        for a in range(12):
            for b in range(12):
                assert (axes.same(a, b) is True) == (b in neighbours[a])
        met = {frozenset(keys) for keys in axes.classes()}
        assert met == {frozenset(keys) for keys in neighbours.values()}


def test_two_numbers_are_a_conflict_that_names_both_places():
    axes = Axes(Facts())
    first, second = Place("f.mlir", 3, 5), Place("f.mlir", 9, 7)
    axes.tie(("x", 0), 3, first)
    axes.tie(("y", 1), 4, "argument 1 (p1), axis 1")
    with pytest.raises(VerifyError) as caught:
        axes.join(("x", 0), ("y", 1), second)
    error = caught.value
    assert error.message == "an axis has size 3 and size 4"
    assert error.place == second
    assert (first, "size 3") in error.notes
    assert (None, "argument 1 (p1), axis 1: size 4") in error.notes
    assert axes.same(("x", 0), ("y", 1)) is False  # the axes are as they were


def test_a_conflict_through_facts_names_the_fact():
    axes = Axes(Facts().with_equal(B, 3, "the caller"))
    axes.tie("x", B, "argument 0")
    with pytest.raises(VerifyError) as caught:
        axes.tie("x", 4, "argument 1")
    assert all(
        part in caught.value.render() for part in ("the caller: b == 3", "argument 0: size b", "argument 1: size 4")
    )


def test_ten_thousand_joins():
    axes = Axes(Facts())
    axes.tie(0, B, "argument 0")
    for number in range(10_000):
        axes.join(number, number + 1, f"op {number}")
    assert axes.size_of(10_000) == B
