"""Random inputs that are the same on every machine: NumPy draws from a seed, one stream per parameter.

This file stands alone (NumPy only): a bundle carries a copy of it, so that the machine with the GPU draws the very arrays that the
reference was computed from. Floats come from a unit normal, so that saturating functions see their linear part and their tails; integers
from their whole range, pred from coin flips.

    >>> draw("signed", 8, np.dtype(np.int8), (2, 3), seed=0, number=1).shape
    (2, 3)
"""

from __future__ import annotations

from typing import Any

import numpy as np


def draw(
    kind: str, bits: int, dtype: np.dtype[Any], shape: tuple[int, ...], *, seed: int, number: int
) -> np.ndarray[Any, np.dtype[Any]]:
    """The array for parameter `number`.

    kind   "pred", "signed", "unsigned", "float" or "complex"
    bits   significant bits of one element (4 for s4)
    dtype  what the array holds, e.g. ml_dtypes.bfloat16
    """
    rng = np.random.default_rng([seed, number])
    if kind == "pred":
        return rng.integers(0, 2, shape, dtype=np.uint8).astype(dtype)
    if kind == "float":
        if bits == 64:
            return rng.standard_normal(shape)
        return rng.standard_normal(shape, dtype=np.float32).astype(dtype)
    if kind == "complex":
        parts = rng.standard_normal((*shape, 2))
        return (parts[..., 0] + 1j * parts[..., 1]).astype(dtype)
    if kind == "signed":
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        return rng.integers(low, high, shape, dtype=np.int64, endpoint=True).astype(dtype)
    if kind == "unsigned":
        return rng.integers(0, (1 << bits) - 1, shape, dtype=np.uint64, endpoint=True).astype(dtype)
    raise ValueError(f"no draw for {kind}")
