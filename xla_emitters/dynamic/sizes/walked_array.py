"""An array during the walk: the keys of its axes, and its elements if they are integers that follow from sizes.

    %s = hlo.concatenate %b1, %four : tensor<2xi32>      Leaf(axes (7, 0), elements (b, 4))

`Axes` maps keys to sizes. Two values that are the same array (an element of a tuple, a call's argument) share the leaf.
A predicate is a truth value, or a conjunction of comparisons that the facts do not decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from xla_emitters.algebra.facts import AT_LEAST, AT_MOST, EQUAL, Relation
from xla_emitters.algebra.size import Size


class SizeComparison(NamedTuple):
    """`left direction right`; direction is one of EQ, NE, GE, GT, LE, LT."""

    direction: str
    left: Size
    right: Size

    @property
    def statement(self) -> tuple[Relation, Size, Size] | None:
        """The same by a relation of facts; None for NE."""
        direction, a, b = self
        match direction:
            case "EQ":
                return EQUAL, a, b
            case "NE":
                return None
            case "GE" | "GT":
                return AT_LEAST, a, b if direction == "GE" else b + 1
            case _:
                return AT_MOST, a if direction == "LE" else a + 1, b


Truth: TypeAlias = bool | frozenset[SizeComparison]
"""A predicate: a truth value, or comparisons that must all hold."""

Number: TypeAlias = Size | bool | frozenset[SizeComparison] | None
"""An element of an array of integers or predicates; None if it depends on data."""

AxisKey: TypeAlias = tuple[int, int]
"""(number of a leaf, axis)"""


@dataclass(frozen=True, eq=False)
class Leaf:
    """An array.

    number    of the leaf in its walk
    rank      number of axes
    elements  in row-major order; None: not tracked
    """

    number: int
    rank: int
    elements: tuple[Number, ...] | None = None

    def axis(self, axis: int) -> AxisKey:
        return (self.number, axis)

    @property
    def axes(self) -> list[AxisKey]:
        return [(self.number, axis) for axis in range(self.rank)]

    def sizes_in(self, count: int) -> tuple[Size | None, ...]:
        """The elements as `count` sizes; None for an unknown one."""
        if self.elements is None or len(self.elements) != count:
            return (None,) * count
        return tuple(number if isinstance(number, Size) else None for number in self.elements)


Value: TypeAlias = "Leaf | tuple[Value, ...]"
"""A value: an array, or a tuple of values; a value that is neither (a token) is the empty tuple."""


def leaves(value: Value) -> Iterator[Leaf]:
    """The arrays of a value, in order."""
    if isinstance(value, Leaf):
        yield value
    else:
        for part in value:
            yield from leaves(part)
