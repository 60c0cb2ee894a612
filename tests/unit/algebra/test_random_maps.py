"""Properties of maps, held by random small maps against enumeration."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
from repeatable import repeatable
from unit.algebra.enumeration import answers, is_same_function
from unit.algebra.random_maps import batches

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.interval import Interval
from xla_emitters.algebra.map import IndexingMap

parse = IndexingMap.parse


@repeatable(50)
@given(batches(16), st.booleans())
def test_simplify_keeps_the_domain_and_every_value_on_it(maps, replace_points):
    for m in maps:
        simplified = m.simplify(replace_points)
        assert is_same_function(m, simplified), m
        assert simplified.simplify(replace_points) is simplified, m


@repeatable(15)
@given(batches(16))
def test_the_whole_answer_is_enumerated_alike(maps):
    """The same property once more by the slow way, which shares nothing with the quick one: point by point, no arrays."""
    for m in maps[:3]:
        assert {p: m.evaluate(*p) for p in m.points()} == answers(m) == answers(m.simplify())


@repeatable(15)
@given(batches(16))
def test_text_reads_back(maps):
    for m, spelling in itertools.product(maps, ("seed", "upstream")):
        again = parse(m.to_text(spelling))
        assert again == m
        assert again.results == m.results


@repeatable(15)
@given(batches(16))
def test_ranges_hold_every_value(maps):
    for m in maps:
        for number in range(m.num_results):
            reached = m.result_range(number)
            assert all(reached.contains(values[number]) for values in answers(m).values()), m


@repeatable(12)
@given(batches(10, {"results": 1, "constraints": 1}, {"dims": (1,), "constraints": 1}))
def test_compose_is_second_after_first(pairs):
    """A point is in the composed domain iff it is in the first's and its results in the second's; values go through."""
    for first, second in pairs:
        composed = first.compose(second)
        ranges, own = len(second.range_vars), len(first.range_vars)
        wanted = {}
        for (dims, symbols), middle in answers(first).items():
            for values in itertools.product(*(range(v.bounds.lower, v.bounds.upper + 1) for v in second.symbols)):
                is_inside = second.dims[0].bounds.contains(middle[0]) and second.constraints_satisfied(middle, values)
                if is_inside and not second.is_known_empty:
                    mixed = (*values[:ranges], *symbols[:own], *values[ranges:], *symbols[own:])
                    wanted[dims, mixed] = second.evaluate(middle, values)
        assert answers(composed) == wanted
        assert is_same_function(composed, composed.simplify())


@repeatable(15)
@given(batches(16))
def test_removed_variables_did_not_matter(maps):
    for m in maps:
        everywhere = answers(m)
        if not everywhere:
            continue  # a constraint that nothing satisfies may go with its variables
        smaller, removed = m.remove_unused_vars()
        assert answers(smaller) == projected(everywhere, removed, smaller)
        smaller, removed = m.remove_unused_symbols()
        assert answers(smaller) == projected(everywhere, (False,) * m.num_dims + removed, smaller)


def projected(points, removed, smaller):
    """The answers at `points` by the coordinates that are not removed; no bits: nothing is."""
    if not any(removed):
        return points
    kept = [number for number, is_gone in enumerate(removed) if not is_gone]
    by_kept = {tuple((dims + symbols)[number] for number in kept): r for (dims, symbols), r in points.items()}
    return {(point[: smaller.num_dims], point[smaller.num_dims :]): results for point, results in by_kept.items()}


@repeatable(15)
@given(batches(16))
def test_other_numberings_of_the_same_variables(maps):
    for m in maps:
        everywhere = answers(m)
        as_dims = m.symbols_to_dims()
        assert answers(as_dims) == {(dims + symbols, ()): values for (dims, symbols), values in everywhere.items()}
        at = m.dims[0].bounds.upper
        fixed = m.with_dims_fixed({0: at})
        wanted = {(d[1:], s): values for (d, s), values in everywhere.items() if d[0] == at}
        assert answers(fixed) == wanted


@repeatable(15)
@given(batches(16), st.integers(2, 5), st.integers(0, 4))
def test_rescaling_visits_the_same_values(maps, modulus, remainder):
    for m in maps:
        if not m.range_vars:
            continue
        stride = (Expr.variable(m.num_dims) % modulus, Interval(remainder % modulus, remainder % modulus))
        strided = IndexingMap(m.results, m.dims, m.range_vars, m.runtime_vars, (*m.parts.constraints, stride))
        rescaled = strided.rescale_symbols()
        visited = sorted((point[0], values) for point, values in answers(strided).items())
        assert visited == sorted((point[0], values) for point, values in answers(rescaled).items())
        assert is_same_function(rescaled, rescaled.simplify())
