"""Linear approximations of functions of real numbers, with the rest, over intervals of their operands.

    f(x) - f(a) = s (x - a) + rest          |rest| <= (largest distance of the derivative from s) * (largest distance of x from a)

`SLOPES` gives the intervals of derivatives:

    rsqrt      [x]        ->   [-1/2 x.low^-3/2, -1/2 x.high^-3/2], all numbers unless x.low > 0
    abs        [x]        ->   [-1, 1] where x holds 0

A monotone derivative is bounded by its values at the ends, an even one by those at the least and the greatest magnitude.
The derivative is unbounded where the function has a pole in the interval. Products and quotients use exact forms, for centers a and b:

    x y - a b     = b (x - a) + a (y - b) + (x - a) (y - b)
    x / y - a / b = ((x - a) - a / b (y - b)) / y
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.runtime.reference.tolerance import Bounds

EPS = float(np.finfo(np.float64).eps)
Ends = tuple[Array, Array]
"""The least and the greatest possible value, in float64."""


@dataclass(frozen=True)
class CenteredOperand:
    """An operand, in float64.

    center  one of its values
    reach   upper bound of a value's distance from the center
    ends    its interval
    """

    center: Array
    reach: Array
    ends: Ends


def as_float64(bounds: Bounds) -> Ends:
    return bounds.low.astype(np.float64), bounds.high.astype(np.float64)


def outside(ends: Ends) -> Ends:
    """Ends that are differences of two float64 numbers, moved outwards by the rounding error of these."""
    size = 2 * EPS * np.maximum(np.abs(ends[0]), np.abs(ends[1]))
    return ends[0] - size, ends[1] + size


def linearized(opcode: str, operands: Sequence[CenteredOperand]) -> tuple[list[Array], Array]:
    """The slope by each operand, and a bound of the rest; an infinite rest means no bound."""
    if opcode == "multiply":
        x, y = operands
        return [y.center, x.center], x.reach * y.reach * (1 + 4 * EPS)
    if opcode == "divide":
        x, y = operands
        is_sure = (y.ends[0] > 0) | (y.ends[1] < 0)
        divisor = np.where(is_sure, y.center, 1)
        quotient = np.where(is_sure, x.center, 0) / divisor
        apart = np.maximum(*(np.abs(1 / np.where(is_sure, end, 1) - 1 / divisor) for end in y.ends))
        left = (apart + 4 * EPS / np.abs(divisor)) * (x.reach + np.abs(quotient) * y.reach)
        return [np.where(is_sure, 1 / divisor, 0), np.where(is_sure, -quotient / divisor, 0)], np.where(
            is_sure, left, np.inf
        )
    slopes, left = list[Array](), np.zeros(operands[0].center.shape)
    for (low, high), operand in zip(SLOPES[opcode](*(operand.ends for operand in operands)), operands, strict=True):
        is_sure = np.isfinite(low) & np.isfinite(high)
        low, high = np.where(is_sure, low, 0), np.where(is_sure, high, 0)
        slope = low / 2 + high / 2
        apart = np.where(is_sure, np.maximum(high - slope, slope - low) + 16 * EPS * np.abs(slope), np.inf)
        left = left + np.where(operand.reach > 0, apart * operand.reach, 0)
        slopes.append(slope)
    return slopes, left


# ---------------------------------------------------------------------------------------------------- derivatives


def _sorted(one: Array, other: Array) -> Ends:
    return np.minimum(one, other), np.maximum(one, other)


def _even(derivative: Callable[[Array], Array]) -> Callable[..., list[Ends]]:
    """The interval of an even derivative that falls with the operand's magnitude."""

    def of(x: Ends) -> list[Ends]:
        most = np.maximum(np.abs(x[0]), np.abs(x[1]))
        least = np.where((x[0] <= 0) & (x[1] >= 0), 0, np.minimum(np.abs(x[0]), np.abs(x[1])))
        return [(derivative(most), derivative(least))]

    return of


def _monotone(derivative: Callable[[Array], Array]) -> Callable[..., list[Ends]]:
    """The interval of a monotone derivative."""

    def of(x: Ends) -> list[Ends]:
        return [_sorted(derivative(x[0]), derivative(x[1]))]

    return of


def _above(start: float, derivative: Callable[[Array], Array]) -> Callable[..., list[Ends]]:
    """The interval of a derivative that is monotone above `start`; unbounded if some operands are not above it."""

    def of(x: Ends) -> list[Ends]:
        is_sure = x[0] > start
        low, high = _sorted(*(derivative(np.where(is_sure, end, start + 1)) for end in x))
        return [(np.where(is_sure, low, -np.inf), np.where(is_sure, high, np.inf))]

    return of


def _chosen(first: int) -> Callable[..., list[Ends]]:
    """maximum (1) and minimum (-1): slope 1 by the operand that is certainly chosen, 0 by the other, [0, 1] where the choice is open."""

    def of(a: Ends, b: Ends) -> list[Ends]:
        above, below = (a[0] > b[1], a[1] < b[0]) if first == 1 else (a[1] < b[0], a[0] > b[1])
        one, zero = np.ones_like(a[0]), np.zeros_like(a[0])
        return [
            (np.where(above, one, zero), np.where(below, zero, one)),
            (np.where(below, one, zero), np.where(above, zero, one)),
        ]

    return of


def _constant(*slopes: float) -> Callable[..., list[Ends]]:
    def of(*operands: Ends) -> list[Ends]:
        return [
            (np.full_like(x[0], slope), np.full_like(x[0], slope)) for x, slope in zip(operands, slopes, strict=True)
        ]

    return of


def _of_abs(x: Ends) -> list[Ends]:
    return [(np.where(x[0] > 0, 1.0, -1.0), np.where(x[1] < 0, -1.0, 1.0))]


def _of_wave(derivative: Callable[[Array], Array]) -> Callable[..., list[Ends]]:
    def of(x: Ends) -> list[Ends]:
        middle, radius = derivative((x[0] + x[1]) / 2), np.abs(x[1] - x[0])
        return [(np.maximum(middle - radius, -1), np.minimum(middle + radius, 1))]

    return of


def _of_logistic(x: Array) -> Array:
    """exp(-x) / (1 + exp(-x))^2, which is even; written so that nothing overflows."""
    power = np.exp(-np.abs(x))
    return power / (1 + power) ** 2


SLOPES: dict[str, Callable[..., list[Ends]]] = {
    "add": _constant(1, 1),
    "subtract": _constant(1, -1),
    "negate": _constant(-1),
    "copy": _constant(1),
    "abs": _of_abs,
    "maximum": _chosen(1),
    "minimum": _chosen(-1),
    "exponential": _monotone(np.exp),
    "exponential-minus-one": _monotone(np.exp),
    "log": _above(0, lambda x: 1 / x),
    "log-plus-one": _above(-1, lambda x: 1 / (1 + x)),
    "sqrt": _above(0, lambda x: 0.5 / np.sqrt(x)),
    "rsqrt": _above(0, lambda x: -0.5 / (x * np.sqrt(x))),
    "tanh": _even(lambda x: 4 * _of_logistic(2 * x)),
    "logistic": _even(_of_logistic),
    "erf": _even(lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x)),
    "sine": _of_wave(np.cos),
    "cosine": _of_wave(lambda x: -np.sin(x)),
}
"""Opcode -> function from the operands' intervals to those of the derivative by each."""
