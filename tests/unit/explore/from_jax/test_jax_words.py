"""Errors of JAX in the words of a caller; without JAX."""

import pytest

from xla_emitters.errors import Unsupported
from xla_emitters.explore.from_jax.jax_words import tracing_error, tree_error


class InconclusiveDimensionOperation(Exception):
    """By the name of JAX's, which is how it is known."""


@pytest.mark.parametrize(
    ("asked", "always", "never"),
    [
        ("'t - 1' >= '1'", "t - 1 >= 1", "t - 1 <= 0"),
        ("'t' > '3'", "t >= 4", "t <= 3"),
        ("'t' <= '3*b'", "t <= 3*b", "t >= 3*b + 1"),
        ("'t' < 'b'", "t <= b - 1", "t >= b"),
        ("'n' < '3'", "n <= 2", "n >= 3"),
    ],
)
def test_a_comparison_of_sizes_is_the_constraint_to_give(asked: str, always: str, never: str) -> None:
    """Which of the two is meant only the caller knows: `top_k` asks whether a size is too small."""
    error = InconclusiveDimensionOperation(f"Symbolic dimension comparison {asked} is inconclusive.\n\nMore.")
    found = tracing_error(error, "f")
    assert isinstance(found, Unsupported)
    assert f'if it always holds: constraints=("{always}",); if it never holds: constraints=("{never}",)' in str(found)


def test_sizes_that_always_differ_are_no_constraint_of_jax() -> None:
    error = InconclusiveDimensionOperation("Symbolic dimension comparison 't' == 'b' is inconclusive.")
    assert str(tracing_error(error, "f")).endswith('if it always holds: constraints=("t == b",)')


def test_no_constraint_helps_where_a_number_is_needed() -> None:
    error = InconclusiveDimensionOperation("Symbolic dimension 'n' used in a context that requires a constant")
    assert "constraints" not in str(tracing_error(error, "f"))


def test_a_call_that_gives_donate_is_told_where_it_is_taken() -> None:
    assert "p.run(" in str(tree_error("f", ["arguments[0]"], ["arguments[0]", "keywords['donate']"], "*"))
    assert "p.run(" not in str(tree_error("f", ["arguments[0]"], ["arguments[0]", "keywords['z']"], "*"))
