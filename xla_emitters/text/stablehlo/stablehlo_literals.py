"""Literals of StableHLO in both directions: `dense<...>` as an array with all its bits.

    dense<1.000000000e+00> : tensor<4xf32>              equal elements
    dense<[1, 2]> : tensor<2xi32>                       few elements
    dense<"0x0000803F..."> : tensor<4096xf32>           many elements: their bytes
    dense<0xFF800000> : tensor<f32>                     a bit pattern: elements that are not finite
    dense_resource<name> : tensor<4096xf32>             bytes at the end of the text

Floats are read as in MLIR: as f64, rounded to their type. Source: MLIR, "Builtin dialect", DenseElementsAttr.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from xla_emitters.dialects.hlo.constant import Dense, dense
from xla_emitters.dialects.hlo.convert import round_once
from xla_emitters.dialects.hlo.types import array_type, dims_of, element_of, is_array
from xla_emitters.dtypes import Array, DType, Kind
from xla_emitters.errors import ParseError
from xla_emitters.support.cursor import nearest
from xla_emitters.text.stablehlo.stablehlo_lexer import STAGE, StableHloCursor, StableHloTokenKind, Token, unquoted
from xla_emitters.text.stablehlo.stablehlo_types import parse_type, stablehlo_type


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


# ----------------------------------------------------------------------------------------------------------------- printing

_FEW = 32
"""Literals of up to this many elements list them one by one; larger ones are a string of bytes."""


def literal_text(array: Array, element: DType) -> str:
    """`dense<...> : tensor<...>` with all bits of the array."""
    ir_type = stablehlo_type(array_type(element.ir_type, array.shape))
    if not array.size:
        return f"dense<> : {ir_type}"
    flat = array.reshape(-1)
    raw = np.ascontiguousarray(flat).view(np.uint8).reshape(flat.size, -1)
    is_splat = bool((raw == raw[0]).all())
    if is_splat:
        return f"dense<{_scalar_text(flat[0], element)}> : {ir_type}"
    if flat.size <= _FEW or element.kind is Kind.PRED or element.bits < 8:
        return f"dense<{_nested_text(array, element)}> : {ir_type}"
    return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}"> : {ir_type}'


def _nested_text(array: Array, element: DType) -> str:
    if not array.ndim:
        return _scalar_text(array[()], element)
    return f"[{', '.join(_nested_text(part, element) for part in array)}]"


def _scalar_text(value: Any, element: DType) -> str:
    match element.kind:
        case Kind.PRED:
            return "true" if value else "false"
        case Kind.COMPLEX:
            return f"({_scalar_text(value.real, element.part)}, {_scalar_text(value.imag, element.part)})"
        case Kind.FLOAT:
            if np.isfinite(np.float64(value)):
                return f"{float(value):.{17 if element.bits == 64 else 9}e}"
            bits = np.asarray(value, element.numpy).view(f"u{element.numpy.itemsize}")
            return f"0x{int(bits):0{element.numpy.itemsize * 2}X}"
        case _:
            return str(int(value))


# ------------------------------------------------------------------------------------------------------------------ reading

_DENSE = re.compile(r'\s*<((?:"[^"\n]*+"|[^<>"]++)*+)>')
_ITEM = re.compile(r"[\[\],]|\([^()]*\)|[^\[\],\s()]+")


def parse_dense(cursor: StableHloCursor) -> Literal | Elided:
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


def _literal_type(cursor: StableHloCursor) -> tuple[tuple[int, ...], DType]:
    at_type = cursor.token
    ir_type = parse_type(cursor)
    if not is_array(ir_type) or any(size < 0 for size in dims_of(ir_type)):
        raise cursor.error("a literal's type has known sizes", at_type)
    return dims_of(ir_type), element_of(ir_type)


_ELIDED = "__elided__"


def parse_resource(cursor: StableHloCursor) -> Literal | Elided:
    """Consumes `dense_resource<name> : type`. raises ParseError if the text has no such resource, or if it does not fit the type"""
    cursor.advance()
    cursor.expect("<", "after 'dense_resource'")
    token = cursor.advance()
    if token.kind not in (StableHloTokenKind.WORD, StableHloTokenKind.STRING):
        raise cursor.error("expected the name of a resource", token)
    cursor.expect(">", "after the name of a resource")
    cursor.expect(":", "after a literal, before its type")
    dims, element = _literal_type(cursor)
    name = unquoted(token.text)
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


def _resources(cursor: StableHloCursor) -> dict[str, Token]:
    """The blobs of `{-# dialect_resources: {builtin: {name: "0x..."}} #-}`, by name."""
    inner, found = StableHloCursor(cursor.source), dict[str, Token]()
    start = cursor.source.text.rfind("{-#")
    if start < 0:
        return found
    inner.skip_to(start)
    while inner.token.kind is not StableHloTokenKind.END:
        token = inner.advance()
        if (
            token.kind in (StableHloTokenKind.WORD, StableHloTokenKind.STRING)
            and inner.accept(":")
            and inner.token.kind is StableHloTokenKind.STRING
        ):
            found[unquoted(token.text)] = inner.token
    return found


def _literal(cursor: StableHloCursor, text: str, start: int, dims: tuple[int, ...], element: DType) -> Literal:
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
            allowed, bits = element.integers, element.significant_bits

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
