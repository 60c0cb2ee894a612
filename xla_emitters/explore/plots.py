"""Pictures of indexing maps: who touches which element, as SVG.

one square per element, in the order of memory; its colour is the thread's, its number the step of that thread

  thread 0         thread 1         thread 2
| 0  1  2  3  |  0  1  2  3  |  0  1  2  3  | ...        neighbours in memory are steps of one thread: one wide access
| 0  0  0  0  |  0  0  0  0  |  1  1  1  1  | ...        neighbours in memory are neighbouring threads: coalesced
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import product

from xla_emitters.errors import UsageError
from xla_emitters.indexing import IndexingMap, Variable
from xla_emitters.trace.html import Html

_SQUARE, _GAP = 22, 2
_COLOURS = 12
"""Threads further apart share a colour."""


@dataclass(frozen=True)
class Touch:
    """One element: the ids (thread, block ...) that touch it, and the values of the loop's variables when they do."""

    ids: tuple[int, ...]
    step: tuple[int, ...]


def touches(
    map: IndexingMap, strides: Sequence[int], elements: int, first: Mapping[str, int] | None = None
) -> dict[int, Touch]:
    """Who touches the first `elements` places of memory.

    map       from ids (dims) and loop variables (range variables) to indices; its domain is walked, so it should be small
    strides   of each index, in elements
    first     how many values of a variable to look at, from its lowest on: {"bl_x": 1} is the first block
    raises    UsageError where two touch the same place, or the map has runtime variables

    >>> m = IndexingMap.parse("(th_x)[v] -> (th_x * 2 + v), domain: th_x in [0, 3], v in [0, 1]")
    >>> touches(m, [1], 3)
    {0: Touch(ids=(0,), step=(0,)), 1: Touch(ids=(0,), step=(1,)), 2: Touch(ids=(1,), step=(0,))}
    """
    if map.runtime_vars:
        raise UsageError("a map with runtime variables cannot be drawn", stage="plot")
    found: dict[int, Touch] = {}
    limits = first or {}
    for ids in product(*(_values(variable, limits) for variable in map.dims)):
        for step in product(*(_values(variable, limits) for variable in map.range_vars)):
            if not map.constraints_satisfied(ids, step):
                continue
            place = sum(index * stride for index, stride in zip(map.evaluate(ids, step), strides, strict=True))
            if not 0 <= place < elements:
                continue
            if place in found:
                raise UsageError(f"{found[place].ids} and {ids} both touch element {place}", stage="plot")
            found[place] = Touch(ids, step)
    return dict(sorted(found.items()))


def _values(variable: Variable, first: Mapping[str, int]) -> range:
    lower, upper = variable.bounds.lower, variable.bounds.upper
    return range(lower, min(upper, lower + first.get(variable.name, upper + 1 - lower) - 1) + 1)


def access_pattern(
    map: IndexingMap,
    strides: Sequence[int],
    elements: int = 64,
    *,
    columns: int = 32,
    first: Mapping[str, int] | None = None,
) -> Html:
    """The first `elements` places of memory, each with the colour of the thread that touches it and the number of that thread's step.

    raises  as `touches`
    """
    found = touches(map, strides, elements, first)
    names = [variable.name or f"d{number}" for number, variable in enumerate(map.dims)]
    owners = {ids: number for number, ids in enumerate(dict.fromkeys(touch.ids for touch in found.values()))}
    steps = {step: number for number, step in enumerate(sorted({touch.step for touch in found.values()}))}
    rows = -(-elements // columns)
    width, height = columns * _SQUARE + _GAP, rows * _SQUARE + _GAP
    squares = list[str]()
    for place in range(elements):
        x, y = place % columns * _SQUARE + _GAP, place // columns * _SQUARE + _GAP
        touch = found.get(place)
        if touch is None:
            fill, text, title = "none", "", f"element {place}: nobody"
        else:
            hue = owners[touch.ids] % _COLOURS * 360 // _COLOURS
            fill, text = f"hsl({hue} 65% 72%)", str(steps[touch.step])
            who = ", ".join(f"{name} = {value}" for name, value in zip(names, touch.ids, strict=True))
            title = f"element {place}: {who}, step {steps[touch.step]}"
        size = _SQUARE - _GAP
        squares.append(
            f'<g><title>{escape(title)}</title><rect x="{x}" y="{y}" width="{size}" height="{size}" rx="3" fill="{fill}" '
            f'stroke="#888" stroke-width="0.5"/><text x="{x + size / 2}" y="{y + size * 0.7}" text-anchor="middle" '
            f'font-size="11" fill="#222" font-family="sans-serif">{text}</text></g>'
        )
    return Html(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="access pattern">{"".join(squares)}</svg>'
    )
