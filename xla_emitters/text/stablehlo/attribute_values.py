"""Attributes of StableHLO text, as Python values with their places.

    1 : i64   true   2.5 : f32   "text"   [0, 1]   array<i64: 0, 1>      int, bool, float, str, list
    @f   {a = 1}   unit                                                  Symbol, dict, True
    #stablehlo<precision HIGHEST>                                        Word("HIGHEST")
    #stablehlo.gather<offset_dims = [1], index_vector_dim = 1>           dict
    #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>                      ConvolutionLabels
    dense<[[0, 1]]> : tensor<1x2xi64>   dense<"0x00FF">   dense<0xFF800000>   Literal
    loc(#loc1)   anything else of a dialect                              Opaque, its text

Rules read attributes by kind (`Attributes.integers("dims")`); an attribute of another kind is an error at its place.
Source: MLIR language reference, "Builtin attributes" (https://mlir.llvm.org/docs/Dialects/Builtin/).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard, TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute

from xla_emitters.dtypes import Array
from xla_emitters.errors import ParseError
from xla_emitters.support.cursor import nearest
from xla_emitters.text.stablehlo.stablehlo_lexer import STAGE, StableHloCursor, StableHloTokenKind, Token, unquoted
from xla_emitters.text.stablehlo.stablehlo_literals import Literal, parse_dense, parse_resource
from xla_emitters.text.stablehlo.stablehlo_types import parse_function_type, parse_type

ValueT = TypeVar("ValueT")


class Word(str):
    """A bare word: `HIGHEST`, of `#stablehlo<precision HIGHEST>`."""

    __slots__ = ()


@dataclass(frozen=True)
class Symbol:
    """`@name`"""

    name: str


@dataclass(frozen=True)
class Opaque:
    """Text that is kept as written."""

    text: str


@dataclass(frozen=True)
class TypeValue:
    """A type in the place of an attribute: one, or the parameters and results of a function."""

    types: Attribute | FunctionType


@dataclass(frozen=True)
class ConvolutionLabels:
    """`[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]`: the labels of the image's, the kernel's and the result's dimensions."""

    image: tuple[str, ...]
    kernel: tuple[str, ...]
    result: tuple[str, ...]

    def hlo(self) -> str:
        """As HLO's `dim_labels`: `bf01_oi01->bf01`."""
        return f"{''.join(self.image)}_{''.join(self.kernel)}->{''.join(self.result)}"


@dataclass(frozen=True)
class Attr:
    """A value and its place: text[start:end]."""

    value: Any
    start: int
    end: int


