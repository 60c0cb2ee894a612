"""Which thread or lane touches which element or bank: against the definitions of maps and shuffles."""

import math
import re

import numpy as np
import pytest

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.errors import UsageError
from xla_emitters.explore.plots import (
    PlottedAccess,
    access_pattern,
    bank_pattern,
    bank_ways,
    combined_lanes,
    places_of_warp,
    sectors,
    shuffle_tree,
    touches,
    words_of_banks,
)

SEED = IndexingMap.parse(
    "(th_x, bl_x)[vector_index] -> (bl_x floordiv 4096, (bl_x floordiv 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + vector_index), "
    "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]"
)
STRIDED = IndexingMap.parse("(th_x)[i] -> (i, th_x), domain: th_x in [0, 3], i in [0, 1], th_x in [0, 2]")


def test_the_seeds_threads_take_four_neighbours_each() -> None:
    found = touches(SEED, [512 * 4096, 4096, 1], 512, {"bl_x": 1})
    assert found == {place: PlottedAccess((place // 4, 0), (place % 4,)) for place in range(512)}


def test_constraints_leave_elements_out() -> None:
    """Two rows of four; no thread has the last column."""
    assert touches(STRIDED, [4, 1], 8) == {
        row * 4 + t: PlottedAccess((t,), (row,)) for row in range(2) for t in range(3)
    }


def test_the_picture_says_it_all() -> None:
    svg = access_pattern(STRIDED, [4, 1], 8, columns=4).text
    titles = re.findall(r"<title>(.*?)</title>", svg)
    assert titles[:4] == [*(f"element {t}: th_x = {t}, step 0" for t in range(3)), "element 3: no access"]
    assert svg.count("<rect") == 8
    fills = re.findall(r'fill="(hsl[^"]*|none)"', svg)
    assert len(set(fills)) == 4
    assert fills[:4] == fills[4:]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(th_x) -> (0), domain: th_x in [0, 1]", "both access element 0"),
        ("(th_x){rt0} -> (rt0), domain: th_x in [0, 1], rt0 in [0, 1]", "runtime variables"),
    ],
)
def test_what_cannot_be_drawn(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        access_pattern(IndexingMap.parse(text), [1])


# ---- One access of a warp

SEEDS_TILE = IndexingMap.parse(
    "(th_x, bl_x)[i] -> (th_x mod 32, 0, i * 4 + th_x floordiv 32), domain: th_x in [0, 127], bl_x in [0, 959], i in [0, 4]"
)


@pytest.mark.parametrize(("warp", "i"), [(0, 0), (3, 0), (1, 4)])
def test_a_warp_fills_a_column_of_the_seeds_tile(warp: int, i: int) -> None:
    """Row l, of 33 elements, for lane l; the column is the step's and the warp's."""
    places = places_of_warp(SEEDS_TILE, [33, 33, 1], {"i": i, "bl_x": 17}, warp=warp)
    assert places == {lane: lane * 33 + i * 4 + warp for lane in range(32)}


def test_lanes_outside_of_the_domain_are_left_out() -> None:
    """40 threads: the second warp has eight; of them those with an even number do something."""
    map = IndexingMap.parse("(th_x) -> (th_x), domain: th_x in [0, 39], th_x mod 2 in [0, 0]")
    assert places_of_warp(map, [1], warp=1) == {0: 32, 2: 34, 4: 36, 6: 38}
    assert places_of_warp(map, [1], warp=2) == {}


def test_variables_stand_at_their_lowest_unless_told() -> None:
    map = IndexingMap.parse(
        "(bl_x, th_x)[i] -> (bl_x * 100 + th_x + i), domain: bl_x in [2, 5], th_x in [0, 0], i in [7, 9]"
    )
    assert places_of_warp(map, [1]) == {0: 207}
    assert places_of_warp(map, [1], {"bl_x": 3, "i": 8}) == {0: 308}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(d0) -> (d0), domain: d0 in [0, 1]", "no thread id 'th_x'"),
        ("(th_x){rt0} -> (rt0), domain: th_x in [0, 1], rt0 in [0, 1]", "runtime variables"),
    ],
)
def test_what_is_no_access_of_a_warp(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        places_of_warp(IndexingMap.parse(text), [1])


@pytest.mark.parametrize(("row", "ways"), [(32, 32), (33, 1), (34, 2), (36, 4), (40, 8), (48, 16), (35, 1)])
def test_the_greatest_common_divisor_says_how_banks_conflict(row: int, ways: int) -> None:
    """Words of a column are `row` apart: gcd(row, 32) of them share a bank."""
    places = places_of_warp(SEEDS_TILE, [row, row, 1])
    assert bank_ways(places, 4) == math.gcd(row, 32) == ways
    assert max(len(words) for words in words_of_banks(places, 4).values()) == ways


def test_lanes_in_one_word_are_served_together() -> None:
    """Two elements of 16 bits are a word; all lanes at one place are one word."""
    assert bank_ways({lane: lane for lane in range(32)}, 2) == 1
    assert words_of_banks({0: 64, 1: 65, 2: 66}, 2) == {0: {32: [0, 1]}, 1: {33: [2]}}
    assert bank_ways(dict.fromkeys(range(32), 5), 4) == 1
    assert bank_ways({}, 4) == 0


def test_sectors_are_of_32_bytes() -> None:
    assert sectors({lane: lane for lane in range(32)}, 4) == 4
    assert sectors({lane: lane + 1 for lane in range(32)}, 4) == 5
    assert sectors({lane: lane for lane in range(32)}, 1) == 1
    assert sectors({lane: lane * 27200 for lane in range(20)}, 4) == 20


def test_the_picture_of_banks_has_a_square_for_each_word() -> None:
    svg = bank_pattern({0: 5, 1: 37, 2: 37}, 4).text
    assert re.findall(r"<title>(.*?)</title>", svg) == ["bank 5, word 5: lane 0", "bank 5, word 37: lanes 1, 2"]
    assert svg.count("<rect") == 2
    with pytest.raises(UsageError, match="8 bytes"):
        bank_pattern({0: 0}, 8)


def test_a_chosen_id_is_shown() -> None:
    svg = access_pattern(STRIDED, [4, 1], 8, columns=4, number="th_x").text
    assert re.findall(r"<text[^>]*>(.*?)</text>", svg) == ["0", "1", "2", "", "0", "1", "2", ""]
    with pytest.raises(UsageError, match="no id 'bl_x'"):
        access_pattern(STRIDED, [4, 1], 8, number="bl_x")


# ---- Shuffles


@pytest.mark.parametrize("distances", [[16, 8, 4, 2, 1], [4, 2, 1], [2, 1], [1], []], ids=str)
def test_every_run_of_lanes_ends_in_its_first(distances: list[int]) -> None:
    """Twice the first distance is a run; its first lane has each lane of it once."""
    run = 2 * distances[0] if distances else 1
    last = combined_lanes(distances)[-1]
    for first in range(0, 32, run):
        assert sorted(last[first]) == list(range(first, first + run))


def test_shuffles_do_what_the_numbers_say() -> None:
    """Against sums over random integers: a lane's sum is that of the lanes it is said to have combined."""
    values = np.random.default_rng(0).integers(0, 1000, 32)
    held = values.copy()
    for distance, said in zip([16, 8, 4], combined_lanes([16, 8, 4])[1:], strict=True):
        held = held + np.array([held[lane + distance] if lane + distance < 32 else held[lane] for lane in range(32)])
        assert held.tolist() == [sum(values[lane] for lane in lanes) for lanes in said]


def test_the_picture_of_shuffles_shows_what_is_used() -> None:
    """Eight lanes in runs of four: 8 values, 4 pairs, 2 results, and a line for each value that goes on."""
    svg = shuffle_tree([2, 1], lanes=8).text
    numbers = [text for text in re.findall(r"<text[^>]*>(.*?)</text>", svg) if text]
    assert numbers == ["1"] * 8 + ["2"] * 4 + ["4"] * 2
    assert svg.count("<line") == 8 + 4
    assert "<title>after 2, 1: lane 4 has 4, 6, 5, 7</title>" in svg
