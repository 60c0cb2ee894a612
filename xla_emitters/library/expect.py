"""The comparisons of programs that check themselves: custom calls and ops of the dialect `check`.

    eq         the same bits; any NaN equals any NaN, since no op defines a NaN's bits
    almost_eq  at most `tolerance` apart
    close      at least `least_ulps` and at most `most_ulps` representable values apart

In the last two an infinity is near only itself, a NaN near any NaN; complex numbers are compared part by part, integers and truth
values must be equal. Source: StableHLO, docs/reference.md and reference/Element.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xla_emitters.errors import NumbersDiffer
from xla_emitters.library.arguments import Array, LibraryArguments, numpy_type, widened


def expect(arguments: LibraryArguments) -> list[Array]:
    """No results. raises NumbersDiffer unless operand 0 is what operand 1 says"""
    config = arguments.config
    found, wanted = (_on_host(arguments, number) for number in range(2))
    names: Sequence[str] = config["values"]
    call = f"{config['check']}({', '.join(names)}) does not hold"
    if found.shape != wanted.shape:
        sizes = [
            f"{name} has the sizes {list(array.shape)}" for name, array in zip(names, (found, wanted), strict=True)
        ]
        raise NumbersDiffer(f"{call}: {', '.join(sizes)}", stage="check")
    wrong = ~np.logical_and.reduce(
        [_holds(config, x, y, part) for x, y, part in _parts(found, wanted, arguments.types[0])]
    )
    if wrong.any():
        first = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
        values = ", ".join(f"{name} is {array[first]}" for name, array in zip(names, (found, wanted), strict=True))
        where = f" at {list(first)}" if first else ""
        raise NumbersDiffer(
            f"{call}{where}: {values}",
            stage="check",
            details=(f"{_wanted(config, arguments.types[0])}; {int(wrong.sum())} of {wrong.size} elements are not",),
        )
    return []


def _on_host(arguments: LibraryArguments, number: int) -> Array:
    array = arguments.operands[number]
    if not arguments.on_gpu:
        return np.asarray(array)
    return arguments.xp.asnumpy(array).view(numpy_type(arguments.types[number]))


def _parts(x: Array, y: Array, element: str) -> list[tuple[Array, Array, str]]:
    if element in ("c64", "c128"):
        part = "f32" if element == "c64" else "f64"
        return [(np.real(x), np.real(y), part), (np.imag(x), np.imag(y), part)]
    return [(x, y, element)]


def _holds(config: Any, x: Array, y: Array, element: str) -> Array:
    """Whether each element is what is wanted."""
    if element[0] not in "fb":
        return x == y
    wide_x, wide_y = (widened(array, element, np).astype(np.float64) for array in (x, y))
    both_nan = np.isnan(wide_x) & np.isnan(wide_y)
    if config["kind"] == "eq":
        return both_nan | ((wide_x == wide_y) & (np.signbit(wide_x) == np.signbit(wide_y)))
    finite = np.isfinite(wide_x) & np.isfinite(wide_y)
    if config["kind"] == "almost_eq":
        near: Array = np.abs(wide_x - wide_y) <= config["tolerance"]
    else:
        apart = ulps_apart(x, y)
        near = (apart >= config["least_ulps"]) & (apart <= config["most_ulps"])
    return np.where(finite, near, both_nan | (wide_x == wide_y))


def ulps_apart(x: Array, y: Array) -> Array:
    """How many representable values lie between two floats, one end included; both zeros are one value."""
    first, second = _number(x), _number(y)
    return np.maximum(first, second) - np.minimum(first, second)


def _number(array: Array) -> Array:
    """The place of each float in the order of all."""
    middle, size = np.uint64(1 << 63), np.abs(array).view(f"u{array.dtype.itemsize}").astype(np.uint64)
    return np.where(np.signbit(array), middle - size, middle + size)


def _wanted(config: Any, element: str) -> str:
    if config["kind"] == "eq" or element[0] not in "fbc":
        return "elements must be equal"
    if config["kind"] == "almost_eq":
        return f"elements must differ by at most {config['tolerance']:g}"
    least = f"at least {config['least_ulps']:g} and " if config["least_ulps"] else ""
    return f"elements must be {least}at most {config['most_ulps']:g} units in the last place apart"