@dataclass
class Attributes:
    """The attributes of an op, read by name and kind. `unread` are those that no rule has read."""

    cursor: StableHloCursor
    op: str
    at: Token
    found: dict[str, Attr] = field(default_factory=dict[str, Attr])
    read: set[str] = field(default_factory=set[str])

    def add(self, name: str, value: Any, start: int) -> None:
        """Records the attribute whose value ends at the last consumed token. raises ParseError if its name is defined twice."""
        end = self.cursor.previous.end
        if name in self.found:
            raise self.error(f"attribute '{name}' is given twice", Attr(value, start, end))
        self.found[name] = Attr(value, start, end)

    def __contains__(self, name: str) -> bool:
        return name in self.found

    def unread(self) -> Iterator[tuple[str, Attr]]:
        """The attributes that have not been read."""
        return ((name, attr) for name, attr in self.found.items() if name not in self.read)

    def text(self, attr: Attr) -> str:
        """The attribute as written; an alias as its definition is."""
        text = self.cursor.source.text[attr.start : attr.end]
        alias = self.cursor.aliases.get(text)
        return text if alias is None else alias.text

    def get(self, name: str, kind: type[ValueT], what: str, default: ValueT | None = None) -> ValueT:
        """The value of attribute `name`, of that kind; `default` if the text omits it. raises ParseError."""
        self.read.add(name)
        if (attr := self.found.get(name)) is None:
            if default is not None:
                return default
            suggestion = nearest(name, [key for key in self.found if key not in self.read])
            raise self.cursor.error(f"'{self.op}' needs the attribute '{name}'{suggestion}", self.at)
        if not isinstance(attr.value, kind) or (kind is int and isinstance(attr.value, bool)):
            raise self.wrong(name, what)
        return attr.value

    def wrong(self, name: str, what: str) -> ParseError:
        """The error for an attribute whose value is not `what`."""
        attr = self.found[name]
        return self.error(f"attribute '{name}' of '{self.op}' is {what}", attr)

    def error(self, message: str, attr: Attr) -> ParseError:
        """The error at an attribute."""
        return ParseError(message, stage=STAGE, place=self.cursor.source.place(attr.start, attr.end))

    def integer(self, name: str, default: int | None = None) -> int:
        return self.get(name, int, "an integer", default)

    def boolean(self, name: str, default: bool | None = None) -> bool:
        return self.get(name, bool, "true or false", default)

    def string(self, name: str, default: str | None = None) -> str:
        return self.get(name, str, "a string", default)

    def symbol(self, name: str) -> str:
        return self.get(name, Symbol, "a symbol such as @f").name

    def number(self, name: str) -> float:
        self.read.add(name)
        attr = self.found.get(name)
        if attr is not None and isinstance(attr.value, int | float) and not isinstance(attr.value, bool):
            return float(attr.value)
        return self.get(name, float, "a number")

    def mapping(self, name: str) -> dict[str, Any]:
        return cast("dict[str, Any]", self.get(name, dict, "a list of named values such as {a = 1}"))

    def values(self, name: str, what: str, default: list[Any] | None = None) -> list[Any]:
        """A list of values of any kind."""
        return self.get(name, list, what, default)

    def integer_in(self, name: str, part: str, default: int) -> int:
        """A number in a mapping."""
        value: Any = self.mapping(name).get(part, default)
        if not isinstance(value, int):
            raise self.wrong(name, f"values by name, of which '{part}' is an integer")
        return value

    def integers_in(self, name: str, part: str) -> list[int]:
        """A list of numbers in a mapping; empty if omitted."""
        value: Any = self.mapping(name).get(part, [])
        if isinstance(value, Literal) and value.array.ndim == 1:
            value = value.array.tolist()
        if not is_integers(value):
            raise self.wrong(name, f"values by name, of which '{part}' is a list of integers")
        return value

    def array(self, name: str) -> Array:
        """A literal, or a list of numbers."""
        self.read.add(name)
        attr = self.found.get(name)
        if attr is not None and isinstance(attr.value, list):
            return np.asarray(self.integers(name), np.int64)
        return self.get(name, Literal, "a literal such as dense<0> : tensor<2xi64>").array

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """A list of integers, written as `[0, 1]`, `array<i64: 0, 1>` or `dense<[0, 1]> : tensor<2xi64>`."""
        self.read.add(name)
        attr = self.found.get(name)
        if attr is None and default is not None:
            return list(default)
        if attr is not None and isinstance(attr.value, Literal) and attr.value.array.ndim == 1:
            return [int(number) for number in attr.value.array.tolist()]
        value = self.values(name, "a list of integers")
        if not all(isinstance(number, int) for number in value):
            raise self.wrong(name, "a list of integers")
        return [int(number) for number in value]

    def words(self, name: str) -> list[str]:
        """A list of words such as `[#stablehlo<precision HIGHEST>, ...]`, or `[HIGHEST, DEFAULT]`; empty if omitted."""
        value = self.values(name, "a list of words", [])
        if not all(isinstance(word, str) for word in value):
            raise self.wrong(name, "a list of words")
        return [str(word) for word in value]


def symbols_in(value: Any) -> list[Symbol]:
    """The symbols in an attribute's value: the value itself, or elements of a list."""
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [part for part in values if isinstance(part, Symbol)]


def is_integers(value: Any) -> TypeGuard[list[int]]:
    """Whether the value of an attribute is a list of integers."""
    return isinstance(value, list) and all(isinstance(number, int) for number in cast("list[Any]", value))


# ------------------------------------------------------------------------------------------------------------------ parsing


def optional_dictionary(cursor: StableHloCursor, into: Attributes) -> None:
    """Consumes `{name = value, name}`, if that follows, into the attributes of an op."""
    if cursor.at("{"):
        parse_dictionary(cursor, into)


def parse_dictionary(cursor: StableHloCursor, into: Attributes) -> None:
    """Consumes `{name = value, name}` into the attributes of an op."""
    cursor.expect("{", "before attributes")
    for name, value, start in _entries(cursor, "}"):
        into.add(name, value, start)


