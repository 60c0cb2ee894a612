"""`#xla_gpu.indexing_map<...>`: strings in pieces, both spellings, equality."""

import pytest

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.xla_gpu.indexing_map import IndexingMapAttr
from xla_emitters.errors import ParseError

TEXT = "(th_x)[s0] -> (th_x floordiv 8, s0), domain: th_x in [0, 127], s0 in [0, 3]"


def attribute(text: str) -> IndexingMapAttr:
    found = parse_ir(f"module attributes {{m = {text}}} {{}}").attributes["m"]
    assert isinstance(found, IndexingMapAttr)
    return found


@pytest.mark.parametrize(
    "text",
    [
        f'#xla_gpu.indexing_map<"{TEXT}">',
        '#xla_gpu.indexing_map<"(th_x)[s0] -> (" "th_x floordiv 8, s0)," \n "domain: th_x in [0, 127], s0 in [0, 3]">',
        '#xla.indexing_map<"(th_x)[s0] -> (th_x / 8, s0), domain: th_x in [0, 127], s0 in [0, 3]">',
        '#xla_gpu.indexing_map<"(th_x)[s0] -> (th_x floorDiv 8, s0), domain: th_x in [0, 127], s0 in [0, 3]">',
    ],
)
def test_one_map_in_many_spellings(text: str):
    found = attribute(text)
    assert found == IndexingMapAttr(IndexingMap.parse(TEXT))
    assert str(found) == f'#xla_gpu.indexing_map<"{TEXT}">'


def test_names_do_not_count_for_equality():
    other = attribute('#xla_gpu.indexing_map<"(d0)[v] -> (d0 floordiv 8, v), domain: d0 in [0, 127], v in [0, 3]">')
    assert other == attribute(f'#xla_gpu.indexing_map<"{TEXT}">')
    assert hash(other) == hash(attribute(f'#xla_gpu.indexing_map<"{TEXT}">'))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('#xla_gpu.indexing_map<"(d0) -> (d1), domain: d0 in [0, 3]">', ""),
        ('#xla_gpu.indexing_map<"(d0) -> (d0)" ">', ""),
        ("#xla_gpu.indexing_map<(d0) -> (d0)>", "string literal expected for the text of an indexing map"),
        (
            '#xla_gpu.indexing_map<"(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 3], rt0 in [0, 3]">',
            "no runtime variables",
        ),
    ],
)
def test_what_is_no_map_is_refused(text: str, message: str):
    with pytest.raises(ParseError) as caught:
        attribute(text)
    assert message in caught.value.message
    assert caught.value.place is not None
