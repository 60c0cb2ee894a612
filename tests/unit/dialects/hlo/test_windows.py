"""Windows: their number of positions, against enumeration, and their text."""

import itertools

import pytest
from xdsl.parser import Parser

from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.hlo.shape_rule import INTS
from xla_emitters.dialects.hlo.windows import Window, WindowAttr, WindowDim


def places(dim: WindowDim, size: int) -> int:
    """Counts the starts of the window, on an array written out with its holes and padding."""
    holes = dim.base_dilation - 1
    length = sum(1 + (holes if i else 0) for i in range(size)) + dim.low + dim.high
    reach = [i * dim.window_dilation for i in range(dim.size)]
    return sum(1 for start in range(0, max(length, 0), dim.stride) if start + max(reach, default=0) < length)


def test_the_number_of_places_is_that_of_the_starts_that_fit():
    for size, stride, low, high, base, dilation, array in itertools.product(
        (1, 2, 3), (1, 2), (0, 1, -1), (0, 2), (1, 2), (1, 3), (0, 1, 5)
    ):
        dim = WindowDim(size, stride, low, high, base, dilation)
        assert dim.positions(INTS, array) == places(dim, array), (dim, array)


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (Window(), "#hlo.window<>"),
        (Window((WindowDim(3),)), "#hlo.window<size = [3]>"),
        (
            Window((WindowDim(2, 2, 0, 1, 1, 3, True), WindowDim(1, 1, -1, 0, 2, 1))),
            "#hlo.window<size = [2, 1], stride = [2, 1], pad = [0, 1, -1, 0], lhs_dilate = [1, 2], rhs_dilate = [3, 1], "
            "rhs_reversal = [1, 0]>",
        ),
    ],
)
def test_text(window: Window, text: str):
    assert str(WindowAttr(window)) == text
    assert Parser(make_context(), text).parse_attribute() == WindowAttr(window)


@pytest.mark.parametrize(
    "lists", [{"stride": [1]}, {"size": [2], "pad": [0]}, {"size": [2], "stride": [0]}, {"size": [-1]}]
)
def test_lists_that_make_no_window(lists: dict[str, list[int]]):
    with pytest.raises(ValueError, match="window"):
        Window.of_lists(dict(lists))
