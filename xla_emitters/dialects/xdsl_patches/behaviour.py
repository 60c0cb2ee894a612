"""Corrected behaviour of xDSL's parser: the reading of text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, get_origin

from xdsl import irdl
from xdsl.dialects.builtin import (
    AnyFloat,
    ComplexType,
)
from xdsl.ir import Attribute, Block
from xdsl.irdl import AttrConstraint
from xdsl.parser import AttrParser
from xdsl.utils.hints import isa
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRLexer

from xla_emitters.dialects.distinct import DistinctAttr
from xla_emitters.dialects.xdsl_patches.patch import Member

# ---- text ----------------------------------------------------------------------------------------------------------------------------

# Private to xDSL's parser, which has no hook here: the class of one number in `dense<[...]>`, before the type is known.
_Number: Any = getattr(AttrParser, "_TensorLiteralElement")  # noqa: B009


def _reading_bits(own: Callable[[Any, AttrParser, Attribute], Any]) -> Callable[[Any, AttrParser, Attribute], Any]:
    """The number as one of a type. A hexadecimal one stands for a float's bits, as in `dense<0xFF800000> : vector<4xf32>` (-inf)."""

    def to_type(self: Any, parser: AttrParser, target: Attribute) -> Any:
        words = self.span.text.strip("()").split(",")
        if not any(word.strip().lower().startswith("0x") for word in words):
            return own(self, parser, target)
        if isinstance(target, AnyFloat):
            return _float_of(words[0].strip(), target)
        if isa(target, ComplexType) and isinstance(part := target.element_type, AnyFloat):
            return tuple(_float_of(word.strip(), part) for word in words)
        return own(self, parser, target)

    return to_type


def _float_of(word: str, target: AnyFloat) -> float:
    if not word.lower().startswith("0x"):
        return float(word)
    return target.unpack(int(word, 16).to_bytes(target.compile_time_size, "little"), 1)[0]


def _parse_optional_complex(self: Any) -> tuple[tuple[float, float], Span[str]] | None:
    """`(real, imaginary)`, if it comes next; one part may be hexadecimal and the other not, which xDSL refuses."""
    start: int = self.pos
    if self.parse_optional_punctuation("(") is None:
        return None
    real, _ = self._parse_bool_int_or_float()
    self.parse_punctuation(",")
    imaginary, last = self._parse_bool_int_or_float()
    self.parse_punctuation(")")
    return (real, imaginary), Span(start, last.end, self.lexer.input)


def _reading_distinct(own: Callable[[AttrParser], Attribute | None]) -> Callable[[AttrParser], Attribute | None]:
    """`distinct[0]<>`, or an attribute that xDSL knows."""

    def parse_optional_builtin_attribute(self: AttrParser) -> Attribute | None:
        return DistinctAttr.parse_body(self) if self.parse_optional_keyword("distinct") is not None else own(self)

    return parse_optional_builtin_attribute


def _without_numbers(own: Callable[[str], bool]) -> Callable[[str], bool]:
    """Whether a block of that name is printed by its place: `bb1`, and `1`, which is no name for xDSL."""

    def is_default_block_name(name: str) -> bool:
        return name.isdigit() or own(name)

    return staticmethod(is_default_block_name)


# A string literal as in xDSL's lexer, except for the possessive `++` and `*+`: without them the time to notice a missing closing quote
# doubles with every character.
STRING_LITERAL = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')


def _remembering(own: Callable[..., AttrConstraint[Any]]) -> Callable[..., AttrConstraint[Any]]:
    """xDSL's, remembering the constraint of each generic class."""
    remembered = lru_cache(maxsize=None)(own)

    def irdl_to_attr_constraint(hint: Any, *, allow_type_var: bool = False) -> AttrConstraint[Any]:
        if get_origin(hint) is None or allow_type_var:
            return own(hint, allow_type_var=allow_type_var)
        return remembered(hint)

    return irdl_to_attr_constraint


CONSTANTS: tuple[Member, ...] = (
    Member(
        MLIRLexer,
        "_unescaped_characters_regex",
        "takes 2^n steps for a string without its end",
        lambda _: STRING_LITERAL,
    ),
)

FUNCTIONS: tuple[Member, ...] = (
    Member(Block, "is_default_block_name", "reads no ^0, though it reads a branch to it", _without_numbers),
    Member(
        _Number,
        "to_type",
        "reads dense<0xFF800000> as 4286578688.0, though it writes infinities and NaN so itself",
        _reading_bits,
    ),
    Member(
        AttrParser,
        "_parse_optional_complex",
        "refuses a number with one hexadecimal part",
        lambda _: _parse_optional_complex,
    ),
    Member(AttrParser, "_parse_optional_builtin_parametrized_attr", "knows no distinct attribute", _reading_distinct),
    Member(irdl, "irdl_to_attr_constraint", "makes isa's constraint of a generic class anew each time", _remembering),
)
