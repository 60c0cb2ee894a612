"""Pictures of indexing maps as SVG: which thread accesses which element and bank, which lane's values a shuffle combines.

access_pattern    one square per element, in memory order; its colour is the thread, its number the thread's step

    thread 0         thread 1         thread 2
  | 0  1  2  3  |  0  1  2  3  |  0  1  2  3  | ...        neighbours in memory are steps of one thread: one wide access
  | 0  0  0  0  |  0  0  0  0  |  1  1  1  1  | ...        neighbours in memory are neighbouring threads: coalesced

bank_pattern      one column per bank of shared memory, one square per word that a warp accesses in it; each row takes one cycle

    bank  0   1   2  ...  31          bank  0   1   2  ...
          L0  L1  L2      L31               L0                    32 words in one bank:
                                            L1                    32 cycles
                                            ...

shuffle_tree      one row per shuffle, one square per lane: which lanes' values it has combined, with lines to their sources
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, product

import numpy as np

from xla_emitters.algebra.interval import Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dtypes import Array
from xla_emitters.errors import UsageError
from xla_emitters.runtime.simt import access_counts
from xla_emitters.runtime.simt.access_counts import BANKS, NO_THREAD, WORD
from xla_emitters.runtime.simt.gpu_rules import WARP_SIZE
from xla_emitters.trace.html import Html

_SQUARE, _GAP = 22, 2
_COLOURS = 12
"""Number of colours; threads with equal numbers modulo this have the same colour."""


# ---------------------------------------------------------------------------------------------- which thread accesses which element


@dataclass(frozen=True)
class PlottedAccess:
    """The access to one element: the ids (thread, block ...), and the values of the loop variables at that time."""

    ids: tuple[int, ...]
    step: tuple[int, ...]


def touches(
    m: IndexingMap, strides: Sequence[int], elements: int, first: Mapping[str, int] | None = None
) -> dict[int, PlottedAccess]:
    """The accesses to the first `elements` places of memory, by place.

    m         from ids (dims) and loop variables (range variables) to indices; its domain is enumerated, so it should be small
    strides   of each index, in elements
    first     how many values of a variable to visit, from its lowest on: {"bl_x": 1} is the first block
    raises    UsageError if two points access the same place, or the map has runtime variables

    >>> m = IndexingMap.parse("(th_x)[v] -> (th_x * 2 + v), domain: th_x in [0, 3], v in [0, 1]")
    >>> touches(m, [1], 3)
    {0: PlottedAccess(ids=(0,), step=(0,)), 1: PlottedAccess(ids=(0,), step=(1,)), 2: PlottedAccess(ids=(1,), step=(0,))}
    """
    _refuse_runtime_variables(m)
    found: dict[int, PlottedAccess] = {}
    limits = first or {}
    for ids in product(*(_values(variable, limits) for variable in m.dims)):
        for step in product(*(_values(variable, limits) for variable in m.range_vars)):
            place = _place(m, strides, ids, step)
            if place is None or not 0 <= place < elements:
                continue
            if place in found:
                raise UsageError(f"{found[place].ids} and {ids} both access element {place}", stage="plot")
            found[place] = PlottedAccess(ids, step)
    return dict(sorted(found.items()))


def _refuse_runtime_variables(m: IndexingMap) -> None:
    if m.runtime_vars:
        raise UsageError("a map with runtime variables cannot be drawn", stage="plot")


def _values(variable: Variable, first: Mapping[str, int]) -> range:
    lower, upper = variable.bounds.lower, variable.bounds.upper
    return range(lower, min(upper, lower + first.get(variable.name, upper + 1 - lower) - 1) + 1)


def _place(m: IndexingMap, strides: Sequence[int], ids: Sequence[int], step: Sequence[int]) -> int | None:
    """The place in memory, in elements; None if the map's constraints exclude the point."""
    if not m.constraints_satisfied(ids, step):
        return None
    return sum(index * stride for index, stride in zip(m.evaluate(ids, step), strides, strict=True))


