"""Shapes in HLO text: `f32[8,64]{1,0}`, `(bf16[2], token[])`, `f32[<=8,?]`, `s4[8]{0:E(4)}`, to types of the `hlo` dialect.

    shape  := type '[' dims? ']' layout?  |  '(' (shape (',' shape)*)? ')'  |  'b' '(' shape ')'
    dim    := int | '<=' int | '?'
    layout := '{' ints? (':' anything of `_SUFFIX`)? '}'

A `{` begins a layout only if a number or a colon follows it; otherwise it opens a computation. The part of a layout after the colon is
stored as text. Types are shared: shapes with the same text in a module are one object.
Source: docs/reference/1 6.3, 6.4.
"""

from __future__ import annotations

import re
from math import prod

from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.types import UNBOUNDED, BufferType, OpaqueType, TokenType, array_type, tuple_type
from xla_emitters.dtypes import DTYPES, DType
from xla_emitters.support.cursor import nearest
from xla_emitters.text.hlo.hlo_lexer import HloCursor, HloToken, HloTokenKind

MAX_RANK = 64
"""NumPy's limit of the rank."""

# Dimension levels, tiles, padding, types of indices and pointers, element size, splits, memory space, physical shape, prefix.
_SUFFIX = re.compile(
    r"(D\([^()]*\))?(T(\([\d,*\-]*\))+)?(L\(\d+\))?(#\(\w+\))?(\*\(\w+\))?(E\((?P<bits>\d+)\))?(SC(\([\d:,]*\))+)?(S\(\d+\))?"
    r"(P\(.*\))?(M\(\d+\))?"
)
ELEMENT_TYPES: dict[str, DType] = {row.name: row for row in DTYPES}
_NAMES_ELSEWHERE = {
    "bool": "pred",
    "i1": "pred",
    "half": "f16",
    "float": "f32",
    "double": "f64",
    "int": "s32",
    "long": "s64",
}
_NAME_ELSEWHERE = re.compile(r"((?P<bf>bfloat)|(?P<f>float|fp)|(?P<u>uint|ui)|(?P<s>int|si|i))(?P<bits>\d+)")
_WITHOUT_ELEMENTS: dict[str, Attribute] = {"token": TokenType(), "opaque": OpaqueType()}


def suggested_type(name: str) -> str:
    """`; did you mean 's32'?` for the name of an element type elsewhere (i32, int32, int) or a similar one; "" if there is none."""
    name = name.lower()
    elsewhere = _NAMES_ELSEWHERE.get(name, "")
    if not elsewhere and (match := _NAME_ELSEWHERE.fullmatch(name)):
        kind = next(kind for kind in ("bf", "f", "u", "s") if match[kind])
        elsewhere = kind + match["bits"]
    return nearest(elsewhere if elsewhere in ELEMENT_TYPES else name, ELEMENT_TYPES)


