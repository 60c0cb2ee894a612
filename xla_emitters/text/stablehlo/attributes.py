"""Attributes of StableHLO text, as Python values with their places; and `dense<...>` literals as arrays.

    1 : i64   true   2.5 : f32   "text"   [0, 1]   array<i64: 0, 1>      int, bool, float, str, list
    @f   {a = 1}   unit                                                  Symbol, dict, True
    #stablehlo<precision HIGHEST>                                        Word("HIGHEST")
    #stablehlo.gather<offset_dims = [1], index_vector_dim = 1>           dict
    #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>                      ConvolutionLabels
    dense<[[0, 1]]> : tensor<1x2xi64>   dense<"0x00FF">   dense<0xFF800000>   Literal
    loc(#loc1)   anything else of a dialect                              Opaque, its text

Rules read attributes by kind (`Attributes.integers("dims")`); an attribute of another kind is an error at its place.
Floats are read as in MLIR: as f64, rounded to their type; hexadecimal numbers are bit patterns.
Source: MLIR language reference, "Builtin attributes" (https://mlir.llvm.org/docs/Dialects/Builtin/).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeGuard, TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.constant import Dense, dense
from xla_emitters.dialects.hlo.convert import round_once
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array
from xla_emitters.dtypes import Array, DType, Kind
from xla_emitters.errors import ParseError
from xla_emitters.support.cursor import nearest
from xla_emitters.text.hlo.literals import integer_range
from xla_emitters.text.stablehlo.lexer import STAGE, Cursor, Token, TokenKind, unquoted
from xla_emitters.text.stablehlo.types import parse_function_type, parse_type

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
class Literal:
    """The value of `dense<...>`: an array in the NumPy type of its elements."""

    array: Array
    element: DType

    @property
    def dims(self) -> tuple[int, ...]:
        return self.array.shape

    def attribute(self) -> Dense:
        """The attribute of a constant with this value."""
        return dense(self.array, self.element)


@dataclass(frozen=True)
class Elided:
    """`dense<...>` or `dense_resource<__elided__>`, whose data the printer left out."""

    dims: tuple[int, ...]
    element: DType


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

    cursor: Cursor
    op: str
    at: Token
    found: dict[str, Attr] = field(default_factory=dict[str, Attr])
    read: set[str] = field(default_factory=set[str])

    def add(self, name: str, value: Any, start: int) -> None:
        """Records the attribute whose value ends at the last consumed token. raises ParseError if its name is defined twice."""
        end = self.cursor.previous.end
        if name in self.found:
            raise self._error(f"attribute '{name}' is given twice", Attr(value, start, end))
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
        return self._error(f"attribute '{name}' of '{self.op}' is {what}", attr)

    def _error(self, message: str, attr: Attr) -> ParseError:
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


def parse_dictionary(cursor: Cursor, into: Attributes, close: str = "}") -> None:
    """Consumes `{name = value, name}` (or `<{...}>`'s inside) into the attributes of an op."""
    cursor.expect("{", "before attributes")
    for name, value, start in _entries(cursor, close):
        into.add(name, value, start)


def _entries(cursor: Cursor, close: str) -> Iterator[tuple[str, Any, int]]:
    """Consumes `name = value, ...` and the closing punctuation."""
    first = True
    while not cursor.at(close):
        if not first:
            cursor.expect(",", f"or '{close}' after an attribute")
        first = False
        token = cursor.token
        if token.kind not in (TokenKind.WORD, TokenKind.STRING):
            raise cursor.unexpected("the name of an attribute")
        cursor.advance()
        name = unquoted(token.text) if token.kind is TokenKind.STRING else token.text
        if cursor.accept("="):
            start = cursor.token.start
            yield name, parse_attribute(cursor), start
        else:
            yield name, True, token.start
    cursor.advance()


def parse_attribute(cursor: Cursor, *, is_typed: bool = True) -> Any:
    """Consumes the value of an attribute.

    is_typed  whether a number may be followed by its type; not in pretty forms, where a colon begins the types of the op
    """
    token = cursor.token
    match token.kind:
        case TokenKind.INT | TokenKind.FLOAT | TokenKind.HEX:
            return _parse_number(cursor, is_typed=is_typed)
        case TokenKind.STRING:
            cursor.advance()
            if is_typed and cursor.at(":"):
                _skip_scalar_type(cursor)
            return unquoted(token.text)
        case TokenKind.SYMBOL:
            return _parse_symbol(cursor)
        case TokenKind.ATTRIBUTE:
            return _parse_dialect_attribute(cursor)
        case TokenKind.DIALECT_TYPE if token.text not in cursor.aliases:
            return _parse_opaque(cursor)
        case TokenKind.TYPE | TokenKind.DIALECT_TYPE:
            return TypeValue(parse_type(cursor))
        case TokenKind.PUNCTUATION if token.text == "[":
            return _parse_list(cursor)
        case TokenKind.PUNCTUATION if token.text == "{":
            cursor.advance()
            with cursor.nested():
                return {name: value for name, value, _ in _entries(cursor, "}")}
        case TokenKind.PUNCTUATION if token.text == "(":
            return TypeValue(parse_function_type(cursor))
        case TokenKind.WORD:
            return _parse_word(cursor)
        case _:
            raise cursor.unexpected("the value of an attribute")


_SCALAR_TYPE = re.compile(r"(?:[su]?i\d+|index|none|b?f\d\w*|tf32)\Z")


def _skip_scalar_type(cursor: Cursor) -> None:
    """Consumes `: i64` after a number: its type follows from the op."""
    cursor.expect(":", "before the type of a number")
    if _SCALAR_TYPE.match(cursor.token.text):
        cursor.advance()
    else:
        parse_type(cursor)


def _parse_number(cursor: Cursor, *, is_typed: bool = True) -> int | float:
    token = cursor.token
    if token.kind not in (TokenKind.INT, TokenKind.FLOAT, TokenKind.HEX):
        raise cursor.unexpected("a number")
    if token.kind is TokenKind.INT:
        value: int | float = cursor.integer("a number")
    else:
        cursor.advance()
        value = int(token.text, 16) if token.kind is TokenKind.HEX else float(token.text)
    if is_typed and cursor.at(":"):
        is_float = re.match(r"b?f\d", cursor.peek().text) is not None
        _skip_scalar_type(cursor)
        if is_float and token.kind is TokenKind.INT:
            value = float(value)
    return value


def _parse_symbol(cursor: Cursor) -> Symbol:
    text = cursor.advance().text[1:]
    found = Symbol(unquoted(text) if text.startswith('"') else text)
    while cursor.accept("::"):
        raise cursor.error("a symbol of a nested module is not taken", cursor.previous)
    return found


def _parse_list(cursor: Cursor) -> list[Any]:
    cursor.advance()
    with cursor.nested():
        return cursor.items("]", lambda: parse_attribute(cursor), "a value of the list")


def _parse_word(cursor: Cursor) -> Any:
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
            return _parse_resource(cursor)
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


def _parse_opaque(cursor: Cursor) -> Opaque:
    """An attribute or a type that no rule reads: a word, and a group if one follows."""
    word = cursor.advance().text
    return Opaque(word + cursor.group(f"the value of '{word}'") if cursor.at("<", "(") else word)


def _parse_array(cursor: Cursor) -> list[Any]:
    """`array<i64: 0, 1>`, `array<i1: true>`"""
    cursor.advance()
    cursor.expect("<", "after 'array'")
    cursor.expect_kind(TokenKind.WORD, "the type of the array's elements")
    if not cursor.accept(":"):
        cursor.expect(">", "after the numbers")
        return []

    def element() -> Any:
        return cursor.advance().text == "true" if cursor.at("true", "false") else _parse_number(cursor)

    return cursor.items(">", element, "a number")


def _parse_dialect_attribute(cursor: Cursor) -> Any:
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
            found: Any = parse_labels(cursor)
            cursor.expect(">", "after the labels")
            return found
        if mnemonic:
            return parse_struct(cursor)
        cursor.advance()
        if cursor.token.kind is TokenKind.STRING:  # #mhlo<"precision HIGHEST">, until 2022
            word = cursor.advance()
            cursor.expect(">", "after a word")
            return Word(unquoted(word.text).rpartition(" ")[2])
        cursor.expect_kind(TokenKind.WORD, "the kind of the attribute")
        word = cursor.expect_kind(TokenKind.WORD, "a word")
        cursor.expect(">", "after a word")
        return Word(word.text)


def parse_struct(cursor: Cursor) -> Any:
    """Consumes `<name = value, ...>`, or `<WORD>`."""
    cursor.expect("<", "before the parts of an attribute")
    if cursor.token.kind is TokenKind.WORD and cursor.peek().text == ">":
        word = Word(cursor.advance().text)
        cursor.advance()
        return word
    return {name: value for name, value, _ in _entries(cursor, ">")}


def parse_labels(cursor: Cursor) -> ConvolutionLabels:
    """Consumes `[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]`."""
    image = _parse_label_list(cursor)
    cursor.expect("x", "before the kernel's labels")
    kernel = _parse_label_list(cursor)
    cursor.expect("->", "before the result's labels")
    return ConvolutionLabels(image, kernel, _parse_label_list(cursor))


def _parse_label_list(cursor: Cursor) -> tuple[str, ...]:
    def label() -> str:
        if cursor.token.kind not in (TokenKind.WORD, TokenKind.INT):
            raise cursor.unexpected("a label: b, f, i, o or a number")
        return cursor.advance().text

    cursor.expect("[", "before the labels of dimensions")
    return tuple(cursor.items("]", label, "a label"))


# ---------------------------------------------------------------------------------------------------------------- literals

_DENSE = re.compile(r'\s*<((?:"[^"\n]*+"|[^<>"]++)*+)>')
_ITEM = re.compile(r"[\[\],]|\([^()]*\)|[^\[\],\s()]+")


def parse_dense(cursor: Cursor) -> Literal | Elided:
    """Consumes `dense<...> : type`. raises ParseError if the literal does not fit its type."""
    token = cursor.token
    match = _DENSE.match(cursor.source.text, token.end)
    if match is None:
        raise cursor.error("this literal is not closed", token, help="dense<[0, 1]> : tensor<2xi32>")
    start = match.start(1)
    cursor.skip_to(match.end())
    cursor.expect(":", "after a literal, before its type")
    dims, element = _literal_type(cursor)
    return Elided(dims, element) if match[1].strip() == "..." else _literal(cursor, match[1], start, dims, element)


def _literal_type(cursor: Cursor) -> tuple[tuple[int, ...], DType]:
    at_type = cursor.token
    ir_type = parse_type(cursor)
    if not is_array(ir_type) or any(size < 0 for size in dims_of(ir_type)):
        raise cursor.error("a literal's type has known sizes", at_type)
    return dims_of(ir_type), element_of(ir_type)


_ELIDED = "__elided__"


def _parse_resource(cursor: Cursor) -> Literal | Elided:
    """Consumes `dense_resource<name> : type`. raises ParseError if the text has no such resource, or if it does not fit the type"""
    cursor.advance()
    cursor.expect("<", "after 'dense_resource'")
    token = cursor.advance()
    if token.kind not in (TokenKind.WORD, TokenKind.STRING):
        raise cursor.error("expected the name of a resource", token)
    cursor.expect(">", "after the name of a resource")
    cursor.expect(":", "after a literal, before its type")
    dims, element = _literal_type(cursor)
    name = unquoted(token.text) if token.kind is TokenKind.STRING else token.text
    if name == _ELIDED:
        return Elided(dims, element)
    known = _resources(cursor)
    if (blob := known.get(name)) is None:
        raise cursor.error(
            f"no resource '{name}' at the end of this text{nearest(name, known)}",
            token,
            help=f'{{-# dialect_resources: {{ builtin: {{ {name}: "0x..." }} }} #-}}',
        )

    def wrong(message: str) -> ParseError:
        place = cursor.source.place(blob.start, blob.end)
        return ParseError(message, stage=STAGE, place=place, details=(f"'{name}' is {element.name}{list(dims)}",))

    # Four bytes for the alignment of the data, little endian, then the data.
    digits = blob.text[1:-1].removeprefix("0x")
    if len(digits) < 8 or re.fullmatch(r"[0-9A-Fa-f]*", digits) is None:
        raise wrong("a resource is hexadecimal digits: four bytes for its alignment, and its data")
    taken = len(digits) // 2 - 4
    if (wanted := prod(dims) * element.numpy.itemsize) != taken and element.kind is not Kind.PRED:
        raise wrong(f"this resource has {taken} bytes of data, and its type takes {wanted}")
    return Literal(_of_bytes(digits[8:], dims, element, wrong), element)


def _resources(cursor: Cursor) -> dict[str, Token]:
    """The blobs of `{-# dialect_resources: {builtin: {name: "0x..."}} #-}`, by name."""
    inner, found = Cursor(cursor.source), dict[str, Token]()
    start = cursor.source.text.rfind("{-#")
    if start < 0:
        return found
    inner.skip_to(start)
    while inner.token.kind is not TokenKind.END:
        token = inner.advance()
        if (
            token.kind in (TokenKind.WORD, TokenKind.STRING)
            and inner.accept(":")
            and inner.token.kind is TokenKind.STRING
        ):
            found[unquoted(token.text) if token.kind is TokenKind.STRING else token.text] = inner.token
    return found


def _literal(cursor: Cursor, text: str, start: int, dims: tuple[int, ...], element: DType) -> Literal:
    def wrong(message: str, at: int = 0, length: int = 0) -> ParseError:
        place = cursor.source.place(start + at, start + at + (length or max(1, len(text))))
        return ParseError(message, stage=STAGE, place=place, details=(f"it is {element.name}{list(dims)}",))

    read = _scalar_reader(element)
    if text.lstrip().startswith('"'):
        return Literal(_of_bytes(text.strip()[1:-1], dims, element, wrong), element)
    if not text.strip():
        if prod(dims):
            raise wrong("an empty literal of a type with elements")
        return Literal(np.zeros(dims, element.numpy), element)
    shape: list[int] | None = None
    values = list[Any]()
    if "[" in text:
        shape = _read_nested(text, values, read, wrong)
    else:
        values.append(_scalar(text.strip(), read, wrong, len(text) - len(text.lstrip())))
    if shape is not None and tuple(shape) != dims:
        raise wrong(f"this literal has the shape {shape}")
    array = _as_array(values, element)
    whole = np.full(dims, array[0], element.numpy) if shape is None else array.reshape(dims)
    return Literal(whole, element)


def _read_nested(
    text: str, values: list[Any], read: Callable[[str], Any], wrong: Callable[..., ParseError]
) -> list[int]:
    """The shape of nested lists; the scalars are appended to `values`."""
    shape, counts, depth = list[int | None](), list[int](), -1
    leaf_depth: int | None = None
    for match in _ITEM.finditer(text):
        item = match[0]
        if item == "[":
            if depth >= 0:
                counts[depth] += 1
            depth += 1
            if depth == len(shape):
                if leaf_depth is not None:
                    raise wrong("a number and a list side by side", match.start(), 1)
                shape.append(None)
                counts.append(0)
            counts[depth] = 0
        elif item == "]":
            if depth < 0:
                raise wrong("a ']' without '['", match.start(), 1)
            if shape[depth] is None:
                shape[depth] = counts[depth]
            elif shape[depth] != counts[depth]:
                raise wrong(f"a list of {counts[depth]} beside one of {shape[depth]}", match.start(), 1)
            depth -= 1
        elif item != ",":
            if depth < 0 or depth != len(shape) - 1:
                raise wrong("a number and a list side by side", match.start(), len(item))
            leaf_depth = depth
            counts[depth] += 1
            values.append(_scalar(item, read, wrong, match.start()))
    if depth >= 0:
        raise wrong("a list that is not closed")
    return [size or 0 for size in shape]


def _scalar(item: str, read: Callable[[str], Any], wrong: Callable[..., ParseError], at: int) -> Any:
    try:
        return read(item)
    except (ValueError, OverflowError):
        raise wrong(f"'{item}' is not a number of this type", at, len(item)) from None


def _scalar_reader(element: DType) -> Callable[[str], Any]:
    """A function that reads one number: an int or a float, or a `_Bits` for a bit pattern."""
    match element.kind:
        case Kind.PRED:
            return _truth
        case Kind.FLOAT:
            return lambda item: _Bits(int(item, 16)) if item.startswith("0x") else _decimal(item)
        case Kind.COMPLEX:
            part = _scalar_reader(element.part)

            def pair(item: str) -> Any:
                if not item.startswith("("):
                    raise ValueError(item)
                real, imag = item[1:-1].split(",")
                return part(real.strip()), part(imag.strip())

            return pair
        case _:
            allowed, bits = integer_range(element), element.significant_bits

            def integer(item: str) -> int:
                value = int(item, 0) if item.startswith("0x") else int(item)
                if value in allowed:
                    return value
                if item.startswith("0x") and 0 <= value < 1 << bits:
                    return value - (1 << bits)
                raise ValueError(item)

            return integer


_TRUTHS = {"true": True, "false": False, "1": True, "-1": True, "0": False}


def _truth(item: str) -> bool:
    if item not in _TRUTHS:
        raise ValueError(item)
    return _TRUTHS[item]


def _decimal(item: str) -> float:
    if not re.fullmatch(r"-?\d+(\.\d*)?([eE][+-]?\d+)?", item):
        raise ValueError(item)
    return float(item)


class _Bits(int):
    """The bit pattern of a float."""


def _as_array(values: list[Any], element: DType) -> Array:
    if element.kind is Kind.COMPLEX:
        parts = [_as_array([value[side] for value in values], element.part) for side in range(2)]
        found = np.empty(len(values), element.numpy)
        found.real, found.imag = parts
        return found
    if element.kind is Kind.FLOAT:
        plain = np.asarray([0.0 if isinstance(value, _Bits) else value for value in values], np.float64)
        with np.errstate(all="ignore"):
            found = round_once(plain, element.numpy)
        for i, value in enumerate(values):
            if isinstance(value, _Bits):
                if value >= 1 << element.numpy.itemsize * 8:
                    raise ParseError(f"the pattern {value:#x} has more bits than {element.name}", stage=STAGE)
                found[i] = np.asarray(value, f"u{element.numpy.itemsize}").view(element.numpy)
        return found
    if element.kind is Kind.PRED:
        return np.asarray(values, np.bool_)
    return np.asarray(values, np.int64 if element.kind is Kind.SIGNED else np.uint64).astype(element.numpy)


def _of_bytes(text: str, dims: tuple[int, ...], element: DType, wrong: Callable[..., ParseError]) -> Array:
    """`"0x..."`: the elements' bytes, little endian; a splat if there are only the bytes of one element.

    Booleans take one byte each; older printers wrote bits, the lowest first. One byte is a splat.
    """
    try:
        data = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise wrong("a literal in a string is hexadecimal digits, an even number of them") from None
    count = prod(dims)
    if element.kind is Kind.PRED:
        raw = np.frombuffer(data, np.uint8)
        if len(data) == 1:
            return np.full(dims, raw[0] != 0)
        if len(data) == count:
            return (raw != 0).reshape(dims)
        if len(data) != -(-count // 8):
            raise wrong(f"this literal has {len(data)} bytes, and its type takes {count}")
        return np.unpackbits(raw, bitorder="little")[:count].astype(np.bool_).reshape(dims)
    size = element.numpy.itemsize
    if len(data) not in (size, size * count):
        raise wrong(f"this literal has {len(data)} bytes, and its type takes {size * count}")
    if element.is_integer and element.bits < 8:
        raw = np.frombuffer(data, np.int8 if element.kind is Kind.SIGNED else np.uint8).astype(element.numpy)
    else:
        raw = np.frombuffer(data, element.numpy)
    return np.full(dims, raw[0]) if raw.size == 1 != count else raw.reshape(dims)
