"""Parse and print literals: `constant({{1, -0.5}, {nan(0x7), inf}})` <-> the dense attributes that hold them.

    scalar   1   -2.5e-3   true   inf   -nan   nan(0x7)   (re, im)
    array    { {1, 2}, {3, 4} }    one level of braces per dimension; commas are optional; {...}: data left out
    tuple    ( literal, literal )

A number is rounded once, to its type; a number out of range is an error. Bit patterns of NaN are kept (a bare `nan` is the quiet one).
`-0` is minus zero in a float type. XLA prints minus zero as `-0` but reads `-0` as plus zero, so we print `-0.0`, which both read
as minus zero.
The text of a float is the shortest that reads back as the same value.
Source: docs/reference/1 6.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import copysign, isinf, isnan
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, TupleType
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.constant import Dense, dense, undense
from xla_emitters.dialects.hlo.convert import round_once
from xla_emitters.dialects.hlo.types import UNBOUNDED, as_array, is_array, type_text
from xla_emitters.dtypes import Array, DType, Kind, Specials, dtype, dtype_of
from xla_emitters.errors import ParseError
from xla_emitters.text.hlo.hlo_lexer import HloCursor, HloToken, HloTokenKind

# Runs of plain numbers with commas; a number directly followed by a letter, a digit or a point does not match.
_FLOATS = re.compile(
    r"-?\d++(?:\.\d*+)?(?:[eE][+-]?\d++)?(?:\s*+,\s*+-?\d++(?:\.\d*+)?(?:[eE][+-]?\d++)?)*+(?=\s*+[,}])"
)
_INTEGERS = re.compile(r"-?\d++(?:\s*+,\s*+-?\d++)*+(?=\s*+[,}])")
_RUN_AT_LEAST = 32
_PLAIN_LENGTH = 18
"""Maximum characters of an item, spaces included: a number this short cannot have more than 64 bits."""


# ----------------------------------------------------------------------------------------------------------- text to values


def parse_literal(cursor: HloCursor, literal_type: Attribute) -> Attribute | None:
    """Consumes a literal of type `literal_type`; None if its data is left out (`{...}`).

    raises ParseError for a literal of another shape, a number out of range, a type that has no literals.
    """
    if isinstance(literal_type, TupleType):
        return _parse_tuple(cursor, literal_type)
    if not is_array(literal_type):
        raise cursor.error(f"there are no literals of type {type_text(literal_type)}", cursor.token)
    array = as_array(literal_type)
    dims = array.get_shape()
    if UNBOUNDED in dims:
        raise cursor.error(f"a constant needs known sizes, got {type_text(literal_type)}", cursor.token)
    reader = _Reader(cursor, dtype_of(array.element_type))
    if not reader.items(dims):
        return None
    return dense(reader.values().reshape(dims), reader.element)


def _parse_tuple(cursor: HloCursor, tuple_type: TupleType) -> Attribute | None:
    parts = list[Attribute]()
    start = cursor.expect("(", "before the literals of a tuple")
    with cursor.nested():
        for i, part_type in enumerate(tuple_type.types):
            if i:
                cursor.expect(",", f"before literal {i} of {len(tuple_type.types)}")
            part = parse_literal(cursor, part_type)
            if part is None:
                raise cursor.error("this literal of a tuple leaves out data", start)
            parts.append(part)
        cursor.expect(")", f"after {len(tuple_type.types)} literals of a tuple")
    return ArrayAttr(parts)


class _Reader:
    """Collects the numbers of one literal, row major, with their positions in the text."""

    def __init__(self, cursor: HloCursor, element: DType):
        self.cursor = cursor
        self.element = element
        self.part = element.part
        self.numbers: list[Any] = []
        self.starts: list[int] = []
        self.nans: list[tuple[int, HloToken]] = []
        match element.kind:
            case Kind.PRED:
                self.item: Callable[[], None] = self._truth
            case Kind.FLOAT:
                self.item = self._float
            case Kind.COMPLEX:
                self.item = self._complex
            case _:
                self.item = self._integer
        self.allowed = element.integers if element.is_integer else range(0)

    def items(self, dims: Sequence[int]) -> bool:
        """Reads a literal of these sizes; returns False if its data is left out."""
        cursor, rank = self.cursor, len(dims)
        if rank == 0:
            if cursor.token.text == "{":
                raise cursor.unexpected("a scalar")
            self.item()
            return True
        counts = [0] * rank
        depth = 0
        open_braces = list[HloToken]()
        while True:
            token = cursor.token
            if token.text == "{":
                if depth == rank:
                    raise cursor.error(f"braces are nested deeper than the array's rank, {rank}", token)
                if depth:
                    self._count(counts, depth, dims, token)
                counts[depth] = 0
                depth += 1
                open_braces.append(cursor.advance())
            elif depth == 0:
                raise cursor.unexpected("'{' before the items of an array")
            elif token.text == "}":
                depth -= 1
                if counts[depth] != dims[depth]:
                    raise self._wrong_count(counts[depth], dims[depth], open_braces[-1])
                cursor.advance()
                open_braces.pop()
                if depth == 0:
                    return True
            elif token.text == ",":
                cursor.advance()
            elif token.text == "..." and depth == 1 and not self.numbers:
                cursor.advance()
                cursor.expect("}", "after '...'")
                return False
            elif token.kind is HloTokenKind.END:
                raise cursor.unexpected("'}' after the items of an array")
            elif depth < rank:
                raise cursor.unexpected(f"'{{': the array has rank {rank}")
            elif not self._run(counts, depth, dims):
                self._count(counts, depth, dims, token)
                self.item()

    def _run(self, counts: list[int], depth: int, dims: Sequence[int]) -> bool:
        """Reads plain numbers with commas all at once, up to the rest of the row; returns False, without reading anything, if they are few.

        This is ten times as fast as reading a million tokens. All other items are read by `item`, which can report errors.
        """
        wanted = dims[depth - 1] - counts[depth - 1]
        if wanted < _RUN_AT_LEAST or self.element.kind not in (Kind.FLOAT, Kind.SIGNED, Kind.UNSIGNED):
            return False
        is_float = self.element.kind is Kind.FLOAT
        text, start = self.cursor.source.text, self.cursor.token.start
        found = (_FLOATS if is_float else _INTEGERS).match(text, start)
        if found is None:
            return False
        texts = found[0].split(",")
        if not _RUN_AT_LEAST <= len(texts) <= wanted or max(map(len, texts)) > _PLAIN_LENGTH:
            return False
        if is_float:
            values = list(map(float, texts))
            if isinf(max(values)) or isinf(min(values)):
                return False
            # The position of each number, for the message about one that does not fit the type.
            at = start
            for piece in texts:
                self.starts.append(at + len(piece) - len(piece.lstrip()))
                at += len(piece) + 1
        else:
            values = list(map(int, texts))
            if min(values) not in self.allowed or max(values) not in self.allowed:
                return False
        self.numbers += values
        counts[depth - 1] += len(values)
        self.cursor.skip_to(found.end())
        return True

    def _count(self, counts: list[int], depth: int, dims: Sequence[int], token: HloToken) -> None:
        counts[depth - 1] += 1
        if counts[depth - 1] > dims[depth - 1]:
            raise self.cursor.error(f"more than {dims[depth - 1]} items in dimension {depth - 1}", token)

    def _wrong_count(self, got: int, wanted: int, brace: HloToken) -> ParseError:
        return self.cursor.error(f"{got} items where the shape needs {wanted}", brace)

    def _truth(self) -> None:
        token = self.cursor.token
        if token.kind is not HloTokenKind.INT and token.text not in ("true", "false"):
            raise self.cursor.unexpected("'true', 'false', 0 or 1")
        self.cursor.advance()
        self.numbers.append(
            token.text == "true" or (token.kind is HloTokenKind.INT and self.cursor.to_integer(token) != 0)
        )

    def _integer(self) -> None:
        token = self.cursor.expect_kind(HloTokenKind.INT, f"a value of {self.element.name}")
        value = int(token.text) if len(token.text) <= 21 else self.allowed.stop
        if value not in self.allowed:
            raise self.cursor.error(
                f"{token} is out of range for {self.element.name}",
                token,
                details=(f"its values are from {self.allowed[0]} to {self.allowed[-1]}",),
            )
        self.numbers.append(value)

    def _float(self) -> None:
        token = self.cursor.token
        if token.kind is not HloTokenKind.FLOAT and token.kind is not HloTokenKind.INT:
            raise self.cursor.unexpected(f"a value of {self.element.name}, a number")
        self.cursor.advance()
        text = token.text
        if (
            len(text) > 18
            and token.kind is HloTokenKind.INT
            and (len(text) > 21 or not -(1 << 63) <= int(text) < 1 << 64)
        ):
            raise self.cursor.error(f"{token} is an integer of more than 64 bits", token, help="write 1e20 or 1.0")
        if "n" not in text:
            value = float(text)
            if isinf(value):
                raise self._out_of_range(token)
        elif "a" in text:
            self.nans.append((len(self.numbers), token))
            value = float("nan")
        else:
            value = float(text)
        self.numbers.append(value)
        self.starts.append(token.start)

    def _complex(self) -> None:
        self.cursor.expect("(", f"before the parts of a {self.element.name}")
        self._float()
        self.cursor.expect(",", "between the parts of a complex number")
        self._float()
        self.cursor.expect(")", "after the parts of a complex number")

    def _out_of_range(self, token: HloToken) -> ParseError:
        largest = self.part.float_format.max
        return self.cursor.error(
            f"{token} is out of range for {self.element.name}",
            token,
            details=(f"its largest finite value is {largest:g}",),
        )

    def values(self) -> Array:
        """The values that were read, as a flat array of the type's NumPy dtype."""
        if self.element.kind not in (Kind.FLOAT, Kind.COMPLEX):
            wide = np.bool_ if self.element.kind is Kind.PRED else np.uint64 if self.allowed.start == 0 else np.int64
            return np.array(self.numbers, wide).astype(self.element.numpy)
        exact = np.array(self.numbers, np.float64)
        with np.errstate(all="ignore"):
            rounded = round_once(exact, self.part.numpy)
            back = rounded.astype(np.float64)
        # Out of range: a finite number that became infinite, NaN, or (in a type with neither) the largest; an infinity that the type lacks.
        lost = np.isnan(back) & ~np.isnan(exact) | np.isinf(back) & np.isfinite(exact)
        if self.part.float_format.specials is Specials.NONE:
            lost |= ~(np.abs(exact) <= self.part.float_format.max)
        if lost.any():
            start = self.starts[int(np.argmax(lost))]
            raise self._out_of_range(self._token_at(start))
        for i, token in self.nans:
            self._set_nan(rounded, i, token)
        return rounded.view(self.element.numpy)

    def _token_at(self, start: int) -> HloToken:
        text = self.cursor.source.text
        end = start
        while end < len(text) and (text[end].isalnum() or text[end] in "+-."):
            end += 1
        return HloToken(HloTokenKind.FLOAT, text[start:end], start, end)

    def _set_nan(self, array: Array, i: int, token: HloToken) -> None:
        """Writes the bits of `nan`, `-nan` or `nan(0x7)` to element `i` of a flat array."""
        form = self.part.float_format
        sign, _, rest = token.text.rpartition("nan")
        if not form.has_infinity:
            if rest:
                raise self.cursor.error(f"a NaN of {self.part.name} has no payload", token)
            if form.has_signed_nan:
                array.view(np.uint8)[i] = form.nan | bool(sign) * form.sign
            return
        bits = form.fraction_bits
        payload = int(rest[1:-1], 16) if rest else 1 << bits - 1
        if not 0 < payload < 1 << bits:
            raise self.cursor.error(
                f"a NaN's payload in {self.part.name} is from 1 to {(1 << bits) - 1:#x}",
                token,
                details=(f"got {token}",),
            )
        array.view(f"u{self.part.bytes}")[i] = bool(sign) * form.sign | form.beyond | payload