class ShapeReader:
    """Reads the shapes of one text."""

    def __init__(self, cursor: HloCursor):
        self.cursor = cursor
        self._by_text: dict[str, Attribute] = {}

    def at_shape(self) -> bool:
        """Whether a shape begins here; its bracket decides."""
        token = self.cursor.token
        if token.kind is not HloTokenKind.NAME:
            return token.text == "("
        if token.text in ELEMENT_TYPES or token.text in _WITHOUT_ELEMENTS:
            return self.cursor.peek().text == "["
        return token.text == "b" and self.cursor.peek().text == "("

    def shape(self) -> Attribute:
        """Consumes a shape and returns its type."""
        cursor = self.cursor
        token = cursor.token
        if token.text == "(":
            return self._tuple()
        end = self._end_of_array(token)
        if end and (known := self._by_text.get(cursor.source.text[token.start : end])) is not None:
            cursor.skip_to(end)
            return known
        shape = self._array_or_special(token)
        self._by_text[cursor.source.text[token.start : cursor.previous.end]] = shape
        return shape

    def _end_of_array(self, token: HloToken) -> int:
        """The end of the shape that begins here, such as `f32[8,64]{1,0}`, if it is written without spaces; 0 if that is not certain."""
        text = self.cursor.source.text
        end = text.find("]", token.end, token.end + 200) + 1
        if not end or text[end : end + 1] == "{":
            return end and text.find("}", end, end + 200) + 1
        return 0 if text[end : end + 100].lstrip()[:1] == "{" else end

    def _array_or_special(self, token: HloToken) -> Attribute:
        cursor = self.cursor
        cursor.name("a shape such as f32[8,64]{1,0}")
        if token.text == "b" and cursor.token.text == "(":
            return self._buffer()
        if token.text not in ELEMENT_TYPES and token.text not in _WITHOUT_ELEMENTS:
            raise cursor.error(
                f"no element type '{token.text}'{suggested_type(token.text)}",
                token,
                help=f"one of: {', '.join((*ELEMENT_TYPES, *_WITHOUT_ELEMENTS))}",
            )
        dims, bounds = self._dims()
        if (special := _WITHOUT_ELEMENTS.get(token.text)) is not None:
            if dims:
                raise cursor.error(f"a {token.text} has no dimensions", token, help=f"write {token.text}[]")
            return special
        self._check_size(token, dims, bounds)
        order, suffix = self._layout(token, dims)
        return array_type(ELEMENT_TYPES[token.text].ir_type, dims, order, suffix, bounds)

    def _tuple(self) -> Attribute:
        cursor = self.cursor
        cursor.expect("(", "before the shapes of a tuple")
        with cursor.nested():
            return tuple_type(cursor.items(")", self.shape, "the shape of a tuple's element"))

    def _buffer(self) -> Attribute:
        self.cursor.expect("(", "after 'b'")
        with self.cursor.nested():
            contents = self.shape()
            self.cursor.expect(")", "after the shape of a buffer")
        return BufferType(contents)

    def _dims(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Sizes, and bounds of the dynamic ones."""
        cursor = self.cursor

        def dimension() -> tuple[int, int]:
            if cursor.accept("?"):
                return UNBOUNDED, UNBOUNDED
            is_dynamic = cursor.accept("<=")
            token = cursor.token
            size = cursor.integer("a size")
            if size < 0:
                raise cursor.error("a size must not be negative", token, details=(f"got {token}",))
            return (UNBOUNDED, size) if is_dynamic else (size, UNBOUNDED)

        cursor.expect("[", "after the element type")
        found = cursor.items("]", dimension, "a size")
        return tuple(size for size, _ in found), tuple(bound for _, bound in found)

    def _check_size(self, token: HloToken, dims: tuple[int, ...], bounds: tuple[int, ...]) -> None:
        sizes = [bound if size == UNBOUNDED else size for size, bound in zip(dims, bounds, strict=True)]
        elements = prod(size for size in sizes if size != UNBOUNDED)
        if elements * ELEMENT_TYPES[token.text].bytes >= 1 << 63:
            raise self.cursor.error(
                f"an array of {elements} elements is too large", token, details=("its size in bytes must fit 63 bits",)
            )
        if len(dims) > MAX_RANK:
            message = f"an array of rank {len(dims)} is not supported"
            raise self.cursor.error(message, token, details=(f"the highest rank is {MAX_RANK}",))

    def _layout(self, token: HloToken, dims: tuple[int, ...]) -> tuple[tuple[int, ...] | None, str]:
        """The dimensions from minor to major (None if the text has none), and the text after the colon."""
        cursor = self.cursor
        if not cursor.at("{"):
            return None, ""
        following = cursor.peek()
        if following.kind is not HloTokenKind.INT and following.text != ":":
            return None, ""
        start = cursor.advance()
        order = list[int]()
        while not cursor.at(":", "}"):
            if order:
                cursor.expect(",", "or '}' after a dimension of the layout")
            order.append(cursor.integer("a dimension's number"))
        suffix = self._suffix(token) if cursor.accept(":") else ""
        end = cursor.expect("}", "at the end of the layout")
        if sorted(order) != list(range(len(dims))):
            raise cursor.error(
                f"layout {cursor.source.text[start.start : end.end]} does not fit an array of rank {len(dims)}",
                start,
                details=(f"a layout lists the dimensions 0 to {len(dims) - 1} once each, fastest varying first",),
            )
        return tuple(order) if order else None, suffix

    def _suffix(self, element: HloToken) -> str:
        cursor = self.cursor
        start = cursor.token
        while not cursor.at("}") and cursor.token.kind is not HloTokenKind.END:
            cursor.opaque("the rest of the layout")
        suffix = "".join(cursor.source.text[start.start : cursor.token.start].split())
        if not (parts := _SUFFIX.fullmatch(suffix)):
            order = "the parts of a layout are, in this order: T(8,128)(2,1)L(1)E(4)S(1)"
            raise cursor.error(f"'{suffix}' is not a layout", start, details=(order,))
        if parts["bits"] and ELEMENT_TYPES[element.text].bits >= 8:
            raise cursor.error(
                f"{element.text} elements cannot be packed to {parts['bits']} bits",
                start,
                help="only types smaller than a byte can be packed",
            )
        return suffix
