"""Maps as text: both spellings read back, and a wrong text is an error that points at the wrong piece."""

import itertools

import pytest

from xla_emitters.algebra.expression import ADD, CEILDIV, FLOORDIV, MAX, MIN, MOD, MUL, Expr, make
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.errors import ParseError

SEED_LOOP = (
    "(th_x, bl_x)[vector_index] -> ("
    "bl_x floordiv 4096, (bl_x floordiv 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + vector_index), "
    "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]"
)


def test_the_seeds_loop_map_reads_and_prints_as_it_stands():
    m = IndexingMap.parse(SEED_LOOP)
    assert str(m) == SEED_LOOP
    assert m.to_text("upstream") == SEED_LOOP.replace("floordiv", "/")
    assert [v.name for v in m.variables] == ["th_x", "bl_x", "vector_index"]
    assert [str(v.bounds) for v in m.variables] == ["[0, 127]", "[0, 24575]", "[0, 3]"]


def nested_expressions():
    """Two binary operators in every arrangement: all the places where a parenthesis matters."""
    x, y, z = (Expr.variable(number) for number in range(3))
    kinds = (ADD, MUL, MOD, FLOORDIV, CEILDIV, MAX, MIN)
    leaves = (x, make(MUL, y, Expr.constant(-1)), Expr.constant(-3))
    for outer, inner in itertools.product(kinds, kinds):
        for a, b in itertools.product(leaves, leaves):
            if make(inner, a, b).is_constant(0):
                continue  # a division by the constant 0 does not read
            yield make(outer, make(inner, a, b), z)
            yield make(outer, z, make(inner, a, b))
            yield make(MUL, make(outer, z, make(inner, a, b)), Expr.constant(-2))
            yield make(ADD, x, make(MUL, make(outer, make(inner, a, b), z), Expr.constant(-1)))


def test_every_nesting_reads_back_as_the_same_expression():
    """In both spellings; not an equal value but the very node. Many expressions in a map, for the header costs as much as ten."""
    dims = (Variable(Interval(0, 9)), Variable(Interval(-2, 5)), Variable(Interval(1, 4)))
    expressions = tuple(dict.fromkeys(nested_expressions()))
    assert len(expressions) > 700
    for m in (IndexingMap(expressions[start : start + 100], dims) for start in range(0, len(expressions), 100)):
        for spelling in ("seed", "upstream"):
            again = IndexingMap.parse(m.to_text(spelling)).results
            assert all(a is b for a, b in zip(again, m.results, strict=True))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("()->()", "() -> ()"),
        ("() -> (0)", "() -> (0)"),
        ("(d0)->(d0),domain:d0 in[0,3]", "(d0) -> (d0), domain: d0 in [0, 3]"),
        ("(d0) -> (d0), domain: d0 in [0, 3],", "(d0) -> (d0), domain: d0 in [0, 3]"),
        ("(d0) -> (d0), domain: d0 in [0, 3], is_simplified: true", "(d0) -> (d0), domain: d0 in [0, 3]"),
        ("() -> (), is_simplified: false", "() -> ()"),
        ("(d0)\n  -> (d0),\n  domain: d0 in [0, 3]", "(d0) -> (d0), domain: d0 in [0, 3]"),
        ("(d0)[s0]{rt0} -> (d0 + s0 + rt0), domain: d0 in [0, 1], s0 in [0, 2], rt0 in [-3, 3]", None),
        ("(a){r} -> (a + r), domain: a in [0, 1], r in [0, 2]", None),
        ("(min, max) -> (min(min, max)), domain: min in [0, 1], max in [0, 2]", None),
        ("(d0) -> (d0 - 3), domain: d0 in [0, 9]", None),
        ("(d0) -> (d0 -3), domain: d0 in [0, 9]", "(d0) -> (d0 - 3), domain: d0 in [0, 9]"),
        ("(d0) -> (6 - d0 * 2), domain: d0 in [0, 9]", "(d0) -> (d0 * -2 + 6), domain: d0 in [0, 9]"),
        ("(d0) -> (-(-d0)), domain: d0 in [0, 9]", "(d0) -> (d0), domain: d0 in [0, 9]"),
        ("(d0) -> (d0 - 9223372036854775808), domain: d0 in [-9223372036854775808, 9223372036854775807]", None),
        # One level of precedence, left to right.
        (
            "(d0) -> (d0 * 2 mod 3 / 4), domain: d0 in [0, 9]",
            "(d0) -> (((d0 * 2) mod 3) floordiv 4), domain: d0 in [0, 9]",
        ),
        (
            "(d0) -> (d0 floorDiv 2 ceilDiv 3), domain: d0 in [0, 9]",
            "(d0) -> ((d0 floordiv 2) ceildiv 3), domain: d0 in [0, 9]",
        ),
        # Constraints are sorted as text.
        (
            "(d0) -> (d0), domain: d0 in [0, 99], d0 mod 8 in [0, 3], d0 * 2 + 1 in [4, 9]",
            "(d0) -> (d0), domain: d0 in [0, 99], d0 * 2 + 1 in [4, 9], d0 mod 8 in [0, 3]",
        ),
    ],
)
def test_what_reads_and_how_it_prints(text, printed):
    assert str(IndexingMap.parse(text)) == (printed or text)