def _entries(cursor: StableHloCursor, close: str) -> Iterator[tuple[str, Any, int]]:
    """Consumes `name = value, ...` and the closing punctuation."""
    first = True
    while not cursor.at(close):
        if not first:
            cursor.expect(",", f"or '{close}' after an attribute")
        first = False
        token = cursor.token
        if token.kind not in (StableHloTokenKind.WORD, StableHloTokenKind.STRING):
            raise cursor.unexpected("the name of an attribute")
        cursor.advance()
        if cursor.accept("="):
            start = cursor.token.start
            yield unquoted(token.text), parse_attribute(cursor), start
        else:
            yield unquoted(token.text), True, token.start
    cursor.advance()


def parse_attribute(cursor: StableHloCursor, *, is_typed: bool = True) -> Any:
    """Consumes the value of an attribute.

    is_typed  whether a number may be followed by its type; not in pretty forms, where a colon begins the types of the op
    """
    token = cursor.token
    match token.kind:
        case StableHloTokenKind.INT | StableHloTokenKind.FLOAT | StableHloTokenKind.HEX:
            return _parse_number(cursor, is_typed=is_typed)
        case StableHloTokenKind.STRING:
            cursor.advance()
            if is_typed and cursor.at(":"):
                _skip_scalar_type(cursor)
            return unquoted(token.text)
        case StableHloTokenKind.SYMBOL:
            return _parse_symbol(cursor)
        case StableHloTokenKind.ATTRIBUTE:
            return _parse_dialect_attribute(cursor)
        case StableHloTokenKind.DIALECT_TYPE if token.text not in cursor.aliases:
            return _parse_opaque(cursor)
        case StableHloTokenKind.TYPE | StableHloTokenKind.DIALECT_TYPE:
            return TypeValue(parse_type(cursor))
        case StableHloTokenKind.PUNCTUATION if token.text == "[":
            return _parse_list(cursor)
        case StableHloTokenKind.PUNCTUATION if token.text == "{":
            cursor.advance()
            with cursor.nested():
                return {name: value for name, value, _ in _entries(cursor, "}")}
        case StableHloTokenKind.PUNCTUATION if token.text == "(":
            return TypeValue(parse_function_type(cursor))
        case StableHloTokenKind.WORD:
            return _parse_word(cursor)
        case _:
            raise cursor.unexpected("the value of an attribute")


_SCALAR_TYPE = re.compile(r"(?:[su]?i\d+|index|none|b?f\d\w*|tf32)\Z")


def _skip_scalar_type(cursor: StableHloCursor) -> None:
    """Consumes `: i64` after a number: its type follows from the op."""
    cursor.expect(":", "before the type of a number")
    if _SCALAR_TYPE.match(cursor.token.text):
        cursor.advance()
    else:
        parse_type(cursor)


def _parse_number(cursor: StableHloCursor, *, is_typed: bool = True) -> int | float:
    token = cursor.token
    if token.kind not in (StableHloTokenKind.INT, StableHloTokenKind.FLOAT, StableHloTokenKind.HEX):
        raise cursor.unexpected("a number")
    if token.kind is StableHloTokenKind.INT:
        value: int | float = cursor.integer("a number")
    else:
        cursor.advance()
        value = int(token.text, 16) if token.kind is StableHloTokenKind.HEX else float(token.text)
    if is_typed and cursor.at(":"):
        is_float = re.match(r"b?f\d", cursor.peek().text) is not None
        _skip_scalar_type(cursor)
        if is_float and token.kind is StableHloTokenKind.INT:
            value = float(value)
    return value


def _parse_symbol(cursor: StableHloCursor) -> Symbol:
    found = Symbol(unquoted(cursor.advance().text[1:]))
    if cursor.accept("::"):
        raise cursor.error("a symbol of a nested module is not taken", cursor.previous)
    return found


def _parse_list(cursor: StableHloCursor) -> list[Any]:
    cursor.advance()
    with cursor.nested():
        return cursor.items("]", lambda: parse_attribute(cursor), "a value of the list")


