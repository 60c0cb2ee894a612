"""Who touches which element: against the plain meaning of the maps."""

from __future__ import annotations

import re

import pytest

from xla_emitters.errors import UsageError
from xla_emitters.explore.plots import Touch, access_pattern, touches
from xla_emitters.indexing import IndexingMap

SEED = IndexingMap.parse(
    "(th_x, bl_x)[vector_index] -> (bl_x floordiv 4096, (bl_x floordiv 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + vector_index), "
    "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]"
)
STRIDED = IndexingMap.parse("(th_x)[i] -> (i, th_x), domain: th_x in [0, 3], i in [0, 1], th_x in [0, 2]")


def test_the_seeds_threads_take_four_neighbours_each() -> None:
    found = touches(SEED, [512 * 4096, 4096, 1], 512, {"bl_x": 1})
    assert found == {place: Touch((place // 4, 0), (place % 4,)) for place in range(512)}


def test_constraints_leave_elements_out() -> None:
    """Two rows of four, the last column nobody's."""
    assert touches(STRIDED, [4, 1], 8) == {row * 4 + t: Touch((t,), (row,)) for row in range(2) for t in range(3)}


def test_the_picture_says_it_all() -> None:
    svg = access_pattern(STRIDED, [4, 1], 8, columns=4).text
    titles = re.findall(r"<title>(.*?)</title>", svg)
    assert titles[:4] == [*(f"element {t}: th_x = {t}, step 0" for t in range(3)), "element 3: nobody"]
    assert svg.count("<rect") == 8
    fills = re.findall(r'fill="(hsl[^"]*|none)"', svg)
    assert len(set(fills)) == 4
    assert fills[:4] == fills[4:]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(th_x) -> (0), domain: th_x in [0, 1]", "both touch element 0"),
        ("(th_x){rt0} -> (rt0), domain: th_x in [0, 1], rt0 in [0, 1]", "runtime variables"),
    ],
)
def test_what_cannot_be_drawn(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        access_pattern(IndexingMap.parse(text), [1])
