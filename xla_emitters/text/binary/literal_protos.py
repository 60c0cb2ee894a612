"""The arguments in an HLO snapshot: XLA's LiteralProtos as arrays.

    message LiteralProto { ShapeProto shape = 1; repeated int32 s32s = 4; repeated float f32s = 8; bytes bf16s = 13; ... }

The elements are in the order of the shape's layout. Those of below eight bits have a byte each, as in our arrays.
Source: XLA, xla/xla_data.proto, xla/literal.cc, and xla/literal.h for what Literal::Serialize writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import ParseError
from xla_emitters.support.decoding import SavedModule
from xla_emitters.support.wire import message, messages, packed

_TYPES = (
    *("", "pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "", "", "c64", "bf16",
        "", "c128"),
    *("f8e5m2", "f8e4m3fn", "s4", "u4", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz", "s2", "u2", "f8e4m3", "f8e3m4"),
    *("s1", "u1", "f4e2m1fn", "f8e8m0fnu"),
)  # fmt: skip
"""XLA's PrimitiveType: the name of each number; "" is none of arrays."""
_TUPLE = 13
_SHAPE, _TUPLE_LITERALS = 1, 10
_VARINTS = {"pred", "s32", "s64", "u32", "u64"}
"""Types whose elements are numbers of the wire format."""


def arguments_of(saved: SavedModule, name: str) -> dict[str, tuple[str, Array]]:
    """The type and the array of p0, p1, ...; of several devices p0@0, p0@1, ... The parts of a tuple have a number each.

    raises ParseError that names the argument
    """
    devices, arrays_of = saved.arguments, _arrays_serialized if saved.serialized else _arrays
    found: dict[str, tuple[str, Array]] = {}
    for device, literals in enumerate(devices):
        suffix, part = f"@{device}" if len(devices) > 1 else "", 0
        for number, literal in enumerate(literals):
            try:
                for typed in arrays_of(literal):
                    found[f"p{part}{suffix}"], part = typed, part + 1
            except (ValueError, IndexError, KeyError, OverflowError, MemoryError) as error:
                raise ParseError(
                    f"argument {number} of the snapshot {name} is damaged: {error}", stage="read"
                ) from error
    return found


def _arrays(literal: bytes, depth: int = 0) -> Iterator[tuple[str, Array]]:
    """The type and the array of a literal, or of each part of a tuple."""
    fields = message(literal)
    shape = message(messages(fields[_SHAPE])[0])
    element, extents, order = _shape(shape)
    if element is None:
        if depth > 100:
            raise ValueError("tuples in tuples")
        for part in messages(fields.get(_TUPLE_LITERALS, [])):
            yield from _arrays(part, depth + 1)
        return
    # The elements are the only other field; those of an array without elements are left out.
    values = next((values for number, values in fields.items() if number != _SHAPE), list[int | bytes]())
    found = _elements(element, values)
    if prod(extents) != found.size:
        raise ValueError(f"{found.size} elements of {element}{extents} with the layout {order}")
    yield element, _in_order(found, extents, order)


def _in_order(found: Array, extents: list[int], order: list[int]) -> Array:
    """The elements, which lie in the order of a layout (fastest axis first), as an array."""
    slow_to_fast = order[::-1]
    return found.reshape([extents[axis] for axis in slow_to_fast]).transpose(np.argsort(slow_to_fast))


def _shape(fields: dict[int, list[int | bytes]]) -> tuple[str | None, list[int], list[int]]:
    """The element type, or None of a tuple; the extents; the layout, fastest axis first."""
    (kind,) = packed(fields[2])
    if kind == _TUPLE:
        return None, [], []
    if not (element := _TYPES[kind]):
        raise ValueError(f"it is of XLA's type {kind}, which is none of arrays")
    extents = packed(fields.get(3, []))
    order = packed(message(messages(fields[5])[0]).get(1, [])) if 5 in fields else list(reversed(range(len(extents))))
    if sorted(order) != list(range(len(extents))):
        raise ValueError(f"the layout {order} of {element}{extents}")
    return element, extents, order


def _arrays_serialized(data: bytes) -> Iterator[tuple[str, Array]]:
    """As `_arrays`, of what XLA's Literal::Serialize writes: the size of the ShapeProto in 8 bytes, it, and the elements as in memory.

    Those of below eight bits, and `pred`, are packed, the first in the lowest bits.
    """
    size = int.from_bytes(data[:8], "little")
    shape, at = message(data[8 : 8 + size]), 8 + size
    parts = [shape]
    while parts:
        part = parts.pop(0)
        element, extents, order = _shape(part)
        if element is None:
            parts[:0] = map(message, messages(part.get(4, [])))
            continue
        if any(packed(part.get(6, []))):
            raise ValueError("its sizes are known at run time only")
        kind, count = dtype(element), prod(extents)
        bits = 1 if element == "pred" else kind.significant_bits
        end = at + (count * bits + 7) // 8
        if end > len(data):
            raise ValueError("it is cut")
        if bits < 8:
            each = np.unpackbits(np.frombuffer(data[at:end], np.uint8), count=count * bits, bitorder="little")
            found = np.packbits(each.reshape(count, bits), axis=1, bitorder="little").reshape(count).view(kind.numpy)
        else:
            found = _of_bytes(data[at:end], kind.numpy)
        yield element, _in_order(found, extents, order)
        at = end
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes follow its elements")


def _elements(element: str, values: list[int | bytes]) -> Array:
    wanted = dtype(element).numpy
    return (
        np.array(packed(values), np.uint64).astype(wanted)
        if element in _VARINTS
        else _of_bytes(b"".join(messages(values)), wanted)
    )


def _of_bytes(data: bytes, wanted: np.dtype[Any]) -> Array:
    return np.frombuffer(data, wanted.newbyteorder("<") if wanted.isbuiltin == 1 else wanted)
