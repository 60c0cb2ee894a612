"""Maps as values, and the text of what operations make of them; their values over random maps: test_random_maps.py."""

import numpy as np
import pytest
from unit.algebra.enumeration import answers

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import dims_of, linearize

parse = IndexingMap.parse
SEED_LOOP = parse(
    "(th_x, bl_x)[vector_index] -> ("
    "bl_x floordiv 4096, (bl_x floordiv 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + vector_index), "
    "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]"
)


# ---- The seed's worked example


@pytest.mark.tiny
def test_the_seeds_flattened_map():
    """Loop map, then row-major linearization of [6,512,4096], symbols to dims: as the seed prints it after flattening."""
    shape = (6, 512, 4096)
    offset = IndexingMap((linearize([Expr.variable(number) for number in range(3)], shape),), dims_of(shape))
    assert str(SEED_LOOP.compose(offset).simplify().symbols_to_dims()) == (
        "(th_x, bl_x, vector_index) -> (th_x * 4 + bl_x * 512 + vector_index), "
        "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]"
    )


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
    for other in (m.submap(0), m.symbols_to_dims(), m.rescale_symbols()):
        assert other.is_known_empty


def test_a_variable_that_the_map_does_not_have():
    with pytest.raises(ValueError, match="variable 1 is used, but the map has 1 variables"):
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
    with pytest.raises(ValueError, match="map with 3 results with a map with 1 dims"):
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


def test_rescaling_takes_constraints_of_no_variable():
    """Their sum cancels: they say nothing of a variable, and stay."""
    m = parse("()[s0] -> (s0), domain: s0 in [0, 7], (s0 - s0) mod 2 in [0, 0], s0 mod 2 in [1, 1]")
    rescaled = m.rescale_symbols()
    assert str(rescaled.simplify()) == "()[s0] -> (s0 * 2 + 1), domain: s0 in [0, 3]"
    assert sorted(answers(rescaled).values()) == sorted(answers(m).values()) == [(1,), (3,), (5,), (7,)]


def test_fixing_runtime_variables():
    text = "(d0)[s0]{a, b} -> (d0 * 4 + a, s0 + b), domain: d0 in [0, 3], s0 in [0, 1], a in [0, 25], b in [-8, 1]"
    fixed = parse(f"{text}, a mod 2 in [1, 1], d0 + b in [0, 9]").with_runtime_vars_fixed()
    assert str(fixed) == "(d0)[s0] -> (d0 * 4 + 12, s0 - 3), domain: d0 in [0, 3], s0 in [0, 1]"
    assert SEED_LOOP.with_runtime_vars_fixed() is SEED_LOOP
    assert parse("(){rt0} -> (rt0), domain: rt0 in [0, 7], 3 in [4, 5]").with_runtime_vars_fixed().is_known_empty
