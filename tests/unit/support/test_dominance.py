"""Dominators by their definition, on random graphs."""

import random

import pytest

from xla_emitters.support.dominance import immediate_dominators, reverse_postorder


@pytest.mark.parametrize("seed", range(30))
def test_immediate_dominators_are_those_of_the_definition(seed: int):
    """d dominates b iff b cannot be reached without d; the immediate dominator is the dominator that all others dominate."""
    rng = random.Random(seed)
    edges = {node: rng.sample(range(1, 8), rng.randint(0, 2)) for node in range(8)}

    def reached(without: int | None) -> set[int]:
        seen: set[int] = set()
        stack = [0] if without != 0 else []
        while stack:
            node = stack.pop()
            if node not in seen and node != without:
                seen.add(node)
                stack += edges[node]
        return seen

    everything = reached(None)
    dominators = {b: {d for d in everything if d is b or b not in reached(d)} for b in everything}
    found = immediate_dominators(0, edges.__getitem__)
    assert set(found) == everything
    for node in everything - {0}:
        strict = dominators[node] - {node}
        assert found[node] in strict
        assert all(other in dominators[found[node]] for other in strict)


def test_each_node_is_before_those_that_are_visited_from_it_first():
    assert reverse_postorder("a", {"a": "bc", "b": "d", "c": "d", "d": "a"}.__getitem__) == ["a", "c", "b", "d"]
