"""Packs elements below eight bits: the caller has one per byte, a kernel's memory several per byte, the first in the lowest bits.

    s4  1 -2 3      ->   0xe1 0x03
    u2  1 2 3 0 1   ->   0x39 0x01

This file imports NumPy only: a bundle holds a copy of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BITS_IN_SHARED_BYTES = {"s2": 2, "u2": 2, "s4": 4, "u4": 4, "f4e2m1fn": 4}
"""HLO's element types that share a byte in memory: bits of one element."""


def packed_bytes(elements: np.ndarray[Any, np.dtype[Any]], bits: int) -> np.ndarray[Any, np.dtype[Any]]:
    """Bytes that hold 8 // bits elements each; `elements` is uint8, one element each.

    >>> packed_bytes(np.array([1, -2, 3]).astype(np.uint8), 4).tolist()
    [225, 3]
    """
    per_byte = 8 // bits
    padded = np.zeros(-(-elements.size // per_byte) * per_byte, np.uint8)
    padded[: elements.size] = elements & ((1 << bits) - 1)
    shifts = np.arange(per_byte, dtype=np.uint8) * bits
    return np.bitwise_or.reduce(padded.reshape(-1, per_byte) << shifts, axis=1)


def unpacked_elements(data: np.ndarray[Any, np.dtype[Any]], bits: int) -> np.ndarray[Any, np.dtype[Any]]:
    """The inverse of `packed_bytes`; the elements that pad the last byte are returned too."""
    shifts = np.arange(8 // bits, dtype=np.uint8) * bits
    return ((data[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)
