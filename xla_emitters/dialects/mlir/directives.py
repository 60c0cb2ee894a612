"""Parts that the declarative formats of several dialects share: words for numbers, and types that follow from others.

llvm.icmp "slt" %a, %b : vector<4xi32>      "slt" is the predicate 2, and the result is vector<4xi1>
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar

from xdsl.dialects.builtin import IntegerAttr, TensorType, VectorType, i1
from xdsl.ir import Attribute
from xdsl.irdl import AttrConstraint, IRDLOperation, RangeConstraint
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from xla_emitters.dialects.attributes import integer
from xla_emitters.support.late_dataclass import dataclass


@irdl_custom_directive
class NumberedWord(CustomDirective):
    """A word for the number that an attribute holds; `numbered_word` makes subclasses."""

    number: AttributeVariable

    WORDS: ClassVar[Mapping[int, str]] = {}
    UNKNOWN: ClassVar[str] = ""
    IS_QUOTED: ClassVar[bool] = False
    WIDTH: ClassVar[int] = 64

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if not self.UNKNOWN:
            if (word := parser.parse_optional_keyword_in(self.WORDS.values())) is not None:
                self._set(state, word)
            return
        start = parser.pos
        word = parser.parse_str_literal() if self.IS_QUOTED else parser.parse_identifier()
        if word in self.WORDS.values():
            return self._set(state, word)
        end = start + len(word) + 2 * self.IS_QUOTED
        parser.raise_error(self.UNKNOWN.format(word=word, words=", ".join(self.WORDS.values())), start, end)

    def _set(self, state: ParsingState, word: str) -> None:
        number = next(number for number, known in self.WORDS.items() if known == word)
        self.number.set(state, integer(number, self.WIDTH))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        attribute = self.number.get(op)
        if attribute is None:
            return
        assert isinstance(attribute, IntegerAttr)
        word = self.WORDS[attribute.value.data]
        state.print_whitespace(printer)
        printer.print_string(f'"{word}"' if self.IS_QUOTED else word)

    def is_present(self, op: IRDLOperation) -> bool:
        return self.number.is_present(op)

    def is_anchorable(self) -> bool:
        return True


def numbered_word(
    name: str, words: Mapping[int, str], unknown: str = "", *, is_quoted: bool = False, width: int = 64
) -> type[NumberedWord]:
    """The directive `custom<name>($attribute)`.

    unknown    the message for a word that is none of `words`, with {word} and {words} in it; empty: the word may be left out
    is_quoted  whether the text has the word in quotes
    width      bits of the number
    """
    members = {"WORDS": words, "UNKNOWN": unknown, "IS_QUOTED": is_quoted, "WIDTH": width}
    return type(name, (NumberedWord,), members)


@dataclass(frozen=True)
class Derived(AttrConstraint[Attribute]):
    """The constraint of a type that a format leaves out.

    variable  the constraint variable from which the type follows
    rule      makes the type of the variable's
    allowed   what the type of an op in generic form may be; whether it follows is a question for the op's verifier
    """

    variable: str
    rule: Callable[[Any], Attribute]
    allowed: AttrConstraint[Attribute]

    def verify(self, attr: Attribute, constraint_context: Any) -> None:
        self.allowed.verify(attr, constraint_context)

    def can_infer(self, var_constraint_names: AbstractSet[str]) -> bool:
        return self.variable in var_constraint_names

    def infer(self, context: Any) -> Attribute:
        return self.rule(context.get_variable(self.variable))

    def mapping_type_vars(self, type_var_mapping: Any) -> Derived:
        return self


@dataclass(frozen=True)
class DerivedRange(RangeConstraint[Attribute]):
    """As `Derived`, of a list of types, whose length follows too. rule: makes the types of the variable's; any are valid in generic form"""

    variable: str
    rule: Callable[[Any], Sequence[Attribute]]

    def verify(self, attrs: Sequence[Attribute], constraint_context: Any) -> None: ...

    def verify_length(self, length: int, constraint_context: Any) -> None: ...

    def can_infer(self, var_constraint_names: AbstractSet[str], *, length_known: bool) -> bool:
        return self.variable in var_constraint_names

    def infer(self, context: Any, *, length: int | None) -> Sequence[Attribute]:
        found = context.get_variable(self.variable)
        return self.rule(context.get_range_variable(self.variable) if found is None else found)

    def mapping_type_vars(self, type_var_mapping: Any) -> DerivedRange:
        return self


def truth_type(compared: Attribute) -> Attribute:
    """The type of a comparison's result: i1, or a vector or tensor of i1 as large as what is compared."""
    if isinstance(compared, VectorType):
        return VectorType(i1, compared.shape, compared.scalable_dims)
    if isinstance(compared, TensorType):
        return TensorType(i1, compared.shape, compared.encoding)
    return i1
