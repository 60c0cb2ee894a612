"""The order and the dominators of the nodes of a graph that has one entry: blocks of IR, basic blocks of a text.

entry ─> a ─> join          join is dominated by the entry alone: two ways lead to it
   └───> b ──^
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

N = TypeVar("N")


def reverse_postorder(entry: N, ways: Callable[[N], Iterable[N]]) -> list[N]:
    """The reachable nodes, each before the nodes that are visited from it first. ways: (node) -> the nodes after it"""
    order: list[N] = []
    seen = {entry}
    stack = [(entry, iter(ways(entry)))]
    while stack:
        node, following = stack[-1]
        for way in following:
            if way not in seen:
                seen.add(way)
                stack.append((way, iter(ways(way))))
                break
        else:
            order.append(node)
            stack.pop()
    return order[::-1]


def immediate_dominators(entry: N, ways: Callable[[N], Iterable[N]]) -> dict[N, N]:
    """For every node that can be reached from `entry`: the nearest node that all paths to it pass; `entry` for itself.

    Source: Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm".
    """
    order = reverse_postorder(entry, ways)
    number = {node: index for index, node in enumerate(order)}
    predecessors: dict[N, list[N]] = {}
    for node in order:
        for way in ways(node):
            predecessors.setdefault(way, []).append(node)
    dominator = {entry: entry}
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            found: N | None = None
            for other in predecessors[node]:
                if other not in dominator:
                    continue
                if found is None:
                    found = other
                    continue
                while found is not other:
                    if number[found] > number[other]:
                        found = dominator[found]
                    else:
                        other = dominator[other]
            assert found is not None, "a node that can be reached has a predecessor that was visited"
            if dominator.get(node) is not found:
                dominator[node] = found
                changed = True
    return dominator
