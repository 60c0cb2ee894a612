"""Clusters of ops: they can be joined exactly if that makes no cycle, and can run in their order."""

import random

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import MemRefType, f32
from xdsl.ir import Operation

from xla_emitters.dynamic.buffers.fusion_graph import FusionGraph

Edges = set[tuple[int, int]]


def random_ops(rng: random.Random, count: int) -> tuple[list[Operation], Edges]:
    """Ops that each read some results of ops before, and who reads whom."""
    ops, edges = list[Operation](), set[tuple[int, int]]()
    for number in range(count):
        before = rng.sample(range(number), min(number, rng.randint(0, 3)))
        edges |= {(other, number) for other in before}
        ops.append(test.TestOp([ops[other].results[0] for other in before], [MemRefType(f32, [4])]))
    return ops, edges


def has_cycle(edges: Edges, cluster: list[int]) -> bool:
    """Whether the clusters depend on each other in a circle, by removing what nothing depends on."""
    between = {(cluster[a], cluster[b]) for a, b in edges if cluster[a] != cluster[b]}
    left = {*cluster}
    while free := {c for c in left if not any(b == c and a in left for a, b in between)}:
        left -= free
    return bool(left)


@pytest.mark.parametrize("seed", range(40))
def test_clusters_are_joined_exactly_where_no_cycle_comes_of_it(seed: int) -> None:
    rng = random.Random(seed)
    ops, edges = random_ops(rng, rng.randint(2, 14))
    graph = FusionGraph(ops)
    for _ in range(40):
        a, b = rng.sample(range(len(ops)), 2)
        a, b = graph.cluster(a), graph.cluster(b)
        if a == b:
            continue
        joined = [a if graph.cluster(number) == b else graph.cluster(number) for number in range(len(ops))]
        assert graph.can_join(a, b) == (not has_cycle(edges, joined))
        if graph.can_join(a, b) and rng.random() < 0.5:
            graph.join(a, b)
        order = {cluster: place for place, cluster in enumerate(graph.in_order())}
        assert {graph.cluster(number) for number in range(len(ops))} == {*order}
        assert all(order[graph.cluster(a)] <= order[graph.cluster(b)] for a, b in edges)
