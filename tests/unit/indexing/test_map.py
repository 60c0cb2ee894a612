"""Maps as values, and every operation on them against the points it is about."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from xla_emitters.indexing import Expr, IndexingMap, Interval, Variable
from xla_emitters.indexing.expression import ADD, CEILDIV, FLOORDIV, MAX, MIN, MOD, MUL, make
from xla_emitters.indexing.shapes import dims_of, linearize

parse = IndexingMap.parse
SEED_LOOP = parse(
    "(th_x, bl_x)[vector_index] -> ("
    "bl_x floordiv 4096, (bl_x floordiv 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + vector_index), "
    "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]"
)


def answers(m):
    """{point of the domain: results}, by evaluating all points of the box at once."""
    if m.is_known_empty:
        return {}
    lowest = [v.bounds.lower for v in m.variables]
    box = np.indices([v.bounds.trip_count for v in m.variables])
    values = [axis.ravel() + low for axis, low in zip(box, lowest, strict=True)]
    dims, symbols = values[: m.num_dims], values[m.num_dims :]
    count = math.prod(v.bounds.trip_count for v in m.variables)
    inside = np.broadcast_to(m.constraints_satisfied(dims, symbols), count)
    results = [np.broadcast_to(result, count)[inside].tolist() for result in m.evaluate(dims, symbols)]
    points = np.array(values).reshape(len(values), count)[:, inside].T.tolist()
    tuples = zip(*results, strict=True) if results else itertools.repeat(())
    return {(tuple(p[: m.num_dims]), tuple(p[m.num_dims :])): r for p, r in zip(points, tuples)}  # noqa: B905


# ---- The seed's worked example


def test_the_seeds_flattened_map():
    """Loop map, then row-major linearization of [6,512,4096], symbols to dims: as the seed prints it after flattening."""
    shape = (6, 512, 4096)
    offset = IndexingMap((linearize([Expr.variable(number) for number in range(3)], shape),), dims_of(shape))
    assert str(SEED_LOOP.compose(offset).simplify().symbols_to_dims()) == (
        "(th_x, bl_x, vector_index) -> (th_x * 4 + bl_x * 512 + vector_index), "
        "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]"
    )


def test_the_seeds_loop_map_is_in_normal_form():
    assert SEED_LOOP.simplify() is SEED_LOOP


# ---- Values


def test_equal_maps_are_equal_keys():
    text = "(d0, d1)[s0] -> (d0 + s0), domain: d0 in [0, 9], d1 in [0, 5], s0 in [0, 1]"
    one = parse(f"{text}, d0 mod 4 in [0, 1], d1 mod 3 in [0, 0]")
    other = parse(f"{text}, d1 mod 3 in [0, 0], d0 mod 4 in [0, 1]".replace("d0", "th_x").replace("s0", "v"))
    assert one == other  # constraints are a set, names are for reading
    assert hash(one) == hash(other)
    assert one != parse(text)
    assert one != parse(f"{text}, d0 mod 4 in [0, 2], d1 mod 3 in [0, 0]")
    assert one != "a text"


def test_a_dim_is_not_a_symbol():
    v = Variable(Interval(0, 3))
    result = (Expr.variable(0),)
    maps = [
        IndexingMap(result, dims=(v,)),
        IndexingMap(result, range_vars=(v,)),
        IndexingMap(result, runtime_vars=(v,)),
    ]
    assert len(set(maps)) == 3


def test_building_settles_the_constraints():
    m = parse(
        "(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 9], d0 in [2, 20], 3 in [0, 5], s0 mod 4 in [0, 2], s0 mod 4 in [1, 3]"
    )
    assert str(m) == "(d0)[s0] -> (d0), domain: d0 in [2, 9], s0 in [0, 9], s0 mod 4 in [1, 2]"


@pytest.mark.parametrize(
    "items", ["d0 in [10, 20]", "3 in [4, 5]", "d0 mod 4 in [1, 0]", "d0 mod 4 in [0, 1], d0 mod 4 in [2, 3]"]
)
def test_a_known_empty_map_has_one_form(items):
    m = parse(f"(d0)[s0]{{rt0}} -> (d0 + 1, s0), domain: d0 in [0, 9], s0 in [0, 3], rt0 in [0, 7], {items}")
    assert m.is_known_empty
    assert str(m) == "(d0)[s0]{rt0} -> (0, 0), domain: d0 in [0, -1], s0 in [0, -1], rt0 in [0, 7]"
    assert list(m.points()) == []
    assert m.simplify() is m
    assert m.remove_unused_vars() == (m, ())
    assert not m.constraints_satisfied([5], [0, 0])
    for other in (m.submap(0), m.symbols_to_dims(), m.rescale_symbols(), m.range_vars_to_dims([0])):
        assert other.is_known_empty


def test_a_variable_that_the_map_does_not_have():
    with pytest.raises(ValueError, match="variable 1 occurs, but the map has 1 variables"):
        IndexingMap((Expr.variable(1),), dims_of((4,)))


def test_accessors():
    m = parse("(d0)[s0]{r} -> (d0, s0 + r), domain: d0 in [0, 1], s0 in [0, 2], r in [0, 3], s0 + r in [0, 4]")
    assert (m.num_dims, m.num_symbols, m.num_results) == (1, 2, 2)
    assert m.symbols == m.range_vars + m.runtime_vars == m.variables[1:]
    assert m.result_range(1) == Interval(0, 4)  # by the constraint
    assert m.range_of(Expr.variable(1) * 5) == Interval(0, 10)
    assert m.is_symbol_constrained(0)
    assert not parse("(d0)[s0] -> (d0), domain: d0 in [0, 1], s0 in [0, 2]").is_symbol_constrained(0)
    assert m.constraints_mentioning(0) == ()
    assert repr(m) == f"<IndexingMap {m}>"
    assert parse("(d0) -> (d0), domain: d0 in [0, 1]")._repr_html_().startswith("<code>(d0) -&gt; (d0)")


def test_evaluate_takes_arrays():
    threads, blocks = np.meshgrid(np.arange(128), np.arange(0, 24576, 4099))
    plane, row, column = SEED_LOOP.evaluate([threads, blocks], [3])
    offset = (blocks * 128 + threads) * 4 + 3
    assert np.array_equal((plane * 512 + row) * 4096 + column, offset)
    masked = parse("(d0)[s0] -> (d0), domain: d0 in [0, 99], s0 in [0, 3], d0 * 4 + s0 in [0, 9]")
    assert masked.constraints_satisfied([np.arange(4)], [1]).tolist() == [True, True, True, False]


def test_evaluate_wants_a_value_for_each_variable():
    with pytest.raises(ValueError, match="2 dims and 1 symbols, got 2 and 0"):
        SEED_LOOP.evaluate([0, 0])


def test_simplify_is_remembered_under_each_maps_own_names():
    one = parse("(a, b) -> (a - b), domain: a in [0, 7], b in [0, 7]")
    other = parse("(x, y) -> (x - y), domain: x in [0, 7], y in [0, 7]")
    assert str(one.simplify()) == "(a, b) -> (-b + a), domain: a in [0, 7], b in [0, 7]"
    assert str(other.simplify()) == "(x, y) -> (-y + x), domain: x in [0, 7], y in [0, 7]"
    assert one.simplify() is one.simplify()


def test_points_and_array_evaluation_agree():
    m = parse(
        "(d0)[s0]{rt0} -> (d0 - s0, rt0), domain: d0 in [-2, 2], s0 in [0, 3], rt0 in [1, 2], d0 * 2 + s0 in [0, 4], s0 mod 2 in [1, 1]"
    )
    assert answers(m) == {point: m.evaluate(*point) for point in m.points()}
    assert len(answers(m)) == 8
    assert all(0 <= d * 2 + s <= 4 and s % 2 == 1 for (d,), (s, _) in m.points())


# ---- One map from another


def test_compose_orders_symbols_and_keeps_names():
    first = parse("(a)[r]{t} -> (a + r, t), domain: a in [0, 3], r in [0, 1], t in [0, 5]")
    second = parse(
        "(d0, d1)[v]{u} -> (d0 * 2 + v, d1 + u), domain: d0 in [0, 9], d1 in [0, 2], v in [0, 1], u in [0, 7]"
    )
    assert str(first.compose(second)) == (
        "(a)[v, r]{u, t} -> ((a + r) * 2 + v, t + u), "
        "domain: a in [0, 3], v in [0, 1], r in [0, 1], u in [0, 7], t in [0, 2], a + r in [0, 9]"
    )


def test_compose_wants_as_many_results_as_dims():
    with pytest.raises(ValueError, match="map of 3 results with one of 1 dims"):
        SEED_LOOP.compose(parse("(d0) -> (d0), domain: d0 in [0, 3]"))


def test_removing_variables():
    m = parse(
        "(d0, d1)[s0, s1, s2]{rt0} -> (d1 + s1), domain: d0 in [0, 1], d1 in [0, 2], s0 in [0, 3], s1 in [0, 4], s2 in [0, 5], "
        "rt0 in [0, 6], s0 + rt0 in [0, 7], s2 + d0 in [0, 5]"
    )
    smaller, removed = m.remove_unused_symbols()
    assert str(smaller) == (
        "(d0, d1)[s0, s1] -> (d1 + s0), domain: d0 in [0, 1], d1 in [0, 2], s0 in [0, 4], s1 in [0, 5], s1 + d0 in [0, 5]"
    )  # s2 stays: its constraint is about a dim as well
    assert removed == (True, False, False, True)
    smaller, removed = m.remove_unused_vars()
    assert str(smaller) == "(d0)[s0] -> (d0 + s0), domain: d0 in [0, 2], s0 in [0, 4]"
    assert removed == (True, False, True, False, True, True)
    assert smaller.remove_unused_vars() == (smaller, ())


def test_a_used_variable_keeps_a_chain_of_constraints():
    text = (
        "(d0, d1, d2) -> (d0), domain: d0 in [0, 3], d1 in [0, 3], d2 in [0, 3], d0 + d1 in [2, 9], d1 + d2 in [2, 9]"
    )
    assert parse(text).remove_unused_vars() == (parse(text), ())


def test_fixing_dims_and_replacing_variables():
    m = parse("(d0, d1)[s0] -> (d0 * 8 + d1, s0), domain: d0 in [0, 3], d1 in [0, 7], s0 in [0, 1], d0 + s0 in [0, 2]")
    fixed = m.with_dims_fixed({0: 1})
    assert str(fixed) == "(d0)[s0] -> (d0 + 8, s0), domain: d0 in [0, 7], s0 in [0, 1], s0 + 1 in [0, 2]"
    assert str(fixed.simplify()) == "(d0)[s0] -> (d0 + 8, s0), domain: d0 in [0, 7], s0 in [0, 1]"
    x = Expr.variable(0)
    halved = m.with_variables_replaced([x // 8, x % 8, Expr.constant(1)], dims=dims_of((32,)))
    assert str(halved.simplify()) == "(d0) -> (d0, 1), domain: d0 in [0, 15]"


def test_rescaling_counts_by_ones():
    m = parse(
        "(d0)[s0, s1] -> (d0, s0 * 2, s1), domain: d0 in [0, 3], s0 in [-5, 20], s1 in [0, 9], s0 mod 6 in [2, 2], s1 mod 2 in [0, 1]"
    )
    rescaled = m.rescale_symbols()
    assert (
        str(rescaled.simplify())
        == "(d0)[s0, s1] -> (d0, s0 * 12 + 4, s1), domain: d0 in [0, 3], s0 in [-1, 3], s1 in [0, 9]"
    )
    assert sorted(answers(rescaled).values()) == sorted(answers(m).values())
    assert m.simplify().rescale_symbols().simplify() == rescaled.simplify()


def test_rescaling_leaves_dims_and_runtime_variables_alone():
    m = parse("(d0){rt0} -> (d0, rt0), domain: d0 in [0, 9], rt0 in [0, 9], d0 mod 2 in [0, 0], rt0 mod 2 in [0, 0]")
    assert m.rescale_symbols() is m


# ---- Properties of random maps

KINDS = (ADD, ADD, ADD, MUL, MOD, FLOORDIV, CEILDIV, MIN, MAX)
CONSTANTS = (1, -1, 2, 3, 4, -3, -4, 6, 8, -8, 12, -12, 24)


class Tape:
    """Choices read from bytes, the first option once they run out.

    Hypothesis draws one byte string per map and shrinks that; drawing each choice by itself takes ten times as long as
    what is tested.
    """

    def __init__(self, data):
        self.bytes = iter(data)

    def choose(self, options):
        return options[next(self.bytes, 0) % len(options)]

    def expression(self, variables, depth=3):
        """Over variables 0 .. variables - 1; only constants divide."""
        if depth == 0 or self.choose(range(5)) == 0:
            is_variable = variables and self.choose(range(4)) < 3
            return (
                Expr.variable(self.choose(range(variables))) if is_variable else Expr.constant(self.choose(CONSTANTS))
            )
        kind = self.choose(KINDS)
        lhs = self.expression(variables, depth - 1)
        is_general = kind in (ADD, MIN, MAX)
        return make(
            kind, lhs, self.expression(variables, depth - 1) if is_general else Expr.constant(self.choose(CONSTANTS))
        )

    def variable(self):
        lower = self.choose((0, 0, 0, -3, 5))
        return Variable(Interval(lower, lower + self.choose((0, 1, 2, 3, 5, 7))))

    def constraint(self, variables):
        """An arbitrary one, or one of the shapes that emission makes: x * k + y + c in [..], x mod k in [..]."""
        if self.choose((False, True)):
            x, y = (Expr.variable(self.choose(range(variables))) for _ in range(2))
            e = x * self.choose((4, 8, 3, -2)) + y * self.choose((1, 1, -1, 2)) + self.choose((0, 0, 1, -7))
        else:
            e = self.expression(variables, 2)
        if self.choose((False, False, True)):
            e = make(MOD, e, Expr.constant(self.choose((2, 3, 4))))
        lower = self.choose((0, 0, 0, -5, 1, 3))
        return e, Interval(lower, lower + self.choose((0, 1, 4, 9, 15, 31)))

    def map(self, dims=(1, 2), results=2, constraints=2):
        """A map of up to four variables with small bounds and up to `constraints` constraints."""
        counts = (self.choose(dims), self.choose(range(2)), self.choose(range(2)))
        variables = [tuple(self.variable() for _ in range(count)) for count in counts]
        expressions = tuple(self.expression(sum(counts)) for _ in range(results))
        limits = tuple(self.constraint(sum(counts)) for _ in range(self.choose(range(constraints + 1))))
        return IndexingMap(expressions, *variables, constraints=limits)


def maps(**shape):
    return st.binary(min_size=60, max_size=60).map(lambda data: Tape(data).map(**shape))


RANDOM = settings(
    max_examples=500,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.filter_too_much],
)
FEWER = settings(RANDOM, max_examples=60)


@RANDOM
@given(maps(), st.booleans())
def test_simplify_keeps_the_domain_and_every_value_on_it(m, replace_points):
    simplified = m.simplify(replace_points)
    assert answers(simplified) == answers(m)
    assert simplified.simplify(replace_points) == simplified


@FEWER
@given(maps())
def test_text_reads_back(m):
    for spelling in ("seed", "upstream"):
        again = parse(m.to_text(spelling))
        assert again == m
        assert again.results == m.results


@FEWER
@given(maps())
def test_ranges_hold_every_value(m):
    for number in range(m.num_results):
        reached = m.result_range(number)
        assert all(reached.contains(values[number]) for values in answers(m).values())


@FEWER
@given(maps(results=1, constraints=1), maps(dims=(1,), constraints=1))
def test_compose_is_second_after_first(first, second):
    """A point is in the composed domain iff it is in the first's and its results in the second's; values go through."""
    composed = first.compose(second)
    ranges, seconds = len(second.range_vars), second.num_symbols
    wanted = {}
    for (dims, symbols), middle in answers(first).items():
        for values in itertools.product(*(range(v.bounds.lower, v.bounds.upper + 1) for v in second.symbols)):
            is_inside = second.dims[0].bounds.contains(middle[0]) and second.constraints_satisfied(middle, values)
            if is_inside and not second.is_known_empty:
                own = len(first.range_vars)
                mixed = (*values[:ranges], *symbols[:own], *values[ranges:seconds], *symbols[own:])
                wanted[dims, mixed] = second.evaluate(middle, values)
    assert answers(composed) == wanted
    assert answers(composed.simplify()) == wanted


@FEWER
@given(maps())
def test_removed_variables_did_not_matter(m):
    smaller, removed = m.remove_unused_vars()
    assume(removed)
    everywhere = answers(m)
    assume(everywhere)  # a constraint that nothing satisfies may go with its variables
    projected = {}
    for (dims, symbols), values in everywhere.items():
        kept = tuple(v for v, gone in zip(dims + symbols, removed, strict=True) if not gone)
        projected[kept[: smaller.num_dims], kept[smaller.num_dims :]] = values
    assert answers(smaller) == projected


@FEWER
@given(maps())
def test_symbols_and_range_variables_become_dims(m):
    as_dims = m.symbols_to_dims()
    assert answers(as_dims) == {(dims + symbols, ()): values for (dims, symbols), values in answers(m).items()}
    if m.range_vars:
        moved = m.range_vars_to_dims(range(len(m.range_vars)))
        count = len(m.range_vars)
        assert answers(moved) == {(d + s[:count], s[count:]): values for (d, s), values in answers(m).items()}


@FEWER
@given(maps(results=1), st.integers(2, 5), st.integers(0, 4))
def test_rescaling_visits_the_same_values(m, modulus, remainder):
    assume(m.range_vars and remainder < modulus)
    number = m.num_dims
    strided = IndexingMap(
        m.results,
        m.dims,
        m.range_vars,
        m.runtime_vars,
        (*m.constraints, (Expr.variable(number) % modulus, Interval(remainder, remainder))),
    )
    rescaled = strided.rescale_symbols()
    visited = [(point[0], values) for point, values in answers(strided).items()]
    assert sorted(visited) == sorted((point[0], values) for point, values in answers(rescaled).items())
    assert sorted(visited) == sorted((point[0], values) for point, values in answers(rescaled.simplify()).items())