def access_pattern(
    m: IndexingMap,
    strides: Sequence[int],
    elements: int = 64,
    *,
    columns: int = 32,
    first: Mapping[str, int] | None = None,
    number: str | None = None,
) -> Html:
    """The first `elements` places of memory, each with the colour of the thread that accesses it and the number of that thread's step.

    number  the id whose value is written in the squares instead of the step: "th_x"
    raises  as `touches`; UsageError if the map has no id `number`
    """
    found = touches(m, strides, elements, first)
    names = [variable.name or f"d{dim}" for dim, variable in enumerate(m.dims)]
    if number is not None and number not in names:
        raise UsageError(f"the map has no id '{number}'", stage="plot", help=f"one of: {', '.join(names)}")
    owners = {ids: order for order, ids in enumerate(dict.fromkeys(touch.ids for touch in found.values()))}
    steps = {step: order for order, step in enumerate(sorted({touch.step for touch in found.values()}))}
    squares = list[str]()
    for place in range(elements):
        row, column = divmod(place, columns)
        touch = found.get(place)
        if touch is None:
            squares.append(_square(column, row, "none", "", f"element {place}: no access"))
            continue
        ids = ", ".join(f"{name} = {value}" for name, value in zip(names, touch.ids, strict=True))
        text = steps[touch.step] if number is None else touch.ids[names.index(number)]
        title = f"element {place}: {ids}, step {steps[touch.step]}"
        squares.append(_square(column, row, _colour(owners[touch.ids]), str(text), title))
    return _svg("access pattern", columns, -(-elements // columns), squares)


# ---------------------------------------------------------------------------------------------- one access of a warp


def places_of_warp(
    m: IndexingMap, strides: Sequence[int], at: Mapping[str, int] | None = None, *, warp: int = 0
) -> dict[int, int]:
    """The places that a warp accesses at once: lane -> place in memory, in elements. Lanes outside the domain are left out.

    m        from `th_x` and other ids, and loop variables, to indices
    strides  of each index, in elements
    at       values of the variables other than `th_x`; by default their lowest
    raises   UsageError for a map with runtime variables, or without `th_x`

    >>> m = IndexingMap.parse("(th_x)[i] -> (th_x, i), domain: th_x in [0, 2], i in [0, 7]")
    >>> places_of_warp(m, [33, 1], {"i": 5})
    {0: 5, 1: 38, 2: 71}
    """
    _refuse_runtime_variables(m)
    if "th_x" not in (names := [variable.name for variable in m.dims]):
        raise UsageError("the map has no thread id 'th_x'", stage="plot", help=f"its ids: {', '.join(names)}")
    fixed = at or {}
    thread = names.index("th_x")
    ids, step = (
        [fixed.get(variable.name, variable.bounds.lower) for variable in kind] for kind in (m.dims, m.range_vars)
    )
    found = dict[int, int]()
    for lane in range(WARP_SIZE):
        ids[thread] = warp * WARP_SIZE + lane
        if m.dims[thread].bounds.contains(ids[thread]) and (place := _place(m, strides, ids, step)) is not None:
            found[lane] = place
    return found


def sectors(places: Mapping[int, int], element_bytes: int) -> int:
    """The number of sectors of global memory that the access transfers.

    >>> sectors({lane: lane for lane in range(32)}, 4), sectors({lane: lane * 100 for lane in range(32)}, 4)
    (4, 32)
    """
    return int(access_counts.sectors(_request(places, element_bytes), element_bytes).sum())


def _request(places: Mapping[int, int], element_bytes: int) -> Array:
    """The access in the form of the executor's counter: byte offsets, int64 (1, 32)."""
    offsets = np.full((1, WARP_SIZE), NO_THREAD, np.int64)
    for lane, place in places.items():
        offsets[0, lane] = place * element_bytes
    return offsets


def words_of_banks(places: Mapping[int, int], element_bytes: int) -> dict[int, dict[int, list[int]]]:
    """Bank -> word -> the lanes that access it. Lanes that access the same word are served together.

    element_bytes  bytes that a lane reads or writes: at most a word

    >>> words_of_banks({0: 5, 1: 37, 2: 37}, 4)
    {5: {5: [0], 37: [1, 2]}}
    """
    if element_bytes > WORD:
        raise UsageError(f"a lane accesses {element_bytes} bytes; banks are drawn for at most {WORD}", stage="plot")
    found = dict[int, dict[int, list[int]]]()
    for lane, place in places.items():
        word = place * element_bytes // WORD
        found.setdefault(word % BANKS, {}).setdefault(word, []).append(lane)
    return found


def bank_ways(places: Mapping[int, int], element_bytes: int) -> int:
    """The most words that the access needs from one bank, one cycle each: 1 without a bank conflict, 32 at worst.

    >>> bank_ways({lane: lane * 33 for lane in range(32)}, 4), bank_ways({lane: lane * 32 for lane in range(32)}, 4)
    (1, 32)
    """
    return int(access_counts.bank_ways(_request(places, element_bytes), element_bytes).max())


def bank_pattern(places: Mapping[int, int], element_bytes: int) -> Html:
    """The words that the access needs from each bank, with the number of a lane that accesses it; each row takes one cycle.

    raises  as `words_of_banks`
    """
    squares = [_label(bank, 0, str(bank)) for bank in range(BANKS)]
    for bank, words in sorted(words_of_banks(places, element_bytes).items()):
        for row, (word, lanes) in enumerate(words.items(), 1):
            numbers = ", ".join(map(str, lanes))
            title = f"bank {bank}, word {word}: lane{'s' if len(lanes) > 1 else ''} {numbers}"
            text = numbers if len(lanes) == 1 else f"{lanes[0]}.."
            squares.append(_square(bank, row, _colour(lanes[0]), text, title))
    return _svg("banks of shared memory", BANKS, 1 + bank_ways(places, element_bytes), squares)


# ---------------------------------------------------------------------------------------------- shuffles


def combined_lanes(distances: Sequence[int], lanes: int = WARP_SIZE) -> list[list[tuple[int, ...]]]:
    """The lanes whose values each lane has combined, in order, before the first shuffle and after each one.

    distances  lane l combines its own value with that of lane l + distance; if there is no such lane, with its own value again

    >>> combined_lanes([2, 1], lanes=4)[-1][0]
    (0, 2, 1, 3)
    """

    def combine(held: list[tuple[int, ...]], distance: int) -> list[tuple[int, ...]]:
        return [own + held[lane + distance if lane + distance < lanes else lane] for lane, own in enumerate(held)]

    return list(accumulate(distances, combine, initial=[(lane,) for lane in range(lanes)]))


def shuffle_tree(distances: Sequence[int], lanes: int = WARP_SIZE) -> Html:
    """A row before the first shuffle and one after each. A numbered square has combined that many values, and contributes to a used result.

    distances  as `combined_lanes`, in falling order: each run of `2 * distances[0]` lanes gives one result
    """
    rows = combined_lanes(distances, lanes)
    run = 2 * distances[0] if distances else 1
    used = set(range(0, lanes, run))
    needed = [used]
    for distance in reversed(distances):
        used = used | {lane + distance for lane in used}
        needed.insert(0, used)
    pitch = 2  # rows per shuffle: one of squares, one of lines
    drawn = list[str]()
    for number, (distance, after) in enumerate(zip(distances, needed[1:], strict=True)):
        for lane in sorted(after):
            for source in (lane, lane + distance):
                drawn.append(_line(source, number * pitch, lane, (number + 1) * pitch))
    for number, (held, wanted) in enumerate(zip(rows, needed, strict=True)):
        for lane, whose in enumerate(held):
            where = f"after {', '.join(map(str, distances[:number]))}: " if number else ""
            title = f"{where}lane {lane} has {', '.join(map(str, whose))}"
            fill = _colour(number * 2) if lane in wanted else "none"
            text = str(len(whose)) if lane in wanted else ""
            drawn.append(_square(lane, number * pitch, fill, text, title))
    return _svg("shuffles of a warp", lanes, (len(rows) - 1) * pitch + 1, drawn)


# ---------------------------------------------------------------------------------------------- SVG


def _svg(label: str, columns: int, rows: int, parts: Sequence[str]) -> Html:
    width, height = columns * _SQUARE + _GAP, rows * _SQUARE + _GAP
    return Html(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{label}">{"".join(parts)}</svg>'
    )


def _colour(number: int) -> str:
    return f"hsl({number % _COLOURS * 360 // _COLOURS} 65% 72%)"


def _square(column: int, row: int, fill: str, text: str, title: str) -> str:
    x, y, size = column * _SQUARE + _GAP, row * _SQUARE + _GAP, _SQUARE - _GAP
    font = 11 if len(text) < 3 else 9  # three digits of 11 are as wide as the square
    return (
        f'<g><title>{escape(title)}</title><rect x="{x}" y="{y}" width="{size}" height="{size}" rx="3" fill="{fill}" '
        f'stroke="#888" stroke-width="0.5"/><text x="{x + size / 2}" y="{y + size * 0.7}" text-anchor="middle" '
        f'font-size="{font}" fill="#222" font-family="sans-serif">{text}</text></g>'
    )


def _label(column: int, row: int, text: str) -> str:
    x, y, size = column * _SQUARE + _GAP, row * _SQUARE + _GAP, _SQUARE - _GAP
    return (
        f'<text x="{x + size / 2}" y="{y + size * 0.8}" text-anchor="middle" font-size="10" fill="#888" '
        f'font-family="sans-serif">{text}</text>'
    )


def _line(from_column: int, from_row: int, to_column: int, to_row: int) -> str:
    """From the lower edge of one square to the upper edge of another."""
    half = (_SQUARE - _GAP) / 2
    x1, y1 = from_column * _SQUARE + _GAP + half, (from_row + 1) * _SQUARE
    x2, y2 = to_column * _SQUARE + _GAP + half, to_row * _SQUARE + _GAP
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#888"/>'