def _parse_word(cursor: StableHloCursor) -> Any:
    token = cursor.token
    match token.text:
        case "true" | "false":
            cursor.advance()
            return token.text == "true"
        case "unit":
            cursor.advance()
            return True
        case "dense":
            return parse_dense(cursor)
        case "dense_resource":
            return parse_resource(cursor)
        case "array":
            return _parse_array(cursor)
        case "distinct":  # distinct[0]<...>, an attribute of LLVM's metadata
            start = cursor.advance().start
            cursor.group("the number of the attribute")
            cursor.group("the attribute") if cursor.at("<") else parse_attribute(cursor)
            return Opaque(cursor.source.text[start : cursor.previous.end])
        case "loc" | "sparse" | "affine_map" | "affine_set" | "strided" | "opaque" | "memref" | "vector":
            return _parse_opaque(cursor)
        case "tuple":
            return TypeValue(parse_type(cursor))
        case _:
            cursor.advance()
            return Word(token.text)


def _parse_opaque(cursor: StableHloCursor) -> Opaque:
    """An attribute or a type that no rule reads: a word, and a group if one follows."""
    word = cursor.advance().text
    return Opaque(word + cursor.group(f"the value of '{word}'") if cursor.at("<", "(") else word)


def _parse_array(cursor: StableHloCursor) -> list[Any]:
    """`array<i64: 0, 1>`, `array<i1: true>`"""
    cursor.advance()
    cursor.expect("<", "after 'array'")
    cursor.expect_kind(StableHloTokenKind.WORD, "the type of the array's elements")
    if not cursor.accept(":"):
        cursor.expect(">", "after the numbers")
        return []

    def element() -> Any:
        return cursor.advance().text == "true" if cursor.at("true", "false") else _parse_number(cursor)

    return cursor.items(">", element, "a number")


def _parse_dialect_attribute(cursor: StableHloCursor) -> Any:
    """`#stablehlo<precision HIGHEST>`, `#stablehlo.gather<...>`; for other dialects and for aliases, their text."""
    token = cursor.advance()
    dialect, _, mnemonic = token.text[1:].partition(".")
    if not cursor.at("<"):
        alias = cursor.aliases.get(token.text)
        return Opaque(token.text) if alias is None else alias.value
    if dialect not in ("stablehlo", "mhlo", "chlo"):
        return Opaque(token.text + cursor.group("the value of an attribute"))
    with cursor.nested():
        if mnemonic == "conv":
            cursor.advance()
            if cursor.accept("raw"):
                return {name: value for name, value, _ in _entries(cursor, ">")}
            found: Any = parse_labels(cursor)
            cursor.expect(">", "after the labels")
            return found
        if mnemonic:
            return parse_struct(cursor)
        cursor.advance()
        if cursor.token.kind is StableHloTokenKind.STRING:  # #mhlo<"precision HIGHEST">, until 2022
            word = cursor.advance()
            cursor.expect(">", "after a word")
            return Word(unquoted(word.text).rpartition(" ")[2])
        cursor.expect_kind(StableHloTokenKind.WORD, "the kind of the attribute")
        word = cursor.expect_kind(StableHloTokenKind.WORD, "a word")
        cursor.expect(">", "after a word")
        return Word(word.text)


def parse_struct(cursor: StableHloCursor) -> Any:
    """Consumes `<name = value, ...>`, or `<WORD>`."""
    cursor.expect("<", "before the parts of an attribute")
    if cursor.token.kind is StableHloTokenKind.WORD and cursor.peek().text == ">":
        word = Word(cursor.advance().text)
        cursor.advance()
        return word
    return {name: value for name, value, _ in _entries(cursor, ">")}


def parse_labels(cursor: StableHloCursor) -> ConvolutionLabels:
    """Consumes `[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]`."""
    image = _parse_label_list(cursor)
    cursor.expect("x", "before the kernel's labels")
    kernel = _parse_label_list(cursor)
    cursor.expect("->", "before the result's labels")
    return ConvolutionLabels(image, kernel, _parse_label_list(cursor))


def _parse_label_list(cursor: StableHloCursor) -> tuple[str, ...]:
    def label() -> str:
        if cursor.token.kind not in (StableHloTokenKind.WORD, StableHloTokenKind.INT):
            raise cursor.unexpected("a label: b, f, i, o or a number")
        return cursor.advance().text

    cursor.expect("[", "before the labels of dimensions")
    return tuple(cursor.items("]", label, "a label"))
