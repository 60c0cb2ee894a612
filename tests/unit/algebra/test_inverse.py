"""The inverse of a map leads from an index to exactly the points that the map leads from: by enumeration."""

import pytest
from hypothesis import given, settings
from unit.algebra.random_maps import batches

from xla_emitters.algebra.inverse import inverse_map
from xla_emitters.algebra.map import IndexingMap


def pairs(m: IndexingMap) -> set[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """(from, to, values of the runtime variables) of every point."""
    found = set[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]()
    for dims, symbols in m.points():
        found.add((dims, m.evaluate(dims, symbols), symbols[len(m.range_vars) :]))
    return found


def holds(m: IndexingMap, shape: tuple[int, ...]) -> None:
    """`m` may lead out of an array of that shape: only what is inside has an inverse."""
    inside = {pair for pair in pairs(m) if all(0 <= at < size for at, size in zip(pair[1], shape, strict=True))}
    back = {(to, at, runtime) for at, to, runtime in pairs(inverse_map(m, shape))}
    assert back == inside


@pytest.mark.parametrize(
    ("text", "shape", "wanted"),
    [
        # slice
        (
            "(d0) -> (d0 * 2 + 3), domain: d0 in [0, 9]",
            (23,),
            "(d0) -> ((d0 - 3) floordiv 2), domain: d0 in [3, 21], (d0 - 3) mod 2 in [0, 0]",
        ),
        # reverse
        ("(d0) -> (6 - d0), domain: d0 in [0, 6]", (7,), "(d0) -> (6 - d0), domain: d0 in [0, 6]"),
        # broadcast: the dim that the operand does not have is a range variable
        (
            "(d0, d1) -> (d0), domain: d0 in [0, 3], d1 in [0, 5]",
            (4,),
            "(d0)[s0] -> (d0, s0), domain: d0 in [0, 3], s0 in [0, 5]",
        ),
        # a sum over the second dim
        (
            "(d0)[s0] -> (d0, s0), domain: d0 in [0, 3], s0 in [0, 5]",
            (4, 6),
            "(d0, d1) -> (d0), domain: d0 in [0, 3], d1 in [0, 5]",
        ),
        # concatenate: the second operand
        ("(d0) -> (d0 - 5), domain: d0 in [5, 8]", (4,), "(d0) -> (d0 + 5), domain: d0 in [0, 3]"),
        # digits
        (
            "(d0, d1, d2) -> (d0 * 12 + d1 * 4 + d2), domain: d0 in [0, 1], d1 in [0, 2], d2 in [0, 3]",
            (24,),
            "(d0) -> (d0 floordiv 12, (d0 floordiv 4) mod 3, d0 mod 4), domain: d0 in [0, 23]",
        ),
        # dynamic-slice: the start is known when it runs
        (
            "(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 3], rt0 in [0, 6]",
            (10,),
            "(d0){rt0} -> (d0 - rt0), domain: d0 in [0, 9], rt0 in [0, 6], d0 - rt0 in [0, 3]",
        ),
    ],
)
def test_of_what_ops_do(text: str, shape: tuple[int, ...], wanted: str) -> None:
    found = inverse_map(IndexingMap.parse(text), shape)
    assert found == IndexingMap.parse(wanted).simplify()
    holds(IndexingMap.parse(text), shape)


def test_a_window_that_overlaps_itself_needs_a_range_variable() -> None:
    text = "(d0)[s0] -> (d0 * 2 + s0 - 1), domain: d0 in [0, 4], s0 in [0, 2], d0 * 2 + s0 - 1 in [0, 8]"
    assert len(inverse_map(IndexingMap.parse(text), (9,)).range_vars) == 1
    holds(IndexingMap.parse(text), (9,))


def test_of_remainders_by_one() -> None:
    """On the way a sum has `x mod 1`, whose quotient by 1 is x: it was joined with itself."""
    holds(IndexingMap.parse("(d0, d1) -> ((d0 + d0 mod 6) mod 2, 6), domain: d0 in [0, 4], d1 in [0, 4]"), (6, 7))


@settings(max_examples=20, deadline=None)
@given(batches(15))
def test_of_any_small_map(maps: list[IndexingMap]) -> None:
    for m in maps:
        holds(m, (6, 5))


def test_of_nothing() -> None:
    m = IndexingMap.parse("(d0) -> (d0), domain: d0 in [3, 2]")
    assert inverse_map(m, (4,)).is_known_empty


def test_a_shape_of_another_rank_is_refused() -> None:
    with pytest.raises(ValueError, match="rank 2"):
        inverse_map(IndexingMap.parse("(d0) -> (d0), domain: d0 in [0, 3]"), (2, 2))
