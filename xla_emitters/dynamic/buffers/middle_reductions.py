"""Reductions of dimensions in the middle of an array: the kind of their fusions, and the transposes in front of them."""

from __future__ import annotations

from collections.abc import Sequence

MIDDLE = "kMiddleReduction"
"""The kind of a fusion of one transpose and the reductions of rows that read it, for a CPU."""


def middle_of(order: Sequence[int]) -> tuple[int, int] | None:
    """The dimensions [first, end) that a transpose moves from the middle of an array to its end; None for another order.

    >>> middle_of((0, 3, 1, 2))
    (1, 3)
    """
    first = next((place for place, dim in enumerate(order) if place != dim), 0)
    end = order[first] if order else 0
    moved = [*range(first), *range(end, len(order)), *range(first, end)]
    return (first, end) if 0 < first < end and list(order) == moved else None
