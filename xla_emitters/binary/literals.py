"""The arguments in an HLO snapshot: XLA's LiteralProtos as arrays.

    message LiteralProto { ShapeProto shape = 1; repeated int32 s32s = 4; repeated float f32s = 8; bytes bf16s = 13; ... }

The elements are in the order of the shape's layout. Those of below eight bits have a byte each, as in our arrays.
Source: XLA, xla/xla_data.proto and xla/literal.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import ParseError
from xla_emitters.texts.wire import message, messages, packed

_TYPES = (
    *(
        "",
        "pred",
        "s8",
        "s16",
        "s32",
        "s64",
        "u8",
        "u16",
        "u32",
        "u64",
        "f16",
        "f32",
        "f64",
        "",
        "",
        "c64",
        "bf16",
        "",
        "c128",
    ),
    *("f8e5m2", "f8e4m3fn", "s4", "u4", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz", "s2", "u2", "f8e4m3", "f8e3m4"),
    *("s1", "u1", "f4e2m1fn", "f8e8m0fnu"),
)
"""XLA's PrimitiveType: the name of each number; "" is none of arrays."""
_TUPLE = 13
_SHAPE, _TUPLE_LITERALS = 1, 10
_VARINTS = {"pred", "s32", "s64", "u32", "u64"}
"""Types whose elements are numbers of the wire format."""


def arguments_of(devices: Sequence[Sequence[bytes]], name: str) -> dict[str, tuple[str, Array]]:
    """The type and the array of p0, p1, ...; of several devices p0@0, p0@1, ... The parts of a tuple have a number each.

    raises ParseError that names the argument
    """
    found: dict[str, tuple[str, Array]] = {}
    for device, literals in enumerate(devices):
        suffix, part = f"@{device}" if len(devices) > 1 else "", 0
        for number, literal in enumerate(literals):
            try:
                for typed in _arrays(literal):
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
    (kind,) = packed(shape[2])
    if kind == _TUPLE:
        if depth > 100:
            raise ValueError("tuples in tuples")
        for part in messages(fields.get(_TUPLE_LITERALS, [])):
            yield from _arrays(part, depth + 1)
        return
    if not (element := _TYPES[kind]):
        raise ValueError(f"it is of XLA's type {kind}, which is none of arrays")
    extents = packed(shape.get(3, []))
    order = packed(message(messages(shape[5])[0]).get(1, [])) if 5 in shape else list(reversed(range(len(extents))))
    # The elements are the only other field; those of an array without elements are left out.
    values = next((values for number, values in fields.items() if number != _SHAPE), list[int | bytes]())
    found = _elements(element, values)
    if prod(extents) != found.size or sorted(order) != list(range(len(extents))):
        raise ValueError(f"{found.size} elements of {element}{extents} with the layout {order}")
    slow_to_fast = order[::-1]
    yield element, found.reshape([extents[axis] for axis in slow_to_fast]).transpose(np.argsort(slow_to_fast))


def _elements(element: str, values: list[int | bytes]) -> np.ndarray[Any, Any]:
    wanted = dtype(element).numpy
    if element in _VARINTS:
        return np.array(packed(values), np.uint64).astype(wanted)
    data = b"".join(messages(values))
    return np.frombuffer(data, np.dtype(wanted).newbyteorder("<") if wanted.isbuiltin == 1 else wanted)