# ----------------------------------------------------------------------------------------------------------- values to text


def literal_text(value: Attribute) -> str:
    """A dense attribute, or a list of them, as HLO text.

    >>> literal_text(dense(np.array([[1.0, -0.5]], np.float32), dtype("f32")))
    '{ {1, -0.5} }'
    """
    match value:
        case DenseIntOrFPElementsAttr():
            return _dense_text(value)
        case ArrayAttr():
            return f"({', '.join(literal_text(part) for part in value)})"
        case _:
            raise TypeError(f"not the value of a constant: {value}")


def _dense_text(value: Dense) -> str:
    element, dims = dtype_of(value.type.get_element_type()), value.get_shape()
    items = _item_texts(undense(value).reshape(-1), element)
    return _braces(iter(items), dims) if dims else items[0]


def _braces(items: Iterator[str], dims: Sequence[int]) -> str:
    if len(dims) == 1:
        return f"{{{', '.join(next(items) for _ in range(dims[0]))}}}"
    return f"{{ {', '.join(_braces(items, dims[1:]) for _ in range(dims[0]))} }}"


def _item_texts(flat: Array, element: DType) -> list[str]:
    match element.kind:
        case Kind.PRED:
            return ["true" if item else "false" for item in flat]
        case Kind.FLOAT:
            return _float_texts(flat, element)
        case Kind.COMPLEX:
            part = element.part
            texts = _float_texts(flat.view(part.numpy), part)
            return [f"({re}, {im})" for re, im in zip(texts[::2], texts[1::2], strict=True)]
        case _:
            return [str(int(item)) for item in flat]


