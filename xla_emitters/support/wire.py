"""Protocol Buffers' wire format: the fields of a message, without a schema.

    [*fields(b"\\n\\x01f\\x28\\x07")]        (1, b"f"), (5, 7)

Source: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from collections.abc import Iterator

_FIXED = {1: 8, 5: 4}
"""Wire type -> bytes of a number of fixed size."""


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of each field: a number, or the bytes of a text, a message, an array or a number of fixed size.

    raises ValueError where the bytes are no message
    """
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise ValueError(f"no field has the number 0 (byte {at - 1})")
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        size, at = _varint(data, at) if wire == 2 else (_FIXED.get(wire, len(data) + 1), at)
        if at + size > len(data):
            raise ValueError(f"field {number} is cut, or has no known type (byte {at})")
        yield number, data[at : at + size]
        at += size


def message(data: bytes) -> dict[int, list[int | bytes]]:
    """The values of each field. raises ValueError where the bytes are no message

    >>> message(b"\\n\\x01f\\x28\\x07\\x28\\x08")
    {1: [b'f'], 5: [7, 8]}
    """
    found: dict[int, list[int | bytes]] = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    return found


def messages(values: list[int | bytes]) -> list[bytes]:
    """The values that are bytes, of which messages are."""
    return [value for value in values if isinstance(value, bytes)]


def packed(values: list[int | bytes]) -> list[int]:
    """The numbers of a repeated field, which may be packed into bytes; numbers below zero are as of 64 bits without sign.

    >>> packed([1, b"\\x02\\xac\\x02"])
    [1, 2, 300]
    """
    found: list[int] = []
    for value in values:
        if isinstance(value, int):
            found.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            found.append(number)
    return found


def delimited(data: bytes) -> tuple[bytes, bytes]:
    """The message behind its size, and what follows it. raises ValueError where it is cut

    >>> delimited(b"\\x02\\x28\\x07rest")
    (b'(\\x07', b'rest')
    """
    size, at = _varint(data, 0)
    if at + size > len(data):
        raise ValueError("the message is cut")
    return data[at : at + size], data[at + size :]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and the position after it."""
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value & (1 << 64) - 1, at
    raise ValueError(f"a number is cut, or too long (byte {at})")
