"""Executes ops of a host program from rows of plain data, on NumPy arrays: a bundle's host program computes sizes with them.

    {"opcode": "compare", "types": ["s32", "s32", "pred"], "outputs": 1, "direction": "GE"}        f(x, y, o): o[...] = x >= y

Elements are integers, which wrap around, or truth values. For an op that a function of `library` computes, the row has that function's name
and configuration, and its types may be any. Other ops have no row (`pipelines/program_bundle`). Source: docs/reference/1 5.2-5.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xla_emitters import library
from xla_emitters.errors import DataError
from xla_emitters.library.arguments import Array
from xla_emitters.runtime.ral.context import STAGE
from xla_emitters.runtime.ral.cupy_program import BufferFunction

NUMBERS = frozenset(("pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64"))
"""The element types of ops other than library functions."""
COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def buffer_function(row: Mapping[str, Any]) -> BufferFunction:
    """The function that executes a row. raises LookupError for an invalid row"""
    types = tuple(row["types"])
    if (called := row.get("library")) is not None:
        name, config = called
        run = _by_library(name, config, types, row["outputs"])
        return BufferFunction(row["name"], types, row["outputs"], run, (name, config))
    function = FUNCTIONS[row["opcode"]]
    if not row["outputs"]:
        return BufferFunction(row["name"], types, 0, lambda *buffers: function(row, *buffers))

    def write(*buffers: Array) -> None:
        *inputs, output = buffers
        with np.errstate(all="ignore"):
            value = function(row, *inputs)
        output[...] = np.asarray(value).astype(output.dtype, copy=False)

    return BufferFunction(row["name"], types, row["outputs"], write)


def _by_library(name: str, config: Mapping[str, Any], types: tuple[str, ...], outputs: int) -> Callable[..., None]:
    def run(*buffers: Array) -> None:
        count = len(buffers) - outputs
        wanted = [(kind, buffer.shape) for kind, buffer in zip(types[count:], buffers[count:], strict=True)]
        for value, output in zip(library.call(name, config, buffers[:count], wanted), buffers[count:], strict=True):
            output[...] = value

    return run


def _assert(row: Mapping[str, Any], holds: Array, *values: Array) -> None:
    if not bool(holds):
        text: str = row["message"]
        for number, value in enumerate(values):
            text = text.replace(f"{{{number}}}", str(int(value)))
        raise DataError(text, stage=STAGE)


def _divide(row: Mapping[str, Any], x: Array, y: Array) -> Array:
    """Rounds towards zero; x / 0 has all bits set, and the least number divided by -1 is itself."""
    by = _divisor(x, y)
    quotient = (x - np.fmod(x, by)) // by
    return np.where(y == 0, ~np.zeros_like(x), quotient)


def _remainder(row: Mapping[str, Any], x: Array, y: Array) -> Array:
    return np.where(y == 0, x, np.fmod(x, _divisor(x, y)))


def _divisor(x: Array, y: Array) -> Array:
    """The divisor, or 1 where the division is not defined."""
    if x.dtype.kind == "u":
        return np.where(y == 0, y.dtype.type(1), y)
    least = np.iinfo(x.dtype).min
    return np.where((y == 0) | ((x == least) & (y == -1)), y.dtype.type(1), y)


def _slice(row: Mapping[str, Any], x: Array) -> Array:
    return x[tuple(slice(*bounds) for bounds in zip(row["starts"], row["limits"], row["strides"], strict=True))]


def _clamp(row: Mapping[str, Any], low: Array, x: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


def _compare(row: Mapping[str, Any], x: Array, y: Array) -> Array:
    return COMPARISONS[row["direction"]](x, y)


def _concatenate(row: Mapping[str, Any], *operands: Array) -> Array:
    return np.concatenate(operands, row["dimension"])


def _convert(row: Mapping[str, Any], x: Array) -> Any:
    return x != 0 if row["types"][-1] == "pred" else x


def _copy(row: Mapping[str, Any], x: Array) -> Array:
    return x


def _form(function: Callable[..., Any], of_truth: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A form that calls a function of the operands; for truth values `of_truth`, if given."""

    def run(row: Mapping[str, Any], *operands: Array) -> Any:
        chosen = of_truth if of_truth is not None and operands[0].dtype == np.bool_ else function
        return chosen(*operands)

    return run


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": _form(np.abs),
    "add": _form(np.add, np.logical_or),
    "and": _form(np.bitwise_and),
    "clamp": _clamp,
    "compare": _compare,
    "concatenate": _concatenate,
    "convert": _convert,
    "copy": _copy,
    "divide": _divide,
    "maximum": _form(np.maximum),
    "minimum": _form(np.minimum),
    "multiply": _form(np.multiply, np.logical_and),
    "negate": _form(np.negative),
    "not": _form(np.invert),
    "or": _form(np.bitwise_or),
    "remainder": _remainder,
    "select": _form(np.where),
    "shape-assertion": _assert,
    "sign": _form(np.sign),
    "slice": _slice,
    "subtract": _form(np.subtract),
    "xor": _form(np.bitwise_xor),
}
"""Opcode -> (row, operands ...) -> the value."""
