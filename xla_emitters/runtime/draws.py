"""Random inputs that are the same on every machine: NumPy draws from a seed, one stream per parameter.

This file imports NumPy only: a bundle holds a copy of it, so that the machine with the GPU draws the arrays that the reference was
computed from. Floats have a unit normal distribution, which covers the linear part and the tails of saturating functions; integers are
uniform over their whole range, preds are true half of the time. Integers that are starts of windows are mostly inside the array, and those
that are sizes are small.

    >>> draw("signed", 8, np.dtype(np.int8), (2, 3), seed=0, number=1).shape
    (2, 3)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

OUTSIDE = 4
"""The range of starts is widened at each end by 1/OUTSIDE of its length, so that some windows are partly outside."""


@dataclass(frozen=True)
class Places:
    """The range of starts for windows of an array.

    last    the greatest start of a window that is inside the array
    window  the size of a window in its largest dimension
    unique  whether windows must not overlap
    least   for numbers that are sizes, steps or paddings: the smallest one. All are in [least, last]; None: starts, from 0, some outside
    """

    last: int
    window: int
    unique: bool
    least: int | None = None


def draw(
    kind: str,
    bits: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    *,
    seed: int,
    number: int,
    places: Places | None = None,
) -> np.ndarray[Any, np.dtype[Any]]:
    """The array for parameter `number`.

    kind    "pred", "signed", "unsigned", "float" or "complex"
    bits    significant bits of one element (4 for s4)
    dtype   the array's element type, e.g. ml_dtypes.bfloat16
    places  the allowed starts if the elements are starts of windows; ignored for types that NumPy lacks
    """
    if places is not None and dtype.kind in "iu":
        return _starts(places, dtype, shape, np.random.default_rng([seed, number, 1]))
    rng = np.random.default_rng([seed, number])
    if kind == "pred":
        return rng.integers(0, 2, shape, dtype=np.uint8).astype(dtype)
    if kind == "float":
        if bits == 64:
            return rng.standard_normal(shape)
        return rng.standard_normal(shape, dtype=np.float32).astype(dtype, copy=False)
    if kind == "complex":
        parts = rng.standard_normal((*shape, 2))
        return (parts[..., 0] + 1j * parts[..., 1]).astype(dtype)
    if kind == "signed":
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        return rng.integers(low, high, shape, dtype=np.int64, endpoint=True).astype(dtype)
    if kind == "unsigned":
        return rng.integers(0, (1 << bits) - 1, shape, dtype=np.uint64, endpoint=True).astype(dtype)
    raise ValueError(f"no draw for {kind}")


def _starts(
    places: Places, dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator
) -> np.ndarray[Any, np.dtype[Any]]:
    size = math.prod(shape)
    if places.unique:
        starts = rng.permutation(np.arange(0, places.last + 1, places.window))
        outside = np.full(max(0, size - starts.size), places.last + places.window)
        chosen = np.concatenate([starts, outside])[:size]
    elif places.least is not None:
        chosen = rng.integers(places.least, places.last, size, endpoint=True)
    else:
        margin = places.last // OUTSIDE + 2
        low = -margin if dtype.kind == "i" else 0
        chosen = rng.integers(low, places.last + margin, size, endpoint=True)
    info = np.iinfo(dtype)
    return np.clip(chosen, info.min, info.max).astype(dtype).reshape(shape)