@pytest.mark.parametrize("operator", ["/", "floordiv", "floorDiv"])
def test_all_spellings_of_floor_division(operator):
    [result] = IndexingMap.parse(f"(d0) -> (d0 {operator} 8), domain: d0 in [0, 9]").results
    assert result is Expr.variable(0) // 8


def test_a_default_name_is_not_stored():
    m = IndexingMap.parse("(d0, x)[s0]{rt0} -> (), domain: d0 in [0, 1], x in [0, 1], s0 in [0, 1], rt0 in [0, 1]")
    assert [v.name for v in m.variables] == ["", "x", "", ""]


def test_two_variables_of_one_name_are_told_apart():
    v = Variable(Interval(0, 3), "v")
    m = IndexingMap((Expr.variable(0) + Expr.variable(1),), dims=(v,), range_vars=(v,))
    assert str(m) == "(v)[v_1] -> (v + v_1), domain: v in [0, 3], v_1 in [0, 3]"
    assert IndexingMap.parse(str(m)) == m


@pytest.mark.parametrize(
    "text",
    [
        "(d0) -> (d0), domain: d0 in [0, -1]",
        "(d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 3], d1 in [7, 5], s0 in [0, 1]",
        "(){rt0} -> (rt0, 3), domain: rt0 in [0, 7], rt0 * 2 in [5, 3]",
        "() -> (3), domain: 0 in [1, 1]",
    ],
)
def test_an_empty_domain_is_written_and_read_back(text):
    m = IndexingMap.parse(text)
    assert m.is_known_empty
    again = IndexingMap.parse(str(m))
    assert again == m
    assert again.is_known_empty
    assert (again.num_dims, again.num_symbols, again.num_results) == (m.num_dims, m.num_symbols, m.num_results)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "expected '(' before the dims, got the end of the text"),
        ("d0 -> (d0)", 1, "expected '(' before the dims, got 'd0'"),
        ("(d0 d1) -> (d0)", 5, "expected ',' or ')' after a variable, got 'd1'"),
        ("(d0, 3) -> (d0)", 6, "expected a variable's name, got '3'"),
        ("(d0, d0) -> (d0)", 6, "variable 'd0' is declared twice"),
        ("(mod) -> (mod)", 2, "'mod' is a keyword and cannot name a variable"),
        ("(d0) (d0)", 6, "expected '->' before the results, got '('"),
        ("(d0) -> (d0", 12, "expected ',' or ')' after a result, got the end of the text"),
        ("(d0) -> (d0 +)", 14, "expected an expression, got ')'"),
        ("(d0) -> (d1), domain: d0 in [0, 1]", 10, "unknown variable 'd1'"),
        ("(d0) -> (d0 % 2), domain: d0 in [0, 1]", 13, "unexpected character '%'"),
        ("(d0) -> (d0 mod 0), domain: d0 in [0, 1]", 13, "division by zero"),
        ("(d0) -> (min(d0)), domain: d0 in [0, 1]", 16, "expected ',' between the operands, got ')'"),
        ("(d0) -> (d0)", 13, "expected ', domain: d0 in [..]', got the end of the text"),
        ("(d0)[s0] -> (d0), domain: d0 in [0, 1]", 39, "expected ', s0 in [..]', got the end of the text"),
        ("(d0, d1) -> (d0), domain: d1 in [0, 1], d0 in [0, 1]", 27, "order of the header: expected 'd0', got 'd1'"),
        ("(d0) -> (d0), domain d0 in [0, 1]", 22, "expected ':' after 'domain', got 'd0'"),
        ("(d0) -> (d0), range: d0 in [0, 1]", 15, "expected 'domain' after the results, got 'range'"),
        ("(d0) -> (d0), domain: d0 in [0 1]", 32, "expected ',' between the bounds, got '1'"),
        ("(d0) -> (d0), domain: d0 in [0, x]", 33, "expected an integer, got 'x'"),
        ("(d0) -> (d0), domain: d0 in [0, 9223372036854775808]", 33, "the interval does not fit in 64 bits"),
        ("(d0) -> (d0 + 99999999999999999999), domain: d0 in [0, 1]", 15, "the integer does not fit in 64 bits"),
        (
            "(d0) -> (d0), domain: d0 in [0, 1], d0 mod 2",
            45,
            "expected 'in' after the constraint's expression, got the end of the text",
        ),
        ("(d0) -> (d0), domain: d0 in [0, 1], is_simplified: 3", 52, "expected 'true' or 'false', got '3'"),
        ("(d0) -> (d0), domain: d0 in [0, 1] (", 36, "expected the end of the text, got '('"),
        ("KNOWN EMPTY", 1, "expected '(' before the dims, got 'KNOWN'"),
    ],
)
def test_what_does_not_read(text, column, message):
    with pytest.raises(ParseError) as caught:
        IndexingMap.parse(text, file="map.txt")
    error = caught.value
    assert message in error.message
    assert (error.place.file, error.place.line, error.place.column) == ("map.txt", 1, column)
    assert error.stage == "indexing_map.parse"


