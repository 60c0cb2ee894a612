"""`distinct[0]<>`: a builtin attribute of MLIR's that xDSL does not have.

Source: MLIR 22, builtin attributes; LLVM's metadata uses it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import Attribute, BuiltinAttribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer


@irdl_attr_definition
class DistinctAttr(ParametrizedAttribute, BuiltinAttribute):
    """`distinct[1]<"a">`: an attribute that equals no other, not even one of the same content. Within a text the number identifies it.

    `parser.py` calls this for the word `distinct`.
    """

    name = "builtin.distinct"

    number: IntAttr
    content: ArrayAttr[Attribute]

    @classmethod
    def parse_body(cls, parser: AttrParser) -> DistinctAttr:
        """Parses the part after the word: `[1]<"a">`; the content may be missing."""
        with parser.in_square_brackets():
            number = parser.parse_integer(allow_boolean=False, allow_negative=False)
        with parser.in_angle_brackets():
            content = parser.parse_optional_attribute()
        return cls(IntAttr(number), ArrayAttr([] if content is None else [content]))

    def print_builtin(self, printer: Printer) -> None:
        printer.print_string(f"distinct[{self.number.data}]<")
        printer.print_list(self.content, printer.print_attribute)
        printer.print_string(">")
