"""Guards: checked with the right message; what is left out is implied."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from repeatable import repeatable
from unit.algebra.random_sizes import NAMES, Tape, build

from xla_emitters.algebra.facts import AT_LEAST, AT_MOST, EQUAL, Facts
from xla_emitters.algebra.guards import Guard, needed
from xla_emitters.algebra.size import Size, as_size
from xla_emitters.errors import DataError

B, S = Size.symbol("b"), Size.symbol("s")
BOX = [dict(zip(NAMES, point, strict=True)) for point in itertools.product((-2, 0, 1, 2, 3, 4, 8), repeat=3)]


def one(relation, left, right):
    return Guard(relation, as_size(left), as_size(right))


@pytest.mark.parametrize(
    ("guard", "holds", "fails", "message"),
    [
        (one(EQUAL, 2 * B, S), (2, 4), (2, 5), "2*b == s does not hold: 2*b is 4, s is 5"),
        (one(AT_LEAST, S - B, 0), (2, 2), (3, 2), "-b + s >= 0 does not hold: -b + s is -1"),
        (one(AT_MOST, S, 7), (1, 7), (1, 8), "s <= 7 does not hold: s is 8"),
        (one(EQUAL, S % 8, 0), (1, 0), (1, 12), "mod(s, 8) == 0 does not hold: mod(s, 8) is 4"),
    ],
)
def test_each_condition(guard, holds, fails, message):
    guard.check(dict(zip("bs", holds, strict=True)))
    with pytest.raises(DataError) as caught:
        guard.check(dict(zip("bs", fails, strict=True)))
    assert caught.value.message == message
    assert caught.value.exit_code == 1


def test_jax_s_own_words():
    message = "Expected value >= 1 for dimension variable 'b'. Obtained 'b' = {0} from (= {1}), {2} {x} {}"
    guard = Guard(AT_LEAST, B, Size.constant(1), message, (B, 2 * B))
    assert guard.message_for({"b": -3}) == message.replace("{0}", "-3").replace("{1}", "-6")
    assert guard.symbols == {"b"}


def test_a_division_by_zero_in_a_guard_is_an_error_of_the_data():
    with pytest.raises(DataError, match=r"division by zero in floordiv\(b, s\)"):
        one(EQUAL, B // S, 1).check({"b": 1, "s": 0})


def test_what_follows_is_left_out():
    facts = Facts.of_symbols(("b",), 1, "jax.export")
    guards = [
        one(AT_LEAST, B, 1),  # a fact
        one(EQUAL, S, 4 * B),
        one(EQUAL, 4 * B, S),  # the one before
        one(EQUAL, S % 2, 0),  # follows
        one(AT_LEAST, S, 4),  # follows
        one(AT_LEAST, S, 5),
    ]
    kept, after = needed(guards, facts)
    assert kept == (guards[1], guards[5])
    assert after.at_least(B, 2)


def test_a_guard_that_cannot_hold_stays_with_its_message():
    guard = Guard(EQUAL, B, Size.constant(0), "no batch")
    kept, facts = needed([guard, guard, one(AT_LEAST, S, 2)], Facts.of_symbols(("b",), 1, "x"))
    assert [str(g) for g in kept] == ["b == 0", "s >= 2"]
    assert facts.at_least(S, 2)
    with pytest.raises(DataError, match="no batch"):
        kept[0].check({"b": 5})


@given(st.lists(st.binary(min_size=100, max_size=100), min_size=3, max_size=3))
@repeatable(25)
def test_the_guards_left_check_all_of_them(batch):
    """At every point: all guards hold where those left do; and the first to fail has its own message, not a later one's."""
    for data in batch:
        tape = Tape(data)
        guards = []
        for _ in range(4):
            relation = tape.choose((EQUAL, AT_LEAST, AT_MOST))
            right = build(tape.tree(1, constants=(0, 1, 2, 4)))
            guards.append(one(relation, build(tape.tree(1, constants=(1, 2, 3))), right))
        kept, _ = needed(guards, Facts())
        assert list(dict.fromkeys(guard for guard in guards if guard in kept)) == list(kept)
        for point in BOX[::8]:
            try:
                holds = [guard.holds(point) for guard in guards]
            except DataError:
                continue
            assert all(holds) == all(guard.holds(point) for guard in kept), (guards, kept, point)