def test_an_error_on_a_later_line_shows_that_line_and_the_nearest_name():
    with pytest.raises(ParseError) as caught:
        IndexingMap.parse("(th_x, bl_x) ->\n  (bl_y), domain:\n  th_x in [0, 1], bl_x in [0, 1]", file="m")
    assert caught.value.render().splitlines() == [
        "m:2:4: error: [indexing_map.parse] unknown variable 'bl_y'",
        "      (bl_y), domain:",
        "       ^~~~",
        "    help: did you mean 'bl_x'?",
    ]


def test_absurd_nesting_and_numbers_are_errors_not_crashes():
    with pytest.raises(ParseError, match="parentheses are nested more than"):
        IndexingMap.parse(f"(d0) -> ({'(' * 5000}d0{')' * 5000}), domain: d0 in [0, 1]")
    with pytest.raises(ParseError, match="parentheses are nested more than"):
        IndexingMap.parse(f"(d0) -> ({'- ' * 5000}d0), domain: d0 in [0, 1]")
    with pytest.raises(ParseError, match="64 bits"):
        IndexingMap.parse(f"(d0) -> ({'9' * 10_000}), domain: d0 in [0, 1]")


@pytest.mark.parametrize("text", ["-(2 + d0)", "-d0", "-2", "--2", "d0 - 2", "d0 - (2 - d0)", "-(d0)", "3 - -d0"])
def test_a_minus_before_a_number_a_variable_and_parentheses(text):
    m = IndexingMap.parse(f"(d0) -> ({text}), domain: d0 in [0, 5]")
    assert [m.evaluate((d0,))[0] for d0 in range(6)] == [eval(text, {"d0": d0}) for d0 in range(6)]
