"""`#xla_gpu.indexing_map<"...">`: an indexing map as an attribute.

    #map = #xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> (bl_x floordiv 4096, th_x * 4 + vector_index), "
                                 "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">

Adjacent string literals are concatenated. The attribute only wraps a map of `algebra/`, so equal maps are equal attributes (names of
variables are ignored in comparisons, but kept and printed).
Upstream's spelling `#xla.indexing_map` is read into this same attribute, see `xla.py`.
A map with runtime variables cannot be an attribute: the ops have no operands for them.
Source: seed document, "MLIR Conversion"; docs/reference/1 1.8 "Attributes, types".
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.ir import Data
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.map_text import Spelling
from xla_emitters.errors import XlaEmittersError


def parse_map_text(parser: AttrParser) -> IndexingMap:
    """A map from one string literal or several."""
    start = parser.pos
    text = parse_text(parser, "an indexing map")
    end = parser.pos
    try:
        indexing_map = IndexingMap.parse(text)
    except XlaEmittersError as error:
        parser.raise_error(error.message, start, end)
    if indexing_map.runtime_vars:
        parser.raise_error("an indexing map attribute has no runtime variables", start, end)
    return indexing_map


def parse_text(parser: AttrParser, what: str) -> str:
    """Adjacent string literals concatenated. `what` names the text in the error where there is none."""
    text = parser.parse_str_literal(f" for the text of {what}")
    while (more := parser.parse_optional_str_literal()) is not None:
        text += more
    return text


class IndexingMapAttr(Data[IndexingMap]):
    """An indexing map in IR; `.data` is the map.

    Not final, as xDSL's attributes are by `irdl_attr_definition` (which does nothing else to a `Data`): `xla.py` has one that is
    printed in upstream's spelling.
    """

    name = "xla_gpu.indexing_map"

    SPELLING: ClassVar[Spelling] = "seed"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> IndexingMap:
        with parser.in_angle_brackets():
            return parse_map_text(parser)

    def spelling_for(self, printer: Printer) -> Spelling:
        """Upstream's spelling if this attribute, or all that `printer` prints, has it."""
        is_upstream = "upstream" in (self.SPELLING, getattr(printer, "spelling", "seed"))
        return "upstream" if is_upstream else "seed"

    def text_for(self, printer: Printer) -> str:
        """The map's text, without quotes."""
        return self.data.to_text(self.spelling_for(printer))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.text_for(printer))
