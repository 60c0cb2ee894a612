"""HLO's ops on small arrays as rows of `program.steps.Recurrence`: NumPy's functions of arrays.

multiply(n0, n1) of f32[4]       n2 = array.multiply n0, n1
constant({1, 2}) of f32[2]       n0 = array.f32 2, 1065353216, 1073741824        rank 1: its size, then the bits of the elements
slice(n0), {[1:3]}               n1 = array.take n0, 1, 2, 1, 2                   rank 1: its size, then the places in n0 of the elements
reduce(n0, n1), maximum          n2 = array.reduce.maximum n0, n1, 0              along dimension 0

exponential(n0)                  n1 = array.about.exponential n0

The rows have one value on every machine, but for those named `array.about`: functions whose last bit differs between libraries, divisions
of f32, for which GPUs have `div.full`, sums of floats, whose order is a kernel's. Not here: conversions of floats to integers, types that
a machine computes in a wider one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from xla_emitters.library.arguments import NUMPY_TYPES, Array
from xla_emitters.program.steps import INTEGERS, Extent, Recurrence

FLOATS = ("f32", "f64")
TYPES = frozenset(("pred", *INTEGERS, *FLOATS))
"""HLO's names of the types that elements may have."""
Compute: TypeAlias = Callable[[str, Sequence[Extent]], Extent]
"""(row, operands) -> its result"""


def _bits(kind: str) -> np.dtype[Any]:
    return np.dtype(f"u{NUMPY_TYPES[kind].itemsize}")


def _of_bits(kind: str) -> Callable[..., Any]:
    def array(rank: int, *held: int) -> Any:
        return np.array(held[rank:], _bits(kind)).view(NUMPY_TYPES[kind]).reshape(held[:rank])[()]

    return array


def _spread(element: Any, *sizes: int) -> Any:
    return np.broadcast_to(np.reshape(element, ()), sizes)


def _take(array: Any, rank: int, *held: int) -> Any:
    return np.reshape(array, -1)[np.array(held[rank:], np.intp)].reshape(held[:rank])


def _reduced(function: np.ufunc) -> Callable[..., Any]:
    def reduce(array: Array, start: Any, *dims: int) -> Any:
        return function.reduce(array, axis=dims, initial=start)

    return reduce


def _summed(array: Array, start: Any, *dims: int) -> Any:
    return np.add(np.add.reduce(array, axis=dims, dtype=array.dtype), start)


def _quotient(a: Any, b: Any) -> Any:
    """Rounds towards zero; x / 0 has all bits set."""
    return _select(b == 0, np.array(-1).astype(np.asarray(a).dtype), np.floor_divide(a - np.fmod(a, b), b))


def _rest(a: Any, b: Any) -> Any:
    return _select(b == 0, a, np.fmod(a, b))


def _clamp(least: Any, array: Any, most: Any) -> Any:
    return np.minimum(np.maximum(array, least), most)


_where: Callable[..., Any] = np.where


def _select(condition: Any, a: Any, b: Any) -> Any:
    return _where(condition, a, b)[()]


_TRUTH: Mapping[str, Callable[..., Any]] = {
    "and": np.bitwise_and,
    "clamp": _clamp,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "not": np.invert,
    "or": np.bitwise_or,
    "select": _select,
    "xor": np.bitwise_xor,
}
_ARITHMETIC: Mapping[str, Callable[..., Any]] = {
    "abs": np.abs,
    "add": np.add,
    "clamp": _clamp,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "negate": np.negative,
    "select": _select,
    "subtract": np.subtract,
}
_OF_INTEGERS: Mapping[str, Callable[..., Any]] = {
    **_TRUTH,
    **_ARITHMETIC,
    "divide": _quotient,
    "remainder": _rest,
    "sign": np.sign,
}
_OF_FLOATS: Mapping[str, Callable[..., Any]] = {
    **_ARITHMETIC,
    "ceil": np.ceil,
    "divide": np.divide,
    "floor": np.floor,
    "is-finite": np.isfinite,
    "round-nearest-even": np.rint,
    "sqrt": np.sqrt,
}


def _logistic(array: Any) -> Any:
    return 1 / (1 + np.exp(-array))


def _rsqrt(array: Any) -> Any:
    return 1 / np.sqrt(array)


