"""From argument shapes to symbols: every assignment is found again, every other shape is refused with argument and axis."""

import itertools
import re

import pytest

from xla_emitters.algebra.facts import Facts
from xla_emitters.algebra.size import Size
from xla_emitters.algebra.size_text import parse_size
from xla_emitters.algebra.solve import DeclaredShape, plan
from xla_emitters.errors import DataError, Place, Unsupported


def parse_shape(text):
    """The sizes between the commas outside of parentheses."""
    return tuple(parse_size(part) for part in re.split(r",(?![^(]*\))", text) if part.strip())


def make(*shapes, facts=None, names=()):
    parameters = [DeclaredShape(parse_shape(shape), *names[i : i + 1]) for i, shape in enumerate(shapes)]
    symbols = sorted({name for parameter in parameters for size in parameter.shape for name in size.symbols})
    return plan(parameters, Facts.of_symbols(symbols, 1, "jax.export") if facts is None else facts), symbols


CASES = [
    ["b, 2*s, s + 1"],
    ["b, s", "s, b"],
    ["2*a, a*b", "b"],
    ["max(a, 2)", "a"],
    ["a + b", "a"],
    ["3*a - 1"],
    ["5 - a"],
    ["a + 2*b, floordiv(a, 2)", "a, 3"],
    ["mod(c, 3), a + b*c", "b, c", "4"],
]


@pytest.mark.parametrize("shapes", CASES)
def test_exactly_the_shapes_of_some_assignment_are_solved(shapes):
    """All shapes with small sizes: those that an assignment of 1..8 gives are solved to one that gives them, the others refused."""
    p, symbols = make(*shapes)
    sizes = [size for parameter in p.parameters for size in parameter.shape]
    splits = [len(parameter.shape) for parameter in p.parameters]
    given = {}
    for point in itertools.product(range(1, 9), repeat=len(symbols)):
        values = dict(zip(symbols, point, strict=True))
        given.setdefault(tuple(size.evaluate(values) for size in sizes), values)
    numbers = sorted({number for shape in given for number in shape if 0 <= number <= 5} | {0, 5})
    for flat in itertools.product(numbers, repeat=len(sizes)):
        rest = iter(flat)
        arguments = [tuple(itertools.islice(rest, count)) for count in splits]
        if flat in given:
            values = p.solve(arguments)
            assert tuple(size.evaluate(values) for size in sizes) == flat
            assert min(values.values()) >= 1
        else:
            with pytest.raises(DataError, match="argument"):
                p.solve(arguments)


@pytest.mark.parametrize(
    ("shapes", "unknown"),
    [
        (["a*b"], "'a', 'b'"),
        (["mod(a, 2)"], "'a'"),
        (["a + b", "a - b"], "'a', 'b'"),
        (["a*a"], "'a'"),
        (["floordiv(a, 2), c"], "'a'"),
        (["a*b", "a"], "'b'"),
        (["a + floordiv(a, 2)"], "'a'"),
    ],
)
def test_what_jax_cannot_solve_is_refused_before_any_run(shapes, unknown):
    """Every case is refused by jax.export 0.10.2 in its own words."""
    place = Place("f.mlir", 1, 1)
    with pytest.raises(Unsupported, match=f"no value of {unknown} follows") as caught:
        plan([DeclaredShape(parse_shape(shape)) for shape in shapes], Facts(), place)
    assert caught.value.place == place


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([(2, 6, 5)], "argument 0 (p0) 'x': axis 2 is 5, but s + 1 is 4"),
        ([(2, 7, 4)], "argument 0 (p0) 'x': axis 1 is 7, but 2*s is 7 for no integer s"),
        ([(0, 6, 4)], "argument 0 (p0) 'x': b is 0; b >= 1 is expected, as jax.export says"),
        ([(2, 0, 1)], "argument 0 (p0) 'x': s is 0; s >= 1 is expected, as jax.export says"),
        ([(2, 6)], "argument 0 (p0) 'x': rank 2, expected 3"),
        ([(2, -6, 4)], "argument 0 (p0) 'x': a size is negative"),
        ([(2, 6, 4), (1,)], "2 arguments; the program takes 1"),
    ],
)
def test_messages(arguments, message):
    p, _ = make("b, 2*s, s + 1", names=("x",))
    with pytest.raises(DataError) as caught:
        p.solve(arguments)
    assert caught.value.message == message


def test_a_fixed_size():
    p, _ = make("b, 3", "4")
    assert p.solve([(7, 3), (4,)]) == {"b": 7}
    with pytest.raises(DataError, match=r"argument 1 \(p1\): axis 0 is 5, expected 4"):
        p.solve([(7, 3), (5,)])


def test_the_way_to_a_symbol_is_told():
    p, _ = make("b, s", "s, b")
    with pytest.raises(DataError) as caught:
        p.solve([(2, 3), (3, 4)])
    assert caught.value.message == "argument 1 (p1): axis 1 is 4, but b is 2"
    assert caught.value.details == (
        "b = 2 from axis 0 of argument 0 (p0)",
        "the argument has shape (3, 4), the program wants (s, b)",
    )


def test_facts_of_several_symbols_are_checked_last():
    a, b = Size.symbol("a"), Size.symbol("b")
    facts = Facts().with_equal(a, 2 * b, "the constraint a == 2*b").with_equal(a % 4, 0, "the model")
    p, _ = make("a, b", facts=facts)
    assert p.solve([(4, 2)]) == {"a": 4, "b": 2}
    with pytest.raises(DataError, match=r"a is 4 and b is 3; a == 2\*b is expected, as the constraint a == 2\*b says"):
        p.solve([(4, 3)])
    with pytest.raises(DataError, match=r"a is 6; mod\(a, 4\) == 0 is expected, as the model says"):
        p.solve([(6, 3)])


def test_huge_sizes_are_exact():
    p, _ = make("3*s + 1")
    assert p.solve([(3 * 10**30 + 1,)]) == {"s": 10**30}


def test_nothing_to_solve():
    p, _ = make("", "2, 3")
    assert p.solve([(), (2, 3)]) == {}