def _float_texts(flat: Array, element: DType) -> list[str]:
    if element.name in ("f32", "f64"):
        # NumPy's shortest form. Special values, and values near the largest one, which must read back, are written one by one.
        with np.errstate(all="ignore"):
            plain = (flat != 0) & (np.abs(flat) < element.float_format.max * 0.99)
        texts = [text.removesuffix(".0") for text in flat.astype(str).tolist()]
        patterns = np.ascontiguousarray(flat).view(f"u{element.bytes}")
        for i in np.flatnonzero(~plain).tolist():
            texts[i] = _float_text(int(patterns[i]), element.name)
        return texts
    patterns = np.ascontiguousarray(flat).view(f"u{element.bytes}").tolist()
    return [_float_text(pattern, element.name) for pattern in patterns]


@lru_cache(maxsize=4096)
def _float_text(pattern: int, name: str) -> str:
    """The shortest text that reads back as the number with that bit pattern."""
    element = dtype(name)
    number = np.array([pattern], f"u{element.bytes}").view(element.numpy)
    value = float(number[0])
    if isnan(value):
        return _nan_text(pattern, element)
    if isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "-0.0" if copysign(1, value) < 0 else "0"
    text = str(number[0]) if name in ("f32", "f64") else _shortest(value, element)
    if abs(float(text)) > element.float_format.max:
        text = repr(value)  # XLA refuses a number beyond the largest, even one that rounds to it
    return text.removesuffix(".0")


def _shortest(value: float, element: DType) -> str:
    """The fewest digits that round to `value`, a value of the type; whole numbers in full."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    for digits in range(1, 17):
        text = f"{value:.{digits}g}"
        with np.errstate(all="ignore"):
            if float(round_once(np.array([float(text)]), element.numpy)[0]) == value:
                return text
    return repr(value)


def _nan_text(pattern: int, element: DType) -> str:
    form = element.float_format
    if not form.has_signed_nan:
        return "nan"
    sign = "-" if pattern & form.sign else ""
    payload = pattern % (1 << form.fraction_bits)
    is_plain = not form.has_infinity or payload == form.nan - form.beyond
    return f"{sign}nan" if is_plain else f"{sign}nan(0x{payload:x})"