_ABOUT: Mapping[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "cosh": np.cosh,
    "cosine": np.cos,
    "divide": np.divide,
    "exponential": np.exp,
    "exponential-minus-one": np.expm1,
    "log": np.log,
    "log-plus-one": np.log1p,
    "logistic": _logistic,
    "power": np.power,
    "rsqrt": _rsqrt,
    "sine": np.sin,
    "sinh": np.sinh,
    "tan": np.tan,
    "tanh": np.tanh,
}
ABOUT = "array.about"
"""What the names of rows begin with whose last bit differs between machines."""
_COMPARISONS: Mapping[str, Callable[..., Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_REDUCTIONS: Mapping[str, np.ufunc] = {
    "and": np.bitwise_and,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_NARROW = frozenset(("pred", *(kind for kind, (bits, _) in INTEGERS.items() if bits <= 32), *FLOATS))
"""The types whose elements become floats with one rounding."""


def _converted(kind: str) -> Callable[[Any], Any]:
    return lambda array: array.astype(NUMPY_TYPES[kind])


def _rows(prefix: str, functions: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    return {f"{prefix}.{name}": function for name, function in functions.items()}


ARRAY_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **_rows("array", _COMPARISONS),
    **_rows("array", _TRUTH),
    **_rows("array.int", _OF_INTEGERS),
    **_rows("array.float", _OF_FLOATS),
    **_rows("array.reduce", {name: _reduced(function) for name, function in _REDUCTIONS.items()}),
    "array.reduce.add": _summed,
    **_rows(ABOUT, _ABOUT),
    f"{ABOUT}.reduce.add": _summed,
    "array.spread": _spread,
    "array.take": _take,
    **{f"array.{kind}": _of_bits(kind) for kind in TYPES},
    **{f"array.to.{kind}": _converted(kind) for kind in TYPES},
}
"""The rows by name. Integers wrap around. Overflow, division by zero and invalid operations give warnings that the caller turns off."""


MOST_NUMBERS = 1024
"""In a row: elements of a constant, or places that are taken."""


def is_exact(ends: Recurrence) -> bool:
    """Whether a loop ends where the recurrence does on every machine."""
    return not any(row.function.startswith(ABOUT) for row in ends.code)


def constant(array: Array, kind: str, compute: Compute) -> Extent | None:
    """A constant of elements of a type in TYPES; one whose elements are all the same is one element, spread. None for a large one."""
    bits = np.ascontiguousarray(array).reshape(-1).view(_bits(kind))
    if array.ndim and bits.size and (bits == bits[0]).all():
        return compute("array.spread", (compute(f"array.{kind}", (0, int(bits[0]))), *array.shape))
    if bits.size > MOST_NUMBERS:
        return None
    return compute(f"array.{kind}", (array.ndim, *array.shape, *map(int, bits)))


def taken(operand: Extent, places: Array, compute: Compute) -> Extent | None:
    """The elements of an array at these places, numbered in its row-major order; the result has their shape. None for too many."""
    if places.size and not places.any() and prod(places.shape) > 1:
        first = compute("array.take", (operand, 0, 0))
        return compute("array.spread", (first, *places.shape))
    if places.size > MOST_NUMBERS:
        return None
    return compute("array.take", (operand, places.ndim, *places.shape, *map(int, places.reshape(-1))))


def reduced(
    opcode: str | None, kind: str, operand: Extent, start: Extent, dims: Sequence[int], compute: Compute
) -> Extent | None:
    """A reduction whose value does not depend on the order of its steps, or a sum of floats; None for others."""
    if opcode in _REDUCTIONS if kind != "pred" else opcode in ("and", "or", "xor"):
        return compute(f"array.reduce.{opcode}", (operand, start, *dims))
    if opcode == "add" and kind in INTEGERS:
        return compute("array.reduce.add", (operand, start, *dims))
    if opcode == "add" and kind in FLOATS:
        return compute(f"{ABOUT}.reduce.add", (operand, start, *dims))
    return None


def computed_array(
    opcode: str, types: Sequence[str], result: str, operands: Sequence[Extent], compute: Compute
) -> Extent | None:
    """The value of an elementwise op, `compare` by its direction; None for an op without a row.

    types    HLO's names of the operands' element types, all in TYPES; result: of the result's
    compute  makes the row
    """
    kind = types[-1]
    if opcode in _COMPARISONS:
        return compute(f"array.{opcode}", operands)
    if opcode == "convert":
        is_exact = kind in _NARROW if result in FLOATS else result == "pred" or kind not in FLOATS
        return compute(f"array.to.{result}", operands) if is_exact else None
    prefix, rows = _TABLES.get(kind, ("array.int", _OF_INTEGERS))
    if kind in FLOATS and (opcode not in rows or (opcode, kind) == ("divide", "f32")):
        prefix, rows = ABOUT, _ABOUT
    return compute(f"{prefix}.{opcode}", operands) if opcode in rows else None


_TABLES: Mapping[str, tuple[str, Mapping[str, Callable[..., Any]]]] = {
    "pred": ("array", _TRUTH),
    **dict.fromkeys(FLOATS, ("array.float", _OF_FLOATS)),
}
